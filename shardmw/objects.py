# SPDX-License-Identifier: Apache-2.0
"""Object requests: look up, authorize, limit, send.

In the steady state a request goes to one place, and nothing of it is held up
or copied: body and response stream through. Only while objects may lie in an
older place (the previous layout's shard, the root) are there more.
"""

import mimetypes
import time
from collections.abc import Callable, Iterable
from io import BytesIO

from swift.common.http import is_server_error
from swift.common.swob import Request
from swift.common.utils import config_true_value, drain_and_close

from shardmw.backend import (
    MANIFEST_ENV,
    POLICY_INDEX_ENV,
    Answer,
    Backend,
    BackendError,
    LogicalContainer,
    Verbatim,
    authorize,
    first_seen,
    may_be_sharded,
    unavailable,
)
from shardmw.charges import Charges
from shardmw.layout import LayoutError
from shardmw.lifecycle import (
    UPLOAD_GRACE_SECONDS,
    Lifecycle,
    ReplacedError,
)
from shardmw.paths import parse_path
from shardmw.placement import is_reserved, lies_in_root
from shardmw.quotas import Quotas
from shardmw.stats import SummedStats
from shardmw.versions import VersionUploads

READS = ('GET', 'HEAD')
WRITES = ('PUT', 'POST', 'DELETE')

#: Writes that change a container's figures, and where, in a request's
#: environment, it is noted that it is one, with its container.
SUMMED_WRITES = ('PUT', 'DELETE')
WRITTEN_ENV = 'shardmw.written'

DETECT_TYPE_ENV = 'HTTP_X_DETECT_CONTENT_TYPE'


class ObjectRequests:
    """Handles requests to objects of any container."""

    def __init__(
        self,
        app: Callable,
        backend: Backend,
        lifecycle: Lifecycle,
        stats: SummedStats,
        charges: Charges,
        logger,
    ) -> None:
        self.app = app
        self.backend = backend
        self.lifecycle = lifecycle
        self.charges = charges
        self.logger = logger
        self.quotas = Quotas(backend, stats)
        self.versions = VersionUploads(backend, self.quotas)

    def __call__(self, req: Request) -> Callable:
        """Answer a request.

        :param req: a request to an object
        :returns: the WSGI application that answers it
        """
        if req.method not in READS + WRITES:
            return self.app
        first_seen(req.environ)
        try:
            return self._answer(req)
        except (BackendError, LayoutError) as err:
            return unavailable(req, self.logger, err)

    def _answer(self, req: Request) -> Callable:
        path = parse_path(req.path_info)
        if is_reserved(path.name) != is_reserved(path.container):
            return self.app  # to Swift, which refuses it
        if not may_be_sharded(req, path.container):
            return self.app
        refusal = self.versions.refusal(req)
        if refusal:
            return refusal
        info = self.backend.container_info(req.environ)
        target = self.backend.described_by(req, info)
        if target is None:
            refusal = self.charges.write(req, info, None)
            if not refusal and self.versions.watches(req):
                _find_content_type(req)
                return self._put(req, None, [dict(req.environ)])
            return refusal or self.app
        if authorize(req, _acl(req, target.info)):
            return self.app  # to the root, whose denial is the answer
        req.environ[POLICY_INDEX_ENV] = str(target.info['storage_policy'])
        return self._send(req, target, path.name)

    def _send(
        self, req: Request, target: LogicalContainer, name: str
    ) -> Callable:
        self.logger.increment(f'object.{req.method}')
        if req.method in SUMMED_WRITES:
            req.environ[WRITTEN_ENV] = target
        places = _places(target, name)
        refusal = self.charges.write(req, target.info, target)
        if not refusal and req.method == 'PUT':
            refusal = self.quotas.refusal(req, target)
        if refusal:
            return refusal
        if req.method == 'PUT':
            _find_content_type(req)
        envs = [self._env(req, target, place, name) for place in places]
        if len(envs) > 1:
            self.logger.increment('object.overflow')
        if req.method == 'PUT':
            return self._put(req, target, envs)
        if len(envs) == 1:
            return _Sent(self.app, envs[0])
        if req.method == 'DELETE':
            return self._delete(envs)
        return _Sent(self.app, self._newest(envs) or envs[0])

    def _env(
        self,
        req: Request,
        target: LogicalContainer,
        place: int | None,
        name: str,
    ) -> dict:
        if place is None:
            return req.environ
        return self.backend.object_env(req.environ, target, place, name)

    def _put(
        self, req: Request, target: LogicalContainer | None, envs: list[dict]
    ) -> Callable:
        """Store in the first place, of a plain container if there is one only.

        ``If-None-Match: *`` must see an object in another one: sent there,
        the upload is refused.
        """
        env = envs[0]
        if len(envs) > 1 and req.if_none_match is not None:
            env = self._newest(envs) or env
        stored = _Answered(*Request(env).call_application(self.app))
        if not stored.is_success:
            return stored
        refusal = self.versions.refusal_of_stored(req, env)
        if refusal:
            return refusal
        if target and _was_slow(req):
            self._keep(req, target, env)
        return stored

    def _keep(self, req: Request, target: LogicalContainer, env: dict) -> None:
        """Make sure that an upload can be found that took long.

        :raises BackendError: if it can't: it is then not acknowledged
        """
        try:
            self.lifecycle.keep(req, target)
        except ReplacedError:
            self.backend.take_back(env)
            raise

    def _newest(self, envs: list[dict]) -> dict | None:
        """Which of an object's places has its newest copy, None if none has.

        Only while there are several: what a proxy without the filter stored
        in the root may be newer than what lies in the shard.

        :raises BackendError: if it was found nowhere, and one can't be asked
        """
        found = []
        failed = None
        for place, env in enumerate(envs):
            resp = Request(_unconditional_head(env)).get_response(self.app)
            drain_and_close(resp)
            if resp.is_success:
                found.append((float(resp.headers['X-Timestamp']), -place))
            elif is_server_error(resp.status_int):
                failed = resp.status_int
        if failed and not found:
            raise BackendError(None, failed, f'object servers: {failed}')
        return envs[-max(found)[1]] if found else None

    def _delete(self, envs: list[dict]) -> Callable:
        """Delete wherever it lies, the oldest place first.

        If this is cut off, what a reader sees is still the newest.
        """
        answers = [
            self.backend.send_as_client(Request(env)) for env in reversed(envs)
        ]
        return Verbatim(min(answers, key=_worst_first))


class _Sent:
    """The rest of the pipeline, called with another environment."""

    def __init__(self, app: Callable, env: dict) -> None:
        self.app = app
        self.env = env

    def __call__(self, _env: dict, start_response: Callable):
        return self.app(self.env, start_response)


class _Answered:
    """What the rest of the pipeline has answered, its body yet to be read."""

    def __init__(
        self, status: str, headers: list[tuple], body: Iterable[bytes]
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def is_success(self) -> bool:
        """Whether it is a 2xx."""
        return self.status.startswith('2')

    def __call__(self, _env: dict, start_response: Callable):
        start_response(self.status, self.headers)
        return self.body


def _find_content_type(req: Request) -> None:
    """Guess an upload's content type of its logical name if need be.

    As the proxy would guess it, but of the backing name: there a leading dot
    is no longer the first character. Other filters may look for it later.
    """
    detect = config_true_value(req.environ.pop(DETECT_TYPE_ENV, None))
    if detect or not req.headers.get('Content-Type'):
        guessed, _encoding = mimetypes.guess_type(req.path_info)
        req.headers['Content-Type'] = guessed or 'application/octet-stream'


def _was_slow(req: Request) -> bool:
    """Whether what was known of a container may have been old by its upload.

    A manifest is read by another filter, for as long as its client likes.
    """
    took = time.monotonic() - first_seen(req.environ)
    return took > UPLOAD_GRACE_SECONDS or MANIFEST_ENV in req.environ


def _unconditional_head(env: dict) -> dict:
    """A HEAD of the object that a request is for, conditions left out."""
    head = {
        name: value
        for name, value in env.items()
        if not name.startswith('HTTP_IF_') and name != 'HTTP_RANGE'
    }
    head.update(REQUEST_METHOD='HEAD', CONTENT_LENGTH='0')
    head.update({'wsgi.input': BytesIO(), 'QUERY_STRING': ''})
    return head


def _acl(req: Request, info: dict) -> str | None:
    return info['read_acl' if req.method in READS else 'write_acl']


def _places(target: LogicalContainer, name: str) -> list[int | None]:
    """Where an object may lie, the newest place first; None is the root."""
    if lies_in_root(target.container, name):
        return [None]
    in_root = [None] if target.root_holds_rows() else []
    return [*target.shards_of(name), *in_root]


def _worst_first(answer: Answer) -> tuple[bool, bool]:
    """Order of answers to one DELETE in many places: failure, then 2xx."""
    return not is_server_error(answer.status), not answer.is_success
