# SPDX-License-Identifier: Apache-2.0
"""Figures of several rounds, for tables and plots. Pure.

A row is a measurement of a kind of container in a round, as a mapping. As a
:class:`Point`, it is compared like a run: see
:mod:`shardmw_bench.results.comparing`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from shardmw_bench.kinds import Kind
from shardmw_bench.plots.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw_bench.results.comparing import Row, Value, rows_of
from shardmw_bench.results.figures import Interval, median_interval

K = TypeVar('K', bound=Hashable)
T = TypeVar('T')


class Point(NamedTuple):
    """A row in the form of a run.

    :param turn: the number of the round
    :param row: the whole row
    """

    work: str
    kind: Kind
    turn: int
    conditions: Mapping[str, object]
    row: Mapping[str, object]


def kind_of(row: Mapping) -> Kind:
    return Kind.from_json(row['kind'])


def compared(rows: Iterable[Mapping], *conditions: str) -> list[Row]:
    """Return the rows of each kind under each set of conditions.

    :param rows: with a ``kind``, and a ``turn`` if there are several rounds
    :param conditions: names in a row
    """
    return rows_of(
        Point(
            '',
            kind_of(row),
            row.get('turn', 0),
            {name: row[name] for name in conditions},
            row,
        )
        for row in rows
    )


def figure_of(name: str, divisor: float = 1) -> Value:
    """Return a function that returns a figure of a point."""

    def value(point: Point) -> float | None:
        found = point.row[name]
        return None if found is None else found / divisor

    return value


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the rows of each key, in the order in which keys first occur."""
    found: dict[K, list[T]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def median(row: Row, value: Value) -> Interval | None:
    """Return the median of the rounds and its interval, if it is known."""
    known = [each for each in map(value, row.runs) if each is not None]
    return median_interval(known) if known else None


def plot_by_kind(
    name: str,
    title: str,
    rows: Sequence[Row],
    label: Callable[[Row], str],
    value: Value,
    y: Axis,
    style: str = LINE,
    levels: Mapping[str, float] | None = None,
    x_label: str = 'container',
) -> list[Plot]:
    """Return a plot of medians by the kind of container, if there are any.

    :param label: returns the label of the series of a row
    :param levels: the values of horizontal lines
    """
    found = [row for row in rows if median(row, value)]
    kinds = sorted({row.kind for row in found}, key=lambda kind: kind.order)
    series = []
    for text, own in grouped(found, label).items():
        own = sorted(own, key=lambda row: row.kind.order)
        x = [kinds.index(row.kind) for row in own]
        intervals = [median(row, value) for row in own]
        middle, low, high, _ = map(list, zip(*intervals, strict=True))
        series.append(Series(text, x, middle, style, low, high))
    ends = (0, len(kinds) - 1)
    for text, level in (levels or {}).items():
        series.append(Series(text, ends, (level, level), REFERENCE))
    x = Axis(x_label, names=[kind.label for kind in kinds])
    note = 'Medians of the rounds, with their intervals.'
    return plot_if_any(name, title, series, x=x, y=y, note=note)


def plot_if_any(
    name: str, title: str, series: Sequence[Series], **also: object
) -> list[Plot]:
    """Return a plot, or nothing if only reference lines have points."""
    shown = [each for each in series if each.x]
    if all(each.style == REFERENCE for each in shown):
        return []
    return [Plot(name, title, series=shown, **also)]
