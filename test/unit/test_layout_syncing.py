# SPDX-License-Identifier: Apache-2.0
"""Tests of where a sharded container keeps its settings of container sync."""

import time

import pytest
from swift.common.swob import Request

from shardmw.backend.containers import (
    STORED_SYNC_TO_HEADER,
    SYNC_KEY_HEADER,
    SYNC_TO_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.requests import Backend
from shardmw.backend.sync_settings import direct_sync, root_headers
from shardmw.core.layout import Layout, id_of_time
from shardmw.core.paths import Path
from shardmw.core.placement import backing_container
from shardmw.reshard import executor
from shardmw.reshard.executor import Executor
from shardmw.reshard.resharding import (
    WAITING_FOR_SYNC,
    MoveOptions,
    Resharding,
)
from shardmw.reshard.row_mover import RowMover
from test.unit.containers import CONTAINER, NEW_ID, backing, create, layout_of
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    filtered,
)

PATH = Path('v1', ACCOUNT, 'c')
OWNER = {'swift_owner': True}
TO = 'http://127.0.0.1/v1/a/c'
OTHER = 'http://127.0.0.1/v1/a/other'
KEY = 'key'
SETTINGS = {SYNC_TO_HEADER: TO, SYNC_KEY_HEADER: KEY}
SHARDS = 3
ONCE = MoveOptions(cache_seconds=0, settle_seconds=0, sync_seconds=0)

NAMES = (SYNC_TO_HEADER, SYNC_KEY_HEADER, STORED_SYNC_TO_HEADER.title())


@pytest.fixture
def app(swift):
    return filtered(swift)


@pytest.fixture
def sharded(swift, app) -> None:
    """Create a sharded container that does not sync."""
    create(swift, app, SHARDS)


def ask(swift, app, method='POST', status=204, env=OWNER, **headers):
    """Send a request for the container, and check the status."""
    headers = {name.replace('_', '-'): v for name, v in headers.items()}
    resp = swift.send(app, method, CONTAINER, headers, env)
    assert resp.status_int == status
    return resp


def set_settings(swift, app, to=TO, key=KEY):
    ask(swift, app, X_Container_Sync_To=to, X_Container_Sync_Key=key)


def stored(swift: FakeSwift, account: str, container: str, replica=0) -> tuple:
    """Return the settings in a database, and when they were stored."""
    metadata = swift.broker(account, container, replica).metadata
    return tuple(metadata.get(name, ('', None)) for name in NAMES)


def values(swift: FakeSwift, account: str, container: str, replica=0) -> list:
    return [value for value, _ in stored(swift, account, container, replica)]


def in_shards(swift: FakeSwift) -> list[list[str]]:
    """Return the settings in each shard."""
    shards = range(layout_of(swift).backing_count)
    return [values(swift, HIDDEN, backing(swift, i)) for i in shards]


def environ() -> dict:
    return Request.blank('/').environ


def backend(swift: FakeSwift) -> Backend:
    return Backend(swift, Logger(), 4)


class TestRootHeaders:
    @pytest.mark.parametrize('synced', [None, 4])
    def test_store_the_target_under_another_name(self, synced):
        assert root_headers(SETTINGS, synced) == {
            SYNC_TO_HEADER: '',
            SYNC_KEY_HEADER: KEY,
            STORED_SYNC_TO_HEADER: TO,
        }

    def test_of_a_root_that_syncs_are_swifts(self):
        assert root_headers(SETTINGS, 0) == SETTINGS

    def test_without_a_target_are_unchanged(self):
        assert root_headers({SYNC_KEY_HEADER: ''}, 4) == {SYNC_KEY_HEADER: ''}


@pytest.mark.usefixtures('sharded')
class TestChange:
    def test_is_stored_everywhere_with_one_time(self, swift, app):
        set_settings(swift, app)
        assert values(swift, ACCOUNT, 'c') == ['', KEY, TO]
        assert in_shards(swift) == [[TO, KEY, '']] * SHARDS
        times = {stored(swift, ACCOUNT, 'c')[1][1]}
        for shard in range(SHARDS):
            to, key, _ = stored(swift, HIDDEN, backing(swift, shard))
            times |= {to[1], key[1]}
        assert len(times) == 1

    def test_that_comes_later_counts_whatever_is_written_last(
        self, swift, app
    ):
        first_shard = f'/v1/{HIDDEN}/{backing(swift, 0)}'
        swift.before(
            'POST', first_shard, lambda: set_settings(swift, app, OTHER)
        )
        ask(swift, app, X_Container_Sync_Key='earlier')
        assert values(swift, ACCOUNT, 'c') == ['', KEY, OTHER]
        assert in_shards(swift) == [[OTHER, KEY, '']] * SHARDS

    def test_that_fails_at_a_shard_is_completed_by_repeating_it(
        self, swift, app
    ):
        shard = f'/v1/{HIDDEN}/{backing(swift, 1)}'
        swift.register('POST', shard, 503)
        ask(swift, app, status=503, X_Container_Sync_To=TO)
        swift.unregister('POST', shard)
        ask(swift, app, X_Container_Sync_To=TO)
        assert in_shards(swift) == [[TO, '', '']] * SHARDS

    def test_that_the_root_refuses_changes_no_shard(self, swift, app):
        headers = {**SETTINGS, 'X-Container-Meta-' + 'x' * 200: 'v'}
        resp = swift.send(app, 'POST', CONTAINER, headers, OWNER)
        assert resp.status_int == 400
        assert in_shards(swift) == [['', '', '']] * SHARDS

    def test_to_a_host_that_is_not_allowed_changes_nothing(self, swift, app):
        to = 'http://elsewhere/v1/a/c'
        resp = ask(swift, app, status=400, X_Container_Sync_To=to)
        assert b"Invalid host 'elsewhere'" in resp.body
        assert values(swift, ACCOUNT, 'c') == ['', '', '']

    def test_of_another_than_the_owner_is_ignored(self, swift, app):
        ask(swift, app, env={}, X_Container_Sync_To=TO)
        assert values(swift, ACCOUNT, 'c') == ['', '', '']
        assert in_shards(swift) == [['', '', '']] * SHARDS

    def test_is_shown_to_the_owner_alone(self, swift, app):
        set_settings(swift, app)
        for method in ('GET', 'HEAD'):
            for env, shown in ((OWNER, TO), ({}, None)):
                resp = swift.send(app, method, CONTAINER, env=env)
                assert resp.headers.get(SYNC_TO_HEADER) == shown


class TestCreation:
    def test_stores_the_settings_everywhere(self, swift, app):
        headers = {**SETTINGS, 'X-Container-Shard-Count': str(SHARDS)}
        resp = swift.send(app, 'PUT', CONTAINER, headers, OWNER)
        assert resp.status_int == 201
        assert values(swift, ACCOUNT, 'c') == ['', KEY, TO]
        assert in_shards(swift) == [[TO, KEY, '']] * SHARDS

    def test_with_an_invalid_setting_creates_nothing(self, swift, app):
        headers = {SYNC_TO_HEADER: 'x', 'X-Container-Shard-Count': '2'}
        resp = swift.send(app, 'PUT', CONTAINER, headers, OWNER)
        assert resp.status_int == 400
        assert b"Invalid scheme ''" in resp.body
        assert swift.containers(HIDDEN) == []
        assert swift.containers(ACCOUNT) == []


def place_of(swift: FakeSwift, layout: Layout) -> list[str]:
    """Direct the sync of a container; return the places that sync."""
    env = environ()
    target = LogicalContainer(PATH, {}, layout)
    assert direct_sync(backend(swift), env, target, time.time())
    places = {'root': (ACCOUNT, 'c')}
    for shard in target.shards():
        age = 'new' if shard < layout.shards else 'old'
        number = layout.backing(shard)[1]
        places[f'{age} {number}'] = (HIDDEN, target.backing(shard))
    return [name for name, place in places.items() if values(swift, *place)[0]]


class TestDirectSync:
    """A container that has four backing containers before and after."""

    @pytest.fixture
    def ids(self, swift, app) -> dict[str, str]:
        """Return the ids of the layouts."""
        create(swift, app, 4)
        layout = layout_of(swift)
        assert layout.synced == 4
        set_settings(swift, app)
        time.sleep(0.001)
        new = id_of_time(time.time())
        for number in range(4):
            name = backing_container('c', new, number)
            swift.put_container(f'/{HIDDEN}/{name}')
        return {'old': layout.id, 'new': new}

    @pytest.mark.parametrize(
        ('shards', 'former', 'phase', 'places'),
        [
            (2, 4, 'announced', ['old 0', 'old 1', 'old 2', 'old 3']),
            (2, 4, 'moving', ['new 0', 'new 1']),
            (2, 4, 'returning', []),
            (0, 2, 'announced', ['old 0', 'old 1']),
            (0, 2, 'moving', []),
            (0, 2, 'returning', []),
            (2, 0, 'announced', ['root']),
            (2, 0, 'moving', ['new 0', 'new 1']),
            (2, None, None, ['new 0', 'new 1']),
        ],
    )
    def test_lets_the_places_of_a_layout_sync(
        self, swift, ids, shards, former, phase, places
    ):
        former_id = None if former is None else ids['old']
        layout = Layout(
            ids['new'], shards, former, former_id, phase, ids['new']
        )
        assert place_of(swift, layout) == places
        assert place_of(swift, layout) == places

    def test_keeps_a_later_change_even_if_its_clock_is_ahead(self, swift, app):
        create(swift, app, 2)
        set_settings(swift, app)
        layout = layout_of(swift)
        target = LogicalContainer(PATH, {}, layout)
        ahead = time.time() + 100
        direct_sync(backend(swift), environ(), target, ahead)
        set_settings(swift, app, OTHER)
        assert values(swift, ACCOUNT, 'c') == ['', KEY, OTHER]
        assert in_shards(swift) == [[OTHER, KEY, '']] * 2

    def test_of_a_container_without_settings_switches_the_root_off(
        self, swift, app, sharded
    ):
        target = LogicalContainer(
            Path('v1', ACCOUNT, 'c'), {}, layout_of(swift)
        )
        assert not direct_sync(backend(swift), environ(), target, time.time())
        assert values(swift, ACCOUNT, 'c') == ['', '', '']


class TestDirectSyncOfReplicas:
    @pytest.fixture
    def target(self, replicated) -> LogicalContainer:
        create(replicated, filtered(replicated), 2)
        layout = layout_of(replicated)
        return LogicalContainer(PATH, {}, layout)

    def test_needs_every_replica_of_the_root(self, replicated, target):
        replicated.servers.away.add('d2')
        with pytest.raises(BackendError):
            direct_sync(backend(replicated), environ(), target, time.time())

    def test_needs_every_replica_of_a_shard(self, replicated, target):
        set_settings(replicated, filtered(replicated))
        replicated.servers.before(
            f'/{HIDDEN}/{target.backing(1)}',
            lambda: replicated.servers.away.add('d2'),
        )
        with pytest.raises(BackendError):
            direct_sync(backend(replicated), environ(), target, time.time())

    def test_waits_for_a_replica_that_has_missed_a_change(
        self, replicated, target
    ):
        replicated.servers.away.add('d2')
        set_settings(replicated, filtered(replicated))
        replicated.servers.away.clear()
        with pytest.raises(BackendError, match='replicas of the root differ'):
            direct_sync(backend(replicated), environ(), target, time.time())
        replicated.replicate(ACCOUNT, 'c')
        assert direct_sync(backend(replicated), environ(), target, time.time())


def resharding_of(swift: FakeSwift, *report) -> Resharding:
    executor = Executor(backend(swift), environ(), PATH)
    return Resharding(executor, ONCE, *report)


class TestResharding:
    @pytest.fixture(autouse=True)
    def no_waits(self, monkeypatch) -> list[float]:
        waits = []
        monkeypatch.setattr(executor, 'sleep', waits.append)
        return waits

    def reshard(self, swift: FakeSwift, shards: int) -> list[str]:
        """Change the number of shards; return the phases."""
        phases = []
        change = resharding_of(
            swift, lambda progress: phases.append(progress.phase)
        )
        change.begin(shards)
        change.run()
        return phases

    def test_takes_the_settings_along(self, swift, app):
        ask(swift, app, 'PUT', 201, **SETTINGS_OF_A_PUT)
        self.reshard(swift, 2)
        assert values(swift, ACCOUNT, 'c') == ['', KEY, TO]
        assert in_shards(swift) == [[TO, KEY, '']] * 2
        self.reshard(swift, 0)
        assert values(swift, ACCOUNT, 'c') == [TO, KEY, '']

    def test_switches_over_and_waits_before_a_row_moves(
        self, swift, app, monkeypatch
    ):
        ask(swift, app, 'PUT', 201, **SETTINGS_OF_A_PUT)
        swift.put_row(f'/{ACCOUNT}/c/o')
        states = []
        copy = RowMover.copy

        def noted(mover: RowMover, *args):
            states.append(values(swift, ACCOUNT, 'c'))
            return copy(mover, *args)

        monkeypatch.setattr(RowMover, 'copy', noted)
        phases = self.reshard(swift, 2)
        assert states == [['', KEY, TO]]
        assert phases.index(WAITING_FOR_SYNC) < phases.index('moving')

    @pytest.fixture
    def waits(self, monkeypatch) -> list[str]:
        """Return a list of the phases in which changes wait for the sync."""
        phases = []
        monkeypatch.setattr(
            Resharding,
            '_sleep',
            lambda _change, _seconds, layout: phases.append(layout.phase),
        )
        return phases

    def test_waits_for_old_deletions_and_for_the_end_of_a_pass(
        self, swift, app, waits
    ):
        ask(swift, app, 'PUT', 201, **SETTINGS_OF_A_PUT)
        self.reshard(swift, 2)
        assert waits == ['announced', 'moving']

    def test_waits_also_if_the_settings_are_removed_meanwhile(
        self, swift, app, waits, monkeypatch
    ):
        def remove_settings(_change, _seconds, layout):
            if not waits:
                set_settings(swift, app, '', '')
            waits.append(layout.phase)

        ask(swift, app, 'PUT', 201, **SETTINGS_OF_A_PUT)
        monkeypatch.setattr(Resharding, '_sleep', remove_settings)
        self.reshard(swift, 2)
        assert waits == ['announced', 'moving']

    def test_that_was_killed_at_its_end_is_completed_by_another_process(
        self, swift, app, monkeypatch
    ):
        create(swift, app, 2)
        set_settings(swift, app)

        def killed(*args):
            if not args[2].layout.is_changing:
                raise KeyboardInterrupt
            return direct_sync(*args)

        with monkeypatch.context() as patched:
            patched.setattr(executor, 'direct_sync', killed)
            with pytest.raises(KeyboardInterrupt):
                self.reshard(swift, 0)
        assert values(swift, ACCOUNT, 'c') == ['', KEY, TO]
        resharding_of(swift).complete()
        assert values(swift, ACCOUNT, 'c') == [TO, KEY, '']

    def test_keeps_the_settings_if_a_second_mover_is_late(self, swift, app):
        create(swift, app, 2)
        set_settings(swift, app)
        change = resharding_of(swift)
        change.begin(0)
        change._step()
        moving = LogicalContainer(
            Path('v1', ACCOUNT, 'c'), {}, layout_of(swift)
        )
        began = time.time()
        change.run()
        direct_sync(backend(swift), environ(), moving, began)
        assert values(swift, ACCOUNT, 'c') == [TO, KEY, '']

    def test_needs_each_shard_to_take_the_settings_or_to_be_deleted(
        self, swift, app
    ):
        create(swift, app, 2)
        set_settings(swift, app)
        target = LogicalContainer(
            Path('v1', ACCOUNT, 'c'), {}, layout_of(swift)
        )
        swift.lose(HIDDEN, backing(swift, 1), 0)
        with pytest.raises(BackendError, match='shard 1 answered 503'):
            direct_sync(backend(swift), environ(), target, time.time())

    def test_that_ends_during_a_change_of_settings_refuses_it(
        self, swift, app
    ):
        create(swift, app, 2)
        set_settings(swift, app)
        change = resharding_of(swift)
        change.begin(0)
        change._step()
        swift.before('POST', CONTAINER, change.run)
        ask(swift, app, status=503, X_Container_Sync_To=OTHER)
        ask(swift, app, X_Container_Sync_To=OTHER)
        assert values(swift, ACCOUNT, 'c')[0] == OTHER

    def test_takes_a_key_along_for_a_later_change(self, swift, app):
        ask(swift, app, 'PUT', 201, X_Container_Sync_Key=KEY)
        self.reshard(swift, 2)
        # A change waits until earlier cached info has expired.
        swift.memcached.values.clear()
        ask(swift, app, X_Container_Sync_To=TO)
        assert in_shards(swift) == [[TO, KEY, '']] * 2

    def test_of_a_container_without_settings_does_not_wait(self, swift, app):
        ask(swift, app, 'PUT', 201)
        assert WAITING_FOR_SYNC not in self.reshard(swift, 2)

    def test_of_a_container_without_settings_sets_none(self, swift, app):
        ask(swift, app, 'PUT', 201)
        self.reshard(swift, 2)
        assert in_shards(swift) == [['', '', '']] * 2
        self.reshard(swift, 0)
        assert values(swift, ACCOUNT, 'c') == ['', '', '']


SETTINGS_OF_A_PUT = {
    'X_Container_Sync_To': TO,
    'X_Container_Sync_Key': KEY,
}


class TestObjectOfARow:
    """A request for an object at the path of its backing container."""

    @pytest.fixture
    def daemon(self, swift, app):
        """Return the app through which an internal client sends requests."""
        app._pipeline = [app, swift]
        app._pipeline_request_logging_app = swift
        app._pipeline_final_app = swift
        return app

    def asked(self, swift, app, method, name, container='c', **headers):
        """Return the path of the object that a request has asked for."""
        create(swift, app, 2, container)
        row = f'/v1/{HIDDEN}/{backing(swift, 1, container)}/{name}'
        headers = {key.replace('_', '-'): v for key, v in headers.items()}
        swift.send(app, method, row, headers)
        paths = [path for each, path in swift.sent(method)]
        return paths[-1].replace(row, 'the row')

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize('name', ['o', 'a/b', ' \u2603%20?'])
    def test_is_that_of_the_container(self, swift, daemon, method, name):
        asked = self.asked(swift, daemon, method, name)
        assert asked == f'{CONTAINER}/{name}'

    @pytest.mark.parametrize(
        'container', ['x' * 250, '\u2603 %', 'a\u2603' * 80]
    )
    def test_is_that_of_a_container_of_any_name(
        self, swift, daemon, container
    ):
        asked = self.asked(swift, daemon, 'GET', 'o', container)
        assert asked == f'/v1/{ACCOUNT}/{container}/o'

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_cannot_be_written(self, swift, daemon, method):
        assert self.asked(swift, daemon, method, 'o') == 'the row'

    def test_of_another_policy_is_left_to_the_reconciler(self, swift, daemon):
        headers = {'X_Backend_Storage_Policy_Index': '1'}
        asked = self.asked(swift, daemon, 'GET', 'o', **headers)
        assert asked == 'the row'

    def test_of_its_policy_is_read(self, swift, daemon):
        headers = {'X_Backend_Storage_Policy_Index': '0'}
        asked = self.asked(swift, daemon, 'GET', 'o', **headers)
        assert asked == f'{CONTAINER}/o'

    def test_of_a_missing_backing_container_is_missing(self, swift, daemon):
        create(swift, daemon, 1)
        name = backing_container('c', NEW_ID, 0)
        swift.send(daemon, 'GET', f'/v1/{HIDDEN}/{name}/o')
        assert swift.sent('GET') == [('GET', f'/v1/{HIDDEN}/{name}/o')]


@pytest.mark.usefixtures('sharded')
def test_sweep_leaves_rows_in_wrong_shards_while_the_container_syncs(
    swift, app
):
    names = [f'n{number}' for number in range(9)]
    for name in names:
        swift.put_row(f'/{HIDDEN}/{backing(swift, 0)}/{name}')
    set_settings(swift, app)
    sweep = resharding_of(swift).sweep
    assert sweep() == 0
    set_settings(swift, app, '', '')
    assert sweep() > 0
    assert sweep() == 0
