# SPDX-License-Identifier: Apache-2.0
"""Container sync between two clusters, in both directions.

A pair of plain containers shows what Swift does. Pairs with sharded containers
must do the same.
"""

import itertools
import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Answer, Client
from test.functional.conftest import SHARD_COUNT_HEADER, USER, unique

KEY = 'a shared key'
DAEMON = 'container-sync'
SHARDS = 4

#: The second pass looks again at what the first one has sent.
PASSES = 2

SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
}

KINDS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: str(SHARDS)}}
PAIRS = ['-to-'.join(kinds) for kinds in itertools.product(KINDS, repeat=2)]

NAMES = ['o', 'with space', '\u2603/\u00e4?#%20', 'a/b', *map(str, range(8))]


class Side(NamedTuple):
    """One of the two clusters.

    :param name: what the other one calls it
    """

    name: str
    cluster: Cluster
    client: Client


class Container(NamedTuple):
    """A container on one side."""

    side: Side
    name: str

    @property
    def sync_to(self) -> str:
        """Return what syncs to this container."""
        account = self.side.client.account
        return f'//saio/{self.side.name}/{account}/{self.name}'

    def ask(self, method: str, name: str | None = None, **kwargs) -> Answer:
        """Send a request that must succeed."""
        answer = self.side.client.request(method, self.name, name, **kwargs)
        assert answer.status < 300, (method, name, answer)
        return answer

    def status(self, name: str) -> int:
        """Return the status of a GET of an object."""
        return self.side.client.get(self.name, name).status

    def rows(self) -> list[dict]:
        """Return the rows of the listing."""
        return self.ask('GET', query={'format': 'json'}).json()

    def bodies(self) -> dict[str, bytes]:
        """Return the bodies of all listed objects by name."""
        return {
            row['name']: self.ask('GET', row['name']).body
            for row in self.rows()
        }


class Pair(NamedTuple):
    """Two containers that sync to each other."""

    here: Container
    there: Container

    def assert_alike(self) -> None:
        """Check that both list the same objects, and have them."""
        here, there = map(listed_objects, self)
        assert here == there
        assert self.here.bodies() == self.there.bodies()


def listed_objects(container: Container) -> list[tuple]:
    """Return what both sides list alike.

    The size of a large object is that of its manifest on the side that has
    got it by container sync.
    """
    keys = ('name', 'hash', 'content_type', 'last_modified')
    return [tuple(row[key] for key in keys) for row in container.rows()]


def listed_figures(container: Container) -> list[tuple]:
    """Return what all pairs list alike."""
    return [
        (row['name'], row['content_type'], row['bytes'], 'slo_etag' in row)
        for row in container.rows()
    ]


@pytest.fixture(scope='module')
def sides(tmp_path_factory) -> Iterator[tuple[Side, Side]]:
    """Two clusters that know each other."""
    options = ClusterOptions(settings=SETTINGS)
    here, there = (
        Cluster(tmp_path_factory.mktemp(name), options)
        for name in ('here', 'there')
    )
    with here, there:
        acquaint(here, 'there', there)
        acquaint(there, 'here', here)
        yield side('here', here), side('there', there)


def acquaint(cluster: Cluster, name: str, other: Cluster) -> None:
    """Tell one cluster where another one is."""
    setting = f'container-sync-realms.cluster_{name}'
    url = f'{other.proxy_urls[0]}/v1/'
    assert cluster.reconfigure({setting: url}) == []


def side(name: str, cluster: Cluster) -> Side:
    key = cluster.users[USER]
    return Side(name, cluster, Client.login(cluster.auth_url, USER, key))


def make_pair(sides: tuple[Side, Side], kinds: str) -> Pair:
    """Create two containers that sync to each other.

    :param kinds: such as ``plain-to-sharded``
    """
    name = unique('pair')
    pair = Pair(*(Container(side, name) for side in sides))
    for kind, own, other in zip(
        kinds.split('-to-'), pair, reversed(pair), strict=True
    ):
        headers = {
            **KINDS[kind],
            'X-Container-Sync-To': other.sync_to,
            'X-Container-Sync-Key': KEY,
        }
        own.ask('PUT', headers=headers)
    return pair


def sync(sides: tuple[Side, Side]) -> None:
    """Run the daemons of both sides until everything is sent."""
    for each in sides * PASSES:
        each.cluster.daemon(DAEMON)


def errors(sides: tuple[Side, Side]) -> list[str]:
    """Return what the daemons have logged of rows that they cannot sync."""
    return [
        line
        for each in sides
        for line in each.cluster.log_path(DAEMON).read_text().splitlines()
        if ' ERROR ' in line
    ]


def put_large_object(container: Container) -> None:
    """Put a large object, with its segments in the same container."""
    path = f'/{container.name}/segment'
    container.ask('PUT', 'segment', body=b'01234')
    container.ask(
        'PUT',
        'large',
        body=json.dumps([{'path': path}, {'path': path}]).encode(),
        query={'multipart-manifest': 'put'},
    )


def fill(pair: Pair) -> None:
    """Upload to both sides."""
    here, there = pair
    for name in NAMES:
        here.ask('PUT', name, body=name.encode())
    for name in NAMES[::2]:
        there.ask('PUT', name, body=b'later')
    metadata = {'X-Object-Meta-Colour': 'red', 'Content-Type': 'text/x-own'}
    there.ask('PUT', 'metadata', headers=metadata)
    put_large_object(there)


def change(pair: Pair) -> None:
    """Overwrite, change and delete what is on both sides."""
    here, there = pair
    here.ask('PUT', 'o', body=b'overwritten here')
    there.ask('PUT', 'o', body=b'overwritten there')
    there.ask('DELETE', 'a/b')
    here.ask('DELETE', '1')
    there.ask('PUT', '1', body=b'after the deletion')
    there.ask('PUT', '2', body=b'before the deletion')
    here.ask('DELETE', '2')
    here.ask('POST', 'metadata', headers={'X-Object-Meta-Colour': 'blue'})


@pytest.fixture(scope='module')
def filled(sides) -> dict[str, Pair]:
    """One pair of each kind, with what was uploaded before the first pass."""
    pairs = {kinds: make_pair(sides, kinds) for kinds in PAIRS}
    for pair in pairs.values():
        fill(pair)
    sync(sides)
    return pairs


@pytest.fixture(scope='module')
def changed(sides, filled) -> dict[str, Pair]:
    """The same pairs, with what was changed before the next pass."""
    uploaded = {kinds: pair.here.bodies() for kinds, pair in filled.items()}
    for kinds, pair in filled.items():
        pair.assert_alike()
        assert uploaded[kinds] == uploaded[PAIRS[0]]
        change(pair)
    sync(sides)
    return filled


class TestSync:
    @pytest.fixture(params=PAIRS)
    def pair(self, request, changed) -> Pair:
        return changed[request.param]

    def test_last_write_wins_on_both_sides(self, pair):
        pair.assert_alike()
        expected = {name: name.encode() for name in NAMES[1::2]}
        expected |= dict.fromkeys(NAMES[::2], b'later')
        del expected['a/b'], expected['2']
        assert pair.here.bodies() == {
            **expected,
            'o': b'overwritten there',
            '1': b'after the deletion',
            'metadata': b'',
            'segment': b'01234',
            'large': b'0123401234',
        }

    def test_metadata_comes_along(self, pair):
        for container in pair:
            shown = container.ask('HEAD', 'metadata').headers
            assert shown['x-object-meta-colour'] == 'blue'
            assert shown['content-type'] == 'text/x-own'

    def test_large_object_stays_one(self, pair):
        for container in pair:
            shown = container.ask('HEAD', 'large').headers
            assert shown['x-static-large-object'] == 'True'

    def test_rows_are_those_of_plain_containers(self, changed, pair):
        for container, plain in zip(pair, changed[PAIRS[0]], strict=True):
            assert listed_figures(container) == listed_figures(plain)

    def test_nothing_is_left_to_do(self, sides, pair):
        assert errors(sides) == []
