# SPDX-License-Identifier: Apache-2.0
"""``listing-cost``: what a page of a listing asks for, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from shardmw.bench.asking import ask
from shardmw.bench.comparing import interval_text, ratio_text
from shardmw.bench.databases import parts
from shardmw.bench.errors import BenchError
from shardmw.bench.figures import median_interval, ratio_interval
from shardmw.bench.fits import least_squares
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.options import COUNT, COUNTS, PAGES, POSITIVE
from shardmw.bench.parameters import option
from shardmw.bench.planning import Costs, Work, plain_page, sharded_page
from shardmw.bench.plots.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw.bench.scenarios.parameters import ClusterParameters
from shardmw.bench.serverlog import container_gets, rows_in
from shardmw.bench.shares import asked_of_all, names_by_shard
from shardmw.bench.site import Site
from shardmw.bench.sources import Listings, SomePages
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.turns import rotated
from shardmw.bench.usage import (
    CONTAINER,
    PROXY,
    processes_of,
    processor_seconds,
)
from shardmw.saio import logs

NAME = 'listing-cost'
SUMMARY = 'Rows, requests and processor time that a page of a listing takes.'
PUBLISHED = ''

#: Rows asked by row returned, at most, of pages of 1,000 rows and more.
GOAL = 1.3

_MICROSECONDS = 1_000_000
_PER_MS = 1000
_CONTAINER_SERVER = 'container-1'

# By the figure that has a server's processor time.
_SERVERS = {'proxy_us': 'proxy', 'container_us': 'container server'}


@dataclass(frozen=True)
class Parameters(ClusterParameters):
    """What it is made with."""

    rows: int = option(1_000_000, COUNT, 'Names in each container.')
    page: tuple[int, ...] = option(
        (10_000, 1_000, 100), PAGES, 'Rows a page, at most.'
    )
    shards: tuple[int, ...] = option(
        (4, 32, 128), COUNTS, 'Shard counts, beside the plain container.'
    )
    pages: int = option(
        10, POSITIVE, 'Pages of each size that are listed in a round.'
    )
    rounds: int = option(
        6, POSITIVE, 'How often, all containers in turns; 6 give intervals.'
    )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The containers that are compared."""
        return PLAIN, *map(sharded, self.shards)


class PageCost(NamedTuple):
    """What a page takes, in microseconds: the least of the rounds."""

    kind: Kind
    page: int
    proxy_us: float
    container_us: float


class _Listed(NamedTuple):
    """A container that is there to be listed.

    :param parts: account and container of its root and shards
    :param row_bytes: that a row takes of a container server's answer
    """

    kind: Kind
    container: str
    parts: frozenset[tuple[str, str]]
    row_bytes: int


def measure(stage: Stage, keep) -> dict[str, object]:
    """Ask the plan for all pages, and servers for some of them."""
    parameters = stage.parameters
    names = FlatNames(parameters.rows)
    figures: dict[str, object] = {'plans': [], 'rows': []}
    for shards in parameters.shards:
        with stage.screen.status(f'N = {shards}: listing by the plan'):
            figures['plans'] += _plans(names, shards, parameters.page)
        keep(figures)
    with stage.site(parameters.cluster()) as site:
        places = [
            _filled(stage, site, kind, names) for kind in parameters.kinds
        ]
        for turn in range(parameters.rounds):
            for page in parameters.page:
                for place in rotated(places, turn):
                    row = _list(stage, site, names, place, page, turn)
                    figures['rows'].append(row)
                    keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """What was asked for, what it cost, and what a model is fed with."""
    rows = figures['rows']
    found = [_plan_table(parameters, figures['plans'])]
    if rows:
        costs = fitted_costs(page_costs(rows))
        found += [
            _asked_table(parameters, rows),
            *(
                _processor_table(parameters, rows, costs, name)
                for name in _SERVERS
            ),
            _costs_table(costs),
        ]
    return found


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Rows asked by row returned, and processor time, by shard counts."""
    return [
        *_plan_plots(figures['plans']),
        *_processor_plots(parameters, figures['rows']),
    ]


def page_costs(rows: Sequence[Mapping]) -> list[PageCost]:
    """What pages take, from what was measured of them. Pure."""
    found: dict[tuple[Kind, int], list[Mapping]] = {}
    for row in rows:
        key = Kind.from_json(row['kind']), row['page']
        found.setdefault(key, []).append(row)
    return [
        PageCost(
            *key,
            min(each['proxy_us'] for each in own),
            min(each['container_us'] for each in own),
        )
        for key, own in found.items()
    ]


def fitted_costs(pages: Sequence[PageCost]) -> dict[str, float]:
    """What of a page belongs to requests, to shards and to rows. Pure.

    By least squares of what each differs from what was measured, as a share
    of it. Requests and rows are those that the model counts.

    :returns: by the names of :class:`shardmw.bench.planning.Costs`; without
              those that the pages don't tell apart
    """
    plain = [each for each in pages if each.kind.is_plain]
    merged = [each for each in pages if not each.kind.is_plain]
    counted = [(each, _work(each.kind, each.page, Costs())) for each in pages]
    return {
        **_fit(
            ('container_page_us', 'container_row_us'),
            [
                (each.container_us, (work.requests, work.rows))
                for each, work in counted
            ],
        ),
        **_fit(
            ('proxy_page_us', 'proxy_row_us'),
            [(each.proxy_us, (1, each.page)) for each in plain],
        ),
        **_fit(
            ('proxy_merged_page_us', 'proxy_shard_us', 'proxy_merged_row_us'),
            [
                (each.proxy_us, (1, work.requests, work.rows))
                for each, work in counted
                if each in merged
            ],
        ),
    }


def _fit(
    names: Sequence[str], measured: Sequence[tuple[float, Sequence[float]]]
) -> dict[str, float]:
    found = least_squares(
        [
            [factor / cost for factor in factors]
            for cost, factors in measured
            if cost
        ],
        [1.0 for cost, _ in measured if cost],
    )
    return dict(zip(names, found, strict=True)) if found else {}


def _work(kind: Kind, page: int, costs: Costs) -> Work:
    if kind.is_plain:
        return plain_page(page, costs)
    return sharded_page(page, kind.parts, costs)


def _plans(
    names: Names, shards: int, pages: Sequence[int]
) -> list[dict[str, object]]:
    """What the plan asks for, to list all names."""
    placed = names_by_shard(names, shards)
    return [
        {
            'kind': sharded(shards).as_json(),
            'page': page,
            **asked_of_all(placed, page)._asdict(),
        }
        for page in pages
    ]


def _filled(stage: Stage, site: Site, kind: Kind, names: Names) -> _Listed:
    with stage.screen.status(f'{kind.label}: putting rows there'):
        container = site.make(kind)
        site.fill(container, kind, names)
    found = parts(site.cluster, site.account.name, container, kind)
    return _Listed(
        kind,
        container,
        frozenset(part[:2] for part in found),
        _row_bytes(site, container),
    )


def _row_bytes(site: Site, container: str) -> int:
    """Return the bytes of a container server's answer with one row."""
    query = urlencode({'format': 'json', 'limit': 1})
    url = f'{site.urls[0]}{site.container_path(container)}?{query}'
    answer = ask('GET', url, {'X-Auth-Token': site.token})
    if not answer.is_success:
        raise BenchError(f'GET {url} was answered {answer.status}')
    # a row goes to the client as the container server wrote it
    return len(answer.body)


def _list(
    stage: Stage,
    site: Site,
    names: Names,
    place: _Listed,
    page: int,
    turn: int,
) -> dict[str, object]:
    """List some pages, and see what they took."""
    parameters = stage.parameters
    path = site.container_path(place.container)
    listings = Listings(path, names, page)
    source = SomePages(
        listings,
        first=turn,
        stride=max(1, listings.pages // parameters.pages),
    )
    # what proxies look up once a minute is no page's
    site.prepare(place.container, writes=False, phase=0.0)
    log = site.cluster.log_path(_CONTAINER_SERVER)
    begin = logs.size(log)
    servers = {
        role: processes_of(site.cluster, role) for role in (PROXY, CONTAINER)
    }
    before = {role: processor_seconds(servers[role]) for role in servers}
    load = site.load(source, clients=1, count=parameters.pages)
    label = f'list, {place.kind.label}, rows a page {number(page)}'
    outcome = stage.run(load, label)
    took = {
        role: processor_seconds(servers[role]) - before[role]
        for role in servers
    }
    pages = [each for each in outcome.samples if each.is_admitted]
    if len(pages) != parameters.pages:
        raise BenchError(
            f'{place.container}: {parameters.pages - len(pages)} pages could '
            'not be listed: look at the logs of the cluster'
        )
    answers = [
        each
        for each in container_gets(logs.lines(log, begin))
        if (each.account, each.container) in place.parts
    ]
    row = {
        'kind': place.kind.as_json(),
        'page': page,
        'turn': turn,
        'pages': len(pages),
        'rows': sum(source.rows_of(each.number) for each in pages),
        'requests': len(answers),
        'rows_given': sum(
            rows_in(each.body_bytes, place.row_bytes) for each in answers
        ),
        'proxy_us': _MICROSECONDS * took[PROXY] / len(pages),
        'container_us': _MICROSECONDS * took[CONTAINER] / len(pages),
        'seconds': sum(each.end - each.start for each in pages),
    }
    stage.screen.line(
        f'{label}: {figure(row["proxy_us"] / _PER_MS)} ms of the proxy, '
        f'{figure(row["container_us"] / _PER_MS)} ms of the container '
        f'server a page, {figure(row["rows_given"] / row["rows"])} rows by row'
    )
    return row


def _plan_table(parameters: Parameters, plans: Sequence[Mapping]) -> Table:
    return Table(
        'Rows asked of the shards, over a whole listing',
        (
            *('rows a page', 'container', 'pages', 'requests a page'),
            *('most', 'asked again a page', 'rows asked by row returned'),
        ),
        [
            (
                number(each['page']),
                Kind.from_json(each['kind']).label,
                number(each['pages']),
                number(each['requests'] / each['pages'], 1),
                number(each['most_requests']),
                number(each['refills'] / each['pages'], 2),
                number(each['rows_asked'] / each['rows'], 3),
            )
            for each in _by_page(plans)
        ],
        (
            f"By the filter's own plan of a page, of {number(parameters.rows)}"
            ' names that lie where it puts them: the same that servers are '
            'asked for, without the servers. *Rows asked*: the sum of the '
            'limits that shards are asked with. The root is asked for the '
            'whole page beside them, and has no rows; it is among the '
            'requests. *Asked again*: requests to shards whose rows ran out '
            "before the page's end.",
            f'The goal is {GOAL} or less, of pages of 1,000 rows and more.',
        ),
        names=2,
    )


def _asked_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    cells = []
    for page, kind, own in _groups(parameters, rows):
        pages = sum(each['pages'] for each in own)
        cells.append(
            (
                number(page),
                kind.label,
                number(pages),
                number(sum(each['requests'] for each in own) / pages, 1),
                number(
                    sum(each['rows_given'] for each in own)
                    / sum(each['rows'] for each in own),
                    3,
                ),
            )
        )
    return Table(
        'What container servers answered',
        (
            *('rows a page', 'container', 'pages', 'requests a page'),
            'rows given by row returned',
        ),
        cells,
        (
            "By the container server's own log: its GETs of the container's "
            'root and shards, and the bytes of their bodies by those of a '
            'row. *Pages*: a sample, spread over the listing. Shards give as '
            'many rows as they are asked for, unless they have no more.',
        ),
        names=2,
    )


def _processor_table(
    parameters: Parameters,
    rows: Sequence[Mapping],
    costs: Mapping[str, float],
    name: str,
) -> Table:
    cells = []
    for page, kind, own in _groups(parameters, rows):
        base = _of(rows, PLAIN, page)
        fit = None
        if len(costs) == len(_fitted_names()):
            fit = _work(kind, page, Costs(**costs))
        cells.append(
            (number(page), kind.label, *_cost_cells(own, base, name, fit))
        )
    return Table(
        f'Processor time of a page: {_SERVERS[name]}',
        (
            *('rows a page', 'container', 'ms', '95 % interval'),
            *('to plain', 'interval of it', 'as fitted ms'),
        ),
        cells,
        (
            "By the scheduler's count of each process, over all pages of a "
            f'round ({number(parameters.pages)}), by one client. Medians of '
            f'the rounds ({number(parameters.rounds)}), in which the '
            'containers take turns; ratios are those of one round. *As '
            'fitted*: by the costs below. Where other work shares the '
            'processor, it makes these longer.',
        ),
        names=2,
    )


def _cost_cells(
    own: Sequence[Mapping],
    base: Sequence[Mapping],
    name: str,
    fit: Work | None,
) -> tuple[str, ...]:
    cost = median_interval(each[name] / _PER_MS for each in own)
    by_turn = {each['turn']: each[name] for each in base}
    ratios = None
    if own != base:
        ratios = ratio_interval(
            (each[name], by_turn.get(each['turn'])) for each in own
        )
    return (
        figure(cost.median),
        f'{figure(cost.low)} to {figure(cost.high)}',
        ratio_text(ratios),
        interval_text(ratios),
        figure(getattr(fit, name) / _PER_MS if fit else None),
    )


def _costs_table(costs: Mapping[str, float]) -> Table:
    there = Costs()
    return Table(
        'What a model is fed with',
        ('cost', 'measured µs', '`shardmw-bench plan` has µs'),
        [
            (f'`{name}`', figure(costs.get(name)), figure(each))
            for name in _fitted_names()
            for each in (getattr(there, name),)
        ],
        (
            'Told apart by least squares, of the least of the rounds, as '
            '`shardmw/bench/planning.py` says what each is; with requests '
            'and rows as its model counts them.',
        ),
    )


def _fitted_names() -> tuple[str, ...]:
    return (
        *('proxy_page_us', 'proxy_row_us', 'proxy_merged_page_us'),
        *('proxy_shard_us', 'proxy_merged_row_us'),
        *('container_page_us', 'container_row_us'),
    )


def _plan_plots(plans: Sequence[Mapping]) -> list[Plot]:
    if not plans:
        return []
    series = []
    for page in dict.fromkeys(each['page'] for each in _by_page(plans)):
        own = [each for each in plans if each['page'] == page]
        series.append(
            Series(
                f'{number(page)} rows a page',
                [each['kind']['parts'] for each in own],
                [each['rows_asked'] / each['rows'] for each in own],
                LINE,
            )
        )
    shards = sorted({each['kind']['parts'] for each in plans})
    ends = shards[0], shards[-1]
    series.append(Series('goal', ends, (GOAL, GOAL), REFERENCE))
    return [
        Plot(
            f'{NAME}-rows-asked',
            'Rows asked of the shards by row returned',
            Axis('shards', log=True, ticks=shards),
            Axis('rows asked by row returned'),
            series,
            "By the filter's own plan, over a whole listing.",
        )
    ]


def _processor_plots(
    parameters: Parameters, rows: Sequence[Mapping]
) -> list[Plot]:
    if not rows:
        return []
    kinds = parameters.kinds
    found = []
    for name, what in _SERVERS.items():
        series = []
        for page in parameters.page:
            points = [
                (i, median_interval(each[name] / _PER_MS for each in own))
                for i, kind in enumerate(kinds)
                if (own := _of(rows, kind, page))
            ]
            if points:
                series.append(
                    Series(
                        f'{number(page)} rows a page',
                        [i for i, _ in points],
                        [each.median for _, each in points],
                        LINE,
                        [each.low for _, each in points],
                        [each.high for _, each in points],
                    )
                )
        found.append(
            Plot(
                f'{NAME}-{what.partition(" ")[0]}',
                f'Processor time of a page: {what}',
                Axis('container', names=[kind.label for kind in kinds]),
                Axis('processor time (ms)', log=True),
                series,
                'Medians of the rounds, with their intervals.',
            )
        )
    return found


def _groups(
    parameters: Parameters, rows: Sequence[Mapping]
) -> list[tuple[int, Kind, list[Mapping]]]:
    return [
        (page, kind, own)
        for page in parameters.page
        for kind in parameters.kinds
        if (own := _of(rows, kind, page))
    ]


def _of(rows: Sequence[Mapping], kind: Kind, page: int) -> list[Mapping]:
    return [
        each
        for each in rows
        if each['page'] == page and Kind.from_json(each['kind']) == kind
    ]


def _by_page(plans: Sequence[Mapping]) -> list[Mapping]:
    """Those of the largest pages first, and in their order otherwise."""
    return sorted(plans, key=lambda each: -each['page'])
