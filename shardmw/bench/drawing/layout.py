# SPDX-License-Identifier: Apache-2.0
"""A plot with room for all that is round its data.

The data have the same height in all plots. Title, legend and labels are
measured and get what they need beside it, so nothing is ever cut off or in
the way of something else.
"""

import textwrap
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox

from shardmw.bench.drawing.marks import draw_series, legend_of, style_of
from shardmw.bench.drawing.palette import FAINT, INK, PAPER
from shardmw.bench.drawing.ticks import linear_ticks, log_ticks, tick_texts
from shardmw.bench.plot import BARS, Axis, Plot

_WIDTH = 7.0  # inches, as all lengths here
_DATA_HEIGHT = 2.9
_PAD = 0.14
_GAP = 0.1

_TITLE_SIZE = 12.5
_LEGEND_SIZE = 10
_TICK_SIZE = 10

# How many letters of a size fit into an inch, or somewhat less.
_LETTERS = {_TITLE_SIZE: 9.4, _TICK_SIZE: 12.2}

# Names on an axis: what is longer is cut. Where words don't fit beside each
# other, they are slanted.
_NAME_LINES = 4
_SLANTED_LETTERS = 30

_LEGEND_LETTERS = 44
_LEGEND_ROWS = 2
_LEGEND_KEYS = 5

# Of the width, what a legend beside the data may take.
_LEGEND_SHARE = 0.3

# Between a data point and the end of its axis.
_LINEAR_ROOM = 0.06
_LOG_ROOM = 1.35

# Above bars, for their values.
_TOLD_ROOM = 1.06

# Between two labels of the same axis, in inches.
_LABEL_GAP = 0.07


def figure_of(plot: Plot) -> Figure:
    """The plot, drawn and laid out.

    :param plot: each of its series has a point at least
    """
    figure = Figure((_WIDTH, _DATA_HEIGHT * 1.5), facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.2, 0.8, 0.6))
    _dress(axes)
    draw_series(axes, plot)
    _limit(axes, plot)
    axes.set_xlabel(textwrap.fill(plot.x.label, 80))
    axes.set_ylabel(textwrap.fill(plot.y.label, 38))
    title = figure.text(
        *(0, 0, _title(plot.title)),
        fontsize=_TITLE_SIZE,
        fontweight='bold',
        color=INK,
        va='top',
        linespacing=1.25,
    )
    above, legend = _above_and_beside(figure, plot)
    title_height = _size(figure, title)[1] + _GAP
    top, beside = title_height, 0.0
    if above is not None:
        top += _size(figure, above)[1] + _GAP
    if legend is not None:
        beside = _size(figure, legend)[0] + 2 * _GAP
    # what the labels need depends on the room that they get, and vice versa
    for _ in range(2):
        _label(axes, plot)
        _fit(figure, axes, top, beside)
    from_top = 1 / figure.get_figheight()
    title.set_position((_PAD / _WIDTH, 1 - _PAD * from_top))
    if above is not None:
        _place(above, _PAD / _WIDTH, 1 - (_PAD + title_height) * from_top)
    if legend is not None:
        right = 1 - (_PAD + beside - 2 * _GAP) / _WIDTH
        _place(legend, right, axes.get_position().y1)
    return figure


def _dress(axes: Axes) -> None:
    axes.spines[['top', 'right']].set_visible(False)
    axes.spines[['left', 'bottom']].set_color(FAINT)
    axes.spines['bottom'].set_color('#8c959f')
    axes.tick_params(
        colors=INK, labelsize=_TICK_SIZE, length=0, pad=5, which='both'
    )
    axes.grid(axis='y', color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def _title(text: str) -> str:
    letters = int((_WIDTH - 2 * _PAD) * _LETTERS[_TITLE_SIZE])
    return textwrap.fill(text, letters)


def _limit(axes: Axes, plot: Plot) -> None:
    if plot.x.log:
        axes.set_xscale('log')
    if plot.y.log:
        axes.set_yscale('log')
    if plot.x.names:
        axes.set_xlim(-0.55, len(plot.x.names) - 0.45)
    else:
        every = [each for s in plot.series for each in s.x]
        low, high = _limits(plot.x, every, False)
        # a mark at the very beginning would cover the other axis' labels
        is_at_edge = not plot.x.log and min(every) <= low
        axes.set_xlim(low - is_at_edge * (high - low) / 50, high)
    heights = [
        each
        for s in plot.series
        for values in (s.y, s.low or (), s.high or ())
        for each in values
        # an interval may begin where no logarithm is
        if each > 0 or not plot.y.log
    ]
    has_bars = any(style_of(plot, s) == BARS for s in plot.series)
    low, high = _limits(plot.y, heights, has_bars or plot.y.from_zero)
    axes.set_ylim(low, high * (_TOLD_ROOM if has_bars else 1))


def _limits(
    axis: Axis, values: Sequence[float], from_zero: bool
) -> tuple[float, float]:
    low, high = min(values), max(values)
    if axis.log:
        room = _LOG_ROOM if high > low else 3
        return low / room, high * room
    if low == high == 0:
        return 0, 1
    room = (high - low or abs(high)) * _LINEAR_ROOM
    begins_at_zero = low >= 0 and (from_zero or low <= high / 4)
    return 0 if begins_at_zero else low - room, high + room


def _label(axes: Axes, plot: Plot) -> None:
    """Ticks and their labels, as many as there is room for."""
    low, high = axes.get_ylim()
    _set_ticks(axes.yaxis, plot.y, low, high)
    if plot.x.names:
        _set_names(axes, plot.x.names)
        return
    low, high = axes.get_xlim()
    _set_ticks(axes.xaxis, plot.x, low, high)
    _thin_labels(axes)


def _set_ticks(drawn: object, axis: Axis, low: float, high: float) -> None:
    given = [each for each in axis.ticks if low <= each <= high]
    make = log_ticks if axis.log else linear_ticks
    ticks = given or make(low, high)
    drawn.set_ticks(ticks, tick_texts(ticks, axis.sizes))
    drawn.set_ticks([], minor=True)


def _set_names(axes: Axes, names: Sequence[str]) -> None:
    width = axes.get_position().width * _WIDTH / len(names)
    letters = int(width * _LETTERS[_TICK_SIZE]) - 1
    words = (word for name in names for word in name.split())
    axes.set_xticks(range(len(names)))
    if max(map(len, words), default=0) <= letters:
        wrapped = [_wrapped(name, letters) for name in names]
        axes.set_xticklabels(wrapped, linespacing=1.15)
    else:
        axes.set_xticklabels(
            [_cut(name, _SLANTED_LETTERS) for name in names],
            rotation=32,
            ha='right',
            rotation_mode='anchor',
        )


def _wrapped(text: str, letters: int) -> str:
    lines = textwrap.wrap(
        text, letters, max_lines=_NAME_LINES, placeholder=' …'
    )
    return '\n'.join(lines)


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f'{text[: letters - 1]}…'


def _thin_labels(axes: Axes) -> None:
    """Hide labels of the x axis that would touch the one before."""
    renderer = axes.figure.canvas.get_renderer()
    gap = _LABEL_GAP * axes.figure.dpi
    labels = axes.get_xticklabels()
    end = None
    for label in labels:
        box = label.get_window_extent(renderer)
        if end is not None and box.x0 < end + gap:
            label.set_visible(False)
            continue
        end = box.x1


def _fit(figure: Figure, axes: Axes, above: float, beside: float) -> None:
    """Give the labels of the axes what they need."""
    renderer = figure.canvas.get_renderer()
    inches = figure.dpi_scale_trans.inverted()
    outer = axes.get_tightbbox(renderer).transformed(inches)
    inner = axes.get_window_extent(renderer).transformed(inches)
    left = inner.x0 - outer.x0 + _PAD
    right = max(outer.x1 - inner.x1, 0) + _PAD + beside
    bottom = inner.y0 - outer.y0 + _PAD
    top = max(outer.y1 - inner.y1, 0) + _PAD + above
    height = bottom + _DATA_HEIGHT + top
    figure.set_size_inches(_WIDTH, height)
    axes.set_position(
        Bbox.from_extents(
            *(left / _WIDTH, bottom / height),
            *(1 - right / _WIDTH, 1 - top / height),
        )
    )


def _above_and_beside(
    figure: Figure, plot: Plot
) -> tuple[Legend | None, Legend | None]:
    """The legend, in one of two places; nowhere if there's nothing to tell.

    A short one is above the data, a long one beside them, and above after
    all if it's too wide.
    """
    keys, labels = legend_of(plot)
    if not keys:
        return None, None
    labels = [textwrap.fill(label, _LEGEND_LETTERS) for label in labels]
    above, columns = _widest(figure, keys, labels)
    if len(keys) <= min(_LEGEND_KEYS, columns * _LEGEND_ROWS):
        return above, None
    beside = _make_legend(figure, keys, labels, 1)
    if _size(figure, beside)[0] <= _LEGEND_SHARE * _WIDTH:
        above.remove()
        return None, beside
    beside.remove()
    return above, None


def _widest(
    figure: Figure, keys: Sequence, labels: Sequence[str]
) -> tuple[Legend, int]:
    """One of as many columns as there is room for, and how many these are."""
    columns = len(keys)
    legend = _make_legend(figure, keys, labels, columns)
    while columns > 1 and _size(figure, legend)[0] > _WIDTH - 2 * _PAD:
        legend.remove()
        columns -= 1
        legend = _make_legend(figure, keys, labels, columns)
    return legend, columns


def _make_legend(
    figure: Figure, keys: Sequence, labels: Sequence[str], columns: int
) -> Legend:
    return figure.legend(
        *(keys, labels),
        loc='upper left',
        ncols=columns,
        frameon=False,
        fontsize=_LEGEND_SIZE,
        labelcolor=INK,
        borderpad=0,
        borderaxespad=0,
        columnspacing=1.6,
        handlelength=2.2,
        handletextpad=0.55,
        labelspacing=0.45,
    )


def _place(legend: Legend, x: float, y: float) -> None:
    """Put the upper left corner of a legend there."""
    legend.set_bbox_to_anchor((x, y))


def _size(figure: Figure, artist: Artist) -> tuple[float, float]:
    """Width and height of what is drawn, in inches."""
    box = artist.get_window_extent(figure.canvas.get_renderer())
    return box.width / figure.dpi, box.height / figure.dpi
