# SPDX-License-Identifier: Apache-2.0
"""Figures in a page that people write the rest of. Pure.

They stand between two comments. A page can have several places for figures,
each of a name, and one without a name for all others::

    <!-- figures scenario-object-size: begin -->
    <!-- figures scenario-object-size: end -->
"""

import re

from shardmw.bench.errors import BenchError

BEGIN = '<!-- figures: begin -->'
END = '<!-- figures: end -->'

_NAMED = re.compile(r'<!-- figures (\S+): begin -->')


def names_in(page: str) -> list[str]:
    """The names of the page's places, as far as they have one."""
    return list(dict.fromkeys(_NAMED.findall(page)))


def markers(name: str = '') -> tuple[str, str]:
    """The comments that a place begins and ends with."""
    if not name:
        return BEGIN, END
    return f'<!-- figures {name}: begin -->', f'<!-- figures {name}: end -->'


def with_figures(page: str, figures: str, name: str = '') -> str:
    """A page with what is between its markers replaced.

    One that lacks them gets them at its end.

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
