# SPDX-License-Identifier: Apache-2.0
"""The figures of a container's database, written once for many rows.

Swift's database has triggers that keep the policy stats, which are the number
of objects and the sum of their sizes, and a hash of all rows. For each row
that is inserted or deleted, the triggers write both and call a function in
Python, which takes half of the time of a merge. Here the triggers are kept
from writing, and what the rows change is written at the end of the
transaction.

An authorizer does it, a function that SQLite asks about each part of a
statement while it compiles the statement. What is to be ignored is left out:
https://www.sqlite.org/c3ref/set_authorizer.html
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import md5, sha256

#: What is ignored in triggers: to write, and to look for the row to write.
_IGNORED = frozenset(
    (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_READ)
)

#: The largest size of an object that is summed up here, so that the sum of
#: some thousand sizes is a number that SQLite knows.
MOST_BYTES = 2**50

_TRIGGERS = (
    "SELECT sql FROM sqlite_master WHERE type = 'trigger' "
    "AND tbl_name COLLATE NOCASE IN ('container_info', 'object') "
    'ORDER BY name'
)

#: The SHA-256 of the triggers whose work is done here, with single spaces.
#: Swift 2.36 to 2.38 have the same ones.
KNOWN_TRIGGERS = (
    '5c747e271350868d71c670bfdeb0cc1e4cec9d47c75e02d71decb16b20bd47ed'
)

_SELECT_INFO = 'SELECT * FROM container_info'
_DELETE_INFO = 'DELETE FROM container_info'
_INSERT_INFO = 'INSERT INTO container_info VALUES ({})'
_SELECT_HASH = 'SELECT hash FROM container_info'
_UPDATE_HASH = 'UPDATE container_info SET hash = ?'
_SELECT_STATS = (
    'SELECT storage_policy_index, object_count, bytes_used FROM policy_stat '
    'ORDER BY storage_policy_index'
)
_UPDATE_STATS = (
    'UPDATE policy_stat SET object_count = object_count + ?, '
    'bytes_used = bytes_used + ? WHERE storage_policy_index = ?'
)
_INSERT_STATS = (
    'INSERT INTO policy_stat '
    '(object_count, bytes_used, storage_policy_index) VALUES (?, ?, ?)'
)


class FiguresError(Exception):
    """A database's figures cannot be written once for many rows."""


class Figures:
    """Sums up what rows change in the figures of a container's database."""

    def __init__(self) -> None:
        self._objects: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()
        self._hash = 0

    @property
    def has_rows(self) -> bool:
        """True if rows were counted."""
        return bool(self._bytes)

    def insert(self, rows: Sequence[Sequence]) -> None:
        """Count rows that are inserted.

        :param rows: of each its name, timestamp, size, 1 for a tombstone or 0,
                     the index of its storage policy, and whatever else
        """
        self._count(rows, 1)

    def delete(self, rows: Sequence[Sequence]) -> None:
        """Count rows that are deleted, as of :meth:`insert`."""
        self._count(rows, -1)

    def _count(self, rows: Sequence[Sequence], sign: int) -> None:
        for policy in {row[4] for row in rows}:
            same = [row for row in rows if row[4] == policy]
            self._objects[policy] += sign * sum(not row[3] for row in same)
            self._bytes[policy] += sign * sum(row[2] for row in same)
        hash_ = self._hash
        for row in rows:
            # Swift's function ``chexor`` does the same.
            text = f'{row[0]}-{row[1]}'.encode()
            digest = md5(text, usedforsecurity=False).digest()
            hash_ ^= int.from_bytes(digest, 'big')
        self._hash = hash_

    @contextmanager
    def written_once(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Insert and delete rows in a block, and write the figures after it.

        If a database has other triggers than those that are known, they do
        their work in the block.

        :param connection: to a container's database, in a transaction
        :raises FiguresError: if the figures are not as Swift leaves them. Then
                              the transaction is to be rolled back, and so if
                              the block fails
        """
        cursor = connection.cursor(sqlite3.Cursor)
        cursor.row_factory = None
        if not _has_known_triggers(cursor):
            yield
            return
        stats = cursor.execute(_SELECT_STATS).fetchall()
        with _without_info(cursor):
            connection.set_authorizer(_ignore_triggers)
            try:
                yield
            finally:
                # With None, cached statements would not be compiled again.
                connection.set_authorizer(_allow)
            if cursor.execute(_SELECT_STATS).fetchall() != stats:
                raise FiguresError('a trigger has written')
        self._write(cursor, {policy for policy, *_ in stats})

    def _write(self, cursor: sqlite3.Cursor, policies: set[int]) -> None:
        """Write what has changed.

        :param policies: those that the database has figures of
        """
        if not self.has_rows:
            return
        for policy, size in self._bytes.items():
            query = _UPDATE_STATS if policy in policies else _INSERT_STATS
            cursor.execute(query, [self._objects[policy], size, policy])
        try:
            ((text,),) = cursor.execute(_SELECT_HASH)
            value = int(text, 16) ^ self._hash
        except (TypeError, ValueError) as err:
            raise FiguresError('no hash') from err
        cursor.execute(_UPDATE_HASH, [f'{value:032x}'])


def _has_known_triggers(cursor: sqlite3.Cursor) -> bool:
    words = ' '.join(text for (text,) in cursor.execute(_TRIGGERS)).split()
    return sha256(' '.join(words).encode()).hexdigest() == KNOWN_TRIGGERS


@contextmanager
def _without_info(cursor: sqlite3.Cursor) -> Iterator[None]:
    """Have no row of container info during a block.

    There is one, and each trigger would write it again, unchanged.

    :raises FiguresError: if it cannot be read or written back
    """
    try:
        rows = cursor.execute(_SELECT_INFO).fetchall()
    except sqlite3.Error as err:
        raise FiguresError(str(err)) from err
    cursor.execute(_DELETE_INFO)
    yield
    try:
        for row in rows:
            marks = ', '.join('?' * len(row))
            cursor.execute(_INSERT_INFO.format(marks), row)
    except sqlite3.Error as err:
        raise FiguresError(str(err)) from err


def _ignore_triggers(
    action: int, _what: str, _column: str, _database: str, trigger: str | None
) -> int:
    if trigger and action in _IGNORED:
        return sqlite3.SQLITE_IGNORE
    return sqlite3.SQLITE_OK


def _allow(*_args) -> int:
    return sqlite3.SQLITE_OK
