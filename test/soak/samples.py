# SPDX-License-Identifier: Apache-2.0
"""What processes hold over time, and whether it grows. Pure but for reading.

A sample of a process is a mapping of :data:`BOUNDS`' keys to numbers.
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

#: The part of the samples whose medians are compared: the first and the last.
PART = 0.2


class Bound(NamedTuple):
    """How much more there may be in the end than after the warm-up.

    :param factor: of what there was
    :param extra: what may come on top of it: the counts vary with the work
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
    """One number of one process, after the warm-up and in the end."""

    process: str
    what: str
    first: float
    last: float
    most: float

    @property
    def is_flat(self) -> bool:
        """Return True if it has not grown by more than it may."""
        bound = BOUNDS[self.what]
        return self.last <= self.first * bound.factor + bound.extra


def look(pid: int) -> dict[str, float]:
    """Return a sample of a process.

    :raises OSError: if it has ended
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
    """Return how all numbers have changed.

    :param samples: the seconds since the start, the process and its sample
    :param warm_up: the seconds that do not count
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
    """Return the medians of the first and the last part."""
    count = max(1, int(PART * len(values)))
    return statistics.median(values[:count]), statistics.median(
        values[-count:]
    )
