# SPDX-License-Identifier: Apache-2.0
"""Read all rows of a container from its databases, without the filter."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from swift.common.utils import ContextPool

from shardmw.backend.answers import next_marker
from shardmw.backend.backing_containers import listed_backing
from shardmw.backend.containers import BackendError
from shardmw.backend.page_limits import container_page
from shardmw.core.layout import PLAIN
from shardmw.core.paths import Path
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError

#: How many rows to hold in memory at most.
ROWS_IN_MEMORY = 200_000

#: How many places to read side by side.
SIDE_BY_SIDE = 16

Item = TypeVar('Item')

_pages = ContextPool(SIDE_BY_SIDE)


class Places(NamedTuple):
    """The places of a container's rows.

    :param stages: the places of each stage, in the order to read them
    :param needed: the places that must exist
    :param serial: tells one layout from another; '' for a container that was
                   never sharded
    :param is_changing: True while the layout changes
    """

    stages: list[list[Path]]
    needed: frozenset[Path]
    serial: str
    is_changing: bool


def places_of(cluster: SwiftCluster, path: Path) -> Places:
    """Return the places that may have rows of a container.

    Those of strays and of earlier layouts are included. The places that rows
    move out of come in an earlier stage than those that they move into: if a
    range of names is read stage by stage, a row that moves meanwhile is found
    in one of the two.

    :raises AdminError: if the container does not exist
    :raises BackendError: if a database cannot be read
    """
    root = cluster.root(path)
    target = cluster.logical(path, root)
    layout = root.record or PLAIN
    first = [
        each.path(path)
        for each in listed_backing(cluster.backend, cluster.base, path)
        if not layout.has(each.name.layout_id, each.name.shard)
    ]
    shards = [
        [target.backing_path(shard) for shard in stage]
        for stage in (target.read_stages() if target else ())
    ]
    if target and not target.moves_to_root:
        stages = [[*first, path], *shards]
    else:
        stages = [first, *shards, [path]]
    return Places(
        [stage for stage in stages if stage],
        frozenset(path for stage in shards for path in stage),
        root.record.serial if root.record else '',
        layout.is_changing,
    )


def walk(
    cluster: SwiftCluster,
    places: Places,
    prefix: str = '',
    after: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, dict]]:
    """List all rows of a container, in no order, from many places at a time.

    A row that moves meanwhile, or is in two places, may come twice.

    :param prefix: what the names begin with
    :param after: the name to begin after, by the place
    :returns: each row with the place that lists it
    :raises BackendError: if a database cannot be read
    """
    after = after or {}
    page = ROWS_IN_MEMORY // SIDE_BY_SIDE // 2

    def rows(path: Path) -> Iterator[tuple[str, dict]]:
        place = str(path.place)
        must_exist = path in places.needed
        marker = after.get(place, '')
        found = rows_of(cluster, path, page, marker, must_exist, prefix)
        return ((place, row) for row in found)

    for stage in places.stages:
        yield from taking_turns(map(rows, stage), SIDE_BY_SIDE)


def require_same(cluster: SwiftCluster, path: Path, places: Places) -> None:
    """Check that the layout of a container is still the same.

    Otherwise rows may have moved to places that have not been read.

    :param places: the places that have been read
    :raises AdminError: if it is another one, or the container is gone
    :raises BackendError: if it cannot be read
    """
    if places_of(cluster, path).serial != places.serial:
        raise AdminError(
            f'{path.place}: its layout changed meanwhile: run the command '
            'again'
        )


def is_unique(cluster: SwiftCluster, places: Places) -> bool:
    """Return True if no row of a container can be in two places.

    :raises BackendError: if a database cannot be read
    """
    return not places.is_changing and not any(
        next(rows_of(cluster, path, 1), None)
        for stage in places.stages[:-1]
        for path in stage
    )


def taking_turns(
    iterators: Iterable[Iterator[Item]], most: int
) -> Iterator[Item]:
    """Yield one item of each iterator in turn.

    :param most: how many of them take turns. When one ends, the next one takes
                 its place
    """
    others = iter(iterators)
    turns = deque(itertools.islice(others, most))
    while turns:
        each = turns.popleft()
        for item in each:
            yield item
            turns.append(each)
            break
        else:
            turns.extend(itertools.islice(others, 1))


def rows_of(
    cluster: SwiftCluster,
    path: Path,
    page: int,
    marker: str = '',
    must_exist: bool = False,
    prefix: str = '',
) -> Iterator[dict]:
    """List the rows of one container. A page is always read ahead.

    :param page: how many rows to ask for at once, if Swift allows it
    :param marker: the name to begin after
    :param prefix: what the names begin with
    :raises BackendError: if it cannot be read, or is missing and must exist
    """
    page = container_page(page)

    def read(marker: str) -> list[dict]:
        answer = cluster.backend.send(
            cluster.base,
            'GET',
            path.to_wsgi(),
            f'format=json&limit={page}&marker={quote(marker)}'
            f'&prefix={quote(prefix)}',
        )
        if answer.is_missing and not must_exist:
            return []
        if not answer.is_success:
            raise BackendError(
                None,
                answer.status,
                f'{path.place} answered {answer.status}',
            )
        rows = answer.rows()
        if rows:
            next_marker(path.place, marker, rows[-1]['name'])
        return rows

    # The first page is requested now, and not when it is needed.
    return _read_ahead(read, _pages.spawn(read, marker), page)


def _read_ahead(
    read: Callable[[str], list[dict]], reading, page: int
) -> Iterator[dict]:
    """Yield the rows of a page, and of all pages after it.

    :param read: returns the page after a name
    :param reading: the green thread that reads the first page
    :param page: the number of rows of every page but the last
    """
    try:
        while True:
            rows = reading.wait()
            is_last = len(rows) < page
            if not is_last:
                reading = _pages.spawn(read, rows[-1]['name'])
            yield from rows
            if is_last:
                return
    finally:
        reading.kill()
