# SPDX-License-Identifier: Apache-2.0
"""Parameters that several scenarios share. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.options import (
    CLIENTS,
    COUNTS,
    DURATION,
    NATURAL,
    POSITIVE,
    PROCESSES,
    SETTING,
    WORKERS,
)
from shardmw.bench.parameters import Parameters, check_shards, option
from shardmw.saio import ClusterOptions

#: About how long a cluster takes to start and to stop.
CLUSTER_SECONDS = 12

#: About how long a load takes beside its own seconds.
LOAD_SECONDS = 1.5

#: About how many rows are put into databases in a second.
ROWS_PER_SECOND = 150_000


@dataclass(frozen=True)
class ClusterParameters(Parameters):
    """Parameters of scenarios whose cluster can be configured."""

    shards: tuple[int, ...] = option(
        (32,), COUNTS, 'Shard counts, in addition to the plain container.'
    )
    proxies: int = option(1, PROCESSES, 'Proxies of the cluster.')
    workers: int = option(
        0, WORKERS, 'Worker processes of each server; 0: it serves itself.'
    )
    settings: Mapping[str, str] = option(
        {},
        SETTING,
        'A setting of the cluster, as for shardmw-saio.',
        '--set',
        multiple=True,
    )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of containers that are compared."""
        return PLAIN, *map(sharded, self.shards)

    def check(self) -> None:
        """Raise ValueError if the cluster does not allow so many shards."""
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

    clients: int = option(
        16, CLIENTS, 'Concurrent clients.', '-t', '--clients'
    )
    rate: int = option(
        0,
        NATURAL,
        'Requests/s of all clients together, evenly spread; 0: as fast as '
        'they can.',
    )

    @property
    def pace_seconds(self) -> float:
        """Return the time between two requests of a client."""
        return self.clients / self.rate if self.rate else 0.0


@dataclass(frozen=True)
class LoadParameters(ClusterParameters):
    """Parameters of scenarios that repeat loads on a cluster in rounds."""

    seconds: float = option(5.0, DURATION, 'Duration of each load.')
    rounds: int = option(
        6,
        POSITIVE,
        'How often each container has its turn; 6 give intervals.',
    )
    processes: int = option(
        2, PROCESSES, 'Client processes; the clients are spread over them.'
    )

    def seconds_of(self, loads: int, clusters: int = 1) -> float:
        """Return about how long so many loads in each round take."""
        each = self.seconds + LOAD_SECONDS
        return clusters * CLUSTER_SECONDS + self.rounds * loads * each
