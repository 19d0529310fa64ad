# SPDX-License-Identifier: Apache-2.0
"""Find and read container databases of the temporary cluster."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shardmw_saio import Cluster
from shardmw_saio.rings import PART_POWER
from swift.common import utils
from swift.container.backend import DATADIR, SHARDED, ContainerBroker

from shardmw.backend.containers import RECORD_HEADER
from shardmw.core.layout import parse_record
from shardmw.core.placement import backing_container, hidden_account
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import Kind


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


def databases(cluster: Cluster, account: str, container: str) -> list[Path]:
    """Return all replicas of a container's database, sorted by device.

    A natively sharded container has two on each device; the one in use is
    returned.
    """
    # the hash depends on swift.conf
    utils.set_swift_dir(str(cluster.swift_dir))
    digest = utils.hash_path(account, container)
    partition = int(digest[:8], 16) >> (32 - PART_POWER)
    below = utils.storage_directory(DATADIR, partition, digest)
    brokers = [
        ContainerBroker(str(folder / f'{digest}.db'))
        for folder in sorted(cluster.devices_path.glob(f'*/*/{below}'))
    ]
    return [Path(each.db_file) for each in brokers if each.db_files]


def content(database: Path) -> Content:
    """Return the row count and the checksum of a database."""
    with connected(database) as connection:
        found = connection.execute(
            'SELECT IFNULL((SELECT SUM(object_count) FROM policy_stat), 0), '
            'hash FROM container_info'
        )
        return Content(*found.fetchone())


def is_split(root: Path, ranges: int) -> bool:
    """Return True if Swift's sharder has split a root into active ranges."""
    broker = ContainerBroker(str(root))
    states = [each.state for each in broker.get_shard_ranges()]
    is_sharded = broker.get_db_state() == SHARDED
    return is_sharded and states == [utils.ShardRange.ACTIVE] * ranges


def parts(
    cluster: Cluster, account: str, container: str, kind: Kind
) -> list[Part]:
    """Return the containers that hold the rows of a container.

    These are the shards of a sharded container in their order, followed by
    its root, which has no rows; or the ranges of a native container.

    :raises BenchError: if the container is not of this kind
    """
    root = Part(account, container)
    if kind.is_plain:
        return [root]
    brokers = [
        ContainerBroker(str(each))
        for each in databases(cluster, account, container)[:1]
    ]
    if kind.is_native:
        ranges = [each for b in brokers for each in b.get_shard_ranges()]
        if not ranges or any(
            r.state != utils.ShardRange.ACTIVE for r in ranges
        ):
            raise BenchError(f'{account}/{container} is not sharded natively')
        return [Part(r.account, r.container, r.upper_str) for r in ranges]
    # databases have the names of headers in this form
    name = RECORD_HEADER.title()
    records = [b.metadata.get(name, ('',))[0] for b in brokers]
    if not any(records):
        raise BenchError(f'{account}/{container} is not sharded')
    layout = parse_record(records[0])
    if layout.shards != kind.shards:
        raise BenchError(
            f'{account}/{container} has {layout.shards} shards and not '
            f'{kind.shards}'
        )
    shards = (
        backing_container(container, layout.id, i) for i in range(kind.shards)
    )
    return [*(Part(hidden_account(account), each) for each in shards), root]


@contextlib.contextmanager
def connected(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; raise BenchError if that fails.

    Swift's brokers would merge pending rows, or quarantine a database that is
    being replicated.
    """
    uri = f'{database.as_uri()}?mode=ro'
    try:
        with contextlib.closing(
            sqlite3.connect(uri, timeout=60, uri=True)
        ) as connection:
            yield connection
    except sqlite3.Error as err:
        raise BenchError(f'{database} cannot be used: {err}') from err
