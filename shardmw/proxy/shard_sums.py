# SPDX-License-Identifier: Apache-2.0
"""The sums over the shards of a container, cached for rate limits.

Listings that read only some of the shards show them, too, and unordered
listings estimate with them how many objects a shard has. HEADs, and ordered
listings that read all shards, do not use them. Quotas use sums that are a part
of Swift's cached info (:mod:`shardmw.proxy.info_app`): for these, the shards
are read anew, and the sums are cached here as well. The cache is in memcached
and, in case that is unavailable, in each worker.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from swift.common.http import HTTP_SERVICE_UNAVAILABLE

from shardmw.backend.answers import Answer, ContainerStats
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.core.bounded import BoundedDict
from shardmw.swift.concurrency import Event
from shardmw.swift.infocache import RequestState
from shardmw.swift.memcached import SharedCache

CACHE_KEY = 'shardmw/stats/{account}/{container}'

#: Sums are kept for this many times the time for which they are fresh. The
#: expired ones are used while one request reads new ones.
STALE_FACTOR = 2

#: How old sums may be while the layout of the container changes, and how long
#: sums are used while a shard does not answer.
CHANGING_SECONDS = 5

#: How many containers' sums a worker keeps.
LOCAL_SUMS = 10_000


class _CachedSums(NamedTuple):
    """Cached sums; in memcached they are a list.

    :param expires: until when they are fresh, in seconds since 1970
    :param serial: the serial of the layout with which they were read
    :param missing: a shard that has not answered, which makes the sums an
                    estimate; estimates are not in memcached
    """

    object_count: int
    bytes_used: int
    expires: float
    serial: str
    missing: int | None = None

    @property
    def is_estimate(self) -> bool:
        """Return True if a shard is missing."""
        return self.missing is not None

    @property
    def stats(self) -> ContainerStats:
        """Return the sums alone."""
        return ContainerStats(self.object_count, self.bytes_used)


def total(answers: Iterable[Answer]) -> ContainerStats:
    """Return the sums of what a root and its shards answered."""
    answers = list(answers)
    return ContainerStats(
        sum(answer.object_count for answer in answers),
        sum(answer.bytes_used for answer in answers),
    )


def estimated_total(answers: list[Answer]) -> ContainerStats:
    """Return the sums over shards, some of which may not have answered.

    A shard that cannot be read counts like the mean of the others.
    """
    read = [answer for answer in answers if answer.is_success]
    if not read:
        return ContainerStats(0, 0)
    sums = total(read)
    return ContainerStats(
        *(figure * len(answers) // len(read) for figure in sums)
    )


class SummedStats:
    """Sums that are at most about `seconds` old.

    When they expire, one request reads new ones, and the other requests use
    the expired ones. If there are none, all requests wait for the same read.
    Within one client request the sums do not change, like Swift's container
    info.

    :param seconds: how old the sums may be
    """

    def __init__(self, backend: Backend, seconds: int) -> None:
        self.backend = backend
        self.seconds = seconds
        self._local = BoundedDict(LOCAL_SUMS)
        self._reads: dict[str, Event] = {}

    def of(self, env: dict, target: LogicalContainer) -> ContainerStats:
        """Return the sums over a container's shards, for rates.

        Quotas and unordered listings use them, too: quotas only while
        memcached is away. They are an estimate if a shard does not answer and
        no sums are known.
        """
        return self._of_request(env, target).stats

    def known(self, env: dict, target: LogicalContainer) -> ContainerStats:
        """Return the sums over a container's shards, to show to a client.

        :raises BackendError: if a shard does not answer and no sums are known
        """
        sums = self._of_request(env, target)
        if sums.is_estimate:
            sums = self._read_once(env, target)
        if sums.is_estimate:
            raise BackendError(sums.missing, HTTP_SERVICE_UNAVAILABLE)
        return sums.stats

    def anew(self, env: dict, target: LogicalContainer) -> ContainerStats:
        """Read the sums over a container's shards, for quotas.

        They are an estimate if a shard does not answer.
        """
        return self._read_once(env, target).stats

    def _of_request(self, env: dict, target: LogicalContainer) -> _CachedSums:
        in_request = RequestState.of(env).sums
        key = (target.account, target.container)
        if key not in in_request:
            in_request[key] = self._cached(env, target)
        return in_request[key]

    def forget(self, env: dict, target: LogicalContainer) -> None:
        """Drop the sums of a container that has been deleted."""
        key = _key(target)
        self._local.pop(key, None)
        SharedCache(env).delete(key)

    def _cached(self, env: dict, target: LogicalContainer) -> _CachedSums:
        key = _key(target)
        local = _of_layout(self._local.get(key), target)
        if local and self._is_fresh(local):
            return local
        if local and local.is_estimate:
            local = None
        shared = SharedCache(env)
        kept = shared.get(key)
        sums = _of_layout(kept and _CachedSums(*kept), target) or local
        if sums is None:
            return self._read_once(env, target)
        self._local[key] = sums
        if self._is_fresh(sums) or not self._may_refresh(shared, key, sums):
            return sums
        return self._read(env, target, sums)

    def _is_fresh(self, sums: _CachedSums) -> bool:
        """Return True if the sums have not expired.

        An expiry far in the future means that a clock was set back.
        """
        left = sums.expires - time.time()
        return self.seconds > 0 and 0 <= left <= STALE_FACTOR * self.seconds

    def _may_refresh(
        self, shared: SharedCache, key: str, sums: _CachedSums
    ) -> bool:
        """Return True if this request is the one that reads new sums."""
        # While memcached is asked, the other requests of this worker use the
        # expired sums.
        expires = time.time() + self.seconds
        self._local[key] = sums._replace(expires=expires)
        is_elected = self.seconds == 0 or shared.take(
            f'{key}/refresh', self.seconds
        )
        if not is_elected:
            self._local[key] = sums
        return is_elected

    def _read_once(self, env: dict, target: LogicalContainer) -> _CachedSums:
        """Read the sums, once for all waiting requests.

        The first writes to a new container all need them at the same time.
        """
        key = _key(target)
        while key in self._reads:
            sums = self._reads[key].wait()
            if sums is not None:
                return sums
        read = self._reads[key] = Event()
        sums = None
        try:
            sums = self._read(env, target)
        finally:
            del self._reads[key]
            read.send(sums)
        return sums

    def _read(
        self,
        env: dict,
        target: LogicalContainer,
        expired: _CachedSums | None = None,
    ) -> _CachedSums:
        """Read the sums and keep them.

        While a shard cannot be read, the expired sums stay in use.
        """
        answers = self.backend.head_shards(env, target)
        missing = [a.shard for a in answers if not a.is_success]
        seconds = self.seconds
        if target.layout.is_changing or missing:
            # Rows move between the root and the shards, or the shard may be
            # read again soon.
            seconds = min(seconds, CHANGING_SECONDS)
        expires = time.time() + seconds
        serial = target.layout.serial
        key = _key(target)
        if not missing:
            sums = _CachedSums(*total(answers), expires, serial)
            kept = [*sums.stats, expires, serial]
            SharedCache(env).set(key, kept, STALE_FACTOR * self.seconds)
        elif expired:
            sums = expired._replace(expires=expires)
        else:
            stats = estimated_total(answers)
            sums = _CachedSums(*stats, expires, serial, missing[0])
        self._local[key] = sums
        return sums


def _key(target: LogicalContainer) -> str:
    return CACHE_KEY.format(account=target.account, container=target.container)


def _of_layout(
    sums: _CachedSums | None, target: LogicalContainer
) -> _CachedSums | None:
    """Return sums, or None if they are those of another layout."""
    if sums is None or sums.serial != target.layout.serial:
        return None
    return sums
