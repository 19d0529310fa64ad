# SPDX-License-Identifier: Apache-2.0
"""PUT of a container: create it, or change its metadata."""

import dataclasses
from collections.abc import Callable

from swift.common.http import HTTP_CREATED, is_client_error
from swift.common.middleware.s3api.utils import MULTIUPLOAD_SUFFIX
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT as VERSIONS_HEADER,
)
from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer, Verbatim
from shardmw.backend.containers import (
    RECORD_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.metrics import CONTAINER_REQUESTS
from shardmw.backend.roots import RootState
from shardmw.backend.sync_settings import (
    TIMESTAMP_HEADER,
    SyncChange,
    asked_settings,
    root_headers,
)
from shardmw.core.layout import Sharding, time_of_id
from shardmw.core.paths import Path
from shardmw.core.placement import versions_container, versions_owner
from shardmw.proxy.asked_sharding import PLAIN_SHARDING
from shardmw.proxy.container_context import (
    CHANGED,
    POLICY_HEADER,
    WriteContext,
    new_layout,
)

POLICY_INDEX_HEADER = 'X-Backend-Storage-Policy-Index'


class PutContext(WriteContext):
    """A PUT of a container."""

    def answer(self) -> Callable:
        """Return the WSGI application that answers the request."""
        refusal = self.take_settings()
        if not refusal and self.asked.is_impossible:
            refusal = self.asked.refusal()
        return refusal or self._put(self.read_root())

    def _put(self, root: RootState) -> Callable:
        if root.exists and not root.is_revived:
            return self._put_existing(root)
        if root.is_absent:
            self.check_unused(root, with_rows=True)
        refusal = self.asked.refusal()
        if refusal:
            return refusal
        sharding = self._sharding()
        if sharding.shards:
            with self.turn():
                return self._create(sharding, root)
        if self.asked.depth is not None:
            return self.asked.depth_without_count()
        return Verbatim(self.send())

    def _put_existing(self, root: RootState) -> Callable:
        refusal = self.asked.refused_change(root)
        if refusal:
            return refusal
        if root.layout is None:
            return Verbatim(self.send())
        change = self.sync_change(root)
        refusal = change.refusal()
        if refusal:
            return Verbatim(refusal)
        failure = self.shard_new_versions(root.layout)
        if failure:
            return Verbatim(failure)
        with change.turn():
            return Verbatim(self._put_change(root, change))

    def _put_change(self, root: RootState, change: SyncChange) -> Answer:
        if root.holders < root.replicas:
            self._complete_root(root, change.target)
        answer = self.send(change.root_headers())
        if answer.status == HTTP_CREATED:
            # It was deleted meanwhile; this PUT has created it anew.
            self._shard_created()
        elif answer.is_success:
            change.write_shards()
        return answer

    def _complete_root(
        self, root: RootState, target: LogicalContainer
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
            self.backend.owner_env(self.env),
            'PUT',
            self.path.to_wsgi(),
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
        self.check_committed(target)

    def _shard_created(self) -> None:
        """Shard the plain container that this PUT has just created.

        :raises BackendError: if that fails
        """
        sharding = self._sharding()
        if not sharding.shards:
            if asked_settings(self.backend, self.req):
                # They were stored in the form for a sharded container.
                raise BackendError(None, 503, CHANGED)
            return
        with self.turn(), self.lock():
            layout = new_layout(sharding, self.read_root())
            target = LogicalContainer(self.path, {}, layout)
            failure = self.shard_root(target)
        if failure:
            raise BackendError(failure.shard, failure.status)

    def _sharding(self) -> Sharding:
        """Return how a new container is sharded.

        The operator's options give what the client does not ask for.

        :raises BackendError: if the container that it belongs to cannot be
                              read
        :raises LayoutError: if the record of that container cannot be read
        """
        count, depth = self.asked.count, self.asked.depth
        if None not in (count, depth):
            return Sharding(count, depth)
        usual = self._usual_sharding()
        return Sharding(
            usual.shards if count is None else count,
            usual.depth if depth is None else depth,
        )

    def _usual_sharding(self) -> Sharding:
        """Return how the container is sharded if the client does not ask.

        The containers of old versions and of the parts of S3 uploads take as
        many writes as the container that they belong to, so they get the same
        count and depth. A container of old versions is plain at first, as
        object versioning creates it before the client is authorized. It is
        sharded with the client's request, which follows.
        """
        path, options = self.path, self.options
        is_of_versions = versions_owner(path.container) is not None
        if is_of_versions or options.max_shards == 0:
            return PLAIN_SHARDING
        bucket = path.container.removesuffix(MULTIUPLOAD_SUFFIX)
        is_bucket = bucket in ('', path.container)
        if is_bucket or options.has_rule(*path.place):
            return options.sharding_for(*path.place)
        of_bucket = self._sharding_of(path.of_container(bucket))
        if of_bucket.shards:
            return of_bucket
        return options.sharding_for(path.account, bucket)

    def _sharding_of(self, path: Path) -> Sharding:
        info = self.backend.container_info_of(self.env, path)
        target = self.tools.layouts.of(self.env, path, info)
        return target.layout.written_sharding if target else PLAIN_SHARDING

    def _create(self, sharding: Sharding, former: RootState) -> Callable:
        """Create a sharded container.

        :param sharding: with at least 1 shard
        :param former: the state of an earlier container of this name
        """
        self.backend.metrics.note(CONTAINER_REQUESTS, method='create')
        self.tools.account_rate.charge_create(
            self.env, self.path.account, sharding.shards
        )
        policy = self.req.headers.get(POLICY_HEADER) or POLICIES.default.name
        if former.is_revived and POLICY_HEADER not in self.req.headers:
            policy = POLICIES[former.policy_index].name
        layout = new_layout(sharding, former)
        target = LogicalContainer(self.path, {}, layout)
        self.backend.create_hidden_account(self.env, target.hidden_account)
        settings = asked_settings(self.backend, self.req)
        failure = self.put_shards(target, policy, settings)
        if not failure and VERSIONS_HEADER in self.req.headers:
            failure = self._shard_versions(target)
        if failure:
            if is_client_error(failure.status):
                return Verbatim(failure)
            raise BackendError(failure.shard, failure.status)
        return self._commit(target, policy)

    def _commit(self, target: LogicalContainer, policy: str) -> Callable:
        """Put the root of a container whose shards have been created."""
        with self.lock():
            present = self.read_root()
            is_outdated = present.deleted >= time_of_id(target.layout.id)
            is_taken = present.exists and not present.is_revived
            if not is_taken and not is_outdated:
                settings = asked_settings(self.backend, self.req)
                headers = {
                    **self.record_headers(target.layout),
                    POLICY_HEADER: policy,
                    **root_headers(settings, target.layout.synced),
                }
                root = self.send(headers)
                self.tools.layouts.forget(self.path)
                if root.is_success:
                    self.check_committed(target)
        if is_taken or is_outdated:
            self.asked_at = Timestamp.now()
        if is_taken:
            # Another request was faster.
            return self._put_existing(present)
        if is_outdated:
            # Another request was faster, and yet another has deleted what it
            # created. A record counts only if its id is later than a deletion.
            return self._put(present)
        if not (root.is_success or is_client_error(root.status)):
            # Some replicas may have the record, so the shards must stay.
            raise BackendError(None, root.status)
        return Verbatim(root)

    def _shard_versions(self, target: LogicalContainer) -> Answer | None:
        """Shard the versions container of a container that is being created.

        Object versioning has created it just before, when the number of its
        owner's shards was not known yet. The rows that it has become strays.

        :returns: the answer to the request that failed, or None
        :raises LayoutError: if it has a record that cannot be read
        """
        versions = target.path.of_container(
            versions_container(target.container)
        )
        return self.shard_root(dataclasses.replace(target, path=versions))
