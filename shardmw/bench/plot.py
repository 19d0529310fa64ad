# SPDX-License-Identifier: Apache-2.0
"""What a plot shows; how it is drawn is decided elsewhere. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

LINE = 'line'  #: points, joined
STEPS = 'steps'  #: each value from its x to the next one's, as a histogram
BARS = 'bars'  #: side by side, one group at each x
DOTS = 'dots'  #: single points, as of single operations
STROKES = 'strokes'  #: across the bars of another series: a second value
REFERENCE = 'reference'  #: what others published: dashed, and grey


@dataclass(frozen=True)
class Series:
    """Values that belong together, as the legend names them.

    Series of the same label look the same, and the legend has it once.

    :param x: positions; of bars indexes into the axis' ``names``
    :param low, high: ends of an interval round each y, if there is one
    :param beside: the label of the bars that strokes belong to
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = LINE
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    beside: str = ''

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
    :param log: logarithmic; its values are then above 0
    :param names: of the positions 0, 1, 2, …, for categories
    :param ticks: where to put the labels; the plot chooses if there are none
    :param sizes: its values are bytes, and its labels say 4K
    :param from_zero: values above 0 have an axis that begins there; take this
                      off to see small differences; bars always have it
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
    :param note: what it doesn't tell; a sentence or two below it
    """

    name: str
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series] = field(default_factory=tuple)
    note: str = ''
    bands: Sequence[Band] = ()
