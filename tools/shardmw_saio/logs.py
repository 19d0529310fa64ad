# SPDX-License-Identifier: Apache-2.0
"""Read the servers' logs."""

import re
from pathlib import Path

# The last line of a traceback, which says what went wrong.
_EXCEPTION = re.compile(r'[A-Za-z_][\w.]*(Error|Exception|Exit)\b.*:')

# Lines that the interpreter writes after the reason for its end.
_NOISE = re.compile(r'(Exception ignored in|During handling|\s|$)')

# How much of a log is read for its last lines. A log may be large.
_TAIL_BYTES = 1024 * 1024


def size(log: Path) -> int:
    """Return the size of a log in bytes, 0 if there is none."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def read_from(log: Path, start: int) -> bytes:
    """Return the content of a log from a position on."""
    try:
        with log.open('rb') as stream:
            stream.seek(start)
            return stream.read()
    except FileNotFoundError:
        return b''


def lines(log: Path, start: int = 0) -> list[str]:
    """Return a log's lines from a position on."""
    return read_from(log, start).decode(errors='replace').splitlines()


def last_lines(log: Path, count: int) -> list[str]:
    """Return a log's last lines."""
    found = lines(log, max(0, size(log) - _TAIL_BYTES))
    return found[-count:] if count > 0 else []


def reason(written: list[str]) -> str:
    """Return the line that is most likely to say why a server ended."""
    for line in reversed(written):
        if _EXCEPTION.match(line):
            return line.strip()
    for line in reversed(written):
        if not _NOISE.match(line):
            return line.strip()
    return 'its log is empty'
