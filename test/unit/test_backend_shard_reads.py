# SPDX-License-Identifier: Apache-2.0
"""Reads of shards from their servers, or through the app."""

import socket
from contextlib import ExitStack, contextmanager

import pytest
from swift.common.bufferedhttp import BufferedHTTPConnection
from swift.common.middleware.proxy_logging import ProxyLoggingMiddleware
from swift.common.storage_policy import POLICIES
from swift.common.swob import Request, Response
from swift.common.utils import get_logger
from swift.proxy.server import Application

from shardmw.backend.answers import Answer
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.backend.shard_reads import ShardReads
from shardmw.core.batch import Found, encode_found
from shardmw.core.layout import Layout
from shardmw.core.paths import Path
from shardmw.swift.concurrency import Timeout, sleep, spawn
from test.functional.answering import answering

INFO = {'status': 200, 'object_count': 0, 'bytes': 0, 'sysmeta': {}}
LISTING = b'[{"name": "a"}]'
IDLE_CONNECTIONS = 4


def response(status: str, body: bytes = b'', **headers) -> bytes:
    headers = {
        'Content-Length': len(body),
        'X-Put-Timestamp': '1.0',
        'Connection': 'close',
        **{name.replace('_', '-'): value for name, value in headers.items()},
    }
    head = ''.join(f'{name}: {value}\r\n' for name, value in headers.items())
    return f'HTTP/1.1 {status}\r\n{head}\r\n'.encode() + body


GOOD = response('200 OK', LISTING, X_Container_Object_Count=1)
MISSING = response('404 Not Found')
BROKEN = response('500 Internal Error')
FULL = response('507 Insufficient Storage')
SHORT = response('200 OK', LISTING, Content_Length=len(LISTING) + 1)
EMPTY = {'X_Container_Object_Count': 0}
RANGES = response('200 OK', b'[]', X_Backend_Record_Type='shard', **EMPTY)
BEHIND = response('200 OK', b'[]', X_Put_Timestamp='0', **EMPTY)
# What http.client returns for a response that ends within its headers.
CUT = response('200 OK')
SILENT = None


class Ring:
    """A ring with the same nodes for every container, in a given order."""

    def __init__(self, ports: list[int]) -> None:
        self.nodes = [
            {'ip': '127.0.0.1', 'port': port, 'device': f'd{i}', 'id': i}
            for i, port in enumerate(ports)
        ]
        self.handoffs = []
        self.replica_count = len(self.nodes)

    def get_part(self, _account, _container):
        return 7

    def get_nodes(self, _account, _container):
        return 7, list(self.nodes)

    def get_part_nodes(self, _part):
        return list(self.nodes)

    def get_more_nodes(self, _part):
        return iter(self.handoffs)


class Proxy(Application):
    """Swift's proxy app, which records the requests that are left to it."""

    def __init__(self, ring: Ring, conf: dict) -> None:
        conf = {'node_timeout': '0.3', 'conn_timeout': '1', **conf}
        logger = get_logger({})
        super().__init__(conf, logger, ring, ring)
        # Requests go to replicas in the ring's order.
        self.sort_nodes = lambda nodes, policy=None: nodes
        self.asked = []

    def __call__(self, env, start_response):
        self.asked.append(env['PATH_INFO'])
        return Response(body=b'[]')(env, start_response)


@pytest.fixture(autouse=True)
def no_object_ring(monkeypatch):
    """Replace the object ring, which would need files of a cluster."""
    monkeypatch.setattr(POLICIES.default, 'object_ring', Ring([]))


@pytest.fixture
def proxy():
    """Return a function that makes a proxy whose servers answer like this."""
    with ExitStack() as servers:

        def proxy(*answers: bytes | None, **conf: str) -> Proxy:
            urls = [
                servers.enter_context(answering(lambda _n, a=answer: a)).url
                for answer in answers
            ]
            return Proxy(Ring([port_of(url) for url in urls]), conf)

        yield proxy


def port_of(url: str) -> int:
    return int(url.rpartition(':')[2])


def reads_of(backend: Backend, **env) -> ShardReads:
    env = {**Request.blank('/v1/a/c').environ, **env}
    env['swift.infocache'] = {'account/a': {'status': 200}}
    target = LogicalContainer(
        Path('v1', 'a', 'c'), INFO, Layout('65a1b2c3d4e5f', 4)
    )
    return backend.shard_reads(env, target)


def read(app, method: str = 'GET', **env):
    backend = Backend(app, get_logger({}), 4, IDLE_CONNECTIONS)
    return reads_of(backend, **env).read(2, method, 'limit=3')


def test_one_replica_is_asked(proxy):
    app = proxy(GOOD, BROKEN)
    answer = read(app)
    assert (answer.shard, answer.status, answer.body) == (2, 200, [LISTING])
    assert answer.object_count == 1
    assert app.asked == []


def test_a_replica_gets_the_request_that_the_app_would_send():
    with answering(lambda _n: GOOD) as server:
        read(Proxy(Ring([port_of(server.url)]), {}))
        (head,) = server.heads
    request, *headers = head.decode().splitlines()
    path = '/d0/7/.shards_shardmw_a/c.65a1b2c3d4e5f.2?limit=3'
    assert request == f'GET {path} HTTP/1.1'
    assert 'X-Backend-Allow-Reserved-Names: true' in headers
    assert 'X-Backend-Record-Type: auto' in headers
    assert 'Referer: GET http://shardmw/v1/a/c' in headers
    assert 'Connection: close' not in headers


@pytest.mark.parametrize(
    'failing', [BROKEN, FULL, SHORT, SILENT, b''],
    ids=['broken', 'full', 'short', 'silent', 'closes'],
)  # fmt: skip
def test_a_replica_that_fails_is_passed_over(proxy, failing):
    app = proxy(failing, GOOD)
    assert read(app).body == [LISTING]
    assert app.asked == []
    node, _other = app.container_ring.nodes
    assert app.error_limiter.stats[app.error_limiter.node_key(node)]


def test_a_replica_that_is_away_is_passed_over(proxy):
    app = proxy(GOOD)
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        away = {**app.container_ring.nodes[0], 'id': 9}
        app.container_ring.nodes.insert(
            0, {**away, 'port': unused.getsockname()[1]}
        )
        assert read(app).body == [LISTING]


def test_replicas_that_all_fail_are_a_503(proxy):
    app = proxy(BROKEN, BROKEN)
    assert read(app).status == 503
    assert app.asked == []


@pytest.mark.parametrize(
    'answer',
    [MISSING, RANGES, BEHIND, CUT],
    ids=['missing', 'ranges', 'behind', 'cut'],
)
def test_anything_but_a_plain_success_is_left_to_the_app(proxy, answer):
    app = proxy(answer, GOOD)
    assert read(app).body == [b'[]']
    assert app.asked == ['/v1/.shards_shardmw_a/c.65a1b2c3d4e5f.2']


def test_a_404_after_failures_is_left_to_the_app(proxy):
    app = proxy(BROKEN, MISSING)
    assert read(app).body == [b'[]']


@pytest.mark.parametrize(
    'answer, status', [(MISSING, 503), (GOOD, 200)], ids=['missing', 'there']
)
def test_a_404_of_a_handoff_is_no_answer(proxy, answer, status):
    """Servers that time out get no second request through the app."""
    app = proxy(SILENT, answer)
    handoff = app.container_ring.nodes.pop()
    app.container_ring.handoffs = [{**handoff, 'handoff_index': 0}]
    assert read(app).status == status
    assert app.asked == []


def test_a_read_of_all_replicas_is_left_to_the_app(proxy):
    app = proxy(GOOD)
    newest = {'HTTP_X_NEWEST': 'true', 'swift_owner': True}
    assert read(app, **newest).body == [b'[]']


def test_only_owners_can_have_all_replicas_asked(proxy):
    assert read(proxy(GOOD), HTTP_X_NEWEST='true').body == [LISTING]


def test_with_concurrent_gets_all_reads_are_left_to_the_app(proxy):
    app = proxy(GOOD, concurrent_gets='true')
    assert read(app).body == [b'[]']


def test_a_logging_filter_before_the_app_is_bypassed(proxy):
    app = ProxyLoggingMiddleware(proxy(GOOD), {})
    app._pipeline_final_app = app.app  # as Swift's loader does
    assert read(app).body == [LISTING]


def test_a_head_has_no_body(proxy):
    app = proxy(response('204 No Content', X_Container_Object_Count=5))
    answer = read(app, 'HEAD')
    assert (answer.object_count, answer.body) == (5, [b''])


class TestConnectionThatStaysOpen:
    OPEN = GOOD.replace(b'Connection: close\r\n', b'')
    EMPTY = response('204 No Content', X_Container_Object_Count=0).replace(
        b'Connection: close\r\n', b''
    )

    @contextmanager
    def server(
        self,
        *answers: bytes | None,
        idle_connections: int = IDLE_CONNECTIONS,
    ):
        """Run a server; yield it, the app and the reads of a container."""
        with answering(lambda number: answers[number]) as server:
            app = Proxy(Ring([port_of(server.url)]), {})
            backend = Backend(app, get_logger({}), 4, idle_connections)
            yield server, app, reads_of(backend)

    @pytest.mark.parametrize(
        ('method', 'answer'), [('GET', OPEN), ('HEAD', EMPTY)]
    )
    def test_is_used_again(self, method, answer):
        with self.server(*[answer] * 3) as (server, _app, reads):
            for _ in range(3):
                assert reads.read(2, method).is_success
        assert server.accepted == 1

    def test_is_not_kept_if_the_server_closes_it(self):
        with self.server(GOOD, GOOD) as (server, _app, reads):
            for _ in range(2):
                assert reads.read(2, 'GET').body == [LISTING]
        assert server.accepted == 2

    def test_is_not_kept_if_the_operator_wants_none(self):
        answers = [self.OPEN] * 2
        with self.server(*answers, idle_connections=0) as (server, _, reads):
            for _ in range(2):
                assert reads.read(2, 'GET').body == [LISTING]
        assert server.accepted == 2
        assert all(b'Connection: close' in head for head in server.heads)

    @pytest.mark.parametrize('first', [OPEN, None], ids=['used', 'new'])
    def test_is_closed_if_the_read_is_ended(self, first):
        """A listing ends reads that it does not need."""
        answers = (first, None) if first else (None,)
        with self.server(*answers) as (server, _app, reads):
            if first:
                reads.read(2, 'GET')
            reading = spawn(reads.read, 2, 'GET')
            while len(server.heads) < len(answers):
                sleep(0.01)
            reading.kill()
            with Timeout(5):
                while not server.closed:
                    sleep(0.01)

    def test_that_was_closed_meanwhile_is_replaced(self):
        with self.server(self.OPEN, b'', self.OPEN) as (server, app, reads):
            for _ in range(2):
                assert reads.read(2, 'GET').body == [LISTING]
        assert server.accepted == 2
        assert not app.error_limiter.stats

    def test_to_a_server_that_stops_answering_is_an_error(self):
        with self.server(self.OPEN, None) as (server, app, reads):
            assert reads.read(2, 'GET').is_success
            assert reads.read(2, 'GET').status == 503
        assert server.accepted == 1
        assert app.error_limiter.stats


SHARDS = 4


#: With this many rows, a shard is read alone.
MANY = 10_000


def found(*bodies: bytes | None) -> bytes:
    """Return a server's response to a batch; None for a read left out."""
    figures = {'X-Container-Object-Count': '1', 'X-PUT-Timestamp': '1.0'}
    body = b''.join(
        encode_found(None if each is None else Found(figures, each))
        for each in bodies
    )
    return response('200 OK', body)


ALL_FOUND = found(*[b'["%d"]' % shard for shard in range(SHARDS)])
UNKNOWN = response('405 Method Not Allowed')
BUSY = response('503 Service Unavailable')


@contextmanager
def batch_servers(*answers: bytes | None, **conf: str):
    """Run servers; yield the app, reads of a container, and the servers."""
    with ExitStack() as running:
        servers = [
            running.enter_context(answering(lambda _n, a=answer: a))
            for answer in answers
        ]
        app = Proxy(Ring([port_of(each.url) for each in servers]), conf)
        # Few reads at once, so that all shards are in one batch.
        backend = Backend(app, get_logger({}), 1, IDLE_CONNECTIONS)
        yield app, reads_of(backend), servers


def bodies(reads: ShardReads, rows: int = 0) -> list[bytes]:
    """Read all shards; return the result for each.

    :param rows: about how many rows to read from each
    """
    return [
        body
        for batch in reads.batches(range(SHARDS), rows)
        for answer in reads.read_batch(batch, 'GET', ['limit=3'] * len(batch))
        for body in answer.body
    ]


class TestBatch:
    def test_is_one_request(self):
        with batch_servers(ALL_FOUND) as (_app, reads, (server,)):
            assert bodies(reads) == [b'["0"]', b'["1"]', b'["2"]', b'["3"]']
        (head,) = server.heads
        assert head.startswith(b'REPORT /d0/7/.shards_shardmw_a/c.')

    def test_is_sent_at_once(self, monkeypatch):
        sent, send = [], BufferedHTTPConnection.send

        def noting(self, data: bytes) -> None:
            sent.append(data)
            send(self, data)

        monkeypatch.setattr(BufferedHTTPConnection, 'send', noting)
        kept = ALL_FOUND.replace(b'Connection: close\r\n', b'')
        with batch_servers(kept) as (_app, reads, (server,)):
            for _ in range(2):
                assert len(bodies(reads)) == SHARDS
        assert server.accepted == 1
        assert [data.count(b'.shards_shardmw_a') for data in sent] == [5, 5]

    def test_of_heads_is_one_request(self):
        with batch_servers(found(*[b''] * SHARDS)) as (_, reads, (server,)):
            answers = reads.heads(range(SHARDS))
        assert [each.shard for each in answers] == list(range(SHARDS))
        assert all(each.object_count == 1 for each in answers)
        assert len(server.heads) == 1

    def test_that_a_server_does_not_know_is_not_sent_again(self):
        with batch_servers(UNKNOWN) as (app, reads, (server,)):
            bodies(reads)
            bodies(reads)
        methods = [head.split()[0] for head in server.heads]
        assert methods == [b'REPORT'] + [b'GET'] * 2 * SHARDS
        assert not app.error_limiter.stats

    @pytest.mark.parametrize(
        'failing',
        [SILENT, b'', ALL_FOUND[:-1], found(b'["0"]'), BUSY],
        ids=['silent', 'closes', 'short', 'of others', 'busy'],
    )
    def test_that_fails_is_read_of_other_servers(self, failing):
        with batch_servers(failing, GOOD) as (_app, reads, (first, other)):
            assert bodies(reads) == [LISTING] * SHARDS
        assert {head.split()[0] for head in first.heads} == {b'REPORT'}
        assert len(other.heads) == SHARDS

    def test_that_fails_is_not_sent_again_soon(self):
        """Error limits can then count the device that fails."""
        with batch_servers(SILENT, GOOD) as (app, reads, (first, _other)):
            bodies(reads)
            bodies(reads)
        methods = [head.split()[0] for head in first.heads]
        assert methods == [b'REPORT'] + [b'GET'] * SHARDS
        node = app.container_ring.nodes[0]
        stats = app.error_limiter.stats[app.error_limiter.node_key(node)]
        assert stats['errors'] == 1 + SHARDS

    def test_reads_alone_what_it_leaves_out(self):
        answer = found(b'["0"]', None, b'["2"]', None)
        with batch_servers(answer) as (_app, reads, (server,)):
            batch = reads.batches(range(SHARDS))[0]
            reads.read = lambda shard, *_args: Answer(shard, '200', {}, [])
            answers = list(reads.read_batch(batch, 'GET', [''] * SHARDS))
        assert [each.body for each in answers] == [
            [b'["0"]'], [], [b'["2"]'], []
        ]  # fmt: skip
        assert len(server.heads) == 1

    def test_reads_alone_at_once(self):
        """The reads run concurrently."""
        under_way = most = 0

        def read(shard, *_args):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            sleep(0.05)
            under_way -= 1
            return Answer(shard, '200 OK', {}, [b'%d' % shard])

        answer = found(*[None] * SHARDS)
        with batch_servers(answer) as (_app, reads, _servers):
            batch = reads.batches(range(SHARDS))[0]
            reads.backend.concurrency = 2
            reads.read = read
            answers = reads.read_batch(batch, 'GET', [''] * SHARDS)
        assert most == 2
        assert [each.body for each in answers] == [
            [b'%d' % place.shard] for place in batch
        ]

    @pytest.mark.parametrize(
        ('status', 'ends_at_failure', 'read'),
        [
            ('503 Service Unavailable', True, [0]),
            ('404 Not Found', True, [0]),
            ('404 Not Found', False, [*range(SHARDS)]),
        ],
    )
    def test_reads_no_more_after_a_failure_if_all_are_needed(
        self, status, ends_at_failure, read
    ):
        shards = []

        def fail(shard, *_args):
            shards.append(shard)
            return Answer(shard, status, {}, [])

        answer = found(*[None] * SHARDS)
        with batch_servers(answer) as (_app, reads, _servers):
            batch = reads.batches(range(SHARDS))[0]
            reads.read = fail
            answers = reads.read_batch(
                batch, 'GET', [''] * SHARDS, ends_at_failure
            )
        assert shards == read
        assert answers[0].status_line == status
        assert not any(each.is_success for each in answers)

    @pytest.mark.parametrize(
        ('servers', 'shards', 'rows', 'sizes'),
        [
            # Few rows: a batch for each server.
            (1, 128, 4, [128]),
            (1, 129, 0, [64, 65]),
            (3, 128, 4, [42, 43, 43]),
            (3, 12, 4, [4, 8]),
            (16, 128, 4, [16] * 8),
            # More rows: several processes of a server read them.
            (1, 128, 15, [32] * 4),
            (1, 4, 300, [1] * 4),
            # The number of rows is unknown.
            (1, 128, None, [16] * 8),
            (1, 4, None, [1] * 4),
            (1, 512, None, [16] * 32),
            (1, 0, None, []),
            (1, 0, 4, []),
        ],
    )
    def test_has_a_size_by_servers_and_rows(
        self, servers, shards, rows, sizes
    ):
        app = Proxy(Ring([*range(1, 1 + servers)]), {})
        backend = Backend(app, get_logger({}), 8, IDLE_CONNECTIONS)
        batches = reads_of(backend).batches(range(shards), rows)
        assert sorted(map(len, batches)) == sizes

    @pytest.mark.parametrize(
        ('conf', 'asked'),
        [
            ({}, 3),
            ({'sorting_method': 'timing'}, 1),
            ({'sorting_method': 'affinity', 'read_affinity': 'r1=1'}, 2),
        ],
        ids=['shuffle', 'timing', 'affinity'],
    )
    def test_may_go_to_the_replicas_that_the_proxy_asks_first(
        self, conf, asked
    ):
        with batch_servers(GOOD, GOOD, GOOD, **conf) as (app, reads, _):
            for node, region in zip(
                app.container_ring.nodes, (1, 1, 2), strict=True
            ):
                node['region'] = region
            places = reads._sources(0)
        ports = [node['port'] for node in app.container_ring.nodes]
        assert [port for _ip, port in places] == ports[:asked]

    def test_does_not_go_to_a_server_that_is_error_limited(self):
        with batch_servers(GOOD, GOOD) as (app, reads, _servers):
            app.error_limit(app.container_ring.nodes[0], 'away')
            (address,) = reads._sources(0)
        assert address[1] == app.container_ring.nodes[1]['port']


class TestBatchOfOne:
    """A read of many rows from each shard."""

    def test_is_asked_for_like_others(self):
        with batch_servers(found(b'["0"]')) as (_app, reads, (server,)):
            assert bodies(reads, MANY) == [b'["0"]'] * SHARDS
        assert {head.split()[0] for head in server.heads} == {b'REPORT'}

    def test_that_a_server_does_not_know_is_not_sent_again(self):
        with batch_servers(UNKNOWN) as (_app, reads, (server,)):
            bodies(reads, MANY)
        methods = [head.split()[0] for head in server.heads]
        assert methods == [b'REPORT'] + [b'GET'] * SHARDS

    def test_is_not_sent_to_a_server_that_others_found_to_be_away(self):
        with batch_servers(GOOD, GOOD) as (app, reads, servers):
            batches = reads.batches(range(SHARDS), MANY)
            for node in app.container_ring.nodes:
                app.error_limit(node, 'away')
            for batch in batches:
                list(reads.read_batch(batch, 'GET', ['']))
        assert not [head for each in servers for head in each.heads]

    def test_that_fails_does_not_keep_others_from_batches(self):
        """Error limits count the device that fails."""
        with batch_servers(SILENT, GOOD) as (app, reads, _servers):
            assert bodies(reads, MANY) == [LISTING] * SHARDS
            node = app.container_ring.nodes[0]
            assert app.error_limiter.stats[app.error_limiter.node_key(node)]
            assert reads.backend.takes_batches((node['ip'], node['port']))

    def test_goes_to_the_replica_that_the_proxy_asks_first(self):
        with batch_servers(GOOD, GOOD) as (app, reads, _servers):
            first, other = app.container_ring.nodes
            assert [port for _ip, port in reads._sources(0, 1)] == [
                first['port']
            ]
            reads.backend.without_batches((first['ip'], first['port']), 60)
            assert not reads._sources(0, 1)
            assert [port for _ip, port in reads._sources(0)] == [other['port']]
