# SPDX-License-Identifier: Apache-2.0
"""Dictionaries and a function cache of bounded size: pure."""

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator

#: The longest text from a client, in characters, that is kept as a key. Names
#: of accounts and containers in requests can be longer than any that exist.
LONGEST_KEY = 512


def is_short(*texts: str | None) -> bool:
    """Return True if texts from a client may be kept as a key."""
    return sum(map(len, filter(None, texts))) <= LONGEST_KEY


class BoundedDict:
    """A dictionary that keeps the entries that were set last.

    The entries are in two dictionaries. When the younger one is full or old,
    it becomes the older one, whose entries are dropped.

    :param count: the fewest entries to keep; at most twice as many are kept
    :param seconds: the shortest time to keep them
    :param clock: returns seconds that never go back
    """

    def __init__(
        self,
        count: int,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = count
        self.seconds = seconds
        self.clock = clock
        self.clear()

    def clear(self) -> None:
        """Drop all entries."""
        self._young: dict = {}
        self._old: dict = {}
        self._began = self.clock()

    def __setitem__(self, key, value) -> None:
        now = self.clock()
        is_old = now - self._began >= self.seconds
        is_full = len(self._young) >= self.count and key not in self._young
        if is_old or is_full:
            self._old, self._young = self._young, {}
            self._began = now
        self._old.pop(key, None)
        self._young[key] = value

    def __contains__(self, key) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __iter__(self) -> Iterator:
        yield from self._old
        yield from self._young

    def get(self, key, default=None):
        """Return the value of a key, without making it stay longer."""
        if key in self._young:
            return self._young[key]
        return self._old.get(key, default)

    def pop(self, key, default=None):
        """Remove a key and return its value."""
        return self._young.pop(key, self._old.pop(key, default))


class SizedStore:
    """A store of the entries that were set last, up to a number of bytes.

    :param owner_bytes: the most bytes of the entries of one owner
    :param most_bytes: the most bytes of all entries
    """

    def __init__(self, owner_bytes: int, most_bytes: int) -> None:
        self.owner_bytes = owner_bytes
        self.most_bytes = most_bytes
        # The sizes and values of each owner's entries. The entry that was set
        # last, and its owner, are at the end.
        self._owners: dict[str, dict[str, tuple[int, object]]] = {}
        self._sizes: Counter[str] = Counter()
        self._total = 0

    def get(self, owner: str, key: str):
        """Return the value of a key, None if there is none."""
        _, value = self._owners.get(owner, {}).get(key, (0, None))
        return value

    def set(self, owner: str, key: str, value, size: int) -> dict:
        """Set a value.

        :param size: its size in bytes
        :returns: the dropped entries by key, maybe including this one
        """
        if key in self._owners.get(owner, {}):
            self._drop(owner, key)
        self._owners[owner] = self._owners.pop(owner, {})
        self._owners[owner][key] = size, value
        self._sizes[owner] += size
        self._total += size
        dropped = {}
        while self._sizes[owner] > self.owner_bytes:
            dropped |= self._drop_first(owner)
        while self._total > self.most_bytes:
            dropped |= self._drop_first(next(iter(self._owners)))
        return dropped

    def _drop_first(self, owner: str) -> dict:
        key = next(iter(self._owners[owner]))
        return {key: self._drop(owner, key)}

    def _drop(self, owner: str, key: str):
        """Drop an entry and return its value."""
        size, value = self._owners[owner].pop(key)
        self._sizes[owner] -= size
        self._total -= size
        if not self._owners[owner]:
            del self._owners[owner], self._sizes[owner]
        return value


def cached_if_short(count: int) -> Callable:
    """Return a decorator that caches results for short texts.

    :param count: how many results to cache
    """

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(count)(function)

        @functools.wraps(function)
        def call(*texts: str | None):
            return (kept if is_short(*texts) else function)(*texts)

        return call

    return decorate
