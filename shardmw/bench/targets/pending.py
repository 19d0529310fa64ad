# SPDX-License-Identifier: Apache-2.0
"""Pending rows beside container databases.

Swift appends a write to a file beside the database. The write that finds the
file full (every few hundred writes) waits until all rows are in the database.
New shards that are written to evenly would all do that at the same time, and
in a short load not at all, unlike a plain container and unlike shards that
have been in use. So the files are filled to different levels before a load.
"""

import tempfile
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
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
    """Fill the file of each part of a container to another level.

    The rows are of deleted objects, which no listing shows.

    :param phase: see :func:`wanted_fullness`
    """
    files = [
        (index, database)
        for index, part in enumerate(parts(cluster, account, container, kind))
        for database in databases(cluster, part.account, part.container)
    ]
    entries, most_bytes = _entries(policy_index(files[0][1]))
    for index, database in files:
        path = _pending_path(database)
        fullness = wanted_fullness(index, kind.parts, phase)
        there = path.stat().st_size if path.exists() else 0
        room = int(fullness * most_bytes) - there
        with path.open('ab') as file:
            file.write(b''.join(that_fit(entries, room)))


def wanted_fullness(part: int, parts: int, phase: float) -> float:
    """Return how full the file of a part should be, from 0 to 1. Pure.

    :param parts: further parts (the root of a sharded container) stay empty
    :param phase: from 0 to below 1; added to the number of the part
    """
    return (part + phase) / parts if part < parts else 0.0


def that_fit(entries: Sequence[bytes], room: int) -> Sequence[bytes]:
    """Return the first entries that fit into so many bytes. Pure."""
    ends = list(accumulate(map(len, entries)))
    return entries[: bisect_right(ends, room)]


def _pending_path(database: Path) -> Path:
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
        now = Timestamp(time.time()).internal
        broker.initialize(now, policy)
        path = _pending_path(database)
        number = 0
        while not path.exists() or path.stat().st_size < PENDING_CAP:
            broker.delete_object(f'o{number:010d}', now, policy)
            number += 1
        content = path.read_bytes()
    entries = content.split(_SEPARATOR)[1:]
    return [_SEPARATOR + entry for entry in entries], PENDING_CAP
