# SPDX-License-Identifier: Apache-2.0
"""Reserve slots for writes in counters that all proxies share in memcached.

The algorithm is in :mod:`shardmw.core.gcra`; this module does its I/O. A
worker has at most one reservation per container under way. It serves all the
writes that wait for a slot of that container.

A busy worker reserves slots ahead. What this buys (``shardmw-bench scenario
filter-cost``): 0.002 operations of memcached for a write to a plain container
and 0.05 for one to 32 shards, instead of one for each write.

While memcached is unavailable, each worker admits writes at its own share of
the rate. It probes memcached in the background, and once memcached is back the
worker reserves there what it admitted meanwhile.
"""

import math
import time

from shardmw.backend.metrics import (
    ALONE,
    BOOKINGS,
    FALLBACK,
    PERMITS,
    SILENT,
    Metrics,
)
from shardmw.core.bounded import BoundedDict
from shardmw.core.gcra import (
    Counter,
    Limit,
    reservation,
    reset,
    reset_needed,
)
from shardmw.proxy.ratelimit.clock import SharedClock
from shardmw.proxy.ratelimit.worker_state import (
    MaxWaitExceededError,
    WorkerState,
)
from shardmw.swift.concurrency import Event, sleep, spawn
from shardmw.swift.memcached import SharedCache

#: How long memcached keeps a counter. It then starts again, even if it is in
#: use.
COUNTER_SECONDS = 86400

#: How long the election of the worker that resets a counter is valid.
ELECTION_SECONDS = 10

#: How often a worker tries to reserve the same slots. It may first have to
#: read the counter, and to wait for the resets of other workers.
RESERVE_TRIES = 5

#: How often, and how many seconds apart, a worker checks whether the elected
#: worker has reset the counter.
RESET_CHECKS = 100
RESET_CHECK_SECONDS = 0.005

#: When an unavailable memcached is probed: first after so many seconds, and
#: each time after twice as long, up to the longest time.
FIRST_PROBE_SECONDS = 1
LONGEST_PROBE_SECONDS = 8

#: How long memcached must answer before the next outage begins again with the
#: first probe time.
STABLE_SECONDS = 60

#: For how many containers a worker keeps the state, and for how long without a
#: write. Each change of layout makes shards with new names.
STATE_COUNT = 10_000
STATE_SECONDS = 300


class _ResetTimeoutError(Exception):
    """The elected worker did not reset the counter in time."""


class SlotAllocator:
    """Allocates a slot to every write.

    :param logger: the filter's logger
    :param metrics: what sends the metrics
    """

    def __init__(
        self,
        logger,
        metrics: Metrics = SILENT,
        clock: SharedClock | None = None,
    ) -> None:
        self.metrics = metrics
        self.clock = clock or SharedClock()
        self._memcached = _MemcachedStatus(logger, metrics)
        self._states = BoundedDict(STATE_COUNT, STATE_SECONDS)

    def reserve(self, shared: SharedCache, key: str, limit: Limit) -> int:
        """Reserve a slot for one write.

        :param key: the counter's key in memcached
        :returns: how long the write must wait, in microseconds
        :raises MaxWaitExceededError: if that exceeds the limit's longest wait
        """
        state = self._state(key)
        now = self.clock.now()
        slot = state.leased.take(now, limit)
        if slot is None:
            state.check_max_wait(now, limit)
            slot = self._next_slot(shared, key, state, limit)
            now = self.clock.now()
        if limit.exceeds_max_wait(slot - now):
            state.must_read = True
            state.leased.put_back(slot)
            raise MaxWaitExceededError(slot - now)
        return max(0, slot - now)

    def add_backlog(self, key: str, count: int) -> None:
        """Count requests that proceed without a slot of their own.

        The next reservation of the counter includes their slots, as far as
        they delay other requests by no more than the longest wait.
        """
        self._state(key).add_backlog(count, self.clock.now())

    def _state(self, key: str) -> WorkerState:
        state = self._states.get(key) or WorkerState()
        self._states[key] = state
        return state

    def _next_slot(
        self, shared: SharedCache, key: str, state: WorkerState, limit: Limit
    ) -> int:
        """Return a slot of the shared counter, or else of the worker's share.

        The worker's share is used while memcached is unavailable.
        """
        if self._memcached.is_available(shared, key):
            waiter = Event()
            state.waiters.append(waiter)
            if not state.is_reserving:
                state.is_reserving = True
                spawn(self._serve_waiters, shared, key, state, limit)
            slot = _wait_for_slot(waiter, state, shared.timeout_seconds)
            if slot is not None:
                return slot
        slot = state.take_fallback_slot(self.clock.now(), limit)
        self.metrics.note(ALONE)
        return slot

    def _serve_waiters(
        self, shared: SharedCache, key: str, state: WorkerState, limit: Limit
    ) -> None:
        """Reserve batches of slots until no write waits for one."""
        try:
            while state.waiters:
                self._serve_batch(shared, key, state, limit)
        finally:
            state.is_reserving = False
            _release_to_fallback(state)

    def _serve_batch(
        self, shared: SharedCache, key: str, state: WorkerState, limit: Limit
    ) -> None:
        """Reserve one batch and hand its slots to the waiting writes."""
        try:
            slots = self._reserve_batch(shared, key, state, limit)
        except MaxWaitExceededError as err:
            while state.waiters:
                state.waiters.pop(0).send_exception(err)
        except _ResetTimeoutError:
            _release_to_fallback(state)
        except ConnectionError:
            self._memcached.set_unavailable()
            _release_to_fallback(state)
        else:
            state.reservations += 1
            for slot in slots:
                if state.waiters:
                    state.waiters.pop(0).send(slot)
                else:
                    state.leased.add(slot)

    def _reserve_batch(
        self, shared: SharedCache, key: str, state: WorkerState, limit: Limit
    ) -> range:
        """Reserve slots for the writes that wait.

        :raises MaxWaitExceededError: if the next slot exceeds the longest wait
        :raises ConnectionError: if memcached does not answer
        """
        if self.clock.is_sync_due():
            spawn(self.clock.sync, shared)
        now = self.clock.now()
        state.check_max_wait(now, limit)
        fallback_end = state.fallback_end
        backlog = state.take_backlog(now, limit)
        used = backlog * limit.interval + state.pending_fallback(now, limit)
        waiting = len(state.waiters)
        count = state.leased.batch_size(waiting, state.known_end, now, limit)
        duration = used + count * limit.interval
        try:
            start = self._reserve_duration(shared, key, state, limit, duration)
        except BaseException:
            state.backlog += backlog
            raise
        state.clear_fallback(fallback_end)
        state.known_end = start + duration
        self.metrics.note(BOOKINGS)
        self.metrics.note(PERMITS, count)
        return range(start + used, state.known_end, limit.interval)

    def _reserve_duration(
        self,
        shared: SharedCache,
        key: str,
        state: WorkerState,
        limit: Limit,
        duration: int,
    ) -> int:
        """Reserve slots of a duration; return the start of the first.

        :raises MaxWaitExceededError: if the counter shows too long a wait
        :raises _ResetTimeoutError: if the counter must be reset and is not
        """
        for _ in range(RESERVE_TRIES):
            now = self.clock.now()
            only_reads = state.must_read_first(now, limit)
            reserved = 0 if only_reads else duration
            counter = Counter.of(_add(shared, key, reservation(reserved)))
            start = counter.end - reserved
            distance = reset_needed(start, now, state.known_end, limit)
            if distance:
                more = duration - reserved
                moved = self._reset(shared, key, counter, distance, more)
                if moved and only_reads:
                    return moved.end - duration
                if moved:
                    return start + distance
            elif only_reads:
                state.known_end = counter.end
                state.check_max_wait(now, limit)
                state.must_read = False
            else:
                return start
        raise _ResetTimeoutError

    def _reset(
        self,
        shared: SharedCache,
        key: str,
        seen: Counter,
        distance: int,
        duration: int,
    ) -> Counter | None:
        """Reset a counter if this worker is elected, else wait for the reset.

        :param seen: the counter when the worker saw that a reset is needed
        :param distance: how far to move the end
        :param duration: of the slots to reserve after the new end
        :returns: the new counter, None if this worker did not reset it
        :raises _ResetTimeoutError: if no worker reset the counter
        """
        started = time.monotonic()
        election = f'{key}/reset/{seen.resets}'
        if _add(shared, election, 1, ELECTION_SECONDS) != 1:
            self._wait_for_reset(shared, key, seen)
            return None
        if time.monotonic() - started > ELECTION_SECONDS / 2:
            return None
        delta = reset(distance) + reservation(duration)
        moved = Counter.of(_add(shared, key, delta))
        if moved.is_next_reset_after(seen):
            return moved
        _add(shared, key, -delta)
        return None

    def _wait_for_reset(
        self, shared: SharedCache, key: str, seen: Counter
    ) -> None:
        """Wait until another worker has reset a counter.

        :raises _ResetTimeoutError: if no worker does
        """
        for _ in range(RESET_CHECKS):
            sleep(RESET_CHECK_SECONDS)
            if Counter.of(_add(shared, key, 0)).resets != seen.resets:
                return
        raise _ResetTimeoutError


class _MemcachedStatus:
    """Tracks whether memcached answers and logs each change once.

    :param logger: the filter's logger
    :param metrics: what sends the metrics
    """

    def __init__(self, logger, metrics: Metrics) -> None:
        self.logger = logger
        self.metrics = metrics
        self._is_available = True
        self._is_probing = False
        self._probe_at = 0.0
        self._available_since = -math.inf
        self._probe_seconds = FIRST_PROBE_SECONDS

    def is_available(self, shared: SharedCache, key: str) -> bool:
        """Return True if memcached is to be used.

        If it is unavailable and a probe is due, start the probe in the
        background. No write waits for it.

        :param key: the key of a counter, which the probe reads
        """
        is_due = time.monotonic() >= self._probe_at
        if not self._is_available and is_due and not self._is_probing:
            self._is_probing = True
            spawn(self._probe, shared, key)
        return self._is_available

    def set_unavailable(self) -> None:
        """Stop using memcached until a probe succeeds.

        If memcached was back for only a short time, wait longer before the
        next probe.
        """
        if not self._is_available:
            return
        self._is_available = False
        now = time.monotonic()
        if now > self._available_since + STABLE_SECONDS:
            self._probe_seconds = FIRST_PROBE_SECONDS
        else:
            self._double_probe_seconds()
        self._probe_at = now + self._probe_seconds
        self.metrics.note(FALLBACK)
        self.logger.warning(
            'shardmw: memcached does not answer: this worker limits each '
            'container to its own share of the rate'
        )

    def _probe(self, shared: SharedCache, key: str) -> None:
        try:
            _add(shared, key, 0)
        except ConnectionError:
            self._double_probe_seconds()
            self._probe_at = time.monotonic() + self._probe_seconds
        else:
            self._is_available = True
            self._available_since = time.monotonic()
            self.logger.warning(
                'shardmw: memcached answers again: the rates are shared by '
                'all workers'
            )
        finally:
            self._is_probing = False

    def _double_probe_seconds(self) -> None:
        self._probe_seconds = min(
            2 * self._probe_seconds, LONGEST_PROBE_SECONDS
        )


def _add(
    shared: SharedCache, key: str, delta: int, seconds: int = COUNTER_SECONDS
) -> int:
    """Add to a counter and return its new value.

    :param seconds: how long to keep a counter that this creates
    :raises ConnectionError: if memcached does not answer
    """
    value = shared.add(key, delta, seconds)
    if value is None:
        raise ConnectionError
    return value


def _wait_for_slot(
    waiter: Event, state: WorkerState, timeout_seconds: float
) -> int | None:
    """Wait for a slot for as long as reservations of the worker succeed.

    :returns: None if memcached stopped answering
    """
    while True:
        reservations = state.reservations
        slot = waiter.wait(timeout_seconds)
        if slot is not None or waiter not in state.waiters:
            return slot
        if state.reservations == reservations:
            state.waiters.remove(waiter)
            return None


def _release_to_fallback(state: WorkerState) -> None:
    """Make all waiting writes take a slot of the worker's own share."""
    while state.waiters:
        state.waiters.pop(0).send(None)
