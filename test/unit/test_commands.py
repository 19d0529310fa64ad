# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from shardmw_saio.cli import main as saio_main

from shardmw.admin.cli import main as admin_main

WITHOUT = 'import sys; sys.modules[{!r}] = None; '


def ran_without(module: str, code: str) -> subprocess.CompletedProcess:
    """Run some Python as if a module were not installed."""
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
def test_a_command_that_lacks_a_tool_says_so_in_one_line(
    command, module, extra
):
    ran = ran_without(
        module,
        f"sys.argv[1:] = ['--help']; import shardmw.admin.entry_points as c; "
        f'c.{command}()',
    )
    assert ran.returncode == 1
    assert ran.stderr == (
        f'Error: shardmw-{command} needs {module}, which the filter does '
        f"without: run {sys.executable} -m pip install 'shardmw[{extra}]'\n"
    )


def test_any_other_missing_module_causes_a_traceback():
    ran = ran_without(
        'shardmw_saio.cli', 'import shardmw.admin.entry_points as c; c.saio()'
    )
    assert 'Traceback' in ran.stderr


@pytest.mark.parametrize(
    ('command', 'begun', 'offered'),
    [('admin', 'resh', 'plain,reshard'), ('saio', 'pu', 'plain,purge')],
)
def test_a_shell_can_complete_a_command(command, begun, offered):
    name = f'shardmw-{command}'
    variables = {
        f'_SHARDMW_{command.upper()}_COMPLETE': 'bash_complete',
        'COMP_WORDS': f'{name} {begun}',
        'COMP_CWORD': '1',
    }
    ran = subprocess.run(
        [
            sys.executable,
            '-c',
            f'import shardmw.admin.entry_points as c; c.{command}()',
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert ran.stdout.splitlines() == [offered], ran.stderr


@pytest.mark.parametrize(
    ('command', 'line'),
    [
        (admin_main, '_SHARDMW_ADMIN_COMPLETE=bash_source shardmw-admin'),
        (saio_main, '_SHARDMW_SAIO_COMPLETE=bash_source shardmw-saio'),
    ],
)
def test_help_says_how_to_complete_a_command(command, line):
    shown = CliRunner().invoke(command, ['--help']).output
    assert f'  eval "$({line})"\n' in shown


def test_the_resharder_says_what_it_does():
    ran = subprocess.run(
        [
            sys.executable,
            '-c',
            'import shardmw.admin.entry_points as c; c.resharder()',
        ]
        + ['--help'],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    assert 'Change the layouts of sharded containers' in ran.stdout
