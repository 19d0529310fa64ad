# SPDX-License-Identifier: Apache-2.0
"""The generic cell rate algorithm (GCRA) on a shared counter: pure.

Every write to a container takes a *slot*: the earliest time at which the write
may proceed. Slots are one interval, 1 / rate, apart. A write that arrives
before its slot waits for it; a slot in the past stays usable for the duration
of the burst. In any window of T seconds there are therefore at most
rate * (T + burst) + 1 writes, and a client below the rate never waits. This is
the virtual scheduling form of the algorithm (ITU-T I.371, annex A). The *end*
of the reserved slots is the algorithm's theoretical arrival time.

The end is stored in a counter that supports one operation: an atomic add that
returns the new value. Adding n intervals reserves n slots for one worker.
After a container was idle for longer than the burst, the end is too far in the
past. The workers that see this elect one of them to add the difference: a
*reset*. The low bits of the counter number the resets. Each reset has its own
election, and a reset that comes too late is recognized and undone.

Times are whole microseconds since :data:`EPOCH`, durations microseconds.
"""

from typing import NamedTuple

MICROSECONDS = 1_000_000

#: 2025-01-01, in seconds since 1970. 52 bits of microseconds last 140 years.
EPOCH = 1_735_689_600

#: A counter that has been in use ends after this time. An earlier end means
#: that the counter was just created, at 0.
NEW_COUNTER_END = 86400 * MICROSECONDS

#: How many of a counter's 64 bits number its resets.
RESET_BITS = 12
RESET_MASK = (1 << RESET_BITS) - 1

#: The longest time for which one worker leases slots ahead of its writes.
LEASE_DURATION = MICROSECONDS // 10

#: How much farther than the rules allow an end may lie in the future before
#: the counter is considered wrong, such as after clocks were set back.
CLOCK_TOLERANCE = 10 * MICROSECONDS


class Limit(NamedTuple):
    """The rate limit of one container.

    :param interval: the time between two slots, more than 0
    :param burst: how old a slot may be when a write uses it
    :param max_wait: a write that would have to wait this long is refused
    :param workers: the number of proxy workers in the whole cluster
    """

    interval: int
    burst: int
    max_wait: int
    workers: int

    @property
    def max_lease(self) -> int:
        """Return how many slots one worker may lease ahead of its writes.

        The leases of all workers together leave half of the burst unused.
        Otherwise a client below the rate could have to wait while other
        workers hold unused slots.
        """
        duration = min(LEASE_DURATION, self.burst // (2 * self.workers))
        return max(1, duration // self.interval)

    @property
    def idle_burst(self) -> int:
        """Return the burst of a container that was idle for at least as long.

        It is less than the full burst. A container that is written to below
        its rate always has a full burst and would otherwise need a reset for
        each write.
        """
        return self.burst - min(MICROSECONDS, self.burst // 4)

    @property
    def horizon(self) -> int:
        """Return how far after the present an end may lie.

        Each worker may have reserved slots beyond the longest wait of its
        writes once, and as many again for writes that it admitted without
        memcached.
        """
        each = max(self.interval, LEASE_DURATION)
        return 2 * (self.max_wait + self.workers * each) + CLOCK_TOLERANCE

    def slots_within_max_wait(self, end: int, now: int) -> int:
        """Return how many slots after `end` one worker may take for waiters.

        Even if all workers take as many, no slot exceeds the longest wait.
        """
        duration = self.max_wait - max(0, end - now)
        return max(1, duration // (self.interval * self.workers))

    def exceeds_max_wait(self, wait: int) -> bool:
        """Return True if a write is refused rather than made to wait."""
        return wait > 0 and wait >= self.max_wait

    def is_plausible(self, end: int, now: int) -> bool:
        """Return True if slots up to `end` can have been reserved by now."""
        return end - now <= self.horizon


class Counter(NamedTuple):
    """The value of a shared counter.

    :param end: the end of the reserved slots
    :param resets: the number of the last reset
    """

    end: int
    resets: int

    @classmethod
    def of(cls, value: int) -> 'Counter':
        """Return the end and the number of resets that a value encodes."""
        return cls(value >> RESET_BITS, value & RESET_MASK)

    def is_next_reset_after(self, earlier: 'Counter') -> bool:
        """Return True if the counter was reset exactly once since."""
        return (self.resets - earlier.resets) & RESET_MASK == 1


def reservation(duration: int) -> int:
    """Return what to add to a counter to reserve slots of a duration."""
    return duration << RESET_BITS


def reset(duration: int) -> int:
    """Return what to add to a counter to move its end by a duration.

    A negative duration moves the end back.
    """
    return (duration << RESET_BITS) + 1


def reset_needed(start: int, now: int, floor: int, limit: Limit) -> int:
    """Return how far a counter must be moved before its slots are usable.

    :param start: the first of the slots that were just reserved
    :param floor: the earliest possible start: this worker has seen slots
                  reserved up to there. A counter behind it was lost
    :returns: 0 if the slots are usable as they are
    """
    if not limit.is_plausible(start, now):
        return now - start
    if not limit.is_plausible(floor, now):
        floor = 0
    # A counter that starts at 0 is new or was lost: it grants no burst.
    is_new = start < NEW_COUNTER_END
    if start >= max(now if is_new else now - limit.burst, floor):
        return 0
    return max(now if is_new else now - limit.idle_burst, floor) - start


def next_slot(end: int, now: int, limit: Limit) -> int:
    """Return the next slot when memcached is unavailable."""
    return max(end, now - limit.burst)


def fallback_limit(limit: Limit) -> Limit:
    """Return one worker's share of a limit, to use without memcached."""
    return limit._replace(interval=limit.interval * limit.workers, workers=1)
