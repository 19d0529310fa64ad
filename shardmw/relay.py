# SPDX-License-Identifier: Apache-2.0
"""Hands listings around the filters that have nothing to do with them.

Several of Swift's filters (``listing_formats``, ``s3api``, ``slo``,
``versioned_writes``, ``symlink``) decode every listing, look through its rows
for what is to be hidden or for what they keep behind an object's ETag, and
encode it again, one after the other. For a large page that is most of what
the proxy does. A listing that has nothing of the kind they leave as it is.

So this filter, left of them, brings a *bypass* with each request that may be a
listing's. ``shardmw``, right of them, puts such a listing in there and answers
with an empty one, which costs them nothing; here the two change places::

    ... shardmw-listings listing_formats ... s3api tempauth ... slo dlo
    versioned_writes symlink shardmw proxy-logging proxy-server

    [filter:shardmw-listings]
    use = egg:shardmw#shardmw_listings

Only what is asked for as JSON goes that way: ``listing_formats`` makes the
others of it. It is there for speed only: without it everything works the same.
"""

import re
from collections.abc import Callable, Iterable

from swift.common.middleware.listing_formats import get_listing_content_type
from swift.common.swob import (
    HTTPException,
    HTTPServiceUnavailable,
    Request,
    Response,
    wsgi_quote,
)
from swift.common.utils import close_if_possible, get_logger

BYPASS_ENV = 'shardmw.bypass'

#: The listing that goes the long way.
STAND_IN = b'[]'

JSON = 'application/json'

#: Part of a name that clients may not see.
_RESERVED = b'\\u0000'

#: What other filters keep with an object stands behind its ETag. A quote with
#: no backslash before it does not stand within a string: see shardmw.rows.
_KEPT_WITH_ETAG = re.compile(rb'"hash": "[^";]*;')


class Bypass:
    """The way around, for the listing of one container.

    :param path: the container's path; other filters' requests may carry it
                 along to other ones
    """

    __slots__ = ('body', 'path')

    def __init__(self, path: str) -> None:
        self.path = path
        self.body: bytes | None = None


def divert(req: Request, body: bytes) -> bytes:
    """Put a listing on its way around, if it may take it.

    :param body: a listing in JSON, as Swift writes it
    :returns: what is to go the long way
    """
    bypass = req.environ.get(BYPASS_ENV)
    if bypass is None or bypass.path != req.environ['PATH_INFO']:
        return body
    if 'versions' in req.params or may_concern_others(body):
        return body
    bypass.body = body
    return STAND_IN


def may_concern_others(body: bytes) -> bool:
    """Whether other filters may have something to do in a listing."""
    if _RESERVED in body:
        return True
    return b';' in body and _KEPT_WITH_ETAG.search(body) is not None


class ListingBypass:
    """The filter.

    :param logger: its logger
    """

    def __init__(self, app: Callable, logger) -> None:
        self.app = app
        self.logger = logger

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        if not _may_be_listing(env):
            return self.app(env, start_response)
        req = Request(env)
        bypass = env[BYPASS_ENV] = Bypass(env['PATH_INFO'])
        status, headers, body = req.call_application(self.app)
        if bypass.body is None or not status.startswith('2'):
            start_response(status, headers)
            return body
        if _whole(body) != STAND_IN:
            # Never an empty listing in the place of a full one.
            return self._refusal(req)(env, start_response)
        start_response(status, _with_length(headers, len(bypass.body)))
        return [bypass.body]

    def _refusal(self, req: Request) -> Response:
        self.logger.error(
            'shardmw: 503 for GET %s: a filter between shardmw-listings and '
            'shardmw changes listings: move shardmw-listings to its right',
            wsgi_quote(req.path_info),
        )
        return HTTPServiceUnavailable(request=req)


def _may_be_listing(env: dict) -> bool:
    is_get = env['REQUEST_METHOD'] == 'GET'
    return is_get and env['PATH_INFO'].count('/') == 3 and _wants_json(env)


def _wants_json(env: dict) -> bool:
    try:
        # Of a copy: it may change the request's.
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


def filter_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Make the filter, for PasteDeploy."""
    # A route of its own: metrics' prefix is a matter of the route.
    conf = {**global_conf, **local_conf}
    logger = get_logger(conf, log_route='shardmw-listings')
    return lambda app: ListingBypass(app, logger)
