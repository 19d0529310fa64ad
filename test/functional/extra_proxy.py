# SPDX-License-Identifier: Apache-2.0
"""Run one more proxy next to those of an embedded cluster."""

import configparser
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from shardmw_saio import Cluster
from shardmw_saio.commands import memcached_path
from shardmw_saio.ports import PortReservations

HOST = '127.0.0.1'
READY_SECONDS = 120
POLL_SECONDS = 0.05


@contextlib.contextmanager
def running_proxy(
    cluster: Cluster,
    name: str,
    change: Callable[[configparser.RawConfigParser], None],
) -> Iterator[str]:
    """Run a proxy with a changed copy of the first proxy's configuration.

    Proxies before Swift 2.37 ignore their ``swift_dir``, and the embedded ones
    read the swift.conf beside their configuration. So the copy is there.

    :param name: the name of its configuration file and its log
    :returns: its URL
    """
    conf = configparser.RawConfigParser()
    conf.optionxform = str
    conf.read(cluster.path / 'etc' / 'proxy-1.conf')
    change(conf)
    path = Path(conf['DEFAULT']['swift_dir'], f'{name}.conf')
    log = cluster.path / 'log' / f'{name}.log'
    with PortReservations() as reservations:
        port = reservations.pick()
        conf['DEFAULT']['bind_port'] = str(port)
        with path.open('w') as text:
            conf.write(text)
        command = [sys.executable, '-m', 'shardmw_saio.launch', 'server']
        with _running([*command, 'proxy-server', str(path), str(log)], port):
            yield f'http://{HOST}:{port}'


@contextlib.contextmanager
def running_detached_proxy(cluster: Cluster) -> Iterator[str]:
    """Run a proxy that has a memcached of its own.

    :returns: its URL
    """
    with PortReservations() as reservations:
        port = reservations.pick()
        command = [memcached_path(), '-u', 'root', '-l', HOST]
        command += ['-p', str(port), '-U', '0']

        def change(conf: configparser.RawConfigParser) -> None:
            conf['filter:cache']['memcache_servers'] = f'{HOST}:{port}'

        with (
            _running(command, port),
            running_proxy(cluster, 'detached-proxy', change) as url,
        ):
            yield url


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    """Run a server until the end of the block."""
    server = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        _wait_until_ready(server, port)
        yield
    finally:
        server.terminate()
        server.wait()


def _wait_until_ready(server: subprocess.Popen, port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        assert server.poll() is None, 'the server ended at its start'
        assert time.monotonic() < deadline, 'the server did not answer'
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((HOST, port), 1).close()
            return
        time.sleep(POLL_SECONDS)
