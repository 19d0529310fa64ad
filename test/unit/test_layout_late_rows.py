# SPDX-License-Identifier: Apache-2.0
"""Rows that are not where the layout says, and how they are moved there.

The rows are in databases of Swift's own container servers.
"""

import time
from itertools import count
from unittest import mock
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift.common.swob import Request
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.containers import (
    LOGICAL_HEADER,
    RECORD_HEADER,
    BackendError,
)
from shardmw.backend.requests import Backend
from shardmw.core.layout import PLAIN, Layout, LayoutError, id_of_time
from shardmw.core.paths import Path
from shardmw.core.placement import (
    backing_container,
    shard_of,
    versions_container,
)
from shardmw.reshard import late_rows, row_mover, row_pass
from shardmw.reshard.late_rows import (
    CREATION_SECONDS,
    NOTHING,
    Settled,
    settle,
)
from shardmw.reshard.leftovers import containers_with_leftovers
from shardmw.reshard.row_pass import Pace
from test.unit.clocks import Clock
from test.unit.containers import NEW_ID, OLD_ID
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    fake_swift,
)

LAYOUT = Layout(NEW_ID, 2)
EARLIER = Layout(OLD_ID, 2)
UPLOADED = 1_700_000_000
NAMES = ['a', 'b', 'obj/1', '☃', 'x y%41']


class Process:
    """A process that settles late rows, as the daemon does.

    :ivar logger: records its metrics
    :ivar sound: the containers that it found to have no leftovers
    """

    def __init__(self, swift: FakeSwift) -> None:
        self.swift = swift
        self.logger = Logger()
        self.sound: dict = {}
        self.backend = Backend(
            swift, self.logger, 4, metrics=self.logger.metrics
        )

    def env(self) -> dict:
        """Return the environment of its requests."""
        return {
            **Request.blank(f'/v1/{ACCOUNT}/c').environ,
            'swift.cache': self.swift.memcached,
            'swift.infocache': {},
        }

    def settle(self, container: str = 'c', **options) -> Settled:
        return settle(
            self.backend, self.env(), path(container), Pace(0), **options
        )

    def found(self) -> list[str]:
        """Return the containers that may have leftovers."""
        paths = containers_with_leftovers(
            self.backend, self.env(), ACCOUNT, self.sound
        )
        return sorted(each.container for each in paths)


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


def delete_root(swift: FakeSwift) -> None:
    """Create a plain root and delete it."""
    put_root(swift, layout=None)
    swift.direct('DELETE', f'/{ACCOUNT}/c')


def put_backing(
    swift: FakeSwift,
    container: str = 'c',
    layout: Layout = EARLIER,
    policy_index: int = 0,
) -> None:
    """Create the backing containers of a layout."""
    headers = {
        'X-Backend-Storage-Policy-Index': str(policy_index),
        LOGICAL_HEADER: quote(container),
    }
    for shard in range(layout.shards):
        name = backing_container(container, layout.id, shard)
        swift.put_container(f'/{HIDDEN}/{name}', headers)


def place_of(
    name: str, layout: Layout | None = EARLIER, container: str = 'c'
) -> tuple[str, str]:
    """Return where a layout has the row of an object."""
    if layout is None:
        return ACCOUNT, container
    shard = shard_of(name, layout.shards)
    return HIDDEN, backing_container(container, layout.id, shard)


def upload(
    swift: FakeSwift,
    name: str,
    layout: Layout | None = EARLIER,
    container: str = 'c',
    **row,
) -> None:
    """Write a row to a shard of a layout; to the root without a layout."""
    row = {'at': UPLOADED, **row}
    place = '/'.join(place_of(name, layout, container))
    swift.put_row(f'/{place}/{name}', **row)


def delete(
    swift: FakeSwift, name: str, at: float, layout: Layout | None = LAYOUT
) -> None:
    """Write the tombstone of a client's DELETE."""
    place = '/'.join(place_of(name, layout))
    headers = {'X-Timestamp': Timestamp(at).internal}
    swift.direct('DELETE', f'/{place}/{name}', headers)


def listed(
    swift: FakeSwift, container: str = 'c', layout: Layout = LAYOUT
) -> dict[str, int]:
    """Return the sizes of the objects that are in their shards, by name."""
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


@pytest.fixture
def process(swift) -> Process:
    return Process(swift)


class TestLateRows:
    """Rows in backing containers of an earlier layout."""

    @pytest.fixture
    def late(self, swift) -> dict[str, int]:
        put_backing(swift)
        for size, name in enumerate(NAMES, start=1):
            upload(swift, name, size=size)
        swift.update_accounts()
        return {name: size for size, name in enumerate(NAMES, start=1)}

    def test_move_to_the_shards_of_the_layout(self, swift, process, late):
        put_root(swift)
        assert process.settle().late == len(late)
        assert listed(swift) == late
        assert listed(swift, layout=EARLIER) == {}
        assert process.logger.counts['adopted.late'] == len(late)

    def test_move_to_a_plain_container(self, swift, process, late):
        put_root(swift, layout=None)
        process.settle()
        assert swift.rows(ACCOUNT, 'c') == late

    def test_bring_a_deleted_container_back(self, swift, process, late):
        delete_root(swift)
        process.settle()
        assert swift.rows(ACCOUNT, 'c') == late

    def test_come_back_before_the_next_layout_whatever_the_clock_says(
        self, swift, process, late
    ):
        delete_root(swift)
        ahead = mock.Mock(wraps=time, time=lambda: time.time() + 3600)
        with mock.patch.object(row_pass, 'time', ahead):
            process.settle()
        following = PLAIN.announced(4, time.time())
        rows = swift.broker(ACCOUNT, 'c').get_objects()
        offsets = [Timestamp(row['created_at']).offset for row in rows]
        assert len(offsets) == len(late)
        assert max(offsets) < following.offset

    def test_move_from_a_layout_with_a_later_id(self, swift, process, late):
        before = Layout(id_of_time(1_600_000_000), 2)
        put_root(swift, layout=before)
        process.settle()
        assert listed(swift, layout=before) == late

    def test_do_not_replace_later_uploads(self, swift, process, late):
        put_root(swift)
        upload(swift, 'a', LAYOUT, at=UPLOADED + 1, size=99)
        process.settle()
        assert listed(swift) == {**late, 'a': 99}

    def test_replace_earlier_uploads(self, swift, process, late):
        put_root(swift)
        upload(swift, 'a', LAYOUT, at=UPLOADED - 1, size=99)
        process.settle()
        assert listed(swift) == late

    def test_of_objects_that_were_deleted_since_do_not_return(
        self, swift, process, late
    ):
        put_root(swift)
        delete(swift, 'a', UPLOADED + 1)
        process.settle()
        del late['a']
        assert listed(swift) == late

    def test_of_other_containers_stay(self, swift, process, late):
        put_backing(swift, 'c.d')
        upload(swift, 'a', container='c.d')
        swift.update_accounts()
        put_root(swift)
        process.settle()
        assert listed(swift, 'c.d', EARLIER) == {'a': 1}

    def test_stay_while_the_layout_changes(self, swift, process, late):
        put_root(swift, layout=LAYOUT.announced(4, time.time()))
        assert process.settle() == NOTHING
        assert listed(swift, layout=EARLIER) == late

    def test_that_another_process_has_moved_are_no_error(
        self, swift, process, late
    ):
        put_root(swift)
        for name in late:
            delete(swift, name, time.time(), EARLIER)
        for name in backing_containers(swift, EARLIER):
            swift.direct('DELETE', f'/{HIDDEN}/{name}')
        assert process.settle() == NOTHING

    def test_that_arrive_again_move_again(self, swift, process, late):
        """Object servers repeat an update if they missed the response."""
        put_root(swift)
        process.settle()
        upload(swift, 'b', at=UPLOADED + 1, size=99)
        swift.update_accounts()
        assert process.settle().late == 1
        assert listed(swift) == {**late, 'b': 99}

    @pytest.mark.parametrize(
        'container', ['x' * 256, '☃', versions_container('c')]
    )
    def test_of_containers_with_other_names_move(
        self, swift, process, container
    ):
        put_backing(swift, container)
        upload(swift, 'a', container=container)
        swift.update_accounts()
        put_root(swift, container)
        process.settle(container)
        assert listed(swift, container) == {'a': 1}

    def test_stay_if_the_container_changes_meanwhile(
        self, swift, process, late
    ):
        put_root(swift)

        def change() -> None:
            headers = {RECORD_HEADER: LAYOUT.announced(4, time.time())}
            headers = {k: v.to_record() for k, v in headers.items()}
            swift.direct('POST', f'/{ACCOUNT}/c', headers)

        name = backing_containers(swift, EARLIER)[0]
        swift.servers.before(f'/{HIDDEN}/{name}', change)
        with (
            mock.patch.object(late_rows, 'STAY_SECONDS', 0),
            pytest.raises(BackendError, match='has changed meanwhile'),
        ):
            process.settle()
        assert listed(swift, layout=EARLIER) == late
        assert listed(swift) == {}


class TestProof:
    """Without a proof, all rows stay where they are."""

    @pytest.fixture
    def process(self, replicated) -> Process:
        put_root(replicated)
        put_backing(replicated)
        upload(replicated, 'a')
        replicated.update_accounts()
        return Process(replicated)

    def lose_root(self, replicated, replicas: list[int]) -> None:
        for replica in replicas:
            replicated.lose(ACCOUNT, 'c', replica)

    def stays(self, replicated, process, match: str) -> None:
        """Check that settling fails, and that nothing has moved."""
        with pytest.raises(BackendError, match=match):
            process.settle()
        replicated.servers.away = set()
        for replica in range(3):
            assert replicated.rows(*place_of('a'), replica) == {'a': 1}
            assert len(backing_containers(replicated, LAYOUT)) == 2

    def test_is_not_a_root_that_no_replica_has(self, replicated, process):
        self.lose_root(replicated, [0, 1, 2])
        self.stays(replicated, process, '0 of 3 replicas of the root have')

    def test_is_not_two_missing_replicas_and_a_silent_one(
        self, replicated, process
    ):
        self.lose_root(replicated, [0, 1])
        replicated.servers.away = {'d2'}
        with pytest.raises(BackendError):
            process.settle()
        replicated.servers.away = set()
        assert len(backing_containers(replicated, LAYOUT)) == 2
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_is_not_a_majority_that_is_silent(self, replicated, process):
        replicated.servers.away = {'d0', 'd1'}
        with pytest.raises(BackendError):
            process.settle()
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_is_not_one_replica_that_says_deleted(self, replicated, process):
        replicated.direct('DELETE', f'/{ACCOUNT}/c', replicas=[0])
        self.stays(replicated, process, '3 of 3 replicas of the root have')

    def test_is_not_one_replica_if_the_others_have_no_database(
        self, replicated, process
    ):
        self.lose_root(replicated, [0, 1])
        self.stays(replicated, process, '1 of 3 replicas of the root have')

    def test_is_a_majority_that_says_deleted(self, replicated, process):
        replicated.direct('DELETE', f'/{ACCOUNT}/c')
        assert process.settle().late == 1
        assert replicated.rows(ACCOUNT, 'c') == {'a': 1}

    def test_of_nothing_is_not_needed(self, replicated):
        assert Process(replicated).settle() == NOTHING

    def test_is_a_record_that_can_be_read(self, swift):
        put_backing(swift)
        upload(swift, 'a')
        swift.update_accounts()
        swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: 'damaged'})
        with pytest.raises(LayoutError):
            Process(swift).settle()
        assert listed(swift, layout=EARLIER) == {'a': 1}


class TestReplicas:
    @pytest.fixture
    def process(self, replicated) -> Process:
        put_root(replicated)
        put_backing(replicated)
        upload(replicated, 'a')
        replicated.update_accounts()
        return Process(replicated)

    def test_that_are_away_leave_the_row_where_it_is(
        self, replicated, process
    ):
        replicated.servers.away = {'d2'}
        with pytest.raises(BackendError):
            process.settle()
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_that_are_back_let_the_row_move(self, replicated, process):
        replicated.servers.away = {'d2'}
        with pytest.raises(BackendError):
            process.settle()
        replicated.servers.away = set()
        assert process.settle().late == 1
        for replica in range(3):
            assert replicated.rows(*place_of('a', LAYOUT), replica)
            assert not replicated.rows(*place_of('a'), replica)

    def test_that_lack_the_old_place_leave_the_row_there(
        self, replicated, process
    ):
        replicated.lose(*place_of('a'), 1)
        with pytest.raises(BackendError, match='2 of 3 replicas list'):
            process.settle()
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_that_lack_the_old_place_keep_no_stray_waiting(
        self, replicated, process
    ):
        upload(replicated, 'b', None)
        replicated.lose(*place_of('a'), 1)
        with pytest.raises(BackendError, match='2 of 3 replicas list'):
            process.settle()
        assert listed(replicated) == {'b': 1}
        assert process.logger.counts['adopted.stray'] == 1

    def test_that_lack_the_new_place_get_no_database_of_late_rows(
        self, replicated, process
    ):
        for replica in (1, 2):
            replicated.lose(*place_of('a', LAYOUT), replica)
        with pytest.raises(
            BackendError, match='1 of 3 replicas stored the rows'
        ):
            process.settle()
        assert not replicated.exists(*place_of('a', LAYOUT), 1)
        assert listed(replicated, layout=EARLIER) == {'a': 1}

    def test_move_a_row_that_only_one_of_them_has(self, replicated):
        put_root(replicated)
        put_backing(replicated)
        upload(replicated, 'a', replicas=[2])
        replicated.update_account(*place_of('a'))
        broker = replicated.broker(*place_of('a'), 2)
        replicated._report(broker)
        assert Process(replicated).settle().late == 1
        for replica in range(3):
            assert replicated.rows(*place_of('a', LAYOUT), replica)

    def test_that_do_not_say_the_policy_leave_the_row(
        self, replicated, process
    ):
        for replica in range(3):
            replicated.lose(*place_of('a'), replica)
        with pytest.raises(BackendError, match='show its storage policy'):
            process.settle()

    def test_that_do_not_say_the_policy_keep_no_other_row_waiting(
        self, replicated, process
    ):
        other = next(n for n in NAMES if place_of(n) != place_of('a'))
        upload(replicated, other)
        replicated.update_accounts()
        for replica in range(3):
            replicated.lose(*place_of('a'), replica)
        with pytest.raises(BackendError, match='show its storage policy'):
            process.settle()
        assert listed(replicated) == {other: 1}


class TestEmptyBackingContainers:
    @pytest.mark.parametrize('root', [put_root, delete_root])
    def test_of_an_earlier_layout_are_deleted(self, swift, process, root):
        root(swift)
        put_backing(swift)
        swift.update_accounts()
        assert process.settle() == Settled(deleted=2)
        assert backing_containers(swift, EARLIER) == []
        assert process.logger.counts == {'leftovers.deleted': 2}

    @pytest.mark.parametrize('age, left', [(0, 2), (3000, 2), (3700, 0)])
    def test_stay_while_a_client_may_be_creating_the_container(
        self, swift, process, age, left
    ):
        assert 3000 < CREATION_SECONDS < 3700
        delete_root(swift)
        created = Layout(id_of_time(time.time() - age), 2)
        put_backing(swift, layout=created)
        swift.update_accounts()
        process.settle()
        assert len(backing_containers(swift, created)) == left

    def test_of_the_layout_stay(self, swift, process):
        put_root(swift)
        swift.update_accounts()
        assert process.settle() == NOTHING
        assert len(backing_containers(swift, LAYOUT)) == 2

    def test_that_are_young_and_have_rows_are_taken_over(self, swift, process):
        created = Layout(id_of_time(time.time()), 2)
        put_backing(swift, layout=created)
        upload(swift, 'a', created)
        swift.update_accounts()
        put_root(swift)
        process.settle()
        assert listed(swift) == {'a': 1}

    def test_that_have_got_rows_since_the_last_report_stay(
        self, swift, process
    ):
        put_root(swift)
        put_backing(swift)
        swift.update_accounts()
        upload(swift, 'a')
        assert process.settle() == Settled(deleted=1)
        assert listed(swift, layout=EARLIER) == {'a': 1}
        swift.update_accounts()
        assert process.settle() == Settled(late=1, deleted=1)

    def test_that_rows_have_moved_out_of_are_deleted(self, swift, process):
        put_root(swift)
        put_backing(swift)
        upload(swift, 'a')
        swift.update_accounts()
        assert process.settle() == Settled(late=1, deleted=2)
        assert backing_containers(swift, EARLIER) == []

    def test_that_rows_have_moved_out_of_stay_while_they_are_young(
        self, swift, process
    ):
        created = Layout(id_of_time(time.time()), 2)
        put_backing(swift, layout=created)
        upload(swift, 'a', created)
        swift.update_accounts()
        put_root(swift)
        assert process.settle() == Settled(late=1)
        assert len(backing_containers(swift, created)) == 2

    def test_stay_if_one_replica_lists_a_row(self, replicated):
        put_root(replicated)
        put_backing(replicated)
        replicated.update_accounts()
        upload(replicated, 'a', replicas=[2])
        assert Process(replicated).settle() == Settled(deleted=1)
        assert replicated.rows(*place_of('a'), 2) == {'a': 1}

    def test_stay_while_a_replica_of_the_root_is_silent(self, replicated):
        put_root(replicated)
        put_backing(replicated)
        replicated.update_accounts()
        replicated.servers.away = {'d2'}
        assert Process(replicated).settle() == NOTHING
        replicated.servers.away = set()
        assert len(backing_containers(replicated, EARLIER)) == 2

    def test_of_a_creation_that_never_ended_are_deleted(self, swift, process):
        put_backing(swift)
        swift.update_accounts()
        swift.put_container(f'/{ACCOUNT}/other')
        swift.update_accounts()
        assert process.settle() == Settled(deleted=2)

    def test_of_a_root_that_is_away_stay(self, swift, process):
        put_root(swift)
        swift.update_accounts()
        swift.lose(ACCOUNT, 'c', 0)
        with pytest.raises(BackendError):
            process.settle()
        assert len(backing_containers(swift, LAYOUT)) == 2

    def test_stay_if_most_databases_are_lost(self, replicated):
        put_root(replicated)
        put_backing(replicated)
        replicated.update_accounts()
        for replica in (0, 1):
            replicated.lose(*place_of('a'), replica)
        assert Process(replicated).settle() == Settled(deleted=1)
        assert replicated.exists(*place_of('a'), 2)


class TestStrays:
    """Rows in the root of a sharded container."""

    @pytest.fixture
    def strays(self, swift) -> dict[str, int]:
        put_root(swift)
        for size, name in enumerate(NAMES, start=1):
            upload(swift, name, None, size=size)
        swift.update_accounts()
        return {name: size for size, name in enumerate(NAMES, start=1)}

    def test_move_to_the_shards(self, swift, process, strays):
        assert process.settle() == Settled(strays=len(strays))
        assert listed(swift) == strays
        assert swift.rows(ACCOUNT, 'c') == {}
        assert process.logger.counts == {'adopted.stray': len(strays)}

    def test_invalidate_what_is_cached_of_the_container(
        self, swift, process, strays
    ):
        key = get_cache_key(ACCOUNT, 'c')
        swift.send(swift, 'HEAD', f'/v1/{ACCOUNT}/c')
        assert swift.memcached.get(key)
        process.settle()
        assert swift.memcached.get(key) is None

    def test_stay_in_the_root_while_listings_may_be_under_way(
        self, swift, process, strays, monkeypatch
    ):
        waits = []

        def wait(seconds: float) -> None:
            waits.append((listed(swift), swift.rows(ACCOUNT, 'c')))
            monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)

        monkeypatch.setattr(row_pass, 'sleep', wait)
        monkeypatch.setattr(row_pass, 'STAY_SECONDS', 3)
        process.settle()
        assert (strays, strays) in waits

    def test_stay_in_the_root_for_longer_than_proxies_keep_pages(
        self, swift, process, strays, monkeypatch
    ):
        clock = Clock()
        waits = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            clock.now += seconds

        monkeypatch.setattr(row_pass, 'time', clock)
        monkeypatch.setattr(row_pass, 'sleep', wait)
        process.settle(kept_seconds=5)
        assert max(waits) == pytest.approx(6)
        assert swift.rows(ACCOUNT, 'c') == {}

    def test_stay_if_the_container_becomes_plain_meanwhile(
        self, swift, process, strays, monkeypatch
    ):
        now = time.time()
        returning = LAYOUT.announced(0, now).moving(now)

        def change(_seconds: float) -> None:
            headers = {RECORD_HEADER: returning.to_record()}
            swift.direct('POST', f'/{ACCOUNT}/c', headers)
            monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)
            monkeypatch.setattr(late_rows, 'STAY_SECONDS', 0)

        monkeypatch.setattr(row_pass, 'sleep', change)
        monkeypatch.setattr(row_pass, 'STAY_SECONDS', 3)
        with pytest.raises(BackendError, match='has changed meanwhile'):
            process.settle()
        assert swift.rows(ACCOUNT, 'c') == strays

    def test_of_a_plain_container_stay(self, swift, process):
        put_root(swift, layout=None)
        upload(swift, 'a', None)
        put_backing(swift)
        swift.update_accounts()
        assert process.settle() == Settled(deleted=2)
        assert swift.rows(ACCOUNT, 'c') == {'a': 1}

    def test_that_do_not_exist_cost_no_listing_of_the_root(
        self, swift, process
    ):
        put_root(swift)
        swift.update_accounts()
        swift.servers.asked.clear()
        process.settle()
        asked = [(method, place) for _, method, place in swift.servers.asked]
        assert ('GET', f'/{ACCOUNT}/c') not in asked

    def test_go_where_swifts_own_sharder_has_split_a_shard(
        self, swift, process, strays
    ):
        backing = place_of('a', LAYOUT)[1]
        headers = {'X-Backend-Sharding-State': 'sharded'}
        swift.register('HEAD', f'/v1/{HIDDEN}/{backing}', 204, headers)
        swift.memcached.set(
            get_cache_key(HIDDEN, backing, shard='updating'),
            [['', '.shards_x/first'], ['m', '.shards_x/second']],
        )
        for name in ('first', 'second'):
            swift.put_container(f'/.shards_x/{name}')
        process.settle()
        assert 'a' in swift.rows('.shards_x', 'first')
        assert 'a' not in swift.rows(HIDDEN, backing)


class TestManifest:
    """The row of a large object has the size of the manifest."""

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
        place = '/'.join(place_of('a', layout))
        query = 'format=json'
        return swift.send(swift, 'GET', f'/v1/{place}', query=query).body

    def test_keeps_both_sizes(self, swift, process):
        before = self.listing(swift, EARLIER)
        headers = {'Content-Length': '300'}
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 200, headers)
        process.settle()
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
        assert row_mover._may_be_manifest(etag) is may_be

    def test_that_is_gone_counts_as_empty(self, swift, process):
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 404)
        process.settle()
        assert listed(swift) == {'a': 0}


class TestPolicy:
    """Swift's reconciler looks for rows of other policies in the root."""

    @pytest.fixture(autouse=True)
    def late(self, swift):
        put_backing(swift, policy_index=1)
        upload(swift, 'a', policy_index=1)
        swift.update_accounts()

    @pytest.mark.parametrize('layout', [LAYOUT, None])
    def test_of_another_layout_is_left_to_the_reconciler(
        self, swift, process, layout
    ):
        put_root(swift, layout=layout)
        process.settle()
        assert listed(swift, layout=EARLIER) == {}
        broker = swift.broker(ACCOUNT, 'c')
        (row,) = broker.get_misplaced_since(-1, 10)
        assert (row['name'], row['storage_policy_index']) == ('a', 1)
        assert Timestamp(row['created_at']) == Timestamp(UPLOADED)

    def test_of_the_container_moves_to_its_shards(self, swift, process):
        headers = {
            RECORD_HEADER: LAYOUT.to_record(),
            'X-Backend-Storage-Policy-Index': '1',
        }
        swift.put_container(f'/{ACCOUNT}/c', headers)
        put_backing(swift, layout=LAYOUT, policy_index=1)
        assert process.settle() == Settled(late=1, deleted=2)
        assert listed(swift) == {'a': 1}

    def test_of_several_earlier_layouts_are_distinguished(
        self, swift, process
    ):
        other = Layout(id_of_time(UPLOADED + 60), 2)
        put_backing(swift, layout=other)
        upload(swift, 'b', other)
        swift.update_accounts()
        put_root(swift)
        process.settle()
        assert listed(swift) == {'b': 1}
        (row,) = swift.broker(ACCOUNT, 'c').get_misplaced_since(-1, 10)
        assert row['name'] == 'a'


class TestRowOfADeletedObject:
    """The object was deleted in a layout that has been deleted since."""

    @pytest.fixture(autouse=True)
    def late(self, swift):
        delete_root(swift)
        put_backing(swift)
        upload(swift, 'a')
        swift.update_accounts()

    def deleted(self, swift, at: float | None) -> None:
        headers = {'X-Backend-Timestamp': f'{at:.5f}'} if at else {}
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 404, headers)

    def test_does_not_bring_the_container_back(self, swift, process):
        self.deleted(swift, UPLOADED + 1)
        process.settle()
        assert not swift.exists(ACCOUNT, 'c')
        assert listed(swift, layout=EARLIER) == {}

    @pytest.mark.parametrize('at', [None, UPLOADED, UPLOADED - 1])
    def test_needs_a_later_tombstone(self, swift, process, at):
        self.deleted(swift, at)
        process.settle()
        assert swift.rows(ACCOUNT, 'c') == {'a': 1}

    def test_does_not_keep_others_from_coming_back(self, swift, process):
        self.deleted(swift, UPLOADED + 1)
        upload(swift, 'b')
        swift.update_accounts()
        process.settle()
        assert swift.rows(ACCOUNT, 'c') == {'b': 1}

    def test_is_removed_from_a_container_that_came_back(self, swift, process):
        self.deleted(swift, UPLOADED + 1)
        upload(swift, 'a', None)
        upload(swift, 'b', None)
        assert swift.rows(ACCOUNT, 'c') == {'a': 1, 'b': 1}
        process.settle()
        assert swift.rows(ACCOUNT, 'c') == {'b': 1}

    def test_stays_while_the_object_servers_do_not_answer(
        self, swift, process
    ):
        swift.register('HEAD', f'/v1/{ACCOUNT}/c/a', 503)
        with pytest.raises(BackendError):
            process.settle()
        assert listed(swift, layout=EARLIER) == {'a': 1}
        assert not swift.exists(ACCOUNT, 'c')


class TestReturningRows:
    """Rows that return to shards that they were moved out of before.

    The shards have tombstones with an offset from that move.
    """

    @pytest.fixture(params=[[], [0, 1, 2], [1]], ids=str)
    def process(self, replicated, request) -> Process:
        """Move a row from a shard to the root, and write the record then.

        Some container servers have the filter.
        """
        replicated.servers.put_filter(request.param)
        root = f'/{ACCOUNT}/c'
        replicated.put_container(root, {'X-Timestamp': f'{UPLOADED}.00000'})
        deletion = {'X-Timestamp': f'{UPLOADED + 60}.00000'}
        replicated.direct('DELETE', root, deletion)
        put_backing(replicated, layout=LAYOUT)
        upload(replicated, 'a', LAYOUT, size=7)
        replicated.update_accounts()
        process = Process(replicated)
        assert process.settle().late == 1
        assert replicated.rows(*place_of('a', None)) == {'a': 7}
        assert listed(replicated) == {}
        put_root(replicated)
        return process

    def test_are_listed_in_their_shard(self, replicated, process):
        assert process.settle() == Settled(strays=1)
        for replica in range(3):
            assert replicated.rows(*place_of('a', LAYOUT), replica) == {'a': 7}
            assert replicated.rows(ACCOUNT, 'c', replica) == {}

    def test_of_objects_that_were_deleted_since_stay_deleted(
        self, replicated, process
    ):
        delete(replicated, 'a', UPLOADED + 1)
        process.settle()
        assert listed(replicated) == {}

    def test_do_not_replace_later_uploads(self, replicated, process):
        upload(replicated, 'a', LAYOUT, at=UPLOADED + 1, size=9)
        process.settle()
        assert listed(replicated) == {'a': 9}


PLACES = {'root': None, 'earlier': EARLIER, 'right': LAYOUT}
uploads = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([*PLACES]),
    st.integers(0, 20),
)


def _time(write: tuple[str, str, int]) -> int:
    return write[2]


def test_the_last_upload_of_each_name_is_listed_wherever_rows_were():
    numbers = count()
    with fake_swift() as swift:
        process = Process(swift)

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
            process.settle(container)
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
    """A container whose rows are settled while replicas come and go.

    There is one object, `a`, which is uploaded and deleted again and again.
    """

    def __init__(self, swift: FakeSwift) -> None:
        self.swift = swift
        self.process = Process(swift)
        self.expected: dict[str, int] = {}
        self.clock = 0
        put_root(swift)
        put_backing(swift)
        self.right = place_of('a', LAYOUT)
        self.wrong = [place_of('a', None), place_of('a', EARLIER)]
        self.places = [*self.wrong, self.right]

    def upload(self, place: str, replicas: list[int]) -> None:
        """Upload the object; only some replicas get the row."""
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
        """Delete the object through a proxy that knows the layout."""
        self.clock += 1
        headers = {'X-Timestamp': f'{UPLOADED + self.clock}.00000'}
        path = '/' + '/'.join([*self.right, 'a'])
        self.swift.direct('DELETE', path, headers, replicas=replicas)
        self.expected = {}

    def look(self, away: set[str] = frozenset()) -> None:
        """Settle rows while some devices are away."""
        for account, container in self.places:
            for replica in range(3):
                broker = self.swift.broker(account, container, replica)
                self.swift._report(broker)
        self.swift.servers.away = away
        try:
            self.process.settle()
        except BackendError:
            pass  # replicas are away, or do not agree yet
        finally:
            self.swift.servers.away = set()

    def settle(self) -> None:
        """Replicate and settle until nothing moves any more."""
        for _ in range(3):
            for place in self.places:
                self.swift.replicate(*place)
            self.look()
        assert self.process.settle() == NOTHING
        for place in self.places:
            self.swift.replicate(*place)


@settings(max_examples=settings.default.max_examples // 4)
@given(st.lists(happenings, min_size=6, max_size=8))
def test_no_row_is_lost_or_returns_while_replicas_come_and_go(happenings):
    with fake_swift(replicas=3) as swift:
        model = Outages(swift)
        for happens, *arguments in happenings:
            getattr(model, happens)(*arguments)
        model.settle()
        assert swift.rows(*model.right) == model.expected
        assert [swift.rows(*place) for place in model.wrong] == [{}, {}]


class TestContainersWithLeftovers:
    def test_are_none_in_an_account_without_sharded_containers(
        self, swift, process
    ):
        put_root(swift, layout=None)
        upload(swift, 'a', None)
        swift.update_accounts()
        assert process.found() == []

    def test_are_none_if_all_is_where_it_belongs(self, swift, process):
        put_root(swift)
        upload(swift, 'a', LAYOUT)
        put_root(swift, 'plain', None)
        upload(swift, 'a', None, 'plain')
        swift.update_accounts()
        assert process.found() == []

    def test_have_backing_containers_of_several_layouts(self, swift, process):
        put_root(swift)
        put_backing(swift)
        swift.update_accounts()
        assert process.found() == ['c']

    def test_have_rows_in_the_root_beside_shards(self, swift, process):
        put_root(swift)
        upload(swift, 'a', None)
        swift.update_accounts()
        assert process.found() == ['c']

    @pytest.mark.parametrize('container', ['c', 'x' * 256, 'é ☃%'])
    def test_have_no_root(self, swift, process, container):
        put_backing(swift, container)
        swift.update_accounts()
        assert process.found() == [container]

    def test_fail_if_the_hidden_account_does_not_answer(self, swift, process):
        put_backing(swift)
        swift.update_accounts()
        swift.register('GET', f'/v1/{HIDDEN}', 503)
        with pytest.raises(BackendError):
            process.found()
