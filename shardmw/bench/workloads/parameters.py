# SPDX-License-Identifier: Apache-2.0
"""Parameters of workloads. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from shardmw.bench import options
from shardmw.bench.kinds import PLAIN, Kind, native, sharded
from shardmw.bench.names import Names
from shardmw.bench.parameters import Parameters, check_shards, option
from shardmw.bench.tables import plain
from shardmw.bench.units import parse_size_mix
from shardmw.record import DEPTH_LIMIT
from shardmw.saio import ClusterOptions

#: The filter's option for all containers.
LIMIT_OPTION = 'shardmw.container_ratelimit_0'

# The length of a load without --seconds and --count.
_SECONDS = 10.0

Conditions = list[dict[str, object]]


def _check_enough(count: int | None, clients: int, flag: str) -> None:
    if count is not None and count < clients:
        raise ValueError(
            f'{clients:,} clients have nothing to do with {count:,} '
            f'operations: raise {flag}, or take fewer clients with -t'
        )


@dataclass(frozen=True)
class WorkParameters(Parameters):
    """Parameters of all workloads."""

    clients: int = option(
        16, options.CLIENTS, 'Concurrent clients.', '-t', '--clients'
    )
    processes: int = option(
        2,
        options.PROCESSES,
        'Client processes; the clients are spread over them.',
    )
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
    rounds: int = option(
        1, options.POSITIVE, 'Rounds; each measures every container once.'
    )
    limit: float | None = option(
        None,
        options.RATE,
        'Rate limit of each backing container, in writes/s.',
    )
    proxies: int = option(
        1, options.PROCESSES, 'Proxies of the temporary cluster.'
    )
    workers: int = option(
        0,
        options.WORKERS,
        'Worker processes of each server of the temporary cluster; 0 for a '
        'single process.',
    )
    policy: str | None = option(
        None, str, 'The storage policy of the containers.'
    )
    settings: Mapping[str, str] = option(
        {},
        options.SETTING,
        'A setting of the temporary cluster, as for shardmw-saio. Can be '
        'repeated.',
        '--set',
        multiple=True,
    )

    def check_own(self) -> None:
        """Raise ValueError if the temporary cluster does not allow this."""
        check_shards(self.shards, self.settings)

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
        """Return the options of the temporary cluster."""
        limit = {} if self.limit is None else {LIMIT_OPTION: plain(self.limit)}
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**limit, **self.settings},
        )


@dataclass(frozen=True)
class TimedParameters(WorkParameters):
    """Parameters of work that ends after a time or a count."""

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
        super().check()
        _check_enough(self.count, self.clients, '--count')

    @property
    def load_seconds(self) -> float | None:
        """Return the duration of a load; None if only a count ends it."""
        if self.seconds is None and self.count is None:
            return _SECONDS
        return self.seconds


class _OfObjects:
    """The conditions of work on objects."""

    def conditions(self, names: Names | None) -> Conditions:
        """Return the conditions of the runs of each round."""
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
class WriteParameters(_OfObjects, TimedParameters):
    """Parameters of uploads."""

    size: str = option(
        '4K',
        options.SIZE_MIX,
        'Object size: 4K for one size; 4K-64K for a range, evenly by its '
        'logarithm; 1K:80,1M:20 for sizes with their shares.',
        '-b',
        '--size',
    )


@dataclass(frozen=True)
class ReadParameters(WriteParameters):
    """Parameters of reads and HEADs of objects."""

    objects: int = option(
        1000,
        options.COUNT,
        'Objects to upload to each container before the loads.',
    )


@dataclass(frozen=True)
class MixedParameters(ReadParameters):
    """Parameters of a mix of operations."""

    mix: str = option(
        'write=20,read=70,head=5,delete=5',
        options.MIX,
        'Operations and their shares; overwrite and list can be added.',
    )


@dataclass(frozen=True)
class DeleteParameters(_OfObjects, WorkParameters):
    """Parameters of deletes, which end when nothing is left."""

    size: str = option(
        '4K',
        options.SIZE_MIX,
        'Object size; a range or a mix as for write.',
        '-b',
        '--size',
    )
    objects: int = option(
        1000,
        options.COUNT,
        'Objects to upload to each container, and to delete.',
    )

    load_seconds = None

    def check(self) -> None:
        super().check()
        _check_enough(self.objects, self.clients, '--objects')

    @property
    def count(self) -> int:
        """Return how many operations a load has."""
        return self.objects


@dataclass(frozen=True)
class ContainerParameters(TimedParameters):
    """Parameters of HEADs of containers."""

    clients: int = option(
        1, options.CLIENTS, 'Concurrent clients.', '-t', '--clients'
    )
    rows: int | None = option(
        None,
        options.COUNT,
        'Objects in each container. In the temporary cluster they are rows '
        'in the container databases, in an existing one they are uploaded.  '
        '[default: 100K in the temporary cluster, 10K in an existing one]',
    )

    def conditions(self, names: Names) -> Conditions:
        """Return the conditions of the runs of each round."""
        return [{'clients': self.clients, 'rows': len(names)}]


@dataclass(frozen=True)
class ListParameters(ContainerParameters):
    """Parameters of listings, page by page, in rounds."""

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
    depths: tuple[int, ...] = option(
        (0,),
        options.SHARDS,
        'Depths of the sharded containers; 0 shards by the whole name, 1 by '
        'the first directory.',
    )

    @property
    def kinds(self) -> list[Kind]:
        return [
            kind for each in super().kinds for kind in each.at(self.depths)
        ]

    def check(self) -> None:
        super().check()
        if max(self.depths) > DEPTH_LIMIT:
            raise ValueError(
                f'--depths {max(self.depths)}: {DEPTH_LIMIT} is the most'
            )
        if self.unordered and self.delimiter:
            raise ValueError(
                'a listing with a delimiter has an order: leave --delimiter '
                'or --unordered out'
            )

    def conditions(self, names: Names) -> Conditions:
        (conditions,) = super().conditions(names)
        words = {
            'delimiter': self.delimiter,
            'prefix': self.prefix,
            'order': 'any' if self.unordered else '',
        }
        also = {name: word for name, word in words.items() if word}
        return [{**conditions, 'page': page, **also} for page in self.page]
