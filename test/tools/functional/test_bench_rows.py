# SPDX-License-Identifier: Apache-2.0
"""Rows that the benchmark writes directly into container databases."""

import signal
import time
from functools import partial, reduce

import pytest
from shardmw_bench import preload as module
from shardmw_bench.databases import connected, content, databases, parts
from shardmw_bench.errors import BenchError, Interrupted
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.names import FlatNames, TreeNames
from shardmw_bench.preload import preload, stagger
from shardmw_bench.targets.account import Account
from shardmw_bench.targets.native import (
    even_bounds,
    find_ranges,
    report_usage,
    root_database,
    run_sharder,
    shard_natively,
)
from swift.common.db import chexor

from shardmw.core.placement import hidden_account, shard_of
from test.functional.conftest import SHARDS, USER, make_plain, make_sharded

SIZE = 3
BODY = b'x' * SIZE
NAMES = ('a.jpg', 'd/1', 'd/2', 'e', 'f')

KINDS = {
    'plain': (PLAIN, make_plain),
    'sharded': (sharded(SHARDS), make_sharded),
}

STATISTICS = (
    'x-container-object-count',
    'x-container-bytes-used',
    'x-container-shard-count',
)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param][0]


@pytest.fixture(params=KINDS)
def uploaded_and_preloaded(request, client, cluster) -> tuple[str, str]:
    """Two containers of one kind, one with objects and one with rows only."""
    kind, make = KINDS[request.param]
    uploaded, preloaded = make(client), make(client)
    for name in NAMES:
        assert client.put(uploaded, name, BODY).status == 201
    preload(cluster, client.account, preloaded, kind, NAMES, size=SIZE)
    return uploaded, preloaded


def make(client, kind) -> str:
    return make_sharded(client) if kind.shards else make_plain(client)


def rows_of(database) -> list[tuple]:
    """Return the name and the timestamp of every row."""
    with connected(database) as connection:
        return connection.execute(
            'SELECT name, created_at FROM object ORDER BY name'
        ).fetchall()


def without_times(rows) -> list[dict]:
    return [{**row, 'last_modified': None} for row in rows]


class TestPreloaded:
    def test_containers_have_the_statistics_of_uploads(
        self, client, uploaded_and_preloaded
    ):
        one, other = (client.head(each) for each in uploaded_and_preloaded)
        assert one.status == other.status
        for name in STATISTICS:
            assert other.headers.get(name) == one.headers.get(name)

    @pytest.mark.parametrize(
        'query', ['format=json', 'format=json&delimiter=/', 'marker=d/1', '']
    )
    def test_containers_are_listed_as_after_uploads(
        self, client, uploaded_and_preloaded, query
    ):
        one, other = (
            client.get(each, query=query) for each in uploaded_and_preloaded
        )
        assert one.status == other.status == 200
        if 'json' in query:
            assert without_times(other.json()) == without_times(one.json())
        else:
            assert other.body == one.body

    def test_containers_take_more_rows_and_uploads(
        self, client, cluster, kind
    ):
        container = make(client, kind)
        account = client.account
        preload(cluster, account, container, kind, FlatNames(20))
        preload(cluster, account, container, kind, FlatNames(50), first=20)
        client.put(container, 'uploaded', BODY)
        names = client.get(container).text.split()
        assert names == [*FlatNames(50), 'uploaded']
        head = client.head(container)
        assert head.headers['x-container-object-count'] == '51'
        assert head.headers['x-container-bytes-used'] == str(50 + SIZE)
        client.delete(container, 'uploaded')
        head = client.head(container)
        assert head.headers['x-container-object-count'] == '50'

    def test_databases_have_the_checksums_of_their_rows(
        self, client, cluster, kind
    ):
        container = make(client, kind)
        preload(cluster, client.account, container, kind, FlatNames(100))
        for part in parts(cluster, client.account, container, kind):
            for database in databases(cluster, *part[:2]):
                rows = rows_of(database)
                expected = reduce(lambda s, row: chexor(s, *row), rows, '0')
                assert content(database).rows == len(rows)
                assert int(content(database).checksum, 16) == int(expected, 16)

    def test_shards_hold_the_rows_that_belong_there(self, client, cluster):
        container = make_sharded(client)
        kind = sharded(SHARDS)
        preload(cluster, client.account, container, kind, FlatNames(200))
        found = parts(cluster, client.account, container, kind)
        for shard, part in enumerate(found[:-1]):
            assert part.account == hidden_account(client.account)
            (database,) = databases(cluster, *part[:2])
            assert [name for name, _ in rows_of(database)] == [
                name
                for name in FlatNames(200)
                if shard_of(name, SHARDS) == shard
            ]
        (root,) = databases(cluster, *found[-1][:2])
        assert rows_of(root) == []

    def test_rows_have_the_policy_of_their_container(self, client, cluster):
        container = make_plain(client, X_Storage_Policy='Policy-1')
        preload(cluster, client.account, container, PLAIN, NAMES)
        (database,) = databases(cluster, client.account, container)
        with connected(database) as connection:
            policies = connection.execute(
                'SELECT DISTINCT storage_policy_index FROM object'
            ).fetchall()
            counts = connection.execute('SELECT * FROM policy_stat').fetchall()
        assert policies == [(1,)]
        assert counts == [(1, len(NAMES), len(NAMES))]

    def test_containers_must_exist(self, client, cluster):
        with pytest.raises(BenchError, match='lacks a database'):
            preload(cluster, client.account, 'nowhere', PLAIN, NAMES)

    def test_containers_pass_swifts_auditor(
        self, client, cluster, uploaded_and_preloaded
    ):
        _, preloaded = uploaded_and_preloaded
        log = cluster.log_path('container-auditor')
        start = log.stat().st_size if log.exists() else 0
        cluster.daemon('container-auditor')
        assert 'ERROR' not in log.read_text()[start:]
        assert client.head(preloaded).status == 204


@pytest.fixture(scope='module')
def split(login, cluster) -> str:
    """A container of 3 ranges that got its rows afterwards."""
    client = login(USER)
    names, account = TreeNames(3, 20), client.account
    container = make_plain(client)
    bounds = even_bounds(names, 3)
    shard_natively(cluster, account, container, bounds)
    preload(cluster, account, container, native(3), names)
    report_usage(cluster)
    client.post(container)
    return container


class TestNative:
    def test_lists_and_counts_all_in_ranges_of_equal_size(
        self, client, cluster, split
    ):
        assert client.get(split).text.split() == list(TreeNames(3, 20))
        head = client.head(split)
        assert head.headers['x-container-object-count'] == '60'
        found = parts(cluster, client.account, split, native(3))
        counts = [
            content(each).rows
            for part in found
            for each in databases(cluster, part.account, part.container)
        ]
        assert counts == [20, 20, 20]

    def test_swifts_tool_finds_ranges_that_the_sharder_splits_off(
        self, client, cluster
    ):
        names, account = FlatNames(11), client.account
        container = make_plain(client)
        preload(cluster, account, container, PLAIN, names)
        root = root_database(cluster, account, container)
        assert find_ranges(root, 5) == 3
        run_sharder(cluster, account, container, 3)
        found = parts(cluster, account, container, native(3))
        counts = [
            content(each).rows
            for part in found
            for each in databases(cluster, part.account, part.container)
        ]
        assert counts == [5, 5, 1]
        assert client.get(container).text.split() == list(names)

    def test_no_ranges_are_found_in_a_database_without_rows(
        self, client, cluster
    ):
        root = root_database(cluster, client.account, make_plain(client))
        with pytest.raises(BenchError, match='swift-manage-shard-ranges'):
            find_ranges(root, 5)

    def test_an_upload_falls_into_its_range(self, client, cluster, split):
        client.put(split, 'zz', BODY)
        last = parts(cluster, client.account, split, native(3))[-1]
        assert 'zz' in client.get(split).text.split()
        (database,) = databases(cluster, last.account, last.container)
        waiting = database.with_name(f'{database.name}.pending')
        assert waiting.exists() or 'zz' in dict(rows_of(database))

    def test_a_plain_container_has_no_ranges(self, client, cluster):
        container = make_plain(client)
        with pytest.raises(BenchError, match='is not sharded natively'):
            parts(cluster, client.account, container, native(3))


class TestParts:
    def test_a_plain_container_has_no_shards(self, client, cluster):
        container = make_plain(client)
        with pytest.raises(BenchError, match=f'{container} is not sharded'):
            parts(cluster, client.account, container, sharded(4))

    def test_another_number_of_shards_is_an_error(self, client, cluster):
        container = make_sharded(client, 2)
        with pytest.raises(BenchError, match='has 2 shards and not 4'):
            parts(cluster, client.account, container, sharded(4))


def test_staggering_fills_pending_files_with_rows_that_no_client_sees(
    client, cluster
):
    container = make_sharded(client)
    client.put(container, 'o', BODY)
    kind = sharded(SHARDS)
    stagger(cluster, client.account, container, kind, 0.5)
    sizes = []
    for part in parts(cluster, client.account, container, kind)[:-1]:
        (database,) = databases(cluster, *part[:2])
        file = database.with_name(f'{database.name}.pending')
        sizes.append(file.stat().st_size if file.exists() else 0)
    assert sizes[0] > 10_000
    assert sizes == sorted(set(sizes))
    assert client.head(container).headers['x-container-object-count'] == '1'
    assert client.get(container).text.split() == ['o']


def test_an_unreadable_database_is_an_error(tmp_path):
    path = tmp_path / 'no.db'
    with pytest.raises(BenchError, match='cannot be used: unable to open'):
        content(path)
    path.write_text('no database, but long enough to be looked at' * 20)
    with pytest.raises(BenchError, match='cannot be used'):
        content(path)


def test_the_benchmarks_own_account_is_that_of_the_default_user(cluster):
    assert Account.of_cluster(cluster).name == 'AUTH_test'


@pytest.fixture
def soon_interrupted():
    """Interrupt the command after two seconds."""

    def interrupt(number, frame):
        raise Interrupted(number)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interruption_does_not_wait_for_rows(soon_interrupted):
    began = time.monotonic()
    with pytest.raises(Interrupted):
        module._in_parallel([partial(time.sleep, 300)] * 2)
    assert time.monotonic() - began < 60
