# SPDX-License-Identifier: Apache-2.0
"""Parameters that several scenarios share. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmw.bench import options as types
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.parameters import Parameters, check_shards, option
from shardmw.saio import ClusterOptions

#: About how long a cluster takes to start and to stop.
CLUSTER_SECONDS = 12

#: About how long a load takes in addition to its own duration.
LOAD_SECONDS = 1.5

#: About how many rows are put into databases in a second.
ROWS_PER_SECOND = 60_000


def shards_option(*counts: int) -> Any:
    text = 'Shard counts, in addition to the plain container.'
    return option(counts, types.COUNTS, text)


def clients_option(count: int) -> Any:
    text = 'Concurrent clients.'
    return option(count, types.CLIENTS, text, '-t', '--clients')


def rate_option(rate: int) -> Any:
    text = (
        'Requests/s of all clients together, evenly spread; 0: as many as '
        'possible.'
    )
    return option(rate, types.NATURAL, text)


def size_option(size: int) -> Any:
    return option(size, types.SIZE, 'Size of the objects.', '-b', '--size')


def rows_option(count: int) -> Any:
    return option(count, types.COUNT, 'Rows in each container.')


def pages_option(*limits: int) -> Any:
    return option(limits, types.PAGES, 'Page sizes: limits of the listings.')


def rounds_option(count: int) -> Any:
    text = 'Rounds; each measures every container. Intervals need 6 rounds.'
    return option(count, types.POSITIVE, text)


def processes_option() -> Any:
    text = 'Client processes; the clients are spread over them.'
    return option(2, types.PROCESSES, text)


def workers_option(count: int) -> Any:
    text = 'Worker processes of each server; 0 for a single process.'
    return option(count, types.WORKERS, text)


@dataclass(frozen=True)
class ClusterParameters(Parameters):
    """Parameters of scenarios whose cluster can be configured."""

    shards: tuple[int, ...] = shards_option(32)
    proxies: int = option(1, types.PROCESSES, 'Proxies of the cluster.')
    workers: int = workers_option(0)
    settings: Mapping[str, str] = option(
        {},
        types.SETTING,
        'A setting of the cluster, as for shardmw-saio. Can be repeated.',
        '--set',
        multiple=True,
    )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of containers that are compared."""
        return PLAIN, *map(sharded, self.shards)

    def check(self) -> None:
        super().check()
        check_shards(self.shards, self.settings)

    def cluster(
        self, settings: Mapping[str, str] | None = None
    ) -> ClusterOptions:
        """Return the options of the cluster.

        :param settings: of the scenario; the user's settings override them
        """
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**(settings or {}), **self.settings},
        )


@dataclass(frozen=True)
class PacedParameters(Parameters):
    """Parameters of clients that may have a fixed rate in total."""

    clients: int = clients_option(16)
    rate: int = rate_option(0)

    @property
    def pace_seconds(self) -> float:
        """Return the time between two requests of a client."""
        return self.clients / self.rate if self.rate else 0.0


@dataclass(frozen=True)
class LoadParameters(ClusterParameters):
    """Parameters of scenarios that repeat loads on a cluster in rounds."""

    seconds: float = option(5.0, types.DURATION, 'How long each load lasts.')
    rounds: int = rounds_option(6)
    processes: int = processes_option()

    def seconds_of(self, loads: int, clusters: int = 1) -> float:
        """Return about how long so many loads in each round take."""
        each = self.seconds + LOAD_SECONDS
        return clusters * CLUSTER_SECONDS + self.rounds * loads * each
