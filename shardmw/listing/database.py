# SPDX-License-Identifier: Apache-2.0
"""List rows from a container's database.

Swift's container server does the same, but it lists pseudo-directories with a
new query and a new cursor for each of them, which takes five times as long.
Nearly every shard of a container has nearly all of its pseudo-directories, so
these queries are most of what such a listing costs. And it makes several
objects of each row's timestamp, which takes most of the time for a large page.
"""

import sqlite3
import time
from collections.abc import Sequence
from typing import NamedTuple

from swift.common.utils import decode_timestamps

_COLUMNS = 'name, created_at, size, content_type, etag'
_SELECT = (
    f'SELECT {_COLUMNS} FROM object '
    'WHERE deleted = 0 AND storage_policy_index = ? AND '
)
_WAITING = f'WITH waiting ({_COLUMNS}) AS (VALUES {{}}) '

#: The length of a row's timestamp that is a single time, without offset, and
#: of its seconds.
_ONE_TIME, _SECONDS = len('1234567890.12345'), len('1234567890')


class Waiting(NamedTuple):
    """Rows that are not in the database yet, and newer than what it has.

    :param names: of all, also of tombstones
    :param rows: what a listing shows of them, like the rows of
                 :func:`listed_rows`
    """

    names: list[str]
    rows: list[tuple]


def listed_rows(
    connection: sqlite3.Connection,
    policy: int,
    limit: int,
    delimiter: str,
    prefix: str = '',
    marker: str = '',
    end_marker: str = '',
    waiting: Waiting | None = None,
) -> list[tuple]:
    """Return the objects and pseudo-directories below a prefix.

    :param connection: that of a container's database
    :param policy: the index of the container's storage policy
    :param limit: how many rows to return at most
    :param delimiter: what separates directories; empty for all objects below
                      the prefix
    :param waiting: rows to list as if they were in the database
    :returns: for an object its name, the time of its last change, size,
              content type and ETag; a pseudo-directory has no content type
    :raises ValueError: if Unicode has no character after the last one of the
                        delimiter or of the prefix
    """
    rows: list[tuple] = []
    ends = [end for end in (end_marker, prefix and _after(prefix)) if end]
    is_after = bool(marker) and marker >= prefix
    start = marker if is_after else prefix
    before = [min(ends)] if ends else []
    after, since = (
        _query(f'name {comparison} ?' + ' AND name < ?' * len(before), waiting)
        for comparison in ('>', '>=')
    )
    # Only the first query of a transaction may have to wait for a lock. A
    # cursor of Swift prepares to wait before each query.
    plain = connection.cursor(sqlite3.Cursor)
    plain.row_factory = None
    plain.execute('BEGIN')
    found = connection.execute(
        after if is_after else since,
        _values(policy, [start, *before], waiting),
    )
    found.row_factory = None
    while len(rows) < limit and (row := found.fetchone()):
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
        found = plain.execute(
            since, _values(policy, [_after(directory), *before], waiting)
        )
    connection.rollback()
    return rows


def _query(condition: str, waiting: Waiting | None) -> str:
    """Return the query for the rows whose names meet a condition."""
    query = _SELECT + condition
    if waiting:
        query += f' AND name NOT IN ({marks(waiting.names)})'
    if waiting and waiting.rows:
        # SQLite merges the two sorted parts row by row.
        values = ', '.join([f'({marks(waiting.rows[0])})'] * len(waiting.rows))
        query = (
            _WAITING.format(values)
            + query
            + f' UNION ALL SELECT * FROM waiting WHERE {condition}'
        )
    return query + ' ORDER BY name'


def _values(
    policy: int, bounds: list[str], waiting: Waiting | None
) -> list[str | int]:
    """Return the values for a query of :func:`_query`."""
    if not waiting:
        return [policy, *bounds]
    rows = [value for row in waiting.rows for value in row]
    again = bounds if rows else []
    return [*rows, policy, *bounds, *waiting.names, *again]


def marks(values: Sequence) -> str:
    """Return the place in a statement for some values."""
    return ', '.join('?' * len(values))


def simple_record(row: tuple) -> dict | None:
    """Return what Swift shows of a row of a listing.

    :param row: one of :func:`listed_rows`
    :returns: None if the row needs Swift's own method: its timestamp has an
              offset, or its content type has parameters
    """
    name, changed, size, content_type, etag = row[:5]
    if content_type is None:
        return {'subdir': name}
    seconds, _point, fraction = changed.partition('.')
    is_simple = (
        len(changed) == _ONE_TIME
        and len(seconds) == _SECONDS
        and (seconds + fraction).isdecimal()
        and ';' not in content_type
    )
    if not is_simple:
        return None
    second = time.gmtime(int(seconds))
    return {
        'bytes': size,
        'hash': etag,
        'name': name,
        'content_type': content_type,
        'last_modified': (
            f'{time.strftime("%Y-%m-%dT%H:%M:%S", second)}.{fraction}0'
        ),
    }


def _after(text: str) -> str:
    """Return the first text after all that begin with a text."""
    return text[:-1] + chr(ord(text[-1]) + 1)
