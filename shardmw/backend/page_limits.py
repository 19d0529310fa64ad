# SPDX-License-Identifier: Apache-2.0
"""Bound the pages of listings that are requested from Swift.

Container and account servers answer 412 if a page exceeds the limits of
``swift.conf``. The limits are read here each time, because a command reads its
``swift.conf`` after most modules have been imported.
"""

from swift.common import constraints


def container_page(rows: int) -> int:
    """Return how many rows of a container to request if `rows` are needed."""
    return min(rows, constraints.CONTAINER_LISTING_LIMIT)


def account_page() -> int:
    """Return the most containers of an account to request."""
    return constraints.ACCOUNT_LISTING_LIMIT
