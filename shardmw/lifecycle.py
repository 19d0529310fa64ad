# SPDX-License-Identifier: Apache-2.0
"""How sharded containers come into being, change and end.

At every point where a process can die, an acknowledged object can be read and
listed; a container is plain, or sharded with all its shards, or gone; and the
same request, repeated, completes what the dead one began:

- Create: the shards, then the root with the record. The root is the commit;
  shards without one are invisible and taken up by the next create.
- Delete: the root, if it and all shards are empty, then the shards. A shard
  that took an object meanwhile brings the root back, as a plain container
  that takes an object while it is deleted comes back. A repeated DELETE
  clears the shards that a dead one left.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from swift.common.constraints import MAX_CONTAINER_NAME_LENGTH
from swift.common.http import (
    HTTP_CONFLICT,
    HTTP_OK,
    is_client_error,
    is_success,
)
from swift.common.middleware.s3api.utils import MULTIUPLOAD_SUFFIX
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT as VERSIONS_HEADER,
)
from swift.common.request_helpers import (
    get_sys_meta_prefix,
    get_user_meta_prefix,
)
from swift.common.storage_policy import POLICIES
from swift.common.swob import (
    HTTPBadRequest,
    HTTPConflict,
    Request,
    Response,
    str_to_wsgi,
    wsgi_quote,
    wsgi_to_str,
)

from shardmw import overrides
from shardmw.accounts import AFTER_ALL, backing_rows, forget_backing_counts
from shardmw.backend import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    Answer,
    Backend,
    BackendError,
    LogicalContainer,
    SharedCache,
    Verbatim,
    authorize,
    info_of,
    require_success,
    sleep,
    to_environ,
)
from shardmw.config import Options
from shardmw.layout import Layout
from shardmw.placement import (
    backing_prefix,
    versions_container,
    versions_owner,
)
from shardmw.recent import Recent
from shardmw.stats import cache_key as stats_key

SYNC_TO_HEADER = 'X-Container-Sync-To'
POLICY_HEADER = 'X-Storage-Policy'

#: What a root's HEAD shows of it beyond metadata, and a PUT can set again.
ROOT_HEADERS = (
    'X-Container-Read',
    'X-Container-Write',
    'X-Container-Sync-Key',
    'X-Versions-Location',
    POLICY_HEADER,
)
METADATA_PREFIXES = (
    get_user_meta_prefix('container').title(),
    get_sys_meta_prefix('container').title(),
)

LOCK_KEY = 'shardmw/lifecycle/{account}/{container}'
#: How long one process can hold up others that create the same container; if
#: it takes longer, they go on.
LOCK_SECONDS = 15
LOCK_POLL_SECONDS = 0.05

#: A DELETE watches out for so long for uploads that began before it; one that
#: takes longer looks for itself whether its container is still there.
UPLOAD_GRACE_SECONDS = 0.15

#: Backing containers that are made or deleted at once. That waits for disks,
#: and is rare.
AT_A_TIME = 32

#: Of how many containers a worker remembers that they were there.
CONFIRMED = 1024

REPLACED = 'created anew with another layout during an upload'
LOCKED = 'another PUT or DELETE of the container takes too long'


def parse_shard_count(text: str, max_shards: int) -> int | None:
    """A client's shard count, None if it is none from 1 to max_shards."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    count = int(text)
    return count if 1 <= count <= max_shards else None


class ReplacedError(BackendError):
    """An upload's container was deleted, and created anew otherwise."""


class Lifecycle:
    """Handles PUT, POST and DELETE of containers."""

    def __init__(
        self, app: Callable, backend: Backend, options: Options, logger
    ) -> None:
        self.app = app
        self.backend = backend
        self.options = options
        self.logger = logger
        # The layouts that containers had, and when.
        self._confirmed = Recent(CONFIRMED)

    def post(self, req: Request) -> Callable:
        """Change a container's metadata, which all lies in the root."""
        if authorize(req):
            return self.app
        info = self.backend.container_info(req.environ)
        refusal = overrides.take_header(req) or self._refused_change(req, info)
        return refusal or self.app

    def put(self, req: Request) -> Callable:
        """Create a container, or change its metadata."""
        if authorize(req):
            return self.app  # to Swift, whose denial is the answer
        _version, account, container = map(wsgi_to_str, req.split_path(3, 3))
        if len(container) > MAX_CONTAINER_NAME_LENGTH:
            return self.app
        info = self.backend.container_info(req.environ)
        refusal = overrides.take_header(req) or self._refused_change(req, info)
        if refusal or is_success(info['status']):
            return refusal or self.app
        if SHARD_COUNT_HEADER in req.headers:
            shards = int(req.headers[SHARD_COUNT_HEADER])
        else:
            shards = self._shards_for(req, account, container)
        if shards and req.headers.get(SYNC_TO_HEADER):
            return _sync_refused(req)
        with self._lock(req):
            return self._put_new(req, shards)

    def delete(self, req: Request) -> Callable:
        """Delete a container, if it is empty."""
        if authorize(req):
            return self.app
        _version, _account, container = map(wsgi_to_str, req.split_path(3, 3))
        with self._lock(req):
            root = self.backend.head_root(req)
            target = self.backend.described_by(req, info_of(root))
            if target:
                return self._delete(req, target, root)
            if root.is_missing:
                leftover = self._clear_leftovers(req)
                if leftover:
                    self._revive(req, leftover)
                    return HTTPConflict(request=req)
            elif versions_owner(container) is not None:
                return self._delete_half_sharded(req)
        return self.app

    def _delete_half_sharded(self, req: Request) -> Callable:
        """Delete a plain container that may have got shards, but no record."""
        deleted = self.backend.send_as_client(req)
        if deleted.is_success:
            self._clear_leftovers(req)
        return Verbatim(deleted)

    def _refused_change(self, req: Request, info: dict) -> Response | None:
        """The refusal of a PUT or POST, if it can't be, else None.

        :param info: Swift's info of the container, which may not exist
        :raises LayoutError: if its record can't be read
        """
        target = self.backend.described_by(req, info)
        if target and req.headers.get(SYNC_TO_HEADER):
            return _sync_refused(req)
        asked = req.headers.get(SHARD_COUNT_HEADER)
        if asked is None:
            return None
        shards = parse_shard_count(asked, self.options.max_shards)
        if shards is None:
            return HTTPBadRequest(
                request=req,
                content_type='text/plain',
                body=f'{SHARD_COUNT_HEADER} must be a whole number from 1 '
                f'to {self.options.max_shards}',
            )
        if not is_success(info['status']):
            return None
        if target is None:
            return _count_conflict(req, 'This container is not sharded')
        if shards != target.layout.shards:
            return _count_conflict(
                req, f'This container has {target.layout.shards} shards'
            )
        if req.method == 'PUT':
            self._put_missing_shards(req, target)
        return None

    def _put_missing_shards(
        self, req: Request, target: LogicalContainer
    ) -> None:
        """Make a container whole again.

        :raises BackendError: if that can't be done
        """
        shards = self._present_shards(req, target)
        if len(shards) < len(target.shards()):
            policy = POLICIES[target.info['storage_policy']].name
            failure = self._put_shards(req, target, policy)
            if failure:
                raise BackendError(failure.shard, failure.status)

    def _shards_for(self, req: Request, account: str, container: str) -> int:
        """The shard count of a new container that no client chose.

        Versions and the parts of S3's uploads are as many as what they belong
        to takes, so they get the same count.

        :raises BackendError: if nobody can say
        :raises LayoutError: if a record that counts can't be read
        """
        owner = versions_owner(container)
        if owner is not None:
            return self._shards_of(req, owner)
        bucket = container.removesuffix(MULTIUPLOAD_SUFFIX)
        is_its_own = bucket in ('', container)
        if is_its_own or self.options.has_rule(account, container):
            return self.options.shards_for(account, container)
        return self._shards_of(req, bucket) or self.options.shards_for(
            account, bucket
        )

    def _shards_of(self, req: Request, container: str) -> int:
        version, account, _container = req.split_path(3, 3)
        path = f'/{version}/{account}/{str_to_wsgi(container)}'
        target = self.backend.container_at(req, path)
        return target.layout.shards if target else 0

    def _put_new(self, req: Request, shards: int) -> Callable:
        """Create a container that there seems to be none of.

        :param shards: how many it is to have, 0 for a plain one
        """
        root = self.backend.head_root(req)
        if root.is_missing:
            leftover = self._clear_leftovers(req)
            if leftover:
                self._revive(req, leftover)
                root = self.backend.head_root(req)
        if root.is_success:
            refusal = self._refused_change(req, info_of(root))
            return refusal or Verbatim(self.backend.send_as_client(req))
        if not root.is_missing:
            raise BackendError(None, root.status)
        if shards == 0:
            return Verbatim(self.backend.send_as_client(req))
        return self._create(req, shards)

    def _create(self, req: Request, shards: int) -> Callable:
        policy = req.headers.get(POLICY_HEADER) or POLICIES.default.name
        version, account, container = req.split_path(3, 3)
        layout = Layout(shards)
        target = LogicalContainer(
            version, wsgi_to_str(account), wsgi_to_str(container), {}, layout
        )
        self.logger.increment('container.create')
        forget_backing_counts(req.environ, target.account)
        try:
            failure = self._put_shards(req, target, policy)
            if not failure and VERSIONS_HEADER in req.headers:
                failure = self._shard_versions(req, target)
            if failure:
                root = failure
            else:
                record = {
                    RECORD_HEADER: layout.to_record(),
                    POLICY_HEADER: policy,
                }
                root = self.backend.send_as_client(req, to_environ(record))
            if is_client_error(root.status):
                # Nobody else's, who was faster while there was no lock.
                if self.backend.head_root(req).is_missing:
                    self._delete_shards(req, target)
            elif not root.is_success:
                # The root may have been written: its shards must stay.
                raise BackendError(root.shard, root.status)
        finally:
            forget_backing_counts(req.environ, target.account)
        return Verbatim(root)

    def _shard_versions(
        self, req: Request, target: LogicalContainer
    ) -> Answer | None:
        """Shard the versions' container of one that is being created.

        Object versioning has created it just before, when nobody could say
        how many shards the other would get. It is empty, or what it holds
        becomes overflow; one that was left over, and is sharded, stays so.

        :returns: the answer of what could not be done, or None
        :raises LayoutError: if it has a record that can't be read
        """
        versions = dataclasses.replace(
            target, container=versions_container(target.container)
        )
        hidden = Request(dict(req.environ, PATH_INFO=versions.path))
        present = self.backend.head_root(hidden)
        if not present.is_success:
            return present
        if self.backend.described_by(hidden, info_of(present)):
            return None
        policy = POLICIES[info_of(present)['storage_policy']].name
        failure = self._put_shards(req, versions, policy)
        if failure:
            return failure
        root = self.backend.send(
            self.backend.owner_env(req.environ),
            'POST',
            versions.path,
            headers={RECORD_HEADER: versions.layout.to_record()},
        )
        return None if root.is_success else root

    def _put_shards(
        self, req: Request, target: LogicalContainer, policy: str
    ) -> Answer | None:
        """Create those shards that there aren't yet.

        The first one goes ahead: if the account or the policy are not as
        they should be, it says what the root would have said.

        :returns: the answer of a shard that could not be created, or None
        """
        base = self.backend.owner_env(req.environ)
        headers = {
            POLICY_HEADER: policy,
            RECORD_HEADER: target.layout.to_record(),
        }

        def put(shard: int) -> Answer:
            answer = self.backend.send_to_shard(
                base, target, shard, 'PUT', headers=headers
            )
            if answer.status != HTTP_CONFLICT:
                return answer
            # A shard that was left over, with another policy.
            self.backend.send_to_shard(base, target, shard, 'DELETE')
            return self.backend.send_to_shard(
                base, target, shard, 'PUT', headers=headers
            )

        shards = [(shard,) for shard in target.shards()]
        for batch in (shards[:1], shards[1:]):
            for answer in self.backend.fan_out(put, batch, AT_A_TIME):
                if not answer.is_success:
                    return answer
        return None

    def _delete_shards(
        self, req: Request, target: LogicalContainer
    ) -> list[Answer]:
        base = self.backend.owner_env(req.environ)
        return self.backend.fan_out(
            lambda shard: self.backend.send_to_shard(
                base, target, shard, 'DELETE'
            ),
            [(shard,) for shard in target.shards()],
            AT_A_TIME,
        )

    def _delete(
        self, req: Request, target: LogicalContainer, root: Answer
    ) -> Callable:
        for answer in self._present_shards(req, target):
            if answer.object_count > 0:
                return HTTPConflict(request=req)
        self.logger.increment('container.DELETE')
        deleted = self.backend.send_as_client(req)
        if not deleted.is_success:
            return Verbatim(deleted)
        # Swift forgets what it cached before it deletes, and may have
        # cached it again by then.
        self._forget(req, target)
        deadline = time.monotonic() + UPLOAD_GRACE_SECONDS
        try:
            left = _left_over(self._delete_shards(req, target))
            sleep(max(0, deadline - time.monotonic()))
            self._forget(req, target)
            left = left or self._clear_leftovers(req)
            if left:
                self._restore(req, target, _root_headers(root))
                if left.status == HTTP_CONFLICT:
                    return HTTPConflict(request=req)
                raise BackendError(left.shard, left.status)
        finally:
            SharedCache(req.environ).delete(
                stats_key(target.account, target.container)
            )
            forget_backing_counts(req.environ, target.account)
        return Verbatim(deleted)

    def keep(self, req: Request, target: LogicalContainer) -> None:
        """Bring a container back that was deleted during a long upload.

        So a plain container comes back, too. To be called after an upload
        into a shard that took longer than UPLOAD_GRACE_SECONDS; a DELETE
        finds the objects of shorter ones by itself.

        :raises ReplacedError: if meanwhile there is another container of the
                               same name
        :raises BackendError: if nobody can say, or it can't be done
        """
        if self._is_confirmed(req, target):
            return
        with self._lock(req):
            root = self.backend.head_root(req)
            if root.is_missing:
                policy = POLICIES[target.info['storage_policy']].name
                record = target.layout.to_record()
                root_headers = {POLICY_HEADER: policy, RECORD_HEADER: record}
                self._restore(req, target, root_headers)
                return
            present = self.backend.described_by(req, info_of(root))
            if present is None or present.layout != target.layout:
                raise ReplacedError(None, root.status, REPLACED)

    def _forget(self, req: Request, target: LogicalContainer) -> None:
        """Drop what was known of a container."""
        self._confirmed.pop(target.path, None)
        self.backend.forget_info(req.environ, target)

    def _is_confirmed(self, req: Request, target: LogicalContainer) -> bool:
        """Whether a container was there a moment ago, with the same layout.

        Uploads that end together are told together: each of them is as one
        that began when memcached was asked.
        """
        now = time.monotonic()
        layout, asked_at = self._confirmed.get(target.path, (None, 0))
        if layout == target.layout and now - asked_at < UPLOAD_GRACE_SECONDS:
            return True
        if not self.backend.is_confirmed(req.environ, target):
            return False
        self._confirmed[target.path] = (target.layout, now)
        return True

    def _present_shards(
        self, req: Request, target: LogicalContainer
    ) -> list[Answer]:
        """The HEADs of those shards that there are.

        A dead DELETE may have left only some.

        :raises BackendError: if nobody can say of one
        """
        answers = self.backend.head_shards(req.environ, target, newest=True)
        present = [answer for answer in answers if not answer.is_missing]
        require_success(present)
        return present

    def _restore(
        self,
        req: Request,
        target: LogicalContainer,
        root_headers: dict[str, str],
    ) -> None:
        """Bring a container back whose deletion met an object.

        :raises BackendError: if that can't be done; the next DELETE tries
                              again
        """
        self.logger.warning(
            'shardmw: %s got an object while it was deleted: restored',
            wsgi_quote(req.path_info),
        )
        policy = root_headers[POLICY_HEADER]
        failure = self._put_shards(req, target, policy)
        if failure:
            raise BackendError(failure.shard, failure.status)
        root = self.backend.send(
            self.backend.owner_env(req.environ),
            'PUT',
            target.path,
            headers=root_headers,
        )
        if not root.is_success:
            raise BackendError(None, root.status)

    def _clear_leftovers(self, req: Request) -> Answer | None:
        """Clear the shards that a container left that is gone.

        :returns: the refusal of one that holds objects, if there is one,
                  with its record among the headers
        :raises BackendError: if nobody can say of one
        """
        version, account, container, _obj = req.split_path(3, 4, True)
        base = self.backend.owner_env(req.environ, uncached=True)
        prefix = backing_prefix(wsgi_to_str(container))
        left = None
        for row in backing_rows(
            self.backend, base, req, prefix, prefix + AFTER_ALL
        ):
            path = f'/{version}/{account}/' + str_to_wsgi(row['name'])
            shard = self.backend.send(base, 'HEAD', path)
            left = left or _left_over(
                [self.backend.send(base, 'DELETE', path)]
            )
            if left and left.status != HTTP_CONFLICT:
                raise BackendError(None, left.status)
            if left:
                left = left._replace(headers=shard.headers)
        return left

    def _revive(self, req: Request, shard: Answer) -> None:
        """Bring back a container of which a nonempty shard is left.

        :param shard: with the shard's headers, the record among them
        :raises BackendError: if that can't be done
        """
        info = dict(info_of(shard), status=HTTP_OK)
        target = self.backend.described_by(req, info)
        if target is None:
            raise BackendError(None, shard.status)
        self._restore(req, target, _root_headers(shard))

    @contextmanager
    def _lock(self, req: Request) -> Iterator[None]:
        """Let nobody else create or delete the same container meanwhile.

        By way of memcached; while it is away there is no lock.

        :raises BackendError: if others hold it for too long
        """
        _version, account, container, _obj = req.split_path(3, 4, True)
        key = LOCK_KEY.format(account=account, container=container)
        cache = SharedCache(req.environ)
        deadline = time.monotonic() + LOCK_SECONDS
        while not cache.take(key, LOCK_SECONDS):
            if time.monotonic() > deadline:
                raise BackendError(None, 503, LOCKED)
            sleep(LOCK_POLL_SECONDS)
        held_until = time.monotonic() + LOCK_SECONDS
        try:
            yield
        finally:
            if time.monotonic() < held_until:
                cache.delete(key)


def _left_over(answers: list[Answer]) -> Answer | None:
    """What shards answered to a DELETE that did not delete them.

    :returns: the worst answer: a shard that nobody can say anything of, else
              one that holds objects, else None
    """
    left = [
        answer
        for answer in answers
        if not (answer.is_success or answer.is_missing)
    ]
    return max(left, key=lambda answer: answer.status, default=None)


def _root_headers(answer: Answer) -> dict[str, str]:
    """The headers of a PUT that makes a container what its HEAD showed."""
    return {
        name: value
        for name, value in answer.headers.items()
        if name in ROOT_HEADERS or name.startswith(METADATA_PREFIXES)
    }


def _sync_refused(req: Request) -> Response:
    return HTTPBadRequest(
        request=req,
        content_type='text/plain',
        body='Container sync of sharded containers is not supported',
    )


def _count_conflict(req: Request, state: str) -> Response:
    return HTTPConflict(
        request=req,
        content_type='text/plain',
        body=f'{state}; {SHARD_COUNT_HEADER} can only be set when a '
        'container is created',
    )
