# SPDX-License-Identifier: Apache-2.0
"""A proxy without the filter, next to an embedded cluster's own."""

import configparser
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from shardmw.saio import Cluster
from shardmw.saio.ports import PortReservations

HOST = '127.0.0.1'
READY_SECONDS = 30
POLL_SECONDS = 0.05


@contextlib.contextmanager
def running_unfiltered_proxy(cluster: Cluster) -> Iterator[str]:
    """Run a proxy without shardmw; gives its URL.

    Its clients may name what is reserved, with the header that Swift has
    for operators: ``X-Allow-Reserved-Names: true``.
    """
    conf = cluster.path / 'etc' / 'unfiltered-proxy.conf'
    log = cluster.path / 'log' / 'unfiltered-proxy.log'
    with PortReservations() as reservations:
        port = reservations.pick()
        _write_conf(conf.with_name('proxy-1.conf'), conf, port)
        proxy = subprocess.Popen(
            [sys.executable, '-m', 'shardmw.saio.launch', 'server']
            + ['proxy-server', str(conf), str(log)]
        )
        try:
            _wait_until_ready(proxy, port)
            yield f'http://{HOST}:{port}'
        finally:
            proxy.terminate()
            proxy.wait()


def _write_conf(model: Path, path: Path, port: int) -> None:
    conf = configparser.RawConfigParser()
    conf.optionxform = str
    conf.read(model)
    pipeline = conf['pipeline:main']['pipeline'].split()
    pipeline.remove('shardmw')
    conf['pipeline:main']['pipeline'] = ' '.join(pipeline)
    conf['DEFAULT']['bind_port'] = str(port)
    conf['filter:gatekeeper']['allow_reserved_names_header'] = 'true'
    with path.open('w') as text:
        conf.write(text)


def _wait_until_ready(proxy: subprocess.Popen, port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        assert proxy.poll() is None, 'the proxy ended at its start'
        assert time.monotonic() < deadline, 'the proxy did not answer'
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((HOST, port), 1).close()
            return
        time.sleep(POLL_SECONDS)
