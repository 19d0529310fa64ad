# SPDX-License-Identifier: Apache-2.0
"""Tables: what figures look like, on a page and on the terminal. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

_MISSING = '—'

# Emphasis and code in Markdown.
_MARKED = re.compile(r'(\*|`)(\S|\S[^*`\n]*\S)\1')


@dataclass(frozen=True)
class Table:
    """Figures in rows.

    :param columns: their heads
    :param rows: a cell of text for each column
    :param notes: what the figures don't tell, a paragraph each
    :param names: so many columns at the left are words, the others numbers
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    names: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f'{self.title}: {row} fits no columns')

    def markdown(self) -> str:
        """The table, with its title as a heading."""
        rule = [
            '---' if i < self.names else '---:'
            for i in range(len(self.columns))
        ]
        lines = [_markdown_row(self.columns), _markdown_row(rule)]
        lines += map(_markdown_row, self.rows)
        return '\n\n'.join(
            [f'### {self.title}', '\n'.join(lines), *self.notes]
        )

    def rich(self) -> RichTable:
        """The table for a terminal."""
        table = RichTable(
            title=Text(self.title, style='bold cyan'),
            title_justify='left',
            caption=Text(_unmarked('\n'.join(self.notes)), style='dim'),
            caption_justify='left',
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            header_style='dim',
        )
        for i, column in enumerate(self.columns):
            justify = 'left' if i < self.names else 'right'
            table.add_column(Text(column), justify=justify)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def number(value: float | None, digits: int = 0) -> str:
    """A figure with its thousands apart; a dash where there is none."""
    if value is None or math.isnan(value):
        return _MISSING
    return f'{value:,.{digits}f}'


def figure(value: float | None) -> str:
    """A figure with three digits, or all that it has before the point."""
    if not value or math.isnan(value):
        return _MISSING if value is None or value else '0'
    digits = 2 - math.floor(math.log10(abs(value)))
    return number(value, max(0, digits)) if abs(value) < 1e15 else str(value)


def ratio(value: float | None, base: float | None) -> str:
    """One figure by another, with two digits after the point."""
    if value is None or not base:
        return _MISSING
    return number(value / base, 2)


def plain(value: float) -> str:
    """A number as a person would type it: 5, 0.5."""
    return f'{value:g}'


def _unmarked(text: str) -> str:
    """Markdown's words without its marks."""
    return _MARKED.sub(r'\2', text)


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace('|', r'\|') for cell in cells)
    return f'| {" | ".join(escaped)} |'
