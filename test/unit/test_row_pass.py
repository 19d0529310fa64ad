# SPDX-License-Identifier: Apache-2.0
"""Tests of how fast rows move, and of the reads of the places they leave."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.swob import HTTPServiceUnavailable, Request, Response
from swift.common.utils import Timestamp
from swift.container.server import ContainerController

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.move_throttle import MOST_IN_REQUEST
from shardmw.container_server.filter import ContainerFilter
from shardmw.core.batch import METHOD
from shardmw.core.paths import Place
from shardmw.core.phases import MOVING, PHASES
from shardmw.reshard import row_pass
from shardmw.reshard.row_pass import (
    CATCH_UP_SECONDS,
    MOST_DUE,
    PAGE_ROWS,
    SOURCES_AT_A_TIME,
    STAY_SECONDS,
    Pace,
    RowPass,
)
from shardmw.swift import concurrency
from test.unit.clocks import Clock


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Return a clock that advances while something sleeps."""
    clock = Clock()

    def sleep(seconds: float) -> None:
        end = clock.now + seconds
        while clock.now < end:
            clock.now = min(clock.now + 0.1, end)
            concurrency.sleep()

    monkeypatch.setattr(row_pass, 'time', clock)
    monkeypatch.setattr(row_pass, 'sleep', sleep)
    return clock


@pytest.mark.parametrize(
    ('rate', 'page', 'part', 'sources'),
    [
        (0, PAGE_ROWS, MOST_IN_REQUEST, SOURCES_AT_A_TIME),
        (1, 1, 1, 1),
        (50, 25, 25, 1),
        (2000, PAGE_ROWS, MOST_IN_REQUEST, 1),
        (4000, PAGE_ROWS, MOST_IN_REQUEST, 2),
        (10**6, PAGE_ROWS, MOST_IN_REQUEST, SOURCES_AT_A_TIME),
    ],
)
def test_rows_of_half_a_second_are_read_and_written_at_once(
    rate, page, part, sources
):
    pace = Pace(rate)
    assert (pace.page, pace.part, pace.sources) == (page, part, sources)


@pytest.mark.parametrize(
    ('rate', 'measured', 'rows'),
    [
        (0, 0, 0),
        (0, 300, 1500),
        (0, 10**6, CONTAINER_LISTING_LIMIT),
        (1, 0, 5),
        (2000, 100, CONTAINER_LISTING_LIMIT),
    ],
)
def test_rows_of_some_seconds_are_collected(rate, measured, rows):
    assert Pace(rate).collected(measured) == rows


@given(st.integers(0, 10**7))
def test_there_is_always_a_row_to_move(rate):
    pace = Pace(rate)
    assert 1 <= pace.part <= MOST_IN_REQUEST
    assert 1 <= pace.page <= PAGE_ROWS
    assert 1 <= pace.sources <= SOURCES_AT_A_TIME


def test_without_a_rate_nothing_waits(clock):
    before = clock.now
    Pace(0).pay(10**6)
    assert clock.now == before


def test_rows_move_at_the_rate(clock):
    pace = Pace(2000)
    before = clock.now
    for _ in range(50):
        pace.pay(200)  # a copy
        pace.pay(200)  # and its tombstones
    assert clock.now - before == pytest.approx(5, abs=CATCH_UP_SECONDS + 0.1)


def test_only_a_short_delay_is_made_up_for(clock):
    pace = Pace(2000)
    pace.pay(200)
    clock.now += 60
    before = clock.now
    for _ in range(40):
        pace.pay(200)
    assert clock.now - before >= 2 - CATCH_UP_SECONDS - 0.1


PAGE = 10
SHARD = Place('a', 'c')


class Places:
    """The rows of some places, in memory; all of them move to the root.

    :ivar rows: the names of the rows of each place
    :ivar reads: how often each place was read
    :ivar reported: what the pass has reported
    :ivar shows: False to hide copied rows, as tombstones of an earlier move do
    :ivar hidden: the names of hidden rows
    :ivar lost: what a loss of power would lose of each place
    """

    policy_index = 0
    path = None
    layout = SimpleNamespace(
        shards=0, is_changing=True, rules=PHASES[MOVING], offset=0
    )

    def __init__(self, *places: list[str]) -> None:
        self.rows = {f'shard {i}': list(r) for i, r in enumerate(places)}
        self.rows['root'] = []
        self.reads = dict.fromkeys(self.rows, 0)
        self.reported = []
        self.shows = True
        self.hidden = set()
        self.lost = {place: set() for place in self.rows}

    def place_in(self, shard: int | None) -> str:
        return 'root' if shard is None else f'shard {shard}'

    def place_of(self, _name: str) -> str:
        return 'root'

    def copy(self, rows, place, _policy, adds_offset) -> bool:
        names = {row['name'] for row in rows}
        if adds_offset:
            assert names <= self.hidden
            self.hidden -= names
        else:
            self.rows[place] += sorted(names)
            self.lost[place] = names
            if not self.shows:
                self.hidden |= names
        return True

    def make_durable(self, place) -> bool:
        self.lost[place] = set()
        return True

    def remove(self, rows, place, _policy) -> bool:
        for row in rows:
            assert row['name'] not in self.lost['root']
            self.rows[place].remove(row['name'])
        return True

    def page(self, place, marker, limit):
        self.reads[place] += 1
        listed = set(self.rows[place])
        if place == 'root':
            listed -= self.hidden
        names = sorted(n for n in listed if n > marker)[:limit]
        rows = [{'name': name} for name in names]
        return rows, [], names[-1] if len(names) == limit else None

    def for_each(self, act, items, _concurrency) -> list:
        return [t.wait() for t in [concurrency.spawn(act, i) for i in items]]


def pass_over(places: Places, monkeypatch) -> RowPass:
    """Return a pass whose pages have PAGE rows from each place."""
    backend = SimpleNamespace(
        for_each=places.for_each, owner_env=dict, proxy_app=None
    )
    monkeypatch.setattr(row_pass, 'LEAST_ROWS', PAGE)
    monkeypatch.setattr(row_pass, 'rows_in_request', lambda *_: PAGE)
    monkeypatch.setattr(row_pass, 'reading', lambda *_: nullcontext())
    monkeypatch.setattr(row_pass, 'require_whole', lambda *_: None)
    pace = SimpleNamespace(
        page=PAGE,
        part=PAGE,
        collected=lambda _rate: 1,
        sources=SOURCES_AT_A_TIME,
        rest=lambda: None,
        pay=lambda _rows: None,
    )
    made = RowPass(
        backend,
        {},
        places,
        places.policy_index,
        pace,
        asks_for_objects=False,
        check=lambda: None,
        report=places.reported.append,
    )
    made.mover = places
    monkeypatch.setattr(made, '_page', places.page)
    return made


def names(count: int, step: int = 1, first: int = 0) -> list[str]:
    return [f'{first + step * i:05}' for i in range(count)]


def shards(count: int) -> list[str]:
    return [f'shard {i}' for i in range(count)]


@pytest.mark.parametrize('collected', [1, 3 * PAGE, 10**6])
def test_rows_of_several_places_move_together(monkeypatch, collected):
    places = Places(names(95), names(95, 2, 1000), names(3, 1, 9000), [])
    total = 95 + 95 + 3
    made = pass_over(places, monkeypatch)
    made.pace.collected = lambda _rate: collected
    found = made.run(shards(4))
    assert found == sum(places.reported) == total
    assert [len(rows) for rows in places.rows.values()] == [0, 0, 0, 0, total]


def test_places_whose_pages_end_together_are_not_read_for_short_pages(
    monkeypatch,
):
    places = Places(*(names(400, 4, first) for first in range(4)))
    pass_over(places, monkeypatch).run(shards(4))
    assert max(places.reads.values()) <= 2 * 400 // PAGE + 1


def test_rows_that_were_removed_are_reported_if_the_next_page_fails(
    monkeypatch,
):
    places = Places(names(50))
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)
    made = pass_over(places, monkeypatch)
    page = places.page

    def failing(place, marker, limit):
        if place != 'root' and marker >= names(50)[29]:
            concurrency.sleep(0.1)
            raise BackendError(None, 503, 'a replica is away')
        return page(place, marker, limit)

    monkeypatch.setattr(made, '_page', failing)
    with pytest.raises(BackendError):
        made.run(shards(1))
    assert sum(places.reported) == 50 - len(places.rows['shard 0']) > 0


def test_rows_stay_in_both_places_for_a_while(monkeypatch, clock):
    places = Places(names(3))
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', 3)
    stayed, remove = [], places.remove

    def note(*args) -> bool:
        assert places.rows['root'] == names(3)
        stayed.append(clock.now - start)
        return remove(*args)

    monkeypatch.setattr(places, 'remove', note)
    start = clock.now
    pass_over(places, monkeypatch).run(shards(1))
    (seconds,) = stayed
    assert 3 <= seconds < 4
    assert places.rows['shard 0'] == []


def test_rows_that_stayed_are_removed_while_others_are_copied(
    monkeypatch, clock
):
    places = Places(names(10 * PAGE))
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', 3)
    left, page = [], places.page

    def slow(*args):
        clock.now += 1
        left.append(len(places.rows['shard 0']))
        return page(*args)

    made = pass_over(places, monkeypatch)
    monkeypatch.setattr(made, '_page', slow)
    made.run(shards(1))
    assert left[:4] == [10 * PAGE] * 4
    assert left[-1] < 7 * PAGE


def test_few_rows_are_copied_ahead_of_those_that_are_removed(
    monkeypatch, clock
):
    places = Places(names(20 * PAGE))
    both, remove = [], places.remove

    def slow(*args) -> bool:
        for _ in range(100):
            row_pass.sleep(STAY_SECONDS)
        shown = set(places.rows['root']) & set(places.rows['shard 0'])
        both.append(len(shown))
        return remove(*args)

    monkeypatch.setattr(places, 'remove', slow)
    pass_over(places, monkeypatch).run(shards(1))
    # a step whose rows are being removed, those that are due, one that is
    # listed and one that was copied
    assert max(both) == (3 + MOST_DUE) * PAGE


@pytest.mark.parametrize('count', [1, 4])
def test_rows_move_out_of_as_many_places_as_the_pace_says(monkeypatch, count):
    places = Places(*(names(20 * PAGE, 6, first) for first in range(6)))
    places.layout = SimpleNamespace(**vars(places.layout) | {'shards': 1})
    most, remove = [], places.remove

    def noting(*args) -> bool:
        copied = set(places.rows['root'])
        shown = [copied.intersection(places.rows[p]) for p in places.rows]
        most.append(sum(map(bool, shown)) - 1)  # the root itself
        return remove(*args)

    monkeypatch.setattr(places, 'remove', noting)
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)
    monkeypatch.setattr(row_pass, 'MOST_DUE', 0)
    made = pass_over(places, monkeypatch)
    made.pace.sources = count
    made.run(shards(6))
    assert max(most) == count
    assert len(places.rows['root']) == 6 * 20 * PAGE


@pytest.mark.parametrize('failing', ['remove', 'copy'])
def test_nothing_is_written_after_a_failure(monkeypatch, clock, failing):
    places = Places(names(20 * PAGE))
    written = []

    def note(name: str):
        call = getattr(places, name)

        def noting(*args, **kwargs):
            written.append(name)
            if name == failing and written.count(name) == 3:
                raise BackendError(None, 503, 'a replica is away')
            return call(*args, **kwargs)

        monkeypatch.setattr(places, name, noting)

    for name in ('copy', 'remove'):
        note(name)
    with pytest.raises(BackendError):
        pass_over(places, monkeypatch).run(shards(1))
    row_pass.sleep(100 * STAY_SECONDS)
    failed = [i for i, name in enumerate(written) if name == failing][2]
    after = written[failed + 1 :]
    # the rows that were being copied and shown
    assert 'remove' not in after
    assert len(after) <= 2


@pytest.mark.parametrize('shows', [True, False])
def test_rows_that_tombstones_hide_are_shown(monkeypatch, shows):
    places = Places(names(3 * PAGE))
    places.shows = shows
    pass_over(places, monkeypatch).run(shards(1))
    assert sorted(places.rows['root']) == names(3 * PAGE)
    assert not places.hidden


def test_rows_move_to_where_the_caller_says(monkeypatch):
    places = Places(names(3), [])
    made = pass_over(places, monkeypatch)
    made.may_be_hidden = True
    made.place_of = lambda name: 'root' if name == '00001' else 'shard 1'
    made.run(shards(1))
    assert places.rows['root'] == ['00001']
    assert places.rows['shard 1'] == ['00000', '00002']


@pytest.mark.parametrize('may_be_hidden', [True, False])
def test_rows_are_looked_for_only_where_they_may_be_hidden(
    monkeypatch, may_be_hidden
):
    places = Places(names(3), [])
    made = pass_over(places, monkeypatch)
    made.may_be_hidden = may_be_hidden
    made.place_of = lambda _name: 'shard 1'
    made.run(shards(1))
    assert bool(places.reads['shard 1']) is may_be_hidden


def test_a_row_is_looked_for_without_reading_its_whole_place(monkeypatch):
    places = Places(['99999'])
    places.rows['root'] = names(100 * PAGE)
    made = pass_over(places, monkeypatch)
    made.run(shards(1))
    assert places.reads['root'] == 1


@given(
    st.sets(st.text('ab\uffff', min_size=1, max_size=4)),
    st.sets(st.text('ab\uffff', min_size=1, max_size=4), min_size=1),
    st.data(),
)
def test_rows_are_shown_wherever_they_are_hidden(others, moved, data):
    places = Places(sorted(moved))
    places.rows['root'] = sorted(others - moved)
    places.hidden = set()
    hidden = data.draw(st.sets(st.sampled_from(sorted(moved))))
    copy = places.copy

    def hide(rows, place, policy, adds_offset) -> bool:
        done = copy(rows, place, policy, adds_offset)
        if not adds_offset:
            places.hidden |= hidden & {row['name'] for row in rows}
        return done

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(places, 'copy', hide)
        monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)
        pass_over(places, monkeypatch).run(shards(1))
    assert set(places.rows['root']) == others | moved
    assert not places.hidden


@pytest.mark.parametrize('count', [1, 64])
def test_a_step_of_a_slow_move_has_the_rows_of_few_seconds(
    monkeypatch, clock, count
):
    rate, least = 100, row_pass.LEAST_ROWS
    places = Places(
        *(
            [f'{i:05}-{shard}' for i in range(10_000 // count)]
            for shard in range(count)
        )
    )
    made = pass_over(places, monkeypatch)
    monkeypatch.setattr(row_pass, 'LEAST_ROWS', least)
    monkeypatch.setattr(
        row_pass, 'rows_in_request', lambda *_: MOST_IN_REQUEST
    )
    made.pace = Pace(0)
    made.may_be_hidden = False
    sizes, next_step = [], made._next_step

    def noting(*args):
        step = next_step(*args)
        sizes.append(sum(map(len, step.moving.values())))
        return step

    def copy(rows, *_args) -> bool:
        row_pass.sleep(len(rows) / rate)
        return True

    monkeypatch.setattr(made, '_next_step', noting)
    monkeypatch.setattr(places, 'copy', copy)
    monkeypatch.setattr(places, 'remove', lambda *_: True)
    made.run(shards(count))
    page = max(PAGE_ROWS, least * count)
    assert max(sizes) <= page + rate * row_pass.COLLECT_SECONDS


def test_pages_are_not_kept_when_their_rows_have_moved(monkeypatch):
    places = Places(names(PAGE - 1), names(PAGE - 1, 1, 100))
    made = pass_over(places, monkeypatch)
    made.run(shards(1))
    made.run(['shard 1'])
    assert not made._read


@pytest.fixture
def answered(monkeypatch, tmp_path):
    """Return a pass, two replicas with three rows, and recorded methods."""
    servers = []
    for replica in range(2):
        (tmp_path / str(replica) / 'sdb1').mkdir(parents=True)
        conf = {'devices': str(tmp_path / str(replica)), 'mount_check': 'no'}
        servers.append(ContainerController(conf))
        for name in ('', '/a', '/b', '/c%'):
            sent = {
                'X-Timestamp': Timestamp(1).internal,
                'X-Size': '1',
                'X-Etag': 'e',
                'X-Content-Type': 'text/plain',
                'X-Backend-Storage-Policy-Index': '0',
            }
            Request.blank(
                f'/sdb1/1/a/c{name}',
                environ={'REQUEST_METHOD': 'PUT'},
                headers=sent,
            ).get_response(servers[-1])
    apps = [ContainerFilter(each, each.logger) for each in servers]
    methods = []

    def ask_primaries(
        _app, _env, account, container, method, body=b'', query=''
    ):
        methods.append(method)
        answers = []
        for app in apps:
            sent = body({'device': 'sdb1'}, 1) if body else b''
            response = Request.blank(
                f'/sdb1/1/{account}/{container}?{query}',
                environ={'REQUEST_METHOD': method},
                body=sent,
            ).get_response(app)
            answers.append(
                Answer(
                    None, response.status, response.headers, [response.body]
                )
            )
        return answers

    monkeypatch.setattr(row_pass, 'ask_primaries', ask_primaries)
    made = pass_over(Places(), monkeypatch)
    monkeypatch.delattr(made, '_page')
    made.env = {}
    return SimpleNamespace(made=made, methods=methods, apps=apps)


def page(answered, limit):
    agreed, doubtful, end = answered.made._page(SHARD, 'a', limit)
    assert doubtful == []
    return [row['name'] for row in agreed], end


def test_pages_are_listed_by_swifts_own_code(answered):
    assert page(answered, 1) == (['b'], 'b')
    assert page(answered, 9) == (['b', 'c%'], None)
    assert answered.methods == ['GET'] * 2


@pytest.mark.parametrize(
    'body, problem',
    [
        (b'<html>', 'an answer is no listing'),
        (b'{}', 'an answer is no listing'),
        (b'[{"name": "a"}]', "lists 'a' after 'a'"),
    ],
)
def test_an_answer_that_does_not_go_on_stops_the_move(answered, body, problem):
    answered.apps[:] = [Response(request=Request.blank('/'), body=body)]
    with pytest.raises(BackendError, match=problem):
        page(answered, 1)


def test_a_column_that_only_one_replica_lists_stops_the_move(
    answered, monkeypatch
):
    upgraded = answered.apps[1].app
    made = ContainerController.update_object_record

    def update(server, record) -> dict:
        more = {'checksum': 'x'} if server is upgraded else {}
        return {**made(server, record), **more}

    monkeypatch.setattr(ContainerController, 'update_object_record', update)
    with pytest.raises(BackendError, match='rows have checksum, which this'):
        page(answered, 9)


def change(app, method: str, container: str, at: float | None = None) -> None:
    """Put or delete a container, or one of its rows, on one server."""
    headers = {
        'X-Timestamp': Timestamp(at or Timestamp.now()).internal,
        'X-Backend-Storage-Policy-Index': '0',
    }
    Request.blank(
        f'/sdb1/1/a/{container}',
        environ={'REQUEST_METHOD': method},
        headers=headers,
    ).get_response(app)


@pytest.fixture
def deleted(answered) -> Place:
    """Delete a place, and return it."""
    for app in answered.apps:
        change(app, 'PUT', 'deleted')
        change(app, 'DELETE', 'deleted')
    return Place('a', 'deleted')


def test_a_place_that_was_deleted_is_empty(answered, deleted):
    assert answered.made._page(deleted, '', 9) == ([], [], None)


@pytest.mark.parametrize('present', [0, 1])
def test_a_place_without_databases_is_not_empty(answered, present):
    for app in answered.apps[:present]:
        change(app, 'PUT', 'lost')
    text = f'{present} of 2 replicas list a/lost'
    with pytest.raises(BackendError, match=text):
        answered.made._page(Place('a', 'lost'), '', 9)


def test_a_silent_replica_of_a_deleted_place_may_have_rows(answered, deleted):
    present = answered.apps[0]
    answered.apps[:] = [present, present, HTTPServiceUnavailable()]
    with pytest.raises(BackendError, match='0 of 3 replicas list'):
        answered.made._page(deleted, '', 9)


class TestForwardedTombstones:
    """Tombstones in a place after all rows have moved to the root."""

    @pytest.fixture
    def forwarded(self, answered, monkeypatch):
        """Return a function that forwards the tombstones of a place.

        The function returns their timestamps.
        """
        merged: dict[str, str] = {}

        def merge(_backend, _env, place, _policy, rows, moving) -> bool:
            assert place == 'root'
            moving.check()
            merged.update((row['name'], row['created_at']) for row in rows)
            return True

        def forward(place: Place = SHARD) -> dict[str, str]:
            answered.made.forward_tombstones([place])
            return merged

        monkeypatch.setattr(row_pass, 'merge_rows', merge)
        return forward

    @pytest.mark.parametrize('replica', [0, 1])
    def test_are_those_of_any_replica(self, answered, forwarded, replica):
        change(answered.apps[replica], 'DELETE', 'c/a', 5)
        assert forwarded() == {'a': Timestamp(5).internal}

    @pytest.mark.parametrize('times', [(5, 7), (7, 5)])
    def test_are_the_newest_if_replicas_disagree(
        self, answered, forwarded, times
    ):
        for app, at in zip(answered.apps, times, strict=True):
            change(app, 'DELETE', 'c/a', at)
        assert forwarded() == {'a': Timestamp(7).internal}

    def test_are_all_if_the_pages_of_replicas_end_at_different_names(
        self, answered, forwarded, monkeypatch
    ):
        monkeypatch.setattr(row_pass, 'container_page', lambda _limit: 1)
        for app, names in zip(answered.apps, ('ac', 'd'), strict=True):
            for name in names:
                change(app, 'DELETE', f'c/{name}', 5)
        assert set(forwarded()) == {'a', 'c', 'd'}

    def test_are_none_of_moves(self, answered, forwarded):
        moved = Timestamp(5, offset=1)
        for app in answered.apps:
            change(app, 'DELETE', 'c/a', moved)
        change(answered.apps[0], 'DELETE', 'c/b', 5)
        assert set(forwarded()) == {'b'}

    def test_are_none_if_a_server_lacks_the_filter(self, answered, forwarded):
        for app in answered.apps:
            change(app, 'DELETE', 'c/a', 5)
        answered.apps[1] = answered.apps[1].app
        assert forwarded() == {}
        assert answered.methods == [METHOD]

    def test_are_none_of_a_place_that_was_deleted(self, forwarded, deleted):
        assert forwarded(deleted) == {}

    def test_are_not_known_while_a_replica_is_silent(
        self, answered, forwarded
    ):
        change(answered.apps[0], 'DELETE', 'c/a', 5)
        answered.apps.append(HTTPServiceUnavailable())
        text = 'a replica of a/c did not answer'
        with pytest.raises(BackendError, match=text):
            forwarded()

    def test_are_not_known_while_a_replica_is_missing(
        self, answered, forwarded
    ):
        change(answered.apps[0], 'PUT', 'lost')
        change(answered.apps[0], 'DELETE', 'lost/a', 5)
        text = '1 of 2 replicas list a/lost'
        with pytest.raises(BackendError, match=text):
            forwarded(Place('a', 'lost'))

    def test_are_not_known_if_a_filter_cannot_read_its_replica(
        self, answered, forwarded, monkeypatch
    ):
        monkeypatch.setattr(answered.apps[1], '_found', lambda _read: None)
        text = 'the tombstones of a/c cannot be read'
        with pytest.raises(BackendError, match=text):
            forwarded()
