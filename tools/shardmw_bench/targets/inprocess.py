# SPDX-License-Identifier: Apache-2.0
"""The filter in this process, above an app that answers at once.

So the time of a request is nearly that of the filter alone; the time of a
request without the filter can be subtracted.
"""

import functools
import gc
import json
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from urllib.parse import parse_qsl

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.memcached import MemcacheRing
from swift.common.middleware import ratelimit
from swift.common.swob import Request
from swift.common.utils import get_logger
from swift.proxy.controllers import base as swift

from shardmw.backend import roots
from shardmw.backend.answers import Answer
from shardmw.backend.containers import RECORD_HEADER
from shardmw.core.layout import Layout
from shardmw.core.placement import parse_backing
from shardmw.proxy.filter import filter_factory
from shardmw.swift.infocache import INFOCACHE_ENV
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import Kind
from shardmw_bench.names import FlatNames
from shardmw_bench.targets.shares import names_by_shard

App = Callable[[dict, Callable], Sequence[bytes]]

#: In place of a method: a GET of the container.
LISTING = 'listing'

#: The rows of a page of a listing.
PAGE = 1000

_ACCOUNT = 'AUTH_test'
_TRANSACTION = 'tx0123456789abcdef0123456789abcdef'

# More than a page, so that no shard runs out of rows.
_OBJECTS = 4 * PAGE

# The variables that the server and other filters add to an environment.
_OTHERS_VARIABLES = 18

_ANSWER = [
    ('Content-Type', 'text/html; charset=UTF-8'),
    ('Content-Length', '0'),
    ('Etag', 'd41d8cd98f00b204e9800998ecf8427e'),
    ('X-Trans-Id', _TRANSACTION),
]


class _ProxyApp:
    """An app that answers at once, with what the filter needs of Swift's.

    :param app: answers requests, also those for single replicas
    """

    recheck_container_existence = 60
    swift_owner_headers: Collection[str] = ()
    max_containers_whitelist: Collection[str] = ()

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self, environ: dict, start_response: Callable):
        return self._app(environ, start_response)

    def get_policy_options(self, _policy: object) -> SimpleNamespace:
        """Have all reads of shards go through this app."""
        return SimpleNamespace(concurrent_gets=True)


def _ask_app(
    app: _ProxyApp, _env: dict, account: str, container: str, method: str, **_
) -> list[Answer]:
    """Ask the app, which is the only replica of each container."""
    env = {
        'REQUEST_METHOD': method,
        'PATH_INFO': f'/v1/{account}/{container}',
        'QUERY_STRING': '',
    }
    status, headers, _body = Request(env).call_application(app)
    return [Answer(None, status, HeaderKeyDict(headers), [])]


def answering(kind: Kind) -> App:
    """Return an app that answers as Swift does, without any work."""
    names = list(FlatNames(_OBJECTS))
    rows = {None: names}
    if kind.shards is not None:
        rows = dict(enumerate(names_by_shard(names, kind.parts)))

    @functools.lru_cache(None)
    def listed(container: str, query: str) -> tuple[list, list[bytes]]:
        backing = parse_backing(container)
        index = backing.shard if backing else None
        body = _page(rows.get(index, []), dict(parse_qsl(query)))
        headers = {
            **_container_headers(None if backing else kind),
            'Content-Type': 'application/json; charset=utf-8',
            'Content-Length': str(len(body)),
        }
        return list(headers.items()), [body]

    def app(environ: dict, start_response: Callable) -> list[bytes]:
        path = environ['PATH_INFO']
        # /v1/account/container/object
        if path.count('/') > 3:
            start_response('200 OK', _ANSWER)
            return [b'']
        container = path.rpartition('/')[2]
        headers, body = listed(container, environ['QUERY_STRING'])
        start_response('200 OK', headers)
        return body

    return _ProxyApp(app)


def filtered(settings: Mapping[str, str], app: App) -> App:
    """Return an app below the filter, which asks it for roots, too."""
    roots.ask_primaries = _ask_app
    return filter_factory({}, **settings)(app)


def limited_by_swift(settings: Mapping[str, str], app: App) -> App:
    """Return an app below Swift's own ratelimit filter."""
    return ratelimit.filter_factory({}, **settings)(app)


def requests_of(
    kind: Kind, container: str, memcached: str
) -> Callable[[str, int], list[dict]]:
    """Return a function that makes environments: ``make(method, count)``.

    Requests are to objects of a container, or with :data:`LISTING` to itself,
    as in a busy proxy: the info of the container and the account is in the
    info cache, since ``versioned_writes``, left of this filter, always looks
    it up.

    :param memcached: its address
    """
    logger = get_logger({}, log_route='shardmw-bench')
    memcache = MemcacheRing([memcached], logger=logger)
    account = swift.headers_to_account_info(
        {'X-Account-Container-Count': '1'}, 204
    )
    info = swift.headers_to_container_info(_container_headers(kind), 204)
    known = {
        swift.get_cache_key(_ACCOUNT): account,
        swift.get_cache_key(_ACCOUNT, container): info,
    }
    headers = {
        'Content-Type': 'application/octet-stream',
        'X-Auth-Token': 'AUTH_tk0123456789abcdef0123456789abcdef',
        'User-Agent': 'shardmw-bench',
    }

    def environ(method: str, number: int) -> dict:
        path = f'/v1/{_ACCOUNT}/{container}/o{number:010d}'
        if method == LISTING:
            path = f'/v1/{_ACCOUNT}/{container}?format=json&limit={PAGE}'
        environ = {
            'REQUEST_METHOD': 'GET' if method == LISTING else method,
            'swift.authorize': _nothing,
            'swift.cache': memcache,
            'swift.trans_id': _TRANSACTION,
            INFOCACHE_ENV: dict(known),
            **{f'swift.other_{i}': '' for i in range(_OTHERS_VARIABLES)},
        }
        body = b'x' if method == 'PUT' else b''
        return Request.blank(path, environ, headers, body).environ

    return lambda method, count: [environ(method, i) for i in range(count)]


def check(app: App, environs: Sequence[dict]) -> None:
    """Raise BenchError if a response of an app is not a 2xx."""
    statuses = []
    for environ in environs:
        for _ in app(environ, lambda status, *_: statuses.append(status)):
            pass
    bad = [status for status in statuses if not status.startswith('2')]
    if bad or len(statuses) != len(environs):
        raise BenchError(
            f'the filter answered {bad[:1] or "nothing"} and not 2xx: is '
            'memcached there?'
        )


def microseconds_each(app: App, environs: Sequence[dict]) -> float:
    """Return the processor time of an app for each request."""
    gc.collect()
    # from now on, only garbage of the requests is collected
    gc.freeze()
    begin = time.thread_time()
    for environ in environs:
        for _ in app(environ, _nothing):
            pass
    took = time.thread_time() - begin
    gc.unfreeze()
    return 1e6 * took / len(environs)


def _container_headers(kind: Kind | None) -> dict[str, str]:
    is_sharded = kind is not None and kind.shards is not None
    count = '0' if is_sharded else str(_OBJECTS)
    headers = {
        'X-Backend-Storage-Policy-Index': '0',
        'X-Container-Object-Count': count,
        'X-Container-Bytes-Used': count,
        'X-Container-Read': '.r:*',
        'X-Container-Meta-Color': 'blue',
        'X-Put-Timestamp': '1763721600.00000',
        'X-Timestamp': '1763721600.00000',
    }
    if is_sharded:
        headers[RECORD_HEADER] = Layout(
            '0643dd3d9b5c0', kind.parts
        ).to_record()
    return headers


def _page(names: Sequence[str], query: Mapping[str, str]) -> bytes:
    first = bisect_right(names, query.get('marker', ''))
    limit = int(query.get('limit', 10_000))
    rows = [
        {
            'bytes': 1,
            'hash': '9dd4e461268c8034f5c8564e155c67a6',
            'name': name,
            'content_type': 'application/octet-stream',
            'last_modified': '2026-11-21T10:40:00.000000',
        }
        for name in names[first : first + limit]
    ]
    return json.dumps(rows).encode()


def _nothing(*_: object) -> None:
    """Allow a request, or ignore the start of a response."""
