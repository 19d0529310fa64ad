# SPDX-License-Identifier: Apache-2.0
"""The outcome of a load. Pure."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from shardmw.bench.load.samples import Samples

#: A client process that was busy for more of the time limited the load.
SATURATED_SHARE = 0.9


@dataclass(frozen=True)
class Outcome:
    """The outcome of a load.

    :param kinds: of the source
    :param samples: all operations, also those that ended after ``seconds``
    :param began: on the monotonic clock
    :param began_at: the same on the wall clock
    :param seconds: how long requests were sent; until the last response if
                    the requests ended before their time
    :param busy_share: of the time, of the busiest client process
    :param clients: how many began together; 0 for a part of a load
    :param is_exhausted: True if the requests ended, and all were answered
    """

    kinds: tuple[str, ...]
    samples: Samples
    began: float
    began_at: float
    seconds: float
    busy_share: float
    clients: int = 1
    is_exhausted: bool = False

    @property
    def is_client_bound(self) -> bool:
        return self.busy_share > SATURATED_SHARE

    @functools.cached_property
    def table(self) -> np.ndarray:
        return self.samples.table()

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
        """Return the wall clock's time of a monotonic time."""
        return self.began_at + monotonic - self.began
