# SPDX-License-Identifier: Apache-2.0
"""``listing-cost``: what a page of a listing asks for, and what it costs."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import sharded
from shardmw.bench.load.sources import Listings
from shardmw.bench.load.stage import Stage, rotated
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.options import POSITIVE
from shardmw.bench.parameters import option
from shardmw.bench.planning import COSTS, MICROSECONDS, Costs, page_work
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.results.comparing import Row
from shardmw.bench.results.figures import least_squares
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.scenarios import base, rounds
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, number
from shardmw.bench.targets import usage
from shardmw.bench.targets.shares import asked_of_all, names_by_shard

#: Rows asked by row returned, at most, of pages of 1,000 rows and more.
GOAL = 1.3

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
class ListingCost(base.ClusterScenario):
    """Rows, requests and processor time that a page of a listing takes."""

    name = 'listing-cost'

    rows: int = base.shared('rows', 1_000_000)
    page: tuple[int, ...] = base.shared('page', (10_000, 1_000, 100))
    shards: tuple[int, ...] = base.shared('shards', (4, 32, 128))
    pages: int = option(
        10, POSITIVE, 'Pages of each size that are listed in a round.'
    )
    rounds: int = base.shared('rounds', 6)

    @property
    def expected_seconds(self) -> float:
        """Return the sum of filling, of planning, and of the pages' model."""
        rows = self.rows * len(self.kinds) / base.ROWS_PER_SECOND
        works = [
            page_work(page, kind.shards)
            for kind in self.kinds
            for page in self.page
        ]
        pages = self.pages * sum(w.proxy_us + w.container_us for w in works)
        loads = self.rounds * (len(works) + pages / MICROSECONDS)
        return base.CLUSTER_SECONDS + 3 * rows + loads

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        """Ask the plan for all pages, and servers for some of them."""
        names = FlatNames(self.rows)
        plans: list[Mapping] = []
        for shards in self.shards:
            with stage.screen.status(f'N = {shards}: listing by the plan'):
                plans += _plans(names, shards, self.page)
        keep({'plans': plans, 'rows': []})
        return self.collect(stage, keep, plans=plans)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        """Measure pages of each container in turns."""
        names = FlatNames(self.rows)
        with stage.site(self.cluster()) as site:
            containers = {
                kind: base.filled(stage, site, kind, names)
                for kind in self.kinds
            }
            steps = itertools.product(range(self.rounds), self.page)
            for turn, page in steps:
                for kind in rotated(self.kinds, turn):
                    container = containers[kind]
                    # proxies look up layouts once a minute, which is not the
                    # cost of a page
                    site.prepare(container, False, 0.0)
                    path = site.container_path(container)
                    pages = Listings(path, names, page)
                    every = max(1, pages.pages // self.pages)
                    some = replace(pages, first=turn, stride=every)
                    words = f'{kind.label}, rows a page {number(page)}'
                    yield {
                        'kind': kind.as_json(),
                        'page': page,
                        'turn': turn,
                        **self._list(stage, site, some, f'list, {words}'),
                    }

    def _list(
        self, stage: Stage, site: Site, pages: Listings, label: str
    ) -> dict[str, float]:
        """List pages; return the servers' processor time of each page."""
        servers = [
            usage.processes_of(site.cluster, role)
            for role in (usage.PROXY, usage.CONTAINER)
        ]
        before = [*map(usage.processor_seconds, servers)]
        load = site.load(pages, clients=1, count=self.pages)
        errors = summarize(stage.run(load, label)).errors
        after = [*map(usage.processor_seconds, servers)]
        if errors:
            raise BenchError(
                f'{label}: pages could not be listed '
                f'({errors_text(errors)}): see the logs of the cluster'
            )
        took = {
            name: MICROSECONDS * (end - begin) / self.pages
            for name, begin, end in zip(_SERVERS, before, after, strict=True)
        }
        proxy, container = (figure(us / _PER_MS) for us in took.values())
        stage.screen.line(
            f'{label}: {proxy} ms of the proxy, {container} ms of the '
            'container server a page'
        )
        return took

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return plans, processor time, and the costs of the model."""
        rows = rounds.compared(figures['rows'], 'page')
        costs = fitted_costs(rows)
        return {
            'plans': _by_page(figures['plans']),
            'goal': GOAL,
            'cases': rows
            and {name: _cases(rows, name, costs) for name in _SERVERS},
            'fitted': _FITTED,
            'costs': costs,
            'model': COSTS._asdict(),
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        """Return plots of rows asked and of processor time by container."""
        plans = _by_page(figures['plans'])
        shards = sorted({each['kind']['parts'] for each in plans})
        series = [
            Series(
                f'{number(page)} rows a page',
                [each['kind']['parts'] for each in own],
                [each['rows_asked'] / each['rows'] for each in own],
            )
            for page, own in rounds.grouped(
                plans, lambda each: each['page']
            ).items()
        ]
        if shards:
            series.append(rounds.level('goal', shards[-1], GOAL, shards[0]))
        found = rounds.plot_if_any(
            'rows-asked',
            'Rows asked of the shards by row returned',
            series,
            x=Axis('shards', log=True, ticks=shards),
            y=Axis('rows asked by row returned'),
            note="By the filter's own plan, over a whole listing.",
        )
        rows = rounds.compared(figures['rows'], 'page')
        for name, what in _SERVERS.items():
            found += rounds.plot_by_kind(
                what.partition(' ')[0],
                f'Processor time of a page: {what}',
                rows,
                lambda row: f'{number(row.conditions["page"])} rows a page',
                rounds.figure_of(name, _PER_MS),
                Axis('processor time (ms)', log=True),
            )
        return found


def fitted_costs(rows: Sequence[Row]) -> dict[str, float]:
    """Return what of a page belongs to requests, shards and rows. Pure.

    The least squares are those of the differences from the least of the
    rounds, as a share of it. Requests and rows are those that the model
    counts.

    :returns: by the names of :class:`shardmw.bench.planning.Costs`; without
              those that the pages do not tell apart
    """
    plain, merged, servers = [], [], []
    for row in rows:
        proxy_us, container_us = (
            min(map(rounds.figure_of(name), row.runs)) for name in _SERVERS
        )
        work = page_work(row.conditions['page'], row.kind.shards)
        servers.append((container_us, (work.requests, work.rows)))
        if row.kind.is_plain:
            plain.append((proxy_us, (1, work.rows)))
        else:
            merged.append((proxy_us, (1, work.requests, work.rows)))
    return {
        **_fit(_FITTED[:2], plain),
        **_fit(_FITTED[2:5], merged),
        **_fit(_FITTED[5:], servers),
    }


def _fit(
    names: Sequence[str], measured: Sequence[tuple[float, Sequence[float]]]
) -> dict[str, float]:
    """Return the costs whose sums, times the factors, fit best."""
    shares = [
        [factor / cost for factor in factors]
        for cost, factors in measured
        if cost
    ]
    found = least_squares(shares, [1.0] * len(shares))
    return dict(zip(names, found, strict=True)) if found else {}


def _plans(
    names: Names, shards: int, pages: Sequence[int]
) -> list[dict[str, object]]:
    """Return what the plan asks for, to list all names."""
    placed = names_by_shard(names, shards)
    return [
        {
            'kind': sharded(shards).as_json(),
            'page': page,
            **asked_of_all(placed, page),
        }
        for page in pages
    ]


def _by_page(plans: Sequence[Mapping]) -> list[Mapping]:
    """Return plans with those of the largest pages first."""
    return sorted(plans, key=lambda each: -each['page'])


def _cases(
    rows: Sequence[Row], name: str, costs: Mapping[str, float]
) -> list[Mapping[str, object]]:
    """Return what pages take: measured, compared, and as fitted."""
    took = rounds.figure_of(name, _PER_MS)
    is_fitted = len(costs) == len(_FITTED)
    found = []
    for row in rows:
        case = {'row': row, 'ms': rounds.median(row, took), 'fitted': None}
        if is_fitted:
            page, shards = row.conditions['page'], row.kind.shards
            work = page_work(page, shards, Costs(**costs))
            case['fitted'] = getattr(work, name) / _PER_MS
        found.append({**case, 'ratio': row.ratio(took)})
    return found
