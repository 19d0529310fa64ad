# SPDX-License-Identifier: Apache-2.0
"""The records of operations."""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

#: In place of a status: why there is none.
LOST = 0  #: the connection failed, or ended within the response
TIMED_OUT = 1
UNANSWERED = 2  #: still waiting when the load was over

_NO_STATUS_NAMES = {
    LOST: 'connection lost',
    TIMED_OUT: 'timed out',
    UNANSWERED: 'unanswered',
}

#: The statuses of a rate limit: Swift's, and the standard's.
REFUSALS = frozenset({498, 429})


class Sample(NamedTuple):
    """One operation. Times are seconds on the monotonic clock.

    :param kind: an index of the source's kinds
    :param number: the number of the request
    :param start: when the client began to send the request
    :param sent: when the last byte of the request was handed to the
                 connection; NaN if it never was
    :param first_byte: when the response began; NaN if it never did
    :param end: when the response was complete, or given up
    :param retry_after: seconds; NaN if the response has none
    :param body_bytes: of the response
    :param sent_bytes: of the body of the request
    """

    kind: int
    number: int
    start: float
    sent: float
    first_byte: float
    end: float
    status: int
    retry_after: float
    body_bytes: int
    sent_bytes: int = 0

    @property
    def is_admitted(self) -> bool:
        return is_admitted(self.status)

    @property
    def is_refused(self) -> bool:
        return self.status in REFUSALS


def is_admitted(status: int | np.ndarray) -> bool | np.ndarray:
    """Return True for 2xx, for one status or for each."""
    return (status >= 200) & (status < 300)


def is_refused(status: np.ndarray) -> np.ndarray:
    return np.isin(status, list(REFUSALS))


def errors_of(statuses: Iterable[int]) -> dict[str, int]:
    """Return the count of each error: neither admitted nor refused."""
    counts = Counter(
        _NO_STATUS_NAMES.get(status, str(status))
        for status in statuses
        if not (is_admitted(status) or status in REFUSALS)
    )
    return dict(sorted(counts.items()))


class Samples:
    """Many records in little memory."""

    _RECORD = struct.Struct('=bqddddhdqq')
    _FIELDS = np.dtype([*zip(Sample._fields, _RECORD.format[1:], strict=True)])

    def __init__(self, records: bytes = b'') -> None:
        self._records = bytearray(records)

    def append(self, *sample: float) -> None:
        """Add one record: all fields of :class:`Sample`."""
        self._records += self._RECORD.pack(*sample)

    def extend(self, others: 'Samples') -> None:
        self._records += others._records

    def after(self, count: int) -> 'Samples':
        return Samples(self._records[count * self._RECORD.size :])

    def table(self) -> np.ndarray:
        """Return an array with the fields of :class:`Sample`."""
        return np.frombuffer(bytes(self._records), self._FIELDS)

    def __len__(self) -> int:
        return len(self._records) // self._RECORD.size

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample._make, self._RECORD.iter_unpack(self._records))
