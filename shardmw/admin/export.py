# SPDX-License-Identifier: Apache-2.0
"""All names of a container, read without the filter."""

import heapq
from collections.abc import Iterator
from operator import itemgetter
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT

from shardmw.admin.cluster import API_VERSION, SwiftCluster
from shardmw.backend.containers import BackendError
from shardmw.layout.adoption import listed_backing
from shardmw.paths import Path
from shardmw.placement import hidden_account

#: How many rows to hold in memory at most.
ROWS_IN_MEMORY = 200_000

_NAME = itemgetter('name')


def export(
    cluster: SwiftCluster, account: str, container: str
) -> Iterator[dict]:
    """List all rows of a container, in the order of their names.

    Strays and rows of earlier layouts are among them. They are read before
    the shards that they may move to meanwhile. While a layout changes, rows
    that move as they are read may be missing.

    :returns: rows as in Swift's JSON listings, each name once
    :raises AdminError: if the container does not exist
    :raises BackendError: if a database cannot be read
    """
    root = cluster.root(account, container)
    target = cluster.logical(account, container, root)
    path = Path(API_VERSION, account, container)
    if target is None:
        yield from _once(rows_of(cluster, path, CONTAINER_LISTING_LIMIT))
        return
    hidden = hidden_account(account)
    earlier = [
        Path(API_VERSION, hidden, each.container)
        for each in listed_backing(cluster.backend, cluster.base, path)
        if not target.layout.has(each.name.layout_id, each.name.shard)
    ]
    elsewhere = sorted(
        (
            row
            for place in (*earlier, path)
            for row in rows_of(cluster, place, CONTAINER_LISTING_LIMIT)
        ),
        key=_NAME,
    )
    page = ROWS_IN_MEMORY // target.layout.backing_count
    page = min(page, CONTAINER_LISTING_LIMIT)
    shards = [
        rows_of(cluster, target.backing_path(shard), page, must_exist=True)
        for shard in target.shards()
    ]
    yield from _once(heapq.merge(*shards, elsewhere, key=_NAME))


def rows_of(
    cluster: SwiftCluster, path: Path, page: int, must_exist: bool = False
) -> Iterator[dict]:
    """List the rows of one container.

    :param page: how many rows to ask for at once
    """
    marker = ''
    while True:
        answer = cluster.backend.send(
            cluster.base,
            'GET',
            path.to_wsgi(),
            f'format=json&limit={page}&marker={quote(marker)}',
        )
        if answer.is_missing and not must_exist:
            return
        if not answer.is_success:
            raise BackendError(
                None,
                answer.status,
                f'{path.account}/{path.container} answered {answer.status}',
            )
        rows = answer.rows()
        yield from rows
        if len(rows) < page:
            return
        marker = rows[-1]['name']


def _once(rows: Iterator[dict]) -> Iterator[dict]:
    """Leave out rows of a name that has come before."""
    last = None
    for row in rows:
        if row['name'] != last:
            yield row
        last = row['name']
