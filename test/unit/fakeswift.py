# SPDX-License-Identifier: Apache-2.0
"""Swift in one process, for unit tests of the filter.

:class:`FakeSwift` is Swift's own proxy app. Its requests reach Swift's own
account and container servers without a network, so roots and backing
containers are real databases. Objects do not exist: requests for objects get
the response that a test has registered, or a successful one.

Every request that reaches the proxy app is recorded. A test can register
responses that replace the real ones, and functions that are called before a
request.
"""

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from unittest import mock
from urllib.parse import unquote

from swift.account.server import AccountController
from swift.common import bufferedhttp, storage_policy, utils
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.middleware.memcache import MemcacheMiddleware
from swift.common.middleware.recon import ReconMiddleware
from swift.common.recon import RECON_OBJECT_FILE
from swift.common.storage_policy import (
    StoragePolicy,
    StoragePolicyCollection,
)
from swift.common.swob import (
    Request,
    Response,
    str_to_wsgi,
    wsgi_quote,
    wsgi_to_str,
)
from swift.common.utils import Timestamp, get_logger
from swift.common.wsgi import loadapp
from swift.container.backend import ContainerBroker
from swift.container.server import ContainerController
from swift.proxy.server import Application

from shardmw.backend.config import parse_options
from shardmw.backend.metrics import COUNTER, Metrics
from shardmw.container_server.filter import ContainerFilter
from shardmw.core.placement import hidden_account
from shardmw.proxy.filter import ShardMiddleware

ACCOUNT = 'AUTH_test'
HIDDEN = hidden_account(ACCOUNT)
PARTITION = 1

SHARED_MEMORY = '/dev/shm'

#: The storage policies by index. The last one is deprecated.
POLICY_NAMES = ('gold', 'silver', 'retired')
RETIRED = 2

#: How many containers have metrics of their own.
CONTAINERS = 2

OBJECT_STATUSES = {'PUT': 201, 'POST': 202, 'DELETE': 204}


class Call(NamedTuple):
    """A request that has reached the proxy app.

    :param path: the unquoted path, a native string
    :param infocache: a copy of ``swift.infocache``
    """

    method: str
    path: str
    query: str
    headers: HeaderKeyDict
    env: dict
    infocache: dict

    @classmethod
    def of(cls, env: dict) -> 'Call':
        """Return the call that an environment describes."""
        return cls(
            env['REQUEST_METHOD'],
            wsgi_to_str(env['PATH_INFO']),
            env.get('QUERY_STRING', ''),
            HeaderKeyDict(Request(env).headers.items()),
            env,
            dict(env.get('swift.infocache', {})),
        )


class Logger:
    """The filter's logger, which also records its metrics.

    :ivar lines: the warnings and errors
    :ivar counts: the metrics by dotted name: the sum of a counter, otherwise
                  how many times the metric was sent
    :ivar metrics: the metrics to give to the filter
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.metrics = Metrics(self._note, CONTAINERS, self)

    def warning(self, message, *args):
        self.lines.append(message % args)

    error = exception = warning

    def _note(self, metric, value, labels):
        name = metric.dotted.format(**labels)
        self.counts[name] += value if metric.kind == COUNTER else 1


class Memcached:
    """A replacement for Swift's memcached client, in which nothing expires.

    :ivar values: the stored values by key
    """

    def __init__(self) -> None:
        self.values: dict = {}

    def get(self, key, raise_on_error=False):
        value = self.values.get(key, 'null')
        return value if isinstance(value, bytes) else json.loads(value)

    def set(self, key, value, serialize=True, time=0, raise_on_error=False):
        self.values[key] = json.dumps(value)

    def incr(self, key, delta=1, time=0):
        value = max(0, (self.get(key) or 0) + delta)
        self.set(key, value)
        return value

    def delete(self, key, server_key=None):
        self.values.pop(key, None)

    def get_multi(self, keys, _server_key):
        return [self.get(key) for key in keys]

    def set_multi(self, values, _server_key, serialize=True, time=0):
        for key, value in values.items():
            self.values[key] = json.dumps(value) if serialize else value


class Ring:
    """A ring that has everything on the same devices.

    :param port: the port of the servers, which depends on their kind
    """

    def __init__(self, port: int, replicas: int) -> None:
        self.replica_count = replicas
        self.nodes = [
            {
                'id': i,
                'ip': '127.0.0.1',
                'port': port,
                'device': f'd{i}',
                'region': 1,
                'zone': 1,
            }
            for i in range(replicas)
        ]
        # A gap, as a device leaves that was removed from a ring.
        self.devs = [None, *self.nodes]

    def get_nodes(self, _account, _container=None, _obj=None):
        return PARTITION, self.get_part_nodes(PARTITION)

    def get_part(self, _account, _container=None, _obj=None):
        return PARTITION

    def get_part_nodes(self, _part):
        return [dict(node, index=node['id']) for node in self.nodes]

    def get_more_nodes(self, _part):
        return iter(())


class ServerResponse:
    """An account or container server's response, as a proxy reads it."""

    def __init__(self, status: str, headers: list, body: bytes) -> None:
        code, _, self.reason = status.partition(' ')
        self.status = int(code)
        self.length = len(body)
        self.will_close = True
        self._headers = headers
        self._body = BytesIO(body)

    def getheaders(self) -> list[tuple[str, str]]:
        return self._headers

    def getheader(self, name: str, default=None):
        return HeaderKeyDict(self._headers).get(name, default)

    def read(self, size: int | None = None) -> bytes:
        return self._body.read(size)

    def close(self) -> None:
        pass

    nuke_from_orbit = close


class Connection:
    """A connection to an account or container server in this process."""

    def __init__(self, servers: 'Servers', address: str) -> None:
        self._servers = servers
        self._port = int(address.rpartition(':')[2])
        self._headers: list[tuple[str, str]] = []
        self._body = b''

    def putrequest(self, method, path, skip_host=False):
        self._method, self._path = method, path

    def putheader(self, name, value):
        self._headers.append((name, value))

    def connect(self) -> None:
        pass

    def endheaders(self, body: bytes | None = None) -> None:
        device = self._path.split('/')[1]
        if device in self._servers.away:
            raise ConnectionRefusedError(device)
        if body:
            self.send(body)

    def send(self, data: bytes) -> None:
        self._body += data

    def getresponse(self) -> ServerResponse:
        return self._servers.answer(
            self._port, self._method, self._path, self._headers, self._body
        )

    def close(self) -> None:
        pass


class FilteredServers:
    """Container servers, some of them with the filter shardmw-container.

    :param server: the container server of all replicas
    :param filtered: the replicas with the filter
    """

    def __init__(
        self, server: ContainerController, filtered: Iterable[int]
    ) -> None:
        self._server = server
        self._filter = ContainerFilter(server, server.logger)
        self._devices = [f'd{replica}' for replica in filtered]

    def __call__(self, env: dict, start_response):
        device = env['PATH_INFO'].split('/')[1]
        is_filtered = device in self._devices
        app = self._filter if is_filtered else self._server
        return app(env, start_response)

    def __getattr__(self, name: str):
        return getattr(self._server, name)


class Servers:
    """The account and container servers of all devices.

    :ivar away: the devices that do not answer
    :ivar broken: the paths, ``/account/container``, that answer 500
    :ivar asked: the device, method and path of each request
    """

    ACCOUNT_PORT, CONTAINER_PORT, OBJECT_PORT = 1, 2, 3

    def __init__(self, folder: Path) -> None:
        conf = {
            'devices': str(folder),
            'mount_check': 'false',
            'log_requests': 'false',
        }
        logger = get_logger({}, log_route='fakeswift')
        self.away: set[str] = set()
        self.broken: set[str] = set()
        self.asked: list[tuple[str, str, str]] = []
        self._events: dict[str, Callable] = {}
        self.folder = folder
        self.apps = {
            self.ACCOUNT_PORT: AccountController(conf, logger),
            self.CONTAINER_PORT: ContainerController(conf, logger),
            self.OBJECT_PORT: ReconMiddleware(
                Response(status=400), {'recon_cache_path': str(folder)}
            ),
        }

    def count_updates(self, count: int, seconds_ago: float = 0) -> None:
        """Have the object server report a number of pending updates."""
        counted = time.time() - seconds_ago
        counts = {'async_pending': count, 'async_pending_last': counted}
        (self.folder / RECON_OBJECT_FILE).write_text(json.dumps(counts))

    def remove_recon(self) -> None:
        """Remove the filter recon from the object server's pipeline."""
        self.apps[self.OBJECT_PORT] = Response(status=400)

    def put_filter(self, replicas: Iterable[int]) -> None:
        """Put the filter in front of the container servers of replicas."""
        self.apps[self.CONTAINER_PORT] = FilteredServers(
            self.apps[self.CONTAINER_PORT], replicas
        )

    def before(self, path: str, event: Callable) -> None:
        """Call a function before the next request to a container.

        :param path: ``/account/container``
        """
        self._events[path] = event

    def answer(
        self, port: int, method: str, path: str, headers: list, body: bytes
    ) -> ServerResponse:
        """Return the response of a server to a request."""
        if port == self.OBJECT_PORT:
            return self._call(port, method, path, headers, body)
        _, device, _, rest = unquote(path).partition('?')[0].split('/', 3)
        self.asked.append((device, method, f'/{rest}'))
        place = '/' + '/'.join(rest.split('/', 2)[:2])
        if place in self._events:
            self._events.pop(place)()
        if place in self.broken:
            return ServerResponse('500 Internal Error', [], b'')
        return self._call(port, method, path, headers, body)

    def _call(
        self, port: int, method: str, path: str, headers: list, body: bytes
    ) -> ServerResponse:
        req = Request.blank(path, method=method, body=body)
        req.headers.update(headers)
        status, headers, parts = req.call_application(self.apps[port])
        return ServerResponse(status, headers, b''.join(parts))


class FakeSwift(Application):
    """Swift's proxy app in front of :class:`Servers`.

    :ivar calls: the requests that reached the app, in order
    :ivar servers: the servers
    :ivar memcached: the memcached client in the requests of :meth:`send`
    :cvar current: the app of the pipeline that is being loaded
    """

    current: 'FakeSwift'

    def __init__(self, servers: Servers, replicas: int, **conf: str) -> None:
        conf = {
            'account_autocreate': 'true',
            'error_suppression_limit': '1000',
            **conf,
        }
        super().__init__(
            conf,
            get_logger({}, log_route='fakeswift'),
            account_ring=Ring(servers.ACCOUNT_PORT, replicas),
            container_ring=Ring(servers.CONTAINER_PORT, replicas),
        )
        # Requests go to replicas in the ring's order.
        self.sort_nodes = lambda nodes, policy=None: nodes
        self.servers = servers
        self.memcached = Memcached()
        self.calls: list[Call] = []
        self._answers: dict[tuple[str, str], Response] = {}
        self._events: list[tuple[str, str, bool, Callable]] = []

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        call = Call.of(env)
        self.calls.append(call)
        self._happen(call)
        place = call.method, call.path
        if place in self._answers:
            status, headers, body = self._answers[place]
            app = Response(status=status, headers=headers, body=body)
        elif len(call.path.split('/', 4)) == 5:
            app = self.answer_object(call)
        else:
            app = super().__call__
        return app(env, start_response)

    def answer_object(self, call: Call) -> Response:
        """Return the response to a request for an object."""
        return Response(status=OBJECT_STATUSES.get(call.method, 200))

    def register(
        self,
        method: str,
        path: str,
        status: int,
        headers: dict | None = None,
        body: bytes = b'',
    ) -> None:
        """Replace the response to requests with this method and path."""
        self._answers[method, path] = status, headers or {}, body

    def unregister(self, method: str, path: str) -> None:
        """Undo :meth:`register`."""
        del self._answers[method, path]

    def before(self, method: str, path: str, event: Callable) -> None:
        """Call a function before the next request of this kind."""
        self._events.append((method, path, False, event))

    def before_any(self, method: str, prefix: str, event: Callable) -> None:
        """Call a function before the next request whose path begins so."""
        self._events.append((method, prefix, True, event))

    def _happen(self, call: Call) -> None:
        """Call the function that a test has registered for this call."""
        for each in self._events:
            method, path, is_prefix, event = each
            is_path = call.path == path
            if is_prefix:
                is_path = call.path.startswith(path)
            if call.method == method and is_path:
                self._events.remove(each)
                event()
                return

    def sent(self, method: str | None = None) -> list[tuple[str, str]]:
        """Return the method and path of each request that reached the app."""
        return [
            (call.method, call.path)
            for call in self.calls
            if method in (None, call.method)
        ]

    def send(
        self,
        app: Callable,
        method: str,
        path: str,
        headers: dict | None = None,
        env: dict | None = None,
        query: str = '',
    ) -> Response:
        """Send a client's request to an app, such as the filter.

        :param path: the unquoted path
        :param env: values that other filters have put into the environment
        """
        environ = {
            'REQUEST_METHOD': method,
            'QUERY_STRING': query,
            'swift.cache': self.memcached,
            'swift.infocache': {},
            **(env or {}),
        }
        req = Request.blank(
            wsgi_quote(str_to_wsgi(path)), environ, headers=headers
        )
        resp = req.get_response(app)
        resp.body  # noqa: B018 read the whole body
        return resp

    def direct(
        self,
        method: str,
        path: str,
        headers: dict | None = None,
        body: bytes = b'',
        replicas: list[int] | None = None,
    ) -> list[ServerResponse]:
        """Send a request to the container servers, even those that are away.

        :param path: the unquoted path without the API version
        :param replicas: the indices of devices; all by default
        """
        ring = self.container_ring
        headers = {
            'X-Timestamp': Timestamp.now().internal,
            'X-Backend-Storage-Policy-Index': '0',
            'X-Backend-Allow-Reserved-Names': 'true',
            **(headers or {}),
        }
        return [
            self.servers.answer(
                Servers.CONTAINER_PORT,
                method,
                wsgi_quote(str_to_wsgi(f'/d{i}/{PARTITION}{path}')),
                list(headers.items()),
                body,
            )
            for i in (replicas or range(ring.replica_count))
        ]

    def put_account(self, account: str) -> None:
        """Create an account."""
        headers = {'X-Timestamp': Timestamp.now().internal}
        for i in range(self.account_ring.replica_count):
            self._ask_account(i, f'/{account}', headers)

    def put_row(
        self,
        path: str,
        at: float | None = None,
        size: int = 1,
        etag: str = 'etag',
        content_type: str = 'text/plain',
        replicas: list[int] | None = None,
        policy_index: int = 0,
    ) -> None:
        """Write the row of an object into a container's database.

        :param path: ``/account/container/object``
        :param at: the row's timestamp
        """
        headers = {
            'X-Timestamp': Timestamp(at or Timestamp.now()).internal,
            'X-Size': str(size),
            'X-Etag': etag,
            'X-Content-Type': content_type,
            'X-Backend-Storage-Policy-Index': str(policy_index),
        }
        for answer in self.direct('PUT', path, headers, replicas=replicas):
            assert answer.status == 201, answer.status

    def broker(
        self, account: str, container: str, replica: int = 0
    ) -> ContainerBroker:
        """Return the database of a container's replica."""
        return self.servers.apps[Servers.CONTAINER_PORT]._get_container_broker(
            f'd{replica}', PARTITION, account, container
        )

    def lose(self, account: str, container: str, replica: int) -> None:
        """Remove a replica of a container, as if its disk were new."""
        broker = self.broker(account, container, replica)
        shutil.rmtree(Path(broker.db_file).parent)

    def take_away(self, account: str, container: str, replica: int) -> None:
        """Move a replica of a container to where no proxy looks for it."""
        primary, handoff = self._folders(account, container, replica)
        if primary.exists():
            handoff.parent.mkdir(parents=True, exist_ok=True)
            primary.rename(handoff)

    def bring_back(self, account: str, container: str, replica: int) -> None:
        """Move a replica of a container back to its primary.

        If the primary has a new database by then, both are merged.
        """
        primary, handoff = self._folders(account, container, replica)
        if not handoff.exists():
            return
        if not primary.exists():
            primary.parent.mkdir(parents=True, exist_ok=True)
            handoff.rename(primary)
            return
        (file,) = handoff.glob('*.db')
        _merge(
            ContainerBroker(str(file), account=account, container=container),
            self.broker(account, container, replica),
        )
        shutil.rmtree(handoff)

    def _folders(
        self, account: str, container: str, replica: int
    ) -> tuple[Path, Path]:
        """Return the folders of a replica on its primary and on a handoff."""
        broker = self.broker(account, container, replica)
        primary = Path(broker.db_file).parent
        device = self.servers.folder / f'd{replica}'
        handoffs = self.servers.folder / 'handoffs' / device.name
        return primary, handoffs / primary.relative_to(device)

    def lose_account(self, account: str, replica: int) -> None:
        """Remove a replica of an account."""
        server = self.servers.apps[Servers.ACCOUNT_PORT]
        broker = server._get_account_broker(f'd{replica}', PARTITION, account)
        shutil.rmtree(Path(broker.db_file).parent)

    def replicate(self, account: str, container: str) -> None:
        """Replicate all databases of a container."""
        replicas = range(self.container_ring.replica_count)
        brokers = [self.broker(account, container, i) for i in replicas]
        sources = [each for each in brokers if Path(each.db_file).exists()]
        for source in sources:
            for target in brokers:
                if target is not source:
                    _merge(source, target)

    def replicate_metadata(self, account: str, container: str) -> None:
        """Replicate only the metadata of a container.

        A replica without a database gets a complete one.
        """
        replicas = range(self.container_ring.replica_count)
        brokers = [self.broker(account, container, i) for i in replicas]
        sources = [each for each in brokers if Path(each.db_file).exists()]
        for source in sources:
            for target in brokers:
                is_old = target in sources
                (_merge_metadata if is_old else _merge)(source, target)

    def rows(
        self, account: str, container: str, replica: int = 0
    ) -> dict[str, int]:
        """Return the sizes of the objects that a replica lists, by name."""
        broker = self.broker(account, container, replica)
        if broker.is_deleted():
            return {}
        rows = broker.list_objects_iter(
            10_000,
            '',
            '',
            '',
            '',
            storage_policy_index=broker.storage_policy_index,
        )
        return {row[0]: row[2] for row in rows}

    def put_container(
        self,
        path: str,
        headers: dict | None = None,
        replicas: list[int] | None = None,
    ) -> None:
        """Create a container as a proxy without the filter does.

        :param path: ``/account/container``
        :param headers: its metadata
        """
        for answer in self.direct('PUT', path, headers, replicas=replicas):
            assert answer.status in (201, 202), answer.status

    def exists(self, account: str, container: str, replica: int = 0) -> bool:
        """Return True if a replica of a container exists."""
        return not self.broker(account, container, replica).is_deleted()

    def containers(self, account: str) -> list[str]:
        """Return the names of the containers that an account lists."""
        resp = self.send(
            super().__call__,
            'GET',
            f'/v1/{account}',
            {'X-Backend-Allow-Reserved-Names': 'true'},
            query='format=json',
        )
        return [row['name'] for row in json.loads(resp.body or b'[]')]

    def update_accounts(self) -> None:
        """Report the sums of all containers, as a container updater does."""
        for broker in self._brokers():
            self._report(broker)

    def databases(self) -> list[tuple[str, str]]:
        """Return the account and the name of all containers."""
        infos = [broker.get_info() for broker in self._brokers()]
        return sorted((info['account'], info['container']) for info in infos)

    def _brokers(self) -> list[ContainerBroker]:
        """Return one database of each container, of the first replica."""
        files = self.servers.folder.glob('d*/containers/*/*/*/*.db')
        first: dict[str, Path] = {}
        for each in sorted(files):
            first.setdefault(each.name, each)
        return [ContainerBroker(str(each)) for each in first.values()]

    def update_account(self, account: str, container: str) -> None:
        """Report the sums of one container to its account."""
        self._report(self.broker(account, container))

    def _report(self, broker: ContainerBroker) -> None:
        info = broker.get_info()
        headers = {
            'X-Put-Timestamp': info['put_timestamp'],
            'X-Delete-Timestamp': info['delete_timestamp'],
            'X-Object-Count': str(info['object_count']),
            'X-Bytes-Used': str(info['bytes_used']),
            'X-Backend-Storage-Policy-Index': str(
                info['storage_policy_index']
            ),
            'X-Account-Override-Deleted': 'yes',
            'X-Timestamp': Timestamp.now().internal,
            'X-Backend-Allow-Reserved-Names': 'true',
        }
        path = f'/{info["account"]}/{info["container"]}'
        for i in range(self.account_ring.replica_count):
            self._ask_account(i, path, headers)

    def _ask_account(self, replica: int, path: str, headers: dict) -> None:
        path = wsgi_quote(str_to_wsgi(f'/d{replica}/{PARTITION}{path}'))
        self.servers.answer(
            Servers.ACCOUNT_PORT, 'PUT', path, list(headers.items()), b''
        )


def _merge(source: ContainerBroker, target: ContainerBroker) -> None:
    """Merge a database into another one, as a replicator does."""
    info = source.get_info()
    if not Path(target.db_file).exists():
        policy_index = info['storage_policy_index']
        target.initialize(info['put_timestamp'], policy_index)
    _merge_metadata(source, target)
    target.merge_items(source.get_items_since(-1, 10_000))


def _merge_metadata(source: ContainerBroker, target: ContainerBroker) -> None:
    info = source.get_info()
    times = ('created_at', 'put_timestamp', 'delete_timestamp')
    target.merge_timestamps(*(info[time] for time in times))
    target.update_metadata(source.metadata)


@contextmanager
def fake_swift(replicas: int = 1, **conf: str) -> Iterator[FakeSwift]:
    """Run a :class:`FakeSwift`.

    :param replicas: the replicas of accounts and containers, a device each
    :param conf: options of the proxy app
    """
    with folder_in_memory() as folder, _running(folder, replicas, conf) as app:
        yield app


def end_watchdog(app: Application) -> None:
    """End the green thread that an app has for its timeouts."""
    if hasattr(app.watchdog, 'kill'):
        app.watchdog.kill()
    else:  # before Swift 2.34
        app.watchdog._run_gth.kill()


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder for databases, in memory if possible."""
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@contextmanager
def _running(
    folder: Path, replicas: int, conf: dict[str, str]
) -> Iterator[FakeSwift]:
    for i in range(replicas):
        Path(folder, f'd{i}').mkdir()
    servers = Servers(folder)
    ring = Ring(servers.OBJECT_PORT, replicas)
    policies = [
        StoragePolicy(
            index,
            name,
            is_default=index == 0,
            is_deprecated=index == RETIRED,
            object_ring=ring,
        )
        for index, name in enumerate(POLICY_NAMES)
    ]
    with (
        mock.patch.object(
            storage_policy, '_POLICIES', StoragePolicyCollection(policies)
        ),
        mock.patch.object(utils, 'HASH_PATH_SUFFIX', b'test'),
        mock.patch.object(
            bufferedhttp,
            'BufferedHTTPConnection',
            lambda address: Connection(servers, address),
        ),
    ):
        swift = FakeSwift(servers, replicas, **conf)
        swift.put_account(ACCOUNT)
        servers.asked.clear()
        try:
            yield swift
        finally:
            end_watchdog(swift)


def filtered(swift: FakeSwift, **conf: str) -> ShardMiddleware:
    """Return the filter, in front of the proxy app.

    :param conf: options of the filter
    """
    logger = Logger()
    return ShardMiddleware(swift, parse_options(conf), logger, logger.metrics)


def loaded(swift: FakeSwift, filters: list[str], **conf: str) -> Callable:
    """Load a proxy's pipeline as Swift does, and return its first filter.

    :param filters: the names of Swift's filters to the left of shardmw
    :param conf: options of shardmw
    """
    entry_points = {name: f'use = egg:swift#{name}' for name in filters}
    options = [f'{name} = {value}' for name, value in conf.items()]
    entry_points['shardmw'] = '\n'.join(
        ['use = egg:shardmw#shardmw', *options]
    )
    sections = [f'[filter:{name}]\n{s}' for name, s in entry_points.items()]
    text = '\n\n'.join(
        [
            '[pipeline:main]\npipeline = '
            + ' '.join([*entry_points, 'proxy-server']),
            '[app:proxy-server]\n'
            f'paste.app_factory = {__name__}:app_factory\n'
            'bind_port = 80',
            *sections,
        ]
    )
    path = Path(swift.servers.folder, 'proxy-server.conf')
    path.write_text(text)
    with mock.patch.object(FakeSwift, 'current', swift, create=True):
        app = loadapp(str(path))
    for each in app._pipeline:
        if isinstance(each, MemcacheMiddleware):
            each.memcache = swift.memcached
    return app


def app_factory(_global_conf: dict, **_conf: str) -> FakeSwift:
    """Return the proxy app of a pipeline, for PasteDeploy."""
    return FakeSwift.current
