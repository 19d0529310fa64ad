# SPDX-License-Identifier: Apache-2.0
"""The layout that counts when Swift's cached info may be stale."""

from types import SimpleNamespace

import pytest
from swift.proxy.controllers.base import headers_to_container_info

from shardmw.backend.answers import Answer
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.backend.roots import RootState
from shardmw.core.layout import Layout, LayoutError
from shardmw.core.paths import Path
from shardmw.proxy import layouts as lookup
from shardmw.proxy.layouts import (
    CONFIRMED_SECONDS,
    DOUBT_SECONDS,
    UNCONFIRMED_SECONDS,
    Layouts,
)
from shardmw.swift.infocache import INFOCACHE_ENV
from test.unit.clocks import Clock
from test.unit.containers import NEW_ID, OLD_ID

PATH = Path('v1', 'a', 'c')
OLD, NEW = Layout(OLD_ID, 4), Layout(NEW_ID, 8)


class Replicas:
    """The replicas of a root.

    :ivar layout: the layout of the root; None for a plain container
    :ivar asked: how often the replicas were asked
    :ivar are_away: True if too few replicas answer
    :ivar are_missing: True if no replica has a database
    :ivar policy_index: the storage policy
    :ivar knowing: how many of three replicas have a database
    """

    def __init__(self) -> None:
        self.layout: Layout | None = OLD
        self.asked = 0
        self.are_away = False
        self.are_missing = False
        self.policy_index = 0
        self.knowing = 3

    def read_root(self, _backend, _env, path) -> RootState:
        assert path.of_container(path.container) == PATH
        self.asked += 1
        if self.are_away:
            raise BackendError(None, 503)
        if self.are_missing:
            return RootState(None, None)
        headers = {'X-Backend-Storage-Policy-Index': str(self.policy_index)}
        answer = Answer(None, '204 No Content', headers, [])
        return RootState(answer, self.layout, replicas=3, knowing=self.knowing)


@pytest.fixture
def replicas(monkeypatch) -> Replicas:
    replicas = Replicas()
    monkeypatch.setattr(lookup, 'read_root', replicas.read_root)
    return replicas


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lookup, 'time', clock)
    return clock


class Accounts:
    """A backend that only looks up hidden accounts, and a container's info.

    :ivar looked: the number of look-ups of accounts
    :ivar info: Swift's info of the container
    """

    #: Swift caches container info for a minute, by default.
    proxy_app = SimpleNamespace(recheck_container_existence=CONFIRMED_SECONDS)

    def __init__(self) -> None:
        self.hidden = {'.shards_shardmw_a'}
        self.looked = 0
        self.info = info(OLD)

    def container_info_of(self, env, path) -> dict:
        assert path == PATH
        assert env[INFOCACHE_ENV] == {}
        return self.info

    def account_exists(self, _env, account) -> bool:
        self.looked += 1
        return account in self.hidden


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


@pytest.fixture
def layouts(replicas, accounts) -> Layouts:
    return Layouts(accounts)


def info(layout: Layout | None, status: int = 204) -> dict:
    """Return Swift's info of a container."""
    headers = {RECORD_HEADER: layout.to_record()} if layout else {}
    return headers_to_container_info(headers, status)


def seen(
    layouts: Layouts,
    layout: Layout | None,
    max_age: float = CONFIRMED_SECONDS,
) -> Layout | None:
    """Return the layout that counts if Swift's info has this one, or None."""
    target = layouts.of({}, PATH, info(layout), max_age)
    return target and target.layout


def seen_meanwhile(
    layouts: Layouts,
    replicas: Replicas,
    monkeypatch,
    layout: Layout | None,
    max_age: float = CONFIRMED_SECONDS,
) -> Layout | None:
    """Return the layout that counts while another request asks replicas."""
    meanwhile = []

    def read_root(*args) -> RootState:
        if not meanwhile:
            meanwhile.append(None)
            meanwhile[0] = seen(layouts, layout, max_age)
        return replicas.read_root(*args)

    monkeypatch.setattr(lookup, 'read_root', read_root)
    seen(layouts, layout)
    return meanwhile[0]


def test_the_target_has_the_path_and_the_info(layouts):
    known = info(OLD)
    target = layouts.of({}, PATH._replace(name='o'), known)
    assert (target.path, target.layout) == (PATH, OLD)
    assert target.info is known


class TestPolicy:
    def test_is_that_of_the_replicas(self, layouts, replicas):
        replicas.layout, replicas.policy_index = NEW, 1
        for _ in range(2):
            assert layouts.of({}, PATH, info(OLD)).policy_index == 1

    def test_is_that_of_the_info_while_too_few_replicas_answer(
        self, layouts, replicas
    ):
        replicas.are_away, replicas.policy_index = True, 1
        assert layouts.of({}, PATH, info(OLD)).policy_index == 0


class TestRecord:
    def test_is_confirmed_once_a_minute(self, layouts, replicas, clock):
        for _ in range(3):
            assert seen(layouts, OLD) == OLD
        assert replicas.asked == 1
        clock.now += CONFIRMED_SECONDS
        assert seen(layouts, OLD) == OLD
        assert replicas.asked == 2

    def test_of_a_stale_replica_gives_way_to_the_latest(
        self, layouts, replicas
    ):
        replicas.layout = NEW
        assert seen(layouts, OLD) == NEW

    def test_of_a_stale_replica_does_not_shard_a_plain_container(
        self, layouts, replicas
    ):
        replicas.layout = None
        assert seen(layouts, OLD) is None

    def test_of_a_stale_replica_is_looked_up_once_a_minute(
        self, layouts, replicas, clock
    ):
        for confirmed in (None, NEW):
            replicas.layout = confirmed
            replicas.asked = 0
            for _ in range(3):
                assert seen(layouts, OLD) == confirmed
            assert replicas.asked == 1
            clock.now += CONFIRMED_SECONDS

    def test_later_than_the_confirmed_one_is_confirmed_at_once(
        self, layouts, replicas
    ):
        seen(layouts, OLD)
        replicas.layout = NEW
        assert seen(layouts, NEW) == NEW
        assert replicas.asked == 2

    def test_earlier_than_the_confirmed_one_is_not_asked_about(
        self, layouts, replicas
    ):
        replicas.layout = NEW
        seen(layouts, NEW)
        assert seen(layouts, OLD) == NEW
        assert replicas.asked == 1

    def test_of_long_ago_does_not_count_while_replicas_are_asked(
        self, layouts, replicas, clock, monkeypatch
    ):
        seen(layouts, OLD)
        clock.now += 2 * CONFIRMED_SECONDS
        replicas.layout = NEW
        assert seen_meanwhile(layouts, replicas, monkeypatch, OLD) == NEW

    def test_earlier_than_one_of_long_ago_is_not_asked_about(
        self, layouts, replicas, clock
    ):
        replicas.layout = None
        assert seen(layouts, NEW) is None
        clock.now += CONFIRMED_SECONDS
        for _ in range(3):
            assert seen(layouts, OLD) is None
        clock.now += CONFIRMED_SECONDS - 1
        assert seen(layouts, NEW) is None
        assert replicas.asked == 2

    def test_of_one_container_says_nothing_of_another(self, layouts, replicas):
        seen(layouts, OLD)
        other = PATH.of_container('d')
        with pytest.raises(AssertionError):
            layouts.of({}, other, info(OLD))


class TestPlainInfo:
    def test_is_confirmed_once_a_minute(self, layouts, replicas, clock):
        replicas.layout = None
        for _ in range(3):
            assert seen(layouts, None) is None
        assert replicas.asked == 1
        clock.now += CONFIRMED_SECONDS
        assert seen(layouts, None) is None
        assert replicas.asked == 2

    def test_of_a_stale_replica_does_not_count(self, layouts, replicas):
        assert seen(layouts, None) == OLD
        assert seen(layouts, OLD) == OLD
        assert replicas.asked == 1

    def test_counts_in_an_account_without_sharded_containers(
        self, layouts, replicas, accounts
    ):
        accounts.hidden.clear()
        for _ in range(3):
            assert seen(layouts, None) is None
        assert (replicas.asked, accounts.looked) == (0, 1)

    def test_of_a_container_that_is_being_asked_for_is_not_asked_twice(
        self, layouts, replicas, clock, monkeypatch
    ):
        replicas.layout = None
        seen(layouts, None)
        clock.now += CONFIRMED_SECONDS
        meanwhile = []

        def read_root(*args) -> RootState:
            meanwhile.append(seen(layouts, None))
            return replicas.read_root(*args)

        monkeypatch.setattr(lookup, 'read_root', read_root)
        seen(layouts, None)
        assert meanwhile == [None]

    def test_of_a_container_that_was_plain_long_ago_does_not_count_meanwhile(
        self, layouts, replicas, clock, monkeypatch
    ):
        replicas.layout = None
        seen(layouts, None)
        clock.now += 2 * CONFIRMED_SECONDS
        replicas.layout = NEW
        assert seen_meanwhile(layouts, replicas, monkeypatch, None) == NEW

    def test_of_the_only_replica_with_a_database_does_not_count(
        self, layouts, replicas
    ):
        replicas.layout, replicas.knowing = None, 1
        for _ in range(2):
            with pytest.raises(BackendError):
                seen(layouts, None)

    def test_of_the_only_replica_with_a_database_leaves_what_was_confirmed(
        self, layouts, replicas, clock
    ):
        seen(layouts, None)
        replicas.layout, replicas.knowing = None, 1
        clock.now += CONFIRMED_SECONDS
        assert seen(layouts, None) == OLD

    def test_is_not_known_at_first_if_too_few_replicas_answer(
        self, layouts, replicas
    ):
        replicas.are_away = True
        for _ in range(2):
            with pytest.raises(BackendError):
                seen(layouts, None)
        replicas.are_away = False
        assert seen(layouts, None) == OLD

    def test_counts_for_a_while_if_it_was_confirmed_before(
        self, layouts, replicas, accounts, clock
    ):
        accounts.info = info(None)
        replicas.layout = None
        seen(layouts, None)
        replicas.are_away = True
        clock.now += CONFIRMED_SECONDS
        assert seen(layouts, None) is None

    def test_counts_for_a_while_if_a_handoff_alone_has_a_database(
        self, layouts, replicas, clock
    ):
        replicas.are_missing = True
        assert seen(layouts, None) is None
        replicas.are_missing = False
        clock.now += UNCONFIRMED_SECONDS
        assert seen(layouts, None) == OLD

    def test_within_a_second_of_a_record_does_not_count(
        self, layouts, replicas, clock
    ):
        seen(layouts, OLD)
        clock.now += DOUBT_SECONDS / 2
        replicas.layout = None
        assert seen(layouts, None) == OLD
        assert replicas.asked == 1

    def test_after_a_record_is_confirmed(self, layouts, replicas, clock):
        seen(layouts, OLD)
        clock.now += DOUBT_SECONDS
        replicas.layout = None
        for _ in range(3):
            assert seen(layouts, None) is None
        assert replicas.asked == 2

    def test_of_a_replica_that_missed_the_creation_does_not_count(
        self, layouts, replicas, clock
    ):
        for _ in range(5):
            assert seen(layouts, OLD) == OLD
            clock.now += DOUBT_SECONDS
            assert seen(layouts, None) == OLD
        assert replicas.asked <= 6

    def test_is_confirmed_if_a_record_was_confirmed_long_ago(
        self, layouts, replicas, clock
    ):
        seen(layouts, OLD)
        clock.now += 2 * CONFIRMED_SECONDS
        assert seen(layouts, None) == OLD
        assert replicas.asked == 2


class TestDeleteOfAnObject:
    """The layout must have been confirmed within a second."""

    def test_confirms_a_record_once_a_second(self, layouts, replicas, clock):
        seen(layouts, OLD)
        replicas.layout = NEW
        assert seen(layouts, OLD, DOUBT_SECONDS) == OLD
        clock.now += DOUBT_SECONDS
        for _ in range(3):
            assert seen(layouts, OLD, DOUBT_SECONDS) == NEW
        assert replicas.asked == 2

    def test_does_not_rely_on_a_record_that_is_being_confirmed(
        self, layouts, replicas, clock, monkeypatch
    ):
        seen(layouts, OLD)
        clock.now += CONFIRMED_SECONDS
        replicas.layout = NEW
        found = seen_meanwhile(
            layouts, replicas, monkeypatch, OLD, DOUBT_SECONDS
        )
        assert found == NEW

    def test_does_not_rely_on_plain_info_that_is_being_confirmed(
        self, layouts, replicas, clock, monkeypatch
    ):
        replicas.layout = None
        seen(layouts, None)
        clock.now += CONFIRMED_SECONDS
        replicas.layout = NEW
        found = seen_meanwhile(
            layouts, replicas, monkeypatch, None, DOUBT_SECONDS
        )
        assert found == NEW

    def test_confirms_that_a_container_is_plain_once_a_second(
        self, layouts, replicas, clock
    ):
        replicas.layout = None
        for _ in range(3):
            assert seen(layouts, None, DOUBT_SECONDS) is None
        assert replicas.asked == 1
        clock.now += DOUBT_SECONDS
        replicas.layout = NEW
        assert seen(layouts, None, DOUBT_SECONDS) == NEW

    def test_asks_at_once_if_a_sharded_container_seems_to_be_plain_now(
        self, layouts, replicas
    ):
        seen(layouts, OLD)
        replicas.layout = None
        assert seen(layouts, None, DOUBT_SECONDS) is None
        assert replicas.asked == 2

    def test_counts_the_seconds_from_when_the_replicas_were_asked(
        self, layouts, replicas, clock, monkeypatch
    ):
        def slow(*args) -> RootState:
            state = replicas.read_root(*args)
            clock.now += DOUBT_SECONDS
            return state

        monkeypatch.setattr(lookup, 'read_root', slow)
        for _ in range(2):
            seen(layouts, OLD, DOUBT_SECONDS)
        assert replicas.asked == 2

    def test_goes_by_the_answer_to_the_later_question(
        self, layouts, replicas, clock, monkeypatch
    ):
        seen(layouts, OLD)
        clock.now += DOUBT_SECONDS
        others = [NEW]

        def overtaken(*args) -> RootState:
            state = replicas.read_root(*args)
            if others:
                replicas.layout = others.pop()
                clock.now += DOUBT_SECONDS / 2
                seen(layouts, OLD, DOUBT_SECONDS)
            return state

        monkeypatch.setattr(lookup, 'read_root', overtaken)
        seen(layouts, OLD, DOUBT_SECONDS)
        assert seen(layouts, OLD) == NEW

    def test_asks_no_replica_in_an_account_without_shards(
        self, layouts, replicas, accounts, clock
    ):
        accounts.hidden.clear()
        replicas.layout = NEW
        for _ in range(2):
            for _ in range(3):
                assert seen(layouts, None, DOUBT_SECONDS) is None
            clock.now += DOUBT_SECONDS
        assert replicas.asked == 0
        assert accounts.looked == 2

    @pytest.mark.parametrize('layout', [None, OLD])
    def test_waits_some_seconds_before_it_asks_replicas_that_are_away_again(
        self, layouts, replicas, accounts, clock, layout
    ):
        accounts.info = info(layout)
        replicas.layout = layout
        seen(layouts, layout)
        replicas.are_away = True
        for asked in (2, 3):
            clock.now += CONFIRMED_SECONDS
            assert seen(layouts, layout, DOUBT_SECONDS) == layout
            clock.now += DOUBT_SECONDS
            assert seen(layouts, layout, DOUBT_SECONDS) == layout
            assert replicas.asked == asked

    def test_is_refused_if_it_is_not_known_whether_a_container_is_plain(
        self, layouts, replicas
    ):
        replicas.are_away = True
        with pytest.raises(BackendError):
            seen(layouts, None, DOUBT_SECONDS)


class TestReplicasAway:
    @pytest.fixture(autouse=True)
    def away(self, replicas):
        replicas.are_away = True

    def test_leave_the_record_that_swift_has(self, layouts):
        assert seen(layouts, OLD) == OLD

    def test_are_asked_again_after_some_seconds(
        self, layouts, replicas, clock
    ):
        seen(layouts, OLD)
        seen(layouts, OLD)
        assert replicas.asked == 1
        clock.now += UNCONFIRMED_SECONDS
        replicas.are_away = False
        replicas.layout = NEW
        assert seen(layouts, OLD) == NEW

    def test_leave_the_layout_that_was_confirmed_before(
        self, layouts, replicas, clock
    ):
        replicas.are_away = False
        seen(layouts, OLD)
        replicas.are_away = True
        clock.now += DOUBT_SECONDS
        assert seen(layouts, None) == OLD

    def test_leave_the_layout_that_was_confirmed_before_stale_info(
        self, layouts, replicas, clock
    ):
        replicas.are_away = False
        replicas.layout, replicas.policy_index = NEW, 1
        seen(layouts, OLD)
        replicas.are_away = True
        for _ in range(2):
            clock.now += CONFIRMED_SECONDS
            target = layouts.of({}, PATH, info(OLD))
            assert (target.layout, target.policy_index) == (NEW, 1)

    @pytest.mark.parametrize('had', [OLD, None])
    def test_leave_the_later_record_of_info_that_is_newer_than_a_long_request(
        self, layouts, replicas, accounts, clock, had
    ):
        replicas.are_away = False
        replicas.layout = had
        seen(layouts, had)
        replicas.are_away = True
        clock.now += CONFIRMED_SECONDS
        accounts.info = info(NEW)
        assert seen(layouts, had, DOUBT_SECONDS) == NEW

    def test_leave_a_container_plain_if_newer_info_has_its_former_record(
        self, layouts, replicas, accounts, clock
    ):
        replicas.are_away, replicas.layout = False, None
        seen(layouts, OLD)
        replicas.are_away = True
        clock.now += CONFIRMED_SECONDS
        accounts.info = info(OLD)
        assert seen(layouts, None) is None

    @pytest.mark.parametrize('status', [404, 503])
    def test_leave_nothing_in_a_long_request_if_there_is_no_newer_info(
        self, layouts, replicas, accounts, clock, status
    ):
        replicas.are_away = False
        seen(layouts, OLD)
        replicas.are_away = True
        clock.now += CONFIRMED_SECONDS
        accounts.info = info(None, status)
        with pytest.raises(BackendError):
            seen(layouts, OLD)

    def test_leave_the_layout_that_was_confirmed_while_they_were_asked(
        self, layouts, replicas, clock, monkeypatch
    ):
        replicas.are_away = False
        seen(layouts, OLD)
        clock.now += CONFIRMED_SECONDS
        others = [NEW]

        def overtaken(*args) -> RootState:
            if not others:
                return replicas.read_root(*args)
            replicas.layout = others.pop()
            clock.now += DOUBT_SECONDS
            seen(layouts, OLD, DOUBT_SECONDS)
            raise BackendError(None, 503)

        monkeypatch.setattr(lookup, 'read_root', overtaken)
        assert seen(layouts, OLD) == NEW
        assert seen(layouts, OLD) == NEW


class TestReplicasWithoutDatabase:
    """No replica of the root has a database: the info is from a handoff."""

    @pytest.fixture(autouse=True)
    def missing(self, replicas):
        replicas.are_missing = True

    def test_leave_the_record_that_swift_has(self, layouts):
        assert seen(layouts, OLD) == OLD

    def test_are_asked_again_after_some_seconds(
        self, layouts, replicas, clock
    ):
        for _ in range(2):
            seen(layouts, OLD)
        assert replicas.asked == 1
        clock.now += UNCONFIRMED_SECONDS
        replicas.are_missing, replicas.layout = False, None
        assert seen(layouts, OLD) is None

    def test_leave_the_layout_that_was_confirmed_before(
        self, layouts, replicas, clock
    ):
        replicas.are_missing = False
        replicas.layout, replicas.policy_index = NEW, 1
        seen(layouts, OLD)
        replicas.are_missing = True
        clock.now += CONFIRMED_SECONDS
        target = layouts.of({}, PATH, info(OLD))
        assert (target.layout, target.policy_index) == (NEW, 1)


class TestUnreadableInfo:
    def test_of_a_root_that_does_not_answer_is_an_error(self, layouts):
        with pytest.raises(BackendError):
            layouts.of({}, PATH, info(None, 503))

    @pytest.mark.parametrize('status', [0, 404, 410, 403])
    def test_of_a_missing_container_has_no_layout(
        self, layouts, replicas, status
    ):
        assert layouts.of({}, PATH, info(OLD, status)) is None
        assert replicas.asked == 0

    def test_with_a_damaged_record_is_an_error(self, layouts):
        damaged = headers_to_container_info({RECORD_HEADER: '{'}, 204)
        with pytest.raises(LayoutError):
            layouts.of({}, PATH, damaged)


def test_a_forgotten_container_is_asked_for_again(layouts, replicas):
    seen(layouts, OLD)
    layouts.forget(PATH)
    replicas.layout = None
    assert seen(layouts, OLD) is None
    assert replicas.asked == 2
