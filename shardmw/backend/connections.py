# SPDX-License-Identifier: Apache-2.0
"""Connections to container servers that stay open between requests.

A listing sends a small request to each shard. Accepting a connection costs a
container server a seventh of the processor time of such a request. But each
open connection counts against the server's ``max_clients``, so few stay open,
and only for a moment.
"""

import time
from collections import defaultdict
from typing import NamedTuple

from swift.common.bufferedhttp import BufferedHTTPConnection

from shardmw.swift.concurrency import sleep, spawn

#: How long a connection stays open without a request.
IDLE_SECONDS = 1

#: Close a connection after this many requests. It belongs to one process of
#: the server; a new connection is accepted by a process that is not busy.
MOST_REQUESTS = 50


class Connection(NamedTuple):
    """An open connection.

    :param http: Swift's connection
    :param requests: how many requests it was used for
    :param idle_since: in seconds of the monotonic clock
    """

    http: BufferedHTTPConnection
    requests: int = 0
    idle_since: float = 0


class Connections:
    """Holds connections while no request uses them.

    :param most_idle: the most connections to hold for one server
    """

    def __init__(self, most_idle: int) -> None:
        self.most_idle = most_idle
        # By address, the connection that has been idle for longest first.
        self._idle: dict[tuple[str, int], list[Connection]] = defaultdict(list)
        self._is_closing = False

    def take(self, ip: str, port: int) -> Connection | None:
        """Return a connection to a server, None if there is none."""
        idle = self._idle.get((ip, port))
        return idle.pop() if idle else None

    def keep(self, ip: str, port: int, connection: Connection) -> None:
        """Hold a connection that was used for one more request."""
        idle = self._idle[ip, port]
        requests = connection.requests + 1
        if requests == MOST_REQUESTS or len(idle) >= self.most_idle:
            connection.http.close()
            return
        idle.append(Connection(connection.http, requests, time.monotonic()))
        if not self._is_closing:
            self._is_closing = True
            spawn(self._close_in_time)

    def close(self, ip: str, port: int) -> None:
        """Close the connections to a server."""
        for connection in self._idle.pop((ip, port), ()):
            connection.http.close()

    def _close_in_time(self) -> None:
        """Close connections that stay idle, until none is left."""
        while self._idle:
            sleep(IDLE_SECONDS / 2)
            self._close_old()
        self._is_closing = False

    def _close_old(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for address, idle in list(self._idle.items()):
            while idle and idle[0].idle_since < oldest:
                idle.pop(0).http.close()
            if not idle:
                del self._idle[address]
