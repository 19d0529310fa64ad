# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench report``."""

from pathlib import Path

import click

from shardmw.bench.errors import BenchError
from shardmw.bench.options import FILE, folder_option, page_option
from shardmw.bench.report import pages
from shardmw.bench.report.sections import sections
from shardmw.bench.results import folder as results
from shardmw.bench.screen import Screen


@click.command()
@folder_option
@click.option(
    '--html',
    type=FILE,
    help='The HTML page to write.  [default: report.html in the folder]',
)
@page_option
def report(output: Path, html: Path | None, page: Path | None) -> None:
    """Write an HTML page with the tables and plots of all results.

    The page is a single file without links to other files.

    --page also updates a Markdown page: the main tables replace the text
    between <!-- figures: begin --> and <!-- figures: end -->. A result can
    have a place of its own, which names it: <!-- figures compare-read
    compare-head: begin -->. Such a place is filled once the folder has all of
    its results.
    """
    screen = Screen()
    found = sections(results.load_all(output))
    if not found:
        raise BenchError(
            f'{output} has no results: measure something first, such as '
            'shardmw-bench compare write'
        )
    # errors of the page come before the plots, which take some time
    text = page and pages.with_sections(pages.read(page), found)
    plots = sum(len(each.plots) for each in found)
    screen.line(f'drawing {plots} plots, which takes some seconds')
    # matplotlib takes a second to import
    from shardmw.bench.report.html import page as html_of

    written = {html or output / 'report.html': html_of(found)}
    if page is not None:
        written[page] = text
    for path, content in written.items():
        results.write(path, content)
        screen.line(f'written: {path}')
    for word in pages.missing(text or '', found):
        screen.warning(f'{word} is not in {output}: its figures stay')


COMMANDS = {'report': report}
