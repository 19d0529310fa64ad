# SPDX-License-Identifier: Apache-2.0
"""``listing-cost``: what a page of a listing asks for, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.load.sources import Listings
from shardmw.bench.load.stage import Stage
from shardmw.bench.load.turns import rotated
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.options import POSITIVE
from shardmw.bench.parameters import option
from shardmw.bench.planning import Costs, Work, plain_page, sharded_page
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.results.comparing import interval_text, ratio_text
from shardmw.bench.results.figures import median_interval
from shardmw.bench.results.fits import least_squares
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.scenarios import Figures, Keep, Scenario, grouping
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.targets.shares import asked_of_all, names_by_shard
from shardmw.bench.targets.usage import (
    CONTAINER,
    PROXY,
    processes_of,
    processor_seconds,
)

NAME = 'listing-cost'

#: Rows asked by row returned, at most, of pages of 1,000 rows and more.
GOAL = 1.3

_MICROSECONDS = 1_000_000
_PER_MS = 1000

# The costs that are fitted.
_FITTED = (
    *('proxy_page_us', 'proxy_row_us', 'proxy_merged_page_us'),
    *('proxy_shard_us', 'proxy_merged_row_us'),
    *('container_page_us', 'container_row_us'),
)

# By the name of the figure.
_SERVERS = {'proxy_us': 'proxy', 'container_us': 'container server'}


@dataclass(frozen=True)
class Parameters(shared.ClusterParameters):
    """The options of the scenario."""

    rows: int = shared.rows_option(1_000_000)
    page: tuple[int, ...] = shared.pages_option(10_000, 1_000, 100)
    shards: tuple[int, ...] = shared.shards_option(4, 32, 128)
    pages: int = option(
        10, POSITIVE, 'Pages of each size that are listed in a round.'
    )
    rounds: int = shared.rounds_option(6)


class PageCost(NamedTuple):
    """What a page takes, in microseconds: the least of the rounds."""

    kind: Kind
    page: int
    proxy_us: float
    container_us: float


def measure(stage: Stage, keep: Keep) -> Figures:
    """Ask the plan for all pages, and servers for some of them."""
    parameters = stage.parameters
    names = FlatNames(parameters.rows)
    figures: dict[str, object] = {'plans': [], 'rows': []}
    for shards in parameters.shards:
        with stage.screen.status(f'N = {shards}: listing by the plan'):
            figures['plans'] += _plans(names, shards, parameters.page)
        keep(figures)
    with stage.site(parameters.cluster()) as site:
        containers = {}
        for kind in parameters.kinds:
            with stage.screen.status(f'{kind.label}: writing rows'):
                containers[kind] = site.make(kind)
                site.fill(containers[kind], kind, names)
        for turn in range(parameters.rounds):
            for page in parameters.page:
                for kind in rotated(parameters.kinds, turn):
                    place = kind, containers[kind]
                    row = _list(stage, site, names, *place, page, turn)
                    figures['rows'].append(row)
                    keep(figures)
    return figures


def page_costs(rows: Sequence[Mapping]) -> list[PageCost]:
    """Return the costs of pages by the least of the rounds. Pure."""
    return [
        PageCost(*key, *(min(each[name] for each in own) for name in _SERVERS))
        for key, own in grouping.grouped(rows, _case_of).items()
    ]


def _case_of(row: Mapping) -> tuple[Kind, int]:
    return grouping.kind_of(row), row['page']


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


def _list(
    stage: Stage,
    site: Site,
    names: Names,
    kind: Kind,
    container: str,
    page: int,
    turn: int,
) -> dict[str, object]:
    """List some pages; return the processor time that they took."""
    wanted = stage.parameters.pages
    listings = Listings(site.container_path(container), names, page)
    # proxies look up layouts once a minute; that is not the cost of a page
    site.prepare(container, writes=False, phase=0.0)
    servers = {
        role: processes_of(site.cluster, role) for role in (PROXY, CONTAINER)
    }
    before = {role: processor_seconds(servers[role]) for role in servers}
    load = site.load(
        replace(listings, first=turn, stride=max(1, listings.pages // wanted)),
        clients=1,
        count=wanted,
    )
    label = f'list, {kind.label}, rows a page {number(page)}'
    summary = summarize(stage.run(load, label))
    took = {
        role: _MICROSECONDS
        * (processor_seconds(servers[role]) - before[role])
        / wanted
        for role in servers
    }
    if summary.errors:
        raise BenchError(
            f'{container}: pages could not be listed '
            f'({errors_text(summary.errors)}): see the logs of the cluster'
        )
    stage.screen.line(
        f'{label}: {figure(took[PROXY] / _PER_MS)} ms of the proxy, '
        f'{figure(took[CONTAINER] / _PER_MS)} ms of the container server a '
        'page'
    )
    return {
        'kind': kind.as_json(),
        'page': page,
        'turn': turn,
        'proxy_us': took[PROXY],
        'container_us': took[CONTAINER],
    }


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return requests, processor time, and the costs of the model."""
    rows = figures['rows']
    found = [_plan_table(parameters, _by_page(figures['plans']))]
    if not rows:
        return found
    costs = fitted_costs(page_costs(rows))
    groups = grouping.grouped(rows, _case_of)
    cases = {
        (kind, page): groups[kind, page]
        for page in parameters.page
        for kind in parameters.kinds
        if (kind, page) in groups
    }
    return [
        *found,
        *(
            _processor_table(parameters, cases, costs, name)
            for name in _SERVERS
        ),
        _costs_table(costs),
    ]


def _by_page(plans: Sequence[Mapping]) -> list[Mapping]:
    """Return plans with those of the largest pages first."""
    return sorted(plans, key=lambda each: -each['page'])


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
                grouping.kind_of(each).label,
                number(each['pages']),
                number(each['requests'] / each['pages'], 1),
                number(each['most_requests']),
                number(each['refills'] / each['pages'], 2),
                number(each['rows_asked'] / each['rows'], 3),
            )
            for each in plans
        ],
        (
            "Computed by the filter's own plan of a page, without servers, "
            f'for {number(parameters.rows)} names in the shards where the '
            'filter puts them. *Rows asked*: the sum of the limits of the '
            'requests to shards. The root is asked for the whole page, too, '
            'and has no rows; it is among the requests. *Asked again*: '
            "requests to shards whose rows ran out before the page's end.",
            f'The goal is {GOAL} or less, of pages of 1,000 rows and more.',
        ),
        names=2,
    )


def _processor_table(
    parameters: Parameters,
    cases: Mapping[tuple[Kind, int], list[Mapping]],
    costs: Mapping[str, float],
    name: str,
) -> Table:
    rows = []
    for (kind, page), own in cases.items():
        cost = median_interval(each[name] / _PER_MS for each in own)
        ratios = grouping.ratio_to(own, cases.get((PLAIN, page), []), name)
        fitted = None
        if len(costs) == len(_FITTED):
            work = _work(kind, page, Costs(**costs))
            fitted = getattr(work, name) / _PER_MS
        rows.append(
            (
                *(number(page), kind.label, figure(cost.median)),
                f'{figure(cost.low)} to {figure(cost.high)}',
                *(ratio_text(ratios), interval_text(ratios), figure(fitted)),
            )
        )
    return Table(
        f'Processor time of a page: {_SERVERS[name]}',
        (
            *('rows a page', 'container', 'ms', '95 % interval'),
            *('to plain', 'interval of it', 'as fitted ms'),
        ),
        rows,
        (
            "By the scheduler's count of each process, over all pages of a "
            f'round ({number(parameters.pages)}), by one client. Medians of '
            f'the rounds ({number(parameters.rounds)}), in which the '
            'containers take turns; ratios are those of one round. *As '
            'fitted*: by the costs below. Other work on the same processor '
            'makes these times longer.',
        ),
        names=2,
    )


def _costs_table(costs: Mapping[str, float]) -> Table:
    there = Costs()
    return Table(
        'Costs for the model of `shardmw-bench plan`',
        ('cost', 'measured µs', 'of the model µs'),
        [
            (
                f'`{name}`',
                figure(costs.get(name)),
                figure(getattr(there, name)),
            )
            for name in _FITTED
        ],
        (
            'Fitted by least squares to the least of the rounds, with the '
            'requests and rows that the model counts. '
            '`shardmw/bench/planning.py` explains each cost.',
        ),
    )


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return plots of rows asked and of processor time by container."""
    plans = _by_page(figures['plans'])
    series = [
        Series(
            f'{number(page)} rows a page',
            [each['kind']['parts'] for each in own],
            [each['rows_asked'] / each['rows'] for each in own],
        )
        for page, own in grouping.grouped(
            plans, lambda each: each['page']
        ).items()
    ]
    shards = sorted({each['kind']['parts'] for each in plans})
    if shards:
        series.append(grouping.level('goal', shards, GOAL))
    found = grouping.plot_if_any(
        f'{NAME}-rows-asked',
        'Rows asked of the shards by row returned',
        series,
        x=Axis('shards', log=True, ticks=shards),
        y=Axis('rows asked by row returned'),
        note="By the filter's own plan, over a whole listing.",
    )
    kinds = parameters.kinds
    groups = grouping.grouped(figures['rows'], _case_of)
    for name, what in _SERVERS.items():
        found += grouping.plot_if_any(
            f'{NAME}-{what.partition(" ")[0]}',
            f'Processor time of a page: {what}',
            [
                grouping.median_series(
                    f'{number(page)} rows a page',
                    {
                        i: [
                            each[name] / _PER_MS
                            for each in groups.get((kind, page), ())
                        ]
                        for i, kind in enumerate(kinds)
                    },
                )
                for page in parameters.page
            ],
            x=Axis('container', names=[kind.label for kind in kinds]),
            y=Axis('processor time (ms)', log=True),
            note=grouping.MEDIANS_NOTE,
        )
    return found


def _seconds(parameters: Parameters) -> float:
    """Return the sum of filling, of planning, and of the pages' model."""
    rows = parameters.rows * len(parameters.kinds) / shared.ROWS_PER_SECOND
    pages = parameters.pages * sum(
        work.proxy_us + work.container_us
        for kind in parameters.kinds
        for page in parameters.page
        for work in (_work(kind, page, Costs()),)
    )
    loads = parameters.rounds * (
        len(parameters.kinds) * len(parameters.page) + pages / _MICROSECONDS
    )
    return shared.CLUSTER_SECONDS + 3 * rows + loads


SUMMARY = 'Rows, requests and processor time that a page of a listing takes.'

SCENARIOS = [
    Scenario(NAME, SUMMARY, Parameters, measure, tables, plots, _seconds)
]
