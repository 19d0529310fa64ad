# SPDX-License-Identifier: Apache-2.0
"""Creation and deletion of sharded containers, with races and failures.

An acknowledged object can be read at once, and is listed once Swift's updaters
and ``shardmw-resharder`` have run. A container is plain, or sharded with all
its shards, or gone. A repeated request completes what a killed process began.
"""

import contextlib
import functools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from shardmw_saio import Cluster, ClusterOptions

from shardmw.backend.containers import LOGICAL_HEADER
from shardmw.core.layout import id_of_time
from shardmw.core.placement import backing_container
from shardmw.proxy.container_context import LOCK_KEY
from shardmw.reshard.late_rows import CREATION_SECONDS
from test.functional.archives import archive_of
from test.functional.backing import (
    Backing,
    memcached_of,
    name_in_shard,
    write_metadata,
)
from test.functional.client import Answer, Client
from test.functional.conftest import (
    MAKERS,
    SHARD_COUNT_HEADER,
    SHARDS,
    STRANGER,
    USER,
    make_plain,
    make_sharded,
    unique,
)
from test.functional.operating import settle
from test.functional.unfiltered import running_unfiltered_proxy

ANOTHER_COUNT = SHARDS - 1

#: An object of the last shard, which belongs elsewhere with fewer shards.
MOVING = name_in_shard(SHARDS - 1, SHARDS)

MANY_SHARDS = 64
ORPHANS = 10
PATIENCE_SECONDS = 30

#: Longer ago than the creation of a container may take.
LONG_AGO_SECONDS = CREATION_SECONDS + 60

SETTINGS = {
    # No update of a listing is delayed because the machine is busy.
    'container-server.conn_timeout': '10',
    'object-server.conn_timeout': '10',
    'shardmw.stats_cache_seconds': '0',
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


@pytest.fixture(scope='module')
def two_proxies(tmp_path_factory):
    """A cluster with two proxies, which race each other or are killed."""
    options = ClusterOptions(proxies=2, policies=2, settings=SETTINGS)
    path = tmp_path_factory.mktemp('two-proxies')
    with Cluster(path, options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def unfiltered_proxy(two_proxies):
    """One more proxy of that cluster, without shardmw."""
    with running_unfiltered_proxy(two_proxies) as url:
        yield url


@pytest.fixture(scope='module')
def owner(two_proxies) -> Client:
    return login(two_proxies, USER)


@pytest.fixture
def client(owner) -> Client:
    """The owner at the first proxy."""
    return owner


@pytest.fixture
def stranger(two_proxies, owner) -> Client:
    return login(two_proxies, STRANGER).visiting(owner)


@pytest.fixture(scope='module')
def racers(two_proxies, owner) -> list[Client]:
    """Six connections of the owner, three to each proxy."""
    return [owner.on(url) for url in two_proxies.proxy_urls * 3]


def login(cluster: Cluster, user: str) -> Client:
    return Client.login(cluster.auth_url, user, cluster.users[user])


def with_count(shards: int) -> dict[str, str]:
    """Return the headers that create a sharded container."""
    return {SHARD_COUNT_HEADER: str(shards)}


def create(client: Client, container: str, shards: int) -> int:
    """Create a container; return the status."""
    return client.put(container, headers=with_count(shards)).status


def shard_count(client: Client, container: str) -> int | None:
    """Return a container's shard count, or None if it is plain."""
    headers = client.head(container).headers
    count = headers.get(SHARD_COUNT_HEADER.lower())
    return count and int(count)


def assert_gone(client: Client, backing: Backing, container: str) -> None:
    """Check that a container does not exist, and that nothing is left."""
    assert_invisible(client, backing, container)
    assert backing.shards(container) == []


def assert_invisible(client: Client, backing: Backing, container: str) -> None:
    """Check that a container does not exist; empty shards may be left."""
    assert client.get(container).status == 404
    assert client.head(container).status == 404
    assert not backing.has_root(container)


def assert_whole(
    client: Client, backing: Backing, container: str, count: int
) -> None:
    assert client.get(container).status in (200, 204)
    assert shard_count(client, container) == count
    for shard in range(count):
        assert backing.head_shard(container, shard).status == 204


def assert_kept(client: Client, container: str, names: set[str]) -> None:
    """Check that acknowledged objects can be read and listed."""
    assert_readable(client, container, names)
    listed = set(client.listing(container).names()) if names else set()
    assert names <= listed


def assert_readable(client: Client, container: str, names: set[str]) -> None:
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


class TestCreate:
    def test_makes_all_shards(self, backing, sharded):
        assert backing.shard_indices(sharded) == list(range(SHARDS))

    def test_gives_the_policy_to_all_shards(self, client, backing):
        container = make_sharded(client, X_Storage_Policy='Policy-1')
        policies = [
            backing.head_shard(container, i).headers['x-storage-policy']
            for i in range(SHARDS)
        ]
        assert policies == ['Policy-1'] * SHARDS

    def test_can_be_repeated(self, client, backing, sharded):
        assert create(client, sharded, SHARDS) == 202
        assert backing.shard_indices(sharded) == list(range(SHARDS))

    @pytest.mark.parametrize(
        'headers', REFUSED_HEADERS.values(), ids=list(REFUSED_HEADERS)
    )
    def test_that_swift_refuses_is_refused_alike_and_leaves_no_container(
        self, client, backing, headers
    ):
        container = unique('refused')
        plain = client.put(container, headers=headers)
        refused = client.put(
            container, headers={**headers, **with_count(SHARDS)}
        )
        assert refused.status == plain.status == 400
        assert refused.body == plain.body
        assert_invisible(client, backing, container)

    def test_by_a_stranger_leaves_nothing(self, client, stranger, backing):
        container = unique('refused')
        assert create(stranger, container, SHARDS) == 403
        assert_gone(client, backing, container)


class TestDelete:
    def test_leaves_nothing(self, client, backing, sharded):
        assert client.delete(sharded).status == 204
        assert_gone(client, backing, sharded)

    def test_of_a_nonempty_container_is_refused_and_changes_nothing(
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
        assert backing.shard_indices(sharded) == list(range(ANOTHER_COUNT))
        assert_takes_objects(client, sharded)

    def test_lets_the_name_be_used_for_a_plain_container(
        self, client, backing, sharded
    ):
        client.delete(sharded)
        assert client.put(sharded).status == 201
        assert backing.shards(sharded) == []
        assert_takes_objects(client, sharded)


@pytest.fixture
def rootless(sharded, backing) -> str:
    """Empty shards whose root does not exist yet, or no longer."""
    backing.delete_root(sharded)
    return sharded


class TestShardsWithoutRoot:
    def test_are_no_container(self, client, rootless):
        assert client.get(rootless).status == 404
        assert client.head(rootless).status == 404
        assert client.post(rootless).status == 404
        assert client.delete(rootless).status == 404
        assert rootless not in client.listing().names()

    def test_take_no_objects(self, client, rootless):
        assert client.put(rootless, 'o', b'x').status == 404
        assert client.get(rootless, 'o').status == 404

    @pytest.mark.parametrize('count', [SHARDS, ANOTHER_COUNT])
    def test_do_not_disturb_a_sharded_container(
        self, client, backing, rootless, count
    ):
        assert create(client, rootless, count) == 201
        assert_whole(client, backing, rootless, count)
        assert_takes_objects(client, rootless)

    def test_do_not_disturb_a_plain_container(self, client, rootless):
        assert client.put(rootless).status == 201
        assert shard_count(client, rootless) is None
        assert_takes_objects(client, rootless)

    def test_stay_as_a_creation_may_be_under_way(
        self, client, backing, rootless
    ):
        assert client.delete(rootless).status == 404
        assert client.put(rootless).status == 201
        assert client.delete(rootless).status == 204
        assert backing.shard_indices(rootless) == list(range(SHARDS))


@pytest.fixture
def abandoned(two_proxies, backing, sharded) -> str:
    """A name whose container was begun long ago and never completed."""
    name = unique('abandoned')
    layout_id = id_of_time(time.time() - LONG_AGO_SECONDS)
    for i in range(SHARDS):
        shard = backing_container(name, layout_id, i)
        backing.put_shard(name, shard)
        write_metadata(
            two_proxies, backing.hidden.account, shard, LOGICAL_HEADER, name
        )
    return name


class TestAbandonedShards:
    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'DELETE'])
    def test_stay_after_a_request_for_the_missing_container(
        self, client, backing, abandoned, method
    ):
        assert client.request(method, abandoned).status == 404
        assert backing.shard_indices(abandoned) == list(range(SHARDS))

    def test_are_deleted_by_the_daemon(self, two_proxies, backing, abandoned):
        settle(two_proxies)
        assert backing.shards(abandoned) == []

    def test_of_a_plain_container_are_deleted_by_the_daemon(
        self, two_proxies, client, backing, abandoned
    ):
        assert client.put(abandoned).status == 201
        settle(two_proxies)
        assert backing.shards(abandoned) == []
        assert client.get(abandoned).status == 204

    def test_of_a_sharded_container_are_deleted_by_the_daemon(
        self, two_proxies, client, backing, abandoned
    ):
        assert create(client, abandoned, ANOTHER_COUNT) == 201
        settle(two_proxies)
        assert_whole(client, backing, abandoned, ANOTHER_COUNT)
        assert backing.shard_indices(abandoned) == list(range(ANOTHER_COUNT))

    def test_that_are_young_stay(self, two_proxies, backing, rootless):
        settle(two_proxies)
        assert backing.shard_indices(rootless) == list(range(SHARDS))

    def test_of_other_policies_do_not_disturb_a_create(
        self, client, backing, sharded
    ):
        name = unique('abandoned')
        layout_id = id_of_time(time.time() - LONG_AGO_SECONDS)
        shard = backing_container(name, layout_id, 1)
        backing.put_shard(name, shard, X_Storage_Policy='Policy-1')
        assert create(client, name, SHARDS) == 201
        shard = backing.head_shard(name, 1)
        assert shard.headers['x-storage-policy'] == 'Policy-0'
        assert_takes_objects(client, name)


@pytest.fixture(scope='class')
def orphans(two_proxies, owner, unfiltered_proxy) -> list[str]:
    """Containers whose roots are gone, while a shard lists ``MOVING``.

    This is the state after an upload during a deletion, or after a DELETE at
    a proxy without the filter.
    """
    policy = {'X_Storage_Policy': 'Policy-1'}
    orphans = [make_sharded(owner, **policy) for _ in range(ORPHANS)]
    unfiltered = owner.on(unfiltered_proxy)
    for container in orphans:
        assert owner.put(container, MOVING, b'body').status == 201
        assert unfiltered.delete(container).status == 204
    two_proxies.daemon('container-updater')
    return orphans


@pytest.fixture
def orphaned(orphans) -> str:
    return orphans.pop()


class TestObjectInShardWithoutRoot:
    def test_can_be_read(self, client, orphaned):
        assert client.get(orphaned, MOVING).body == b'body'

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'DELETE'])
    def test_stays_after_a_request_for_the_missing_container(
        self, client, backing, orphaned, method
    ):
        assert client.request(method, orphaned).status == 404
        assert backing.list_all_shards(orphaned) == [MOVING]


@pytest.fixture(scope='class')
def returned(two_proxies, orphans) -> list[str]:
    """The containers of ``orphans`` after the daemon has run."""
    two_proxies.daemon('shardmw-resharder')
    return orphans


class TestContainerThatItsRowsBringBack:
    def test_lists_the_object(self, client, returned):
        assert client.listing(returned[0]).names() == [MOVING]

    def test_is_plain_and_of_the_former_policy(self, client, returned):
        headers = client.head(returned[0]).headers
        assert headers['x-container-object-count'] == '1'
        assert headers['x-container-bytes-used'] == str(len(b'body'))
        assert headers['x-storage-policy'] == 'Policy-1'
        assert shard_count(client, returned[0]) is None

    def test_is_not_deleted_with_the_object(self, client, returned):
        assert client.delete(returned[0]).status == 409
        assert_kept(client, returned[0], {MOVING})

    def test_goes_with_its_last_object(self, client, backing, returned):
        container = returned.pop()
        assert client.delete(container, MOVING).status == 204
        assert client.delete(container).status == 404
        assert_invisible(client, backing, container)

    def test_lists_an_overwritten_object_once(self, client, returned):
        container = returned.pop()
        assert client.put(container, MOVING, b'again').status == 201
        (row,) = client.listing(container).json()
        assert row['bytes'] == len(b'again')

    def test_can_be_put_with_shards(self, client, backing, returned):
        container = returned.pop()
        assert create(client, container, SHARDS + 1) == 202
        assert shard_count(client, container) == SHARDS + 1
        assert_kept(client, container, {MOVING})


@pytest.fixture(scope='class')
def recreated(two_proxies, owner, orphans) -> dict[int, str]:
    """Containers that were recreated before the daemon ran, by shard count."""
    recreated = {}
    for count in (0, 1, SHARDS, SHARDS + 1):
        headers = with_count(count) if count else {}
        headers['X-Storage-Policy'] = 'Policy-1'
        recreated[count] = orphans.pop()
        answer = owner.put(recreated[count], headers=headers)
        assert answer.status == 201
        assert owner.get(recreated[count], MOVING).status == 200
    settle(two_proxies)
    return recreated


@pytest.mark.parametrize('count', [0, 1, SHARDS, SHARDS + 1])
class TestContainerThatWasCreatedAgain:
    def test_gets_the_object(self, client, recreated, count):
        assert shard_count(client, recreated[count]) == (count or None)
        assert_kept(client, recreated[count], {MOVING})

    def test_lists_it_where_it_belongs(
        self, client, backing, recreated, count
    ):
        in_root = [] if count else [MOVING]
        assert backing.root_names(recreated[count]) == in_root


def test_shards_of_containers_with_similar_names_are_left_alone(
    two_proxies, client, backing, sharded
):
    shard = backing.shard_name(sharded, 0)
    for other in (f'{sharded}.x', shard):
        assert create(client, other, 1) == 201
        assert client.put(other, 'o').status == 201
    two_proxies.daemon('container-updater')
    assert client.listing(sharded).names() == []
    assert client.delete(sharded).status == 204
    for other in (f'{sharded}.x', shard):
        assert client.listing(other).names() == ['o']
        assert shard_count(client, other) == 1


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

    def test_is_not_created_by_a_repeated_create(
        self, client, backing, damaged
    ):
        assert create(client, damaged, SHARDS) == 202
        assert backing.head_shard(damaged, 1).status == 404
        assert client.get(damaged).status == 503

    def test_is_not_created_by_the_daemon(
        self, two_proxies, client, backing, damaged
    ):
        settle(two_proxies)
        assert backing.head_shard(damaged, 1).status == 404
        assert client.get(damaged).status == 503

    def test_comes_back_with_an_upload_into_it(self, client, damaged):
        name = name_in_shard(1, SHARDS)
        assert client.put(damaged, name, b'x').status == 201
        assert_kept(client, damaged, {name, name_in_shard(0, SHARDS)})

    def test_makes_a_delete_fail(self, client, backing, damaged):
        client.delete(damaged, name_in_shard(0, SHARDS))
        assert client.delete(damaged).status == 503
        assert backing.has_root(damaged)

    def test_does_not_let_a_delete_lose_an_object(self, client, damaged):
        assert client.delete(damaged).status == 409
        name = name_in_shard(0, SHARDS)
        assert client.get(damaged, name).status == 200


def put_interrupted(
    client: Client,
    container: str,
    name: str | None,
    body: bytes,
    meanwhile: Callable[[], None],
    query: str | None = None,
) -> Answer:
    """PUT a body in two parts; call a function between them."""

    def parts() -> Iterator[bytes]:
        half = len(body) // 2
        client.wait_until_read()
        yield body[:half]
        meanwhile()
        yield body[half:]

    headers = {'Expect': '100-continue'}
    return client.put(container, name, parts(), headers=headers, query=query)


def connection_of(client: Client) -> Client:
    """Return a client for the same user with another connection."""
    return client.on(client.storage_url.partition('/v1/')[0])


def delete(client: Client, container: str) -> None:
    """Delete a container while another connection is busy."""
    assert connection_of(client).delete(container).status == 204


def upload(
    client: Client,
    container: str,
    meanwhile: Callable[[], None],
    body: bytes = b'first last',
    query: str | None = None,
) -> str:
    """Upload ``MOVING``; call a function during the upload."""
    answer = put_interrupted(client, container, MOVING, body, meanwhile, query)
    assert answer.status == 201
    return container


def upload_object(client: Client, container: str) -> str:
    colour = {'X-Container-Meta-Colour': 'red'}
    assert client.post(container, headers=colour).status == 204
    upload(client, container, lambda: delete(client, container))
    assert client.get(container, MOVING).body == b'first last'
    return container


def upload_version(client: Client, container: str) -> str:
    enabled = {'X-Versions-Enabled': 'true'}
    assert client.post(container, headers=enabled).status == 204
    return upload(client, container, lambda: delete(client, container))


def upload_manifest(client: Client, container: str) -> str:
    segments = make_plain(client)
    client.put(segments, 'segment', b'12345')
    return upload(
        client,
        container,
        lambda: delete(client, container),
        json.dumps([{'path': f'{segments}/segment'}]).encode(),
        'multipart-manifest=put',
    )


def upload_archive(client: Client, container: str) -> str:
    """Extract two files; delete the first and the container meanwhile."""
    other = connection_of(client)

    def meanwhile() -> None:
        wait_for(lambda: '0' in other.listing(container).names())
        assert other.delete(container, '0').status == 204
        assert other.delete(container).status == 204

    files = {f'{i}': f'{i}'.encode() * 100_000 for i in range(2)}
    answer = put_interrupted(
        client,
        container,
        None,
        archive_of(files),
        meanwhile,
        'extract-archive=tar',
    )
    assert b'Number Files Created: 2' in answer.body
    return container


class Late(NamedTuple):
    """Containers that were deleted during an upload."""

    object: str
    version: str
    manifest: str
    archive: str


@pytest.fixture(scope='class', params=MAKERS)
def late(request, two_proxies, owner) -> Late:
    """Containers, plain or sharded, after the daemons have run."""
    make = functools.partial(MAKERS[request.param], owner)
    late = Late(
        upload_object(owner, make()),
        upload_version(owner, make()),
        upload_manifest(owner, make()),
        upload_archive(owner, make()),
    )
    settle(two_proxies)
    return late


class TestDeleteDuringUpload:
    def test_keeps_the_object(self, client, late):
        assert_kept(client, late.object, {MOVING})

    def test_leaves_a_container_without_metadata(self, client, late):
        headers = client.head(late.object).headers
        assert headers['x-container-object-count'] == '1'
        assert 'x-container-meta-colour' not in headers
        assert SHARD_COUNT_HEADER.lower() not in headers

    def test_keeps_the_version(self, client, late):
        assert client.listing(late.version).names() == [MOVING]
        assert client.get(late.version, MOVING).body == b'first last'
        enabled = {'X-Versions-Enabled': 'true'}
        assert client.post(late.version, headers=enabled).status == 204
        query = {'format': 'json', 'versions': ''}
        (row,) = client.get(late.version, query=query).json()
        query = {'version-id': row['version_id']}
        got = client.get(late.version, MOVING, query=query)
        assert got.body == b'first last'

    def test_keeps_the_manifest(self, client, late):
        (row,) = client.listing(late.manifest).json()
        assert (row['name'], row['bytes']) == (MOVING, len(b'12345'))
        assert client.get(late.manifest, MOVING).body == b'12345'

    def test_keeps_the_file_of_an_archive(self, client, late):
        assert client.listing(late.archive).names() == ['1']
        assert_readable(client, late.archive, {'1'})

    def test_leaves_a_container_that_goes_with_its_last_object(
        self, client, backing, late
    ):
        empty(client, late.archive)
        assert client.delete(late.archive).status == 404
        assert_invisible(client, backing, late.archive)


#: The shard counts of a container and of the one that replaces it.
CHANGES = {
    f'{was} to {becomes}': (was, becomes)
    for was in (0, SHARDS)
    for becomes in (0, ANOTHER_COUNT, SHARDS)
}
CHANGES_OF_POLICY = {
    change: CHANGES[change] for change in ('0 to 0', '4 to 3')
}


@pytest.fixture(scope='class')
def replaced(two_proxies, owner) -> dict[str, str]:
    """Containers that were replaced during an upload, by the change.

    The daemons have run since.
    """
    replaced = {
        change: upload_and_replace(owner, *counts)
        for change, counts in CHANGES.items()
    }
    for container in replaced.values():
        assert_readable(owner, container, {MOVING})
    settle(two_proxies)
    return replaced


def upload_and_replace(
    client: Client, was: int, becomes: int, **policy: str
) -> str:
    headers = {key.replace('_', '-'): value for key, value in policy.items()}
    container = make_sharded(client, was) if was else make_plain(client)

    def meanwhile() -> None:
        other = connection_of(client)
        assert other.delete(container).status == 204
        if becomes:
            headers.update(with_count(becomes))
        assert other.put(container, headers=headers).status == 201

    return upload(client, container, meanwhile)


@pytest.mark.parametrize('change', CHANGES)
class TestReplacementDuringUpload:
    def test_keeps_the_object(self, client, replaced, change):
        assert_kept(client, replaced[change], {MOVING})

    def test_changes_nothing_else(self, client, backing, replaced, change):
        container = replaced[change]
        _was, becomes = CHANGES[change]
        assert shard_count(client, container) == (becomes or None)
        assert client.put(container, MOVING, b'again').status == 201
        assert client.get(container, MOVING).body == b'again'
        (row,) = client.listing(container).json()
        assert row['bytes'] == len(b'again')
        empty(client, container)
        assert client.delete(container).status == 204
        assert_invisible(client, backing, container)


@pytest.fixture(scope='class')
def moved(two_proxies, owner) -> dict[str, str]:
    """Containers whose replacement has another storage policy, by the change.

    They were replaced during an upload; the daemons have run since.
    """
    moved = {
        change: upload_and_replace(owner, *counts, X_Storage_Policy='Policy-1')
        for change, counts in CHANGES_OF_POLICY.items()
    }
    settle(two_proxies)
    for container in moved.values():
        assert owner.listing(container).names() == []
    two_proxies.daemon('container-replicator')
    # The reconciler finds an earlier hour's queue only by the account listing.
    two_proxies.daemon('container-updater')
    two_proxies.daemon('container-reconciler')
    return moved


@pytest.mark.parametrize('change', CHANGES_OF_POLICY)
class TestChangeOfPolicyDuringUpload:
    def test_keeps_the_object(self, client, moved, change):
        assert client.head(moved[change]).headers['x-storage-policy'] == (
            'Policy-1'
        )
        assert_kept(client, moved[change], {MOVING})

    def test_leaves_a_container_that_can_be_deleted(
        self, client, backing, moved, change
    ):
        empty(client, moved[change])
        assert client.delete(moved[change]).status == 204
        assert_invisible(client, backing, moved[change])


def at_once(*calls: Callable) -> list:
    """Call functions at the same time; return their results."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(c) for c in calls]]


def uploads(client: Client, container: str, count: int) -> set[str]:
    """Upload objects; return the names that were acknowledged."""
    prefix = unique('o')
    names = [f'{prefix}-{i}' for i in range(count)]
    return {
        name
        for name in names
        if client.put(container, name, b'x').status == 201
    }


class TestConcurrentCreates:
    ROUNDS = range(2)

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
        winner = shard_count(racers[0], container)
        accepted = [s for shards, s, _ in outcomes if shards == winner]
        refused = [s for shards, s, _ in outcomes if shards != winner]
        assert sorted(accepted) == [201, 202]
        assert refused == [409] * 4
        acknowledged = [names for _shards, _status, names in outcomes]
        assert_kept(racers[0], container, set.union(*acknowledged))


def race(racers: list[Client], container: str, *changes: Callable) -> set:
    """Upload while a container changes; return the acknowledged names."""
    calls = [
        functools.partial(uploads, racer, container, 6) for racer in racers[:3]
    ]
    return set.union(*at_once(*calls, *changes)[:3])


class TestDeleteRacesUploads:
    def test_no_acknowledged_object_is_lost(self, two_proxies, racers):
        acknowledged = {}
        for shards in (1, 2, 8) * 2:
            container = make_sharded(racers[0], shards)
            acknowledged[container] = race(
                racers,
                container,
                functools.partial(racers[3].delete, container),
                functools.partial(racers[4].delete, container),
            )
        settle(two_proxies)
        for container, names in acknowledged.items():
            assert_kept(racers[5], container, names)

    def test_and_creates_without_losing_an_object(self, two_proxies, racers):
        acknowledged = {}
        for count in (0, 1, SHARDS + 1):
            container = make_sharded(racers[0])
            headers = with_count(count) if count else {}
            acknowledged[container] = race(
                racers,
                container,
                functools.partial(racers[3].delete, container),
                functools.partial(racers[4].put, container, headers=headers),
            )
        settle(two_proxies)
        for container, names in acknowledged.items():
            assert_kept(racers[5], container, names)


class TestKilledProxy:
    """A proxy that is killed in the middle of a request and restarted."""

    @pytest.fixture
    def killed_when(self, two_proxies, client):
        """Return a function that kills a proxy during a request.

        It kills the proxy once a condition holds, and removes its lock.
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

    @pytest.fixture
    def half_created(self, client, backing, killed_when) -> str:
        """A name whose creation a killed proxy has not completed."""
        container = unique('killed')
        killed_when(
            container,
            lambda: backing.shards(container),
            lambda: create(client, container, MANY_SHARDS),
        )
        assert client.head(container).status == 404
        return container

    def test_repeated_create_completes_it(self, client, backing, half_created):
        assert create(client, half_created, MANY_SHARDS) == 201
        assert_whole(client, backing, half_created, MANY_SHARDS)
        assert_takes_objects(client, half_created)

    def test_the_name_is_free(self, client, half_created):
        assert client.delete(half_created).status == 404
        assert client.put(half_created).status == 201
        assert shard_count(client, half_created) is None
        assert_takes_objects(client, half_created)

    def test_repeated_delete_completes_it(self, client, backing, killed_when):
        container = make_sharded(client, MANY_SHARDS)
        killed_when(
            container,
            lambda: not backing.has_root(container),
            lambda: client.delete(container),
        )
        assert client.delete(container).status == 404
        assert client.get(container).status == 404
        assert create(client, container, ANOTHER_COUNT) == 201
        assert_whole(client, backing, container, ANOTHER_COUNT)
        assert_takes_objects(client, container)


def pid_of(cluster: Cluster, name: str) -> int:
    return {each.server.name: each.pid for each in cluster.status()}[name]


def release_lock(cluster: Cluster, account: str, container: str) -> None:
    key = LOCK_KEY.format(account=account, container=container)
    memcached_of(cluster).delete(key)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, 'waited in vain'
