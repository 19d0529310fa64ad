# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, drawn by matplotlib."""

import io
import math
import re
import textwrap
from collections.abc import Sequence

import matplotlib.style
from cycler import cycler
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis as DrawnAxis
from matplotlib.figure import Figure

from shardmw.bench.plots.plot import (
    BARS,
    DOTS,
    LINE,
    REFERENCE,
    Axis,
    Plot,
    Series,
)
from shardmw.bench.tables import figure as three_digits
from shardmw.bench.units import size_text

_INK = '#24292f'
_GREY = '#767676'
# Those of Okabe and Ito, for any colour vision, dark enough for thin lines.
# The first is for the plain container.
_OF_SERIES = (
    *('#37474f', '#0072b2', '#d55e00', '#009e73', '#aa4499', '#c78a00'),
    '#3aa0dd',
)

_STYLE_SHEET = 'shardmw.bench.plots.look'

# The looks of fourteen series.
_LOOKS = list(
    cycler(linestyle=['-', (0, (4, 1.5))]) * cycler(color=_OF_SERIES)
)
_REFERENCE_DASHES = ((0, (4, 2)), (0, (1.2, 1.6)), (0, (7, 2, 1.5, 2)))
_REFERENCE_MARKERS = 'Ds^'

# In inches.
_WIDTH = 4.9
_HEIGHT = 3.3
_BAR_HEIGHT = 0.21
_LINE_HEIGHT = 0.17

# In characters.
_LETTERS = 64
_KEY_LETTERS = 6
_NAME_LETTERS = 28

# The width of all bars of a name, relative to the distance of two names.
_BARS_WIDTH = 0.76
_WIDEST_BAR = 0.5

_SLANTED = {'rotation': 30, 'ha': 'right', 'rotation_mode': 'anchor'}

_MILLION = 1_000_000

_NO_METADATA = dict.fromkeys(('Date', 'Creator', 'Format', 'Type'))
_ID = re.compile(r' id="([^"]*)"')
_SHEET = re.compile(r'<defs>\s*<style.*?</style>\s*</defs>\s*', re.DOTALL)


def svg(plot: Plot) -> str:
    """Return a plot as an SVG element; the same plot gives the same text."""
    text = io.StringIO()
    # different ids for each plot of a page
    salt = {'svg.hashsalt': plot.name}
    with matplotlib.style.context(['default', _STYLE_SHEET, salt]):
        figure_of(plot).savefig(text, format='svg', metadata=_NO_METADATA)
    drawn = _SHEET.sub('', text.getvalue().partition('<svg ')[2])
    drawn = _ID.sub(lambda m: m[0] if f'#{m[1]}' in drawn else '', drawn)
    return f'<svg {drawn}'


def figure_of(plot: Plot) -> Figure:
    """Return the plot as a matplotlib figure."""
    panels = list(dict.fromkeys(each.panel for each in plot.series)) or ['']
    figure = Figure((_WIDTH, _height(plot)), layout='constrained')
    figure.subplots(1, len(panels), sharey=plot.is_horizontal)
    for axes, panel in zip(figure.axes, panels, strict=True):
        series = [each for each in plot.series if each.panel == panel]
        _Panel(axes, plot, series).draw()
        axes.set_title(panel)
        axes.label_outer()
    title = textwrap.fill(plot.title, _LETTERS - 12)
    figure.suptitle(title, x=0.01, ha='left')
    _add_legend(figure, plot)
    return figure


def _height(plot: Plot) -> float:
    if not plot.is_horizontal:
        return _HEIGHT
    bars = _BAR_HEIGHT * max(1, len(_labels(plot.series, BARS)))
    lines = max(each.count('\n') + 1 for each in _names(plot))
    return 1.3 + len(plot.x.names) * max(bars, _LINE_HEIGHT * lines)


def _names(plot: Plot) -> list[str]:
    return [textwrap.fill(name, _NAME_LETTERS) for name in plot.x.names]


def _labels(series: Sequence[Series], style: str) -> list[str]:
    """Return the different labels of the series of a style."""
    return list(dict.fromkeys(s.label for s in series if s.style == style))


def _add_legend(figure: Figure, plot: Plot) -> None:
    """Add a legend, unless there is only one series and no band."""
    keys = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        keys |= dict(zip(labels, drawn, strict=True))
    if len(keys) > 1 or plot.bands:
        longest = max(map(len, keys)) + _KEY_LETTERS
        figure.legend(
            keys.values(),
            [textwrap.fill(label, _LETTERS - _KEY_LETTERS) for label in keys],
            loc='outside lower left',
            ncols=max(1, min(len(keys), _LETTERS // longest)),
        )


class _Panel:
    """A plot, or one of its panels."""

    def __init__(
        self, axes: Axes, plot: Plot, series: Sequence[Series]
    ) -> None:
        self._axes = axes
        self._plot = plot
        self._series = series
        self._bars = _labels(series, BARS)
        self._bar_width = _BARS_WIDTH / max(1, len(self._bars))
        self._looks = _looks(plot)

    def draw(self) -> None:
        """Draw all series, and set up the axes."""
        x, y = self._turned(self._plot.x, self._plot.y)
        self._axes.set(xlabel=x.label, ylabel=y.label)
        if x.log:
            self._axes.set_xscale('log', nonpositive='mask')
        if y.log:
            self._axes.set_yscale('log', nonpositive='mask')
        draw = {BARS: self._draw_bars, DOTS: self._draw_dots}
        draw |= {LINE: self._draw_line, REFERENCE: self._draw_reference}
        for series in self._series:
            draw[series.style](series)
        bands = list(dict.fromkeys(each.label for each in self._plot.bands))
        for band in self._plot.bands:
            place = -1 - bands.index(band.label) % len(_OF_SERIES)
            self._axes.axvspan(
                *(band.begin, band.end),
                color=_OF_SERIES[place],
                alpha=0.18,
                linewidth=0,
                label=band.label,
                zorder=0,
            )
        self._set_limits()
        self._set_ticks()

    def _draw_bars(self, series: Series) -> None:
        # a bar's length means nothing without a 0
        if self._plot.y.log:
            self._draw_dots(series)
            return
        drawn = self._axes.barh(
            *(self._places(series), series.y),
            min(self._bar_width, _WIDEST_BAR) * 0.94,
            color=self._looks[series.label]['color'],
            label=series.label,
            error_kw={'ecolor': _INK, 'elinewidth': 1},
            **self._errors(series),
        )
        self._axes.bar_label(drawn, fmt=three_digits, padding=3, fontsize=8)

    def _draw_dots(self, series: Series) -> None:
        look = {'color': self._looks[series.label]['color']}
        points = self._turned(self._places(series), _numbers(series.y))
        # the legend has the line of the same label
        if series.label in _labels(self._series, LINE):
            self._axes.plot(*points, '.', alpha=0.4, **look)
            return
        look |= self._errors(series)
        self._axes.errorbar(*points, fmt='o', label=series.label, **look)

    def _draw_line(self, series: Series) -> None:
        look = self._looks[series.label]
        x, y = series.x, _numbers(series.y)
        is_measured = self._plot.x.ticks or self._plot.x.names or series.low
        marker = 'o' if is_measured or len(x) == 1 else None
        self._axes.plot(x, y, marker=marker, label=series.label, **look)
        if series.low and series.high:
            self._axes.fill_between(
                *(x, series.low, series.high),
                color=look['color'],
                alpha=0.18,
                linewidth=0,
            )

    def _draw_reference(self, series: Series) -> None:
        place = _labels(self._series, REFERENCE).index(series.label)
        dashes = _REFERENCE_DASHES[place % len(_REFERENCE_DASHES)]
        look = {'color': _GREY, 'linestyle': dashes, 'label': series.label}
        if len(series.y) > 1 and len(set(series.y)) == 1:
            axes = self._axes
            draw, _ = self._turned(axes.axhline, axes.axvline)
            draw(series.y[0], **look)
            return
        if self._plot.x.names:
            look['linestyle'] = 'none'
        self._axes.plot(
            *self._turned(series.x, series.y),
            marker=_REFERENCE_MARKERS[place % len(_REFERENCE_MARKERS)],
            markerfacecolor='white',
            markersize=5.5,
            zorder=5,
            **look,
        )

    def _places(self, series: Series) -> list[float]:
        """Return positions; bars of the same name are side by side."""
        if series.label not in self._bars:
            return list(series.x)
        middle = (len(self._bars) - 1) / 2
        offset = (self._bars.index(series.label) - middle) * self._bar_width
        return [each + offset for each in series.x]

    def _turned(self, x: object, y: object) -> tuple:
        """Return what is horizontal, and what is vertical."""
        return (y, x) if self._plot.is_horizontal else (x, y)

    def _errors(self, series: Series) -> dict[str, object]:
        if not (series.low and series.high):
            return {}
        values = list(zip(series.low, series.y, series.high, strict=True))
        _, error = self._turned('xerr', 'yerr')
        below = [max(0, y - low) for low, y, _ in values]
        return {error: [below, [max(0, high - y) for _, y, high in values]]}

    def _set_limits(self) -> None:
        axes, axis = self._axes, self._plot.y
        room = 0.16 if self._bars else 0.05
        _, set_limit = self._turned(axes.set_xlim, axes.set_ylim)
        if self._plot.is_horizontal:
            axes.margins(x=room)
            axes.set_ylim(len(self._plot.x.names) - 0.5, -0.5)
        else:
            axes.margins(x=0.02, y=room)
        values = [y for s in self._series for y in s.y if y is not None]
        low, high = min(values, default=0), max(values, default=0)
        if not axis.log and low >= 0 and (axis.from_zero or low <= high / 4):
            set_limit(0)

    def _set_ticks(self) -> None:
        places, values = self._turned(self._axes.xaxis, self._axes.yaxis)
        _set_ticks(values, self._plot.y, 10 if self._series[0].panel else 100)
        _set_ticks(places, self._plot.x, 100)
        places.grid(False)
        if names := _names(self._plot):
            is_long = sum(map(len, names)) > _LETTERS - 2 * len(names)
            is_slanted = is_long and not self._plot.is_horizontal
            places.set_ticks(
                range(len(names)), names, **_SLANTED if is_slanted else {}
            )


def _looks(plot: Plot) -> dict[str, dict]:
    """Return matplotlib's properties of lines by the labels of series."""
    labels = dict.fromkeys(
        each.label for each in plot.series if each.style != REFERENCE
    )
    # the first colour is for what others are compared with
    first = 1 if len(labels) == 1 else 0
    return {
        label: _LOOKS[place % len(_LOOKS)]
        for place, label in enumerate(labels, first)
    }


def _set_ticks(drawn: DrawnAxis, axis: Axis, most: float) -> None:
    """Put round numbers on an axis.

    :param most: a logarithmic axis with a larger ratio of its ends has fewer
                 labels
    """
    low, high = sorted(drawn.get_view_interval())
    locator = ticker.AutoLocator()
    if axis.ticks:
        locator = ticker.FixedLocator(axis.ticks, nbins=8)
    elif axis.log:
        few = (1, 3) if high < 10 * most * low else (1,)
        locator = ticker.LogLocator(
            subs=(1, 2, 5) if high < most * low else few
        )
    drawn.set_major_locator(locator)
    drawn.set_minor_locator(ticker.NullLocator())
    text = _size if axis.sizes else _number
    drawn.set_major_formatter(lambda value, _: text(value))


def _numbers(values: Sequence[float | None]) -> list[float]:
    """Return values with NaN, which matplotlib leaves out, for None."""
    return [math.nan if each is None else each for each in values]


def _size(value: float) -> str:
    return size_text(round(value))


def _number(value: float) -> str:
    """Return a number such as 0.001, 0.5, 20, 1,000 or 2 M."""
    if abs(value) >= _MILLION:
        return f'{value / _MILLION:,.6g} M'
    return f'{value:,.6g}'
