# SPDX-License-Identifier: Apache-2.0
"""Rows put straight into the container databases of an own cluster.

A million in seconds, where uploads would take an hour. The databases are as
Swift's own container server leaves them: its replicator, auditor and sharder
find nothing amiss. There are no objects behind the rows.
"""

from shardmw.bench.kinds import Kind
from shardmw.bench.names import Names
from shardmw.saio import Cluster


def preload(
    cluster: Cluster,
    account: str,
    container: str,
    kind: Kind,
    names: Names,
    first: int = 0,
    size: int = 1,
) -> None:
    """Put a row for each name into a container, on all replicas.

    :param account: such as ``AUTH_test``
    :param container: one that the cluster has, of this kind
    :param first: begin with this name: those before it are there already
    :param size: bytes that each row claims
    :raises BenchError: if a database is missing
    """
    raise NotImplementedError
