# SPDX-License-Identifier: Apache-2.0
"""The owner's setting that listings of a container need no order.

An unordered listing of a sharded container reads one or two shards for a page,
an ordered one reads all of them. Swift clients request an unordered listing
with ``allow_unordered=true``, S3 clients with ``allow-unordered=true``
(:mod:`shardmw.proxy.listings_filter`). For clients that cannot send this, the
owner of a container can set ``X-Container-Unordered-Listings`` with a PUT or
POST.

====================================  =====================================
value of the header                   effect
====================================  =====================================
``true``, or another true value       listings need no order
``false``, or another false value;    listings are ordered, as by default
empty; or any value of
``X-Remove-Container-Unordered-
Listings``
any other value                       400, nothing changes
====================================  =====================================

With the setting, a listing by a Swift or S3 client is treated as if it had
``allow_unordered=true``. These listings stay ordered:

- a listing with ``delimiter``, ``path``, ``reverse`` or ``versions``, which
  need the order;
- a listing with ``allow_unordered=false``;
- a listing that another filter makes, such as that of the segments of a
  dynamic large object, which have to be in order;
- a listing of a plain container, which keeps the setting.

Answers to GET and HEAD show the setting to all clients that may send them, so
that they know what to expect of a listing.
"""

from collections.abc import Mapping, MutableMapping

from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.swob import Request, Response
from swift.common.utils import TRUE_VALUES

from shardmw.core.listing_params import ListingParams
from shardmw.proxy.setting_headers import take_setting

UNORDERED_HEADER = 'X-Container-Unordered-Listings'
UNORDERED_NAME = 'shardmw-unordered-listings'
UNORDERED_SYSMETA = get_sys_meta_prefix('container') + UNORDERED_NAME

#: What stands for True in the sysmeta and in answers.
ON = 'true'

FALSE_VALUES = frozenset({'', 'false', '0', 'no', 'off', 'f', 'n'})

#: ``swift.source`` of requests by Swift and S3 clients. Other filters that
#: list a container set their own.
S3_SOURCE = 'S3'
CLIENT_SOURCES = (None, S3_SOURCE)


def is_set(info: Mapping) -> bool:
    """Return True if the owner of a container has set the header.

    :param info: the container's info, as ``get_container_info`` returns it
    """
    return info['sysmeta'].get(UNORDERED_NAME) == ON


def allows_unordered(
    req: Request, params: ListingParams, info: Mapping
) -> bool:
    """Return True if a page may be unordered by the owner's choice.

    :param req: a request for a listing
    :param params: its parameters
    :param info: the container's info
    """
    return (
        is_set(info)
        and req.environ.get('swift.source') in CLIENT_SOURCES
        and not params.wants_order()
        and not {'allow_unordered', 'versions'} & req.params.keys()
    )


def take_header(req: Request) -> Response | None:
    """Replace the header of a PUT or POST by the sysmeta to store.

    :param req: an authorized request to a container
    :returns: the 400 for an invalid value
    """

    def stored(text: str) -> str:
        if text.lower() not in TRUE_VALUES | FALSE_VALUES:
            raise ValueError
        return ON if text.lower() in TRUE_VALUES else ''

    return take_setting(
        req,
        UNORDERED_HEADER,
        UNORDERED_SYSMETA,
        stored,
        f'Bad value {{}}: must be true or false ({UNORDERED_HEADER})',
    )


def show(headers: MutableMapping[str, str]) -> None:
    """Add the setting to the headers of a GET or HEAD if it is on."""
    if headers.get(UNORDERED_SYSMETA) == ON:
        headers[UNORDERED_HEADER] = ON
