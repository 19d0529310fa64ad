# SPDX-License-Identifier: Apache-2.0
"""The main tables of results in a Markdown page.

They have places between two comments. A place names one or more results, or
none for all results without a place of their own::

    <!-- figures compare-read compare-write: begin -->
    <!-- figures compare-read compare-write: end -->
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shardmw_bench.errors import BenchError
from shardmw_bench.experiments import Section
from shardmw_bench.tables import joined

_NAMED = re.compile(r'<!-- figures ([^:\n]+): begin -->')


class Origin(NamedTuple):
    """Where the figures of some sections come from.

    :param facts: ``(what, which)``
    """

    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]


def origins(found: Iterable[Section]) -> list[Origin]:
    """Return the origins of the figures, each with its sections. Pure."""
    groups: dict[tuple, list[Section]] = {}
    for section in found:
        origin = section.result.provenance
        is_own = origin.cluster is None
        facts = (
            ('cluster', origin.cluster),
            ('shardmw', origin.version),
            ('Swift', origin.swift),
            ('Python', origin.python),
            # not known of an existing cluster
            ('memcached', origin.memcached if is_own else None),
            ('machine' if is_own else "clients' machine", origin.machine),
        )
        groups.setdefault(facts, []).append(section)
    found = []
    for facts, own in groups.items():
        dates = sorted({each.result.provenance.date for each in own})
        measured = ' to '.join(dict.fromkeys((dates[0], dates[-1])))
        known = [(what, which) for what, which in facts if which]
        found.append(Origin([('measured', measured), *known], own))
    return found


def read(page: Path) -> str:
    """Return the text of a page, '' if there is none.

    :raises BenchError: if it cannot be read
    """
    try:
        return page.read_text(encoding='utf-8') if page.exists() else ''
    except (OSError, UnicodeDecodeError) as err:
        raise BenchError(f'{page} cannot be read: {err}') from err


def markers(name: str = '') -> tuple[str, str]:
    """Return the comments at the start and the end of a place. Pure."""
    what = f'figures {name}'.strip()
    return f'<!-- {what}: begin -->', f'<!-- {what}: end -->'


BEGIN, END = markers()


def with_figures(page: str, figures: str, name: str = '') -> str:
    """Return a page with the text between two markers replaced. Pure.

    If the page has no such markers, they are added at its end.

    :param figures: Markdown
    :param name: of the place, if it has one
    :raises BenchError: if the markers are not one pair
    """
    begin, end = markers(name)
    block = f'{begin}\n\n{figures.strip()}\n\n{end}'
    if begin not in page and end not in page:
        return f'{page.rstrip()}\n\n{block}\n'.lstrip()
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found or begin in rest or end in before + after:
        raise BenchError(
            f'the page has {page.count(begin)} times {begin} and '
            f'{page.count(end)} times {end}: it takes one of each, in this '
            'order, or none'
        )
    return f'{before}{block}{after}'


def with_sections(page: str, found: Sequence[Section]) -> str:
    """Return a page with its figures replaced. Pure.

    A place that names results gets their tables once all of them are there;
    tables with the same columns are joined. All other results go to the place
    without a name, which is added to a page without any place.

    :raises BenchError: if the page's markers are not in pairs
    """
    by_name = _by_name(found)
    places = dict.fromkeys(_NAMED.findall(page))
    for place in places:
        names = place.split()
        if by_name.keys() >= set(names):
            body = _body([by_name[name] for name in names])
            page = with_figures(page, '\n\n'.join(body), place)
    if BEGIN in page or not places:
        named = ' '.join(places).split()
        parts = []
        for name, each in by_name.items():
            if name not in named:
                parts += [f'## {each.title}', each.summary, *_body([each])]
        page = with_figures(page, '\n\n'.join(parts))
    return page


def missing(page: str, found: Iterable[Section]) -> list[str]:
    """Return the missing results that the places of a page name."""
    there = _by_name(found)
    names = ' '.join(_NAMED.findall(page)).split()
    return [name for name in names if name not in there]


def _by_name(found: Iterable[Section]) -> dict[str, Section]:
    """Return the newest section of each name."""
    return {section.result.kind_words: section for section in found}


def _body(found: Sequence[Section]) -> Iterator[str]:
    for section in found:
        for warning in section.warnings:
            yield f'**{section.title}: {warning}**'
    tables = (each for section in found for each in section.brief)
    for table in joined(tables):
        yield table.markdown()
    all_origins = origins(found)
    for origin in all_origins:
        facts = ', '.join(f'{what} {which}' for what, which in origin.facts)
        titles = ', '.join(section.title for section in origin.sections)
        text = f'{titles}: {facts}.' if len(all_origins) > 1 else f'{facts}.'
        yield f'{text[:1].upper()}{text[1:]}'
