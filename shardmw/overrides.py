# SPDX-License-Identifier: Apache-2.0
"""A container's own write rate, set by the operator.

``X-Container-Write-Ratelimit`` on a PUT or POST of a container, by a reseller
admin, holds it, or each of its shards, to so many writes a second instead of
what the options say for its size.

====================================  ===================================
a number, 0.0001 or more              writes a second
``unlimited``                         no limit
an empty one, or                      as the options say, again
``X-Remove-Container-Write-
Ratelimit: x``
anything else                         400, nothing changed
any, of others than reseller admins   403, nothing changed
====================================  ===================================

The container's owner sees it in answers to GET and HEAD.
"""

import math
from collections.abc import Mapping, MutableMapping

from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.swob import (
    HTTPBadRequest,
    HTTPForbidden,
    Request,
    Response,
)

from shardmw.config import LEAST_RATE

RATE_HEADER = 'X-Container-Write-Ratelimit'
REMOVE_HEADER = 'X-Remove-Container-Write-Ratelimit'
RATE_NAME = 'shardmw-write-ratelimit'
RATE_SYSMETA = get_sys_meta_prefix('container') + RATE_NAME
UNLIMITED = 'unlimited'


def parse_rate(text: str) -> float:
    """Writes a second, ``inf`` for no limit.

    :raises ValueError: if it is neither ``LEAST_RATE`` or more nor `unlimited`
    """
    if text.lower() == UNLIMITED:
        return math.inf
    rate = float(text)
    if not LEAST_RATE <= rate < math.inf:
        raise ValueError
    return rate


def rate_of(info: Mapping) -> float | None:
    """A container's own rate, None if it has none.

    :param info: as ``get_container_info`` gives it
    """
    text = info['sysmeta'].get(RATE_NAME)
    try:
        return parse_rate(text) if text else None
    except ValueError:
        return None


def take_header(req: Request) -> Response | None:
    """Turn the header of a PUT or POST into what is stored of it.

    :param req: an authorized request to a container
    :returns: the refusal, if it is not allowed or no rate
    """
    if RATE_HEADER in req.headers:
        text = req.headers[RATE_HEADER].strip()
    elif REMOVE_HEADER in req.headers:
        text = ''
    else:
        return None
    if not req.environ.get('reseller_request'):
        return HTTPForbidden(request=req)
    try:
        if text:
            parse_rate(text)
    except ValueError:
        return HTTPBadRequest(
            request=req,
            content_type='text/plain',
            body=f'{RATE_HEADER} must be a number of writes a second, '
            f'{LEAST_RATE} or more, or {UNLIMITED}',
        )
    for name in (RATE_HEADER, REMOVE_HEADER):
        req.headers.pop(name, None)
    req.headers[RATE_SYSMETA] = text.lower()
    return None


def show(req: Request, headers: MutableMapping[str, str]) -> None:
    """Let an owner see the rate among the headers of a GET or HEAD."""
    if req.environ.get('swift_owner') and headers.get(RATE_SYSMETA):
        headers[RATE_HEADER] = headers[RATE_SYSMETA]
