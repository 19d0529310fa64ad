# SPDX-License-Identifier: Apache-2.0
"""``replica-convergence``: how long replication takes after a loss."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.kinds import Kind
from shardmw.bench.load.stage import Stage, rotated
from shardmw.bench.names import FlatNames
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.replicas import (
    REPLICATOR,
    contents,
    converge,
    empty_device,
)
from shardmw.bench.scenarios import base, rounds
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, number
from shardmw.saio import ClusterOptions

_REPLICAS = 3
_EMPTIED_NODE = 3


@dataclass(frozen=True)
class ReplicaConvergence(base.ClusterScenario):
    """Time until replicas are complete again after a device was emptied."""

    name = 'replica-convergence'
    rows_key = 'rounds'

    rows: int = base.shared('rows', 1_000_000)
    rounds: int = base.shared('rounds', 6)

    @property
    def expected_seconds(self) -> float:
        filling = _REPLICAS * self.rows / base.ROWS_PER_SECOND
        databases = sum(kind.parts for kind in self.kinds)
        each_round = 10 * len(self.kinds) + databases / 4
        clusters = len(self.kinds) * (2 * base.CLUSTER_SECONDS + filling)
        return clusters + self.rounds * each_round

    def cluster(
        self, settings: Mapping[str, str] | None = None
    ) -> ClusterOptions:
        """Return the options of a cluster with replicas on a device each."""
        options = super().cluster(settings)
        return options.changed(replicas=_REPLICAS, devices=_REPLICAS)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        """Empty a device of each cluster in turns, and replicate."""
        with contextlib.ExitStack() as stack:
            sites = {}
            for kind in self.kinds:
                # one cluster each: the replicator handles all that it finds
                site = stack.enter_context(stage.site(self.cluster()))
                names = FlatNames(self.rows)
                sites[kind] = (site, base.filled(stage, site, kind, names))
            for turn in range(self.rounds):
                for kind in rotated(self.kinds, turn):
                    yield {**_round(stage, *sites[kind], kind), 'turn': turn}

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return the times until all replicas are complete."""
        return {
            'cases': rounds.compared(figures['rounds']),
            'seconds': rounds.figure_of('seconds'),
            'half': lambda point: half_seconds(point.row['moments']),
            'passes': rounds.figure_of('passes'),
            'idle': rounds.figure_of('idle_seconds'),
            'replicas': _REPLICAS,
            'replicator': REPLICATOR,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        """Return a plot of the rows on the device in the median round."""
        series = []
        by_kind = rounds.grouped(figures['rounds'], rounds.kind_of)
        for kind, own in by_kind.items():
            in_order = sorted(own, key=lambda each: each['seconds'])
            moments = in_order[(len(own) - 1) // 2]['moments']
            series.append(
                Series(
                    kind.label,
                    [each['seconds'] for each in moments],
                    [each['rows'] for each in moments],
                )
            )
        return rounds.plot_if_any(
            'rows',
            'Rows on the device that was emptied',
            series,
            x=Axis('time since the replicator was started (s)'),
            y=Axis('rows'),
            note='The round with the median time.',
        )


def _round(
    stage: Stage, site: Site, container: str, kind: Kind
) -> dict[str, object]:
    """Empty a device, and return how it became complete again."""
    account = site.account.name
    cluster = site.cluster
    with stage.screen.status(f'{kind.label}: a pass with nothing to do'):
        began = time.monotonic()
        cluster.daemon(REPLICATOR)
        idle = time.monotonic() - began
    before = contents(cluster, account, container, kind)
    device = empty_device(cluster, _EMPTIED_NODE)
    with stage.screen.status(f'{kind.label}: replicating'):
        passes, moments = converge(cluster, device, before)
    # the other replicas must not have changed, either
    after = contents(cluster, account, container, kind)
    rows = sum(
        each.rows
        for path, each in after.items()
        if path.is_relative_to(device)
    )
    stage.screen.line(
        f'{kind.label}: {number(rows)} rows replicated in '
        f'{figure(moments[-1]["seconds"])} s, passes: {passes}'
    )
    return {
        'kind': kind.as_json(),
        'rows': rows,
        'idle_seconds': round(idle, 3),
        'seconds': moments[-1]['seconds'],
        'passes': passes,
        'moments': moments,
    }


def half_seconds(moments: Sequence[Mapping]) -> float | None:
    """Return when half of all rows were there, at the latest. Pure.

    :param moments: the last one has all rows
    """
    if not moments:
        return None
    half = moments[-1]['rows'] / 2
    return next(each['seconds'] for each in moments if each['rows'] >= half)
