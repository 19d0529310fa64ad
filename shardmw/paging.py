# SPDX-License-Identifier: Apache-2.0
"""The paging plan and the merge: one page of a listing from many sources.

Pure: rows in, rows out; the caller carries the asks out. A *source* is one
container database, named by a number; of its rows see :mod:`shardmw.rows`.

Each source is asked for its share of the page only: with ``n`` sources and a
limit of ``m`` rows that is ``m / n`` and the slack that balls in bins need
(M. Raab, A. Steger, "Balls into Bins - A Simple and Tight Analysis", 1998).
A page is final up to the *frontier*, the first of the last names of those
sources that were cut off; a source whose rows ran out below the page's end is
asked again.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from shardmw.rows import Rows, newer

#: Rows asked beyond the expected number, in standard deviations,
SLACK_DEVIATIONS = 2
#: but of many rows no more than this part: rows are thrown away, too, and
#: those that are short of a few are asked for them.
MOST_SLACK = 0.24
#: So many rows cost as much as one more request; of fewer, slack is cheaper.
MANY_ROWS = 30


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
    :param whole: a source to ask for the whole page at once; the others
                  share the page
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
        # Each source's last name, how many names of it were taken, and
        # whether more may follow.
        self._last: dict[int, str | None] = dict.fromkeys(sources)
        self._taken = dict.fromkeys(self._last, 0)
        self._cut_off = dict.fromkeys(self._last, True)
        # Each row's text by its name.
        self._texts: dict[str, str] = {}
        # All names merged; None when rows came since.
        self._merged: list[str] | None = None

    def asks(self) -> list[Ask]:
        """The asks that are needed before the page is final."""
        return [
            Ask(source, last, self._size(source))
            for source, last in self._last.items()
            if self._cut_off[source] and self._ends_inside(last)
        ]

    def add(
        self,
        ask: Ask,
        rows: Rows,
        is_wanted: Callable[[str], bool] | None = None,
    ) -> None:
        """Take what a source answered to an ask.

        :param rows: the rows, in listing order, at most ``ask.limit`` of
                     them; fewer mean that the source has no more
        :param is_wanted: tells of a name whether to take its row; None to
                          take all
        """
        self._cut_off[ask.source] = 0 < ask.limit <= len(rows.names)
        if not rows.names:
            return
        self._last[ask.source] = rows.names[-1]
        added = dict(zip(rows.names, rows.texts, strict=True))
        if is_wanted is not None:
            added = {k: text for k, text in added.items() if is_wanted(k)}
        self._taken[ask.source] += len(added)
        # Subdirs stand in every source that has objects below them, and an
        # object may lie in two places (the root and a shard).
        for name in self._texts.keys() & added.keys():
            if added[name] != self._texts[name]:
                added[name] = newer(self._texts[name], added[name])
        self._texts.update(added)
        self._merged = None

    def rows(self) -> Rows:
        """The page: at most ``limit`` rows in listing order."""
        names = self._merge()[: self.limit]
        return Rows(names, [self._texts[name] for name in names])

    def _size(self, source: int) -> int:
        """How many rows to ask a source for."""
        if source == self.whole:
            return self.limit
        if self._last[source] is None:
            sharers = len(self._last.keys() - {self.whole})
            return first_share(self.limit, sharers)
        return self._refill(source)

    def _merge(self) -> list[str]:
        if self._merged is None:
            # They stand in runs, one a source, which sorting makes use of.
            self._merged = sorted(self._texts, reverse=self.reverse)
        return self._merged

    def _ends_inside(self, last: str | None) -> bool:
        """Whether a source's last row lies before the end of the page."""
        merged = self._merge()
        if last is None or len(merged) < self.limit:
            return True
        end = merged[self.limit - 1]
        return last > end if self.reverse else last < end

    def _refill(self, source: int) -> int:
        """How many rows to ask for after those a source gave already.

        It gave its rows over the first ``rank`` names of the page; the rest
        of the page is likely to hold as many in proportion, and can't hold
        more than one row a name.
        """
        rank = self._rank(self._last[source])
        rest = max(1, self.limit - rank)
        expected = self._taken[source] * rest / rank
        return min(rest, with_slack(expected))

    def _rank(self, name: str) -> int:
        """The place of a name among all names, from 1."""
        merged = self._merge()
        low, high = 0, len(merged)
        while low < high:
            middle = (low + high) // 2
            other = merged[middle]
            if other > name if self.reverse else other < name:
                low = middle + 1
            else:
                high = middle
        return low + 1


def first_share(limit: int, source_count: int) -> int:
    """How many rows of a page to ask of each source at first."""
    return min(limit, with_slack(limit / max(1, source_count)))


def with_slack(expected: float) -> int:
    """A number of rows that a source is unlikely to exceed."""
    slack = SLACK_DEVIATIONS * math.sqrt(expected) + 1
    if expected > MANY_ROWS:
        slack = min(slack, MOST_SLACK * expected)
    return math.ceil(expected + slack)
