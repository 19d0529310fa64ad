# SPDX-License-Identifier: Apache-2.0
"""Listings of one source by queries that are never too long. Pure.

A container server answers 414 to a request line above a limit. A request to a
shard is longer than the client's: it has a longer path, and where the client
sent a prefix, it may have a prefix and a marker. A scan sends queries that
have either a marker or a prefix, and applies the other parameters here, as a
container server does. It may read rows that the listing does not need, and
asks for more and more of them while it finds none that the listing needs.
"""

import json
from bisect import bisect_left
from collections.abc import Callable
from urllib.parse import urlencode

from swift.common.constraints import CONTAINER_LISTING_LIMIT

from shardmw.listing.params import (
    LAST_CHARACTER,
    NO_SUCCESSOR,
    ListingParams,
)
from shardmw.listing.rows import Rows


class QueryTooLong(Exception):
    """No query that is short enough returns names after a marker.

    That needs 10,000 names whose first 8,000 quoted bytes are the same.
    """


class Scan:
    """The listing of one source by short queries.

    The caller sends :attr:`query` and gives the answered rows to :meth:`add`
    until :attr:`query` is None. The first query is never None.

    :param params: the parameters of the listing, except marker and limit
    :param marker: the name after which the rows begin
    :param limit: how many rows to return; None for all
    :param fits: returns True if a query string is short enough
    """

    def __init__(
        self,
        params: ListingParams,
        marker: str,
        limit: int | None,
        fits: Callable[[str], bool],
    ) -> None:
        self.end_marker = params.end_marker
        self.reverse = params.reverse
        self.limit = limit
        self.fits = fits
        self.is_by_path = params.path is not None
        self.prefix = params.names_prefix()
        self.delimiter = '/' if self.is_by_path else params.delimiter
        # A container server never returns the subdir with this name.
        self._omitted = self.end_marker if self.reverse else marker
        self._subdir: str | None = None
        # The name to go on after; None to begin with the prefix.
        self._position: str | None = None
        if marker and not self._is_ahead(marker):
            self._position = marker
        # How many rows to ask for next, and how many the query asks for.
        self._page = self._rows_needed()
        self._asked = 0
        #: The query string to send next, None if all rows are found.
        self.query: str | None = self._next_query()

    def add(self, rows: Rows) -> Rows:
        """Take what the source answered to the query.

        :returns: the rows of the listing among the answered rows
        :raises QueryTooLong: if there is no query to go on with
        """
        found = Rows([], [])
        is_done = len(rows.names) < self._asked or not rows.names
        for name, text in zip(rows.names, rows.texts, strict=True):
            if self._is_behind(name) or self.limit == 0:
                is_done = True
                break
            row = None if self._is_ahead(name) else self._row(name, text)
            if row:
                found.names.append(row[0])
                found.texts.append(row[1])
                self.limit = self.limit and self.limit - 1
        if found.names:
            self._page = self._rows_needed()
        else:
            self._page = min(2 * self._page, CONTAINER_LISTING_LIMIT)
        if is_done or self.limit == 0:
            self.query = None
        else:
            self._go_on_after(rows.names[-1])
            self.query = self._next_query()
        return found

    def _rows_needed(self) -> int:
        """Return how many rows to ask for if the listing needs them all."""
        if self.limit is None:
            return CONTAINER_LISTING_LIMIT
        return min(self.limit, CONTAINER_LISTING_LIMIT)

    def _sorts(self, name: str, other: str) -> bool:
        """Return True if a name is before another in the listing's order."""
        return name > other if self.reverse else name < other

    def _is_ahead(self, name: str) -> bool:
        """Return True if a name is before the first one of the listing."""
        if self._position and not self._sorts(self._position, name):
            return True
        is_within = name.startswith(self.prefix)
        return not is_within and self._sorts(name, self.prefix)

    def _is_behind(self, name: str) -> bool:
        """Return True if a name is after the last one of the listing."""
        if self.end_marker and not self._sorts(name, self.end_marker):
            return True
        is_within = name.startswith(self.prefix)
        return not is_within and self._sorts(self.prefix, name)

    def _row(self, name: str, text: bytes) -> tuple[str, bytes] | None:
        """Return the row of the listing that stands for an object's row."""
        if not self.delimiter:
            return name, text
        end = name.find(self.delimiter, len(self.prefix))
        if self.is_by_path:
            if 0 <= end < len(name) - len(self.delimiter):
                self._subdir = name[: end + len(self.delimiter)]
                return None
            # In reverse, Swift leaves out the object of a directory's name
            # behind the names in the directory.
            is_left_out = name in (self.prefix, self._subdir)
            return None if is_left_out else (name, text)
        if end < 0:
            return name, text
        subdir = name[: end + len(self.delimiter)]
        if subdir in (self._subdir, self._omitted):
            return None
        self._subdir = subdir
        return subdir, json.dumps({'subdir': subdir})[1:-1].encode()

    def _go_on_after(self, name: str) -> None:
        """Go on after a name, past the names of a subdir that was found."""
        if self._position and not self._sorts(self._position, name):
            raise QueryTooLong(
                f'marker of {len(name)} characters: no query goes on after it'
            )
        if self._subdir:
            past = self._subdir + ('' if self.reverse else LAST_CHARACTER)
            fits = self.fits(self._query('marker', past))
            if fits and self._sorts(name, past):
                name = past
        self._position = name

    def _next_query(self) -> str:
        """Return the next query, with as much of its bound as it can have."""
        if self.limit == 0:
            return self._query('marker', '')
        self._asked = self._page
        query = self._exact_query()
        if query and self.fits(query):
            return query
        # The query begins earlier, so few rows may all be before the bound.
        self._asked = CONTAINER_LISTING_LIMIT
        bound = self._position or self.prefix
        return self._query('marker', self._shortened(bound))

    def _exact_query(self) -> str | None:
        """Return the query with its whole bound.

        :returns: None for a prefix that container servers fail at
        """
        if self._position is not None:
            return self._query('marker', self._position)
        if self.prefix.endswith(NO_SUCCESSOR):
            return None
        return self._query('prefix', self.prefix)

    def _shortened(self, bound: str) -> str:
        """Return a marker: the longest beginning that a query can have.

        It excludes no row that the bound, a marker or a prefix, does not
        exclude.
        """
        end = LAST_CHARACTER if self.reverse else ''

        def is_too_long(length: int) -> bool:
            return not self.fits(self._query('marker', bound[:length] + end))

        longest = bisect_left(range(len(bound)), True, key=is_too_long) - 1
        for length in range(longest, 0, -1):
            if self.reverse and bound[length] == LAST_CHARACTER:
                continue
            return bound[:length] + end
        return ''

    def _query(self, parameter: str, bound: str) -> str:
        query = {'format': 'json', 'limit': self._asked}
        if bound:
            query[parameter] = bound
        if self.reverse:
            query['reverse'] = 'true'
        return urlencode(query)
