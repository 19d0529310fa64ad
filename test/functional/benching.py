# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark as somebody who typed it."""

import csv
import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BENCH = (sys.executable, '-m', 'shardmw.bench')
PATIENCE_SECONDS = 600

#: Whoever runs the tests may have set them.
ACCESS_VARIABLES = ('ST_AUTH', 'ST_USER', 'ST_KEY', 'OS_AUTH_TOKEN')


def environment(**also: str) -> dict[str, str]:
    """The environment of a command, with nobody's access in it."""
    kept = {k: v for k, v in os.environ.items() if k not in ACCESS_VARIABLES}
    return {**kept, **also}


def run_bench(
    *arguments: str, **variables: str
) -> subprocess.CompletedProcess:
    """Run a command to its end.

    :param variables: of its environment
    """
    return subprocess.run(
        [*BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
        env=environment(**variables),
    )


def start_bench(*arguments: str, **variables: str) -> subprocess.Popen:
    """Begin a command."""
    return subprocess.Popen(
        [*BENCH, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(**variables),
    )


def run_on_terminal(*arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command on a pseudo-terminal: ``(exit code, all it showed)``."""
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [*BENCH, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM='xterm', COLUMNS='160', **variables),
    )
    os.close(theirs)
    shown = b''
    while received := _read(ours):
        shown += received
    os.close(ours)
    return ran.wait(PATIENCE_SECONDS), shown.decode(errors='replace')


def result_of(folder: Path, words: str) -> Mapping:
    """A result that a command kept."""
    return json.loads((folder / f'{words}.json').read_text())


def csv_rows(folder: Path, words: str) -> list[dict[str, str]]:
    """The same as CSV."""
    with (folder / f'{words}.csv').open(newline='') as file:
        return list(csv.DictReader(file))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # nobody is at the other end any more
        return b''
