# SPDX-License-Identifier: Apache-2.0
"""The audit of shardmw-admin, on Swift's own databases."""

import pytest

from shardmw.admin.audit import (
    EARLIER_LAYOUT,
    FAILED,
    STRAY,
    Audit,
    Problem,
    mended,
)
from shardmw.admin.cluster import SwiftCluster
from shardmw.backend.containers import RECORD_HEADER, BackendError
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


@pytest.fixture
def damaged(swift) -> Problem:
    """A container, the first of the account, with a damaged record."""
    swift.put_container(f'/{ACCOUNT}/damaged', {RECORD_HEADER: '{}'})
    swift.update_accounts()
    return Problem(FAILED, 'damaged', '')


def test_of_an_account_goes_on_after_a_container_that_cannot_be_read(
    auditor, late, damaged
):
    first, second = auditor.look(None)
    assert (first, second) == (damaged, late)
    assert first.reason.startswith('version None')


def test_of_an_account_mends_the_others(swift, auditor, late, damaged):
    (failure,) = auditor.repair_all([damaged, late])
    assert failure == damaged
    assert failure.reason.startswith('version None')
    swift.update_accounts()
    assert auditor.look(None) == [damaged]


def test_keeps_what_it_found_before_a_server_failed(
    auditor, late, monkeypatch
):
    def logical(*_args):
        raise BackendError(None, 503, 'away')

    monkeypatch.setattr(auditor.cluster, 'logical', logical)
    assert auditor.look('late') == [late, Problem(FAILED, 'late', '')]


class TestMended:
    STRAYS = [Problem(STRAY, 'c', 'o'), Problem(STRAY, 'd', 'o')]

    def test_is_what_is_not_found_any_more(self):
        assert mended(self.STRAYS, []) == set(self.STRAYS)
        assert mended(self.STRAYS, self.STRAYS[:1]) == {self.STRAYS[1]}

    def test_is_nothing_of_a_container_that_could_not_be_audited(self):
        left = [Problem(FAILED, 'c', '', 'the root answered 503')]
        assert mended(self.STRAYS, left) == {self.STRAYS[1]}

    def test_takes_about_one_comparison_for_each_problem(self, monkeypatch):
        found = [Problem(STRAY, 'c', str(i)) for i in range(1000)]
        left = [Problem(STRAY, 'c', str(i)) for i in range(1000)]
        compared, equals = [], Problem.__eq__

        def equals_and_notes(self, other):
            compared.append(other)
            return equals(self, other)

        monkeypatch.setattr(Problem, '__eq__', equals_and_notes)
        assert mended(found, left) == set()
        assert len(compared) < 1100
