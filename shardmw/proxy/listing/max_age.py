# SPDX-License-Identifier: Apache-2.0
"""Decide how many seconds old the listings of a container may be.

The owner of a container sets it with ``X-Container-Listing-Max-Age`` in a PUT
or POST, an operator with ``listing_max_age``, or in a rule of ``shard_rules``.
The owner's setting comes first, the rule's second. Pages are then kept
(:mod:`shardmw.proxy.listing.kept_pages`).

====================================  =====================================
value of the header                   effect
====================================  =====================================
a whole number from 0 to 3600         listings may be so many seconds old
empty, or any value of                what the operator's options say
``X-Remove-Container-Listing-Max-
Age``
any other value                       400, nothing changes
====================================  =====================================

A single request may ask for a lower age: ``X-Listing-Max-Age: 5``, or
``X-Newest: true``, which means 0. A higher age counts as the setting.

The setting applies to listings by Swift and S3 clients and to static web
sites. Other filters list containers to work on what they find, so they always
get listings that are read anew: those of versions, of large objects' segments
and of the parts of S3 uploads. A plain container keeps the setting.

Answers to GET and HEAD of a sharded container show the setting, also an
operator's, to all clients that may send them.
"""

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from swift.common.middleware.s3api.utils import MULTIUPLOAD_SUFFIX
from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.swob import Request, Response
from swift.common.utils import config_true_value

from shardmw.backend.config import MOST_LISTING_AGE
from shardmw.proxy.listing.container_order import CLIENT_SOURCES, S3_SOURCE
from shardmw.proxy.setting_headers import take_setting

MAX_AGE_HEADER = 'X-Container-Listing-Max-Age'
MAX_AGE_NAME = 'shardmw-listing-max-age'
MAX_AGE_SYSMETA = get_sys_meta_prefix('container') + MAX_AGE_NAME

#: The header of one request for a listing.
REQUEST_HEADER = 'X-Listing-Max-Age'

#: ``swift.source`` of the listings of static web sites.
WEB_SOURCE = 'SW'


class MaxAge(NamedTuple):
    """The age that a page may have, in whole seconds.

    :param kept: the container's setting, for how long a page is kept
    :param asked: how old the answer to one request may be, at most `kept`; 0:
                  it is read anew, and not kept
    """

    kept: int
    asked: int


def setting_of(info: Mapping, default: int) -> int:
    """Return how many seconds old the listings of a container may be.

    :param info: the container's info, as ``get_container_info`` returns it
    :param default: what the operator's options say for this container
    """
    seconds = _seconds_in(info['sysmeta'].get(MAX_AGE_NAME, ''))
    return default if seconds is None else seconds


def of_request(req: Request, info: Mapping, default: int) -> MaxAge:
    """Return how old the page in the answer to a request may be.

    :param req: a request for a listing of a sharded container
    :raises ValueError: for an invalid ``X-Listing-Max-Age``, with a message
                        for the client
    """
    kept = asked = setting_of(info, default)
    text = req.headers.get(REQUEST_HEADER)
    if text is not None:
        if not (text.isascii() and text.isdecimal()):
            raise ValueError(
                f'Bad value {text!a}: must be a whole number of seconds '
                f'({REQUEST_HEADER})'
            )
        # int() refuses thousands of digits.
        asked = min(kept, int(text[:9]))
    if config_true_value(req.headers.get('X-Newest')) or not _may_be_old(req):
        asked = 0
    return MaxAge(kept, asked)


def take_header(req: Request) -> Response | None:
    """Replace the header of a PUT or POST by the sysmeta to store.

    :param req: an authorized request to a container
    :returns: the 400 for an invalid value
    """

    def stored(text: str) -> str:
        seconds = _seconds_in(text)
        if seconds is None:
            raise ValueError
        return str(seconds)

    return take_setting(
        req,
        MAX_AGE_HEADER,
        MAX_AGE_SYSMETA,
        stored,
        f'Bad value {{}}: must be a whole number of seconds from 0 to '
        f'{MOST_LISTING_AGE} ({MAX_AGE_HEADER})',
    )


def show(headers: MutableMapping[str, str], default: int = 0) -> None:
    """Add the setting to the headers of a GET or HEAD.

    :param default: what the operator's options say for this container
    """
    seconds = _seconds_in(headers.get(MAX_AGE_SYSMETA, ''))
    if seconds is not None or default:
        shown = default if seconds is None else seconds
        headers[MAX_AGE_HEADER] = str(shown)


def _seconds_in(text: str) -> int | None:
    """Return a setting, or None if the text is empty or invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    seconds = int(text)
    return seconds if seconds <= MOST_LISTING_AGE else None


def _may_be_old(req: Request) -> bool:
    """Return True if no filter needs the listing for its own work."""
    source = req.environ.get('swift.source')
    is_of_parts = source == S3_SOURCE and req.environ['PATH_INFO'].endswith(
        MULTIUPLOAD_SUFFIX
    )
    return (
        source in (*CLIENT_SOURCES, WEB_SOURCE)
        and not is_of_parts
        and 'versions' not in req.params
    )
