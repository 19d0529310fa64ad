# SPDX-License-Identifier: Apache-2.0
"""Reading the servers' logs."""

import re
from pathlib import Path

# The last line of a traceback: what went wrong, and where is no matter.
_EXCEPTION = re.compile(r'[A-Za-z_][\w.]*(Error|Exception|Exit)\b.*:')

# What the interpreter adds when it ends, after the reason why.
_NOISE = re.compile(r'(Exception ignored in|During handling|\s|$)')

# Where last lines are looked for: a log may be too large to read.
_TAIL_BYTES = 1024 * 1024


def size(log: Path) -> int:
    """How much a log holds by now."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def read_from(log: Path, start: int) -> bytes:
    """What a log holds from a position on."""
    try:
        with log.open('rb') as stream:
            stream.seek(start)
            return stream.read()
    except FileNotFoundError:
        return b''


def lines(log: Path, start: int = 0) -> list[str]:
    """A log's lines from a position on."""
    return read_from(log, start).decode(errors='replace').splitlines()


def last_lines(log: Path, count: int) -> list[str]:
    """A log's last lines."""
    found = lines(log, max(0, size(log) - _TAIL_BYTES))
    return found[-count:] if count > 0 else []


def reason(written: list[str]) -> str:
    """The line that tells best why a server ended."""
    for line in reversed(written):
        if _EXCEPTION.match(line):
            return line.strip()
    for line in reversed(written):
        if not _NOISE.match(line):
            return line.strip()
    return 'its log is empty'
