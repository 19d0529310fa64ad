# SPDX-License-Identifier: Apache-2.0
"""How long a write takes as a container grows."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shardmw.bench.comparing import (
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    RATE,
    condition,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.figures import percentile
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.names import FlatNames, ScatteredNames
from shardmw.bench.options import (
    CLIENTS,
    DURATION,
    POSITIVE,
    SHARD_COUNT,
    SIZE,
    Parsed,
    listed,
)
from shardmw.bench.parameters import Parameters as _Parameters
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw.bench.plots.runs import latency_by_rows
from shardmw.bench.runs import Run, runs_of
from shardmw.bench.site import Site
from shardmw.bench.sources import NamedUploads
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.tables import Table, figure, number, ratio
from shardmw.bench.turns import rotated
from shardmw.bench.units import parse_count
from shardmw.saio import ClusterOptions

NAME = 'container-growth'
SUMMARY = 'Mean write time as a container grows, one container and many.'
PUBLISHED = (
    'Published, of one container: a mean write time of 12.58 ms below 1.6 '
    'million objects, and of 13.29 ms above.'
)

#: Of one container: where the means were split, and what they were.
_PUBLISHED_ROWS = 1_600_000
_PUBLISHED_BELOW_MS = 12.58
_PUBLISHED_ABOVE_MS = 13.29

# Of the databases, between one merge of what waits and the next.
_PHASE = 0.5

_THOUSANDTHS = 3


def parse_rows(text: str) -> tuple[int, ...]:
    """Counts in ascending order, such as ``100K,1M,10M``. Pure.

    :raises ValueError: if it's something else
    """
    rows = tuple(map(parse_count, text.split(',')))
    if list(rows) != sorted(set(rows)):
        raise ValueError(f'{text!r}: write each count once, ascending')
    return rows


_ROWS = Parsed('counts', parse_rows, lambda rows: listed(rows, '{:d}'.format))


@dataclass(frozen=True)
class Parameters(_Parameters):
    """What it is made with."""

    rows: tuple[int, ...] = option(
        (
            *(100_000, 400_000, 800_000, 1_600_000),
            *(2_400_000, 4_000_000, 7_000_000, 10_000_000),
        ),
        _ROWS,
        'Rows that the container has when it is written to, ascending.',
    )
    shards: int = option(32, SHARD_COUNT, 'Of the other container.')
    clients: int = option(1, CLIENTS, 'Clients that write at once.', '-t')
    size: int = option(1, SIZE, 'Of the objects.', '-b')
    seconds: float = option(5.0, DURATION, 'Of each load.')
    rounds: int = option(6, POSITIVE, 'Loads on each container, each time.')

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The containers that are compared."""
        return PLAIN, sharded(self.shards)


def measure(stage: Stage, keep) -> dict[str, object]:
    """Fill both containers step by step, and write to them at each."""
    parameters = stage.parameters
    loads = len(parameters.rows) * parameters.rounds * len(parameters.kinds)
    ledger = Ledger(stage, keep, loads, preloads=[])
    with stage.site(ClusterOptions()) as site:
        containers = {kind: site.make(kind) for kind in parameters.kinds}
        for container in containers.values():
            site.prepare(container, True, _PHASE)
        before = 0
        for rows in parameters.rows:
            for kind, container in containers.items():
                ledger.figures['preloads'].append(
                    _fill(stage, site, container, kind, before, rows)
                )
                keep(ledger.figures)
            for turn in range(parameters.rounds):
                for kind in rotated(parameters.kinds, turn):
                    path = site.container_path(containers[kind])
                    _write(parameters, site, ledger, path, kind, turn, rows)
            before = rows
    return ledger.figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Latencies by the rows that are there; beside those published."""
    runs = runs_of(figures)
    columns = [condition('rows'), CONTAINER, *LATENCIES]
    columns += [*MEAN_RATIO, RATE, ERRORS]
    return [
        table(
            'Write time as a container grows',
            rows_of(runs),
            columns,
            (_note(parameters), rounds_note(runs), *warnings(runs)),
        ),
        _beside_published(parameters, runs),
        _preloads(figures['preloads']),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The mean beside the published one, and percentiles."""
    runs = runs_of(figures)
    rows = [run.conditions['rows'] for run in runs]
    means = [plot for plot in latency_by_rows(runs, NAME) if _is_mean(plot)]
    if not means:
        return []
    return [
        *(_with_published(plot, rows) for plot in means),
        _percentiles(parameters, runs),
    ]


def mean_of(runs: Sequence[Run]) -> float | None:
    """The mean time of all operations of some runs, in ms. Pure."""
    counts = [run.summary.histogram.total for run in runs]
    times = [
        run.summary.latency.mean_ms * count
        for run, count in zip(runs, counts, strict=True)
        if count
    ]
    return math.fsum(times) / sum(counts) if times else None


def _fill(
    stage: Stage, site: Site, container: str, kind: Kind, before: int, rows
) -> dict[str, object]:
    text = f'{kind.label}: {number(before)} to {number(rows)} rows'
    began = time.monotonic()
    with stage.screen.status(text):
        site.fill(container, kind, FlatNames(rows), before)
    took = time.monotonic() - began
    stage.screen.line(f'{text}: put there in {figure(took)} s')
    return {
        'kind': kind.as_json(),
        'before': before,
        'rows': rows,
        'seconds': round(took, _THOUSANDTHS),
    }


def _write(
    parameters: Parameters,
    site: Site,
    ledger: Ledger,
    path: str,
    kind: Kind,
    turn: int,
    rows: int,
) -> None:
    names = ScatteredNames(FlatNames(rows), f'{rows}-{turn}')
    load = site.load(
        NamedUploads(path, names, parameters.size),
        parameters.clients,
        seconds=parameters.seconds,
    )
    ledger.measure(load, 'write', kind, turn, rows=rows)


def _beside_published(parameters: Parameters, runs: Sequence[Run]) -> Table:
    rows = [
        (
            'published, one container',
            number(_PUBLISHED_BELOW_MS, 2),
            number(_PUBLISHED_ABOVE_MS, 2),
            ratio(_PUBLISHED_ABOVE_MS, _PUBLISHED_BELOW_MS),
        )
    ]
    for kind in parameters.kinds:
        below, above = (
            mean_of(
                [
                    run
                    for run in runs
                    if run.kind == kind
                    and (run.conditions['rows'] >= _PUBLISHED_ROWS) == side
                ]
            )
            for side in (False, True)
        )
        rows.append(
            (
                f'here, {kind.label}',
                number(below, 2),
                number(above, 2),
                ratio(above, below),
            )
        )
    return Table(
        'Mean write time, below and above 1.6 million objects',
        ('container', 'below ms', 'above ms', 'above by below'),
        rows,
        (
            'Of other machines the times cannot be compared, but how they '
            'grow can. *Above* has the loads from 1,600,000 rows on.',
        ),
    )


def _preloads(preloads: Sequence[Mapping]) -> Table:
    return Table(
        'How long it took to put the rows there',
        ('container', 'from', 'to', 'seconds', 'rows/s'),
        [
            (
                Kind.from_json(each['kind']).label,
                number(each['before']),
                number(each['rows']),
                number(each['seconds'], 1),
                figure((each['rows'] - each['before']) / each['seconds'])
                if each['seconds']
                else '—',
            )
            for each in preloads
        ],
        ('Into the databases, past the servers; there are no objects.',),
    )


def _is_mean(plot: Plot) -> bool:
    return plot.y.label.startswith('mean')


def _with_published(plot: Plot, rows: Sequence[int]) -> Plot:
    """A plot of means, with those published where there are rows."""
    x, y = [], []
    fewest, most = min(rows), max(rows)
    if fewest < _PUBLISHED_ROWS:
        x += [fewest, min(most, _PUBLISHED_ROWS)]
        y += [_PUBLISHED_BELOW_MS] * 2
    if most > _PUBLISHED_ROWS:
        x += [max(fewest, _PUBLISHED_ROWS), most]
        y += [_PUBLISHED_ABOVE_MS] * 2
    published = Series('published mean, one container', x, y, REFERENCE)
    return replace(plot, series=(*plot.series, published))


def _percentiles(parameters: Parameters, runs: Sequence[Run]) -> Plot:
    series = []
    for kind in parameters.kinds:
        for name in ('p50', 'p95', 'p99'):
            points = _median_points(runs, kind, f'{name}_ms')
            if points:
                x, y = zip(*points, strict=True)
                series.append(Series(f'{kind.label}: {name}', x, y, LINE))
    return Plot(
        f'{NAME}-percentiles',
        'Write time as a container grows: percentiles',
        Axis('rows in the container', log=True),
        Axis('latency (ms)', log=True),
        series,
        'Medians of the rounds.',
    )


def _median_points(
    runs: Sequence[Run], kind: Kind, name: str
) -> list[tuple[int, float]]:
    by_rows: dict[int, list[float]] = {}
    for run in runs:
        value = getattr(run.summary.latency, name)
        if run.kind == kind and value is not None:
            by_rows.setdefault(run.conditions['rows'], []).append(value)
    return [
        (rows, percentile(sorted(values), 0.5))
        for rows, values in sorted(by_rows.items())
    ]


def _note(parameters: Parameters) -> str:
    clients = parameters.clients
    many = 'one client' if clients == 1 else f'{clients} clients'
    return (
        f'{many.capitalize()}, {parameters.size}-byte objects, '
        f'{parameters.seconds:g} s a load. Rows were put into the databases; '
        'what is written falls between them, anywhere. One replica, on one '
        'device.'
    )
