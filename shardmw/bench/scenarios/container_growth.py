# SPDX-License-Identifier: Apache-2.0
"""``container-growth``: the time of a write as a container grows."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shardmw.bench.kinds import Kind
from shardmw.bench.load.sources import NamedUploads
from shardmw.bench.load.stage import Ledger, Stage
from shardmw.bench.load.turns import rotated
from shardmw.bench.names import FlatNames, ScatteredNames
from shardmw.bench.options import Parsed, listed
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import REFERENCE, Plot, Series
from shardmw.bench.plots.runs import latency_by_rows
from shardmw.bench.results import comparing as c
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.scenarios import Figures, Keep, Scenario
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.scenarios.grouping import kind_of
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number, ratio
from shardmw.bench.units import parse_count

NAME = 'container-growth'

# Published for one container: a row count, and the means below and above it.
_SPLIT_ROWS = 1_600_000
_PUBLISHED_MS = 12.58, 13.29

# Databases are halfway between two merges of their pending files.
_PHASE = 0.5


def parse_rows(text: str) -> tuple[int, ...]:
    """Return counts in ascending order, such as ``100K,1M,10M``. Pure.

    :raises ValueError: if the text is something else
    """
    rows = tuple(map(parse_count, text.split(',')))
    if list(rows) != sorted(set(rows)):
        raise ValueError(f'{text!r}: write each count once, ascending')
    return rows


_ROWS = Parsed('counts', parse_rows, lambda rows: listed(rows, '{:d}'.format))


@dataclass(frozen=True)
class Parameters(shared.LoadParameters):
    """The options of the scenario."""

    rows: tuple[int, ...] = option(
        (
            *(100_000, 400_000, 800_000, 1_600_000),
            *(2_400_000, 4_000_000, 7_000_000, 10_000_000),
        ),
        _ROWS,
        'Rows in the container at each step, ascending.',
    )
    clients: int = shared.clients_option(1)
    size: int = shared.size_option(1)


def measure(stage: Stage, keep: Keep) -> Figures:
    """Fill the containers step by step, and write to them at each step."""
    parameters = stage.parameters
    kinds = parameters.kinds
    loads = len(parameters.rows) * parameters.rounds * len(kinds)
    ledger = Ledger(stage, keep, loads, preloads=[])
    with stage.site(parameters.cluster()) as site:
        containers = {kind: site.make(kind) for kind in kinds}
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
                names = ScatteredNames(FlatNames(rows), f'{rows}-{turn}')
                for kind in rotated(kinds, turn):
                    path = site.container_path(containers[kind])
                    load = site.load(
                        NamedUploads(path, names, parameters.size),
                        parameters.clients,
                        seconds=parameters.seconds,
                    )
                    ledger.measure(load, 'write', kind, turn, rows=rows)
            before = rows
    return ledger.figures


def _fill(
    stage: Stage, site: Site, container: str, kind: Kind, before: int, rows
) -> dict[str, object]:
    text = f'{kind.label}: {number(before)} to {number(rows)} rows'
    began = time.monotonic()
    with stage.screen.status(text):
        site.fill(container, kind, FlatNames(rows), before)
    took = round(time.monotonic() - began, 3)
    stage.screen.line(f'{text}: written to the database in {figure(took)} s')
    return {
        'kind': kind.as_json(),
        'before': before,
        'rows': rows,
        'seconds': took,
    }


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return latencies by rows, the published ones, and preloads."""
    runs = runs_of(figures)
    return [
        c.table(
            'Write time as a container grows',
            c.rows_of(runs),
            [
                *(c.condition('rows'), c.CONTAINER, *c.LATENCIES),
                *(*c.MEAN_RATIO, c.RATE, c.ERRORS),
            ],
            (
                f'Clients: {parameters.clients}; {parameters.size}-byte '
                f'objects; each load lasts {parameters.seconds:g} s. The rows '
                'were merged into the databases. The names of new objects '
                'are spread between them. One replica, on one device.',
                c.rounds_note(runs),
                *c.warnings(runs),
            ),
        ),
        _published_table(parameters, runs),
        _preloads_table(figures['preloads']),
    ]


def mean_of(runs: Sequence[Run]) -> float | None:
    """Return the mean milliseconds of all operations of some runs. Pure."""
    counts = [run.summary.histogram.total for run in runs]
    times = [
        run.summary.latency.mean_ms * count
        for run, count in zip(runs, counts, strict=True)
        if count
    ]
    return math.fsum(times) / sum(counts) if times else None


def _published_table(parameters: Parameters, runs: Sequence[Run]) -> Table:
    means = {'published, one container': _PUBLISHED_MS}
    for kind in parameters.kinds:
        own = [run for run in runs if run.kind == kind]
        means[f'here, {kind.label}'] = tuple(
            mean_of(
                [
                    run
                    for run in own
                    if (run.conditions['rows'] >= _SPLIT_ROWS) == is_above
                ]
            )
            for is_above in (False, True)
        )
    return Table(
        'Mean write time, below and above 1.6 million objects',
        ('container', 'below ms', 'above ms', 'above by below'),
        [
            (label, number(below, 2), number(above, 2), ratio(above, below))
            for label, (below, above) in means.items()
        ],
        (
            'The times of two machines cannot be compared, but their growth '
            'can. *Above*: the loads from 1,600,000 rows on.',
        ),
    )


def _preloads_table(preloads: Sequence[Mapping]) -> Table:
    return Table(
        'Time to merge the rows into the databases',
        ('container', 'from', 'to', 'seconds', 'rows/s'),
        [
            (
                kind_of(each).label,
                number(each['before']),
                number(each['rows']),
                number(each['seconds'], 1),
                figure(
                    (each['rows'] - each['before'])
                    / (each['seconds'] or math.nan)
                ),
            )
            for each in preloads
        ],
        ('Without the servers; there are no objects.',),
    )


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return plots of means and medians, with the published means."""
    runs = runs_of(figures)
    rows = [run.conditions['rows'] for run in runs]
    return [
        _with_published(plot, min(rows), max(rows))
        if plot.y.label.startswith('mean')
        else plot
        for plot in latency_by_rows(runs, NAME)
    ]


def _with_published(plot: Plot, fewest: int, most: int) -> Plot:
    """Add the published means where the plot has rows."""
    below, above = _PUBLISHED_MS
    x, y = [], []
    if fewest < _SPLIT_ROWS:
        x += [fewest, min(most, _SPLIT_ROWS)]
        y += [below] * 2
    if most > _SPLIT_ROWS:
        x += [max(fewest, _SPLIT_ROWS), most]
        y += [above] * 2
    published = Series('published mean, one container', x, y, REFERENCE)
    return replace(plot, series=(*plot.series, published))


def _seconds(parameters: Parameters) -> float:
    loads = len(parameters.rows) * len(parameters.kinds)
    rows = len(parameters.kinds) * max(parameters.rows)
    return parameters.seconds_of(loads) + rows / shared.ROWS_PER_SECOND


SCENARIOS = (
    Scenario(
        NAME,
        'Mean write time as a container grows, one container and many.',
        Parameters,
        measure,
        tables,
        plots,
        seconds=_seconds,
        published='Published, of one container: a mean write time of '
        '12.58 ms below 1.6 million objects, and of 13.29 ms above.',
    ),
)
