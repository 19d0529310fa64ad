# SPDX-License-Identifier: Apache-2.0
"""Carry listings, and the counts of HEADs, around other filters.

Several of Swift's filters (``listing_formats``, ``s3api``, ``slo``,
``versioned_writes``, ``symlink``) decode every listing, search its rows for
reserved names or for what they store behind an object's ETag, and encode the
listing again, one filter after the other. For a large page this is most of the
proxy's work. These filters do not change a listing without such rows.

The filter ``shardmw-listings`` is left of them and adds a *bypass* to each
request that may be for a listing. ``shardmw``, on their right, stores a
listing without such rows in the bypass and answers with an empty listing,
which costs the filters between the two nothing. ``shardmw-listings`` then
replaces the empty listing by the stored one::

    ... cache shardmw-listings listing_formats ... s3api tempauth ... slo dlo
    versioned_writes symlink shardmw proxy-logging proxy-server

    [filter:shardmw-listings]
    use = egg:shardmw#shardmw_listings

Only listings that are requested as JSON take the bypass: ``listing_formats``
makes the other formats from JSON. This changes nothing but the speed.

``s3api`` drops the headers of a container from the answer to HeadBucket.
``shardmw`` stores those with the counts of a sharded container in the request,
and ``shardmw-listings`` adds them to the answer.

``s3api`` also drops ``allow-unordered``, a parameter of ListObjects and
ListObjectsV2 in Ceph's RADOS gateway, from the container GET that it sends.
``shardmw-listings`` stores its value in the request, and ``shardmw`` treats
the container GET as if it had ``allow_unordered`` with that value.

A pipeline with encryption cannot have this filter: encryption decrypts the
ETags in every listing. The proxy does not start with both.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from swift.common.middleware.listing_formats import get_listing_content_type
from swift.common.swob import (
    HTTPException,
    HTTPServiceUnavailable,
    Request,
    Response,
    wsgi_quote,
)
from swift.common.utils import close_if_possible, get_logger

from shardmw.backend.config import check_option_names
from shardmw.backend.containers import SHARD_COUNT_HEADER, SHARD_DEPTH_HEADER
from shardmw.proxy.listing.container_order import S3_SOURCE, UNORDERED_HEADER
from shardmw.proxy.listing.max_age import MAX_AGE_HEADER
from shardmw.proxy.pipeline import check_listings

BYPASS_ENV = 'shardmw.bypass'
HEADS_ENV = 'shardmw.heads'
ORDER_ENV = 'shardmw.s3_order'

#: Where s3api stores the Swift path of its last request for a client.
S3_PATH_ENV = 's3api.backend_path'

#: The headers of a sharded container that HeadBucket shows.
BUCKET_HEADERS = (
    'X-Container-Object-Count',
    'X-Container-Bytes-Used',
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    UNORDERED_HEADER,
    MAX_AGE_HEADER,
)

S3_UNORDERED = 'allow-unordered'

#: Parameters of the other GETs for which s3api lists a container.
OTHER_S3_LISTINGS = frozenset({'uploads', 'uploadId', 'versions'})

#: The listing that passes through the other filters.
STAND_IN = b'[]'

JSON = 'application/json'

#: How a NUL, which only reserved names contain, looks in JSON.
_RESERVED = b'\\u0000'

#: Other filters store what they know of an object behind its ETag. A quote
#: without a backslash before it begins or ends a string, so this pattern
#: matches the field and not a part of a name.
_KEPT_WITH_ETAG = re.compile(rb'"hash": "[^";]*;')


class Bypass:
    """The listing of one container, on its way around other filters.

    :param path: the container's path. Filters copy a request's environment,
                 so a bypass can reach requests for other containers
    """

    __slots__ = ('body', 'path')

    def __init__(self, path: str) -> None:
        self.path = path
        self.body: bytes | None = None


def divert(req: Request, body: bytes) -> bytes:
    """Store a listing in the request's bypass, if the listing may take it.

    :param req: the client's request, as it reached shardmw
    :param body: a listing in JSON, as Swift writes it
    :returns: the body to answer with: an empty listing if `body` was stored,
              else `body`
    """
    bypass = req.environ.get(BYPASS_ENV)
    if bypass is None or bypass.path != req.environ['PATH_INFO']:
        return body
    if 'versions' in req.params or may_concern_others(body):
        return body
    bypass.body = body
    return STAND_IN


def may_concern_others(body: bytes) -> bool:
    """Return True if other filters may have to change a listing.

    :param body: a listing in JSON, as Swift writes it
    """
    if _RESERVED in body:
        return True
    return b';' in body and _KEPT_WITH_ETAG.search(body) is not None


def note_head(req: Request, headers: Mapping[str, str]) -> None:
    """Store the headers for HeadBucket, if shardmw-listings can add them.

    :param req: a HEAD of a container, as it reached shardmw
    :param headers: the headers of its answer
    """
    heads = req.environ.get(HEADS_ENV)
    if heads is not None:
        heads[req.environ['PATH_INFO']] = [
            (name, headers[name]) for name in BUCKET_HEADERS if name in headers
        ]


def note_order(env: dict) -> None:
    """Store the ``allow-unordered`` of a GET that may be a ListObjects.

    A GET without it, and any other request, gets None. This also replaces the
    value of an earlier request with the same environment.
    """
    env[ORDER_ENV] = None
    is_get = env['REQUEST_METHOD'] == 'GET'
    if is_get and S3_UNORDERED in env.get('QUERY_STRING', ''):
        params = Request(env).params
        if not OTHER_S3_LISTINGS & params.keys():
            env[ORDER_ENV] = params.get(S3_UNORDERED)


def take_order(req: Request) -> None:
    """Add the stored ``allow-unordered`` to the query of s3api's GET.

    :param req: the GET of a sharded container, as it reached shardmw
    """
    value = req.environ.get(ORDER_ENV)
    if value is not None and req.environ.get('swift.source') == S3_SOURCE:
        req.params = {**req.params, 'allow_unordered': value}


class ListingBypass:
    """The filter ``shardmw-listings``.

    :param app: the next filter
    :param logger: the filter's logger
    """

    def __init__(self, app: Callable, logger) -> None:
        self.app = app
        self.logger = logger

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        note_order(env)
        if env['REQUEST_METHOD'] == 'HEAD':
            return self._head(env, start_response)
        if not _may_be_listing(env):
            return self.app(env, start_response)
        req = Request(env)
        bypass = env[BYPASS_ENV] = Bypass(env['PATH_INFO'])
        status, headers, body = req.call_application(self.app)
        if bypass.body is None or not status.startswith('2'):
            start_response(status, headers)
            return body
        if _whole(body) != STAND_IN:
            # A client must not get an empty listing instead of a full one.
            return self._refuse(req)(env, start_response)
        start_response(status, _with_length(headers, len(bypass.body)))
        return [bypass.body]

    def _head(self, env: dict, start_response: Callable):
        """Add the headers of a sharded container to the answer of s3api."""
        heads = env[HEADS_ENV] = {}

        def start(status: str, headers: list, *exc_info):
            if status.startswith('2'):
                headers = [*headers, *heads.get(env.get(S3_PATH_ENV), ())]
            return start_response(status, headers, *exc_info)

        return self.app(env, start)

    def _refuse(self, req: Request) -> Response:
        self.logger.error(
            'shardmw-listings: 503 for GET %s: a filter between '
            'shardmw-listings and shardmw changed the empty listing: move '
            'shardmw-listings to the right of that filter, or take '
            'shardmw-listings out of the pipeline',
            wsgi_quote(req.path_info),
        )
        return HTTPServiceUnavailable(request=req)


def _may_be_listing(env: dict) -> bool:
    """Return True for a GET of a container in JSON."""
    is_get = env['REQUEST_METHOD'] == 'GET'
    return is_get and env['PATH_INFO'].count('/') == 3 and _wants_json(env)


def _wants_json(env: dict) -> bool:
    try:
        # get_listing_content_type may change the request
        return get_listing_content_type(Request(dict(env))) == JSON
    except HTTPException:
        return False


def _whole(body: Iterable[bytes]) -> bytes:
    try:
        return b''.join(body)
    finally:
        close_if_possible(body)


def _with_length(
    headers: list[tuple[str, str]], length: int
) -> list[tuple[str, str]]:
    return [
        (name, str(length) if name.lower() == 'content-length' else value)
        for name, value in headers
    ]


def filter_factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[Callable], ListingBypass]:
    """Return the filter's constructor, for PasteDeploy.

    :raises ConfigError: if an option or the pipeline is wrong
    """
    check_option_names(local_conf, 'shardmw-listings', names=(), prefixes=())
    conf = {**global_conf, **local_conf}
    check_listings(conf)
    # Metrics get their prefix by route, so shardmw's route cannot be used.
    logger = get_logger(conf, log_route='shardmw-listings')
    return lambda app: ListingBypass(app, logger)
