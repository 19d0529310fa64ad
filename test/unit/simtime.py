# SPDX-License-Identifier: Apache-2.0
"""Simulated time: a scheduler of green threads that depends only on a seed.

While time is simulated, a hub of Eventlet controls the clock and the order of
all green threads, including those of Swift. It never waits: when no thread can
run, the clock jumps to the time when the next one is due. Threads that are due
at the same time run in a random order, drawn by one generator. So the same
seed repeats the same run, and waits take no real time.
"""

import gc
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import eventlet.tpool
from eventlet import hubs
from eventlet.hubs.hub import BaseHub

#: When simulated time begins, in seconds since 1970.
STARTED = 1_800_000_000

#: Threads that are due within this time of each other run in a random order.
JITTER_SECONDS = 0.004

#: How far each read of the clock advances it, so that no two reads return the
#: same time. Swift's timestamps have ticks of 0.00001 s.
TICK_SECONDS = 0.00002

#: The modules of Swift that have imported the function `time`.
SWIFT_CLOCKS = (
    'swift.common.error_limiter.time',
    'swift.proxy.server.time',
)


#: The modules of Eventlet that keep green threads in sets.
WITH_SETS = ('eventlet.event', 'eventlet.greenpool', 'eventlet.queue')


class OrderedSet(dict):
    """A set whose order does not depend on addresses in memory."""

    def add(self, item) -> None:
        self[item] = True

    def discard(self, item) -> None:
        super().pop(item, None)

    remove = dict.__delitem__

    def pop(self):
        return self.popitem()[0]


class Deadlock(AssertionError):
    """Raised if no green thread can ever run again."""


class SimulatedHub(BaseHub):
    """The hub that controls the simulated clock and the order of threads.

    :ivar now: the simulated seconds since the start
    """

    def __init__(self, seed: object) -> None:
        self.now = 0.0
        self._random = random.Random(f'{seed} schedule')
        super().__init__(clock=lambda: self.now)

    def look(self) -> float:
        """Advance the clock by a tick, and return the time."""
        self.now += TICK_SECONDS
        return self.now

    def add_timer(self, timer) -> float:
        jitter = self._random.random() * JITTER_SECONDS
        scheduled = self.now + timer.seconds + jitter
        self.next_timers.append((scheduled, timer))
        return scheduled

    def add(self, *args):
        raise RuntimeError('simulated servers have no sockets')

    def wait(self, seconds: float | None = None) -> None:
        """Advance the clock to the next timer."""
        if not (self.timers or self.next_timers):
            raise Deadlock('no green thread can go on')
        self.now += seconds or 0


@contextmanager
def simulated_time(seed: object) -> Iterator[SimulatedHub]:
    """Run all green threads of this thread in simulated time."""
    former = hubs.get_hub()
    hub = hubs._threadlocal.hub = SimulatedHub(seed)
    state = random.getstate()
    random.seed(f'{seed} Swift')

    def seconds_since_1970() -> float:
        return STARTED + hub.look()

    # Garbage collection runs finalizers at times that do not depend on a seed.
    was_enabled = gc.isenabled()
    gc.disable()
    patches = [
        mock.patch.object(time, 'time', seconds_since_1970),
        mock.patch.object(time, 'monotonic', hub.look),
        mock.patch.object(
            eventlet.tpool, 'execute', lambda call, *args: call(*args)
        ),
        *(
            mock.patch(f'{module}.set', OrderedSet, create=True)
            for module in WITH_SETS
        ),
        *(mock.patch(clock, seconds_since_1970) for clock in SWIFT_CLOCKS),
    ]
    try:
        for patch in patches:
            patch.start()
        yield hub
    finally:
        for patch in reversed(patches):
            patch.stop()
        random.setstate(state)
        hubs._threadlocal.hub = former
        if was_enabled:
            gc.enable()
