# SPDX-License-Identifier: Apache-2.0
"""Read the parameters of a client's listing request."""

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.request_helpers import validate_container_params
from swift.common.swob import Request
from swift.common.utils import config_true_value

from shardmw.core.listing_params import ListingParams


def params_of(req: Request) -> ListingParams:
    """Return the parameters of a listing request.

    :raises HTTPException: for values that Swift's proxy refuses
    :raises ValueError: for a limit of digits that int() does not accept,
                        such as superscripts
    """
    params = validate_container_params(req)
    return ListingParams(
        limit=params.get('limit', CONTAINER_LISTING_LIMIT),
        marker=params.get('marker') or '',
        end_marker=params.get('end_marker') or '',
        prefix=params.get('prefix') or '',
        delimiter=params.get('delimiter') or '',
        path=params.get('path'),
        reverse=config_true_value(params.get('reverse')),
        is_unordered=_allows_unordered(req),
    )


def _allows_unordered(req: Request) -> bool:
    """Return True if the client accepts rows in any order.

    Object versioning merges lists of versions, so it needs their order.
    """
    allows = config_true_value(req.params.get('allow_unordered'))
    return allows and 'versions' not in req.params
