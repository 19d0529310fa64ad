# SPDX-License-Identifier: Apache-2.0
"""The paging plan and the merge: one page of a listing from many sources.

Pure: rows in, rows out; the caller carries the asks out. A *source* is one
container database, named by a number; a *row* is one entry of a container
listing, a dict with a ``name`` or a ``subdir``, as Swift's JSON has it.

Each source is asked for its share of the page only: with ``n`` sources and a
limit of ``m`` rows that is ``m / n`` and the slack that balls in bins need
(M. Raab, A. Steger, "Balls into Bins - A Simple and Tight Analysis", 1998).
A page is final up to the *frontier*, the first of the last names of those
sources that were cut off; a source whose rows ran out below the page's end is
asked again.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

Row = dict

#: Rows asked beyond the expected number, in standard deviations.
SLACK_DEVIATIONS = 2


class Ask(NamedTuple):
    """What to ask of one source next.

    :param source: which source
    :param marker: the last name it gave, None on the first ask
    :param limit: how many rows
    """

    source: int
    marker: str | None
    limit: int


class Page:
    """Collects rows until a page of a merged listing is final.

    Use: carry out every ask of :meth:`asks`, give what came back to
    :meth:`add`, until there are no more asks; then :meth:`rows` is the page.

    :param sources: the numbers of the sources
    :param limit: the page's size in rows
    :param reverse: whether names descend
    :param whole: a source to ask for the whole page at once
    """

    def __init__(
        self,
        sources: Iterable[int],
        limit: int,
        reverse: bool = False,
        whole: int | None = None,
    ) -> None:
        self.limit = limit
        self.reverse = reverse
        self.whole = whole
        # Rows in listing order and whether more may follow, by source.
        self._rows: dict[int, list[Row]] = {i: [] for i in sources}
        self._cut_off = dict.fromkeys(self._rows, True)
        # All rows merged; None when rows came since.
        self._merged: list[Row] | None = None

    def asks(self) -> list[Ask]:
        """The asks that are needed before the page is final."""
        if not any(self._rows.values()):
            return self._first_asks()
        return [
            Ask(source, name_of(rows[-1]), self._refill(rows))
            for source, rows in self._rows.items()
            if self._cut_off[source] and self._ends_inside(rows)
        ]

    def add(self, ask: Ask, rows: list[Row]) -> None:
        """Take what a source answered to an ask.

        :param rows: the rows, in listing order, at most ``ask.limit`` of
                     them; fewer mean that the source has no more
        """
        self._rows[ask.source].extend(rows)
        self._cut_off[ask.source] = 0 < ask.limit <= len(rows)
        self._merged = None

    def rows(self) -> list[Row]:
        """The page: at most ``limit`` rows in listing order."""
        return self._merge()[: self.limit]

    def _first_asks(self) -> list[Ask]:
        share = first_share(self.limit, len(self._rows))
        return [
            Ask(source, None, self.limit if source == self.whole else share)
            for source, cut_off in self._cut_off.items()
            if cut_off
        ]

    def _merge(self) -> list[Row]:
        if self._merged is None:
            merged = [row for rows in self._rows.values() for row in rows]
            merged.sort(key=name_of, reverse=self.reverse)
            self._merged = without_duplicates(merged)
        return self._merged

    def _ends_inside(self, rows: list[Row]) -> bool:
        """Whether a source's last row lies before the end of the page."""
        merged = self._merge()
        if len(merged) < self.limit:
            return True
        last, end = name_of(rows[-1]), name_of(merged[self.limit - 1])
        return last > end if self.reverse else last < end

    def _refill(self, rows: list[Row]) -> int:
        """How many rows to ask for after those a source gave already.

        It gave its rows over the first ``rank`` names of the page; the rest
        of the page is likely to hold as many in proportion, and can't hold
        more than one row a name.
        """
        rank = self._rank(name_of(rows[-1]))
        rest = self.limit - rank
        expected = len(rows) * rest / rank
        return min(rest, with_slack(expected))

    def _rank(self, name: str) -> int:
        """The place of a row's name among all names, from 1."""
        merged = self._merge()
        low, high = 0, len(merged)
        while low < high:
            middle = (low + high) // 2
            other = name_of(merged[middle])
            if other > name if self.reverse else other < name:
                low = middle + 1
            else:
                high = middle
        return low + 1


def first_share(limit: int, source_count: int) -> int:
    """How many rows of a page to ask of each source at first."""
    return min(limit, with_slack(limit / source_count))


def with_slack(expected: float) -> int:
    """A number of rows that a source is unlikely to exceed."""
    return math.ceil(expected + SLACK_DEVIATIONS * math.sqrt(expected)) + 1


def name_of(row: Row) -> str:
    """The name that a row is sorted by."""
    name = row.get('name')
    return row['subdir'] if name is None else name


def without_duplicates(rows: list[Row]) -> list[Row]:
    """Sorted rows with one row a name, the newest.

    Subdirs stand in every source that has objects below them, and an object
    may lie in two places (the root and a shard).
    """
    unique = []
    last_name = None
    for row in rows:
        name = name_of(row)
        if name != last_name:
            unique.append(row)
            last_name = name
        elif _is_newer(row, unique[-1]):
            unique[-1] = row
    return unique


def _is_newer(row: Row, other: Row) -> bool:
    return row.get('last_modified', '') > other.get('last_modified', '')
