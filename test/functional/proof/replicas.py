# SPDX-License-Identifier: Apache-2.0
"""Take away single replicas of containers, bring them back, and list them.

A database that was taken away is missing, as on an empty disk, or on a device
that a change of the ring has just made a primary.
"""

import contextlib
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from shardmw_saio import Cluster
from swift.container.backend import ContainerBroker

from shardmw.backend.sync_settings import LOGICAL_HEADER
from shardmw.core.layout import Layout, id_of_time
from shardmw.core.placement import backing_container, hidden_account
from test.functional.backing import Backing, databases, write_record
from test.functional.client import Client
from test.functional.conftest import make_plain, make_sharded
from test.functional.operating import wait_until

NODES = (1, 2, 3)

#: In most tests, the nodes that lack a database, and the one that has it.
EMPTY, HOLDER = (1, 2), 3

#: How long the creation of a container may take.
CREATION_SECONDS = 3600

#: More rows than a container of these tests has.
ALL_ROWS = 10_000

BODY = b'body'


class Stored(NamedTuple):
    """A container with objects, plain or sharded.

    :param root: its path, ``account/container``
    :param shards: the paths of its shards, none for a plain container
    """

    container: str
    names: list[str]
    root: str
    shards: list[str]


def store(
    cluster: Cluster,
    client: Client,
    backing: Backing,
    container: str,
    names: list[str],
) -> Stored:
    """Fill a container, and wait until all of its replicas list all objects.

    :param container: an empty container
    """
    for name in names:
        assert client.put(container, name, BODY).status == 201
    stored = Stored(
        container,
        names,
        f'{client.account}/{container}',
        shards_of(client, backing, container),
    )
    places = stored.shards or [stored.root]

    def agree() -> bool:
        listed = [listed_by_replicas(cluster, place) for place in places]
        replicas = zip(*listed, strict=True)
        if all(sorted(sum(each, [])) == sorted(names) for each in replicas):
            return True
        cluster.daemon('object-updater')
        return False

    wait_until(agree)
    return stored


def make_aged(
    cluster: Cluster, client: Client, backing: Backing, shards: int
) -> str:
    """Make a sharded container that is too old to be under creation.

    :returns: its name
    """
    make_sharded(client)  # from then on, the register lists the account
    container = make_plain(client)
    layout = Layout(id_of_time(time.time() - 2 * CREATION_SECONDS), shards)
    logical = {LOGICAL_HEADER.replace('-', '_'): container}
    for shard in range(shards):
        name = backing_container(container, layout.id, shard)
        backing.put_shard(container, name, **logical)
    write_record(cluster, client.account, container, layout.to_record())
    backing.forget(container)
    return container


def shards_of(client: Client, backing: Backing, container: str) -> list[str]:
    """Return the paths of a container's shards."""
    hidden = hidden_account(client.account)
    return [f'{hidden}/{name}' for name in backing.shards(container)]


def listed_by_replicas(cluster: Cluster, place: str) -> list[list[str]]:
    """Return the names that each replica of a container lists."""
    return [
        [row[0] for row in _listing(path)]
        for path in sorted(databases(cluster, *place.split('/', 1)))
    ]


def _listing(path: Path) -> list[tuple]:
    broker = ContainerBroker(str(path))
    return broker.list_objects_iter(
        ALL_ROWS, '', '', '', '', allow_reserved=True
    )


@contextlib.contextmanager
def missing(
    cluster: Cluster, places: Iterable[str], nodes: Collection[int]
) -> Iterator[None]:
    """Take containers' databases away from nodes until the end of the block.

    :param places: the containers, ``account/container``
    """
    taken: list[tuple[Path, Path]] = []
    try:
        for place in places:
            for path in list(databases(cluster, *place.split('/', 1))):
                home = path.parent
                node = home.relative_to(cluster.devices_path).parts[0]
                if int(node) in nodes:
                    away = cluster.path / 'away' / node / home.name
                    away.parent.mkdir(parents=True, exist_ok=True)
                    home.rename(away)
                    taken.append((away, home))
        yield
    finally:
        for away, home in taken:
            _bring_back(away, home)


def _bring_back(away: Path, home: Path) -> None:
    """Put a database back; if a new one exists, merge it as Swift does."""
    if not home.exists():
        away.rename(home)
        return
    old, new = (
        ContainerBroker(str(folder / f'{home.name}.db'))
        for folder in (away, home)
    )
    info = old.get_replication_info()
    times = ('created_at', 'put_timestamp', 'delete_timestamp')
    new.merge_timestamps(*(info[each] for each in times))
    new.update_metadata(old.metadata)
    new.merge_items(old.get_items_since(-1, ALL_ROWS))
    shutil.rmtree(away)


@contextlib.contextmanager
def paused(cluster: Cluster, node: int) -> Iterator[None]:
    """Pause a node's container server until the end of the block.

    It accepts connections, but answers only after the block has ended.
    """
    cluster.pause(f'container-{node}')
    try:
        yield
    finally:
        cluster.resume(f'container-{node}')


@contextlib.contextmanager
def stopped(cluster: Cluster, node: int) -> Iterator[None]:
    """Stop a node's container server until the end of the block."""
    cluster.stop(f'container-{node}')
    try:
        yield
    finally:
        cluster.start(f'container-{node}')


def readable(client: Client, container: str, names: Iterable[str]) -> list:
    """Return the names of the objects that can be read, sorted."""
    return sorted(n for n in names if client.get(container, n).status == 200)
