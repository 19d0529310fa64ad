# SPDX-License-Identifier: Apache-2.0
"""Run a proxy without shardmw next to those of an embedded cluster."""

import configparser
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from shardmw.saio import Cluster
from shardmw.saio.ports import PortReservations

HOST = '127.0.0.1'
READY_SECONDS = 30
POLL_SECONDS = 0.05
FILTERS = ('shardmw', 'shardmw-listings')


@contextlib.contextmanager
def running_unfiltered_proxy(cluster: Cluster) -> Iterator[str]:
    """Run a proxy without shardmw; gives its URL.

    All clients of this proxy own all accounts, including hidden accounts,
    which no user of an auth system can access. They may name what is reserved
    with the header that Swift has for operators: ``X-Allow-Reserved-Names:
    true``.
    """
    conf = cluster.path / 'etc' / 'unfiltered-proxy.conf'
    log = cluster.path / 'log' / 'unfiltered-proxy.log'
    with PortReservations() as reservations:
        port = reservations.pick()
        _write_conf(conf.with_name('proxy-1.conf'), conf, port)
        proxy = subprocess.Popen(
            [sys.executable, '-m', 'shardmw.saio.launch', 'server']
            + ['proxy-server', str(conf), str(log)],
            cwd=Path(__file__).parents[2],
        )
        try:
            _wait_until_ready(proxy, port)
            yield f'http://{HOST}:{port}'
        finally:
            proxy.terminate()
            proxy.wait()


def owner_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Return a filter for the place of tempauth that allows everything."""

    def owner(app: Callable) -> Callable:
        def filtered(env: dict, start_response: Callable):
            env['swift_owner'] = True
            env['swift.authorize'] = lambda req: None
            return app(env, start_response)

        return filtered

    return owner


def _write_conf(model: Path, path: Path, port: int) -> None:
    conf = configparser.RawConfigParser()
    conf.optionxform = str
    conf.read(model)
    pipeline = conf['pipeline:main']['pipeline'].split()
    kept = [name for name in pipeline if name not in FILTERS]
    conf['pipeline:main']['pipeline'] = ' '.join(kept)
    conf['DEFAULT']['bind_port'] = str(port)
    conf['filter:gatekeeper']['allow_reserved_names_header'] = 'true'
    factory = f'{owner_factory.__module__}:{owner_factory.__name__}'
    conf['filter:tempauth'] = {'paste.filter_factory': factory}
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
