# SPDX-License-Identifier: Apache-2.0
"""Change the layout of a container with ``shardmw-admin``, and time it."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster

STARTING = 'starting'  #: until the command reports its first phase
MOVING = 'moving'

_ADMIN = 'from shardmw.commands import admin; admin()'


class Moment(NamedTuple):
    """A report of the command.

    :param seconds: since the command was started
    :param moved: rows so far
    :param problem: why the change does not go on, '' if it does
    """

    seconds: float
    phase: str
    moved: int
    problem: str = ''


class Phase(NamedTuple):
    """A phase of a change, in seconds since the command was started."""

    name: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Change:
    """A change of a layout, from the start of the command to its end.

    :param began_at: when the command was started, in seconds since 1970
    """

    began_at: float
    seconds: float
    moments: tuple[Moment, ...]

    @property
    def phases(self) -> list[Phase]:
        """Return the phases in their order, each once."""
        begins = {STARTING: 0.0}
        for moment in self.moments:
            begins.setdefault(moment.phase, moment.seconds)
        ends = [*list(begins.values())[1:], self.seconds]
        return [
            Phase(name, begin, end)
            for (name, begin), end in zip(begins.items(), ends, strict=True)
        ]

    @property
    def moving(self) -> Phase | None:
        """Return the phase in which rows move; None if there was none."""
        found = [each for each in self.phases if each.name == MOVING]
        return found[0] if found else None

    @property
    def rows_moved(self) -> int:
        return max((each.moved for each in self.moments), default=0)

    @property
    def rows_per_second(self) -> float | None:
        """Return the rate while rows moved; None if none did."""
        if not self.rows_moved or self.moving is None:
            return None
        return self.rows_moved / self.moving.seconds

    def rates(self, step: float) -> list[tuple[float, float]]:
        """Return ``(seconds, rows a second)`` while rows moved.

        :param step: the least seconds from one point to the next
        """
        if self.moving is None:
            return []
        kept: list[Moment] = []
        for each in self.moments:
            if self.moving.begin <= each.seconds <= self.moving.end and (
                not kept or each.seconds - kept[-1].seconds >= step
            ):
                kept.append(each)
        return [
            ((begin + end) / 2, (moved - before) / (end - begin))
            for (begin, _, before, _), (end, _, moved, _) in pairwise(kept)
        ]

    def as_json(self) -> dict[str, object]:
        """Return what :meth:`from_json` takes."""
        return {
            'began_at': self.began_at,
            'seconds': self.seconds,
            'moments': [each._asdict() for each in self.moments],
        }

    @classmethod
    def from_json(cls, values: Mapping) -> 'Change':
        """Return the change that :meth:`as_json` gave."""
        moments = tuple(Moment(**each) for each in values['moments'])
        return cls(values['began_at'], values['seconds'], moments)


def change_layout(
    cluster: Cluster, path: str, shards: int, options: Sequence[str]
) -> Change:
    """Change the layout of a container, and wait until that is done.

    :param path: such as ``AUTH_test/logs``
    :param options: of the command ``shardmw-admin reshard``
    :raises BenchError: if the command fails
    """
    command = [sys.executable, '-c', _ADMIN]
    command += ['--swift-dir', str(cluster.swift_dir), 'reshard', '--json']
    with tempfile.TemporaryFile('w+') as progress:
        began_at = time.time()
        process = subprocess.Popen(
            [*command, *options, path, str(shards)],
            stdout=subprocess.DEVNULL,
            stderr=progress,
        )
        try:
            code = process.wait()
        finally:
            process.kill()
            process.wait()
        seconds = time.time() - began_at
        progress.seek(0)
        lines = progress.read().splitlines()
    if code:
        told = lines[-1] if lines else f'exit code {code}'
        raise BenchError(f'{path} was not changed to {shards} shards: {told}')
    return Change(began_at, seconds, tuple(moments_of(lines, began_at)))


def moments_of(lines: Iterable[str], began_at: float) -> list[Moment]:
    """Return the moments that the command has printed. Pure."""
    reports = [json.loads(line) for line in lines if line.startswith('{')]
    return [
        Moment(
            round(each['time'] - began_at, 3),
            each['phase'],
            each['rows_moved'],
            each['problem'],
        )
        for each in reports
    ]
