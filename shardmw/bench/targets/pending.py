# SPDX-License-Identifier: Apache-2.0
"""Rows that wait beside a container database, as Swift's own server has it.

A write appends to a file beside the database. When that is full, one write
takes them all in, and waits for it: every few hundred writes of a container.
New shards that are written to evenly would all come to it at the same time,
after none of them did for long, unlike those that have been in use. So in a
short load a plain container would pay for it and shards would not.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from shardmw.bench.databases import databases, parts, policy_index
from shardmw.bench.kinds import Kind
from shardmw.saio import Cluster

_SEPARATOR = b':'


def stagger(
    cluster: Cluster,
    account: str,
    container: str,
    kind: Kind,
    phase: float = 0.0,
) -> None:
    """Fill the files of a container's parts, each to another extent.

    The rows are of objects that were deleted, so nobody sees them.

    :param phase: see :func:`wanted_fullness`
    """
    files = [
        (index, database)
        for index, part in enumerate(parts(cluster, account, container, kind))
        for database in databases(cluster, part.account, part.container)
    ]
    entries, most_bytes = _entries(policy_index(files[0][1]))
    for index, database in files:
        path = _waiting(database)
        fullness = wanted_fullness(index, kind.parts, phase)
        there = path.stat().st_size if path.exists() else 0
        room = int(fullness * most_bytes) - there
        with path.open('ab') as file:
            file.write(b''.join(that_fit(entries, room)))


def wanted_fullness(part: int, parts: int, phase: float) -> float:
    """Return how full a part's file should be, from 0 to 1. Pure.

    :param parts: more of them than these, such as the root of a sharded
                  container, are left empty
    :param phase: from 0 to below 1: where the first one stands between this
                  and the next
    """
    return (part + phase) / parts if part < parts else 0.0


def that_fit(entries: Sequence[bytes], room: int) -> list[bytes]:
    """Return as many entries as fit into so many bytes. Pure."""
    found = []
    for entry in entries:
        room -= len(entry)
        if room < 0:
            break
        found.append(entry)
    return found


def _waiting(database: Path) -> Path:
    return database.with_name(f'{database.name}.pending')


def _entries(policy: int) -> tuple[list[bytes], int]:
    """Return Swift's entries for deleted objects, and a full file's size."""
    # imported late: it takes half a second
    from swift.common.db import PENDING_CAP
    from swift.common.utils import Timestamp
    from swift.container.backend import ContainerBroker

    with tempfile.TemporaryDirectory(prefix='shardmw-bench-') as folder:
        database = Path(folder) / 'rows.db'
        broker = ContainerBroker(str(database), account='a', container='c')
        now = time.time()
        broker.initialize(Timestamp(now).internal, policy)
        path = _waiting(database)
        number = 0
        while not path.exists() or path.stat().st_size < PENDING_CAP:
            broker.delete_object(
                f'o{number:010d}', Timestamp(now).internal, policy
            )
            number += 1
        content = path.read_bytes()
    entries = content.split(_SEPARATOR)[1:]
    return [_SEPARATOR + entry for entry in entries], PENDING_CAP
