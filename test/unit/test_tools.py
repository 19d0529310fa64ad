# SPDX-License-Identifier: Apache-2.0
"""The scripts that ``make`` runs."""

import subprocess
from pathlib import Path

INSTALL = Path(__file__).parents[2] / 'tools/install-into'

PIP = """#!/bin/sh
echo 'Obtaining file:///shardmw'
echo 'Collecting swift>=2.36 (from shardmw==0.1.0)'
echo '  Downloading swift-2.38.3-py3-none-any.whl (1.5 MB)'
echo 'Collecting orjson>=3.9 (from shardmw==0.1.0)'
echo 'Installing collected packages: orjson, swift, shardmw'
echo 'a complaint' >&2
exit {code}
"""


def installed(venv: Path, code: int) -> subprocess.CompletedProcess:
    """Run the script with a pip that ends with an exit code."""
    python = venv / 'bin/python'
    python.parent.mkdir()
    python.write_text(PIP.format(code=code))
    python.chmod(0o755)
    return subprocess.run(
        [INSTALL, venv, '.'], capture_output=True, text=True, check=False
    )


def test_an_installation_says_how_long_it_takes_and_names_packages(tmp_path):
    done = installed(tmp_path, 0)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f'Installing Python packages into {tmp_path}, for one to three '
        'minutes:',
        '  swift>=2.36',
        '  orjson>=3.9',
        '  All are there: now unpacking',
    ]


def test_an_installation_that_fails_fails_and_says_why(tmp_path):
    done = installed(tmp_path, 2)
    assert done.returncode != 0
    assert 'a complaint' in done.stderr
