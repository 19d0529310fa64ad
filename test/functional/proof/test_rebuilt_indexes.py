# SPDX-License-Identifier: Apache-2.0
"""A shard is lost on all servers, and the object-auditors rebuild its index.

All names that begin with ``d/`` are in the shard that is lost.
"""

import json
import shutil
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from shardmw_saio import Cluster

from shardmw.core.placement import hidden_account, shard_of
from test.functional.backing import Backing, databases, forget_rows
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_DEPTH_HEADER,
    SHARDS,
    make_plain,
    make_sharded,
)
from test.functional.operating import wait_until
from test.functional.proof.replicas import BODY, NODES, listed_by_replicas

DEPTH = 1
LOST = 'd/'
OTHERS = ['e/o', 'f/o', 'h/o']
DELETED = ['d/deleted-1', 'd/deleted-2']

#: Deleted while the object server of one node was down.
STALE = 'd/stale'
DOWN = f'object-{NODES[-1]}'


class Rebuilt(NamedTuple):
    """A container whose lost shard was created again and filled.

    :param before: its listing before the loss
    :param after_loss: the status of a listing then
    :param relisted: the names that the auditors have relisted: while the
                     shard was missing, when it was there again, and after that
    :param empty: its listing while the shard was empty
    :param after: its listing at the end
    """

    before: list[dict]
    after_loss: int
    relisted: list[set[str]]
    empty: list[dict]
    after: list[dict]


@pytest.fixture(scope='class')
def rebuilt(cluster, client, backing, admin) -> Rebuilt:
    container = make_sharded(client, **{SHARD_DEPTH_HEADER: str(DEPTH)})
    path = f'{client.account}/{container}'
    upload(client, container)
    delete(cluster, client, container)
    shards = shards_by_name(client, backing, container)
    wait_until(lambda: replicas_agree(cluster, shards.values()))
    before = client.listing(container).json()
    lose(cluster, shards[LOST])
    after_loss = client.listing(container).status
    relisted = [audited(cluster, path)]
    ran = admin('audit', path, '--repair', '--accept-loss')
    assert ran.returncode == 0, ran
    empty = client.listing(container).json()
    relisted.append(audited(cluster, path))
    after = client.listing(container).json()
    relisted.append(audited(cluster, path))
    return Rebuilt(before, after_loss, relisted, empty, after)


def upload(client: Client, container: str) -> None:
    """Upload objects of several kinds, most of them into the lost shard."""
    for name in [*OTHERS, *DELETED, STALE, 'd/o', 'd/posted', 'd/ä 漢']:
        assert client.put(container, name, BODY).status == 201
    typed = {'Content-Type': 'text/x-posted'}
    segments = json.dumps(
        [{'path': f'/{container}/d/o', 'size_bytes': len(BODY)}]
    )
    for name in ('d/large', 'd/large-posted'):
        query = {'multipart-manifest': 'put'}
        answer = client.put(container, name, segments.encode(), query=query)
        assert answer.status == 201
    for name in ('d/posted', 'd/large-posted'):
        assert client.post(container, name, headers=typed).status == 202
    to = {'X-Symlink-Target': f'{container}/d/o'}
    assert client.put(container, 'd/link', headers=to).status == 201


def delete(cluster: Cluster, client: Client, container: str) -> None:
    """Delete objects, one of them while an object server is down."""
    for name in DELETED:
        assert client.delete(container, name).status == 204
    cluster.stop(DOWN)
    try:
        assert client.delete(container, STALE).status == 204
    finally:
        cluster.start(DOWN)


def shards_by_name(
    client: Client, backing: Backing, container: str
) -> dict[str, str]:
    """Return the path of the shard of each directory."""
    hidden = hidden_account(client.account)
    return {
        name: f'{hidden}/{backing.shard_name(container, shard)}'
        for name in (LOST, *OTHERS)
        for shard in [shard_of(name, SHARDS, DEPTH)]
    }


def replicas_agree(cluster: Cluster, places: Iterable[str]) -> bool:
    """Replicate rows; return True if all replicas list the same names."""
    cluster.daemon('object-updater')
    cluster.daemon('container-replicator')
    return all(
        names == listed[0]
        for listed in (listed_by_replicas(cluster, each) for each in places)
        for names in listed
    )


def lose(cluster: Cluster, place: str) -> None:
    """Delete a container's databases on all nodes."""
    paths = list(databases(cluster, *place.split('/', 1)))
    assert len(paths) == len(NODES)
    for path in paths:
        shutil.rmtree(path.parent)


def audited(cluster: Cluster, container: str) -> set[str]:
    """Run all object-auditors; return the names that they have relisted.

    :param container: the path of the container, ``account/container``
    """
    log = cluster.path / 'log' / 'object-auditor.log'
    start = log.stat().st_size if log.exists() else 0
    cluster.daemon('object-auditor')
    lines = log.read_bytes()[start:].decode().splitlines()
    assert sum('total relisted' in line for line in lines) == len(NODES), lines
    marked = f'relisted /{container}/'
    return {line.partition(marked)[2] for line in lines if marked in line}


def names_of(listing: list[dict]) -> list[str]:
    return [row['name'] for row in listing]


class TestRebuiltShard:
    def test_was_lost(self, rebuilt):
        assert rebuilt.after_loss == 503
        assert names_of(rebuilt.empty) == OTHERS

    def test_is_listed_as_before(self, rebuilt):
        assert rebuilt.after == rebuilt.before
        names = names_of(rebuilt.after)
        assert not {*DELETED, STALE} & {*names}
        assert len(names) == len(OTHERS) + 6

    def test_got_no_row_while_it_was_missing(self, rebuilt):
        assert rebuilt.relisted[0] == set()

    def test_got_only_the_rows_that_it_had_lost(self, rebuilt):
        lost = {n for n in names_of(rebuilt.before) if n.startswith(LOST)}
        assert rebuilt.relisted[1] == lost

    def test_is_not_changed_by_another_pass(self, rebuilt):
        assert rebuilt.relisted[2] == set()


class TestPlainContainer:
    def test_gets_back_a_row_that_was_lost(self, cluster, client, fill):
        stored = fill(make_plain(client), ['kept', 'lost'])
        before = client.listing(stored.container).json()
        forget_rows(cluster, client.account, stored.container, ['lost'])
        assert client.listing(stored.container).names() == ['kept']
        assert audited(cluster, stored.root) == {'lost'}
        assert client.listing(stored.container).json() == before

    def test_gets_back_all_rows_if_it_is_put_again(
        self, cluster, client, fill
    ):
        stored = fill(make_plain(client), ['a', 'b'])
        before = client.listing(stored.container).json()
        lose(cluster, stored.root)
        assert audited(cluster, stored.root) == set()
        assert client.put(stored.container).status == 201
        assert client.listing(stored.container).names() == []
        assert audited(cluster, stored.root) == {'a', 'b'}
        assert client.listing(stored.container).json() == before
