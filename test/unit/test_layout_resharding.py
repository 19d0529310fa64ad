# SPDX-License-Identifier: Apache-2.0
import json
import time
from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer
from shardmw.backend.backing_containers import listed_backing
from shardmw.backend.containers import BackendError
from shardmw.backend.move_throttle import Throttle
from shardmw.backend.requests import Backend
from shardmw.backend.roots import RootState, read_root
from shardmw.backend.rows import STAY_SECONDS
from shardmw.core.batch import METHOD
from shardmw.core.paths import Path
from shardmw.core.phases import ANNOUNCED, DONE, MOVING
from shardmw.core.placement import REGISTER, backing_container, shard_of
from shardmw.proxy.listing import request as listing_request
from shardmw.reshard import executor, resharding, row_mover, row_pass
from shardmw.reshard.executor import DryRun, Executor
from shardmw.reshard.late_rows import settle
from shardmw.reshard.register import Register
from shardmw.reshard.resharding import (
    POLL_SECONDS,
    ChangeRefusedError,
    MoveOptions,
    Resharding,
)
from shardmw.reshard.row_pass import Pace
from shardmw.swift.concurrency import sleep, spawn
from test.unit.containers import OLD_ID
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    fake_swift,
    filtered,
)

NAMES = [f'n{i:03}' for i in range(60)]
TREE = [f'{top}/{sub}/{i}' for top in 'abcd' for sub in 'xy' for i in '12']
PATH = Path('v1', ACCOUNT, 'c')
ROOT = f'/{ACCOUNT}/c'
OPTIONS = MoveOptions(cache_seconds=0, settle_seconds=0, sync_seconds=0)


@pytest.fixture(params=[1, 3])
def swift(request, monkeypatch):
    with fake_swift(request.param) as swift:
        monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
        yield swift


@pytest.fixture
def proxy(swift):
    return filtered(swift)


def backend(swift: FakeSwift) -> Backend:
    return Backend(swift, Logger(), 4)


def environ() -> dict:
    return Request.blank('/').environ


def change(swift: FakeSwift, options=OPTIONS) -> Resharding:
    return Resharding(Executor(backend(swift), environ(), PATH), options)


def reshard(swift: FakeSwift, shards: int) -> Resharding:
    resharder = change(swift)
    resharder.begin(shards)
    resharder.run()
    return resharder


def fill(swift: FakeSwift, shards: int = 0):
    """Create the container with a row for each name."""
    proxy = filtered(swift)
    headers = {'X-Container-Shard-Count': str(shards)} if shards else {}
    swift.send(proxy, 'PUT', f'/v1{ROOT}', headers)
    for name in NAMES:
        swift.put_row(f'{place(swift, name, shards)}/{name}', size=2)


def layout(swift: FakeSwift):
    return read_root(backend(swift), environ(), PATH).record


def place(swift: FakeSwift, name: str, shards: int) -> str:
    """Return the place of a name before, during or after a change."""
    if not shards:
        return ROOT
    present = layout(swift)
    is_former = present.former == shards
    layout_id = present.former_id if is_former else present.id
    backing = backing_container('c', layout_id, shard_of(name, shards))
    return f'/{HIDDEN}/{backing}'


def listed(swift: FakeSwift, proxy) -> list[str]:
    resp = swift.send(proxy, 'GET', f'/v1{ROOT}', query='format=json')
    assert resp.status_int == 200, resp.status
    return [row['name'] for row in json.loads(resp.body)]


def figures(swift: FakeSwift, proxy) -> tuple[int, int, str | None]:
    resp = swift.send(proxy, 'HEAD', f'/v1{ROOT}')
    headers = resp.headers
    return (
        int(headers['X-Container-Object-Count']),
        int(headers['X-Container-Bytes-Used']),
        headers.get('X-Container-Shard-Count'),
    )


def all_rows(swift: FakeSwift) -> dict[str, set[str]]:
    """Return the names in each database of each replica."""
    found = {}
    places = [(ACCOUNT, 'c')]
    base = backend(swift).owner_env(environ())
    places += [
        (HIDDEN, each.container)
        for each in listed_backing(backend(swift), base, PATH)
    ]
    for account, container in places:
        replicas = [
            set(swift.rows(account, container, i))
            for i in range(swift.container_ring.replica_count)
        ]
        assert all(rows == replicas[0] for rows in replicas), container
        if replicas[0]:
            found[f'/{account}/{container}'] = replicas[0]
    return found


@pytest.mark.parametrize('depth', [0, 1])
def test_rows_that_return_to_the_root_are_read_about_once(monkeypatch, depth):
    """Also if neighbours share a shard that the others must wait for."""
    shards, page = 16, 10
    monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
    monkeypatch.setattr(row_pass, 'PAGE_ROWS', shards * page)
    monkeypatch.setattr(row_pass, 'LEAST_ROWS', page)
    names = [f'{top}/{i:02}' for top in 'abcdef' for i in range(50)]
    with fake_swift() as swift:
        headers = {
            'X-Container-Shard-Count': str(shards),
            'X-Container-Shard-Depth': str(depth),
        }
        swift.send(filtered(swift), 'PUT', f'/v1{ROOT}', headers)
        present = layout(swift)
        for name in names:
            shard = shard_of(name, shards, depth)
            backing = backing_container('c', present.id, shard)
            swift.put_row(f'/{HIDDEN}/{backing}/{name}')
        swift.servers.asked.clear()
        reshard(swift, 0)
        asked = [
            path
            for _, method, path in swift.servers.asked
            if method == 'GET' and f'/{HIDDEN}/' in path
        ]
        assert listed(swift, filtered(swift)) == names
    # Each shard is also asked for its last page, and by the second pass.
    assert len(asked) <= len(names) / page + 3 * shards


@pytest.mark.parametrize(
    ('before', 'after'), [(0, 4), (4, 9), (9, 4), (4, 0), (1, 32), (3, 1)]
)
def test_a_change_moves_each_row_to_its_place(swift, proxy, before, after):
    fill(swift, before)
    reshard(swift, after)
    assert listed(swift, proxy) == NAMES
    expected = {}
    for name in NAMES:
        expected.setdefault(place(swift, name, after), set()).add(name)
    assert all_rows(swift) == expected
    count = str(after) if after else None
    assert figures(swift, proxy) == (60, 120, count)


@pytest.mark.parametrize(
    ('before', 'after'),
    [((4, 0), (4, 1)), ((4, 1), (4, 0)), ((4, 1), (3, 2)), ((0, 0), (4, 2))],
)
def test_a_change_of_the_depth_moves_each_row_to_its_place(
    swift, proxy, before, after
):
    create_tree(swift, proxy, *before)
    resharder = change(swift)
    resharder.begin(*after)
    assert listed(swift, proxy) == TREE
    resharder.run()
    assert listed(swift, proxy) == TREE
    present = layout(swift)
    assert present.sharding == after
    expected = {}
    for name in TREE:
        shard = shard_of(name, *after)
        backing = backing_container('c', present.id, shard)
        expected.setdefault(f'/{HIDDEN}/{backing}', set()).add(name)
    assert all_rows(swift) == expected


def test_a_change_of_the_depth_can_be_cancelled(swift, proxy):
    create_tree(swift, proxy, 4, 1)
    before = all_rows(swift)
    change(swift).begin(4, 2)
    resharder = change(swift)
    resharder.cancel()
    resharder.run()
    assert layout(swift).sharding == (4, 1)
    assert all_rows(swift) == before


def test_a_change_to_the_depth_that_it_has_is_refused(swift, proxy):
    create_tree(swift, proxy, 4, 1)
    with pytest.raises(ChangeRefusedError, match='4 shards and depth 1 alre'):
        change(swift).begin(4, 1)


def test_a_change_of_the_depth_is_described(swift, proxy):
    create_tree(swift, proxy, 4, 1)
    change(swift).begin(4, 2)
    told = 'from 4 to 4 shards, from depth 1 to 2 is under way'
    with pytest.raises(ChangeRefusedError, match=told):
        change(swift).begin(8)


def create_tree(swift: FakeSwift, proxy, shards: int, depth: int) -> None:
    """Create the container with a row for each name of TREE."""
    headers = {}
    if shards:
        headers = {
            'X-Container-Shard-Count': str(shards),
            'X-Container-Shard-Depth': str(depth),
        }
    swift.send(proxy, 'PUT', f'/v1{ROOT}', headers)
    for name in TREE:
        place = ROOT
        if shards:
            shard = shard_of(name, shards, depth)
            place = (
                f'/{HIDDEN}/{backing_container("c", layout(swift).id, shard)}'
            )
        swift.put_row(f'{place}/{name}', size=2)


def times(swift: FakeSwift, account: str, container: str) -> dict[str, str]:
    """Return the timestamps of the rows in a database."""
    broker = swift.broker(account, container)
    rows = broker.list_objects_iter(1000, '', None, None, None)
    return {row[0]: row[1] for row in rows}


def all_times(swift: FakeSwift) -> dict[str, str]:
    """Return the timestamps of all rows."""
    found = {}
    for path in all_rows(swift):
        found |= times(swift, *path[1:].split('/'))
    return found


@pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (4, 0)])
def test_rows_keep_their_timestamps(swift, before, after):
    fill(swift, before)
    uploaded = all_times(swift)
    reshard(swift, after)
    assert all_times(swift) == uploaded


@pytest.mark.parametrize('has_filter', [False, True])
def test_rows_that_return_get_an_offset_if_a_tombstone_hides_them(
    swift, has_filter
):
    if has_filter:
        swift.servers.put_filter([0])
    fill(swift)
    uploaded = all_times(swift)
    reshard(swift, 4)
    at = Timestamp.now().normal
    swift.put_row(f'{place(swift, "new", 4)}/new', at=at, size=2)
    reshard(swift, 0)
    returned = all_times(swift)
    assert returned.pop('new') == at
    assert returned.keys() == uploaded.keys()
    assert all(returned[name] > uploaded[name] for name in uploaded)


def test_rows_return_after_a_move_by_a_process_whose_clock_is_ahead(
    swift, proxy, monkeypatch
):
    fill(swift)
    change(swift).begin(4)
    ahead = mock.Mock(wraps=time, time=lambda: time.time() + 3600)
    with monkeypatch.context() as patched:
        patched.setattr(row_pass, 'time', ahead)
        change(swift).run()
    reshard(swift, 0)
    assert listed(swift, proxy) == NAMES


def test_a_change_waits_while_swifts_sharder_splits_the_root(swift, proxy):
    fill(swift, 4)
    resharder = change(swift)
    resharder.begin(0)
    resharder._step()
    broker = swift.broker(ACCOUNT, 'c')
    broker.enable_sharding(Timestamp.now())
    assert broker.set_sharding_state()
    with pytest.raises(BackendError, match='is splitting or shrinking'):
        resharder._step()
    change(swift).cancel()


def test_late_row_of_an_object_that_was_deleted_since_stays_away(swift, proxy):
    fill(swift, 4)
    before, name = Timestamp.now(), 'late'
    late = place(swift, name, 4)
    reshard(swift, 8)
    deleted = Timestamp.now().internal
    at = {'X-Backend-Timestamp': deleted}
    swift.register('HEAD', f'/v1{ROOT}/{name}', 404, at)
    there = f'{place(swift, name, 8)}/{name}'
    swift.direct('DELETE', there, {'X-Timestamp': deleted})
    reshard(swift, 16)
    swift.put_row(f'{late}/{name}', at=before.normal, size=2)
    swift.update_accounts()
    assert listed(swift, proxy) == NAMES


def test_changes_follow_each_other(swift, proxy):
    fill(swift)
    for count in (4, 32, 7, 0, 2):
        reshard(swift, count)
        assert listed(swift, proxy) == NAMES
        assert figures(swift, proxy)[:2] == (60, 120)


def test_the_backing_containers_that_are_not_needed_are_deleted(swift):
    fill(swift, 4)
    for count in (2, 0):
        base = layout(swift)
        shards = [
            backing_container('c', base.id, i) for i in range(base.shards)
        ]
        assert all(swift.exists(HIDDEN, each) for each in shards)
        reshard(swift, count)
        assert not any(swift.exists(HIDDEN, each) for each in shards)


def test_rows_that_move_are_counted_and_late_ones_apart(swift, monkeypatch):
    fill(swift)
    logger, late = Logger(), [f'{ROOT}/late']
    options = MoveOptions(cache_seconds=0, settle_seconds=3600)
    counting = Backend(swift, logger, 4, metrics=logger.metrics)
    resharder = Resharding(Executor(counting, environ(), PATH), options)

    def settle(*_) -> None:
        if late:
            swift.put_row(late.pop())
        else:
            resharder.options = OPTIONS

    monkeypatch.setattr(resharder, '_sleep', settle)
    resharder.begin(4)
    resharder.run()
    assert logger.counts['adopted.late'] == 1
    assert logger.counts['reshard.rows'] == len(NAMES) + 1


def test_the_register_lists_what_changes(swift):
    fill(swift)
    resharder = change(swift)
    register = Register(backend(swift), environ())
    resharder.begin(4)
    assert list(register.changes(ACCOUNT)) == [PATH]
    resharder.run()
    register.remove(PATH)
    assert list(register.changes(ACCOUNT)) == []


def test_the_register_stops_at_a_server_that_ignores_markers(
    swift, monkeypatch
):
    register = Register(backend(swift), environ())
    body = b'[{"name": "c", "hash": ""}]'
    same = Answer(None, '200 OK', HeaderKeyDict(), [body])
    monkeypatch.setattr(register, '_list', lambda *_args: same)
    with pytest.raises(BackendError, match="lists 'c' after 'c'"):
        list(register.changes(ACCOUNT))


def test_the_register_lists_a_change_that_was_dropped_as_it_began(
    swift, monkeypatch
):
    fill(swift)
    register = Register(backend(swift), environ())
    write = Resharding._write

    def write_and_drop(self, *args):
        write(self, *args)
        register.remove(PATH)

    monkeypatch.setattr(Resharding, '_write', write_and_drop)
    change(swift).begin(4)
    assert list(register.changes(ACCOUNT)) == [PATH]


def test_a_register_that_is_lost_keeps_no_change_from_going_on(swift):
    fill(swift)
    change(swift).begin(4)
    for replica in range(swift.container_ring.replica_count):
        swift.lose(REGISTER, ACCOUNT, replica)
    resharder = change(swift)
    resharder._write(layout(swift).moving(time.time()), layout(swift))
    register = Register(backend(swift), environ())
    assert list(register.changes(ACCOUNT)) == [PATH]


def test_a_killed_change_is_carried_on_by_another_process(swift, proxy):
    fill(swift)
    change(swift).begin(4)
    change(swift).run()
    assert listed(swift, proxy) == NAMES
    assert layout(swift).shards == 4
    assert not layout(swift).is_changing


@pytest.mark.parametrize('swift', [3], indirect=True)
@pytest.mark.parametrize(('before', 'after'), [(0, 3), (3, 5), (3, 0)])
def test_a_late_deletion_at_one_replica_of_the_old_place_reaches_the_new_one(
    swift, proxy, before, after
):
    swift.servers.put_filter(range(3))
    fill(swift, before)
    deleted = NAMES[0]
    old_place = place(swift, deleted, before)[1:].split('/')
    resharder = change(swift)
    resharder.begin(after)
    resharder._write(layout(swift).moving(time.time()), layout(swift))
    root = read_root(backend(swift), environ(), PATH)
    target = resharder._target(root, root.record)
    resharder._look_through(target, resharding._sources(target))
    now = Timestamp.now().internal
    swift.broker(*old_place, 1).delete_object(deleted, now)
    resharder.run()
    assert listed(swift, proxy) == NAMES[1:]


@pytest.mark.parametrize('swift', [3], indirect=True)
def test_no_row_moves_while_most_replicas_of_the_root_are_missing(swift):
    fill(swift, 2)
    resharder = change(swift)
    resharder.begin(3)
    resharder._write(layout(swift).moving(time.time()), layout(swift))
    root = read_root(backend(swift), environ(), PATH)
    for replica in range(2):
        swift.lose(ACCOUNT, 'c', replica)
    before = all_rows(swift)
    resharder._checked = 0
    target = resharder._target(root, root.record)
    with pytest.raises(BackendError, match='1 of 3 replicas of the root'):
        resharder._look_through(target, resharding._sources(target)[:-1])
    assert all_rows(swift) == before


@pytest.mark.parametrize('swift', [3], indirect=True)
def test_no_change_begins_after_a_refused_deletion_until_the_next_put(
    swift, proxy
):
    swift.send(proxy, 'PUT', f'/v1{ROOT}')
    swift.put_row(f'{ROOT}/o', replicas=[1, 2])
    assert swift.send(proxy, 'DELETE', f'/v1{ROOT}').status_int == 409
    with pytest.raises(ChangeRefusedError, match='PUT the container first'):
        change(swift).begin(4)
    swift.send(proxy, 'PUT', f'/v1{ROOT}')
    change(swift).begin(4)
    assert layout(swift).shards == 4


@pytest.mark.parametrize('swift', [1], indirect=True)
class TestRowsThatMoveDuringARequest:
    """All rows move at once, before one of the databases is read."""

    @pytest.fixture(autouse=True)
    def _rows_stay(self, monkeypatch):
        """Let rows stay for as long as listings expect them to stay."""
        for module in (row_pass, listing_request):
            monkeypatch.setattr(module, 'STAY_SECONDS', 0.05)

    @pytest.fixture(params=[(0, 3), (3, 7), (7, 3), (3, 0)])
    def moving(self, request, swift) -> Resharding:
        """Return a change that is about to move rows."""
        before, after = request.param
        fill(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        resharder._write(layout(swift).moving(time.time()), layout(swift))
        return resharder

    def places(self, swift) -> list[str]:
        present = layout(swift)
        names = [
            backing_container('c', *present.backing(shard))
            for shard in range(present.backing_count)
        ]
        return [ROOT, *(f'/{HIDDEN}/{name}' for name in names)]

    def move_before(self, swift, resharder, place) -> None:
        def move():
            root = read_root(backend(swift), environ(), PATH)
            target = resharder._target(root, root.record)
            sources = resharding._sources(target)
            assert resharder._look_through(target, sources) > 0

        swift.servers.before(place, move)

    @pytest.mark.parametrize('place', range(11))
    def test_are_listed(self, swift, proxy, moving, place):
        listed(swift, proxy)
        places = self.places(swift)
        self.move_before(swift, moving, places[place % len(places)])
        assert listed(swift, proxy) == NAMES
        assert listed(swift, proxy) == NAMES

    @pytest.mark.parametrize('place', range(11))
    def test_are_counted_at_least_once(self, swift, proxy, moving, place):
        figures(swift, proxy)
        places = self.places(swift)
        self.move_before(swift, moving, places[place % len(places)])
        assert figures(swift, proxy)[0] >= len(NAMES)
        assert figures(swift, proxy)[0] == len(NAMES)


@pytest.mark.parametrize('swift', [1], indirect=True)
@pytest.mark.parametrize(('before', 'after'), [(1, 2), (2, 1), (3, 0)])
def test_a_late_row_that_is_settled_as_the_change_ends_is_listed(
    swift, proxy, before, after, monkeypatch
):
    """A listing has read the new place, but not yet the old one."""
    fill(swift, before)
    resharder = change(swift)
    resharder.begin(after)
    resharder._write(layout(swift).moving(time.time()), layout(swift))
    root = read_root(backend(swift), environ(), PATH)
    target = resharder._target(root, root.record)
    while resharder._look_through(target, resharding._sources(target)):
        pass
    old = place(swift, 'late', before)
    swift.put_row(f'{old}/late', size=2)
    swift.update_accounts()
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', STAY_SECONDS)
    settling = []

    def end_and_settle() -> None:
        sleep(0.05)  # the root and the new place answer
        present = layout(swift)
        resharder._write(present.done(time.time()), present)
        swift.memcached.values.clear()
        arguments = (backend(swift), environ(), PATH, Pace(0))
        settling.append(spawn(settle, *arguments))
        sleep(0.5)  # the row is copied

    swift.servers.before(old, end_and_settle)
    assert 'late' in listed(swift, proxy)
    settling[0].wait()
    assert 'late' in listed(swift, proxy)
    assert swift.rows(HIDDEN, old.rpartition('/')[2]) == {}


@pytest.mark.parametrize('swift', [1], indirect=True)
class TestDelete:
    """A DELETE during a change leaves a tombstone in both places."""

    @pytest.mark.parametrize('phase', ['announced', 'moving', 'returning'])
    @pytest.mark.parametrize(('before', 'after'), [(0, 3), (3, 7), (3, 0)])
    def test_hides_rows_of_either_place(
        self, swift, proxy, before, after, phase
    ):
        fill(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        if phase == 'moving':
            resharder._write(layout(swift).moving(time.time()), layout(swift))
        elif phase == 'returning':
            resharder.cancel()
        for name in NAMES[:5]:
            new = place(swift, name, after)
            swift.put_row(f'{new}/{name}', size=2)
            path = f'/v1{ROOT}/{name}'
            assert swift.send(proxy, 'DELETE', path).status_int == 204
            # The object server's tombstone, where the filter has sent it.
            written = before if phase != 'moving' else after
            target = place(swift, name, written)
            at = {'X-Timestamp': Timestamp.now().internal}
            swift.direct('DELETE', f'{target}/{name}', at)
        assert listed(swift, proxy) == NAMES[5:]
        resharder.run()
        assert listed(swift, proxy) == NAMES[5:]


class TestRowOfADeletedObject:
    """The tombstone is pending on an object server, or a replica missed it."""

    @pytest.fixture
    def deleted(self, swift) -> str:
        fill(swift)
        headers = {'X-Backend-Timestamp': Timestamp.now().internal}
        swift.register('HEAD', f'/v1{ROOT}/{NAMES[7]}', 404, headers)
        return NAMES[7]

    def test_does_not_move_if_objects_are_asked_for(
        self, swift, proxy, deleted
    ):
        options = MoveOptions(0, 0, asks_for_objects=True)
        resharder = change(swift, options)
        resharder.begin(4)
        resharder.run()
        assert listed(swift, proxy) == [n for n in NAMES if n != deleted]

    @pytest.mark.parametrize('swift', [3], indirect=True)
    def test_does_not_move_if_a_replica_lacks_it(self, swift, proxy, deleted):
        at = {'X-Timestamp': Timestamp.now().internal}
        swift.direct('DELETE', f'{ROOT}/{deleted}', at, b'', [1, 2])
        reshard(swift, 4)
        assert listed(swift, proxy) == [n for n in NAMES if n != deleted]


def test_rows_are_written_in_parts_at_the_pace(swift, proxy, monkeypatch):
    fill(swift)
    paid, merged = [], []
    merge_rows = row_mover.merge_rows

    def merge(*args):
        merged.append(len(args[4]))
        return merge_rows(*args)

    monkeypatch.setattr(Pace, 'pay', lambda _pace, rows: paid.append(rows))
    monkeypatch.setattr(row_mover, 'merge_rows', merge)
    resharder = change(swift, MoveOptions(0, 0, rows_per_second=10))
    resharder.begin(2)
    resharder.run()
    assert sum(paid) == 2 * len(NAMES)
    assert sorted(merged) == sorted(paid)
    assert max(paid) == 5
    assert listed(swift, proxy) == NAMES


class TestSweep:
    def test_moves_rows_to_their_shards(self, swift, proxy):
        fill(swift, 4)
        for name in NAMES[:3]:
            other = backing_container(
                'c', layout(swift).id, (shard_of(name, 4) + 1) % 4
            )
            swift.put_row(f'/{HIDDEN}/{other}/{name}', at=1, size=2)
        swift.put_row(f'{ROOT}/stray', size=2)
        assert change(swift).sweep() == 4
        assert change(swift).sweep() == 0
        assert listed(swift, proxy) == [*NAMES, 'stray']
        assert figures(swift, proxy)[0] == 61

    def test_removes_nothing_if_the_layout_changed_while_it_waited_for_room(
        self, swift, proxy, monkeypatch
    ):
        # Waits take no time here, so the record must be checked each time.
        monkeypatch.setattr(resharding, 'CHECK_SECONDS', 0)
        fill(swift, 4)
        swift.put_row(f'{ROOT}/stray', size=2)
        wait_for_room = Throttle._wait_for_room
        waits = []

        def wait(throttle, nodes, rows) -> None:
            waits.append(nodes)
            if len(waits) == 2:  # for the removal, after the copy
                reshard(swift, 0)
            wait_for_room(throttle, nodes, rows)

        monkeypatch.setattr(Throttle, '_wait_for_room', wait)
        with pytest.raises(BackendError, match='another process'):
            change(swift).sweep()
        assert layout(swift).is_plain
        assert listed(swift, proxy) == [*NAMES, 'stray']

    def test_leaves_strays_in_the_root_for_a_while(self, swift, monkeypatch):
        fill(swift, 4)
        swift.put_row(f'{ROOT}/stray', size=2)
        clock = Clock()
        waits = []

        def wait(seconds: float) -> None:
            waits.append((seconds, list(swift.rows(ACCOUNT, 'c'))))
            clock.now += seconds

        monkeypatch.setattr(row_pass, 'time', clock)
        monkeypatch.setattr(row_pass, 'sleep', wait)
        monkeypatch.setattr(row_pass, 'STAY_SECONDS', 3)
        change(swift).sweep()
        assert waits == [(3, ['stray'])]
        assert swift.rows(ACCOUNT, 'c') == {}

    def test_leaves_rows_in_wrong_shards_for_a_while(self, swift, monkeypatch):
        fill(swift, 2)
        wrong = backing_container(
            'c', layout(swift).id, 1 - shard_of('misplaced', 2)
        )
        swift.put_row(f'/{HIDDEN}/{wrong}/misplaced', size=2)
        waits = []
        monkeypatch.setattr(
            row_pass,
            'sleep',
            lambda _: waits.append('misplaced' in swift.rows(HIDDEN, wrong)),
        )
        assert change(swift).sweep() == 1
        assert waits == [True]
        assert 'misplaced' not in swift.rows(HIDDEN, wrong)

    def test_leaves_plain_and_changing_containers_alone(self, swift):
        fill(swift)
        assert change(swift).sweep() == 0
        change(swift).begin(4)
        assert change(swift).sweep() == 0


class TestComplete:
    """Complete a change that was killed after its last record."""

    @pytest.fixture
    def ended(self, swift, monkeypatch) -> list[str]:
        """End a change except for its last steps; return the old shards."""
        fill(swift, 4)
        former = layout(swift)
        with monkeypatch.context() as patched:
            patched.setattr(Resharding, '_clean_up', killed)
            with pytest.raises(KeyboardInterrupt):
                reshard(swift, 2)
        assert not layout(swift).is_changing
        return [backing_container('c', former.id, i) for i in range(4)]

    def test_deletes_the_dropped_shards(self, swift, ended):
        assert all(swift.exists(HIDDEN, each) for each in ended)
        change(swift).complete()
        assert not any(swift.exists(HIDDEN, each) for each in ended)

    def test_is_done_by_a_process_that_begins_the_same_change(
        self, swift, ended
    ):
        reshard(swift, 2)
        assert not any(swift.exists(HIDDEN, each) for each in ended)

    def test_switches_the_sync_of_a_container_on_if_it_is_begun_again(
        self, swift, proxy, monkeypatch
    ):
        headers = {
            'X-Container-Shard-Count': '2',
            'X-Container-Sync-To': 'http://127.0.0.1/v1/a/c',
            'X-Container-Sync-Key': 'key',
        }
        owner = {'swift_owner': True}
        swift.send(proxy, 'PUT', f'/v1{ROOT}', headers, owner)
        with monkeypatch.context() as patched:
            patched.setattr(Resharding, '_clean_up', killed)
            with pytest.raises(KeyboardInterrupt):
                reshard(swift, 0)
        assert syncs_to(swift) == ''
        reshard(swift, 0)
        assert syncs_to(swift) == 'http://127.0.0.1/v1/a/c'

    def test_waits_for_nothing_if_nothing_is_left(self, swift, monkeypatch):
        fill(swift, 4)
        reshard(swift, 2)
        waits = []
        monkeypatch.setattr(executor, 'sleep', waits.append)
        change(swift).complete()
        assert waits == []

    @pytest.mark.parametrize('swift', [3], indirect=True)
    def test_does_not_wait_for_a_replica_that_is_away(self, swift, ended):
        swift.servers.away.add('d2')
        with pytest.raises(BackendError):
            change(swift).complete()
        assert all(swift.exists(HIDDEN, each) for each in ended)

    def test_does_not_wait_for_a_replica_that_lacks_the_record(
        self, swift, ended, monkeypatch
    ):
        root = replace(read_root(backend(swift), environ(), PATH), replicas=9)
        monkeypatch.setattr(executor, 'read_root', lambda *_args: root)
        with pytest.raises(BackendError, match='of 9 replicas of the root'):
            change(swift).complete()
        assert all(swift.exists(HIDDEN, each) for each in ended)

    def test_leaves_a_change_under_way_alone(self, swift, ended):
        change(swift).begin(3)
        change(swift).complete()
        assert layout(swift).phase == 'announced'
        assert all(swift.exists(HIDDEN, each) for each in ended)


class TestWaits:
    """How long changes wait for others that move rows the other way."""

    #: Longer than any other wait.
    TIMEOUT = 77

    @pytest.fixture
    def waits(self, swift, monkeypatch) -> list[float]:
        waits = []
        monkeypatch.setattr(executor, 'sleep', waits.append)
        monkeypatch.setattr(swift, 'node_timeout', self.TIMEOUT)
        return waits

    def is_long(self, waits) -> bool:
        return max(waits) > self.TIMEOUT

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 8), (4, 0)])
    def test_are_short_for_changes(self, swift, waits, before, after):
        fill(swift, before)
        reshard(swift, after)
        assert not self.is_long(waits)

    def test_are_long_if_strays_of_a_root_may_be_on_their_way(
        self, swift, proxy, waits
    ):
        fill(swift, 4)
        swift.put_row(f'{ROOT}/stray', size=2)
        reshard(swift, 0)
        assert self.is_long(waits)
        assert listed(swift, proxy) == [*NAMES, 'stray']

    @pytest.mark.parametrize('swift', [3], indirect=True)
    def test_are_long_if_a_silent_replica_may_have_such_a_stray(
        self, swift, waits, monkeypatch
    ):
        fill(swift, 4)
        lists_nothing = resharding.lists_nothing

        def silent_for_a_moment(*args) -> bool:
            swift.servers.away.add('d2')
            try:
                return lists_nothing(*args)
            finally:
                swift.servers.away.discard('d2')

        monkeypatch.setattr(resharding, 'lists_nothing', silent_for_a_moment)
        reshard(swift, 0)
        assert self.is_long(waits)

    def test_are_long_for_changes_that_were_cancelled(self, swift, waits):
        fill(swift)
        change(swift).begin(4)
        change(swift).cancel()
        change(swift).run()
        assert self.is_long(waits)


class TestBeforeAPhaseBegins:
    """Every proxy must know the record of the phase before (I1)."""

    CACHE_SECONDS = 60

    @pytest.fixture
    def announced(self, swift) -> Resharding:
        fill(swift)
        options = MoveOptions(self.CACHE_SECONDS, 0, sync_seconds=0)
        resharder = change(swift, options)
        resharder.begin(4)
        return resharder

    def test_caches_of_the_record_before_expire(
        self, swift, announced, monkeypatch
    ):
        waited = Counter()

        def wait(seconds: float) -> None:
            waited[layout(swift).phase] += seconds

        monkeypatch.setattr(executor, 'sleep', wait)
        announced.run()
        assert waited.keys() == {ANNOUNCED, MOVING, DONE}
        assert min(waited.values()) >= self.CACHE_SECONDS

    def test_all_replicas_of_the_root_have_its_record(
        self, swift, announced, monkeypatch
    ):
        waits, slow_too, holders = [], [], iter([0, 0, 0])

        def read(*args) -> RootState:
            slow_too.append(args[-1])
            root = read_root(*args)
            return replace(root, holders=next(holders, root.replicas))

        monkeypatch.setattr(executor, 'sleep', waits.append)
        monkeypatch.setattr(executor, 'read_root', read)
        announced._step()
        # The step itself reads the root once.
        assert waits[:3] == [POLL_SECONDS, POLL_SECONDS, 60 + 5]
        assert slow_too[1:4] == [True, True, True]


def killed(*_args) -> None:
    raise KeyboardInterrupt


def syncs_to(swift: FakeSwift) -> str:
    """Return where container-sync sends the objects of the root."""
    metadata = swift.broker(ACCOUNT, 'c').metadata
    return metadata['X-Container-Sync-To'][0]


@pytest.mark.parametrize('swift', [1], indirect=True)
class TestAfterAFailure:
    @pytest.fixture
    def moving(self, swift) -> Resharding:
        """Return a change whose first look fails after it has moved rows."""
        fill(swift)
        resharder = change(swift)
        resharder.begin(4)
        resharder._write(layout(swift).moving(time.time()), layout(swift))
        look_through = resharder._look_through

        def fail(*_args) -> None:
            resharder._look_through = look_through
            resharder._note_moved(20)
            raise BackendError(None, 503, 'away')

        resharder._look_through = fail
        return resharder

    def test_the_problem_is_shown_until_rows_have_moved(self, moving):
        seen = []
        moving.report = lambda p: seen.append((p.phase, p.problem))
        moving.run()
        assert ('waiting to move', 'away') in seen
        assert ('moving', 'away') in seen
        assert ('settling', 'away') not in seen
        assert seen[-1] == ('done', '')

    def test_the_rows_that_have_moved_are_of_the_total(self, swift, moving):
        root = read_root(backend(swift), environ(), PATH)
        with pytest.raises(BackendError):
            moving._move(root)
        moving._move(root)
        assert moving.progress.moved == moving.progress.total == 80

    def test_rows_that_move_back_are_counted_anew(self, swift, moving):
        with pytest.raises(BackendError):
            moving._move(read_root(backend(swift), environ(), PATH))
        change(swift).cancel()
        moving._move(read_root(backend(swift), environ(), PATH))
        assert (moving.progress.moved, moving.progress.total) == (0, 0)

    def test_the_time_to_settle_goes_on(self, swift, monkeypatch):
        fill(swift)
        resharder = change(swift, MoveOptions(0, 300))
        resharder.begin(4)
        resharder._write(layout(swift).moving(time.time()), layout(swift))
        monkeypatch.setattr(executor, 'time', clock := Clock())

        def sleep(seconds: float, _layout) -> None:
            clock.now += seconds
            if clock.now == 200:
                raise BackendError(None, 503, 'away')

        monkeypatch.setattr(resharder, '_sleep', sleep)
        root = read_root(backend(swift), environ(), PATH)
        with pytest.raises(BackendError):
            resharder._move(root)
        resharder._move(root)
        assert clock.now == 300


class Clock:
    """The module `time` with a clock that tests set."""

    now = 0.0
    time = staticmethod(time.time)

    def monotonic(self) -> float:
        return self.now


class TestSeveralMovers:
    def test_one_that_is_late_removes_nothing_from_the_root(
        self, swift, monkeypatch
    ):
        """By then, listings no longer read rows in the root."""
        monkeypatch.setattr(row_pass, 'STAY_SECONDS', STAY_SECONDS)
        fill(swift)
        change(swift).begin(4)
        late = change(swift)
        late._step()
        record = layout(swift)
        root = late._check_record(record)
        change(swift).run()
        swift.put_row(f'{ROOT}/stray', size=2)
        with pytest.raises(resharding._RecordChangedError):
            late._look_through(late._target(root, record), [None])
        assert list(swift.rows(ACCOUNT, 'c')) == ['stray']


class TestTheSameChangeTwice:
    """Another process announces a change at the same time."""

    @pytest.fixture
    def late(self, swift, monkeypatch) -> Resharding:
        """Return a change that begins before the other announces 4 shards."""
        fill(swift)
        put_shards = Resharding._put_shards

        def announce_and_put(self, target):
            monkeypatch.setattr(Resharding, '_put_shards', put_shards)
            change(swift).begin(4)
            put_shards(self, target)

        monkeypatch.setattr(Resharding, '_put_shards', announce_and_put)
        return change(swift)

    def test_is_joined_if_it_is_the_same(self, swift, proxy, late):
        late.begin(4)
        late.run()
        assert layout(swift).sharding == (4, 0)
        assert listed(swift, proxy) == NAMES
        assert len(swift.containers(HIDDEN)) == 4

    def test_is_not_joined_if_it_is_another(self, swift, late):
        with pytest.raises(BackendError, match='another process has changed'):
            late.begin(8)
        assert layout(swift).shards == 4


class TestCancel:
    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (9, 4)])
    def test_of_an_announced_change_goes_back(
        self, swift, proxy, before, after
    ):
        fill(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        resharder.cancel()
        resharder.run()
        assert listed(swift, proxy) == NAMES
        assert layout(swift).shards == before

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (9, 4)])
    def test_of_a_moving_change_goes_back(
        self, swift, proxy, before, after, monkeypatch
    ):
        fill(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        look_through = Resharding._look_through

        def move_and_cancel(self, *args):
            moved = look_through(self, *args)
            monkeypatch.setattr(Resharding, '_look_through', look_through)
            change(swift).cancel()
            return moved

        monkeypatch.setattr(Resharding, '_look_through', move_and_cancel)
        resharder.run()
        assert listed(swift, proxy) == NAMES
        assert layout(swift).shards == before
        expected = {}
        for name in NAMES:
            expected.setdefault(place(swift, name, before), set()).add(name)
        assert all_rows(swift) == expected

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (9, 4)])
    def test_is_not_disturbed_by_a_mover_that_was_paused(
        self, swift, proxy, before, after, monkeypatch
    ):
        """The mover removes copied rows after they have moved back."""
        fill(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        merge_rows = row_mover.merge_rows
        late = []

        def pause(backend, env, place, policy_index, rows, *rest) -> bool:
            if not rows[0]['deleted']:
                return merge_rows(
                    backend, env, place, policy_index, rows, *rest
                )
            late.append((place, policy_index, rows))
            monkeypatch.setattr(row_mover, 'merge_rows', merge_rows)
            change(swift).cancel()
            raise BackendError(None, 503, 'it is paused')

        monkeypatch.setattr(row_mover, 'merge_rows', pause)
        resharder.run()
        assert layout(swift).shards == before
        for each in late:
            merge_rows(backend(swift), environ(), *each)
        assert late
        assert listed(swift, proxy) == NAMES

    def test_of_nothing_is_refused(self, swift):
        fill(swift, 4)
        with pytest.raises(ChangeRefusedError, match='not changing'):
            change(swift).cancel()


#: The most rows a second of dry runs: all rows take a minute.
RATE = len(NAMES) // 60


class TestDryRun:
    """A dry run takes the decisions of the change, and does nothing."""

    def dry_run(self, swift: FakeSwift, shards: int) -> DryRun:
        executor = DryRun(backend(swift), environ(), PATH, RATE)
        planned = Resharding(executor, MoveOptions())
        planned.begin(shards)
        planned.run_dry()
        return executor

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (4, 0)])
    def test_notes_the_records_that_the_change_writes(
        self, swift, before, after
    ):
        class Recording(Executor):
            def write_record(self, layout) -> None:
                written.append(layout.phase or 'done')
                super().write_record(layout)

        written = []
        fill(swift, before)
        planned = self.dry_run(swift, after)
        executor = Recording(backend(swift), environ(), PATH)
        resharder = Resharding(executor, OPTIONS)
        resharder.begin(after)
        resharder.run()
        told = 'write the layout record: '
        records = [text for _, text in planned.steps() if told in text]
        assert records == [told + phase for phase in written]

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 9), (4, 0)])
    def test_only_reads(self, swift, before, after):
        fill(swift, before)
        rows, record = all_rows(swift), layout(swift)
        swift.servers.asked.clear()
        self.dry_run(swift, after)
        methods = {method for _, method, _ in swift.servers.asked}
        assert methods <= {'GET', 'HEAD', METHOD}
        assert (all_rows(swift), layout(swift)) == (rows, record)

    def test_notes_when_each_step_would_be_taken(self, swift):
        fill(swift, 4)
        planned = self.dry_run(swift, 2)
        moving = len(NAMES) / RATE
        assert planned.rows == len(NAMES)
        assert planned.steps() == [
            (0, 'create 2 shards'),
            (0, 'write the layout record: announced'),
            (65, 'write the layout record: moving'),
            (130, f'move about {len(NAMES)} rows'),
            (130 + moving + 86400, 'write the layout record: done'),
            (195 + moving + 86400, 'delete 4 shards of the former layout'),
        ]

    def test_of_a_change_under_way_notes_what_is_left(self, swift):
        fill(swift, 4)
        change(swift).begin(2)
        resharder = change(swift)
        resharder._step()
        texts = [text for _, text in self.dry_run(swift, 2).steps()]
        assert texts == [
            f'move about {len(NAMES)} rows',
            'write the layout record: done',
            'delete 4 shards of the former layout',
        ]

    @pytest.mark.parametrize('seconds', [0, 0.1, 60.1, 1e12])
    def test_ends_however_long_a_change_settles(self, swift, seconds):
        fill(swift, 4)
        executor = DryRun(backend(swift), environ(), PATH, 11)
        planned = Resharding(executor, MoveOptions(60, seconds))
        planned.begin(2)
        planned.run_dry()
        assert executor.now() >= seconds

    def test_of_last_steps_moves_no_rows(self, swift):
        fill(swift, 4)
        earlier = backing_container('c', OLD_ID, 0)
        swift.put_container(f'/{HIDDEN}/{earlier}')
        swift.update_accounts()
        planned = self.dry_run(swift, 4)
        assert planned.steps() == [
            (65, 'delete 1 shards of the former layout')
        ]
        assert not planned.moves

    def test_is_refused_as_the_change_is(self, swift):
        fill(swift, 4)
        with pytest.raises(ChangeRefusedError, match='4 shards already'):
            self.dry_run(swift, 4)


class TestRefused:
    @pytest.mark.parametrize(
        ('account', 'container'),
        [
            (HIDDEN, 'c.0123456789abc.0'),
            ('.expiring_objects', '1700000000'),
            (ACCOUNT, '\0mine\0c'),
        ],
    )
    def test_containers_that_the_filter_does_not_shard(
        self, swift, account, container
    ):
        swift.put_account(account)
        swift.put_container(f'/{account}/{container}')
        path = Path('v1', account, container)
        refused = Resharding(
            Executor(backend(swift), environ(), path), OPTIONS
        )
        with pytest.raises(ChangeRefusedError, match='it is a shard, or'):
            refused.begin(4)

    def test_missing_container(self, swift):
        with pytest.raises(BackendError, match='0 of . replicas of the root'):
            change(swift).begin(4)

    def test_same_count(self, swift):
        fill(swift, 4)
        with pytest.raises(ChangeRefusedError, match='4 shards already'):
            change(swift).begin(4)

    def test_another_change_is_under_way(self, swift):
        fill(swift)
        change(swift).begin(4)
        with pytest.raises(ChangeRefusedError, match='from 0 to 4 shards is'):
            change(swift).begin(8)
