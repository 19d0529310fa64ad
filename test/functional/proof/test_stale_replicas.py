# SPDX-License-Identifier: Apache-2.0
"""A container server was down while a container was deleted and recreated.

The container was plain and empty before, and is sharded now. The server is
back, and no replicator has run: a proxy that reads this server first, and does
not know the container, takes it for a plain one.
"""

from collections.abc import Iterator

import pytest

from shardmw.core.placement import shard_of
from test.functional.client import Client
from test.functional.conftest import MAKERS, SHARD_COUNT_HEADER, make_plain
from test.functional.operating import wait_until
from test.functional.proof.conftest import PREFERRED
from test.functional.proof.replicas import (
    BODY,
    listed_by_replicas,
    shards_of,
    stopped,
)

NAMES = ['a', 'b', 'c', 'd']
SHARDS = 4
EACH = 5

HEADERS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: str(SHARDS)}}


@pytest.fixture(scope='class')
def unread(cluster, client) -> dict[str, Iterator[str]]:
    """Recreated containers with objects, by their kind.

    The proxy that reads the stale server first has read none of them.
    """
    made = {kind: [make_plain(client) for _ in range(EACH)] for kind in MAKERS}
    with stopped(cluster, PREFERRED):
        for kind, containers in made.items():
            for container in containers:
                assert client.delete(container).status == 204
                answer = client.put(container, headers=HEADERS[kind])
                assert answer.status == 201
                for name in NAMES:
                    assert client.put(container, name, BODY).status == 201
    return {kind: iter(containers) for kind, containers in made.items()}


@pytest.fixture
def sharded(unread) -> str:
    return next(unread['sharded'])


@pytest.fixture(params=MAKERS)
def container(request, unread) -> str:
    return next(unread[request.param])


class TestColdProxyThatReadsTheStaleReplicaFirst:
    """Listings of a plain container may be stale, as its rows come later."""

    def test_lists_the_whole_container(self, cold, sharded):
        answer = cold.listing(sharded)
        assert answer.status == 200
        assert answer.names() == NAMES

    def test_counts_all_objects(self, cold, sharded):
        answer = cold.head(sharded)
        assert answer.status == 204
        assert answer.headers['x-container-object-count'] == str(len(NAMES))

    def test_sends_the_row_of_an_upload_to_its_shard(
        self, cluster, client, cold, backing, sharded
    ):
        assert cold.put(sharded, 'new', BODY).status == 201
        # Not every replica of the hidden account has heard of all shards.
        cluster.daemon('container-updater')
        shard = shards_of(client, backing, sharded)[shard_of('new', SHARDS)]

        def is_in_shard() -> bool:
            cluster.daemon('object-updater')
            replicas = listed_by_replicas(cluster, shard)
            return any('new' in names for names in replicas)

        wait_until(is_in_shard)
        root = listed_by_replicas(cluster, f'{client.account}/{sharded}')
        assert root == [[], [], []]

    def test_leaves_no_deleted_object_listed(self, client, cold, container):
        # The other proxy has just read that the root lists nothing.
        assert client.head(container).status == 204
        assert cold.put(container, 'new', BODY).status == 201
        assert client.delete(container, 'new').status == 204
        assert_not_listed('new', container, client, cold)

    def test_deletes_what_it_has_uploaded(self, client, cold, container):
        assert cold.put(container, 'new', BODY).status == 201
        assert cold.delete(container, 'new').status == 204
        assert_not_listed('new', container, client, cold)


def assert_not_listed(name: str, container: str, *clients: Client) -> None:
    """Check that no client sees an object in a listing."""
    for client in clients:
        answer = client.listing(container)
        assert answer.status == 200
        assert name not in answer.names()
