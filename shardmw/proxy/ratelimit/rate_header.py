# SPDX-License-Identifier: Apache-2.0
"""The write rate that an operator gives to one container.

A reseller admin sets ``X-Container-Write-Ratelimit`` with a PUT or POST of the
container. The rate applies to the container, or to each shard of a sharded
container, in place of the rate that the filter's options give for its size.

====================================  ===================================
value of the header                   effect
====================================  ===================================
a number, 0.0001 or more              that many writes per second
``unlimited``                         no limit
empty, or any value of                the rate that the options give
``X-Remove-Container-Write-
Ratelimit``
any other value                       400, nothing changes
any value, without reseller admin     403, nothing changes
====================================  ===================================

Answers to GET and HEAD show the rate to the container's owner.
"""

import math
from collections.abc import Mapping, MutableMapping

from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.swob import (
    HTTPForbidden,
    Request,
    Response,
)

from shardmw.backend.config import LEAST_RATE
from shardmw.proxy.setting_headers import is_sent, take_setting

RATE_HEADER = 'X-Container-Write-Ratelimit'
RATE_NAME = 'shardmw-write-ratelimit'
RATE_SYSMETA = get_sys_meta_prefix('container') + RATE_NAME
UNLIMITED = 'unlimited'


def parse_rate(text: str) -> float:
    """Return a rate in writes per second, ``inf`` for no limit.

    :raises ValueError: if the text is neither a number from ``LEAST_RATE`` on
                        nor `unlimited`
    """
    if text.lower() == UNLIMITED:
        return math.inf
    rate = float(text)
    if not LEAST_RATE <= rate < math.inf:
        raise ValueError
    return rate


def rate_of(info: Mapping) -> float | None:
    """Return a container's own rate, or None if it has none.

    :param info: the container's info, as ``get_container_info`` returns it
    """
    text = info['sysmeta'].get(RATE_NAME)
    try:
        return parse_rate(text) if text else None
    except ValueError:
        return None


def take_header(req: Request) -> Response | None:
    """Replace the rate header of a PUT or POST by the sysmeta to store.

    :param req: an authorized request to a container
    :returns: the error response if the header is forbidden or invalid
    """
    if not is_sent(req, RATE_HEADER):
        return None
    if not req.environ.get('reseller_request'):
        return HTTPForbidden(request=req)

    def stored(text: str) -> str:
        parse_rate(text)
        return text.lower()

    return take_setting(
        req,
        RATE_HEADER,
        RATE_SYSMETA,
        stored,
        f'Bad rate {{}}: must be {LEAST_RATE} or more, or {UNLIMITED} '
        f'({RATE_HEADER}, in writes per second)',
    )


def show(req: Request, headers: MutableMapping[str, str]) -> None:
    """Add the rate to the headers of a GET or HEAD if the owner asks."""
    if req.environ.get('swift_owner') and headers.get(RATE_SYSMETA):
        headers[RATE_HEADER] = headers[RATE_SYSMETA]
