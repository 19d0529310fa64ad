# SPDX-License-Identifier: Apache-2.0
"""The places for figures in a Markdown page. Pure.

A place is between two comments. It names one or more results, or none for
all results without a place of their own::

    <!-- figures compare-read compare-write: begin -->
    <!-- figures compare-read compare-write: end -->
"""

import re

from shardmw.bench.errors import BenchError

_NAMED = re.compile(r'<!-- figures ([^:\n]+): begin -->')


def names_in(page: str) -> list[str]:
    """Return the names of the places that have one."""
    return list(dict.fromkeys(_NAMED.findall(page)))


def markers(name: str = '') -> tuple[str, str]:
    """Return the comments at the begin and the end of a place."""
    what = f'figures {name}'.strip()
    return f'<!-- {what}: begin -->', f'<!-- {what}: end -->'


BEGIN, END = markers()


def with_figures(page: str, figures: str, name: str = '') -> str:
    """Return a page with the text between two markers replaced.

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
