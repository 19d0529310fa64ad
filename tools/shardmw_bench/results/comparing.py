# SPDX-License-Identifier: Apache-2.0
"""Rows of tables that compare runs, and their cells. Pure.

A table has a row for each kind of container under each set of conditions.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from shardmw_bench.kinds import PLAIN, Kind
from shardmw_bench.results.figures import Interval, ratio_interval
from shardmw_bench.results.runs import Run
from shardmw_bench.tables import number

_MISSING = '—'

# The confidence that few rounds do not reach.
_CONFIDENCE = 0.95

#: A figure of a run; None if it is not known.
Value = Callable[[Run], float | None]


@dataclass(frozen=True)
class Row:
    """The runs of one kind of container under the same conditions.

    :param runs: one for each round
    :param base: the runs of the kind that it is compared with, if any
    """

    work: str
    kind: Kind
    conditions: Mapping[str, object]
    runs: Sequence[Run]
    base: Sequence[Run] = ()

    def median(self, value: Value) -> float | None:
        """Return the median of the rounds, if it is known."""
        known = [each for each in map(value, self.runs) if each is not None]
        return statistics.median(known) if known else None

    def ratio(self, value: Value) -> Interval | None:
        """Return the ratio to the base, round by round, if it is known."""
        bases = {run.turn: value(run) for run in self.base}
        return ratio_interval(
            (value(run), bases[run.turn])
            for run in self.runs
            if run.turn in bases
        )

    @property
    def errors(self) -> dict[str, int]:
        counts = (Counter(run.summary.errors) for run in self.runs)
        return dict(sum(counts, Counter()))

    @property
    def refused(self) -> int:
        return sum(run.summary.refused for run in self.runs)


def rows_of(runs: Iterable[Run], base: Kind | None = PLAIN) -> list[Row]:
    """Return rows by their conditions and kinds, compared with a base."""
    groups: dict[tuple, dict[Kind, list[Run]]] = {}
    for run in runs:
        conditions = (run.work, *sorted(run.conditions.items()))
        groups.setdefault(conditions, {}).setdefault(run.kind, []).append(run)
    return [
        Row(
            own[0].work,
            kind,
            own[0].conditions,
            own,
            () if kind == base else by_kind.get(base, ()),
        )
        for by_kind in groups.values()
        for kind, own in sorted(
            by_kind.items(), key=lambda item: item[0].order
        )
    ]


def ratio_text(interval: Interval | None) -> str:
    return _MISSING if interval is None else number(interval.median, 2)


def interval_text(interval: Interval | None) -> str:
    """Return an interval as a cell, with its confidence if that is low."""
    if interval is None or not interval.confidence:
        return _MISSING
    text = f'{number(interval.low, 2)} to {number(interval.high, 2)}'
    if interval.confidence < _CONFIDENCE:
        text += f' ({interval.confidence:.0%})'
    return text


#: Figures of a run: see :class:`shardmw_bench.results.runs.Run`.
rate: Value = attrgetter('rate')
operations_rate: Value = attrgetter('operations_rate')
bandwidth: Value = attrgetter('bandwidth')
processor: Value = attrgetter('processor_ms')


def latency_of(name: str) -> Value:
    """Return a figure of the latency, such as ``p50_ms``."""
    return attrgetter(f'summary.latency.{name}')


def phase(name: str, what: str) -> Value:
    """Return a figure of a phase: ``response`` and ``mean_ms``."""

    def value(run: Run) -> float | None:
        found = run.summary.phases.get(name)
        return None if found is None else getattr(found, what)

    return value


#: The mean and the quantiles of the latency.
LATENCIES = [
    latency_of(f'{name}_ms') for name in ('mean', 'p50', 'p95', 'p99')
]
