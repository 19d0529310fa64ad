# SPDX-License-Identifier: Apache-2.0
"""Plots that any list of runs can have. Pure.

Each function takes runs of any work, kinds, rounds and conditions, and gives
the plots that make sense of them: none, if there is too little to compare.
What else differs between runs, such as a limit, is told apart by colour in
:func:`rates_by_shards`, and by a plot for each elsewhere.

A scenario takes :func:`all_of`, or single ones, with names of its own::

    runplots.rates_by_shards(runs, 'container-sharding')

Names of plots begin with the prefix, as they are names of files: words of
lower case, digits and hyphens.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from statistics import fmean, median

from shardmw.bench.cuts import (
    Cut,
    by_conditions,
    by_kind,
    cuts,
    is_number,
    kinds_of,
    rounds_of,
    said,
    some,
)
from shardmw.bench.kinds import Kind
from shardmw.bench.plot import (
    BARS,
    DOTS,
    LINE,
    STEPS,
    STROKES,
    Axis,
    Plot,
    Series,
)
from shardmw.bench.results.figures import Histogram, rolling_average
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import REQUEST, RESPONSE, TRANSFER
from shardmw.bench.words import varying

# Conditions that can be an axis: its label, and what a title says.
_AXES = {
    'size': ('object size (bytes)', 'by object size'),
    'clients': ('concurrency (clients)', 'by concurrency'),
    'page': ('page size (rows)', 'by page size'),
    'rows': ('rows in the container', 'as the container grows'),
}

# Values further apart than that can't be read off the same linear axis.
_WIDE = 30

# The same of the values that something is measured at.
_WIDE_STEPS = 8

# Bars of so many colours can be told apart.
_MOST_COLOURS = 6

# Of so many kinds the single seconds can be seen beside the averages.
_FEW_KINDS = 3

# Of a longer time, several seconds make a point.
_MOST_POINTS = 120
_LEAST_POINTS = 3
_ROLLING_POINTS = 5

_PHASES = (REQUEST, RESPONSE, TRANSFER)
_PHASES_NOTE = (
    'Request: until it was sent; response: from then until its first byte; '
    'transfer: until its last one. Bars are means without the outliers beyond '
    '1.5 interquartile ranges.'
)

_Measure = Callable[[Run], float | None]


def all_of(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """All plots below that make sense of these runs, in their order.

    :param prefix: what the names of the plots begin with, such as
                   ``compare-write``
    """
    by_condition = [
        plot
        for condition in _AXES
        for plot in rates_by_condition(runs, prefix, condition)
    ]
    return [
        *rates_by_shards(runs, prefix),
        *by_condition,
        *bandwidth_by_size(runs, prefix),
        *latency_by_rows(runs, prefix),
        *latency_over_time(runs, prefix),
        *latency_histograms(runs, prefix),
        *phases(runs, prefix),
    ]


def rates_by_shards(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Throughput by what the container is: plain, native, N = 1, 8, …

    If there are two kinds at least, and no more other conditions than can be
    told apart by colour.
    """
    plots = []
    for cut in cuts(runs, but=varying(runs)):
        kinds = kinds_of(cut.runs)
        groups = by_conditions(cut.runs, varying(cut.runs))
        if len(kinds) < 2 or len(groups) > _MOST_COLOURS:
            continue
        series = [
            _series(
                said(conditions) or cut.noun,
                group,
                _place_among(kinds),
                _rate,
                BARS,
            )
            for conditions, group in groups.items()
        ]
        plots += plot_of(
            name=cut.name(prefix, 'rate-by-shards'),
            title=cut.title('throughput by shard count'),
            x=_kinds_axis(kinds),
            y=_rate_axis(cut, series),
            series=series,
            note=_rounds_note(cut.runs),
        )
    return plots


def rates_by_condition(
    runs: Sequence[Run], prefix: str, condition: str
) -> list[Plot]:
    """Throughput by a condition that has numbers, a line for each kind.

    If there are two values of it at least.

    :param condition: ``size``, ``clients``, ``page``, ``rows`` or the like
    """
    return _by_condition(
        *(runs, prefix, condition),
        name='rate',
        title='throughput',
        measure=_rate,
        y_axis=_rate_axis,
    )


def bandwidth_by_size(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Megabytes of bodies a second by object size, a line for each kind."""
    return bandwidth_by_condition(runs, prefix, 'size')


def bandwidth_by_condition(
    runs: Sequence[Run], prefix: str, condition: str
) -> list[Plot]:
    """Megabytes of bodies a second, sent and received, by a condition."""
    return _by_condition(
        *(runs, prefix, condition),
        name='bandwidth',
        title='bandwidth',
        measure=_bandwidth,
        y_axis=lambda cut, series: _axis('bodies (MB/s)', series),
    )


def latency_by_rows(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean and median latency as the container grows, by kind.

    If there are two values of ``conditions['rows']`` at least.
    """
    return latency_by_condition(runs, prefix, 'rows')


def latency_by_condition(
    runs: Sequence[Run], prefix: str, condition: str
) -> list[Plot]:
    """Mean and median latency by a condition that has numbers, by kind."""
    measures: dict[str, _Measure] = {
        'mean': lambda run: run.summary.latency.mean_ms,
        'median': lambda run: run.summary.latency.p50_ms,
    }
    return [
        plot
        for what, measure in measures.items()
        for plot in _by_condition(
            *(runs, prefix, condition),
            name=f'{what}-latency',
            title=f'{what} latency',
            measure=measure,
            y_axis=lambda cut, series, what=what: _axis(
                f'{what} latency (ms)', series, from_zero=False
            ),
        )
    ]


def latency_over_time(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean latency of each second, and a rolling average, by kind."""
    plots = []
    for cut in some(cuts(runs)):
        first = _of_first_round(cut.runs)
        step = _seconds_a_point(first)
        shown = [run for run in first if _has_times(run, step)]
        has_dots = len(shown) <= _FEW_KINDS
        series = [
            each
            for run in shown
            for each in _times_series(run, step, has_dots)
        ]
        plots += plot_of(
            name=cut.name(prefix, 'latency-over-time'),
            title=cut.title('latency over time'),
            x=Axis('time since the load began (s)'),
            y=_axis('mean latency (ms)', series),
            series=series,
            note=_times_note(cut.runs, step, has_dots)
            + _left_out_note(cut.runs, series),
        )
    return plots


def latency_histograms(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """How many operations took how long, by kind."""
    plots = []
    for cut in some(cuts(runs)):
        histograms = {
            kind.label: _histogram(own)
            for kind, own in by_kind(cut.runs).items()
        }
        series = [
            _histogram_series(label, histogram)
            for label, histogram in histograms.items()
            if histogram.total
        ]
        plots += plot_of(
            name=cut.name(prefix, 'latency-histogram'),
            title=cut.title('how long they took'),
            x=Axis('latency (ms)', log=True),
            y=Axis('operations (%)'),
            series=series,
            note=_histogram_note(cut.runs) + _left_out_note(cut.runs, series),
        )
    return plots


def phases(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Request, response and transfer times apart, by kind."""
    plots = []
    for cut in some(cuts(runs)):
        kinds = kinds_of(cut.runs)
        trimmed = [
            _phase_series(phase, 'trimmed_mean_ms', cut.runs, kinds)
            for phase in _PHASES
        ]
        whole = [
            _as_strokes(_phase_series(phase, 'mean_ms', cut.runs, kinds))
            for phase in _PHASES
        ]
        plots += plot_of(
            name=cut.name(prefix, 'phases'),
            title=cut.title('request, response, transfer'),
            x=_kinds_axis(kinds),
            y=Axis('mean time (ms)'),
            series=[*trimmed, *whole],
            note=_PHASES_NOTE,
        )
    return plots


def _by_condition(
    runs: Sequence[Run],
    prefix: str,
    condition: str,
    *,
    name: str,
    title: str,
    measure: _Measure,
    y_axis: Callable[[Cut, Sequence[Series]], Axis],
) -> list[Plot]:
    """A plot for each set of other conditions, a line for each kind."""
    plots = []
    known = [run for run in runs if is_number(run.conditions.get(condition))]
    label, words = _AXES.get(condition, (condition, f'by {condition}'))
    for cut in some(cuts(known, but=(condition,))):
        values = sorted({run.conditions[condition] for run in cut.runs})
        if len(values) < 2:
            continue
        series = [
            _series(
                kind.label,
                own,
                lambda run: run.conditions[condition],
                measure,
            )
            for kind, own in by_kind(cut.runs).items()
        ]
        plots += plot_of(
            name=cut.name(prefix, f'{name}-by-{condition}'),
            title=cut.title(f'{title} {words}'),
            x=_condition_axis(condition, label, values),
            y=y_axis(cut, series),
            series=series,
            note=_rounds_note(cut.runs),
        )
    return plots


def plot_of(*, series: Sequence[Series], **also: object) -> list[Plot]:
    """A plot, unless it would be empty."""
    shown = [each for each in series if each.x]
    return [Plot(series=shown, **also)] if shown else []


def _series(
    label: str,
    runs: Iterable[Run],
    x_of: Callable[[Run], float],
    measure: _Measure,
    style: str = LINE,
) -> Series:
    """The median of the rounds at each x, and their least and greatest."""
    found: dict[float, list[float]] = {}
    for run in sorted(runs, key=x_of):
        value = measure(run)
        if value is not None:
            found.setdefault(x_of(run), []).append(value)
    is_repeated = any(len(values) > 1 for values in found.values())
    return Series(
        label,
        list(found),
        [median(values) for values in found.values()],
        style,
        [min(values) for values in found.values()] if is_repeated else None,
        [max(values) for values in found.values()] if is_repeated else None,
    )


def _rate(run: Run) -> float:
    return run.rate


def _bandwidth(run: Run) -> float | None:
    return run.bandwidth


def _place_among(kinds: Sequence[Kind]) -> Callable[[Run], int]:
    return lambda run: kinds.index(run.kind)


def _kinds_axis(kinds: Sequence[Kind]) -> Axis:
    return Axis('container', names=[kind.label for kind in kinds])


def _condition_axis(
    condition: str, label: str, values: Sequence[float]
) -> Axis:
    # so many rows are a history, and not one of several choices
    if condition == 'rows':
        return Axis(label)
    is_wide = values[0] > 0 and values[-1] >= _WIDE_STEPS * values[0]
    is_size = condition == 'size'
    return Axis(label, log=is_wide, ticks=values, sizes=is_size)


def _rate_axis(cut: Cut, series: Sequence[Series]) -> Axis:
    is_rows = any(run.rows_listed for run in cut.runs)
    return _axis(f'{"rows" if is_rows else cut.noun}/s', series)


def _axis(
    label: str, series: Sequence[Series], from_zero: bool = True
) -> Axis:
    """A linear one, unless the values are too far apart for that."""
    values = [each for one in series for each in one.y]
    # 0 has no place on a logarithmic axis
    is_wide = bool(values) and max(values) > _WIDE * min(values) > 0
    return Axis(label, log=is_wide, from_zero=from_zero)


def _rounds_note(runs: Iterable[Run]) -> str:
    rounds = rounds_of(runs)
    if rounds < 2:
        return ''
    return (
        f'Medians of {rounds} rounds; thin lines go from the least to the '
        'greatest.'
    )


def _left_out_note(runs: Iterable[Run], series: Iterable[Series]) -> str:
    """Whom a plot lacks; a line that's left alone has no legend."""
    shown = {each.label for each in series}
    labels = [kind.label for kind in kinds_of(runs)]
    missing = [label for label in labels if label not in shown]
    if not missing:
        return ''
    return f' Too little was measured of {" and ".join(missing)}.'


def _of_first_round(runs: Sequence[Run]) -> list[Run]:
    return [
        min(own, key=lambda run: run.turn) for own in by_kind(runs).values()
    ]


def _seconds_a_point(runs: Iterable[Run]) -> int:
    longest = max(len(run.summary.latency_each_second) for run in runs)
    return max(1, math.ceil(longest / _MOST_POINTS))


def _has_times(run: Run, step: int) -> bool:
    known = [each for each in _points(run, step) if each is not None]
    return len(known) >= _LEAST_POINTS


def _points(run: Run, step: int) -> list[float | None]:
    """The mean latency of each so many seconds."""
    series = run.summary.latency_each_second
    return [
        _mean(series[begin : begin + step])
        for begin in range(0, len(series), step)
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None


def _times_series(run: Run, step: int, has_dots: bool) -> Iterator[Series]:
    points = _points(run, step)
    middles = [step * (place + 0.5) for place in range(len(points))]
    if has_dots:
        for part in _without_gaps(middles, points):
            yield _joined(run.kind.label, part, DOTS)
    # a line doesn't cross a time in which nothing was answered
    smooth = rolling_average(points, _ROLLING_POINTS)
    for part in _without_gaps(middles, smooth):
        yield _joined(run.kind.label, part, LINE)


def _without_gaps(
    x: Sequence[float], y: Sequence[float | None]
) -> Iterator[list[tuple[float, float]]]:
    """The parts between those that are None."""
    pairs = zip(x, y, strict=True)
    for is_known, part in groupby(pairs, key=lambda each: each[1] is not None):
        if is_known:
            yield list(part)


def _joined(
    label: str, points: Sequence[tuple[float, float]], style: str
) -> Series:
    return Series(label, [x for x, _ in points], [y for _, y in points], style)


def _times_note(runs: Sequence[Run], step: int, has_dots: bool) -> str:
    one = 'each second' if step == 1 else f'each {step} s'
    sentences = [
        f'A dot is the mean of {one}.' if has_dots else '',
        f'Lines are rolling averages of the last {_ROLLING_POINTS * step} s.',
        'Of the first round.' if rounds_of(runs) > 1 else '',
    ]
    return ' '.join(filter(None, sentences))


def _histogram(runs: Iterable[Run]) -> Histogram:
    return reduce(add, (run.summary.histogram for run in runs))


def _histogram_series(label: str, histogram: Histogram) -> Series:
    shares = [100 * each / histogram.total for each in histogram.counts]
    # up from nothing, and down to it again
    return Series(
        label,
        [histogram.edges_ms[0], *histogram.edges_ms],
        [0, *shares, 0],
        STEPS,
    )


def _histogram_note(runs: Iterable[Run]) -> str:
    rounds = ', of all rounds together' if rounds_of(runs) > 1 else ''
    return (
        f'The share of operations in each twentieth of a power of ten{rounds}.'
    )


def _phase_series(
    phase: str, field: str, runs: Sequence[Run], kinds: Sequence[Kind]
) -> Series:
    def mean_of(run: Run) -> float | None:
        return getattr(run.summary.phases.get(phase), field, None)

    series = _series(phase, runs, _place_among(kinds), mean_of)
    # what rounds differ by would look like what outliers do
    return Series(phase, series.x, series.y, BARS)


def _as_strokes(bars: Series) -> Series:
    return Series('with outliers', bars.x, bars.y, STROKES, beside=bars.label)
