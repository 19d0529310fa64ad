# SPDX-License-Identifier: Apache-2.0
"""Connections to container servers that stay open between requests.

A listing sends a small request to each shard. To accept a connection costs a
container server a seventh of the processor time of such a request.
"""

import time
from collections import defaultdict, deque
from typing import NamedTuple

#: How long a connection stays open without a request. Servers keep it for
#: their client_timeout, 60 s.
IDLE_SECONDS = 5

#: How many connections to a server stay open without a request.
MOST_IDLE = 8

#: After how many requests a connection is closed. A connection belongs to one
#: of a server's processes; new ones go to those that have time.
MOST_REQUESTS = 50


class Connection(NamedTuple):
    """An open connection.

    :param wire: a :class:`BufferedHTTPConnection` of Swift
    :param requests: how many requests it was used for
    :param idle_since: in seconds of the monotonic clock
    """

    wire: object
    requests: int = 0
    idle_since: float = 0


class Connections:
    """Holds the connections that no request uses at present.

    Those of servers that get no more requests are not closed here.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], deque[Connection]] = defaultdict(
            deque
        )

    def take(self, ip: str, port: int) -> Connection | None:
        """Return a connection to a server, None if there is none."""
        idle = self._idle[ip, port]
        oldest = time.monotonic() - IDLE_SECONDS
        while idle:
            connection = idle.popleft()
            if connection.idle_since >= oldest:
                return connection
            connection.wire.close()
        return None

    def keep(self, ip: str, port: int, connection: Connection) -> None:
        """Keep a connection for the next request, after one more request."""
        idle = self._idle[ip, port]
        requests = connection.requests + 1
        if requests < MOST_REQUESTS and len(idle) < MOST_IDLE:
            idle.append(
                Connection(connection.wire, requests, time.monotonic())
            )
        else:
            connection.wire.close()

    def close(self, ip: str, port: int) -> None:
        """Close the connections to a server."""
        for connection in self._idle.pop((ip, port), ()):
            connection.wire.close()
