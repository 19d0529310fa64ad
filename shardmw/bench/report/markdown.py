# SPDX-License-Identifier: Apache-2.0
"""The report in Markdown, with its plots as files beside the page. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from shardmw.bench.page import BEGIN, names_in, with_figures
from shardmw.bench.plot import Plot
from shardmw.bench.report.sections import Section, alternative, origins


def with_sections(page: str, found: Sequence[Section], folder: str) -> str:
    """A page with its figures replaced.

    What has a place of its own (named by the section's anchor) goes there, and
    says where it comes from: those that are not found stay as they are. The
    others go one after the other to the place without a name, or to the end.

    :param folder: that has the plots, as the page's links name it
    :raises BenchError: if the page's markers make no pairs
    """
    own = names_in(page)
    rest = [section for section in found if section.anchor not in own]
    for section in found:
        if section.anchor in own:
            text = _joined([*_body(section, folder), *_origins([section])])
            page = with_figures(page, text, section.anchor)
    if rest or BEGIN in page:
        text = _joined([*_origins(rest), *_sections(rest, folder)])
        page = with_figures(page, text)
    return page


def _joined(parts: Iterable[str]) -> str:
    return '\n\n'.join(parts)


def _sections(found: Iterable[Section], folder: str) -> Iterator[str]:
    for section in found:
        yield f'## {section.title}'
        yield from _body(section, folder)


def _body(section: Section, folder: str) -> Iterator[str]:
    """The paragraphs of a section, without its heading."""
    said = section.description
    if said.summary:
        yield said.summary
    for warning in section.warnings:
        yield f'**{warning}**'
    if said.published:
        yield said.published
    for table in said.tables:
        yield table.markdown()
    yield from _plots(said.plots, folder)
    if said.parameters:
        texts = (f'{name} `{value}`' for name, value in said.parameters)
        yield f'Made with {", ".join(texts)}.'


def _origins(found: Sequence[Section]) -> Iterator[str]:
    all_origins = origins(found)
    for origin in all_origins:
        facts = ', '.join(f'{what} {which}' for what, which in origin.facts)
        titles = ', '.join(section.title for section in origin.sections)
        of = f'{titles}: ' if len(all_origins) > 1 else ''
        text = f'{of}{facts}.'
        yield text[:1].upper() + text[1:]


def _plots(plots: Iterable[Plot], folder: str) -> Iterator[str]:
    """Images; what is to be noted of several in turn is said below them."""
    for note, group in groupby(plots, key=lambda plot: plot.note):
        for plot in group:
            yield f'![{_alternative(plot)}]({folder}/{plot.name}.svg)'
        if note:
            yield note


def _alternative(plot: Plot) -> str:
    """Without what would end it."""
    return alternative(plot).replace('[', '(').replace(']', ')')
