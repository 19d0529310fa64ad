# SPDX-License-Identifier: Apache-2.0
"""Memcached, as the proxy's ``cache`` filter provides it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from swift.common.memcached import (
    CONN_TIMEOUT,
    IO_TIMEOUT,
    POOL_TIMEOUT,
    MemcacheConnectionError,
    load_memcache,
)
from swift.common.middleware.memcache import MemcacheMiddleware
from swift.common.utils import cache_from_env, get_logger

from shardmw.swift.concurrency import sleep

LOCK_POLL_SECONDS = 0.05

#: memcached counts whole seconds, so an entry may expire this much earlier or
#: later.
ROUNDING_SECONDS = 1


class LockError(Exception):
    """Another process holds a lock for too long."""


class SharedCache:
    """The memcached that all proxies share.

    No method raises an error when memcached is unavailable.

    :param env: a request's environment, in which Swift keeps its memcached
                client
    """

    def __init__(self, env: dict) -> None:
        self._memcache = cache_from_env(env, True)

    def get(self, key: str):
        """Return the value of a key, or None."""
        return self._memcache.get(key) if self._memcache else None

    def set(self, key: str, value, seconds: int) -> None:
        """Keep a value for some seconds."""
        if self._memcache and seconds > 0:
            self._memcache.set(key, value, time=seconds)

    def put(self, key: str, value, seconds: int) -> bool:
        """Keep a value for some seconds.

        :returns: True if memcached has acknowledged it
        """
        if not self._memcache:
            return False
        try:
            self._memcache.set(key, value, time=seconds, raise_on_error=True)
        except MemcacheConnectionError:
            return False
        return True

    def get_together(self, keys: list[str], place: str) -> list:
        """Return the values of keys that are on one server.

        :param place: the key that selects the server
        :returns: a value for each key, None for a missing key
        """
        if not self._memcache:
            return [None] * len(keys)
        values = self._memcache.get_multi(keys, place)
        return values or [None] * len(keys)

    def set_together(self, values: dict, place: str, seconds: int) -> None:
        """Keep values for :meth:`get_together`."""
        if self._memcache:
            self._memcache.set_multi(values, place, time=seconds)

    def set_bytes_together(
        self, values: dict[str, bytes], place: str, seconds: int
    ) -> None:
        """Keep bytes, unserialized, for :meth:`get_together`."""
        if self._memcache:
            self._memcache.set_multi(
                values, place, serialize=False, time=seconds
            )

    def delete(self, key: str) -> None:
        """Drop a key."""
        if self._memcache:
            self._memcache.delete(key)

    def take(self, key: str, seconds: int) -> bool:
        """Acquire a key that only one process can hold, for some seconds.

        :returns: True if this process holds it, or if memcached is
                  unavailable
        """
        if not self._memcache:
            return True
        try:
            return self._memcache.incr(key, time=seconds) == 1
        except MemcacheConnectionError:
            return True

    def add(self, key: str, delta: int, seconds: int) -> int | None:
        """Add to a counter, which starts at 0 and never falls below it.

        :param seconds: for how long to keep a new counter
        :returns: the counter's new value, or None if memcached is unavailable
        """
        if not self._memcache:
            return None
        try:
            return self._memcache.incr(key, delta=delta, time=seconds)
        except MemcacheConnectionError:
            return None

    @contextmanager
    def lock(self, key: str, seconds: int) -> Iterator[None]:
        """Hold a lock that expires after some seconds.

        While memcached is unavailable there is no lock.

        :raises LockError: if another process holds it for longer
        """
        waited = 0.0
        while not self.take(key, seconds):
            if waited > seconds:
                raise LockError(f'lock {key} is held for over {seconds} s')
            sleep(LOCK_POLL_SECONDS)
            waited += LOCK_POLL_SECONDS
        try:
            yield
        finally:
            self.delete(key)

    @property
    def timeout_seconds(self) -> float:
        """Return how long memcached may take to answer."""
        return getattr(self._memcache, '_io_timeout', IO_TIMEOUT)

    @property
    def latest_seconds(self) -> int:
        """Return how many seconds late a value may reach its server."""
        return math.ceil(
            getattr(self._memcache, '_pool_timeout', POOL_TIMEOUT)
            + getattr(self._memcache, '_connect_timeout', CONN_TIMEOUT)
            + self.timeout_seconds
        )


def servers_of(pipeline: Iterable[Callable]) -> list[str] | None:
    """Return the memcached servers of the cache filter of a pipeline.

    :returns: None if the pipeline has no cache filter of Swift's own
    """
    for app in pipeline:
        if isinstance(app, MemcacheMiddleware):
            return app.memcache.memcache_servers
    return None


def servers_in(conf: Mapping[str, str]) -> list[str]:
    """Return the memcached servers that a cache filter would have.

    :param conf: the options of the filter. Swift reads others from
                 ``memcache.conf`` in ``swift_dir``
    """
    logger = get_logger({}, log_route='shardmw')
    return load_memcache(conf, logger).memcache_servers
