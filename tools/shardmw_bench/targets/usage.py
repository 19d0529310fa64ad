# SPDX-License-Identifier: Apache-2.0
"""Processor time, memory and memcached of a temporary cluster."""

import contextlib
import re
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import psutil
from shardmw_saio import Cluster, processes
from shardmw_saio.topology import Server

from shardmw_bench.errors import BenchError

PROXY = 'proxy'
CONTAINER = 'container'

# CPUCLOCK_SCHED of Linux: user and system time as the scheduler counts it.
_SCHEDULER_CLOCK = 2

# The counters of memcached for each kind of operation.
_COUNTERS = {
    'get': 'cmd_get',
    'set': 'cmd_set',
    'incr': 'incr_(?:hits|misses)',
    'decr': 'decr_(?:hits|misses)',
    'delete': 'delete_(?:hits|misses)',
    'touch': 'cmd_touch',
}

#: Processor seconds by process id.
Reading = Mapping[int, float]


def processes_of(cluster: Cluster, role: str | None = None) -> tuple[int, ...]:
    """Return the ids of the server processes of a role, or of all."""
    return tuple(
        each.pid
        for each in processes.find(cluster.path)
        if not each.is_daemon
        and role in (None, each.server.rpartition('-')[0])
    )


def read_processor(cluster: Cluster) -> Reading:
    """Return the processor seconds of each server process so far."""
    found = {}
    for pid in processes_of(cluster):
        # leave out a process that has just ended
        with contextlib.suppress(BenchError):
            found[pid] = processor_seconds([pid])
    return found


def seconds_between(before: Reading, after: Reading) -> float | None:
    """Return the processor seconds between readings; None if one ended."""
    if before.keys() - after.keys():
        return None
    return sum(after[pid] - before.get(pid, 0.0) for pid in after)


def processor_seconds(pids: Iterable[int]) -> float:
    """Return the user and system time so far; raise BenchError if ended."""
    # clock_getcpuclockid(3): psutil counts in ticks of 10 ms, which is too
    # coarse
    with _told_if_gone():
        return sum(
            time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK) for pid in pids
        )


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the bytes in memory; raise BenchError if a process ended."""
    with _told_if_gone():
        return sum(psutil.Process(pid).memory_info().rss for pid in pids)


@contextlib.contextmanager
def _told_if_gone() -> Iterator[None]:
    try:
        yield
    except (OSError, psutil.Error) as err:
        raise BenchError(
            f'a server process has ended ({err}): see the logs of the cluster'
        ) from err


def operations(server: Server) -> Counter[str]:
    """Return memcached's operations by kind; BenchError if it is down."""
    address = server.address.split(':')
    try:
        with socket.create_connection(address, timeout=10) as s:
            s.sendall(b'stats\r\nquit\r\n')
            return counted(s.makefile().read())
    except OSError as err:
        raise BenchError(
            f'memcached at {server.address} gives no stats: {err!r}'
        ) from err


def counted(stats: str) -> Counter[str]:
    """Return the operations in the response to ``stats``. Pure."""
    found = {
        kind: re.findall(rf'^STAT {name} (\d+)', stats, re.M)
        for kind, name in _COUNTERS.items()
    }
    return Counter({kind: sum(map(int, own)) for kind, own in found.items()})
