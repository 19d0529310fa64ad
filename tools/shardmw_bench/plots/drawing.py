# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, drawn by matplotlib."""

import io
import re
import textwrap
from collections.abc import Sequence

import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis as DrawnAxis
from matplotlib.figure import Figure

from shardmw_bench.plots.plot import (
    BARS,
    DOTS,
    LINE,
    REFERENCE,
    Axis,
    Plot,
    Series,
)
from shardmw_bench.tables import figure as three_digits
from shardmw_bench.units import size_text

_INK = '#24292f'
_GREY = '#767676'
# Those of Okabe and Ito, for any colour vision, dark enough for thin lines.
# The first is for the plain container.
_OF_SERIES = (
    *('#37474f', '#0072b2', '#d55e00', '#009e73', '#aa4499', '#c78a00'),
    '#3aa0dd',
)

_STYLE_SHEET = 'shardmw_bench.plots.look'

# The looks of fourteen series, and of three references.
_LOOKS = list(
    cycler(linestyle=['-', (0, (4, 1.5))]) * cycler(color=_OF_SERIES)
)
_DASHES = [(0, (4, 2)), (0, (1.2, 1.6)), (0, (7, 2, 1.5, 2))]
_REFERENCES = list(cycler(marker='Ds^') + cycler(linestyle=_DASHES))
_FAINT = {'alpha': 0.18, 'linewidth': 0}

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
    panels = list(dict.fromkeys(each.panel for each in plot.series)) or ['']
    height = _HEIGHT
    if plot.is_horizontal:
        bars = _BAR_HEIGHT * max(1, len(_labels(plot.series, BARS)))
        lines = max(each.count('\n') + 1 for each in _names(plot))
        height = 1.3 + len(plot.x.names) * max(bars, _LINE_HEIGHT * lines)
    figure = Figure((_WIDTH, height), layout='constrained')
    figure.subplots(1, len(panels), sharey=plot.is_horizontal)
    keys = {}
    for axes, panel in zip(figure.axes, panels, strict=True):
        series = [each for each in plot.series if each.panel == panel]
        _draw(axes, plot, series)
        axes.set_title(panel)
        axes.label_outer()
        drawn, labels = axes.get_legend_handles_labels()
        keys |= dict(zip(labels, drawn, strict=True))
    title = textwrap.fill(plot.title, _LETTERS - 12)
    figure.suptitle(title, x=0.01, ha='left')
    # a single series needs no legend
    if len(keys) > 1 or plot.bands:
        longest = max(map(len, keys)) + _KEY_LETTERS
        figure.legend(
            keys.values(),
            [textwrap.fill(label, _LETTERS - _KEY_LETTERS) for label in keys],
            loc='outside lower left',
            ncols=max(1, min(len(keys), _LETTERS // longest)),
        )
    return figure


def _names(plot: Plot) -> list[str]:
    width = _NAME_LETTERS
    if plot.x.names and not plot.is_horizontal:
        width = max(4, _LETTERS // len(plot.x.names) - 2)
    return [textwrap.fill(name, width) for name in plot.x.names]


def _labels(series: Sequence[Series], *styles: str) -> list[str]:
    return list(dict.fromkeys(s.label for s in series if s.style in styles))


def _turned(plot: Plot, x: object, y: object) -> tuple:
    """Return the horizontal one first, and then the vertical one."""
    return (y, x) if plot.is_horizontal else (x, y)


def _draw(axes: Axes, plot: Plot, series: Sequence[Series]) -> None:
    x, y = _turned(plot, plot.x, plot.y)
    axes.set(xlabel=x.label, ylabel=y.label)
    if x.log:
        axes.set_xscale('log', nonpositive='mask')
    if y.log:
        axes.set_yscale('log', nonpositive='mask')
    labels = _labels(plot.series, BARS, DOTS, LINE)
    # the first colour is for the series that others are compared with
    first = 1 if len(labels) == 1 else 0
    for each in series:
        if each.style == REFERENCE:
            place = _labels(series, REFERENCE).index(each.label)
            _draw_reference(axes, plot, each, _REFERENCES[place % 3])
            continue
        look = _LOOKS[(first + labels.index(each.label)) % len(_LOOKS)]
        if each.style == LINE:
            _draw_line(axes, plot, each, look)
        else:
            _draw_points(axes, plot, series, each, look['color'])
    names = list(dict.fromkeys(each.label for each in plot.bands))
    for band in plot.bands:
        colour = _OF_SERIES[-1 - names.index(band.label) % len(_OF_SERIES)]
        look = {'color': colour, 'label': band.label, 'zorder': 0, **_FAINT}
        axes.axvspan(band.begin, band.end, **look)
    _set_limits(axes, plot, series)
    places, values = _turned(plot, axes.xaxis, axes.yaxis)
    _set_ticks(values, plot.y, 10 if series and series[0].panel else 100)
    _set_ticks(places, plot.x, 100)
    places.grid(False)
    if names := _names(plot):
        places.set_ticks(range(len(names)), names)


def _draw_points(
    axes: Axes,
    plot: Plot,
    others: Sequence[Series],
    series: Series,
    colour: str,
) -> None:
    """Draw bars or dots; bars of the same name are side by side."""
    bars = _labels(others, BARS)
    width = _BARS_WIDTH / max(1, len(bars))
    x = list(series.x)
    if series.label in bars:
        offset = bars.index(series.label) - (len(bars) - 1) / 2
        x = [each + offset * width for each in x]
    look = {'color': colour, 'label': series.label}
    if series.low and series.high:
        ends = np.subtract((series.y, series.high), (series.low, series.y))
        _, error = _turned(plot, 'xerr', 'yerr')
        look[error] = ends.clip(0)
    # a bar's length means nothing without a 0
    if series.style == BARS and not plot.y.log:
        height = min(width, _WIDEST_BAR) * 0.94
        look['error_kw'] = {'ecolor': _INK, 'elinewidth': 1}
        drawn = axes.barh(x, series.y, height, **look)
        axes.bar_label(drawn, fmt=three_digits, padding=3, fontsize=8)
        return
    points = _turned(plot, x, np.array(series.y, float))
    if series.label in _labels(others, LINE):
        # the legend has the line
        axes.plot(*points, '.', alpha=0.4, color=colour)
    else:
        axes.errorbar(*points, fmt='o', **look)


def _draw_line(axes: Axes, plot: Plot, series: Series, look: dict) -> None:
    x = series.x
    is_measured = plot.x.ticks or plot.x.names or series.low
    marker = 'o' if is_measured or len(x) == 1 else None
    look = {'marker': marker, 'label': series.label, **look}
    # NaN, which is not drawn, for None
    axes.plot(x, np.array(series.y, float), **look)
    if series.low and series.high:
        colour = look['color']
        axes.fill_between(x, series.low, series.high, color=colour, **_FAINT)


def _draw_reference(
    axes: Axes, plot: Plot, series: Series, look: dict
) -> None:
    look = {**look, 'color': _GREY, 'label': series.label}
    if len(series.y) > 1 and len(set(series.y)) == 1:
        draw, _ = _turned(plot, axes.axhline, axes.axvline)
        draw(series.y[0], **{**look, 'marker': None})
        return
    if plot.x.names:
        look['linestyle'] = 'none'
    look |= {'markerfacecolor': 'white', 'markersize': 5.5, 'zorder': 5}
    axes.plot(*_turned(plot, series.x, series.y), **look)


def _set_limits(axes: Axes, plot: Plot, series: Sequence[Series]) -> None:
    room = 0.16 if _labels(series, BARS) else 0.05
    if plot.is_horizontal:
        axes.margins(x=room)
        axes.set_ylim(len(plot.x.names) - 0.5, -0.5)
    else:
        axes.margins(x=0.02, y=room)
    values = [y for each in series for y in each.y if y is not None]
    low, high = min(values, default=0), max(values, default=0)
    is_near = plot.y.from_zero or low <= high / 4
    _, set_limit = _turned(plot, axes.set_xlim, axes.set_ylim)
    if is_near and low >= 0 and not plot.y.log:
        set_limit(0)
    elif (middle := plot.y.middle) and values:
        ends = [*values, *(end for each in series for end in _ends(each))]
        far = max(2, max(ends) / middle, middle / min(ends)) * (1 + room)
        set_limit(middle / far, middle * far)


def _ends(series: Series) -> list[float]:
    """Return the ends of a series' intervals."""
    return [*(series.low or ()), *(series.high or ())]


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

    def text(value: float, _: int) -> str:
        if axis.sizes:
            return size_text(round(value))
        if abs(value) >= _MILLION:
            return f'{value / _MILLION:,.6g} M'
        return f'{value:,.6g}'

    drawn.set_major_locator(locator)
    drawn.set_minor_locator(ticker.NullLocator())
    drawn.set_major_formatter(text)
