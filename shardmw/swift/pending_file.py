# SPDX-License-Identifier: Apache-2.0
"""Read a container's database without merging its pending rows.

A container server appends new rows to the ``.pending`` file beside a database,
which saves a transaction for each of them. Swift merges these pending rows
whenever a container is read. The merge waits for other writers of the database
and for the disk, and uploads wait for the merge, because it holds the file's
lock. A listing of a sharded container reads all shards, and usually finds
pending rows in each.

So the reader here takes the rows from the file and computes what the database
will have after the merge. It does not lock the file, and it writes nothing:
SQLite has opened the database read-only. Swift still merges the rows when it
reads the container itself, and for
:mod:`shardmw.container_server.background_merges`.
"""

import io
import pickle
import re
import sqlite3
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import quote

from swift.common.db import GreenDBConnection
from swift.container.backend import (
    ContainerBroker,
    update_new_item_from_existing,
)

#: The most names in one statement. SQLite may accept no more than 999 values.
NAMES_A_STATEMENT = 100

_LISTED = ('name', 'created_at', 'size', 'content_type', 'etag')

_FORMER = (
    f'SELECT {", ".join(_LISTED)}, deleted, storage_policy_index FROM object '
    'WHERE deleted IN (0, 1) AND name IN ({})'
)


class PendingRowsError(Exception):
    """Swift has to merge pending rows before a database is read."""


class Snapshot(NamedTuple):
    """A container as it will be after its pending rows were merged.

    :param connection: to its database, in a transaction
    :param info: its figures, as in ``get_info``, without ``db_state``
    :param is_deleted: True if a client has deleted it
    :param rows_wait: True if there are pending rows
    :param pending: the rows that a listing has to add to those of the
                    database, as for
                    :func:`shardmw.swift.container_rows.listed_rows`
    """

    connection: sqlite3.Connection
    info: dict
    is_deleted: bool
    rows_wait: bool
    pending: Mapping[str, tuple | None]


class ReadingBroker(ContainerBroker):
    """A broker that only reads, and whose snapshots include pending rows.

    Snapshots after the first one read figures and parse rows only if these are
    new.

    :param db_file: the path of the database
    :param options: as for Swift's broker
    """

    def __init__(self, db_file: str, **options) -> None:
        super().__init__(db_file, skip_commits=True, **options)
        self._text = b''
        self._rows: Sequence[dict] = ()
        # The version of the database when its figures were read.
        self._version: tuple | None = None
        self._figures: dict = {}
        self._changes = _Changes(0)

    @contextmanager
    def get(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that can only read."""
        if not self.conn:
            self.conn = _read_only(self.db_file, self.timeout)
        with super().get() as connection:
            yield connection

    def quarantine(self, reason: str) -> None:
        """Leave a damaged database where it is.

        :raises sqlite3.DatabaseError: always. The server quarantines the
                                       database when it reads it itself
        """
        raise sqlite3.DatabaseError(reason)

    @contextmanager
    def snapshot(self, most: int | None) -> Iterator[Snapshot]:
        """Yield a consistent snapshot of the container.

        :param most: the largest size of the ``.pending`` file, in bytes; None
                     for any size. If a row cannot be parsed then, the rows
                     since the last snapshot are left out
        :raises PendingRowsError: if the file is larger, or has rows that are
                                  neither uploads nor deletions
        """
        try:
            self._read_file(most)
        except PendingRowsError:
            if most is not None:
                raise
        with self.get() as connection:
            cursor = connection.cursor(sqlite3.Cursor)
            cursor.execute('BEGIN')
            # The number changes when another connection commits. Only this
            # query may have to wait for a lock. Swift's cursors can wait for
            # it, but their preparation takes longer than the query.
            query = 'PRAGMA data_version'
            try:
                ((number,),) = cursor.execute(query)
            except sqlite3.OperationalError:
                ((number,),) = connection.execute(query)
            version = connection, number
            if self._version != version:
                self._figures = self._do_get_info_query(connection)
                self._changes = _Changes(self._figures['storage_policy_index'])
                self._version = version
            self._changes.add(self._rows, cursor)
            info = dict(self._figures)
            info['object_count'] += self._changes.objects
            info['bytes_used'] += self._changes.bytes
            yield Snapshot(
                connection,
                info,
                self._is_deleted_info(**info),
                bool(self._text),
                self._changes.listed,
            )

    def _read_file(self, most: int | None) -> None:
        text = b''
        with (
            suppress(FileNotFoundError),
            open(self.pending_file, 'rb', buffering=0) as file,
        ):
            text = file.read(-1 if most is None else most + 1)
        if most is not None and len(text) > most:
            raise PendingRowsError(f'more than {most} bytes of rows wait')
        if not text.startswith(self._text):
            self._text, self._rows, self._version = b'', (), None
        new = _rows(self, text[len(self._text) :])
        self._text, self._rows = text, [*self._rows, *new]


class _Changes:
    """Computes what rows will change in a database when they are merged.

    :param policy: the index of the storage policy whose rows count
    :ivar listed: the rows that will be new, as `pending` of
                  :func:`shardmw.swift.container_rows.listed_rows`
    :ivar objects: by how much the number of objects will change
    :ivar bytes: the same for the sum of their sizes
    """

    def __init__(self, policy: int) -> None:
        self.listed: dict[str, tuple | None] = {}
        self.objects = self.bytes = 0
        self._policy = policy
        self._taken = 0
        # The rows of each name in the database, usually one.
        self._former: dict[str, list[dict]] = {}
        self._newer: dict[str, dict] = {}

    def add(self, rows: Sequence[dict], cursor: sqlite3.Cursor) -> None:
        """Add rows, as Swift's broker merges them.

        See ``ContainerBroker.merge_items``.

        :param rows: the rows that were added before, and further ones
        :param cursor: of the database
        """
        new = [
            # A copy, whose times will become those of the database.
            dict(row)
            for row in rows[self._taken :]
            if row['storage_policy_index'] == self._policy
        ]
        self._taken = len(rows)
        names = list({row['name'] for row in new} - self._former.keys())
        self._former |= {name: [] for name in names}
        for start in range(0, len(names), NAMES_A_STATEMENT):
            some = names[start : start + NAMES_A_STATEMENT]
            query = _FORMER.format(', '.join('?' * len(some)))
            for found in cursor.execute(query, some):
                if found['storage_policy_index'] == self._policy:
                    self._former[found['name']].append(dict(found))
        for row in new:
            name = row['name']
            former, newer = self._former[name], self._newer.get(name)
            if not update_new_item_from_existing(
                row, former[-1] if former else None
            ):
                continue
            if newer:
                update_new_item_from_existing(row, newer)
            self._newer[name] = row
            self._count(row, 1)
            for replaced in [newer] if newer else former:
                self._count(replaced, -1)
            is_shown = not row['deleted']
            self.listed[name] = (
                tuple(row[column] for column in _LISTED) if is_shown else None
            )

    def _count(self, row: dict, sign: int) -> None:
        # Like the triggers of Swift's tables.
        self.objects += sign * (1 - row['deleted'])
        self.bytes += sign * row['size']


def _rows(broker: ContainerBroker, text: bytes) -> list[dict]:
    """Return the rows in a part of a broker's ``.pending`` file.

    :raises PendingRowsError: if one is neither an upload nor a deletion
    """
    rows: list[dict] = []
    for entry in filter(None, text.split(b':')):
        # Another process may be writing the last row just now.
        try:
            values = _Unpickler(
                io.BytesIO(b64decode(entry)), encoding='utf8'
            ).load()
            broker._commit_puts_load(rows, values)  # noqa: SLF001
        except Exception as err:
            raise PendingRowsError('not a row') from err
    return rows


class _Unpickler(pickle.Unpickler):
    """An unpickler of texts and numbers only."""

    def find_class(self, module: str, name: str):
        """Refuse any class or function."""
        raise pickle.UnpicklingError(f'{module}.{name} in a row')


def _read_only(path: str, timeout: float) -> sqlite3.Connection:
    """Open a database so that SQLite and the system refuse to write into it.

    Like Swift's own connections, it waits for locks, up to a timeout in
    seconds.

    :raises sqlite3.OperationalError: if there is no database
    """
    # SQLite takes what follows two slashes for the name of a host.
    quoted = quote(re.sub('^/+', '/', path))
    connection = sqlite3.connect(
        f'file:{quoted}?mode=ro',
        uri=True,
        timeout=timeout,
        check_same_thread=False,
        factory=GreenDBConnection,
    )
    connection.row_factory = sqlite3.Row
    return connection
