# SPDX-License-Identifier: Apache-2.0
"""Containers that Swift's own container-sharder splits."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shardmw.bench.databases import databases, is_split
from shardmw.bench.errors import BenchError
from shardmw.bench.names import Names
from shardmw.saio import Cluster

SHARDER = 'container-sharder'
REPLICATOR = 'container-replicator'

_MANAGE = (sys.executable, '-m', 'swift.cli.manage_shard_ranges')

# The tool takes each container of an account with Swift's own prefix for a
# shard, which it does not split. Backing containers are in such an account.
_PREFIX = ('--shards_account_prefix', '.shards_split_')

# One run of the sharder splits off some ranges, two by default, and another
# run may be needed to report them to the root.
_RUNS_PER_RANGE = 2
_RUNS_MORE = 4

_SPREAD_DIGITS = 4


def even_bounds(names: Names, ranges: int) -> list[str]:
    """Return bounds that give each range as many names. Pure.

    :returns: the last name of each range but the last one
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
    space = 16**_SPREAD_DIGITS
    return [
        f'{space * i // ranges:0{_SPREAD_DIGITS}x}' for i in range(1, ranges)
    ]


def shard_natively(
    cluster: Cluster, account: str, container: str, bounds: Sequence[str]
) -> None:
    """Split a container, with or without rows, by the container-sharder.

    :param bounds: the upper ends of all ranges but the last, ascending
    :raises BenchError: if some range does not become active
    """
    found = databases(cluster, account, container)
    if not found:
        raise BenchError(f'{account}/{container} has no database')
    _inject(found[0], shard_data(bounds))
    ranges = len(bounds) + 1
    for _ in range(_RUNS_PER_RANGE * ranges + _RUNS_MORE):
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


def _inject(database: Path, ranges: Sequence[dict[str, object]]) -> None:
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump(ranges, file)
        file.flush()
        _manage(database, 'replace', *_PREFIX, file.name)
    # replace has --enable, but fails with it
    _manage(database, 'enable', *_PREFIX)


def _manage(database: Path, *arguments: str) -> None:
    ran = subprocess.run(
        [*_MANAGE, str(database), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if ran.returncode:
        said = (ran.stdout + ran.stderr).strip().splitlines()
        raise BenchError(
            f'{database} cannot be split: {said[-1] if said else "?"}'
        )
