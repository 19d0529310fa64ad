# SPDX-License-Identifier: Apache-2.0
"""Plots, drawn by matplotlib.

The same plot always gives the same file. matplotlib is imported when the
first plot is drawn, as it takes a while and not all commands draw.
"""

from shardmw.bench.plot import Plot


def svg(plot: Plot) -> str:
    """A plot as an SVG document, on a light ground.

    :raises ValueError: if there is nothing in it that can be drawn
    """
    raise NotImplementedError


def png(plot: Plot, dots_per_inch: int = 110) -> bytes:
    """The same as a picture of dots.

    :raises ValueError: likewise
    """
    raise NotImplementedError
