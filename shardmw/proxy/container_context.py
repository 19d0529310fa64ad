# SPDX-License-Identifier: Apache-2.0
"""Contexts of PUT, POST and DELETE of containers, and what they share.

A context is an object that lives as long as a client's request, and has it,
its path and the parts of the filter.
"""

import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from swift.common.http import is_client_error
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT as VERSIONS_HEADER,
)
from swift.common.storage_policy import POLICIES
from swift.common.swob import Request, Response
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer
from shardmw.backend.backing_containers import is_forgotten, listed_backing
from shardmw.backend.config import Options
from shardmw.backend.containers import (
    FLOOR_HEADER,
    RECORD_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.requests import Backend, to_environ
from shardmw.backend.roots import RootState, contents_of, read_root
from shardmw.backend.sync_settings import (
    SyncChange,
    SyncSettings,
    root_headers,
    shard_headers,
)
from shardmw.core.evidence import Contents
from shardmw.core.layout import (
    TICKS_SECONDS,
    Layout,
    Sharding,
    id_of_time,
    time_of_id,
)
from shardmw.core.paths import Path
from shardmw.core.placement import hidden_account, versions_container
from shardmw.proxy.asked_sharding import AskedSharding
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.listing import container_order, max_age
from shardmw.proxy.ratelimit import rate_header
from shardmw.proxy.ratelimit.account_rate import AccountRate
from shardmw.proxy.shard_sums import SummedStats
from shardmw.swift.memcached import LockError, SharedCache

POLICY_HEADER = 'X-Storage-Policy'

LOCK_KEY = 'shardmw/lifecycle/{account}/{container}'

#: How long a lock lasts at most: a process that takes longer to commit a
#: creation loses it.
LOCK_SECONDS = 15

#: The least difference between two of Swift's timestamps.
CLOCK_TICK_SECONDS = 0.00001

#: How many backing containers to create or delete at once.
AT_A_TIME = 32

CHANGED = 'another request has changed the container meanwhile'


class Tools(NamedTuple):
    """The parts of the filter that the contexts use.

    :param app: the rest of the pipeline
    """

    app: Callable
    backend: Backend
    layouts: Layouts
    stats: SummedStats
    account_rate: AccountRate
    options: Options
    logger: object


class ContainerContext:
    """One authorized request of a client to a container.

    :param path: the path of the container
    """

    def __init__(self, tools: Tools, req: Request, path: Path) -> None:
        self.tools = tools
        self.app = tools.app
        self.backend = tools.backend
        self.options = tools.options
        self.req = req
        self.env = req.environ
        # In /v1/a/c/, the name of an object is empty.
        self.path = path.of_container(path.container)

    def read_root(self, waits: bool = False) -> RootState:
        """Return the state of the root; see :func:`read_root` for errors."""
        return read_root(self.backend, self.env, self.path, waits)

    def send(self, headers: dict[str, str] | None = None) -> Answer:
        """Forward the request, with further headers."""
        return self.backend.send_as_client(self.req, to_environ(headers or {}))

    def turn(self) -> AbstractContextManager:
        """Return the turn to read or write many backing containers."""
        return self.backend.turn(self.env, self.path.account)

    def lock(self, path: Path | None = None) -> AbstractContextManager:
        """Return the lock that creations and deletions of a path hold.

        :param path: None for that of the request
        :raises BackendError: on entry, if another process holds the lock for
                              too long
        """
        return _Locked(self.env, path or self.path)

    def contents(self, paths: list[Path]) -> list[Contents]:
        """Return what the replicas of each container prove that it lists."""
        return self.backend.for_each(
            partial(contents_of, self.backend, self.env), paths, AT_A_TIME
        )

    def check_unused(self, root: RootState, with_rows: bool = False) -> None:
        """Check that a container without a root has no shards.

        If it has shards, it most likely has a root somewhere, whose place in
        the ring has changed or whose disks are new, unless no server knows of
        the container.

        :param with_rows: True to ignore shards without rows. The hidden
                          account may not know of rows yet, so the replicas of
                          the shards are asked
        :raises BackendError: if it has shards, or the hidden account does not
                              answer
        """
        hidden = hidden_account(self.path.account)
        if not self.backend.account_exists(self.env, hidden):
            return
        base = self.backend.owner_env(self.env)
        shards = list(listed_backing(self.backend, base, self.path))
        if with_rows and not any(each.object_count for each in shards):
            found = self.contents([each.path(self.path) for each in shards])
            shards = [
                shard
                for shard, each in zip(shards, found, strict=True)
                if each is Contents.HOLDS
            ]
        if shards and not is_forgotten(
            self.backend, self.env, self.path, root
        ):
            raise BackendError(
                None,
                503,
                'no replica of the root has a database, but shard '
                f'{shards[0].container} is there',
            )


class WriteContext(ContainerContext):
    """A PUT or a POST."""

    def __init__(self, tools: Tools, req: Request, path: Path) -> None:
        super().__init__(tools, req, path)
        self.asked = AskedSharding(req, tools.options)
        self.asked_at = Timestamp.now()

    def take_settings(self) -> Response | None:
        """Replace the headers of this filter's settings with their sysmeta.

        :returns: the error response if one is forbidden or invalid
        """
        for module in (rate_header, container_order, max_age):
            refusal = module.take_header(self.req)
            if refusal:
                return refusal
        return None

    def sync_change(self, root: RootState) -> SyncChange:
        """Return the change of the settings of container sync.

        :param root: that of a sharded container
        """
        target = LogicalContainer(self.path, root.answer.info(), root.layout)
        return SyncChange(self.backend, self.req, target, self.asked_at)

    def check_committed(self, target: LogicalContainer) -> None:
        """Check that enough replicas of a root have a layout's record.

        :raises BackendError: if they do not, or have another layout
        """
        root = read_root(self.backend, self.env, target.path)
        if root.layout != target.layout or not root.is_safe:
            raise BackendError(
                None,
                503,
                f'{root.holders} of {root.replicas} replicas of the root have '
                'the layout',
            )

    def shard_new_versions(self, layout: Layout) -> Answer | None:
        """Shard the versions container when a client turns versioning on.

        Object versioning has created it just before, or long ago: if it is
        plain and has rows, it stays plain.

        :param layout: the layout of the sharded container
        :returns: the answer to the request that failed, or None
        :raises LayoutError: if it has a record that cannot be read
        """
        sharding = layout.written_sharding
        if VERSIONS_HEADER not in self.req.headers:
            return None
        if self.options.max_shards == 0:
            return None
        versions = self.path.of_container(
            versions_container(self.path.container)
        )
        present = read_root(self.backend, self.env, versions)
        if not (present.exists and sharding.shards):
            return None
        if present.layout or present.answer.object_count:
            return None
        self.tools.account_rate.charge_create(
            self.env, self.path.account, sharding.shards
        )
        target = LogicalContainer(versions, {}, new_layout(sharding, present))
        self.backend.create_hidden_account(self.env, target.hidden_account)
        with self.turn(), self.lock(versions):
            failure = self.shard_root(target)
        if failure and not is_client_error(failure.status):
            raise BackendError(failure.shard, failure.status)
        return failure

    def shard_root(self, target: LogicalContainer) -> Answer | None:
        """Shard a plain container, unless it does not exist or is sharded.

        :returns: the answer to the request that failed, or None
        :raises BackendError: if too few replicas have the record afterwards
        :raises LayoutError: if it has a record that cannot be read
        """
        path = target.path
        present = read_root(self.backend, self.env, path)
        if present.layout or not present.is_put:
            return None
        target = dataclasses.replace(target, info=present.answer.info())
        settings = SyncSettings.of(present.answer).headers()
        policy = POLICIES[target.policy_index].name
        failure = self.put_shards(target, policy, settings)
        if failure:
            return failure
        root = self.backend.send(
            self.backend.owner_env(self.env),
            'POST',
            path.to_wsgi(),
            headers={
                **self.record_headers(target.layout),
                **root_headers(settings, target.layout.synced),
            },
        )
        if not root.is_success:
            return root
        self.tools.layouts.forget(path)
        self.check_committed(target)
        return None

    def record_headers(self, layout: Layout) -> dict[str, str]:
        """Return the headers that make a container a sharded one.

        A shard count that the client asks for is the least that
        ``auto_shrink`` leaves.
        """
        headers = {RECORD_HEADER: layout.to_record()}
        if self.asked.count:
            headers[FLOOR_HEADER] = str(self.asked.count)
        return headers

    def put_shards(
        self, target: LogicalContainer, policy: str, settings: dict[str, str]
    ) -> Answer | None:
        """Create the shards of a new layout.

        The first shard is created before the others. If the account, the
        policy or a setting is invalid, its answer is the one that the root
        would have given.

        :param settings: those of container sync
        :returns: the answer of a shard that could not be created, or None
        """
        base = self.backend.owner_env(self.env)
        headers = shard_headers(target.container, settings)
        headers[POLICY_HEADER] = policy

        def put(shard: int) -> Answer:
            return self.backend.send_to_shard(
                base, target, shard, 'PUT', headers=headers
            )

        shards = [(shard,) for shard in target.shards()]
        for batch in (shards[:1], shards[1:]):
            for answer in self.backend.fan_out(put, batch, AT_A_TIME):
                if not answer.is_success:
                    return answer
        return None


class _Locked:
    """Holds the lock of a container's lifecycle."""

    def __init__(self, env: dict, path: Path) -> None:
        key = LOCK_KEY.format(account=path.account, container=path.container)
        self._lock = SharedCache(env).lock(key, LOCK_SECONDS)

    def __enter__(self) -> None:
        try:
            self._lock.__enter__()
        except LockError as err:
            raise BackendError(None, 503, str(err)) from err

    def __exit__(self, *exc_info: object) -> None:
        self._lock.__exit__(*exc_info)


def new_layout(sharding: Sharding, former: RootState) -> Layout:
    """Return a layout whose id is later than those of all earlier layouts.

    :param former: the state of an earlier container of this name. The clock of
                   the proxy that deleted or changed it may be ahead
    """
    drawn = max(time.time(), former.deleted + CLOCK_TICK_SECONDS)
    if former.record:
        changed = time_of_id(former.record.serial)
        drawn = max(drawn, changed + TICKS_SECONDS)
    return Layout(id_of_time(drawn), sharding.shards, depth=sharding.depth)
