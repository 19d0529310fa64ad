# SPDX-License-Identifier: Apache-2.0
"""Bound the pages of listings that Swift is asked for.

Container and account servers answer 412 to a page above the limits of
``swift.conf``. The limits are read here each time: a command reads its
``swift.conf`` after most modules have been imported.
"""

from swift.common import constraints


def container_page(rows: int) -> int:
    """Return how many rows of a container to ask for, if `rows` are wanted."""
    return min(rows, constraints.CONTAINER_LISTING_LIMIT)


def account_page() -> int:
    """Return the most containers of an account to ask for."""
    return constraints.ACCOUNT_LISTING_LIMIT
