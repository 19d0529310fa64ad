# SPDX-License-Identifier: Apache-2.0
"""Change the layout of a container with ``shardmw-admin``, and time it."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster

STARTING = 'starting'  #: until the command reports its first phase
MOVING = 'moving'


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
    :param seconds: how long the command ran
    :param moments: reports of its progress: ``seconds`` since the begin, the
                    ``phase``, the rows ``moved`` so far, and the ``problem``
                    for which the change waits, or ''
    """

    began_at: float
    seconds: float
    moments: Sequence[Mapping]

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

    @property
    def moving(self) -> Phase | None:
        """Return the phase in which rows move, if there was one."""
        return next((x for x in self.phases if x.name == MOVING), None)

    @property
    def rows_moved(self) -> int:
        return max((each['moved'] for each in self.moments), default=0)

    @property
    def rows_per_second(self) -> float | None:
        """Return the rate while rows moved; None if no rows moved."""
        if not self.rows_moved or self.moving is None:
            return None
        return self.rows_moved / self.moving.seconds

    def rates(self, step: float) -> list[tuple[float, float]]:
        """Return ``(seconds, rows a second)`` while rows moved.

        :param step: the least time between two points, in seconds
        """
        moving = self.moving or Phase(MOVING, 0, 0)
        kept: list[tuple[float, int]] = []
        for each in self.moments:
            seconds = each['seconds']
            is_due = not kept or seconds - kept[-1][0] >= step
            if is_due and moving.begin <= seconds <= moving.end:
                kept.append((seconds, each['moved']))
        return [
            ((begin + end) / 2, (moved - before) / (end - begin))
            for (begin, before), (end, moved) in pairwise(kept)
        ]


def change_layout(
    cluster: Cluster, path: str, shards: int, options: Sequence[str]
) -> Change:
    """Change the layout of a container; raise BenchError if that fails.

    :param path: such as ``AUTH_test/logs``
    :param options: of ``shardmw-admin reshard``
    """
    admin = 'from shardmw.commands import admin; admin()'
    command = [sys.executable, '-c', admin]
    command += ['--swift-dir', str(cluster.swift_dir), 'reshard', '--json']
    # Clients upload and delete meanwhile, more than the servers can take.
    command += ['--despite-backlog']
    with tempfile.TemporaryFile('w+') as progress:
        began_at = time.time()
        # run() kills the command if this process is interrupted
        code = subprocess.run(
            [*command, *options, path, str(shards)],
            stdout=subprocess.DEVNULL,
            stderr=progress,
        ).returncode
        seconds = time.time() - began_at
        progress.seek(0)
        lines = progress.read().splitlines()
    if code:
        told = lines[-1] if lines else f'exit code {code}'
        raise BenchError(f'{path} was not changed to {shards} shards: {told}')
    return Change(began_at, seconds, moments_of(lines, began_at))


def moments_of(lines: Iterable[str], began_at: float) -> list[dict]:
    """Return the moments of the command's reports. Pure."""
    reports = [json.loads(line) for line in lines if line.startswith('{')]
    return [
        {
            'seconds': round(each['time'] - began_at, 3),
            'phase': each['phase'],
            'moved': each['rows_moved'],
            'problem': each['problem'],
        }
        for each in reports
    ]
