# SPDX-License-Identifier: Apache-2.0
"""Writes of objects: authorize, look up, limit, redirect the row, send.

Reads of objects do not come here. A write is sent to the proxy app at its own
path; only the object's row goes to another container.
"""

import time
from collections.abc import Callable

from swift.common.http import (
    HTTP_NOT_FOUND,
    is_server_error,
    is_success,
)
from swift.common.swob import HTTPBadRequest, Request
from swift.common.utils import Timestamp

from shardmw.backend.answers import unavailable
from shardmw.backend.containers import (
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    BackendError,
    LogicalContainer,
    authorize_write,
    may_be_sharded,
)
from shardmw.backend.metrics import OBJECT_REQUESTS, WRITES_OF_CONTAINER
from shardmw.backend.requests import Backend, to_environ
from shardmw.backend.row_targets import RowTargets
from shardmw.backend.rows import MOST_REDIRECTS, remove_row
from shardmw.backend.write_marks import WriteMarks
from shardmw.core.layout import PLAIN, LayoutError
from shardmw.core.paths import Path, Place
from shardmw.core.placement import is_reserved
from shardmw.proxy.layouts import CONFIRMED_SECONDS, DOUBT_SECONDS, Layouts
from shardmw.proxy.ratelimit.accounting import Accounting
from shardmw.swift.infocache import INFOCACHE_ENV, decided, redirected

WRITES = ('PUT', 'POST', 'DELETE')

TIMESTAMP_ENV = 'HTTP_X_TIMESTAMP'

IF_DELETE_AT_HEADER = 'X-If-Delete-At'

_SHARDING_HEADERS = {
    env: header
    for header in (SHARD_COUNT_HEADER, SHARD_DEPTH_HEADER)
    for env in to_environ({header: ''})
}
(_POLICY_ENV,) = to_environ({'X-Backend-Storage-Policy-Index': ''})


class ObjectController:
    """Handles PUT, POST and DELETE of objects in any container."""

    def __init__(
        self,
        app: Callable,
        backend: Backend,
        layouts: Layouts,
        row_targets: RowTargets,
        marks: WriteMarks,
        accounting: Accounting,
    ) -> None:
        self.app = app
        self.backend = backend
        self.layouts = layouts
        self.row_targets = row_targets
        self.marks = marks
        self.accounting = accounting

    def __call__(self, req: Request, path: Path) -> Callable:
        """Return the WSGI application that answers a request.

        :param path: the path of an object
        """
        misplaced = _SHARDING_HEADERS.keys() & req.environ.keys()
        if misplaced and req.method != 'DELETE':
            header = _SHARDING_HEADERS[min(misplaced)]
            return HTTPBadRequest(
                request=req,
                content_type='text/plain',
                body=f'{header} is for containers, not objects: '
                'send it with the PUT that creates the container',
            )
        if is_reserved(path.name) != is_reserved(path.container):
            return self.app  # Swift refuses it
        if not may_be_sharded(req, path):
            return self.app
        info = self.backend.container_info(req.environ)
        if req.method in WRITES and authorize_write(req, info):
            return self._unsharded(path, info)  # the app denies it
        if is_server_error(info['status']):
            return self._unsharded(path, info)  # the app refuses it
        try:
            return self._write(req, path, info)
        except (BackendError, LayoutError) as err:
            return unavailable(req, path, self.backend, err)

    def _write(self, req: Request, path: Path, info: dict) -> Callable:
        """Return the application that answers a request that may be a write.

        :param info: Swift's info of the container
        :raises BackendError: if it is not known whether it is sharded
        :raises LayoutError: if the record of its layout cannot be read
        """
        looked_up = time.monotonic()
        target = self._target(req, path, info)
        started = time.monotonic()
        refusal = self.accounting.write(req, path, info, target)
        if refusal or req.method not in WRITES:
            return refusal or self._unsharded(path, info)
        if time.monotonic() - started >= DOUBT_SECONDS:
            # The layout may have changed while it waited for its slot.
            looked_up = time.monotonic()
            target = self._target(req, path, info)
        if target is None:
            answer = self._unsharded(path, info)
            target = LogicalContainer.at(path, info, PLAIN)
        elif _is_of_another_policy(req, target):
            return self.app
        else:
            answer = self._redirected(req, path, target)
        # If the container does not exist, nothing is deleted.
        if req.method == 'DELETE' and is_success(info['status']):
            return self._delete(req, path, target, looked_up, answer)
        return answer

    def _unsharded(self, path: Path, info: dict) -> Callable:
        """Return the app, for an object of a container that is not sharded.

        If the container has not answered, the app uses this answer, too. If it
        asked again and got an answer, a row of a sharded container would go to
        the root, where a tombstone removes nothing.

        :param info: Swift's info of the container
        """
        if is_success(info['status']):
            return self.app

        def answer(env: dict, start_response: Callable):
            infocache = env.setdefault(INFOCACHE_ENV, {})
            env[INFOCACHE_ENV] = decided(
                env, path.account, path.container, info
            )
            try:
                return self.app(env, start_response)
            finally:
                env[INFOCACHE_ENV] = infocache

        return answer

    def _target(
        self, req: Request, path: Path, info: dict
    ) -> LogicalContainer | None:
        is_delete = req.method == 'DELETE'
        max_age = DOUBT_SECONDS if is_delete else CONFIRMED_SECONDS
        return self.layouts.of(req.environ, path, info, max_age)

    def _redirected(
        self, req: Request, path: Path, target: LogicalContainer
    ) -> Callable:
        """Return the app, called so that Swift sends the row to the shard."""
        metrics = self.backend.metrics
        metrics.note(OBJECT_REQUESTS, method=req.method)
        metrics.note_of(path.account, path.container, WRITES_OF_CONTAINER)
        row_target = self.row_targets.of(req.environ, target, path.name)

        def answer(env: dict, start_response: Callable):
            infocache = env[INFOCACHE_ENV]
            if target.layout.written:
                env[INFOCACHE_ENV] = redirected(
                    env, path.account, path.container, target.info, row_target
                )
            try:
                return self.app(env, start_response)
            finally:
                env[INFOCACHE_ENV] = infocache
                self.marks.mark(env, target)

        return answer

    def _delete(
        self,
        req: Request,
        path: Path,
        target: LogicalContainer,
        looked_up: float,
        delete: Callable,
    ) -> Callable:
        """Delete an object, and its rows in all places.

        Like Swift, write tombstones also for an object that does not exist:
        so a repeated DELETE removes a row that an earlier one has left. For a
        DELETE of the object expirer, write none if the object server could not
        verify when the object expires. A daemon repeats a DELETE with the same
        timestamp: object servers that have its tombstone send no row then.

        A row leaves the places that the layout names only after a wait that is
        longer than `Layouts.seconds` (I1). If the tombstones may have come
        later than that, the layout is looked up again, until all places that
        it names have one.

        :param target: the container, also if it is plain
        :param looked_up: when its layout was looked up, by the monotonic clock
        :param delete: the WSGI application that deletes the object, and its
                       row where new rows go
        :raises BackendError: if the object is deleted, but a row may be left
        :raises LayoutError: if the object is deleted, but a later record of
                             the layout cannot be read
        """
        may_be_repeated = TIMESTAMP_ENV in req.environ
        req.environ.setdefault(TIMESTAMP_ENV, Timestamp.now().internal)
        is_conditional = IF_DELETE_AT_HEADER in req.headers
        resp = req.get_response(delete)
        is_missing = resp.status_int == HTTP_NOT_FOUND
        if not resp.is_success and (is_conditional or not is_missing):
            return resp
        done = {target.place_of(path.name)}
        if target.layout != PLAIN and (
            (is_missing and may_be_repeated)
            # Swift's proxy may know old shard ranges of a root that is split.
            or (target.is_split and path.place in done)
        ):
            done.clear()
        self._remove_rows(req, path, target, done)
        while time.monotonic() - looked_up >= self.layouts.seconds:
            looked_up = time.monotonic()
            target = self._looked_up_again(req, path)
            if target is None or not self._remove_rows(
                req, path, target, done
            ):
                break
            self.marks.mark(req.environ, target)
        return resp

    def _remove_rows(
        self,
        req: Request,
        path: Path,
        target: LogicalContainer,
        done: set[Place],
    ) -> bool:
        """Write the tombstones of a DELETE to the places that lack one.

        :param done: the places that have one; the others are added
        :returns: True if a place lacked one
        :raises BackendError: if a tombstone cannot be written
        """
        places = target.places_of(path.name)
        left = sorted(places - done)
        for place in left:
            self._remove_row(req, path, target, place)
        done.update(left)
        return bool(left)

    def _looked_up_again(
        self, req: Request, path: Path
    ) -> LogicalContainer | None:
        """Look the container of a DELETE up again, as for a new one.

        :returns: the container, also if it is plain; None if it no longer
                  exists, or now has another storage policy
        :raises BackendError: if it is not known whether it is sharded
        :raises LayoutError: if the record of its layout cannot be read
        """
        # The request has the info of its beginning.
        info = self.backend.container_info({**req.environ, INFOCACHE_ENV: {}})
        target = self._target(req, path, info)
        if target is None and is_success(info['status']):
            target = LogicalContainer.at(path, info, PLAIN)
        if target and _is_of_another_policy(req, target):
            return None
        return target

    def _remove_row(
        self,
        req: Request,
        path: Path,
        target: LogicalContainer,
        place: Place,
    ) -> None:
        """Add a tombstone to a place, or to what Swift's sharder made of it.

        The errors are those of :func:`shardmw.backend.rows.remove_row`.
        """
        redirects = 0
        if target.is_split and place == target.path.place:
            redirects = MOST_REDIRECTS
        else:
            place = self.row_targets.database(req.environ, place, path.name)
        remove_row(
            self.backend,
            req.environ,
            place,
            target.policy_index,
            path.name,
            req.environ[TIMESTAMP_ENV],
            redirects,
        )


def _is_of_another_policy(req: Request, target: LogicalContainer) -> bool:
    """Return True for a write to another storage policy than the container's.

    Swift's reconciler deletes an object there after it has moved it. Rows of
    another policy are in the root (:mod:`shardmw.reshard.late_rows`).
    """
    policy_index = req.environ.get(_POLICY_ENV)
    return policy_index not in (None, str(target.policy_index))
