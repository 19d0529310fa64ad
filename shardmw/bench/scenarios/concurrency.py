# SPDX-License-Identifier: Apache-2.0
"""``concurrency``: one client and many, small objects and large ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shardmw.bench.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    P99_RATIO,
    RATE,
    RATE_RATIO,
    WORK,
    Column,
    Row,
    condition,
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
    SIZES,
)
from shardmw.bench.parameters import option
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import Plot
from shardmw.bench.runs import runs_of
from shardmw.bench.scenarios import object_size, transfers
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.scenarios.transfers import READ, WRITE, Transfer
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure

NAME = 'concurrency'
SUMMARY = 'PUT and GET of small and large objects, by one client and many.'
PUBLISHED = (
    'Published for PUT by 16 clients: 325 /s of 4K (1.3 MB/s) and 40 /s of '
    '4M (155 MB/s).'
)

_PUBLISHED_CLIENTS = 16


@dataclass(frozen=True)
class Parameters(LoadParameters):
    """Of the loads."""

    seconds: float = option(2.5, DURATION, 'Of each load.')
    clients: tuple[int, ...] = option(
        (1, 16), CLIENT_COUNTS, 'Clients at once.', '-t', '--clients'
    )
    objects: int = option(
        256, POSITIVE, 'Objects to read in a container; fewer large ones.'
    )
    sizes: tuple[int, ...] = option(
        (4 << 10, 4 << 20), SIZES, 'Of the objects.', '-b', '--sizes'
    )
    shards: tuple[int, ...] = option(
        (32,), COUNTS, 'Shard counts, beside the plain container.'
    )


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write and read with each number of clients, in turns."""
    parameters = stage.parameters
    return transfers.measure(
        stage,
        keep,
        [
            Transfer(work, size, clients)
            for work in (WRITE, READ)
            for size in parameters.sizes
            for clients in parameters.clients
        ],
        parameters.objects,
    )


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Rates, then latencies, by what was done and how many did."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    leading = [WORK, condition('size'), condition('clients'), CONTAINER]
    return [
        table(
            'Rates by concurrency',
            rows,
            [
                *leading,
                *(RATE, _published('published /s', 0)),
                *(BANDWIDTH, _published('published MB/s', 1)),
                *(*RATE_RATIO, ERRORS),
            ],
            [rounds_note(runs), *warnings(runs)],
        ),
        table(
            'Latencies by concurrency',
            rows,
            [*leading, *LATENCIES, *MEAN_RATIO, *P99_RATIO],
            [rounds_note(runs)],
        ),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Rates and latencies by the number of clients."""
    runs = runs_of(figures)
    return [
        *runplots.rates_by_condition(runs, NAME, 'clients'),
        *runplots.latency_by_condition(runs, NAME, 'clients'),
        *runplots.latency_distributions(runs, NAME),
    ]


def _published(head: str, which: int) -> Column:
    def cell(row: Row) -> str:
        known = object_size.PUBLISHED_RATES.get(row.conditions['size'])
        is_same = (row.work, row.conditions['clients']) == (
            WRITE,
            _PUBLISHED_CLIENTS,
        )
        return figure(known[which] if known and is_same else None)

    return Column(head, cell)
