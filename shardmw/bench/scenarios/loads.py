# SPDX-License-Identifier: Apache-2.0
"""Scenarios that are loads of uploads or reads, plain and sharded in turns.

Each is a declaration at the end of this module.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardmw.bench import runplots
from shardmw.bench.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    P50_RATIO,
    P99_RATIO,
    RATE,
    RATE_RATIO,
    REFUSED,
    WORK,
    Column,
    Row,
    condition,
    phase,
    phases_table,
    ratios,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.disk import served, write_files
from shardmw.bench.kinds import DISK, PLAIN, Kind, sharded
from shardmw.bench.load import Load
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.options import (
    CLIENT_COUNTS,
    CLIENTS,
    COUNTS,
    POSITIVE,
    SIZE,
    SIZES,
    Parsed,
)
from shardmw.bench.options import RATE as LIMIT
from shardmw.bench.parameters import option
from shardmw.bench.plot import REFERENCE, Plot, Series
from shardmw.bench.runs import Run, runs_of
from shardmw.bench.scenarios import Figures, Keep, Scenario
from shardmw.bench.scenarios.grouping import kind_of
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.site import Site
from shardmw.bench.sources import Reads, Uploads
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.summary import RESPONSE, TOTAL, TRANSFER
from shardmw.bench.tables import Table, figure, number, plain, ratio
from shardmw.bench.turns import phase_of, rotated
from shardmw.bench.units import parse_choices
from shardmw.bench.words import varying

WRITE = 'write'
READ = 'read'
_WORKS = Parsed(
    'works', lambda text: parse_choices(text, (WRITE, READ)), ','.join
)

_KIB, _MIB = 1 << 10, 1 << 20

# Written objects of this size and more are deleted after each load: they
# would fill the disk.
_LARGE_BYTES = _MIB

# At most so many bytes are uploaded before reads.
_READ_BYTES = 128 * _MIB


def uploads(
    site: Site,
    container: str,
    size: int,
    clients: int,
    phase: float,
    **fields: object,
) -> Load:
    """Return a load of uploads to a container, which is prepared for it.

    :param phase: see :meth:`shardmw.bench.site.Site.prepare`
    :param fields: of the load
    """
    site.prepare(container, True, phase)
    source = Uploads(site.container_path(container), size)
    return site.load(source, clients, **fields)


def load_tables(
    title: str,
    runs: Sequence[Run],
    more: Sequence[Column] = (),
    notes: Sequence[str] = (),
) -> list[Table]:
    """Return rates, latencies and phases, with ratios to the plain container.

    :param more: columns of the rates' table
    """
    if not runs:
        return []
    rows = rows_of(runs)
    works = {run.work for run in runs}
    leading = [*[WORK] * (len(works) > 1), *map(condition, varying(runs))]
    leading.append(CONTAINER)
    about = rounds_note(runs)
    has_refusals = any(run.summary.refused for run in runs)
    return [
        table(
            f'{title}: rates',
            rows,
            [
                *(*leading, RATE, BANDWIDTH, *RATE_RATIO, *more),
                *(*[REFUSED] * has_refusals, ERRORS),
            ],
            [*notes, about, *warnings(runs)],
        ),
        table(
            f'{title}: latency',
            rows,
            [*leading, *LATENCIES, *MEAN_RATIO, *P50_RATIO, *P99_RATIO],
            [about],
        ),
        phases_table(f'{title}: where the time goes', rows, leading),
    ]


def load_plots(name: str, runs: Sequence[Run]) -> list[Plot]:
    """Return all plots that can be made of the runs."""
    return [
        *runplots.all_of(runs, name),
        *runplots.latency_by_condition(runs, name, 'size'),
        *runplots.latency_by_condition(runs, name, 'clients'),
    ]


class _Transfer(NamedTuple):
    """A load of uploads or reads of objects of one size.

    :param count: of operations; None for as many as there is time for
    """

    work: str
    size: int
    clients: int
    count: int | None


@dataclass(frozen=True)
class TransferParameters(LoadParameters):
    """Parameters of uploads and reads by size and number of clients."""

    works: tuple[str, ...] = option((WRITE, READ), _WORKS, 'What clients do.')
    clients: tuple[int, ...] = option(
        (1, 16), CLIENT_COUNTS, 'Concurrent clients.', '-t', '--clients'
    )
    sizes: tuple[int, ...] = option(
        (4 * _KIB,), SIZES, 'Sizes of the objects.', '-b', '--sizes'
    )
    objects: int = option(
        256,
        POSITIVE,
        'Objects in each container that is read; fewer if they are large.',
    )
    large: int = option(
        32 * _MIB,
        SIZE,
        'Uploads of objects of this size and more end after --large-count.',
    )
    large_count: int = option(32, POSITIVE, 'How many large objects.')

    @property
    def transfers(self) -> list[_Transfer]:
        """Return the loads of a round on each kind of container."""
        return [
            _Transfer(
                work,
                size,
                clients,
                self.large_count
                if work == WRITE and size >= self.large
                else None,
            )
            for work in self.works
            for size in self.sizes
            for clients in self.clients
        ]


def _measure_transfers(stage: Stage, keep: Keep) -> Figures:
    """Write and read with each size and number of clients, in turns."""
    parameters = stage.parameters
    steps = [
        (turn, transfer, kind)
        for turn in range(parameters.rounds)
        for transfer in parameters.transfers
        for kind in rotated(parameters.kinds, turn)
    ]
    ledger = Ledger(stage, keep, len(steps))
    with stage.site(parameters.cluster()) as site:
        paths: dict[tuple[Kind, int], str] = {}
        for turn, transfer, kind in steps:
            work, size, clients, count = transfer
            written = site.make(kind) if work == WRITE else None
            if written:
                load = uploads(
                    *(site, written, size, clients),
                    phase_of(turn, parameters.rounds),
                    seconds=None if count else parameters.seconds,
                    count=count,
                )
            else:
                names = _names_to_read(parameters.objects, size)
                if (kind, size) not in paths:
                    paths[kind, size] = _uploaded(site, kind, names, size)
                load = site.load(
                    Reads(paths[kind, size], names, shuffled=True),
                    clients,
                    seconds=parameters.seconds,
                )
            ledger.measure(load, work, kind, turn, clients=clients, size=size)
            if written and size >= _LARGE_BYTES:
                site.remove(written)
    return ledger.figures


def _names_to_read(objects: int, size: int) -> Names:
    """Return the names of so many objects, or fewer if they are large."""
    return FlatNames(max(1, min(objects, _READ_BYTES // max(1, size))))


def _uploaded(site: Site, kind: Kind, names: Names, size: int) -> str:
    """Return the path of a new container with objects to read."""
    container = site.make(kind, names)
    site.populate(container, names, size)
    site.prepare(container, False, 0)
    return site.container_path(container)


# Published writes/s and MB/s by object size, of 16 clients.
_PUBLISHED_CLIENTS = 16
_PUBLISHED_TRANSFERS = {
    4 * _KIB: (325, 1.3),
    32 * _KIB: (300, 9.2),
    4 * _MIB: (40, 155),
    64 * _MIB: (3, 160),
}


def _published_transfer(row: Row, which: int) -> float | None:
    known = _PUBLISHED_TRANSFERS.get(row.conditions['size'])
    case = row.work, row.conditions['clients']
    return (
        known[which] if known and case == (WRITE, _PUBLISHED_CLIENTS) else None
    )


def _transfer_tables(
    parameters: TransferParameters, figures: Figures
) -> list[Table]:
    more = [
        Column(
            f'published {unit}',
            lambda row, i=i: figure(_published_transfer(row, i)),
        )
        for i, unit in enumerate(('/s', 'MB/s'))
    ]
    runs = runs_of(figures)
    rows = rows_of(runs)
    is_known = any(_published_transfer(row, 0) for row in rows)
    return load_tables('Uploads and reads', runs, more if is_known else ())


def _transfer_plots(name: str) -> Callable[..., list[Plot]]:
    def plots(_: TransferParameters, figures: Figures) -> list[Plot]:
        return [
            _with_published_transfers(plot)
            for plot in load_plots(name, runs_of(figures))
        ]

    return plots


def _with_published_transfers(plot: Plot) -> Plot:
    """Add the published figures to a plot of uploads by object size."""
    wanted = {'rate-by-size': 0, 'bandwidth-by-size': 1}
    which = [i for word, i in wanted.items() if word in plot.name]
    known = {
        size: values
        for size, values in _PUBLISHED_TRANSFERS.items()
        if any(size in each.x for each in plot.series)
    }
    if not which or READ in plot.name.split('-') or not known:
        return plot
    y = [values[which[0]] for values in known.values()]
    return _with_series(plot, list(known), y)


def _with_series(plot: Plot, x: Sequence[float], y: Sequence[float]) -> Plot:
    if not x:
        return plot
    series = Series('published', x, y, REFERENCE)
    return replace(plot, series=(*plot.series, series))


def _transfer_seconds(parameters: TransferParameters) -> float:
    loads = len(parameters.transfers) * len(parameters.kinds)
    return parameters.seconds_of(loads)


def _transfers(
    name: str, summary: str, published: str = '', **defaults: object
) -> Scenario:
    return Scenario(
        name,
        summary,
        TransferParameters,
        _measure_transfers,
        _transfer_tables,
        _transfer_plots(name),
        seconds=_transfer_seconds,
        published=published,
        defaults=defaults,
    )


# Published writes/s of 128 writers in 15 minutes.
_PUBLISHED_WRITES = {PLAIN: 87_000 / 900, sharded(32): 135_000 / 900}

_LIMIT_OPTION = 'shardmw.container_ratelimit_0'


@dataclass(frozen=True)
class ShardingParameters(LoadParameters):
    """Parameters of many writers to one container."""

    shards: tuple[int, ...] = option(
        (1, 32, 64, 128, 256, 512),
        COUNTS,
        'Shard counts, in addition to the plain container.',
    )
    clients: int = option(
        128, CLIENTS, 'Concurrent clients that write.', '-t', '--clients'
    )
    size: int = option(1, SIZE, 'Size of the objects.', '-b', '--size')
    limit: float = option(
        100.0, LIMIT, 'Writes/s that a backing container may take.'
    )


def _measure_sharding(stage: Stage, keep: Keep) -> Figures:
    """Write to each container in turns, with the limit and without."""
    parameters = stage.parameters
    limits = (None, parameters.limit)
    steps = [
        (turn, limit, kind)
        for turn in range(parameters.rounds)
        for limit in rotated(limits, turn)
        for kind in rotated(parameters.kinds, turn)
    ]
    ledger = Ledger(stage, keep, len(steps), first_writes=[])
    with contextlib.ExitStack() as stack:
        sites = {
            limit: stack.enter_context(
                stage.site(
                    parameters.cluster(
                        {_LIMIT_OPTION: plain(limit)} if limit else {}
                    )
                )
            )
            for limit in limits
        }
        for turn, limit, kind in steps:
            # a new container: an idle one may exceed its limit for a while
            site = sites[limit]
            container = site.make(kind)
            ledger.figures['first_writes'].append(
                {
                    'limit': limit,
                    'kind': kind.as_json(),
                    'turn': turn,
                    'ms': _first_write_ms(site, container),
                }
            )
            load = uploads(
                *(site, container, parameters.size, parameters.clients),
                phase_of(turn, parameters.rounds),
                seconds=parameters.seconds,
            )
            ledger.measure(load, WRITE, kind, turn, limit=limit)
    return ledger.figures


def _first_write_ms(site: Site, container: str) -> float:
    began = time.perf_counter()
    site.account.store(container, 'first')
    return 1000 * (time.perf_counter() - began)


def _sharding_tables(
    parameters: ShardingParameters, figures: Figures
) -> list[Table]:
    return load_tables(
        f'{parameters.clients} writers',
        runs_of(figures),
        [
            Column(
                'published /s',
                lambda row: figure(_PUBLISHED_WRITES.get(row.kind)),
            ),
            Column('published ratio', _published_ratio),
            _first_writes_column(figures.get('first_writes', ())),
        ],
        [
            '*Limit*: writes/s that a backing container may take. Each load '
            f'of {plain(parameters.seconds)} s has a new container. The '
            '*first write* precedes it; with a limit, it reads the sums of '
            'all shards.'
        ],
    )


def _published_ratio(row: Row) -> str:
    known = None if row.kind.is_plain else _PUBLISHED_WRITES.get(row.kind)
    return ratio(known, _PUBLISHED_WRITES[PLAIN])


def _first_writes_column(first_writes: Iterable[Mapping]) -> Column:
    def cell(row: Row) -> str:
        took = [
            each['ms']
            for each in first_writes
            if (each['limit'], kind_of(each))
            == (row.conditions['limit'], row.kind)
        ]
        return figure(statistics.median(took) if took else None)

    return Column('first write ms', cell)


def _sharding_plots(
    parameters: ShardingParameters, figures: Figures
) -> list[Plot]:
    known = {kind.label: rate for kind, rate in _PUBLISHED_WRITES.items()}
    found = []
    for plot in load_plots('container-sharding', runs_of(figures)):
        if 'rate-by-shards' in plot.name:
            x = [i for i, each in enumerate(plot.x.names) if each in known]
            y = [known[plot.x.names[i]] for i in x]
            plot = _with_series(plot, x, y)
        found.append(plot)
    return found


_ONE_LOG = 'one log'
_RECENT_LOGS = 'recent logs'

#: ``(where from, response ms, transfer ms)``
_PUBLISHED_READS = (
    ('published: plain disk', 7.6, 1389.0),
    ('published: Swift', 96.7, 3660.0),
)

_LOGS_NOTE = (
    '*Plain disk*: files that a small web server of several threads has the '
    'kernel send. They fit into memory. The published times are those of '
    'another machine, over a network.'
)


@dataclass(frozen=True)
class LogParameters(LoadParameters):
    """Parameters of reads of logs."""

    clients: int = option(
        16, CLIENTS, 'Concurrent clients.', '-t', '--clients'
    )
    size: int = option(1200 * _KIB, SIZE, 'Size of the logs.', '-b', '--size')
    logs: int = option(64, POSITIVE, 'How many recent logs there are.')


def _measure_logs(stage: Stage, keep: Keep) -> Figures:
    """Read one log, then recent ones, from a disk and from containers."""
    parameters = stage.parameters
    names = FlatNames(parameters.logs)
    steps = [
        (turn, which, kind)
        for turn in range(parameters.rounds)
        for which in (_ONE_LOG, _RECENT_LOGS)
        for kind in rotated((DISK, *parameters.kinds), turn)
    ]
    ledger = Ledger(stage, keep, len(steps))
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(stage.site(parameters.cluster()))
        folder = site.cluster.path / 'files'
        write_files(folder, names, parameters.size)
        url = stack.enter_context(served(folder))
        paths = {
            kind: _uploaded(site, kind, names, parameters.size)
            for kind in parameters.kinds
        }
        for turn, which, kind in steps:
            source = Reads(
                paths.get(kind, ''),
                names,
                count=1 if which == _ONE_LOG else parameters.logs,
                shuffled=True,
            )
            load = site.load(
                source, parameters.clients, seconds=parameters.seconds
            )
            if kind == DISK:
                load = replace(load, urls=(url,))
            ledger.measure(load, READ, kind, turn, fetched=which)
    return ledger.figures


def _log_tables(parameters: LogParameters, figures: Figures) -> list[Table]:
    runs = runs_of(figures)
    if not runs:
        return []
    rates, latencies, phases = load_tables(
        'Reads of logs',
        runs,
        [
            Column('outliers', _outliers),
            *(
                column
                for name in (RESPONSE, TRANSFER, TOTAL)
                for column in ratios(
                    f'{name} to plain', phase(name, 'trimmed_mean_ms')
                )
            ),
        ],
        [_LOGS_NOTE],
    )
    rows = [*phases.rows]
    for where, response, transfer in _PUBLISHED_READS:
        known = {
            phases.columns[0]: where,
            f'{RESPONSE} ms': figure(response),
            f'{TRANSFER} ms': figure(transfer),
            f'{TOTAL} ms': figure(response + transfer),
        }
        rows.append([known.get(head, '—') for head in phases.columns])
    return [replace(phases, rows=rows), rates, latencies]


def _outliers(row: Row) -> str:
    """Return the share of requests with a total time beyond the fences."""
    found = [run.summary for run in row.runs if TOTAL in run.summary.phases]
    timed = sum(each.histogram.total for each in found)
    outliers = sum(each.phases[TOTAL].outliers for each in found)
    return f'{number(100 * outliers / timed, 1)} %' if timed else '—'


SCENARIOS = (
    Scenario(
        'container-sharding',
        'Many writers, one container: plain, and of 1 to 512 shards.',
        ShardingParameters,
        _measure_sharding,
        _sharding_tables,
        _sharding_plots,
        seconds=lambda parameters: parameters.seconds_of(
            2 * len(parameters.kinds), clusters=2
        ),
        published='Published for 128 writers: 87,000 writes in 15 minutes on '
        'one container, 135,000 on 32, which are 97 /s and 150 /s.',
    ),
    _transfers(
        'object-size',
        'Uploads of small and large objects, plain and sharded.',
        'Published for 16 clients: 325, 300, 40 and 3 PUT/s of 4K, 32K, 4M '
        'and 64M, which are 1.3, 9.2, 155 and 160 MB/s.',
        works=(WRITE,),
        clients=(_PUBLISHED_CLIENTS,),
        sizes=tuple(_PUBLISHED_TRANSFERS),
    ),
    _transfers(
        'concurrency',
        'PUT and GET of small and large objects, by one client and many.',
        'Published for PUT by 16 clients: 325 /s of 4K (1.3 MB/s) and 40 /s '
        'of 4M (155 MB/s).',
        seconds=2.5,
        sizes=(4 * _KIB, 4 * _MIB),
    ),
    _transfers(
        'small-objects',
        'How long PUT and GET of a 64K object take, plain and sharded.',
        seconds=2.0,
        rounds=12,
        sizes=(64 * _KIB,),
    ),
    Scenario(
        'log-serving',
        'Reads of one log again and again, and of recent logs, by many '
        'clients.',
        LogParameters,
        _measure_logs,
        _log_tables,
        lambda _, figures: load_plots('log-serving', runs_of(figures)),
        seconds=lambda parameters: parameters.seconds_of(
            2 * (1 + len(parameters.kinds))
        ),
        published='Published means for a log of 1.2 MB: from a plain disk '
        '7.6 ms to the response and 1,389 ms of transfer; from Swift 96.7 ms '
        'and 3,660 ms.',
    ),
)
