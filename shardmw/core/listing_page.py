# SPDX-License-Identifier: Apache-2.0
"""Decide which rows of which source a page needs, and merge them. Pure.

A *source* is a container whose rows the page merges, named by a number. This
module decides on the queries; the caller sends them.

Each source is first asked for its share of the page only. With ``n`` sources
and a limit of ``m`` rows, that is ``m / n`` rows plus the slack that a random
distribution needs (M. Raab, A. Steger, "Balls into Bins - A Simple and Tight
Analysis", 1998). The rows of the first sources show about where the page ends,
so later sources are asked for the rows up to there. A source is asked again if
its rows end before the page does and it may have more.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.core.listing_rows import Rows, newer

#: How many rows to ask for beyond the expected number, in standard deviations.
SLACK_DEVIATIONS = 2
#: The upper limit of the slack, as a fraction of the expected number, if that
#: is above MANY_ROWS. Rows that the page does not need cost time, too.
MOST_SLACK = 0.24
#: About this many rows cost as much as one more request.
MANY_ROWS = 30
#: The most rows that a page holds between two answers. Even with 1,024 sources
#: there are seldom that many.
MOST_ROWS = 20_000
#: How far beyond the expected end of the page the queries to later sources
#: end, in standard deviations.
END_DEVIATIONS = 2.5


class Ask(NamedTuple):
    """A query to send to a source.

    :param source: the number of the source
    :param marker: the name after which its rows begin; None for the client's
                   marker
    :param limit: how many rows to ask for
    :param end: the name before which its rows end; None for the client's
                end_marker
    """

    source: int
    marker: str | None
    limit: int
    end: str | None = None


@dataclass(slots=True)
class _Source:
    """The answers of one source so far.

    :param last: the name of its last row
    :param end: the name before which it has no further rows, if it was asked
                for rows up to there only
    :param taken: the number of its rows that the page took
    :param may_have_more: False if it has no row after the last one
    """

    last: str | None = None
    end: str | None = None
    taken: int = 0
    may_have_more: bool = True


class Page:
    """One page of a listing, merged from the rows of many sources.

    The caller sends each query of :meth:`asks` and gives the rows to
    :meth:`add`, until :meth:`asks` returns none. It may pass a query to
    :meth:`shortened` before it is sent. Then :meth:`rows` returns the page.

    :param sources: the numbers of the sources
    :param limit: the size of the page in rows
    :param reverse: True if the names descend
    :param is_wanted: returns True for the names to take; None to take all
    """

    def __init__(
        self,
        sources: Iterable[int],
        limit: int,
        reverse: bool = False,
        is_wanted: Callable[[str], bool] | None = None,
    ) -> None:
        self.limit = limit
        self.reverse = reverse
        self.is_wanted = is_wanted
        self._sources: dict[int, _Source] = {}
        self._texts: dict[str, bytes] = {}
        # The keys of _texts, in the order of the listing if _is_sorted.
        self._names: list[str] = []
        self._is_sorted = True
        self._answered = 0
        # The probable end of the page, and how many sources had answered when
        # it was computed: it is computed anew when twice as many have.
        self._end: str | None = None
        self._sampled = 0
        self.open(sources)

    def open(self, sources: Iterable[int]) -> None:
        """Merge the rows of further sources, too."""
        self._sources.update((number, _Source()) for number in sources)

    def asks(self) -> list[Ask]:
        """Return the queries to send before the page is complete."""
        return [
            Ask(number, source.last, self._size(source))
            for number, source in self._sources.items()
            if source.may_have_more and self._ends_inside(source)
        ]

    def shortened(self, ask: Ask) -> Ask:
        """Return a query that ends where the page probably ends.

        The rows that other sources have returned meanwhile show where. Only
        the first query to a source is changed.
        """
        source = self._sources[ask.source]
        is_first = source.last is None and source.end is None
        if not is_first:
            return ask
        if self._answered >= max(1, 2 * self._sampled):
            self._sampled = self._answered
            self._end = self._probable_end()
        if self._end is None:
            return ask
        return ask._replace(limit=self.limit, end=self._end)

    def add(self, ask: Ask, rows: Rows) -> None:
        """Take the rows that a source answered with.

        :param rows: at most ``ask.limit`` rows, in the order of the listing;
                     fewer if the source has no more before ``ask.end``
        :raises ValueError: if they do not end after ``ask.marker``. Without
                            this check, a source that ignores markers would be
                            asked for the same rows without end
        """
        source = self._sources[ask.source]
        if rows.names and ask.marker is not None:
            last = rows.names[-1]
            if not self._sorts(ask.marker, last):
                raise ValueError(f'{last!r} is not after {ask.marker!r}')
        self._answered += source.last is None and source.end is None
        is_full = 0 < ask.limit <= len(rows.names)
        source.end = None if is_full else ask.end
        source.may_have_more = is_full or ask.end is not None
        if rows.names:
            source.last = rows.names[-1]
            source.taken += self.merge(rows)

    def merge(self, rows: Rows) -> int:
        """Take all the rows of a container that the page can need.

        They are either all rows of the container or as many as a page holds.

        :returns: how many rows the page took
        """
        if self.is_wanted:
            rows = _chosen(rows, self.is_wanted)
        if self._texts.keys().isdisjoint(rows.names):
            self._texts.update(zip(rows.names, rows.texts, strict=True))
            self._names += rows.names
        else:
            self._merge_known(rows)
        self._is_sorted = False
        if len(self._names) > max(MOST_ROWS, 2 * self.limit):
            self._drop_rows_behind_the_page()
        return len(rows.names)

    @property
    def row_count(self) -> int:
        """Return how many rows the page has."""
        return min(self.limit, len(self._names))

    def rows(self) -> Rows:
        """Return the page: at most `limit` rows, in the order of a listing."""
        names = self._sorted_names()[: self.limit]
        return Rows(names, [self._texts[name] for name in names])

    def _drop_rows_behind_the_page(self) -> None:
        """Keep memory bounded, also if names were chosen to exceed it."""
        names = self._sorted_names()
        for name in names[self.limit :]:
            del self._texts[name]
        del names[self.limit :]

    def _merge_known(self, rows: Rows) -> None:
        """Take rows when the page already has some of their names.

        Several sources have the same subdirs, and a row that moves from the
        root to its shard may be read twice.
        """
        for name, text in zip(rows.names, rows.texts, strict=True):
            known = self._texts.get(name)
            if known is None:
                self._names.append(name)
            elif known != text:
                text = newer(known, text)
            self._texts[name] = text

    def _size(self, source: _Source) -> int:
        """Return how many rows to request from a source."""
        if source.last is None:
            return first_share(self.limit, len(self._sources))
        return self._refill(source)

    def _sorted_names(self) -> list[str]:
        if not self._is_sorted:
            # The names consist of sorted runs, which sort() makes use of.
            self._names.sort(reverse=self.reverse)
            self._is_sorted = True
        return self._names

    def _ends_inside(self, source: _Source) -> bool:
        """Return True if the last row of a source is before the page's end."""
        names = self._sorted_names()
        is_known = source.last is not None or source.end is not None
        if not is_known or len(names) < self.limit:
            return True
        end = names[self.limit - 1]
        if source.end is not None:
            return not self._sorts(end, source.end)
        return self._sorts(source.last, end)

    def _sorts(self, name: str, other: str) -> bool:
        """Return True if a name is before another in the listing's order."""
        return name > other if self.reverse else name < other

    def _probable_end(self) -> str | None:
        """Return a name that is probably after the last name of the page.

        The rows of the sources that have answered are a sample of all rows. It
        has a binomially distributed number of the first `limit` rows.

        :returns: None if the rows of the sample do not reach that far
        """
        part = self._answered / len(self._sources)
        expected = self.limit * part
        deviation = math.sqrt(expected * (1 - part))
        rank = math.ceil(expected + END_DEVIATIONS * deviation)
        is_sample = len(self._names) == sum(
            source.taken for source in self._sources.values()
        )
        if not is_sample or rank >= len(self._names):
            return None
        return self._sorted_names()[rank]

    def _refill(self, source: _Source) -> int:
        """Return how many rows to request from a source that was asked before.

        Its rows so far are among the first `rank` names of the page. The rest
        of the page probably has as many of its rows in proportion, and at most
        one per name.
        """
        rank = self._rank(source.last)
        rest = max(1, self.limit - rank)
        return min(rest, with_slack(source.taken * rest / rank))

    def _rank(self, name: str) -> int:
        """Return the place of a name among all names, from 1."""
        names = self._sorted_names()
        if self.reverse:
            return len(names) - bisect_right(names[::-1], name) + 1
        return bisect_left(names, name) + 1


def first_share(limit: int, source_count: int) -> int:
    """Return how many rows of a page to request from each source at first."""
    return min(limit, with_slack(limit / source_count))


def with_slack(expected: float) -> int:
    """Return a number of rows that a source is unlikely to exceed.

    :param expected: how many rows to expect
    """
    slack = SLACK_DEVIATIONS * math.sqrt(expected) + 1
    if expected > MANY_ROWS:
        slack = min(slack, MOST_SLACK * expected)
    return math.ceil(expected + slack)


def _chosen(rows: Rows, is_wanted: Callable[[str], bool]) -> Rows:
    """Return the rows whose names are wanted."""
    chosen = [
        (name, text)
        for name, text in zip(rows.names, rows.texts, strict=True)
        if is_wanted(name)
    ]
    return Rows([name for name, _ in chosen], [text for _, text in chosen])
