# SPDX-License-Identifier: Apache-2.0
"""Listings of one source by queries that are never too long. Pure.

A container server answers 414 to a request line above a limit. A request to a
shard is longer than the client's: it has a longer path, and where the client
sent a prefix, it may have a prefix and a marker. A scan sends queries that
have either a marker or a prefix, and applies the other parameters here, as a
container server does. It may read rows that the listing does not need.
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
        if is_done or self.limit == 0:
            self.query = None
        else:
            self._go_on_after(rows.names[-1])
            self.query = self._next_query()
        return found

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
        parameter, bound = 'marker', self._position
        if bound is None:
            parameter, bound = 'prefix', self.prefix
        needs_all = self.limit is None or self.delimiter
        self._asked = CONTAINER_LISTING_LIMIT if needs_all else self.limit
        query = self._query(parameter, bound)
        if self.fits(query):
            return query
        self._asked = CONTAINER_LISTING_LIMIT
        return self._query(parameter, self._shortened(parameter, bound))

    def _shortened(self, parameter: str, bound: str) -> str:
        """Return the longest beginning of a bound that a query can have.

        It excludes no row that the bound does not exclude.
        """
        is_reversed = self.reverse and parameter == 'marker'
        end = LAST_CHARACTER if is_reversed else ''

        def is_too_long(length: int) -> bool:
            return not self.fits(self._query(parameter, bound[:length] + end))

        longest = bisect_left(range(len(bound)), True, key=is_too_long) - 1
        for length in range(longest, 0, -1):
            part = bound[:length]
            if parameter == 'prefix' and part.endswith(NO_SUCCESSOR):
                continue
            if is_reversed and bound[length] == LAST_CHARACTER:
                continue
            return part + end
        return ''

    def _query(self, parameter: str, bound: str) -> str:
        query = {'format': 'json', 'limit': self._asked}
        if bound:
            query[parameter] = bound
        if self.reverse:
            query['reverse'] = 'true'
        return urlencode(query)
