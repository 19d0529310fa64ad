# SPDX-License-Identifier: Apache-2.0
"""``container-sharding``: many writers, one container of ever more shards."""

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from shardmw.bench.comparing import (
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    P99_RATIO,
    RATE,
    RATE_RATIO,
    REFUSED,
    Column,
    Row,
    condition,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.options import CLIENTS, COUNTS, SIZE
from shardmw.bench.options import RATE as LIMIT
from shardmw.bench.parameters import option
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import REFERENCE, Plot, Series
from shardmw.bench.runs import runs_of
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.scenarios.transfers import WRITE, kinds_of
from shardmw.bench.site import Site
from shardmw.bench.sources import Uploads
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.tables import Table, figure, plain
from shardmw.bench.turns import phase_of, rotated
from shardmw.bench.words import objects_text

NAME = 'container-sharding'
SUMMARY = 'Many writers, one container: plain, and of 1 to 512 shards.'
PUBLISHED = (
    'Published for 128 writers: 87,000 writes in 15 minutes on one '
    'container, 135,000 on 32, which are 97 /s and 150 /s.'
)

_MINUTES = 15 * 60

#: Writes a second.
PUBLISHED_RATES = {PLAIN: 87_000 / _MINUTES, sharded(32): 135_000 / _MINUTES}

_LIMIT_OPTION = 'shardmw.container_ratelimit_0'


@dataclass(frozen=True)
class Parameters(LoadParameters):
    """Of the writes.

    :param limit: writes/s of a backing container
    """

    clients: int = option(
        128, CLIENTS, 'Clients that write at once.', '-t', '--clients'
    )
    size: int = option(1, SIZE, 'Of the objects.', '-b', '--size')
    shards: tuple[int, ...] = option(
        (1, 32, 64, 128, 256, 512),
        COUNTS,
        'Shard counts, beside the plain container.',
    )
    limit: float = option(
        100.0, LIMIT, 'Writes/s that a backing container may take.'
    )


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write to each container in turns, with the limit and without."""
    parameters = stage.parameters
    kinds = kinds_of(parameters.shards)
    limits = (None, parameters.limit)
    steps = [
        (turn, limit, kind)
        for turn in range(parameters.rounds)
        for limit in rotated(limits, turn)
        for kind in rotated(kinds, turn)
    ]
    ledger = Ledger(stage, keep, len(steps), first_writes=[])
    with contextlib.ExitStack() as stack:
        sites = {
            limit: stack.enter_context(
                stage.site(parameters.cluster(_settings(limit)))
            )
            for limit in limits
        }
        for turn, limit, kind in steps:
            site = sites[limit]
            # a new one, which has not saved up a burst
            container = site.make(kind)
            ledger.figures['first_writes'].append(
                {
                    'limit': limit,
                    'kind': kind.as_json(),
                    'turn': turn,
                    'ms': 1000 * _write_first(site, container),
                }
            )
            site.prepare(container, True, phase_of(turn, parameters.rounds))
            load = site.load(
                Uploads(site.container_path(container), parameters.size),
                parameters.clients,
                seconds=parameters.seconds,
            )
            ledger.measure(load, WRITE, kind, turn, limit=limit)
    return ledger.figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Rates and latencies by shard count, with the limit and without."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    first = _first_writes(figures)
    leading = [condition('limit'), CONTAINER]
    what = f'{parameters.clients} writers, {objects_text(parameters.size)}'
    return [
        table(
            f'Writes a second: {what}',
            rows,
            [
                *leading,
                *(RATE, *RATE_RATIO),
                Column('published /s', _published),
                Column('published ratio', _published_ratio),
                first,
                *(REFUSED, ERRORS),
            ],
            [
                f'*Limit*: writes/s that a backing container may take. '
                f'Loads of {plain(parameters.seconds)} s, each on a new '
                'container, after a *first write*: with a limit, it has the '
                'sums of all shards read. The published figures stand beside '
                'both.',
                rounds_note(runs),
                *warnings(runs),
            ],
        ),
        table(
            f'Latency of writes: {what}',
            rows,
            [*leading, *LATENCIES, *MEAN_RATIO, *P99_RATIO],
            [rounds_note(runs)],
        ),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Rates and latencies by shard count."""
    runs = runs_of(figures)
    return [
        *map(_with_published, runplots.rates_by_shards(runs, NAME)),
        *runplots.latency_distributions(runs, NAME),
        *runplots.latency_over_time(runs, NAME),
    ]


def _write_first(site: Site, container: str) -> float:
    """Write an object, and tell how many seconds it took."""
    began = time.perf_counter()
    site.account.store(container, 'first')
    return time.perf_counter() - began


def _first_writes(figures: Mapping) -> Column:
    """The column of how long the first writes took."""
    found: dict[tuple, list[float]] = {}
    for each in figures.get('first_writes', ()):
        which = each['limit'], Kind.from_json(each['kind'])
        found.setdefault(which, []).append(each['ms'])

    def cell(row: Row) -> str:
        took = found.get((row.conditions['limit'], row.kind))
        return figure(statistics.median(took) if took else None)

    return Column('first write ms', cell)


def _settings(limit: float | None) -> dict[str, str]:
    return {} if limit is None else {_LIMIT_OPTION: plain(limit)}


def _published(row: Row) -> str:
    return figure(PUBLISHED_RATES.get(row.kind))


def _published_ratio(row: Row) -> str:
    known = PUBLISHED_RATES.get(row.kind)
    if known is None or row.kind.is_plain:
        return figure(None)
    return figure(known / PUBLISHED_RATES[PLAIN])


def _with_published(plot: Plot) -> Plot:
    known = {kind.label: rate for kind, rate in PUBLISHED_RATES.items()}
    places = [
        place for place, name in enumerate(plot.x.names) if name in known
    ]
    if not places:
        return plot
    rates = [known[plot.x.names[place]] for place in places]
    series = Series('published', places, rates, REFERENCE)
    return replace(plot, series=(*plot.series, series))
