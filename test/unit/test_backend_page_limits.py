# SPDX-License-Identifier: Apache-2.0
"""Tests of the size of pages, which Swift limits."""

import pytest
from swift.common import constraints

from shardmw.backend.page_limits import account_page, container_page


@pytest.mark.parametrize(('limit', 'page'), [(10_000, 1000), (20, 20)])
def test_pages_of_containers_have_the_rows_wanted_or_as_many_as_swift_allows(
    monkeypatch, limit, page
):
    monkeypatch.setattr(constraints, 'CONTAINER_LISTING_LIMIT', limit)
    assert container_page(1000) == page


def test_pages_of_accounts_have_as_many_containers_as_swift_allows(
    monkeypatch,
):
    monkeypatch.setattr(constraints, 'ACCOUNT_LISTING_LIMIT', 3)
    assert account_page() == 3
