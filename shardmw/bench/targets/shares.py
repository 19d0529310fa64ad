# SPDX-License-Identifier: Apache-2.0
"""What a listing asks of the shards, page by page, without a cluster. Pure.

The queries are those of the filter, by :class:`shardmw.listing.merge.Page`,
over names that lie where the filter puts them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shardmw.listing.merge import Page
from shardmw.listing.rows import Rows
from shardmw.placement import shard_of


class Asked(NamedTuple):
    """The requests and rows that listing all names took.

    The root is asked, too, and has no rows.

    :param requests: all requests to the root and to shards
    :param most_requests: the most requests for one page
    :param refills: the requests to a shard that was asked before
    :param rows_asked: the sum of the limits of the requests
    :param rows_given: the rows that the shards returned
    """

    pages: int
    rows: int
    requests: int
    most_requests: int
    refills: int
    rows_asked: int
    rows_given: int

    @property
    def asked_by_row(self) -> float:
        """Return the rows asked for each row of the pages."""
        return self.rows_asked / self.rows


def names_by_shard(names: Iterable[str], shards: int) -> list[list[str]]:
    """Return names by the shards that they lie in.

    :param names: in ascending order
    """
    found: list[list[str]] = [[] for _ in range(shards)]
    for name in names:
        found[shard_of(name, shards)].append(name)
    return found


def asked_of_all(shards: Sequence[Sequence[str]], limit: int) -> Asked:
    """Return what it takes to list all names, in pages of so many rows.

    :param shards: the names in each, in ascending order; at least one name
    """
    wanted = sum(map(len, shards))
    #: requests to shards, by page
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
    return Asked(
        pages=len(asked),
        rows=listed,
        # the root, too, for each page
        requests=sum(asked) + len(asked),
        most_requests=max(asked) + 1,
        refills=sum(asked) - len(shards) * len(asked),
        rows_asked=rows_asked,
        rows_given=rows_given,
    )
