# SPDX-License-Identifier: Apache-2.0
"""The filter in this process, above an app that answers at once.

So what a request takes is the filter's own, and the app's next to nothing.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.memcached import MemcacheRing
from swift.common.middleware import ratelimit
from swift.common.utils import get_logger

from shardmw.backend import (
    INFOCACHE_ENV,
    RECORD_HEADER,
    Answer,
    Backend,
    info_of,
    with_info,
)
from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.config import parse_options
from shardmw.layout import Layout
from shardmw.middleware import ShardMiddleware
from shardmw.stats import cache_key

App = Callable[[dict, Callable], Sequence[bytes]]

_ACCOUNT = 'AUTH_test'
_MICROSECONDS = 1_000_000
_OBJECTS = 1000

# A sum that nobody has to read anew meanwhile.
_HOUR_SECONDS = 3600

# Of what other filters and the server left of this one put there.
_OTHERS_VARIABLES = 18


def null_app(environ: dict, start_response: Callable) -> list[bytes]:
    """Answer any request."""
    start_response(
        '200 OK',
        [
            ('Content-Type', 'text/html; charset=UTF-8'),
            ('Content-Length', '0'),
            ('Etag', 'd41d8cd98f00b204e9800998ecf8427e'),
            ('X-Trans-Id', 'tx0123456789abcdef0123456789abcdef'),
        ],
    )
    return [b'']


def filtered(settings: Mapping[str, str]) -> App:
    """The null app with the filter above it.

    :param settings: the filter's options
    """
    return ShardMiddleware(null_app, parse_options(settings), _logger())


def limited_by_swift(settings: Mapping[str, str]) -> App:
    """The null app with Swift's own ratelimit filter above it.

    :param settings: that filter's options
    """
    return ratelimit.filter_factory({}, **settings)(null_app)


class Requests:
    """Requests to objects of one container, as a busy proxy has them.

    What Swift knows of it and of its account is at hand in each request's
    info cache, where filters left of this one have it looked up:
    ``versioned_writes`` always does.

    :param kind: of the container
    :param container: its name
    :param memcached: its address
    """

    def __init__(self, kind: Kind, container: str, memcached: str) -> None:
        self._path = f'/v1/{_ACCOUNT}/{container}'
        self._memcache = MemcacheRing([memcached], logger=_logger())
        headers = HeaderKeyDict(
            {
                'X-Backend-Storage-Policy-Index': '0',
                'X-Container-Object-Count': '0' if kind.shards else _OBJECTS,
                'X-Container-Bytes-Used': '0' if kind.shards else _OBJECTS,
                'X-Container-Read': '.r:*',
                'X-Container-Meta-Color': 'blue',
            }
        )
        if kind.shards:
            headers[RECORD_HEADER] = Layout(kind.shards).to_record()
            self._keep_sums(container)
        info = info_of(Answer(None, '204 No Content', headers, []))
        self._known = with_info({}, _ACCOUNT, container, info)
        # which puts that of the account beside it
        first = self._environ('HEAD', 0)
        Backend(null_app, _logger(), 1).account_info(first)
        self._known = {INFOCACHE_ENV: first[INFOCACHE_ENV]}

    def environs(self, method: str, count: int) -> list[dict]:
        """Environments of requests to so many objects."""
        return [self._environ(method, number) for number in range(count)]

    def _environ(self, method: str, number: int) -> dict:
        path = f'{self._path}/o{number:010d}'
        variables = {
            'REQUEST_METHOD': method,
            'SCRIPT_NAME': '',
            'PATH_INFO': path,
            'RAW_PATH_INFO': path,
            'QUERY_STRING': '',
            'SERVER_PROTOCOL': 'HTTP/1.1',
            'SERVER_NAME': '127.0.0.1',
            'SERVER_PORT': '8080',
            'REMOTE_ADDR': '127.0.0.1',
            'REMOTE_PORT': '40000',
            'CONTENT_TYPE': 'application/octet-stream',
            'CONTENT_LENGTH': '1' if method == 'PUT' else '0',
            'HTTP_HOST': '127.0.0.1:8080',
            'HTTP_X_AUTH_TOKEN': 'AUTH_tk0123456789abcdef0123456789abcdef',
            'HTTP_USER_AGENT': 'shardmw-bench',
            'wsgi.input': BytesIO(b'x'),
            'wsgi.url_scheme': 'http',
            'swift.authorize': _allow,
            'swift.cache': self._memcache,
            'swift.trans_id': 'tx0123456789abcdef0123456789abcdef',
        }
        for i in range(_OTHERS_VARIABLES):
            variables[f'swift.other_{i}'] = ''
        known = self._known[INFOCACHE_ENV]
        return {**variables, INFOCACHE_ENV: dict(known)}

    def _keep_sums(self, container: str) -> None:
        """Have the sums over the shards known, as after the first write."""
        sums = [_OBJECTS, _OBJECTS, time.time() + _HOUR_SECONDS]
        key = cache_key(_ACCOUNT, container)
        self._memcache.set(key, sums, time=_HOUR_SECONDS)


def check(app: App, environs: Sequence[dict]) -> None:
    """Have an app answer requests, as it would when they are timed.

    :raises BenchError: if one is not answered well
    """
    statuses = []
    for environ in environs:
        body = app(environ, lambda status, *_: statuses.append(status))
        for _ in body:
            pass
    bad = [status for status in statuses if not status.startswith('2')]
    if bad or len(statuses) != len(environs):
        raise BenchError(
            f'the filter answered {bad[:1] or "nothing"} where it should '
            'send on: is memcached there?'
        )


def microseconds_each(app: App, environs: Sequence[dict]) -> float:
    """Processor time that an app takes for each of some requests."""
    gc.collect()
    # what is collected meanwhile is what the requests leave behind
    gc.freeze()
    begin = time.thread_time()
    for environ in environs:
        for _ in app(environ, _start_response):
            pass
    took = time.thread_time() - begin
    gc.unfreeze()
    return _MICROSECONDS * took / len(environs)


def _logger():
    return get_logger({}, log_route='shardmw-bench')


def _allow(_request: object) -> None:
    return None


def _start_response(*_what: object) -> None:
    return None
