# SPDX-License-Identifier: Apache-2.0
"""The share of the clients' requests that each proxy got. Pure."""

import re
from collections.abc import Iterable, Mapping

# A proxy gives a transaction id to each request of a client. The requests that
# it sends for it have the same id.
_TRANSACTION = re.compile(r'\btx[0-9a-f]{21}-[0-9a-f]{10}')


def count_requests(log: Iterable[str]) -> int:
    """Return how many requests a proxy got, by the lines of its log."""
    return len({found for line in log for found in _TRANSACTION.findall(line)})


def are_fair(requests: Mapping[str, int]) -> bool:
    """Return True if no proxy got twice as many requests as another.

    The logs of two proxies that take turns still differ a little: some
    requests that a proxy refuses get no transaction id.
    """
    if len(requests) < 2:
        return True
    return max(requests.values()) < 2 * min(requests.values())


def in_words(requests: Mapping[str, int]) -> str:
    """Return the numbers, with the names of the proxies, as text."""
    return ', '.join(f'{name} {n:,}' for name, n in requests.items())
