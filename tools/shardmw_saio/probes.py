# SPDX-License-Identifier: Apache-2.0
"""Ask servers whether they answer."""

import http.client
import socket

from shardmw_saio.topology import DAEMONS, MEMCACHED, Server


def answers(server: Server, timeout_seconds: float = 10) -> bool:
    """Return True if a server answers a request."""
    address = (server.host.address, server.port)
    try:
        if server.kind == MEMCACHED:
            return _memcached_answers(address, timeout_seconds)
        if server.kind == DAEMONS:
            return _accepts(address, timeout_seconds)
        return _swift_answers(address, timeout_seconds)
    except (OSError, http.client.HTTPException):
        return False


def _swift_answers(address: tuple[str, int], timeout_seconds: float) -> bool:
    connection = http.client.HTTPConnection(*address, timeout=timeout_seconds)
    try:
        connection.request('GET', '/healthcheck')
        response = connection.getresponse()
        return response.status == 200 and response.read() == b'OK'
    finally:
        connection.close()


def _memcached_answers(
    address: tuple[str, int], timeout_seconds: float
) -> bool:
    with socket.create_connection(address, timeout_seconds) as connection:
        connection.sendall(b'version\r\n')
        return connection.recv(64).startswith(b'VERSION')


def _accepts(address: tuple[str, int], timeout_seconds: float) -> bool:
    """Return True if a process accepts a connection and then ends it."""
    with socket.create_connection(address, timeout_seconds) as connection:
        return connection.recv(1) == b''
