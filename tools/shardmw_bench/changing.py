# SPDX-License-Identifier: Apache-2.0
"""Change the layout of a container, and time it.

``shardmw-admin`` moves rows between any two layouts. Swift's own sharder
splits a plain container.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from shardmw_saio import Cluster

from shardmw_bench.errors import BenchError
from shardmw_bench.targets import native
from shardmw_bench.targets.usage import (
    CONTAINER,
    processes_of,
    processor_seconds,
)

STARTING = 'starting'  #: until the first report
MOVING, SETTLING = 'moving', 'settling'


class Phase(NamedTuple):
    """A phase of a change, in seconds since the command was started."""

    name: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class Change(NamedTuple):
    """A change of a layout.

    :param began_at: in seconds since 1970
    :param seconds: how long all commands ran
    :param moments: reports of its progress: ``seconds`` since the start, the
                    ``phase``, the rows ``moved`` so far, and the ``problem``
                    for which the change waits, or ''
    :param command_processor: processor seconds of the commands
    :param servers_processor: processor seconds of the container servers
    """

    began_at: float
    seconds: float
    moments: Sequence[Mapping]
    command_processor: float = 0.0
    servers_processor: float = 0.0

    @property
    def phases(self) -> list[Phase]:
        begins = {STARTING: 0.0}
        for moment in self.moments:
            begins.setdefault(moment['phase'], moment['seconds'])
        times = pairwise([*begins.values(), self.seconds])
        return [
            Phase(name, *span)
            for name, span in zip(begins, times, strict=True)
        ]

    def phase(self, name: str) -> Phase | None:
        return next((x for x in self.phases if x.name == name), None)

    @property
    def moving(self) -> Phase | None:
        """Return the phase in which rows move, if there was one."""
        return self.phase(MOVING)

    @property
    def waits_seconds(self) -> float:
        """Return how long the change neither moved rows nor settled."""
        return sum(
            each.seconds
            for each in self.phases
            if each.name not in (MOVING, SETTLING)
        )

    @property
    def rows_moved(self) -> int:
        return max((each['moved'] for each in self.moments), default=0)

    @property
    def rows_per_second(self) -> float | None:
        """Return the rate while rows moved; None if no rows moved."""
        if not self.rows_moved or self.moving is None:
            return None
        return self.rows_moved / self.moving.seconds

    def per_rows(self, value: float, rows: int) -> float | None:
        """Return a value per ``rows`` moved rows; None if none moved."""
        return value * rows / self.rows_moved if self.rows_moved else None


def change_layout(
    cluster: Cluster, path: str, shards: int, options: Sequence[str]
) -> Change:
    """Change the layout of a container; raise BenchError if that fails.

    :param path: such as ``AUTH_test/logs``
    :param options: of ``shardmw-admin reshard``
    """
    admin = (
        'from shardmw.admin.cli import main; main(prog_name="shardmw-admin")'
    )
    command = [sys.executable, '-c', admin]
    command += ['--swift-dir', str(cluster.swift_dir), 'reshard', '--json']
    # Clients may send more than the servers can take, so there is a backlog.
    command += ['--despite-backlog', *options, path, str(shards)]

    def change(began_at: float) -> list[dict]:
        with tempfile.TemporaryFile('w+') as progress:
            # run() kills the command if this process is interrupted
            code = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=progress
            ).returncode
            progress.seek(0)
            lines = progress.read().splitlines()
        if code:
            told = lines[-1] if lines else f'exit code {code}'
            raise BenchError(
                f'{path} was not changed to {shards} shards: {told}'
            )
        return moments_of(lines, began_at)

    return _measured(cluster, change)


def split_natively(
    cluster: Cluster, path: str, ranges: int, rows: int
) -> Change:
    """Have Swift's own sharder split a plain container.

    Its rows move from the start of the container-sharder to its end.

    :param ranges: the number of ranges
    :param rows: the number of rows in the container
    :raises BenchError: if a command fails, or a range does not become active
    """
    account, container = path.split('/')
    database = native.root_database(cluster, account, container)

    def change(began_at: float) -> list[dict]:
        found = native.find_ranges(database, -(-rows // ranges))
        begun = _moment(time.time() - began_at, MOVING, 0)
        native.run_sharder(cluster, account, container, found)
        return [begun, _moment(time.time() - began_at, MOVING, rows)]

    return _measured(cluster, change)


def _measured(
    cluster: Cluster, change: Callable[[float], list[dict]]
) -> Change:
    """Return a change with its times.

    :param change: takes its start in seconds since 1970; returns its moments
    """
    servers = processes_of(cluster, CONTAINER)
    of_servers, of_commands = processor_seconds(servers), _of_commands()
    began_at = time.time()
    moments = change(began_at)
    return Change(
        began_at,
        time.time() - began_at,
        moments,
        _of_commands() - of_commands,
        processor_seconds(servers) - of_servers,
    )


def _of_commands() -> float:
    """Return the processor seconds of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def moments_of(lines: Iterable[str], began_at: float) -> list[dict]:
    """Return the moments of the command's reports. Pure."""
    reports = [json.loads(line) for line in lines if line.startswith('{')]
    return [
        _moment(
            each['time'] - began_at,
            each['phase'],
            each['rows_moved'],
            each['problem'],
        )
        for each in reports
    ]


def _moment(
    seconds: float, phase: str, moved: int, problem: str = ''
) -> dict[str, object]:
    return {
        'seconds': round(seconds, 3),
        'phase': phase,
        'moved': moved,
        'problem': problem,
    }
