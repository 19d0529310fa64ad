# SPDX-License-Identifier: Apache-2.0
"""Rows that are put into container databases, and their places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.names import FlatNames
from shardmw_bench.preload import placer, row_maker, wanted_fullness
from shardmw_bench.targets.native import (
    even_bounds,
    shard_data,
    spread_bounds,
)
from swift.common.utils import ShardRange, Timestamp

from shardmw.core.placement import shard_of

OBJECT_NAMES = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    min_size=1,
    max_size=20,
)
RANGES = st.integers(1, 40)


class TestRows:
    @given(st.integers(1, 10**6), st.floats(10**9, 4 * 10**9))
    def test_timestamps_are_swifts_and_ascend(self, count, began):
        make = row_maker(1, began)
        last, following = (
            make(number, 'o')['created_at'] for number in (count, count + 1)
        )
        assert Timestamp(last).internal == last
        assert last < following

    @pytest.mark.parametrize(
        ('name', 'expected'),
        [
            ('o0000000001', 'application/octet-stream'),
            ('a.b/c', 'application/octet-stream'),
            ('cat.jpg', 'image/jpeg'),
            ('page.html', 'text/html'),
        ],
    )
    def test_the_type_is_guessed_from_the_name(self, name, expected):
        assert row_maker(1, 0)(0, name)['content_type'] == expected

    def test_the_etag_is_that_of_the_bytes(self):
        row = row_maker(4, 0)(0, 'o')
        assert row['size'] == 4
        assert row['etag'] == 'ea416ed0759d46a8de58f63a59077499'


class TestPlacement:
    @given(OBJECT_NAMES)
    def test_a_plain_container_has_one_part(self, name):
        assert placer(PLAIN, [])(name) == 0

    @given(OBJECT_NAMES, RANGES)
    def test_shards_hold_what_the_filter_puts_there(self, name, shards):
        assert placer(sharded(shards), [])(name) == shard_of(name, shards)

    @given(OBJECT_NAMES, RANGES)
    def test_shards_by_directory_hold_what_the_filter_puts_there(
        self, name, shards
    ):
        (kind,) = sharded(shards).at([2])
        assert placer(kind, [])(name) == shard_of(name, shards, 2)

    @given(OBJECT_NAMES, st.sets(OBJECT_NAMES, max_size=8))
    def test_ranges_hold_what_swift_puts_there(self, name, bounds):
        uppers = sorted(bounds)
        part = placer(native(len(uppers) + 1), uppers)(name)
        lower = uppers[part - 1] if part else ''
        upper = uppers[part] if part < len(uppers) else ''
        assert name in ShardRange('a/c', 0, lower, upper)


class TestBounds:
    @given(st.integers(1, 500), RANGES)
    def test_ranges_of_names_are_of_one_size(self, count, ranges):
        names = FlatNames(max(count, ranges))
        place = placer(native(ranges), even_bounds(names, ranges))
        counts = [0] * ranges
        for name in names:
            counts[place(name)] += 1
        assert max(counts) - min(counts) <= 1

    def test_fewer_names_than_ranges_are_refused(self):
        with pytest.raises(BenchError, match='1 objects cannot fill 2'):
            even_bounds(('a',), 2)

    @given(st.integers(1, 256))
    def test_ranges_of_spread_names_are_of_one_size(self, ranges):
        bounds = [0, *(int(b, 16) for b in spread_bounds(ranges)), 16**4]
        widths = [b - a for a, b in zip(bounds, bounds[1:], strict=False)]
        assert len(widths) == ranges
        assert max(widths) - min(widths) <= 1

    @given(st.sets(OBJECT_NAMES))
    def test_ranges_leave_no_gap(self, bounds):
        ranges = shard_data(sorted(bounds))
        assert ranges[0]['lower'] == ranges[-1]['upper'] == ''
        for one, following in zip(ranges, ranges[1:], strict=False):
            assert one['upper'] == following['lower']


@given(RANGES, st.floats(0, 0.99))
def test_shards_fill_their_pending_files_one_after_the_other(shards, phase):
    wanted = [
        wanted_fullness(part, shards, phase) for part in range(shards + 1)
    ]
    # the root, which is last, gets none of what is written
    assert wanted[0] == phase / shards
    assert wanted[-1] == 0
    assert wanted[:-1] == sorted(wanted[:-1])
    assert max(wanted) < 1
