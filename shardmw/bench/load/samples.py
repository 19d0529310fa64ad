# SPDX-License-Identifier: Apache-2.0
"""What was recorded of each operation."""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

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
    """One operation. Times are seconds on the monotonic clock.

    The request took ``sent - start``, the response ``first_byte - sent``, and
    its transfer ``end - first_byte``.

    :param kind: what was done, as an index of the source's kinds
    :param number: which of the source's requests it was
    :param start: when the sending of its request began
    :param sent: when the last byte of the request was handed to the
                 connection; NaN if it never was
    :param first_byte: when the first of the response came; NaN if none did
    :param end: when its response was whole, or given up
    :param retry_after: seconds; NaN if the response doesn't say
    :param body_bytes: of the response
    :param sent_bytes: of the request's body
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

    @property
    def error(self) -> str | None:
        """What went wrong; None of what was admitted or refused."""
        return _error_of(self.status)


def is_admitted(status: int | np.ndarray) -> bool | np.ndarray:
    """Return True for 2xx, of one status or of each."""
    return (status >= 200) & (status < 300)


def is_refused(status: np.ndarray) -> np.ndarray:
    """Return True for what a rate limit answers, of each status."""
    return np.isin(status, list(REFUSALS))


def errors_of(statuses: Iterable[int]) -> dict[str, int]:
    """Return how often each error came: neither admitted nor refused."""
    counts = Counter(map(_error_of, statuses))
    counts.pop(None, None)
    return dict(sorted(counts.items()))


def _error_of(status: int) -> str | None:
    if is_admitted(status) or status in REFUSALS:
        return None
    return NO_STATUS_NAMES.get(status, str(status))


class Samples:
    """Many operations, in little memory; goes through a pipe fast."""

    _RECORD = struct.Struct('=bqddddhdqq')
    _FIELDS = np.dtype([*zip(Sample._fields, _RECORD.format[1:], strict=True)])

    def __init__(self, records: bytes = b'') -> None:
        self._records = bytearray(records)

    def append(self, *sample: float) -> None:
        """Add one: the fields of :class:`Sample`, all of them."""
        self._records += self._RECORD.pack(*sample)

    def extend(self, others: 'Samples') -> None:
        """Add all of others."""
        self._records += others._records

    def table(self) -> np.ndarray:
        """Return them as an array with the fields of :class:`Sample`."""
        return np.frombuffer(bytes(self._records), self._FIELDS)

    def __len__(self) -> int:
        return len(self._records) // self._RECORD.size

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample._make, self._RECORD.iter_unpack(self._records))
