# SPDX-License-Identifier: Apache-2.0
"""All rows of a container, in the order of their names."""

import heapq
import itertools
from collections.abc import Iterator
from operator import itemgetter

from shardmw.admin.walk import ROWS_IN_MEMORY, Places, rows_of
from shardmw.reshard.cluster import SwiftCluster

_NAME = itemgetter('name')


def export(
    cluster: SwiftCluster, places: Places, prefix: str = '', after: str = ''
) -> Iterator[dict]:
    """List all rows of a container, in the order of their names.

    Strays and rows of earlier layouts are included. In each range of names,
    the places that rows move out of are read before those that they move into:
    a row that moves meanwhile is found in one of the two.

    :param prefix: what the names begin with
    :param after: the name to begin after
    :returns: rows as in Swift's JSON listings, each name once
    :raises BackendError: if a database cannot be read
    """
    yield from _once(_Merge(cluster, places, prefix).rows(0, after, ''))


class _Merge:
    """Merges the rows of places that are read in stages."""

    def __init__(
        self, cluster: SwiftCluster, places: Places, prefix: str
    ) -> None:
        self._cluster = cluster
        self._places = places
        self._prefix = prefix
        # Half of the memory is for pages, half for windows.
        self._window = max(1, ROWS_IN_MEMORY // 2 // len(places.stages))

    def rows(self, stage: int, after: str, end: str) -> Iterator[dict]:
        """List the rows of a stage and all later ones, by name.

        A stage is read in windows. After each window, the later stages are
        read over the same range of names.

        :param stage: its index
        :param after: the name to begin after, '' for the first one
        :param end: the last name, '' for no bound
        """
        rows = self._of_stage(stage, after)
        if end:
            rows = itertools.takewhile(lambda row: row['name'] <= end, rows)
        if stage == len(self._places.stages) - 1:
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
        paths = self._places.stages[stage]
        # A place has a page that is merged and one that is read ahead.
        page = max(1, self._window // len(paths) // 2)
        needed = self._places.needed
        return heapq.merge(
            *(
                rows_of(
                    self._cluster,
                    path,
                    page,
                    after,
                    path in needed,
                    self._prefix,
                )
                for path in paths
            ),
            key=_NAME,
        )


def _once(rows: Iterator[dict]) -> Iterator[dict]:
    """Yield the first row of each name."""
    last = None
    for row in rows:
        if row['name'] != last:
            yield row
        last = row['name']
