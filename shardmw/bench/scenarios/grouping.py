# SPDX-License-Identifier: Apache-2.0
"""Figures of several rounds for tables and plots. Pure."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from shardmw.bench.kinds import Kind
from shardmw.bench.plots.plot import LINE, REFERENCE, Plot, Series
from shardmw.bench.results.figures import (
    Interval,
    median_interval,
    ratio_interval,
)
from shardmw.bench.tables import figure

K = TypeVar('K', bound=Hashable)
T = TypeVar('T')

MISSING = '—'

MEDIANS_NOTE = 'Medians of the rounds, with their intervals.'


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the rows of each key, in the order in which keys first occur."""
    found: dict[K, list[T]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def kind_of(row: Mapping) -> Kind:
    """Return the kind of container that a row is of."""
    return Kind.from_json(row['kind'])


def median_text(interval: Interval | None, with_interval: bool = True) -> str:
    """Return a median for a cell, followed by its interval if it has one."""
    if interval is None:
        return MISSING
    text = figure(interval.median)
    if with_interval and interval.confidence:
        text += f' ({figure(interval.low)} to {figure(interval.high)})'
    return text


def ratio_to(
    own: Sequence[Mapping], base: Sequence[Mapping], name: str
) -> Interval | None:
    """Return the ratio of a figure to that of a base in the same round.

    :returns: None if no round has both, or if the base is compared with
              itself
    """
    by_turn = {each['turn']: each[name] for each in base}
    if own == base:
        return None
    return ratio_interval(
        (each[name], by_turn.get(each['turn'])) for each in own
    )


def median_series(
    label: str, values: Mapping[float, Iterable[float]], style: str = LINE
) -> Series:
    """Return the median of the rounds at each x, with its interval."""
    known = {x: own for x, some in values.items() if (own := list(some))}
    found = {x: median_interval(own) for x, own in sorted(known.items())}
    return Series(
        label,
        list(found),
        [each.median for each in found.values()],
        style,
        [each.low for each in found.values()],
        [each.high for each in found.values()],
    )


def level(label: str, x: Sequence[float], y: float) -> Series:
    """Return a horizontal line from the first x to the last."""
    return Series(label, (x[0], x[-1]), (y, y), REFERENCE)


def plot_if_any(
    name: str, title: str, series: Sequence[Series], **also: object
) -> list[Plot]:
    """Return a plot, or nothing if only reference lines have points."""
    shown = [each for each in series if each.x]
    if all(each.style == REFERENCE for each in shown):
        return []
    return [Plot(name, title, series=shown, **also)]
