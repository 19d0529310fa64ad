# SPDX-License-Identifier: Apache-2.0
"""Parameters of workloads. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from shardmw.bench.kinds import PLAIN, Kind, native, sharded
from shardmw.bench.options import (
    CLIENTS,
    COUNT,
    COUNTS,
    DURATION,
    MIX,
    NATURAL,
    POSITIVE,
    PROCESSES,
    RANGES,
    RATE,
    SETTING,
    SHARDS,
    SIZE_MIX,
    WORKERS,
)
from shardmw.bench.parameters import Parameters, check_shards, option
from shardmw.bench.tables import plain
from shardmw.record import DEPTH_LIMIT
from shardmw.saio import ClusterOptions

#: Of a load that neither a time nor a count was chosen for.
DEFAULT_SECONDS = 10.0

#: The filter's option for all containers.
LIMIT_OPTION = 'shardmw.container_ratelimit_0'


def _check_enough(count: int | None, clients: int, flag: str) -> None:
    if count is not None and count < clients:
        raise ValueError(
            f'{clients:,} clients have nothing to do with {count:,} '
            f'operations: raise {flag}, or take fewer clients with -t'
        )


@dataclass(frozen=True)
class WorkParameters(Parameters):
    """Parameters of all workloads.

    :param shards: of each kind of container; 0 is a plain one
    :param native: ranges of a natively sharded one; 0 for none
    """

    clients: int = option(
        16, CLIENTS, 'Clients at once, a connection each.', '-t', '--clients'
    )
    processes: int = option(
        2, PROCESSES, 'Processes that these are spread over.'
    )
    shards: tuple[int, ...] = option(
        (0, 32), SHARDS, 'Containers: 0 is a plain one, N one of N shards.'
    )
    native: int = option(
        0,
        RANGES,
        "One of so many ranges, too, split by Swift's own container-sharder.",
    )
    rounds: int = option(1, POSITIVE, 'How often, all containers in turns.')
    limit: float | None = option(
        None, RATE, 'Writes/s that a backing container may take.'
    )
    proxies: int = option(1, PROCESSES, 'Proxies of the cluster.')
    workers: int = option(
        0, WORKERS, 'Worker processes of each server; 0: it serves itself.'
    )
    policy: str | None = option(None, str, 'The storage policy.')
    settings: Mapping[str, str] = option(
        {},
        SETTING,
        'A setting of the cluster, as for shardmw-saio.',
        '--set',
        multiple=True,
    )

    def check_own(self) -> None:
        """Raise ValueError if the own cluster does not allow this.

        :raises ValueError: if so, and why
        """
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
        """Return the options of the benchmark's own cluster."""
        limit = {} if self.limit is None else {LIMIT_OPTION: plain(self.limit)}
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**limit, **self.settings},
        )


@dataclass(frozen=True)
class TimedParameters(WorkParameters):
    """Parameters of work that a time or a count ends."""

    seconds: float | None = option(
        None,
        DURATION,
        f'Of each load.  [default: {plain(DEFAULT_SECONDS)}, or --count]',
    )
    count: int | None = option(
        None, COUNT, 'End each load after so many operations.'
    )

    def check(self) -> None:
        """Raise ValueError also if there are more clients than operations."""
        super().check()
        _check_enough(self.count, self.clients, '--count')

    @property
    def load_seconds(self) -> float | None:
        """Return the duration of a load; None if only a count ends it."""
        if self.seconds is None and self.count is None:
            return DEFAULT_SECONDS
        return self.seconds


@dataclass(frozen=True)
class WriteParameters(TimedParameters):
    """Parameters of uploads."""

    size: str = option(
        '4K',
        SIZE_MIX,
        'Of the objects: 4K; 4K-64K, as many of each order of magnitude; '
        '1K:80,1M:20, in percent.',
        '-b',
        '--size',
    )


@dataclass(frozen=True)
class ReadParameters(WriteParameters):
    """Parameters of reads and HEADs of objects."""

    objects: int = option(
        1000, COUNT, 'Objects that are uploaded before, to each container.'
    )


@dataclass(frozen=True)
class MixedParameters(ReadParameters):
    """Parameters of a mix of operations."""

    mix: str = option(
        'write=20,read=70,head=5,delete=5',
        MIX,
        'Operations, in percent; overwrite and list are others.',
    )


@dataclass(frozen=True)
class DeleteParameters(WorkParameters):
    """Parameters of deletes, which end when nothing is left."""

    size: str = option('4K', SIZE_MIX, 'Of the objects.', '-b', '--size')
    objects: int = option(
        1000, COUNT, 'Objects to upload before, and to delete.'
    )

    load_seconds = None

    def check(self) -> None:
        """Raise ValueError also if there are more clients than operations."""
        super().check()
        _check_enough(self.objects, self.clients, '--objects')

    @property
    def count(self) -> int:
        """Return how many operations a load has."""
        return self.objects


@dataclass(frozen=True)
class ContainerParameters(TimedParameters):
    """Parameters of HEADs of containers.

    :param rows: None for the default of the cluster
    """

    clients: int = option(
        1, CLIENTS, 'Clients at once, a connection each.', '-t', '--clients'
    )
    rows: int | None = option(
        None,
        COUNT,
        'Objects in each container. The own cluster gets them as rows of '
        'its databases, another one by uploads.  [default: 100K, or 10K]',
    )


@dataclass(frozen=True)
class ListParameters(ContainerParameters):
    """Parameters of listings, page by page, again and again.

    :param directories: that the names lie in; None for the default
    """

    page: tuple[int, ...] = option(
        (10_000,),
        COUNTS,
        'Rows of a page: its limit; 10000,100 measures both.',
    )
    delimiter: str = option('', str, 'As of a listing, such as /.')
    prefix: str = option('', str, 'As of a listing, such as d0042/.')
    directories: int | None = option(
        None,
        NATURAL,
        'Directories that the names lie in: d0000/o000000 and so on.  '
        '[default: 100 with a delimiter or prefix, or none]',
    )
    unordered: bool = option(
        False, bool, 'List in any order: allow_unordered=true.'
    )
    depths: tuple[int, ...] = option(
        (0,),
        SHARDS,
        'Depths of the sharded containers: 0,1 measures by name and by '
        'directory.',
    )

    @property
    def kinds(self) -> list[Kind]:
        """Return the kinds of containers, sharded ones at each depth."""
        return [
            kind for each in super().kinds for kind in each.at(self.depths)
        ]

    def check(self) -> None:
        """Raise ValueError also if options contradict each other."""
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
