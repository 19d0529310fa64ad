# SPDX-License-Identifier: Apache-2.0
"""``replica-convergence``: how long replication takes after a loss."""

import contextlib
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.load.stage import Stage
from shardmw.bench.load.turns import rotated
from shardmw.bench.names import FlatNames
from shardmw.bench.plots.plot import Axis, Plot, Series
from shardmw.bench.replicas import (
    REPLICATOR,
    contents,
    converge,
    empty_device,
)
from shardmw.bench.results.comparing import interval_text, ratio_text
from shardmw.bench.scenarios import Figures, Keep, Scenario, grouping
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number

NAME = 'replica-convergence'

_REPLICAS = 3
_EMPTIED_NODE = 3


@dataclass(frozen=True)
class Parameters(shared.ClusterParameters):
    """The options of the scenario."""

    rows: int = shared.rows_option(1_000_000)
    rounds: int = shared.rounds_option(6)


def measure(stage: Stage, keep: Keep) -> Figures:
    """Empty a device of each cluster in turns, and replicate."""
    parameters = stage.parameters
    figures: dict[str, object] = {'runs': [], 'rounds': []}
    options = parameters.cluster().changed(replicas=_REPLICAS)
    with contextlib.ExitStack() as stack:
        sites = {}
        for kind in parameters.kinds:
            # one cluster each: the replicator handles all that it finds
            site = stack.enter_context(stage.site(options))
            with stage.screen.status(f'{kind.label}: writing rows'):
                container = site.make(kind)
                site.fill(container, kind, FlatNames(parameters.rows))
            sites[kind] = (site, container)
        for turn in range(parameters.rounds):
            for kind in rotated(parameters.kinds, turn):
                row = _round(stage, *sites[kind], kind)
                figures['rounds'].append({**row, 'turn': turn})
                keep(figures)
    return figures


def _round(
    stage: Stage, site: Site, container: str, kind: Kind
) -> dict[str, object]:
    account = site.account.name
    cluster = site.cluster
    with stage.screen.status(f'{kind.label}: a pass with nothing to do'):
        began = time.monotonic()
        cluster.daemon(REPLICATOR)
        idle = time.monotonic() - began
    before = contents(cluster, account, container, kind)
    device = empty_device(cluster, _EMPTIED_NODE)
    with stage.screen.status(f'{kind.label}: replicating'):
        converged = converge(cluster, device, before)
    # the other replicas must not have changed, either
    after = contents(cluster, account, container, kind)
    rows = sum(
        each.rows
        for path, each in after.items()
        if path.is_relative_to(device)
    )
    stage.screen.line(
        f'{kind.label}: {number(rows)} rows replicated in '
        f'{figure(converged.seconds)} s, passes: {converged.passes}'
    )
    return {
        'kind': kind.as_json(),
        'rows': rows,
        'idle_seconds': round(idle, 3),
        'seconds': round(converged.seconds, 3),
        'passes': converged.passes,
        'moments': [each._asdict() for each in converged.moments],
    }


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the times until all replicas are complete."""
    by_kind = grouping.grouped(figures['rounds'], grouping.kind_of)
    return [
        Table(
            'Time until all replicas are complete again',
            (
                *('container', 'databases', 'rows in each', 'seconds'),
                *('rounds', 'half of the rows s', 'passes'),
                *('pass with nothing to do s', 'to plain', 'interval'),
            ),
            [
                _row(kind, by_kind[kind], by_kind.get(PLAIN, []))
                for kind in parameters.kinds
                if kind in by_kind
            ],
            (
                f'{_REPLICAS} replicas of {number(parameters.rows)} rows, on '
                'a device each. One device is replaced by an empty one. Then '
                f"Swift's {REPLICATOR} runs once on each of the nodes, at "
                'the same time, as often as it takes. *Databases*: on each '
                'device, without the root of a sharded container.',
                f'Medians of the rounds ({number(parameters.rounds)}), in '
                'which the containers take turns. All nodes share a machine '
                'and a disk. A missing database is copied as a file, without '
                'a network between the nodes.',
            ),
        )
    ]


def _row(
    kind: Kind, own: Sequence[Mapping], base: Sequence[Mapping]
) -> tuple[str, ...]:
    times = [each['seconds'] for each in own]
    ratios = grouping.ratio_to(own, base, 'seconds')
    halves = filter(None, (half_seconds(each['moments']) for each in own))
    return (
        kind.label,
        number(kind.parts),
        number(own[0]['rows'] / kind.parts),
        figure(statistics.median(times)),
        f'{figure(min(times))} to {figure(max(times))}',
        figure(statistics.median(halves)),
        number(max(each['passes'] for each in own)),
        figure(statistics.median(each['idle_seconds'] for each in own)),
        ratio_text(ratios),
        interval_text(ratios),
    )


def half_seconds(moments: Sequence[Mapping]) -> float | None:
    """Return when half of all rows were there, at the latest. Pure.

    :param moments: the last one has all rows
    """
    if not moments:
        return None
    half = moments[-1]['rows'] / 2
    return next(each['seconds'] for each in moments if each['rows'] >= half)


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return a plot of the rows on the device in the median round."""
    series = []
    for kind, own in grouping.grouped(
        figures['rounds'], grouping.kind_of
    ).items():
        in_order = sorted(own, key=lambda each: each['seconds'])
        moments = in_order[(len(own) - 1) // 2]['moments']
        series.append(
            Series(
                kind.label,
                [each['seconds'] for each in moments],
                [each['rows'] for each in moments],
            )
        )
    return grouping.plot_if_any(
        f'{NAME}-rows',
        'Rows on the device that was emptied',
        series,
        x=Axis('time since the replicator was started (s)'),
        y=Axis('rows'),
        note='The round with the median time.',
    )


def _seconds(parameters: Parameters) -> float:
    rows = _REPLICAS * parameters.rows / shared.ROWS_PER_SECOND
    databases = sum(kind.parts for kind in parameters.kinds)
    rounds = parameters.rounds * (10 * len(parameters.kinds) + databases / 4)
    return len(parameters.kinds) * (2 * shared.CLUSTER_SECONDS + rows) + rounds


SUMMARY = 'Time until replicas are complete again after a device was emptied.'

SCENARIOS = [
    Scenario(NAME, SUMMARY, Parameters, measure, tables, plots, _seconds)
]
