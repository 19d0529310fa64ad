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
#: always as old when it is read; and how many times a worker looks back.
STEP_SECONDS = 1
LOOK_BACK = 10


def local_time() -> int:
    """This machine's time, in microseconds since ``EPOCH``."""
    return int((time.time() - EPOCH) * MICROSECONDS)


class SharedClock:
    """The time that all proxies go by.

    :param read: gives the local time, in microseconds since ``EPOCH``
    """

    def __init__(self, read: Callable[[], int] = local_time) -> None:
        self._read = read
        self._offsets: deque[int] = deque(maxlen=LOOK_BACK)
        self._offset = 0
        self._step_at = 0
        self._pause = 0.0

    def now(self) -> int:
        """The time, in microseconds since ``EPOCH``."""
        return self._read() + self._offset

    def keep_in_step(self, shared) -> None:
        """Read the others' time, and tell one's own, if it is time to.

        :param shared: a :class:`shardmw.backend.SharedCache`
        """
        local = self._read()
        if abs(local - self._step_at) < self._pause:
            return
        self._step_at = local
        self._pause = STEP_SECONDS * MICROSECONDS * random.uniform(0.5, 1.5)
        told = shared.get(CLOCK_KEY) or 0
        self._offsets.append(max(0, told - self._read()))
        self._offset = max(self._offsets)
        if local > told:
            shared.set(CLOCK_KEY, local, LOOK_BACK * STEP_SECONDS)
