# SPDX-License-Identifier: Apache-2.0
"""Samples of the memory, files and threads of processes, and their growth.

A sample of a process maps the keys of :data:`BOUNDS` to numbers.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RESIDENT = 'resident bytes'
FILES = 'open files'
THREADS = 'threads'
GREEN_THREADS = 'green threads'

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
