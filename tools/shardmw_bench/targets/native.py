# SPDX-License-Identifier: Apache-2.0
"""Containers that Swift's own container-sharder splits."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from shardmw_saio import Cluster
from swift.common.utils import ShardRange, Timestamp
from swift.container.backend import ContainerBroker
from swift.container.sharder import make_shard_ranges

from shardmw_bench.databases import databases, is_split
from shardmw_bench.errors import BenchError
from shardmw_bench.names import Names

SHARDER = 'container-sharder'
REPLICATOR = 'container-replicator'

_MANAGE_SHARD_RANGES = (sys.executable, '-m', 'swift.cli.manage_shard_ranges')

# Unlike Swift's own prefix, it is not the prefix of the account with the
# backing containers.
_PREFIX = '.shards_split_'


def even_bounds(names: Names, ranges: int) -> list[str]:
    """Return the upper bounds of all equal ranges but the last. Pure.

    :raises BenchError: if there are fewer names than ranges
    """
    if len(names) < ranges:
        raise BenchError(
            f'{len(names)} objects cannot fill {ranges} native ranges: ask '
            'for more objects, or fewer ranges'
        )
    return [names[len(names) * i // ranges - 1] for i in range(1, ranges)]


def spread_bounds(ranges: int) -> list[str]:
    """Return bounds for names that begin with digits of a hash. Pure."""
    return [f'{0x10000 * i // ranges:04x}' for i in range(1, ranges)]


def shard_natively(
    cluster: Cluster, account: str, container: str, bounds: Sequence[str]
) -> None:
    """Split a container, with or without rows, by the container-sharder.

    :param bounds: the upper ends of all ranges but the last, ascending
    :raises BenchError: if some range does not become active
    """
    begin_sharding(root_database(cluster, account, container), bounds)
    run_sharder(cluster, account, container, len(bounds) + 1)


def root_database(cluster: Cluster, account: str, container: str) -> Path:
    """Return a replica of the root; raise BenchError if there is none."""
    found = databases(cluster, account, container)
    if not found:
        raise BenchError(f'{account}/{container} has no database')
    return found[0]


def find_ranges(database: Path, rows: int) -> int:
    """Find ranges of so many rows each, and have the sharder split them.

    :returns: how many ranges were found
    :raises BenchError: if ``swift-manage-shard-ranges`` fails
    """
    ran = subprocess.run(
        [
            *(*_MANAGE_SHARD_RANGES, str(database), 'find_and_replace'),
            *(str(rows), '--minimum-shard-size', '1', '--enable'),
            *('--shards_account_prefix', _PREFIX),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        raise BenchError(
            f'swift-manage-shard-ranges {database} failed: {ran.stderr}'
        )
    return len(ContainerBroker(str(database)).get_shard_ranges())


def run_sharder(
    cluster: Cluster, account: str, container: str, ranges: int
) -> None:
    """Run the container-sharder until a container is split.

    :raises BenchError: if some range does not become active
    """
    found = databases(cluster, account, container)
    # a run splits off some ranges, two by default, and another one may be
    # needed to report them to the root
    for _ in range(2 * ranges + 4):
        if len(found) > 1:
            cluster.daemon(REPLICATOR)
        cluster.daemon(SHARDER)
        found = databases(cluster, account, container)
        if all(is_split(each, ranges) for each in found):
            return
    raise BenchError(
        f'{account}/{container} is not split into {ranges} ranges by '
        f'{SHARDER}: see {cluster.log_path(SHARDER)}'
    )


def report_usage(cluster: Cluster) -> None:
    """Make the ranges of all containers report their counts to the roots."""
    cluster.daemon(SHARDER)


def shard_data(bounds: Sequence[str]) -> list[dict[str, object]]:
    """Return ranges for ``swift-manage-shard-ranges``. Pure."""
    pairs = zip(['', *bounds], [*bounds, ''], strict=True)
    return [
        {'index': index, 'lower': lower, 'upper': upper, 'object_count': 0}
        for index, (lower, upper) in enumerate(pairs)
    ]


def begin_sharding(
    database: Path, bounds: Sequence[str], prefix: str = _PREFIX
) -> None:
    """Have the sharder split a container, as an operator does."""
    broker = ContainerBroker(str(database))
    broker.get_info()  # reads the names of the account and the container
    ranges = make_shard_ranges(broker, shard_data(bounds), prefix)
    broker.merge_shard_ranges(ranges)
    now = Timestamp.now()
    own = broker.get_own_shard_range()
    own.update_state(ShardRange.SHARDING, state_timestamp=now)
    own.epoch = now
    broker.merge_shard_ranges([own])
    enabled = {'X-Container-Sysmeta-Sharding': ('True', now.internal)}
    broker.update_metadata(enabled)
