# SPDX-License-Identifier: Apache-2.0
"""The counters of memcached."""

import operator
import re
import socket
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.saio.topology import Server


class Operations(NamedTuple):
    """The number of operations of each kind."""

    get: int
    set: int
    incr: int
    decr: int
    delete: int
    touch: int

    def since(self, before: 'Operations') -> 'Operations':
        return Operations(*map(operator.sub, self, before))


# The counters of memcached for each kind.
_COUNTERS = Operations(
    get='cmd_get',
    set='cmd_set',
    incr='incr_(?:hits|misses)',
    decr='decr_(?:hits|misses)',
    delete='delete_(?:hits|misses)',
    touch='cmd_touch',
)


def operations(server: Server) -> Operations:
    """Ask memcached for its counters; raise BenchError if it is away."""
    address = server.address.split(':')
    try:
        with socket.create_connection(address, timeout=10) as s:
            s.sendall(b'stats\r\nquit\r\n')
            return counted(s.makefile().read())
    except OSError as err:
        raise BenchError(
            f'memcached at {server.address} gives no stats: {err!r}'
        ) from err


def counted(stats: str) -> Operations:
    """Return the operations in the response to ``stats``. Pure."""
    return Operations(
        *(
            sum(map(int, re.findall(rf'^STAT {name} (\d+)', stats, re.M)))
            for name in _COUNTERS
        )
    )
