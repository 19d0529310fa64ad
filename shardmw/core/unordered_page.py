# SPDX-License-Identifier: Apache-2.0
"""Decide which rows of which shard an unordered listing needs. Pure.

An unordered listing returns the names of shard 0, then those of shard 1, and
so on, each shard's names in their order. So the shard of a name, and the name
itself, give its position in the listing. A page that begins after a marker
needs no state of the pages before it, and the marker need not exist any more.
A name that exists during the whole listing is returned once, whatever else is
written.

Strays, rows in the root, are returned where their names belong.
"""

from collections.abc import Callable
from itertools import accumulate

from shardmw.core.listing_page import Ask, Page
from shardmw.core.listing_rows import Rows

NO_ROWS = Rows([], [])


class Strays:
    """The rows of the root that one page may need, by shard.

    :param first: the shard of the client's marker
    :param marker: the client's marker
    :param limit: the size of the page in rows
    :param shard_of: returns the shard that a name belongs to
    """

    def __init__(
        self,
        first: int,
        marker: str,
        limit: int,
        shard_of: Callable[[str], int],
    ) -> None:
        self.first = first
        self.marker = marker
        self.limit = limit
        self.shard_of = shard_of
        self._rows: dict[int, Rows] = {}

    @property
    def fill_page(self) -> bool:
        """Return True if the page needs no further rows of the root."""
        return len(self.of(self.first).names) >= self.limit

    def of(self, shard: int) -> Rows:
        """Return the strays whose names belong to a shard."""
        return self._rows.get(shard, NO_ROWS)

    def add(self, rows: Rows) -> None:
        """Take rows of the root, which follow those taken before."""
        for name, text in zip(rows.names, rows.texts, strict=True):
            shard = self.shard_of(name)
            if shard > self.first or (
                shard == self.first and name > self.marker
            ):
                kept = self._rows.setdefault(shard, Rows([], []))
                kept.names.append(name)
                kept.texts.append(text)
        self._drop_what_no_page_shows()

    def _drop_what_no_page_shows(self) -> None:
        """Keep memory bounded: a page has rows up to its limit."""
        room = self.limit
        for shard in sorted(self._rows):
            kept = self._rows[shard]
            del kept.names[max(0, room) :], kept.texts[max(0, room) :]
            room -= len(kept.names)


class UnorderedPage:
    """One page of an unordered listing.

    The caller uses it like a :class:`shardmw.core.listing_page.Page`. A source
    is a shard; an ask with the marker ``''`` begins with the shard's first
    name.

    :param shards: the number of shards
    :param expected: about how many rows a shard has
    :param strays: the rows of the root
    """

    def __init__(self, shards: int, expected: float, strays: Strays) -> None:
        self.shards = shards
        self.expected = expected
        self.strays = strays
        self.limit = strays.limit
        self.drops_misplaced = False
        # The rows of each shard, in the order of the listing.
        self._pages: dict[int, Page] = {}
        self._open(1, self.limit)

    def asks(self) -> list[Ask]:
        """Return the queries to send before the page is complete."""
        while not (asks := self._asks()):
            room = self.limit - sum(self._row_counts().values())
            if room > 0 and self._open(self._shards_at_once(room), room):
                continue
            if self.can_be_continued():
                break
            self._begin_without_misplaced()
        return asks

    def shortened(self, ask: Ask) -> Ask:
        """Return the same query: rows of other shards do not bound it."""
        return ask

    def add(self, ask: Ask, rows: Rows) -> None:
        """Take the rows that a shard answered with."""
        self._pages[ask.source].add(ask, rows)

    def rows(self) -> Rows:
        """Return the page: at most `limit` rows, shard by shard."""
        page = Rows([], [])
        for rows in (part.rows() for part in self._pages.values()):
            room = self.limit - len(page.names)
            page.names.extend(rows.names[:room])
            page.texts.extend(rows.texts[:room])
        return page

    def can_be_continued(self) -> bool:
        """Return True if the next page can begin after the last names.

        It begins after the last name, or after the one before that: s3api asks
        for one row more than it shows. It cannot begin after a name whose row
        lies in a shard that the name does not belong to. The filter puts no
        row there.
        """
        names = self.rows().names
        return all(
            self.strays.shard_of(names[i]) == self._shard_at(i)
            for i in range(len(names))[-2:]
        )

    def _begin_without_misplaced(self) -> None:
        """Begin again, and drop the rows that are in a wrong shard."""
        self.drops_misplaced = True
        self._pages.clear()
        self._open(1, self.limit)

    def _open(self, count: int, room: int) -> bool:
        """Add the next shards to the page.

        :param count: how many shards
        :param room: how many rows the page needs
        :returns: False if there are no more shards
        """
        start = self.strays.first + len(self._pages)
        shards = range(start, min(start + count, self.shards))
        for shard in shards:
            page = Page([shard], room, is_wanted=self._chooser(shard))
            page.merge(self.strays.of(shard))
            self._pages[shard] = page
        return bool(shards)

    def _chooser(self, shard: int) -> Callable[[str], bool] | None:
        """Return a test for names that belong to a shard, None to take all."""
        if not self.drops_misplaced:
            return None
        return lambda name: self.strays.shard_of(name) == shard

    def _shards_at_once(self, room: int) -> int:
        """Return how many of the next shards the page probably needs whole.

        Names are spread evenly over shards. The rows of the first shard say
        nothing, because the page may begin anywhere in it.
        """
        known = self._row_counts()
        del known[self.strays.first]
        if not known:
            return max(1, int(room / max(1, self.expected)))
        rows = sum(known.values())
        return max(1, room * len(known) // rows) if rows else 2 * len(known)

    def _asks(self) -> list[Ask]:
        return [
            self._from_the_start(ask)
            for page in self._pages.values()
            for ask in page.asks()
        ]

    def _from_the_start(self, ask: Ask) -> Ask:
        """Return an ask that applies the client's marker to its shard only."""
        if ask.source == self.strays.first or ask.marker is not None:
            return ask
        return ask._replace(marker='')

    def _shard_at(self, index: int) -> int:
        """Return the shard that a row of the page was read from."""
        counts = self._row_counts()
        ends = accumulate(counts.values())
        return next(
            shard
            for shard, end in zip(counts, ends, strict=True)
            if index < end
        )

    def _row_counts(self) -> dict[int, int]:
        """Return how many rows each shard has for the page."""
        return {shard: page.row_count for shard, page in self._pages.items()}
