# SPDX-License-Identifier: Apache-2.0
"""The generic cell rate algorithm, on a counter that many workers share.

Every write of a container takes a *slot*: a time from which on it may go.
Slots lie an interval, 1 / rate, apart; who comes early waits for its slot,
and a slot of the past can be used for as long as the burst lasts. So in any
window of T seconds there are at most rate * (T + burst) + 1 writes, and a
client below the rate never waits. This is the virtual scheduling form of the
algorithm (ITU-T I.371, annex A); its theoretical arrival time is the *end*
of the slots that are taken.

The end lies in a counter that can only be added to, atomically, and returns
what it became. Adding n intervals takes n slots, which nobody else gets. When
nobody wrote for longer than the burst, the end lies too far in the past, and
one worker, elected among those that see it, adds what is missing: a *jump*.
The counter's low digits number the jumps, so that each has its own election,
and one that comes late is seen and taken back.

Times are whole microseconds since :data:`EPOCH`, durations microseconds.
"""

from typing import NamedTuple

MICROSECONDS = 1_000_000

#: 2025-01-01, in seconds since 1970: leaves room for 140 years.
EPOCH = 1_735_689_600

#: No counter that is in use lies before it: some have just been made.
FIRST_END = 86400 * MICROSECONDS

#: How many of a counter's 64 bits number its jumps.
JUMP_BITS = 12
JUMP_MASK = (1 << JUMP_BITS) - 1

#: How far a worker takes slots ahead of its writes at the most.
LEASE = MICROSECONDS // 10

#: What ends may differ by, beyond what they can by rule, before a counter
#: counts as wrong: clocks were set back.
CLOCK_TOLERANCE = 10 * MICROSECONDS


class Limit(NamedTuple):
    """How fast one container may be written to.

    :param interval: the time between two slots, more than 0
    :param burst: how old a slot may be when it is used
    :param patience: a write that had to wait for so long is refused
    :param workers: how many workers there are in the whole cluster
    """

    interval: int
    burst: int
    patience: int
    workers: int = 1

    @property
    def lease(self) -> int:
        """How many slots one worker may take ahead of its writes.

        What all workers hold together must leave half of the burst, lest a
        client below the rate waits for slots that others hold.
        """
        duration = min(LEASE, self.burst // (2 * self.workers))
        return max(1, duration // self.interval)

    @property
    def burst_of_idle(self) -> int:
        """The burst of a container that was idle for at least as long.

        A little less, lest one that is written to below its rate, and so
        always has a full burst, needs a jump for each write.
        """
        return self.burst - min(MICROSECONDS, self.burst // 4)

    @property
    def horizon(self) -> int:
        """How far ahead of now an end may lie by rule.

        Every worker may have taken slots beyond its writes' patience once,
        and for as long again what was let in without asking.
        """
        each = max(self.interval, LEASE)
        return 2 * (self.patience + self.workers * each) + CLOCK_TOLERANCE

    def reach(self, end: int, now: int) -> int:
        """How many slots after an end one worker may take for who waits.

        They are in the writes' patience, though all workers take as many.
        """
        duration = self.patience - max(0, end - now)
        return max(1, duration // (self.interval * self.workers))

    def is_too_long(self, wait: int) -> bool:
        """Whether a write is refused rather than made to wait."""
        return wait > 0 and wait >= self.patience

    def is_plausible(self, end: int, now: int) -> bool:
        """Whether slots can have been taken up to there."""
        return end - now <= self.horizon


class Counter(NamedTuple):
    """What a shared counter says.

    :param end: the end of the slots that are taken
    :param jumps: the number of its last jump
    """

    end: int
    jumps: int

    @classmethod
    def of(cls, value: int) -> 'Counter':
        """Read a counter's value."""
        return cls(value >> JUMP_BITS, value & JUMP_MASK)

    def jumped_once_since(self, earlier: 'Counter') -> bool:
        """Whether there was exactly one jump in between."""
        return (self.jumps - earlier.jumps) & JUMP_MASK == 1


def booking(duration: int) -> int:
    """What to add to a counter to take slots of a duration."""
    return duration << JUMP_BITS


def jump(duration: int) -> int:
    """What to add to a counter to move its end; backwards if negative."""
    return (duration << JUMP_BITS) + 1


def jump_needed(start: int, now: int, floor: int, limit: Limit) -> int:
    """How far a counter must be moved for slots that were just taken.

    :param start: the first of them
    :param floor: where they can't begin before, by what this worker took and
                  saw taken earlier: a counter behind it was lost
    :returns: 0 if they are good as they are
    """
    if not limit.is_plausible(start, now):
        return now - start
    if not limit.is_plausible(floor, now):
        floor = 0
    # One that starts at 0 is new or was lost: there is no burst.
    is_new = start < FIRST_END
    if start >= max(now if is_new else now - limit.burst, floor):
        return 0
    return max(now if is_new else now - limit.burst_of_idle, floor) - start


def next_slot(end: int, now: int, limit: Limit) -> int:
    """The next slot after an end, for who takes slots alone."""
    return max(end, now - limit.burst)


def alone(limit: Limit) -> Limit:
    """A worker's own share of a limit."""
    return limit._replace(interval=limit.interval * limit.workers, workers=1)
