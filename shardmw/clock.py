# SPDX-License-Identifier: Apache-2.0
"""One clock for all proxies: the fastest of theirs.

Slots of writes are times, and proxies' clocks differ. Each worker tells its
time in memcached if it is ahead of what is told there, and goes by the latest
time that it read of late. So a time that was seen by one is not before the
present of another for long (the second rule for physical clocks of Lamport,
"Time, clocks, and the ordering of events in a distributed system", 1978).
"""

import random
import time
from collections import deque
from collections.abc import Callable

from shardmw.gcra import EPOCH, MICROSECONDS

CLOCK_KEY = 'shardmw/ratelimit/clock'

#: How often a worker reads the others' time, give or take a half, lest it be
#: always as old when it is read; and for how long it goes by what it read.
STEP_SECONDS = 1
LOOK_BACK_SECONDS = 10


def local_time() -> int:
    """This machine's time, in microseconds since ``EPOCH``."""
    return int((time.time() - EPOCH) * MICROSECONDS)


class SharedClock:
    """The time that all proxies go by.

    :param read: gives the local time, in microseconds since ``EPOCH``
    :param monotonic: gives seconds that never go back
    """

    def __init__(
        self,
        read: Callable[[], int] = local_time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        # How far the others were ahead, and until when to go by it.
        self._offsets: deque[tuple[int, float]] = deque()
        self._step_at = 0.0

    def now(self) -> int:
        """The time, in microseconds since ``EPOCH``."""
        present = self._monotonic()
        while self._offsets and self._offsets[0][1] < present:
            self._offsets.popleft()
        ahead = max((offset for offset, _until in self._offsets), default=0)
        return self._read() + ahead

    def is_due(self) -> bool:
        """Whether it is time to read the others' time."""
        return self._monotonic() >= self._step_at

    def keep_in_step(self, shared) -> None:
        """Read the others' time, and tell one's own if it is ahead.

        :param shared: a :class:`shardmw.backend.SharedCache`
        """
        present = self._monotonic()
        self._step_at = present + STEP_SECONDS * random.uniform(0.5, 1.5)
        told = shared.get(CLOCK_KEY) or 0
        local = self._read()
        if told > local:
            until = present + LOOK_BACK_SECONDS
            self._offsets.append((told - local, until))
        else:
            shared.set(CLOCK_KEY, local, LOOK_BACK_SECONDS)
