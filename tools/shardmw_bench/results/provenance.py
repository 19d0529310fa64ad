# SPDX-License-Identifier: Apache-2.0
"""Where figures come from: the versions and the machine."""

import contextlib
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import psutil
from shardmw_saio.commands import memcached_path
from shardmw_saio.errors import SaioError

import shardmw
from shardmw_bench import templates

# A machine whose other processes use a larger share of the cores is busy.
_BUSY_SHARE = 0.25

# How long other processes are watched.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Provenance:
    """Where figures come from.

    :param date: UTC, such as ``2026-11-21``
    :param commit: None without git; with -dirty if the tree differs from it
    :param processor: the architecture
    :param load_average: of the minute before the start
    :param cluster: the URL of an existing cluster; None for a temporary one
    :param busy_cores: used by other processes just before the start; None if
                       that is not known
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

    @property
    def is_machine_busy(self) -> bool:
        """Return True if other processes use the measured cores."""
        return (self.busy_cores or 0) > self.cores * _BUSY_SHARE

    @property
    def version(self) -> str:
        return self.shardmw + (f' ({self.commit})' if self.commit else '')

    @property
    def machine(self) -> str:
        cores = 'one core' if self.cores == 1 else f'{self.cores} cores'
        return f'{cores} ({self.processor}), {self.memory_gib} GiB'

    def sentence(self) -> str:
        return templates.line('provenance', p=self)


def provenance() -> Provenance:
    """Return the provenance of figures that are measured now."""
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
        memory_gib=round(psutil.virtual_memory().total / (1 << 30)),
        load_average=round(os.getloadavg()[0], 1),
        busy_cores=round(busy_share * psutil.cpu_count(), 1),
    )


def _memcached() -> str:
    # an existing cluster can be measured without memcached here
    with contextlib.suppress(SaioError):
        if said := _said_by(memcached_path(), '-V'):
            return said.rpartition(' ')[2]
    return 'unknown'


def _commit() -> str | None:
    project = Path(shardmw.__file__).resolve().parents[1]
    # an installed package may lie in the tree of another project
    if not (project / '.git').exists():
        return None
    command = 'git', '-C', str(project), 'describe', '--always', '--dirty'
    return _said_by(*command)


def _said_by(*command: str) -> str | None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() or None
