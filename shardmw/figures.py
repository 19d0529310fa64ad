# SPDX-License-Identifier: Apache-2.0
"""The figures of a container's database, written once for many rows.

Swift's database has triggers that keep the number of objects, the sum of their
sizes and a checksum. For each row that is inserted or deleted they write all
three and call a function in Python, which takes two thirds of the time of a
merge. Here they are kept from writing, and what the rows change is written at
the end of the transaction.

An authorizer does it, a function that SQLite asks about each part of a
statement while it compiles it. What is to be ignored is left out:
https://www.sqlite.org/c3ref/set_authorizer.html
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5, sha256

#: What is ignored in triggers: to write, and to look for the row to write.
_IGNORED = frozenset(
    (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_READ)
)

_TRIGGERS = (
    "SELECT sql FROM sqlite_master WHERE type = 'trigger' "
    "AND tbl_name = 'object' ORDER BY name"
)

#: The SHA-256 of the triggers whose work is done here, with single spaces.
#: Swift 2.36 to 2.38 have the same ones.
KNOWN_TRIGGERS = (
    '5c747e271350868d71c670bfdeb0cc1e4cec9d47c75e02d71decb16b20bd47ed'
)

_CHECKSUM = 'SELECT hash FROM container_info'
_SET_CHECKSUM = 'UPDATE container_info SET hash = ?'
_SUMS = 'SELECT * FROM policy_stat ORDER BY storage_policy_index'
_ADD = (
    'UPDATE policy_stat SET object_count = object_count + ?, '
    'bytes_used = bytes_used + ? WHERE storage_policy_index = ?'
)
_NEW = (
    'INSERT INTO policy_stat '
    '(object_count, bytes_used, storage_policy_index) VALUES (?, ?, ?)'
)


class LeftToSwift(Exception):  # noqa: N818
    """Rows are to be merged by Swift's broker."""


class Figures:
    """Sums up what rows change in a container's figures."""

    def __init__(self) -> None:
        self._objects: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()
        self._checksum = 0

    def insert(self, rows: Iterable[Mapping]) -> None:
        """Count rows that are inserted."""
        self._count(rows, 1)

    def delete(self, rows: Iterable[Mapping]) -> None:
        """Count rows that are deleted."""
        self._count(rows, -1)

    def _count(self, rows: Iterable[Mapping], sign: int) -> None:
        checksum = self._checksum
        for row in rows:
            policy = row['storage_policy_index']
            if not row['deleted']:
                self._objects[policy] += sign
            self._bytes[policy] += sign * row['size']
            # As Swift's ``chexor`` does.
            text = f'{row["name"]}-{row["created_at"]}'
            digest = md5(text.encode(), usedforsecurity=False).digest()
            checksum ^= int.from_bytes(digest, 'big')
        self._checksum = checksum

    @contextmanager
    def replace_triggers(
        self, connection: sqlite3.Connection
    ) -> Iterator[None]:
        """Write the figures after a block, in which no trigger writes.

        :param connection: to a container's database, in a transaction
        :raises LeftToSwift: if it has other triggers than those that are
                               known, or they have written. The transaction is
                               to be rolled back
        """
        cursor = connection.cursor(sqlite3.Cursor)
        cursor.row_factory = None
        sql = ' '.join(text for (text,) in cursor.execute(_TRIGGERS))
        if _digest(sql) != KNOWN_TRIGGERS:
            raise LeftToSwift
        before = _written(cursor)
        connection.set_authorizer(_ignore_writes_of_triggers)
        try:
            yield
        finally:
            # Before Python 3.11, there is no way to have none again.
            connection.set_authorizer(_allow)
        if _written(cursor) != before:
            raise LeftToSwift
        self._write(cursor)

    def _write(self, cursor: sqlite3.Cursor) -> None:
        if not self._bytes:
            return
        for policy, size in self._bytes.items():
            values = self._objects[policy], size, policy
            if not cursor.execute(_ADD, values).rowcount:
                cursor.execute(_NEW, values)
        ((checksum,),) = cursor.execute(_CHECKSUM)
        checksum = int(checksum, 16) ^ self._checksum
        cursor.execute(_SET_CHECKSUM, [f'{checksum:032x}'])


def _digest(sql: str) -> str:
    return sha256(' '.join(sql.split()).encode()).hexdigest()


def _written(cursor: sqlite3.Cursor) -> list[list[tuple]]:
    """Return all that the triggers write."""
    return [list(cursor.execute(query)) for query in (_CHECKSUM, _SUMS)]


def _ignore_writes_of_triggers(
    action: int, _what: str, _column: str, _database: str, trigger: str | None
) -> int:
    if trigger and action in _IGNORED:
        return sqlite3.SQLITE_IGNORE
    return sqlite3.SQLITE_OK


def _allow(*_args) -> int:
    return sqlite3.SQLITE_OK
