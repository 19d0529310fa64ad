# SPDX-License-Identifier: Apache-2.0
"""Samples of processes and of the disks, and their growth.

A sample of a process, or of the disks, maps keys of :data:`BOUNDS` to numbers.
"""

import os
import sqlite3
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

RESIDENT = 'resident bytes'
FILES = 'open files'
THREADS = 'threads'
GREEN_THREADS = 'green threads'
DATABASES = 'databases'
DATABASE_BYTES = 'database bytes'
DELETED_ROWS = 'deleted rows'
PENDING_BYTES = 'pending bytes'
UPDATES = 'async updates'
TOMBSTONES = 'tombstones'

_PROC = Path('/proc')
_KIBIBYTE = 1024

#: The median of this share of the first samples is compared with that of the
#: last samples.
PART = 0.2


class Bound(NamedTuple):
    """The most that a number may be in the end.

    :param factor: relative to the number after the warm-up
    :param extra: added to that: the numbers vary with the work
    """

    factor: float
    extra: float


BOUNDS = {
    RESIDENT: Bound(1.05, 0),
    FILES: Bound(1.05, 10),
    THREADS: Bound(1, 2),
    GREEN_THREADS: Bound(1.05, 40),
    DATABASES: Bound(1.1, 100),
    DATABASE_BYTES: Bound(1.1, 5e6),
    DELETED_ROWS: Bound(1.1, 1000),
    PENDING_BYTES: Bound(1.1, 200_000),
    UPDATES: Bound(1, 50),
    TOMBSTONES: Bound(1.1, 200),
}


class Growth(NamedTuple):
    """A number of a process, after the warm-up and in the end."""

    process: str
    what: str
    first: float
    last: float
    most: float

    @property
    def is_flat(self) -> bool:
        """Return True if the number is within its bound."""
        bound = BOUNDS[self.what]
        return self.last <= self.first * bound.factor + bound.extra


def look(pid: int) -> dict[str, float]:
    """Return a sample of a process.

    :raises OSError: if the process has ended
    """
    folder = _PROC / str(pid)
    status = (folder / 'status').read_text()
    lines = (line.split() for line in status.splitlines())
    values = {line[0]: line[1] for line in lines if len(line) > 1}
    return {
        RESIDENT: int(values['VmRSS:']) * _KIBIBYTE,
        FILES: len(list((folder / 'fd').iterdir())),
        THREADS: int(values['Threads:']),
    }


def look_at_disks(devices: Path) -> dict[str, float]:
    """Return a sample of all devices of a cluster.

    :param devices: their folder
    """
    found: Counter[str] = Counter(dict.fromkeys((UPDATES, TOMBSTONES), 0))
    for folder, _, names in os.walk(devices):
        for path in (Path(folder, name) for name in names):
            # It may be gone, or locked, by now.
            with suppress(OSError, sqlite3.Error):
                if path.suffix == '.db':
                    found[DATABASE_BYTES] += path.stat().st_size
                    found[DELETED_ROWS] += _deleted_rows(path)
                    found[DATABASES] += 1
                elif path.suffix == '.pending':
                    found[PENDING_BYTES] += path.stat().st_size
                elif 'async_pending' in folder:
                    found[UPDATES] += 1
                elif path.suffix == '.ts':
                    found[TOMBSTONES] += 1
    return found


def _deleted_rows(path: Path) -> int:
    table = 'container' if 'accounts' in path.parts else 'object'
    with closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True)) as db:
        query = f'SELECT count(*) FROM {table} WHERE deleted = 1'  # noqa: S608
        return db.execute(query).fetchone()[0]


def growths(
    samples: Iterable[tuple[float, str, Mapping[str, float]]], warm_up: float
) -> list[Growth]:
    """Return how each number of each process has changed.

    :param samples: the seconds since the start, the process and its sample
    :param warm_up: the seconds of the warm-up, whose samples do not count
    """
    series: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seconds, process, sample in samples:
        for what, value in sample.items():
            if seconds >= warm_up:
                series[process, what].append(value)
    return [
        Growth(*key, *_ends(values), max(values))
        for key, values in sorted(series.items())
    ]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and the last samples."""
    count = max(1, int(PART * len(values)))
    return statistics.median(values[:count]), statistics.median(
        values[-count:]
    )
