# SPDX-License-Identifier: Apache-2.0
import json
import re
from dataclasses import FrozenInstanceError
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shardmw.core.layout import (
    DEPTH_LIMIT,
    PLAIN,
    SHARD_COUNT_LIMIT,
    Layout,
    LayoutError,
    Sharding,
    id_of_time,
    parse_record,
    time_of_id,
)
from shardmw.core.phases import NEW, OLD

ID = '65a1b2c3d4e5f'
FORMER_ID = '65a1b2c3d4e5e'
YEAR_2112 = 4_480_000_000

ids = st.integers(0, 16**13 - 1).map('{:013x}'.format)
depths = st.integers(0, DEPTH_LIMIT)
layouts = st.builds(
    Layout, ids, st.integers(1, SHARD_COUNT_LIMIT), depth=depths
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
almost_records = st.fixed_dictionaries(
    {},
    optional={
        'version': st.sampled_from([2, 3]) | json_values,
        'id': ids | json_values,
        'shards': st.integers(-1, SHARD_COUNT_LIMIT + 1) | json_values,
        'depth': st.integers(-1, DEPTH_LIMIT + 1) | json_values,
        'previous': json_values,
    },
)


def record(**changes) -> str:
    fields = {'version': 2, 'id': ID, 'shards': 32, **changes}
    return json.dumps({k: v for k, v in fields.items() if v is not None})


def changing(**changes) -> str:
    fields = {
        'changed': ID,
        'former': 4,
        'former_id': FORMER_ID,
        'phase': 'moving',
    }
    return record(**{**fields, **changes})


@pytest.mark.parametrize(
    ('shards', 'former', 'phase', 'synced'),
    [
        (4, None, None, 4),
        (0, None, None, 0),
        (4, 0, 'announced', 0),
        (4, 2, 'announced', 2),
        (4, 2, 'moving', 4),
        (0, 4, 'announced', 4),
        (0, 4, 'moving', None),
        (4, 2, 'returning', None),
    ],
)
def test_a_place_that_rows_return_to_is_not_synced(
    shards, former, phase, synced
):
    assert Layout(ID, shards, former, ID, phase).synced == synced


@given(layouts)
def test_a_record_reads_back_as_it_was_written(layout):
    assert parse_record(layout.to_record()) == layout


def test_the_text_of_a_record_is_stable():
    text = '{"version": 2, "id": "65a1b2c3d4e5f", "shards": 32}'
    assert Layout(ID, 32).to_record() == text


def test_the_text_of_a_record_with_a_depth_is_stable():
    text = '{"version": 3, "id": "65a1b2c3d4e5f", "shards": 32, "depth": 2}'
    assert Layout(ID, 32, depth=2).to_record() == text


def test_a_layout_is_not_changed_by_those_who_share_it():
    layout = parse_record(record())
    assert parse_record(record()) is layout
    with pytest.raises(FrozenInstanceError):
        layout.shards = 4


@pytest.mark.parametrize(
    ('sharding', 'text'),
    [
        (Sharding(0), 'plain'),
        (Sharding(32), '32 shards'),
        (Sharding(32, 2), '32 shards, depth 2'),
    ],
)
def test_a_sharding_is_shown_in_words(sharding, text):
    assert str(sharding) == text


def test_a_layout_without_a_depth_spreads_rows_by_their_whole_names():
    assert Layout(ID, 32).sharding == Sharding(32)


def test_without_a_change_no_other_backing_container_may_have_rows():
    assert Layout(ID, 4).backing_count == 4


@pytest.mark.parametrize(
    'text',
    [
        '',
        '32',
        'null',
        '[]',
        '{}',
        record(version=1),
        record(version=3),
        record(version=4, depth=1),
        record(version='2'),
        record(depth=1),
        record(version=3, depth=0),
        record(version=3, depth=DEPTH_LIMIT + 1),
        record(version=3, depth=True),
        record(version=3, depth='1'),
        record(version=3, depth=1, shards=None),
        record(version=3, former_depth=1),
        record(version=3, depth=1, former_depth=1),
        record(version=3, depth=1, shards=0, changed=ID),
        record(version=None),
        record(id=None),
        record(id=''),
        record(id=ID[1:]),
        record(id=ID + '0'),
        record(id=ID.upper()),
        record(id=ID + '\n'),
        record(id=7),
        record(shards=None),
        record(shards=0),
        record(shards=-1),
        record(shards='32'),
        record(shards=32.0),
        record(shards=True),
        record(shards=SHARD_COUNT_LIMIT + 1),
        record(previous=8),
        record()[:-1],
        record() + record(),
        '[' * 100_000,
    ],
)
def test_anything_but_a_record_of_this_version_is_refused(text):
    with pytest.raises(LayoutError):
        parse_record(text)


@pytest.mark.parametrize(
    'text, message',
    [
        (record(version=4), 'version 4, this release reads 2 and 3'),
        (record(version=3), 'version 3 without a depth'),
        (
            record(version=3, depth=17),
            'depth 17, not a number from 1 to 16',
        ),
        (record(version=3, former_depth=1), 'former_depth 1 without shards'),
        (record(shards=0), 'shards 0, not a number from 1 to 1024'),
        (record(id='7'), "id '7', not 13 hex digits"),
        ('32', "not an object: '32'"),
        ('{', "not JSON: '{'"),
    ],
)
def test_the_error_says_what_is_wrong_and_what_is_allowed(text, message):
    with pytest.raises(LayoutError) as caught:
        parse_record(text)
    assert str(caught.value) == message


@given(json_values | almost_records)
def test_any_json_is_refused_or_is_the_layout_that_it_says(value):
    text = json.dumps(value)
    try:
        layout = parse_record(text)
    except LayoutError:
        return
    assert json.loads(layout.to_record()) == value


@given(layouts, st.data())
def test_a_record_that_was_cut_short_is_refused(layout, data):
    text = layout.to_record()
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(LayoutError):
        parse_record(text[:end])


@given(st.floats(0, YEAR_2112), st.floats(0, YEAR_2112))
def test_later_ids_sort_after_earlier_ones(one, other):
    earlier, later = sorted([one, other])
    assert id_of_time(earlier) <= id_of_time(later)


@given(st.floats(0, YEAR_2112))
def test_an_id_has_its_time_to_the_microsecond(seconds):
    assert time_of_id(id_of_time(seconds)) == pytest.approx(
        seconds, abs=2e-6, rel=0
    )


def test_an_id_is_its_time_in_microseconds():
    assert id_of_time(1_789_000_000.5) == '65b1605887120'


@given(st.floats(0, YEAR_2112), st.integers(1, SHARD_COUNT_LIMIT))
def test_an_id_of_any_time_makes_a_record(seconds, shards):
    layout = Layout(id_of_time(seconds), shards)
    assert parse_record(layout.to_record()) == layout


counts = st.integers(0, SHARD_COUNT_LIMIT)
shardings = st.builds(
    lambda count, depth: Sharding(count, depth if count else 0), counts, depths
)
times = st.floats(0, YEAR_2112)


class TestChange:
    @given(counts, counts.filter(bool), times)
    def test_has_three_records_that_read_back(self, after, before, now):
        layout = Layout(ID, before)
        assume(before != after)
        announced = layout.announced(after, now)
        moving = announced.moving(now)
        done = moving.done(now)
        for each in (announced, moving, done):
            assert parse_record(each.to_record()) == each
        assert [each.written for each in (announced, moving, done)] == [
            before,
            after,
            after,
        ]
        assert done.is_plain == (after == 0)
        assert not done.is_changing

    @given(shardings, shardings, times)
    def test_has_the_depths_of_both_places(self, after, before, now):
        assume(before != after)
        layout = Layout(ID, before.shards, depth=before.depth)
        announced = layout.announced(after.shards, now, after.depth)
        moving = announced.moving(now)
        done = moving.done(now)
        back = moving.cancelled(now)
        records = (announced, moving, done, back, back.done(now))
        for each in records:
            assert parse_record(each.to_record()) == each
        assert [each.written_sharding for each in records] == [
            before,
            after,
            after,
            before,
            before,
        ]
        assert moving.former_sharding == before
        assert back.former_sharding == after
        assert done.former_depth == 0

    @given(counts.filter(bool), times)
    def test_of_the_depth_alone_has_other_backing_containers(self, count, now):
        layout = Layout(ID, count).announced(count, now, 1)
        assert layout.id > layout.former_id == ID
        assert parse_record(layout.to_record()) == layout

    @given(st.lists(counts, min_size=1, max_size=5), st.data())
    def test_has_later_serials_and_offsets_by_any_clocks(self, after, data):
        layouts = [PLAIN]
        for count in after:
            if count == layouts[-1].shards:
                continue
            for step in (
                partial(Layout.announced, shards=count),
                Layout.moving,
                Layout.cancelled,
                Layout.done,
            ):
                layouts.append(step(layouts[-1], now=data.draw(times)))
        for name in ('serial', 'offset'):
            values = [getattr(layout, name) for layout in layouts]
            assert values == sorted(set(values))

    @given(counts.filter(bool), times)
    def test_of_a_plain_container_draws_an_id(self, count, now):
        announced = PLAIN.announced(count, now)
        assert announced.id == announced.changed > PLAIN.id
        assert announced.former_id == announced.id

    @given(counts.filter(bool), counts, times)
    def test_of_a_sharded_one_draws_a_later_id(self, before, after, now):
        assume(before != after)
        announced = Layout(ID, before).announced(after, now)
        assert announced.id == announced.changed > ID
        assert announced.former_id == ID
        assert announced.moving(now).done(now).id == announced.id

    @given(counts.filter(bool), counts, times)
    def test_has_the_backing_containers_of_both(self, before, after, now):
        assume(before != after)
        layout = Layout(ID, before).announced(after, now)
        backing = [layout.backing(i) for i in range(layout.backing_count)]
        assert backing == [
            *((layout.id, i) for i in range(after)),
            *((ID, i) for i in range(before)),
        ]
        assert all(layout.has(*each) for each in backing)
        assert not layout.has(ID, before)
        assert not layout.has(layout.id, after)

    @given(counts, counts, times, st.booleans())
    def test_that_is_cancelled_goes_back(self, before, after, now, is_moving):
        assume(before != after)
        layout = Layout(ID, before).announced(after, now)
        layout = layout.moving(now) if is_moving else layout
        back = layout.cancelled(now)
        assert (back.former, back.shards, back.written) == (
            after,
            before,
            before,
        )
        assert (back.id, back.former_id) == (layout.former_id, layout.id)
        assert back.done(now).shards == before

    def test_has_records_that_are_more_than_a_tick_of_swifts_apart(self):
        announced = PLAIN.announced(4, 1)
        assert time_of_id(announced.serial) == 1
        assert 1.00001 < time_of_id(announced.moving(1).serial) <= 1.00002
        assert time_of_id(announced.moving(2).serial) == 2

    def test_has_an_offset_of_its_time_in_microseconds(self):
        assert PLAIN.announced(4, 7).offset == 7_000_000

    def test_has_the_shards_of_before_after_the_new_ones(self):
        layout = Layout(ID, 4).announced(8, 0)
        assert [layout.first_shard(side) for side in (NEW, OLD)] == [0, 8]

    @pytest.mark.parametrize(
        ('text', 'message'),
        [
            (record(shards=0), 'shards 0, not a number from 1'),
            (record(changed=ID, former=4), 'fields'),
            (changing(former=32), 'from 32 to 32'),
            (changing(phase='done'), "phase 'done'"),
            (changing(phase=[]), 'phase'),
            (changing(former=-1), 'shards -1'),
            (changing(former=True), 'shards True'),
            (record(changed='7'), "id '7'"),
            (changing(former_id='7'), "id '7'"),
            (changing(former_id=None), 'fields'),
            (changing(former_id=ID), 'both sides'),
            (changing(shards='\ud800', former='\ud800'), "shards '"),
        ],
    )
    def test_whose_record_is_damaged_is_refused(self, text, message):
        with pytest.raises(LayoutError, match=re.escape(message)):
            parse_record(text)

    @pytest.mark.parametrize(
        'change',
        [
            lambda: Layout(ID, 4).announced(4, 0),
            lambda: Layout(ID, 4).announced(SHARD_COUNT_LIMIT + 1, 0),
            lambda: Layout(ID, 4).announced(-1, 0),
            lambda: Layout(ID, 4).announced(4, 0, -1),
            lambda: Layout(ID, 4, depth=1).announced(4, 0, 1),
            lambda: Layout(ID, 4).announced(4, 0, DEPTH_LIMIT + 1),
            lambda: Layout(ID, 4).announced(0, 0, 1),
            lambda: Layout(ID, 4).announced(8, 0).announced(2, 0),
            lambda: Layout(ID, 4).moving(0),
            lambda: Layout(ID, 4).done(0),
            lambda: Layout(ID, 4).announced(8, 0).done(0),
            lambda: Layout(ID, 4).cancelled(0),
            lambda: Layout(ID, 4).announced(8, 0).cancelled(0).cancelled(0),
        ],
    )
    def test_takes_its_steps_in_order(self, change):
        with pytest.raises(ValueError, match='Layout|shards'):
            change()
