# SPDX-License-Identifier: Apache-2.0
"""Read the container databases on the disks of an own cluster."""

import configparser
import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.placement import backing_container, hidden_account
from shardmw.record import Layout, LayoutError, parse_record
from shardmw.saio import Cluster
from shardmw.saio.rings import PART_POWER

# What another connection may hold a database for.
_PATIENCE_SECONDS = 60

# What Swift calls the states of shard ranges.
_STATES = {
    10: 'found',
    20: 'created',
    30: 'cleaved',
    40: 'active',
    50: 'shrinking',
    60: 'sharding',
    70: 'sharded',
    80: 'shrunk',
}
_ACTIVE = 40

# As Swift's container server writes it.
_RECORD = 'X-Container-Sysmeta-Shardmw-Layout'

_METADATA = 'SELECT metadata FROM container_info'
_INFO = 'SELECT hash, storage_policy_index FROM container_info'
_PATH = 'SELECT account, container FROM container_info'
_COUNT = 'SELECT SUM(object_count) FROM policy_stat'
_RANGES = (
    'SELECT name, upper, state FROM shard_range WHERE deleted = 0 '
    "ORDER BY upper = '', upper"
)


class Part(NamedTuple):
    """One of the containers that the rows of a container lie in.

    :param account: that of the container, or the hidden one of the shards
    :param upper: the last name that a range of a native container may have;
                  empty for all others
    """

    account: str
    container: str
    upper: str = ''


class Content(NamedTuple):
    """What a database holds, by its own statistics.

    :param checksum: the same for two databases that hold the same rows
    """

    rows: int
    checksum: str


class Shards(NamedTuple):
    """How far Swift's sharder has split a container, by its root.

    :param states: the states of the ranges
    """

    is_root_sharded: bool
    states: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return a description for people."""
        root = 'sharded' if self.is_root_sharded else 'not sharded'
        return ', '.join([f'root {root}', *self.states])


def databases(cluster: Cluster, account: str, container: str) -> list[Path]:
    """Return all replicas of a container's database, sorted by device.

    A container that Swift's sharder has split has two of them on each device;
    the one in use is returned.
    """
    folders = _folders(cluster, account, container)
    return [_newest(folder) for folder in folders if any(_files(folder))]


def content(database: Path) -> Content:
    """Return what a database holds.

    :raises BenchError: if it cannot be read
    """
    with connected(database) as connection:
        checksum, _ = connection.execute(_INFO).fetchone()
        rows = connection.execute(_COUNT).fetchone()[0]
    return Content(rows or 0, checksum)


def policy_index(database: Path) -> int:
    """Return the index of a container's storage policy.

    :raises BenchError: if its database cannot be read
    """
    with connected(database) as connection:
        return connection.execute(_INFO).fetchone()[1]


def shards_of(root: Path) -> Shards:
    """Return how far Swift's sharder has split a container.

    :param root: its database
    :raises BenchError: if it cannot be read
    """
    with connected(root) as connection:
        path = '/'.join(connection.execute(_PATH).fetchone())
    states = [_STATES.get(state) for *_, state in _shard_ranges(root, path)]
    # sharded, its rows' old database is gone and the new one's name tells
    return Shards(_is_alone(root) and '_' in root.stem, tuple(states))


def parts(
    cluster: Cluster, account: str, container: str, kind: Kind
) -> list[Part]:
    """Return the containers that the rows of a container lie in.

    Those of a sharded container are its shards, in their order, and then its
    root, which has no rows. Those of a native container are its ranges.

    :raises BenchError: if the container is not of this kind
    """
    if kind.is_native:
        return _ranges(cluster, account, container)
    root = Part(account, container)
    if kind.is_plain:
        return [root]
    layout = layout_of(cluster, account, container)
    if layout.shards != kind.shards:
        raise BenchError(
            f'{account}/{container} has {layout.shards} shards and not '
            f'{kind.shards}'
        )
    hidden = hidden_account(account)
    return [
        *(
            Part(hidden, backing_container(container, layout.id, shard))
            for shard in range(layout.shards)
        ),
        root,
    ]


def layout_of(cluster: Cluster, account: str, container: str) -> Layout:
    """Return the layout that the root of a sharded container records.

    :raises BenchError: if there is no such container, or no layout
    """
    record = None
    for root in databases(cluster, account, container)[:1]:
        with connected(root) as connection:
            (text,) = connection.execute(_METADATA).fetchone()
        record, _ = json.loads(text or '{}').get(_RECORD, (None, None))
    if not record:
        raise BenchError(f'{account}/{container} is not sharded')
    try:
        return parse_record(record)
    except LayoutError as err:
        raise BenchError(
            f'{account}/{container} has a layout record that cannot be '
            f'read: {err}'
        ) from err


@contextlib.contextmanager
def connected(
    database: Path, writes: bool = False
) -> Iterator[sqlite3.Connection]:
    """Give a connection to a database, without implicit transactions.

    :raises BenchError: if the database cannot be read or written
    """
    uri = f'{database.as_uri()}?mode={"rw" if writes else "ro"}'
    try:
        with contextlib.closing(
            sqlite3.connect(
                uri, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None
            )
        ) as connection:
            yield connection
    except sqlite3.Error as err:
        raise BenchError(f'{database} cannot be used: {err}') from err


def _ranges(cluster: Cluster, account: str, container: str) -> list[Part]:
    roots = databases(cluster, account, container)
    path = f'{account}/{container}'
    found = _shard_ranges(roots[0], path) if roots else []
    if not found or any(state != _ACTIVE for *_, state in found):
        raise BenchError(f'{path} is not sharded natively')
    return [Part(*name.split('/', 1), upper) for name, upper, _ in found]


def _shard_ranges(root: Path, path: str) -> list[tuple[str, str, int]]:
    """Return ``(name, upper, state)`` of each range but the root's own."""
    with connected(root) as connection:
        rows = connection.execute(_RANGES).fetchall()
    return [row for row in rows if row[0] != path]


def _folders(cluster: Cluster, account: str, container: str) -> list[Path]:
    digest = _hash_path(cluster, account, container)
    partition = int(digest[:8], 16) >> (32 - PART_POWER)
    below = f'containers/{partition}/{digest[-3:]}/{digest}'
    return sorted(cluster.devices_path.glob(f'*/*/{below}'))


def _hash_path(cluster: Cluster, account: str, container: str) -> str:
    """Return the hash that a cluster stores a container under."""
    conf = configparser.RawConfigParser()
    conf.read(cluster.path / 'etc' / 'swift.conf')
    salt = conf['swift-hash']
    text = (
        f'{salt["swift_hash_path_prefix"]}/{account}/{container}'
        f'{salt["swift_hash_path_suffix"]}'
    )
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob(f'{folder.name}*.db')


def _is_alone(database: Path) -> bool:
    return len(list(_files(database.parent))) == 1


def _newest(folder: Path) -> Path:
    # a sharded container's is called HASH_EPOCH.db, and outlives HASH.db
    return max(_files(folder), key=lambda path: path.stem)
