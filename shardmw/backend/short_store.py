# SPDX-License-Identifier: Apache-2.0
"""Values that are kept for some seconds: in memcached, or by one worker.

No value is kept beyond its time, whatever the clocks of other processes say:
memcached drops it. Memcached counts whole seconds and may get a value late, so
it gets some seconds less. While memcached does not answer, or if nothing is
left of the time, a worker keeps the value itself.

A worker remembers what it has put, and drops the oldest values of an account,
or of all, beyond a number of bytes. An account has at most a quarter of them:
a client that asks for ever new values displaces older ones of its account, and
not what Swift has in memcached.
"""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shardmw.backend.memcached import ROUNDING_SECONDS, SharedCache
from shardmw.lru import SizedLRU

#: How many accounts with as many values as one may have there is room for.
FULL_ACCOUNTS = 4

#: What a value takes beside its bytes and its key, at most.
OVERHEAD_BYTES = 1000

#: What takes the place of a value that memcached is to drop, for a second.
_DROPPED = b''


class _Put(NamedTuple):
    """Hold what a worker has put.

    :param place: the key that selects the memcached server
    :param expires: by the monotonic clock
    :param value: None if memcached has it
    """

    place: str
    expires: float
    value: bytes | None


class ShortStore:
    """Keeps values in memcached, or in this process if memcached is away.

    :param most_bytes: the most bytes of all values that this worker has put;
                       0: keep nothing
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._puts = SizedLRU(most_bytes // FULL_ACCOUNTS, most_bytes)

    def get(
        self,
        env: dict,
        account: str,
        place: str,
        keys: Sequence[str],
        seconds: int,
    ) -> list[bytes | None]:
        """Return the values of some keys, nothing for one that has none.

        :param account: the account that the values belong to
        :param place: the key that selects the memcached server
        :param seconds: for how long values of these keys are kept
        """
        own = [self._own(account, key) for key in keys]
        cache = SharedCache(env)
        if any(own) or _shared_seconds(cache, seconds) <= 0:
            return own
        return cache.get_together(keys, place)

    def put(
        self,
        env: dict,
        account: str,
        place: str,
        values: Mapping[str, bytes],
        expires: float,
    ) -> None:
        """Keep values by their keys.

        :param account: the account that the values belong to
        :param place: the key that selects the memcached server
        :param expires: when to drop the values, by the monotonic clock
        """
        cache = SharedCache(env)
        seconds = _shared_seconds(cache, expires - time.monotonic())
        is_shared = seconds > 0 and cache.put(place, True, seconds)
        has_failed = seconds > 0 and not is_shared
        now = time.monotonic()
        seconds = _shared_seconds(cache, expires - now)
        dropped: dict[str, _Put] = {}
        for key, value in values.items():
            put = _Put(place, expires, None if is_shared else value)
            size = len(value) + len(key) + OVERHEAD_BYTES
            dropped |= self._puts.set(account, key, put, size)
        # Some of the oldest values may have been put again.
        dropped = {
            key: put
            for key, put in dropped.items()
            if self._puts.get(account, key) is None
        }
        if not has_failed:
            self._drop(cache, dropped, now)
        if is_shared and seconds > 0:
            shared = {k: v for k, v in values.items() if k not in dropped}
            cache.set_bytes_together(shared, place, seconds)

    def _own(self, account: str, key: str) -> bytes | None:
        put = self._puts.get(account, key)
        if put is None or put.expires <= time.monotonic():
            return None
        return put.value

    def _drop(
        self, cache: SharedCache, dropped: Mapping[str, _Put], now: float
    ) -> None:
        by_place: dict[str, dict[str, bytes]] = defaultdict(dict)
        for key, put in dropped.items():
            if put.value is None and put.expires > now:
                by_place[put.place][key] = _DROPPED
        for place, values in by_place.items():
            cache.set_bytes_together(values, place, 1)


def _shared_seconds(cache: SharedCache, seconds: float) -> int:
    """Return for how long memcached may keep what may be kept for a time."""
    return math.floor(seconds) - ROUNDING_SECONDS - cache.latest_seconds
