# SPDX-License-Identifier: Apache-2.0
"""What a load is, and what came of it. Pure."""

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shardmw.bench.samples import Samples
from shardmw.bench.sources import Source

#: What a client does when its write was refused.
RETRY_AFTER = 'retry-after'  #: wait as long as the response says
BACK_OFF = 'backoff'  #: wait for a fixed time
AT_ONCE = 'at-once'
REFUSAL_POLICIES = (RETRY_AFTER, BACK_OFF, AT_ONCE)

#: A client process that ran, or waited to run, for more of the time than
#: this was what was measured, rather than the servers.
SATURATED_SHARE = 0.9


@dataclass(frozen=True)
class Load:
    """Many clients that ask for one thing after the other.

    A client is a connection that is kept alive. It asks for the next request
    of the source when it has its answer; one that was refused, too, is
    followed by the next one and not repeated. A source that has no more
    requests ends the load.

    :param urls: of the proxies; the clients are dealt out to them in turn
    :param token: what all requests are authorized with
    :param source: what to ask for
    :param clients: how many
    :param seconds: after this time, no more requests are sent
    :param count: nor after so many, over all clients; without either, a load
                  goes on until it's told to end
    :param on_refusal: one of :data:`REFUSAL_POLICIES`
    :param backoff_seconds: the fixed time, also where a response should say
                            how long and doesn't
    :param pace_seconds: the least time between two requests of a client, 0
                         for no pause; the clients' first ones are spread
                         over it
    :param timeout_seconds: an operation that takes longer is given up
    :param drain_seconds: how long to wait for the last answers
    :param insecure: don't verify the certificates of ``https://`` URLs
    """

    urls: tuple[str, ...]
    token: str
    source: Source
    clients: int
    seconds: float | None = None
    count: int | None = None
    on_refusal: str = RETRY_AFTER
    backoff_seconds: float = 1.0
    pace_seconds: float = 0.0
    timeout_seconds: float = 120.0
    drain_seconds: float = 60.0
    insecure: bool = False

    def __post_init__(self) -> None:
        if self.on_refusal not in REFUSAL_POLICIES:
            raise ValueError(f'unknown policy {self.on_refusal!r}')

    @property
    def ends_when_told(self) -> bool:
        """Whether there's neither time nor count that ends it."""
        return self.seconds is None and self.count is None


class Share(NamedTuple):
    """Which part of a load one process of several has."""

    index: int
    processes: int

    def of(self, total: int) -> range:
        """Which of so many are this one's."""
        return range(self.index, total, self.processes)


class Usage(NamedTuple):
    """What one client process used, in seconds.

    :param cpu: that it ran
    :param queued: that it could have run and another process did
    :param elapsed: from the load's begin to its last answer
    """

    cpu: float
    queued: float
    elapsed: float

    @property
    def busy_share(self) -> float:
        """Of its time, when it could not have taken more."""
        return (self.cpu + self.queued) / max(self.elapsed, 1e-9)


@dataclass(frozen=True)
class Outcome:
    """What came of a load.

    :param kinds: of the source; samples have their indexes
    :param samples: all operations, also those that ended after ``seconds``
    :param began: when the clients started, on the monotonic clock
    :param began_at: the same on the wall clock
    :param seconds: for how long requests were sent; of a load whose requests
                    ended before its time, until the last answer
    :param clients: how many began with it; 0 for a part of a load, which had
                    begun before
    :param is_exhausted: whether it ended when there were no more requests,
                         and all of them had their answers
    """

    kinds: tuple[str, ...]
    samples: Samples
    began: float
    began_at: float
    seconds: float
    usages: tuple[Usage, ...]
    clients: int = 1
    is_exhausted: bool = False

    @property
    def busy_share(self) -> float:
        """That of the busiest client process."""
        return max((usage.busy_share for usage in self.usages), default=0)

    @property
    def is_client_bound(self) -> bool:
        """Whether the clients were at their limit."""
        return self.busy_share > SATURATED_SHARE

    @functools.cached_property
    def table(self) -> np.ndarray:
        """The samples as an array with the fields of a sample."""
        return self.samples.table()

    @property
    def is_in_time(self) -> np.ndarray:
        """Return which samples were answered while requests were sent."""
        return self.table['end'] < self.began + self.seconds

    @functools.cached_property
    def steady_from(self) -> float:
        """When the first answers of all clients were there.

        Until then they queue up; so rates are of what came after. But the
        second half of the time is always left.
        """
        order = np.argsort(self.table['start'], kind='stable')
        first = self.table['end'][order[: self.clients]]
        latest = float(np.max(first, initial=self.began))
        return min(latest, self.began + self.seconds / 2)

    @property
    def steady_seconds(self) -> float:
        """From then on, for how long requests were sent."""
        return self.began + self.seconds - self.steady_from

    @property
    def timed_from(self) -> float:
        """From when on answers count for how long operations take.

        The first requests of all clients go out at once, to a queue that is
        empty: where many wait, these wait for less than all others do. Of a
        load whose requests ended, all answers are there, and count.
        """
        return self.began if self.is_exhausted else self.steady_from

    @functools.cached_property
    def steady_shares(self) -> np.ndarray:
        """How much of each sample lay in the steady time.

        The sum over all of them is what was done in it, to the part: of slow
        operations some end in time and the next one does not.
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
        """Return what was answered in a part of the time.

        :param begin, end: seconds on the monotonic clock
        """
        ends = self.table['end']
        within = self.table[(begin <= ends) & (ends < end)]
        return replace(
            self,
            samples=Samples(within.tobytes()),
            began=begin,
            began_at=self.wall_time(begin),
            seconds=end - begin,
            clients=0,
        )

    def wall_time(self, monotonic: float) -> float:
        """What the clock on the wall showed then."""
        return self.began_at + monotonic - self.began
