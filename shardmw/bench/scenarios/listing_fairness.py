# SPDX-License-Identifier: Apache-2.0
"""``listing-fairness``: writes while a client lists another container.

The kind of a run of writes is the kind of the container that is listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.load.clients import Clients
from shardmw.bench.load.sources import Listings, Uploads
from shardmw.bench.load.stage import Ledger, Stage
from shardmw.bench.load.turns import phase_of, rotated
from shardmw.bench.names import FlatNames
from shardmw.bench.options import DURATION
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import BARS, Axis, Plot
from shardmw.bench.results import comparing as c
from shardmw.bench.results.comparing import Column, Row
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.scenarios import Figures, Keep, Scenario, grouping
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, number
from shardmw.bench.words import head, objects_text

NAME = 'listing-fairness'
WRITE = 'write meanwhile'
LIST = 'list'

#: The kind of runs in which no container is listed.
NOBODY = Kind('nobody lists')

# Writers with less of the wanted rate are behind.
_ON_TIME_SHARE = 0.95

_p99 = c.latency_of('p99_ms')


@dataclass(frozen=True)
class Parameters(shared.PacedParameters, shared.LoadParameters):
    """The options of the scenario."""

    shards: tuple[int, ...] = shared.shards_option(4, 32, 128)
    seconds: float = option(10.0, DURATION, 'How long each load lasts.')
    workers: int = shared.workers_option(4)
    rate: int = shared.rate_option(50)
    size: int = shared.size_option(1)
    rows: int = shared.rows_option(1_000_000)
    page: tuple[int, ...] = shared.pages_option(10_000, 100)


def measure(stage: Stage, keep: Keep) -> Figures:
    """Write while no container is listed, and while each one is."""
    parameters = stage.parameters
    kinds = parameters.kinds
    steps = [
        (turn, page, kind)
        for turn in range(parameters.rounds)
        for page in parameters.page
        for kind in rotated((NOBODY, *kinds), turn)
    ]
    names = FlatNames(parameters.rows)
    ledger = Ledger(stage, keep, len(steps))
    # the same process serves the writers and the client that lists
    cluster = parameters.cluster({'DEFAULT.workers': '0'})
    with stage.site(cluster) as site, Clients(1) as lister:
        with stage.screen.status('filling the containers that are listed'):
            paths = {kind: _filled(site, kind, names) for kind in kinds}
        for turn, page, kind in steps:
            container = site.make(PLAIN)
            phase = phase_of(turn, parameters.rounds)
            site.prepare(container, True, phase)
            writes = site.load(
                Uploads(site.container_path(container), parameters.size),
                parameters.clients,
                seconds=parameters.seconds,
                pace_seconds=parameters.pace_seconds,
            )
            if kind == NOBODY:
                ledger.measure(writes, WRITE, kind, turn, page=page)
                continue
            pages = site.load(Listings(paths[kind], names, page), clients=1)
            listing = lister.begin(pages)
            ledger.measure(writes, WRITE, kind, turn, page=page)
            outcome = stage.checked(listing.stop())
            ledger.note(pages, outcome, LIST, kind, turn, page=page)
    return ledger.figures


def _filled(site: Site, kind: Kind, names: FlatNames) -> str:
    """Return the path of a new container with rows."""
    container = site.make(kind, names)
    site.fill(container, kind, names)
    site.prepare(container, False, 0)
    return site.container_path(container)


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the writes by what was listed meanwhile, and the pages/s."""
    runs = runs_of(figures)
    rows = [row for row in c.rows_of(runs, NOBODY) if row.work == WRITE]
    if not rows:
        return []
    listings = {_key(row): row for row in c.rows_of(runs) if row.work == LIST}
    to_plain = {_key(row): row for row in c.rows_of(runs) if row.work == WRITE}

    def of_listing(column: Column, title: str) -> Column:
        return _of(listings, column)._replace(head=title)

    pages = c.median_of('pages/s', lambda run: run.operations_rate)
    what = f'{objects_text(parameters.size)}, {parameters.clients} clients'
    where = 'All of them are served by one proxy worker'
    if parameters.workers:
        where += f' and by {parameters.workers} of each storage server'
    how = (
        f'{number(parameters.rate)} writes/s are wanted, evenly spread over '
        'clients and time.'
        if parameters.rate
        else 'Each writer continues as soon as it has an answer, so the '
        'latency of a write is mostly time in a queue.'
    )
    return [
        c.table(
            f'Writes while a client lists: {what}',
            rows,
            [
                Column(
                    head('listed'), lambda row: row.kind.label, is_words=True
                ),
                Column(head('page'), lambda row: number(_key(row)[1]), True),
                *(c.median_of('writes/s', c.rate), c.P50, c.P99),
                *c.ratios('p99 to nobody', _p99),
                *(
                    _of(to_plain, each)
                    for each in c.ratios('p99 to plain listed', _p99)
                ),
                c.ERRORS,
                of_listing(pages, 'pages/s'),
                of_listing(c.ERRORS, 'its errors'),
            ],
            [
                'One client lists a container page after page while others '
                'write to another container, which is plain. *To nobody*: '
                'the ratio to the same writes while nobody lists. *To plain '
                'listed*: the ratio to those while a plain container is '
                'listed in pages of that size. *Pages/s* and *its errors* '
                'are those of the client that lists.',
                f'{where}. {how}',
                *_late_notes(parameters, runs),
                c.rounds_note(runs),
                *c.warnings(runs),
            ],
        )
    ]


def _key(row: Row) -> tuple[Kind, int]:
    return row.kind, row.conditions['page']


def _of(rows: dict[tuple[Kind, int], Row], column: Column) -> Column:
    """Return a column of other rows, of the same container and page."""

    def cell(row: Row) -> str:
        found = rows.get(_key(row))
        return grouping.MISSING if found is None else column.cell(found)

    return column._replace(cell=cell)


def _late_notes(parameters: Parameters, runs: Sequence[Run]) -> list[str]:
    writes = [run for run in runs if run.work == WRITE]
    wanted = _ON_TIME_SHARE * parameters.rate
    late = sum(run.rate < wanted for run in writes)
    if not late:
        return []
    return [
        f'In {late} of {len(writes)} loads the writers were behind: a write '
        'took longer than the pause until the next one, so these are figures '
        'of fewer writes than were wanted.'
    ]


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return a plot of the p99 of writes by the container that is listed."""
    runs = [run for run in runs_of(figures) if run.work == WRITE]
    found = {run.kind for run in runs}
    kinds = [kind for kind in parameters.kinds if kind in found]

    def p99s(kind: Kind, *pages: int) -> list[float]:
        known = [
            _p99(run)
            for run in runs
            if run.kind == kind and run.conditions['page'] in pages
        ]
        return [each for each in known if each is not None]

    series = [
        grouping.median_series(
            f'{number(page)} rows a page',
            {i: p99s(kind, page) for i, kind in enumerate(kinds)},
            BARS,
        )
        for page in parameters.page
    ]
    if kinds and (alone := p99s(NOBODY, *parameters.page)):
        middle = grouping.median_series('', {0: alone}).y[0]
        series.append(grouping.level(NOBODY.label, range(len(kinds)), middle))
    return grouping.plot_if_any(
        f'{NAME}-p99',
        'Writes while a client lists: 99th percentile',
        series,
        x=Axis('container that is listed', names=[k.label for k in kinds]),
        y=Axis('p99 (ms)'),
        note=grouping.MEDIANS_NOTE,
    )


def _seconds(parameters: Parameters) -> float:
    loads = len(parameters.page) * (1 + len(parameters.kinds))
    rows = len(parameters.kinds) * parameters.rows
    return parameters.seconds_of(loads) + rows / shared.ROWS_PER_SECOND


SUMMARY = 'Writes by the proxy worker that also serves a client that lists.'

SCENARIOS = [
    Scenario(NAME, SUMMARY, Parameters, measure, tables, plots, _seconds)
]
