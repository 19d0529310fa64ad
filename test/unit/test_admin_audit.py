# SPDX-License-Identifier: Apache-2.0
"""The audit of shardmw-admin, on Swift's own databases."""

import pytest

from shardmw.admin.audit import EARLIER_LAYOUT, Audit, Problem
from shardmw.admin.cluster import SwiftCluster
from test.unit.containers import OLD_ID
from test.unit.fakeswift import ACCOUNT, HIDDEN

LATE = f'late.{OLD_ID}.0'


@pytest.fixture
def auditor(swift) -> Audit:
    return Audit(SwiftCluster(swift), ACCOUNT, looks_for_objects=False)


@pytest.fixture
def late(swift) -> Problem:
    """A plain container with a row in a shard that it had once."""
    swift.put_container(f'/{ACCOUNT}/late')
    swift.put_container(f'/{HIDDEN}/{LATE}')
    swift.put_row(f'/{HIDDEN}/{LATE}/o')
    swift.update_accounts()
    return Problem(EARLIER_LAYOUT, 'late', LATE)


def test_of_an_account_finds_late_rows_of_plain_containers(auditor, late):
    assert auditor.look(None) == [late]


def test_of_an_account_mends_late_rows_of_plain_containers(
    swift, auditor, late
):
    auditor.repair_all([late])
    swift.update_accounts()
    assert auditor.look(None) == []
    assert list(swift.rows(ACCOUNT, 'late')) == ['o']
