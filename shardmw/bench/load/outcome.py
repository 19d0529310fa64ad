# SPDX-License-Identifier: Apache-2.0
"""What came of a load. Pure."""

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shardmw.bench.load.samples import Samples

#: A client process that ran, or waited to run, for more of the time than
#: this was what was measured, rather than the servers.
SATURATED_SHARE = 0.9


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
