# SPDX-License-Identifier: Apache-2.0
"""The requests to shards that a listing takes, without a cluster. Pure.

:class:`shardmw.core.listing_page.Page` makes the requests, as in the filter.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from shardmw.core.listing_page import Page
from shardmw.core.listing_rows import Rows
from shardmw.core.placement import shard_of


def names_by_shard(names: Iterable[str], shards: int) -> list[list[str]]:
    """Return the names of each shard, in the given order."""
    found: list[list[str]] = [[] for _ in range(shards)]
    for name in names:
        found[shard_of(name, shards)].append(name)
    return found


def asked_of_all(
    shards: Sequence[Sequence[str]], limit: int
) -> dict[str, int]:
    """Return the requests of a listing of all names in pages of a limit.

    :param shards: the names in each, in ascending order; at least one name
    :returns: ``pages``, ``rows``, ``requests`` (to the root and to shards),
              ``most_requests`` (of one page), ``refills`` (further requests
              to the same shard for one page), ``rows_asked`` (the sum of the
              limits of the requests) and ``rows_given`` (in the responses)
    """
    wanted = sum(map(len, shards))
    #: the requests to shards, by page
    asked: list[int] = []
    listed = rows_asked = rows_given = 0
    marker = ''
    while listed < wanted:
        page = Page(range(len(shards)), limit)
        asked.append(0)
        while asks := page.asks():
            asked[-1] += len(asks)
            for ask in asks:
                names = shards[ask.source]
                first = bisect_right(names, ask.marker or marker)
                rows = list(names[first : first + ask.limit])
                rows_asked += ask.limit
                rows_given += len(rows)
                page.add(ask, Rows(rows, rows))
        names = page.rows().names
        listed += len(names)
        marker = names[-1]
    return {
        'pages': len(asked),
        'rows': listed,
        # one more to the root for each page
        'requests': sum(asked) + len(asked),
        'most_requests': max(asked) + 1,
        'refills': sum(asked) - len(shards) * len(asked),
        'rows_asked': rows_asked,
        'rows_given': rows_given,
    }
