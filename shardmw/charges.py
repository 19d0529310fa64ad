# SPDX-License-Identifier: Apache-2.0
"""What counts against a rate, and as whose.

A client's write counts once, in the container, or the shard, that its object
lies in. As Swift's ratelimit filter stands left of those that write more on a
client's behalf, what they add does not count again:

====================================  ====================================
a version that is kept, a link to it  one write of the container's own
                                      object, before the first of them
``DELETE ?version-id``                the same
segments of a large object            one write each, and its manifest one
DELETE of it with its segments        one write, of the first segment
copies that ``X-Versions-Location``   none; the upload counts, before them
keeps
COPY                                  one write, where the copy lies
files of an archive, of a bulk        one write each
delete, of an S3 multi-delete
====================================  ====================================

What can't be refused any more, as others have answered already or would take
the refusal for something else, waits for its turn if it can, and counts: the
DELETE of a large object with its segments, and the end of an S3 upload in
parts. ``X-Versions-Location`` would make 412 of a 498; it is told 503.

A listing counts once for each backing container that it asks, and again for
each time that it has to go back to one; the most asked one counts.
"""

from typing import NamedTuple

from swift.common.http import is_success
from swift.common.middleware.versioned_writes.object_versioning import (
    DELETE_MARKER_CONTENT_TYPE,
)
from swift.common.request_helpers import split_reserved_name
from swift.common.swob import (
    HTTPServiceUnavailable,
    Request,
    Response,
    str_to_wsgi,
)

from shardmw.backend import (
    INFOCACHE_ENV,
    MANIFEST_ENV,
    VERSIONS_NAME,
    Backend,
    LogicalContainer,
    authorize,
    is_uploaded_version,
)
from shardmw.overrides import rate_of
from shardmw.paths import parse_path
from shardmw.placement import (
    backing_container,
    is_reserved,
    lies_in_root,
    versions_owner,
)
from shardmw.ratelimit import RateLimiter
from shardmw.stats import SummedStats

LIMITED_METHODS = ('PUT', 'POST', 'DELETE')

#: In a request's info cache: what was counted of it that may come again.
COUNTED_KEY = 'shardmw/counted'

#: What ``swift.source`` says of requests of other filters.
LARGE_OBJECT_SOURCE = 'SLO'
OLD_VERSIONS_SOURCE = 'VW'
S3_SOURCE = 'S3'
UNCOUNTED_LISTINGS = ('DLO', LARGE_OBJECT_SOURCE, OLD_VERSIONS_SOURCE)

#: In a container's sysmeta, if it keeps versions: the new way, and the old.
VERSIONS_NAMES = (VERSIONS_NAME,)
OLD_VERSIONS_NAMES = ('versions-location', 'versions-mode')


class _Write(NamedTuple):
    """Where a write counts.

    :param account: as in the path, a native string, as all of them
    :param info: Swift's info of the container
    :param target: the container, if it is sharded
    """

    account: str
    container: str
    name: str
    info: dict
    target: LogicalContainer | None


class Charges:
    """Has the limiter count each client's request once.

    :param stats: the sizes of sharded containers
    """

    def __init__(
        self, backend: Backend, stats: SummedStats, limiter: RateLimiter
    ) -> None:
        self.backend = backend
        self.stats = stats
        self.limiter = limiter

    def write(
        self, req: Request, info: dict, target: LogicalContainer | None
    ) -> Response | None:
        """Count a request to an object.

        :param info: Swift's info of its container
        :param target: the container, if it is sharded
        :returns: the refusal, or None if it may go on
        """
        if req.method not in LIMITED_METHODS and not _announces_write(req):
            return None
        _version, account, container, name = parse_path(req.path_info)
        write = _Write(account, container, name, info, target)
        if is_reserved(container):
            write = self._owners(req, write)
        if not self._is_limited(req, write):
            return None
        mark, part = _mark(req, write)
        parts = _counted(req).setdefault(mark, set()) if mark else set()
        is_known = bool(parts) and part not in parts
        if is_known or LARGE_OBJECT_SOURCE in parts:
            parts.add(part)
            return None
        parts.clear()
        parts.add(part)
        refusal = self.limiter.write(
            req,
            account,
            *self._place(req, write),
            override=rate_of(write.info),
            can_refuse=not _is_unrefusable(req),
        )
        if not refusal:
            return None
        parts.clear()
        return _as_it_is_understood(req, refusal)

    def listing(
        self, req: Request, info: dict, target: LogicalContainer | None
    ) -> Response | None:
        """Count a listing of a container, the same way."""
        if not self.limiter.limits.listings.steps:
            return None
        if not is_success(info['status']):
            return None
        if _source(req) in UNCOUNTED_LISTINGS:
            return None
        if authorize(req, info['read_acl']):
            return None  # to Swift, whose denial is the answer
        _version, account, container, _name = parse_path(req.path_info)
        owner = versions_owner(container) or container
        mark = (account, owner)
        counted = _counted(req)
        if mark in counted:
            return None
        object_count = info['object_count']
        if target:
            object_count = self._size_of_shard(req, target)
        refusal = self.limiter.listing(req, account, owner, object_count)
        if not refusal:
            counted[mark] = set()
        return refusal

    def more_of_listing(self, target: LogicalContainer, rounds: int) -> None:
        """Count how often a listing went back to one backing container."""
        if rounds and self.limiter.limits.listings.steps:
            owner = versions_owner(target.container) or target.container
            self.limiter.charge_listing(target.account, owner, rounds)

    def _is_limited(self, req: Request, write: _Write) -> bool:
        """Whether a write may have to wait.

        One that Swift will deny must not be counted.
        """
        limits = self.limiter.limits.writes.steps
        if not limits and rate_of(write.info) is None:
            return False
        if not is_success(write.info['status']) or not _counts(req, write):
            return False
        return not authorize(req, write.info['write_acl'])

    def _owners(self, req: Request, write: _Write) -> _Write:
        """The write of a client's object that a version is written for."""
        owner = versions_owner(write.container)
        path = f'/{parse_path(req.path_info).version}/{write.account}/{owner}'
        hidden = Request(dict(req.environ, PATH_INFO=str_to_wsgi(path)))
        info = self.backend.container_info(hidden.environ)
        return _Write(
            write.account,
            owner,
            _versioned_object(write.name),
            info,
            self.backend.described_by(hidden, info),
        )

    def _place(self, req: Request, write: _Write) -> tuple[str, int]:
        """The container that takes a write, as stored, and its size."""
        if write.target is None or lies_in_root(write.container, write.name):
            return write.container, write.info['object_count']
        (shard, *_older) = write.target.shards_of(write.name)
        return (
            backing_container(write.container, shard),
            self._size_of_shard(req, write.target),
        )

    def _size_of_shard(self, req: Request, target: LogicalContainer) -> int:
        """About how many objects each shard holds, 0 only if none does."""
        total = self.stats.of(req.environ, target).object_count
        return -(-total // target.layout.shards)


def _versioned_object(name: str) -> str:
    """The client's object that a version, by its name, is one of."""
    try:
        return split_reserved_name(name)[0]
    except ValueError:
        return name


def _source(req: Request) -> str | None:
    return req.environ.get('swift.source')


def _announces_write(req: Request) -> bool:
    """Whether it reads what a write is about to replace, to keep a copy."""
    return req.method == 'GET' and _source(req) == OLD_VERSIONS_SOURCE


def _counts(req: Request, write: _Write) -> bool:
    """Whether a request is a client's own.

    Of those that keep old versions it is what reads, and restores, in the
    container whose versions they are.
    """
    if _source(req) != OLD_VERSIONS_SOURCE:
        return True
    return _has(write.info, OLD_VERSIONS_NAMES)


def _is_unrefusable(req: Request) -> bool:
    """Whether a refusal would come too late, or not reach the client."""
    source = _source(req)
    is_end_of_upload = source == S3_SOURCE and MANIFEST_ENV in req.environ
    # Asynchronous: its segments are with the expirer already.
    is_async_delete = (
        req.method == 'DELETE'
        and req.params.get('multipart-manifest') == 'delete'
    )
    return source == LARGE_OBJECT_SOURCE or is_end_of_upload or is_async_delete


def _as_it_is_understood(req: Request, refusal: Response) -> Response:
    """A refusal that the one who asks passes on as one."""
    if _source(req) != OLD_VERSIONS_SOURCE:
        return refusal
    return HTTPServiceUnavailable(
        request=req, headers={'Retry-After': refusal.headers['Retry-After']}
    )


def _mark(req: Request, write: _Write) -> tuple[tuple | None, object]:
    """What requests on behalf of one write have in common, and what not.

    The same part once more is another write, such as of the next file of an
    archive; only all segments of a large object are one.
    """
    if _source(req) == LARGE_OBJECT_SOURCE:
        return (LARGE_OBJECT_SOURCE,), LARGE_OBJECT_SOURCE
    if not _has(write.info, VERSIONS_NAMES + OLD_VERSIONS_NAMES):
        return None, None
    container = parse_path(req.path_info).container
    is_marker = req.headers.get('Content-Type') == DELETE_MARKER_CONTENT_TYPE
    part = (
        req.method,
        is_reserved(container),
        is_uploaded_version(req),
        is_marker,
    )
    return (write.account, write.container, write.name), part


def _counted(req: Request) -> dict[tuple, set]:
    infocache = req.environ.setdefault(INFOCACHE_ENV, {})
    return infocache.setdefault(COUNTED_KEY, {})


def _has(info: dict, names: tuple[str, ...]) -> bool:
    return any(info['sysmeta'].get(name) for name in names)
