# SPDX-License-Identifier: Apache-2.0
"""``log-serving``: many fetch a log, or the recent ones."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from shardmw.bench.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    PHASES_NOTE,
    RATE,
    RATE_RATIO,
    Column,
    Row,
    condition,
    phase,
    phase_columns,
    ratios,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.disk import served, write_files
from shardmw.bench.kinds import DISK, Kind
from shardmw.bench.names import FlatNames
from shardmw.bench.options import CLIENTS, COUNTS, POSITIVE, SIZE
from shardmw.bench.parameters import option
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import Plot
from shardmw.bench.runs import runs_of
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.scenarios.transfers import READ, kinds_of
from shardmw.bench.site import Site
from shardmw.bench.sources import Reads
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.summary import REQUEST, RESPONSE, TOTAL, TRANSFER
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.turns import rotated
from shardmw.bench.units import size_text

NAME = 'log-serving'
SUMMARY = 'One log fetched again and again, and recent logs, by many.'
PUBLISHED = (
    'Published means for a log of 1.2 MB: from a plain disk 7.6 ms to the '
    'response and 1,389 ms of transfer; from Swift 96.7 ms and 3,660 ms.'
)

#: ``(where from, response ms, transfer ms)``
PUBLISHED_MEANS = (
    ('published: plain disk', 7.6, 1389.0),
    ('published: Swift', 96.7, 3660.0),
)

_ONE = 'one log'
_RECENT = 'recent logs'
_MISSING = '—'


@dataclass(frozen=True)
class Parameters(LoadParameters):
    """Of the reads."""

    clients: int = option(
        16, CLIENTS, 'Clients at once, a connection each.', '-t', '--clients'
    )
    size: int = option(1200 << 10, SIZE, 'Of the logs.', '-b', '--size')
    logs: int = option(64, POSITIVE, 'How many recent logs there are.')
    shards: tuple[int, ...] = option(
        (32,), COUNTS, 'Shard counts, beside the plain container.'
    )


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Fetch one log, then recent ones, from each container in turns.

    And from a plain disk, as the published ones were.
    """
    parameters = stage.parameters
    kinds = [DISK, *kinds_of(parameters.shards)]
    steps = [
        (turn, which, kind)
        for turn in range(parameters.rounds)
        for which in (_ONE, _RECENT)
        for kind in rotated(kinds, turn)
    ]
    ledger = Ledger(stage, keep, len(steps))
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(stage.site(parameters.cluster()))
        folder = site.cluster.path / 'files'
        write_files(folder, FlatNames(parameters.logs), parameters.size)
        url = stack.enter_context(served(folder))
        paths = {
            kind: site.container_path(_archive(site, parameters, kind))
            for kind in kinds_of(parameters.shards)
        }
        for turn, which, kind in steps:
            source = Reads(
                paths.get(kind, ''),
                FlatNames(parameters.logs),
                count=1 if which == _ONE else parameters.logs,
                shuffled=True,
            )
            load = site.load(
                source, parameters.clients, seconds=parameters.seconds
            )
            if kind == DISK:
                load = replace(load, urls=(url,))
            ledger.measure(
                load,
                READ,
                kind,
                turn,
                fetched=which,
                clients=parameters.clients,
                size=parameters.size,
            )
    return ledger.figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """The three times with outliers and without, then the rates."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    leading = [condition('fetched'), CONTAINER]
    what = f'{size_text(parameters.size)} logs, {parameters.clients} clients'
    times = table(
        f'Times of a GET: {what}',
        rows,
        [*leading, *_time_columns(), ERRORS],
        [
            PHASES_NOTE,
            _DISK_NOTE,
            _PUBLISHED_NOTE,
            rounds_note(runs),
            *warnings(runs),
        ],
    )
    return [
        _with_published(times),
        table(
            f"Times of a GET by the plain container's: {what}",
            [row for row in rows if row.base],
            [*leading, *_ratio_columns()],
            [rounds_note(runs)],
        ),
        table(
            f'GETs a second: {what}',
            rows,
            [*leading, RATE, BANDWIDTH, *RATE_RATIO],
            [rounds_note(runs)],
        ),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The times apart, and how many took how long."""
    runs = runs_of(figures)
    return [
        *runplots.phases(runs, NAME),
        *runplots.latency_distributions(runs, NAME),
        *runplots.latency_over_time(runs, NAME),
    ]


_DISK_NOTE = (
    '*Plain disk*: files beside the cluster, which a small web server, a '
    'process of threads, has the kernel send. They fit into memory.'
)
_PUBLISHED_NOTE = 'Published ones are of another machine, and of a network.'

#: The columns of times, in the order of the published ones' cells.
_TIMES = (REQUEST, RESPONSE, TRANSFER, TOTAL)


def _archive(site: Site, parameters: Parameters, kind: Kind) -> str:
    names = FlatNames(parameters.logs)
    container = site.make(kind, names)
    site.populate(container, names, parameters.size)
    return container


def _time_columns() -> list[Column]:
    columns = [column for name in _TIMES for column in phase_columns(name)]
    return [*columns, Column('outliers', _outliers)]


def _outliers(row: Row) -> str:
    """What share of the requests lay beyond the fences of the total."""
    found = [run.summary for run in row.runs if TOTAL in run.summary.phases]
    timed = sum(each.histogram.total for each in found)
    outliers = sum(each.phases[TOTAL].outliers for each in found)
    if not timed:
        return _MISSING
    return f'{number(100 * outliers / timed, 1)} %'


def _ratio_columns() -> list[Column]:
    return [
        column
        for name in (RESPONSE, TRANSFER, TOTAL)
        for column in ratios(name, phase(name, 'trimmed_mean_ms'))
    ]


def _with_published(times: Table) -> Table:
    """The table with what others published below it."""
    rows = [*times.rows]
    for where, response, transfer in PUBLISHED_MEANS:
        known = {
            times.columns[0]: where,
            f'{RESPONSE} ms': figure(response),
            f'{TRANSFER} ms': figure(transfer),
            f'{TOTAL} ms': figure(response + transfer),
        }
        rows.append([known.get(head, _MISSING) for head in times.columns])
    return Table(
        times.title, times.columns, rows, times.notes, names=times.names
    )
