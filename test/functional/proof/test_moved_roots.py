# SPDX-License-Identifier: Apache-2.0
"""All primaries of a root have no database for a while.

A change of the ring has moved its partition, and replicators have yet to copy
the database. Clients, the daemon and an operator come by meanwhile.
"""

from typing import NamedTuple

import pytest

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

    :param statuses: those of requests that clients sent meanwhile
    """

    stored: Stored
    statuses: dict[str, int]


@pytest.fixture(scope='class', params=MAKERS)
def moved(request, cluster, client, fill, admin, resharder) -> Moved:
    stored = fill(MAKERS[request.param](client), NAMES)
    container = stored.container
    cluster.daemon('container-updater')
    with missing(cluster, [stored.root], NODES):
        statuses = {
            'GET': client.get(container).status,
            'listing': client.listing(container).status,
            'HEAD': client.head(container).status,
        }
        resharder.once()
        admin('audit', stored.root, '--repair')
        statuses['GET later'] = client.get(container).status
    # Proxies remember a moment longer that there is no container.
    wait_until(lambda: client.head(container).status != 404)
    return Moved(stored, statuses)


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


class TestPutWhileARootWasAway:
    """No updater has told the accounts how many objects there are."""

    @pytest.mark.parametrize(
        ('kind', 'headers'),
        [
            ('plain', {}),
            ('sharded', {}),
            ('sharded', {SHARD_COUNT_HEADER: str(SHARDS)}),
        ],
        ids=['plain', 'sharded', 'sharded-with-its-count'],
    )
    def test_loses_nothing(
        self, cluster, client, fill, resharder, kind, headers
    ):
        stored = fill(MAKERS[kind](client), NAMES[:4])
        container = stored.container
        with missing(cluster, [stored.root], NODES):
            client.put(container, headers=headers)
            uploaded = [
                name
                for name in UPLOADS
                if client.put(container, name, BODY).status == 201
            ]
        for updater in ('object-updater', 'container-updater'):
            cluster.daemon(updater)
        resharder.once()
        existing = readable(client, container, [*stored.names, *UPLOADS])
        assert {*stored.names, *uploaded} <= set(existing)
        assert client.listing(container).names() == existing
        assert client.delete(container).status == 409
