# SPDX-License-Identifier: Apache-2.0
"""Pages of listings that are kept until a client writes to the container.

A page of few rows costs a request to each shard, as a page of many rows does,
and with a delimiter, each shard has nearly all pseudo-directories. So such a
page is kept in memcached, for a few seconds at most, and further requests for
the same page get it from there.

The next page of a walk is nearly always asked for right after this one. So a
page that follows another one is read together with the pages behind it, which
are kept, too. A walk reads ahead as many pages as it has asked for so far, so
that few are read in vain if it ends.

A request for a kept page reads the root only. The root decides whether the
client may list, and tells whether there are strays.
"""

import json
from typing import NamedTuple

import orjson
from swift.common.constraints import CONTAINER_LISTING_LIMIT

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.write_marks import WriteMarks
from shardmw.listing.container_order import S3_SOURCE
from shardmw.listing.params import ListingParams
from shardmw.listing.rows import Rows, to_json
from shardmw.stats.sums import ContainerStats

#: The keys of pages, and of the number of pages to read together.
PAGE_KEY = 'shardmw/page'
AHEAD_KEY = 'shardmw/ahead'

#: A page with more rows a shard is not kept, unless it has a delimiter: its
#: rows cost more than the requests.
PAGE_ROWS_PER_SHARD = 96

#: How many rows to read of each shard for the pages of a walk, and of all.
ROWS_PER_SHARD = 512
MOST_ROWS = 10_000

#: How many pages to read at once. Each is an entry of memcached.
MOST_PAGES = 100

#: By default, memcached takes values of at most a million bytes.
MOST_BYTES = 900_000


class KeptPage(NamedTuple):
    """Holds what memcached has of a page of a listing.

    :param ahead: how many pages to read from there on
    :param body: the page as JSON; None if it has to be read
    :param stats: the sums over the shards; None with the body
    """

    ahead: int = 1
    body: bytes | None = None
    stats: ContainerStats | None = None


class PageCache:
    """Keeps the pages that were read, and those that walks will ask for.

    :param seconds: how long to keep pages; 0: not at all
    """

    def __init__(self, marks: WriteMarks, seconds: int) -> None:
        self.marks = marks
        self.seconds = seconds

    def kept(
        self, env: dict, target: LogicalContainer, params: ListingParams
    ) -> KeptPage | None:
        """Return what is kept of a page.

        :returns: None if nothing can be kept of it now
        """
        if not self._is_kept(params):
            return None
        keys = [_key(kind, params) for kind in (PAGE_KEY, AHEAD_KEY)]
        values = self.marks.kept(env, target, keys)
        if values is None:
            return None
        page, ahead = values
        if page is None:
            return KeptPage(*(ahead or ()))
        body, objects, size = page
        return KeptPage(1, body.encode(), ContainerStats(objects, size))

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        params: ListingParams,
        rows: Rows,
        body: bytes,
        stats: ContainerStats,
        ahead: int,
        asked: float,
    ) -> None:
        """Keep a page, the pages behind it, and how many to read next.

        This is for pages of which :meth:`kept` says that they can be kept.

        :param params: those of the page
        :param rows: those of the page and behind it
        :param body: the page as JSON
        :param stats: the sums over the shards
        :param ahead: how many pages have been read
        :param asked: when they were asked for, by the monotonic clock
        """
        if not _saves_time(target, params, rows):
            return
        text = _fitting(body)
        if text is None:
            return
        values = {_key(PAGE_KEY, params): [text, *stats]}
        if _reads_ahead(target, params):
            values |= _behind(env, target, params, rows, stats, ahead)
        self.marks.keep(env, target, values, asked, self.seconds)

    def _is_kept(self, params: ListingParams) -> bool:
        return (
            self.seconds > 0
            and not params.is_unordered
            # Container servers omit some rows, depending on the marker.
            and params.path is None
            and params.limit > 0
        )


def _saves_time(
    target: LogicalContainer, params: ListingParams, rows: Rows
) -> bool:
    """Return True if a page costs more to read than to keep."""
    count = min(params.limit, len(rows.names))
    return (
        params.has_levels()
        or count <= PAGE_ROWS_PER_SHARD * target.layout.shards
    )


def _reads_ahead(target: LogicalContainer, params: ListingParams) -> bool:
    return (
        params.limit <= PAGE_ROWS_PER_SHARD * target.layout.shards
        and _most_pages(target, params) > 1
    )


def _behind(
    env: dict,
    target: LogicalContainer,
    params: ListingParams,
    rows: Rows,
    stats: ContainerStats,
    ahead: int,
) -> dict[str, list]:
    """Return what to keep of the pages behind a page, by their keys."""
    limit, step = params.limit, _step(env, params)
    if len(rows.names) < limit or step == 0:
        return {}
    values = {}
    for begin in range(step, step * ahead, step):
        if begin > len(rows.names):
            break
        text = _fitting(to_json(rows.texts[begin : begin + limit]))
        if text is not None:
            key = _key(PAGE_KEY, params, rows.names[begin - 1])
            values[key] = [text, *stats]
    if len(rows.names) == limit * ahead:
        key = _key(AHEAD_KEY, params, rows.names[step * ahead - 1])
        values[key] = [min(2 * ahead, _most_pages(target, params))]
    return values


def _key(kind: str, params: ListingParams, marker: str | None = None) -> str:
    """Return the key of something of a page: the page's parameters.

    :param marker: in place of the client's marker
    """
    page = json.dumps(
        [
            params.limit,
            params.marker if marker is None else marker,
            params.end_marker,
            params.prefix,
            params.delimiter,
            params.reverse,
        ]
    )
    return f'{kind}/{page}'


def _step(env: dict, params: ListingParams) -> int:
    """Return how many rows the pages of a walk are apart.

    s3api asks for one row more than its client, to see if there are more.
    """
    is_s3 = env.get('swift.source') == S3_SOURCE
    return params.limit - 1 if is_s3 else params.limit


def _most_pages(target: LogicalContainer, params: ListingParams) -> int:
    """Return how many pages of a walk to read at once.

    Container servers refuse to list more rows than Swift's limit. Each shard
    may have all pseudo-directories of a page.
    """
    shards = 1 if params.has_levels() else target.layout.shards
    most = min(MOST_ROWS, CONTAINER_LISTING_LIMIT)
    rows = min(most, ROWS_PER_SHARD * shards)
    return min(MOST_PAGES, max(1, rows // params.limit))


def _fitting(body: bytes) -> str | None:
    """Return the text of a page, None if it is too large for memcached."""
    if len(body) > MOST_BYTES:
        return None
    text = body.decode()
    return text if len(orjson.dumps(text)) <= MOST_BYTES else None
