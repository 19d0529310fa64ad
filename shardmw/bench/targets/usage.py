# SPDX-License-Identifier: Apache-2.0
"""Processor time and memory of the servers of an own cluster."""

import contextlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster, processes

PROXY = 'proxy'
CONTAINER = 'container'

_PROC = Path('/proc')
_RESIDENT = 'VmRSS:'
_KIBIBYTE = 1024

# Linux' CPUCLOCK_SCHED: user and system time by the scheduler's own count.
_SCHEDULER_CLOCK = 2

#: Processor seconds that processes have run so far, by process id.
Reading = Mapping[int, float]


def processes_of(cluster: Cluster, role: str | None = None) -> tuple[int, ...]:
    """Return the ids of all server processes, workers included.

    :param role: :data:`PROXY` or :data:`CONTAINER` for one kind of server;
                 None for all of them and memcached
    """
    return tuple(
        each.pid
        for each in processes.find(cluster.path)
        if not each.is_daemon
        and role in (None, each.server.rpartition('-')[0])
    )


def read_processor(cluster: Cluster) -> Reading:
    """Return how long each server process of a cluster has run so far."""
    found = {}
    for pid in processes_of(cluster):
        # a process that has just ended is missing in the reading
        with contextlib.suppress(BenchError):
            found[pid] = processor_seconds([pid])
    return found


def seconds_between(before: Reading, after: Reading) -> float | None:
    """Return the processor seconds that servers used between two readings.

    Pure. A process that started in between counts with all of its time.

    :returns: None if a process has ended in between, with a time that is
              not known
    """
    if before.keys() - after.keys():
        return None
    return sum(after[pid] - before.get(pid, 0.0) for pid in after)


def processor_seconds(pids: Iterable[int]) -> float:
    """Return how long processes have run so far, in user and system mode.

    :raises BenchError: if one of them is gone
    """
    return sum(map(_ran_seconds, pids))


def resident_bytes(pids: Iterable[int]) -> int:
    """Return how many bytes of processes are in memory and not swapped out.

    :raises BenchError: if one of them is gone
    """
    return sum(map(_resident, pids))


def resident_of(status: str) -> int:
    """Return the resident bytes that ``/proc/PID/status`` shows. Pure."""
    (line,) = (
        each for each in status.splitlines() if each.startswith(_RESIDENT)
    )
    return int(line.split()[1]) * _KIBIBYTE


def _ran_seconds(pid: int) -> float:
    # clock_getcpuclockid(3) of the process: /proc/PID/stat counts in ticks
    # of 10 ms, which is too coarse for a load of a second
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
    except OSError as err:
        raise _gone(pid) from err


def _resident(pid: int) -> int:
    try:
        return resident_of((_PROC / f'{pid}' / 'status').read_text())
    except (OSError, ValueError) as err:
        raise _gone(pid) from err


def _gone(pid: int) -> BenchError:
    return BenchError(
        f'server process {pid} has ended: see the logs of the cluster'
    )
