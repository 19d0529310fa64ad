# SPDX-License-Identifier: Apache-2.0
"""Rates held per backing container: who waits, who is refused.

What counts, and where, is :mod:`shardmw.charges`'; when it may go on,
:mod:`shardmw.permits`'.
"""

import math
import time
from collections.abc import Callable

from swift.common.middleware.ratelimit import RateLimitMiddleware
from swift.common.swob import Request, Response, wsgi_quote

from shardmw.backend import Backend, SharedCache, sleep
from shardmw.config import RateLimits
from shardmw.desk import TooLongError
from shardmw.gcra import MICROSECONDS, Limit
from shardmw.paths import parse_path
from shardmw.permits import Permits
from shardmw.recent import Recent

WRITES_KEY = 'shardmw/ratelimit/{account}/{container}'
LISTINGS_KEY = 'shardmw/ratelimit_listing/{account}/{container}'

MILLISECONDS = 1000

#: In an account's sysmeta, as for Swift's ratelimit filter.
ACCOUNT_FLAG = 'global-write-ratelimit'
ALLOWED = 'WHITELIST'
BARRED = 'BLACKLIST'
FLAG_SECONDS = 1
ACCOUNTS = 10_000
BARRED_SLEEP_SECONDS = RateLimitMiddleware.BLACK_LIST_SLEEP

#: How many small containers' growth a worker watches.
GROWING = 10_000


class RateLimiter:
    """Makes requests wait for their turn, or refuses them.

    :param limits: the options
    :param logger: the filter's logger
    """

    def __init__(self, backend: Backend, limits: RateLimits, logger) -> None:
        self.backend = backend
        self.limits = limits
        self.logger = logger
        self._permits = Permits(logger)
        self._growth = Growth(limits.workers, limits.size_seconds)
        # What is said of accounts, and until when to believe it.
        self._flags = Recent(ACCOUNTS)

    def barred(self, req: Request) -> Response | None:
        """The 497 for an account on the blacklist, or None."""
        if not self.limits.are_set or self._flag(req) != BARRED:
            return None
        self.logger.error(
            'shardmw: 497 for %s %s: the account is blacklisted',
            req.method,
            wsgi_quote(req.path_info),
        )
        sleep(BARRED_SLEEP_SECONDS)
        return Response(
            status='497 Blacklisted',
            body='Your account has been blacklisted',
            request=req,
        )

    def write(
        self,
        req: Request,
        account: str,
        container: str,
        object_count: int,
        override: float | None = None,
        can_refuse: bool = True,
    ) -> Response | None:
        """Wait for a write's turn.

        :param container: the container that takes it, as stored
        :param object_count: how many objects that is known to hold
        :param override: its own rate in writes a second, if it has one
        :param can_refuse: if not, one that would wait too long goes on at
                           once; the next ones wait for it
        :returns: None when it may go on, a 498 if it would wait too long
        """
        key = WRITES_KEY.format(account=account, container=container)
        rate = override
        if rate is None:
            rates = self.limits.writes
            size = self._growth.size(key, object_count, rates.least)
            rate = rates.rate_of(size)
        if rate is None or rate == math.inf:
            self._growth.add(key)
            return None
        return self._wait(req, key, rate, can_refuse)

    def listing(
        self, req: Request, account: str, container: str, object_count: int
    ) -> Response | None:
        """Wait for a listing's turn, the same way.

        :param object_count: how many objects one backing container holds
        """
        rate = self.limits.listings.rate_of(object_count)
        if rate is None:
            return None
        key = LISTINGS_KEY.format(account=account, container=container)
        return self._wait(req, key, rate)

    def charge_listing(self, account: str, container: str, count: int) -> None:
        """Count what a listing asked of one backing container after all."""
        key = LISTINGS_KEY.format(account=account, container=container)
        self._permits.charge(key, count)

    def _wait(
        self, req: Request, key: str, rate: float, can_refuse: bool = True
    ) -> Response | None:
        if self._flag(req) == ALLOWED:
            return None
        limit = self._limit(rate)
        try:
            wait = self._permits.take(SharedCache(req.environ), key, limit)
        except TooLongError as err:
            if not can_refuse:
                self._permits.charge(key, 1)
                return None
            return self._refuse(req, err.wait - limit.patience, err)
        if wait > 0:
            self._sleep(req, wait / MICROSECONDS)
        return None

    def _limit(self, rate: float) -> Limit:
        return Limit(
            interval=max(1, round(MICROSECONDS / rate)),
            burst=self.limits.rate_buffer_seconds * MICROSECONDS,
            patience=round(self.limits.max_sleep_time_seconds * MICROSECONDS),
            workers=self.limits.workers,
        )

    def _flag(self, req: Request) -> str | None:
        """What the operator said of an account, as of a moment ago.

        Swift keeps it in memcached, which not every request should ask.
        """
        account = parse_path(req.path_info).account
        now = time.monotonic()
        flag, until = self._flags.get(account, (None, 0))
        if now >= until:
            info = self.backend.account_info(req.environ)
            flag = info.get('sysmeta', {}).get(ACCOUNT_FLAG)
            self._flags[account] = (flag, now + FLAG_SECONDS)
        return flag

    def _refuse(self, req: Request, after: int, err: TooLongError) -> Response:
        self.logger.increment('ratelimit.refused')
        self.logger.error(
            'shardmw: 498 for %s %s: would wait %s',
            req.method,
            wsgi_quote(req.path_info),
            err,
        )
        retry_after = max(1, math.ceil(after / MICROSECONDS))
        return Response(
            status='498 Rate Limited',
            body='Slow down',
            headers={'Retry-After': str(retry_after)},
            request=req,
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


class Growth:
    """What containers may have grown to since their size was read.

    What is known of a container's size is a minute old, or so. One that is
    known to be too small to be limited may have become large meanwhile: every
    write since then counts as an object, at every worker as many as here.

    :param workers: how many workers there are
    :param seconds: how old a size may be
    :param clock: gives seconds that never go back
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
        self._watched = Recent(GROWING)

    def size(self, key: str, known: int, least: int | None) -> int:
        """The size to go by.

        :param least: the least size that there is a limit for, or None
        """
        if least is None or known >= least:
            return known
        now = self.clock()
        watched = self._watched.get(key)
        if watched is None or watched.size != known:
            watched = _Watched(known, now)
        self._watched[key] = watched
        writes = watched.writes_of_late(now, self.seconds) + 1
        return min(least, known + writes * self.workers)

    def add(self, key: str) -> None:
        """Count a write, if its container is watched."""
        if key in self._watched:
            self._watched[key].writes += 1


class _Watched:
    """The writes of a container since a while ago, and in the one before.

    :param size: the size that is known of it
    """

    __slots__ = ('before', 'since', 'size', 'writes')

    def __init__(self, size: int, now: float) -> None:
        self.size = size
        self.since = now
        self.before = self.writes = 0

    def writes_of_late(self, now: float, seconds: float) -> int:
        times = (now - self.since) // seconds
        if times:
            self.before = self.writes if times == 1 else 0
            self.writes = 0
            self.since = now
        return self.before + self.writes
