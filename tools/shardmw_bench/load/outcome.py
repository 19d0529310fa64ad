# SPDX-License-Identifier: Apache-2.0
"""The records of operations, and the outcome of a load. Pure."""

import functools
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
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

#: A client process that was busy for more of the time limited the load.
SATURATED_SHARE = 0.9


class Sample(NamedTuple):
    """One operation. Times are seconds on the monotonic clock.

    :param kind: an index of the source's kinds
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
        return is_refused(self.status)


def is_admitted(status: int | np.ndarray) -> bool | np.ndarray:
    """Return True for 2xx, for one status or for each."""
    return (status >= 200) & (status < 300)


def is_refused(status: int | np.ndarray) -> bool | np.ndarray:
    """Return True for a rate limit's 498 (Swift's) and 429."""
    return (status == 498) | (status == 429)


def errors_of(statuses: Iterable[int]) -> dict[str, int]:
    """Return the count of each error: neither admitted nor refused."""
    counts = Counter(
        _NO_STATUS_NAMES.get(status, str(status))
        for status in statuses
        if not (is_admitted(status) or is_refused(status))
    )
    return dict(sorted(counts.items()))


_RECORD = struct.Struct('=bqddddhdqq')
_FIELDS = np.dtype([*zip(Sample._fields, _RECORD.format[1:], strict=True)])

#: Packs the fields of a sample: many of them need little memory.
packed = _RECORD.pack


def table_of(records: bytes) -> np.ndarray:
    """Return packed samples as an array with the fields of a sample."""
    return np.frombuffer(records, _FIELDS)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a load.

    :param kinds: of the source
    :param table: the fields of all samples, also of those that ended after
                  ``seconds``
    :param began: on the monotonic clock
    :param began_at: the same on the wall clock
    :param seconds: how long requests were sent; until the last response if
                    the requests ended before their time
    :param busy_share: of the time, of the busiest client process
    :param clients: how many began together; 0 for a part of a load
    :param is_exhausted: True if the requests ended, and all were answered
    """

    kinds: tuple[str, ...]
    table: np.ndarray
    began: float
    began_at: float
    seconds: float
    busy_share: float
    clients: int = 1
    is_exhausted: bool = False

    @property
    def is_client_bound(self) -> bool:
        return self.busy_share > SATURATED_SHARE

    @property
    def samples(self) -> list[Sample]:
        return [*map(Sample._make, self.table.tolist())]

    @property
    def is_in_time(self) -> np.ndarray:
        """Return True for samples answered while requests were sent."""
        return self.table['end'] < self.began + self.seconds

    @functools.cached_property
    def steady_from(self) -> float:
        """Return when each client has its first response.

        Until then a queue builds up, so rates are measured from then on, but
        over at least the second half of the time.
        """
        order = np.argsort(self.table['start'], kind='stable')
        first = self.table['end'][order[: self.clients]]
        latest = float(np.max(first, initial=self.began))
        return min(latest, self.began + self.seconds / 2)

    @property
    def steady_seconds(self) -> float:
        """Return how long requests were sent from then on."""
        return self.began + self.seconds - self.steady_from

    @property
    def timed_from(self) -> float:
        """Return when latencies begin to count.

        The first requests find an empty queue, so they wait less than all
        others. If the requests ended, all of them count.
        """
        return self.began if self.is_exhausted else self.steady_from

    @functools.cached_property
    def steady_shares(self) -> np.ndarray:
        """Return which part of each sample lies in the steady time.

        The sum counts operations across both ends of that time by part.
        """
        over = self.began + self.seconds
        start, end = self.table['start'], self.table['end']
        inside = np.minimum(end, over) - np.maximum(start, self.steady_from)
        took = end - start
        at_once = (self.steady_from <= start) & (start < over)
        return np.where(
            took > 0,
            np.maximum(0, inside) / np.where(took > 0, took, 1),
            at_once,
        )

    def part(self, begin: float, end: float) -> 'Outcome':
        """Return the responses between two times on the monotonic clock."""
        ends = self.table['end']
        return replace(
            self,
            table=self.table[(begin <= ends) & (ends < end)],
            began=begin,
            began_at=self.wall_time(begin),
            seconds=end - begin,
            clients=0,
        )

    def wall_time(self, monotonic: float) -> float:
        """Return the wall clock's time of a monotonic time."""
        return self.began_at + monotonic - self.began
