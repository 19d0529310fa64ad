# SPDX-License-Identifier: Apache-2.0
"""The kinds of work: their options, requests, and contents of containers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import click
from shardmw_saio import ClusterOptions

from shardmw.core.layout import DEPTH_LIMIT
from shardmw_bench import options
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, Kind, native, sharded
from shardmw_bench.load import sources
from shardmw_bench.load.sources import Source
from shardmw_bench.names import FlatNames, Names, TreeNames
from shardmw_bench.options import option
from shardmw_bench.plots.plot import Plot
from shardmw_bench.plots.runs import all_of
from shardmw_bench.results.runs import runs_of
from shardmw_bench.results.summary import Summary, errors_text
from shardmw_bench.scenarios.base import Figures, Scenario, shared
from shardmw_bench.site import Site
from shardmw_bench.tables import Table, plain
from shardmw_bench.units import GOLDEN_SHARE, parse_mix, parse_size_mix
from shardmw_bench.workloads import report

#: The filter's option for all containers.
LIMIT_OPTION = 'shardmw.container_ratelimit_0'

# The length of a load without --seconds and --count.
_SECONDS = 10.0

_OWN_ROWS = 100_000
_REMOTE_ROWS = 10_000
_DIRECTORIES = 100

# The prefix of the names that are uploaded meanwhile, and the clients that
# upload them.
_BEHIND = 'z/'
_WRITERS = 4


@dataclass(frozen=True)
class Work(Scenario):
    """A kind of work. Its measurement needs the chosen cluster, too.

    ``spends``
        True if each load needs a new container
    ``writes``
        True if it writes
    """

    spends: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    #: None if only a count ends a load
    load_seconds: ClassVar[float | None] = None

    clients: int = shared('clients', 16)
    processes: int = shared('processes', 2)
    shards: tuple[int, ...] = option(
        (0, 32),
        options.SHARDS,
        'Shard counts of the containers to measure; 0 is a plain container.',
    )
    native: int = option(
        0,
        options.RANGES,
        "Also measure a container that Swift's own container-sharder splits "
        'into this many ranges; 0 for none.',
    )
    rounds: int = shared('rounds', 1)
    limit: float | None = option(
        None,
        options.RATE,
        'Rate limit of each backing container, in writes/s.',
    )
    proxies: int = shared('proxies', 1)
    workers: int = shared('workers', 0)
    policy: str | None = option(
        None, str, 'The storage policy of the containers.'
    )
    settings: Mapping[str, str] = shared('settings', {})

    def check_figures(self, figures: Figures) -> None:
        """Raise BenchError if everything failed with a kind of container."""
        of_kinds: dict[Kind, list[Summary]] = {}
        for run in runs_of(figures):
            of_kinds.setdefault(run.kind, []).append(run.summary)
        for kind, summaries in of_kinds.items():
            failed = sum((Counter(s.errors) for s in summaries), Counter())
            if failed and not any(s.done or s.refused for s in summaries):
                raise BenchError(
                    f'{kind.label}: everything failed '
                    f"({errors_text(failed)}): see the proxy's log"
                )

    def tables(self, figures: Figures) -> list[Table]:
        return report.tables(figures)

    def plots(self, figures: Figures) -> list[Plot]:
        return all_of(runs_of(figures))

    def names(self, site: Site) -> Names | None:
        """Return the names of the objects that exist before the load."""
        return None

    def conditions(self, names: Names | None) -> list[dict[str, object]]:
        raise NotImplementedError

    def source(self, path: str, names: Names, **run: object) -> Source:
        """Return the requests of a run.

        :param path: of the container, quoted
        :param names: of its objects; None for an empty container
        :param run: the conditions, and the turn
        """
        raise NotImplementedError

    def meanwhile(
        self, site: Site, container: str, turn: int, **run: object
    ) -> sources.Load | None:
        """Return a load that runs beside each one, without an end."""
        return None

    def fill(
        self, site: Site, container: str, kind: Kind, names: Names
    ) -> Names:
        """Fill a container, and return its names as the load needs them."""
        size = parse_size_mix(self.size)
        site.populate(container, names, size, self.clients)
        return names

    def _check_enough(self, count: int | None, flag: str) -> None:
        if count is not None and count < self.clients:
            raise ValueError(
                f'{self.clients:,} clients have nothing to do with {count:,} '
                f'operations: raise {flag}, or take fewer clients with -t'
            )

    @property
    def kinds(self) -> list[Kind]:
        """Return the kinds of containers, plain ones first."""
        native_ones = [native(self.native)] if self.native else []
        some = [sharded(n) for n in self.shards if n]
        return [PLAIN] * (0 in self.shards) + native_ones + some

    @property
    def expected_seconds(self) -> float | None:
        """Return about how long all loads take; None if counts end them."""
        if self.load_seconds is None:
            return None
        pages = len(getattr(self, 'page', (0,)))
        loads = self.rounds * len(self.kinds) * pages
        return 15 + loads * (self.load_seconds + 1.5)

    @property
    def cluster(self) -> ClusterOptions:
        limit = {} if self.limit is None else {LIMIT_OPTION: plain(self.limit)}
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**limit, **self.settings},
        )


@dataclass(frozen=True)
class _Timed(Work):
    """Work that ends after a time or a count."""

    seconds: float | None = option(
        None,
        options.DURATION,
        f'How long each load lasts.  [default: {plain(_SECONDS)}, or until '
        '--count]',
    )
    count: int | None = option(
        None, options.COUNT, 'End each load after this many operations.'
    )

    def check(self) -> None:
        self._check_enough(self.count, '--count')

    @property
    def load_seconds(self) -> float | None:
        if self.seconds is None and self.count is None:
            return _SECONDS
        return self.seconds


@dataclass(frozen=True)
class _OfObjects(Work):
    """Work on objects of some sizes."""

    size: str = option(
        '4K',
        options.SIZE_MIX,
        'Object size: 4K for one size; 4K-64K for a range, evenly by its '
        'logarithm; 1K:80,1M:20 for sizes with their shares.',
        '-b',
        '--size',
    )

    def conditions(self, names: Names | None) -> list[dict[str, object]]:
        size = parse_size_mix(self.size)
        values = {
            'clients': self.clients,
            'size': size.largest if size.largest == size.mean else size.label,
            'objects': None if names is None else len(names),
            'limit': self.limit,
            'mix': getattr(self, 'mix', None),
        }
        return [{name: v for name, v in values.items() if v is not None}]


@dataclass(frozen=True)
class _OfStored(_OfObjects):
    """Work on objects that are uploaded before the loads."""

    objects: int = option(
        1000,
        options.COUNT,
        'Objects to upload to each container before the loads.',
    )

    def names(self, site: Site) -> Names:
        return FlatNames(self.objects)


@dataclass(frozen=True)
class Write(_OfObjects, _Timed):
    """Upload new objects."""

    name = 'write'
    spends = writes = True

    def source(self, path: str, names: Names, **run: object) -> Source:
        # spread names fall evenly into native ranges, too
        size = parse_size_mix(self.size)
        return sources.Uploads(path, size, spread=True)


@dataclass(frozen=True)
class Read(_OfStored, _Timed):
    """Read objects."""

    name = 'read'

    def source(self, path: str, names: Names, **run: object) -> Source:
        return sources.Reads(path, names, shuffled=True)


@dataclass(frozen=True)
class Head(Read):
    """Request the headers of objects."""

    name = 'head'

    def source(self, path: str, names: Names, **run: object) -> Source:
        return sources.Heads(path, names, shuffled=True)


@dataclass(frozen=True)
class Delete(_OfStored):
    """Delete objects until none is left."""

    name = 'delete'
    spends = writes = True

    def check(self) -> None:
        self._check_enough(self.objects, '--objects')

    @property
    def count(self) -> int:
        return self.objects

    def source(self, path: str, names: Names, **run: object) -> Source:
        return sources.Deletes(path, names, shuffled=True)


@dataclass(frozen=True)
class HeadContainer(_Timed):
    """Request the headers of containers."""

    name = 'head-container'

    clients: int = shared('clients', 1)
    rows: int | None = option(
        None,
        options.COUNT,
        'Objects in each container. In the temporary cluster they are rows '
        'in the container databases, in an existing one they are uploaded.  '
        '[default: 100K in the temporary cluster, 10K in an existing one]',
    )

    def names(self, site: Site) -> Names:
        default = _OWN_ROWS if site.is_own else _REMOTE_ROWS
        return FlatNames(self.rows or default)

    def conditions(self, names: Names) -> list[dict[str, object]]:
        return [{'clients': self.clients, 'rows': len(names)}]

    def source(self, path: str, names: Names, **run: object) -> Source:
        return sources.ContainerHeads(path)

    def fill(
        self, site: Site, container: str, kind: Kind, names: Names
    ) -> Names:
        # rows without objects are enough
        if site.is_own:
            site.fill(container, kind, names)
        else:
            site.populate(container, names)
        return names


@dataclass(frozen=True)
class List(HeadContainer):
    """List containers, page by page."""

    name = 'list'

    page: tuple[int, ...] = option(
        (10_000,),
        options.COUNTS,
        'Rows of a page (limit); 10000,100 measures both.',
    )
    delimiter: str = option(
        '', str, 'The delimiter of the listings, such as /.'
    )
    prefix: str = option(
        '', str, 'The prefix of the listings, such as d0042/.'
    )
    directories: int | None = option(
        None,
        options.NATURAL,
        'Directories that the object names are spread over: d0000/o000000 '
        'and so on.  [default: 100 with a delimiter or prefix, else none]',
    )
    unordered: bool = option(
        False, bool, 'List in any order (allow_unordered=true).'
    )
    different: bool = option(
        False,
        bool,
        'Send each request with another end_marker, so that nobody has asked '
        'for the same page before.',
    )
    writes_per_second: int = option(
        0,
        options.NATURAL,
        'Uploads/s into the container meanwhile, behind the names that are '
        'listed; 0: none.',
    )
    depths: tuple[int, ...] = option(
        (0,),
        options.several('shards', click.IntRange(0, DEPTH_LIMIT)),
        'Depths of the sharded containers; 0 shards by the whole name, 1 by '
        'the first directory.',
    )

    @property
    def kinds(self) -> list[Kind]:
        return [
            kind for each in super().kinds for kind in each.at(self.depths)
        ]

    @property
    def writes(self) -> bool:
        return self.writes_per_second > 0

    def meanwhile(
        self, site: Site, container: str, turn: int, **run: object
    ) -> sources.Load | None:
        if not self.writes:
            return None
        return site.load(
            sources.Uploads(
                site.container_path(container),
                size=1,
                prefix=f'{_BEHIND}{turn}-{run["page"]}-',
            ),
            _WRITERS,
            pace_seconds=_WRITERS / self.writes_per_second,
        )

    def check(self) -> None:
        super().check()
        if self.unordered and self.delimiter:
            raise ValueError(
                'a listing with a delimiter has an order: leave --delimiter '
                'or --unordered out'
            )

    def names(self, site: Site) -> Names:
        if max(self.page) > site.longest_page:
            raise BenchError(
                f'{site.urls[0]} gives up to {site.longest_page} rows a '
                f'page: choose a smaller --page than {max(self.page)}'
            )
        names = super().names(site)
        directories = self.directories
        if directories is None:
            in_directories = self.delimiter or self.prefix
            directories = _DIRECTORIES if in_directories else 0
        if not directories:
            return names
        return TreeNames(directories, max(1, len(names) // directories))

    def fill(
        self, site: Site, container: str, kind: Kind, names: Names
    ) -> Names:
        super().fill(site, container, kind, names)
        if not (self.delimiter or self.prefix or self.unordered):
            return names
        query = {'delimiter': self.delimiter, 'prefix': self.prefix}
        if self.unordered:
            query['query_string'] = 'allow_unordered=true'
        return tuple(site.account.names(container, **query))

    def conditions(self, names: Names) -> list[dict[str, object]]:
        (conditions,) = super().conditions(names)
        words = {
            'delimiter': self.delimiter,
            'prefix': self.prefix,
            'order': 'any' if self.unordered else '',
            'writes/s': self.writes_per_second,
            'requests': 'all different' if self.different else '',
        }
        also = {name: word for name, word in words.items() if word}
        return [{**conditions, 'page': page, **also} for page in self.page]

    def source(self, path: str, names: Names, **run: object) -> Source:
        listings = sources.Listings(
            *(path, names, run['page']),
            *(self.delimiter, self.prefix, self.unordered),
            different=self.different,
        )
        # other pages than those that were listed last
        place = run['turn'] * GOLDEN_SHARE % 1
        return replace(listings, first=int(place * listings.pages))


@dataclass(frozen=True)
class MixedWork(Read):
    """Write, read, HEAD and delete objects in a ratio."""

    name = 'mixed'
    writes = True

    mix: str = option(
        'write=20,read=70,head=5,delete=5',
        options.MIX,
        'Operations and their shares; overwrite and list can be added.',
    )

    def source(self, path: str, names: Names, **run: object) -> Source:
        return sources.Mixed(
            path,
            parse_mix(self.mix),
            names,
            parse_size_mix(self.size),
            tag=f'new{run["turn"]}',
        )


#: All kinds of work, by name.
WORKS: dict[str, type[Work]] = {
    work.name: work
    for work in (Write, Read, Head, Delete, List, HeadContainer, MixedWork)
}
