# SPDX-License-Identifier: Apache-2.0
"""Pages that are read ahead for a client that walks through a container.

A page of few rows costs a request to each shard, as a page of many rows does.
The next page of a walk is nearly always asked for right after this one. So a
page that follows another one is read together with the pages behind it, which
are kept in memcached until a client writes to the container, for a few seconds
at most. A walk reads ahead as many pages as it has asked for so far, so that
few are read in vain if it ends.

A request for a kept page reads the root only. The root decides whether the
client may list, and tells whether there are strays.
"""

import json
from typing import NamedTuple

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.write_marks import WriteMarks
from shardmw.listing.params import ListingParams
from shardmw.listing.rows import Rows, parse_rows, to_json
from shardmw.stats.sums import ContainerStats

PAGE_KEY = 'shardmw/page'

#: A page with more rows a shard is not kept: its rows cost more than the
#: requests.
PAGE_ROWS_PER_SHARD = 96

#: How many rows to read of each shard for the pages of a walk, and of all.
ROWS_PER_SHARD = 512
MOST_ROWS = 10_000

#: By default, memcached takes values of at most a million bytes.
MOST_BYTES = 900_000


class KeptPage(NamedTuple):
    """What is known of a page.

    :param ahead: how many pages to read from there on
    :param stats: the sums over the shards
    :param rows: its rows; None if they are not kept
    """

    ahead: int
    stats: ContainerStats
    rows: Rows | None


class Walks:
    """Keeps the pages that walks will ask for next.

    :param seconds: how long to keep pages; 0: not at all
    """

    def __init__(self, marks: WriteMarks, seconds: int) -> None:
        self.marks = marks
        self.seconds = seconds

    def kept(
        self, env: dict, target: LogicalContainer, params: ListingParams
    ) -> KeptPage | None:
        """Return what is kept of a page, None if nothing is."""
        if not params.marker or not self._is_kept(target, params):
            return None
        value = self.marks.kept(env, target, _key(params))
        if value is None:
            return None
        ahead, objects, size, body = value
        rows = None if body is None else parse_rows(body.encode())
        return KeptPage(ahead, ContainerStats(objects, size), rows)

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        params: ListingParams,
        rows: Rows,
        stats: ContainerStats,
        ahead: int,
        asked: float,
    ) -> None:
        """Keep the rows behind a page, and that a walk has come as far.

        :param params: those of the page
        :param rows: those of the page and behind it
        :param stats: the sums over the shards
        :param ahead: how many pages have been read
        :param asked: when they were asked for, by the monotonic clock
        """
        limit = params.limit
        if len(rows.names) < limit or not self._is_kept(target, params):
            return
        values = {}
        for begin in range(limit, limit * ahead, limit):
            if begin > len(rows.names):
                break
            page = rows.texts[begin : begin + limit]
            values[_key(params, rows.names[begin - 1])] = _value(
                ahead, stats, page
            )
        if len(rows.names) == limit * ahead:
            most = min(MOST_ROWS, ROWS_PER_SHARD * target.layout.shards)
            values[_key(params, rows.names[-1])] = _value(
                min(2 * ahead, max(1, most // limit)), stats, None
            )
        self.marks.keep(env, target, values, asked, self.seconds)

    def _is_kept(
        self, target: LogicalContainer, params: ListingParams
    ) -> bool:
        return (
            self.seconds > 0
            and not params.is_unordered
            # Container servers omit some rows, depending on the marker.
            and params.path is None
            and params.limit > 0
            and params.limit <= PAGE_ROWS_PER_SHARD * target.layout.shards
        )


def _key(params: ListingParams, marker: str | None = None) -> str:
    """Return the key of a page: its parameters.

    :param marker: in place of the client's marker
    """
    page = json.dumps(
        [
            params.limit,
            params.marker if marker is None else marker,
            params.end_marker,
            params.prefix,
            params.delimiter,
            params.path,
            params.reverse,
        ]
    )
    return f'{PAGE_KEY}/{page}'


def _value(
    ahead: int, stats: ContainerStats, texts: list[bytes] | None
) -> list:
    body = None if texts is None else to_json(texts).decode()
    if body is not None and len(body) > MOST_BYTES:
        body = None
    return [ahead, *stats, body]
