# SPDX-License-Identifier: Apache-2.0
"""``container-growth``: the time of a write as a container grows."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from shardmw_bench.load.sources import NamedUploads
from shardmw_bench.load.stage import Ledger, Stage, rotated
from shardmw_bench.names import FlatNames, ScatteredNames
from shardmw_bench.options import COUNT, option, several
from shardmw_bench.plots.plot import REFERENCE, Plot, Series
from shardmw_bench.plots.runs import LATENCIES, by_condition
from shardmw_bench.results import comparing as c
from shardmw_bench.results.runs import Run, runs_of
from shardmw_bench.scenarios import base, rounds
from shardmw_bench.tables import figure, number

# Published for one container: a row count, and the means below and above it.
_SPLIT_ROWS = 1_600_000
_PUBLISHED_MS = 12.58, 13.29

# Databases are halfway between two merges of their pending files.
_PHASE = 0.5


@dataclass(frozen=True)
class ContainerGrowth(base.LoadScenario):
    """Mean write time as a container grows, one container and many."""

    name = 'container-growth'
    minutes = 16
    published = (
        'Published, of one container: a mean write time of 12.58 ms below '
        '1.6 million objects, and of 13.29 ms above.'
    )

    rows: tuple[int, ...] = option(
        (
            *(100_000, 400_000, 800_000, 1_600_000),
            *(2_400_000, 4_000_000, 7_000_000, 10_000_000),
        ),
        several('counts', COUNT),
        'Rows in the container at each step, ascending.',
    )
    clients: int = base.shared('clients', 1)
    size: int = base.shared('size', 1)

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        kinds = self.kinds
        loads = len(self.rows) * self.rounds * len(kinds)
        ledger = Ledger(stage, keep, loads, preloads=[])
        with stage.site(self.cluster()) as site:
            containers = {kind: site.make(kind) for kind in kinds}
            for container in containers.values():
                site.prepare(container, True, _PHASE)
            for before, rows in pairwise((0, *sorted(self.rows))):
                for kind, container in containers.items():
                    text = f'{kind.label}: {number(before)} to {number(rows)}'
                    began = time.monotonic()
                    with stage.screen.status(f'{text} rows'):
                        site.fill(container, kind, FlatNames(rows), before)
                    took = round(time.monotonic() - began, 3)
                    stage.screen.line(f'{text} rows took {figure(took)} s')
                    filled = {'before': before, 'rows': rows, 'seconds': took}
                    filled['kind'] = kind.as_json()
                    ledger.figures['preloads'].append(filled)
                    keep(ledger.figures)
                for turn in range(self.rounds):
                    names = ScatteredNames(FlatNames(rows), f'{rows}-{turn}')
                    for kind in rotated(kinds, turn):
                        path = site.container_path(containers[kind])
                        load = site.load(
                            NamedUploads(path, names, size=self.size),
                            self.clients,
                            seconds=self.seconds,
                        )
                        ledger.measure(load, 'write', kind, turn, rows=rows)
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        runs = runs_of(figures)
        means = [('published, one container', *_PUBLISHED_MS)]
        for kind in self.kinds:
            parts = ([], [])
            for run in runs:
                if run.kind == kind:
                    parts[run.conditions['rows'] >= _SPLIT_ROWS].append(run)
            means.append((f'here, {kind.label}', *map(_mean_of, parts)))
        return {
            'writes': c.rows_of(runs),
            'runs': runs,
            'means': means,
            'preloads': figures['preloads'],
            'kind_of': rounds.kind_of,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        runs = runs_of(figures)
        rows = [run.conditions['rows'] for run in runs]
        return [
            _with_published(plot, min(rows), max(rows))
            if plot.y.label.startswith('mean')
            else plot
            for plot in by_condition(runs, 'rows', *LATENCIES)
        ]


def _mean_of(runs: Iterable[Run]) -> float | None:
    """Return the mean milliseconds of all operations of some runs."""
    known = [run.summary for run in runs if run.summary.histogram.total]
    if not known:
        return None
    means = [each.latency.mean_ms for each in known]
    return np.average(means, weights=[each.histogram.total for each in known])


def _with_published(plot: Plot, fewest: int, most: int) -> Plot:
    """Add the published means where the plot has rows."""
    below, above = _PUBLISHED_MS
    x, y = [], []
    if fewest < _SPLIT_ROWS:
        x, y = [fewest, min(most, _SPLIT_ROWS)], [below] * 2
    if most > _SPLIT_ROWS:
        x += [max(fewest, _SPLIT_ROWS), most]
        y += [above] * 2
    published = Series('published mean, one container', x, y, REFERENCE)
    return replace(plot, series=(*plot.series, published))
