# SPDX-License-Identifier: Apache-2.0
"""Brief queries, which fit into a request line. Pure.

A container server answers 414 to a request line of more than 8,192 bytes. A
request to a shard is longer than the client's: it has a longer path, and where
the client sent a prefix, it may have a prefix and a marker. Quoted, a name of
1,024 bytes may take 3,072. So without this module, a client's listing would
fail from its second read of a shard on if its parameters take more than about
5,000 bytes; a plain container answers it.

A brief query cuts off the parts of markers that are longer than any name. If
the listing has no pseudo-directories, the query also leaves out the prefix, if
the marker has it, and the end: its answer has at most as many rows as the
query asks for, and rows that are not in the listing are dropped here.
"""

from itertools import takewhile
from os.path import commonprefix

from swift.common.constraints import (
    DEFAULT_CONSTRAINTS,
    MAX_OBJECT_NAME_LENGTH,
)

from shardmw.core.listing_params import NO_SUCCESSOR, ListingParams
from shardmw.core.listing_rows import Rows

#: The most characters of a name, also of one that was stored before an
#: operator lowered Swift's limit.
NAME_LENGTH = max(
    MAX_OBJECT_NAME_LENGTH, DEFAULT_CONSTRAINTS['max_object_name_length']
)


def brief_query(params: ListingParams, marker: str | None, limit: int) -> str:
    """Return a query for the rows of a listing, and maybe for later ones.

    :param marker: the name after which the rows begin; None for the client's
                   marker
    :param limit: how many rows to ask for
    """
    prefix = params.names_prefix()
    if len(prefix) > NAME_LENGTH:
        return ListingParams(0).query(None, 0)
    marker = _cut(params.marker if marker is None else marker, prefix)
    end = _cut(params.end_marker, prefix)
    if _has_levels(params):
        return params.query(marker, limit, end)
    if marker.startswith(prefix):
        prefix = ''
    # Container servers cannot compute the end of such a prefix.
    end = end if prefix.endswith(NO_SUCCESSOR) else ''
    brief = ListingParams(limit, prefix=prefix, reverse=params.reverse)
    return brief.query(marker, limit, end)


def rows_of_listing(params: ListingParams, rows: Rows) -> Rows:
    """Return the rows of the listing that a brief query has found."""
    if _has_levels(params):
        return rows
    prefix, end = params.names_prefix(), params.end_marker

    def is_in_listing(name: str) -> bool:
        is_before_end = name > end if params.reverse else name < end
        return name.startswith(prefix) and (not end or is_before_end)

    count = sum(1 for _ in takewhile(is_in_listing, rows.names))
    return Rows(rows.names[:count], rows.texts[:count])


def _has_levels(params: ListingParams) -> bool:
    """Return True if names may have the delimiter after the prefix."""
    if params.path is not None:
        return True
    longest = params.prefix + params.delimiter
    return bool(params.delimiter) and len(longest) <= NAME_LENGTH


def _cut(bound: str, prefix: str) -> str:
    """Return the start of a marker that is enough to compare names with it.

    The names have the prefix. If the marker does not have it, only the
    characters up to the first difference count.
    """
    same = len(commonprefix((bound, prefix)))
    return bound[: 1 + (NAME_LENGTH if same == len(prefix) else same)]
