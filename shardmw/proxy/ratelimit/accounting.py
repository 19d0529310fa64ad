# SPDX-License-Identifier: Apache-2.0
"""Count writes and listings, each once, against the right rate.

A client's write counts once, in the container or shard that lists its object.
Swift's own ratelimit filter is left of the filters that send further
writes on behalf of a client. This filter is right of them and does not
count their writes again:

====================================  ====================================
request of the client                 what counts
====================================  ====================================
write to a versioned container        one write of the client's object,
                                      before its version is stored and
                                      linked
``DELETE ?version-id``                one write of the client's object
upload of a large object              one write per segment and one for
                                      the manifest
DELETE of a large object with its     one write, of the first segment
segments
upload to a container with            one write, before the old version
``X-Versions-Location``               is copied; the copy does not count
COPY                                  one write in the destination
bulk upload or delete, S3             one write per object
multi-delete
====================================  ====================================

Some requests cannot be refused any more, because another filter has already
sent its answer or would misread the refusal: the DELETE of a large object with
its segments, and the end of an S3 multi-part upload. They wait for their slot
if they need not wait too long. Otherwise they proceed at once and delay the
writes after them. ``X-Versions-Location`` would turn a 498 into a 412, so it
gets a 503.

A HEAD of a sharded container counts like a listing if it sends a request to
each backing container, that is, unless kept sums answer it. A listing that has
to read one backing container several times counts as often as it read that
container.
"""

from typing import NamedTuple

from swift.common.http import is_success
from swift.common.middleware.versioned_writes.object_versioning import (
    DELETE_MARKER_CONTENT_TYPE,
    ByteCountingReader,
)
from swift.common.request_helpers import split_reserved_name
from swift.common.swob import HTTPServiceUnavailable, Request, Response

from shardmw.backend.containers import LogicalContainer, described_by
from shardmw.backend.requests import Backend
from shardmw.core.paths import Path
from shardmw.core.placement import is_reserved, versions_owner
from shardmw.proxy.ratelimit.limiter import RateLimiter, listing_key, write_key
from shardmw.proxy.ratelimit.rate_header import rate_of
from shardmw.proxy.shard_sums import SummedStats
from shardmw.swift.infocache import RequestState

LIMITED_METHODS = ('PUT', 'POST', 'DELETE')

#: The values of ``swift.source`` in requests of other filters.
LARGE_OBJECT_SOURCE = 'SLO'
DYNAMIC_LARGE_OBJECT_SOURCE = 'DLO'
VERSIONED_WRITES_SOURCE = 'VW'
OBJECT_VERSIONING_SOURCE = 'OV'
S3_SOURCE = 'S3'

#: The filters that list containers to serve requests for objects.
UNCOUNTED_LISTINGS = (
    DYNAMIC_LARGE_OBJECT_SOURCE,
    LARGE_OBJECT_SOURCE,
    VERSIONED_WRITES_SOURCE,
)

#: Set in requests that store the manifest of a static large object.
MANIFEST_ENV = 'HTTP_X_STATIC_LARGE_OBJECT'

#: In the sysmeta of containers that keep old versions: of object versioning,
#: and of the older ``X-Versions-Location`` and ``X-History-Location``.
VERSIONS_NAMES = ('versions-container',)
OLD_VERSIONS_NAMES = ('versions-location', 'versions-mode')


class _Write(NamedTuple):
    """The object that a write counts for.

    :param container: the container of the client's object
    :param name: the name of the client's object
    :param info: Swift's info of the container
    :param target: the container if it is sharded, else None
    """

    account: str
    container: str
    name: str
    info: dict
    target: LogicalContainer | None


class Accounting:
    """Counts each client request once.

    :param stats: the sizes of sharded containers
    """

    def __init__(
        self, backend: Backend, stats: SummedStats, limiter: RateLimiter
    ) -> None:
        self.backend = backend
        self.stats = stats
        self.limiter = limiter

    def write(
        self,
        req: Request,
        path: Path,
        info: dict,
        target: LogicalContainer | None,
    ) -> Response | None:
        """Count an authorized request to an object if it is a write.

        :param path: the path of the request
        :param info: Swift's info of the container
        :param target: the container if it is sharded, else None
        :returns: the response that refuses the write, or None if it may
                  proceed
        """
        if req.method not in LIMITED_METHODS and not _announces_write(req):
            return None
        write = self._counted_write(req, path, info, target)
        if not self._is_limited(req, write):
            return None
        mark, part = _mark(req, path, write)
        counted = RequestState.of(req.environ).counted
        parts = counted.setdefault(mark, set()) if mark else set()
        is_same_write = bool(parts) and part not in parts
        if is_same_write or LARGE_OBJECT_SOURCE in parts:
            parts.add(part)
            return None
        parts.clear()
        parts.add(part)
        refusal = self._limit(req, path, write)
        if not refusal:
            return None
        parts.clear()
        return _translated(req, refusal)

    def listing(
        self,
        req: Request,
        path: Path,
        info: dict,
        target: LogicalContainer | None,
    ) -> Response | None:
        """Count an authorized listing, or HEAD of a sharded container.

        :param path: the path of the request
        :param info: Swift's info of the container
        :param target: the container if it is sharded, else None
        :returns: the response that refuses the listing, or None if it may
                  proceed
        """
        if not self.limiter.limits.listings.steps:
            return None
        if not is_success(info['status']):
            return None
        if not _is_counted_listing(req, target):
            return None
        owner = versions_owner(path.container) or path.container
        mark = (path.account, owner)
        counted = RequestState.of(req.environ).counted
        if mark in counted:
            return None
        if target:
            size = self._size_of_shard(req, target)
        else:
            size = _object_count(info)
        key = listing_key(path.account, owner)
        refusal = self.limiter.listing(req, path, key, size)
        if not refusal:
            counted[mark] = set()
        return refusal

    def more_of_listing(self, target: LogicalContainer, rounds: int) -> None:
        """Count the further reads of one listing.

        :param rounds: how often it has read again the backing container that
                       it read most often
        """
        if rounds and self.limiter.limits.listings.steps:
            owner = versions_owner(target.container) or target.container
            self.limiter.add_backlog(
                listing_key(target.account, owner), rounds
            )

    def _counted_write(
        self,
        req: Request,
        path: Path,
        info: dict,
        target: LogicalContainer | None,
    ) -> _Write:
        """Return the client's write that a request is a part of.

        A write to a container of old versions is a part of the write to the
        client's object whose version it is.
        """
        owner = versions_owner(path.container)
        if owner is None:
            return _Write(
                path.account, path.container, path.name, info, target
            )
        owner_path = path.of_container(owner)
        info = self.backend.container_info_of(req.environ, owner_path)
        target = described_by(owner_path, info)
        name = _versioned_object(path.name)
        return _Write(path.account, owner, name, info, target)

    def _is_limited(self, req: Request, write: _Write) -> bool:
        """Return True if a write counts against a limit."""
        limits = self.limiter.limits.writes.steps
        if not limits and rate_of(write.info) is None:
            return False
        if not is_success(write.info['status']):
            return False
        return _is_clients_own(req, write)

    def _limit(
        self, req: Request, path: Path, write: _Write
    ) -> Response | None:
        """Make a write wait for a slot of the container that lists it."""
        target = write.target
        if target is None:
            key = write_key(write.account, write.container)
            size = _object_count(write.info)
        else:
            key = write_key(*target.place_of(write.name))
            size = self._size_of_shard(req, target)
        return self.limiter.write(
            req,
            path,
            key,
            size,
            override=rate_of(write.info),
            can_refuse=not _is_unrefusable(req),
        )

    def _size_of_shard(self, req: Request, target: LogicalContainer) -> int:
        """Return the mean object count of the shards, rounded up.

        While new rows go to the root, return that of the container.
        """
        total = self.stats.of(req.environ, target).object_count
        if target.layout.written == 0:
            return total + target.root_objects
        return -(-total // target.layout.written)


def is_uploaded_version(req: Request) -> bool:
    """Return True if a request stores a client's upload as a version.

    Object versioning counts the bytes that it reads from a client. It does not
    count those that it copies, and reads none for a delete marker.
    """
    return isinstance(req.environ.get('wsgi.input'), ByteCountingReader)


def _object_count(info: dict) -> int:
    """Return the object count of a plain container, which may be text."""
    return int(info['object_count'] or 0)


def _versioned_object(name: str) -> str:
    """Return the name of the client's object that a version belongs to."""
    try:
        return split_reserved_name(name)[0]
    except ValueError:
        return name


def _source(req: Request) -> str | None:
    return req.environ.get('swift.source')


def _announces_write(req: Request) -> bool:
    """Return True if a write will follow a read.

    ``X-Versions-Location`` reads the object that is about to be replaced, to
    store a copy of it.
    """
    return req.method == 'GET' and _source(req) == VERSIONED_WRITES_SOURCE


def _is_counted_listing(req: Request, target: LogicalContainer | None) -> bool:
    """Return True if a GET or HEAD of a container counts as a listing.

    A HEAD of a plain container is one request, like any other. Object
    versioning HEADs the container of old versions for a GET, which has been
    counted, or for a DELETE, where it would turn a refusal into a 500.
    """
    source = _source(req)
    if req.method == 'HEAD':
        return target is not None and source != OBJECT_VERSIONING_SOURCE
    return source not in UNCOUNTED_LISTINGS


def _is_clients_own(req: Request, write: _Write) -> bool:
    """Return False for the copies that ``X-Versions-Location`` stores.

    Its requests to the container whose versions it keeps count: they read what
    is to be replaced, or restore an old version.
    """
    if _source(req) != VERSIONED_WRITES_SOURCE:
        return True
    return _has_sysmeta(write.info, OLD_VERSIONS_NAMES)


def _is_unrefusable(req: Request) -> bool:
    """Return True if a refusal is too late or would not reach the client."""
    source = _source(req)
    is_end_of_upload = source == S3_SOURCE and MANIFEST_ENV in req.environ
    # If the delete is asynchronous, the expirer already has the segments.
    is_delete_with_segments = (
        req.method == 'DELETE'
        and req.params.get('multipart-manifest') == 'delete'
    )
    return (
        source == LARGE_OBJECT_SOURCE
        or is_end_of_upload
        or is_delete_with_segments
    )


def _translated(req: Request, refusal: Response) -> Response:
    """Turn 498 into 503 for ``X-Versions-Location``.

    It would report a 498 as 412.
    """
    if _source(req) != VERSIONED_WRITES_SOURCE:
        return refusal
    return HTTPServiceUnavailable(
        request=req, headers={'Retry-After': refusal.headers['Retry-After']}
    )


def _mark(
    req: Request, path: Path, write: _Write
) -> tuple[tuple | None, object]:
    """Return what identifies a write, and which part of it a request is.

    Requests with the same mark and different parts are one write. A part that
    comes again begins another write, such as that of the next file of an
    archive. Only the segments of a large object are always one write.

    :returns: a mark of None if every request is a write of its own
    """
    if _source(req) == LARGE_OBJECT_SOURCE:
        return (LARGE_OBJECT_SOURCE,), LARGE_OBJECT_SOURCE
    if not _has_sysmeta(write.info, VERSIONS_NAMES + OLD_VERSIONS_NAMES):
        return None, None
    is_marker = req.headers.get('Content-Type') == DELETE_MARKER_CONTENT_TYPE
    part = (
        req.method,
        is_reserved(path.container),
        is_uploaded_version(req),
        is_marker,
    )
    return (write.account, write.container, write.name), part


def _has_sysmeta(info: dict, names: tuple[str, ...]) -> bool:
    return any(info['sysmeta'].get(name) for name in names)
