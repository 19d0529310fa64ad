# SPDX-License-Identifier: Apache-2.0
"""The output of the commands."""

import json
import re
import sys
from collections.abc import Sequence
from urllib.parse import quote

import click

#: How often to print the progress of a command: on a terminal or as JSON, and
#: elsewhere.
REPORT_SECONDS = 1, 30

#: Line breaks, and control characters that a terminal interprets.
_CONTROL = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029]')


def report_seconds(as_json: bool) -> float:
    """Return how often to print the progress of a command, in seconds."""
    often, seldom = REPORT_SECONDS
    return often if as_json or sys.stderr.isatty() else seldom


def print_json(values: object) -> None:
    """Print a dict, or the items of an iterable as a list, as JSON."""
    if not isinstance(values, dict):
        values = list(values)
    click.echo(json.dumps(values, indent=2))


def print_pairs(*pairs: tuple[str, object]) -> None:
    """Print a line for each name and value."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f'{name:<{width}}  {value}')


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table with numbers at the right of their columns."""
    lines = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_number = [
        all(isinstance(row[i], int) for row in rows) for i in range(len(heads))
    ]
    for line in lines:
        cells = [
            f'{cell:>{width}}' if right else f'{cell:<{width}}'
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ]
        click.echo('  '.join(cells).rstrip())


def printable(text: str) -> str:
    """Return a text with its control characters quoted as in a URL.

    Clients choose the names of containers and objects. Commands take names
    that are quoted like that.
    """
    return _CONTROL.sub(lambda match: quote(match[0]), text)
