# SPDX-License-Identifier: Apache-2.0
"""What memcached was asked for, by its own count."""

import socket
from collections.abc import Iterable, Mapping
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
    host, _, port = server.address.rpartition(':')
    try:
        with (
            socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as s,
            s.makefile('rw', newline='\r\n') as lines,
        ):
            lines.write('stats\n')
            lines.flush()
            return counted(parse_stats(iter(lines.readline, 'END\r\n')))
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


def parse_stats(lines: Iterable[str]) -> dict[str, str]:
    """Return the counters in memcached's answer to ``stats``. Pure.

    :raises ValueError: if it is broken off
    """
    return {
        name: value
        for _, name, value in (line.split(' ', 2) for line in lines)
    }
