# SPDX-License-Identifier: Apache-2.0
"""Merge rows into a container's database.

Swift's container server does the same, but for the offset of rows that return,
in more time. Most of it goes into triggers, taking timestamps apart, finding
again the rows that it replaces, and changing threads. A change of layout
merges each row of a container twice. Rows that are more than an upload or a
deletion at one time are left to Swift.

A native thread would have to wait for Python's lock after each statement, up
to 5 ms while another thread works, and the database stays locked. So the
statements run in the main thread, and green threads take turns between them.
Only the commit, which waits for the disk, has a native thread.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import BinaryIO

import orjson
from swift.common.db import _db_timeout
from swift.container.backend import UNSHARDED, ContainerBroker

from shardmw.backend.concurrency import Semaphore, Turn, run_in_thread
from shardmw.figures import MOST_BYTES, Figures, FiguresError

#: The columns that are counted.
_COUNTED = ('name', 'created_at', 'size', 'deleted', 'storage_policy_index')
#: The columns of a row, which are the names of its fields.
_COLUMNS = (*_COUNTED, 'content_type', 'etag')
_values = itemgetter(*_COLUMNS)

#: How many rows a statement has at most. While it reads them from a disk, the
#: process does nothing else. SQLite takes as few as 999 values.
ROWS_A_STATEMENT = 100

#: How many transactions are open at a time in a process. They take turns, so
#: with more of them each would lock its database for longer.
_free = Semaphore(4)

# One statement for many rows takes two thirds of the time of as many
# statements.
_SELECT = (
    f'SELECT {", ".join(_COUNTED)}, ROWID FROM object '
    'WHERE deleted IN (0, 1) AND name IN ({})'
)
_DELETE = 'DELETE FROM object WHERE ROWID IN ({})'
_INSERT = f'INSERT INTO object ({", ".join(_COLUMNS)}) VALUES {{}}'

#: A timestamp that is a single time, in seconds, and an offset.
_ONE_TIME = re.compile(r'[0-9]{10}\.[0-9]{5}(?:_[0-9a-f]{0,16})?')
_SECONDS = len('0000000000.00000')


class TwoRowsError(Exception):
    """A database has two rows of a name. Swift removes both."""


class RowsBody:
    """The body of an UPDATE, whose rows a broker takes from here.

    A container server reads an empty list in their place. Its own parser takes
    three times as long.

    :param file: the body
    :ivar rows: those that have been read, and that no broker has taken
    """

    def __init__(self, file: BinaryIO) -> None:
        self.rows: list = []
        self._file = file

    def read(self) -> bytes:
        """Return an empty list for a list, and any other body as it is."""
        body = self._file.read()
        try:
            rows = orjson.loads(body)
        except ValueError:
            return body
        if not isinstance(rows, list):
            return body
        self.rows = rows
        return b'[]'


class MergingBroker(ContainerBroker):
    """A broker that merges rows as this module does.

    :ivar offset: as of :func:`merge_rows`
    :ivar body: what has the rows to merge in the place of an empty list
    :ivar is_complete: True if all rows have been merged with this offset, into
                       the only database of the container
    """

    offset = 0
    body: RowsBody | None = None
    is_complete = False

    def merge_items(self, item_list: list[dict], source=None) -> None:
        """Merge rows into the database, as Swift's broker does."""
        if source:
            super().merge_items(item_list, source)
        else:
            rows = item_list
            if self.body and rows == []:
                rows, self.body.rows = self.body.rows, []
            is_merged = merge_rows(self, rows, self.offset)
            # While Swift's sharder splits the container, the tombstones of
            # its rows are in another database.
            is_whole = self.get_db_state() == UNSHARDED
            self.is_complete = is_merged and is_whole


def merge_rows(
    broker: ContainerBroker, rows: list[dict], offset: int = 0
) -> bool:
    """Merge rows, as the broker's ``merge_items`` does.

    :param rows: as :func:`shardmw.backend.rows.moved_row` returns them
    :param offset: for the timestamp of a row that has been removed at the very
                   time of its upload, with a smaller offset. It returns; no
                   client has deleted its object. 0 to hide such rows
    :returns: False if some rows were left to Swift, which knows no offset
    """
    others = rows
    # Swift merges rows of the same name in their order.
    if len({row['name'] for row in rows}) == len(rows):
        simple, others = [], []
        for row in rows:
            values = _simple_values(row)
            if values:
                simple.append(values)
            else:
                others.append(row)
        if simple:
            left = _merge_simple(broker, simple, offset)
            others += [row for row in rows if row['name'] in left]
    if others or not rows:
        ContainerBroker.merge_items(broker, others)
    return not others


def _merge_simple(
    broker: ContainerBroker, rows: list[tuple], offset: int
) -> set[str]:
    """Merge rows of different names; return the names left to Swift.

    :param rows: the values of each, as of :func:`_simple_values`
    """
    with _free, broker.get() as connection:
        if broker.get_db_version(connection) >= 1:
            try:
                return _merge(connection, rows, offset)
            except (TwoRowsError, FiguresError):
                pass
            except sqlite3.OperationalError as err:
                # Swift brings an old table up to date.
                if 'no such column' not in str(err):
                    raise
    return {name for name, *_ in rows}


def _simple_values(row: dict) -> tuple | None:
    """Return the values of an upload or a deletion at one time.

    :returns: one for each column; None for another row
    """
    try:
        values = _values(row)
    except KeyError:
        return None
    name, created_at, size, deleted, policy, content_type, _ = values
    is_simple = (
        len(row) == len(values)
        and isinstance(name, str)
        and isinstance(created_at, str)
        and _is_size(size)
        and isinstance(content_type, str)
        and ';' not in content_type
        and deleted in (0, 1)
        and isinstance(policy, int)
        and _ONE_TIME.fullmatch(created_at)
    )
    return values if is_simple else None


def _merge(
    connection: sqlite3.Connection, rows: list[tuple], offset: int
) -> set[str]:
    """Merge rows in one transaction; return the names left to Swift."""
    # Nothing is written, which waits for the disk, and readers are not kept
    # out, before the commit.
    connection.execute('PRAGMA cache_spill = OFF')
    # Only the first statement may have to wait for a lock. A cursor of Swift
    # prepares to wait before each.
    connection.execute('BEGIN IMMEDIATE')
    figures = Figures()
    turn = Turn()
    left = set()
    try:
        with figures.written_once(connection):
            for some in parts(rows):
                turn.end_in_time()
                left |= _merge_some(connection, figures, some, offset)
        if not figures.has_rows:
            connection.rollback()  # the disk need not be waited for
            return left
        commit = partial(sqlite3.Connection.commit, connection)
        # It waits for readers in this thread, as each commit of Swift does.
        _db_timeout(
            connection.timeout,
            connection.db_file,
            lambda: run_in_thread(commit),
        )
    except BaseException:
        connection.rollback()
        raise
    return left


def _merge_some(
    connection: sqlite3.Connection,
    figures: Figures,
    rows: list[tuple],
    offset: int,
) -> set[str]:
    """Merge as many rows as a statement takes.

    :returns: the names left to Swift
    :raises TwoRowsError: if a name has two rows
    """
    cursor = connection.cursor(sqlite3.Cursor)
    cursor.row_factory = None
    existing = {}
    names = [name for name, *_ in rows]
    for former in cursor.execute(_SELECT.format(marks(names)), names):
        name, _, _, _, policy, _ = former
        if existing.setdefault((name, policy), former) is not former:
            raise TwoRowsError
    replaced, added, left = [], [], set()
    for name, created_at, size, deleted, policy, content_type, etag in rows:
        seconds = created_at[:_SECONDS]
        row_offset = _offset(created_at[_SECONDS:])
        former = existing.get((name, policy))
        if former:
            _, former_at, former_size, was_deleted, _, _ = former
            if not (_ONE_TIME.fullmatch(former_at) and _is_size(former_size)):
                left.add(name)
                continue
            former_seconds = former_at[:_SECONDS]
            if former_seconds > seconds:
                continue
            if former_seconds == seconds:
                if was_deleted and not deleted:
                    row_offset = max(row_offset, offset)
                if _offset(former_at[_SECONDS:]) >= row_offset:
                    continue
            replaced.append(former)
        # As Swift writes it into a database.
        time = f'{seconds}_{row_offset:x}' if row_offset else seconds
        added.append((name, time, size, deleted, policy, content_type, etag))
    if replaced:
        figures.delete(replaced)
        ids = [former[-1] for former in replaced]
        cursor.execute(_DELETE.format(marks(ids)), ids)
    if added:
        figures.insert(added)
        rows_marks = ', '.join([f'({marks(_COLUMNS)})'] * len(added))
        values = list(chain.from_iterable(added))
        cursor.execute(_INSERT.format(rows_marks), values)
    return left


def parts(items: list) -> Iterator[list]:
    """Cut a list into parts that a statement has room for."""
    for start in range(0, len(items), ROWS_A_STATEMENT):
        yield items[start : start + ROWS_A_STATEMENT]


def marks(values: Sequence) -> str:
    """Return the place in a statement for some values."""
    return ', '.join('?' * len(values))


@lru_cache
def _offset(text: str) -> int:
    """Return the offset in what a timestamp has behind its seconds."""
    return int(text[1:] or '0', 16)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MOST_BYTES
