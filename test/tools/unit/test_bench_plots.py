# SPDX-License-Identifier: Apache-2.0
"""The contents of drawings, and plots of made-up runs."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib.style
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.plots import runs as runplots
from shardmw_bench.plots.drawing import figure_of, svg
from shardmw_bench.plots.plot import (
    BARS,
    DOTS,
    LINE,
    REFERENCE,
    Axis,
    Band,
    Plot,
    Series,
)
from shardmw_bench.results.figures import histogram, latency, spread
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import REQUEST, RESPONSE, TRANSFER, Summary

KINDS = (PLAIN, native(8), sharded(1), sharded(32))
BY_KIND = Plot(
    'rate-by-shards',
    'Writes: throughput <by> shard count',
    Axis('container', names=['plain', 'native, 8 ranges', 'N = 32']),
    Axis('writes/s'),
    [
        Series('no limit', [0, 1, 2], [300, 280.4, 290], BARS),
        Series('limit 100/s', [0, 1, 2], [98, 97, 280], BARS),
    ],
)
SIZES = (4096, 32768, 4 << 20)
BY_SIZE = Plot(
    'rate-by-size',
    'Throughput by object size',
    Axis('object size (bytes)', log=True, ticks=SIZES, sizes=True),
    Axis('writes/s', log=True),
    [
        Series('plain', SIZES, [3, 30, 900], LINE, [2, 0, 800], [4, 40, 1000]),
        Series('published', SIZES, [4, 40, 1000], REFERENCE),
    ],
)


def texts_in(drawing: str) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [
        ''.join(each.itertext()).strip()
        for each in root.iter('{http://www.w3.org/2000/svg}text')
    ]


def axes_of(*series: Series, **changes: object) -> list:
    """Return matplotlib's axes of a plot over time."""
    x, y = Axis('time (s)'), Axis('latency (ms)')
    plot = replace(Plot('over-time', 'Over time', x, y, series), **changes)
    return figure_of(plot).axes


class TestDrawing:
    def test_words_and_values_are_text(self):
        texts = {*texts_in(svg(BY_KIND))}
        assert {'Writes: throughput <by> shard count', 'writes/s'} <= texts
        assert {'no limit', 'limit 100/s', 'plain', 'N = 32'} <= texts
        # beside the bars
        assert {'280', '97.0', '290'} <= texts

    def test_ticks_are_plain_numbers(self):
        texts = {*texts_in(svg(BY_SIZE))}
        assert {'4K', '32K', '4M', '10', '100', '1,000'} <= texts
        plot = replace(BY_SIZE, series=[Series('a', SIZES, [1, 10, 5e6])])
        assert '1 M' in texts_in(svg(plot))

    def test_drawings_of_a_page_share_no_ids(self):
        ids = [
            set(re.findall(r' id="([^"]*)"', svg(plot)))
            for plot in (BY_KIND, BY_SIZE)
        ]
        assert ids[0] and ids[1] and not ids[0] & ids[1]

    def test_the_same_plot_always_gives_the_same_file(self):
        usual = svg(BY_KIND)
        with matplotlib.style.context({'font.size': 30}):
            assert svg(BY_KIND) == usual

    def test_bars_without_a_zero_are_dots(self):
        plot = replace(BY_KIND, y=Axis('writes/s', log=True))
        (axes,) = figure_of(plot).axes
        assert not axes.patches

    def test_panels_have_scales_of_their_own(self):
        request, transfer = axes_of(
            Series('mean', [0], [0.08], BARS, panel='request'),
            Series('mean', [0], [50], BARS, panel='transfer'),
            x=Axis('container', names=['plain']),
        )
        assert request.get_xlim()[1] < 0.2 < 50 < transfer.get_xlim()[1]
        assert request.get_title() == 'request'

    def test_a_label_is_in_the_legend_once(self):
        series = [
            Series('plain', [1, 2], [3, 4], DOTS),
            Series('plain', [1, 2], [3, 4], LINE),
        ]
        bands = [Band('moving', 1, 2), Band('moving', 3, 4)]
        plot = replace(BY_SIZE, x=Axis('s'), series=series, bands=bands)
        texts = texts_in(svg(plot))
        assert texts.count('plain') == texts.count('moving') == 1

    def test_a_reference_that_is_always_the_same_is_a_line_to_the_edges(self):
        (axes,) = axes_of(Series('goal', [1, 2], [5, 5], REFERENCE))
        assert list(axes.lines[0].get_xdata()) == [0, 1]

    def test_a_single_point_can_be_seen(self):
        (axes,) = axes_of(Series('plain', [1], [5]))
        assert axes.lines[0].get_marker() == 'o'

    def test_small_differences_are_seen_where_zero_is_not_wanted(self):
        series = Series('plain', [1, 2], [100, 101])
        (whole,) = axes_of(series)
        (part,) = axes_of(series, y=Axis('latency (ms)', from_zero=False))
        assert whole.get_ylim()[0] == 0
        assert part.get_ylim()[0] > 99

    @settings(deadline=None, max_examples=15)
    @given(
        st.sampled_from([LINE, DOTS, REFERENCE, BARS]),
        st.lists(
            st.tuples(st.integers(0, 3), st.none() | st.floats(0, 1e8)),
            max_size=6,
        ),
        *(st.booleans(), st.booleans(), st.text('abc , 9', max_size=200)),
    )
    def test_anything_can_be_drawn(self, style, points, log, is_named, label):
        y = [y if style in (LINE, DOTS) else y or 0 for _, y in points]
        is_named = is_named or style == BARS
        plot = Plot(
            *('any', label),
            Axis(label, names=[label] * 4 if is_named else ()),
            Axis('y', log=log),
            [Series(label, [x for x, _ in points], y, style)],
        )
        assert svg(plot).startswith('<svg ')


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
    """Return a run of 2 s."""
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
        phases={p: spread(took) for p in (REQUEST, RESPONSE, TRANSFER)},
        histogram=histogram(took),
        latency_each_second=list(each_second),
        bytes_sent=admitted * size,
        done=admitted,
    )
    if size:
        conditions['size'] = size
    return Run(work, kind, turn, conditions, summary, rows_listed)


def drawn(plot, label, style=None):
    """Return the points of a label, as pairs."""
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
def test_plots_of_any_runs_make_sense(runs):
    plots = runplots.all_of(runs)
    names = [plot.name for plot in plots]
    assert len(set(names)) == len(names)
    for plot in plots:
        assert re.fullmatch(r'[a-z0-9]+(-[a-z0-9]+)*', plot.name)
        assert re.search(r'\((ms|MB/s|%)\)$|/s$', plot.y.label)
        for series in plot.series:
            known = [each for each in series.y if each is not None]
            assert known and len(series.x) == len(series.y)
            assert all(map(math.isfinite, (*series.x, *known)))
            assert min(series.x) > 0 or not plot.x.log
            assert min(known) > 0 or not plot.y.log
            if series.low:
                ends = zip(series.low, series.y, series.high, strict=True)
                assert all(low <= y <= high for low, y, high in ends)


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
        (plot,) = runplots.rates_by_shards(runs)
        assert plot.x.names == ['plain', 'native, 8 ranges', 'N = 32']
        (series,) = plot.series
        assert (series.style, series.y) == (BARS, [100, 150, 220])
        assert series.low == [50, 150, 200]
        assert series.high == [110, 150, 300]
        assert '3 rounds' in plot.note

    def test_other_conditions_have_series_of_their_own(self):
        runs = [
            run(kind=kind, limit=limit)
            for kind in (PLAIN, sharded(32))
            for limit in (100.0, None)
        ]
        (plot,) = runplots.rates_by_shards(runs)
        labels = [series.label for series in plot.series]
        assert labels == ['no limit', 'limit 100/s']

    def test_each_work_has_a_plot(self):
        runs = [run(work, k) for work in ('read', 'head') for k in KINDS]
        reads, heads = runplots.rates_by_shards(runs)
        assert reads.title == 'Reads: throughput by shard count'
        assert heads.name == 'head-rate-by-shards'


class TestByCondition:
    def test_sizes_are_an_axis_with_a_line_for_each_kind(self):
        runs = [
            run(kind=kind, size=size, admitted=admitted)
            for kind in (PLAIN, sharded(8))
            for size, admitted in ((4096, 600), (4 << 20, 80))
        ]
        (plot,) = runplots.by_condition(runs, 'size', runplots.RATE)
        assert plot.x.log and plot.x.sizes
        assert drawn(plot, 'plain') == [(4096, 300), (4 << 20, 40)]
        (bandwidth,) = runplots.by_condition(runs, 'size', runplots.BANDWIDTH)
        assert drawn(bandwidth, 'N = 8')[0] == (4096, 300 * 4096 / 1e6)

    def test_other_conditions_have_plots_of_their_own(self):
        runs = [run(clients=n, size=s) for n in (1, 16) for s in SIZES[::2]]
        small, large = runplots.by_condition(runs, 'clients', runplots.RATE)
        assert small.title == 'Writes: throughput by concurrency (4K objects)'
        assert large.name == 'rate-by-clients-4m-objects'

    def test_latency_grows_with_the_rows(self):
        runs = [
            run(rows=rows, took=(took,)) for rows, took in ((0, 1), (9, 2))
        ]
        mean, median = runplots.by_condition(runs, 'rows', *runplots.LATENCIES)
        assert drawn(mean, 'plain') == [(0, 1000), (9, 2000)]
        assert mean.y.label == 'mean latency (ms)'
        assert median.y.label == 'median latency (ms)'

    def test_very_different_rates_have_a_logarithmic_axis(self):
        def axis_of(most):
            runs = [run(clients=1, admitted=2), run(clients=2, admitted=most)]
            (plot,) = runplots.by_condition(runs, 'clients', runplots.RATE)
            return plot.y

        assert axis_of(2000).log
        assert not axis_of(20).log
        assert not axis_of(0).log

    def test_each_work_shows_some_of_many_conditions(self):
        runs = [run(w, rows=n) for w in ('read', 'write') for n in range(20)]
        plots = [*runplots.latency_distributions(runs)]
        stem = 'read-latency-distribution'
        names = [f'{stem}-{n}-rows' for n in (0, 6, 13, 19)]
        assert [plot.name for plot in plots[:4]] == names
        assert len(plots) == 8


class TestLatencyOverTime:
    def test_seconds_are_dots_and_averages_a_line(self):
        (plot,) = runplots.latency_over_time([run(each_second=(10, 20, 30))])
        assert drawn(plot, 'plain', DOTS) == [(0.5, 10), (1.5, 20), (2.5, 30)]
        assert drawn(plot, 'plain', LINE) == [(0.5, 10), (1.5, 15), (2.5, 20)]

    def test_a_line_does_not_cross_a_gap(self):
        seconds = (*[10] * 3, *[None] * 7, *[10] * 3)
        (plot,) = runplots.latency_over_time([run(each_second=seconds)])
        assert (7.5, None) in drawn(plot, 'plain', LINE)

    @pytest.mark.parametrize(
        ('seconds', 'points', 'step', 'window'),
        [(10, 10, 'each second', 3), (60, 60, 'each second', 6)]
        + [(900, 113, 'each 8 s', 88)],
    )
    def test_window_and_points_fit_the_length(
        self, seconds, points, step, window
    ):
        runs = [run(each_second=[5] * seconds)]
        (plot,) = runplots.latency_over_time(runs)
        assert len(drawn(plot, 'plain', LINE)) == points
        assert step in plot.note
        assert f'the last {window} s' in plot.note


def test_kinds_that_a_plot_lacks_are_named():
    whole = run(each_second=(1, 2, 3))
    part = run(kind=sharded(2), took=(), each_second=(1,))
    for plots in (runplots.latency_over_time, runplots.latency_distributions):
        (plot,) = plots([whole, part])
        assert plot.note.endswith('. Too little was measured of N = 2.')
        (plot,) = plots([whole])
        assert 'Too little' not in plot.note


def test_distributions_of_all_rounds_rise_to_all_operations():
    runs = [run(took=(0.01, 0.02)), run(turn=1, took=(0.02, 0.02))]
    (plot,) = runplots.latency_distributions(runs)
    (series,) = plot.series
    assert series.y[0] == 0 and series.y[-1] == 100
    assert series.y == sorted(series.y)
    at_15_ms = max(y for x, y in drawn(plot, 'plain') if x < 15)
    assert at_15_ms == 25


def test_phases_are_panels_with_outliers_and_without():
    took = (*[0.01] * 20, 1.0)
    (plot,) = runplots.phases([run(took=took)])
    panels = [each.panel for each in plot.series]
    assert panels[::2] == panels[1::2] == [REQUEST, RESPONSE, TRANSFER]
    trimmed, whole = plot.series[:2]
    assert (trimmed.label, whole.label) == (
        'without outliers',
        'with outliers',
    )
    assert (trimmed.y, whole.y) == (
        [pytest.approx(10)],
        [pytest.approx(1200 / 21)],
    )
