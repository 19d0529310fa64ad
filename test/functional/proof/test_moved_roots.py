# SPDX-License-Identifier: Apache-2.0
"""All primaries of a root have no database for a while.

A change of the ring has moved its partition, and replicators have yet to copy
the database. Clients, the daemon and an operator use the containers meanwhile.
"""

from typing import NamedTuple

import pytest

from test.functional.client import Client
from test.functional.conftest import MAKERS, SHARD_COUNT_HEADER, SHARDS
from test.functional.operating import wait_until
from test.functional.proof.replicas import (
    BODY,
    NODES,
    Stored,
    missing,
    readable,
)

NAMES = [f'o{i:02}' for i in range(40)]
UPLOADS = ['p', 'q', 'r']


class Moved(NamedTuple):
    """A container whose root was away.

    :param statuses: the statuses of requests that clients sent meanwhile
    """

    stored: Stored
    statuses: dict[str, int]


@pytest.fixture(scope='class')
def moved_roots(cluster, client, fill, admin, resharder) -> dict[str, Moved]:
    """Containers whose roots were away, by their kind."""
    stored = {kind: fill(make(client), NAMES) for kind, make in MAKERS.items()}
    cluster.daemon('container-updater')
    with missing(cluster, [each.root for each in stored.values()], NODES):
        statuses = {
            kind: statuses_of(client, each.container)
            for kind, each in stored.items()
        }
        resharder.once()
        for kind, each in stored.items():
            admin('audit', each.root, '--repair')
            statuses[kind]['GET later'] = client.get(each.container).status
    # Proxies cache the absence of the containers a moment longer.
    for each in stored.values():
        wait_until(lambda each=each: is_there(client, each.container))
    return {kind: Moved(stored[kind], statuses[kind]) for kind in MAKERS}


def statuses_of(client: Client, container: str) -> dict[str, int]:
    """Return the statuses of requests for a container."""
    return {
        'GET': client.get(container).status,
        'listing': client.listing(container).status,
        'HEAD': client.head(container).status,
    }


def is_there(client: Client, container: str) -> bool:
    """Return False if a container is missing."""
    return client.head(container).status != 404


@pytest.fixture(scope='class', params=MAKERS)
def moved(request, moved_roots) -> Moved:
    return moved_roots[request.param]


class TestRootThatWasAway:
    def test_was_missing_meanwhile(self, moved):
        assert set(moved.statuses.values()) == {404}, moved.statuses

    def test_is_listed_whole(self, client, moved):
        answer = client.listing(moved.stored.container)
        assert answer.status == 200
        assert answer.names() == NAMES

    def test_passes_an_audit(self, admin, moved):
        ran = admin('audit', moved.stored.root)
        assert (ran.returncode, ran.stdout) == (0, '')

    def test_is_not_deleted(self, client, moved):
        container = moved.stored.container
        assert client.delete(container).status == 409
        assert client.listing(container).names() == NAMES
        assert readable(client, container, NAMES) == NAMES


#: The headers of PUTs for containers of a kind.
PUTS = {
    'plain': ('plain', {}),
    'sharded': ('sharded', {}),
    'sharded-with-its-count': ('sharded', {SHARD_COUNT_HEADER: str(SHARDS)}),
}


@pytest.fixture(scope='class')
def uploaded(
    cluster, client, fill, resharder
) -> dict[str, tuple[Stored, list[str]]]:
    """Containers, and the uploads that were acknowledged meanwhile."""
    stored = {
        key: fill(MAKERS[kind](client), NAMES[:4])
        for key, (kind, _) in PUTS.items()
    }
    uploaded = {}
    with missing(cluster, [each.root for each in stored.values()], NODES):
        for key, (_, headers) in PUTS.items():
            container = stored[key].container
            client.put(container, headers=headers)
            uploaded[key] = [
                name
                for name in UPLOADS
                if client.put(container, name, BODY).status == 201
            ]
    for updater in ('object-updater', 'container-updater'):
        cluster.daemon(updater)
    resharder.once()
    return {key: (stored[key], uploaded[key]) for key in PUTS}


class TestPutWhileARootWasAway:
    """The accounts do not know yet how many objects there are."""

    @pytest.mark.parametrize('key', PUTS)
    def test_loses_nothing(self, client, uploaded, key):
        stored, acknowledged = uploaded[key]
        container = stored.container
        existing = readable(client, container, [*stored.names, *UPLOADS])
        assert {*stored.names, *acknowledged} <= set(existing)
        assert client.listing(container).names() == existing
        assert client.delete(container).status == 409
