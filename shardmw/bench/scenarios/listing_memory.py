# SPDX-License-Identifier: Apache-2.0
"""``listing-memory``: a proxy's memory over many listings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.load.sources import Listings
from shardmw.bench.load.stage import Stage
from shardmw.bench.names import FlatNames
from shardmw.bench.options import COUNT, PAGE, POSITIVE, SHARDS
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.results.fits import slope_interval
from shardmw.bench.scenarios import Figures, Keep, Scenario, grouping
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.targets.usage import PROXY, processes_of, resident_bytes

NAME = 'listing-memory'

#: The share of all listings in which a process still allocates what it keeps.
WARM_UP_SHARE = 0.1

_MEGABYTE = 1_000_000

# Of a page of 1,000 rows from 32 shards.
_LISTINGS_PER_SECOND = 30


@dataclass(frozen=True)
class Parameters(shared.ClusterParameters):
    """The options of the scenario."""

    shards: tuple[int, ...] = option(
        (32,), SHARDS, 'Shard counts, one after the other; 0 is plain.'
    )
    listings: int = option(10_000, COUNT, 'Pages to list, in total.')
    every: int = option(
        100, POSITIVE, 'Pages between two readings of the memory.'
    )
    page: int = option(1000, PAGE, 'Page size: the limit of the listings.')
    rows: int = shared.rows_option(100_000)
    clients: int = shared.clients_option(2)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of containers that are listed."""
        return tuple(sharded(n) if n else PLAIN for n in self.shards)


def measure(stage: Stage, keep: Keep) -> Figures:
    """List, and read the memory from time to time."""
    figures: dict[str, object] = {'rows': []}
    for kind in stage.parameters.kinds:
        # a new proxy for each, which has done nothing else
        with stage.site(stage.parameters.cluster()) as site:
            for row in _listed(stage, site, kind):
                figures['rows'].append(row)
                keep(figures)
    return figures


def _listed(
    stage: Stage, site: Site, kind: Kind
) -> Iterator[dict[str, object]]:
    """Yield the memory before the first listing, and after every few."""
    parameters = stage.parameters
    names = FlatNames(parameters.rows)
    with stage.screen.status(f'{kind.label}: writing rows'):
        container = site.make(kind)
        site.fill(container, kind, names)
    source = Listings(site.container_path(container), names, parameters.page)
    pids = processes_of(site.cluster, PROXY)

    def reading(done: int) -> dict[str, object]:
        return {
            'kind': kind.as_json(),
            'listings': done,
            'bytes': resident_bytes(pids),
        }

    done = 0
    yield reading(done)
    while done < parameters.listings:
        count = min(parameters.every, parameters.listings - done)
        load = site.load(source, min(parameters.clients, count), count=count)
        label = f'listings {number(done + count)}, {kind.label}'
        outcome = stage.run(load, label)
        failed = count - sum(each.is_admitted for each in outcome.samples)
        if failed:
            raise BenchError(
                f'{failed} of {count} listings failed: see the logs of the '
                'cluster'
            )
        done += count
        row = reading(done)
        stage.screen.line(f'{label}: {figure(row["bytes"] / _MEGABYTE)} MB')
        yield row


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return how much memory it was, and how much it grew."""
    return [
        Table(
            'Memory of a proxy',
            (
                *('container', 'listings', 'at first MB'),
                *('after a tenth MB', 'at the end MB', 'most MB'),
                *('growth KB by 1,000 listings', '95 % interval'),
            ),
            [
                _row(kind, own)
                for kind, own in grouping.grouped(
                    figures['rows'], grouping.kind_of
                ).items()
            ],
            (
                "Resident memory of the proxy's process (VmRSS), read every "
                f'{number(parameters.every)} pages of '
                f'{number(parameters.page)} rows; clients: '
                f'{number(parameters.clients)}. *At first*: before the first '
                'page. *Growth*: the slope of a line through the readings '
                'after the first tenth. Its interval is a jackknife over ten '
                'blocks; it contains 0 if no growth can be seen.',
            ),
        )
    ]


def _row(kind: Kind, own: Sequence[Mapping]) -> tuple[str, ...]:
    first = WARM_UP_SHARE * own[-1]['listings']
    after = [each for each in own if each['listings'] >= first]
    growth = slope_interval(
        [(each['listings'] / 1000, each['bytes'] / 1000) for each in after]
    )
    interval = grouping.MISSING
    if growth and growth.low is not None:
        interval = f'{number(growth.low, 1)} to {number(growth.high, 1)}'
    most = max(each['bytes'] for each in own)
    shown = own[0]['bytes'], after[0]['bytes'], own[-1]['bytes'], most
    return (
        kind.label,
        number(own[-1]['listings']),
        *(figure(each / _MEGABYTE) for each in shown),
        number(growth.value if growth else None, 1),
        interval,
    )


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return a plot of the memory over the listings."""
    return grouping.plot_if_any(
        f'{NAME}-resident',
        'Memory of a proxy over its listings',
        [
            Series(
                kind.label,
                [each['listings'] for each in own],
                [each['bytes'] / _MEGABYTE for each in own],
            )
            for kind, own in grouping.grouped(
                figures['rows'], grouping.kind_of
            ).items()
        ],
        x=Axis('listings'),
        y=Axis('memory (MB)'),
        note=f'Pages of {number(parameters.page)} rows.',
    )


SCENARIOS = (
    Scenario(
        NAME,
        "A proxy's memory, over many listings of a sharded container.",
        Parameters,
        measure,
        tables,
        plots,
        seconds=lambda parameters: (
            len(parameters.shards)
            * (
                shared.CLUSTER_SECONDS
                + parameters.listings / _LISTINGS_PER_SECOND
            )
        ),
    ),
)
