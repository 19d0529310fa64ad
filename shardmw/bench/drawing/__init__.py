# SPDX-License-Identifier: Apache-2.0
"""Plots, drawn by matplotlib: legible, and always the same.

``ticks`` and ``palette`` are pure. ``marks`` draws the series, ``layout``
finds room for what is round them, ``files`` makes SVG and PNG of it.
matplotlib takes a while to import: do so when something is to be drawn.
"""

from shardmw.bench.drawing.files import png, svg

__all__ = ['png', 'svg']
