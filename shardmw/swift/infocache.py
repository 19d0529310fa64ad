# SPDX-License-Identifier: Apache-2.0
"""The entries of a client request in Swift's info cache.

All sub-requests that other filters make for one client request share one
dictionary, ``env['swift.infocache']``.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from swift.common.utils import NamespaceBoundList
from swift.proxy.controllers.base import get_cache_key as get_cache_key

from shardmw.core.paths import Path, Place

INFOCACHE_ENV = 'swift.infocache'
STATE_KEY = 'shardmw'


class Unshared(NamedTuple):
    """Info of a client's GET or HEAD that is not in memcached yet.

    :param info: the info that the proxy app has made from the answer
    :param headers: the headers of the answer
    :param kept: the info that memcached had after the answer
    """

    info: dict | None
    headers: Mapping
    kept: dict | None


@dataclass(slots=True)
class RequestState:
    """The filter's data of one client request and its sub-requests.

    :ivar counted: the writes and listings that were counted against a rate
    :ivar sums: the objects and bytes of sharded containers, by account and
                container
    :ivar unshared: info that waits for sums, by Swift's cache keys
    """

    counted: dict[tuple, set] = field(default_factory=dict)
    sums: dict[tuple[str, str], tuple] = field(default_factory=dict)
    unshared: dict[str, Unshared] = field(default_factory=dict)

    @classmethod
    def of(cls, env: dict) -> 'RequestState':
        """Return the state of the client request that `env` belongs to."""
        infocache = env.setdefault(INFOCACHE_ENV, {})
        state = infocache.get(STATE_KEY)
        if state is None:
            state = infocache[STATE_KEY] = cls()
        return state


class _MemcacheWithoutInfo:
    """Swift's memcached client, except that it does not store one key."""

    def __init__(self, memcache, key: str) -> None:
        self._memcache = memcache
        self._key = key

    def __getattr__(self, name: str):
        return getattr(self._memcache, name)

    def set(self, key: str, *args, **kwargs) -> None:
        if key != self._key:
            self._memcache.set(key, *args, **kwargs)


@contextmanager
def without_sharing_info(env: dict, path: Path) -> Iterator[None]:
    """Keep the proxy app from storing a container's or account's info.

    It stores the info in the request only: from memcached, other requests
    would take the counts of the root to enforce quotas.
    """
    memcache = env.get('swift.cache')
    if memcache is None:
        yield
        return
    key = get_cache_key(path.account, path.container)
    env['swift.cache'] = _MemcacheWithoutInfo(memcache, key)
    try:
        yield
    finally:
        env['swift.cache'] = memcache


def info_at_hand(env: dict, account: str, container: str) -> dict | None:
    """Return the info of a container if the request has it already.

    Unlike ``get_container_info``, do not copy it: that would take longer than
    everything else that the filter does for an upload. The caller must not
    change it.
    """
    infocache = env.get(INFOCACHE_ENV)
    if not infocache:
        return None
    return infocache.get(get_cache_key(account, container))


def redirected(
    env: dict, account: str, container: str, info: dict, backing: Place
) -> dict:
    """Return an info cache that redirects the rows of a container.

    In this cache, the container is sharded by Swift, and one shard range has
    all of its names. The cache is a copy, valid for one object: it must not
    reach sub-requests for other objects.

    :param info: Swift's info of the container
    :param backing: where to send rows
    """
    infocache = dict(env.get(INFOCACHE_ENV, ()))
    infocache[get_cache_key(account, container)] = {
        **info,
        'sharding_state': 'sharded',
    }
    updating_key = get_cache_key(account, container, shard='updating')
    infocache[updating_key] = NamespaceBoundList([['', str(backing)]])
    return infocache


def decided(env: dict, account: str, container: str, info: dict) -> dict:
    """Return an info cache that has the info of a container.

    Swift does not cache info that it could not read. Without this cache, the
    proxy app would request it again.

    :param info: Swift's info of the container
    """
    infocache = dict(env.get(INFOCACHE_ENV, ()))
    infocache[get_cache_key(account, container)] = info
    return infocache
