# SPDX-License-Identifier: Apache-2.0
"""Scenarios of listings: their cost, memory, and the writes beside them.

In ``listing-fairness``, the kind of a run of writes is the kind of the
container that is listed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, Kind, sharded
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.sources import Listings, Uploads
from shardmw_bench.load.stage import Ledger, Stage, phase_of, rotated
from shardmw_bench.names import FlatNames
from shardmw_bench.options import (
    COUNT,
    DURATION,
    NATURAL,
    PAGE,
    POSITIVE,
    SHARDS,
    option,
)
from shardmw_bench.planning import COSTS, MICROSECONDS, Costs, page_work
from shardmw_bench.plots.plot import BARS, REFERENCE, Axis, Plot, Series
from shardmw_bench.results import comparing as c
from shardmw_bench.results.figures import least_squares, slope_interval
from shardmw_bench.results.runs import runs_of
from shardmw_bench.results.summary import errors_text, summarize
from shardmw_bench.scenarios import base, rounds
from shardmw_bench.site import Site
from shardmw_bench.tables import figure, number
from shardmw_bench.targets import usage
from shardmw_bench.targets.shares import asked_of_all, names_by_shard

#: The most rows requested per row returned, for pages of 1,000 rows or more.
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

# The share of all listings in which a process still allocates what it keeps.
_WARM_UP_SHARE = 0.1

_MEGABYTE = 1_000_000

WRITE = 'write meanwhile'
LIST = 'list'

#: The kind of runs in which no container is listed, as it is in results.
NOBODY = Kind('nobody lists')

# Writers with less of the wanted rate are behind.
_ON_TIME_SHARE = 0.95

_p99 = c.latency_of('p99_ms')


@dataclass(frozen=True)
class ListingCost(base.ClusterScenario):
    """Rows, requests and processor time that a page of a listing takes."""

    name = 'listing-cost'
    minutes = 7

    rows: int = base.shared('rows', 1_000_000)
    page: tuple[int, ...] = base.shared('page', (10_000, 1_000, 100))
    shards: tuple[int, ...] = base.shared('shards', (4, 32, 128))
    pages: int = option(
        10, POSITIVE, 'Pages of each size that are listed in a round.'
    )
    rounds: int = base.shared('rounds', 6)

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        names = FlatNames(self.rows)
        plans: list[Mapping] = []
        for shards in self.shards:
            with stage.screen.status(f'N = {shards}: listing by the plan'):
                placed = names_by_shard(names, shards)
                kind = sharded(shards).as_json()
                plans += [
                    {
                        'kind': kind,
                        'page': page,
                        **asked_of_all(placed, page),
                    }
                    for page in self.page
                ]
        keep({'plans': plans, 'rows': []})
        return super().measure(stage, keep, plans=plans)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        names = FlatNames(self.rows)
        with stage.site(self.cluster()) as site:
            containers = {
                kind: base.filled(stage, site, kind, names)
                for kind in self.kinds
            }
            steps = product(range(self.rounds), self.page)
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
                    words = f'{kind.label}, page size {number(page)}'
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
        rows = rounds.compared(figures['rows'], 'page')
        return {
            'plans': _by_page(figures['plans']),
            'goal': GOAL,
            'cases': rows,
            'servers': _SERVERS,
            'took': {name: _milliseconds(name) for name in _SERVERS},
            'median': rounds.median,
            'fitted': _FITTED,
            'costs': fitted_costs(rows),
            'model': COSTS._asdict(),
            'work': lambda row, costs: page_work(
                row.conditions['page'], row.kind.shards, Costs(**costs)
            )._asdict(),
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        plans = _by_page(figures['plans'])
        shards = sorted({each['kind']['parts'] for each in plans})
        by_page = rounds.grouped(plans, lambda each: each['page'])
        series = [
            Series(
                f'{number(page)} rows per page',
                [each['kind']['parts'] for each in own],
                [each['rows_asked'] / each['rows'] for each in own],
            )
            for page, own in by_page.items()
        ]
        ends = (shards[0], shards[-1]) if shards else ()
        series.append(Series('goal', ends, [GOAL] * len(ends), REFERENCE))
        found = rounds.plot_if_any(
            'rows-asked',
            'Rows requested from the shards per row returned',
            series,
            x=Axis('shards', log=True, ticks=shards),
            y=Axis('rows requested per row returned'),
            note="By the filter's own plan, over a whole listing.",
        )
        rows = rounds.compared(figures['rows'], 'page')
        for name, what in _SERVERS.items():
            found += rounds.plot_by_kind(
                what.partition(' ')[0],
                f'CPU time per page: {what}',
                rows,
                lambda row: f'{number(row.conditions["page"])} rows per page',
                _milliseconds(name),
                Axis('CPU time (ms)', log=True),
            )
        return found


def _milliseconds(name: str) -> c.Value:
    return rounds.figure_of(name, _PER_MS)


def fitted_costs(rows: Sequence[c.Row]) -> dict[str, float]:
    """Return the costs of pages, requests and rows that fit best. Pure.

    The fit minimizes the squares of the relative differences from the least
    of the rounds. Requests and rows are counted as in the model.

    :returns: by the names of :class:`shardmw_bench.planning.Costs`; without
              those that the pages cannot tell apart
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
    costs = {}
    for names, measured in (
        (_FITTED[:2], plain),
        (_FITTED[2:5], merged),
        (_FITTED[5:], servers),
    ):
        # the sum of the costs times these shares should be 1
        shares = [
            [factor / cost for factor in factors]
            for cost, factors in measured
            if cost
        ]
        found = least_squares(shares, [1.0] * len(shares)) or []
        costs |= dict(zip(names, found, strict=False))
    return costs


def _by_page(plans: Sequence[Mapping]) -> list[Mapping]:
    return sorted(plans, key=lambda each: -each['page'])


@dataclass(frozen=True)
class ListingMemory(base.ClusterScenario):
    """A proxy's memory, over many listings of a sharded container."""

    name = 'listing-memory'
    minutes = 6

    shards: tuple[int, ...] = option(
        (32,), SHARDS, 'Shard counts, one after the other; 0 is plain.'
    )
    listings: int = option(10_000, COUNT, 'Pages to list, in total.')
    every: int = option(
        100, POSITIVE, 'Pages between two readings of the memory.'
    )
    page: int = option(1000, PAGE, 'Page size: the limit of the listings.')
    rows: int = base.shared('rows', 100_000)
    clients: int = base.shared('clients', 2)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        for shards in self.shards:
            # a new proxy for each, which has done nothing else
            with stage.site(self.cluster()) as site:
                kind = sharded(shards) if shards else PLAIN
                pids = usage.processes_of(site.cluster, usage.PROXY)
                for done in self._listed(stage, site, kind):
                    size = usage.resident_bytes(pids)
                    stage.screen.line(
                        f'{number(done)} listings, {kind.label}: '
                        f'{figure(size / _MEGABYTE)} MB'
                    )
                    row = {'listings': done, 'bytes': size}
                    yield {'kind': kind.as_json(), **row}

    def _listed(self, stage: Stage, site: Site, kind: Kind) -> Iterator[int]:
        """Yield how much is listed, at the start and after every few pages."""
        names = FlatNames(self.rows)
        container = base.filled(stage, site, kind, names)
        source = Listings(site.container_path(container), names, self.page)
        yield 0
        for done in range(0, self.listings, self.every):
            count = min(self.every, self.listings - done)
            load = site.load(source, min(self.clients, count), count=count)
            outcome = stage.run(load, f'listings from {number(done)} on')
            failed = count - sum(each.is_admitted for each in outcome.samples)
            if failed:
                raise BenchError(
                    f'{failed} of {count} listings failed: see the logs of '
                    'the cluster'
                )
            yield done + count

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        memories = []
        for kind, own in _sizes_by_kind(figures).items():
            x = [each['listings'] for each in own]
            y = [each['bytes'] for each in own]
            points = [
                (listings / 1000, size / 1000)
                for listings, size in zip(x, y, strict=True)
                if listings >= _WARM_UP_SHARE * x[-1]
            ]
            memories.append(
                {
                    'kind': kind,
                    'listings': x[-1],
                    'bytes': [y[0], y[-len(points)], y[-1], max(y)],
                    'growth': slope_interval(points),
                }
            )
        return {'memories': memories}

    def plots(self, figures: base.Figures) -> list[Plot]:
        series = [
            Series(
                kind.label,
                [each['listings'] for each in own],
                [each['bytes'] / _MEGABYTE for each in own],
            )
            for kind, own in _sizes_by_kind(figures).items()
        ]
        return rounds.plot_if_any(
            *('resident', 'Memory of a proxy over its listings', series),
            x=Axis('listings'),
            y=Axis('memory (MB)'),
            note=f'Pages of {number(self.page)} rows.',
        )


def _sizes_by_kind(figures: base.Figures) -> dict[Kind, list[Mapping]]:
    return rounds.grouped(figures['rows'], rounds.kind_of)


@dataclass(frozen=True)
class ListingFairness(base.LoadScenario):
    """Writes by the proxy worker that also serves a client that lists."""

    name = 'listing-fairness'
    minutes = 13

    shards: tuple[int, ...] = base.shared('shards', (4, 32, 128))
    seconds: float = option(10.0, DURATION, 'How long each load lasts.')
    workers: int = base.shared('workers', 4)
    clients: int = base.shared('clients', 16)
    rate: int = option(
        50,
        NATURAL,
        'Requests/s of all clients together, evenly spread; 0: as many as '
        'possible.',
    )
    size: int = base.shared('size', 1)
    rows: int = base.shared('rows', 1_000_000)
    page: tuple[int, ...] = base.shared('page', (10_000, 100))

    @property
    def pace_seconds(self) -> float:
        """Return the time between two requests of a client."""
        return self.clients / self.rate if self.rate else 0.0

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        steps = [
            (turn, page, kind)
            for turn in range(self.rounds)
            for page in self.page
            for kind in rotated((NOBODY, *self.kinds), turn)
        ]
        names = FlatNames(self.rows)
        ledger = Ledger(stage, keep, len(steps))
        # the same process serves the writers and the client that lists
        cluster = self.cluster({'DEFAULT.workers': '0'})
        with stage.site(cluster) as site, Clients(1) as lister:
            paths = {}
            for kind in self.kinds:
                container = base.filled(stage, site, kind, names)
                site.prepare(container, False, 0)
                paths[kind] = site.container_path(container)
            for turn, page, kind in steps:
                container = site.make(PLAIN)
                site.prepare(container, True, phase_of(turn, self.rounds))
                writes = site.load(
                    Uploads(site.container_path(container), self.size),
                    self.clients,
                    seconds=self.seconds,
                    pace_seconds=self.pace_seconds,
                )
                if kind == NOBODY:
                    ledger.measure(writes, WRITE, kind, turn, page=page)
                    continue
                source = Listings(paths[kind], names, page)
                pages = site.load(source, clients=1)
                listing = lister.begin(pages)
                ledger.measure(writes, WRITE, kind, turn, page=page)
                outcome = stage.checked(listing.stop())
                ledger.note(pages, outcome, LIST, kind, turn, page=page)
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        runs = runs_of(figures)
        writes = [run for run in runs if run.work == WRITE]
        listings = [run for run in runs if run.work == LIST]
        return {
            'rows': c.rows_of(writes, NOBODY),
            'none_listed': NOBODY,
            'to_plain': _rows_by_page(c.rows_of(writes)),
            'listing': _rows_by_page(c.rows_of(listings)),
            'late': sum(r.rate < _ON_TIME_SHARE * self.rate for r in writes),
            'loads': len(writes),
            'runs': runs,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        writes = [run for run in runs_of(figures) if run.work == WRITE]
        alone = [run for run in writes if run.kind == NOBODY]
        rows = c.rows_of(run for run in writes if run.kind != NOBODY)
        level = c.Row(WRITE, NOBODY, {}, alone).median(_p99)
        return rounds.plot_by_kind(
            'p99',
            'Writes while a client lists: 99th percentile',
            rows,
            lambda row: f'{number(row.conditions["page"])} rows per page',
            _p99,
            Axis('p99 (ms)'),
            style=BARS,
            levels={} if level is None else {'no listing': level},
            x_label='listed container',
        )


def _rows_by_page(rows: list[c.Row]) -> dict[tuple[Kind, int], c.Row]:
    return {(row.kind, row.conditions['page']): row for row in rows}
