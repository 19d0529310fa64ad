# SPDX-License-Identifier: Apache-2.0
"""What one worker knows of one container's slots: pure.

The slots are those of :mod:`shardmw.gcra`; :mod:`shardmw.permits` gets them.
"""

from bisect import insort
from collections import deque

from shardmw.gcra import (
    LEASE,
    MICROSECONDS,
    Limit,
    alone,
    next_slot,
)


class TooLongError(Exception):
    """A write would have to wait for longer than it may.

    :param wait: for how long, in microseconds
    """

    def __init__(self, wait: int) -> None:
        super().__init__(f'{wait / MICROSECONDS:.2f} s')
        self.wait = wait


class Held:
    """The slots that one worker holds for its next writes of one container.

    How many it takes in one go doubles while they are used up before the
    lease ends, and halves when they are not.
    """

    __slots__ = ('_booked_at', '_size', '_slots')

    def __init__(self) -> None:
        self._slots: deque[int] = deque()
        self._size = 1
        self._booked_at = 0

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, now: int, limit: Limit) -> int | None:
        """The first slot that is good for the limit, None if there is none.

        One is not that is too old, or that was taken far ahead when the limit
        was lower.
        """
        while self._slots:
            slot = self._slots.popleft()
            is_too_old = slot < now - limit.burst
            if not is_too_old and limit.is_plausible(slot, now):
                return slot
        return None

    def add(self, slot: int) -> None:
        """Hold a slot that is later than all others."""
        self._slots.append(slot)

    def give_back(self, slot: int) -> None:
        """Hold a slot that was taken before."""
        insort(self._slots, slot)

    def batch(self, wanted: int, end: int, now: int, limit: Limit) -> int:
        """How many slots to take, when none is left.

        :param wanted: how many writes wait for one
        :param end: where the slots that are taken end, at least
        """
        was_used_up = now - self._booked_at < LEASE
        grown = self._size * 2 if was_used_up else self._size // 2
        self._size = max(1, min(grown, limit.lease))
        self._booked_at = now
        return max(min(wanted, limit.reach(end, now)), self._size)


class Desk:
    """What one worker knows of one container, and who waits there.

    :ivar held: slots that were taken for writes to come
    :ivar waiting: the writes that wait for one, first come, first served
    :ivar known_end: the end of the slots that were taken, at least
    :ivar alone_start: where those start that were taken without memcached
    :ivar alone_end: where they end, or None
    :ivar debt: slots to take that were used already
    :ivar is_full: whether the last write was refused
    :ivar bookings: how many succeeded
    """

    __slots__ = (
        'alone_end',
        'alone_start',
        'bookings',
        'debt',
        'held',
        'is_booking',
        'is_full',
        'known_end',
        'waiting',
    )

    def __init__(self) -> None:
        self.held = Held()
        self.waiting: deque[object] = deque()
        self.known_end = 0
        self.alone_start = 0
        self.alone_end: int | None = None
        self.bookings = 0
        self.debt = 0
        self.is_booking = False
        self.is_full = False

    def is_to_look_first(self, now: int, limit: Limit) -> bool:
        """Whether to see where a counter stands before taking slots of it.

        Slots that are out of reach, or too old, would be lost on others.
        """
        return self.is_full or self.known_end < now - limit.burst

    def check_patience(self, now: int, limit: Limit) -> None:
        """Refuse without asking anyone, as ends are never moved back.

        :raises TooLongError: if it is known that it would be in vain
        """
        wait = self.known_end - now
        if limit.is_too_long(wait) and limit.is_plausible(self.known_end, now):
            self.is_full = True
            raise TooLongError(wait)

    def take_alone(self, now: int, limit: Limit) -> int:
        """A slot of the worker's own share.

        Of the slots that were taken before, the worker knows the last.

        :raises TooLongError: if it is too far away
        """
        share = alone(limit)
        if self.alone_end is None or not limit.is_plausible(
            self.alone_end, now
        ):
            is_known = limit.is_plausible(self.known_end, now)
            self.alone_start = max(now, self.known_end if is_known else 0)
            self.alone_end = self.alone_start
        debt = self.payable(share)
        self.debt -= debt
        end = self.alone_end + debt * share.interval
        slot = next_slot(end, now, share)
        if limit.is_too_long(slot - now):
            self.alone_end = end
            raise TooLongError(slot - now)
        self.alone_end = slot + share.interval
        return slot

    def payable(self, limit: Limit) -> int:
        """How much of the debt to pay at once: no more than others wait."""
        return min(self.debt, max(1, limit.patience // limit.interval))

    def taken_alone(self, now: int, limit: Limit) -> int:
        """A duration to take for what was let in alone and is to come."""
        if self.alone_end is None:
            return 0
        since = max(now, self.alone_start)
        return max(0, self.alone_end - since) // limit.workers

    def settle(self, alone_end: int | None) -> None:
        """Put away what was taken alone, up to there, as it is booked."""
        if self.alone_end == alone_end:
            self.alone_end = None
        else:
            self.alone_start = alone_end or self.alone_start
