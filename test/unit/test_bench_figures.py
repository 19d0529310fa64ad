# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench.figures import (
    Latency,
    count_between,
    latency,
    median_interval,
    most_in_window,
    per_second,
    percentile,
)

#: As clocks give them, and equal now and then. Sixteenths add up exactly.
times = st.lists(st.integers(0, 320).map(lambda n: n / 16), max_size=60)
values = st.lists(st.floats(0.001, 1000), min_size=1, max_size=60)
windows = st.integers(1, 160).map(lambda n: n / 16)


def test_percentiles_of_a_few():
    ordered = [10, 20, 30, 40]
    assert percentile(ordered, 0) == 10
    assert percentile(ordered, 0.5) == 25
    assert percentile(ordered, 1) == 40


@given(values, st.floats(0, 1))
def test_a_percentile_lies_among_the_values(values, share):
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found >= ordered[0] or math.isclose(found, ordered[0])
    assert found <= ordered[-1] or math.isclose(found, ordered[-1])


@given(values, st.floats(0, 1), st.floats(0, 1))
def test_percentiles_ascend(values, one, another):
    ordered = sorted(values)
    low, high = sorted([one, another])
    lower, higher = percentile(ordered, low), percentile(ordered, high)
    assert lower <= higher or math.isclose(lower, higher)


def test_latency_is_in_milliseconds():
    assert latency([0.003, 0.001, 0.002]) == pytest.approx(
        Latency(2, 2, 2.9, 2.98)
    )


def test_latency_of_nothing_is_none():
    assert latency([]) == Latency(None, None, None, None)


def test_a_series_counts_each_second():
    assert per_second([10, 10.5, 11, 13.9, 9.9, 14], 10, 4) == [2, 1, 0, 1]


@given(times, times, st.floats(0.1, 20))
def test_a_series_counts_what_lies_in_its_time(times, begins, seconds):
    began = begins[0] if begins else 0.0
    counted = sum(per_second(times, began, seconds))
    assert counted == count_between(times, began, began + seconds)


@given(times, windows)
def test_no_window_has_more_than_the_most(times, seconds):
    most = max(
        (count_between(times, start, start + seconds) for start in times),
        default=0,
    )
    assert most_in_window(times, seconds) == most


def test_a_window_has_one_of_its_ends():
    assert most_in_window([0, 1], 1) == 1
    assert most_in_window([0, 0.9, 1], 1) == 2


@given(values)
def test_a_median_lies_in_its_interval(values):
    found = median_interval(values)
    assert min(values) <= found.low
    assert found.low <= found.median or math.isclose(found.low, found.median)
    assert found.median <= found.high or math.isclose(found.median, found.high)
    assert found.high <= max(values)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=60))
def test_six_values_give_the_confidence_that_is_wanted(values):
    assert 0.95 <= median_interval(values).confidence <= 1


def test_few_values_give_less_and_say_so():
    found = median_interval([1, 2, 3])
    assert (found.low, found.high) == (1, 3)
    assert found.confidence == 0.75
    assert median_interval([1]).confidence == 0


def test_many_values_leave_the_outer_ones_out():
    # textbooks' table of the sign test: of 20, the 6th and the 15th
    found = median_interval(range(1, 21))
    assert (found.low, found.high) == (6, 15)
