# SPDX-License-Identifier: Apache-2.0
"""Pages of listings that may be some seconds old, and those read ahead.

A page of few rows costs a request to each shard, as a page of many rows does,
and with a delimiter, each shard has nearly all pseudo-directories. If the
listings of a container may be T seconds old
(:mod:`shardmw.proxy.listing.max_age`), a page that was read is kept for that
time, even if clients write meanwhile.

In a walk through a container, the next page is nearly always requested right
after this one. So a page that follows another one is read together with the
pages after it, which are kept, too. A walk reads ahead as many pages as it has
requested so far, or as many as cost little, so that few are wasted if it ends.

The age of a page counts from when its reading began: every object that has
existed since then is in it. Each page begins after the last name of the
previous one. So a walk shows each object that existed from T seconds before
the walk until its end, and none twice.
"""

import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import orjson
from swift.common.constraints import CONTAINER_LISTING_LIMIT

from shardmw.backend.answers import ContainerStats
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.short_store import ShortStore
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import Rows, to_json
from shardmw.proxy.listing.container_order import S3_SOURCE

#: The keys of pages, and of the number of pages to read together.
PAGE_KEY = 'shardmw/page'
AHEAD_KEY = 'shardmw/ahead'

#: How many rows to read ahead of each shard, at first and at most, and the
#: most of all shards. The first ones cost a shard less than the request.
FIRST_ROWS_PER_SHARD = 16
ROWS_PER_SHARD = 512
MOST_ROWS = 10_000

#: The most pages to read at once. Each is an entry of memcached.
MOST_PAGES = 100

#: The most bytes of a page. By default, memcached refuses entries of more than
#: 1,048,576 bytes.
MOST_BYTES = 1_000_000

_NEWLINE = b'\n'


class Page(NamedTuple):
    """A page that was read some time ago.

    :param read_at: when its reading began, in seconds since the epoch
    :param stats: the figures of the container at that time
    :param body: the page as JSON
    """

    read_at: float
    stats: ContainerStats
    body: bytes

    def age(self) -> float:
        """Return how many seconds old the page is.

        It is negative if the clock of the process that read it is ahead.
        """
        return time.time() - self.read_at

    def encode(self) -> bytes:
        """Return the page as bytes for :meth:`decode`."""
        head = orjson.dumps([self.read_at, *self.stats])
        return head + _NEWLINE + self.body

    @classmethod
    def decode(cls, value: bytes) -> 'Page':
        """Return the page that was encoded."""
        head, _, body = value.partition(_NEWLINE)
        read_at, *stats = orjson.loads(head)
        return cls(read_at, ContainerStats(*stats), body)


class KeptPages:
    """Keeps the pages that were read, and those that were read ahead.

    No page is kept while the layout of its container changes.
    """

    def __init__(self, store: ShortStore) -> None:
        self.store = store

    def find(
        self,
        env: dict,
        target: LogicalContainer,
        params: ListingParams,
        seconds: int,
    ) -> tuple[int, Page | None]:
        """Return a page that is kept, and how many pages to read if not.

        :param seconds: for how long pages of the container are kept
        :returns: how many pages to read from there on, 0 for one that cannot
                  be kept, and the page, None if it has to be read
        """
        if not (self.store.most_bytes and _can_be_kept(target, params)):
            return 0, None
        keys = [
            _key(kind, target, params, params.marker, seconds)
            for kind in (PAGE_KEY, AHEAD_KEY)
        ]
        page, ahead = self.store.get(
            env, target.account, _place(target), keys, seconds
        )
        ahead = min(int(ahead or 1), _most_pages(target, params))
        return ahead, Page.decode(page) if page else None

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        params: ListingParams,
        rows: Rows,
        page: Page,
        ahead: int,
        seconds: int,
        expires: float,
    ) -> None:
        """Keep a page, the pages after it, and how many to read next.

        :param params: those of the page
        :param rows: those of the page and of the pages after it
        :param ahead: how many pages have been read
        :param seconds: for how long pages of the container are kept
        :param expires: when to drop them, by the monotonic clock
        """
        if target.layout.is_changing:
            return
        pages = {
            _key(PAGE_KEY, target, params, marker, seconds): each.encode()
            for marker, each in _pages(env, params, rows, page, ahead)
        }
        values = {k: v for k, v in pages.items() if len(v) <= MOST_BYTES}
        # Pages that cannot be kept are not read ahead.
        most = _most_pages(target, params) if len(values) == len(pages) else 1
        step = _step(env, params)
        if most > 1 and step and len(rows.names) == params.limit * ahead:
            last = rows.names[step * ahead - 1]
            key = _key(AHEAD_KEY, target, params, last, seconds)
            first = FIRST_ROWS_PER_SHARD * _shards(target, params)
            following = max(2 * ahead, first // params.limit)
            values[key] = b'%d' % min(following, most)
        self.store.put(env, target.account, _place(target), values, expires)


def _can_be_kept(target: LogicalContainer, params: ListingParams) -> bool:
    return not (
        target.layout.is_changing
        or params.is_unordered
        # Container servers omit some rows, depending on the marker.
        or params.path is not None
        or params.limit == 0
        # Container servers fail if a name after the page has such a delimiter.
        or params.has_unskippable_delimiter()
    )


def _pages(
    env: dict, params: ListingParams, rows: Rows, page: Page, ahead: int
) -> Iterator[tuple[str, Page]]:
    """Yield a page, and the pages after it, with their markers."""
    limit, step = params.limit, _step(env, params)
    yield params.marker, page
    if len(rows.names) < limit or step == 0:
        return
    for begin in range(step, step * ahead, step):
        if begin > len(rows.names):
            return
        body = to_json(rows.texts[begin : begin + limit])
        yield rows.names[begin - 1], page._replace(body=body)


def _place(target: LogicalContainer) -> str:
    """Return the key that selects a memcached server for a container."""
    return f'{PAGE_KEY}/{target.account}/{target.container}'


def _key(
    kind: str,
    target: LogicalContainer,
    params: ListingParams,
    marker: str,
    seconds: int,
) -> str:
    """Return the memcached key of one kind of entry of a page.

    The layout's id is different for a container that was created again.

    :param marker: that of the page, in place of the client's
    :param seconds: for how long it is kept. After a change of this setting,
                    older entries are not used any more
    """
    page = json.dumps(
        [
            params.limit,
            marker,
            params.end_marker,
            params.prefix,
            params.delimiter,
            params.reverse,
            seconds,
        ]
    )
    path = f'{target.account}/{target.container}/{target.layout.id}'
    return f'{kind}/{path}/{page}'


def _step(env: dict, params: ListingParams) -> int:
    """Return how many rows the pages of a walk are apart.

    s3api asks for one row more than its client, to see if there are more.
    """
    is_s3 = env.get('swift.source') == S3_SOURCE
    return params.limit - 1 if is_s3 else params.limit


def _shards(target: LogicalContainer, params: ListingParams) -> int:
    """Return over how many shards the rows of a page are spread.

    Each shard may have all pseudo-directories of a page.
    """
    return 1 if params.has_levels() else target.layout.shards


def _most_pages(target: LogicalContainer, params: ListingParams) -> int:
    """Return how many pages of a walk to read at once.

    Container servers refuse to list more rows than Swift's limit.
    """
    shards = _shards(target, params)
    most = min(MOST_ROWS, CONTAINER_LISTING_LIMIT)
    rows = min(most, ROWS_PER_SHARD * shards)
    return min(MOST_PAGES, max(1, rows // params.limit))
