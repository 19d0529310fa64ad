# SPDX-License-Identifier: Apache-2.0
"""The output of the commands."""

import json
from collections.abc import Sequence

import click


def print_json(values: object) -> None:
    """Print a dict, or a list of what there is to iterate over."""
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


def printable(name: str) -> str:
    """Return a name without the zero bytes of Swift's reserved names."""
    return name.replace('\0', '%00')
