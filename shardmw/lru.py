# SPDX-License-Identifier: Apache-2.0
"""A dictionary and a function cache of bounded size: pure."""

import functools
from collections import OrderedDict
from collections.abc import Callable

#: The most characters of what a client sends that are kept as a key. Requests
#: can name accounts and containers that are longer than any that exist.
LONGEST_KEY = 512


def is_short(*texts: str | None) -> bool:
    """Return True if texts of a client may be kept as a key."""
    return sum(map(len, filter(None, texts))) <= LONGEST_KEY


def cached_if_short(count: int) -> Callable:
    """Return a decorator that keeps results for short texts.

    :param count: how many results to keep
    """

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(count)(function)

        @functools.wraps(function)
        def call(*texts: str | None):
            return (kept if is_short(*texts) else function)(*texts)

        return call

    return decorate


class LRU(OrderedDict):
    """Keep the entries that were set last and drop the others.

    :param count: how many entries to keep
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def __setitem__(self, key, value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.count:
            self.popitem(last=False)
