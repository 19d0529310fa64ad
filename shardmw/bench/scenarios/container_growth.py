# SPDX-License-Identifier: Apache-2.0
"""``container-growth``: the time of a write as a container grows."""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shardmw.bench.kinds import Kind
from shardmw.bench.load.sources import NamedUploads
from shardmw.bench.load.stage import Ledger, Stage, rotated
from shardmw.bench.names import FlatNames, ScatteredNames
from shardmw.bench.options import Parsed, listed
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import REFERENCE, Plot, Series
from shardmw.bench.plots.runs import LATENCIES, by_condition
from shardmw.bench.results import comparing as c
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.scenarios import base, rounds
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, number
from shardmw.bench.units import parse_count

# Published for one container: a row count, and the means below and above it.
_SPLIT_ROWS = 1_600_000
_PUBLISHED_MS = 12.58, 13.29

# Databases are halfway between two merges of their pending files.
_PHASE = 0.5


def parse_rows(text: str) -> tuple[int, ...]:
    """Return counts in ascending order, such as ``100K,1M,10M``. Pure.

    :raises ValueError: if the text is something else
    """
    rows = tuple(map(parse_count, text.split(',')))
    if list(rows) != sorted(set(rows)):
        raise ValueError(f'{text!r}: write each count once, ascending')
    return rows


_ROWS = Parsed('counts', parse_rows, lambda rows: listed(rows, '{:d}'.format))


@dataclass(frozen=True)
class ContainerGrowth(base.LoadScenario):
    """Mean write time as a container grows, one container and many."""

    name = 'container-growth'
    published = (
        'Published, of one container: a mean write time of 12.58 ms below '
        '1.6 million objects, and of 13.29 ms above.'
    )

    rows: tuple[int, ...] = option(
        (
            *(100_000, 400_000, 800_000, 1_600_000),
            *(2_400_000, 4_000_000, 7_000_000, 10_000_000),
        ),
        _ROWS,
        'Rows in the container at each step, ascending.',
    )
    clients: int = base.shared('clients', 1)
    size: int = base.shared('size', 1)

    @property
    def expected_seconds(self) -> float:
        loads = len(self.rows) * len(self.kinds)
        rows = len(self.kinds) * max(self.rows)
        return self.seconds_of(loads) + rows / base.ROWS_PER_SECOND

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        """Fill the containers step by step, and write to them at each step."""
        kinds = self.kinds
        loads = len(self.rows) * self.rounds * len(kinds)
        ledger = Ledger(stage, keep, loads, preloads=[])
        with stage.site(self.cluster()) as site:
            containers = {kind: site.make(kind) for kind in kinds}
            for container in containers.values():
                site.prepare(container, True, _PHASE)
            for before, rows in zip((0, *self.rows), self.rows, strict=False):
                for kind, container in containers.items():
                    filled = _fill(stage, site, container, kind, before, rows)
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
        """Return latencies by rows, the published ones, and preloads."""
        runs = runs_of(figures)
        means = [('published, one container', *_PUBLISHED_MS)]
        for kind in self.kinds:
            parts = ([], [])
            for run in runs:
                if run.kind == kind:
                    parts[run.conditions['rows'] >= _SPLIT_ROWS].append(run)
            means.append((f'here, {kind.label}', *map(mean_of, parts)))
        return {
            'writes': c.rows_of(runs),
            'runs': runs,
            'latencies': [
                c.latency_of(f'{name}_ms')
                for name in ('mean', 'p50', 'p95', 'p99')
            ],
            'means': means,
            'preloads': figures['preloads'],
            'kind_of': rounds.kind_of,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        """Return plots of means and medians, with the published means."""
        runs = runs_of(figures)
        rows = [run.conditions['rows'] for run in runs]
        return [
            _with_published(plot, min(rows), max(rows))
            if plot.y.label.startswith('mean')
            else plot
            for plot in by_condition(runs, 'rows', *LATENCIES)
        ]


def _fill(
    stage: Stage,
    site: Site,
    container: str,
    kind: Kind,
    before: int,
    rows: int,
) -> dict[str, object]:
    """Put rows into the databases, and return how long that took."""
    text = f'{kind.label}: {number(before)} to {number(rows)} rows'
    began = time.monotonic()
    with stage.screen.status(text):
        site.fill(container, kind, FlatNames(rows), before)
    took = round(time.monotonic() - began, 3)
    stage.screen.line(f'{text}: written to the database in {figure(took)} s')
    return {
        'kind': kind.as_json(),
        'before': before,
        'rows': rows,
        'seconds': took,
    }


def mean_of(runs: Iterable[Run]) -> float | None:
    """Return the mean milliseconds of all operations of some runs. Pure."""
    known = [
        (run.summary.latency.mean_ms, run.summary.histogram.total)
        for run in runs
        if run.summary.histogram.total
    ]
    if not known:
        return None
    total = math.fsum(mean * count for mean, count in known)
    return total / sum(count for _, count in known)


def _with_published(plot: Plot, fewest: int, most: int) -> Plot:
    """Add the published means where the plot has rows."""
    below, above = _PUBLISHED_MS
    x, y = [], []
    if fewest < _SPLIT_ROWS:
        x += [fewest, min(most, _SPLIT_ROWS)]
        y += [below] * 2
    if most > _SPLIT_ROWS:
        x += [max(fewest, _SPLIT_ROWS), most]
        y += [above] * 2
    published = Series('published mean, one container', x, y, REFERENCE)
    return replace(plot, series=(*plot.series, published))
