# SPDX-License-Identifier: Apache-2.0
"""Sharded containers: their headers, their shards and their authorization."""

from dataclasses import dataclass

from swift.common.http import is_server_error, is_success
from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.swob import Request

from shardmw.core.layout import Layout, parse_record
from shardmw.core.paths import Path, Place
from shardmw.core.phases import Side
from shardmw.core.placement import (
    ALL_NAMES,
    NameRange,
    backing_container,
    can_be_sharded,
    hidden_account,
    is_reserved,
    shard_of,
    shards_of_range,
)
from shardmw.swift import SPLIT_STATES

SWIFT_SOURCE = 'SMW'
SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
SHARD_DEPTH_HEADER = 'X-Container-Shard-Depth'
RECORD_NAME = 'shardmw-layout'
RECORD_HEADER = get_sys_meta_prefix('container') + RECORD_NAME

#: The least number of shards that ``auto_shrink`` leaves a container: the one
#: that its client has asked for, or an operator has set.
FLOOR_HEADER = get_sys_meta_prefix('container') + 'shardmw-floor'

#: The settings of container sync, as Swift has them.
SYNC_TO_HEADER = 'X-Container-Sync-To'
SYNC_KEY_HEADER = 'X-Container-Sync-Key'

#: Where the root of a sharded container keeps X-Container-Sync-To instead:
#: container-sync must not read the root.
STORED_SYNC_TO_NAME = 'shardmw-sync-to'
STORED_SYNC_TO_HEADER = get_sys_meta_prefix('container') + STORED_SYNC_TO_NAME

#: Where Swift's proxy passes the key of container sync to the auth filter, and
#: the writes of objects for which it does so.
SYNC_KEY_ENV = 'swift_sync_key'
SYNCED_WRITES = ('PUT', 'DELETE')

#: The quoted name of the logical container, in a backing container.
LOGICAL_NAME = 'shardmw-container'
LOGICAL_HEADER = get_sys_meta_prefix('container') + LOGICAL_NAME


class BackendError(Exception):
    """A request to Swift failed, so the client's request cannot be answered.

    :param shard: the index of the shard, None for the root
    :param status: the status code of its answer
    :param reason: the message; None for one about the status
    """

    def __init__(
        self, shard: int | None, status: int, reason: str | None = None
    ) -> None:
        place = 'the root' if shard is None else f'shard {shard}'
        super().__init__(reason or f'{place} answered {status}')
        self.shard = shard
        self.status = status


#: In a container's cached info: the number of rows of its root, and their
#: bytes, if the figures there are the sums over root and shards.
ROOT_OBJECTS_KEY = 'shardmw_root_objects'
ROOT_BYTES_KEY = 'shardmw_root_bytes'


@dataclass(frozen=True, slots=True)
class LogicalContainer:
    """A sharded container, as one client request sees it.

    :param path: the path of the container
    :param info: Swift's info of the root; its object count and size may be
                 those of the root or the sums
    :param layout: the number of shards, their depth and id, and any change
    """

    path: Path
    info: dict
    layout: Layout

    @classmethod
    def at(cls, path: Path, info: dict, layout: Layout) -> 'LogicalContainer':
        """Return the container of a path, which may be that of an object."""
        return cls(path.of_container(path.container), info, layout)

    @property
    def account(self) -> str:
        """Return the account."""
        return self.path.account

    @property
    def container(self) -> str:
        """Return the name of the container."""
        return self.path.container

    @property
    def hidden_account(self) -> str:
        """Return the account of the backing containers."""
        return hidden_account(self.account)

    @property
    def policy_index(self) -> int:
        """Return the index of the storage policy."""
        return int(self.info['storage_policy'] or 0)

    @property
    def root_objects(self) -> int:
        """Return how many rows the root had when its info was read."""
        rows = self.info.get(ROOT_OBJECTS_KEY, self.info.get('object_count'))
        return int(rows or 0)

    @property
    def may_have_strays(self) -> bool:
        """Return True if the root had rows when its info was read."""
        return self.root_objects > 0

    @property
    def is_split(self) -> bool:
        """Return True if Swift's own sharder had split the root by then."""
        return self.info.get('sharding_state') in SPLIT_STATES

    def shards(self) -> range:
        """Return the indices of the backing containers."""
        return range(self.layout.backing_count)

    def read_stages(self, names: NameRange = ALL_NAMES) -> list[range]:
        """Return the backing containers in the order to read them.

        Those that rows move out of come before those that rows move into: a
        row that moves meanwhile is then found in one of the two.

        :param names: leave out the shards that can have none of these
        """
        stages = []
        for side in self.layout.rules.reads:
            first = self.layout.first_shard(side)
            found = shards_of_range(names, *self.layout.sharding_of(side))
            stages.append(range(first + found.start, first + found.stop))
        return [stage for stage in stages if stage]

    @property
    def moves_to_root(self) -> bool:
        """Return True while the container changes back to a plain one."""
        return self.layout.is_changing and self.layout.shards == 0

    def shard_of(self, name: str) -> int | None:
        """Return the index of the shard that a new row goes to.

        :returns: None if that is the root
        """
        return self._shard_on(self.layout.rules.rows_to, name)

    def place_of(self, name: str) -> Place:
        """Return where a new row goes."""
        return self.place_in(self.shard_of(name))

    def places_of(self, name: str) -> set[Place]:
        """Return where rows of a name may be.

        The row count of a root that is split may be old.
        """
        sides = self.layout.rules.tombstones_to
        shards = {self._shard_on(side, name) for side in sides}
        if self.may_have_strays or self.is_split:
            shards.add(None)
        return {self.place_in(shard) for shard in shards}

    def place_in(self, shard: int | None) -> Place:
        """Return a place of rows.

        :param shard: the index of a backing container, None for the root
        """
        if shard is None:
            return self.path.place
        return Place(self.hidden_account, self.backing(shard))

    def _shard_on(self, side: Side, name: str) -> int | None:
        """Return the index of the shard of a name on one side of a change.

        :returns: None if that is the root
        """
        sharding = self.layout.sharding_of(side)
        if not sharding.shards:
            return None
        return self.layout.first_shard(side) + shard_of(name, *sharding)

    def backing(self, shard: int) -> str:
        """Return the name of a backing container."""
        return backing_container(self.container, *self.layout.backing(shard))

    def backing_path(self, shard: int) -> Path:
        """Return the path of a backing container."""
        return Path(self.path.version, *self.place_in(shard))


def described_by(path: Path, info: dict) -> LogicalContainer | None:
    """Return the sharded container that an info describes.

    :param path: the path of the container, or of an object in it
    :param info: as ``get_container_info`` returns it
    :returns: None if the container is plain or does not exist
    :raises BackendError: if the info says that the root did not answer
    :raises LayoutError: if the record cannot be read
    """
    status = info['status']
    if is_server_error(status):
        raise BackendError(None, status)
    record = info['sysmeta'].get(RECORD_NAME) if is_success(status) else None
    if record is None:
        return None
    layout = parse_record(record)
    if layout.is_plain:
        return None
    return LogicalContainer.at(path, info, layout)


def may_be_sharded(req: Request, path: Path) -> bool:
    """Return True if the filter has to handle requests to a container.

    Swift denies clients the containers of old versions; only object versioning
    may name them.
    """
    if is_reserved(path.container):
        return req.allow_reserved_names and can_be_sharded(path.container)
    return True


def authorize(req: Request, acl: str | None = None):
    """Ask the auth filter about a request to a logical container.

    :param acl: the ACL that applies; None if only owners are allowed
    :returns: None if the request is allowed, else the denying response
    """
    if 'swift.authorize' not in req.environ:
        return None
    req.acl = acl
    try:
        return req.environ['swift.authorize'](req)
    finally:
        # The proxy app would authorize a request by this ACL, too.
        req.acl = None


def authorize_write(req: Request, info: dict):
    """Ask the auth filter about the write of an object.

    The auth filter gets the same information as from Swift's proxy later, so
    that both get the same answer.

    :param info: Swift's info of the container
    :returns: None if the request is allowed, else the denying response
    """
    if req.method in SYNCED_WRITES:
        req.environ[SYNC_KEY_ENV] = info['sync_key']
    return authorize(req, info['write_acl'])
