# SPDX-License-Identifier: Apache-2.0
"""Backing containers that Swift's own container-sharder splits.

Operators may run it with ``auto_shard``. The sums of a split container are
those that its ranges last reported: the next run of the sharder brings them up
to date, as it does for any container that Swift has split.
"""

from pathlib import Path

import pytest
from shardmw_bench.databases import databases, is_split
from shardmw_bench.targets.native import begin_sharding
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import hidden_account, shard_of
from test.functional.alike import make_twins, masked
from test.functional.archives import archive_of
from test.functional.backing import Backing
from test.functional.client import Client
from test.functional.conftest import USER, Pair, make_plain, make_sharded
from test.functional.operating import settle
from test.functional.unfiltered import running_unfiltered_proxy

SHARDER = 'container-sharder'
UPDATER = 'container-updater'
SHARDS = 2
NAMES = tuple(f'{d}/{i:02}' for d in 'abc' for i in range(16))
#: The names in the shard that is split, and where it is split.
SPLIT_NAMES = [name for name in NAMES if shard_of(name, SHARDS) == 0]
BOUNDS = [SPLIT_NAMES[len(SPLIT_NAMES) * i // 3] for i in (1, 2)]
RANGES = len(BOUNDS) + 1
MOST_RUNS = 6


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    """A cluster of its own: the sharder visits all containers."""
    # Each run of the sharder splits off one range.
    options = ClusterOptions(settings={f'{SHARDER}.cleave_batch_size': '1'})
    with Cluster(tmp_path_factory.mktemp('native'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def login(cluster):
    """Return a function that logs in the owner again after a restart."""

    def logged_in(user: str = USER) -> Client:
        return Client.login(cluster.auth_url, user, cluster.users[user])

    return logged_in


@pytest.fixture
def client(login) -> Client:
    """The owner."""
    return login()


@pytest.fixture(scope='module')
def unfiltered(cluster, login) -> Client:
    """The owner at a proxy that has no shardmw."""
    with running_unfiltered_proxy(cluster) as url:
        yield login().on(url)


@pytest.fixture(scope='module')
def backing(unfiltered) -> Backing:
    """The backing containers of the owner's sharded containers."""
    return Backing(unfiltered)


def fill(client: Client, container: str) -> None:
    """Store an object under each name."""
    archive = archive_of({name: name.encode() for name in NAMES})
    path = f'{client.path(container)}?extract-archive=tar'
    assert client.raw('PUT', path, body=archive).status == 200


class Containers:
    """Sharded containers whose first shard is being split.

    :ivar twins: a plain container, and a sharded one of the same objects
    :ivar known: a sharded container whose shards the proxy has just used
    :ivar doomed: a sharded container that is to be deleted
    """

    def __init__(
        self, cluster: Cluster, client: Client, backing: Backing
    ) -> None:
        self.cluster = cluster
        self.account = hidden_account(client.account)
        self.twins = make_twins(client, SHARDS)
        self.known = make_sharded(client, SHARDS)
        self.doomed = make_sharded(client, SHARDS)
        self.split_names = []
        for container in (*self.twins, self.known, self.doomed):
            fill(client, container)
        for container in (self.twins.sharded, self.known, self.doomed):
            name = backing.shard_name(container, 0)
            self.split_names.append(name)
            begin_sharding(self._database(name), BOUNDS, '.shards_')

    def _database(self, name: str) -> Path:
        (database,) = databases(self.cluster, self.account, name)
        return database

    def are_split(self) -> bool:
        """Return True if the sharder has nothing more to do."""
        roots = map(self._database, self.split_names)
        return all(is_split(root, RANGES) for root in roots)


@pytest.fixture(scope='module')
def splitting(cluster, login, backing) -> Containers:
    """Containers with one range split off, as the sharder leaves them."""
    owner = login()
    containers = Containers(cluster, owner, backing)
    cluster.daemon(SHARDER)
    assert not containers.are_split()
    # The proxy has just used the shards and does not look them up again yet.
    change(owner, containers.known)
    restart_proxy(cluster)
    return containers


@pytest.fixture(scope='module')
def split(cluster, splitting) -> Containers:
    """Containers that the sharder has split."""
    for _run in range(MOST_RUNS):
        cluster.daemon(SHARDER)
        if splitting.are_split():
            break
    assert splitting.are_split()
    # The rows of a proxy that did not know of the ranges move into them now.
    cluster.daemon(SHARDER)
    restart_proxy(cluster)
    return splitting


def restart_proxy(cluster: Cluster) -> None:
    """Restart the proxy and memcached, to empty the caches."""
    for server in ('proxy-1', 'memcached'):
        cluster.stop(server)
    for server in ('memcached', 'proxy-1'):
        cluster.start(server)


def change(client: Client, container: str) -> None:
    """Overwrite and delete objects of each range, and store new ones."""
    for first in (SPLIT_NAMES[0], BOUNDS[0], BOUNDS[1], SPLIT_NAMES[-1]):
        assert client.put(container, first, b'overwritten').status == 201
        assert client.put(container, f'{first}-new', b'new').status == 201
    for gone in (SPLIT_NAMES[1], SPLIT_NAMES[-2], NAMES[7]):
        assert client.delete(container, gone).status == 204
    headers = {'Content-Type': 'text/posted'}
    assert client.post(container, NAMES[9], headers=headers).status == 202


def rows_of(client: Client, container: str) -> list[tuple]:
    """Return the rows of a listing, without their times."""
    return [
        (row['name'], row['bytes'], row['hash'], row['content_type'])
        for row in client.listing(container).json()
    ]


LISTINGS = (
    'format=json', 'format=xml', 'format=plain', 'limit=7', 'reverse=on',
    'delimiter=/', 'prefix=b/', 'prefix=a/0', 'marker=a/09&end_marker=c/02',
    'delimiter=/&reverse=on', 'prefix=b/&delimiter=0', 'path=b',
    f'marker={BOUNDS[0]}', f'marker={BOUNDS[1]}&reverse=on', 'prefix=none',
    f'end_marker={BOUNDS[1]}&limit=9', 'limit=0', 'limit=x', 'prefix=%00',
)  # fmt: skip


def assert_listed_alike(client: Client, twins: Pair, query: str) -> None:
    for headers in ({}, {'X-Newest': 'true'}):
        plain, sharded = (
            masked(
                client.get(container, query=query, headers=headers), container
            )
            for container in twins
        )
        assert sharded == plain


class TestWhileItIsSplit:
    @pytest.mark.parametrize('query', LISTINGS)
    def test_is_listed_as_a_plain_container(self, client, splitting, query):
        assert_listed_alike(client, splitting.twins, query)

    def test_shows_the_figures_of_a_plain_container(self, client, splitting):
        plain, sharded = (
            masked(client.head(container), container)
            for container in splitting.twins
        )
        assert sharded == plain

    def test_is_listed_in_any_order(self, client, splitting):
        listing = client.listing(
            splitting.twins.sharded, allow_unordered='true'
        )
        assert sorted(listing.names()) == sorted(NAMES)

    def test_is_not_deleted(self, client, splitting):
        assert client.delete(splitting.doomed).status == 409


class TestOnceItIsSplit:
    @pytest.mark.parametrize('query', LISTINGS)
    def test_is_listed_as_a_plain_container(self, client, split, query):
        assert_listed_alike(client, split.twins, query)

    @pytest.mark.parametrize('limit', [5])
    @pytest.mark.parametrize('order', ['reverse=no', 'reverse=on'])
    def test_is_listed_by_pages(self, client, split, limit, order):
        names, marker = [], ''
        while page := client.get(
            split.twins.sharded,
            query=f'format=json&limit={limit}&marker={marker}&{order}',
        ).names():
            names += page
            marker = page[-1]
        assert names == sorted(NAMES, reverse=order.endswith('on'))

    def test_is_listed_in_any_order(self, client, split):
        names, marker = [], ''
        while page := client.listing(
            split.twins.sharded,
            allow_unordered='true',
            limit=5,
            marker=marker,
        ).names():
            names += page
            marker = page[-1]
        assert sorted(names) == sorted(NAMES)

    def test_shows_the_figures_of_a_plain_container(self, client, split):
        plain, sharded = (
            masked(client.head(container), container)
            for container in split.twins
        )
        assert sharded == plain

    def test_objects_are_read(self, client, split):
        for name in NAMES[::5]:
            got = client.get(split.twins.sharded, name)
            assert got.body == name.encode()

    def test_rows_of_a_proxy_that_did_not_know_the_ranges_are_listed(
        self, client, split
    ):
        plain = make_plain(client)
        fill(client, plain)
        change(client, plain)
        assert rows_of(client, split.known) == rows_of(client, plain)

    def test_takes_in_strays(
        self, cluster, client, unfiltered, backing, split
    ):
        container = split.known
        before = client.listing(container).names()
        strays = [f'{name}-stray' for name in NAMES[::6]]
        for name in strays:
            assert unfiltered.put(container, name, b'astray').status == 201
        listed = client.listing(container).names()
        assert listed == sorted([*before, *strays])
        settle(cluster)
        assert backing.root_names(container) == []
        assert client.listing(container).names() == listed


@pytest.fixture(scope='module')
def changed(login, split) -> Containers:
    """The containers after :func:`change`."""
    for container in split.twins:
        change(login(), container)
    return split


class TestChanges:
    """Tests that come last, as they change the containers."""

    def test_are_listed_at_once(self, client, changed):
        plain, sharded = (rows_of(client, each) for each in changed.twins)
        assert sharded == plain

    def test_show_in_the_figures_once_they_are_reported(
        self, cluster, client, changed
    ):
        cluster.daemon(SHARDER)
        plain, sharded = (
            masked(client.head(container), container)
            for container in changed.twins
        )
        assert sharded == plain

    def test_show_in_the_account_once_they_are_reported(
        self, cluster, client, changed
    ):
        cluster.daemon(SHARDER)
        cluster.daemon(UPDATER)
        rows = {row['name']: row for row in client.listing().json()}
        plain, sharded = (rows[each] for each in changed.twins)
        assert sharded['count'] == plain['count']
        assert sharded['bytes'] == plain['bytes']

    def test_container_with_an_unreported_object_is_not_deleted(
        self, cluster, client, split
    ):
        for name in NAMES:
            assert client.delete(split.doomed, name).status == 204
        cluster.daemon(SHARDER)
        name = SPLIT_NAMES[0]
        assert client.put(split.doomed, name, b'body').status == 201
        assert client.delete(split.doomed).status == 409
        assert client.get(split.doomed, name).body == b'body'
        assert client.listing(split.doomed).names() == [name]

    def test_emptied_container_can_be_deleted_and_recreated(
        self, cluster, client, split
    ):
        for name in client.listing(split.doomed).names():
            assert client.delete(split.doomed, name).status == 204
        assert client.delete(split.doomed).status == 204
        assert client.listing(split.doomed).status == 404
        count = {'X-Container-Shard-Count': '3'}
        assert client.put(split.doomed, headers=count).status == 201
        assert client.put(split.doomed, 'o', b'anew').status == 201
        for daemon in (SHARDER, UPDATER):
            cluster.daemon(daemon)
        assert client.put(split.doomed).status == 202
        assert client.listing(split.doomed).names() == ['o']
        headers = client.head(split.doomed).headers
        assert headers['x-container-object-count'] == '1'
