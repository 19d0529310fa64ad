# SPDX-License-Identifier: Apache-2.0
"""The memcached server of a cluster."""

import socket

from shardmw_saio import Cluster


def flush(cluster: Cluster) -> None:
    """Have memcached forget everything."""
    port = cluster.servers['memcached'].port
    with socket.create_connection(('127.0.0.1', port)) as connection:
        connection.sendall(b'flush_all\r\n')
        assert connection.recv(100) == b'OK\r\n'
