# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench report``."""

from pathlib import Path

import click

from shardmw.bench.errors import BenchError
from shardmw.bench.options import folder_option, html_option, page_option
from shardmw.bench.report.markdown import missing, with_sections
from shardmw.bench.report.sections import Section, sections
from shardmw.bench.results import folder as results
from shardmw.bench.screen import Screen


@click.command()
@folder_option
@html_option
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
    text = None if page is None else _text(page, found)
    plots = sum(len(each.description.plots) for each in found)
    screen.line(f'drawing {plots} plots, which takes some seconds')
    # matplotlib takes a second to import
    from shardmw.bench.report.html import page as html_of

    path = html or output / 'report.html'
    results.write(path, html_of(found))
    screen.line(f'written: {path}')
    if page is not None:
        results.write(page, text)
        screen.line(f'written: {page}')
        for word in missing(text, found):
            screen.warning(f'{word} is not in {output}: its figures stay')


COMMANDS = {'report': report}


def _text(page: Path, found: list[Section]) -> str:
    """Return the page with its figures; raise BenchError if it is bad."""
    try:
        text = page.read_text(encoding='utf-8') if page.exists() else ''
    except (OSError, UnicodeDecodeError) as err:
        raise BenchError(f'{page} cannot be read: {err}') from err
    return with_sections(text, found)
