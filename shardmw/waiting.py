# SPDX-License-Identifier: Apache-2.0
"""Read a container's database without merging the rows that wait.

A container server appends new rows to the file ``.pending`` beside a database,
which saves a transaction for each of them. Swift merges them whenever a
container is read. It then waits for who else writes into the database, and for
the disk, and uploads wait for it, because it holds the file's lock. A listing
of a sharded container reads all shards, and as a rule finds some rows in each.

So a reader here takes a few rows from the file, and reads the database as it
will be when they have been merged. It takes no lock. If there are many, or a
row cannot be understood, it merges them as Swift does. They are also merged by
all else that reads or writes the container: the replicator for example.
"""

import io
import pickle
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from swift.container.backend import (
    ContainerBroker,
    update_new_item_from_existing,
)

from shardmw.merging import marks

#: The largest size of a ``.pending`` file, in bytes, that is read without
#: merging its rows, 40 to 50 of them. Then to take them apart for each listing
#: still takes less time than a transaction.
MOST_BYTES = 8192

_LISTED = ('name', 'created_at', 'size', 'content_type', 'etag')

_FORMER = (
    f'SELECT {", ".join(_LISTED)}, deleted FROM object '
    'WHERE deleted IN (0, 1) AND storage_policy_index = ? AND name IN ({})'
)


class ReadingBroker(ContainerBroker):
    """A broker whose figures include the rows that wait.

    :ivar may_merge: True to merge them, as Swift's broker does
    :ivar waiting: after the figures have been read, the rows that a listing
                   has to add to those of the database, as of
                   :func:`shardmw.listing.database.listed_rows`
    """

    may_merge = False
    waiting: Mapping[str, tuple | None] = MappingProxyType({})
    _rows: Sequence[dict] = ()

    def _commit_puts_stale_ok(self) -> None:
        self._rows = ()
        if not self.may_merge:
            with suppress(ValueError):
                self._rows = _waiting_rows(self)
                return
        super()._commit_puts_stale_ok()

    def _get_info(self) -> dict:
        self.waiting = {}
        self._commit_puts_stale_ok()
        with self.get() as connection:
            # The rows may just be merged; the figures have to be those of the
            # same moment.
            connection.execute('BEGIN')
            info = self._do_get_info_query(connection)
            policy = info['storage_policy_index']
            rows = [
                row
                for row in self._rows
                if row['storage_policy_index'] == policy
            ]
            if not rows:
                return info
            names = list({row['name'] for row in rows})
            former = [
                dict(row)
                for row in connection.execute(
                    _FORMER.format(marks(names)), [policy, *names]
                )
            ]
        new = _newer_rows(rows, {row['name']: row for row in former})
        for row in new.values():
            _count(info, row, 1)
            is_shown = not row['deleted']
            self.waiting[row['name']] = (
                tuple(row[column] for column in _LISTED) if is_shown else None
            )
        for row in former:
            if row['name'] in new:
                _count(info, row, -1)
        return info


def _newer_rows(rows: list[dict], former: dict[str, dict]) -> dict[str, dict]:
    """Return the rows, by name, that will replace those of a database.

    As Swift's broker merges them (``ContainerBroker.merge_items``).

    :param rows: with times as of the ``.pending`` file, which get those that
                 the database will have
    :param former: the rows that the database has, by name
    """
    newer: dict[str, dict] = {}
    for row in rows:
        name = row['name']
        if update_new_item_from_existing(row, former.get(name)):
            if name in newer:
                update_new_item_from_existing(row, newer[name])
            newer[name] = row
    return newer


def _count(info: dict, row: dict, sign: int) -> None:
    """Add a row to the figures of a container, or take it away from them.

    As the triggers of Swift's tables do.
    """
    info['object_count'] += sign * (1 - row['deleted'])
    info['bytes_used'] += sign * row['size']


def _waiting_rows(broker: ContainerBroker) -> list[dict]:
    """Return the rows in a broker's ``.pending`` file.

    :raises ValueError: if it has more than a few, or others than uploads and
                        deletions
    """
    rows: list[dict] = []
    try:
        with open(broker.pending_file, 'rb', buffering=0) as file:
            text = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return rows
    if len(text) > MOST_BYTES:
        raise ValueError('too many rows wait')
    for entry in filter(None, text.split(b':')):
        # Another process may just be adding the last one.
        try:
            values = _Unpickler(
                io.BytesIO(b64decode(entry)), encoding='utf8'
            ).load()
            broker._commit_puts_load(rows, values)  # noqa: SLF001
        except Exception as err:
            raise ValueError('not a row') from err
    return rows


class _Unpickler(pickle.Unpickler):
    """Reads what consists of texts and numbers only."""

    def find_class(self, module: str, name: str):
        """Refuse all else."""
        raise pickle.UnpicklingError(f'{module}.{name} in a row')
