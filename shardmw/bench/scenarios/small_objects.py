# SPDX-License-Identifier: Apache-2.0
"""``small-objects``: what sharding costs operations on small objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shardmw.bench.comparing import (
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    P50_RATIO,
    P99_RATIO,
    RATE,
    WORK,
    condition,
    phases_table,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.options import (
    CLIENT_COUNTS,
    COUNTS,
    DURATION,
    POSITIVE,
    SIZE,
)
from shardmw.bench.parameters import option
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import Plot
from shardmw.bench.runs import runs_of
from shardmw.bench.scenarios import transfers
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.scenarios.transfers import READ, WRITE, Transfer
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table
from shardmw.bench.words import objects_text

NAME = 'small-objects'
SUMMARY = 'How long PUT and GET of a 64K object take, plain and sharded.'
PUBLISHED = ''


@dataclass(frozen=True)
class Parameters(LoadParameters):
    """Of the loads."""

    seconds: float = option(2.0, DURATION, 'Of each load.')
    rounds: int = option(12, POSITIVE, 'How often, both containers in turns.')
    clients: tuple[int, ...] = option(
        (1, 16), CLIENT_COUNTS, 'Clients at once.', '-t', '--clients'
    )
    objects: int = option(
        256, POSITIVE, 'Objects to read in a container; fewer large ones.'
    )
    size: int = option(64 << 10, SIZE, 'Of the objects.', '-b', '--size')
    shards: tuple[int, ...] = option(
        (32,), COUNTS, 'Shard counts, beside the plain container.'
    )


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write and read, in turns."""
    parameters = stage.parameters
    return transfers.measure(
        stage,
        keep,
        [
            Transfer(work, parameters.size, clients)
            for work in (WRITE, READ)
            for clients in parameters.clients
        ],
        parameters.objects,
    )


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Latencies and their ratios, and where the time goes."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    what = objects_text(parameters.size)
    leading = [WORK, condition('clients'), CONTAINER]
    return [
        table(
            f'Latency of {what}',
            rows,
            [*leading, *LATENCIES, RATE, ERRORS],
            [rounds_note(runs), *warnings(runs)],
        ),
        table(
            f"Latency of {what}, by the plain container's",
            [row for row in rows if row.base],
            [*leading, *MEAN_RATIO, *P50_RATIO, *P99_RATIO],
            [rounds_note(runs)],
        ),
        phases_table('Where the time goes', rows, leading),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Latencies: how many took how long, and in which phase."""
    runs = runs_of(figures)
    return [
        *runplots.latency_distributions(runs, NAME),
        *runplots.phases(runs, NAME),
        *runplots.latency_over_time(runs, NAME),
    ]
