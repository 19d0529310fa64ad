# SPDX-License-Identifier: Apache-2.0
"""Changes of layout of a root that Swift's own sharder has split.

The sharder itself does not run: these tests set the shard ranges and rows in
the databases as it leaves them, in orders of events that are rare.
"""

import json
import time
from collections.abc import Callable

import pytest
from swift.common.swob import Request
from swift.common.utils import ShardRange, Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.containers import LOGICAL_HEADER, BackendError
from shardmw.backend.requests import Backend
from shardmw.backend.split_roots import (
    CALM_SECONDS,
    Range,
    SplitRoot,
    split_root,
)
from shardmw.core.layout import id_of_time
from shardmw.core.paths import Path, Place
from shardmw.core.placement import backing_container
from shardmw.reshard import executor
from shardmw.reshard.executor import Executor
from shardmw.reshard.late_rows import settle
from shardmw.reshard.resharding import (
    RETRY_SECONDS,
    ChangeRefusedError,
    MoveOptions,
    Resharding,
)
from shardmw.reshard.row_pass import Pace
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    Memcached,
    fake_swift,
    filtered,
)

REPLICAS = 3
NATIVE = '.shards_AUTH_test'
NAMES = [f'n{i:02}' for i in range(20)]
PATH = Path('v1', ACCOUNT, 'c')
ROOT = PATH.place
LOW, HIGH, FORMER = (Place(NATIVE, f'c-{i}') for i in ('low', 'high', 'old'))
#: The last name of the lower range.
BOUND = 'n09'
OPTIONS = MoveOptions(cache_seconds=0, settle_seconds=0, sync_seconds=0)


def ranges(at: float, bound: str = BOUND, **changes: object) -> list:
    """Return the shard ranges of the root.

    :param at: when they were made
    :param changes: values of the first range
    """
    made = Timestamp(at)
    low = {'state': ShardRange.ACTIVE, 'lower': '', 'upper': bound, **changes}
    high = {'state': ShardRange.ACTIVE, 'lower': bound, 'upper': ''}
    return [
        ShardRange(str(place), made, state_timestamp=made, **values)
        for place, values in ((LOW, low), (HIGH, high))
    ]


def shrinking() -> ShardRange:
    """Return the lower range while it shrinks."""
    return ranges(time.time(), state=ShardRange.SHRINKING)[0]


def merge(swift: FakeSwift, *some: ShardRange, replicas=range(REPLICAS)):
    for i in replicas:
        swift.broker(*ROOT, i).merge_shard_ranges(list(some))


def split(swift: FakeSwift, place: Place, *some: ShardRange) -> None:
    """Split all replicas of a container into ranges."""
    for i in range(REPLICAS):
        broker = swift.broker(*place, i)
        broker.merge_shard_ranges(list(some))
        broker.enable_sharding(Timestamp.now())
        assert broker.set_sharding_state()
        assert broker.set_sharded_state()


@pytest.fixture
def swift(monkeypatch):
    """Swift with a container that was split long ago."""
    with fake_swift(REPLICAS) as swift:
        monkeypatch.setattr(
            executor,
            'sleep',
            lambda seconds: seconds == RETRY_SECONDS and report(swift),
        )
        long_ago = time.time() - 2 * CALM_SECONDS
        swift.send(filtered(swift), 'PUT', PATH.to_wsgi())
        for place in (LOW, HIGH):
            swift.put_container(f'/{place}')
        for name in NAMES:
            place = LOW if name <= BOUND else HIGH
            swift.put_row(f'/{place}/{name}', at=long_ago)
        split(swift, ROOT, *ranges(long_ago))
        yield swift


@pytest.fixture
def collapsed(monkeypatch):
    """Swift with a container whose ranges were shrunk into it long ago.

    Swift has reclaimed the ranges since.
    """
    with fake_swift(REPLICAS) as swift:
        monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
        swift.send(filtered(swift), 'PUT', PATH.to_wsgi())
        split(swift, ROOT)
        yield swift


def report(swift: FakeSwift) -> None:
    """Report how many rows shard containers have, as Swift's sharder does."""
    for i in range(REPLICAS):
        broker = swift.broker(*ROOT, i)
        some = broker.get_shard_ranges()
        for each in some:
            count = len(swift.rows(each.account, each.container, i))
            each.update_meta(count, count)
        broker.merge_shard_ranges(some)


def environ() -> dict:
    return Request.blank('/').environ


def backend(swift: FakeSwift) -> Backend:
    return Backend(swift, Logger(), 4)


def change(swift: FakeSwift) -> Resharding:
    return Resharding(Executor(backend(swift), environ(), PATH), OPTIONS)


def reshard(swift: FakeSwift, shards: int) -> None:
    resharder = change(swift)
    resharder.begin(shards)
    resharder.run()


def asked(swift: FakeSwift) -> SplitRoot:
    return split_root(backend(swift), environ(), ROOT)


def listed(swift: FakeSwift) -> list[str]:
    """Return the names that a proxy without a cache lists."""
    swift.memcached = Memcached()
    resp = swift.send(
        filtered(swift), 'GET', PATH.to_wsgi(), query='format=json'
    )
    assert resp.status_int == 200, resp.status
    return [row['name'] for row in json.loads(resp.body)]


def rows(swift: FakeSwift, place: Place) -> list[list[str]]:
    return [sorted(swift.rows(*place, i)) for i in range(REPLICAS)]


def asked_for(swift: FakeSwift) -> set[str]:
    """Return the names of the objects that were asked for."""
    prefix = f'{PATH.to_wsgi()}/'
    return {
        path.removeprefix(prefix)
        for method, path in swift.sent('HEAD')
        if path.startswith(prefix)
    }


def delete_object(swift: FakeSwift, name: str) -> Timestamp:
    """Have the object servers know of a deletion."""
    at = Timestamp.now()
    headers = {'X-Backend-Timestamp': at.internal}
    swift.register('HEAD', f'{PATH.to_wsgi()}/{name}', 404, headers)
    return at


def retire(swift: FakeSwift, place: Place) -> None:
    """Have all replicas of a root know of a range that was split."""
    swift.put_container(f'/{place}')
    long_ago = Timestamp(time.time() - 2 * CALM_SECONDS)
    gone = ShardRange(
        str(place),
        long_ago,
        state=ShardRange.SHARDED,
        state_timestamp=long_ago,
        deleted=1,
    )
    merge(swift, gone)


class TestRanges:
    def test_of_a_collapsed_root_are_none(self, collapsed):
        assert asked(collapsed) == SplitRoot(ROOT, (), frozenset(), 0)
        assert asked(collapsed).places == (ROOT,)

    def test_are_those_that_all_replicas_have(self, swift):
        retire(swift, FORMER)
        found = asked(swift)
        assert found.ranges == (Range('', BOUND, LOW), Range(BOUND, '', HIGH))
        assert found.former == {FORMER}
        assert found.places == (HIGH, LOW, FORMER, ROOT)
        assert found.is_calm

    @pytest.mark.parametrize(
        ('name', 'place'),
        [('', LOW), ('a', LOW), (BOUND, LOW), ('n09x', HIGH), ('☃', HIGH)],
    )
    def test_have_the_names_up_to_their_upper_bounds(self, swift, name, place):
        assert asked(swift).place_of(name) == place

    @pytest.mark.parametrize(
        ('state', 'told'),
        [
            (ShardRange.FOUND, 'found .*ranges enable'),
            (ShardRange.CREATED, 'created .*run container-replicator'),
            (ShardRange.CLEAVED, 'cleaved'),
            (ShardRange.SHARDING, 'sharding'),
            (ShardRange.SHRINKING, 'shrinking'),
        ],
    )
    def test_of_one_replica_that_change_have_to_wait(self, swift, state, told):
        merge(swift, ranges(time.time(), state=state)[0], replicas=[2])
        with pytest.raises(BackendError, match=f'ranges are {told}'):
            asked(swift)

    def test_that_differ_have_to_wait(self, swift):
        merge(swift, *ranges(time.time(), bound='n04'), replicas=[1])
        with pytest.raises(BackendError, match='different shard ranges'):
            asked(swift)

    def test_with_a_gap_have_to_wait(self, swift):
        merge(swift, ranges(time.time(), bound='n04')[0])
        with pytest.raises(BackendError, match='gaps .*repair'):
            asked(swift)

    def test_of_a_replica_that_is_not_split_yet_have_to_wait(self, swift):
        swift.lose(*ROOT, 0)
        swift.put_container(f'/{ROOT}', replicas=[0])
        with pytest.raises(BackendError, match='are sharded, unsharded'):
            asked(swift)

    def test_of_a_replica_that_does_not_answer_have_to_wait(self, swift):
        swift.servers.away.add('d1')
        with pytest.raises(BackendError, match='2 of 3 replicas of'):
            asked(swift)


class TestAChange:
    @pytest.mark.parametrize('has_filter', [False, True])
    def test_moves_the_rows_of_all_ranges(self, swift, has_filter):
        if has_filter:
            swift.servers.put_filter(range(REPLICAS))
        reshard(swift, 4)
        assert rows(swift, LOW) == rows(swift, HIGH) == [[], [], []]
        assert listed(swift) == NAMES
        assert asked_for(swift) == set()

    def test_can_go_back(self, swift):
        for shards in (4, 7, 0):
            reshard(swift, shards)
            assert listed(swift) == NAMES
        assert rows(swift, LOW) == [NAMES[:10]] * REPLICAS
        assert rows(swift, HIGH) == [NAMES[10:]] * REPLICAS

    def test_can_be_cancelled(self, swift):
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        on_update(swift, lambda: merge(swift, shrinking()))
        with pytest.raises(BackendError, match='shrinking'):
            resharder._step()
        merge(swift, *ranges(time.time() + 1))
        resharder.cancel()
        resharder.run()
        assert listed(swift) == NAMES
        assert rows(swift, LOW) == [NAMES[:10]] * REPLICAS

    def test_is_refused_while_ranges_change(self, swift):
        merge(swift, shrinking())
        with pytest.raises(ChangeRefusedError, match='shrinking'):
            change(swift).begin(4)

    def test_asks_for_the_objects_of_ranges_that_have_just_changed(
        self, swift
    ):
        """The tombstone went to another container, by an old cache."""
        merge(swift, *ranges(time.time()))
        delete_object(swift, NAMES[3])
        reshard(swift, 4)
        assert asked_for(swift) == set(NAMES)
        assert listed(swift) == [n for n in NAMES if n != NAMES[3]]

    @pytest.mark.parametrize('place', [FORMER, HIGH, ROOT])
    def test_asks_for_the_objects_of_rows_in_the_wrong_container(
        self, swift, place
    ):
        retire(swift, FORMER)
        split(swift, FORMER, *ranges(time.time()))
        for name in ('late', 'gone'):
            swift.put_row(f'/{place}/{name}', at=time.time() - 9)
        delete_object(swift, 'gone')
        reshard(swift, 4)
        assert listed(swift) == ['late', *NAMES]
        assert rows(swift, place) == [[], [], []]
        assert asked_for(swift) == {'late', 'gone'}

    @pytest.mark.parametrize('place', [LOW, FORMER])
    @pytest.mark.parametrize('how', ['sweep', 'settle'])
    def test_is_followed_by_moves_of_late_rows(self, swift, place, how):
        retire(swift, FORMER)
        split(swift, FORMER, *ranges(time.time()))
        reshard(swift, 4)
        swift.put_row(f'/{place}/a-late', at=time.time() - 9)
        if how == 'sweep':
            change(swift).sweep()
        else:
            settle(backend(swift), environ(), PATH, Pace(0))
        assert rows(swift, place) == [[], [], []]
        assert listed(swift) == ['a-late', *NAMES]

    def test_waits_for_a_former_range_that_still_hands_rows_over(self, swift):
        resharder = change(swift)
        resharder.begin(4)
        retire(swift, FORMER)
        resharder._step()
        with pytest.raises(BackendError, match='not all replicas are sharded'):
            resharder._step()
        assert rows(swift, LOW) == [NAMES[:10]] * REPLICAS

    def test_waits_until_the_sharder_has_reported_that_no_rows_are_left(
        self, swift
    ):
        report(swift)
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        with pytest.raises(BackendError, match='report .* are empty'):
            resharder._step()
        assert listed(swift) == NAMES
        report(swift)
        resharder._step()
        assert listed(swift) == NAMES

    def test_back_waits_until_the_sharder_has_reported_rows(self, swift):
        """Until then, Swift would delete the container with its rows."""
        reshard(swift, 4)
        resharder = change(swift)
        resharder.begin(0)
        resharder._step()
        with pytest.raises(BackendError, match='report .* have rows'):
            resharder._step()
        assert delete(swift) == 409
        report(swift)
        resharder._step()
        assert delete(swift) == 409
        assert listed(swift) == NAMES

    @pytest.mark.parametrize('place', [FORMER, ROOT])
    def test_back_survives_tombstones_that_the_sharder_brings_later(
        self, swift, place
    ):
        """Rows had moved out of a container in which they were misplaced."""
        retire(swift, FORMER)
        split(swift, FORMER, *ranges(time.time()))
        swift.put_row(f'/{place}/a-late', at=time.time() - 9)
        for shards in (4, 0):
            reshard(swift, shards)
        bring_rows(swift, place, LOW)
        assert listed(swift) == ['a-late', *NAMES]

    def test_of_a_collapsed_root_survives_tombstones_that_come_later(
        self, collapsed
    ):
        retire(collapsed, FORMER)
        split(collapsed, FORMER, *ranges(time.time()))
        collapsed.put_row(f'/{FORMER}/a-late', at=time.time() - 9)
        for shards in (4, 0):
            reshard(collapsed, shards)
        bring_rows(collapsed, FORMER, ROOT)
        assert listed(collapsed) == ['a-late']

    def test_waits_if_a_collapsed_root_is_split_again(self, collapsed):
        collapsed.put_row(f'/{ROOT}/name', at=time.time() - 9)
        resharder = change(collapsed)
        resharder.begin(4)
        resharder._step()
        on_update(collapsed, lambda: merge(collapsed, shrinking()))
        with pytest.raises(BackendError, match='shrinking'):
            resharder._step()
        assert rows(collapsed, ROOT) == [['name']] * REPLICAS

    @pytest.mark.parametrize(('before', 'after'), [(0, 4), (4, 0)])
    def test_removes_no_row_if_a_range_has_changed_since_it_was_copied(
        self, swift, before, after
    ):
        """The copy, or the tombstone, would be where no row is looked for."""
        if before:
            reshard(swift, before)
        resharder = change(swift)
        resharder.begin(after)
        resharder._step()
        on_update(swift, lambda: merge(swift, shrinking()))
        with pytest.raises(BackendError, match='shrinking'):
            resharder._step()
        left = [name for place in places(swift, before) for name in place]
        assert sorted(left) == NAMES
        merge(swift, *ranges(time.time() + 1))
        resharder.run()
        assert listed(swift) == NAMES

    def test_leaves_rows_in_shards_if_a_container_was_split_in_its_database(
        self, swift
    ):
        """An operator has split it: the root does not know of it yet."""
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        on_update(swift, lambda: merge(swift, shrinking()))
        with pytest.raises(BackendError, match='shrinking'):
            resharder._step()
        merge(swift, *ranges(time.time() + 1))
        resharder.cancel()
        before = places(swift, 4)
        assert any(before)
        for place in (LOW, HIGH):
            split(swift, place, *ranges(time.time(), bound='n04'))
        with pytest.raises(BackendError, match=f'has split {NATIVE}'):
            resharder._step()
        assert places(swift, 4) == before

    def test_waits_while_a_former_range_has_no_container(self, swift):
        """Its daemons forget it sooner than the root does."""
        retire(swift, FORMER)
        for i in range(REPLICAS):
            swift.lose(*FORMER, i)
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        with pytest.raises(BackendError, match=f'0 of 3 .* list {FORMER}'):
            resharder._step()

    def test_copies_tombstones_once_the_sharder_has_reported(
        self, swift, monkeypatch
    ):
        """A step that waits for the report is repeated as a whole."""
        done = []
        report(swift)
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        monkeypatch.setattr(
            resharder.executor,
            'forward_tombstones',
            lambda *_: done.append('tombstones'),
        )
        with pytest.raises(BackendError, match='has yet to report'):
            resharder._step()
        assert done == []
        report(swift)
        resharder._step()
        assert done == ['tombstones']


class TestARootThatTheSharderBeginsToSplit:
    """While rows go back to it, and a replica is not heard."""

    @pytest.fixture
    def plain(self, monkeypatch):
        with fake_swift(REPLICAS) as swift:
            monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
            swift.send(filtered(swift), 'PUT', PATH.to_wsgi())
            yield swift

    @pytest.mark.parametrize('is_limited', [False, True])
    def test_gets_no_rows_that_it_does_not_list(
        self, plain, monkeypatch, is_limited
    ):
        resharder = change(plain)
        resharder.begin(4)
        resharder._step()
        root = resharder.executor.read_root()
        target = resharder._target(root, root.record)
        for name in NAMES:
            place = target.place_of(name)
            plain.put_row(f'/{place}/{name}', at=time.time() - 99)
        resharder.cancel()

        def begin_to_split():
            broker = plain.broker(*ROOT, 0)
            some = ranges(time.time(), state=ShardRange.CREATED)
            broker.merge_shard_ranges(some)
            broker.enable_sharding(Timestamp.now())
            assert broker.set_sharding_state()
            if is_limited:
                monkeypatch.setattr(
                    plain,
                    'error_limited',
                    lambda node: node['device'] == 'd0',
                    raising=False,
                )

        before_update(plain, begin_to_split)
        with pytest.raises(BackendError, match=f'has split {ROOT}'):
            resharder._step()
        left = [rows(plain, target.place_in(shard)) for shard in range(4)]
        assert sorted(sum((each[0] for each in left), [])) == NAMES


def empty(swift: FakeSwift, place: Place) -> None:
    """Delete all rows of all replicas of a container."""
    for i in range(REPLICAS):
        broker = swift.broker(*place, i)
        for row in broker.get_objects():
            broker.delete_object(row['name'], Timestamp.now().internal)


def places_that_may_redirect(swift: FakeSwift) -> dict[Place, str]:
    """Record where rows are deleted, and if servers may redirect that."""
    servers, call, found = swift.servers, swift.servers._call, {}

    def called(port, method, path, headers, body):
        if method == 'DELETE':
            place = Place(*path.split('/')[3:5])
            found[place] = dict(headers)['X-Backend-Accept-Redirect']
        return call(port, method, path, headers, body)

    servers._call = called
    return found


def delete(swift: FakeSwift) -> int:
    """Return the status of a client's DELETE of the container."""
    resp = swift.send(filtered(swift), 'DELETE', PATH.to_wsgi())
    return resp.status_int


def bring_rows(swift: FakeSwift, source: Place, place: Place) -> None:
    """Merge misplaced rows and tombstones, as Swift's sharder does."""
    for i in range(REPLICAS):
        broker = swift.broker(*source, i)
        found = broker.get_objects(include_deleted=None)
        assert found
        swift.broker(*place, i).merge_items(found)


def on_update(swift: FakeSwift, event: Callable[[], None]) -> None:
    """Call a function after the first rows were copied."""
    servers, call = swift.servers, swift.servers._call
    events = [event]

    def called(port, method, *args):
        answer = call(port, method, *args)
        if method == 'UPDATE' and events:
            events.pop()()
        return answer

    servers._call = called


def before_update(swift: FakeSwift, event: Callable[[], None]) -> None:
    """Call a function before the first rows are copied."""
    servers, call = swift.servers, swift.servers._call
    events = [event]

    def called(port, method, *args):
        if method == 'UPDATE' and events:
            events.pop()()
        return call(port, method, *args)

    servers._call = called


def places(swift: FakeSwift, shards: int) -> list[list[str]]:
    """Return the rows of each place on one side of a change."""
    if not shards:
        return [rows(swift, LOW)[0], rows(swift, HIGH)[0]]
    resharder = change(swift)
    layout = resharder.executor.read_root().record
    target = resharder._target(resharder.executor.read_root(), layout)
    first = layout.shards
    return [
        rows(swift, target.place_in(first + shard))[0]
        for shard in range(shards)
    ]


class TestTheTombstoneOfADelete:
    @pytest.fixture(autouse=True)
    def stale(self, swift):
        """Cache ranges from before FORMER was split into the present ones."""
        key = get_cache_key(*ROOT, shard='updating')
        swift.memcached.set(key, [['', str(FORMER)]])
        retire(swift, FORMER)
        split(swift, FORMER, *ranges(time.time()))

    def test_is_redirected_only_from_the_root_on(self, swift):
        """Container servers open their database to redirect a row."""
        resharder = change(swift)
        resharder.begin(4)
        resharder._step()
        resharder.cancel()
        accepting = places_that_may_redirect(swift)
        path = f'{PATH.to_wsgi()}/{NAMES[12]}'
        swift.send(filtered(swift), 'DELETE', path)
        assert accepting.pop(ROOT) == accepting.pop(HIGH) == 'True'
        assert list(accepting.values()) == ['False']

    def test_reaches_a_late_row_after_the_change(self, swift):
        reshard(swift, 4)
        swift.put_row(f'/{HIGH}/n15-late', at=time.time() - 9)
        swift.send(filtered(swift), 'DELETE', f'{PATH.to_wsgi()}/n15-late')
        assert listed(swift) == NAMES

    @pytest.mark.parametrize('phase', ['announced', 'moving', 'returning'])
    def test_reaches_the_container_that_has_the_row(self, swift, phase):
        resharder = change(swift)
        resharder.begin(4)
        if phase != 'announced':
            resharder._step()
        if phase == 'returning':
            resharder.cancel()
        path = f'{PATH.to_wsgi()}/{NAMES[12]}'
        swift.send(filtered(swift), 'DELETE', path)
        kept = [name for name in NAMES[10:] if name != NAMES[12]]
        assert rows(swift, HIGH) == [kept] * REPLICAS
        delete_object(swift, NAMES[12])
        resharder.run()
        assert listed(swift) == [n for n in NAMES if n != NAMES[12]]


@pytest.mark.parametrize('reports, status', [(2, 409), (1, 503)])
def test_a_delete_deletes_no_replica_while_others_report_rows(
    swift, reports, status
):
    """A row that has moved since was reported to some of them only."""
    for place in (LOW, HIGH):
        empty(swift, place)
    reshard(swift, 4)
    for i in range(reports):
        broker = swift.broker(*ROOT, i)
        some = broker.get_shard_ranges()
        some[0].update_meta(1, 1)
        broker.merge_shard_ranges(some)
    assert delete(swift) == status
    report(swift)
    assert delete(swift) == 204


def test_a_delete_sees_a_row_that_returns_to_its_range_meanwhile(swift):
    """Its range was listed before it came, and it has left its shard since."""
    for place in (LOW, HIGH):
        empty(swift, place)
    swift.put_row(f'/{LOW}/{NAMES[0]}')
    reshard(swift, 4)
    resharder = change(swift)
    resharder.begin(0)
    resharder._step()
    root = resharder.executor.read_root()
    target = resharder._target(root, root.record)
    shards = [target.place_in(shard) for shard in target.shards()]
    (shard,) = (place for place in shards if swift.rows(*place))

    def move() -> None:
        swift.put_row(f'/{LOW}/{NAMES[0]}')
        empty(swift, shard)

    swift.servers.before(f'/{HIGH}', move)
    assert delete(swift) == 409


def test_late_rows_of_other_shards_do_not_wait_for_the_ranges(swift):
    for shards in (4, 7):
        reshard(swift, shards)
    merge(swift, shrinking())
    layout_id = id_of_time(time.time() - 2 * CALM_SECONDS)
    late = Place(HIDDEN, backing_container('c', layout_id, 0))
    swift.put_container(f'/{late}', {LOGICAL_HEADER: 'c'})
    swift.put_row(f'/{late}/a-late', at=time.time() - 9)
    swift.update_accounts()
    with pytest.raises(BackendError, match='shrinking'):
        settle(backend(swift), environ(), PATH, Pace(0))  # strays of the root
    assert listed(swift) == ['a-late', *NAMES]


def test_late_rows_of_a_plain_container_go_to_the_present_ranges(swift):
    """Those in memcached may be an hour old."""
    for shards in (4, 0):
        reshard(swift, shards)
    retire(swift, FORMER)
    split(swift, FORMER, *ranges(time.time()))
    key = get_cache_key(*ROOT, shard='updating')
    swift.memcached.set(key, [['', str(FORMER)]])
    layout_id = id_of_time(time.time() - 2 * CALM_SECONDS)
    late = Place(HIDDEN, backing_container('c', layout_id, 0))
    swift.put_container(f'/{late}', {LOGICAL_HEADER: 'c'})
    swift.put_row(f'/{late}/a-late', at=time.time() - 9)
    swift.update_accounts()
    env = {**environ(), 'swift.cache': swift.memcached}
    settle(backend(swift), env, PATH, Pace(0))
    assert rows(swift, FORMER) == [[], [], []]
    assert listed(swift) == ['a-late', *NAMES]


def test_pages_show_each_row_once_in_figures_for_quotas(swift):
    """Swift takes the figures of a page from its info, which has the sums."""
    reshard(swift, 4)
    swift.memcached = Memcached()
    app = filtered(swift)
    headers = {'X-Container-Meta-Quota-Count': '100'}
    swift.send(app, 'POST', PATH.to_wsgi(), headers)
    swift.send(app, 'HEAD', PATH.to_wsgi())
    figures = []
    for marker in ('', NAMES[4]):
        query = f'format=json&limit=5&marker={marker}'
        resp = swift.send(app, 'GET', PATH.to_wsgi(), query=query)
        headers = resp.headers
        figures.append(
            (
                headers['X-Container-Object-Count'],
                headers['X-Container-Bytes-Used'],
            )
        )
    assert figures == [('20', '20')] * 2


def test_the_shard_ranges_of_a_root_are_read_past_the_filter(swift):
    """By Swift's sharder, in pipelines that clients do not reach."""
    reshard(swift, 4)
    app = filtered(swift)
    app._pipeline = [app, swift]
    app._pipeline_request_logging_app = app._pipeline_final_app = swift
    resp = swift.send(
        app,
        'GET',
        PATH.to_wsgi(),
        {'X-Backend-Record-Type': 'shard'},
        query='format=json',
    )
    found = [row['name'] for row in json.loads(resp.body)]
    assert found == [str(LOW), str(HIGH)]
