# SPDX-License-Identifier: Apache-2.0
"""Put rows into the container databases of the temporary cluster.

Swift's own broker merges them, as the container server does: tens of
thousands of rows in a second, where uploads would take a minute. The rows
have no objects.
"""

import base64
import bisect
import functools
import hashlib
import mimetypes
import multiprocessing
import os
import pickle
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from shardmw_saio import Cluster
from swift.common.db import PENDING_CAP, PICKLE_PROTOCOL
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from shardmw.core.placement import shard_of
from shardmw_bench import signals
from shardmw_bench.databases import Part, databases, parts
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import Kind
from shardmw_bench.names import Names

# The unit of Swift's timestamps.
_TICK_SECONDS = 1e-5

_BATCH_ROWS = 50_000

# Another process takes as long to start as this number of rows takes.
_ROWS_WORTH_A_PROCESS = 50_000


def preload(
    cluster: Cluster,
    account: str,
    container: str,
    kind: Kind,
    names: Names,
    first: int = 0,
    size: int = 1,
) -> None:
    """Put a row for each name into all replicas of a container.

    :param account: such as ``AUTH_test``
    :param first: the index of the first name that has no row yet
    :param size: the bytes of each object
    :raises BenchError: if a database is missing
    """
    found = parts(cluster, account, container, kind)
    targets = _targets(cluster, found)
    if len({index for index, _ in targets}) != len(found):
        raise BenchError(f'{account}/{container} lacks a database')
    place = placer(kind, [part.upper for part in found[:-1]])
    began = time.time() - len(names) * _TICK_SECONDS
    put = functools.partial(_put, place, names, first, size, began)
    worth = max(1, (len(names) - first) // _ROWS_WORTH_A_PROCESS)
    count = min(len(os.sched_getaffinity(0)), worth, len(targets))
    _in_parallel(
        [functools.partial(put, targets[i::count]) for i in range(count)]
    )


def stagger(
    cluster: Cluster,
    account: str,
    container: str,
    kind: Kind,
    phase: float = 0.0,
) -> None:
    """Fill the pending file beside each database to another level.

    Swift appends writes to that file. The write that finds it full (every few
    hundred) waits until all rows are in the database. All new shards would do
    that at the same time, and in a short load not at all, unlike shards that
    have been in use. The rows are of deleted objects, which no listing shows.

    :param phase: see :func:`wanted_fullness`
    """
    entries: list[bytes] = []
    found = parts(cluster, account, container, kind)
    for index, database in _targets(cluster, found):
        broker = ContainerBroker(str(database))
        entries = entries or _pending_entries(broker)
        path = Path(broker.pending_file)
        fullness = wanted_fullness(index, kind.parts, phase)
        there = path.stat().st_size if path.exists() else 0
        room = max(0, int(fullness * PENDING_CAP) - there)
        with path.open('ab') as file:
            file.write(b''.join(entries[: room // len(entries[0])]))


def wanted_fullness(part: int, parts: int, phase: float) -> float:
    """Return how full the file of a part should be, from 0 to 1. Pure.

    :param parts: further parts (the root of a sharded container) stay empty
    :param phase: from 0 to below 1; added to the number of the part
    """
    return (part + phase) / parts if part < parts else 0.0


def row_maker(
    size: int, began: float, policy: int = 0
) -> Callable[[int, str], dict[str, object]]:
    """Return a function that makes rows: ``make(number, name)``. Pure.

    :param size: the bytes of each object, all of them ``x``
    :param began: the timestamp of object 0, in seconds; each following object
                  is 10 microseconds later
    """
    # whole ticks: sums of them are not rounded to the same timestamp
    began = round(began, 5)
    etag = hashlib.md5(b'x' * size, usedforsecurity=False).hexdigest()
    guessed = functools.lru_cache(mimetypes.guess_type)

    def make(number: int, name: str) -> dict[str, object]:
        _, dot, ending = name.rpartition('.')
        guess, _ = guessed(f'x.{ending}' if dot else 'x')
        return {
            'name': name,
            'created_at': f'{began + number * _TICK_SECONDS:016.5f}',
            'size': size,
            # as Swift guesses it
            'content_type': guess or 'application/octet-stream',
            'etag': etag,
            'deleted': 0,
            'storage_policy_index': policy,
        }

    return make


def placer(kind: Kind, uppers: Sequence[str]) -> Callable[[str], int]:
    """Return a function that returns the index of a name's part. Pure.

    :param uppers: the upper bounds of a native container's ranges, without
                   the last one
    """
    if kind.shards is None:
        # without bounds, all names are in the only part
        bounds = uppers if kind.is_native else ()
        return functools.partial(bisect.bisect_left, bounds)
    return functools.partial(
        shard_of, shard_count=kind.parts, depth=kind.depth
    )


def _targets(
    cluster: Cluster, found: Sequence[Part]
) -> list[tuple[int, Path]]:
    return [
        (index, database)
        for index, part in enumerate(found)
        for database in databases(cluster, part.account, part.container)
    ]


def _pending_entries(broker: ContainerBroker) -> list[bytes]:
    """Return a full file of Swift's entries, all of equal length."""
    now = Timestamp.now().internal
    policy = broker.storage_policy_index
    entries: list[bytes] = []
    while sum(map(len, entries[:1])) * len(entries) <= PENDING_CAP:
        row = (f'o{len(entries):010d}', now, 0, 'application/deleted')
        row += ('noetag', 1, policy, None, None)
        pickled = pickle.dumps(row, protocol=PICKLE_PROTOCOL)
        entries.append(b':' + base64.b64encode(pickled))
    return entries


def _in_parallel(jobs: Sequence[Callable[[], None]]) -> None:
    if len(jobs) == 1:
        return jobs[0]()
    # spawned: a fork would inherit the connections of this process
    context = multiprocessing.get_context('spawn')
    processes = [context.Process(target=job) for job in jobs]
    try:
        with signals.kept_from_children():
            for process in processes:
                process.start()
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            raise BenchError('rows could not be written: see above')
    finally:
        for process in processes:
            if process.pid:
                process.kill()


def _put(
    place: Callable[[str], int],
    names: Names,
    first: int,
    size: int,
    began: float,
    targets: Sequence[tuple[int, Path]],
) -> None:
    numbers = defaultdict(lambda: array('Q'))
    for number in range(first, len(names)):
        numbers[place(names[number])].append(number)
    for part, database in targets:
        broker = ContainerBroker(str(database))
        make = row_maker(size, began, broker.storage_policy_index)
        own = numbers[part]
        for begin in range(0, len(own), _BATCH_ROWS):
            batch = own[begin : begin + _BATCH_ROWS]
            broker.merge_items([make(n, names[n]) for n in batch])
