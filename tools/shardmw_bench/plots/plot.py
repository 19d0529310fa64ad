# SPDX-License-Identifier: Apache-2.0
"""The content of a plot. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

LINE = 'line'
BARS = 'bars'
DOTS = 'dots'
REFERENCE = 'reference'  #: a goal or a published value: dashed and grey


@dataclass(frozen=True)
class Series:
    """Values with one label.

    Series with the same label look the same, with one entry in the legend.

    :param x: positions; indexes into the axis' ``names`` if it has some
    :param y: values; None interrupts a line
    :param low, high: the ends of an interval around each y
    :param panel: the title of a part of the plot with its own scale
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str = LINE
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    panel: str = ''


@dataclass(frozen=True)
class Axis:
    """An axis.

    :param label: with its unit, such as ``latency (ms)``
    :param log: True for a logarithmic axis, without values of 0 and less
    :param names: of the positions 0, 1, 2, …, for categories
    :param ticks: positions of labels; automatic if empty
    :param sizes: True for labels such as 4K
    :param from_zero: False to show small differences. An axis of bars always
                      begins at 0.
    :param middle: a value in the middle of a logarithmic axis, which then also
                   shows a half and twice of it; 0 for none
    """

    label: str
    log: bool = False
    names: Sequence[str] = ()
    ticks: Sequence[float] = ()
    sizes: bool = False
    from_zero: bool = True
    middle: float = 0


@dataclass(frozen=True)
class Band:
    """A range of the x axis, drawn behind the series."""

    label: str
    begin: float
    end: float


@dataclass(frozen=True)
class Plot:
    """A plot.

    :param name: of lower-case letters, digits and hyphens
    :param note: the text below the plot
    """

    name: str
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series] = ()
    note: str = ''
    bands: Sequence[Band] = ()

    @property
    def is_horizontal(self) -> bool:
        """Return True to draw the x axis from top to bottom.

        It has room for long names, but lines go from left to right.
        """
        return bool(self.x.names) and not any(
            each.style == LINE for each in self.series
        )
