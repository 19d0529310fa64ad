# SPDX-License-Identifier: Apache-2.0
"""Tables of runs that differ in the container and in conditions. Pure.

A table has a row for each kind of container under each set of conditions,
and columns that are functions of it::

    rows = rows_of(runs)
    table('Rates', rows, [CONTAINER, condition('size'), RATE, *RATE_RATIO])
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.results.figures import Interval, ratio_interval
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import errors_text
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.words import head, value_text

_MISSING = '—'

#: What an interval should have, and with few rounds has not.
CONFIDENCE = 0.95

#: A figure of a run, None if it has none.
Value = Callable[[Run], float | None]


@dataclass(frozen=True)
class Row:
    """Runs of one kind of container under the same conditions.

    :param runs: one for each round
    :param base: those of the kind that it is compared with, likewise; empty
                 for that kind itself, and if there are none
    """

    work: str
    kind: Kind
    conditions: Mapping[str, object]
    runs: Sequence[Run]
    base: Sequence[Run] = ()

    def median(self, value: Value) -> float | None:
        """The median of the rounds; None if no run has the figure."""
        known = [each for each in map(value, self.runs) if each is not None]
        return statistics.median(known) if known else None

    def ratio(self, value: Value) -> Interval | None:
        """By how much it differs from the base, round by round."""
        bases = {run.turn: value(run) for run in self.base}
        return ratio_interval(
            (value(run), bases[run.turn])
            for run in self.runs
            if run.turn in bases
        )

    @property
    def errors(self) -> dict[str, int]:
        """Of all rounds."""
        counts = (Counter(run.summary.errors) for run in self.runs)
        return dict(sum(counts, Counter()))


class Column(NamedTuple):
    """A column of a table.

    :param is_words: whether it stands at the left, with words
    """

    head: str
    cell: Callable[[Row], str]
    is_words: bool = False


def rows_of(runs: Iterable[Run], base: Kind | None = PLAIN) -> list[Row]:
    """Rows, in the order in which their conditions and kinds first came.

    :param base: what the others are compared with
    """
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


def table(
    title: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    notes: Sequence[str] = (),
) -> Table:
    """A table of rows; columns of words have to come first."""
    return Table(
        title,
        [column.head for column in columns],
        [[column.cell(row) for column in columns] for row in rows],
        notes,
        names=sum(column.is_words for column in columns),
    )


def condition(name: str) -> Column:
    """The column of a condition."""
    return Column(
        head(name),
        lambda row: value_text(name, row.conditions.get(name)),
        is_words=True,
    )


def median_of(title: str, value: Value) -> Column:
    """The medians of a figure."""
    return Column(title, lambda row: figure(row.median(value)))


def ratios(title: str, value: Value) -> tuple[Column, Column]:
    """The ratios of a figure to the base's, and their interval."""
    return (
        Column(title, lambda row: ratio_text(row.ratio(value))),
        Column('95 % interval', lambda row: interval_text(row.ratio(value))),
    )


def ratio_text(interval: Interval | None) -> str:
    """The median of ratios as a cell."""
    return _MISSING if interval is None else number(interval.median, 2)


def interval_text(interval: Interval | None) -> str:
    """An interval as a cell; its confidence if it's less than asked for."""
    if interval is None or not interval.confidence:
        return _MISSING
    text = f'{number(interval.low, 2)} to {number(interval.high, 2)}'
    if interval.confidence < CONFIDENCE:
        text += f' ({interval.confidence:.0%})'
    return text


#: Figures of a run, as :class:`shardmw.bench.results.runs.Run` has them.
rate: Value = attrgetter('rate')
bandwidth: Value = attrgetter('bandwidth')
processor: Value = attrgetter('processor_ms')


def latency_of(name: str) -> Value:
    """Return a figure of the latency, such as ``p50_ms``."""
    return attrgetter(f'summary.latency.{name}')


def phase(name: str, what: str) -> Value:
    """A figure of a phase, such as ``response`` and ``trimmed_mean_ms``."""

    def value(run: Run) -> float | None:
        found = run.summary.phases.get(name)
        return None if found is None else getattr(found, what)

    return value


WORK = Column('work', lambda row: row.work, is_words=True)
CONTAINER = Column('container', lambda row: row.kind.label, is_words=True)
RATE = median_of('ops/s', rate)
ROWS_RATE = median_of('rows/s', rate)
BANDWIDTH = median_of('MB/s', bandwidth)
MEAN = median_of('mean ms', latency_of('mean_ms'))
P50 = median_of('p50 ms', latency_of('p50_ms'))
P95 = median_of('p95 ms', latency_of('p95_ms'))
P99 = median_of('p99 ms', latency_of('p99_ms'))
LATENCIES = (MEAN, P50, P95, P99)
RATE_RATIO = ratios('rate to plain', rate)
PROCESSOR = median_of('processor ms', processor)
PROCESSOR_RATIO = ratios('processor to plain', processor)
MEAN_RATIO = ratios('mean to plain', latency_of('mean_ms'))
P99_RATIO = ratios('p99 to plain', latency_of('p99_ms'))
REFUSED = Column(
    'refused',
    lambda row: number(sum(run.summary.refused for run in row.runs)),
)
ERRORS = Column('errors', lambda row: errors_text(row.errors))


#: What the columns of processor time say.
PROCESSOR_NOTE = (
    '*Processor*: user and system time of all server processes, with their '
    'workers and memcached, for each request that was sent.'
)


def knows_processor(runs: Iterable[Run]) -> bool:
    """Return True if the servers' processor time of some run is known."""
    return any(run.processor_ms is not None for run in runs)


def phase_columns(name: str) -> list[Column]:
    """A phase's times, with outliers and without."""
    whole, trimmed = phase(name, 'mean_ms'), phase(name, 'trimmed_mean_ms')
    return [
        median_of(f'{name} ms', whole),
        median_of('trimmed', trimmed),
    ]


def phases_table(
    title: str, rows: Sequence[Row], leading: Sequence[Column]
) -> Table:
    """The means of all phases: the request, the response, the transfer."""
    columns = [
        column
        for name in ('request', 'response', 'transfer', 'total')
        for column in phase_columns(name)
    ]
    return table(title, rows, [*leading, *columns], (PHASES_NOTE,))


PHASES_NOTE = (
    'Means. *Request*: until it was handed to the network; *response*: from '
    'then on to the first byte of the answer; *transfer*: from then on to its '
    "last byte. *Trimmed*: without outliers, which lie beyond Tukey's fences "
    '(1.5 times the distance between the quartiles).'
)


def rounds_note(runs: Sequence[Run]) -> str:
    """How often, and how what's compared was paired."""
    turns = {run.turn for run in runs}
    if len(turns) < 2:
        return 'One round: ratios of it have no interval.'
    return (
        f'Medians of {len(turns)} rounds. In a round each container has its '
        'turn, in an order that rotates; ratios are those of one round, and '
        'their interval is that of their median.'
    )


def warnings(runs: Sequence[Run]) -> list[str]:
    """What makes the figures doubtful."""
    bound = sum(run.summary.is_client_bound for run in runs)
    nothing = [run.summary for run in runs if not run.summary.admitted]
    silent = sum(not (each.errors or each.refused) for each in nothing)
    problems = {
        'the clients were at their limit: those measured the clients, or a '
        'machine with other work.': bound,
        'nothing was admitted in time: there are no latencies of them. Make '
        'them longer.': silent,
        'nothing was admitted: all was refused or failed, so there are no '
        'latencies of them.': len(nothing) - silent,
    }
    return [
        f'In {count} of {len(runs)} loads {problem}'
        for problem, count in problems.items()
        if count
    ]
