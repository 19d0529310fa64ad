# SPDX-License-Identifier: Apache-2.0
"""Read the container databases on the disks of the temporary cluster."""

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

_LOCK_TIMEOUT_SECONDS = 60

# As Swift's container server writes it.
_RECORD = 'X-Container-Sysmeta-Shardmw-Layout'

_CONTENT = (
    'SELECT (SELECT SUM(object_count) FROM policy_stat), hash, '
    'storage_policy_index, metadata FROM container_info'
)


class Part(NamedTuple):
    """A container that holds some of the rows of a container.

    :param upper: the upper bound of a native range; '' for other parts
    """

    account: str
    container: str
    upper: str = ''


class Content(NamedTuple):
    """The row count of a database and a checksum of its rows."""

    rows: int
    checksum: str


class Shards(NamedTuple):
    """The progress of Swift's sharder with a container.

    :param states: the states of the shard ranges
    """

    is_root_sharded: bool
    states: tuple[str, ...]

    @property
    def text(self) -> str:
        root = 'sharded' if self.is_root_sharded else 'not sharded'
        return ', '.join([f'root {root}', *self.states])


def databases(cluster: Cluster, account: str, container: str) -> list[Path]:
    """Return all replicas of a container's database, sorted by device.

    A natively sharded container has two databases on each device; the one in
    use is returned.
    """
    # the hash depends on swift.conf
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
    """Return the row count and the checksum of a database."""
    rows, checksum, *_ = _read(database)
    return Content(rows or 0, checksum)


def policy_index(database: Path) -> int:
    """Return the index of a container's storage policy."""
    return _read(database)[2]


def shards_of(root: Path) -> Shards:
    """Return the progress of Swift's sharder, by the root's database."""
    broker = ContainerBroker(str(root))
    states = [each.state_text for each in broker.get_shard_ranges()]
    return Shards(broker.get_db_state() == SHARDED, tuple(states))


def parts(
    cluster: Cluster, account: str, container: str, kind: Kind
) -> list[Part]:
    """Return the containers that hold the rows of a container.

    These are the shards of a sharded container in their order, followed by
    its root, which has no rows; or the ranges of a native container.

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
    shards = range(layout.shards)
    names = [backing_container(container, layout.id, i) for i in shards]
    return [*(Part(hidden, name) for name in names), root]


def layout_of(cluster: Cluster, account: str, container: str) -> Layout:
    """Return the layout in the record of a sharded container's root.

    :raises BenchError: if there is no such container, or no layout
    """
    record = None
    for root in databases(cluster, account, container)[:1]:
        metadata = json.loads(_read(root)[3] or '{}')
        record, _ = metadata.get(_RECORD, (None, None))
    if not record:
        raise BenchError(f'{account}/{container} is not sharded')
    try:
        return parse_record(record)
    except LayoutError as err:
        raise BenchError(
            f'{account}/{container} has an invalid layout record: {err}'
        ) from err


@contextlib.contextmanager
def connected(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading.

    Swift's brokers would merge pending rows, or quarantine a database that is
    being replicated.

    :raises BenchError: if the database cannot be read
    """
    uri = f'{database.as_uri()}?mode=ro'
    try:
        with contextlib.closing(
            sqlite3.connect(uri, _LOCK_TIMEOUT_SECONDS, uri=True)
        ) as connection:
            yield connection
    except sqlite3.Error as err:
        raise BenchError(f'{database} cannot be used: {err}') from err


def _read(database: Path) -> tuple:
    with connected(database) as connection:
        return connection.execute(_CONTENT).fetchone()


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
