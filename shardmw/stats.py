# SPDX-License-Identifier: Apache-2.0
"""The summed size of a sharded container, cached for quotas and rate limits.

Figures in container HEADs and listings never come from here: those are read
anew. Quotas are held against figures as old as Swift's own container info.
"""

import time
from typing import NamedTuple

from shardmw.backend import Backend, LogicalContainer, SharedCache

CACHE_KEY = 'shardmw/stats/{account}/{container}'

#: For how many times their age sums are kept, to be used during a refresh.
STALE_FACTOR = 2


class ContainerStats(NamedTuple):
    """How much a sharded container holds, root and shards together."""

    object_count: int
    bytes_used: int


def cache_key(account: str, container: str) -> str:
    """The memcached key of a container's sums."""
    return CACHE_KEY.format(account=account, container=container)


def container_stats(
    backend: Backend, env: dict, target: LogicalContainer, seconds: int
) -> ContainerStats:
    """The sums of a container, about so many seconds old at the most.

    When they are older, one request reads them anew; those that come
    meanwhile do with what there is.

    :raises BackendError: if a shard can't be read
    """
    cache = SharedCache(env)
    key = cache_key(target.account, target.container)
    cached = cache.get(key)
    if cached is None or (
        time.time() > cached[2] and cache.take(key + '/refresh', seconds)
    ):
        answers = backend.head_shards(env, target)
        cached = [
            sum(answer.object_count for answer in answers),
            sum(answer.bytes_used for answer in answers),
            time.time() + seconds,
        ]
        cache.set(key, cached, STALE_FACTOR * seconds)
        cache.delete(key + '/refresh')
    shard_objects, shard_bytes, _until = cached
    return ContainerStats(
        target.info['object_count'] + shard_objects,
        target.info['bytes'] + shard_bytes,
    )
