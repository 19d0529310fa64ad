# SPDX-License-Identifier: Apache-2.0
"""Make requests wait for their rate, or refuse them.

:mod:`shardmw.proxy.ratelimit.accounting` decides what counts and against which
counter, :mod:`shardmw.proxy.ratelimit.slots` when a request may proceed.
"""

import math
import time
from collections.abc import Callable

from swift.common.middleware.ratelimit import RateLimitMiddleware
from swift.common.swob import Request, Response, wsgi_quote

from shardmw.backend.config import RateLimits
from shardmw.backend.metrics import (
    DELAYED,
    DELAYED_OF_CONTAINER,
    LISTING_KIND,
    REFUSED,
    REFUSED_OF_CONTAINER,
    WRITE_KIND,
)
from shardmw.backend.requests import Backend
from shardmw.core.bounded import BoundedDict, is_short
from shardmw.core.gcra import MICROSECONDS, Limit
from shardmw.core.paths import Path
from shardmw.proxy.ratelimit.slots import SlotAllocator
from shardmw.proxy.ratelimit.worker_state import MaxWaitExceededError
from shardmw.swift.concurrency import sleep
from shardmw.swift.memcached import SharedCache

WRITES_KEY = 'shardmw/ratelimit/{account}/{container}'
LISTINGS_KEY = 'shardmw/ratelimit_listing/{account}/{container}'

#: In an account's sysmeta, as for Swift's ratelimit filter.
ACCOUNT_FLAG = 'global-write-ratelimit'
WHITELISTED = 'WHITELIST'
BLACKLISTED = 'BLACKLIST'
BLACKLIST_SLEEP_SECONDS = RateLimitMiddleware.BLACK_LIST_SLEEP

#: How long a worker keeps the flag of an account, and for how many accounts.
FLAG_SECONDS = 1
FLAG_COUNT = 10_000

#: The most small containers for which a worker estimates the growth.
GROWTH_COUNT = 10_000


class RateLimiter:
    """Makes requests wait for their slot, or refuses them.

    :param limits: the options
    :param logger: the filter's logger
    """

    def __init__(self, backend: Backend, limits: RateLimits, logger) -> None:
        self.backend = backend
        self.limits = limits
        self.logger = logger
        self._slots = SlotAllocator(logger, backend.metrics)
        self._growth = GrowthEstimate(limits.workers, limits.size_seconds)
        # The flags of accounts, each with the time when it expires.
        self._flags = BoundedDict(FLAG_COUNT)

    def blacklisted(self, req: Request, path: Path) -> Response | None:
        """Return the 497 for a request to a blacklisted account, or None."""
        if not self.limits.are_set or self._flag(req, path) != BLACKLISTED:
            return None
        self.logger.error(
            'shardmw: 497 for %s %s: the account is blacklisted',
            req.method,
            wsgi_quote(req.path_info),
        )
        sleep(BLACKLIST_SLEEP_SECONDS)
        return Response(
            status='497 Blacklisted',
            body='Your account has been blacklisted',
            request=req,
        )

    def write(
        self,
        req: Request,
        path: Path,
        key: str,
        object_count: int,
        override: float | None = None,
        can_refuse: bool = True,
    ) -> Response | None:
        """Wait until a write may proceed.

        :param path: the path of the request
        :param key: the counter, as :func:`write_key` returns it
        :param object_count: how many objects the container is known to list
        :param override: the container's own rate in writes per second, or
                         None. It replaces the rate for its size
        :param can_refuse: if False, a write that would have to wait too long
                           proceeds at once and delays the next ones
        :returns: None if the write may proceed, a 498 if it would have to
                  wait too long
        """
        rate = override
        if rate is None:
            rates = self.limits.writes
            size = self._growth.size(key, object_count, rates.least)
            rate = rates.rate_of(size)
        if rate is None or rate == math.inf:
            self._growth.add(key)
            return None
        return self._wait(req, path, key, rate, can_refuse)

    def listing(
        self, req: Request, path: Path, key: str, object_count: int
    ) -> Response | None:
        """Wait until a listing may proceed.

        :param path: the path of the request
        :param key: the counter, as :func:`listing_key` returns it
        :param object_count: how many objects one backing container lists
        :returns: None if the listing may proceed, a 498 if it would have to
                  wait too long
        """
        rate = self.limits.listings.rate_of(object_count)
        if rate is None:
            return None
        return self._wait(req, path, key, rate)

    def add_backlog(self, key: str, count: int) -> None:
        """Count requests that did not wait.

        The next requests wait for them, but no longer than the longest wait.
        """
        self._slots.add_backlog(key, count)

    def _wait(
        self,
        req: Request,
        path: Path,
        key: str,
        rate: float,
        can_refuse: bool = True,
    ) -> Response | None:
        if self._flag(req, path) == WHITELISTED:
            return None
        limit = self._limit(rate)
        try:
            wait = self._slots.reserve(SharedCache(req.environ), key, limit)
        except MaxWaitExceededError as err:
            if not can_refuse:
                self._slots.add_backlog(key, 1)
                return None
            return self._refuse(req, path, err, limit)
        if wait > 0:
            self._sleep(req, path, wait / MICROSECONDS)
        return None

    def _limit(self, rate: float) -> Limit:
        return Limit(
            interval=max(1, round(MICROSECONDS / rate)),
            burst=self.limits.rate_buffer_seconds * MICROSECONDS,
            max_wait=round(self.limits.max_sleep_time_seconds * MICROSECONDS),
            workers=self.limits.workers,
        )

    def _flag(self, req: Request, path: Path) -> str | None:
        """Return the account's flag, up to ``FLAG_SECONDS`` old.

        Swift caches it in memcached, which is not asked for each request.
        """
        now = time.monotonic()
        flag, expires = self._flags.get(path.account, (None, 0))
        if now >= expires:
            info = self.backend.account_info(req.environ)
            flag = info.get('sysmeta', {}).get(ACCOUNT_FLAG)
            if is_short(path.account):
                self._flags[path.account] = (flag, now + FLAG_SECONDS)
        return flag

    def _refuse(
        self, req: Request, path: Path, err: MaxWaitExceededError, limit: Limit
    ) -> Response:
        metrics, kind = self.backend.metrics, _kind(path)
        metrics.note(REFUSED, kind=kind)
        metrics.note_of(
            path.account, path.container, REFUSED_OF_CONTAINER, kind=kind
        )
        self.logger.error(
            'shardmw: 498 for %s %s: would wait %s, max_sleep_time_seconds '
            'is %s',
            req.method,
            wsgi_quote(req.path_info),
            err,
            self.limits.max_sleep_time_seconds,
        )
        too_long = (err.wait - limit.max_wait) / MICROSECONDS
        return Response(
            status='498 Rate Limited',
            body='Slow down',
            headers={'Retry-After': str(max(1, math.ceil(too_long)))},
            request=req,
        )

    def _sleep(self, req: Request, path: Path, wait: float) -> None:
        metrics, kind = self.backend.metrics, _kind(path)
        metrics.note(DELAYED, wait, kind=kind)
        metrics.note_of(
            path.account,
            path.container,
            DELAYED_OF_CONTAINER,
            wait,
            kind=kind,
        )
        longest_unlogged = self.limits.log_sleep_time_seconds
        if longest_unlogged and wait > longest_unlogged:
            self.logger.warning(
                'shardmw: %s %s waits %.2f s for its rate limit',
                req.method,
                wsgi_quote(req.path_info),
                wait,
            )
        sleep(wait)


def _kind(path: Path) -> str:
    """Return the kind of a request, for metrics.

    :param path: the path of the request, which names an object if it writes
    """
    return WRITE_KIND if path.name else LISTING_KIND


def write_key(account: str, container: str) -> str:
    """Return the memcached key of the counter of a container's writes.

    :param container: the plain or backing container that lists the object
    """
    return WRITES_KEY.format(account=account, container=container)


def listing_key(account: str, container: str) -> str:
    """Return the memcached key of the counter of a container's listings.

    :param container: the logical container, a native string
    """
    return LISTINGS_KEY.format(account=account, container=container)


class GrowthEstimate:
    """Estimates the present size of small containers.

    The known size of a container is up to about a minute old. A container that
    was too small for a limit may have grown since. Each write counts as one
    object, and every worker is assumed to have admitted as many as this one.

    :param workers: the number of workers in the whole cluster
    :param seconds: how old the known size may be
    :param clock: returns seconds that never go back
    """

    def __init__(
        self,
        workers: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.workers = workers
        self.seconds = seconds
        self.clock = clock
        self._recent = BoundedDict(GROWTH_COUNT, 2 * seconds, clock)

    def size(self, key: str, known: int, least: int | None) -> int:
        """Return the size that selects the rate.

        :param known: the container's known size
        :param least: the least size for which there is a limit, or None
        """
        if least is None or known >= least:
            return known
        now = self.clock()
        recent = self._recent.get(key)
        if recent is None or recent.size != known:
            recent = _RecentWrites(known, now)
        self._recent[key] = recent
        writes = recent.count(now, self.seconds) + 1
        return min(least, known + writes * self.workers)

    def add(self, key: str) -> None:
        """Count a write if the container's growth is being estimated."""
        recent = self._recent.get(key)
        if recent is not None:
            recent.current += 1


class _RecentWrites:
    """Counts the writes to a container in this period and the previous one.

    :param size: the container's known size during these periods
    :param now: the start of the first period
    """

    __slots__ = ('current', 'previous', 'size', 'started')

    def __init__(self, size: int, now: float) -> None:
        self.size = size
        self.started = now
        self.previous = self.current = 0

    def count(self, now: float, seconds: float) -> int:
        """Return the writes of both periods; start a new one when it is due.

        :param seconds: the length of a period
        """
        periods = (now - self.started) // seconds
        if periods:
            self.previous = self.current if periods == 1 else 0
            self.current = 0
            self.started = now
        return self.previous + self.current
