# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import pytest

WITHOUT = 'import sys; sys.modules[{!r}] = None; '


def ran_without(module: str, code: str) -> subprocess.CompletedProcess:
    """What came of some Python where a module is not installed."""
    return subprocess.run(
        [sys.executable, '-c', WITHOUT.format(module) + code],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ('command', 'module', 'extra'),
    [
        ('admin', 'click', 'admin'),
        ('bench', 'click', 'tools'),
        ('bench', 'rich', 'tools'),
        ('saio', 'click', 'tools'),
    ],
)
def test_a_command_that_lacks_a_tool_says_so_in_a_line(command, module, extra):
    ran = ran_without(
        module,
        f"sys.argv[1:] = ['--help']; import shardmw.commands as c; "
        f'c.{command}()',
    )
    assert ran.returncode == 1
    assert ran.stderr == (
        f'Error: shardmw-{command} needs {module}, which the filter does '
        f'without: install shardmw[{extra}]\n'
    )


def test_what_is_missing_otherwise_has_a_traceback():
    ran = ran_without(
        'shardmw.saio.cli', 'import shardmw.commands as c; c.saio()'
    )
    assert 'Traceback' in ran.stderr
