# SPDX-License-Identifier: Apache-2.0
"""The content of a plot; ``drawing`` decides how it looks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

LINE = 'line'  #: points, joined
BARS = 'bars'  #: side by side, one group at each name
DOTS = 'dots'  #: single points
REFERENCE = 'reference'  #: a goal, or what others published: dashed, and grey


@dataclass(frozen=True)
class Series:
    """Values that belong together, as the legend names them.

    Series of the same label look the same, and the legend has it once.

    :param x: positions; indexes into the axis' ``names`` if it has some
    :param y: values; None interrupts a line
    :param low, high: ends of an interval round each y, if there is one
    :param panel: the title of the part of the plot that shows the series;
                  each part has a scale of its own for the values
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str = LINE
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    panel: str = ''

    def __post_init__(self) -> None:
        lengths = {
            len(each)
            for each in (self.x, self.y, self.low, self.high)
            if each is not None
        }
        if len(lengths) > 1:
            raise ValueError(f'{self.label}: as many y as x are needed')


@dataclass(frozen=True)
class Axis:
    """One axis.

    :param label: with its unit, such as ``latency (ms)``
    :param log: True for a logarithmic axis, which shows values above 0 only
    :param names: of the positions 0, 1, 2, …, for categories
    :param ticks: positions of the labels; chosen by the drawing if empty
    :param sizes: True for bytes, with labels such as 4K
    :param from_zero: True to begin at 0; False shows small differences. An
                      axis of bars always begins at 0.
    """

    label: str
    log: bool = False
    names: Sequence[str] = ()
    ticks: Sequence[float] = ()
    sizes: bool = False
    from_zero: bool = True


@dataclass(frozen=True)
class Band:
    """A range of the x axis that the legend names, drawn behind the series.

    Bands of the same label look the same, and the legend has it once.
    """

    label: str
    begin: float
    end: float


@dataclass(frozen=True)
class Plot:
    """A plot.

    :param name: a word for files: lower case, digits and hyphens
    :param note: a sentence or two below the plot
    """

    name: str
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series] = field(default_factory=tuple)
    note: str = ''
    bands: Sequence[Band] = ()

    @property
    def is_horizontal(self) -> bool:
        """Return True if the x axis is drawn from top to bottom.

        Names, which may be long, are then beside each other's rows. Lines
        need an x axis from left to right.
        """
        return bool(self.x.names) and not any(
            each.style == LINE for each in self.series
        )
