# SPDX-License-Identifier: Apache-2.0
"""PUT, POST and DELETE of containers.

A process may die at any point. Acknowledged objects can then be read and
listed; the container is plain, or sharded with all its shards, or does not
exist; and the client completes the request by repeating it:

- Creation (:mod:`shardmw.proxy.creation`) puts the shards, with a new id, and
  then the root with the record. The PUT of the root is the commit. It is done
  under a lock and after a read of all replicas of the root, so that only one
  of several creations commits. Shards without a root are invisible;
  ``shardmw-resharder`` deletes them after an hour.
- Deletion deletes the root, if it and all shards are proved to be empty
  (:mod:`shardmw.core.evidence`), and then the shards. A row that comes later
  waits for ``shardmw-resharder`` (:mod:`shardmw.reshard.late_rows`).
"""

from collections.abc import Callable

from swift.common.constraints import MAX_CONTAINER_NAME_LENGTH
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT as VERSIONS_HEADER,
)
from swift.common.swob import HTTPConflict, Request, wsgi_quote

from shardmw.backend.answers import Verbatim
from shardmw.backend.containers import (
    SYNC_TO_HEADER,
    BackendError,
    LogicalContainer,
    authorize,
)
from shardmw.backend.metrics import CONTAINER_REQUESTS
from shardmw.backend.roots import unproved_empty
from shardmw.backend.sync_settings import asked_settings
from shardmw.core.evidence import Contents
from shardmw.core.paths import Path
from shardmw.core.placement import is_reserved
from shardmw.proxy.container_context import (
    AT_A_TIME,
    CHANGED,
    ContainerContext,
    Tools,
    WriteContext,
)
from shardmw.proxy.creation import PutContext


class Lifecycle:
    """Handles PUT, POST and DELETE of containers."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.app = tools.app

    def post(self, req: Request, path: Path) -> Callable:
        """Change the metadata of a container, which is in its root."""
        if authorize(req):
            return self.app  # the app's denial is the answer
        return PostContext(self.tools, req, path).answer()

    def put(self, req: Request, path: Path) -> Callable:
        """Create a container, or change its metadata."""
        if authorize(req) or not _has_allowed_length(path.container):
            return self.app
        return PutContext(self.tools, req, path).answer()

    def delete(self, req: Request, path: Path) -> Callable:
        """Delete a container, if it is empty."""
        if authorize(req):
            return self.app
        return DeleteContext(self.tools, req, path).answer()


class PostContext(WriteContext):
    """A POST of a container."""

    def answer(self) -> Callable:
        """Return the WSGI application that answers the request."""
        refusal = self.take_settings()
        if refusal:
            return refusal
        settings = asked_settings(self.backend, self.req)
        is_plain_post = not (settings or self.asked.is_any)
        if is_plain_post and VERSIONS_HEADER not in self.req.headers:
            return self.app
        root = self.read_root()
        refusal = self.asked.refused_change(root)
        if refusal or not root.layout:
            return refusal or self.app
        failure = self.shard_new_versions(root.layout)
        if failure:
            return Verbatim(failure)
        if not settings:
            return self.app
        change = self.sync_change(root)
        refusal = change.refusal()
        if refusal:
            return Verbatim(refusal)
        with change.turn():
            answer = self.send(change.root_headers())
            if answer.is_success:
                change.write_shards()
        return Verbatim(answer)


class DeleteContext(ContainerContext):
    """A DELETE of a container."""

    def answer(self) -> Callable:
        """Return the WSGI application that answers the request."""
        if self.read_root().layout is None:
            return self._delete()
        with self.turn():
            return self._delete()

    def _delete(self) -> Callable:
        with self.lock():
            root = self.read_root(waits=True)
            if root.is_absent and root.answered < root.replicas:
                # A replica that has not answered may have the root of a
                # sharded container, which has no rows.
                self.check_unused(root)
            if root.layout is None:
                return Verbatim(self.send())
            target = LogicalContainer(
                self.path, root.answer.info(), root.layout
            )
            if not self._is_empty(target):
                return HTTPConflict(request=self.req)
            if self.read_root(waits=True).layout != root.layout:
                # The lock has expired meanwhile.
                raise BackendError(None, 503, CHANGED)
            deleted = self.send()
            self._forget(target)
        if deleted.is_success:
            self.backend.metrics.note(CONTAINER_REQUESTS, method='DELETE')
            self._delete_shards(target)
        return Verbatim(deleted)

    def _is_empty(self, target: LogicalContainer) -> bool:
        """Return True if replicas prove that the root and shards are empty.

        Swift would check the root, too, but would delete a replica that lacks
        a stray. During a change, rows may move out of the root or into it, so
        it is asked first and last.

        :raises BackendError: if they prove nothing
        """
        stages = [
            [target.backing_path(shard) for shard in stage]
            for stage in target.read_stages()
        ]
        root = [target.path]
        first = [root] if target.layout.is_changing else []
        for stage in [*first, *stages, root]:
            found = self.contents(stage)
            if Contents.HOLDS in found:
                return False
            for path, each in zip(stage, found, strict=True):
                if each is not Contents.EMPTY:
                    raise BackendError(None, 503, unproved_empty(path))
        return True

    def _delete_shards(self, target: LogicalContainer) -> None:
        """Delete the shards of a container that was deleted just now.

        A shard that has received a row meanwhile stays, and so does one that
        does not answer: ``shardmw-resharder`` handles them later.
        """
        base = self.backend.owner_env(self.env)
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
            self.tools.logger.warning(
                'shardmw: %s %s: %d of %d shards could not be deleted, such '
                'as shard %d, which answered %d; they are deleted later',
                self.req.method,
                wsgi_quote(self.req.path_info),
                len(left),
                len(answers),
                left[0].shard,
                left[0].status,
            )

    def _forget(self, target: LogicalContainer) -> None:
        self.tools.layouts.forget(target.path)
        self.backend.forget_info(self.env, target.path)
        self.tools.stats.forget(self.env, target)


def _has_allowed_length(container: str) -> bool:
    """Return True if a client may use a container name of this length.

    Swift makes the reserved names itself, so they are not checked here.
    """
    return (
        is_reserved(container) or len(container) <= MAX_CONTAINER_NAME_LENGTH
    )
