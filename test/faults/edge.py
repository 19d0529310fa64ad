# SPDX-License-Identifier: Apache-2.0
"""Faults at the edge of a server, in its own process.

The servers of Swift are wrapped, not changed. The fault of a server is JSON in
a file with the server's name, in the folder ``faults`` of the cluster.
"""

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from eventlet import sleep
from shardmw_saio.processes import MARK
from swift.common.utils import Timestamp
from swift.common.wsgi import loadwsgi

from shardmw.container_server import filter as container_filter

FOLDER = 'faults'

#: Methods that need room on a disk.
STORING = ('PUT', 'POST', 'DELETE', 'UPDATE', 'REPLICATE', 'SSYNC')
CLIENT_WRITES = ('PUT', 'POST', 'DELETE')

SLOW_SECONDS = (0.5, 3)

#: How long a client waits for a lost response.
LOST_SECONDS = 4

#: The number of slashes in the path of an object, ``/v1/a/c/o``.
OBJECT_SLASHES = 4


class Edge:
    """A WSGI wrapper that passes requests to a server unless it has a fault.

    Delays block only the green thread of a request: Swift's servers do not
    replace ``time.sleep``.

    A fault has the keys ``slow``, ``full``, ``clock`` (by how many seconds a
    proxy's clock is ahead) and ``cut`` (process ids of proxies whose requests
    are lost).
    """

    def __init__(self, app: Callable) -> None:
        folder, _, server = os.environ[MARK].rpartition(':')
        self.app = app
        self._path = Path(folder) / FOLDER / server
        self._changed = 0
        self._fault: dict = {}

    def __call__(self, env: dict, start_response: Callable):
        fault = self._current()
        if not fault or env['PATH_INFO'] == '/healthcheck':
            return self.app(env, start_response)
        method = env['REQUEST_METHOD']
        if env.get('HTTP_USER_AGENT', '').split()[-1:] and (
            env['HTTP_USER_AGENT'].split()[-1] in fault.get('cut', ())
        ):
            if random.random() < 0.5:  # only the response is lost
                list(self.app(env, lambda *_: None))
            sleep(LOST_SECONDS)
            return _refused('503 Lost', start_response)
        if 'full' in fault and method in STORING:
            return _refused('507 Insufficient Storage', start_response)
        is_object = env['PATH_INFO'].count('/') >= OBJECT_SLASHES
        if 'clock' in fault and method in CLIENT_WRITES and is_object:
            now = time.time() + fault['clock']
            env['HTTP_X_TIMESTAMP'] = Timestamp(now).internal
        answer = self.app(env, start_response)
        if 'slow' in fault:
            sleep(random.uniform(*SLOW_SECONDS))
        return answer

    def _current(self) -> dict:
        try:
            changed = os.stat(self._path).st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._changed:
            self._fault = json.loads(self._path.read_text())
            self._changed = changed
        return self._fault


def _refused(status: str, start_response: Callable) -> list[bytes]:
    start_response(status, [('Content-Length', '0')])
    return [b'']


def _server(kind: str, global_conf: dict, **conf: str) -> Edge:
    """Return one of Swift's storage servers with an edge."""
    app = loadwsgi.loadapp(
        f'egg:swift#{kind}', global_conf={**global_conf, **conf}
    )
    return Edge(app)


account, obj = (partial(_server, kind) for kind in ('account', 'object'))


def container(global_conf: dict, **conf: str) -> Callable:
    """Return the filter shardmw-container with an edge on its left."""
    reads = container_filter.filter_factory(global_conf, **conf)
    return lambda app: Edge(reads(app))


def proxy(global_conf: dict, **conf: str) -> Callable:
    """Return a proxy's healthcheck filter with an edge on its left."""
    check = loadwsgi.loadfilter(
        'egg:swift#healthcheck', global_conf={**global_conf, **conf}
    )
    return lambda app: Edge(check(app))


def put_fault(folder: Path, server: str, fault: Mapping) -> None:
    """Set the fault of a server; an empty one removes it."""
    path = folder / FOLDER / server
    path.parent.mkdir(exist_ok=True)
    if not fault:
        path.unlink(missing_ok=True)
        return
    new = path.with_suffix('.new')
    new.write_text(json.dumps(fault))
    new.replace(path)


#: The settings of a cluster whose servers have an edge.
SETTINGS = {
    'account-server.use': f'call:{__name__}:account',
    'shardmw-container.use': f'call:{__name__}:container',
    'object-server.use': f'call:{__name__}:obj',
    'healthcheck.use': f'call:{__name__}:proxy',
}
