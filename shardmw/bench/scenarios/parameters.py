# SPDX-License-Identifier: Apache-2.0
"""What several scenarios are made with. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from shardmw.bench.options import (
    CLIENTS,
    DURATION,
    NATURAL,
    POSITIVE,
    PROCESSES,
    SETTING,
    WORKERS,
)
from shardmw.bench.parameters import Parameters, check_shards, option
from shardmw.saio import ClusterOptions


@dataclass(frozen=True)
class ClusterParameters(Parameters):
    """Of scenarios on a cluster that can be another one.

    They add ``shards``: counts of containers'.
    """

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

    def check(self) -> None:
        """As that of all; the cluster takes so many shards."""
        super().check()
        check_shards(self.shards, self.settings)

    def cluster(
        self, settings: Mapping[str, str] | None = None
    ) -> ClusterOptions:
        """The cluster.

        :param settings: that are the scenario's; others come before them
        """
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**(settings or {}), **self.settings},
        )


@dataclass(frozen=True)
class PacedParameters(Parameters):
    """The options of clients that share a rate, or have none."""

    clients: int = option(
        16, CLIENTS, 'Clients that write at once.', '-t', '--clients'
    )
    rate: int = option(
        0,
        NATURAL,
        'Requests/s of all of them together, evenly; 0: as fast as they can.',
    )

    @property
    def pace_seconds(self) -> float:
        """Return the time between two requests of a client."""
        return self.clients / self.rate if self.rate else 0.0


@dataclass(frozen=True)
class LoadParameters(ClusterParameters):
    """Of scenarios that are loads on a cluster, in rounds."""

    seconds: float = option(5.0, DURATION, 'Of each load.')
    rounds: int = option(
        6, POSITIVE, 'How often, all containers in turns; 6 give intervals.'
    )
    processes: int = option(
        2, PROCESSES, 'Processes that the clients are spread over.'
    )
