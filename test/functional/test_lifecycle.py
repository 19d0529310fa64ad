# SPDX-License-Identifier: Apache-2.0
"""How sharded containers begin and end, whatever happens on the way.

An acknowledged object can be read and listed; a container is plain, or
sharded with all its shards, or gone; and the same request, repeated,
completes what a dead process began.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from shardmw.lifecycle import LOCK_KEY
from shardmw.saio import Cluster, ClusterOptions
from test.functional.archives import archive_of
from test.functional.backing import (
    Backing,
    memcached_of,
    name_in_shard,
    shard_names,
)
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    make_plain,
    make_sharded,
    unique,
)
from test.functional.unfiltered import running_unfiltered_proxy

ANOTHER_COUNT = SHARDS - 1

#: An object of the last shard: with fewer shards it lies elsewhere.
MOVING = name_in_shard(SHARDS - 1, SHARDS)

MANY_SHARDS = 96
PATIENCE_SECONDS = 30

#: No update of a listing is put off because the machine is busy.
PATIENT_SERVERS = {
    'container-server.conn_timeout': '10',
    'object-server.conn_timeout': '10',
}

LONG_NAME = 'x' * 129
LONG_VALUE = 'x' * 257
REFUSED_HEADERS = {
    'bad ACL': {'X-Container-Read': '.unknown:x'},
    'metadata name too long': {f'X-Container-Meta-{LONG_NAME}': 'x'},
    'metadata value too long': {'X-Container-Meta-Colour': LONG_VALUE},
    'no such policy': {'X-Storage-Policy': 'none'},
    'too much metadata': {
        f'X-Container-Meta-{i}': 'x' * 256 for i in range(17)
    },
}


def with_count(shards: int) -> dict[str, str]:
    """The headers of a create."""
    return {SHARD_COUNT_HEADER: str(shards)}


def create(client: Client, container: str, shards: int) -> int:
    """Create a container; gives the status."""
    return client.put(container, headers=with_count(shards)).status


def assert_gone(client: Client, backing: Backing, container: str) -> None:
    assert client.get(container).status == 404
    assert client.head(container).status == 404
    assert backing.shards(container) == []


def assert_whole(
    client: Client, backing: Backing, container: str, count: int
) -> None:
    answer = client.get(container)
    assert answer.status in (200, 204)
    assert answer.headers['x-container-shard-count'] == str(count)
    assert set(backing.shards(container)) >= set(shard_names(container, count))


def assert_kept(client: Client, container: str, names: set[str]) -> None:
    """Check that acknowledged objects can be read and listed."""
    listed = set(client.listing(container).names()) if names else set()
    assert names <= listed
    unreadable = [
        name for name in names if client.get(container, name).status != 200
    ]
    assert unreadable == []


def assert_takes_objects(client: Client, container: str) -> None:
    names = {f'o{i}' for i in range(8)}
    for name in names:
        assert client.put(container, name, b'x').status == 201
    assert_kept(client, container, names)


def empty(client: Client, container: str) -> None:
    """Delete all objects of a container."""
    for name in client.listing(container).names():
        assert client.delete(container, name).status == 204


@pytest.fixture
def rootless(sharded, backing) -> str:
    """Empty shards whose root is not there: yet, or any more."""
    backing.delete_root(sharded)
    return sharded


@pytest.fixture
def orphaned(client, sharded, backing) -> str:
    """Shards whose root is gone, one of which holds ``MOVING``."""
    assert client.put(sharded, MOVING, b'body').status == 201
    backing.delete_root(sharded)
    return sharded


class TestCreate:
    def test_makes_all_shards(self, client, backing, sharded):
        assert backing.shards(sharded) == shard_names(sharded, SHARDS)

    def test_gives_the_policy_to_all_shards(self, client, backing):
        container = make_sharded(client, X_Storage_Policy='Policy-1')
        policies = [
            backing.head_shard(container, i).headers['x-storage-policy']
            for i in range(SHARDS)
        ]
        assert policies == ['Policy-1'] * SHARDS

    def test_can_be_repeated(self, client, backing, sharded):
        assert create(client, sharded, SHARDS) == 202
        assert_whole(client, backing, sharded, SHARDS)

    @pytest.mark.parametrize(
        'headers', REFUSED_HEADERS.values(), ids=list(REFUSED_HEADERS)
    )
    def test_that_swift_refuses_is_refused_alike_and_leaves_nothing(
        self, client, backing, headers
    ):
        container = unique('refused')
        plain = client.put(container, headers=headers)
        refused = client.put(
            container, headers={**headers, **with_count(SHARDS)}
        )
        assert refused.status == plain.status == 400
        assert refused.body == plain.body
        assert_gone(client, backing, container)

    def test_by_a_stranger_leaves_nothing(self, client, stranger, backing):
        container = unique('refused')
        assert create(stranger, container, SHARDS) == 403
        assert_gone(client, backing, container)


class TestDelete:
    def test_leaves_nothing(self, client, backing, sharded):
        assert client.delete(sharded).status == 204
        assert_gone(client, backing, sharded)

    def test_of_what_is_not_empty_is_refused_and_changes_nothing(
        self, client, backing, sharded
    ):
        client.put(sharded, 'o', b'x')
        assert client.delete(sharded).status == 409
        assert_whole(client, backing, sharded, SHARDS)
        assert_kept(client, sharded, {'o'})

    def test_by_a_stranger_is_refused_and_changes_nothing(
        self, client, stranger, backing, sharded
    ):
        assert stranger.delete(sharded).status == 403
        assert_whole(client, backing, sharded, SHARDS)

    def test_lets_the_name_be_used_with_another_count(
        self, client, backing, sharded
    ):
        client.delete(sharded)
        assert create(client, sharded, ANOTHER_COUNT) == 201
        assert backing.shards(sharded) == shard_names(sharded, ANOTHER_COUNT)
        assert_takes_objects(client, sharded)

    def test_lets_the_name_be_used_for_a_plain_container(
        self, client, backing, sharded
    ):
        client.delete(sharded)
        assert client.put(sharded).status == 201
        assert backing.shards(sharded) == []
        assert_takes_objects(client, sharded)


class TestShardsWithoutRoot:
    def test_are_no_container(self, client, rootless):
        assert client.get(rootless).status == 404
        assert client.head(rootless).status == 404
        assert client.post(rootless).status == 404
        assert rootless not in client.listing().names()

    def test_take_no_objects(self, client, rootless):
        assert client.put(rootless, 'o', b'x').status == 404
        assert client.get(rootless, 'o').status == 404

    def test_are_cleared_by_a_delete(self, client, backing, rootless):
        assert client.delete(rootless).status == 404
        assert_gone(client, backing, rootless)

    @pytest.mark.parametrize('count', [SHARDS, SHARDS + 1, ANOTHER_COUNT])
    def test_are_taken_up_by_a_create(self, client, backing, rootless, count):
        assert create(client, rootless, count) == 201
        assert_whole(client, backing, rootless, count)
        assert_takes_objects(client, rootless)

    @pytest.mark.parametrize('count', [SHARDS, SHARDS + 1, ANOTHER_COUNT])
    def test_go_with_the_container_that_took_them_up(
        self, client, backing, rootless, count
    ):
        create(client, rootless, count)
        assert client.delete(rootless).status == 204
        assert_gone(client, backing, rootless)

    def test_do_not_disturb_a_plain_container(self, client, rootless):
        assert client.put(rootless).status == 201
        assert SHARD_COUNT_HEADER.lower() not in client.head(rootless).headers
        assert_takes_objects(client, rootless)

    def test_go_with_a_plain_container(self, client, backing, rootless):
        client.put(rootless)
        assert client.delete(rootless).status == 204
        assert_gone(client, backing, rootless)

    def test_may_be_some_only(self, client, backing, rootless):
        backing.delete_shard(rootless, 0)
        assert create(client, rootless, SHARDS) == 201
        assert_whole(client, backing, rootless, SHARDS)

    def test_may_be_of_another_policy(self, client, backing):
        container = unique('leftover')
        backing.put_shard(container, 1, X_Storage_Policy='Policy-1')
        assert create(client, container, SHARDS) == 201
        shard = backing.head_shard(container, 1)
        assert shard.headers['x-storage-policy'] == 'Policy-0'
        assert_takes_objects(client, container)


class TestObjectInShardWithoutRoot:
    """An upload that came while a process died that deleted."""

    def test_brings_the_container_back_when_it_is_deleted_again(
        self, client, backing, orphaned
    ):
        assert client.delete(orphaned).status == 409
        assert_whole(client, backing, orphaned, SHARDS)
        assert client.get(orphaned, MOVING).body == b'body'
        assert_kept(client, orphaned, {MOVING})

    def test_is_in_the_container_when_it_is_created_again(
        self, client, orphaned
    ):
        assert create(client, orphaned, SHARDS) in (201, 202)
        assert client.get(orphaned, MOVING).body == b'body'
        assert_kept(client, orphaned, {MOVING})

    @pytest.mark.parametrize('count', [SHARDS + 1, ANOTHER_COUNT, 1])
    def test_is_not_lost_by_a_create_with_another_count(
        self, client, orphaned, count
    ):
        create(client, orphaned, count)
        assert_kept(client, orphaned, {MOVING})

    def test_is_not_lost_by_a_create_of_a_plain_container(
        self, client, orphaned
    ):
        client.put(orphaned)
        assert_kept(client, orphaned, {MOVING})

    def test_can_be_deleted_and_then_the_container(
        self, client, backing, orphaned
    ):
        client.delete(orphaned)
        assert client.delete(orphaned, MOVING).status == 204
        assert client.delete(orphaned).status == 204
        assert_gone(client, backing, orphaned)


class TestMissingShard:
    @pytest.fixture
    def damaged(self, client, backing, sharded) -> str:
        """A container with an object in shard 0, and without shard 1."""
        client.put(sharded, name_in_shard(0, SHARDS), b'x')
        backing.delete_shard(sharded, 1)
        return sharded

    def test_makes_listings_fail(self, client, damaged):
        assert client.get(damaged).status == 503
        assert client.head(damaged).status == 503

    def test_leaves_objects_of_other_shards_readable(self, client, damaged):
        name = name_in_shard(0, SHARDS)
        assert client.get(damaged, name).body == b'x'

    def test_is_healed_by_a_repeated_create(self, client, backing, damaged):
        assert create(client, damaged, SHARDS) == 202
        assert_whole(client, backing, damaged, SHARDS)
        assert_kept(client, damaged, {name_in_shard(0, SHARDS)})

    def test_does_not_lose_what_is_uploaded_into_it(
        self, cluster, client, damaged
    ):
        name = name_in_shard(1, SHARDS)
        assert client.put(damaged, name, b'x').status == 201
        create(client, damaged, SHARDS)
        cluster.daemon('object-updater')
        assert_kept(client, damaged, {name})

    def test_does_not_hinder_a_delete(self, client, backing, damaged):
        client.delete(damaged, name_in_shard(0, SHARDS))
        assert client.delete(damaged).status == 204
        assert_gone(client, backing, damaged)

    def test_does_not_let_a_delete_lose_an_object(self, client, damaged):
        assert client.delete(damaged).status == 409
        create(client, damaged, SHARDS)
        assert_kept(client, damaged, {name_in_shard(0, SHARDS)})


@pytest.fixture
def other(client) -> Client:
    """The owner on a connection of its own."""
    return client.on(client.storage_url.partition('/v1/')[0])


def interrupted(body: bytes, meanwhile: Callable[[], None]) -> Iterator[bytes]:
    """A body in two parts, between which something else is done."""
    half = len(body) // 2
    yield body[:half]
    meanwhile()
    yield body[half:]


def wait_until_listed(client: Client, container: str, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while name not in client.listing(container).names():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class TestDeleteDuringUpload:
    """The upload goes on for longer than a DELETE waits for uploads."""

    def upload(
        self, client: Client, container: str, meanwhile: Callable[[], None]
    ) -> int:
        body = interrupted(b'first last', meanwhile)
        return client.put(container, MOVING, body).status

    @pytest.fixture(params=['sharded', 'plain'])
    def container(self, request, client) -> str:
        makers = {'sharded': make_sharded, 'plain': make_plain}
        return makers[request.param](client)

    def test_keeps_container_and_object(self, client, other, container):
        def meanwhile() -> None:
            assert other.delete(container).status == 204

        assert self.upload(client, container, meanwhile) == 201
        assert client.get(container, MOVING).body == b'first last'
        assert_kept(client, container, {MOVING})

    def test_keeps_container_and_version(self, client, other, container):
        client.post(container, headers={'X-Versions-Enabled': 'true'})

        def meanwhile() -> None:
            assert other.delete(container).status == 204

        assert self.upload(client, container, meanwhile) == 201
        assert client.get(container, MOVING).body == b'first last'
        assert client.head(container).status == 204
        assert client.listing(container).names() == [MOVING]

    def test_keeps_container_and_manifest(
        self, client, other, container, plain
    ):
        client.put(plain, 'segment', b'12345')
        manifest = json.dumps([{'path': f'{plain}/segment'}]).encode()

        def meanwhile() -> None:
            assert other.delete(container).status == 204

        answer = client.put(
            container,
            MOVING,
            interrupted(manifest, meanwhile),
            query='multipart-manifest=put',
        )
        assert answer.status == 201
        assert client.get(container, MOVING).body == b'12345'
        assert client.head(container).status == 204

    def test_keeps_container_and_all_files_of_an_archive(
        self, client, other, container
    ):
        files = {f'{i}': b'x' * 100_000 for i in range(3)}

        def meanwhile() -> None:
            wait_until_listed(other, container, '0')
            assert other.delete(container, '0').status == 204
            assert other.delete(container).status == 204

        answer = client.put(
            container,
            body=interrupted(archive_of(files), meanwhile),
            query='extract-archive=tar',
        )
        assert b'Number Files Created: 3' in answer.body
        assert client.get(container, '2').body == files['2']
        assert client.listing(container).names() == ['1', '2']

    def test_keeps_all_shards(self, client, other, backing, sharded):
        self.upload(client, sharded, lambda: other.delete(sharded))
        assert_whole(client, backing, sharded, SHARDS)

    def test_keeps_the_object_in_a_container_created_alike(
        self, client, other, sharded
    ):
        def meanwhile() -> None:
            assert other.delete(sharded).status == 204
            assert create(other, sharded, SHARDS) == 201

        assert self.upload(client, sharded, meanwhile) == 201
        assert_kept(client, sharded, {MOVING})

    @pytest.mark.parametrize(
        'headers',
        [with_count(ANOTHER_COUNT), with_count(1), {}],
        ids=['other', 'one', 'plain'],
    )
    def test_acknowledges_nothing_that_another_container_does_not_hold(
        self, client, other, sharded, headers
    ):
        def meanwhile() -> None:
            assert other.delete(sharded).status == 204
            assert other.put(sharded, headers=headers).status == 201

        acknowledged = self.upload(client, sharded, meanwhile) == 201
        assert_kept(client, sharded, {MOVING} if acknowledged else set())
        assert client.put(sharded, MOVING, b'again').status == 201
        assert client.get(sharded, MOVING).body == b'again'
        assert client.listing(sharded).names() == [MOVING]
        empty(client, sharded)
        assert client.delete(sharded).status == 204


@pytest.fixture(scope='module')
def two_proxies(tmp_path_factory):
    """A cluster whose proxies are raced against each other, or killed."""
    options = ClusterOptions(proxies=2, settings=PATIENT_SERVERS)
    path = tmp_path_factory.mktemp('two-proxies')
    with Cluster(path, options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def racers(two_proxies) -> list[Client]:
    """Six connections of the owner, over both proxies in turn."""
    cluster = two_proxies
    owner = Client.login(cluster.auth_url, USER, cluster.users[USER])
    return [owner.on(url) for url in cluster.proxy_urls * 3]


@pytest.fixture(scope='module')
def unfiltered_of_two(two_proxies):
    """One more proxy of that cluster, without shardmw."""
    with running_unfiltered_proxy(two_proxies) as url:
        yield url


def at_once(*calls: Callable) -> list:
    """Call functions at the same time; gives what they return."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(c) for c in calls]]


def uploads(client: Client, container: str, count: int) -> set[str]:
    """Upload objects; gives the names that were acknowledged."""
    prefix = unique('o')
    names = [f'{prefix}-{i}' for i in range(count)]
    return {
        name
        for name in names
        if client.put(container, name, b'x').status == 201
    }


class TestConcurrentCreates:
    ROUNDS = range(3)

    def create_and_upload(
        self, client: Client, container: str, shards: int
    ) -> tuple[int, int, set[str]]:
        status = create(client, container, shards)
        return shards, status, uploads(client, container, 5)

    @pytest.fixture
    def race(self, racers) -> Callable:
        def race(container: str, counts: list[int]) -> list:
            return at_once(
                *(
                    lambda client=client, shards=shards: (
                        self.create_and_upload(client, container, shards)
                    )
                    for client, shards in zip(racers, counts, strict=True)
                )
            )

        return race

    @pytest.mark.parametrize('_round', ROUNDS)
    def test_with_the_same_count_are_all_accepted(self, racers, race, _round):
        container = unique('race')
        outcomes = race(container, [4] * len(racers))
        statuses = sorted(status for _shards, status, _names in outcomes)
        assert statuses == [201, 202, 202, 202, 202, 202]
        acknowledged = [names for _shards, _status, names in outcomes]
        assert_kept(racers[0], container, set.union(*acknowledged))

    @pytest.mark.parametrize('_round', ROUNDS)
    def test_with_different_counts_are_won_by_one(self, racers, race, _round):
        container = unique('race')
        outcomes = race(container, [2, 4, 8, 8, 4, 2])
        headers = racers[0].head(container).headers
        winner = int(headers['x-container-shard-count'])
        accepted = [s for shards, s, _ in outcomes if shards == winner]
        refused = [s for shards, s, _ in outcomes if shards != winner]
        assert sorted(accepted) == [201, 202]
        assert refused == [409] * 4
        acknowledged = [names for _shards, _status, names in outcomes]
        assert_kept(racers[0], container, set.union(*acknowledged))


class TestDeleteRacesUploads:
    @pytest.mark.parametrize('_round', range(8))
    def test_no_acknowledged_object_is_lost(self, racers, _round):
        container = make_sharded(racers[0])
        *uploaded, _first, _second = at_once(
            lambda: uploads(racers[0], container, 6),
            lambda: uploads(racers[1], container, 6),
            lambda: uploads(racers[2], container, 6),
            lambda: racers[3].delete(container),
            lambda: racers[4].delete(container),
        )
        assert_kept(racers[5], container, set.union(*uploaded))

    @pytest.mark.parametrize('_round', range(4))
    def test_and_creates_race_as_well(self, racers, _round):
        container = make_sharded(racers[0])
        *uploaded, _deleted, _created = at_once(
            lambda: uploads(racers[0], container, 6),
            lambda: uploads(racers[1], container, 6),
            lambda: racers[2].delete(container),
            lambda: create(racers[3], container, SHARDS + 1),
        )
        assert_kept(racers[5], container, set.union(*uploaded))


class TestKilledProxy:
    """Killed in the middle of a request, and started again."""

    @pytest.fixture
    def client(self, racers) -> Client:
        return racers[0]

    @pytest.fixture
    def backing(self, client, unfiltered_of_two) -> Backing:
        return Backing(client.on(unfiltered_of_two))

    @pytest.fixture
    def killed_when(self, two_proxies, client):
        """Sends a request and kills its proxy when a condition holds.

        The lock that the dead proxy held is not waited for.
        """

        def killed_when(
            container: str,
            condition: Callable[[], bool],
            request: Callable[[], object],
        ) -> None:
            pid = pid_of(two_proxies, 'proxy-1')
            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(request)
                wait_for(condition)
                os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ConnectionError):
                    sent.result()
            release_lock(two_proxies, client.account, container)
            two_proxies.start('proxy-1')

        return killed_when

    def test_repeated_create_completes_it(self, client, backing, killed_when):
        container = unique('killed')
        killed_when(
            container,
            lambda: backing.shards(container),
            lambda: create(client, container, MANY_SHARDS),
        )
        assert client.head(container).status == 404
        assert create(client, container, MANY_SHARDS) == 201
        assert_whole(client, backing, container, MANY_SHARDS)
        assert_takes_objects(client, container)

    def test_delete_clears_what_a_create_left(
        self, client, backing, killed_when
    ):
        container = unique('killed')
        killed_when(
            container,
            lambda: backing.shards(container),
            lambda: create(client, container, MANY_SHARDS),
        )
        assert client.delete(container).status == 404
        assert_gone(client, backing, container)

    def test_repeated_delete_completes_it(self, client, backing, killed_when):
        container = make_sharded(client, MANY_SHARDS)
        killed_when(
            container,
            lambda: not backing.has_root(container),
            lambda: client.delete(container),
        )
        assert client.delete(container).status == 404
        assert_gone(client, backing, container)


def pid_of(cluster: Cluster, name: str) -> int:
    return {each.server.name: each.pid for each in cluster.status()}[name]


def release_lock(cluster: Cluster, account: str, container: str) -> None:
    key = LOCK_KEY.format(account=account, container=container)
    memcached_of(cluster).delete(key)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, 'waited in vain'
