# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from shardmw_saio.cli import main as saio_main

from shardmw.admin.cli import main as admin_main


def run(module: str, *args: str, **variables: str):
    """Run the function ``main`` of a module as a command."""
    return subprocess.run(
        [sys.executable, '-c', f'from {module} import main; main()', *args],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize(
    ('command', 'module', 'begun', 'offered'),
    [
        ('admin', 'shardmw.admin.cli', 'resh', 'plain,reshard'),
        ('saio', 'shardmw_saio.cli', 'pu', 'plain,purge'),
    ],
)
def test_a_shell_can_complete_a_command(command, module, begun, offered):
    code = f"from {module} import main; main(prog_name='shardmw-{command}')"
    variables = {
        f'_SHARDMW_{command.upper()}_COMPLETE': 'bash_complete',
        'COMP_WORDS': f'shardmw-{command} {begun}',
        'COMP_CWORD': '1',
    }
    ran = subprocess.run(
        [sys.executable, '-c', code],
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
    ran = run('shardmw.reshard.daemon', '--help')
    assert ran.returncode == 0
    assert 'Change the layouts of sharded containers' in ran.stdout
