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
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import add
from statistics import fmean, median

from shardmw.bench.figures import Histogram, rolling_average
from shardmw.bench.kinds import Kind
from shardmw.bench.plot import BARS, DOTS, LINE, STEPS, Axis, Plot, Series
from shardmw.bench.runs import Run
from shardmw.bench.summary import REQUEST, RESPONSE, TRANSFER
from shardmw.bench.tables import number
from shardmw.bench.units import size_text

#: Conditions that can be an axis, and its label.
_AXES = {
    'size': 'object size (bytes)',
    'clients': 'clients',
    'page': 'page size (rows)',
    'rows': 'rows in the container',
}

# What is done, in a title and by a rate.
_NOUNS = {
    'write': 'writes',
    'read': 'reads',
    'head': 'HEADs',
    'delete': 'deletes',
    'list': 'listings',
    'mixed': 'operations',
}

# Values further apart than that can't be read off the same linear axis.
_WIDE = 30

# The same of the values that something is measured at.
_WIDE_STEPS = 8

# Bars of so many colours can be told apart.
_MOST_COLOURS = 6

# Of so many conditions latencies have a plot for each, else of some of them.
_MOST_PLOTS = 4

# Of so many kinds the single seconds can be seen beside the averages.
_FEW_KINDS = 3

# Of a longer time, several seconds make a point.
_MOST_POINTS = 120
_LEAST_POINTS = 3
_ROLLING_POINTS = 5

_MEGABYTE = 1e6

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
    for cut in _cuts(runs, but=_condition_names(runs)):
        kinds = _kinds(cut.runs)
        groups = _by_conditions(cut.runs, _varied(cut.runs))
        if len(kinds) < 2 or len(groups) > _MOST_COLOURS:
            continue
        series = [
            _series(
                _words(conditions) or cut.noun,
                group,
                lambda run, kinds=kinds: kinds.index(run.kind),
                _rate,
                BARS,
            )
            for conditions, group in groups.items()
        ]
        plots += _plot(
            name=cut.name(prefix, 'rate-by-shards'),
            title=cut.title('throughput by shard count'),
            x=Axis('container', names=[kind.label for kind in kinds]),
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
        what='rate',
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
    """Megabytes of bodies a second, likewise: those sent and received."""
    return _by_condition(
        *(runs, prefix, condition),
        what='bandwidth',
        title='bandwidth',
        measure=_bandwidth,
        y_axis=lambda cut, series: _axis('bodies (MB/s)', series),
    )


def latency_by_rows(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean latency as the container grows, a line for each kind.

    If there are two values of ``conditions['rows']`` at least.
    """
    return latency_by_condition(runs, prefix, 'rows')


def latency_by_condition(
    runs: Sequence[Run], prefix: str, condition: str
) -> list[Plot]:
    """Mean latency by a condition that has numbers, likewise."""
    return _by_condition(
        *(runs, prefix, condition),
        what='latency',
        title='mean latency',
        measure=lambda run: run.summary.latency.mean_ms,
        y_axis=lambda cut, series: _axis(
            'mean latency (ms)', series, from_zero=False
        ),
    )


def latency_over_time(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean latency of each second, and a rolling average, by kind."""
    plots = []
    for cut in _some(_cuts(runs)):
        first = _of_first_round(cut.runs)
        step = _seconds_a_point(first)
        shown = [run for run in first if _has_times(run, step)]
        is_clear = len(shown) <= _FEW_KINDS
        series = [
            each
            for run in shown
            for each in _times_series(run, step, with_dots=is_clear)
        ]
        plots += _plot(
            name=cut.name(prefix, 'latency-over-time'),
            title=cut.title('latency over time'),
            x=Axis('time since the load began (s)'),
            y=_axis('mean latency (ms)', series),
            series=series,
            note=_times_note(cut.runs, step, is_clear),
        )
    return plots


def latency_histograms(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """How many operations took how long, by kind."""
    plots = []
    for cut in _some(_cuts(runs)):
        series = [
            _histogram_series(kind.label, histogram)
            for kind, own in _by_kind(cut.runs).items()
            if (histogram := _histogram(own)).total
        ]
        plots += _plot(
            name=cut.name(prefix, 'latency-histogram'),
            title=cut.title('how long they took'),
            x=Axis('latency (ms), each step by the same factor', log=True),
            y=Axis('operations (%)'),
            series=series,
            note='All rounds together.' if _rounds(cut.runs) > 1 else '',
        )
    return plots


def phases(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Request, response and transfer times apart, by kind."""
    plots = []
    for cut in _some(_cuts(runs)):
        kinds = _kinds(cut.runs)
        series = [
            _phase_series(phase, label, cut.runs, kinds)
            for phase, label in _PHASE_LABELS.items()
        ]
        plots += _plot(
            name=cut.name(prefix, 'phases'),
            title=cut.title('request, response and transfer times'),
            x=Axis('container', names=[kind.label for kind in kinds]),
            y=Axis('mean time without outliers (ms)'),
            series=series,
            note=_PHASES_NOTE,
        )
    return plots


_PHASE_LABELS = {
    REQUEST: 'request: until it was sent',
    RESPONSE: 'response: until it began',
    TRANSFER: 'transfer: until it was whole',
}

_PHASES_NOTE = (
    'Means without the outliers, beyond 1.5 interquartile ranges. A thin line '
    'ends at the mean with them.'
)


@dataclass(frozen=True)
class _Cut:
    """Runs that share a plot.

    :param work: that they all do
    :param is_only_work: whether no other runs do another
    :param conditions: what tells them from those of other plots
    """

    work: str
    is_only_work: bool
    conditions: tuple[tuple[str, object], ...]
    runs: Sequence[Run]

    @property
    def noun(self) -> str:
        return _NOUNS.get(self.work, self.work)

    def name(self, prefix: str, what: str) -> str:
        """A word for files."""
        words = [prefix, '' if self.is_only_work else self.work, what]
        text = ' '.join([*words, _words(self.conditions)])
        return '-'.join(re.findall('[a-z0-9]+', text.lower()))

    def title(self, what: str) -> str:
        """What the plot shows, and of which runs."""
        noun = self.noun[0].upper() + self.noun[1:]
        also = _words(self.conditions)
        return f'{noun}: {what}' + (f' ({also})' if also else '')


def _cuts(runs: Sequence[Run], but: Iterable[str] = ()) -> list[_Cut]:
    """Runs of the same work and conditions.

    :param but: names of conditions that may differ
    """
    works = dict.fromkeys(run.work for run in runs)
    cuts = []
    for work in works:
        own = [run for run in runs if run.work == work]
        names = [name for name in _varied(own) if name not in but]
        cuts += [
            _Cut(work, len(works) == 1, conditions, group)
            for conditions, group in _by_conditions(own, names).items()
        ]
    return cuts


def _some(cuts: Sequence[_Cut]) -> list[_Cut]:
    """Not too many: the first, the last, and some evenly between."""
    if len(cuts) <= _MOST_PLOTS:
        return list(cuts)
    last = len(cuts) - 1
    places = (place * last for place in range(_MOST_PLOTS))
    return [cuts[round(each / (_MOST_PLOTS - 1))] for each in places]


def _by_condition(
    runs: Sequence[Run],
    prefix: str,
    condition: str,
    *,
    what: str,
    title: str,
    measure: _Measure,
    y_axis: Callable[[_Cut, Sequence[Series]], Axis],
) -> list[Plot]:
    """A plot for each set of other conditions, a line for each kind."""
    plots = []
    counted = [run for run in runs if _is_count(run.conditions.get(condition))]
    label = _AXES.get(condition, condition)
    for cut in _some(_cuts(counted, but=(condition,))):
        values = sorted({run.conditions[condition] for run in cut.runs})
        if len(values) < 2:
            continue
        series = [
            _series(
                kind.label,
                own,
                lambda run: run.conditions[condition],
                measure,
                LINE,
            )
            for kind, own in _by_kind(cut.runs).items()
        ]
        is_wide = values[0] > 0 and values[-1] >= _WIDE_STEPS * values[0]
        plots += _plot(
            name=cut.name(prefix, f'{what}-by-{condition}'),
            title=cut.title(f'{title} by {label.partition(" (")[0]}'),
            x=Axis(
                label,
                log=is_wide and condition != 'rows',
                ticks=() if condition == 'rows' else values,
                sizes=condition == 'size',
            ),
            y=y_axis(cut, series),
            series=series,
            note=_rounds_note(cut.runs),
        )
    return plots


def _plot(*, series: Sequence[Series], **also: object) -> list[Plot]:
    """A plot, unless it would be empty."""
    shown = [each for each in series if len(each.x)]
    return [Plot(series=shown, **also)] if shown else []


def _series(
    label: str,
    runs: Iterable[Run],
    x_of: Callable[[Run], float],
    measure: _Measure,
    style: str,
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
    summary = run.summary
    sent = summary.bytes_sent + summary.bytes_received
    return sent / _MEGABYTE / summary.seconds if sent else None


def _rate_axis(cut: _Cut, series: Sequence[Series]) -> Axis:
    is_rows = any(run.rows_listed for run in cut.runs)
    return _axis(f'{"rows" if is_rows else cut.noun}/s', series)


def _axis(
    label: str, series: Sequence[Series], from_zero: bool = True
) -> Axis:
    """A linear one, unless the values are too far apart for that."""
    values = [each for one in series for each in one.y if each > 0]
    is_wide = bool(values) and max(values) > _WIDE * min(values)
    return Axis(label, log=is_wide, from_zero=from_zero)


def _seconds_a_point(runs: Iterable[Run]) -> int:
    longest = max(len(run.summary.latency_each_second) for run in runs)
    return max(1, math.ceil(longest / _MOST_POINTS))


def _has_times(run: Run, step: int) -> bool:
    return len(_points(run, step)) >= _LEAST_POINTS


def _points(run: Run, step: int) -> list[float | None]:
    """The mean latency of each so many seconds."""
    series = run.summary.latency_each_second
    return [
        _mean(series[begin : begin + step])
        for begin in range(0, len(series), step)
    ]


def _times_series(run: Run, step: int, with_dots: bool) -> Iterator[Series]:
    points = _points(run, step)
    label = run.kind.label
    x = [step * (place + 0.5) for place in range(len(points))]
    if with_dots:
        known = [(at, y) for at, y in zip(x, points, strict=True) if y]
        yield Series(label, *_columns(known), DOTS)
    smooth = rolling_average(points, _ROLLING_POINTS)
    pairs = zip(x, smooth, strict=True)
    # a line doesn't cross a time in which nothing was answered
    for is_known, part in groupby(pairs, key=lambda each: each[1] is not None):
        if is_known:
            yield Series(label, *_columns(list(part)), LINE)


def _columns(pairs: Sequence[tuple]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _times_note(runs: Sequence[Run], step: int, with_dots: bool) -> str:
    one = 'each second' if step == 1 else f'each {step} s'
    means = f'A dot is the mean of {one}. ' if with_dots else ''
    window = _ROLLING_POINTS * step
    lines = f'Lines are rolling averages of the last {window} s.'
    rounds = ' Of the first round.' if _rounds(runs) > 1 else ''
    return f'{means}{lines}{rounds}'


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


def _phase_series(
    phase: str, label: str, runs: Sequence[Run], kinds: Sequence[Kind]
) -> Series:
    def mean_of(field: str) -> Series:
        return _series(
            label,
            runs,
            lambda run: kinds.index(run.kind),
            lambda run: getattr(run.summary.phases.get(phase), field, None),
            BARS,
        )

    trimmed, whole = mean_of('trimmed_mean_ms'), mean_of('mean_ms')
    ends = map(max, zip(trimmed.y, whole.y, strict=True))
    return Series(label, trimmed.x, trimmed.y, BARS, trimmed.y, list(ends))


def _of_first_round(runs: Sequence[Run]) -> list[Run]:
    return [
        min(own, key=lambda run: run.turn) for own in _by_kind(runs).values()
    ]


def _rounds(runs: Iterable[Run]) -> int:
    return len({run.turn for run in runs})


def _rounds_note(runs: Iterable[Run]) -> str:
    rounds = _rounds(runs)
    if rounds < 2:
        return ''
    return (
        f'Medians of {rounds} rounds; thin lines go from the least to the '
        'greatest.'
    )


def _kinds(runs: Iterable[Run]) -> list[Kind]:
    """Plain ones first, as all others are compared with them."""
    return sorted(
        {run.kind for run in runs},
        key=lambda kind: (not kind.is_plain, not kind.is_native, kind.parts),
    )


def _by_kind(runs: Sequence[Run]) -> dict[Kind, list[Run]]:
    return {
        kind: [run for run in runs if run.kind == kind]
        for kind in _kinds(runs)
    }


def _condition_names(runs: Iterable[Run]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.conditions))


def _varied(runs: Sequence[Run]) -> list[str]:
    """Names of the conditions that are not the same for all."""
    return [
        name
        for name in _condition_names(runs)
        if len({run.conditions.get(name) for run in runs}) > 1
    ]


def _by_conditions(
    runs: Iterable[Run], names: Sequence[str]
) -> Mapping[tuple[tuple[str, object], ...], list[Run]]:
    """Runs that have the same values of these conditions, least first."""
    found: dict[tuple, list[Run]] = {}
    for run in runs:
        key = tuple((name, run.conditions.get(name)) for name in names)
        found.setdefault(key, []).append(run)
    return {
        key: found[key]
        for key in sorted(found, key=lambda key: [_rank(v) for _, v in key])
    }


def _rank(value: object) -> tuple[int, float, str]:
    """For an order of what there isn't, of numbers, and of words."""
    if value is None:
        return 0, 0, ''
    if isinstance(value, (int, float)):
        return 1, value, ''
    return 2, 0, str(value)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(conditions: Iterable[tuple[str, object]]) -> str:
    return ', '.join(_word(name, value) for name, value in conditions)


def _word(name: str, value: object) -> str:
    """A condition, as people say it."""
    if value is None:
        return f'no {name}'
    if not _is_count(value):
        return str(value)
    if name == 'size':
        return f'{size_text(value)} objects'
    if name == 'page':
        return f'{number(value)} rows a page'
    if name == 'limit':
        return f'limit {value:g}/s'
    if name == 'clients' and value == 1:
        return '1 client'
    if name in ('clients', 'rows'):
        return f'{number(value)} {name}'
    return f'{name} {value:g}'


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None
