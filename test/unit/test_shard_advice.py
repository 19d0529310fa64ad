# SPDX-License-Identifier: Apache-2.0
"""Tests of which containers are too full, and of the advice for them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.layout import SHARD_COUNT_LIMIT
from shardmw.reshard.shard_advice import (
    HEADROOM,
    Fullest,
    Growth,
    Listed,
    advised_shards,
    findings_among,
    skew,
    suitable_shards,
)

rows = st.integers(0, 10**10)
limits = st.integers(1, 10**7)


def listed(shards: int, objects: int, fullest: int) -> Listed:
    return Listed('a', 'c', shards, objects, 0, fullest)


@given(rows, limits)
def test_the_advised_count_is_the_least_power_of_two_that_leaves_room(
    objects, limit
):
    count = advised_shards(objects, limit)
    assert count.bit_count() == 1
    assert 1 <= count <= SHARD_COUNT_LIMIT
    if count < SHARD_COUNT_LIMIT:
        assert HEADROOM * objects <= count * limit
    if count > 1:
        assert HEADROOM * objects > count // 2 * limit


@pytest.mark.parametrize(
    ('fullest', 'found'),
    [(79, []), (80, [False]), (100, [False]), (101, [True])],
)
def test_a_container_is_reported_from_four_fifths_of_the_limit(fullest, found):
    findings = findings_among([listed(0, fullest, fullest)], 100)
    assert [each.is_over for each in findings] == found


@pytest.mark.parametrize('new_shards', [0, 8])
def test_while_a_container_changes_the_advised_count_is_the_one_it_will_have(
    new_shards,
):
    container = Listed(
        'a', 'c', 4, 10_000, 0, 9000, phase='moving', new_shards=new_shards
    )
    (finding,) = findings_among([container], 100)
    assert finding.phase == 'moving'
    assert finding.advised_shards == new_shards


def test_a_container_that_changes_is_not_uneven():
    container = Listed('a', 'c', 4, 400, 0, 300, phase='moving', depth=1)
    assert not container.is_uneven


def test_the_advised_count_is_never_below_the_present_one():
    (finding,) = findings_among([listed(32, 150, 101)], 100)
    assert finding.advised_shards == 32


@pytest.mark.parametrize(
    ('depth', 'fullest', 'is_uneven'),
    [(0, 300, False), (1, 300, True), (1, 200, False)],
)
def test_a_container_is_uneven_because_of_its_depth(depth, fullest, is_uneven):
    container = Listed('a', 'c', 4, 400, 0, fullest, depth=depth)
    (finding,) = findings_among([container], 100)
    assert finding.is_uneven is is_uneven
    assert finding.depth == depth


@pytest.mark.parametrize(
    ('shards', 'objects', 'fullest', 'suitable'),
    [
        (0, 100, 100, 0),
        (0, 101, 101, 4),
        (0, 5000, 5000, 64),
        (2, 180, 95, 2),
        (2, 180, 101, 4),
        (8, 150, 101, 8),
        (128, 90_000, 900, 128),
        (7, 90, 20, 7),
        (8, 90, 20, 2),
        (4, 0, 0, 1),
        (3, 0, 0, 3),
        (1, 0, 0, 1),
    ],
)
def test_a_count_is_suitable_unless_a_database_is_full_or_most_are_not_needed(
    shards, objects, fullest, suitable
):
    container = listed(shards, objects, fullest)
    assert suitable_shards(container, 100, 64) == suitable


@given(st.integers(0, SHARD_COUNT_LIMIT), rows, limits)
def test_a_suitable_count_stays_suitable_with_that_count(
    shards, objects, limit
):
    fullest = -(-objects // max(1, shards))
    container = listed(shards, objects, fullest)
    suitable = suitable_shards(container, limit, SHARD_COUNT_LIMIT)
    spread = -(-objects // max(1, suitable))
    again = listed(suitable, objects, spread)
    assert suitable_shards(again, limit, SHARD_COUNT_LIMIT) == suitable


@given(st.integers(0, SHARD_COUNT_LIMIT), rows, st.integers(0, 64))
def test_a_container_gets_no_fewer_shards_than_its_floor(
    shards, objects, floor
):
    container = replace(listed(shards, objects, 0), floor=floor)
    suitable = suitable_shards(container, 100, 64)
    assert suitable >= min(floor, shards)
    if not floor:
        assert suitable == suitable_shards(listed(shards, objects, 0), 100, 64)


HOUR = 3600


class TestGrowth:
    """A shard may get 10 rows a second if shards have 1000 rows or more."""

    @pytest.fixture
    def growth(self) -> Growth:
        return Growth(lambda rows: 10 if rows >= 1000 else None, HOUR)

    @pytest.mark.parametrize(
        ('rows', 'is_held'), [(36_000, True), (32_400, True), (32_300, False)]
    )
    def test_at_its_limit_for_an_hour_is_held(self, growth, rows, is_held):
        assert not growth.is_held(listed(4, 8000, 2000), 0)
        assert not growth.is_held(listed(4, 8000, 30_000), HOUR - 300)
        last = listed(4, 8000, 2000 + rows)
        assert growth.is_held(last, HOUR) == is_held

    def test_of_each_hour_counts_by_itself(self, growth):
        assert not growth.is_held(listed(4, 8000, 2000), 0)
        assert growth.is_held(listed(4, 8000, 40_000), HOUR)
        assert not growth.is_held(listed(4, 8000, 80_000), HOUR + 300)
        assert not growth.is_held(listed(4, 8000, 60_000), 2 * HOUR)

    def test_of_another_layout_begins_anew(self, growth):
        assert not growth.is_held(listed(4, 8000, 2000), 0)
        assert not growth.is_held(listed(8, 8000, 90_000), HOUR)

    def test_without_a_limit_is_not_held(self, growth):
        assert not growth.is_held(listed(4, 3999, 2000), 0)
        assert not growth.is_held(listed(4, 3999, 90_000), HOUR)

    def test_of_one_directory_is_not_held(self, growth):
        uneven = replace(listed(4, 90_000, 2000), depth=1)
        assert not growth.is_held(uneven, 0)
        grown = replace(uneven, fullest=90_000)
        assert not growth.is_held(grown, HOUR)


@given(st.lists(rows, min_size=1))
def test_the_skew_is_1_if_all_shards_are_alike_and_more_otherwise(counts):
    found = skew(counts)
    assert found + 1e-9 >= 1
    assert found <= len(counts) + 1e-9
    assert (found == 1) == (len(set(counts)) == 1) or not any(counts)


@given(st.lists(rows, max_size=20), st.integers(0, 5))
def test_the_fullest_containers_are_kept_and_all_are_passed_on(found, count):
    containers = [
        Listed('a', f'c{i}', 0, fullest, 0, fullest)
        for i, fullest in enumerate(found)
    ]
    fullest = Fullest(count)
    assert list(fullest.among(containers)) == containers
    kept = [each.fullest for each in fullest.containers]
    assert kept == sorted(found, reverse=True)[:count]


@pytest.mark.parametrize(
    'state', [{'problem': 'no answer'}, {'phase': 'moving'}]
)
def test_a_container_whose_rows_are_unknown_is_not_among_the_fullest(state):
    fullest = Fullest(2)
    list(fullest.among([Listed('a', 'c', 0, 9, 0, 9, **state)]))
    assert fullest.containers == []


@pytest.mark.parametrize(
    ('shards', 'objects', 'full', 'expected'),
    [
        (0, 9, 9, 1),
        (4, 0, 0, 1),
        (4, 400, 100, 1),
        (4, 400, 300, 3),
        (4, 400, 50, 1),
    ],
)
def test_the_skew_is_that_of_the_fullest_shard(
    shards, objects, full, expected
):
    assert listed(shards, objects, full).skew == expected
