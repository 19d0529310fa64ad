# SPDX-License-Identifier: Apache-2.0
"""One clock for all proxies: the fastest of their clocks.

Slots of writes are times, and the clocks of proxies differ. Each worker writes
its time to memcached if it is ahead of the time there, and adds the largest
offset that it read recently to its own time. A time that one worker has seen
is therefore not in another worker's future for long (the second rule for
physical clocks of L. Lamport, "Time, Clocks, and the Ordering of Events in a
Distributed System", 1978).
"""

import random
import time
from collections import deque
from collections.abc import Callable

from shardmw.core.gcra import EPOCH, MICROSECONDS

CLOCK_KEY = 'shardmw/ratelimit/clock'

#: The mean time between two reads of the shared time. Each worker varies it by
#: up to a half, so that it does not read at the same moment as the others.
SYNC_SECONDS = 1

#: How long an offset is used after it was read.
OFFSET_SECONDS = 10


def local_time() -> int:
    """Return this machine's time, in microseconds since ``EPOCH``."""
    return int((time.time() - EPOCH) * MICROSECONDS)


class SharedClock:
    """The time that all proxies agree on.

    :param read: returns the local time, in microseconds since ``EPOCH``
    :param monotonic: returns seconds that never go back
    """

    def __init__(
        self,
        read: Callable[[], int] = local_time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        # How far the shared time was ahead, and until when to use that.
        self._offsets: deque[tuple[int, float]] = deque()
        self._sync_at = 0.0

    def now(self) -> int:
        """Return the shared time, in microseconds since ``EPOCH``."""
        present = self._monotonic()
        while self._offsets and self._offsets[0][1] < present:
            self._offsets.popleft()
        ahead = max((offset for offset, _until in self._offsets), default=0)
        return self._read() + ahead

    def is_sync_due(self) -> bool:
        """Return True if the shared time must be read again."""
        return self._monotonic() >= self._sync_at

    def sync(self, shared) -> None:
        """Read the shared time, or set it if the local time is ahead.

        :param shared: a :class:`shardmw.swift.memcached.SharedCache`
        """
        present = self._monotonic()
        self._sync_at = present + SYNC_SECONDS * random.uniform(0.5, 1.5)
        shared_time = shared.get(CLOCK_KEY) or 0
        local = self._read()
        if shared_time > local:
            until = present + OFFSET_SECONDS
            self._offsets.append((shared_time - local, until))
        else:
            shared.set(CLOCK_KEY, local, OFFSET_SECONDS)
