# SPDX-License-Identifier: Apache-2.0
"""The commands, in a Python that may have no more than the filter needs."""

import sys
from collections.abc import Collection
from importlib import import_module

# What the extras bring that commands import.
_ADMIN = frozenset({'click'})
_TOOLS = frozenset({'click', 'matplotlib', 'rich'})


def admin() -> None:
    """``shardmw-admin``."""
    _run('shardmw.admin.cli', 'shardmw-admin', _ADMIN, 'admin')


def resharder() -> None:
    """``shardmw-resharder``."""
    import_module('shardmw.resharder').main()


def bench() -> None:
    """``shardmw-bench``."""
    _run('shardmw.bench.cli', 'shardmw-bench', _TOOLS, 'tools')


def saio() -> None:
    """``shardmw-saio``."""
    _run('shardmw.saio.cli', 'shardmw-saio', _TOOLS, 'tools')


def _run(
    module: str, name: str, packages: Collection[str], extra: str
) -> None:
    """Run a command; what it lacks, then or later, is told in a line.

    :param packages: what it may lack, which an extra of the package brings
    """
    try:
        import_module(module).main(prog_name=name)
    except ModuleNotFoundError as err:
        missing = (err.name or '').partition('.')[0]
        if missing not in packages:
            raise
        sys.exit(
            f'Error: {name} needs {missing}, which the filter does without: '
            f'install shardmw[{extra}]'
        )
