# SPDX-License-Identifier: Apache-2.0
"""Slots for writes, from counters that all proxies share in memcached.

The algorithm is :mod:`shardmw.gcra`'s; here it is carried out. A worker has
one booking under way for a container at a time, for all of its writes that
wait for one. While memcached is away each worker goes on by itself with its
share of the rate, looks from time to time whether it is back, and then books
what it let in.
"""

import math
import time

from shardmw.backend import Event, SharedCache, sleep, spawn
from shardmw.clock import SharedClock
from shardmw.desk import Desk, TooLongError
from shardmw.gcra import Counter, Limit, booking, jump, jump_needed
from shardmw.recent import Recent

#: How long counters are kept, in seconds. Those in use start anew then.
COUNTER_SECONDS = 86400

#: How long nobody else can do a jump that a worker was elected for.
ELECTION_SECONDS = 10

#: How often a worker asks a counter for the same slots, as it may have to
#: look, and others to jump; and what it waits for a jump.
TAKE_TRIES = 5
JUMP_PAUSES = 20
JUMP_PAUSE_SECONDS = 0.005

#: When to look for a memcached that is away: after a second, and then after
#: twice the time each; when it is found, for how long it must stay to be
#: looked for that soon the next time.
FIRST_LOOK_SECONDS = 1
LAST_LOOK_SECONDS = 8
STEADY_SECONDS = 60

#: How many containers a worker knows.
DESK_COUNT = 10_000


class _StuckError(Exception):
    """Someone was elected to move a counter, and did not."""


class Permits:
    """Gives every write its slot.

    :param logger: the filter's logger
    """

    def __init__(self, logger, clock: SharedClock | None = None) -> None:
        self.logger = logger
        self.clock = clock or SharedClock()
        self._link = _Link(logger)
        self._desks = Recent(DESK_COUNT)

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

    def _desk(self, key: str) -> Desk:
        desk = self._desks.get(key) or Desk()
        self._desks[key] = desk
        return desk

    def _book_for(
        self, shared: SharedCache, key: str, desk: Desk, limit: Limit
    ) -> int:
        """Wait for a slot from the shared counter, or take one alone."""
        if self._link.is_up(shared, key):
            turn = Event()
            desk.waiting.append(turn)
            if not desk.is_booking:
                desk.is_booking = True
                spawn(self._serve, shared, key, desk, limit)
            slot = _wait_for(turn, desk, shared.timeout_seconds)
            if slot is not None:
                return slot
        slot = desk.take_alone(self.clock.now(), limit)
        self.logger.increment('ratelimit.alone')
        return slot

    def _serve(
        self, shared: SharedCache, key: str, desk: Desk, limit: Limit
    ) -> None:
        """Book until nobody waits, a batch at a time."""
        try:
            while desk.waiting:
                self._serve_batch(shared, key, desk, limit)
        finally:
            desk.is_booking = False
            _send_away(desk)

    def _serve_batch(
        self, shared: SharedCache, key: str, desk: Desk, limit: Limit
    ) -> None:
        try:
            slots = self._book(shared, key, desk, limit)
        except TooLongError as err:
            while desk.waiting:
                desk.waiting.popleft().send_exception(err)
        except _StuckError:
            _send_away(desk)
        except ConnectionError:
            self._link.lose()
            _send_away(desk)
        else:
            desk.bookings += 1
            for slot in slots:
                if desk.waiting:
                    desk.waiting.popleft().send(slot)
                else:
                    desk.held.add(slot)

    def _book(
        self, shared: SharedCache, key: str, desk: Desk, limit: Limit
    ) -> range:
        """Take slots for those that wait.

        :raises TooLongError: if there is none in reach
        :raises ConnectionError: if memcached does not answer
        """
        if self.clock.is_due():
            spawn(self.clock.keep_in_step, shared)
        now = self.clock.now()
        desk.check_patience(now, limit)
        alone_end = desk.alone_end
        debt = desk.payable(limit)
        owed = debt * limit.interval + desk.taken_alone(now, limit)
        wanted = len(desk.waiting)
        count = desk.held.batch(wanted, desk.known_end, now, limit)
        duration = owed + count * limit.interval
        start = self._take(shared, key, desk, limit, duration)
        desk.debt -= debt
        desk.settle(alone_end)
        desk.known_end = start + duration
        self.logger.increment('ratelimit.bookings')
        self.logger.update_stats('ratelimit.permits', count)
        return range(start + owed, desk.known_end, limit.interval)

    def _take(
        self,
        shared: SharedCache,
        key: str,
        desk: Desk,
        limit: Limit,
        duration: int,
    ) -> int:
        """Take slots of a duration from the counter; returns their start.

        :raises TooLongError: if it shows that they are out of reach
        :raises _StuckError: if it has to be moved and is not
        """
        for _ in range(TAKE_TRIES):
            now = self.clock.now()
            is_look = desk.is_to_look_first(now, limit)
            taken = 0 if is_look else duration
            counter = Counter.of(_added(shared, key, booking(taken)))
            start = counter.end - taken
            missing = jump_needed(start, now, desk.known_end, limit)
            if missing:
                more = duration - taken
                moved = self._jump(shared, key, counter, missing, more)
                if moved:
                    return moved.end - duration if is_look else start + missing
            elif is_look:
                desk.known_end = counter.end
                desk.check_patience(now, limit)
                desk.is_full = False
            else:
                return start
        raise _StuckError

    def _jump(
        self,
        shared: SharedCache,
        key: str,
        seen: Counter,
        missing: int,
        duration: int,
    ) -> Counter | None:
        """Move a counter, if this worker is elected; else see it moved.

        :param seen: what it said when it was too far back
        :param duration: of the slots to take behind
        :returns: what it became, None if it was not moved here
        :raises _StuckError: if it was not moved at all
        """
        started = time.monotonic()
        election = f'{key}/jump/{seen.jumps}'
        if _added(shared, election, 1, ELECTION_SECONDS) != 1:
            self._wait_for_jump(shared, key, seen)
            return None
        if time.monotonic() - started > ELECTION_SECONDS / 2:
            return None
        delta = jump(missing) + booking(duration)
        moved = Counter.of(_added(shared, key, delta))
        if moved.jumped_once_since(seen):
            return moved
        _added(shared, key, -delta)
        return None

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
        self._back_at = -math.inf
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

    def lose(self) -> None:
        """Do without it from now on.

        If it was back for a moment only, it is looked for less often.
        """
        if not self._is_up:
            return
        self._is_up = False
        now = time.monotonic()
        if now > self._back_at + STEADY_SECONDS:
            self._pause = FIRST_LOOK_SECONDS
        else:
            self._pause = min(2 * self._pause, LAST_LOOK_SECONDS)
        self._look_at = now + self._pause
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
            self._back_at = time.monotonic()
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


def _wait_for(turn: Event, desk: Desk, timeout_seconds: float) -> int | None:
    """Wait for a slot, as long as others get theirs.

    :returns: None if memcached does not answer any more
    """
    while True:
        bookings = desk.bookings
        slot = turn.wait(timeout_seconds)
        if slot is not None or turn not in desk.waiting:
            return slot
        if desk.bookings == bookings:
            desk.waiting.remove(turn)
            return None


def _send_away(desk: Desk) -> None:
    """Have all that wait take a slot alone."""
    while desk.waiting:
        desk.waiting.popleft().send(None)
