# SPDX-License-Identifier: Apache-2.0
"""Sequences in which a row arrives late, or in an outdated place.

Every acknowledged upload can be read. It is listed once Swift's updaters and
``shardmw-resharder`` have run; until then it causes no 503. No name stays
listed that can be neither read nor deleted.
"""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardmw_saio import Cluster, ClusterOptions
from swift.proxy.controllers.base import get_cache_key

from shardmw.core.placement import parse_backing
from shardmw.proxy.container_context import LOCK_SECONDS
from shardmw.proxy.layouts import DOUBT_SECONDS
from test.functional.backing import Backing, memcached_of
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    USER,
    unique,
)
from test.functional.extra_proxy import running_detached_proxy
from test.functional.operating import (
    UPDATERS,
    Resharder,
    settle,
    update,
)
from test.functional.unfiltered import running_unfiltered_proxy

REPLICATORS = ('container-replicator', 'account-replicator')

SETTINGS = {
    'shardmw.stats_cache_seconds': '0',
    'container-server.conn_timeout': '10',
    'object-server.conn_timeout': '10',
}
COUNTS = [0, 1, 2, 8]
UPLOADS = 6


def login(cluster: Cluster) -> Client:
    return Client.login(cluster.auth_url, USER, cluster.users[USER])


def with_count(shards: int) -> dict[str, str]:
    return {SHARD_COUNT_HEADER: str(shards)} if shards else {}


def put(client: Client, container: str, shards: int) -> int:
    """Put a container, plain if `shards` is 0; return the status."""
    return client.put(container, headers=with_count(shards)).status


def make(client: Client, shards: int) -> str:
    container = unique('late')
    assert put(client, container, shards) == 201
    return container


def slow_body(seconds: float) -> Iterator[bytes]:
    yield b'slow'
    time.sleep(seconds)
    yield b'ly'


def upload(client: Client, container: str, names: list[str]) -> list[str]:
    """Upload objects; return the names that were acknowledged."""
    return [
        name
        for name in names
        if client.put(container, name, name.encode()).status == 201
    ]


def assert_kept(client: Client, container: str, names: list[str]) -> None:
    """Check that objects can be read, are listed, and can be deleted."""
    for name in names:
        assert client.get(container, name).status == 200, name
    assert set(names) <= set(client.listing(container).names())
    for name in client.listing(container).names():
        assert client.delete(container, name).status in (204, 404), name
    # A container that a late row brought back goes with its last object.
    assert client.get(container).status in (204, 404)
    assert client.delete(container).status in (204, 404)
    assert client.get(container).status == 404


NAMES = [f'o{i}' for i in range(UPLOADS)]


@pytest.fixture(scope='module')
def one(tmp_path_factory):
    """A cluster of one replica, with a sharded container in the account."""
    options = ClusterOptions(proxies=2, settings=SETTINGS, policies=2)
    with Cluster(tmp_path_factory.mktemp('one'), options) as cluster:
        # A proxy with a memcached of its own would not hear of the account's
        # first sharded container.
        make(login(cluster), 1)
        yield cluster


@pytest.fixture(scope='module')
def detached_url(one):
    """The URL of a proxy of that cluster with a memcached of its own."""
    with running_detached_proxy(one) as url:
        yield url


@pytest.fixture
def client(one) -> Client:
    return login(one)


@pytest.fixture
def other(client, one) -> Client:
    """The same user at the second proxy."""
    return client.on(one.proxy_urls[1])


@pytest.fixture
def detached(one, detached_url) -> Client:
    """The same user at a proxy that hears of no invalidation."""
    key = one.users[USER]
    return Client.login(f'{detached_url}/auth/v1.0', USER, key)


@pytest.fixture(scope='module')
def unfiltered_url(one):
    with running_unfiltered_proxy(one) as url:
        yield url


@pytest.fixture
def unfiltered(client, unfiltered_url) -> Client:
    return client.on(unfiltered_url)


@pytest.fixture
def backing(unfiltered) -> Backing:
    return Backing(unfiltered)


@contextlib.contextmanager
def without(cluster: Cluster, *names: str) -> Iterator[None]:
    """Stop servers until the end of the block."""
    for name in names:
        cluster.stop(name)
    try:
        yield
    finally:
        for name in names:
            cluster.start(name)


class TestDeleteDuringUploads:
    @pytest.mark.parametrize('shards', COUNTS)
    def test_loses_nothing(self, one, client, other, shards):
        container = make(client, shards)
        uploaders = [client.on(one.proxy_urls[i % 2]) for i in range(UPLOADS)]
        with ThreadPoolExecutor(UPLOADS + 1) as pool:
            statuses = [
                pool.submit(
                    uploader.put,
                    container,
                    name,
                    slow_body(0.04 + 0.08 * i / UPLOADS),
                )
                for i, (uploader, name) in enumerate(
                    zip(uploaders, NAMES, strict=True)
                )
            ]
            time.sleep(0.02)
            deleted = pool.submit(other.delete, container).result()
        assert deleted.status in (204, 409)
        stored = [
            name
            for name, status in zip(NAMES, statuses, strict=True)
            if status.result().status == 201
        ]
        settle(one)
        for name in stored:
            assert client.get(container, name).status == 200, name
        if stored:
            assert_kept(client, container, stored)


class TestPendingUpdate:
    """The container server is down during uploads."""

    @pytest.fixture(params=[0, 3])
    def waiting(self, request, one, client) -> str:
        """A deleted container that has pending updates."""
        container = make(client, request.param)
        assert client.get(container).status == 204
        upload(client, container, ['early'])
        with without(one, 'container-1'):
            assert upload(client, container, NAMES) == NAMES
        assert client.delete(container, 'early').status == 204
        assert client.delete(container).status == 204
        return container

    def test_brings_the_deleted_container_back(self, one, client, waiting):
        settle(one)
        assert_kept(client, waiting, NAMES)

    @pytest.mark.parametrize('count', [0, 2, 5])
    def test_reaches_a_container_that_is_put_afterwards(
        self, one, client, waiting, count
    ):
        update(one)
        assert put(client, waiting, count) in (201, 202)
        settle(one)
        assert_kept(client, waiting, NAMES)

    @pytest.mark.parametrize('count', [0, 2, 5])
    def test_reaches_a_container_that_was_recreated(
        self, one, client, waiting, count
    ):
        assert put(client, waiting, count) == 201
        settle(one)
        assert_kept(client, waiting, NAMES)


class TestLateRowOfADeletedObject:
    @pytest.fixture
    def ghosts(self, one, client) -> Callable:
        """Return a function that deletes a container twice.

        Its objects were uploaded in its first life, and their rows are late.
        They were deleted in its second life, in whose layout the tombstones
        were.
        """

        def ghosts(before: int, after: int) -> str:
            container = make(client, before)
            assert upload(client, container, ['early']) == ['early']
            with without(one, 'container-1'):
                assert upload(client, container, NAMES) == NAMES
            assert client.delete(container, 'early').status == 204
            assert client.delete(container).status == 204
            assert put(client, container, after) == 201
            for name in NAMES:
                assert client.delete(container, name).status == 204
            assert client.delete(container).status == 204
            settle(one)
            return container

        return ghosts

    @pytest.mark.parametrize(('before', 'after'), [(3, 2), (3, 0), (0, 0)])
    def test_does_not_bring_the_container_back(
        self, client, ghosts, before, after
    ):
        container = ghosts(before, after)
        assert client.get(container).status == 404
        assert put(client, container, 5) == 201
        assert client.listing(container).names() == []

    def test_of_a_plain_container_goes_with_a_repeated_delete(
        self, client, ghosts
    ):
        container = ghosts(0, 2)
        for name in NAMES:
            assert client.delete(container, name).status == 404
        assert client.get(container).status == 404


class TestRecreationAsPlain:
    def test_is_seen_at_once_by_a_delete_at_another_proxy(self, client, other):
        container = make(client, 4)
        assert upload(client, container, ['early']) == ['early']
        assert other.delete(container, 'early').status == 204
        assert client.delete(container).status == 204
        assert put(client, container, 0) == 201
        assert upload(client, container, ['late']) == ['late']
        assert other.delete(container, 'late').status == 204
        assert client.listing(container).names() == []
        assert client.delete(container).status == 204


class TestLostInvalidation:
    """A proxy has not heard of a change of a container by another proxy."""

    @pytest.fixture(params=[0, 4])
    def known(self, request, client, detached) -> str:
        container = make(client, request.param)
        assert upload(detached, container, ['early']) == ['early']
        assert client.delete(container, 'early').status == 204
        return container

    def test_of_a_deletion_is_mended_by_a_put(
        self, one, client, detached, known
    ):
        assert client.delete(known).status == 204
        stored = upload(detached, known, NAMES)
        settle(one)
        put(client, known, 0)
        assert_kept(client, known, stored)

    @pytest.mark.parametrize('count', [0, 2, 7])
    def test_of_a_recreation_loses_nothing(
        self, one, client, detached, known, count
    ):
        assert client.delete(known).status == 204
        assert put(client, known, count) == 201
        stored = upload(detached, known, NAMES)
        assert stored
        settle(one)
        put(client, known, 0)
        assert_kept(client, known, stored)

    @pytest.mark.parametrize('count', [0, 2, 7])
    def test_of_a_recreation_leaves_no_deleted_object_listed(
        self, client, detached, known, count
    ):
        assert client.delete(known).status == 204
        assert put(client, known, count) == 201
        assert upload(client, known, NAMES) == NAMES
        # A DELETE trusts a layout that was confirmed a second ago.
        time.sleep(DOUBT_SECONDS)
        for name in NAMES:
            assert detached.delete(known, name).status == 204
        assert client.listing(known).names() == []
        assert client.delete(known).status == 204

    def test_of_a_deletion_does_not_hinder_a_create(
        self, client, detached, known
    ):
        assert client.delete(known).status == 204
        assert put(detached, known, 6) == 201
        answer = client.head(known)
        assert answer.headers['x-container-shard-count'] == '6'


class TestConcurrentCreates:
    def test_acknowledged_containers_keep_their_count(
        self, client, other, backing
    ):
        container = unique('race')
        big = with_count(64)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(client.put, container, headers=big)
            time.sleep(0.1)
            second = pool.submit(other.put, container, headers=with_count(3))
            statuses = {
                '64': first.result().status,
                '3': second.result().status,
            }
        assert sorted(statuses.values()) == [201, 409]
        (count,) = [c for c, status in statuses.items() if status == 201]
        answer = client.head(container)
        assert answer.status == 204
        assert answer.headers['x-container-shard-count'] == count
        assert client.listing(container).status == 200
        # The shards of the refused creation may stay for an hour.
        ids = [parse_backing(n).layout_id for n in backing.shards(container)]
        assert int(count) in Counter(ids).values()

    def test_wait_for_a_killed_one_only_until_its_lock_expires(
        self, one, client
    ):
        """Wait only until the lock of the killed creation expires."""
        container = unique('killed')
        key = f'shardmw/lifecycle/{client.account}/{container}'
        memcached_of(one).incr(key, time=2)
        started = time.monotonic()
        assert put(client, container, 8) == 201
        assert time.monotonic() - started < LOCK_SECONDS


class TestHalfDeleted:
    def test_shards_of_a_killed_delete_do_not_hinder_a_create(
        self, client, backing
    ):
        container = make(client, 4)
        backing.delete_root(container)
        assert client.get(container).status == 404
        assert put(client, container, 2) == 201
        assert upload(client, container, NAMES) == NAMES
        assert_kept(client, container, NAMES)

    def test_the_account_server_may_be_down(self, one, client):
        container = make(client, 4)
        with without(one, 'account-1'):
            status = client.delete(container).status
        assert status in (204, 404, 503)
        settle(one)
        client.delete(container)
        assert put(client, container, 2) == 201
        assert upload(client, container, NAMES) == NAMES
        assert_kept(client, container, NAMES)


class TestDeprecatedPolicy:
    @pytest.fixture
    def deprecated(self, one, client):
        """A container whose policy was deprecated after its creation."""
        container = unique('policy')
        headers = {**with_count(3), 'X-Storage-Policy': 'Policy-1'}
        assert client.put(container, headers=headers).status == 201
        conf = one.path / 'etc' / 'swift.conf'
        text = conf.read_text()
        section = '[storage-policy:1]\n'
        conf.write_text(text.replace(section, f'{section}deprecated = yes\n'))
        proxies = [n for n in one.servers if n.startswith('proxy')]
        for name in proxies:
            one.stop(name)
            one.start(name)
        yield container
        conf.write_text(text)
        for name in proxies:
            one.stop(name)
            one.start(name)

    def test_late_rows_bring_the_container_back(self, one, deprecated):
        client = login(one)
        assert client.get(deprecated).status == 204
        with without(one, 'container-1'):
            assert upload(client, deprecated, NAMES) == NAMES
        assert client.delete(deprecated).status == 204
        settle(one)
        assert set(client.listing(deprecated).names()) == set(NAMES)
        for name in NAMES:
            assert client.get(deprecated, name).status == 200


@pytest.fixture(scope='module')
def three(tmp_path_factory):
    """A cluster of three replicas."""
    options = ClusterOptions(replicas=3, settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('three'), options) as cluster:
        yield cluster


def forget(cluster: Cluster, client: Client, container: str) -> None:
    """Have the proxies read a container's info again, from any replica."""
    key = get_cache_key(client.account, container)
    memcached_of(cluster).delete(key)


class TestReplicaThatWasAway:
    """A replica misses a deletion and a recreation, and comes back."""

    @pytest.mark.parametrize(
        ('before', 'after', 'away'), [(2, 5, 1), (5, 2, 2), (3, 0, 3)]
    )
    def test_does_not_decide_the_layout(self, three, before, after, away):
        client = login(three)
        container = make(client, before)
        assert upload(client, container, ['early']) == ['early']
        assert client.delete(container, 'early').status == 204
        with without(three, f'container-{away}'):
            assert client.delete(container).status == 204
            assert put(client, container, after) == 201
        stored = []
        for name in NAMES:
            forget(three, client, container)
            stored += upload(client, container, [name])
            if after:
                answer = client.head(container)
                assert answer.headers['x-container-shard-count'] == str(after)
        assert stored == NAMES
        for daemon in (*UPDATERS, *REPLICATORS):
            three.daemon(daemon)
        settle(three)
        forget(three, client, container)
        if not after:
            put(client, container, 0)
        assert_kept(client, container, NAMES)

    def test_uploads_of_that_time_are_kept(self, three):
        client = login(three)
        container = make(client, 3)
        with without(three, 'container-2'):
            assert upload(client, container, NAMES) == NAMES
        for daemon in (*UPDATERS, *REPLICATORS):
            three.daemon(daemon)
        assert_kept(client, container, NAMES)


class TestUnfilteredProxy:
    """A proxy lacks the filter."""

    def test_its_uploads_are_listed_and_can_be_deleted(
        self, client, unfiltered, backing
    ):
        container = make(client, 4)
        assert upload(unfiltered, container, NAMES) == NAMES
        assert client.listing(container).names() == NAMES
        assert backing.root_names(container) == NAMES
        assert_kept(client, container, NAMES)

    def test_its_manifests_keep_their_figures(self, one, client, unfiltered):
        container = make(client, 4)
        segment = {'path': f'{container}/segment', 'size_bytes': 4}
        assert client.put(container, 'segment', b'1234').status == 201
        assert (
            unfiltered.put(
                container,
                'manifest',
                json.dumps([segment]).encode(),
                query={'multipart-manifest': 'put'},
            ).status
            == 201
        )
        before = unfiltered.listing(container).json()[0]
        bytes_before = unfiltered.head(container).headers[
            'x-container-bytes-used'
        ]
        settle(one)
        rows = {row['name']: row for row in client.listing(container).json()}
        assert rows['manifest'] == before
        used = client.head(container).headers['x-container-bytes-used']
        assert int(used) == int(bytes_before) + 4

    def test_its_deletion_of_a_full_container_is_mended_by_the_daemon(
        self, one, client, unfiltered
    ):
        container = make(client, 4)
        assert upload(client, container, NAMES) == NAMES
        assert unfiltered.delete(container).status == 204
        settle(one)
        assert_kept(client, container, NAMES)

    def test_its_overwrites_and_deletions_win(self, client, unfiltered):
        container = make(client, 4)
        assert upload(client, container, ['a', 'b']) == ['a', 'b']
        assert unfiltered.put(container, 'a', b'much longer').status == 201
        assert client.listing(container).json()[0]['bytes'] == 11
        assert client.delete(container, 'a').status == 204
        assert client.listing(container).names() == ['b']


def test_rows_survive_being_moved_away_and_back(
    one, client, unfiltered, backing
):
    """Delete a container past the filter twice, and move its rows twice."""
    container = make(client, 2)
    assert upload(client, container, NAMES) == NAMES
    for _ in range(2):
        assert unfiltered.delete(container).status == 204
        settle(one)
        assert client.listing(container).names() == NAMES
        assert put(client, container, 2) == 202
        settle(one)
        assert backing.list_all_shards(container) == NAMES
        assert client.listing(container).names() == NAMES
    assert_kept(client, container, NAMES)


def leave_late_row(
    cluster: Cluster, client: Client, container: str, shards: int, name: str
) -> None:
    """Create a container, upload an object and delete the container.

    The object's update stays pending on its object server.
    """
    assert put(client, container, shards) == 201
    assert client.get(container).status == 204
    with without(cluster, 'container-1'):
        assert upload(client, container, [name]) == [name]
    assert client.delete(container).status == 204


@pytest.fixture
def late(one, client) -> str:
    """A container that was deleted, with late rows of four layouts."""
    container = unique('late')
    for shards, name in zip((2, 3, 0, 2), NAMES[:4], strict=True):
        leave_late_row(one, client, container, shards, name)
    return container


class TestDaemon:
    @pytest.mark.parametrize('count', [0, 4])
    def test_moves_the_rows_of_several_layouts(self, one, client, late, count):
        assert put(client, late, count) == 201
        settle(one)
        assert client.listing(late).names() == NAMES[:4]
        assert_kept(client, late, NAMES[:4])

    def test_brings_a_deleted_container_back(self, one, client, late):
        settle(one)
        assert client.listing(late).names() == NAMES[:4]
        assert_kept(client, late, NAMES[:4])

    def test_may_run_beside_another_one(self, one, client, late):
        assert put(client, late, 4) == 201
        update(one)
        daemon = Resharder(one)
        with ThreadPoolExecutor(2) as pool:
            for ran in [pool.submit(daemon.once) for _ in range(2)]:
                ran.result()
        assert client.listing(late).names() == NAMES[:4]
        headers = client.head(late).headers
        assert headers['x-container-object-count'] == '4'
        assert_kept(client, late, NAMES[:4])

    def test_shares_the_containers_with_other_processes(
        self, one, client, late
    ):
        assert put(client, late, 4) == 201
        update(one)
        daemon = Resharder(one)
        logs = [daemon.once(processes=2, process=i) for i in range(2)]
        assert [f'{late}: settled: 3 late rows' in log for log in logs].count(
            True
        ) == 1
        assert client.listing(late).names() == NAMES[:4]

    def test_moves_nothing_while_it_does_not_run(self, one, client, late):
        assert put(client, late, 4) == 201
        update(one)
        for name in NAMES[:4]:
            assert client.get(late, name).status == 200
        # The late row of the plain layout arrived in the root.
        assert client.listing(late).names() == [NAMES[2]]
        assert client.head(late).status == 204
        assert put(client, late, 4) == 202
        assert client.delete(late).status == 409

    def test_removes_the_rows_of_deleted_objects(self, one, client, late):
        assert put(client, late, 4) == 201
        for name in NAMES[:4]:
            assert client.delete(late, name).status == 204
        settle(one)
        assert client.listing(late).names() == []
        assert client.delete(late).status == 204
        settle(one)
        assert client.get(late).status == 404

    def test_keeps_listings_complete_while_it_moves_strays(
        self, one, client, unfiltered, backing
    ):
        container = make(client, 4)
        assert upload(client, container, NAMES[:3]) == NAMES[:3]
        assert upload(unfiltered, container, NAMES[2:]) == NAMES[2:]
        listings = []
        with ThreadPoolExecutor(1) as pool:
            settled = pool.submit(settle, one)
            while not settled.done():
                listings.append(client.listing(container).names())
            settled.result()
        listings.append(client.listing(container).names())
        assert [names for names in listings if names != NAMES] == []
        assert backing.root_names(container) == []

    def test_adds_late_rows_to_listings_once_each(self, one, client, late):
        assert put(client, late, 4) == 201
        update(one)
        listings = []
        with ThreadPoolExecutor(1) as pool:
            ran = pool.submit(one.daemon, 'shardmw-resharder')
            while not ran.done():
                listings.append(client.listing(late).names())
            ran.result()
        listings.append(client.listing(late).names())
        assert all(names == sorted(set(names)) for names in listings)
        assert listings == sorted(listings, key=len)
        assert listings[-1] == NAMES[:4]
