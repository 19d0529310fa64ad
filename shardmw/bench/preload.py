# SPDX-License-Identifier: Apache-2.0
"""Put rows straight into the container databases of an own cluster.

A million rows take seconds; uploads would take an hour. The databases are as
Swift's own container server leaves them, and its replicator, auditor and
sharder accept them. There are no objects behind the rows.
"""

import bisect
import functools
import hashlib
import mimetypes
import multiprocessing
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from swift.common.db import chexor

from shardmw.bench import signals
from shardmw.bench.databases import (
    connected,
    databases,
    parts,
    policy_index,
)
from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.names import Names
from shardmw.placement import shard_of
from shardmw.saio import Cluster

# Swift's timestamps have so many digits after the point.
_TICKS_PER_SECOND = 100_000

# Rows that are made before they go to their databases.
_BATCH_ROWS = 50_000

# A further process takes as long to start as so many rows take.
_ROWS_WORTH_A_PROCESS = 100_000

_CACHE_KIBIBYTES = 65_536

_INSERT = (
    'INSERT INTO object (name, created_at, size, content_type, etag, '
    'deleted, storage_policy_index) VALUES (?, ?, ?, ?, ?, 0, ?)'
)
_TRIGGER = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' "
    "AND name = 'object_insert_policy_stat'"
)
_EXISTS = 'SELECT 1 FROM object WHERE deleted IN (0, 1) AND name = ? LIMIT 1'


class Row(NamedTuple):
    """The row of an object, in the order of the columns."""

    name: str
    created_at: str
    size: int
    content_type: str
    etag: str


class _Target(NamedTuple):
    """A database, and which part of the container it is a replica of."""

    part: int
    database: Path
    policy: int


@dataclass(frozen=True)
class _Job:
    """The rows that one process writes.

    :param uppers: see :func:`placer`
    :param first: the index of the first name that gets a row
    :param first_tick: the timestamp of the name 0
    """

    kind: Kind
    uppers: tuple[str, ...]
    names: Names
    first: int
    size: int
    first_tick: int
    targets: tuple[_Target, ...]


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

    A database gets all of its rows in one transaction.

    :param account: such as ``AUTH_test``
    :param container: one that the cluster has, of this kind
    :param first: the index of the first name that has no row yet
    :param size: bytes of each object
    :raises BenchError: if a database is missing, or has some of the names
    """
    found = parts(cluster, account, container, kind)
    targets = [
        _Target(index, each, policy_index(each))
        for index, part in enumerate(found)
        for each in databases(cluster, part.account, part.container)
    ]
    if {target.part for target in targets} != set(range(len(found))):
        raise BenchError(f'{account}/{container} lacks a database')
    uppers = tuple(part.upper for part in found[:-1])
    first_tick = int(time.time() * _TICKS_PER_SECOND) - len(names)
    worth = max(1, (len(names) - first) // _ROWS_WORTH_A_PROCESS)
    processes = min(len(os.sched_getaffinity(0)), worth)
    jobs = [
        _Job(kind, uppers, names, first, size, first_tick, each)
        for each in shares(targets, processes)
    ]
    if len(jobs) == 1:
        _put(jobs[0])
    else:
        _put_at_once(jobs)


def shares(
    targets: Sequence[_Target], processes: int
) -> list[tuple[_Target, ...]]:
    """Return the databases of each process, neighbours together. Pure."""
    count = min(processes, len(targets))
    cuts = [len(targets) * i // count for i in range(count + 1)]
    return [
        tuple(targets[begin:end])
        for begin, end in zip(cuts, cuts[1:], strict=False)
    ]


def row_maker(size: int, first_tick: int) -> Callable[[int, str], Row]:
    """Return a function that makes rows: ``make(number, name)``. Pure.

    :param size: of each object, whose bytes are all ``x``
    :param first_tick: the timestamp of the object 0, in units of 10
                       microseconds since 1970; that of each other one is a
                       unit later
    """
    etag = hashlib.md5(b'x' * size, usedforsecurity=False).hexdigest()

    def make(number: int, name: str) -> Row:
        seconds, ticks = divmod(first_tick + number, _TICKS_PER_SECOND)
        stamp = f'{seconds:010d}.{ticks:05d}'
        ending = name[name.rfind('.') :] if '.' in name else ''
        return Row(name, stamp, size, _type_of_ending(ending), etag)

    return make


@functools.lru_cache
def _type_of_ending(ending: str) -> str:
    """Return the content type that Swift guesses from a name."""
    guessed, _ = mimetypes.guess_type(f'x{ending}')
    return guessed or 'application/octet-stream'


def placer(kind: Kind, uppers: Sequence[str]) -> Callable[[str], int]:
    """Return a function that tells in which part the row of a name lies.

    A part is an index of what :func:`shardmw.bench.databases.parts` returns.

    :param uppers: the upper ends of a native container's ranges, without the
                   last one
    """
    if kind.is_native:
        return lambda name: bisect.bisect_left(uppers, name)
    if kind.is_plain:
        return lambda name: 0
    return lambda name: shard_of(name, kind.parts, kind.depth)


def _put_at_once(jobs: Sequence[_Job]) -> None:
    # spawned: a fork would inherit connections of this process
    context = multiprocessing.get_context('spawn')
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(len(jobs), context) as pool:
        try:
            with signals.kept_from_children():
                done = pool.map(_put, jobs)
            for _ in done:
                pass
        except BaseException:
            # the pool would wait for rows that are no longer needed
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _put(job: _Job) -> None:
    """Put the rows of a job into its databases."""
    with ExitStack() as stack:
        cache = _CACHE_KIBIBYTES // len(job.targets)
        writers = [
            (
                target.part,
                _Writer(
                    stack.enter_context(connected(target.database, True)),
                    target.policy,
                    cache,
                ),
            )
            for target in job.targets
        ]
        for rows_by_part in _batches(job):
            for part, writer in writers:
                writer.add(rows_by_part.get(part, ()))
        for _, writer in writers:
            writer.finish()
    for target in job.targets:
        # synced now, so that nothing that is measured later waits for it
        with target.database.open('rb') as file:
            os.fsync(file.fileno())


def _batches(job: _Job) -> Iterator[dict[int, list[Row]]]:
    """Yield the rows of some names at a time, by their part."""
    place = placer(job.kind, job.uppers)
    make = row_maker(job.size, job.first_tick)
    wanted = {target.part for target in job.targets}
    for begin in range(job.first, len(job.names), _BATCH_ROWS):
        by_part = defaultdict(list)
        end = min(begin + _BATCH_ROWS, len(job.names))
        for number in range(begin, end):
            name = job.names[number]
            part = place(name)
            if part in wanted:
                by_part[part].append(make(number, name))
        yield by_part


class _Writer:
    """Adds rows to one database, in one transaction.

    Swift's trigger would update the statistics row by row, in Python. It is
    dropped meanwhile, and they are updated at the end.
    """

    def __init__(
        self, connection: sqlite3.Connection, policy: int, cache: int
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._count = self._bytes = 0
        # it is synced at the end; if the machine fails, the cluster is lost
        connection.execute('PRAGMA synchronous = OFF')
        connection.execute(f'PRAGMA cache_size = -{cache}')
        connection.execute('BEGIN IMMEDIATE')
        name, self._trigger = connection.execute(_TRIGGER).fetchone()
        connection.execute(f'DROP TRIGGER {name}')
        (self._checksum,) = connection.execute(
            'SELECT hash FROM container_info'
        ).fetchone()

    def add(self, rows: Sequence[Row]) -> None:
        """Insert rows.

        :raises BenchError: if the first or last of them exists already
        """
        for row in {*rows[:1], *rows[-1:]}:
            if self._connection.execute(_EXISTS, (row.name,)).fetchone():
                raise BenchError(f'there is a row {row.name!r} already')
        self._connection.executemany(
            _INSERT, ((*row, self._policy) for row in rows)
        )
        for row in rows:
            self._checksum = chexor(self._checksum, row.name, row.created_at)
        self._count += len(rows)
        self._bytes += sum(row.size for row in rows)

    def finish(self) -> None:
        """Update the statistics, restore the trigger, and commit."""
        execute = self._connection.execute
        execute(
            'UPDATE policy_stat SET object_count = object_count + ?, '
            'bytes_used = bytes_used + ? WHERE storage_policy_index = ?',
            (self._count, self._bytes, self._policy),
        )
        execute('UPDATE container_info SET hash = ?', (self._checksum,))
        execute(self._trigger)
        execute('COMMIT')
