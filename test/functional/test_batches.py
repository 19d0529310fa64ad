# SPDX-License-Identifier: Apache-2.0
"""Reads of many shards in few requests, by the filter shardmw-container."""

import contextlib
import http.client
import itertools
import json
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from shardmw_saio import Cluster, ClusterOptions
from shardmw_saio.logs import lines, size

from shardmw.core.batch import MOST_READS
from shardmw.core.placement import hidden_account
from test.functional.alike import make_twins, masked
from test.functional.backing import Backing, databases
from test.functional.client import Answer, Client
from test.functional.conftest import USER, Pair, make_sharded
from test.functional.test_listings import NAMES as ODD_NAMES
from test.functional.unfiltered import running_unfiltered_proxy

SHARDS = 32
VERSIONED_SHARDS = 8
REPLICAS = 3

NAMES = (
    *ODD_NAMES, '"', "'", '\\', 'a"b\'c', '\r\n', 'two\nlines', '\u2028',
    'x\u2028y/z', '\u2029/\u2028', '}, {"name": "', 'null',
    *(f'logs--{year}--{day:02}' for year in (2025, 2026) for day in range(12)),
    *(f'day/{day:02}/{hour}' for day in range(4) for hour in range(4)),
)  # fmt: skip

BOUNDS = [
    {},
    {'marker': 'day/', 'end_marker': 'logs--2026--03'},
    {'marker': 'two\nlines', 'end_marker': '\u2028'},
]
LEVELS = [
    {},
    {'delimiter': '/'},
    {'delimiter': '--'},
    {'delimiter': '\u2028'},
    {'prefix': 'day/'},
    {'prefix': 'day/', 'delimiter': '/'},
    {'prefix': 'logs--', 'delimiter': '--'},
    {'prefix': 'a', 'delimiter': '/b'},
    {'prefix': '\u2603', 'delimiter': '/'},
    {'path': 'day'},
]
ENDS = [{'limit': '7'}, {'limit': '50', 'reverse': 'on'}]
QUERIES = [
    urlencode({'format': 'json', **bounds, **levels, **end})
    for bounds, levels, end in itertools.product(BOUNDS, LEVELS, ENDS)
] + ['', 'path=', 'path=&limit=9', 'format=xml&delimiter=/', 'limit=1']

VERSIONS_QUERIES = [
    urlencode({'format': 'json', 'versions': '', **params})
    for params in (
        {},
        {'limit': '3'},
        {'limit': '9', 'marker': 'day/01/0'},
        {'limit': '9', 'prefix': 'day/'},
        {'prefix': 'day/', 'delimiter': '/'},
        {'limit': '30', 'reverse': 'true'},
    )
]

#: Listings that need rows of every shard.
QUERIES_OF_ALL = [
    'format=json&limit=100',
    'format=json&delimiter=/',
    'limit=9&reverse=on',
]

SETTINGS = {
    # Slow servers time out soon, and none is avoided after errors.
    'proxy-server.node_timeout': '5',
    'proxy-server.recoverable_node_timeout': '5',
    'proxy-server.error_suppression_limit': '100000',
    # Every HEAD reads the shards.
    'shardmw.head_cache_seconds': '0',
}
WITHOUT_FILTER = {'shardmw-container.use': 'egg:swift#healthcheck'}
WITH_FILTER = dict.fromkeys(WITHOUT_FILTER)


def login(cluster: Cluster) -> Client:
    return Client.login(cluster.auth_url, USER, cluster.users[USER])


def fill(client: Client, container: str) -> None:
    """Store an object under each name."""
    for number, name in enumerate(NAMES):
        body = b'x' * number
        assert client.put(container, name, body).status == 201


def shard_databases(
    cluster: Cluster, client: Client, backing: Backing, container: str
) -> list[list[Path]]:
    """Return the databases of each shard, by node."""
    account = hidden_account(client.account)
    return [
        sorted(databases(cluster, account, shard))
        for shard in backing.shards(container)
    ]


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    path = tmp_path_factory.mktemp('batches')
    options = ClusterOptions(replicas=REPLICAS, settings=SETTINGS)
    with Cluster(path, options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def unfiltered(cluster) -> Iterator[Client]:
    """The owner at a proxy that has no shardmw."""
    with running_unfiltered_proxy(cluster) as url:
        yield login(cluster).on(url)


@pytest.fixture(scope='module')
def backing(unfiltered) -> Backing:
    return Backing(unfiltered)


@pytest.fixture
def client(cluster) -> Client:
    return login(cluster)


@pytest.fixture(scope='module')
def twins(cluster) -> Pair:
    """A plain and a sharded container that all replicas list alike."""
    client = login(cluster)
    twins = make_twins(client, SHARDS)
    for container in twins:
        fill(client, container)
    cluster.daemon('object-updater')
    cluster.daemon('container-replicator')
    return twins


@pytest.fixture(scope='module')
def versioned(cluster) -> str:
    """A container with two versions of some objects."""
    client = login(cluster)
    container = make_sharded(
        client, VERSIONED_SHARDS, X_Versions_Enabled='true'
    )
    for name in [*NAMES[-16:], '\u2028', 'two\nlines'] * 2:
        assert client.put(container, name, b'1').status == 201
    cluster.daemon('object-updater')
    cluster.daemon('container-replicator')
    return container


#: Texts in the logs of container servers, and the requests' methods.
LOGGED = {
    'shardmw-container: ': 'REPORT',
    'REPORT /sdb': 'REPORT',
    'GET /sdb': 'GET',
    'HEAD /sdb': 'HEAD',
}


class Asked:
    """Counts requests in the logs of container servers."""

    def __init__(self, cluster: Cluster) -> None:
        self._logs = [
            cluster.log_path(f'container-{node + 1}')
            for node in range(REPLICAS)
        ]
        self._starts = [size(log) for log in self._logs]

    def lines(self) -> list[str]:
        """Return the lines that were logged since the object was made."""
        return [
            line
            for log, start in zip(self._logs, self._starts, strict=True)
            for line in lines(log, start)
        ]

    def by_method(self, answer: Answer) -> Counter[str]:
        """Return how many requests were needed for an answer, by method."""
        transaction = answer.headers['x-trans-id']
        return Counter(
            method
            for line in self.lines()
            if transaction in line
            for text, method in LOGGED.items()
            if text in line
        )


def restart_proxy(cluster: Cluster) -> None:
    """Restart the proxy, so that it forgets which servers have no filter."""
    cluster.stop('proxy-1')
    cluster.start('proxy-1')


def answers_of(client: Client, twins: Pair, versioned: str) -> dict:
    """Return the status and the body of the answer to each query."""
    requests = [(twins.sharded, query) for query in QUERIES]
    requests += [(versioned, query) for query in VERSIONS_QUERIES]
    return {
        query: client.get(container, query=query)[::2]
        for container, query in requests
    }


@pytest.fixture(scope='module')
def alone(cluster, twins, versioned) -> dict:
    """The answers when each request to a container server reads one shard."""
    client = login(cluster)
    cluster.reconfigure(WITHOUT_FILTER)
    restart_proxy(cluster)
    answers = answers_of(client, twins, versioned)
    cluster.reconfigure(WITH_FILTER)
    restart_proxy(cluster)
    return answers


class TestAnswers:
    @pytest.mark.parametrize('query', QUERIES)
    def test_to_listings_are_those_of_single_reads(
        self, client, twins, alone, query
    ):
        plain, sharded = (
            client.get(container, query=query) for container in twins
        )
        assert sharded[::2] == alone[query]
        assert masked(sharded, twins.sharded) == masked(plain, twins.plain)

    @pytest.mark.parametrize('query', VERSIONS_QUERIES)
    def test_to_listings_of_versions_are_those_of_single_reads(
        self, client, versioned, alone, query
    ):
        assert client.get(versioned, query=query)[::2] == alone[query]

    def test_to_heads_are_those_of_a_plain_container(self, client, twins):
        plain, sharded = (
            masked(client.head(container), container) for container in twins
        )
        assert sharded == plain
        assert sharded.headers['x-container-object-count'] == str(len(NAMES))


class TestRequests:
    @pytest.mark.parametrize('query', QUERIES_OF_ALL)
    def test_of_a_listing_are_few(self, cluster, client, twins, query):
        client.get(twins.sharded, query=query)
        asked = Asked(cluster)
        counts = asked.by_method(client.get(twins.sharded, query=query))
        assert counts['REPORT'] >= REPLICAS
        assert counts.total() < SHARDS / 2

    def test_of_a_head_are_few(self, cluster, client, twins):
        client.head(twins.sharded)
        asked = Asked(cluster)
        answer = client.head(twins.sharded)
        assert asked.by_method(answer) == {'HEAD': 1, 'REPORT': REPLICAS}

    def test_of_a_listing_of_versions_are_few(
        self, cluster, client, versioned
    ):
        """Use names and markers that begin with a NUL."""
        client.get(versioned, query=VERSIONS_QUERIES[2])
        asked = Asked(cluster)
        counts = asked.by_method(
            client.get(versioned, query=VERSIONS_QUERIES[2])
        )
        assert counts['REPORT'] >= 2  # of the container and its versions
        assert counts.total() < 2 * VERSIONED_SHARDS

    def test_that_a_server_does_not_know_are_not_sent_again(
        self, cluster, client, twins, without_filters
    ):
        asked = Asked(cluster)
        first = client.listing(twins.sharded, limit=100)
        second = client.listing(twins.sharded, limit=100)
        assert 0 < asked.by_method(first)['REPORT'] <= REPLICAS
        assert asked.by_method(second)['REPORT'] == 0


@pytest.fixture
def without_filters(cluster):
    cluster.reconfigure(WITHOUT_FILTER)
    restart_proxy(cluster)
    yield
    cluster.reconfigure(WITH_FILTER)
    restart_proxy(cluster)


class Damage:
    """Faults of the first of three nodes."""

    def __init__(self, cluster: Cluster, shards: list[list[Path]]) -> None:
        self.cluster = cluster
        self.shards = shards
        self.mendings = contextlib.ExitStack()

    def killed(self) -> None:
        self.cluster.stop('container-1')
        self.mendings.callback(self.cluster.start, 'container-1')

    def paused(self) -> None:
        self.cluster.pause('container-1')
        self.mendings.callback(self.cluster.resume, 'container-1')

    def without_device(self) -> None:
        self.move_away(self.cluster.devices_path / '1' / 'sdb1')

    def without_some_databases(self) -> None:
        for replicas in self.shards[::5]:
            self.move_away(replicas[0].parent)

    def with_broken_databases(self) -> None:
        for replicas in self.shards[::5]:
            folder = replicas[0].parent
            kept = folder.with_name('kept')
            shutil.copytree(folder, kept)
            self.mendings.callback(kept.rename, folder)
            self.mendings.callback(shutil.rmtree, folder, ignore_errors=True)
            replicas[0].write_bytes(b'no database' * 1000)

    def without_filter(self) -> None:
        conf = self.cluster.swift_dir / 'container-1.conf'
        text = conf.read_text()
        self.mendings.callback(self.restart, 'container-1')
        self.mendings.callback(conf.write_text, text)
        other = 'egg:swift#healthcheck'
        conf.write_text(text.replace('egg:shardmw#shardmw_container', other))
        self.restart('container-1')

    def with_a_writer(self) -> None:
        for replicas in self.shards[::16]:
            self.lock(replicas[0])

    def restart(self, server: str) -> None:
        self.cluster.stop(server)
        self.cluster.start(server)

    def move_away(self, folder: Path) -> None:
        away = folder.rename(folder.with_name(f'{folder.name}.away'))
        self.mendings.callback(away.rename, folder)

    def lock(self, database: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            database, isolation_level=None, check_same_thread=False
        )
        connection.execute('BEGIN EXCLUSIVE')
        self.mendings.callback(connection.close)
        return connection


DAMAGES: list[Callable[[Damage], None]] = [
    Damage.killed,
    Damage.paused,
    Damage.without_device,
    Damage.without_some_databases,
    Damage.with_broken_databases,
    Damage.without_filter,
    Damage.with_a_writer,
]


@pytest.fixture(scope='module')
def shards(cluster, backing, twins) -> list[list[Path]]:
    """The databases of each shard, in the order of the nodes."""
    found = shard_databases(cluster, login(cluster), backing, twins.sharded)
    assert [len(replicas) for replicas in found] == [REPLICAS] * SHARDS
    return found


@pytest.fixture
def damage(cluster, shards):
    """Faults that last until the end of the test."""
    damage = Damage(cluster, shards)
    restart_proxy(cluster)
    with damage.mendings:
        yield damage
    restart_proxy(cluster)


class TestDamages:
    @pytest.mark.parametrize('do', DAMAGES, ids=lambda do: do.__name__)
    def test_of_one_node_change_no_answer(self, client, twins, damage, do):
        do(damage)
        for query in QUERIES_OF_ALL:
            plain, sharded = (
                masked(client.get(container, query=query), container)
                for container in twins
            )
            assert sharded == plain
        counts = client.head(twins.sharded).headers
        assert counts['x-container-object-count'] == str(len(NAMES))

    @pytest.mark.parametrize('query', QUERIES_OF_ALL)
    def test_of_all_replicas_of_a_shard_cause_a_503(
        self, client, twins, damage, shards, query
    ):
        for database in shards[11]:
            damage.move_away(database.parent)
        answer = client.get(twins.sharded, query=query)
        assert answer.status == 503
        assert client.head(twins.sharded).status == 503

    def test_a_writer_is_waited_for(self, client, twins, damage, shards):
        expected = client.listing(twins.sharded)
        for database in shards[11]:
            connection = damage.lock(database)
            timer = threading.Timer(0.5, connection.execute, ['ROLLBACK'])
            timer.start()
            damage.mendings.callback(timer.join)
        assert client.listing(twins.sharded).body == expected.body


def test_pending_rows_are_merged_soon_after_a_listing(
    cluster, client, backing
):
    container = make_sharded(client, 4)
    names = [f'{number:02}' for number in range(16)]
    for name in names:
        assert client.put(container, name, b'').status == 201
    shards = shard_databases(cluster, client, backing, container)
    assert merged_names(shards) == set()
    assert client.listing(container, limit=100).names() == names
    assert merged_names(shards) == set()
    until = time.monotonic() + 10
    while merged_names(shards) != set(names):
        assert time.monotonic() < until
        time.sleep(0.1)


def merged_names(shards: list[list[Path]]) -> set[str]:
    """Return the names in databases that have no pending rows."""
    found = set()
    for database in itertools.chain.from_iterable(shards):
        waiting = database.with_name(f'{database.name}.pending')
        if waiting.exists() and waiting.read_bytes():
            continue
        with contextlib.closing(sqlite3.connect(database)) as connection:
            names = connection.execute('SELECT name FROM object')
            found |= {name for (name,) in names}
    return found


def report(
    cluster: Cluster, body: bytes, **headers: str
) -> tuple[int, list[bytes]]:
    """Send a batch to a container server; return its status and lines."""
    server = cluster.servers['container-1']
    connection = http.client.HTTPConnection('127.0.0.1', server.port)
    path = '/sdb1/1/a/c'
    connection.request('REPORT', path, body=body, headers=headers)
    with contextlib.closing(connection):
        response = connection.getresponse()
        return response.status, response.read().split(b'\n')


READ = ['sdb1', 1, 'a', 'c', 'GET', 'limit=1']


def changed(**changes) -> list:
    """Return a copy of ``READ`` with other values."""
    names = ('device', 'part', 'account', 'container', 'method', 'query')
    return list({**dict(zip(names, READ, strict=True)), **changes}.values())


INVALID = {
    'empty': b'',
    'no JSON': b'[["sdb1"',
    'no UTF-8': b'["\xff"]',
    'no list': b'5',
    'no reads': b'[]',
    'short': json.dumps([READ[:3]]).encode(),
    'long': json.dumps([[*READ, 1]]).encode(),
    'null': b'[null]',
    'text': b'["abcdef"]',
    'device': json.dumps([changed(device=1)]).encode(),
    'part': json.dumps([changed(part='1')]).encode(),
    'negative part': json.dumps([changed(part=-1)]).encode(),
    'account': json.dumps([changed(account=None)]).encode(),
    'container': json.dumps([changed(container=['c'])]).encode(),
    'method': json.dumps([changed(method='DELETE')]).encode(),
    'query': json.dumps([changed(query={})]).encode(),
    'lone surrogate': rb'[["sdb1",1,"\ud800","c","GET",""]]',
    'deep': b'[' * 100_000,
    'too many': json.dumps([READ] * (MOST_READS + 1)).encode(),
    'huge': b'[' + b' ' * 10_000_000 + b']',
}
UNANSWERED = {
    'missing': READ,
    'unknown device': changed(device='sdb9'),
    'no device': changed(device=''),
    'device above': changed(device='..'),
    'devices above': changed(device='../1/sdb1'),
    'device with NUL': changed(device='sdb1\0'),
    'container above': changed(container='../../c'),
    'account of no name': changed(account='', container=''),
    'NUL': changed(account='\0', container='\0'),
}


class TestOddBatches:
    @pytest.fixture(autouse=True)
    def no_traceback(self, cluster):
        asked = Asked(cluster)
        yield
        assert not [each for each in asked.lines() if 'Traceback' in each]

    @pytest.mark.parametrize('body', INVALID.values(), ids=INVALID)
    def test_are_refused(self, cluster, body):
        assert report(cluster, body)[0] == 400

    @pytest.mark.parametrize('read', UNANSWERED.values(), ids=UNANSWERED)
    def test_are_answered_with_null(self, cluster, read):
        body = json.dumps([read, read]).encode()
        nothing = [b'null', b'', b'null', b'', b'']
        assert report(cluster, body) == (200, nothing)

    @pytest.mark.parametrize(
        'query',
        [
            'limit=10001', 'marker=%ff', 'prefix=%F4%8F%BF%BF',
            'prefix=%ED%9F%BF&delimiter=/', 'limit=%C2%B2',
            'marker=\u2603',
        ],
    )  # fmt: skip
    def test_have_null_for_a_query_that_swift_refuses(
        self, cluster, client, shards, twins, backing, query
    ):
        """Check also that the other reads of the batch are answered."""
        account = hidden_account(client.account)
        database = shards[0][0]
        part = int(database.parents[2].name)
        container = backing.shards(twins.sharded)[0]
        place = ['sdb1', part, account, container]
        reads = [[*place, 'GET', query], [*place, 'HEAD', '']]
        status, answer = report(cluster, json.dumps(reads).encode())
        assert status == 200
        assert answer[:2] == [b'null', b'']
        assert b'X-Container-Object-Count' in answer[2]

    def test_without_a_length_are_refused(self, cluster):
        server = cluster.servers['container-1']
        connection = http.client.HTTPConnection('127.0.0.1', server.port)
        with contextlib.closing(connection):
            connection.putrequest('REPORT', '/sdb1/1/a/c')
            connection.endheaders()
            assert connection.getresponse().status == 400

    def test_in_chunks_are_refused_too(self, cluster):
        assert report(cluster, iter([b'[', b']']))[0] == 400

    @pytest.mark.parametrize(
        ('container', 'name'), [(None, None), ('c', None), ('c', 'o')]
    )
    def test_of_clients_get_the_answer_of_swift_itself(
        self, client, unfiltered, twins, container, name
    ):
        container = container and twins.sharded
        body = json.dumps([READ]).encode()
        ours, swifts = (
            each.request('REPORT', container, name, body=body)
            for each in (client, unfiltered)
        )
        assert (ours.status, ours.body) == (swifts.status, swifts.body)
        assert ours.status == 405
