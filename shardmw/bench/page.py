# SPDX-License-Identifier: Apache-2.0
"""Figures in a page that people write the rest of. Pure."""

from shardmw.bench.errors import BenchError

BEGIN = '<!-- figures: begin -->'
END = '<!-- figures: end -->'


def with_figures(page: str, figures: str) -> str:
    """A page with what is between its markers replaced.

    One that lacks them gets them at its end.

    :param figures: Markdown
    :raises BenchError: if there is one marker only, or the wrong way round
    """
    block = f'{BEGIN}\n\n{figures.strip()}\n\n{END}'
    begins, ends = page.count(BEGIN), page.count(END)
    if not begins and not ends:
        return f'{page.rstrip()}\n\n{block}\n'.lstrip()
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begins != 1 or ends != 1 or not end:
        raise BenchError(
            f'the page has {begins} times {BEGIN} and {ends} times {END}: it '
            'takes one of each, in this order, or none'
        )
    return f'{before}{block}{after}'
