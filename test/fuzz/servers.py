# SPDX-License-Identifier: Apache-2.0
"""Swift's container server in memory, with the filter, for fuzz targets."""

import itertools
import logging
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from swift.common.swob import Request, Response, str_to_wsgi, wsgi_to_str
from swift.common.utils import Timestamp, get_logger
from swift.container.server import ContainerController

from shardmw.container_server.filter import ContainerFilter
from shardmw.core.batch import METHOD
from shardmw.core.layout import Layout
from shardmw.core.placement import backing_container, hidden_account, shard_of

DEVICE, PART = 'sda1', 1
ACCOUNT, PLAIN, SHARDED = 'AUTH_t', 'plain', 'sharded'
HIDDEN = hidden_account(ACCOUNT)
LAYOUT = Layout('65a1b2c3d4e5f', 2)
SHARDS = [
    backing_container(SHARDED, LAYOUT.id, i) for i in range(LAYOUT.shards)
]

#: Most of the longest name: with two of these, a query may be too long.
LONG = '文' * 300

#: Names with neighbours of a slash and of the last characters of Unicode,
#: without those that Swift overlooks in a listing by path.
NAMES = [
    *('a', 'a/', 'a/b', 'a/b/c', 'a/c', 'a//d', 'ab', 'b', 'b/', 'b/a'),
    *('b"\\\n', 'c}, {"name": "d', 'é', 'é/é', '/', '//', 'a\ud7ff/x'),
    *('a\U0010ffff', '\U0001f600/a', f'{LONG}/a', f'{LONG}/b/c', f'{LONG}b'),
]
STRAYS = ['a/b/d', 'bb', 'é/f']


class _Failures(logging.Handler):
    """Raises the exceptions that are logged."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            raise record.exc_info[1]


class Servers:
    """A container server with the rows of a plain and a sharded container.

    :param folder: of the devices
    """

    def __init__(self, folder: Path) -> None:
        (folder / DEVICE).mkdir()
        conf = {
            'devices': str(folder),
            'mount_check': 'false',
            'log_requests': 'false',
        }
        self.server = ContainerController(conf)
        logger = get_logger({}, log_route='fuzz')
        logger.logger.addHandler(_Failures())
        self.filter = ContainerFilter(self.server, logger)
        self._clock = itertools.count(1)
        self._fill(ACCOUNT, PLAIN, [*NAMES, *STRAYS])
        self._fill(ACCOUNT, SHARDED, STRAYS)
        for i, shard in enumerate(SHARDS):
            names = [n for n in NAMES if shard_of(n, LAYOUT.shards) == i]
            self._fill(HIDDEN, shard, names)
        self._fill(ACCOUNT, 'gone', [])
        self.send('DELETE', f'{ACCOUNT}/gone')

    def _fill(self, account: str, container: str, names: list[str]) -> None:
        self.send('PUT', f'{account}/{container}')
        for name in names:
            self.send('PUT', f'{account}/{container}/{name}', timestamp=1)
        self.send('GET', f'{account}/{container}')

    def send(
        self,
        method: str,
        path: str,
        query: str = '',
        timestamp: int | None = None,
        device: str = DEVICE,
        part: int = PART,
    ) -> Response:
        """Send a request to Swift's server, without the filter."""
        timestamp = timestamp or next(self._clock)
        req = Request.blank(
            str_to_wsgi(f'/{device}/{part}/{path}'),
            environ={'REQUEST_METHOD': method, 'QUERY_STRING': query},
            headers={
                'X-Timestamp': Timestamp(timestamp).internal,
                'X-Backend-Allow-Reserved-Names': 'true',
                'X-Content-Type': 'text/plain',
                'X-Etag': 'etag',
                'X-Size': '7',
            },
        )
        return req.get_response(self.server)

    def report(self, body: bytes) -> Response:
        """Send a batch of reads to the filter."""
        req = Request.blank(
            f'/{DEVICE}/{PART}/a/c',
            environ={'REQUEST_METHOD': METHOD},
            body=body,
        )
        return req.get_response(self.filter)

    def __call__(self, env: dict, start_response: Callable):
        """Forward the request of a proxy to the container server."""
        _version, path = Request(env).split_path(2, 2, True)
        resp = self.send('GET', wsgi_to_str(path), env['QUERY_STRING'])
        return resp(env, start_response)

    def get_policy_options(self, _policy) -> SimpleNamespace:
        """Have all reads of shards go through this app."""
        return SimpleNamespace(concurrent_gets=True)


@cache
def servers() -> Servers:
    """Return the servers of this process."""
    folder = tempfile.TemporaryDirectory(prefix='shardmw-fuzz-')
    found = Servers(Path(folder.name))
    # The folder is removed at the end of the process.
    found.folder = folder
    return found
