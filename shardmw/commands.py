# SPDX-License-Identifier: Apache-2.0
"""The commands, in a Python that may have no more than the filter needs."""

import sys
from importlib import import_module

# What the extra "tools" brings that commands import.
_TOOLS = frozenset({'click', 'matplotlib', 'rich'})


def bench() -> None:
    """``shardmw-bench``."""
    _run('shardmw.bench.cli', 'shardmw-bench')


def saio() -> None:
    """``shardmw-saio``."""
    _run('shardmw.saio.cli', 'shardmw-saio')


def _run(module: str, name: str) -> None:
    """Run a command; what it lacks, then or later, is told in a line."""
    try:
        import_module(module).main(prog_name=name)
    except ModuleNotFoundError as err:
        missing = (err.name or '').partition('.')[0]
        if missing not in _TOOLS:
            raise
        sys.exit(
            f'Error: {name} needs {missing}, which the filter does without: '
            'install shardmw[tools]'
        )
