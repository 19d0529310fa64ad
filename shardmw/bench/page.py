# SPDX-License-Identifier: Apache-2.0
"""Figures in a page that people write the rest of. Pure.

Figures stand between two comments. A page can have several places for them,
each of which names one or more results, and one without a name for all other
results::

    <!-- figures compare-read compare-write: begin -->
    <!-- figures compare-read compare-write: end -->
"""

import re

from shardmw.bench.errors import BenchError

BEGIN = '<!-- figures: begin -->'
END = '<!-- figures: end -->'

_NAMED = re.compile(r'<!-- figures ([^:\n]+): begin -->')


def names_in(page: str) -> list[str]:
    """Return the names of the page's places that have one.

    A name is that of a result, or of several with a space in between.
    """
    return list(dict.fromkeys(_NAMED.findall(page)))


def markers(name: str = '') -> tuple[str, str]:
    """Return the comments that a place begins and ends with."""
    if not name:
        return BEGIN, END
    return f'<!-- figures {name}: begin -->', f'<!-- figures {name}: end -->'


def with_figures(page: str, figures: str, name: str = '') -> str:
    """Return a page with the text between two markers replaced.

    A page that lacks the markers gets them at its end.

    :param figures: Markdown
    :param name: of the place, if it has one
    :raises BenchError: if there is one marker only, or the wrong way round
    """
    begin, end = markers(name)
    block = f'{begin}\n\n{figures.strip()}\n\n{end}'
    begins, ends = page.count(begin), page.count(end)
    if not begins and not ends:
        return f'{page.rstrip()}\n\n{block}\n'.lstrip()
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if begins != 1 or ends != 1 or not found:
        raise BenchError(
            f'the page has {begins} times {begin} and {ends} times {end}: it '
            'takes one of each, in this order, or none'
        )
    return f'{before}{block}{after}'
