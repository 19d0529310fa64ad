# SPDX-License-Identifier: Apache-2.0
"""``replica-convergence``: how long replication takes after a loss."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardmw_saio import ClusterOptions

from shardmw_bench.kinds import Kind
from shardmw_bench.load.stage import Stage, rotated
from shardmw_bench.names import FlatNames
from shardmw_bench.plots.plot import Axis, Plot, Series
from shardmw_bench.replicas import REPLICATOR, contents, converge, empty_device
from shardmw_bench.scenarios import base, rounds
from shardmw_bench.site import Site
from shardmw_bench.tables import figure, number

_REPLICAS = 3
_EMPTIED_NODE = 3


@dataclass(frozen=True)
class ReplicaConvergence(base.ClusterScenario):
    """Time until replicas are complete again after a device was emptied."""

    name = 'replica-convergence'
    minutes = 5
    rows_key = 'rounds'

    rows: int = base.shared('rows', 1_000_000)
    rounds: int = base.shared('rounds', 6)

    def cluster(
        self, settings: Mapping[str, str] | None = None
    ) -> ClusterOptions:
        options = super().cluster(settings)
        return options.changed(replicas=_REPLICAS, devices=_REPLICAS)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
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
        return {
            'cases': rounds.compared(figures['rounds']),
            'figure_of': rounds.figure_of,
            'half': _half_seconds,
            'replicas': _REPLICAS,
            'replicator': REPLICATOR,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        series = []
        by_kind = rounds.grouped(figures['rounds'], rounds.kind_of)
        for kind, own in by_kind.items():
            in_order = sorted(own, key=lambda each: each['seconds'])
            moments = in_order[(len(own) - 1) // 2]['moments']
            x = [each['seconds'] for each in moments]
            y = [each['rows'] for each in moments]
            series.append(Series(kind.label, x, y))
        return rounds.plot_if_any(
            *('rows', 'Rows on the device that was emptied', series),
            x=Axis('time since the replicator was started (s)'),
            y=Axis('rows'),
            note='The round with the median time.',
        )


def _round(
    stage: Stage, site: Site, container: str, kind: Kind
) -> dict[str, object]:
    """Empty a device, and return how it became complete again."""
    account, cluster = site.account.name, site.cluster
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


def _half_seconds(point: rounds.Point) -> float | None:
    """Return when half of all rows were there, at the latest."""
    moments = point.row['moments']
    half = moments[-1]['rows'] / 2 if moments else 0
    return next((m['seconds'] for m in moments if m['rows'] >= half), None)
