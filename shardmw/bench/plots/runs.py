# SPDX-License-Identifier: Apache-2.0
"""Plots of any list of runs. Pure.

Each function takes runs of any work, kinds, rounds and conditions. It returns
the plots that make sense, or none. :func:`rates_by_shards` has a colour for
each set of conditions; the others have a plot for each.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from operator import add
from statistics import fmean, median
from typing import NamedTuple

from shardmw.bench.plots.facets import (
    Facet,
    by_conditions,
    facets,
    is_number,
    said,
    some,
)
from shardmw.bench.plots.plot import BARS, DOTS, LINE, Axis, Plot, Series
from shardmw.bench.results.comparing import Value, bandwidth, latency_of, rate
from shardmw.bench.results.comparing import phase as time_of
from shardmw.bench.results.figures import rolling_average
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import REQUEST, RESPONSE, TRANSFER
from shardmw.bench.words import varying


class Measure(NamedTuple):
    """A figure of runs that has a plot.

    :param what: for the title
    :param label: of the axis; None for the rate of what a run does
    """

    name: str
    what: str
    value: Value
    label: str | None = None
    from_zero: bool = True


RATE = Measure('rate', 'throughput', rate)
BANDWIDTH = Measure('bandwidth', 'bandwidth', bandwidth, 'bodies (MB/s)')
LATENCIES = tuple(
    Measure(
        f'{name}-latency',
        f'{name} latency',
        latency_of(field),
        f'{name} latency (ms)',
        from_zero=False,
    )
    for name, field in (('mean', 'mean_ms'), ('median', 'p50_ms'))
)

# The label of the axis of a condition, and the words of a title.
_AXES = {
    'size': ('object size (bytes)', 'by object size'),
    'clients': ('concurrency (clients)', 'by concurrency'),
    'page': ('page size (rows)', 'by page size'),
    'rows': ('rows in the container', 'as the container grows'),
}

# An axis whose greatest value is so many times its least is logarithmic.
_WIDE_VALUES = 30
_WIDE_CONDITIONS = 8

_MOST_COLOURS = 6  # of bars
_MOST_CLOUDS = 3  # kinds with a dot for each second
_MOST_POINTS = 120  # of a line
_LEAST_POINTS = 3
_WINDOWS = 10  # of a rolling average, in a load

_MEANS = {'without outliers': 'trimmed_mean_ms', 'with outliers': 'mean_ms'}


def all_of(runs: Sequence[Run]) -> list[Plot]:
    """Return all plots below."""
    return [
        *rates_by_shards(runs),
        *(plot for name in _AXES for plot in by_condition(runs, name, RATE)),
        *by_condition(runs, 'size', BANDWIDTH),
        *by_condition(runs, 'rows', *LATENCIES),
        *latency_over_time(runs),
        *latency_distributions(runs),
        *phases(runs),
    ]


def rates_by_shards(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield throughput by the kind of container."""
    for facet in facets(runs, but=varying(runs)):
        axis, place = _kinds_axis(facet)
        groups = by_conditions(facet.runs, varying(facet.runs))
        if len(axis.names) < 2 or len(groups) > _MOST_COLOURS:
            continue
        series = [
            _series(said(conditions) or facet.noun, group, place, rate, BARS)
            for conditions, group in groups.items()
        ]
        yield from _plot_of(
            *(facet, 'rate-by-shards', 'throughput by shard count', axis),
            *(_value_axis(_label(facet, RATE), series), series),
            _rounds_note(facet),
        )


def by_condition(
    runs: Sequence[Run], condition: str, *measures: Measure
) -> Iterator[Plot]:
    """Yield measures by a numeric condition, with a line for each kind.

    There is a plot for each set of other conditions.
    """
    known = [run for run in runs if is_number(run.conditions.get(condition))]
    x_label, words = _AXES.get(condition, (condition, f'by {condition}'))

    def place(run: Run) -> float:
        return run.conditions[condition]

    for measure in measures:
        for facet in some(facets(known, but=(condition,))):
            values = sorted({*map(place, facet.runs)})
            if len(values) < 2:
                continue
            series = [
                _series(kind.label, own, place, measure.value)
                for kind, own in facet.kinds.items()
            ]
            label = _label(facet, measure)
            yield from _plot_of(
                *(facet, f'{measure.name}-by-{condition}'),
                f'{measure.what} {words}',
                _condition_axis(condition, x_label, values),
                _value_axis(label, series, measure.from_zero),
                series,
                _rounds_note(facet),
            )


def latency_over_time(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield the mean latency over time, and its rolling average.

    The window of the average is a tenth of the load.
    """
    for facet in some(facets(runs)):
        first = [
            min(own, key=lambda run: run.turn) for own in facet.kinds.values()
        ]
        longest = max(len(run.summary.latency_each_second) for run in first)
        step = max(1, math.ceil(longest / _MOST_POINTS))
        width = max(_LEAST_POINTS, round(longest / step / _WINDOWS))
        points = {run.kind.label: _points(run, step) for run in first}
        shown = {
            label: means
            for label, means in points.items()
            if sum(each is not None for each in means) >= _LEAST_POINTS
        }
        has_dots = len(shown) <= _MOST_CLOUDS
        series = []
        for label, means in shown.items():
            x = [step * (place + 0.5) for place in range(len(means))]
            if has_dots:
                series.append(Series(label, x, means, DOTS))
            series.append(Series(label, x, rolling_average(means, width)))
        one = 'each second' if step == 1 else f'each {step} s'
        yield from _plot_of(
            *(facet, 'latency-over-time', 'latency over time'),
            Axis('time since the load began (s)'),
            _value_axis('mean latency (ms)', series),
            series,
            f'A dot is the mean of {one}.' if has_dots else '',
            f'Lines are rolling averages of the last {width * step} s.',
            'Of the first round.' if facet.rounds > 1 else '',
            _missing_note(facet, series),
        )


def latency_distributions(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield the share of operations that took no longer than a time."""
    for facet in some(facets(runs)):
        series = []
        for kind, own in facet.kinds.items():
            found = reduce(add, (run.summary.histogram for run in own))
            if found.total:
                sums = accumulate(found.counts, initial=0)
                shares = [100 * each / found.total for each in sums]
                series.append(Series(kind.label, found.edges_ms, shares))
        yield from _plot_of(
            *(facet, 'latency-distribution', 'share done within a time'),
            Axis('latency (ms)', log=True),
            Axis('operations (%)'),
            series,
            'Higher and further left is faster; 50 % is the median.',
            'All rounds together.' if facet.rounds > 1 else '',
            _missing_note(facet, series),
        )


def phases(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield request, response and transfer times, each with its own scale."""
    for facet in some(facets(runs)):
        axis, place = _kinds_axis(facet)
        series = [
            # intervals of rounds would look like those of outliers
            replace(
                _series(label, facet.runs, place, time_of(phase, field), BARS),
                low=None,
                high=None,
                panel=phase,
            )
            for phase in (REQUEST, RESPONSE, TRANSFER)
            for label, field in _MEANS.items()
        ]
        yield from _plot_of(
            *(facet, 'phases', 'request, response, transfer'),
            axis,
            Axis('mean (ms)'),
            series,
            'Request: until it was sent; response: from then until its first '
            'byte; transfer: until its last byte. Outliers are beyond 1.5 '
            'interquartile ranges.',
        )


def _plot_of(
    facet: Facet,
    name: str,
    title: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    *notes: str,
) -> Iterator[Plot]:
    """Yield a plot of the series that have points, if there are any."""
    shown = [each for each in series if each.x]
    if shown:
        yield Plot(
            *(facet.name(name), facet.title(title), x, y, shown),
            note=' '.join(filter(None, notes)),
        )


def _series(
    label: str,
    runs: Iterable[Run],
    x_of: Callable[[Run], float],
    measure: Value,
    style: str = LINE,
) -> Series:
    """Return the median of the rounds at each x, with their range."""
    found: dict[float, list[float]] = {}
    for run in sorted(runs, key=x_of):
        value = measure(run)
        if value is not None:
            found.setdefault(x_of(run), []).append(value)
    several = list(found.values())
    is_repeated = any(len(values) > 1 for values in several)
    return Series(
        *(label, list(found), list(map(median, several)), style),
        low=list(map(min, several)) if is_repeated else None,
        high=list(map(max, several)) if is_repeated else None,
    )


def _kinds_axis(facet: Facet) -> tuple[Axis, Callable[[Run], int]]:
    """Return the axis of kinds, and the position of a run on it."""
    kinds = [*facet.kinds]
    axis = Axis('container', names=[kind.label for kind in kinds])
    return axis, lambda run: kinds.index(run.kind)


def _condition_axis(
    condition: str, label: str, values: Sequence[float]
) -> Axis:
    # rows have a history, and are not some chosen values
    if condition == 'rows':
        return Axis(label)
    is_wide = values[0] > 0 and values[-1] >= _WIDE_CONDITIONS * values[0]
    return Axis(label, log=is_wide, ticks=values, sizes=condition == 'size')


def _label(facet: Facet, measure: Measure) -> str:
    if measure.label:
        return measure.label
    is_rows = any(run.rows_listed for run in facet.runs)
    return f'{"rows" if is_rows else facet.noun}/s'


def _value_axis(
    label: str, series: Sequence[Series], from_zero: bool = True
) -> Axis:
    """Return an axis, which is logarithmic if the values are far apart."""
    values = [y for each in series for y in each.y if y is not None]
    is_wide = bool(values) and max(values) > _WIDE_VALUES * min(values) > 0
    return Axis(label, log=is_wide, from_zero=from_zero)


def _points(run: Run, step: int) -> list[float | None]:
    """Return the mean latency of every ``step`` seconds."""
    seconds = run.summary.latency_each_second
    parts = (seconds[i : i + step] for i in range(0, len(seconds), step))
    known = ([each for each in part if each is not None] for part in parts)
    return [fmean(part) if part else None for part in known]


def _rounds_note(facet: Facet) -> str:
    if facet.rounds < 2:
        return ''
    return f'Medians of {facet.rounds} rounds, with their range.'


def _missing_note(facet: Facet, series: Iterable[Series]) -> str:
    """Return a sentence that names the kinds without a series."""
    shown = {each.label for each in series}
    labels = [kind.label for kind in facet.kinds]
    missing = [label for label in labels if label not in shown]
    if not missing:
        return ''
    return f'Too little was measured of {" and ".join(missing)}.'
