# SPDX-License-Identifier: Apache-2.0
"""Ask servers whether they answer."""

import http.client
import socket

from shardmw_saio.topology import DAEMONS, HOST, MEMCACHED, Server


def answers(server: Server, timeout_seconds: float = 10) -> bool:
    """Return True if a server answers a request."""
    try:
        if server.kind == MEMCACHED:
            return _memcached_answers(server.port, timeout_seconds)
        if server.kind == DAEMONS:
            return _accepts(server.port, timeout_seconds)
        return _swift_answers(server.port, timeout_seconds)
    except (OSError, http.client.HTTPException):
        return False


def _swift_answers(port: int, timeout_seconds: float) -> bool:
    connection = http.client.HTTPConnection(
        HOST, port, timeout=timeout_seconds
    )
    try:
        connection.request('GET', '/healthcheck')
        response = connection.getresponse()
        return response.status == 200 and response.read() == b'OK'
    finally:
        connection.close()


def _memcached_answers(port: int, timeout_seconds: float) -> bool:
    address = (HOST, port)
    with socket.create_connection(address, timeout_seconds) as connection:
        connection.sendall(b'version\r\n')
        return connection.recv(64).startswith(b'VERSION')


def _accepts(port: int, timeout_seconds: float) -> bool:
    """Return True if a process accepts a connection and then ends it."""
    address = (HOST, port)
    with socket.create_connection(address, timeout_seconds) as connection:
        return connection.recv(1) == b''
