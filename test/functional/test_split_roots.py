# SPDX-License-Identifier: Apache-2.0
"""Changes of layout of containers that Swift's own sharder has split."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from shardmw_bench.databases import databases, parts
from shardmw_bench.kinds import native
from shardmw_bench.targets.native import (
    REPLICATOR,
    SHARDER,
    find_ranges,
    root_database,
    shard_natively,
)
from shardmw_saio import Cluster, ClusterOptions
from swift.common import direct_client
from swift.common.ring import Ring
from swift.common.utils import ShardRange, Timestamp
from swift.container.backend import ContainerBroker

from shardmw.core.paths import Place
from test.functional.client import Client
from test.functional.conftest import unique
from test.functional.history import Clients, etag_of_body
from test.functional.operating import (
    SETTINGS,
    SETTLE_SECONDS,
    Admin,
    admin_of,
    logins_at_two_proxies,
    shards_of,
    update,
    wait_for_phase,
)
from test.history import Write

NAMES = [f'o{i:02}' for i in range(24)]
#: The upper bounds of all ranges but the last.
BOUNDS = ['o07', 'o15']
BODY = b'body'
ETAG = etag_of_body(BODY)
SEED = int(time.time())
OPTIONS = ('--settle-seconds', SETTLE_SECONDS, '--despite-backlog')
#: The pause between two runs of the sharder.
PAUSE_SECONDS = 1

#: How many runs of the sharder a test waits for.
MOST_RUNS = 12

#: How long writers work before a change begins.
WARM_SECONDS = 3

REPORT = 'has yet to report'


@pytest.fixture(scope='module')
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    settings = {**SETTINGS, f'{SHARDER}.cleave_batch_size': '100'}
    options = ClusterOptions(replicas=3, settings=settings)
    with Cluster(tmp_path_factory.mktemp('split'), options) as cluster:
        yield cluster


clients = pytest.fixture(scope='module')(logins_at_two_proxies)


@pytest.fixture
def client(clients) -> Client:
    return clients[0]()


admin = pytest.fixture(scope='module')(admin_of)


@pytest.fixture
def filled(client) -> str:
    """A plain container with objects."""
    container = unique('split')
    assert client.put(container).status == 201
    for name in NAMES:
        assert client.put(container, name, BODY).status == 201
    return container


@pytest.fixture
def split(cluster, client, filled) -> str:
    """A container that Swift's sharder has split into three ranges."""
    shard_natively(cluster, client.account, filled, BOUNDS)
    return filled


class Writers(Clients):
    """Clients of a container that has all objects at the beginning."""

    def __init__(self, clients: list, container: str) -> None:
        super().__init__(clients, container, NAMES, SEED)
        first = self.workers[0].history
        now = time.monotonic()
        for name in NAMES:
            first.wrote(
                Write(name, 'PUT', now, now, ETAG, len(BODY), '', True)
            )

    def check(self) -> None:
        """Check what they have seen."""
        history = self.history
        print('seed', SEED, dict(history.counts))
        violations = history.violations()
        assert [history.text(each) for each in violations[:1]] == []
        pages = [each for each in history.refused if each.startswith('page')]
        assert pages == []


@contextlib.contextmanager
def sharding(cluster: Cluster) -> Iterator[None]:
    """Run the container-sharder again and again until the end of the block."""
    stop = threading.Event()

    def shard() -> None:
        while not stop.wait(PAUSE_SECONDS):
            cluster.daemon(SHARDER)

    thread = threading.Thread(target=shard)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def start(
    admin: Admin, client: Client, container: str, shards: int
) -> subprocess.Popen:
    path = f'{client.account}/{container}'
    return admin.start('reshard', path, str(shards), *OPTIONS)


def finish(started: subprocess.Popen) -> str:
    """Wait until a change has ended; return what it has reported."""
    _, told = started.communicate(timeout=300)
    assert started.returncode == 0, told
    return told


def shards(cluster: Cluster, client: Client, container: str) -> list[Place]:
    """Return the shard containers of a container."""
    found = parts(cluster, client.account, container, native(len(BOUNDS) + 1))
    return [Place(each.account, each.container) for each in found]


def rows_in(cluster: Cluster, place: Place) -> list[list[str]]:
    """Return the names that each replica of a container lists."""
    return [
        [
            row[0]
            for row in ContainerBroker(str(each)).list_objects_iter(
                1000, '', '', None, None
            )
        ]
        for each in databases(cluster, *place)
    ]


def rows_in_shards(
    cluster: Cluster, client: Client, container: str
) -> list[list[str]]:
    """Return the names that each replica of all shard containers lists."""
    found = [
        rows_in(cluster, place) for place in shards(cluster, client, container)
    ]
    return [sum(rows, []) for rows in zip(*found, strict=True)]


def each_node(
    cluster: Cluster, place: Place
) -> Iterator[tuple[dict, int, str, str]]:
    """Return the arguments of Swift's direct client, for each replica."""
    ring = Ring(str(cluster.swift_dir), ring_name='container')
    part, nodes = ring.get_nodes(*place)
    return ((node, part, *place) for node in nodes)


def put_row(cluster: Cluster, place: Place, name: str, at: Timestamp) -> None:
    """Store the row of an object, as an update that comes late does."""
    headers = {
        'X-Timestamp': at.internal,
        'X-Size': '4',
        'X-Content-Type': 'text/plain',
        'X-Etag': ETAG,
    }
    for node, part, account, container in each_node(cluster, place):
        direct_client.direct_put_container_object(
            node, part, account, container, name, headers=headers
        )


def put_object(
    cluster: Cluster, client: Client, container: str, name: str
) -> Timestamp:
    """Store an object of which no container server knows."""
    at = Timestamp.now()
    headers = {'X-Timestamp': at.internal, 'Content-Type': 'text/plain'}
    for node, part in object_nodes(cluster, client, container, name):
        direct_client.direct_put_object(
            node,
            part,
            client.account,
            container,
            name,
            BODY,
            len(BODY),
            headers=dict(headers),
        )
    return at


def delete_object(
    cluster: Cluster, client: Client, container: str, name: str
) -> Timestamp:
    """Delete an object without telling a container server."""
    at = Timestamp.now()
    for node, part in object_nodes(cluster, client, container, name):
        direct_client.direct_delete_object(
            node,
            part,
            client.account,
            container,
            name,
            headers={'X-Timestamp': at.internal},
        )
    return at


def delete_row(
    cluster: Cluster, place: Place, name: str, at: Timestamp
) -> None:
    """Store the tombstone of an object."""
    for node, part, account, container in each_node(cluster, place):
        direct_client.direct_delete_container_object(
            node,
            part,
            account,
            container,
            name,
            headers={'X-Timestamp': at.internal},
        )


def object_nodes(
    cluster: Cluster, client: Client, container: str, name: str
) -> Iterator[tuple[dict, int]]:
    ring = Ring(str(cluster.swift_dir), ring_name='object')
    part, nodes = ring.get_nodes(client.account, container, name)
    return ((node, part) for node in nodes)


def ranges_of(
    cluster: Cluster, client: Client, container: str
) -> list[list[ShardRange]]:
    """Return the shard ranges that each replica of a root has."""
    return [
        ContainerBroker(str(each)).get_shard_ranges()
        for each in databases(cluster, client.account, container)
    ]


def compact(cluster: Cluster, client: Client, container: str) -> None:
    """Begin to shrink ranges of a container into their neighbours."""
    database = root_database(cluster, client.account, container)
    ran = subprocess.run(
        [
            *(sys.executable, '-m', 'swift.cli.manage_shard_ranges'),
            *(str(database), 'compact', '--yes', '--max-expanding', '1'),
        ],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def shrink_to(
    cluster: Cluster, client: Client, container: str, count: int
) -> None:
    """Shrink the ranges of a container until so many are left."""
    for _ in range(MOST_RUNS):
        found = ranges_of(cluster, client, container)
        if all(
            [each.state for each in some] == [ShardRange.ACTIVE] * count
            for some in found
        ):
            return
        if any(len(some) > count for some in found) and not any(
            each.state == ShardRange.SHRINKING
            for some in found
            for each in some
        ):
            compact(cluster, client, container)
        cluster.daemon(REPLICATOR)
        cluster.daemon(SHARDER)
    pytest.fail(f'{found} are not {count} ranges')


def check(
    cluster: Cluster, admin: Admin, client: Client, container: str
) -> list[str]:
    """Check a container that no client uses; return its names."""
    update(cluster)
    cluster.daemon(SHARDER)
    listed = client.listing(container).names()
    readable = [
        name
        for name in sorted({*NAMES, *listed})
        if client.head(container, name).status == 200
    ]
    assert listed == readable
    headers = client.head(container).headers
    assert headers['x-container-object-count'] == str(len(listed))
    path = f'{client.account}/{container}'
    audit = admin('audit', path, '--objects')
    assert audit.returncode == 0, audit.stdout
    return listed


def delete_all(cluster: Cluster, client: Client, container: str) -> None:
    """Delete a container with its objects.

    As long as the sharder has not reported that a shard container is empty,
    Swift refuses to delete its root.
    """
    for name in client.listing(container).names():
        assert client.delete(container, name).status == 204
    cluster.daemon(SHARDER)
    assert client.delete(container).status == 204
    assert client.head(container).status == 404


def test_clients_see_one_container_while_it_is_converted(
    cluster, clients, admin, client, split
):
    with Writers(clients, split) as work:
        time.sleep(WARM_SECONDS)
        change = start(admin, client, split, 4)
        wait_for_phase(change, REPORT)
        assert shards_of(client, split) == 4
        with sharding(cluster):
            finish(change)
    work.check()
    for place in shards(cluster, client, split):
        assert rows_in(cluster, place) == [[], [], []]
    check(cluster, admin, client, split)
    delete_all(cluster, client, split)


def test_a_change_waits_for_the_sharder_to_shrink_ranges(
    cluster, clients, admin, client, split
):
    """Listings may lag meanwhile, as in Swift."""
    with Writers(clients, split):
        time.sleep(WARM_SECONDS)
        admin.detach(client, split, 4)
        compact(cluster, client, split)
        change = start(admin, client, split, 4)
        wait_for_phase(change, 'shrinking')
        shrink_to(cluster, client, split, 2)
        with sharding(cluster):
            finish(change)
    shrink_to(cluster, client, split, 0)
    check(cluster, admin, client, split)
    delete_all(cluster, client, split)


def test_killed_and_cancelled_changes_lose_nothing(
    cluster, clients, admin, client, split
):
    with Writers(clients, split) as work, sharding(cluster):
        time.sleep(WARM_SECONDS)
        for _ in range(2):
            change = start(admin, client, split, 4)
            wait_for_phase(change, 'moving')
            change.kill()
            change.communicate()
        path = f'{client.account}/{split}'
        ran = admin('cancel', path, '--settle-seconds', SETTLE_SECONDS)
        assert ran.returncode == 0, ran.stderr
    work.check()
    assert shards_of(client, split) == 0
    listed = check(cluster, admin, client, split)
    assert rows_in_shards(cluster, client, split) == [listed] * 3
    delete_all(cluster, client, split)


def test_a_container_becomes_plain_on_its_shard_ranges(
    cluster, clients, admin, client, split
):
    with Writers(clients, split) as work, sharding(cluster):
        time.sleep(WARM_SECONDS)
        for count in (4, 0):
            finish(start(admin, client, split, count))
    work.check()
    listed = check(cluster, admin, client, split)
    assert rows_in_shards(cluster, client, split) == [listed] * 3


def test_a_container_that_is_split_in_part_is_refused(
    cluster, admin, client, filled
):
    """One replica has been brought back from before it was split."""
    path = (client.account, filled)
    last = databases(cluster, *path)[-1]
    ContainerBroker(str(last)).get_info()  # commits the rows that wait
    before = last.read_bytes()
    shard_natively(cluster, *path, BOUNDS)
    databases(cluster, *path)[-1].unlink()
    last.write_bytes(before)
    ran = admin('reshard', '/'.join(path), '4')
    assert ran.returncode == 1
    assert 'its replicas are sharded, unsharded' in ran.stderr
    assert 'run container-replicator and container-sharder' in ran.stderr


def test_late_rows_are_moved(cluster, admin, client, split):
    """One is of an object that was deleted meanwhile."""
    change = start(admin, client, split, 4)
    wait_for_phase(change, REPORT)
    cluster.daemon(SHARDER)
    finish(change)
    shard = shards(cluster, client, split)[0]
    for name in ('o00-late', 'o01-gone'):
        at = put_object(cluster, client, split, name)
        put_row(cluster, shard, name, at)
    delete_object(cluster, client, split, 'o01-gone')
    assert 'o00-late' in client.listing(split).names()
    cluster.daemon(SHARDER)
    update(cluster)
    cluster.daemon('shardmw-resharder')
    assert rows_in(cluster, shard) == [[], [], []]
    listed = check(cluster, admin, client, split)
    assert listed == sorted([*NAMES, 'o00-late'])


def test_rows_and_tombstones_of_former_ranges_are_not_lost(
    cluster, admin, client, split
):
    """No sharder has run since they came."""
    former = shards(cluster, client, split)[0]
    shrink_to(cluster, client, split, 2)
    at = put_object(cluster, client, split, 'o00-late')
    put_row(cluster, former, 'o00-late', at)
    at = delete_object(cluster, client, split, NAMES[1])
    delete_row(cluster, former, NAMES[1], at)
    assert NAMES[1] in client.listing(split).names()
    change = start(admin, client, split, 4)
    wait_for_phase(change, REPORT)
    listed = sorted([*NAMES[:1], 'o00-late', *NAMES[2:]])
    assert client.listing(split).names() == listed
    cluster.daemon(SHARDER)
    finish(change)
    assert check(cluster, admin, client, split) == listed


def test_a_range_may_be_split_further_meanwhile(
    cluster, clients, admin, client, split
):
    """Listings may lag meanwhile, as in Swift."""
    cluster.daemon(SHARDER)  # its database learns that it is active
    admin.detach(client, split, 4)
    shard = shards(cluster, client, split)[0]
    assert find_ranges(root_database(cluster, *shard), 3) > 1
    with Writers(clients, split):
        time.sleep(WARM_SECONDS)
        change = start(admin, client, split, 4)
        with sharding(cluster):
            finish(change)
    check(cluster, admin, client, split)
    delete_all(cluster, client, split)
