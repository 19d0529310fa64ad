# SPDX-License-Identifier: Apache-2.0
"""The tool that shows developers where the time goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROFILE = Path(__file__).parents[3] / 'tools' / 'profile'

#: A fake py-spy: one sample in shardmw's rows, three in databases, and many of
#: a process that waits.
SPY = """\
#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '%s\\n' \\
    'run (eventlet/hubs/hub.py:1);merge (shardmw/core/listing_rows.py:10) 1' \\
    'get (swift/container/server.py:1);list (swift/common/db.py:2) 3' \\
    'run (eventlet/hubs/hub.py:1);poll (eventlet/hubs/poll.py:3) 96' >"$2"
"""


def run_profile(*arguments: str, path: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, PROFILE, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, 'PATH': path},
    )


@pytest.fixture
def path(tmp_path) -> str:
    """The PATH that finds the fake ``py-spy`` first."""
    spy = tmp_path / 'py-spy'
    spy.write_text(SPY)
    spy.chmod(0o755)
    return f'{tmp_path}:{os.environ["PATH"]}'


def test_listings_and_heads_have_a_column_each(path):
    ran = run_profile(
        *('--seconds', '1', '--rows', '200', '0:100', '2:HEAD'), path=path
    )
    assert ran.returncode == 0, ran.stderr
    tables = ran.stdout.split('\n\n')
    assert '| proxy, ms a page | plain, 100 | N = 2, HEAD |' in tables[0]
    for table in tables[:2]:
        cells = {
            row.split(' | ')[0]: float(row.split(' | ')[1])
            for row in table.splitlines()[2:]
        }
        rows, databases = cells['| shardmw: rows'], cells['| databases']
        assert 2 < databases / rows < 4
        assert rows + databases == pytest.approx(cells['| together'], abs=0.07)


def test_a_missing_py_spy_is_reported_at_the_start(tmp_path):
    ran = run_profile(path=str(tmp_path))
    assert ran.returncode == 1
    assert ran.stderr == 'py-spy is missing: pip install py-spy\n'
