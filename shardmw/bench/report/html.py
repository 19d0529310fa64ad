# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page, which needs no other file."""

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from shardmw.bench.experiments import Section
from shardmw.bench.plots.drawing import svg
from shardmw.bench.report.sections import alternative, origins
from shardmw.bench.report.verdict import verdict

_MARKDOWN = MarkdownIt('commonmark', {'html': False})


def page(sections: Sequence[Section]) -> str:
    """Return the page of some results."""
    return _TEMPLATES.get_template('page.html.j2').render(
        sections=sections,
        origins=origins(sections),
        verdict=verdict(sections),
    )


def inline(text: str) -> Markup:
    """Return a sentence in Markdown as HTML."""
    return Markup(_MARKDOWN.renderInline(text))


_TEMPLATES = Environment(
    loader=PackageLoader('shardmw.bench.report', '.'),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters['inline'] = inline
_TEMPLATES.globals.update(alternative=alternative, svg=svg)
