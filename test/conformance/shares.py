# SPDX-License-Identifier: Apache-2.0
"""How many of the clients' requests each proxy has had. Pure."""

import re
from collections.abc import Iterable, Mapping

# A proxy gives one to each request of a client, which has it in common with
# the requests that the proxy makes of it.
_TRANSACTION = re.compile(r'\btx[0-9a-f]{21}-[0-9a-f]{10}')


def count_requests(log: Iterable[str]) -> int:
    """How many requests a proxy has had, by the lines of its log."""
    return len({found for line in log for found in _TRANSACTION.findall(line)})


def are_fair(requests: Mapping[str, int]) -> bool:
    """Whether no proxy has had twice as many as another.

    Of two that take turns, the logs still don't tell just the same: not all
    that a proxy refuses gets a transaction.
    """
    if len(requests) < 2:
        return True
    return max(requests.values()) < 2 * min(requests.values())


def in_words(requests: Mapping[str, int]) -> str:
    """The numbers, with the names of the proxies."""
    return ', '.join(f'{name} {n:,}' for name, n in requests.items())
