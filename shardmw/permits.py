# SPDX-License-Identifier: Apache-2.0
"""Slots for writes, from counters that all proxies share in memcached.

The algorithm is :mod:`shardmw.gcra`'s; here it is carried out. A worker has
one booking under way for a container at a time, for all of its writes that
wait for one. While memcached is away each worker goes on by itself with its
share of the rate, looks from time to time whether it is back, and then books
what it let in.
"""

import time
from collections import OrderedDict, deque

from shardmw.backend import Event, SharedCache, sleep, spawn
from shardmw.clock import SharedClock
from shardmw.gcra import (
    MICROSECONDS,
    Counter,
    Held,
    Limit,
    alone,
    booking,
    jump,
    jump_needed,
    next_slot,
)

#: How long counters are kept, in seconds. Those in use start anew then.
COUNTER_SECONDS = 86400

#: How long nobody else can do a jump that a worker was elected for.
ELECTION_SECONDS = 10

#: How often a worker books anew after jumps, and what it waits for one.
JUMP_TRIES = 3
JUMP_PAUSES = 20
JUMP_PAUSE_SECONDS = 0.005

#: When to look for a memcached that is away: after a second, and then after
#: twice the time each.
FIRST_LOOK_SECONDS = 1
LAST_LOOK_SECONDS = 8

#: How many containers a worker knows.
DESK_COUNT = 10_000


class TooLongError(Exception):
    """A write would have to wait for longer than it may.

    :param wait: for how long, in microseconds
    """

    def __init__(self, wait: int) -> None:
        super().__init__(f'{wait / MICROSECONDS:.2f} s')
        self.wait = wait


class _StuckError(Exception):
    """Someone was elected to move a counter, and did not."""


class _Desk:
    """What one worker knows of one container, and who waits there.

    :ivar known_end: the end of the slots that were taken, at least
    :ivar alone_end: the same of those taken without memcached, or None
    :ivar debt: slots to take that were used already
    :ivar is_full: whether the last write was refused
    """

    __slots__ = (
        'alone_end',
        'debt',
        'held',
        'is_booking',
        'is_full',
        'known_end',
        'waiting',
    )

    def __init__(self) -> None:
        self.held = Held()
        self.waiting: deque[Event] = deque()
        self.known_end = 0
        self.alone_end: int | None = None
        self.debt = 0
        self.is_booking = False
        self.is_full = False

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
        if self.alone_end is None:
            is_known = limit.is_plausible(self.known_end, now)
            self.alone_end = max(now, self.known_end if is_known else 0)
        slot = next_slot(self.alone_end, now, share)
        if limit.is_too_long(slot - now):
            raise TooLongError(slot - now)
        self.alone_end = slot + share.interval
        return slot

    def owed(self, now: int, limit: Limit) -> int:
        """A duration to take for what was let in, and not booked."""
        taken_alone = 0
        if self.alone_end is not None:
            taken_alone = max(0, self.alone_end - now) // limit.workers
        return self.debt * limit.interval + taken_alone


class Permits:
    """Gives every write its slot.

    :param logger: the filter's logger
    """

    def __init__(self, logger, clock: SharedClock | None = None) -> None:
        self.logger = logger
        self.clock = clock or SharedClock()
        self._link = _Link(logger)
        self._desks: OrderedDict[str, _Desk] = OrderedDict()

    def take(self, shared: SharedCache, key: str, limit: Limit) -> int:
        """A slot for one write.

        :param key: the counter's key in memcached
        :returns: for how long to wait, in microseconds
        :raises TooLongError: if it is for longer than the limit's patience
        """
        desk = self._desk(key)
        now = self.clock.now()
        slot = desk.held.take(now, limit)
        if slot is None:
            desk.check_patience(now, limit)
            slot = self._book_for(shared, key, desk, limit)
            now = self.clock.now()
        if limit.is_too_long(slot - now):
            desk.is_full = True
            desk.held.give_back(slot)
            raise TooLongError(slot - now)
        return max(0, slot - now)

    def charge(self, key: str, count: int) -> None:
        """Have slots taken by what can't be made to wait any more."""
        self._desk(key).debt += count

    def _desk(self, key: str) -> _Desk:
        desk = self._desks.get(key)
        if desk is None:
            desk = self._desks[key] = _Desk()
            if len(self._desks) > DESK_COUNT:
                self._desks.popitem(last=False)
        self._desks.move_to_end(key)
        return desk

    def _book_for(
        self, shared: SharedCache, key: str, desk: _Desk, limit: Limit
    ) -> int:
        """Wait for a slot from the shared counter, or take one alone."""
        if self._link.is_up(shared, key):
            turn = Event()
            desk.waiting.append(turn)
            if not desk.is_booking:
                desk.is_booking = True
                spawn(self._serve, shared, key, desk, limit)
            slot = turn.wait(shared.timeout_seconds)
            if slot is not None:
                return slot
            if turn in desk.waiting:
                desk.waiting.remove(turn)
                self._link.lose(key)
        self.logger.increment('ratelimit.alone')
        return desk.take_alone(self.clock.now(), limit)

    def _serve(
        self, shared: SharedCache, key: str, desk: _Desk, limit: Limit
    ) -> None:
        """Book until nobody waits, a batch at a time."""
        try:
            while desk.waiting:
                self._serve_batch(shared, key, desk, limit)
        finally:
            desk.is_booking = False
            _send_away(desk)

    def _serve_batch(
        self, shared: SharedCache, key: str, desk: _Desk, limit: Limit
    ) -> None:
        try:
            slots = self._book(shared, key, desk, limit)
        except TooLongError as err:
            while desk.waiting:
                desk.waiting.popleft().send_exception(err)
        except _StuckError:
            _send_away(desk)
        except ConnectionError:
            self._link.lose(key)
            _send_away(desk)
        else:
            for slot in slots:
                if desk.waiting:
                    desk.waiting.popleft().send(slot)
                else:
                    desk.held.add(slot)

    def _book(
        self, shared: SharedCache, key: str, desk: _Desk, limit: Limit
    ) -> range:
        """Take slots for all that wait.

        :raises ConnectionError: if memcached does not answer
        """
        self.clock.keep_in_step(shared)
        if desk.is_full:
            self._look(shared, key, desk, limit)
        now = self.clock.now()
        debt = desk.debt
        owed = desk.owed(now, limit)
        count = desk.held.batch(len(desk.waiting), now, limit)
        duration = owed + count * limit.interval
        start = self._take(shared, key, desk, limit, duration)
        desk.debt -= debt
        desk.alone_end = None
        desk.known_end = start + duration
        self.logger.increment('ratelimit.bookings')
        self.logger.update_stats('ratelimit.permits', count)
        return range(start + owed, desk.known_end, limit.interval)

    def _look(
        self, shared: SharedCache, key: str, desk: _Desk, limit: Limit
    ) -> None:
        """See whether there is a slot in reach before taking it.

        One that is out of reach would be lost on others, who need it more.

        :raises TooLongError: if there is none
        """
        end = Counter.of(_added(shared, key, 0)).end
        desk.known_end = max(desk.known_end, end)
        desk.check_patience(self.clock.now(), limit)
        desk.is_full = False

    def _take(
        self,
        shared: SharedCache,
        key: str,
        desk: _Desk,
        limit: Limit,
        duration: int,
    ) -> int:
        """Take slots of a duration from the counter; returns their start.

        :raises _StuckError: if it has to be moved and is not
        """
        for _ in range(JUMP_TRIES):
            now = self.clock.now()
            counter = Counter.of(_added(shared, key, booking(duration)))
            start = counter.end - duration
            missing = jump_needed(start, now, desk.known_end, limit)
            if not missing:
                return start
            if self._jump(shared, key, counter, missing):
                return start + missing
            self._wait_for_jump(shared, key, counter)
        raise _StuckError

    def _jump(
        self, shared: SharedCache, key: str, seen: Counter, missing: int
    ) -> bool:
        """Move a counter, if this worker is elected.

        :param seen: what it said when it was too far back
        :returns: whether it was moved
        """
        started = time.monotonic()
        election = f'{key}/jump/{seen.jumps}'
        if _added(shared, election, 1, ELECTION_SECONDS) != 1:
            return False
        if time.monotonic() - started > ELECTION_SECONDS / 2:
            return False
        value = _added(shared, key, jump(missing))
        if Counter.of(value).jumped_once_since(seen):
            return True
        _added(shared, key, -jump(missing))
        return False

    def _wait_for_jump(
        self, shared: SharedCache, key: str, seen: Counter
    ) -> None:
        """Wait until another worker has moved a counter.

        :raises _StuckError: if it does not
        """
        for _ in range(JUMP_PAUSES):
            sleep(JUMP_PAUSE_SECONDS)
            if Counter.of(_added(shared, key, 0)).jumps != seen.jumps:
                return
        raise _StuckError


class _Link:
    """Whether memcached answers; a change is logged once.

    :param logger: the filter's logger
    """

    def __init__(self, logger) -> None:
        self.logger = logger
        self._is_up = True
        self._is_looking = False
        self._look_at = 0.0
        self._pause = FIRST_LOOK_SECONDS

    def is_up(self, shared: SharedCache, key: str) -> bool:
        """Whether to use it. If not, look for it now and then.

        No write waits for that look.

        :param key: a counter's, where to look
        """
        is_due = time.monotonic() >= self._look_at
        if not self._is_up and is_due and not self._is_looking:
            self._is_looking = True
            spawn(self._look, shared, key)
        return self._is_up

    def lose(self, key: str) -> None:
        """Do without it from now on."""
        if not self._is_up:
            return
        self._is_up = False
        self._pause = FIRST_LOOK_SECONDS
        self._look_at = time.monotonic() + self._pause
        self.logger.increment('ratelimit.fallback')
        self.logger.warning(
            'shardmw: memcached does not answer: this worker limits writes '
            'by itself, each container to its share of the rate'
        )

    def _look(self, shared: SharedCache, key: str) -> None:
        try:
            _added(shared, key, 0)
        except ConnectionError:
            self._pause = min(2 * self._pause, LAST_LOOK_SECONDS)
            self._look_at = time.monotonic() + self._pause
        else:
            self._is_up = True
            self.logger.warning(
                'shardmw: memcached answers again: all workers limit writes '
                'together'
            )
        finally:
            self._is_looking = False


def _added(
    shared: SharedCache, key: str, delta: int, seconds: int = COUNTER_SECONDS
) -> int:
    """What a counter became.

    :param seconds: for how long to keep one that is new
    :raises ConnectionError: if memcached does not answer
    """
    value = shared.add(key, delta, seconds)
    if value is None:
        raise ConnectionError
    return value


def _send_away(desk: _Desk) -> None:
    """Have all that wait take a slot alone."""
    while desk.waiting:
        desk.waiting.popleft().send(None)
