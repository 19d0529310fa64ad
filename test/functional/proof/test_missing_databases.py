# SPDX-License-Identifier: Apache-2.0
"""Two of three replicas have no database: their disks are new.

A server without a database answers 404, like one that knows of a deletion.
"""

import pytest

from test.functional.client import Client
from test.functional.conftest import MAKERS
from test.functional.proof.replicas import EMPTY, missing

NAMES = [f'o{i:02}' for i in range(20)]

HEADERS = {'X_Container_Read': '.r:*', 'X_Container_Meta_Colour': 'red'}

SHOWN = (
    'x-container-read',
    'x-container-meta-colour',
    'x-container-shard-count',
    'x-container-object-count',
)


def shown(client: Client, container: str) -> tuple:
    """Return what a client sees of a container."""
    head, listing = client.head(container), client.listing(container)
    headers = {name: head.headers.get(name) for name in SHOWN}
    names = listing.names() if listing.status == 200 else None
    return head.status, headers, listing.status, names


@pytest.mark.parametrize(
    ('kind', 'root_is_missing', 'shards_are_missing'),
    [
        ('plain', True, False),
        ('sharded', True, True),
        ('sharded', True, False),
        ('sharded', False, True),
    ],
    ids=['plain', 'root-and-shards', 'root', 'shards'],
)
def test_delete_of_a_container_is_refused_and_changes_nothing(
    cluster, client, fill, kind, root_is_missing, shards_are_missing
):
    stored = fill(MAKERS[kind](client, **HEADERS), NAMES)
    before = shown(client, stored.container)
    assert before[-1] == NAMES
    places = [stored.root] * root_is_missing
    places += stored.shards * shards_are_missing
    with missing(cluster, places, EMPTY):
        assert shown(client, stored.container) == before
        assert client.delete(stored.container).status == 409
        assert shown(client, stored.container) == before
    assert shown(client, stored.container) == before
