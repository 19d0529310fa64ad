# SPDX-License-Identifier: Apache-2.0
"""The counters of memcached."""

import socket
from collections.abc import Iterable
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.saio.topology import Server

_TIMEOUT_SECONDS = 10


class Operations(NamedTuple):
    """The number of operations of each kind."""

    get: int
    set: int
    incr: int
    decr: int
    delete: int
    touch: int

    def since(self, before: 'Operations') -> 'Operations':
        """Return the operations after an earlier count."""
        pairs = zip(self, before, strict=True)
        return Operations(*(now - then for now, then in pairs))


# The counters of memcached for each kind.
_COUNTERS = Operations(
    get=('cmd_get',),
    set=('cmd_set',),
    incr=('incr_hits', 'incr_misses'),
    decr=('decr_hits', 'decr_misses'),
    delete=('delete_hits', 'delete_misses'),
    touch=('cmd_touch',),
)


def operations(server: Server) -> Operations:
    """Ask memcached for its counters; raise BenchError if it is away."""
    host, _, port = server.address.rpartition(':')
    try:
        with (
            socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as s,
            s.makefile('rw', newline='\r\n') as lines,
        ):
            lines.write('stats\n')
            lines.flush()
            return counted(iter(lines.readline, 'END\r\n'))
    except (OSError, KeyError, ValueError) as err:
        raise BenchError(
            f'memcached at {server.address} gives no stats: {err!r}'
        ) from err


def counted(stats: Iterable[str]) -> Operations:
    """Return the operations of the lines of ``stats``. Pure.

    :raises KeyError: if a counter is missing
    :raises ValueError: if a line is incomplete
    """
    values = {}
    for line in stats:
        _, name, value = line.split(' ', 2)
        values[name] = value
    return Operations(
        *(sum(int(values[name]) for name in names) for names in _COUNTERS)
    )
