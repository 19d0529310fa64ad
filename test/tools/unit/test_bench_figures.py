# SPDX-License-Identifier: Apache-2.0
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.results.figures import (
    Histogram,
    Latency,
    Spread,
    count_between,
    histogram,
    latency,
    means_each_second,
    median_interval,
    most_in_window,
    per_second,
    ratio_interval,
    rolling_average,
    spread,
)

#: Times as clocks give them, some of them equal. Sixteenths add up exactly.
times = st.lists(st.integers(0, 320).map(lambda n: n / 16), max_size=60)
values = st.lists(st.floats(0.001, 1000), min_size=1, max_size=60)
durations = st.lists(st.floats(0, 10_000), max_size=60)
series = st.lists(st.none() | st.floats(0, 1000), max_size=40)
windows = st.integers(1, 160).map(lambda n: n / 16)


def test_latency_is_in_milliseconds():
    assert latency([0.003, 0.001, 0.002]) == pytest.approx(
        Latency(2, 2, 2.9, 2.98)
    )


def test_no_durations_have_no_latency():
    assert latency([]) == Latency(None, None, None, None)


def test_a_series_counts_each_second():
    assert per_second([10, 10.5, 11, 13.9, 9.9, 14], 10, 4) == [2, 1, 0, 1]


@given(times, times, st.floats(0.1, 20))
def test_a_series_counts_operations_in_its_time(times, begins, seconds):
    began = begins[0] if begins else 0.0
    counted = sum(per_second(times, began, seconds))
    assert counted == count_between(times, began, began + seconds)


@given(times, windows)
def test_the_most_in_a_window_is_the_maximum_over_all_windows(times, seconds):
    most = max(
        (count_between(times, start, start + seconds) for start in times),
        default=0,
    )
    assert most_in_window(times, seconds) == most


def test_a_window_includes_one_of_its_ends():
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


def test_few_values_give_lower_confidence_and_say_so():
    found = median_interval([1, 2, 3])
    assert (found.low, found.high) == (1, 3)
    assert found.confidence == 0.75
    assert median_interval([1]).confidence == 0


def test_many_values_leave_the_outer_ones_out():
    # a textbook's table of the sign test: of 20 values, the 6th and the 15th
    found = median_interval(range(1, 21))
    assert (found.low, found.high) == (6, 15)


def test_an_outlier_is_trimmed_and_counted():
    # quartiles of 1 and 3: the fences are at -2 and 6
    found = spread([0.0, 0.001, 0.002, 0.003, 1.0])
    assert found[:4] == latency([0.0, 0.001, 0.002, 0.003, 1.0])
    assert found.outliers == 1
    assert found.trimmed_mean_ms == pytest.approx(1.5)
    assert found.mean_ms == pytest.approx(201.2)


def test_two_values_are_no_outliers_however_close_they_are():
    value = 30.81371494526866
    assert spread([value, math.nextafter(value, math.inf)]).outliers == 0


def test_no_values_have_no_spread():
    assert spread([]) == Spread(*[None] * 7, 0)


@given(durations)
def test_a_histogram_has_each_value_between_its_edges(durations):
    found = histogram(durations)
    assert found.total == len(durations)
    pairs = zip(found.edges_ms, found.edges_ms[1:], strict=False)
    for (low, high), count in zip(pairs, found.counts, strict=True):
        in_ms = [max(0.001, 1000 * each) for each in durations]
        least = sum(low * 1.00001 <= each < high / 1.00001 for each in in_ms)
        most = sum(low / 1.00001 <= each < high * 1.00001 for each in in_ms)
        assert least <= count <= most


@given(durations)
def test_a_histogram_has_the_range_that_is_used(durations):
    counts = histogram(durations).counts
    assert bool(counts) == bool(durations)
    assert not counts or (counts[0] and counts[-1])


@given(durations, durations, durations)
def test_histograms_add_up(one, another, third):
    whole = histogram([*one, *another, *third])
    assert histogram(one) + (histogram(another) + histogram(third)) == whole
    assert (histogram(one) + histogram(another)) + histogram(third) == whole


@given(durations)
def test_a_histogram_survives_json(durations):
    found = histogram(durations)
    kept = json.loads(json.dumps(vars(found)))
    again = Histogram(**kept)
    assert again == found
    assert again + found == found + found


@given(series, st.integers(1, 50))
def test_a_rolling_average_is_between_its_values(series, width):
    found = rolling_average(series, width)
    assert len(found) == len(series)
    known = [each for each in series if each is not None]
    for value in found:
        assert value is None or min(known) <= value * (1 + 1e-9)
        assert value is None or value <= max(known) * (1 + 1e-9)


@given(series)
def test_a_rolling_average_of_one_is_the_series(series):
    assert rolling_average(series, 1) == series


def test_a_rolling_average_passes_over_gaps():
    found = rolling_average([None, 2, None, 4, None, None], 2)
    assert found == [None, 2, 2, 4, 4, None]


def test_means_are_those_of_each_second():
    times, values = (10, 10.9, 12, 9.9, 13), (4.0, 6.0, 1.0, 7.0, 7.0)
    assert means_each_second(times, values, 10, 3) == [5, None, 1]


@given(st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=1))
def test_swapped_pairs_have_the_reciprocal_ratio(pairs):
    found = ratio_interval(pairs)
    turned = ratio_interval((b, a) for a, b in pairs)
    assert found.low == pytest.approx(1 / turned.high)
    assert found.confidence == turned.confidence


def test_ratios_are_those_of_pairs():
    assert ratio_interval([(2, 1), (30, 10), (8, 2)]).median == 3


def test_a_value_of_0_has_a_ratio():
    assert ratio_interval([(0, 5)]).median == 0


def test_pairs_without_a_base_have_no_ratio():
    assert ratio_interval([(2, 0), (2, None), (None, 2)]) is None


def test_a_deviation_is_that_of_a_sample():
    assert spread([0.001, 0.003]).stdev_ms == pytest.approx(math.sqrt(2))
    assert spread([0.001]).stdev_ms == 0
