# SPDX-License-Identifier: Apache-2.0
"""The main tables of results in a Markdown page. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from shardmw.bench.page import BEGIN, names_in, with_figures
from shardmw.bench.report.sections import Section, origins
from shardmw.bench.tables import joined


def with_sections(page: str, found: Sequence[Section]) -> str:
    """Return a page with its figures replaced.

    A place that names results gets their tables, those with the same columns
    as one, if all of the results are there; otherwise it stays as it is. All
    other results go to the place without a name, one after the other. A page
    without any place gets that one at its end.

    :raises BenchError: if the page's markers make no pairs
    """
    by_name = {section.anchor: section for section in found}
    places = names_in(page)
    for place in places:
        own = [by_name[name] for name in place.split() if name in by_name]
        if len(own) == len(place.split()):
            page = with_figures(page, _joined(_body(own)), place)
    named = {name for place in places for name in place.split()}
    rest = [section for section in found if section.anchor not in named]
    if BEGIN in page or not places:
        page = with_figures(page, _joined(_sections(rest)))
    return page


def missing(page: str, found: Iterable[Section]) -> list[str]:
    """Return the results that places of a page name and that are not there."""
    there = {section.anchor for section in found}
    return [
        name
        for place in names_in(page)
        for name in place.split()
        if name not in there
    ]


def _joined(parts: Iterable[str]) -> str:
    return '\n\n'.join(parts)


def _sections(found: Iterable[Section]) -> Iterator[str]:
    for section in found:
        yield f'## {section.title}'
        if section.description.summary:
            yield section.description.summary
        yield from _body([section])


def _body(found: Sequence[Section]) -> Iterator[str]:
    """Yield the paragraphs of some sections, without a heading."""
    for section in found:
        for warning in section.warnings:
            yield f'**{section.title}: {warning}**'
    tables = (each for section in found for each in section.description.brief)
    for table in joined(tables):
        yield table.markdown()
    all_origins = origins(found)
    for origin in all_origins:
        facts = ', '.join(f'{what} {which}' for what, which in origin.facts)
        titles = ', '.join(section.title for section in origin.sections)
        text = f'{titles}: {facts}.' if len(all_origins) > 1 else f'{facts}.'
        yield f'{text[:1].upper()}{text[1:]}'
