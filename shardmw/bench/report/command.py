# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench report``: the command."""

from pathlib import Path

import click

from shardmw.bench.options import DEFAULT_OUTPUT


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
    help='The page to write.  [default: report.html in the folder]',
)
@click.option(
    '--page',
    type=click.Path(dir_okay=False, path_type=Path),
    help='A Markdown page, whose figures are replaced; its plots go to a '
    'folder of its name beside it.',
)
def report(output: Path, html: Path | None, page: Path | None) -> None:
    """Show all results of a folder on one page, with plots."""
    raise NotImplementedError
