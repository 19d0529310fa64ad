# SPDX-License-Identifier: Apache-2.0
"""The plan of an unordered listing: shard after shard.

Pure, as :mod:`shardmw.paging` is. Every name has a *turn*: that of its shard,
or the last one, if it lies in the root by rule. A listing goes through the
turns, and through the names of each in their order. So the last name of a page
says where the next one goes on: no state is kept, it need not exist any more,
and what is there all the while is listed once, whatever else is written.

The turn of a name is a matter of the name, not of where it lies: rows that lie
elsewhere (strays in the root, objects that have not moved yet to their shard)
are listed in the turn of their names. So a turn may have several sources, and
of those only the rows of the turn are taken.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from shardmw.paging import Ask, Page
from shardmw.rows import Rows


class TurnAsk(NamedTuple):
    """What to ask of one source next.

    :param source: which source
    :param marker: the name to go on after; None for the client's own marker
    :param limit: how many rows
    :param turn: for which turn
    """

    source: int
    marker: str | None
    limit: int
    turn: int


class UnorderedPage:
    """Collects rows until a page of an unordered listing is full.

    Used as a :class:`shardmw.paging.Page`.

    :param first: the turn of the client's marker
    :param turns: the number of turns
    :param limit: the page's size in rows
    :param sources_of: the sources that may hold names of a turn; asked for
                       turns behind the first only when rows of that are in
    :param turn_of: the turn of a name
    :param whole: the source that may hold names of all turns
    :param expected: how many rows a turn has at the most, or so
    :param is_mixed: whether shards, too, hold names of other turns
    """

    def __init__(
        self,
        first: int,
        turns: int,
        limit: int,
        sources_of: Callable[[int], Iterable[int]],
        turn_of: Callable[[str], int],
        whole: int,
        expected: float,
        is_mixed: bool = False,
    ) -> None:
        self.first = first
        self.turns = turns
        self.limit = limit
        self.sources_of = sources_of
        self.turn_of = turn_of
        self.whole = whole
        self.expected = expected
        self.is_mixed = is_mixed
        # The pages of the turns, in their order.
        self._pages: dict[int, Page] = {}
        self._open(1, limit)

    def asks(self) -> list[TurnAsk]:
        """The asks that are needed before the page is full."""
        while not (asks := self._asks()):
            room = self.limit - len(self.rows().names)
            if room <= 0 or not self._open(self._turns_at_once(room), room):
                break
        return asks

    def add(self, ask: TurnAsk, rows: Rows) -> None:
        """Take what a source answered to an ask."""
        self._pages[ask.turn].add(ask, rows, self._chooser(ask))

    def rows(self) -> Rows:
        """The page: at most ``limit`` rows, turn after turn."""
        page = Rows([], [])
        for rows in (turn.rows() for turn in self._pages.values()):
            room = self.limit - len(page.names)
            page.names.extend(rows.names[:room])
            page.texts.extend(rows.texts[:room])
        return page

    def can_be_continued(self) -> bool:
        """Whether the last name says rightly where to go on.

        Not if it lies in a shard that is not its own; nobody puts it there.
        """
        names = self.rows().names
        return not names or self.turn_of(names[-1]) == self._last_turn()

    def _open(self, count: int, room: int) -> bool:
        """Begin with the next turns.

        :returns: whether there are any
        """
        start = self.first + len(self._pages)
        turns = range(start, min(start + count, self.turns))
        for turn in turns:
            self._pages[turn] = Page(
                self.sources_of(turn), room, whole=self.whole
            )
        return bool(turns)

    def _turns_at_once(self, room: int) -> int:
        """How many of the next turns are likely to be needed whole.

        Names are spread evenly. The first turn was begun somewhere in it, and
        says nothing.
        """
        known = [
            len(page.rows().names)
            for turn, page in self._pages.items()
            if turn != self.first
        ]
        if not known:
            return max(1, int(room // max(1, self.expected)))
        if not any(known):
            return 2 * len(known)
        return max(1, room * len(known) // sum(known))

    def _asks(self) -> list[TurnAsk]:
        return [
            TurnAsk(ask.source, self._marker(turn, ask), ask.limit, turn)
            for turn, page in self._pages.items()
            for ask in page.asks()
        ]

    def _marker(self, turn: int, ask: Ask) -> str | None:
        is_begun_by_client = turn == self.first or ask.marker is not None
        return ask.marker if is_begun_by_client else ''

    def _chooser(self, ask: TurnAsk) -> Callable[[str], bool] | None:
        """What tells whether a name is of the turn; None if all are."""
        if ask.source == ask.turn and not self.is_mixed:
            return None
        return lambda name: self.turn_of(name) == ask.turn

    def _last_turn(self) -> int:
        """The turn of the page's last row."""
        room = self.limit
        for turn, page in self._pages.items():
            room -= len(page.rows().names)
            if room <= 0:
                return turn
        return max(t for t, page in self._pages.items() if page.rows().names)
