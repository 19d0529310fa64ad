# SPDX-License-Identifier: Apache-2.0
"""Containers that Swift's own container-sharder splits."""

from collections.abc import Sequence

from shardmw.bench.names import Names
from shardmw.saio import Cluster


def even_bounds(names: Names, ranges: int) -> list[str]:
    """Where to split names so that each range has as many. Pure.

    :returns: the last name of each range but the last one
    :raises ValueError: if there are fewer names than ranges
    """
    raise NotImplementedError


def spread_bounds(ranges: int) -> list[str]:
    """Where to split names that begin with digits of a hash. Pure.

    :returns: one fewer than ranges, hexadecimal
    """
    raise NotImplementedError


def shard_natively(
    cluster: Cluster, account: str, container: str, bounds: Sequence[str]
) -> None:
    """Have the cluster's container-sharder split a container.

    It may hold rows or be empty.

    :param bounds: the upper ends of all ranges but the last, ascending
    :raises BenchError: if it does not become sharded, all ranges active
    """
    raise NotImplementedError
