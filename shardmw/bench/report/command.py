# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench report``: the command."""

from pathlib import Path

import click

from shardmw.bench.errors import BenchError
from shardmw.bench.options import DEFAULT_OUTPUT
from shardmw.bench.report.markdown import missing, with_sections
from shardmw.bench.report.sections import Section, sections
from shardmw.bench.results import folder as results
from shardmw.bench.screen import Screen

_HTML = 'report.html'


@click.command()
@click.option(
    '--output',
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_OUTPUT,
    show_default=True,
    help='The folder that has the results.',
)
@click.option(
    '--html',
    type=click.Path(dir_okay=False, path_type=Path),
    help=f'The page to write.  [default: {_HTML} in the folder]',
)
@click.option(
    '--page',
    type=click.Path(dir_okay=False, path_type=Path),
    help='A Markdown page, whose figures are replaced by the main tables.',
)
def report(output: Path, html: Path | None, page: Path | None) -> None:
    """Show all results of a folder on one page, with plots.

    The page is a single file, which any browser shows and which can be sent
    to others.

    In a Markdown page, figures stand between <!-- figures: begin --> and
    <!-- figures: end -->. Results can have a place of their own, which names
    them: <!-- figures compare-read compare-head: begin -->. It is filled when
    the folder has all of them.
    """
    screen = Screen()
    found = sections(results.load_all(output))
    if not found:
        raise BenchError(
            f'{output} has no results: measure something first, such as '
            'shardmw-bench compare write'
        )
    # what is wrong with the page is said before anything is drawn
    text = None if page is None else _text(page, found)
    plots = sum(len(each.description.plots) for each in found)
    screen.line(f'drawing {plots} plots, which takes some seconds')
    # matplotlib takes a second, and other commands do not need it
    from shardmw.bench.report.html import page as html_of

    path = html or output / _HTML
    results.write(path, html_of(found))
    screen.line(f'written: {path}')
    if page is not None:
        results.write(page, text)
        screen.line(f'written: {page}')
        for word in missing(text, found):
            screen.warning(f'{word} is not in {output}: its figures stay')


COMMANDS = {'report': report}


def _text(page: Path, found: list[Section]) -> str:
    """Return the page with its figures.

    :raises BenchError: if it cannot be read, or its markers make no pairs
    """
    try:
        text = page.read_text(encoding='utf-8') if page.exists() else ''
    except (OSError, UnicodeDecodeError) as err:
        raise BenchError(f'{page} cannot be read: {err}') from err
    return with_sections(text, found)
