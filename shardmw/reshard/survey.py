# SPDX-License-Identifier: Apache-2.0
"""Read what the containers of a cluster hold, and where.

:meth:`Survey.containers` returns the figures that ``container-updater`` has
reported to the accounts. :meth:`Survey.state` asks the databases themselves.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from swift.common.storage_policy import POLICIES

from shardmw.backend.accounts import account_rows
from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.roots import RootState
from shardmw.backend.row_targets import RowTargets
from shardmw.core.layout import Layout, LayoutError, time_of_id
from shardmw.core.paths import API_VERSION, Path, Place
from shardmw.core.placement import (
    backing_base,
    hidden_account,
    parse_backing,
)
from shardmw.reshard.cluster import (
    Replica,
    SwiftCluster,
    database_path,
    server_of,
)
from shardmw.reshard.errors import AdminError
from shardmw.reshard.register import Register
from shardmw.reshard.resharding import change_text
from shardmw.reshard.shard_advice import Listed, skew

#: The figures of one layout in the hidden account: objects and bytes by shard.
Figures = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard with the present figures of its databases.

    :param status: the status of its answer; only a 2xx has figures
    :param nodes: server and device of each replica
    :param database: its path below the folder of the device
    """

    shard: int
    container: str
    rows: int
    bytes: int
    status: int
    partition: int
    nodes: list[str]
    database: str


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container with the present figures of its databases.

    :param layout_id: None for a container that was never sharded
    :param layout: the layout in words, or the change that is under way
    :param strays: the rows in the root of a sharded container
    :param objects: the rows of all databases
    :param skew: the rows of the fullest shard, divided by the mean of all
    :param database: the path of the root below the folder of the device
    :param depth: how many components of a name select its shard
    :param floor: the least number of shards that ``auto_shrink`` leaves
    :param since: when the layout became what it is, in seconds since 1970; 0
                  for a container that was never sharded
    """

    account: str
    container: str
    policy: str
    layout_id: str | None
    layout: str
    objects: int
    bytes: int
    strays: int
    skew: float
    partition: int
    nodes: list[str]
    database: str
    shards: list[ShardState] = field(default_factory=list)
    depth: int = 0
    floor: int = 0
    since: float = 0

    @property
    def is_whole(self) -> bool:
        """Return True if every shard answered."""
        return all(each.status // 100 == 2 for each in self.shards)

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Location:
    """The places of an object and of its row.

    :param shard: the shard that lists it; None if the container itself does
    :param row_container: the container whose database has the row
    """

    account: str
    container: str
    name: str
    shard: int | None
    row_account: str
    row_container: str
    row_partition: int
    row_replicas: list[dict]
    policy: str
    object_partition: int
    object_replicas: list[dict]

    @property
    def is_there(self) -> bool:
        """Return True if some replica has the row, and some the object."""
        return all(
            any(replica['has_it'] for replica in replicas)
            for replicas in (self.row_replicas, self.object_replicas)
        )


class Survey:
    """Reads what containers hold."""

    def __init__(self, cluster: SwiftCluster) -> None:
        self.cluster = cluster

    def accounts(self) -> Iterator[str]:
        """List the accounts that have had a sharded container."""
        return Register(self.cluster.backend, self.cluster.env).accounts()

    def containers(
        self, account: str, large: float = math.inf
    ) -> Iterator[Listed]:
        """List all containers of an account, plain ones too.

        :param large: the minimum row count at which a plain container is
                      checked for a split by Swift's own sharder. A split
                      container is listed with 0 rows in the fullest database
        """
        backing = self._backing(account)
        path = Path(API_VERSION, account)
        for row in account_rows(
            self.cluster.backend, self.cluster.base, path, '', ''
        ):
            yield self._listed(account, row, backing, large)

    def measured(self, path: Path) -> Listed:
        """Return a container with the present figures of its databases.

        :raises AdminError: if it does not exist
        :raises BackendError: if a shard does not answer
        """
        state = self.state(path)
        if not state.is_whole:
            raise BackendError(None, 503, 'a shard did not answer')
        rows = [each.rows for each in state.shards]
        return Listed(
            *path.place,
            len(rows),
            state.objects,
            state.bytes,
            max(rows, default=state.objects),
            depth=state.depth,
            floor=state.floor,
            since=state.since,
        )

    def state(self, path: Path) -> ContainerState:
        """Return the state of a container and of its shards.

        :raises AdminError: if it does not exist
        """
        root = self.cluster.root(path)
        target = self.cluster.logical(path, root)
        shards = []
        if target:
            answers = self.cluster.backend.head_shards(
                self.cluster.env, target
            )
            shards = [
                self._shard_state(target.place_in(shard), shard, answer)
                for shard, answer in enumerate(answers)
            ]
        rows = [each.rows for each in shards]
        partition, nodes = self.cluster.primaries(path.place)
        return ContainerState(
            *path.place,
            POLICIES[root.policy_index].name,
            root.record.id if root.record else None,
            described(root.record),
            root.answer.object_count + sum(rows),
            root.answer.bytes_used + sum(each.bytes for each in shards),
            root.answer.object_count if _has_strays(root) else 0,
            skew(rows) if rows else 1.0,
            partition,
            _devices(nodes),
            database_path(partition, path.place),
            shards,
            root.record.written_sharding.depth if root.record else 0,
            root.answer.floor,
            time_of_id(root.record.serial) if root.record else 0,
        )

    def locate(self, path: Path, name: str) -> Location:
        """Return the places of an object and of its row.

        :raises AdminError: if the container does not exist
        """
        root = self.cluster.root(path)
        target = self.cluster.logical(path, root)
        backend, env = self.cluster.backend, self.cluster.env
        if target:
            # During a change, the row may be in the old or the new place.
            places = [target.place_of(name), *sorted(target.places_of(name))]
            row_targets = RowTargets(backend)
            places = [row_targets.database(env, p, name) for p in places]
        else:
            places = [backend.database_of(env, path.place, name)]
        place, row_part, row_replicas = self._row(places, name)
        backing = parse_backing(place.container) if target else None
        shard = backing.shard if backing else None
        object_part, object_replicas = self.cluster.object_replicas(
            root.policy_index, path.place, name
        )
        return Location(
            *path.place,
            name,
            shard,
            *place,
            row_part,
            [each._asdict() for each in row_replicas],
            POLICIES[root.policy_index].name,
            object_part,
            [each._asdict() for each in object_replicas],
        )

    def _row(
        self, places: list[Place], name: str
    ) -> tuple[Place, int, list[Replica]]:
        """Return the first place that has a row, or else the first place.

        :returns: the place, its partition and its replicas
        """
        found = []
        for place in places:
            replicas = self.cluster.row_replicas(place, name)
            found.append((place, *replicas))
            if any(replica.has_it for replica in replicas[1]):
                return found[-1]
        return found[0]

    def _backing(self, account: str) -> dict[str, dict[str, Figures]]:
        """Return the figures in the hidden account, by base and layout id."""
        found = defaultdict(lambda: defaultdict(dict))
        hidden = Path(API_VERSION, hidden_account(account))
        for row in account_rows(
            self.cluster.backend, self.cluster.base, hidden, '', ''
        ):
            name = parse_backing(row['name'])
            if name:
                figures = (row['count'], row['bytes'])
                found[name.base][name.layout_id][name.shard] = figures
        return found

    def _listed(
        self,
        account: str,
        row: dict,
        backing: dict[str, dict[str, Figures]],
        large: float,
    ) -> Listed:
        name, rows, used = row['name'], row['count'], row['bytes']
        layouts = backing.get(backing_base(name), {})
        path = Path(API_VERSION, account, name)
        try:
            needs_root = layouts or rows >= large
            root = self.cluster.root(path) if needs_root else None
        except (AdminError, BackendError, LayoutError) as err:
            return Listed(account, name, 0, rows, used, rows, str(err))
        layout = root and root.layout
        if not layout:
            fullest = 0 if root and root.answer.is_split else rows
            return Listed(account, name, 0, rows, used, fullest)
        figures = [
            figures
            for layout_id, shards in layouts.items()
            for number, figures in shards.items()
            if layout.has(layout_id, number)
        ]
        counts = [count for count, _ in figures]
        if layout.is_changing and 0 in (layout.shards, layout.former):
            counts.append(rows)  # rows move out of the root, or into it
        return Listed(
            account,
            name,
            layout.written,
            rows + sum(count for count, _ in figures),
            used + sum(size for _, size in figures),
            max(counts, default=0),
            phase=layout.phase or '',
            depth=layout.written_sharding.depth,
            new_shards=layout.shards if layout.is_changing else 0,
            floor=root.answer.floor,
            since=time_of_id(layout.serial),
        )

    def _shard_state(
        self, place: Place, shard: int, answer: Answer
    ) -> ShardState:
        partition, nodes = self.cluster.primaries(place)
        return ShardState(
            shard,
            place.container,
            answer.object_count,
            answer.bytes_used,
            answer.status,
            partition,
            _devices(nodes),
            database_path(partition, place),
        )


def described(layout: Layout | None) -> str:
    """Return a layout in words."""
    if layout is None or layout.is_plain:
        return 'plain'
    if not layout.is_changing:
        return str(layout.sharding)
    return f'{layout.phase}: {change_text(layout)}'


def _has_strays(root: RootState) -> bool:
    """Return True if rows of the root do not belong there."""
    layout = root.layout
    return layout is not None and 0 not in (layout.shards, layout.former)


def _devices(nodes: list[dict]) -> list[str]:
    return [f'{server_of(node)}/{node["device"]}' for node in nodes]
