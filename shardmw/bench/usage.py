# SPDX-License-Identifier: Apache-2.0
"""What the servers of an own cluster use: processor time and memory."""

from collections.abc import Iterable
from pathlib import Path

from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster, processes

PROXY = 'proxy'
CONTAINER = 'container'

_PROC = Path('/proc')
_NANOSECONDS = 1_000_000_000
_RESIDENT = 'VmRSS:'
_KIBIBYTE = 1024


def processes_of(cluster: Cluster, role: str) -> tuple[int, ...]:
    """The ids of all processes of one kind of server.

    :param role: :data:`PROXY` or :data:`CONTAINER`
    """
    return tuple(
        each.pid
        for each in processes.find(cluster.path)
        if not each.is_daemon and each.server.rpartition('-')[0] == role
    )


def processor_seconds(pids: Iterable[int]) -> float:
    """For how long processes have run so far, by the scheduler's count.

    :raises BenchError: if the machine does not count it
    """
    return sum(map(_ran_seconds, pids))


def resident_bytes(pids: Iterable[int]) -> int:
    """How much memory processes have that is not swapped out.

    :raises BenchError: if one of them is gone
    """
    return sum(map(_resident, pids))


def seconds_of(schedstat: str) -> float:
    """What a thread's ``schedstat`` says that it ran. Pure."""
    return int(schedstat.split()[0]) / _NANOSECONDS


def resident_of(status: str) -> int:
    """What a process' ``status`` says that it has in memory. Pure."""
    (line,) = (
        each for each in status.splitlines() if each.startswith(_RESIDENT)
    )
    return int(line.split()[1]) * _KIBIBYTE


def _ran_seconds(pid: int) -> float:
    # the process' own file counts its first thread only
    texts = _texts((_PROC / f'{pid}' / 'task').glob('*/schedstat'))
    if not texts:
        raise BenchError(
            f'/proc/{pid} has no schedstat: measure on a Linux that has it'
        )
    return sum(map(seconds_of, texts))


def _resident(pid: int) -> int:
    texts = _texts([_PROC / f'{pid}' / 'status'])
    if not texts:
        raise BenchError(f'process {pid} is gone: look at the logs')
    return resident_of(texts[0])


def _texts(files: Iterable[Path]) -> list[str]:
    """What files hold; those of threads that have ended are left out."""
    found = []
    for file in files:
        try:
            found.append(file.read_text())
        except OSError:
            continue
    return found
