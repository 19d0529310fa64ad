# SPDX-License-Identifier: Apache-2.0
"""Plots as files: SVG and PNG."""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG

from shardmw.bench.drawing.layout import figure_of
from shardmw.bench.plot import Axis, Plot, Series

# Fonts of the reader's that are as wide as the one that was measured, or less.
_FONTS = "'DejaVu Sans', Verdana, 'Helvetica Neue', Arial, sans-serif"

_SETTINGS = {
    'font.family': ['DejaVu Sans'],
    'font.size': 10.5,
    # letters stay letters: they are small, and can be found and read aloud
    'svg.fonttype': 'none',
}

# So that nothing in a file tells when or by what it was made.
_NO_METADATA = dict.fromkeys(('Date', 'Creator', 'Format', 'Type'))

_STYLE = re.compile(r'<defs>\s*<style.*?</style>\s*</defs>\s*', re.DOTALL)
_ID = re.compile(r' id="([^"]*)"')
_FONT = re.compile(r"font: (?:(bold|\d+) )?([\d.]+)px '[^;]*")
_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"', re.DOTALL)
_DIGITS = re.compile(r'(\.\d\d)\d+')


def svg(plot: Plot) -> str:
    """A plot as an SVG element, on a light ground.

    It is a file, too, and can be put into HTML as it is.

    :raises ValueError: if there is nothing in it that can be drawn
    """
    shown = _drawable(plot)
    with _settings(plot):
        text = io.StringIO()
        canvas = FigureCanvasSVG(figure_of(shown))
        canvas.print_svg(text, metadata=_NO_METADATA)
    return _smaller(_titled(text.getvalue(), plot))


def png(plot: Plot, dots_per_inch: int = 110) -> bytes:
    """The same as a picture of dots.

    :raises ValueError: likewise
    """
    shown = _drawable(plot)
    with _settings(plot):
        dots = io.BytesIO()
        figure_of(shown).savefig(
            dots, dpi=dots_per_inch, metadata={'Software': None}
        )
    return dots.getvalue()


@contextmanager
def _settings(plot: Plot) -> Iterator[None]:
    """Those of all plots, whatever the user has set up for others."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # names of parts that several plots of a page don't share
        matplotlib.rcParams.update({**_SETTINGS, 'svg.hashsalt': plot.name})
        yield


def _drawable(plot: Plot) -> Plot:
    """Without what has no place: no number, or below a logarithm's."""
    series = tuple(
        _chosen(each, places)
        for each in plot.series
        if (places := _places(each, plot.x, plot.y))
    )
    if not series:
        raise ValueError(f'{plot.name} has nothing that can be drawn')
    return replace(plot, series=series)


def _places(series: Series, x: Axis, y: Axis) -> list[int]:
    return [
        place
        for place, point in enumerate(zip(series.x, series.y, strict=True))
        if all(map(_is_on, (x, y), point))
    ]


def _is_on(axis: Axis, value: float | None) -> bool:
    if value is None or not math.isfinite(value):
        return False
    return value > 0 or not axis.log


def _chosen(series: Series, places: Sequence[int]) -> Series:
    def some(values: Sequence[float] | None) -> list[float] | None:
        return None if values is None else [values[i] for i in places]

    return replace(
        series,
        x=some(series.x),
        y=some(series.y),
        low=some(series.low),
        high=some(series.high),
    )


def _titled(text: str, plot: Plot) -> str:
    """Without the preamble of a file of its own, and with a title to hear."""
    _, begin, rest = text.partition('<svg ')
    attributes, end, content = rest.partition('>')
    return (
        f'{begin}role="img" {attributes.strip()}{end}\n'
        f' <title>{escape(plot.title)}</title>{content}'
    )


def _smaller(text: str) -> str:
    """With fonts that readers have, and places to a hundredth of a point.

    And without what nothing refers to: names of parts, which are the same in
    all plots of a page, and rules that would hold for all of the page.
    """
    text = _STYLE.sub('', text)
    text = _ID.sub(lambda m: m[0] if f'#{m[1]}' in text else '', text)
    text = _FONT.sub(_font, text)
    return _COORDINATES.sub(lambda m: _DIGITS.sub(r'\1', m[0]), text)


def _font(match: re.Match) -> str:
    weight = f'{match[1]} ' if match[1] else ''
    return f'font: {weight}{match[2]}px {_FONTS}'
