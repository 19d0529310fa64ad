# SPDX-License-Identifier: Apache-2.0
"""What was recorded of each operation."""

import struct
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
        return _is_admitted(self.status)

    @property
    def is_refused(self) -> bool:
        return self.status in REFUSALS

    @property
    def error(self) -> str | None:
        """What went wrong; None of what was admitted or refused."""
        return error_of(self.status)


def error_of(status: int) -> str | None:
    """What a status says that went wrong; None of no error."""
    if _is_admitted(status) or status in REFUSALS:
        return None
    return NO_STATUS_NAMES.get(status, str(status))


def _is_admitted(status: int) -> bool:
    return 200 <= status < 300


class Samples:
    """Many operations, in little memory; goes through a pipe fast."""

    _RECORD = struct.Struct('=bqddddhdqq')

    def __init__(self) -> None:
        self._records = bytearray()

    def append(self, *sample: float) -> None:
        """Add one: the fields of :class:`Sample`, all of them."""
        self._records += self._RECORD.pack(*sample)

    def extend(self, others: 'Samples') -> None:
        """Add all of others."""
        self._records += others._records

    def since(self, index: int) -> Iterator[Sample]:
        """Those from an index on."""
        with memoryview(self._records) as records:
            own = bytes(records[index * self._RECORD.size :])
        return map(Sample._make, self._RECORD.iter_unpack(own))

    def __len__(self) -> int:
        return len(self._records) // self._RECORD.size

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample._make, self._RECORD.iter_unpack(self._records))
