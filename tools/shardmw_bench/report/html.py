# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page, which needs no other file."""

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from shardmw_bench.experiments import Section
from shardmw_bench.plots.drawing import svg
from shardmw_bench.plots.plot import Plot
from shardmw_bench.report.pages import origins
from shardmw_bench.report.verdict import verdict
from shardmw_bench.tables import figure

_MARKDOWN = MarkdownIt('commonmark', {'html': False})


def page(sections: Sequence[Section]) -> str:
    return _TEMPLATES.get_template('page.html.j2').render(
        sections=sections, origins=origins(sections), verdict=verdict(sections)
    )


def inline(text: str) -> Markup:
    return Markup(_MARKDOWN.renderInline(text))


def alternative(plot: Plot) -> str:
    """Return a plot as text, for a screen reader."""
    ranges: dict[str, list[float]] = {}
    for series in plot.series:
        label = f'{series.panel} {series.label}'.strip()
        known = [each for each in series.y if each is not None]
        ranges.setdefault(label, []).extend(known)
    shown = ', '.join(
        f'{label}: {figure(min(values))} to {figure(max(values))}'
        for label, values in ranges.items()
        if values
    )
    return (
        f'{plot.title}. From left to right: {plot.x.label}; upwards: '
        f'{plot.y.label}. {shown}'
    )


_TEMPLATES = Environment(
    loader=PackageLoader('shardmw_bench.report', '.'),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters['inline'] = inline
_TEMPLATES.globals.update(alternative=alternative, svg=svg)
