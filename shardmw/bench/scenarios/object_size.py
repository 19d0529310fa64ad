# SPDX-License-Identifier: Apache-2.0
"""``object-size``: uploads of 4K to 64M."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from shardmw.bench.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    MEAN,
    MEAN_RATIO,
    P95,
    RATE,
    RATE_RATIO,
    Column,
    condition,
    phases_table,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.options import CLIENTS, COUNTS, POSITIVE, SIZE, SIZES
from shardmw.bench.parameters import option
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import REFERENCE, Plot, Series
from shardmw.bench.runs import Run, runs_of
from shardmw.bench.scenarios import transfers
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.scenarios.transfers import WRITE, Transfer
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure

NAME = 'object-size'
SUMMARY = 'Uploads of small and large objects, plain and sharded.'
PUBLISHED = (
    'Published for 16 clients: 325, 300, 40 and 3 PUT/s of 4K, 32K, 4M and '
    '64M, which are 1.3, 9.2, 155 and 160 MB/s.'
)

_KIB = 1 << 10
_MIB = 1 << 20

#: ``{bytes: (PUT/s, MB/s)}``
PUBLISHED_RATES = {
    4 * _KIB: (325, 1.3),
    32 * _KIB: (300, 9.2),
    4 * _MIB: (40, 155),
    64 * _MIB: (3, 160),
}


@dataclass(frozen=True)
class Parameters(LoadParameters):
    """Of the uploads."""

    clients: int = option(
        16, CLIENTS, 'Clients at once, a connection each.', '-t', '--clients'
    )
    sizes: tuple[int, ...] = option(
        tuple(PUBLISHED_RATES), SIZES, 'Of the objects.', '-b', '--sizes'
    )
    shards: tuple[int, ...] = option(
        (32,), COUNTS, 'Shard counts, beside the plain container.'
    )
    large: int = option(
        32 * _MIB,
        SIZE,
        'From this size on, loads end with --large-count objects.',
    )
    large_count: int = option(
        32, POSITIVE, 'How many large objects a load has.'
    )


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Upload objects of each size to each kind of container, in turns."""
    parameters = stage.parameters
    return transfers.measure(
        stage, keep, [_transfer(parameters, size) for size in parameters.sizes]
    )


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Rates and bandwidths by size, and where the time goes."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    leading = [condition('size'), CONTAINER]
    return [
        table(
            f'PUT by object size, {parameters.clients} clients',
            rows,
            [
                *leading,
                *(RATE, _published('published PUT/s', 0)),
                *(BANDWIDTH, _published('published MB/s', 1)),
                *(*RATE_RATIO, MEAN, P95, *MEAN_RATIO, ERRORS),
            ],
            [rounds_note(runs), *warnings(runs)],
        ),
        phases_table('Where the time of a PUT goes', rows, leading),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Rates, bandwidths and latencies by size, with the published ones."""
    runs = runs_of(figures)
    rates = runplots.rates_by_condition(runs, NAME, 'size')
    bandwidths = runplots.bandwidth_by_size(runs, NAME)
    return [
        *(_with_published(plot, runs, 0) for plot in rates),
        *(_with_published(plot, runs, 1) for plot in bandwidths),
        *runplots.latency_by_condition(runs, NAME, 'size'),
        *runplots.phases(runs, NAME),
    ]


def _transfer(parameters: Parameters, size: int) -> Transfer:
    is_large = size >= parameters.large
    count = parameters.large_count if is_large else None
    return Transfer(WRITE, size, parameters.clients, count)


def _published(head: str, which: int) -> Column:
    def cell(row: object) -> str:
        known = PUBLISHED_RATES.get(row.conditions['size'])
        return figure(known and known[which])

    return Column(head, cell)


def _with_published(plot: Plot, runs: list[Run], which: int) -> Plot:
    sizes = sorted({run.conditions['size'] for run in runs})
    known = [size for size in sizes if size in PUBLISHED_RATES]
    series = Series(
        'published',
        known,
        [PUBLISHED_RATES[size][which] for size in known],
        REFERENCE,
    )
    return replace(plot, series=(*plot.series, series)) if known else plot
