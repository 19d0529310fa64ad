# SPDX-License-Identifier: Apache-2.0
"""The audit of shardmw-admin, on Swift's own databases."""

import time

import pytest
from swift.common.utils import Timestamp

from shardmw.admin.audit import (
    CHANGING,
    EARLIER_LAYOUT,
    FAILED,
    MISPLACED_ROW,
    MISSING_SHARD,
    NAME_IS_CUT,
    NO_OBJECT,
    NO_ROOT,
    NOT_REPORTED,
    NOT_YET,
    SHARD_IS_MISSING,
    STRAY,
    SYNCS,
    UNDER_WAY,
    UNKNOWN_DELETION,
    UNREGISTERED,
    Audit,
    Problem,
    mended,
)
from shardmw.backend.containers import (
    LOGICAL_HEADER,
    RECORD_HEADER,
    STORED_SYNC_TO_HEADER,
    BackendError,
)
from shardmw.core.layout import Layout
from shardmw.core.placement import (
    REGISTER,
    backing_base,
    backing_container,
)
from shardmw.reshard.cluster import SwiftCluster
from test.unit.containers import (
    OLD_ID,
    backing,
    create,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, filtered

LATE = f'late.{OLD_ID}.0'

#: Too long to be whole in the name of a shard.
LONG = 'n' * 250


@pytest.fixture
def auditor(swift) -> Audit:
    swift.put_container(f'/{REGISTER}/{ACCOUNT}')
    return Audit(SwiftCluster(swift), ACCOUNT, looks_for_objects=False)


@pytest.fixture
def late(swift) -> Problem:
    """A plain container with a row in a shard of an earlier layout."""
    swift.put_container(f'/{ACCOUNT}/late')
    swift.put_container(f'/{HIDDEN}/{LATE}')
    swift.put_row(f'/{HIDDEN}/{LATE}/o')
    swift.update_accounts()
    return Problem(EARLIER_LAYOUT, 'late', LATE)


def test_of_an_account_finds_late_rows_of_plain_containers(auditor, late):
    assert auditor.look(None) == [late]


def test_repair_of_an_account_mends_late_rows_of_plain_containers(
    swift, auditor, late
):
    auditor.repair_all([late])
    swift.update_accounts()
    assert auditor.look(None) == []
    assert list(swift.rows(ACCOUNT, 'late')) == ['o']


def lose(swift: FakeSwift, account: str, container: str) -> None:
    """Have all servers lose a container."""
    for replica in range(swift.container_ring.replica_count):
        swift.lose(account, container, replica)


class TestRegister:
    """The register has lost the account, and the daemon skips it."""

    @pytest.fixture
    def lost(self, swift, auditor, late) -> Problem:
        lose(swift, REGISTER, ACCOUNT)
        return Problem(UNREGISTERED, '', '')

    def test_that_lacks_the_account_is_found(self, auditor, late, lost):
        assert auditor.look(None) == [lost, late]

    def test_gets_the_account_again_by_a_repair(self, swift, auditor, lost):
        auditor.repair_all(auditor.look(None))
        swift.update_accounts()
        swift.memcached.values.clear()
        assert auditor.look(None) == []

    def test_that_does_not_answer_is_a_problem(self, swift, auditor, late):
        swift.register('HEAD', f'/v1/{REGISTER}/{ACCOUNT}', 503)
        (problem, _) = found = auditor.look(None)
        assert problem == Problem(FAILED, '', '')
        assert [each.reason for each in auditor.with_reasons(found, [])][0]


def test_a_container_that_no_server_has_is_a_problem(swift, auditor):
    swift.put_container(f'/{ACCOUNT}/gone')
    swift.update_accounts()
    lose(swift, ACCOUNT, 'gone')
    (problem,) = auditor.look(None)
    assert problem == Problem(FAILED, 'gone', '')
    assert '0 of 1 replicas of the root have a database' in problem.reason


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


def test_repair_goes_on_after_a_container_that_cannot_be_read(
    swift, auditor, late, damaged
):
    (failure,) = auditor.repair_all([damaged, late])
    assert failure == damaged
    assert failure.reason.startswith('version None')
    swift.update_accounts()
    assert auditor.look(None) == [damaged]


def test_an_audit_keeps_what_it_found_before_a_server_failed(
    auditor, late, monkeypatch
):
    def logical(*_args):
        raise BackendError(None, 503, 'away')

    monkeypatch.setattr(auditor.cluster, 'logical', logical)
    assert auditor.look('late') == [late, Problem(FAILED, 'late', '')]


class TestLostShard:
    """A shard that no server has, of a container of two shards."""

    @pytest.fixture
    def swift(self, replicated):
        return replicated

    @pytest.fixture
    def name(self, swift) -> str:
        """Return the name of the shard that had the row ``o``."""
        create(swift, filtered(swift), 2)
        put_sharded_row(swift, 'o')
        swift.update_accounts()
        return shard_for(swift, 'o')

    @pytest.fixture
    def lost(self, swift, name) -> Problem:
        lose(swift, HIDDEN, name)
        return Problem(MISSING_SHARD, 'c', name)

    @pytest.fixture
    def accepting(self, swift) -> Audit:
        return Audit(SwiftCluster(swift), ACCOUNT, False, accepts_loss=True)

    def test_is_found_with_the_rows_of_its_last_report(self, auditor, lost):
        (found,) = auditor.look('c')
        assert found == lost
        told = 'lost on all servers; rows in its last report: 1'
        assert found.reason == told

    def test_is_not_created_by_a_repair(self, swift, auditor, lost):
        assert auditor.repair_all([lost]) == []
        assert not swift.exists(HIDDEN, lost.name)
        assert auditor.look('c') == [lost]

    def test_is_created_if_the_loss_is_accepted(self, swift, accepting, lost):
        assert accepting.repair_all([lost]) == []
        assert swift.exists(HIDDEN, lost.name)
        assert accepting.look('c') == []

    def test_is_not_created_while_a_server_is_away(
        self, swift, accepting, name
    ):
        for replica in (1, 2):
            swift.lose(HIDDEN, name, replica)
        swift.servers.away = {'d0'}
        (found,) = accepting.look('c')
        assert found.reason == 'it may be on a server that does not answer'
        accepting.repair_all([found])
        swift.servers.away = set()
        assert [swift.exists(HIDDEN, name, n) for n in range(3)] == [
            *(True, False, False)
        ]

    def test_is_not_lost_if_one_server_has_it(self, swift, accepting, name):
        for replica in (1, 2):
            swift.lose(HIDDEN, name, replica)
        assert accepting.look('c') == []

    def test_leaves_the_rows_of_the_container_where_they_are(
        self, swift, auditor, lost
    ):
        swift.put_row(f'/{ACCOUNT}/c/stray')
        auditor.repair_all([lost])
        assert not swift.exists(HIDDEN, lost.name)
        left = auditor.with_reasons(auditor.look('c'), [])
        reasons = {each.kind: each.reason for each in left}
        assert reasons[STRAY] == SHARD_IS_MISSING


class TestGhost:
    """The row of an object that does not exist, in a plain container."""

    @pytest.fixture
    def auditor(self, swift) -> Audit:
        return Audit(SwiftCluster(swift), ACCOUNT, looks_for_objects=True)

    @pytest.fixture
    def ghost(self, swift) -> Problem:
        swift.put_container(f'/{ACCOUNT}/plain')
        swift.put_row(f'/{ACCOUNT}/plain/o')
        swift.put_row(f'/{ACCOUNT}/plain/there')
        return Problem(NO_OBJECT, 'plain', 'o')

    def delete(self, swift, headers: dict) -> None:
        swift.register('HEAD', f'/v1/{ACCOUNT}/plain/o', 404, headers)

    def test_is_found_and_removed_if_its_deletion_is_known(
        self, swift, auditor, ghost
    ):
        later = Timestamp(time.time() + 1).internal
        self.delete(swift, {'X-Backend-Timestamp': later})
        assert auditor.look('plain') == [ghost]
        assert auditor.repair_all([ghost]) == []
        assert list(swift.rows(ACCOUNT, 'plain')) == ['there']

    def test_stays_if_no_server_knows_of_its_deletion(
        self, swift, auditor, ghost
    ):
        self.delete(swift, {})
        auditor.repair_all([ghost])
        (left,) = auditor.look('plain')
        assert (left, left.reason) == (ghost, UNKNOWN_DELETION)


def put_deleted(swift, headers: dict) -> str:
    """Put a row in a shard of a deleted container with a long name.

    :param headers: the metadata of the shard
    :returns: the name of the shard
    """
    swift.put_container(f'/{ACCOUNT}/{LONG}')
    swift.direct('DELETE', f'/{ACCOUNT}/{LONG}')
    shard = backing_container(LONG, OLD_ID, 0)
    swift.put_container(f'/{HIDDEN}/{shard}', headers)
    swift.put_row(f'/{HIDDEN}/{shard}/o')
    swift.update_accounts()
    return shard


class TestLongName:
    """A deleted container whose name is truncated in its shards' names."""

    @pytest.fixture
    def left(self, swift) -> Problem:
        shard = put_deleted(swift, {LOGICAL_HEADER: LONG})
        return Problem(NO_ROOT, LONG, shard)

    def test_is_read_from_a_shard(self, auditor, left):
        assert auditor.look(None) == [left]

    def test_is_the_container_that_gets_the_rows(self, swift, auditor, left):
        assert auditor.repair_all(auditor.look(None)) == []
        swift.update_accounts()
        assert auditor.look(None) == []
        assert list(swift.rows(ACCOUNT, LONG)) == ['o']


class TestReason:
    """The reason why a repair leaves a problem."""

    def reason(self, auditor, problem: Problem, *failures: Problem) -> str:
        (left,) = auditor.with_reasons([problem], list(failures))
        return left.reason

    @pytest.fixture
    def stray(self, swift) -> Problem:
        create(swift, filtered(swift), 2)
        return Problem(STRAY, 'c', 'o')

    def test_is_the_one_that_the_audit_found(self, auditor):
        problem = Problem(NO_OBJECT, 'c', 'o', 'known')
        assert self.reason(auditor, problem) == 'known'

    def test_is_the_failure_of_its_container(self, auditor, stray):
        failure = Problem(FAILED, 'c', '', 'too few stored rows')
        assert self.reason(auditor, stray, failure) == 'too few stored rows'

    def test_is_a_server_that_does_not_answer(self, swift, auditor, stray):
        place = f'{HIDDEN}/{backing(swift, 1)}'
        swift.servers.broken = {f'/{place}'}
        told = f'a server of {place} does not answer'
        assert self.reason(auditor, stray) == told

    def test_is_that_the_container_syncs(self, swift, auditor, stray):
        headers = {STORED_SYNC_TO_HEADER: '//realm/there/AUTH_a/c'}
        swift.direct('POST', f'/{ACCOUNT}/c', headers)
        problem = Problem(MISPLACED_ROW, 'c', 'o')
        assert self.reason(auditor, problem) == SYNCS
        assert self.reason(auditor, stray) != SYNCS

    def test_is_a_report_that_has_not_been_sent_yet(
        self, swift, auditor, late
    ):
        auditor.repair_all([late])
        assert self.reason(auditor, late) == NOT_REPORTED

    def test_is_a_name_that_no_server_knows(self, swift, auditor):
        put_deleted(swift, {})
        (problem,) = auditor.look(None)
        assert problem.container == backing_base(LONG)
        assert self.reason(auditor, problem) == NAME_IS_CUT

    def test_is_that_the_repair_is_pending_if_nothing_prevents_it(
        self, auditor, stray
    ):
        assert self.reason(auditor, stray) == NOT_YET


def test_an_audit_names_a_change_that_is_under_way(swift, auditor):
    layout = Layout(OLD_ID, 0).announced(4, time.time())
    record = {RECORD_HEADER: layout.to_record()}
    swift.put_container(f'/{ACCOUNT}/c', record)
    (found,) = auditor.look('c')
    assert (found.kind, found.reason) == (CHANGING, UNDER_WAY)


class TestMended:
    STRAYS = [Problem(STRAY, 'c', 'o'), Problem(STRAY, 'd', 'o')]

    def test_has_the_problems_that_are_not_found_any_more(self):
        assert mended(self.STRAYS, []) == set(self.STRAYS)
        assert mended(self.STRAYS, self.STRAYS[:1]) == {self.STRAYS[1]}

    def test_has_no_problems_of_a_container_that_could_not_be_audited(self):
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
