# SPDX-License-Identifier: Apache-2.0
"""How long container databases take until all replicas are whole again."""

import contextlib
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.comparing import interval_text, ratio_text
from shardmw.bench.figures import ratio_interval
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.names import FlatNames
from shardmw.bench.options import COUNT, POSITIVE, SHARD_COUNT
from shardmw.bench.parameters import Parameters as _Parameters
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import LINE, Axis, Plot, Series
from shardmw.bench.replicas import (
    REPLICATOR,
    Convergence,
    contents,
    converge,
    empty_device,
)
from shardmw.bench.site import Site
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.turns import rotated
from shardmw.saio import ClusterOptions

NAME = 'replica-convergence'
SUMMARY = 'Time until replicas are whole again after a device was emptied.'
PUBLISHED = ''

_REPLICAS = 3
_EMPTIED_NODE = 3
_THOUSANDTHS = 3


@dataclass(frozen=True)
class Parameters(_Parameters):
    """What it is made with."""

    rows: int = option(1_000_000, COUNT, 'Of each container, in all.')
    shards: int = option(32, SHARD_COUNT, 'Of the other container.')
    rounds: int = option(6, POSITIVE, 'How often a device is emptied.')

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The containers that are compared."""
        return PLAIN, sharded(self.shards)


def measure(stage: Stage, keep) -> dict[str, object]:
    """Empty a device of two clusters in turns, and have it made whole."""
    parameters = stage.parameters
    figures: dict[str, object] = {'runs': [], 'rounds': []}
    with contextlib.ExitStack() as stack:
        sites = {}
        for kind in parameters.kinds:
            # a cluster each: the replicator takes all that it finds
            site = stack.enter_context(
                stage.site(ClusterOptions(replicas=_REPLICAS))
            )
            with stage.screen.status(f'{kind.label}: putting rows there'):
                container = site.make(kind)
                site.fill(container, kind, FlatNames(parameters.rows))
            sites[kind] = (site, container)
        for turn in range(parameters.rounds):
            for kind in rotated(parameters.kinds, turn):
                row = _round(stage, *sites[kind], kind)
                figures['rounds'].append({**row, 'turn': turn})
                keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """How long it took."""
    rounds = figures['rounds']
    rows = [
        _row(kind, own, rounds)
        for kind in parameters.kinds
        if (own := _of(rounds, kind))
    ]
    return [
        Table(
            'Time until all replicas are whole again',
            (
                *('container', 'databases', 'rows in each', 'seconds'),
                *('rounds', 'half of the rows s', 'passes'),
                *('pass with nothing to do s', 'to plain', 'interval'),
            ),
            rows,
            (
                f'{_REPLICAS} replicas of {number(parameters.rows)} rows, on '
                'a device each. One is swapped for an empty one; from then '
                f"on Swift's {REPLICATOR} runs once on each of the nodes, "
                'at the same time, as often as it takes. *Databases*: on '
                'each device, without the root of a sharded container.',
                f'Medians of the rounds ({number(parameters.rounds)}), in '
                'which the two containers take turns. All nodes share a '
                'machine and a disk: a database that is missing as a whole '
                'is copied as a file, without a network between them.',
            ),
        )
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The rows on the device, as they come back: the middle round's."""
    series = []
    for kind in parameters.kinds:
        own = sorted(
            _of(figures['rounds'], kind), key=lambda each: each['seconds']
        )
        if own:
            middle = own[(len(own) - 1) // 2]
            series.append(
                Series(kind.label, *_points(middle['moments']), LINE)
            )
    if not series:
        return []
    return [
        Plot(
            f'{NAME}-rows',
            'Rows on the device that was emptied',
            Axis('time since the replicator was started (s)'),
            Axis('rows'),
            series,
            'The round with the median time.',
        )
    ]


def half_seconds(moments: Sequence[Mapping]) -> float | None:
    """When half of all rows were there, at the latest. Pure.

    :param moments: the last one has all of them
    """
    if not moments:
        return None
    half = moments[-1]['rows'] / 2
    return next(each['seconds'] for each in moments if each['rows'] >= half)


def _row(
    kind: Kind, own: Sequence[Mapping], rounds: Sequence[Mapping]
) -> tuple[str, ...]:
    times = [each['seconds'] for each in own]
    plain = {each['turn']: each['seconds'] for each in _of(rounds, PLAIN)}
    ratios = None
    if not kind.is_plain:
        ratios = ratio_interval(
            (each['seconds'], plain.get(each['turn'])) for each in own
        )
    halves = [half_seconds(each['moments']) for each in own]
    return (
        kind.label,
        number(kind.parts),
        number(own[0]['rows'] / kind.parts),
        figure(statistics.median(times)),
        f'{figure(min(times))} to {figure(max(times))}',
        figure(statistics.median(filter(None, halves))),
        number(max(each['passes'] for each in own)),
        figure(statistics.median(each['idle_seconds'] for each in own)),
        ratio_text(ratios),
        interval_text(ratios),
    )


def _of(rounds: Sequence[Mapping], kind: Kind) -> list[Mapping]:
    return [each for each in rounds if Kind.from_json(each['kind']) == kind]


def _points(moments: Sequence[Mapping]) -> tuple[list[float], list[int]]:
    """The moments as a line: a database comes as a whole."""
    return (
        [each['seconds'] for each in moments],
        [each['rows'] for each in moments],
    )


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
    with stage.screen.status(f'{kind.label}: making replicas whole'):
        converged = converge(cluster, device, before)
    # the others have to be what they were, too
    after = contents(cluster, account, container, kind)
    rows = sum(
        each.rows
        for path, each in after.items()
        if path.is_relative_to(device)
    )
    stage.screen.line(
        f'{kind.label}: {number(rows)} rows whole after '
        f'{figure(converged.seconds)} s, passes: {converged.passes}'
    )
    return {
        'kind': kind.as_json(),
        'rows': rows,
        'idle_seconds': round(idle, _THOUSANDTHS),
        **_convergence_json(converged),
    }


def _convergence_json(converged: Convergence) -> dict[str, object]:
    return {
        'seconds': round(converged.seconds, _THOUSANDTHS),
        'passes': converged.passes,
        'moments': [each._asdict() for each in converged.moments],
    }
