# SPDX-License-Identifier: Apache-2.0
"""Requests to backing containers: the seam to Swift.

What reaches into Swift's less public parts lies here and nowhere else: the
info cache's keys, the info that stands in for a backing container's, the
environment of a pre-authorized request, and concurrency.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

import orjson
from swift.common.bufferedhttp import http_connect
from swift.common.exceptions import ConnectionTimeout, ShortReadError
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import (
    HTTP_NOT_FOUND,
    is_server_error,
    is_success,
)
from swift.common.memcached import IO_TIMEOUT, MemcacheConnectionError
from swift.common.middleware.proxy_logging import ProxyLoggingMiddleware
from swift.common.middleware.versioned_writes.object_versioning import (
    ByteCountingReader,
)
from swift.common.request_helpers import get_ip_port, get_sys_meta_prefix
from swift.common.swob import (
    HTTPServiceUnavailable,
    Request,
    str_to_wsgi,
    wsgi_quote,
)
from swift.common.utils import (
    StreamingPile,
    Timestamp,
    cache_from_env,
    close_if_possible,
)
from swift.common.wsgi import make_pre_authed_env
from swift.proxy.controllers.base import (
    NodeIter,
    clear_info_cache,
    close_swift_conn,
    get_account_info,
    get_cache_key,
    get_container_info,
    headers_to_container_info,
)
from swift.proxy.server import Application

try:
    from swift.common.concurrency import Event as Event
    from swift.common.concurrency import Timeout
    from swift.common.concurrency import sleep as sleep
    from swift.common.concurrency import spawn as spawn
except ImportError:  # before Swift 2.38
    from eventlet import Event as Event
    from eventlet import Timeout
    from eventlet import sleep as sleep
    from eventlet import spawn as spawn

from shardmw.layout import Layout, LayoutError, parse_record
from shardmw.paths import parse_path
from shardmw.placement import (
    backing_container,
    backing_object,
    can_be_sharded,
    is_reserved,
    shard_of,
)

SWIFT_SOURCE = 'SMW'
SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
RECORD_NAME = 'shardmw-layout'
RECORD_HEADER = get_sys_meta_prefix('container') + RECORD_NAME
POLICY_INDEX_ENV = 'HTTP_X_BACKEND_STORAGE_POLICY_INDEX'
MANIFEST_ENV = 'HTTP_X_STATIC_LARGE_OBJECT'
FIRST_SEEN_KEY = 'shardmw/first-seen'
RESERVED_NAMES_ENV = 'HTTP_X_BACKEND_ALLOW_RESERVED_NAMES'
INFOCACHE_ENV = 'swift.infocache'

#: In a container's sysmeta, if it keeps versions: Swift counts them, too.
VERSIONS_NAME = 'versions-container'

#: What is a number in a container's info, but is cached as text.
NUMBERS = ('storage_policy', 'bytes', 'object_count')


class BackendError(Exception):
    """A request to a backing container that was not answered as it must be.

    :param shard: the shard, None for the root
    :param status: what it answered
    :param reason: what else is to be said in its place
    """

    def __init__(
        self, shard: int | None, status: int, reason: str | None = None
    ) -> None:
        place = 'the root' if shard is None else f'shard {shard}'
        super().__init__(reason or f'{place} answered {status}')
        self.shard = shard
        self.status = status


@dataclass(frozen=True, slots=True)
class LogicalContainer:
    """A sharded container, as one client request sees it.

    :param version: the API version in the path, such as ``v1``
    :param account: the account, a native string
    :param container: the container, a native string
    :param info: what Swift knows of its root
    :param layout: how its objects are spread
    """

    version: str
    account: str
    container: str
    info: dict
    layout: Layout

    @property
    def path(self) -> str:
        """The container's path in requests, a WSGI string."""
        return str_to_wsgi(f'/{self.version}/{self.account}/{self.container}')

    def shards(self) -> range:
        """The shards that may hold objects."""
        return range(max(self.layout.shards, self.layout.previous or 0))

    def shards_of(self, name: str) -> list[int]:
        """The shards that may hold an object, the newest layout's first."""
        shards = (shard_of(name, count) for count in self.layout.counts())
        return list(dict.fromkeys(shards))

    def root_holds_rows(self) -> bool:
        """Whether objects may lie in the root, other than by rule."""
        return self.info['object_count'] > 0


class Answer(NamedTuple):
    """A response to a request of the filter.

    :param shard: the shard that was asked, None for anything else
    :param status_line: such as ``'200 OK'``
    :param body: the body's parts
    """

    shard: int | None
    status_line: str
    headers: HeaderKeyDict
    body: Iterable[bytes]

    @property
    def status(self) -> int:
        """The status code."""
        return int(self.status_line.split(' ', 1)[0])

    @property
    def is_success(self) -> bool:
        """Whether it is a 2xx."""
        return is_success(self.status)

    @property
    def is_missing(self) -> bool:
        """Whether it says that there is no such container."""
        return self.status == HTTP_NOT_FOUND

    def rows(self) -> list[dict]:
        """The rows of a listing."""
        return orjson.loads(b''.join(self.body) or b'[]')

    @property
    def object_count(self) -> int:
        """The container's number of objects."""
        return int(self.headers.get('X-Container-Object-Count', 0))

    @property
    def bytes_used(self) -> int:
        """The container's size in bytes."""
        return int(self.headers.get('X-Container-Bytes-Used', 0))


class Backend:
    """Sends what the filter asks of Swift.

    :param app: the rest of the pipeline
    :param logger: the filter's logger
    :param concurrency: reads of shards at once on behalf of one request
    """

    def __init__(self, app: Callable, logger, concurrency: int) -> None:
        self.app = app
        self.logger = logger
        self.concurrency = concurrency

    def container_info(self, env: dict) -> dict:
        """Swift's cached info of the container that a request names.

        Not to be changed: other filters go by the same.
        """
        info = _info_at_hand(env)
        if info is None:
            return get_container_info(env, self.app, swift_source=SWIFT_SOURCE)
        return info

    def account_info(self, env: dict) -> dict:
        """Swift's cached info of the account that a request names."""
        return get_account_info(env, self.app, swift_source=SWIFT_SOURCE)

    def logical_container(self, req: Request) -> LogicalContainer | None:
        """The sharded container that a request names, None if it is none.

        :raises BackendError: if nobody can say
        :raises LayoutError: if its record can't be read
        """
        return self.described_by(req, self.container_info(req.environ))

    def container_at(self, req: Request, path: str) -> LogicalContainer | None:
        """Like :meth:`logical_container`, of another path.

        :param path: the unquoted path of a container, a WSGI string
        """
        return self.logical_container(
            Request(dict(req.environ, PATH_INFO=path))
        )

    def described_by(
        self, req: Request, info: dict
    ) -> LogicalContainer | None:
        """Like :meth:`logical_container`, of an info that is at hand.

        :raises BackendError: if it says that the root did not answer
        :raises LayoutError: if the record can't be read
        """
        if is_server_error(info['status']):
            raise BackendError(None, info['status'])
        if not is_success(info['status']):
            return None
        record = info['sysmeta'].get(RECORD_NAME)
        if record is None:
            return None
        path = parse_path(req.path_info)
        return LogicalContainer(
            path.version,
            path.account,
            path.container,
            info,
            parse_record(record),
        )

    def head_root(self, req: Request) -> Answer:
        """HEAD a container past every cache, at all its replicas."""
        version, account, container, _obj = req.split_path(3, 4, True)
        base = self.owner_env(req.environ)
        base.pop('swift.cache', None)
        base[INFOCACHE_ENV] = {}
        return self.send(
            base,
            'HEAD',
            f'/{version}/{account}/{container}',
            headers={'X-Newest': 'true'},
        )

    def forget_info(self, env: dict, target: LogicalContainer) -> None:
        """Drop what is cached of a container."""
        clear_info_cache(env, target.account, target.container)

    def is_confirmed(self, env: dict, target: LogicalContainer) -> bool:
        """Whether memcached has a container with the same layout."""
        key = get_cache_key(target.account, target.container)
        info = SharedCache(env).get(key)
        record = info and info['sysmeta'].get(RECORD_NAME)
        return record == target.layout.to_record()

    def object_env(
        self, env: dict, target: LogicalContainer, shard: int, name: str
    ) -> dict:
        """A client's object request, sent to where the object lies.

        :param env: the client's environment, left as it is
        :param name: the object's name, a native string
        """
        backing = backing_container(target.container, shard)
        stored = backing_object(target.container, name)
        path = f'{target.version}/{target.account}/{backing}/{stored}'
        copy = with_info(
            env, target.account, backing, backing_info(target.info)
        )
        copy.pop('swift.authorize', None)
        copy['PATH_INFO'] = '/' + str_to_wsgi(path)
        copy[RESERVED_NAMES_ENV] = 'true'
        return copy

    def owner_env(self, env: dict, uncached: bool = False) -> dict:
        """The base of pre-authorized requests on behalf of a request.

        :param uncached: whether to leave memcached alone. The account's info
                         is then looked up here, once for all requests.
        """
        base = make_pre_authed_env(env, swift_source=SWIFT_SOURCE)
        base.pop('HTTP_ORIGIN', None)
        base['swift_owner'] = True
        base['swift.proxy_access_log_made'] = True
        base[RESERVED_NAMES_ENV] = 'true'
        if uncached:
            self.account_info(env)
            base.pop('swift.cache', None)
            base[INFOCACHE_ENV] = dict(env.get(INFOCACHE_ENV, {}))
        return base

    def send(
        self,
        base: dict,
        method: str,
        path: str,
        query: str = '',
        headers: Mapping[str, str] | None = None,
        shard: int | None = None,
    ) -> Answer:
        """Send one request and read its whole answer.

        :param base: an environment of :meth:`owner_env`
        :param path: the unquoted path, a WSGI string
        :param query: the query string, quoted
        """
        env = dict(
            base,
            REQUEST_METHOD=method,
            PATH_INFO=path,
            QUERY_STRING=query,
            CONTENT_LENGTH='0',
        )
        env['wsgi.input'] = BytesIO()
        req = Request(env)
        req.headers.update(headers or {})
        return self._whole(req, shard)

    def send_to_shard(
        self,
        base: dict,
        target: LogicalContainer,
        shard: int,
        method: str,
        query: str = '',
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request to a backing container."""
        backing = backing_container(target.container, shard)
        path = f'/{target.version}/{target.account}/{backing}'
        return self.send(
            base, method, str_to_wsgi(path), query, headers, shard
        )

    def send_as_client(
        self, req: Request, changes: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a client's own request on and read its whole answer.

        :param changes: what to change of its environment
        """
        return self._whole(Request(dict(req.environ, **(changes or {}))))

    def pass_on(self, req: Request) -> Answer:
        """The same in its own environment, where filters note what they learn.

        Such as that the client owns the account.
        """
        return self._whole(req)

    def take_back(self, env: dict) -> None:
        """Delete what was stored, of an upload that is refused after all.

        :param env: the environment in which it was stored
        """
        delete = dict(env, REQUEST_METHOD='DELETE', CONTENT_LENGTH='0')
        # The upload's own: a DELETE must be newer.
        delete.pop('HTTP_X_TIMESTAMP', None)
        delete['wsgi.input'] = BytesIO()
        answer = self.send_as_client(Request(delete))
        if is_server_error(answer.status):
            self.logger.error(
                'shardmw: %s, of an upload that was refused, is left',
                wsgi_quote(env['PATH_INFO']),
            )

    def _whole(self, req: Request, shard: int | None = None) -> Answer:
        status, headers, body = req.call_application(self.app)
        try:
            parts = [b''.join(body)]
        finally:
            close_if_possible(body)
        return Answer(shard, status, HeaderKeyDict(headers), parts)

    def fan_out(
        self,
        send: Callable[..., Answer],
        calls: Iterable[tuple],
        concurrency: int | None = None,
    ) -> list[Answer]:
        """Call a function for many arguments at once.

        :param send: what to call; an exception of it counts as a 503
        :param calls: the arguments, the shard (None: the root) first
        :param concurrency: calls at once, if not as many as reads
        :returns: the answers, in the order of the calls
        """
        calls = list(calls)
        most = concurrency or self.concurrency

        def guarded(index: int, *args) -> tuple[int, Answer]:
            try:
                return index, send(*args)
            except (Exception, Timeout):
                self.logger.exception('shardmw: request to shard failed')
                status_line = '503 Service Unavailable'
                return index, Answer(args[0], status_line, HeaderKeyDict(), [])

        with StreamingPile(max(1, min(most, len(calls)))) as pile:
            numbered = [(i, *args) for i, args in enumerate(calls)]
            answers = dict(pile.asyncstarmap(guarded, numbered))
        return [answers[i] for i in range(len(calls))]

    def head_shards(
        self, env: dict, target: LogicalContainer, newest: bool = False
    ) -> list[Answer]:
        """HEAD every backing container.

        :param newest: ask all replicas of each
        :returns: what they answered, be it an error
        """
        reads = self.shard_reads(env, target, newest)
        return self.fan_out(
            lambda shard: reads.read(shard, 'HEAD'),
            [(shard,) for shard in target.shards()],
        )

    def shard_reads(
        self, env: dict, target: LogicalContainer, newest: bool = False
    ) -> 'ShardReads':
        """What reads the shards of a container on behalf of a request.

        :param newest: ask all replicas of each, even if the client does not
        """
        headers = {'X-Newest': 'true'} if newest else newest_header(env)
        return ShardReads(self, env, target, headers)

    def proxy_app(self) -> Application | None:
        """Swift's proxy app, None if there is a filter before it."""
        app = self.app
        while isinstance(app, ProxyLoggingMiddleware):
            app = app.app
        return app if isinstance(app, Application) else None


class ShardReads:
    """GETs and HEADs of the backing containers of one container.

    A request through the proxy app looks up and prepares anew what is the
    same for all shards, which costs more than what remains. So the servers
    are asked here, as the app does it: its ring, its order of replicas, its
    timeouts and its limits of errors. All that is not just a good answer is
    left to the app: a missing container, one that Swift itself sharded, and
    what needs more than one replica. So is everything while there are filters
    before the app (encryption), which change what it answers.

    :param headers: of every request
    """

    def __init__(
        self,
        backend: Backend,
        env: dict,
        target: LogicalContainer,
        headers: Mapping[str, str],
    ) -> None:
        self.backend = backend
        self.target = target
        self.headers = headers
        self.base = backend.owner_env(env, uncached=True)
        self._app = None
        app = backend.proxy_app()
        if app and not headers and not _reads_many_replicas(app):
            self._app = app
            # Of it, the order of replicas only wants the headers.
            self._request = Request({})
            self._headers = {
                'X-Trans-Id': env.get('swift.trans_id', '-'),
                'X-Timestamp': Timestamp.now().internal,
                'X-Backend-Allow-Reserved-Names': 'true',
                # Of one that Swift sharded, the ranges: see _is_complete.
                'X-Backend-Record-Type': 'auto',
                'User-Agent': app.backend_user_agent,
                'Referer': Request(env).as_referer(),
                'Connection': 'close',
            }
            self._log_locals = app.logger.thread_locals

    def read(self, shard: int, method: str, query: str = '') -> Answer:
        """Read a backing container.

        :param method: GET or HEAD
        :param query: the query string, quoted
        """
        answer = self._app and self._read(shard, method, query)
        return answer or self.backend.send_to_shard(
            self.base, self.target, shard, method, query, self.headers
        )

    def _read(self, shard: int, method: str, query: str) -> Answer | None:
        """The answer of the first replica that gives one.

        :returns: None if it is not for us to say
        """
        app = self._app
        app.logger.thread_locals = self._log_locals
        account = self.target.account
        backing = backing_container(self.target.container, shard)
        ring = app.container_ring
        part = ring.get_part(account, backing)
        nodes = NodeIter(
            'container', app, ring, part, app.logger, self._request
        )
        path = f'/{account}/{backing}'
        for node in nodes:
            try:
                answer = self._ask(node, part, shard, method, path, query)
            except (Exception, Timeout):
                app.exception_occurred(
                    node, 'Container', f'Trying to {method} {path}'
                )
                continue
            if _is_told_by(node, answer):
                return answer if _is_complete(answer) else None
        return Answer(shard, '503 Service Unavailable', HeaderKeyDict(), [])

    def _ask(
        self,
        node: dict,
        part: int,
        shard: int,
        method: str,
        path: str,
        query: str,
    ) -> Answer:
        """Ask one replica."""
        app = self._app
        ip, port = get_ip_port(node, self._headers)
        started = time.time()
        with ConnectionTimeout(app.conn_timeout):
            connection = http_connect(
                ip,
                port,
                node['device'],
                part,
                method,
                path,
                headers=self._headers,
                query_string=query,
            )
        app.set_node_timing(node, time.time() - started)
        with Timeout(app.node_timeout):
            response = connection.getresponse()
        response.swift_conn = connection
        try:
            body = self._body(response)
        finally:
            close_swift_conn(response)
        app.check_response(node, 'Container', response, method, path, body)
        return Answer(
            shard,
            f'{response.status} {response.reason}',
            HeaderKeyDict(response.getheaders()),
            [body],
        )

    def _body(self, response) -> bytes:
        """A whole body, in chunks that each may take the node's time."""
        length = response.length
        chunks = []
        while True:
            with Timeout(self._app.node_timeout):
                chunk = response.read(self._app.object_chunk_size)
            if not chunk:
                break
            chunks.append(chunk)
        body = b''.join(chunks)
        if length is not None and len(body) != length:
            raise ShortReadError(f'{len(body)} bytes of {length}')
        return body


def _reads_many_replicas(app: Application) -> bool:
    """Whether the operator has replicas raced for each read."""
    return app.get_policy_options(None).concurrent_gets


def _is_told_by(node: dict, answer: Answer) -> bool:
    """Whether a server's answer tells something of the container.

    As for the proxy: not that a handoff, asked when others failed, lacks it.
    """
    is_handoff = 'handoff_index' in node
    return not (
        is_server_error(answer.status) or (is_handoff and answer.is_missing)
    )


def _is_complete(answer: Answer) -> bool:
    """Whether one replica's answer is the container's.

    As for the proxy: not if the replica has not caught up with the container's
    creation, nor if it names the ranges that Swift itself sharded it into.
    """
    if not answer.is_success:
        return False
    is_ranges = answer.headers.get('X-Backend-Record-Type') == 'shard'
    return not is_ranges and float(answer.headers.get('X-Put-Timestamp', 1))


class Verbatim:
    """An answer, given to the client as it is: a WSGI application."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def __call__(self, _env: dict, start_response: Callable):
        start_response(
            self.answer.status_line, list(self.answer.headers.items())
        )
        return self.answer.body


def info_of(answer: Answer) -> dict:
    """A container's info, as ``get_container_info`` gives it, of its HEAD."""
    info = headers_to_container_info(answer.headers, answer.status)
    return _with_numbers(info)


def to_environ(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as a WSGI environment has them."""
    return {
        'HTTP_' + name.upper().replace('-', '_'): value
        for name, value in headers.items()
    }


def with_info(env: dict, account: str, container: str, info: dict) -> dict:
    """A copy of an environment in which Swift finds this container info."""
    infocache = {
        **env.get(INFOCACHE_ENV, {}),
        get_cache_key(account, container): info,
    }
    return {**env, INFOCACHE_ENV: infocache}


def backing_info(info: dict) -> dict:
    """What stands in for the info of a container's backing containers.

    So no object request waits for a HEAD of a backing container. Policy and
    CORS are the logical container's, and ACLs are checked before.
    """
    return _BackingInfo(
        _nothing_known(info['status']),
        storage_policy=info['storage_policy'],
        object_count=0,
        bytes=0,
        cors=info['cors'],
    )


class _BackingInfo(dict):
    """An info that is quick to copy.

    Swift makes a deep copy whenever it looks at one. Most of it is known to
    be empty.
    """

    def __deepcopy__(self, _memo: dict) -> dict:
        return {**self, 'cors': {**self['cors']}, 'meta': {}, 'sysmeta': {}}


@functools.cache
def _nothing_known(status: int) -> dict:
    """The info of a container of which only the status is known."""
    return headers_to_container_info({}, status)


def _info_at_hand(env: dict) -> dict | None:
    """What ``get_container_info`` would say, if it need not ask anyone.

    It copies all that is cached, to the last header, for each who asks; that
    takes longer than all that the filter does for a request to an object.

    :returns: None if nothing is cached, or not all that belongs to it
    """
    infocache = env.get(INFOCACHE_ENV)
    if not infocache:
        return None
    path = parse_path(env['PATH_INFO'])
    info = infocache.get(get_cache_key(path.account, path.container))
    if not info or info['sysmeta'].get(VERSIONS_NAME):
        return None
    return _with_numbers(info)


def _with_numbers(info: dict) -> dict:
    """A container's info in which numbers are some."""
    return {**info, **{name: int(info.get(name) or 0) for name in NUMBERS}}


def require_success(answers: Iterable[Answer]) -> None:
    """Check that every answer is a 2xx.

    :raises BackendError: for the first that is not
    """
    for answer in answers:
        if not answer.is_success:
            raise BackendError(answer.shard, answer.status)


def newest_header(env: dict) -> dict[str, str]:
    """The client's X-Newest, for the requests on its behalf."""
    newest = env.get('HTTP_X_NEWEST')
    return {'X-Newest': newest} if newest else {}


def may_be_sharded(req: Request, container: str) -> bool:
    """Whether the filter has to do with a container.

    Versions' containers are object versioning's alone: to clients Swift
    refuses their names.
    """
    if is_reserved(container):
        return req.allow_reserved_names and can_be_sharded(container)
    return True


def first_seen(env: dict) -> float:
    """When the filter first saw a client's request, or a part of it.

    What Swift knows of containers is no older, but may be as old: all that
    other filters ask on behalf of one request share one info cache.

    :returns: a time of the monotonic clock
    """
    infocache = env.setdefault(INFOCACHE_ENV, {})
    return infocache.setdefault(FIRST_SEEN_KEY, time.monotonic())


def is_uploaded_version(req: Request) -> bool:
    """Whether a request stores as a version what a client uploads.

    Object versioning counts what it reads from a client, not what it copies;
    nor are delete markers read from anywhere.
    """
    return isinstance(req.environ.get('wsgi.input'), ByteCountingReader)


def uploaded_bytes(req: Request) -> int:
    """The size of a version that was uploaded."""
    return req.environ['wsgi.input'].bytes_read


def authorize(req: Request, acl: str | None = None):
    """Ask the auth middleware about a request to a logical container.

    :param acl: the ACL that applies; None where only owners may
    :returns: None if it is allowed, else the response that denies it
    """
    if 'swift.authorize' not in req.environ:
        return None
    req.acl = acl
    return req.environ['swift.authorize'](req)


def unavailable(req: Request, logger, reason: Exception):
    """The 503 for a request that can't be answered rightly, with its line.

    :param reason: what is wrong, a BackendError or a LayoutError
    """
    what = 'layout record' if isinstance(reason, LayoutError) else 'backing'
    logger.error(
        'shardmw: 503 for %s %s: %s: %s',
        req.method,
        wsgi_quote(req.path_info),
        what,
        reason,
    )
    logger.increment('unavailable')
    return HTTPServiceUnavailable(request=req)


class SharedCache:
    """Swift's memcached, where it is configured and answers.

    Every method does without it when it is away.
    """

    def __init__(self, env: dict) -> None:
        self._memcache = cache_from_env(env, True)

    def get(self, key: str):
        """The value of a key, None if there is none."""
        return self._memcache.get(key) if self._memcache else None

    def set(self, key: str, value, seconds: int) -> None:
        """Keep a value for some seconds."""
        if self._memcache and seconds > 0:
            self._memcache.set(key, value, time=seconds)

    def put(self, key: str, value, seconds: int) -> bool:
        """Keep a value for some seconds.

        :returns: whether it is kept
        """
        if not self._memcache:
            return False
        try:
            self._memcache.set(key, value, time=seconds, raise_on_error=True)
        except MemcacheConnectionError:
            return False
        return True

    def get_together(self, keys: list[str], place: str) -> list:
        """The values of keys that one server has, None for what is not there.

        :param place: the key that says which server
        """
        if not self._memcache:
            return [None] * len(keys)
        values = self._memcache.get_multi(keys, place)
        return values or [None] * len(keys)

    def set_together(self, values: dict, place: str, seconds: int) -> None:
        """Keep values for :meth:`get_together`."""
        if self._memcache:
            self._memcache.set_multi(values, place, time=seconds)

    def delete(self, key: str) -> None:
        """Drop a key."""
        if self._memcache:
            self._memcache.delete(key)

    def take(self, key: str, seconds: int) -> bool:
        """Take a key that only one can hold, for some seconds at the most.

        :returns: whether it is ours; also when nobody can say
        """
        if not self._memcache:
            return True
        try:
            return self._memcache.incr(key, time=seconds) == 1
        except MemcacheConnectionError:
            return True

    def add(self, key: str, delta: int, seconds: int) -> int | None:
        """Add to a counter, which starts at 0 and never falls below.

        :param seconds: for how long to keep one that is new
        :returns: its new value, None when nobody can say
        """
        if not self._memcache:
            return None
        try:
            return self._memcache.incr(key, delta=delta, time=seconds)
        except MemcacheConnectionError:
            return None

    @property
    def timeout_seconds(self) -> float:
        """How long memcached may take to answer."""
        return getattr(self._memcache, '_io_timeout', IO_TIMEOUT)
