# SPDX-License-Identifier: Apache-2.0
"""The parameters of a container listing. Pure."""

import functools
from dataclasses import dataclass
from urllib.parse import urlencode

from shardmw.core.placement import NameRange

#: The last character of Unicode.
LAST_CHARACTER = '\U0010ffff'

#: Container servers compute the character after the last one of a prefix.
#: After these two, there is none that UTF-8 can encode.
NO_SUCCESSOR = (LAST_CHARACTER, '\ud7ff')

#: How many query strings to cache. The first query for the rows of a page is
#: the same for all shards.
CACHED_QUERIES = 64


@dataclass(frozen=True, slots=True)
class ListingParams:
    """The parameters of a container listing, as native strings.

    :param limit: the most rows to return
    :param path: the pseudo-directory to list, which overrides prefix and
                 delimiter; None for no such parameter
    :param is_unordered: True if the client accepts any order
    """

    limit: int
    marker: str = ''
    end_marker: str = ''
    prefix: str = ''
    delimiter: str = ''
    path: str | None = None
    reverse: bool = False
    is_unordered: bool = False

    def query(
        self, marker: str | None, limit: int, end_marker: str | None = None
    ) -> str:
        """Return the query string of a request to a backing container.

        It is quoted as Swift quotes a query that it forwards.

        :param marker: None for the client's marker
        :param end_marker: None for the client's end_marker
        """
        return _query_string(
            self,
            self.marker if marker is None else marker,
            limit,
            self.end_marker if end_marker is None else end_marker,
        )

    def names(self) -> NameRange:
        """Return the range that the names of the listing are in."""
        after, before = self.marker, self.end_marker
        if self.reverse:
            after, before = before, after
        return NameRange(self.names_prefix(), after, before)

    def names_prefix(self) -> str:
        """Return the prefix of all names of the listing, '' for none."""
        if self.path is None:
            return self.prefix
        return self.path and self.path.rstrip('/') + '/'

    def has_levels(self) -> bool:
        """Return True if the listing shows one level of pseudo-directories."""
        return bool(self.delimiter) or self.path is not None

    def wants_order(self) -> bool:
        """Return True if a parameter needs the rows in the order of names."""
        return self.has_levels() or self.reverse

    def has_unlistable_prefix(self) -> bool:
        """Return True if Swift answers 500 because it finds no prefix end.

        Swift computes the character after the last one of the prefix, which
        fails for the last character of Unicode. After U+D7FF, the result is a
        character that SQLite refuses. Swift does not use it if the listing
        ends before it anyway.
        """
        if self.path is not None or not self.prefix.endswith(NO_SUCCESSOR):
            return False
        if self.prefix.endswith(LAST_CHARACTER):
            return True
        before = self.names().before
        end = self.prefix[:-1] + chr(ord(self.prefix[-1]) + 1)
        return not before or before >= end

    def has_unskippable_delimiter(self) -> bool:
        """Return True if Swift answers 500 where a name has the delimiter.

        Swift finds no name after the pseudo-directory at which to continue.
        """
        is_used = self.path is None and not self.reverse
        return is_used and self.delimiter.endswith(NO_SUCCESSOR)


@functools.lru_cache(CACHED_QUERIES)
def _query_string(
    params: ListingParams, marker: str, limit: int, end_marker: str
) -> str:
    query = {
        'format': 'json',
        'limit': limit,
        'marker': marker,
        'end_marker': end_marker,
        'reverse': 'true' if params.reverse else '',
    }
    if params.path is None:
        query.update(prefix=params.prefix, delimiter=params.delimiter)
    given = {name: value for name, value in query.items() if value != ''}
    if params.path is not None:
        # An empty path lists the top level of the whole container.
        given['path'] = params.path
    return urlencode(given)
