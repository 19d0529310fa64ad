# SPDX-License-Identifier: Apache-2.0
"""Rows that wait beside a container database, as Swift's own server has it.

A write appends to a file beside the database. When that is full, one write
takes them all in, and waits for it: every few hundred writes of a container.
New shards that are written to evenly would all come to it at the same time,
after none of them did for long, unlike those that have been in use.
"""

import time
from pathlib import Path

from shardmw.bench.databases import databases, parts, policy_index
from shardmw.bench.kinds import Kind
from shardmw.bench.names import Names
from shardmw.bench.rows import Row, placer, row_maker, stamps_before
from shardmw.saio import Cluster


def stagger(
    cluster: Cluster, account: str, container: str, kind: Kind, names: Names
) -> None:
    """Fill the files of shards: the first not at all, the last nearly.

    :param names: enough for it, and not in the container
    """
    found = parts(cluster, account, container, kind)
    place = placer(container, kind, [part.upper for part in found[:-1]])
    make = row_maker(1, stamps_before(time.time(), len(names)))
    files = [
        [_Pending(each) for each in databases(cluster, *part[:2])]
        for part in found
    ]
    for number, name in enumerate(names):
        part, backing = place(name)
        row = make(number, name, backing)
        for file in files[part]:
            if file.fullness < wanted_fullness(part, kind.parts):
                file.append(row)


def wanted_fullness(part: int, parts: int) -> float:
    """How full the file of a shard should be, from 0 to below 1. Pure."""
    return part / parts if part < parts else 0.0


class _Pending:
    """The file beside a database."""

    def __init__(self, database: Path) -> None:
        # imported late: it takes half a second
        from swift.common.db import PENDING_CAP
        from swift.container.backend import ContainerBroker

        self._broker = ContainerBroker(str(database))
        self._path = Path(f'{database}.pending')
        self._most_bytes = PENDING_CAP
        self._policy = policy_index(database)

    @property
    def fullness(self) -> float:
        if not self._path.exists():
            return 0.0
        return self._path.stat().st_size / self._most_bytes

    def append(self, row: Row) -> None:
        self._broker.put_object(*row, storage_policy_index=self._policy)
