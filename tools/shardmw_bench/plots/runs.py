# SPDX-License-Identifier: Apache-2.0
"""Plots of any list of runs. Pure.

Each function takes runs of any work, kinds, rounds and conditions. It returns
the plots that make sense, or none. :func:`rates_by_shards` has a colour for
each set of conditions; the others have a plot for each.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from operator import add
from statistics import fmean, median
from typing import NamedTuple

from shardmw_bench.kinds import Kind
from shardmw_bench.plots.plot import BARS, DOTS, LINE, Axis, Plot, Series
from shardmw_bench.results.comparing import (
    Value,
    bandwidth,
    latency_of,
    phase,
    rate,
)
from shardmw_bench.results.figures import rolling_average
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import REQUEST, RESPONSE, TRANSFER
from shardmw_bench.tables import number
from shardmw_bench.templates import varying
from shardmw_bench.units import size_text

#: Conditions of some runs, by name.
Conditions = tuple[tuple[str, object], ...]


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

# What is done, in a title and by a rate.
_NOUNS = {
    'write': 'writes',
    'read': 'reads',
    'head': 'HEADs',
    'delete': 'deletes',
    'list': 'listings',
    'head-container': 'container HEADs',
    'mixed': 'operations',
}

# The text of a condition.
_TEXTS = {
    'size': lambda value: f'{size_text(value)} objects',
    'page': lambda value: f'{number(value)} rows per page',
    'limit': lambda value: f'limit {value:g}/s',
    'clients': lambda value: f'{number(value)} client{"s" * (value != 1)}',
    'rows': lambda value: f'{number(value)} rows',
}

# The label of the axis of a condition, and the words of a title.
_AXES = {
    'size': ('object size (bytes)', 'by object size'),
    'clients': ('concurrency (clients)', 'by concurrency'),
    'page': ('page size (rows)', 'by page size'),
    'rows': ('rows in the container', 'as the container grows'),
}

# An axis is logarithmic if its greatest value is this many times its least.
_WIDE_VALUES = 30
_WIDE_CONDITIONS = 8

_MOST_PLOTS = 4  # of a work
_MOST_COLOURS = 6  # of bars
_MOST_CLOUDS = 3  # kinds with a dot for each second
_MOST_POINTS = 120  # of a line
_LEAST_POINTS = 3
_WINDOWS = 10  # of a rolling average, in a load

_MEANS = {'without outliers': 'trimmed_mean_ms', 'with outliers': 'mean_ms'}


class Facet(NamedTuple):
    """Runs that share a plot.

    :param is_only_work: True if there are no runs of other work
    :param conditions: those that differ from other plots
    """

    work: str
    is_only_work: bool
    conditions: Conditions
    runs: Sequence[Run]

    @property
    def noun(self) -> str:
        """Return what the runs do, as in writes/s."""
        return _NOUNS.get(self.work, self.work)

    @property
    def kinds(self) -> dict[Kind, list[Run]]:
        """Return the runs of each kind, plain ones first."""
        found = sorted({run.kind for run in self.runs}, key=lambda k: k.order)
        return {k: [run for run in self.runs if run.kind == k] for k in found}

    @property
    def rounds(self) -> int:
        return len({run.turn for run in self.runs})

    def label(self, measure: Measure) -> str:
        is_rows = any(run.rows_listed for run in self.runs)
        return measure.label or f'{"rows" if is_rows else self.noun}/s'

    @property
    def rounds_note(self) -> str:
        if self.rounds < 2:
            return ''
        return f'Medians of {self.rounds} rounds, with their range.'

    def missing_note(self, series: Iterable[Series]) -> str:
        """Return a sentence that names the kinds without a series."""
        shown = {each.label for each in series}
        labels = [kind.label for kind in self.kinds]
        missing = [label for label in labels if label not in shown]
        if not missing:
            return ''
        return f'Too little was measured of {" and ".join(missing)}.'

    def plot(
        self,
        name: str,
        title: str,
        x: Axis,
        y: Axis,
        series: Sequence[Series],
        *notes: str,
    ) -> Iterator[Plot]:
        """Yield a plot of the series that have points, if there are any."""
        shown = [each for each in series if each.x]
        also = _said(self.conditions)
        work = '' if self.is_only_work else self.work
        words = f'{work} {name} {also}'.lower().replace(',', '')
        noun = self.noun[:1].upper() + self.noun[1:]
        if shown:
            yield Plot(
                '-'.join(re.findall('[a-z0-9]+', words)),
                f'{noun}: {title}' + (f' ({also})' if also else ''),
                *(x, y, shown, ' '.join(filter(None, notes))),
            )


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
    for facet in _facets(runs, but=varying(runs)):
        axis, place = _kinds_axis(facet)
        groups = _by_conditions(facet.runs, varying(facet.runs))
        if len(axis.names) < 2 or len(groups) > _MOST_COLOURS:
            continue
        series = [
            _series(_said(conditions) or facet.noun, group, place, rate, BARS)
            for conditions, group in groups.items()
        ]
        yield from facet.plot(
            *('rate-by-shards', 'throughput by shard count', axis),
            *(_value_axis(facet.label(RATE), series), series),
            facet.rounds_note,
        )


def by_condition(
    runs: Sequence[Run], condition: str, *measures: Measure
) -> Iterator[Plot]:
    """Yield measures by a numeric condition, with a line for each kind.

    There is a plot for each set of other conditions.
    """
    known = [run for run in runs if _is_number(run.conditions.get(condition))]
    x_label, words = _AXES.get(condition, (condition, f'by {condition}'))

    def place(run: Run) -> float:
        return run.conditions[condition]

    for measure in measures:
        for facet in _facets(known, but=(condition,)):
            values = sorted({*map(place, facet.runs)})
            if len(values) < 2:
                continue
            series = [
                _series(kind.label, own, place, measure.value)
                for kind, own in facet.kinds.items()
            ]
            axis = Axis(x_label)
            # rows have a history, and are not some chosen values
            if condition != 'rows':
                is_wide = values[-1] >= _WIDE_CONDITIONS * values[0] > 0
                is_size = condition == 'size'
                axis = Axis(x_label, is_wide, ticks=values, sizes=is_size)
            label = facet.label(measure)
            yield from facet.plot(
                f'{measure.name}-by-{condition}',
                f'{measure.what} {words}',
                axis,
                _value_axis(label, series, measure.from_zero),
                series,
                facet.rounds_note,
            )


def latency_over_time(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield the mean latency over time, and its rolling average.

    The window of the average is a tenth of the load.
    """
    for facet in _facets(runs):
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
        yield from facet.plot(
            *('latency-over-time', 'latency over time'),
            Axis('time since the load began (s)'),
            _value_axis('mean latency (ms)', series),
            series,
            f'A dot is the mean of {one}.' if has_dots else '',
            f'Lines are rolling averages of the last {width * step} s.',
            'Of the first round.' if facet.rounds > 1 else '',
            facet.missing_note(series),
        )


def latency_distributions(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield the share of operations that took no longer than a time."""
    for facet in _facets(runs):
        series = []
        for kind, own in facet.kinds.items():
            found = reduce(add, (run.summary.histogram for run in own))
            if found.total:
                sums = accumulate(found.counts, initial=0)
                shares = [100 * each / found.total for each in sums]
                series.append(Series(kind.label, found.edges_ms, shares))
        yield from facet.plot(
            *('latency-distribution', 'share done within a time'),
            Axis('latency (ms)', log=True),
            Axis('operations (%)'),
            series,
            'Higher and further left is faster; 50 % is the median.',
            'All rounds together.' if facet.rounds > 1 else '',
            facet.missing_note(series),
        )


def phases(runs: Sequence[Run]) -> Iterator[Plot]:
    """Yield request, response and transfer times, each with its own scale."""
    for facet in _facets(runs):
        axis, place = _kinds_axis(facet)
        series = [
            # intervals of rounds would look like those of outliers
            replace(
                _series(label, facet.runs, place, phase(part, field), BARS),
                low=None,
                high=None,
                panel=part,
            )
            for part in (REQUEST, RESPONSE, TRANSFER)
            for label, field in _MEANS.items()
        ]
        yield from facet.plot(
            *('phases', 'request, response, transfer'),
            *(axis, Axis('mean (ms)'), series),
            'Request: until it was sent; response: from then until its first '
            'byte; transfer: until its last byte. Outliers are beyond 1.5 '
            'interquartile ranges.',
        )


def _facets(runs: Sequence[Run], but: Iterable[str] = ()) -> Iterator[Facet]:
    """Yield groups of runs of the same work and conditions.

    There are at most four of each work, spread evenly.

    :param but: conditions that may differ within a group
    """
    works = dict.fromkeys(run.work for run in runs)
    for work in works:
        own = [run for run in runs if run.work == work]
        names = [name for name in varying(own) if name not in but]
        groups = [*_by_conditions(own, names).items()]
        step = max(1, (len(groups) - 1) / (_MOST_PLOTS - 1))
        for place in range(min(len(groups), _MOST_PLOTS)):
            yield Facet(work, len(works) == 1, *groups[round(place * step)])


def _by_conditions(
    runs: Iterable[Run], names: Sequence[str]
) -> dict[Conditions, list[Run]]:
    found: dict[Conditions, list[Run]] = {}
    for run in runs:
        key = tuple((name, run.conditions.get(name)) for name in names)
        found.setdefault(key, []).append(run)
    in_order = sorted(found, key=lambda key: [_rank(each) for _, each in key])
    return {key: found[key] for key in in_order}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rank(value: object) -> tuple[bool, bool, object]:
    """Return a sort key: None first, then numbers, then words."""
    is_word = not _is_number(value)
    return value is not None, is_word, str(value) if is_word else value


def _said(conditions: Conditions) -> str:
    """Return conditions as text: ``16 clients, 4K objects``."""
    texts = []
    for name, value in conditions:
        if value is None:
            texts.append(f'no {name}')
        elif not _is_number(value):
            texts.append(str(value))
        elif name in _TEXTS:
            texts.append(_TEXTS[name](value))
        else:
            texts.append(f'{name} {value:g}')
    return ', '.join(texts)


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
