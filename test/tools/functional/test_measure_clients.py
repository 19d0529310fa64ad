# SPDX-License-Identifier: Apache-2.0
"""The tool that measures what sharding costs common client programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

MEASURE = Path(__file__).parents[3] / 'tools' / 'measure-clients'
KINDS = ['plain', 'by name', 'by directory']
PROGRAMS = [
    'swift list, a directory',
    '20 pages of 100',
    'browser, a directory, 10 times',
]


def measured(*arguments: str, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, MEASURE, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        **kwargs,
    )


def test_each_kind_of_container_has_a_column(tmp_path):
    output = tmp_path / 'clients.json'
    ran = measured(
        *('--rounds', '1', '--shards', '2', '--latency-seconds', '0.001'),
        *('--objects', '2000', '--directories', '3', '--output', str(output)),
        *('a directory', 'pages'),
    )
    assert ran.returncode == 0, ran.stderr
    head, _, *rows = ran.stdout.split('\n\n')[0].splitlines()
    assert head == f'| program | {" | ".join(KINDS)} |'
    assert [row.split(' | ')[0][2:] for row in rows] == PROGRAMS
    seconds = json.loads(output.read_text())['seconds']
    assert list(seconds) == PROGRAMS
    assert list(seconds[PROGRAMS[1]]) == KINDS


def test_a_missing_program_is_reported_at_the_start(tmp_path):
    ran = measured('restic', env={**os.environ, 'PATH': str(tmp_path)})
    assert ran.returncode == 1
    assert ran.stderr == 'restic is not on the PATH: see --help\n'
