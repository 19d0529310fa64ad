# SPDX-License-Identifier: Apache-2.0
"""More cases in which a missing database could pass for an answer."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardmw_saio import Cluster
from swift.container.backend import ContainerBroker

from shardmw.core.layout import Layout, id_of_time, parse_record
from shardmw.core.placement import (
    backing_container,
    hidden_account,
    shard_of,
    versions_container,
)
from test.functional.backing import (
    RECORD_HEADER,
    Backing,
    databases,
    forget_rows,
    name_in_shard,
    put_rows,
    write_record,
)
from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, make_sharded, unique
from test.functional.proof.conftest import PREFERRED
from test.functional.proof.replicas import (
    BODY,
    EMPTY,
    HOLDER,
    Stored,
    listed_by_replicas,
    missing,
    paused,
    readable,
    stopped,
)

NAMES = ['a', 'b', 'c', 'd']

VERSIONED = {'X-Versions-Enabled': 'true'}

#: How often two proxies create one container at the same time.
RACES = 3


class TestAccount:
    def test_with_objects_that_one_silent_replica_lists_is_not_deleted(
        self, cluster, client, fill
    ):
        stored = fill(make_sharded(client, 1), NAMES)
        with missing(cluster, stored.shards, EMPTY), paused(cluster, HOLDER):
            status = client.delete().status
        assert status in (409, 503)
        assert client.head().status == 204
        assert client.listing(stored.container).names() == NAMES


class TestShardThatOnlyADownServerHas:
    """A shard created in its place would list less than it does."""

    @pytest.fixture
    def lost(self, cluster, client, fill, backing) -> Iterator[Stored]:
        """A container with such a shard, and with a late row for it."""
        late = name_in_shard(0, 2)
        stored = fill(make_sharded(client, 2), [*NAMES, late])
        shard = stored.shards[0]
        make_late(cluster, client, backing, shard, stored.container, late)
        with missing(cluster, [shard], EMPTY):
            yield stored

    def test_is_not_created_by_requests(self, cluster, client, lost):
        with stopped(cluster, HOLDER):
            client.put(lost.container, headers={SHARD_COUNT_HEADER: '2'})
            client.head(lost.container)
            assert client.listing(lost.container).status == 503
            assert client.listing(lost.container).status == 503
        assert set(NAMES) <= set(client.listing(lost.container).names())

    def test_is_not_created_by_the_daemon(
        self, cluster, client, lost, resharder
    ):
        with stopped(cluster, HOLDER):
            resharder.once()
            assert client.listing(lost.container).status == 503
        assert set(NAMES) <= set(client.listing(lost.container).names())

    def test_is_not_created_by_an_audit(self, cluster, client, lost, admin):
        with stopped(cluster, HOLDER):
            ran = admin('audit', lost.root, '--repair')
            assert ran.returncode == 1
            assert client.listing(lost.container).status == 503
        assert set(NAMES) <= set(client.listing(lost.container).names())

    def test_gets_its_late_row_when_it_is_back(
        self, cluster, client, fill, backing, resharder
    ):
        late = name_in_shard(0, 2)
        stored = fill(make_sharded(client, 2), [*NAMES, late])
        shard = stored.shards[0]
        make_late(cluster, client, backing, shard, stored.container, late)
        with missing(cluster, [shard], EMPTY):
            resharder.once()
        resharder.once()
        assert client.listing(stored.container).names() == stored.names


def make_late(
    cluster: Cluster,
    client: Client,
    backing: Backing,
    shard: str,
    container: str,
    name: str,
) -> None:
    """Put the row of an object into a shard of an earlier layout.

    :param shard: the shard that the row is removed from
    """
    hidden = hidden_account(client.account)
    hour_ago = id_of_time(time.time() - 3600)
    earlier = backing_container(container, hour_ago, 0)
    backing.put_shard(container, earlier)
    forget_rows(cluster, *shard.split('/', 1), [name])
    put_rows(cluster, hidden, earlier, [name])
    cluster.daemon('container-updater')


class TestDeleteOfAnObjectDuringAChange:
    @pytest.fixture
    def changing(self, cluster, client, fill, backing) -> Stored:
        """A container whose rows are about to move from 2 shards to 4."""
        stored = fill(make_sharded(client, 2), NAMES)
        layout = self.layout(cluster, stored)
        layout = layout.announced(4, time.time()).moving(time.time())
        for shard in range(layout.shards):
            backing.put_shard(
                stored.container,
                backing_container(stored.container, layout.id, shard),
            )
        place = stored.root.split('/', 1)
        write_record(cluster, *place, layout.to_record())
        backing.forget(stored.container)
        return stored

    def layout(self, cluster: Cluster, stored: Stored) -> Layout:
        """Return the layout that a container has."""
        path = next(databases(cluster, *stored.root.split('/', 1)))
        record, _ = ContainerBroker(str(path)).metadata[RECORD_HEADER]
        return parse_record(record)

    def test_is_refused_if_the_old_place_cannot_take_the_tombstone(
        self, cluster, client, changing
    ):
        container, name = changing.container, NAMES[0]
        assert client.listing(container).names() == NAMES
        old = changing.shards[shard_of(name, 2)]
        with missing(cluster, [old], EMPTY), paused(cluster, HOLDER):
            status = client.delete(container, name).status
        assert status == 503
        assert client.delete(container, name).status in (204, 404)
        assert client.listing(container).names() == NAMES[1:]


class TestVersions:
    """The versions container was given shards while a server was down.

    On that server it is still plain, and a proxy reads this server first.
    """

    UPLOADS = 3

    @pytest.fixture
    def versioned(self, cluster, client, unfiltered) -> str:
        container = make_sharded(client, 2)
        # The versions container is plain at first.
        assert unfiltered.post(container, headers=VERSIONED).status == 204
        with stopped(cluster, PREFERRED):
            answer = client.post(container, headers=VERSIONED)
            assert answer.status == 204
        for _ in range(self.UPLOADS):
            assert client.put(container, 'o', BODY).status == 201
        return container

    def test_are_all_listed(self, client, cold, versioned):
        listed = [
            each.listing(versioned, versions='') for each in (client, cold)
        ]
        assert [answer.status for answer in listed] == [200, 200]
        assert [answer.names() for answer in listed] == [
            ['o'] * self.UPLOADS
        ] * 2

    def test_have_their_rows_in_shards(self, cluster, client, cold, versioned):
        assert cold.put(versioned, 'o', BODY).status == 201
        cluster.daemon('object-updater')
        root = f'{client.account}/{versions_container(versioned)}'
        assert listed_by_replicas(cluster, root) == [[], [], []]

    def test_do_not_stay_listed(self, client, cold, versioned):
        # The other proxy has just read that the root lists nothing.
        assert client.listing(versioned, versions='').status == 200
        uploaded = cold.put(versioned, 'o', BODY)
        assert uploaded.status == 201
        version = uploaded.headers['x-object-version-id']
        query = {'version-id': version}
        assert client.delete(versioned, 'o', query=query).status == 204
        for each in (client, cold):
            rows = each.listing(versioned, versions='').json()
            assert version not in [row['version_id'] for row in rows]


class TestCreatesByProxiesWithoutACommonMemcached:
    def test_lose_no_acknowledged_upload(
        self, cluster, client, cold, resharder
    ):
        containers = [unique('race') for _ in range(RACES)]
        stored = {each: race(each, client, cold) for each in containers}
        cluster.daemon('object-updater')
        cluster.daemon('container-updater')
        resharder.once()
        for container, names in stored.items():
            for each in (client, cold):
                assert each.listing(container).names() == names
            assert readable(client, container, names) == names


def race(container: str, *clients: Client) -> list[str]:
    """Create a container at several proxies, and upload at once.

    :returns: the names of the uploads that were acknowledged, sorted
    """

    def work(number: int, client: Client) -> list[str]:
        headers = {SHARD_COUNT_HEADER: str(number + 2)}
        client.put(container, headers=headers)
        names = [f'{name}-{number}' for name in NAMES]
        return [n for n in names if client.put(container, n).status == 201]

    with ThreadPoolExecutor(len(clients)) as pool:
        uploaded = pool.map(work, range(len(clients)), clients)
        return sorted(sum(uploaded, []))
