# SPDX-License-Identifier: Apache-2.0
"""List rows from a container's database.

Swift's container server does the same, but it lists pseudo-directories with a
new query and a new cursor for each of them, which takes five times as long.
Nearly every shard of a container has nearly all of its pseudo-directories, so
these queries are most of the cost of such a listing. Swift's server also makes
several objects of each row's timestamp, which takes most of the time for a
large page.
"""

import heapq
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from types import MappingProxyType

from swift.common.utils import decode_timestamps

_SELECT = (
    'SELECT name, created_at, size, content_type, etag FROM object '
    'WHERE deleted = 0 AND storage_policy_index = ? AND name >= ?{} '
    'ORDER BY name'
)
_BEFORE = ' AND name < ?'

#: The length of a timestamp that is a single time without offset, and that of
#: its seconds.
_ONE_TIME, _SECONDS = len('1234567890.12345'), len('1234567890')

#: How many times, in whole seconds, to cache the text of.
_CACHED_SECONDS = 32_768


def listed_rows(
    connection: sqlite3.Connection,
    policy: int,
    limit: int,
    delimiter: str,
    prefix: str = '',
    marker: str = '',
    end_marker: str = '',
    pending: Mapping[str, tuple | None] = MappingProxyType({}),
) -> list[tuple]:
    """Return the objects and pseudo-directories below a prefix.

    :param connection: to a container's database, in a transaction that has
                       read from it, so that no query waits for a lock
    :param policy: the index of the container's storage policy
    :param limit: how many rows to return at most
    :param delimiter: what separates directories; empty for all objects below
                      the prefix
    :param pending: rows to be merged into the database, newer than those that
                    it has, by name: the columns that are returned, or None for
                    a tombstone
    :returns: for an object its name, the time of its last change, size,
              content type and ETag; a pseudo-directory has no content type
    :raises ValueError: if Unicode has no character after the last one of the
                        delimiter or of the prefix
    """
    rows: list[tuple] = []
    ends = [end for end in (end_marker, prefix and _after(prefix)) if end]
    before = [min(ends)] if ends else []
    query = _SELECT.format(_BEFORE if ends else '')
    is_after = bool(marker) and marker >= prefix
    first = marker + '\0' if is_after else prefix
    new = sorted(
        row
        for name, row in pending.items()
        if row and name >= first and not (before and name >= before[0])
    )
    # Swift's cursors would spend time on preparing to wait for a lock.
    cursor = connection.cursor(sqlite3.Cursor)
    cursor.row_factory = None

    def found_since(start: str) -> Iterator[tuple]:
        found = cursor.execute(query, [policy, start, *before])
        if not pending:
            return found
        kept = (row for row in found if row[0] not in pending)
        if not new:
            return kept
        return heapq.merge(kept, new[bisect_left(new, (start,)) :])

    found = found_since(first)
    while len(rows) < limit and (row := next(found, None)):
        name = row[0]
        end = name.find(delimiter, len(prefix)) if delimiter else -1
        if end < 0:
            created_at, *rest = row[1:]
            if len(created_at) != _ONE_TIME:
                created_at = decode_timestamps(created_at)[2].internal
            rows.append((name, created_at, *rest))
            continue
        directory = name[: end + len(delimiter)]
        if directory != marker:
            rows.append((directory, '0', 0, None, ''))
        found = found_since(_after(directory))
    return rows


def simple_text(row: tuple) -> str | None:
    """Return the JSON of a row of a listing, as Swift writes it.

    :param row: one of :func:`listed_rows`
    :returns: None if the row needs Swift's own method: its timestamp has an
              offset, or its content type has parameters
    """
    name, changed, size, content_type, etag = row[:5]
    if content_type is None:
        return f'{{"subdir": {_quoted(name)}}}'
    seconds, _point, fraction = changed.partition('.')
    is_simple = (
        len(changed) == _ONE_TIME
        and len(seconds) == _SECONDS
        and (seconds + fraction).isdecimal()
        and ';' not in content_type
        and isinstance(size, int)
        and isinstance(etag, str)
    )
    if not is_simple:
        return None
    # A JSON encoder takes twice as long.
    return (
        f'{{"bytes": {size}, "hash": {_quoted(etag)}, '
        f'"name": {_quoted(name)}, "content_type": {_quoted(content_type)}, '
        f'"last_modified": "{_second(seconds)}.{fraction}0"}}'
    )


@lru_cache(maxsize=_CACHED_SECONDS)
def _second(seconds: str) -> str:
    second = time.gmtime(int(seconds))
    return time.strftime('%Y-%m-%dT%H:%M:%S', second)


def _after(text: str) -> str:
    """Return the first text after all texts that begin with a prefix."""
    return text[:-1] + chr(ord(text[-1]) + 1)
