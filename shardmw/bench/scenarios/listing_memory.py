# SPDX-License-Identifier: Apache-2.0
"""``listing-memory``: a proxy's memory over many listings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.load.sources import Listings
from shardmw.bench.load.stage import Stage
from shardmw.bench.names import FlatNames
from shardmw.bench.options import COUNT, PAGE, POSITIVE, SHARDS
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.results.figures import slope_interval
from shardmw.bench.scenarios import base, rounds
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, number
from shardmw.bench.targets.usage import PROXY, processes_of, resident_bytes

#: The share of all listings in which a process still allocates what it keeps.
WARM_UP_SHARE = 0.1

_MEGABYTE = 1_000_000

# Of a page of 1,000 rows from 32 shards.
_LISTINGS_PER_SECOND = 30


@dataclass(frozen=True)
class ListingMemory(base.ClusterScenario):
    """A proxy's memory, over many listings of a sharded container."""

    name = 'listing-memory'

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

    @property
    def expected_seconds(self) -> float:
        each = base.CLUSTER_SECONDS + self.listings / _LISTINGS_PER_SECOND
        return len(self.shards) * each

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        """List, and read the memory from time to time."""
        for shards in self.shards:
            # a new proxy for each, which has done nothing else
            with stage.site(self.cluster()) as site:
                kind = sharded(shards) if shards else PLAIN
                pids = processes_of(site.cluster, PROXY)
                for done in self._listed(stage, site, kind):
                    size = resident_bytes(pids)
                    stage.screen.line(
                        f'{number(done)} listings, {kind.label}: '
                        f'{figure(size / _MEGABYTE)} MB'
                    )
                    yield {
                        'kind': kind.as_json(),
                        'listings': done,
                        'bytes': size,
                    }

    def _listed(self, stage: Stage, site: Site, kind: Kind) -> Iterator[int]:
        """Yield how much is listed, at the begin and after every few pages."""
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
        """Return how much memory it was, and how much it grew."""
        memories = []
        for kind, own in _by_kind(figures).items():
            first = WARM_UP_SHARE * own[-1]['listings']
            after = [each for each in own if each['listings'] >= first]
            growth = slope_interval(
                [
                    (each['listings'] / 1000, each['bytes'] / 1000)
                    for each in after
                ]
            )
            shown = [own[0], after[0], own[-1], max(own, key=_bytes_of)]
            memories.append(
                {
                    'kind': kind,
                    'listings': own[-1]['listings'],
                    'bytes': [*map(_bytes_of, shown)],
                    'growth': growth,
                }
            )
        return {'memories': memories}

    def plots(self, figures: base.Figures) -> list[Plot]:
        """Return a plot of the memory over the listings."""
        return rounds.plot_if_any(
            'resident',
            'Memory of a proxy over its listings',
            [
                Series(
                    kind.label,
                    [each['listings'] for each in own],
                    [each['bytes'] / _MEGABYTE for each in own],
                )
                for kind, own in _by_kind(figures).items()
            ],
            x=Axis('listings'),
            y=Axis('memory (MB)'),
            note=f'Pages of {number(self.page)} rows.',
        )


def _by_kind(figures: base.Figures) -> dict[Kind, list[Mapping]]:
    return rounds.grouped(figures['rows'], rounds.kind_of)


def _bytes_of(row: Mapping) -> int:
    return row['bytes']
