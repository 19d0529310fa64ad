# SPDX-License-Identifier: Apache-2.0
"""All names of a container, read without the filter."""

import heapq
import itertools
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from urllib.parse import quote

from shardmw.backend.backing_containers import listed_backing
from shardmw.backend.containers import BackendError
from shardmw.backend.page_limits import container_page
from shardmw.core.layout import PLAIN
from shardmw.core.paths import Path
from shardmw.reshard.cluster import SwiftCluster

#: How many rows to hold in memory at most.
ROWS_IN_MEMORY = 200_000

_NAME = itemgetter('name')


def export(cluster: SwiftCluster, path: Path) -> Iterator[dict]:
    """List all rows of a container, in the order of their names.

    Strays and rows of earlier layouts are included. In each range of names,
    the places that rows move out of are read before those that they move into:
    a row that moves meanwhile is found in one of the two.

    :returns: rows as in Swift's JSON listings, each name once
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
    if target and target.moves_to_root:
        stages = [first, *shards, [path]]
    else:
        stages = [[*first, path], *shards]
    needed = [path for stage in shards for path in stage]
    merge = _Merge(cluster, [stage for stage in stages if stage], needed)
    yield from _once(merge.rows(0, '', ''))


class _Merge:
    """Merges the rows of places that are read in stages.

    :param stages: the places of each stage, in the order to read them
    :param needed: the places that must exist
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        stages: Sequence[Sequence[Path]],
        needed: Collection[Path],
    ) -> None:
        self._cluster = cluster
        self._stages = stages
        self._needed = needed
        # Half of the memory is for pages, half for windows.
        self._window = max(1, ROWS_IN_MEMORY // 2 // len(stages))

    def rows(self, stage: int, after: str, end: str) -> Iterator[dict]:
        """List the rows of a stage and all later ones, by name.

        A stage is read in windows. After each window, the later stages are
        read over the same range of names.

        :param after: the name to begin after, '' for the first one
        :param end: the last name, '' for no bound
        """
        rows = self._of_stage(stage, after)
        if end:
            rows = itertools.takewhile(lambda row: row['name'] <= end, rows)
        if stage == len(self._stages) - 1:
            yield from rows
            return
        while True:
            window = list(itertools.islice(rows, self._window))
            is_last = len(window) < self._window
            window_end = end if is_last else window[-1]['name']
            later = self.rows(stage + 1, after, window_end)
            yield from heapq.merge(window, later, key=_NAME)
            if is_last:
                return
            after = window_end

    def _of_stage(self, stage: int, after: str) -> Iterator[dict]:
        places = self._stages[stage]
        page = max(1, self._window // len(places))
        return heapq.merge(
            *(
                rows_of(self._cluster, path, page, after, path in self._needed)
                for path in places
            ),
            key=_NAME,
        )


def rows_of(
    cluster: SwiftCluster,
    path: Path,
    page: int,
    marker: str = '',
    must_exist: bool = False,
) -> Iterator[dict]:
    """List the rows of one container.

    :param page: how many rows to ask for at once, if Swift allows it
    :param marker: the name to begin after
    :raises BackendError: if it cannot be read, or is missing and must exist
    """
    page = container_page(page)
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
                f'{path.place} answered {answer.status}',
            )
        rows = answer.rows()
        yield from rows
        if len(rows) < page:
            return
        marker = rows[-1]['name']


def _once(rows: Iterator[dict]) -> Iterator[dict]:
    """Yield the first row of each name."""
    last = None
    for row in rows:
        if row['name'] != last:
            yield row
        last = row['name']
