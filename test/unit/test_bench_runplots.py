# SPDX-License-Identifier: Apache-2.0
"""Plots of runs, from runs made up."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench import runplots
from shardmw.bench.kinds import PLAIN, native, sharded
from shardmw.bench.plot import BARS, DOTS, LINE, STEPS, STROKES
from shardmw.bench.results.figures import histogram, latency, spread
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import REQUEST, RESPONSE, TRANSFER, Summary

KINDS = (PLAIN, native(8), sharded(1), sharded(32))


def run(
    work='write',
    kind=PLAIN,
    turn=0,
    admitted=100,
    took=(0.01, 0.02, 0.04),
    each_second=(),
    size=0,
    rows_listed=0,
    **conditions,
) -> Run:
    """A run of 2 s."""
    phases = {name: spread(took) for name in (REQUEST, RESPONSE, TRANSFER)}
    summary = Summary(
        seconds=2.0,
        offered=admitted,
        admitted=admitted,
        refused=0,
        errors={},
        latency=latency(took),
        admitted_each_second=[admitted, 0],
        client_busy_share=0.1,
        is_client_bound=False,
        phases=phases,
        histogram=histogram(took),
        latency_each_second=list(each_second),
        bytes_sent=admitted * size,
        done=admitted,
    )
    if size:
        conditions['size'] = size
    return Run(work, kind, turn, conditions, summary, rows_listed)


def drawn(plot, label, style=None):
    """The points of a label, as pairs."""
    return [
        pair
        for series in plot.series
        if series.label == label and style in (None, series.style)
        for pair in zip(series.x, series.y, strict=True)
    ]


numbers = st.sampled_from([None, 0, 1, 16, 1000, 4096, 2.5])
durations = st.floats(0.0001, 100)
any_runs = st.lists(
    st.builds(
        run,
        work=st.sampled_from(['write', 'list', 'mixed']),
        kind=st.sampled_from(KINDS),
        turn=st.integers(0, 2),
        admitted=st.integers(0, 10**6),
        took=st.lists(durations, max_size=5),
        each_second=st.lists(st.none() | durations, max_size=300),
        size=st.sampled_from([0, 1, 4096, 1 << 26]),
        rows_listed=st.sampled_from([0, 0, 10_000]),
        clients=numbers,
        rows=numbers,
        limit=numbers,
        mix=st.sampled_from(['4K-64K', '1K']),
    ),
    max_size=8,
)


@given(any_runs)
def test_plots_are_of_numbers_that_have_a_place_on_their_axes(runs):
    for plot in runplots.all_of(runs, 'compare-write'):
        for series in plot.series:
            assert len(series.x) == len(series.y) > 0
            assert all(map(math.isfinite, (*series.x, *series.y)))
            assert min(series.x) > 0 or not plot.x.log
            assert min(series.y) > 0 or not plot.y.log
            if plot.x.names:
                assert set(series.x) <= set(range(len(plot.x.names)))


@given(any_runs)
def test_intervals_are_round_their_values(runs):
    for plot in runplots.all_of(runs, 'p'):
        for series in plot.series:
            ends = zip(
                series.low or series.y,
                series.y,
                series.high or series.y,
                strict=True,
            )
            assert all(low <= y <= high for low, y, high in ends)


@given(any_runs)
def test_each_plot_has_a_name_for_a_file_of_its_own(runs):
    names = [plot.name for plot in runplots.all_of(runs, 'compare-write')]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r'compare-write(-[a-z0-9]+)+', name)


@given(any_runs)
def test_measures_tell_their_unit(runs):
    for plot in runplots.all_of(runs, 'p'):
        assert re.search(r'\((ms|MB/s|%)\)$|/s$', plot.y.label)


def test_no_runs_give_no_plots():
    assert runplots.all_of([], 'p') == []


class TestRatesByShards:
    def test_kinds_are_in_order_and_rounds_are_summed_up(self):
        runs = [
            run(kind=kind, turn=turn, admitted=admitted)
            for kind, counts in (
                (sharded(32), (400, 600, 440)),
                (native(8), (300, 300, 300)),
                (PLAIN, (200, 100, 220)),
            )
            for turn, admitted in enumerate(counts)
        ]
        (plot,) = runplots.rates_by_shards(runs, 'p')
        assert plot.x.names == ['plain', 'native, 8 ranges', 'N = 32']
        (series,) = plot.series
        assert (series.style, series.y) == (BARS, [100, 150, 220])
        assert series.low == [50, 150, 200]
        assert series.high == [110, 150, 300]
        assert '3 rounds' in plot.note

    def test_other_conditions_are_told_apart_by_series(self):
        runs = [
            run(kind=kind, limit=limit)
            for kind in (PLAIN, sharded(32))
            for limit in (100.0, None)
        ]
        (plot,) = runplots.rates_by_shards(runs, 'p')
        labels = [series.label for series in plot.series]
        assert labels == ['no limit', 'limit 100/s']

    def test_rows_are_the_rate_of_listings(self):
        runs = [
            run('list', kind, rows_listed=20_000)
            for kind in (PLAIN, sharded(4))
        ]
        (plot,) = runplots.rates_by_shards(runs, 'p')
        assert plot.y.label == 'rows/s'
        assert plot.series[0].y == [10_000, 10_000]

    def test_one_kind_is_nothing_to_compare(self):
        assert runplots.rates_by_shards([run(), run(turn=1)], 'p') == []

    def test_each_work_has_a_plot(self):
        runs = [
            run(work, kind)
            for work in ('read', 'head')
            for kind in (PLAIN, sharded(4))
        ]
        reads, heads = runplots.rates_by_shards(runs, 'p')
        assert reads.title == 'Reads: throughput by shard count'
        assert heads.name == 'p-head-rate-by-shards'


class TestByCondition:
    def test_sizes_are_an_axis_with_a_line_for_each_kind(self):
        runs = [
            run(kind=kind, size=size, admitted=admitted)
            for kind in (PLAIN, sharded(8))
            for size, admitted in ((4096, 600), (4 << 20, 80))
        ]
        (plot,) = runplots.rates_by_condition(runs, 'p', 'size')
        assert plot.x.log and plot.x.sizes
        assert drawn(plot, 'plain') == [(4096, 300), (4 << 20, 40)]
        (bandwidth,) = runplots.bandwidth_by_size(runs, 'p')
        assert drawn(bandwidth, 'N = 8')[0] == (4096, 300 * 4096 / 1e6)

    def test_other_conditions_have_plots_of_their_own(self):
        runs = [
            run(clients=clients, size=size)
            for clients in (1, 16)
            for size in (4096, 4 << 20)
        ]
        small, large = runplots.rates_by_condition(runs, 'p', 'clients')
        assert small.title == 'Writes: throughput by concurrency (4K objects)'
        assert large.name == 'p-rate-by-clients-4m-objects'

    def test_latency_grows_with_the_rows(self):
        runs = [
            run(rows=rows, took=(took,)) for rows, took in ((0, 1), (9, 2))
        ]
        mean, median = runplots.latency_by_rows(runs, 'p')
        assert drawn(mean, 'plain') == [(0, 1000), (9, 2000)]
        assert mean.y.label == 'mean latency (ms)'
        assert median.y.label == 'median latency (ms)'

    def test_what_took_no_time_at_all_has_no_latency(self):
        runs = [run(rows=rows, took=()) for rows in (0, 9)]
        assert runplots.latency_by_rows(runs, 'p') == []

    def test_words_are_no_axis(self):
        runs = [run(mix=mix) for mix in ('4K-64K', '1K')]
        assert runplots.rates_by_condition(runs, 'p', 'mix') == []

    def test_very_different_rates_have_a_logarithmic_axis(self):
        def axis_of(most):
            runs = [run(clients=1, admitted=2), run(clients=2, admitted=most)]
            return runplots.rates_by_condition(runs, 'p', 'clients')[0].y

        assert axis_of(2000).log
        assert not axis_of(20).log
        assert not axis_of(0).log

    def test_of_many_conditions_some_are_shown(self):
        runs = [run(rows=rows) for rows in range(20)]
        names = [plot.name for plot in runplots.latency_histograms(runs, 'p')]
        stem = 'p-latency-histogram'
        assert names == [f'{stem}-{n}-rows' for n in (0, 6, 13, 19)]


def test_each_work_has_its_share_of_plots():
    runs = [
        run(work, rows=rows) for work in ('read', 'write') for rows in range(9)
    ]
    names = [plot.name for plot in runplots.latency_histograms(runs, 'p')]
    assert len([name for name in names if name.startswith('p-read')]) == 4
    assert len(names) == 8


class TestLatencyOverTime:
    def test_seconds_are_dots_and_averages_a_line(self):
        runs = [run(each_second=(10, 20, 30))]
        (plot,) = runplots.latency_over_time(runs, 'p')
        dots = drawn(plot, 'plain', DOTS)
        assert dots == [(0.5, 10), (1.5, 20), (2.5, 30)]
        line = drawn(plot, 'plain', LINE)
        assert line == [(0.5, 10), (1.5, 15), (2.5, 20)]

    def test_a_line_does_not_cross_a_gap(self):
        seconds = (*[10] * 3, *[None] * 7, *[10] * 3)
        (plot,) = runplots.latency_over_time([run(each_second=seconds)], 'p')
        lines = [each for each in plot.series if each.style == LINE]
        assert [each.x[0] for each in lines] == [0.5, 10.5]

    def test_many_kinds_are_lines_only(self):
        runs = [
            run(kind=sharded(n), each_second=(1, 2, 3)) for n in range(1, 9)
        ]
        (plot,) = runplots.latency_over_time(runs, 'p')
        assert {each.style for each in plot.series} == {LINE}
        assert len(plot.series) == 8

    def test_a_long_time_has_no_more_points_than_one_can_see(self):
        (plot,) = runplots.latency_over_time([run(each_second=[5] * 900)], 'p')
        assert len(drawn(plot, 'plain', LINE)) == 113
        assert 'each 8 s' in plot.note

    def test_it_is_of_the_first_round(self):
        runs = [run(turn=turn, each_second=[turn] * 3) for turn in (2, 1, 3)]
        (plot,) = runplots.latency_over_time(runs, 'p')
        assert {y for _, y in drawn(plot, 'plain')} == {1}

    def test_a_moment_is_no_history(self):
        runs = [run(each_second=(1, None, 2, None))]
        assert runplots.latency_over_time(runs, 'p') == []


def test_whom_a_plot_lacks_is_told():
    whole = run(each_second=(1, 2, 3))
    part = run(kind=sharded(2), took=(), each_second=(1,))
    for plots in (runplots.latency_over_time, runplots.latency_histograms):
        (plot,) = plots([whole, part], 'p')
        assert plot.note.endswith('. Too little was measured of N = 2.')
        (plot,) = plots([whole], 'p')
        assert 'Too little' not in plot.note


def test_histograms_of_all_rounds_are_shares():
    runs = [run(took=(0.01, 0.02)), run(turn=1, took=(0.02, 0.02))]
    (plot,) = runplots.latency_histograms(runs, 'p')
    (series,) = plot.series
    assert series.style == STEPS
    assert sum(series.y) == pytest.approx(100)
    assert max(series.y) == 75
    assert (series.y[0], series.y[-1]) == (0, 0)


def test_phases_are_bars_with_strokes_where_outliers_would_take_them():
    took = (*[0.01] * 20, 1.0)
    (plot,) = runplots.phases([run(took=took)], 'p')
    bars = [each for each in plot.series if each.style == BARS]
    assert [each.label for each in bars] == [REQUEST, RESPONSE, TRANSFER]
    assert drawn(plot, REQUEST) == [(0, pytest.approx(10))]
    strokes = [each for each in plot.series if each.style == STROKES]
    assert [each.beside for each in strokes] == [REQUEST, RESPONSE, TRANSFER]
    assert strokes[0].y == [pytest.approx(1200 / 21)]
