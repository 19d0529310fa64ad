# SPDX-License-Identifier: Apache-2.0
"""The main tables of results in a Markdown page. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from shardmw.bench.report.places import BEGIN, names_in, with_figures
from shardmw.bench.report.sections import Section, origins
from shardmw.bench.tables import joined


def with_sections(page: str, found: Sequence[Section]) -> str:
    """Return a page with its figures replaced.

    A place that names results gets their tables once all of them are there;
    tables with the same columns are joined. All other results go to the place
    without a name, which is added to a page without any place.

    :raises BenchError: if the page's markers are not in pairs
    """
    by_name = _by_name(found)
    places = names_in(page)
    for place in places:
        names = place.split()
        if by_name.keys() >= set(names):
            body = _body([by_name[name] for name in names])
            page = with_figures(page, '\n\n'.join(body), place)
    if BEGIN in page or not places:
        named = {name for place in places for name in place.split()}
        rest = (by_name[name] for name in by_name if name not in named)
        paragraphs = [text for each in rest for text in _section(each)]
        page = with_figures(page, '\n\n'.join(paragraphs))
    return page


def missing(page: str, found: Iterable[Section]) -> list[str]:
    """Return the results that places of a page name and that are missing."""
    names = [name for place in names_in(page) for name in place.split()]
    there = _by_name(found)
    return [name for name in names if name not in there]


def _by_name(found: Iterable[Section]) -> dict[str, Section]:
    """Return the newest section of each name."""
    return {section.result.kind_words: section for section in found}


def _section(section: Section) -> Iterator[str]:
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
