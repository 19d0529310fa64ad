# SPDX-License-Identifier: Apache-2.0
"""Values that are kept for some seconds: in memcached, or by one worker.

No value is kept longer than allowed, even if the clocks of processes differ:
memcached drops it. Memcached counts whole seconds and may get a value late, so
values expire there some seconds earlier. If memcached does not answer, or if
no time would be left there, a worker keeps the value itself.

A worker remembers which values it has stored. Beyond a number of bytes, it
drops the oldest ones, of one account or of all. An account has at most a
quarter of the bytes, so a client that requests ever new values displaces older
values of its own account, and not what Swift has in memcached.
"""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shardmw.core.bounded import SizedStore
from shardmw.swift.memcached import ROUNDING_SECONDS, SharedCache

#: One account may have at most this part of all bytes: one quarter.
FULL_ACCOUNTS = 4

#: The most bytes that a value takes in addition to itself and its key.
OVERHEAD_BYTES = 1000

#: What replaces a value in memcached, for a second, to drop it.
_DROPPED = b''


class _Put(NamedTuple):
    """A value that a worker has stored.

    :param place: the key that selects the memcached server
    :param expires: when to drop the value, by the monotonic clock
    :param value: None if memcached has it
    """

    place: str
    expires: float
    value: bytes | None


class ShortStore:
    """Keeps values in memcached, or in this process if it is unavailable.

    :param most_bytes: the most bytes of all values that this worker stores; 0:
                       keep nothing
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._puts = SizedStore(most_bytes // FULL_ACCOUNTS, most_bytes)

    def get(
        self,
        env: dict,
        account: str,
        place: str,
        keys: Sequence[str],
        seconds: int,
    ) -> list[bytes | None]:
        """Return the values of some keys, None for a key without a value.

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
        # Some of the oldest values may have been stored again.
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
    """Return for how long memcached may keep a value of some seconds."""
    return math.floor(seconds) - ROUNDING_SECONDS - cache.latest_seconds
