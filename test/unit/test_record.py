# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.layout import Layout, LayoutError, parse_record
from shardmw.placement import SHARD_COUNT_LIMIT

counts = st.integers(1, SHARD_COUNT_LIMIT)
layouts = st.builds(Layout, counts, st.none() | counts)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(layouts)
def test_a_record_reads_back_as_it_was_written(layout):
    assert parse_record(layout.to_record()) == layout


def test_the_record_is_stable():
    assert Layout(32).to_record() == '{"version": 1, "shards": 32}'


@pytest.mark.parametrize(
    'text',
    [
        '',
        '32',
        'null',
        '[]',
        '{}',
        '{"version": 1}',
        '{"version": 1, "shards": 0}',
        '{"version": 1, "shards": -1}',
        '{"version": 1, "shards": "32"}',
        '{"version": 1, "shards": 32.0}',
        '{"version": 1, "shards": true}',
        '{"version": 1, "shards": 1000000}',
        '{"version": 1, "shards": 32, "previous": null}',
        '{"version": 1, "shards": 32, "hash": "md5"}',
        '{"version": 2, "shards": 32}',
        '{"version": 1, "shards": 32',
    ],
)
def test_what_is_no_record_of_this_version_is_refused(text):
    with pytest.raises(LayoutError):
        parse_record(text)


@given(json_values)
def test_any_other_json_is_refused_or_a_layout(value):
    text = json.dumps(value)
    try:
        layout = parse_record(text)
    except LayoutError:
        return
    assert json.loads(layout.to_record()) == value


@given(layouts, st.data())
def test_a_record_cut_short_is_refused(layout, data):
    record = layout.to_record()
    end = data.draw(st.integers(0, len(record) - 1))
    with pytest.raises(LayoutError):
        parse_record(record[:end])


def test_objects_may_lie_by_both_counts_while_they_move():
    assert Layout(12, 8).counts() == (12, 8)
    assert Layout(8).counts() == (8,)
