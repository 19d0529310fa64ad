# SPDX-License-Identifier: Apache-2.0
"""``listing-memory``: a proxy's memory, over many listings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.errors import BenchError
from shardmw.bench.fits import slope_interval
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.names import FlatNames
from shardmw.bench.options import CLIENTS, COUNT, PAGE, POSITIVE, SHARDS
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import LINE, Axis, Plot, Series
from shardmw.bench.scenarios.parameters import ClusterParameters
from shardmw.bench.site import Site
from shardmw.bench.sources import Listings
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.usage import PROXY, processes_of, resident_bytes

NAME = 'listing-memory'
SUMMARY = "A proxy's memory, over many listings of a sharded container."
PUBLISHED = ''

#: The part of all listings in which a process still takes what it needs.
WARM_UP_SHARE = 0.1

_MEGABYTE = 1_000_000
_KILOBYTE = 1000


@dataclass(frozen=True)
class Parameters(ClusterParameters):
    """What it is made with."""

    listings: int = option(10_000, COUNT, 'Pages that are listed, in all.')
    every: int = option(
        100, POSITIVE, 'So many pages between two looks at the memory.'
    )
    page: int = option(1000, PAGE, 'Rows a page, at most.')
    rows: int = option(100_000, COUNT, 'Names in the container.')
    shards: tuple[int, ...] = option(
        (32,), SHARDS, 'Shard counts, one after the other; 0 is plain.'
    )
    clients: int = option(2, CLIENTS, 'Clients at once.', '-t', '--clients')

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The containers that are listed."""
        return tuple(sharded(n) if n else PLAIN for n in self.shards)


def measure(stage: Stage, keep) -> dict[str, object]:
    """List, and look at the memory from time to time."""
    figures: dict[str, object] = {'rows': []}
    for kind in stage.parameters.kinds:
        # each a new proxy, which has done nothing else
        with stage.site(stage.parameters.cluster()) as site:
            for row in _listed(stage, site, kind):
                figures['rows'].append(row)
                keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """How much it was, and how much it grew."""
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
                for kind in parameters.kinds
                if (own := _of(figures['rows'], kind))
            ],
            (
                "What the proxy's process has in memory (VmRSS), every "
                f'{number(parameters.every)} pages of '
                f'{number(parameters.page)} rows, by clients: '
                f'{number(parameters.clients)}. *At first*: before the first '
                'one. *Growth*: the slope of a line through all that comes '
                'after the first tenth; its interval, by leaving out each '
                'tenth of that in turn, has 0 in it if there is none to be '
                'seen.',
            ),
        )
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The memory over the listings."""
    series = [
        Series(kind.label, *zip(*points_of(own), strict=True), LINE)
        for kind in parameters.kinds
        if (own := _of(figures['rows'], kind))
    ]
    if not series:
        return []
    return [
        Plot(
            f'{NAME}-resident',
            'Memory of a proxy over its listings',
            Axis('listings'),
            Axis('memory (MB)'),
            series,
            f'Of pages of {number(parameters.page)} rows.',
        )
    ]


def points_of(rows: Sequence[Mapping]) -> list[tuple[int, float]]:
    """``(listings so far, megabytes)``. Pure."""
    return [(each['listings'], each['bytes'] / _MEGABYTE) for each in rows]


def settled(rows: Sequence[Mapping]) -> list[Mapping]:
    """What comes after the first tenth of all listings. Pure."""
    first = WARM_UP_SHARE * rows[-1]['listings']
    return [each for each in rows if each['listings'] >= first]


def _row(kind: Kind, own: Sequence[Mapping]) -> tuple[str, ...]:
    after = settled(own)
    growth = slope_interval(
        [
            (each['listings'] / 1000, each['bytes'] / _KILOBYTE)
            for each in after
        ]
    )
    interval = '—'
    if growth and growth.low is not None:
        interval = f'{number(growth.low, 1)} to {number(growth.high, 1)}'
    return (
        kind.label,
        number(own[-1]['listings']),
        *(
            figure(each / _MEGABYTE)
            for each in (
                own[0]['bytes'],
                after[0]['bytes'],
                own[-1]['bytes'],
                max(each['bytes'] for each in own),
            )
        ),
        number(growth.value if growth else None, 1),
        interval,
    )


def _of(rows: Sequence[Mapping], kind: Kind) -> list[Mapping]:
    return [each for each in rows if Kind.from_json(each['kind']) == kind]


def _listed(stage: Stage, site: Site, kind: Kind):
    """The memory before the first listing, and every so many later."""
    parameters = stage.parameters
    names = FlatNames(parameters.rows)
    with stage.screen.status(f'{kind.label}: putting rows there'):
        container = site.make(kind)
        site.fill(container, kind, names)
    path = site.container_path(container)
    source = Listings(path, names, parameters.page)
    pids = processes_of(site.cluster, PROXY)
    done = 0
    yield _look(kind, done, pids)
    while done < parameters.listings:
        count = min(parameters.every, parameters.listings - done)
        load = site.load(source, min(parameters.clients, count), count=count)
        label = f'listings {number(done + count)}, {kind.label}'
        outcome = stage.run(load, label)
        failed = count - sum(each.is_admitted for each in outcome.samples)
        if failed:
            raise BenchError(
                f'{failed} of {count} listings failed: look at the logs of '
                'the cluster'
            )
        done += count
        row = _look(kind, done, pids)
        stage.screen.line(f'{label}: {figure(row["bytes"] / _MEGABYTE)} MB')
        yield row


def _look(kind: Kind, done: int, pids: Sequence[int]) -> dict[str, object]:
    return {
        'kind': kind.as_json(),
        'listings': done,
        'bytes': resident_bytes(pids),
    }
