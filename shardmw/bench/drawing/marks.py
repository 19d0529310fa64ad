# SPDX-License-Identifier: Apache-2.0
"""The series of a plot, drawn."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from shardmw.bench.drawing.palette import (
    INK,
    PAPER,
    REFERENCE_COLOUR,
    Look,
    band_colours,
    looks,
)
from shardmw.bench.drawing.ticks import number_text
from shardmw.bench.plot import (
    BARS,
    DOTS,
    LINE,
    REFERENCE,
    STEPS,
    STROKES,
    Plot,
    Series,
)

# Of the room that each name on an axis has, what its bars take, and the most
# that one takes, for a lonely bar is no wall.
_BARS_WIDTH = 0.78
_WIDEST_BAR = 0.5

_STROKE_WIDTH = 1.8

_REFERENCE_DASHES = ((0, (4, 2)), (0, (1.2, 1.6)), (0, (7, 2, 1.5, 2)))
_REFERENCE_MARKERS = 'Ds^'

# Up to so many bars have their values on them, if there is room: so many
# letters beside each other, for all bars of a plot.
_MOST_TOLD = 12
_TOLD_LETTERS = 75

# Up to so many points are marked, and have error bars.
_FEW_POINTS = 40

# All dots of a plot: more make a large file, and a cloud.
_MOST_DOTS = 400

# Lines with intervals are so many points beside each other.
_SHIFT = 3.5
_POINTS_AN_INCH = 72

# Up to so many histograms are filled.
_FEW_STEPS = 2


def style_of(plot: Plot, series: Series) -> str:
    """How it's drawn.

    A bar's length means nothing where there is no 0 that it begins at.
    """
    if series.style == BARS and plot.y.log:
        return DOTS
    return series.style


def draw_series(axes: Axes, plot: Plot) -> None:
    """Draw all of them: bars below, what others published on top."""
    colours = band_colours(band.label for band in plot.bands)
    for band in plot.bands:
        colour = colours[band.label]
        axes.axvspan(band.begin, band.end, color=colour, lw=0, zorder=0)
    look_of = _looks(plot)
    places = _places(plot)
    for series in plot.series:
        look = look_of.get(series.label)
        style = style_of(plot, series)
        if style == REFERENCE:
            _draw_reference(axes, plot, series)
        elif style == BARS:
            _draw_bars(axes, series, look, places)
            if _is_told(plot):
                _tell(axes, plot, series, places)
        elif style == STEPS:
            _draw_steps(axes, series, look, len(look_of) <= _FEW_STEPS)
        elif style == STROKES:
            _draw_strokes(axes, series, places)
        elif style == DOTS:
            offset, _ = places.get(series.label, (0, 0))
            _draw_dots(axes, plot, series, look, offset)
        else:
            _draw_line(axes, plot, series, look)


def legend_of(plot: Plot) -> tuple[list[Artist], list[str]]:
    """Keys and labels, each label once, those of bands last.

    None if there is one series only, and no band.
    """
    shown: dict[str, Series] = {}
    for series in plot.series:
        # of dots with a line, it's the line that can be seen
        if series.label not in shown or series.style == LINE:
            shown[series.label] = series
    if len(shown) < 2 and not plot.bands:
        return [], []
    look_of = _looks(plot)
    keys = [
        _key(plot, series, look_of.get(label))
        for label, series in shown.items()
    ]
    colours = band_colours(band.label for band in plot.bands)
    keys += [Patch(facecolor=colour) for colour in colours.values()]
    return keys, [*shown, *colours]


def _looks(plot: Plot) -> dict[str, Look]:
    return looks(
        each.label
        for each in plot.series
        if each.style not in (REFERENCE, STROKES)
    )


def _key(plot: Plot, series: Series, look: Look | None) -> Artist:
    style = style_of(plot, series)
    if style == REFERENCE:
        return Line2D([], [], **_reference_look(plot, series))
    if style == STROKES:
        return Line2D([], [], color=INK, linewidth=_STROKE_WIDTH)
    if style == BARS:
        return Patch(facecolor=look.colour)
    if style == DOTS:
        marker = look.marker if _is_marked(plot, series) else 'o'
        return Line2D(
            *([], []),
            color=look.colour,
            linestyle='none',
            marker=marker,
            markersize=6,
        )
    return Line2D(
        *([], []),
        color=look.colour,
        linestyle=look.dash,
        linewidth=2.2,
        marker=look.marker if _is_marked(plot, series) else None,
        markersize=5.5,
    )


def _is_marked(plot: Plot, series: Series) -> bool:
    """Whether its points have marks of its own, and not just dots or none."""
    if series.style == STEPS:
        return False
    kin = [each for each in plot.series if each.label == series.label]
    several = {each.style for each in kin} >= {LINE, DOTS}
    return not several and sum(len(each.x) for each in kin) <= _FEW_POINTS


def _places(plot: Plot) -> Mapping[str, tuple[float, float]]:
    """Of the series that share names: by label, offset and width."""
    labels = list(
        dict.fromkeys(e.label for e in plot.series if e.style == BARS)
    )
    width = _BARS_WIDTH / max(len(labels), 1)
    first = -(len(labels) - 1) / 2
    return {
        label: ((first + place) * width, min(width, _WIDEST_BAR) * 0.94)
        for place, label in enumerate(labels)
    }


def _draw_bars(
    axes: Axes,
    series: Series,
    look: Look,
    places: Mapping[str, tuple[float, float]],
) -> None:
    offset, width = places[series.label]
    x = [each + offset for each in series.x]
    axes.bar(x, series.y, width, color=look.colour, zorder=2)
    _draw_interval(axes, series, x, INK)


def _tell(
    axes: Axes,
    plot: Plot,
    series: Series,
    places: Mapping[str, tuple[float, float]],
) -> None:
    """The values of bars, above all that is drawn of them."""
    offset, _ = places[series.label]
    tops = dict(zip(series.x, series.high or series.y, strict=True))
    for strokes in plot.series:
        if strokes.style == STROKES and strokes.beside == series.label:
            for x, y in zip(strokes.x, strokes.y, strict=True):
                tops[x] = max(tops.get(x, y), y)
    for x, value in zip(series.x, series.y, strict=True):
        axes.annotate(
            _told(value),
            (x + offset, tops[x]),
            (0, 3),
            textcoords='offset points',
            ha='center',
            va='bottom',
            fontsize=9,
            color=INK,
            zorder=4,
        )


def _is_told(plot: Plot) -> bool:
    """Whether there is room for values on the bars."""
    bars = [each for each in plot.series if each.style == BARS]
    labels = {each.label for each in bars}
    letters = max(len(_told(y)) for each in bars for y in each.y)
    room = (
        _BARS_WIDTH
        / len(labels)
        * _TOLD_LETTERS
        / len(plot.x.names or bars[0].x)
    )
    count = sum(len(each.x) for each in bars)
    return count <= _MOST_TOLD and letters <= room


def _told(value: float) -> str:
    """A value with three digits, or all before the point."""
    return number_text(round(value) if value >= 100 else float(f'{value:.3g}'))


def _draw_strokes(
    axes: Axes, series: Series, places: Mapping[str, tuple[float, float]]
) -> None:
    offset, width = places.get(series.beside, (0, _WIDEST_BAR))
    axes.hlines(
        series.y,
        [each + offset - width / 2 for each in series.x],
        [each + offset + width / 2 for each in series.x],
        color=INK,
        linewidth=_STROKE_WIDTH,
        zorder=3,
    )


def _draw_interval(
    axes: Axes,
    series: Series,
    x: Sequence[float],
    colour: str,
    **also: object,
) -> None:
    if series.low is None or series.high is None:
        return
    low = [max(0, y - e) for y, e in zip(series.y, series.low, strict=True)]
    high = [max(0, e - y) for y, e in zip(series.y, series.high, strict=True)]
    axes.errorbar(
        *(x, series.y, [low, high]),
        fmt='none',
        ecolor=colour,
        elinewidth=1.2,
        capsize=3,
        capthick=1.2,
        zorder=3,
        **also,
    )


def _shift(plot: Plot, series: Series) -> float:
    """How far to the right, in points, so that intervals can all be seen."""
    lines = [
        each.label
        for each in plot.series
        if each.style == LINE and each.low is not None
    ]
    if series.label not in lines:
        return 0
    return (lines.index(series.label) - (len(lines) - 1) / 2) * _SHIFT


def _draw_line(axes: Axes, plot: Plot, series: Series, look: Look) -> None:
    is_marked = _is_marked(plot, series)
    shift = _shift(plot, series) / _POINTS_AN_INCH
    moved = axes.transData + ScaledTranslation(
        *(shift, 0), axes.figure.dpi_scale_trans
    )
    axes.plot(
        *(series.x, series.y),
        color=look.colour,
        linestyle=look.dash,
        linewidth=2 if is_marked else 1.7,
        marker=look.marker if is_marked else None,
        markersize=5.5,
        clip_on=False,
        transform=moved,
        zorder=3,
    )
    if is_marked:
        _draw_interval(axes, series, series.x, look.colour, transform=moved)
    elif series.low is not None and series.high is not None:
        axes.fill_between(
            *(series.x, series.low, series.high),
            color=look.colour,
            alpha=0.15,
            linewidth=0,
        )


def _draw_steps(axes: Axes, series: Series, look: Look, filled: bool) -> None:
    axes.plot(
        *(series.x, series.y),
        drawstyle='steps-post',
        color=look.colour,
        linestyle=look.dash,
        linewidth=1.6,
        zorder=3,
    )
    if filled:
        axes.fill_between(
            *(series.x, series.y),
            step='post',
            color=look.colour,
            alpha=0.13,
            linewidth=0,
            zorder=2,
        )


def _draw_dots(
    axes: Axes, plot: Plot, series: Series, look: Look, offset: float
) -> None:
    every = [each for each in plot.series if style_of(plot, each) == DOTS]
    step = math.ceil(sum(len(each.x) for each in every) / _MOST_DOTS)
    x = [each + offset for each in series.x[::step]]
    is_marked = _is_marked(plot, series)
    axes.plot(
        *(x, series.y[::step]),
        linestyle='none',
        marker=look.marker if is_marked else 'o',
        markersize=7 if is_marked else 4.2,
        markeredgewidth=0,
        color=look.colour,
        alpha=1 if is_marked else 0.5,
        clip_on=False,
        zorder=2.5,
    )
    if step == 1:
        _draw_interval(axes, series, x, look.colour)


def _draw_reference(axes: Axes, plot: Plot, series: Series) -> None:
    axes.plot(series.x, series.y, **_reference_look(plot, series), zorder=3.5)


def _reference_look(plot: Plot, series: Series) -> dict[str, object]:
    """Arguments for a line of matplotlib's."""
    labels = dict.fromkeys(
        each.label for each in plot.series if each.style == REFERENCE
    )
    place = list(labels).index(series.label) % len(_REFERENCE_DASHES)
    return {
        'color': REFERENCE_COLOUR,
        # names have nothing between them
        'linestyle': 'none' if plot.x.names else _REFERENCE_DASHES[place],
        'linewidth': 1.6,
        'marker': _REFERENCE_MARKERS[place],
        'markersize': 7 if plot.x.names else 5,
        'markerfacecolor': PAPER,
        'markeredgewidth': 1.6,
    }
