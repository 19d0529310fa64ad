# SPDX-License-Identifier: Apache-2.0
"""What figures are figures of: the versions, and the machine."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import psutil

import shardmw
from shardmw.saio.commands import memcached_path
from shardmw.saio.errors import SaioError

_UNKNOWN = 'unknown'
_GIBIBYTE = 1 << 30

# What a machine may do besides without being called busy.
_BUSY_SHARE = 0.25

# For how long other work is looked at.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Provenance:
    """Where figures come from.

    :param date: UTC, such as ``2026-11-21``
    :param commit: None without git; with -dirty if the tree differed from it
    :param processor: its architecture
    :param memory_gib: of the machine
    :param load_average: of the minute before it began
    :param cluster: the URL of one that is not the benchmark's own
    :param busy_cores: as many as other work took just before it began, on
                       average; None if nobody looked
    """

    date: str
    shardmw: str
    commit: str | None
    swift: str
    python: str
    memcached: str
    cores: int
    processor: str
    memory_gib: int
    load_average: float
    cluster: str | None = None
    busy_cores: float | None = None

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Provenance':
        """The provenance that :meth:`as_json` gave."""
        return cls(**values)

    @property
    def is_machine_busy(self) -> bool:
        """Whether other work takes the cores that are measured."""
        return (self.busy_cores or 0) > self.cores * _BUSY_SHARE

    def sentence(self) -> str:
        """It all, for people."""
        commit = f' ({self.commit})' if self.commit else ''
        cores = 'one core' if self.cores == 1 else f'{self.cores} cores'
        what = (
            f'with shardmw {self.shardmw}{commit}, Swift {self.swift}, '
            f'Python {self.python} and memcached {self.memcached}, on'
        )
        if self.cluster is not None:
            what = (
                f'on {self.cluster}, which is Swift '
                f'{self.swift or _UNKNOWN}, with the benchmark of shardmw '
                f'{self.shardmw}{commit} and Python {self.python}, from'
            )
        return (
            f'Measured on {self.date} {what} a machine with {cores} '
            f'({self.processor}) and {self.memory_gib} GiB, '
            f'{self._business()} when it began.'
        )

    def _business(self) -> str:
        if self.busy_cores is None:
            return f'whose load average was {self.load_average:.1f}'
        return f'of which other work took {self.busy_cores:.1f} cores'


def provenance() -> Provenance:
    """Return that of figures that are measured now."""
    busy_share = psutil.cpu_percent(_LOOK_SECONDS) / 100
    return Provenance(
        date=datetime.now(timezone.utc).date().isoformat(),
        shardmw=shardmw.__version__,
        commit=_commit(),
        swift=metadata.version('swift'),
        python=platform.python_version(),
        memcached=_memcached(),
        cores=len(os.sched_getaffinity(0)),
        processor=platform.machine(),
        memory_gib=round(psutil.virtual_memory().total / _GIBIBYTE),
        load_average=round(os.getloadavg()[0], 1),
        busy_cores=round(busy_share * psutil.cpu_count(), 1),
    )


def _memcached() -> str:
    try:
        said = _said_by(memcached_path(), '-V') or _UNKNOWN
        return said.rpartition(' ')[2]
    except SaioError:
        # a cluster elsewhere is measured without one here
        return _UNKNOWN


def _commit() -> str | None:
    project = Path(shardmw.__file__).resolve().parents[1]
    # an installed package may lie in some other project's tree
    if not (project / '.git').exists():
        return None
    return _said_by(
        *('git', '-C', str(project), 'describe', '--always', '--dirty')
    )


def _said_by(*command: str) -> str | None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() or None
