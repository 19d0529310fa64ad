# SPDX-License-Identifier: Apache-2.0
"""The entry points of the commands.

The filter needs fewer packages than the commands do, so a command may be
installed without the packages that it needs.
"""

import shlex
import sys
from collections.abc import Collection
from importlib import import_module

# The packages of the extras that the commands import.
_ADMIN = frozenset({'click'})
_TOOLS = frozenset(
    {
        *('click', 'httptools', 'matplotlib', 'numpy', 'psutil', 'requests'),
        *('rich', 'swiftclient', 'urllib3'),
    }
)


def admin() -> None:
    """Run ``shardmw-admin``."""
    _run('shardmw.admin.cli', 'shardmw-admin', _ADMIN, 'admin')


def resharder() -> None:
    """Run ``shardmw-resharder``."""
    import_module('shardmw.reshard.daemon').main()


def bench() -> None:
    """Run ``shardmw-bench``."""
    _run('shardmw_bench.cli', 'shardmw-bench', _TOOLS, 'tools')


def saio() -> None:
    """Run ``shardmw-saio``."""
    _run('shardmw_saio.cli', 'shardmw-saio', _TOOLS, 'tools')


def completion_help(name: str) -> str:
    """Return the help text on shell completion for a command."""
    variable = f'_{name.upper().replace("-", "_")}_COMPLETE'
    return (
        # After \\b, click keeps the lines as they are.
        '\b\nCompletion in bash; for zsh, write zsh_source:\n'
        f'  eval "$({variable}=bash_source {name})"'
    )


def _run(
    module: str, name: str, packages: Collection[str], extra: str
) -> None:
    """Run a command, or exit with a line that names the missing package.

    :param packages: the packages that may be missing
    :param extra: the extra of this package that installs them
    """
    try:
        import_module(module).main(prog_name=name)
    except ModuleNotFoundError as err:
        missing = (err.name or '').partition('.')[0]
        if missing not in packages:
            raise
        # pip takes the installed shardmw, and adds the packages of the extra.
        pip = (sys.executable, '-m', 'pip', 'install', f'shardmw[{extra}]')
        sys.exit(
            f'Error: {name} needs {missing}, which the filter does without: '
            f'run {shlex.join(pip)}'
        )
