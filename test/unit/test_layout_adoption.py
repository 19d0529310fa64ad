# SPDX-License-Identifier: Apache-2.0
"""Rows that lie elsewhere than the layout says, and where they get.

The rows are in databases of Swift's own container servers.
"""

import time
from collections.abc import Callable
from itertools import count
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift.common.swob import Request
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.concurrency import sleep, spawn
from shardmw.backend.containers import (
    RECORD_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.requests import Backend
from shardmw.backend.write_marks import WriteMarks
from shardmw.layout import adoption as adoption_module
from shardmw.layout import moving
from shardmw.layout.adoption import (
    ASKED_ROW_COST,
    CREATION_SECONDS,
    FAILURES,
    PAUSE_SECONDS,
    Adoption,
)
from shardmw.layout.lookup import Layouts
from shardmw.layout.moving import RowMover
from shardmw.layout.row_targets import RowTargets
from shardmw.paths import Path
from shardmw.placement import (
    backing_container,
    shard_of,
    versions_container,
)
from shardmw.record import PLAIN, Layout, id_of_time
from test.unit.clocks import Clock
from test.unit.containers import NEW_ID, OLD_ID, forget_requests
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    fake_swift,
)

LAYOUT = Layout(NEW_ID, 2)
EARLIER = Layout(OLD_ID, 2)
DUE_SECONDS = 60
UPLOADED = 1_700_000_000
NAMES = ['a', 'b', 'obj/1', '☃', 'x y%41']


class Proxy:
    """An adoption of its own, as a worker has it.

    :ivar logger: what it logs to
    """

    def __init__(self, swift: FakeSwift, app=None) -> None:
        self.swift = swift
        self.logger = Logger()
        self.backend = Backend(
            app or swift, self.logger, 4, metrics=self.logger.metrics
        )
        self.adoption = Adoption(
            self.backend,
            Layouts(self.backend),
            RowTargets(self.backend),
            WriteMarks(5),
            DUE_SECONDS,
            self.logger,
        )

    def env(self) -> dict:
        """Return the environment of a client's request."""
        env = Request.blank(f'/v1/{ACCOUNT}/c').environ
        return {
            **env,
            'swift.cache': self.swift.memcached,
            'swift.infocache': {},
        }

    def look(self, container: str = 'c') -> bool:
        return self.adoption.look(self.env(), path(container))

    def run(self, container: str = 'c') -> bool:
        """Look for rows of a container whose root has some."""
        return self.adoption.look(self.env(), path(container), has_strays=True)


def path(container: str) -> Path:
    return Path('v1', ACCOUNT, container)


def put_root(
    swift: FakeSwift, container: str = 'c', layout: Layout | None = LAYOUT
) -> None:
    """Create a root; with a layout, its shards too."""
    headers = {RECORD_HEADER: layout.to_record()} if layout else {}
    swift.put_container(f'/{ACCOUNT}/{container}', headers)
    if layout:
        put_backing(swift, container, layout)


def put_backing(
    swift: FakeSwift,
    container: str = 'c',
    layout: Layout = EARLIER,
    policy_index: int = 0,
) -> None:
    """Create the backing containers of a layout."""
    for shard in range(layout.shards):
        name = backing_container(container, layout.id, shard)
        headers = {'X-Backend-Storage-Policy-Index': str(policy_index)}
        swift.put_container(f'/{HIDDEN}/{name}', headers)


def upload(
    swift: FakeSwift,
    name: str,
    layout: Layout | None = EARLIER,
    container: str = 'c',
    **row,
) -> None:
    """Write a row to a shard of a layout; to the root without a layout."""
    row = {'at': UPLOADED, **row}
    place = f'{ACCOUNT}/{container}'
    if layout:
        shard = shard_of(name, layout.shards)
        place = f'{HIDDEN}/{backing_container(container, layout.id, shard)}'
    swift.put_row(f'/{place}/{name}', **row)


def listed(
    swift: FakeSwift, container: str = 'c', layout: Layout = LAYOUT
) -> dict[str, int]:
    """Return the sizes of the objects in the right shards of a layout."""
    rows = {}
    for shard in range(layout.shards):
        name = backing_container(container, layout.id, shard)
        for obj, size in swift.rows(HIDDEN, name).items():
            assert shard_of(obj, layout.shards) == shard
            rows[obj] = size
    return rows


def backing_containers(swift: FakeSwift, layout: Layout) -> list[str]:
    """Return the backing containers of a layout that exist."""
    names = [
        backing_container('c', layout.id, shard)
        for shard in range(layout.shards)
    ]
    return [name for name in names if swift.exists(HIDDEN, name)]


def remove_fails(_mover: RowMover, rows: list, *_args) -> bool:
    """Take the place of RowMover.remove, as if most replicas were away."""
    if rows:
        raise BackendError(None, 503)
    return True


@pytest.fixture
def proxy(swift) -> Proxy:
    return Proxy(swift)


class TestLateRows:
    """Rows in backing containers of an earlier layout."""

    @pytest.fixture
    def late(self, swift) -> dict[str, int]:
        put_backing(swift)
        for size, name in enumerate(NAMES, start=1):
            upload(swift, name, size=size)
        swift.update_accounts()
        return {name: size for size, name in enumerate(NAMES, start=1)}

    def test_move_to_the_shards_of_the_layout(self, swift, proxy, late):
        put_root(swift)
        assert proxy.look() is True
        assert listed(swift) == late
        assert proxy.logger.counts == {'adopted.late': len(late)}

    def test_leave_no_backing_container_behind(self, swift, proxy, late):
        put_root(swift)
        proxy.look()
        assert backing_containers(swift, EARLIER) == []
        assert len(backing_containers(swift, LAYOUT)) == 2

    def test_move_to_a_plain_container(self, swift, proxy, late):
        put_root(swift, layout=None)
        assert proxy.look() is True
        assert swift.rows(ACCOUNT, 'c') == late
        assert backing_containers(swift, EARLIER) == []

    def test_bring_a_deleted_container_back(self, swift, proxy, late):
        put_root(swift, layout=None)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        assert proxy.look() is True
        assert swift.rows(ACCOUNT, 'c') == late

    def test_come_back_before_the_next_layout_whatever_the_clock_says(
        self, swift, proxy, late, monkeypatch
    ):
        put_root(swift, layout=None)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        ahead = mock.Mock(wraps=time, time=lambda: time.time() + 3600)
        with monkeypatch.context() as patched:
            patched.setattr(adoption_module, 'time', ahead)
            assert proxy.look() is True
        following = PLAIN.announced(4, time.time())
        rows = swift.broker(ACCOUNT, 'c').get_objects()
        offsets = [Timestamp(row['created_at']).offset for row in rows]
        assert len(offsets) == len(late)
        assert 0 < min(offsets) <= max(offsets) < following.offset

    def test_bring_a_container_back_that_has_no_database(
        self, swift, proxy, late
    ):
        assert proxy.look() is True
        assert swift.rows(ACCOUNT, 'c') == late

    def test_move_from_a_layout_with_a_later_id(self, swift, proxy, late):
        before = Layout(id_of_time(1_600_000_000), 2)
        put_root(swift, layout=before)
        proxy.look()
        assert listed(swift, layout=before) == late

    def test_do_not_replace_later_uploads(self, swift, proxy, late):
        put_root(swift)
        upload(swift, 'a', LAYOUT, at=UPLOADED + 1, size=99)
        proxy.look()
        assert listed(swift) == {**late, 'a': 99}

    def test_replace_earlier_uploads(self, swift, proxy, late):
        put_root(swift)
        upload(swift, 'a', LAYOUT, at=UPLOADED - 1, size=99)
        proxy.look()
        assert listed(swift) == late

    def test_of_objects_that_were_deleted_since_do_not_return(
        self, swift, proxy, late
    ):
        put_root(swift)
        backing = backing_container('c', NEW_ID, shard_of('a', 2))
        headers = {'X-Timestamp': f'{UPLOADED + 1}.00000'}
        swift.direct('DELETE', f'/{HIDDEN}/{backing}/a', headers)
        proxy.look()
        del late['a']
        assert listed(swift) == late

    def test_of_other_containers_stay(self, swift, proxy, late):
        put_backing(swift, 'c.d')
        upload(swift, 'a', container='c.d')
        swift.update_accounts()
        put_root(swift)
        proxy.look()
        assert listed(swift, 'c.d', EARLIER) == {'a': 1}

    def test_that_another_proxy_has_taken_are_no_error(
        self, swift, proxy, late
    ):
        put_root(swift)
        for name in late:
            backing = backing_container('c', OLD_ID, shard_of(name, 2))
            swift.direct('DELETE', f'/{HIDDEN}/{backing}/{name}')
        for shard in range(2):
            backing = backing_container('c', OLD_ID, shard)
            swift.direct('DELETE', f'/{HIDDEN}/{backing}')
        assert proxy.look() is False
        assert proxy.logger.lines == []

    def test_that_cannot_be_listed_are_put_off(self, swift, proxy, late):
        put_root(swift)
        backing = backing_container('c', OLD_ID, 0)
        swift.register('GET', f'/v1/{HIDDEN}/{backing}', 503)
        assert proxy.look() is False
        assert 'could not be moved yet' in proxy.logger.lines[0]

    def test_are_removed_from_where_swifts_own_sharder_has_them(
        self, swift, proxy
    ):
        put_root(swift)
        split = backing_container('c', OLD_ID, shard_of('a', 2))
        swift.put_container(f'/{HIDDEN}/{split}')
        upload(swift, 'a')
        swift.update_accounts()
        proxy.backend.is_split = lambda _env, _account, name: name == split
        swift.memcached.set(
            get_cache_key(HIDDEN, split, shard='updating'),
            [['', '.shards_x/first']],
        )
        swift.put_container('/.shards_x/first')
        swift.put_row('/.shards_x/first/a', at=UPLOADED)
        proxy.look()
        assert listed(swift) == {'a': 1}
        assert swift.rows('.shards_x', 'first') == {}

    def test_are_found_before_the_account_lists_them(self, swift, proxy):
        put_backing(swift)
        swift.update_accounts()
        upload(swift, 'a')
        put_root(swift)
        proxy.look()
        assert listed(swift) == {'a': 1}

    @pytest.mark.parametrize(
        'container', ['x' * 256, '☃', versions_container('c')]
    )
    def test_of_containers_with_other_names_move(
        self, swift, proxy, container
    ):
        put_backing(swift, container)
        upload(swift, 'a', container=container)
        swift.update_accounts()
        put_root(swift, container)
        proxy.look(container)
        assert listed(swift, container) == {'a': 1}


class TestEmptyBackingContainers:
    def test_are_deleted_some_at_a_time(self, swift, proxy, monkeypatch):
        monkeypatch.setattr(adoption_module, 'LEFTOVERS_AT_A_TIME', 3)
        put_root(swift)
        leftover = Layout(OLD_ID, 5)
        put_backing(swift, layout=leftover)
        swift.update_accounts()
        proxy.look()
        assert len(backing_containers(swift, leftover)) == 2
        proxy.look()
        assert backing_containers(swift, leftover) == []

    def test_of_an_earlier_layout_are_deleted(self, swift, proxy):
        put_backing(swift)
        swift.update_accounts()
        assert proxy.look() is False
        assert backing_containers(swift, EARLIER) == []

    @pytest.mark.parametrize('age, left', [(0, 2), (3000, 2), (3700, 0)])
    def test_stay_while_a_client_may_be_creating_the_container(
        self, swift, proxy, age, left
    ):
        assert 3000 < CREATION_SECONDS < 3700
        created = Layout(id_of_time(time.time() - age), 2)
        put_backing(swift, layout=created)
        swift.update_accounts()
        proxy.look()
        assert len(backing_containers(swift, created)) == left

    def test_of_the_layout_stay(self, swift, proxy):
        put_root(swift)
        swift.update_accounts()
        proxy.look()
        assert len(backing_containers(swift, LAYOUT)) == 2

    def test_that_are_young_and_have_rows_are_taken_over(self, swift, proxy):
        created = Layout(id_of_time(time.time()), 2)
        put_backing(swift, layout=created)
        upload(swift, 'a', created)
        swift.update_accounts()
        put_root(swift)
        proxy.look()
        assert listed(swift) == {'a': 1}


class TestStrays:
    """Rows in the root of a sharded container."""

    @pytest.fixture
    def strays(self, swift) -> dict[str, int]:
        put_root(swift)
        for size, name in enumerate(NAMES, start=1):
            upload(swift, name, None, size=size)
        swift.update_accounts()
        return {name: size for size, name in enumerate(NAMES, start=1)}

    def test_move_to_the_shards(self, swift, proxy, strays):
        assert proxy.look() is True
        assert listed(swift) == strays
        assert swift.rows(ACCOUNT, 'c') == {}

    def test_stay_in_the_root_while_listings_may_be_under_way(
        self, swift, proxy, strays, monkeypatch
    ):
        waits = []

        def wait(seconds: float) -> None:
            waits.append((seconds, listed(swift), swift.rows(ACCOUNT, 'c')))

        monkeypatch.setattr(adoption_module, 'sleep', wait)
        monkeypatch.setattr(adoption_module, 'STAY_SECONDS', 3)
        proxy.look()
        assert waits == [(3, strays, strays)]

    def test_stay_if_the_container_becomes_plain_meanwhile(
        self, swift, proxy, strays, monkeypatch
    ):
        now = time.time()
        returning = LAYOUT.announced(0, now).moving(now)

        def change(_seconds: float) -> None:
            headers = {RECORD_HEADER: returning.to_record()}
            swift.direct('POST', f'/{ACCOUNT}/c', headers)

        monkeypatch.setattr(adoption_module, 'sleep', change)
        assert proxy.look() is False
        assert swift.rows(ACCOUNT, 'c') == strays

    def test_that_could_not_be_removed_are_looked_at_again(
        self, swift, proxy, strays, monkeypatch
    ):
        monkeypatch.setattr(adoption_module, 'PAUSE_SECONDS', 0)
        with monkeypatch.context() as patched:
            patched.setattr(RowMover, 'remove', remove_fails)
            assert proxy.run() is False
        assert swift.rows(ACCOUNT, 'c') == strays
        assert proxy.run() is True
        assert swift.rows(ACCOUNT, 'c') == {}

    def test_that_are_not_there_cost_no_listing_of_the_root(
        self, swift, proxy
    ):
        put_root(swift)
        swift.update_accounts()
        assert proxy.look() is False
        assert ('GET', f'/v1/{ACCOUNT}/c') not in swift.sent()

    def test_of_a_plain_container_stay(self, swift, proxy):
        put_root(swift, layout=None)
        upload(swift, 'a', None)
        put_backing(swift)
        swift.update_accounts()
        assert proxy.look() is False
        assert swift.rows(ACCOUNT, 'c') == {'a': 1}

    def test_go_where_swifts_own_sharder_has_split_a_shard(
        self, swift, proxy, strays
    ):
        backing = backing_container('c', NEW_ID, shard_of('a', 2))
        headers = {'X-Backend-Sharding-State': 'sharded'}
        swift.register('HEAD', f'/v1/{HIDDEN}/{backing}', 204, headers)
        swift.memcached.set(
            get_cache_key(HIDDEN, backing, shard='updating'),
            [['', '.shards_x/first'], ['m', '.shards_x/second']],
        )
        proxy.look()
        assert 'a' in swift.rows('.shards_x', 'first')
        assert 'a' not in swift.rows(HIDDEN, backing)


class TestManifest:
    """Of a large object, the database has the size of the manifest."""

    ETAG = 'd41d8; slo_etag=ab12'

    @pytest.fixture(autouse=True)
    def late(self, swift):
        put_backing(swift)
        upload(
            swift,
            'a',
            size=300,
            etag=self.ETAG,
            content_type='text/plain;swift_bytes=5000',
        )
        swift.update_accounts()
        put_root(swift)

    def listing(self, swift, layout: Layout) -> bytes:
        backing = backing_container('c', layout.id, shard_of('a', 2))
        path = f'/v1/{HIDDEN}/{backing}'
        resp = swift.send(swift, 'GET', path, query='format=json')
        return resp.body

    def test_keeps_both_sizes(self, swift, proxy):
        before = self.listing(swift, EARLIER)
        headers = {'Content-Length': '300'}
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 200, headers)
        proxy.look()
        assert self.listing(swift, LAYOUT) == before
        assert listed(swift) == {'a': 300}

    @pytest.mark.parametrize(
        'etag, may_be',
        [
            ('d41d8', False),
            ('d41d8; slo_etag=ab12', True),
            ('d41d8; s3_etag=ab12-2; slo_etag=ab12', True),
            (f'{"A" * 44}; swift_meta=%7B%7D', False),
            (f'{"A" * 88}; swift_meta=%7B%7D', True),
        ],
    )
    def test_is_known_by_its_etag(self, etag, may_be):
        assert moving._may_be_manifest(etag) is may_be

    def test_that_is_gone_counts_as_empty(self, swift, proxy):
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 404)
        proxy.look()
        assert listed(swift) == {'a': 0}


class TestPolicy:
    """Swift's reconciler looks for rows of other policies in the root."""

    @pytest.fixture(autouse=True)
    def late(self, swift):
        put_backing(swift, policy_index=1)
        upload(swift, 'a', policy_index=1)
        swift.update_accounts()

    def test_of_another_layout_is_left_to_the_reconciler(self, swift, proxy):
        put_root(swift)
        proxy.look()
        assert listed(swift) == {}
        broker = swift.broker(ACCOUNT, 'c')
        (row,) = broker.get_misplaced_since(-1, 10)
        assert (row['name'], row['storage_policy_index']) == ('a', 1)

    def test_of_a_missing_container_is_that_of_its_rows(self, swift, proxy):
        proxy.look()
        assert swift.broker(ACCOUNT, 'c').storage_policy_index == 1
        assert swift.rows(ACCOUNT, 'c') == {'a': 1}


class TestReplicaAway:
    @pytest.fixture
    def proxy(self, replicated) -> Proxy:
        put_root(replicated)
        put_backing(replicated)
        upload(replicated, 'a')
        replicated.update_accounts()
        return Proxy(replicated)

    def test_of_the_new_place_leaves_the_row_in_both(self, replicated, proxy):
        replicated.servers.away = {'d2'}
        proxy.look()
        assert listed(replicated) == {'a': 1}
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_leaves_strays_where_they_are(self, replicated, proxy):
        """In both places, they would be counted twice."""
        upload(replicated, 'stray', None)
        replicated.servers.away = {'d2'}
        proxy.run()
        assert 'stray' not in listed(replicated)
        assert 'stray' in replicated.rows(ACCOUNT, 'c')

    def test_of_most_makes_listings_wait_for_late_rows(
        self, replicated, proxy, monkeypatch
    ):
        def failing(*args):
            raise BackendError(None, 503)

        monkeypatch.setattr(moving, 'merge_rows', failing)
        proxy.look()
        with pytest.raises(BackendError):
            proxy.adoption.check_finished(path('c'))

    def test_that_is_back_lets_the_row_move(
        self, replicated, proxy, monkeypatch
    ):
        replicated.servers.away = {'d2'}
        proxy.look()
        replicated.servers.away = set()
        monkeypatch.setattr(proxy.adoption, '_paused', {})
        proxy.look()
        assert listed(replicated) == {'a': 1}
        backing = backing_container('c', OLD_ID, shard_of('a', 2))
        for replica in range(3):
            assert not replicated.exists(HIDDEN, backing, replica)

    def test_of_most_of_the_new_place_moves_nothing(self, replicated, proxy):
        replicated.servers.away = {'d1', 'd2'}
        assert proxy.look() is False
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_does_not_fail_requests_that_can_do_without(
        self, replicated, proxy
    ):
        replicated.servers.away = {'d1', 'd2'}
        assert proxy.look() is False
        (line,) = proxy.logger.lines
        assert 'late rows of /v1/AUTH_test/c could not be moved yet' in line

    def test_that_brings_old_rows_back_does_no_harm(self, replicated, proxy):
        proxy.look()
        backing = backing_container('c', NEW_ID, shard_of('a', 2))
        headers = {'X-Timestamp': f'{UPLOADED + 1}.00000'}
        replicated.direct('DELETE', f'/{HIDDEN}/{backing}/a', headers)
        put_backing(replicated)
        upload(replicated, 'b')
        upload(replicated, 'a')
        replicated.update_accounts()
        proxy.look()
        assert listed(replicated) == {'b': 1}

    def test_does_not_keep_the_other_rows_from_being_copied(
        self, replicated, proxy, monkeypatch
    ):
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', 2)
        monkeypatch.setattr(adoption_module, 'PAUSE_SECONDS', 0)
        names = [f'o{i}' for i in range(6)]
        for name in names:
            upload(replicated, name)
        replicated.update_accounts()
        replicated.servers.away = {'d2'}
        for _ in range(6):
            proxy.look()
        proxy.adoption.check_finished(path('c'))
        assert listed(replicated) == {'a': 1, **dict.fromkeys(names, 1)}

    def test_ends_the_run_after_some_shards_that_cannot_take_strays(
        self, replicated, monkeypatch
    ):
        put_root(replicated, 'd', Layout(NEW_ID, 32))
        for i in range(100):
            upload(replicated, f'o{i}', None, 'd')
        replicated.update_accounts()
        replicated.servers.away = {'d2'}
        proxy = Proxy(replicated)
        forget_requests(replicated)
        proxy.run('d')
        asked = {
            path
            for device, method, path in replicated.servers.asked
            if (device, method) == ('d1', 'HEAD') and '/d.' in path
        }
        assert len(asked) == FAILURES


class TestRowOfADeletedObject:
    """The object was deleted in a layout that has been deleted since."""

    OBJECT = f'/v1/{ACCOUNT}/c/a'

    @pytest.fixture(autouse=True)
    def late(self, swift):
        put_root(swift)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        put_backing(swift)
        upload(swift, 'a')
        swift.update_accounts()

    def deleted(self, swift, at: float | None) -> None:
        headers = {'X-Backend-Timestamp': f'{at:.5f}'} if at else {}
        swift.register('HEAD', self.OBJECT, 404, headers)

    def test_does_not_bring_the_container_back(self, swift, proxy):
        self.deleted(swift, UPLOADED + 1)
        proxy.look()
        assert not swift.exists(ACCOUNT, 'c')
        assert listed(swift, layout=EARLIER) == {}
        assert backing_containers(swift, EARLIER) == []

    @pytest.mark.parametrize('at', [None, UPLOADED, UPLOADED - 1])
    def test_needs_a_later_tombstone(self, swift, proxy, at):
        self.deleted(swift, at)
        proxy.look()
        assert swift.rows(ACCOUNT, 'c') == {'a': 1}

    def test_does_not_keep_others_from_coming_back(self, swift, proxy):
        self.deleted(swift, UPLOADED + 1)
        upload(swift, 'b')
        swift.update_accounts()
        proxy.look()
        assert swift.rows(ACCOUNT, 'c') == {'b': 1}

    def test_is_removed_from_a_container_that_came_back(self, swift, proxy):
        self.deleted(swift, UPLOADED + 1)
        upload(swift, 'a', None)
        upload(swift, 'b', None)
        assert swift.rows(ACCOUNT, 'c') == {'a': 1, 'b': 1}
        assert proxy.run()
        assert swift.rows(ACCOUNT, 'c') == {'b': 1}

    def test_is_not_asked_for_if_it_came_after_the_deletion(
        self, swift, proxy
    ):
        upload(swift, 'later', at=time.time() + 1)
        swift.update_accounts()
        forget_requests(swift)
        proxy.look()
        assert swift.sent('HEAD').count(('HEAD', self.OBJECT)) == 1
        assert ('HEAD', f'/v1/{ACCOUNT}/c/later') not in swift.sent()

    def test_takes_as_much_of_the_limit_as_several_rows(
        self, swift, proxy, monkeypatch
    ):
        monkeypatch.setattr(adoption_module, 'PAGE_ROWS', 1)
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', ASKED_ROW_COST)
        upload(swift, 'b')
        swift.update_accounts()
        proxy.look()
        assert len(swift.rows(ACCOUNT, 'c')) == 1


class TestLimit:
    @pytest.fixture(autouse=True)
    def late(self, swift, monkeypatch):
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', 3)
        put_root(swift)
        put_backing(swift)
        for i in range(5):
            upload(swift, f'obj-{i}')
        swift.update_accounts()

    def test_is_how_many_rows_one_request_moves(self, swift, proxy):
        proxy.look()
        assert len(listed(swift)) == 3
        assert len(listed(swift, layout=EARLIER)) == 2

    def test_is_reached_again_by_the_next_request(self, swift, proxy):
        proxy.look()
        proxy.look()
        assert len(listed(swift)) == 5
        assert listed(swift, layout=EARLIER) == {}

    def test_counts_strays_too(self, swift, proxy):
        upload(swift, 'stray-1', None)
        upload(swift, 'stray-2', None)
        for _ in range(3):
            proxy.run()
        assert len(listed(swift)) == 7

    def test_leaves_the_next_look_due(self, proxy):
        proxy.look()
        assert proxy.adoption.is_due(path('c'))
        proxy.look()
        assert not proxy.adoption.is_due(path('c'))


class TestUnfinished:
    """While late rows have yet to be moved, no listing would be whole."""

    @pytest.fixture(autouse=True)
    def late(self, swift):
        put_root(swift)
        put_backing(swift)
        for i in range(5):
            upload(swift, f'obj-{i}')
        swift.update_accounts()

    def is_finished(self, proxy) -> bool:
        try:
            proxy.adoption.check_finished(path('c'))
        except BackendError:
            return False
        return True

    def test_is_not_known_before_a_look(self, proxy):
        assert self.is_finished(proxy)

    def test_is_over_when_all_rows_are_moved(self, proxy):
        proxy.look()
        assert self.is_finished(proxy)

    def test_lasts_as_long_as_there_are_more_rows(self, proxy, monkeypatch):
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', 3)
        proxy.look()
        assert not self.is_finished(proxy)
        proxy.look()
        assert self.is_finished(proxy)

    def test_is_over_when_another_worker_has_moved_them(
        self, swift, proxy, monkeypatch
    ):
        with monkeypatch.context() as patches:
            patches.setattr(adoption_module, 'ROWS_AT_A_TIME', 3)
            proxy.look()
        Proxy(swift).look()
        proxy.look()
        assert self.is_finished(proxy)

    def test_concerns_one_container(self, proxy, monkeypatch):
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', 3)
        proxy.look()
        proxy.adoption.check_finished(path('d'))

    def test_does_not_concern_strays(self, swift, proxy, monkeypatch):
        put_root(swift, 'd')
        for i in range(5):
            upload(swift, f'obj-{i}', None, 'd')
        monkeypatch.setattr(adoption_module, 'ROWS_AT_A_TIME', 3)
        proxy.run('d')
        proxy.adoption.check_finished(path('d'))


class TestPause:
    """After a failure, a worker does not try again at once."""

    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch) -> Clock:
        clock = Clock(time.time())
        monkeypatch.setattr(adoption_module, 'time', clock)
        return clock

    @pytest.fixture(autouse=True)
    def failed(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        swift.register('GET', f'/v1/{HIDDEN}', 503)
        proxy.run()
        swift.unregister('GET', f'/v1/{HIDDEN}')
        forget_requests(swift)

    def test_asks_nothing(self, swift, proxy, clock):
        clock.now += PAUSE_SECONDS - 0.1
        assert proxy.run() is False
        assert swift.calls == []

    def test_ends(self, proxy, clock):
        clock.now += PAUSE_SECONDS + 0.1
        assert proxy.run() is True

    def test_concerns_one_container(self, swift, proxy):
        put_root(swift, 'd')
        upload(swift, 'a', None, 'd')
        assert proxy.run('d') is True


class TestDue:
    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch) -> Clock:
        clock = Clock(time.time())
        monkeypatch.setattr(adoption_module, 'time', clock)
        return clock

    @pytest.fixture(autouse=True)
    def container(self, swift):
        put_root(swift)
        swift.update_accounts()

    def test_is_a_look_at_first(self, proxy):
        assert proxy.adoption.is_due(path('c'))

    def test_is_a_look_once_in_a_while(self, proxy, clock):
        proxy.look()
        clock.now += DUE_SECONDS - 1
        assert not proxy.adoption.is_due(path('c'))
        clock.now += 1
        assert proxy.adoption.is_due(path('c'))

    def test_is_a_look_at_every_other_container(self, proxy):
        proxy.look()
        assert proxy.adoption.is_due(path('d'))

    def test_is_a_look_after_one_that_failed(self, swift, proxy):
        swift.register('GET', f'/v1/{HIDDEN}', 503)
        proxy.look()
        assert proxy.adoption.is_due(path('c'))


class TestRun:
    def test_reports_what_it_moved(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        upload(swift, 'b', None)
        swift.update_accounts()
        proxy.look()
        assert proxy.logger.counts['adopted.stray'] == 2
        (line,) = proxy.logger.lines
        assert '/v1/AUTH_test/c: 2 rows' in line

    def test_invalidates_what_is_cached_of_the_container(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        key = get_cache_key(ACCOUNT, 'c')
        swift.send(swift, 'HEAD', f'/v1/{ACCOUNT}/c')
        assert swift.memcached.get(key)
        proxy.look()
        assert swift.memcached.get(key) is None
        assert swift.memcached.get(f'shardmw/written/{ACCOUNT}/c')

    def test_reads_the_newest_replica(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        proxy.look()
        listings = [
            call.headers.get('X-Newest')
            for call in swift.calls
            if call[:2] == ('GET', f'/v1/{ACCOUNT}/c')
        ]
        assert set(listings) == {'true'}

    def test_does_not_list_the_shards_of_containers_with_longer_names(
        self, swift, proxy
    ):
        for name in ('c.2026', 'c.a', 'c.z'):
            put_root(swift, name)
            put_backing(swift, name)
        put_root(swift)
        swift.update_accounts()
        forget_requests(swift)
        asked = []
        proxy.backend.send = _recording(proxy.backend.send, asked)
        proxy.look()
        (listing,) = [rows for rows in asked if rows]
        assert {row['name'].split('.')[1] for row in listing} == {NEW_ID}

    def test_of_nothing_says_nothing(self, swift, proxy):
        put_root(swift)
        swift.update_accounts()
        assert proxy.run() is False
        assert proxy.logger.lines == []

    def test_asks_nothing_while_the_hidden_account_does_not_exist(
        self, swift, proxy
    ):
        assert proxy.look() is False
        assert swift.sent() == [('HEAD', f'/v1/{HIDDEN}')]

    def test_is_put_off_if_the_hidden_account_cannot_be_listed(
        self, swift, proxy
    ):
        put_root(swift)
        swift.update_accounts()
        swift.register('GET', f'/v1/{HIDDEN}', 503)
        assert proxy.run() is False
        assert 'could not be moved yet' in proxy.logger.lines[0]

    def test_of_a_known_container_reads_no_root_in_vain(self, swift, proxy):
        put_root(swift)
        swift.update_accounts()
        swift.servers.asked.clear()
        known = LogicalContainer('v1', ACCOUNT, 'c', {}, LAYOUT)
        proxy.adoption.look(proxy.env(), path('c'), known)
        assert f'/{ACCOUNT}/c' not in [p for _, _, p in swift.servers.asked]

    def test_leaves_a_container_alone_that_is_created_meanwhile(
        self, swift, proxy
    ):
        def create():
            put_root(swift)
            upload(swift, 'a', LAYOUT)
            swift.update_accounts()

        put_backing(swift, 'other')
        swift.update_accounts()
        swift.before('GET', f'/v1/{HIDDEN}', create)
        proxy.look()
        assert listed(swift) == {'a': 1}
        assert swift.rows(ACCOUNT, 'c') == {}

    def test_is_one_at_a_time_for_a_container(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        others = []

        def come_too():
            others.append(spawn(proxy.run))
            sleep(0)
            swift.calls.clear()

        swift.before('GET', f'/v1/{HIDDEN}', come_too)
        assert proxy.run() is True
        listings = [call for call in swift.calls if call.method == 'GET']
        assert [other.wait() for other in others] == [True]
        assert [c for c in swift.calls if c.method == 'GET'] == listings

    def test_can_be_repeated_after_one_that_failed(self, swift, proxy):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        swift.before('GET', f'/v1/{ACCOUNT}/c', pytest.fail)
        with pytest.raises(pytest.fail.Exception):
            proxy.run()
        assert proxy.run() is True

    def test_needs_swifts_proxy_app(self, swift):
        put_root(swift)
        proxy = Proxy(swift, app=lambda *args: swift(*args))
        forget_requests(swift)
        assert proxy.look() is False
        assert swift.calls == []


PLACES = {'root': None, 'earlier': EARLIER, 'right': LAYOUT}
uploads = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([*PLACES]),
    st.integers(0, 20),
)


def test_the_last_upload_of_each_name_is_listed_wherever_rows_were():
    numbers = count()
    with fake_swift() as swift:
        proxy = Proxy(swift)

        @given(st.lists(uploads, max_size=6, unique_by=lambda each: each[2]))
        def check(writes):
            container = f'c{next(numbers)}'
            put_root(swift, container)
            put_backing(swift, container)
            for name, place, at in writes:
                upload(
                    swift,
                    name,
                    PLACES[place],
                    container,
                    at=UPLOADED + at,
                    size=at,
                )
            for shard in range(EARLIER.shards):
                name = backing_container(container, OLD_ID, shard)
                swift.update_account(HIDDEN, name)
            proxy.look(container)
            last = {name: at for name, _, at in sorted(writes, key=_time)}
            assert listed(swift, container) == last
            assert swift.rows(ACCOUNT, container) == {}

        check()


DEVICES = ('d0', 'd1', 'd2')
some_replicas = st.sampled_from([[0, 1, 2], [0], [1, 2], [2]])
most_places = st.sampled_from(['earlier', 'earlier', 'root', 'right'])
outages = st.just(set()) | st.sets(st.sampled_from(DEVICES), max_size=2)
happenings = st.one_of(
    st.tuples(st.just('upload'), most_places, some_replicas),
    st.tuples(st.just('look'), outages),
    st.tuples(st.just('delete'), some_replicas),
    st.tuples(st.just('upload'), st.just('earlier'), some_replicas),
    st.tuples(st.just('look'), outages),
)


class Outages:
    """A container whose rows are adopted while replicas come and go.

    There is one object, `a`, which is uploaded and deleted again and again.
    """

    def __init__(self, swift: FakeSwift) -> None:
        self.swift = swift
        self.proxy = Proxy(swift)
        self.expected: dict[str, int] = {}
        self.clock = 0
        put_root(swift)
        put_backing(swift)
        shard = shard_of('a', LAYOUT.shards)
        self.right = (HIDDEN, backing_container('c', NEW_ID, shard))
        self.wrong = [
            (ACCOUNT, 'c'),
            (HIDDEN, backing_container('c', OLD_ID, shard)),
        ]
        self.places = [*self.wrong, self.right]

    def upload(self, place: str, replicas: list[int]) -> None:
        """Upload the object, whose row reaches some replicas at first."""
        self.clock += 1
        upload(
            self.swift,
            'a',
            PLACES[place],
            at=UPLOADED + self.clock,
            size=self.clock,
            replicas=replicas,
        )
        self.expected = {'a': self.clock}

    def delete(self, replicas: list[int]) -> None:
        """Delete the object, through a proxy that knows the layout."""
        self.clock += 1
        headers = {'X-Timestamp': f'{UPLOADED + self.clock}.00000'}
        path = '/' + '/'.join([*self.right, 'a'])
        self.swift.direct('DELETE', path, headers, replicas=replicas)
        self.expected = {}

    def look(self, away: set[str] = frozenset()) -> bool:
        """Look for rows while some devices are away."""
        for place in self.places:
            self.swift.update_account(*place)
        self.swift.servers.away = away
        self.proxy.adoption._paused.clear()
        try:
            return self.proxy.run()
        finally:
            self.swift.servers.away = set()

    def settle(self) -> None:
        """Replicate and look until nothing moves any more."""
        for _ in range(3):
            for place in self.places:
                self.swift.replicate(*place)
            self.look()
        for place in self.places:
            self.swift.replicate(*place)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(happenings, min_size=6, max_size=8))
def test_no_row_is_lost_or_returns_while_replicas_come_and_go(happenings):
    with fake_swift(replicas=3) as swift:
        model = Outages(swift)
        for happens, *arguments in happenings:
            getattr(model, happens)(*arguments)
        model.settle()
        assert swift.rows(*model.right) == model.expected
        assert [swift.rows(*place) for place in model.wrong] == [{}, {}]


def _time(write: tuple[str, str, int]) -> int:
    return write[2]


def _recording(send, listings: list) -> Callable:
    """Return `send`, which notes the rows of listings."""

    def recording(base, method, path, *args, **kwargs):
        answer = send(base, method, path, *args, **kwargs)
        if method == 'GET':
            listings.append(answer.rows())
        return answer

    return recording
