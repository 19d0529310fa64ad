# SPDX-License-Identifier: Apache-2.0
"""Put rows into the container databases of the temporary cluster.

Swift's own broker merges them, as the container server does: tens of
thousands of rows in a second, where uploads would take a minute. The rows
have no objects.
"""

import bisect
import functools
import hashlib
import mimetypes
import multiprocessing
import os
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from swift.container.backend import ContainerBroker

from shardmw.bench import signals
from shardmw.bench.databases import databases, parts, policy_index
from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.names import Names
from shardmw.placement import shard_of
from shardmw.saio import Cluster

# The unit of Swift's timestamps.
_TICK_SECONDS = 1e-5

_BATCH_ROWS = 50_000

# Another process takes as long to start as this number of rows takes.
_ROWS_WORTH_A_PROCESS = 50_000


class _Job(NamedTuple):
    """The rows that one process writes.

    :param uppers: see :func:`placer`
    :param first: the index of the first name that gets a row
    :param began: the timestamp of name 0
    :param targets: the index of a part, and the path of its database
    """

    kind: Kind
    uppers: Sequence[str]
    names: Names
    first: int
    size: int
    began: float
    targets: Sequence[tuple[int, Path]]


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
    :param kind: the kind of the container
    :param first: the index of the first name that has no row yet
    :param size: the bytes of each object
    :raises BenchError: if a database is missing
    """
    found = parts(cluster, account, container, kind)
    targets = [
        (index, database)
        for index, part in enumerate(found)
        for database in databases(cluster, part.account, part.container)
    ]
    if len({index for index, _ in targets}) != len(found):
        raise BenchError(f'{account}/{container} lacks a database')
    uppers = [part.upper for part in found[:-1]]
    began = time.time() - len(names) * _TICK_SECONDS
    worth = max(1, (len(names) - first) // _ROWS_WORTH_A_PROCESS)
    count = min(len(os.sched_getaffinity(0)), worth, len(targets))
    jobs = [
        _Job(kind, uppers, names, first, size, began, targets[i::count])
        for i in range(count)
    ]
    if count == 1:
        _put(jobs[0])
    else:
        _put_in_parallel(jobs)


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

    def make(number: int, name: str) -> dict[str, object]:
        ending = name[name.rfind('.') :] if '.' in name else ''
        return {
            'name': name,
            'created_at': f'{began + number * _TICK_SECONDS:016.5f}',
            'size': size,
            'content_type': _type_of_ending(ending),
            'etag': etag,
            'deleted': 0,
            'storage_policy_index': policy,
        }

    return make


@functools.lru_cache
def _type_of_ending(ending: str) -> str:
    """Return the content type that Swift guesses from a name."""
    guessed, _ = mimetypes.guess_type(f'x{ending}')
    return guessed or 'application/octet-stream'


def placer(kind: Kind, uppers: Sequence[str]) -> Callable[[str], int]:
    """Return a function that returns the part of a name. Pure.

    A part is an index into what :func:`shardmw.bench.databases.parts`
    returns.

    :param uppers: the upper bounds of a native container's ranges, without
                   the last one
    """
    if kind.is_native:
        return lambda name: bisect.bisect_left(uppers, name)
    if kind.is_plain:
        return lambda name: 0
    return lambda name: shard_of(name, kind.parts, kind.depth)


def _put_in_parallel(jobs: Sequence[_Job]) -> None:
    # spawned: a fork would inherit the connections of this process
    context = multiprocessing.get_context('spawn')
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(len(jobs), context) as pool:
        try:
            with signals.kept_from_children():
                done = pool.map(_put, jobs)
            list(done)
        except BaseException:
            # SIGTERM, which a pool would send, is blocked in its processes
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _put(job: _Job) -> None:
    """Put the rows of a job into its databases."""
    place = placer(job.kind, job.uppers)
    numbers = defaultdict(lambda: array('Q'))
    for number in range(job.first, len(job.names)):
        numbers[place(job.names[number])].append(number)
    for part, database in job.targets:
        broker = ContainerBroker(str(database))
        make = row_maker(job.size, job.began, policy_index(database))
        own = numbers[part]
        for begin in range(0, len(own), _BATCH_ROWS):
            batch = own[begin : begin + _BATCH_ROWS]
            broker.merge_items([make(n, job.names[n]) for n in batch])
