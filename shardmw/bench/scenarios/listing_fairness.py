# SPDX-License-Identifier: Apache-2.0
"""``listing-fairness``: writers, while somebody lists another container."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardmw.bench.clients import Clients
from shardmw.bench.comparing import (
    ERRORS,
    P50,
    P99,
    Column,
    Row,
    latency_of,
    median_of,
    rate,
    ratios,
    rounds_note,
    table,
    warnings,
)
from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.load import Load
from shardmw.bench.names import FlatNames
from shardmw.bench.options import (
    COUNT,
    COUNTS,
    DURATION,
    NATURAL,
    PAGES,
    SIZE,
    WORKERS,
)
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import BARS, REFERENCE, Axis, Plot, Series
from shardmw.bench.runs import Run, runs_of
from shardmw.bench.scenarios.parameters import (
    LoadParameters,
    PacedParameters,
)
from shardmw.bench.scenarios.transfers import WRITE, kinds_of
from shardmw.bench.site import Site
from shardmw.bench.sources import Listings, Uploads
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.tables import Table, number
from shardmw.bench.turns import phase_of, rotated
from shardmw.bench.words import head, objects_text

NAME = 'listing-fairness'
SUMMARY = 'Writers in the proxy worker in which somebody lists.'
PUBLISHED = ''

LIST = 'list'

#: Whose container is listed meanwhile, where none is.
NOBODY = 'nobody'

_MISSING = '—'

# Writers whose rate is less of the wanted one are behind.
_ON_TIME_SHARE = 0.95

# Whoever writes and whoever lists are served by the same process.
_ONE_PROXY_WORKER = {'DEFAULT.workers': '0'}

_p99 = latency_of('p99_ms')


@dataclass(frozen=True)
class Parameters(PacedParameters, LoadParameters):
    """Of the writers, and of who lists.

    :param rate: writes/s of all clients together; 0 for all they can
    """

    seconds: float = option(10.0, DURATION, 'Of each load.')
    workers: int = option(
        4,
        WORKERS,
        'Worker processes of each storage server; 0: it serves itself. The '
        'proxy always does.',
    )
    rate: int = option(
        50,
        NATURAL,
        'Writes/s of all of them together, evenly; 0: as fast as they can.',
    )
    size: int = option(1, SIZE, 'Of the objects.', '-b', '--size')
    rows: int = option(
        1_000_000, COUNT, 'Objects in each container that is listed.'
    )
    page: tuple[int, ...] = option(
        (10_000, 100), PAGES, 'Rows of a page: its limit.'
    )
    shards: tuple[int, ...] = option(
        (4, 32, 128),
        COUNTS,
        'Shard counts of what is listed, beside the plain container.',
    )


class _Listing(NamedTuple):
    """What one client does while others write."""

    kind: Kind
    page: int


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write while nobody lists, and while each container is listed."""
    parameters = stage.parameters
    cases = [None, *_listings(parameters)]
    steps = [
        (turn, case)
        for turn in range(parameters.rounds)
        for case in rotated(cases, turn)
    ]
    ledger = Ledger(stage, keep, len(steps))
    cluster = parameters.cluster(_ONE_PROXY_WORKER)
    with stage.site(cluster) as site, Clients(1) as lister:
        with stage.screen.status('making what is listed'):
            paths = {
                kind: _path_of_filled(site, kind, parameters.rows)
                for kind in kinds_of(parameters.shards)
            }
        for turn, case in steps:
            writes = _writes(site, parameters, turn)
            if case is None:
                ledger.measure(writes, WRITE, PLAIN, turn, listed=NOBODY)
                continue
            names = FlatNames(parameters.rows)
            source = Listings(paths[case.kind], names, case.page)
            pages = site.load(source, clients=1)
            listing = lister.begin(pages)
            conditions = {'listed': case.kind.label, 'page': case.page}
            ledger.measure(writes, WRITE, PLAIN, turn, **conditions)
            outcome = stage.checked(listing.stop())
            conditions = {'rows': parameters.rows, 'page': case.page}
            ledger.note(pages, outcome, LIST, case.kind, turn, **conditions)
    return ledger.figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """The writes by what was listed meanwhile, and how fast that was."""
    runs = runs_of(figures)
    writes = _rows(runs, WRITE)
    if not writes:
        return []
    what = f'{objects_text(parameters.size)}, {parameters.clients} clients'
    return [
        table(
            f'Writes while somebody lists: {what}',
            list(writes.values()),
            [
                Column(head('listed'), _listed, is_words=True),
                Column(head('page'), _page, is_words=True),
                *(median_of('writes/s', rate), P50, P99),
                *_by(
                    lambda row: writes.get((NOBODY, None)),
                    ratios('p99 to nobody', _p99),
                ),
                *_by(
                    lambda row: writes.get((PLAIN.label, _key(row)[1])),
                    ratios('p99 to plain listed', _p99),
                ),
                ERRORS,
                *_listing_columns(_rows(runs, LIST)),
            ],
            [
                _BASES_NOTE,
                _manner_note(parameters),
                *_late_notes(parameters, runs),
                rounds_note(runs),
                *warnings(runs),
            ],
        )
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The p99 of writes by what is listed, beside that of nobody."""
    rows = _rows(runs_of(figures), WRITE)
    kinds = [
        kind.label
        for kind in kinds_of(parameters.shards)
        if any(listed == kind.label for listed, _ in rows)
    ]
    if not kinds:
        return []
    series = [
        _bars(page, [rows.get((kind, page)) for kind in kinds])
        for page in parameters.page
    ]
    if alone := rows.get((NOBODY, None)):
        level = [alone.median(_p99)] * len(kinds)
        places = range(len(kinds))
        if level[0] is not None:
            series.append(Series('nobody lists', places, level, REFERENCE))
    return [
        Plot(
            f'{NAME}-p99',
            'Writes while somebody lists: 99th percentile',
            Axis('container that is listed', names=kinds),
            Axis('p99 (ms)'),
            [each for each in series if each.x],
            'Medians of the rounds; thin lines go from the least to the '
            'greatest.',
        )
    ]


_BASES_NOTE = (
    'One client lists a container page after page while others write to '
    'another one, which is plain. *To nobody*: by what the same writes took '
    'while nobody listed. *To plain listed*: by what they took while a plain '
    'container was listed in pages of that size. *Pages/s* and the errors '
    'behind it are those of who lists.'
)


def _manner_note(parameters: Parameters) -> str:
    where = 'All of them are served by one proxy worker'
    if parameters.workers:
        where += f', and by {parameters.workers} of each storage server'
    how = (
        f'{number(parameters.rate)} writes/s are wanted, evenly spread over '
        'clients and time.'
        if parameters.rate
        else 'Each writer goes on as soon as it is answered, so what a write '
        'takes is mostly time in a queue.'
    )
    return f'{where}. {how}'


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


def _listings(parameters: Parameters) -> Iterator[_Listing]:
    for page in parameters.page:
        for kind in kinds_of(parameters.shards):
            yield _Listing(kind, page)


def _path_of_filled(site: Site, kind: Kind, rows: int) -> str:
    names = FlatNames(rows)
    container = site.make(kind, names)
    site.fill(container, kind, names)
    site.prepare(container, False, 0)
    return site.container_path(container)


def _writes(site: Site, parameters: Parameters, turn: int) -> Load:
    """A load of writes to a new container."""
    container = site.make(PLAIN)
    site.prepare(container, True, phase_of(turn, parameters.rounds))
    return site.load(
        Uploads(site.container_path(container), parameters.size),
        parameters.clients,
        seconds=parameters.seconds,
        pace_seconds=parameters.pace_seconds,
    )


def _rows(runs: Sequence[Run], work: str) -> dict[tuple[str, int | None], Row]:
    """The rounds of a work, by what is listed and in what pages."""
    found: dict[tuple[str, int | None], list[Run]] = {}
    for run in runs:
        if run.work == work:
            listed = run.conditions.get('listed', run.kind.label)
            page = run.conditions.get('page')
            found.setdefault((listed, page), []).append(run)
    return {
        key: Row(work, own[0].kind, own[0].conditions, own)
        for key, own in found.items()
    }


def _key(row: Row) -> tuple[str, int | None]:
    return row.conditions['listed'], row.conditions.get('page')


def _listed(row: Row) -> str:
    return _key(row)[0]


def _page(row: Row) -> str:
    return number(_key(row)[1])


def _by(
    base_of: Callable[[Row], Row | None], columns: Sequence[Column]
) -> list[Column]:
    """Columns of ratios, to a base of their own; none to itself."""

    def with_base(row: Row) -> Row:
        base = base_of(row)
        return row if base in (None, row) else replace(row, base=base.runs)

    return [
        Column(each.head, lambda row, cell=each.cell: cell(with_base(row)))
        for each in columns
    ]


def _listing_columns(
    listings: Mapping[tuple[str, int | None], Row],
) -> list[Column]:
    pages = median_of('pages/s', lambda run: run.operations_rate)

    def of_listing(column: Column) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            own = listings.get(_key(row))
            return column.cell(own) if own else _MISSING

        return cell

    return [
        Column(pages.head, of_listing(pages)),
        Column('its errors', of_listing(ERRORS)),
    ]


def _bars(page: int, rows: Sequence[Row | None]) -> Series:
    """The p99 while each of some containers is listed in such pages."""
    known = {
        place: [each for each in map(_p99, row.runs) if each is not None]
        for place, row in enumerate(rows)
        if row is not None
    }
    found = {place: values for place, values in known.items() if values}
    return Series(
        f'{number(page)} rows a page',
        list(found),
        [statistics.median(values) for values in found.values()],
        BARS,
        [min(values) for values in found.values()],
        [max(values) for values in found.values()],
    )
