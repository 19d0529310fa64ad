# SPDX-License-Identifier: Apache-2.0
"""What was recorded of each operation."""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

#: In the place of a status, why there is none.
LOST = 0  #: the connection failed, or its end broke the response off
TIMED_OUT = 1
UNANSWERED = 2  #: still waiting when the load was over

NO_STATUS_NAMES = {
    LOST: 'connection lost',
    TIMED_OUT: 'timed out',
    UNANSWERED: 'unanswered',
}

#: What a rate limit answers: Swift's own, and the standard's.
REFUSALS = frozenset({498, 429})


class Sample(NamedTuple):
    """One operation.

    :param kind: what was done, as an index of the source's kinds
    :param number: which of the source's requests it was
    :param start: when its request was sent, on the monotonic clock
    :param end: when its response was whole, or given up
    :param retry_after: seconds; NaN if the response doesn't say
    """

    kind: int
    number: int
    start: float
    end: float
    status: int
    retry_after: float
    body_bytes: int

    @property
    def is_admitted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_refused(self) -> bool:
        return self.status in REFUSALS


class Samples:
    """Many operations, in little memory; goes through a pipe fast."""

    _CODES = 'bqddhdq'

    def __init__(self) -> None:
        self._columns = tuple(map(array, self._CODES))

    def append(self, *sample: float) -> None:
        """Add one: the fields of :class:`Sample`."""
        for column, value in zip(self._columns, sample, strict=True):
            column.append(value)

    def extend(self, others: 'Samples') -> None:
        """Add all of others."""
        both = zip(self._columns, others._columns, strict=True)
        for column, more in both:
            column.extend(more)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample._make, zip(*self._columns, strict=True))
