# SPDX-License-Identifier: Apache-2.0
"""The summed size of a sharded container, cached for quotas and rate limits.

Figures in container HEADs and listings never come from here: those are read
anew. Quotas and rates are held against figures as old as Swift's own container
info, kept in memcached and, for when it is away, in each worker.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from shardmw.backend import (
    INFOCACHE_ENV,
    Answer,
    Backend,
    Event,
    LogicalContainer,
    SharedCache,
)
from shardmw.recent import Recent

CACHE_KEY = 'shardmw/stats/{account}/{container}'

#: For how many times their age sums are kept, to be used during a refresh.
STALE_FACTOR = 2

#: How many containers' sums a worker keeps by itself.
LOCAL_SUMS = 10_000


class ContainerStats(NamedTuple):
    """How much a sharded container holds, root and shards together."""

    object_count: int
    bytes_used: int


def total(answers: Iterable[Answer]) -> ContainerStats:
    """The figures in the answers of a root and all its shards."""
    answers = list(answers)
    return ContainerStats(
        sum(answer.object_count for answer in answers),
        sum(answer.bytes_used for answer in answers),
    )


def cache_key(account: str, container: str) -> str:
    """The memcached key of a container's sums."""
    return CACHE_KEY.format(account=account, container=container)


class _Known(NamedTuple):
    """What a worker knows of a container's sums.

    :param sums: objects and bytes of the shards, and until when they are
                 fresh, as in memcached
    :param created: when the container was put last, so that one that was
                    deleted and created anew is told from it
    """

    sums: list
    created: str | None


class SummedStats:
    """Sums that are about so many seconds old at the most.

    When they are older, one request reads them anew; those that come
    meanwhile do with what there is, or wait if there is nothing. While they
    are not, a worker that knows them asks nobody. Within one client's request
    they stay the same, as Swift's container info does.

    :param seconds: how old they may be
    """

    def __init__(self, backend: Backend, seconds: int) -> None:
        self.backend = backend
        self.seconds = seconds
        self._local = Recent(LOCAL_SUMS)
        self._being_read: dict[str, Event] = {}

    def of(self, env: dict, target: LogicalContainer) -> ContainerStats:
        """The sums of a container.

        A shard that can't be read counts like the mean of the others: its
        writes must not wait for its size, nor theirs.
        """
        key = cache_key(target.account, target.container)
        infocache = env.setdefault(INFOCACHE_ENV, {})
        if key not in infocache:
            infocache[key] = self._cached(env, target, key)
        sums = infocache[key]
        return ContainerStats(
            target.info['object_count'] + sums[0],
            target.info['bytes'] + sums[1],
        )

    def _cached(self, env: dict, target: LogicalContainer, key: str) -> list:
        local = self._local_sums(target, key)
        if local and self._are_fresh(local):
            return local
        shared = SharedCache(env)
        sums = shared.get(key) or local
        if sums is None:
            return self._read_for_all(env, target, key)
        self._keep(target, key, sums)
        if self._is_ours_to_refresh(shared, target, key, sums):
            return self._read_anew(env, target, key, sums)
        return sums

    def _local_sums(self, target: LogicalContainer, key: str) -> list | None:
        known = self._local.get(key)
        if known is None or known.created != _created(target):
            return None
        return known.sums

    def _keep(self, target: LogicalContainer, key: str, sums: list) -> None:
        self._local[key] = _Known(sums, _created(target))

    def _are_fresh(self, sums: list) -> bool:
        """Whether they are; not when they seem to be so for too long.

        A clock was set back since, or another proxy's is wrong.
        """
        left = sums[2] - time.time()
        return self.seconds > 0 and 0 <= left <= STALE_FACTOR * self.seconds

    def _read_for_all(
        self, env: dict, target: LogicalContainer, key: str
    ) -> list:
        """Read sums that nobody has, for all who want them meanwhile.

        When a new container meets its first writers, all of them do.
        """
        while key in self._being_read:
            sums = self._being_read[key].wait()
            if sums is not None:
                return sums
        being_read = self._being_read[key] = Event()
        sums = None
        try:
            sums = self._read_anew(env, target, key)
        finally:
            del self._being_read[key]
            being_read.send(sums)
        return sums

    def _read_anew(
        self,
        env: dict,
        target: LogicalContainer,
        key: str,
        older: list | None = None,
    ) -> list:
        sums = self._read(env, target, older)
        self._keep(target, key, sums)
        SharedCache(env).set(key, sums, STALE_FACTOR * self.seconds)
        return sums

    def _is_ours_to_refresh(
        self,
        shared: SharedCache,
        target: LogicalContainer,
        key: str,
        sums: list,
    ) -> bool:
        if self._are_fresh(sums):
            return False
        # Others of this worker do with them while memcached is asked.
        until = time.time() + self.seconds
        self._keep(target, key, [*sums[:2], until])
        is_ours = self.seconds == 0 or shared.take(
            f'{key}/refresh', self.seconds
        )
        if not is_ours:
            self._keep(target, key, sums)
        return is_ours

    def _read(
        self, env: dict, target: LogicalContainer, older: list | None
    ) -> list:
        """The sums as they are now, or older ones if no shard can be read."""
        answers = self.backend.head_shards(env, target)
        are_unknown = not any(answer.is_success for answer in answers)
        sums = older[:2] if older and are_unknown else summed(answers)
        return [*sums, time.time() + self.seconds]


def _created(target: LogicalContainer) -> str | None:
    return target.info.get('put_timestamp')


def summed(answers: list[Answer]) -> tuple[int, int]:
    """The objects and bytes of shards, those unread as the mean of others."""
    read = [answer for answer in answers if answer.is_success]
    if not read:
        return 0, 0
    objects = sum(answer.object_count for answer in read)
    size = sum(answer.bytes_used for answer in read)
    return (
        objects * len(answers) // len(read),
        size * len(answers) // len(read),
    )
