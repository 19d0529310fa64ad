# SPDX-License-Identifier: Apache-2.0
"""PUT, POST and DELETE of containers.

A process may die at any point. Acknowledged objects can then be read and
listed; the container is plain, or sharded with all its shards, or does not
exist; and the client completes the request by repeating it:

- Creation puts the shards, with a new id, and then the root with the record.
  The PUT of the root is the commit. It is done under a lock and after a read
  of all replicas of the root, so that only one of several creations commits.
  Shards without a root are invisible; ``shardmw-resharder`` deletes them after
  an hour.
- Deletion deletes the root, if it and all shards are proved to be empty
  (:mod:`shardmw.core.evidence`), and then the shards. A row that comes later
  waits for ``shardmw-resharder`` (:mod:`shardmw.reshard.late_rows`).
"""

import dataclasses
import time
from collections.abc import Callable
from functools import partial

from swift.common.constraints import MAX_CONTAINER_NAME_LENGTH
from swift.common.http import HTTP_CREATED, is_client_error
from swift.common.middleware.s3api.utils import MULTIUPLOAD_SUFFIX
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT as VERSIONS_HEADER,
)
from swift.common.storage_policy import POLICIES
from swift.common.swob import (
    HTTPBadRequest,
    HTTPConflict,
    Request,
    Response,
    wsgi_quote,
)
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer, Verbatim
from shardmw.backend.backing import is_forgotten, listed_backing
from shardmw.backend.config import Options
from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    SYNC_TO_HEADER,
    BackendError,
    LogicalContainer,
    authorize,
)
from shardmw.backend.metrics import CONTAINER_REQUESTS
from shardmw.backend.requests import Backend, to_environ
from shardmw.backend.roots import (
    RootState,
    contents_of,
    read_root,
    unproved_empty,
)
from shardmw.backend.sync_settings import (
    TIMESTAMP_HEADER,
    SyncChange,
    SyncSettings,
    asked_settings,
    root_headers,
    shard_headers,
)
from shardmw.core.evidence import Contents
from shardmw.core.layout import (
    DEPTH_LIMIT,
    SHARD_COUNT_LIMIT,
    TICKS_SECONDS,
    Layout,
    Sharding,
    id_of_time,
    time_of_id,
)
from shardmw.core.paths import Path
from shardmw.core.placement import (
    hidden_account,
    is_reserved,
    versions_container,
    versions_owner,
)
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.listing import container_order, max_age
from shardmw.proxy.ratelimit import container_rate
from shardmw.proxy.ratelimit.account_rate import AccountRate
from shardmw.proxy.sums import SummedStats
from shardmw.swift.memcached import LockError, SharedCache

POLICY_HEADER = 'X-Storage-Policy'
POLICY_INDEX_HEADER = 'X-Backend-Storage-Policy-Index'

LOCK_KEY = 'shardmw/lifecycle/{account}/{container}'

#: How long a lock lasts at most: a process that takes longer to commit a
#: creation loses it.
LOCK_SECONDS = 15

#: The least difference between two of Swift's timestamps.
CLOCK_TICK_SECONDS = 0.00001

#: How many backing containers to create or delete at once.
AT_A_TIME = 32

#: Stands for a shard count or depth that no container can have.
INVALID = -1

PLAIN_SHARDING = Sharding(0)

SHARDING_HEADERS = (SHARD_COUNT_HEADER, SHARD_DEPTH_HEADER)

CHANGED = 'another request has changed the container meanwhile'


class Lifecycle:
    """Handles PUT, POST and DELETE of containers."""

    def __init__(
        self,
        app: Callable,
        backend: Backend,
        layouts: Layouts,
        stats: SummedStats,
        account_rate: AccountRate,
        options: Options,
        logger,
    ) -> None:
        self.app = app
        self.backend = backend
        self.layouts = layouts
        self.stats = stats
        self.account_rate = account_rate
        self.options = options
        self.logger = logger

    def post(self, req: Request, path: Path) -> Callable:
        """Change the metadata of a container, which is in its root."""
        if authorize(req):
            return self.app  # the app's denial is the answer
        refusal = _take_settings(req)
        if refusal:
            return refusal
        asked_at = Timestamp.now()
        settings = asked_settings(self.backend, req)
        is_plain_post = not (settings or _asks_for_sharding(req))
        if is_plain_post and VERSIONS_HEADER not in req.headers:
            return self.app
        root = read_root(self.backend, req.environ, path)
        refusal = self._refused_change(req, root)
        if refusal or not root.layout:
            return refusal or self.app
        failure = self._shard_new_versions(req, path, root.layout)
        if failure:
            return Verbatim(failure)
        if not settings:
            return self.app
        change = self._sync_change(req, path, root, asked_at)
        refusal = change.refusal()
        if refusal:
            return Verbatim(refusal)
        with change.turn():
            answer = self.backend.send_as_client(
                req, to_environ(change.root_headers())
            )
            if answer.is_success:
                change.write_shards()
        return Verbatim(answer)

    def put(self, req: Request, path: Path) -> Callable:
        """Create a container, or change its metadata."""
        if authorize(req) or not _has_allowed_length(path.container):
            return self.app
        refusal = _take_settings(req)
        if not refusal and INVALID in (_count_asked(req), _depth_asked(req)):
            refusal = self._invalid_sharding(req)
        if refusal:
            return refusal
        asked_at = Timestamp.now()
        root = read_root(self.backend, req.environ, path)
        return self._put(req, path, root, asked_at)

    def delete(self, req: Request, path: Path) -> Callable:
        """Delete a container, if it is empty."""
        if authorize(req):
            return self.app
        root = read_root(self.backend, req.environ, path)
        if root.layout is None:
            return self._delete(req, path)
        with self.backend.turn(req.environ, path.account):
            return self._delete(req, path)

    def _delete(self, req: Request, path: Path) -> Callable:
        with self._lock(req, path):
            root = read_root(self.backend, req.environ, path, waits=True)
            if root.is_absent and root.answered < root.replicas:
                # A replica that has not answered may have the root of a
                # sharded container, which has no rows.
                self._check_unused(req, path, root)
            if root.layout is None:
                return Verbatim(self.backend.send_as_client(req))
            target = _target(path, root.answer.info(), root.layout)
            if not self._is_empty(req, target):
                return HTTPConflict(request=req)
            present = read_root(self.backend, req.environ, path, waits=True)
            if present.layout != root.layout:
                # The lock has expired meanwhile.
                raise BackendError(None, 503, CHANGED)
            deleted = self.backend.send_as_client(req)
            self._forget(req, target)
        if deleted.is_success:
            self.backend.metrics.note(CONTAINER_REQUESTS, method='DELETE')
            self._delete_shards(req, target)
        return Verbatim(deleted)

    def _put(
        self, req: Request, path: Path, root: RootState, asked_at: Timestamp
    ) -> Callable:
        if root.exists and not root.is_revived:
            return self._put_existing(req, path, root, asked_at)
        if root.is_absent:
            self._check_unused(req, path, root, with_rows=True)
        refusal = self._invalid_sharding(req)
        if refusal:
            return refusal
        sharding = self._sharding_for(req, path)
        if sharding.shards:
            with self.backend.turn(req.environ, path.account):
                return self._create(req, path, sharding, root)
        if _depth_asked(req) is not None:
            return _bad_request(
                req, f'{SHARD_DEPTH_HEADER} needs {SHARD_COUNT_HEADER}'
            )
        return Verbatim(self.backend.send_as_client(req))

    def _check_unused(
        self,
        req: Request,
        path: Path,
        root: RootState,
        with_rows: bool = False,
    ) -> None:
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
        hidden = hidden_account(path.account)
        if not self.backend.account_exists(req.environ, hidden):
            return
        base = self.backend.owner_env(req.environ)
        shards = list(listed_backing(self.backend, base, path))
        if with_rows and not any(each.object_count for each in shards):
            found = self._contents(req, [each.path(path) for each in shards])
            shards = [
                shard
                for shard, each in zip(shards, found, strict=True)
                if each is Contents.HOLDS
            ]
        if shards and not is_forgotten(self.backend, req.environ, path, root):
            raise BackendError(
                None,
                503,
                'no replica of the root has a database, but shard '
                f'{shards[0].container} is there',
            )

    def _put_existing(
        self, req: Request, path: Path, root: RootState, asked_at: Timestamp
    ) -> Callable:
        refusal = self._refused_change(req, root)
        if refusal:
            return refusal
        if root.layout is None:
            return Verbatim(self.backend.send_as_client(req))
        change = self._sync_change(req, path, root, asked_at)
        refusal = change.refusal()
        if refusal:
            return Verbatim(refusal)
        failure = self._shard_new_versions(req, path, root.layout)
        if failure:
            return Verbatim(failure)
        with change.turn():
            return Verbatim(self._put_change(req, path, root, change))

    def _put_change(
        self, req: Request, path: Path, root: RootState, change: SyncChange
    ) -> Answer:
        if root.holders < root.replicas:
            self._complete_root(req, path, root)
        answer = self.backend.send_as_client(
            req, to_environ(change.root_headers())
        )
        if answer.status == HTTP_CREATED:
            # It was deleted meanwhile; this PUT has created it anew.
            self._shard_created(req, path)
        elif answer.is_success:
            change.write_shards()
        return answer

    def _sync_change(
        self, req: Request, path: Path, root: RootState, asked_at: Timestamp
    ) -> SyncChange:
        target = _target(path, root.answer.info(), root.layout)
        return SyncChange(self.backend, req, target, asked_at)

    def _complete_root(
        self, req: Request, path: Path, root: RootState
    ) -> None:
        """Put the root's record and policy where they are missing.

        A client's PUT would create a missing replica, or one on a handoff,
        without the record and in the policy that the client asks for. The
        record's own time is the timestamp: a record or a deletion that has
        been written meanwhile is later, and counts.

        :raises BackendError: if too few replicas have the record afterwards,
                              or another one
        """
        self.backend.send(
            self.backend.owner_env(req.environ),
            'PUT',
            path.to_wsgi(),
            headers={
                TIMESTAMP_HEADER: Timestamp(
                    time_of_id(root.layout.serial)
                ).internal,
                # By index: the proxy refuses the name of a policy that has
                # been deprecated since.
                POLICY_INDEX_HEADER: str(root.policy_index),
                RECORD_HEADER: root.layout.to_record(),
            },
        )
        self._check_committed(req, path, root.layout)

    def _check_committed(
        self, req: Request, path: Path, layout: Layout
    ) -> None:
        """Check that enough replicas of the root have a layout's record.

        :raises BackendError: if they do not, or have another layout
        """
        root = read_root(self.backend, req.environ, path)
        if root.layout != layout or not root.is_safe:
            raise BackendError(
                None,
                503,
                f'{root.holders} of {root.replicas} roots have the layout',
            )

    def _shard_created(self, req: Request, path: Path) -> None:
        """Shard the plain container that a PUT has just created.

        :raises BackendError: if that fails
        """
        sharding = self._sharding_for(req, path)
        if not sharding.shards:
            if asked_settings(self.backend, req):
                # They were stored in the form for a sharded container.
                raise BackendError(None, 503, CHANGED)
            return
        with (
            self.backend.turn(req.environ, path.account),
            self._lock(req, path),
        ):
            root = read_root(self.backend, req.environ, path)
            layout = _new_layout(sharding, root)
            failure = self._shard_root(req, _target(path, {}, layout))
        if failure:
            raise BackendError(failure.shard, failure.status)

    def _invalid_sharding(self, req: Request) -> Response | None:
        """Return the 400 for an invalid shard count or depth, or None."""
        return self._invalid_count(req) or _invalid_depth(req)

    def _invalid_count(self, req: Request) -> Response | None:
        """Return the 400 for a shard count that is not allowed, or None."""
        asked = _count_asked(req)
        most = self.options.client_max_shards
        if req.environ.get('reseller_request'):
            most = self.options.max_shards
        if asked is None or 1 <= asked <= most:
            return None
        if most == 0:
            return _bad_request(
                req, f'{SHARD_COUNT_HEADER} is not allowed in this cluster'
            )
        return _bad_request(
            req, f'{SHARD_COUNT_HEADER} must be a number from 1 to {most}'
        )

    def _refused_change(
        self, req: Request, root: RootState
    ) -> Response | None:
        """Return the error response to a changed count or depth, or None."""
        if not _asks_for_sharding(req) or not root.exists:
            return None
        present = PLAIN_SHARDING
        if root.layout:
            present = root.layout.written_sharding
        count, depth = _count_asked(req), _depth_asked(req)
        is_other_count = count not in (None, present.shards)
        # The container's own count may be above the present limit.
        refusal = self._invalid_count(req) if is_other_count else None
        refusal = refusal or _invalid_depth(req)
        if refusal:
            return refusal
        if not present.shards:
            return _conflict(req, 'This container is not sharded')
        if is_other_count:
            return _conflict(
                req, f'This container has {present.shards} shards'
            )
        if depth not in (None, present.depth):
            return _conflict(
                req,
                f'This container has depth {present.depth}',
                SHARD_DEPTH_HEADER,
            )
        return None

    def _sharding_for(self, req: Request, path: Path) -> Sharding:
        """Return how a new container is sharded.

        The operator's options give what the client does not ask for.

        :raises BackendError: if the container that it belongs to cannot be
                              read
        :raises LayoutError: if the record of that container cannot be read
        """
        count, depth = _count_asked(req), _depth_asked(req)
        if None not in (count, depth):
            return Sharding(count, depth)
        usual = self._usual_sharding(req, path)
        return Sharding(
            usual.shards if count is None else count,
            usual.depth if depth is None else depth,
        )

    def _usual_sharding(self, req: Request, path: Path) -> Sharding:
        """Return how a container is sharded if the client does not ask.

        The containers of old versions and of the parts of S3 uploads take as
        many writes as the container that they belong to, so they get the same
        count and depth. A container of old versions is plain at first, as
        object versioning creates it before the client is authorized. It is
        sharded with the client's request, which follows.
        """
        is_of_versions = versions_owner(path.container) is not None
        if is_of_versions or self.options.max_shards == 0:
            return PLAIN_SHARDING
        bucket = path.container.removesuffix(MULTIUPLOAD_SUFFIX)
        is_bucket = bucket in ('', path.container)
        names = (path.account, path.container)
        if is_bucket or self.options.has_rule(*names):
            return self.options.sharding_for(*names)
        of_bucket = self._sharding_of(req, path.of_container(bucket))
        if of_bucket.shards:
            return of_bucket
        return self.options.sharding_for(path.account, bucket)

    def _sharding_of(self, req: Request, path: Path) -> Sharding:
        info = self.backend.container_info_of(
            req.environ, path.version, path.account, path.container
        )
        target = self.layouts.of(req.environ, path, info)
        return target.layout.written_sharding if target else PLAIN_SHARDING

    def _create(
        self, req: Request, path: Path, sharding: Sharding, former: RootState
    ) -> Callable:
        """Create a sharded container.

        :param sharding: with at least 1 shard
        :param former: the state of an earlier container of this name
        """
        self.backend.metrics.note(CONTAINER_REQUESTS, method='create')
        self.account_rate.charge_create(
            req.environ, path.account, sharding.shards
        )
        policy = req.headers.get(POLICY_HEADER) or POLICIES.default.name
        if former.is_revived and POLICY_HEADER not in req.headers:
            policy = POLICIES[former.policy_index].name
        target = _target(path, {}, _new_layout(sharding, former))
        self.backend.create_hidden_account(req.environ, target.hidden_account)
        settings = asked_settings(self.backend, req)
        failure = self._put_shards(req, target, policy, settings)
        if not failure and VERSIONS_HEADER in req.headers:
            failure = self._shard_versions(req, target)
        if failure:
            if is_client_error(failure.status):
                return Verbatim(failure)
            raise BackendError(failure.shard, failure.status)
        return self._commit(req, target, policy)

    def _commit(
        self, req: Request, target: LogicalContainer, policy: str
    ) -> Callable:
        """Put the root of a container whose shards have been created."""
        with self._lock(req, target.path):
            present = read_root(self.backend, req.environ, target.path)
            is_outdated = present.deleted >= time_of_id(target.layout.id)
            is_taken = present.exists and not present.is_revived
            if not is_taken and not is_outdated:
                settings = asked_settings(self.backend, req)
                headers = {
                    RECORD_HEADER: target.layout.to_record(),
                    POLICY_HEADER: policy,
                    **root_headers(settings, target.layout.synced),
                }
                root = self.backend.send_as_client(req, to_environ(headers))
                self.layouts.forget(target.path)
                if root.is_success:
                    self._check_committed(req, target.path, target.layout)
        if is_taken:
            # Another request was faster.
            now = Timestamp.now()
            return self._put_existing(req, target.path, present, now)
        if is_outdated:
            # Another request was faster, and yet another has deleted what it
            # created. A record counts only if its id is later than a deletion.
            return self._put(req, target.path, present, Timestamp.now())
        if not (root.is_success or is_client_error(root.status)):
            # Some replicas may have the record, so the shards must stay.
            raise BackendError(None, root.status)
        return Verbatim(root)

    def _shard_versions(
        self, req: Request, target: LogicalContainer
    ) -> Answer | None:
        """Shard the versions container of a container that is being created.

        Object versioning has created it just before, when the number of its
        owner's shards was not known yet. The rows that it has become strays.

        :returns: the answer to the request that failed, or None
        :raises LayoutError: if it has a record that cannot be read
        """
        versions = versions_container(target.container)
        return self._shard_root(
            req, dataclasses.replace(target, container=versions)
        )

    def _shard_new_versions(
        self, req: Request, path: Path, layout: Layout
    ) -> Answer | None:
        """Shard the versions container when a client turns versioning on.

        Object versioning has created it just before, or long ago: if it is
        plain and has rows, it stays plain.

        :param req: an authorized PUT or POST of a sharded container
        :param layout: the layout of the sharded container
        :returns: the answer to the request that failed, or None
        :raises LayoutError: if it has a record that cannot be read
        """
        sharding = layout.written_sharding
        if VERSIONS_HEADER not in req.headers or self.options.max_shards == 0:
            return None
        versions = path.of_container(versions_container(path.container))
        present = read_root(self.backend, req.environ, versions)
        if not (present.exists and sharding.shards):
            return None
        if present.layout or present.answer.object_count:
            return None
        self.account_rate.charge_create(
            req.environ, path.account, sharding.shards
        )
        target = _target(versions, {}, _new_layout(sharding, present))
        self.backend.create_hidden_account(req.environ, target.hidden_account)
        with (
            self.backend.turn(req.environ, path.account),
            self._lock(req, versions),
        ):
            failure = self._shard_root(req, target)
        if failure and not is_client_error(failure.status):
            raise BackendError(failure.shard, failure.status)
        return failure

    def _shard_root(
        self, req: Request, target: LogicalContainer
    ) -> Answer | None:
        """Shard a plain container, unless it does not exist or is sharded.

        :returns: the answer to the request that failed, or None
        :raises BackendError: if too few replicas have the record afterwards
        :raises LayoutError: if it has a record that cannot be read
        """
        path = target.path
        present = read_root(self.backend, req.environ, path)
        if present.layout or not present.is_put:
            return None
        target = dataclasses.replace(target, info=present.answer.info())
        settings = SyncSettings.of(present.answer).headers()
        policy = POLICIES[target.policy_index].name
        failure = self._put_shards(req, target, policy, settings)
        if failure:
            return failure
        root = self.backend.send(
            self.backend.owner_env(req.environ),
            'POST',
            path.to_wsgi(),
            headers={
                RECORD_HEADER: target.layout.to_record(),
                **root_headers(settings, target.layout.synced),
            },
        )
        if not root.is_success:
            return root
        self.layouts.forget(path)
        self._check_committed(req, path, target.layout)
        return None

    def _put_shards(
        self,
        req: Request,
        target: LogicalContainer,
        policy: str,
        settings: dict[str, str],
    ) -> Answer | None:
        """Create the shards of a new layout.

        The first shard is created before the others. If the account, the
        policy or a setting is invalid, its answer is the one that the root
        would have given.

        :param settings: those of container sync
        :returns: the answer of a shard that could not be created, or None
        """
        base = self.backend.owner_env(req.environ)
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

    def _is_empty(self, req: Request, target: LogicalContainer) -> bool:
        """Return True if replicas prove that the root and shards are empty.

        Swift would check the root, too, but would delete a replica that lacks
        a stray. During a change, rows may move out of the root, so it is asked
        first.

        :raises BackendError: if they prove nothing
        """
        stages = [
            [target.backing_path(shard) for shard in stage]
            for stage in target.read_stages()
        ]
        first = 0 if target.layout.is_changing else len(stages)
        stages.insert(first, [target.path])
        for stage in stages:
            found = self._contents(req, stage)
            if Contents.HOLDS in found:
                return False
            for path, each in zip(stage, found, strict=True):
                if each is not Contents.EMPTY:
                    raise BackendError(None, 503, unproved_empty(path))
        return True

    def _contents(self, req: Request, paths: list[Path]) -> list[Contents]:
        """Return what the replicas of each container prove that it lists."""
        return self.backend.for_each(
            partial(contents_of, self.backend, req.environ), paths, AT_A_TIME
        )

    def _delete_shards(self, req: Request, target: LogicalContainer) -> None:
        """Delete the shards of a container that was deleted just now.

        A shard that has received a row meanwhile stays, and so does one that
        does not answer: ``shardmw-resharder`` handles them later.
        """
        base = self.backend.owner_env(req.environ)
        answers = self.backend.fan_out(
            lambda shard: self.backend.send_to_shard(
                base, target, shard, 'DELETE'
            ),
            [(shard,) for shard in target.shards()],
            AT_A_TIME,
        )
        left = [a for a in answers if not (a.is_success or a.is_missing)]
        if left:
            # Later, their rows are removed with tombstones, which must not be
            # synced.
            self.backend.fan_out(
                lambda shard: self.backend.send_to_shard(
                    base, target, shard, 'POST', headers={SYNC_TO_HEADER: ''}
                ),
                [(answer.shard,) for answer in left],
                AT_A_TIME,
            )
            self.logger.warning(
                'shardmw: %s %s: %d of %d shards could not be deleted, such '
                'as shard %d, which answered %d; they are deleted later',
                req.method,
                wsgi_quote(req.path_info),
                len(left),
                len(answers),
                left[0].shard,
                left[0].status,
            )

    def _forget(self, req: Request, target: LogicalContainer) -> None:
        self.layouts.forget(target.path)
        self.backend.forget_info(req.environ, target.path)
        self.stats.forget(req.environ, target)

    def _lock(self, req: Request, path: Path):
        """Return the lock that creations and deletions of a path hold.

        :raises BackendError: if another process holds it for too long
        """
        return _Locked(req, path)


class _Locked:
    """Holds the lock of a container's lifecycle."""

    def __init__(self, req: Request, path: Path) -> None:
        key = LOCK_KEY.format(account=path.account, container=path.container)
        self._lock = SharedCache(req.environ).lock(key, LOCK_SECONDS)

    def __enter__(self) -> None:
        try:
            self._lock.__enter__()
        except LockError as err:
            raise BackendError(None, 503, str(err)) from err

    def __exit__(self, *exc_info: object) -> None:
        self._lock.__exit__(*exc_info)


def _new_layout(sharding: Sharding, former: RootState) -> Layout:
    """Return a layout whose id is later than those of all earlier layouts.

    :param former: the state of an earlier container of this name. The clock of
                   the proxy that deleted or changed it may be ahead
    """
    drawn = max(time.time(), former.deleted + CLOCK_TICK_SECONDS)
    if former.record:
        changed = time_of_id(former.record.serial)
        drawn = max(drawn, changed + TICKS_SECONDS)
    return Layout(id_of_time(drawn), sharding.shards, depth=sharding.depth)


def _target(path: Path, info: dict, layout: Layout) -> LogicalContainer:
    return LogicalContainer(
        path.version, path.account, path.container, info, layout
    )


def _take_settings(req: Request) -> Response | None:
    """Replace the headers of this filter's settings with their sysmeta.

    :returns: the error response if one is forbidden or invalid
    """
    for module in (container_rate, container_order, max_age):
        refusal = module.take_header(req)
        if refusal:
            return refusal
    return None


def _count_asked(req: Request) -> int | None:
    """Return the shard count that a request asks for, None without one.

    :returns: INVALID for one that no container can have
    """
    return _number_asked(req, SHARD_COUNT_HEADER, 1, SHARD_COUNT_LIMIT)


def _depth_asked(req: Request) -> int | None:
    """Return the depth that a request asks for, None without one.

    :returns: INVALID for one that no container can have
    """
    return _number_asked(req, SHARD_DEPTH_HEADER, 0, DEPTH_LIMIT)


def _number_asked(
    req: Request, header: str, least: int, most: int
) -> int | None:
    text = req.headers.get(header)
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    number = int(text) if is_number else INVALID
    return number if least <= number <= most else INVALID


def _asks_for_sharding(req: Request) -> bool:
    """Return True if a request asks for a shard count or a depth."""
    return any(header in req.headers for header in SHARDING_HEADERS)


def _invalid_depth(req: Request) -> Response | None:
    """Return the 400 for a depth that no container can have."""
    if _depth_asked(req) != INVALID:
        return None
    return _bad_request(
        req, f'{SHARD_DEPTH_HEADER} must be a number from 0 to {DEPTH_LIMIT}'
    )


def _has_allowed_length(container: str) -> bool:
    """Return True if a client may use a container name of this length.

    Swift makes the reserved names itself, so they are not checked here.
    """
    return (
        is_reserved(container) or len(container) <= MAX_CONTAINER_NAME_LENGTH
    )


def _bad_request(req: Request, body: str) -> Response:
    return HTTPBadRequest(request=req, content_type='text/plain', body=body)


def _conflict(
    req: Request, state: str, header: str = SHARD_COUNT_HEADER
) -> Response:
    return HTTPConflict(
        request=req,
        content_type='text/plain',
        body=f'{state}; {header} can only be set when a container is created',
    )
