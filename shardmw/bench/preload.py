# SPDX-License-Identifier: Apache-2.0
"""Put rows straight into the container databases of an own cluster.

A million rows take seconds; uploads would take an hour. The databases are as
Swift's own container server leaves them, and its replicator, auditor and
sharder accept them. There are no objects behind the rows.
"""

import multiprocessing
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

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
from shardmw.bench.rows import (
    Row,
    Stamps,
    checksum_with,
    placer,
    row_maker,
    stamps_before,
)
from shardmw.saio import Cluster

# Rows that are made before they go to their databases.
_BATCH_ROWS = 50_000

# So few rows are there before another process would have begun.
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
_IS_THERE = 'SELECT 1 FROM object WHERE deleted IN (0, 1) AND name = ? LIMIT 1'


class _Target(NamedTuple):
    """A database, and which part of the container it is a replica of."""

    part: int
    database: Path
    policy: int


@dataclass(frozen=True)
class _Job:
    """What one process puts where."""

    kind: Kind
    uppers: tuple[str, ...]
    names: Names
    first: int
    size: int
    stamps: Stamps
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

    All of a database's rows come at once, or none does.

    :param account: such as ``AUTH_test``
    :param container: one that the cluster has, of this kind
    :param first: begin with this name: those before it are there already
    :param size: bytes that each row claims
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
    stamps = stamps_before(time.time(), len(names))
    jobs = [
        _Job(kind, uppers, names, first, size, stamps, each)
        for each in shares(targets, _processes(len(names) - first))
    ]
    if len(jobs) == 1:
        _put(jobs[0])
    else:
        _put_at_once(jobs)


def shares(
    targets: Sequence[_Target], processes: int
) -> list[tuple[_Target, ...]]:
    """Deal databases out to processes, neighbours to the same one. Pure."""
    count = min(processes, len(targets))
    cuts = [len(targets) * i // count for i in range(count + 1)]
    return [
        tuple(targets[begin:end])
        for begin, end in zip(cuts, cuts[1:], strict=False)
    ]


def _processes(rows: int) -> int:
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, rows // _ROWS_WORTH_A_PROCESS))


def _put_at_once(jobs: Sequence[_Job]) -> None:
    # not forked, for nothing of this process is theirs
    context = multiprocessing.get_context('spawn')
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(len(jobs), context) as pool:
        try:
            with signals.kept_from_children():
                done = pool.map(_put, jobs)
            for _ in done:
                pass
        except BaseException:
            # the pool would wait for rows that nobody wants any more
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _put(job: _Job) -> None:
    """Be a process: put rows into its databases."""
    with ExitStack() as stack:
        cache = _CACHE_KIBIBYTES // len(job.targets)
        writers = [
            (target.part, stack.enter_context(_writing(target, cache)))
            for target in job.targets
        ]
        for rows_by_part in _batches(job):
            for part, writer in writers:
                writer.add(rows_by_part.get(part, ()))
        for _, writer in writers:
            writer.finish()
    for target in job.targets:
        _sync(target.database)


def _batches(job: _Job) -> Iterator[dict[int, list[Row]]]:
    """Rows of some names at a time, by the part that they belong to."""
    place = placer(job.kind, job.uppers)
    make = row_maker(job.size, job.stamps)
    wanted = {target.part for target in job.targets}
    for begin in range(job.first, len(job.names), _BATCH_ROWS):
        end = min(begin + _BATCH_ROWS, len(job.names))
        by_part = defaultdict(list)
        for number in range(begin, end):
            name = job.names[number]
            part = place(name)
            if part in wanted:
                by_part[part].append(make(number, name))
        yield by_part


@contextmanager
def _writing(target: _Target, cache: int) -> Iterator['_Writer']:
    with connected(target.database, writes=True) as connection:
        yield _Writer(connection, target.policy, cache)


class _Writer:
    """Adds rows to one database, in one transaction.

    Swift's trigger would keep the books row by row, in Python: it's out of
    the way meanwhile, and they're kept here.
    """

    def __init__(
        self, connection: sqlite3.Connection, policy: int, cache: int
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._count = self._bytes = 0
        # it's synced at the end, and if the machine fails the cluster is gone
        connection.execute('PRAGMA synchronous = OFF')
        connection.execute(f'PRAGMA cache_size = -{cache}')
        connection.execute('BEGIN IMMEDIATE')
        self._trigger, self._trigger_text = connection.execute(
            _TRIGGER
        ).fetchone()
        connection.execute(f'DROP TRIGGER {self._trigger}')
        self._checksum = connection.execute(
            'SELECT hash FROM container_info'
        ).fetchone()[0]

    def add(self, rows: Sequence[Row]) -> None:
        """Insert rows.

        :raises BenchError: if the first or last of them is there already
        """
        for row in {*rows[:1], *rows[-1:]}:
            if self._connection.execute(_IS_THERE, (row.name,)).fetchone():
                raise BenchError(f'there is a row {row.name!r} already')
        self._connection.executemany(
            _INSERT,
            (
                (*row, policy)
                for row, policy in zip(rows, repeat(self._policy))
            ),
        )
        self._checksum = checksum_with(self._checksum, rows)
        self._count += len(rows)
        self._bytes += sum(row.size for row in rows)

    def finish(self) -> None:
        """Keep the books, and commit."""
        execute = self._connection.execute
        execute(
            'UPDATE policy_stat SET object_count = object_count + ?, '
            'bytes_used = bytes_used + ? WHERE storage_policy_index = ?',
            (self._count, self._bytes, self._policy),
        )
        execute('UPDATE container_info SET hash = ?', (self._checksum,))
        execute(self._trigger_text)
        execute('COMMIT')


def _sync(database: Path) -> None:
    """Have it on the disk, so that nothing measured later waits for that."""
    with database.open('rb') as file:
        os.fsync(file.fileno())
