# SPDX-License-Identifier: Apache-2.0
"""The state of one proxy worker for the slots of one container: pure.

Slots are those of :mod:`shardmw.core.gcra`. The I/O that reserves them is
in :mod:`shardmw.proxy.ratelimit.slots`.
"""

from bisect import insort

from shardmw.core.gcra import (
    LEASE_DURATION,
    MICROSECONDS,
    Limit,
    fallback_limit,
    next_slot,
)


class MaxWaitExceededError(Exception):
    """A request would have to wait for longer than the limit allows.

    :param wait: how long it would have to wait, in microseconds
    """

    def __init__(self, wait: int) -> None:
        super().__init__(f'{wait / MICROSECONDS:.2f} s')
        self.wait = wait


class LeasedSlots:
    """The slots that one worker has reserved ahead of its writes.

    The number of slots that are reserved at a time doubles if the last ones
    were used up within the duration of a lease. Otherwise it is halved.
    """

    __slots__ = ('_reserved_at', '_size', '_slots')

    def __init__(self) -> None:
        # A worker has thousands of these: an empty deque takes 600 bytes.
        self._slots: list[int] = []
        self._size = 1
        self._reserved_at = 0

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, now: int, limit: Limit) -> int | None:
        """Remove and return the first slot that the limit allows.

        Slots that are older than the burst are dropped, and so are slots far
        in the future that were reserved when the rate was lower.

        :returns: None if there is no such slot
        """
        while self._slots:
            slot = self._slots.pop(0)
            is_expired = slot < now - limit.burst
            if not is_expired and limit.is_plausible(slot, now):
                return slot
        return None

    def add(self, slot: int) -> None:
        """Add a slot that is later than all others."""
        self._slots.append(slot)

    def put_back(self, slot: int) -> None:
        """Add a slot that :meth:`take` returned and that was not used."""
        insort(self._slots, slot)

    def batch_size(
        self, waiting: int, end: int, now: int, limit: Limit
    ) -> int:
        """Return how many slots to reserve when none is left.

        :param waiting: how many writes wait for a slot
        :param end: the earliest time that the reserved slots can end
        """
        was_used_up = now - self._reserved_at < LEASE_DURATION
        size = self._size * 2 if was_used_up else self._size // 2
        self._size = max(1, min(size, limit.max_lease))
        self._reserved_at = now
        within_max_wait = limit.slots_within_max_wait(end, now)
        return max(min(waiting, within_max_wait), self._size)


class WorkerState:
    """The state of one worker for one container's counter.

    :ivar leased: slots that were reserved for writes to come
    :ivar waiters: the events of the writes that wait for a slot, in order of
                   their arrival
    :ivar known_end: the shared counter ends here or later
    :ivar fallback_start: the start of the slots that were taken without
                          memcached
    :ivar fallback_end: the end of those slots, or None if there are none
    :ivar backlog: how many slots were used already and must still be reserved
    :ivar backlog_since: when the backlog last grew
    :ivar must_read: True if the counter must be read before slots are reserved
    :ivar is_reserving: True while a reservation is under way
    :ivar reservations: how many reservations succeeded
    """

    __slots__ = (
        'backlog',
        'backlog_since',
        'fallback_end',
        'fallback_start',
        'is_reserving',
        'known_end',
        'leased',
        'must_read',
        'reservations',
        'waiters',
    )

    def __init__(self) -> None:
        self.leased = LeasedSlots()
        self.waiters: list[object] = []
        self.known_end = 0
        self.fallback_start = 0
        self.fallback_end: int | None = None
        self.backlog = 0
        self.backlog_since = 0
        self.must_read = False
        self.is_reserving = False
        self.reservations = 0

    def must_read_first(self, now: int, limit: Limit) -> bool:
        """Return True if the counter must be read before slots are reserved.

        Slots that are beyond the longest wait, or expired, would be reserved
        in vain and lost for all workers. A worker with a backlog must know
        what the others have reserved: they may have one, too.
        """
        return self.must_read or self.known_end < now - limit.burst

    def check_max_wait(self, now: int, limit: Limit) -> None:
        """Refuse a write without asking memcached if the wait is known.

        The end of a counter never moves back.

        :raises MaxWaitExceededError: if the write would have to wait too long
        """
        wait = self.known_end - now
        if limit.exceeds_max_wait(wait) and limit.is_plausible(
            self.known_end, now
        ):
            self.must_read = True
            raise MaxWaitExceededError(wait)

    def take_fallback_slot(self, now: int, limit: Limit) -> int:
        """Return the next slot of this worker's share of the rate.

        The first one follows the last slot that the worker knows to have been
        reserved in memcached.

        :raises MaxWaitExceededError: if the slot exceeds the longest wait
        """
        share = fallback_limit(limit)
        if self.fallback_end is None or not limit.is_plausible(
            self.fallback_end, now
        ):
            is_known = limit.is_plausible(self.known_end, now)
            self.fallback_start = max(now, self.known_end if is_known else 0)
            self.fallback_end = self.fallback_start
        backlog = self.take_backlog(now, share)
        end = self.fallback_end + backlog * share.interval
        slot = next_slot(end, now, share)
        if limit.exceeds_max_wait(slot - now):
            self.fallback_end = end
            raise MaxWaitExceededError(slot - now)
        self.fallback_end = slot + share.interval
        return slot

    def add_backlog(self, count: int, now: int) -> None:
        """Add slots that were used without being reserved."""
        self.backlog += count
        self.backlog_since = now
        self.must_read = True

    def take_backlog(self, now: int, limit: Limit) -> int:
        """Empty the backlog and return how many of its slots to reserve.

        They delay other writes by no more than the longest wait, and only
        writes that come within that time.
        """
        backlog, self.backlog = self.backlog, 0
        longest = max(limit.max_wait, limit.interval)
        if now - self.backlog_since > longest:
            return 0
        return min(backlog, longest // limit.interval)

    def pending_fallback(self, now: int, limit: Limit) -> int:
        """Return the duration to reserve for fallback slots in the future.

        Writes that were admitted without memcached and still wait use them.
        """
        if self.fallback_end is None:
            return 0
        since = max(now, self.fallback_start)
        return max(0, self.fallback_end - since) // limit.workers

    def clear_fallback(self, reserved_end: int | None) -> None:
        """Forget the fallback slots that are now reserved in memcached.

        :param reserved_end: the end of those slots when the reservation began
        """
        if self.fallback_end == reserved_end:
            self.fallback_end = None
        else:
            self.fallback_start = reserved_end or self.fallback_start
