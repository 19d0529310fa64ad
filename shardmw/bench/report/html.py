# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page, which needs no other file. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from shardmw.bench.plot import Plot
from shardmw.bench.report.inline import inline
from shardmw.bench.report.sections import (
    Origin,
    Section,
    alternative,
    origins,
)
from shardmw.bench.report.style import STYLE
from shardmw.bench.tables import Table

_TITLE = 'shardmw-bench'
_LEAD = 'What sharded containers bring, and what they cost.'


def page(found: Sequence[Section], draw: Callable[[Plot], str]) -> str:
    """The page.

    :param draw: a plot as an SVG element
    """
    lines = [
        '<!doctype html>',
        '<html lang="en">',
        '<head>',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<title>{_TITLE}: report</title>',
        f'<style>\n{STYLE}</style>',
        '</head>',
        '<body>',
        '<header>',
        f'<h1>{_TITLE}</h1>',
        f'<p class="lead">{_LEAD}</p>',
        *_origins(found),
        '</header>',
        *_contents(found),
        '<main>',
        *(line for section in found for line in _section(section, draw)),
        '</main>',
        '</body>',
        '</html>',
    ]
    return '\n'.join(lines) + '\n'


def _origins(found: Sequence[Section]) -> Iterator[str]:
    all_origins = origins(found)
    for origin in all_origins:
        yield '<div class="origin">'
        if len(all_origins) > 1:
            yield f'<p>{_links(origin)}</p>'
        yield '<dl>'
        for what, which in origin.facts:
            yield (
                f'<div><dt>{escape(what)}</dt><dd>{escape(which)}</dd></div>'
            )
        yield '</dl>'
        yield '</div>'


def _links(origin: Origin) -> str:
    return ', '.join(
        f'<a href="#{section.anchor}">{escape(section.title)}</a>'
        for section in origin.sections
    )


def _contents(found: Iterable[Section]) -> Iterator[str]:
    yield '<nav aria-label="Contents">'
    yield '<h2>Contents</h2>'
    yield '<ol>'
    for section in found:
        broken_off = (
            ''
            if section.result.complete
            else ' <span class="mark">interrupted</span>'
        )
        yield (
            f'<li><a href="#{section.anchor}">{escape(section.title)}</a>'
            f'{broken_off} '
            f'<span class="said">{inline(section.description.summary)}</span>'
            '</li>'
        )
    yield '</ol>'
    yield '</nav>'


def _section(section: Section, draw: Callable[[Plot], str]) -> Iterator[str]:
    said = section.description
    yield f'<section id="{section.anchor}">'
    yield f'<h2>{escape(section.title)}</h2>'
    yield f'<p class="lead">{inline(said.summary)}</p>'
    for warning in section.warnings:
        yield f'<p class="warning">{escape(warning)}</p>'
    if said.published:
        yield f'<p class="published">{inline(said.published)}</p>'
    for table in said.tables:
        yield from _table(table)
    if said.plots:
        yield '<div class="plots">'
        for plot in said.plots:
            yield from _figure(plot, draw)
        yield '</div>'
    yield from _parameters(said.parameters)
    yield '</section>'


def _table(table: Table) -> Iterator[str]:
    yield '<div class="table">'
    yield f'<h3>{escape(table.title)}</h3>'
    yield '<div class="wide">'
    yield '<table>'
    yield '<thead><tr>'
    for place, column in enumerate(table.columns):
        yield f'<th scope="col"{_side(table, place)}>{escape(column)}</th>'
    yield '</tr></thead>'
    yield '<tbody>'
    for row in table.rows:
        cells = (
            f'<td{_side(table, place)}>{escape(cell)}</td>'
            for place, cell in enumerate(row)
        )
        yield f'<tr>{"".join(cells)}</tr>'
    yield '</tbody>'
    yield '</table>'
    yield '</div>'
    for note in table.notes:
        yield f'<p class="note">{inline(note)}</p>'
    yield '</div>'


def _side(table: Table, place: int) -> str:
    return '' if place < table.names else ' class="number"'


def _figure(plot: Plot, draw: Callable[[Plot], str]) -> Iterator[str]:
    yield f'<figure id="{plot.name}">'
    yield (
        f'<div class="card" role="img" aria-label="'
        f'{escape(alternative(plot))}">'
    )
    yield draw(plot)
    yield '</div>'
    if plot.note:
        yield f'<figcaption>{inline(plot.note)}</figcaption>'
    yield '</figure>'


def _parameters(parameters: Iterable[tuple[str, str]]) -> Iterator[str]:
    texts = [
        f'<span><b>{escape(name)}</b> {escape(value)}</span>'
        for name, value in parameters
    ]
    if texts:
        yield f'<p class="parameters">Made with {" ".join(texts)}</p>'
