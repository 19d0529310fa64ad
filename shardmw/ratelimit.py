# SPDX-License-Identifier: Apache-2.0
"""Write rates, held per backing container.

The algorithm is that of Swift's ratelimit filter, a leaky bucket as a queue
kept in one counter a container: the time, in milliseconds, up to which its
writes are already booked. The counters lie in Swift's memcached, so that all
proxies book in the same ones; while it is away each worker books in its own.
"""

import time
from collections import OrderedDict
from typing import NamedTuple

from swift.common.swob import Request, Response, wsgi_quote

from shardmw.backend import SharedCache, sleep
from shardmw.config import RateLimits

CACHE_KEY = 'shardmw/ratelimit/{account}/{container}'
LIMITED_METHODS = ('PUT', 'POST', 'DELETE')
MILLISECONDS = 1000

#: How many containers' counters a worker keeps while memcached is away.
LOCAL_COUNTERS = 10_000


class Booking(NamedTuple):
    """When a write may go on.

    :param wait_ms: after how many milliseconds
    :param restart_at: what to set the counter to, None to leave it
    """

    wait_ms: int
    restart_at: int | None


def book(booked: int, now: int, step: int, buffer: int) -> Booking:
    """Decide on a write that was just added to a counter.

    :param booked: the counter, the write's own step included
    :param now: the time
    :param step: the time between two writes
    :param buffer: for how long unused writes may be made up for; all four
                   in milliseconds
    """
    if now - booked > buffer:
        return Booking(0, now + step)
    return Booking(max(booked - now - step, 0), None)


class RateLimiter:
    """Makes writes wait for their turn, or refuses them.

    :param limits: the options
    :param logger: the filter's logger
    """

    def __init__(self, limits: RateLimits, logger) -> None:
        self.limits = limits
        self.logger = logger
        self._local = LocalCounters(LOCAL_COUNTERS)

    def is_on(self, req: Request) -> bool:
        """Whether a request is one that limits are set for."""
        return bool(self.limits.steps) and req.method in LIMITED_METHODS

    def refusal(
        self,
        req: Request,
        account: str,
        container: str,
        object_count: int,
    ) -> Response | None:
        """Wait for a write's turn.

        :param container: the container that takes the write, as stored
        :param object_count: how many objects it holds
        :returns: None when it may go on, a 498 if it would wait too long
        """
        rate = self.limits.rate_of(object_count)
        if not rate:
            return None
        step = round(MILLISECONDS / rate)
        key = CACHE_KEY.format(account=account, container=container)
        wait = self._book(SharedCache(req.environ), key, step) / MILLISECONDS
        if wait >= self.limits.max_sleep_time_seconds:
            return self._refuse(req, wait)
        if wait > 0:
            self._sleep(req, wait)
        return None

    def _book(self, shared: SharedCache, key: str, step: int) -> int:
        now = round(time.time() * MILLISECONDS)
        counters = shared
        booked = shared.add(key, step)
        if booked is None:
            counters = self._local
            booked = self._local.add(key, step)
        buffer = self.limits.rate_buffer_seconds * MILLISECONDS
        booking = book(booked, now, step, buffer)
        if booking.restart_at is not None:
            counters.set_counter(key, booking.restart_at)
        longest = self.limits.max_sleep_time_seconds * MILLISECONDS
        if booking.wait_ms >= longest:
            counters.add(key, -step)
        return booking.wait_ms

    def _refuse(self, req: Request, wait: float) -> Response:
        self.logger.increment('ratelimit.refused')
        self.logger.error(
            'shardmw: 498 for %s %s: would wait %.2f s',
            req.method,
            wsgi_quote(req.path_info),
            wait,
        )
        return Response(
            status='498 Rate Limited', body='Slow down', request=req
        )

    def _sleep(self, req: Request, wait: float) -> None:
        self.logger.timing('ratelimit.sleep', wait * MILLISECONDS)
        longest_unlogged = self.limits.log_sleep_time_seconds
        if longest_unlogged and wait > longest_unlogged:
            self.logger.warning(
                'shardmw: %s %s waits %.2f s for its turn',
                req.method,
                wsgi_quote(req.path_info),
                wait,
            )
        sleep(wait)


class LocalCounters:
    """Counters of one worker, the least recently used given up.

    :param size: how many to keep
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._counters: OrderedDict[str, int] = OrderedDict()

    def add(self, key: str, delta: int) -> int:
        """Add to a counter, which starts at 0; returns its new value."""
        self.set_counter(key, max(0, self._counters.get(key, 0) + delta))
        return self._counters[key]

    def set_counter(self, key: str, value: int) -> None:
        """Set a counter."""
        self._counters[key] = value
        self._counters.move_to_end(key)
        if len(self._counters) > self.size:
            self._counters.popitem(last=False)
