# SPDX-License-Identifier: Apache-2.0
"""What memcached was asked for, by its own count."""

import socket
from collections.abc import Mapping
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.saio.topology import Server

_TIMEOUT_SECONDS = 10


class Operations(NamedTuple):
    """How many there were of each kind."""

    get: int
    set: int
    incr: int
    decr: int
    delete: int
    touch: int

    def since(self, before: 'Operations') -> 'Operations':
        """How many came after an earlier count."""
        pairs = zip(self, before, strict=True)
        return Operations(*(now - then for now, then in pairs))


#: Which of memcached's counters make up each kind.
_COUNTERS = {
    'get': ('cmd_get',),
    'set': ('cmd_set',),
    'incr': ('incr_hits', 'incr_misses'),
    'decr': ('decr_hits', 'decr_misses'),
    'delete': ('delete_hits', 'delete_misses'),
    'touch': ('cmd_touch',),
}


def operations(server: Server) -> Operations:
    """Ask memcached for its counters.

    :raises BenchError: if it does not answer
    """
    try:
        return counted(_stats(server.address))
    except (OSError, KeyError, ValueError) as err:
        raise BenchError(
            f'memcached at {server.address} gives no stats: {err!r}'
        ) from err


def counted(stats: Mapping[str, str]) -> Operations:
    """Sum up memcached's counters. Pure.

    :raises KeyError: if one is missing
    """
    return Operations(
        **{
            kind: sum(int(stats[name]) for name in names)
            for kind, names in _COUNTERS.items()
        }
    )


def parse_stats(answer: str) -> dict[str, str]:
    """The counters in memcached's answer to ``stats``. Pure."""
    rows = (line.split(' ', 2) for line in answer.splitlines())
    return {row[1]: row[2] for row in rows if row[0] == 'STAT'}


def _stats(address: str) -> dict[str, str]:
    host, _, port = address.rpartition(':')
    answer = b''
    with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as link:
        link.sendall(b'stats\r\n')
        while not answer.endswith(b'END\r\n'):
            received = link.recv(65536)
            if not received:
                raise ConnectionError('closed')
            answer += received
    return parse_stats(answer.decode())
