# SPDX-License-Identifier: Apache-2.0
"""Read the container databases on the disks of an own cluster."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from swift.common.utils import (
    ShardRange,
    hash_path,
    set_swift_dir,
    storage_directory,
)
from swift.container.backend import DATADIR, SHARDED, ContainerBroker

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.placement import backing_container, hidden_account
from shardmw.record import Layout, LayoutError, parse_record
from shardmw.saio import Cluster
from shardmw.saio.rings import PART_POWER

# Another connection may lock a database for so long.
_LOCK_TIMEOUT_SECONDS = 60

# As Swift's container server writes it.
_RECORD = 'X-Container-Sysmeta-Shardmw-Layout'

_METADATA = 'SELECT metadata FROM container_info'
_CONTENT = (
    'SELECT (SELECT SUM(object_count) FROM policy_stat), hash, '
    'storage_policy_index FROM container_info'
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
    # Swift's hash has a prefix and a suffix from swift.conf
    set_swift_dir(str(cluster.swift_dir))
    digest = hash_path(account, container)
    partition = int(digest[:8], 16) >> (32 - PART_POWER)
    below = storage_directory(DATADIR, partition, digest)
    brokers = [
        ContainerBroker(str(folder / f'{digest}.db'))
        for folder in sorted(cluster.devices_path.glob(f'*/*/{below}'))
    ]
    return [Path(each.db_file) for each in brokers if each.db_files]


def content(database: Path) -> Content:
    """Return what a database holds.

    :raises BenchError: if it cannot be read
    """
    rows, checksum, _ = _read(database, _CONTENT)
    return Content(rows or 0, checksum)


def policy_index(database: Path) -> int:
    """Return the index of a container's storage policy.

    :raises BenchError: if its database cannot be read
    """
    return _read(database, _CONTENT)[2]


def shards_of(root: Path) -> Shards:
    """Return how far Swift's sharder has split a container.

    :param root: its database
    """
    broker = ContainerBroker(str(root))
    states = [each.state_text for each in broker.get_shard_ranges()]
    return Shards(broker.get_db_state() == SHARDED, tuple(states))


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
        (text,) = _read(root, _METADATA)
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

    Swift's brokers would merge pending rows, or quarantine a database that is
    being replicated.

    :raises BenchError: if the database cannot be read or written
    """
    uri = f'{database.as_uri()}?mode={"rw" if writes else "ro"}'
    try:
        with contextlib.closing(
            sqlite3.connect(
                *(uri, _LOCK_TIMEOUT_SECONDS),
                uri=True,
                isolation_level=None,
            )
        ) as connection:
            yield connection
    except sqlite3.Error as err:
        raise BenchError(f'{database} cannot be used: {err}') from err


def _read(database: Path, query: str) -> tuple:
    with connected(database) as connection:
        return connection.execute(query).fetchone()


def _ranges(cluster: Cluster, account: str, container: str) -> list[Part]:
    found = [
        each
        for root in databases(cluster, account, container)[:1]
        for each in ContainerBroker(str(root)).get_shard_ranges()
    ]
    if not found or any(each.state != ShardRange.ACTIVE for each in found):
        raise BenchError(f'{account}/{container} is not sharded natively')
    return [
        Part(each.account, each.container, each.upper_str) for each in found
    ]
