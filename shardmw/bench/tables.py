# SPDX-License-Identifier: Apache-2.0
"""Tables: what figures look like, on a page and on the terminal. Pure."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions
from rich.table import Table as RichTable
from rich.text import Text

_MISSING = '—'

# What they say is of the column at their left, so they stay beside it.
_MEANT_FOR_THE_LEFT = frozenset({'95 % interval', 'trimmed'})

# On a terminal: between two columns, and outside them.
_GAP = 3
_EDGES = 2

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
        """Return the table, with its title as a heading if it has one."""
        rule = [
            '---' if i < self.names else '---:'
            for i in range(len(self.columns))
        ]
        lines = [_markdown_row(self.columns), _markdown_row(rule)]
        lines += map(_markdown_row, self.rows)
        heading = [f'### {self.title}'] if self.title else []
        return '\n\n'.join([*heading, '\n'.join(lines), *self.notes])

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RichTable | Text]:
        """The table on a terminal, in as many parts as its width takes."""
        for part in self.within(options.max_width):
            yield part._rich(options.max_width)
        if self.notes:
            # as wide as the terminal, though the last part may be narrow
            yield Text(_unmarked('\n'.join(self.notes)), style='dim')

    def within(self, width: int) -> list['Table']:
        """The table in parts that are no wider, so that no figure is cut.

        Each has the columns of words, and as many others as there is room
        for; the first has the title.

        :param width: in letters, of a terminal
        """
        least = self._least_widths()
        names = list(range(self.names))
        parts: list[list[int]] = []
        for group in self._groups():
            wider = [*parts[-1], *group] if parts else []
            if wider and _width(least[i] for i in wider) <= width:
                parts[-1] = wider
            else:
                parts.append([*names, *group])
        return [
            Table(
                '' if place else self.title,
                [self.columns[i] for i in part],
                [[row[i] for i in part] for row in self.rows],
                names=self.names,
            )
            for place, part in enumerate(parts)
        ]

    def _rich(self, width: int) -> RichTable:
        table = RichTable(
            title=Text(self.title, style='bold cyan') if self.title else None,
            title_justify='left',
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            header_style='dim',
        )
        widths = self._widths(width)
        for i, column in enumerate(self.columns):
            justify = 'left' if i < self.names else 'right'
            table.add_column(Text(column), justify=justify, width=widths[i])
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _groups(self) -> list[list[int]]:
        """The columns of figures, as far as they can be told apart."""
        groups: list[list[int]] = []
        for i in range(self.names, len(self.columns)):
            if groups and self.columns[i] in _MEANT_FOR_THE_LEFT:
                groups[-1].append(i)
            else:
                groups.append([i])
        return groups or [[]]

    def _least_widths(self) -> list[int]:
        """What columns need whose heads are broken into words."""
        return [
            max(map(len, (*column.split(), *(row[i] for row in self.rows))))
            for i, column in enumerate(self.columns)
        ]

    def _widths(self, width: int) -> list[int | None]:
        """Of the columns; the first heads are broken into words last."""
        widths: list[int | None] = list(self._least_widths())
        spare = width - _width(widths)
        if spare < 0:
            # words can be broken, and figures can't
            return [None] * self.names + widths[self.names :]
        for i, column in enumerate(self.columns):
            more = max(0, len(column) - widths[i])
            if more <= spare:
                widths[i] += more
                spare -= more
        return widths


def joined(tables: Iterable[Table]) -> list[Table]:
    """Return tables without titles, those with the same columns as one.

    A note has the titles.
    """
    groups: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        groups.setdefault(tuple(table.columns), []).append(table)
    return [
        Table(
            '',
            columns,
            [row for table in own for row in table.rows],
            [
                f'{"; ".join(table.title for table in own)}.',
                *dict.fromkeys(note for table in own for note in table.notes),
            ],
            names=own[0].names,
        )
        for columns, own in groups.items()
    ]


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


def _width(columns: Iterable[int]) -> int:
    """Of a table on a terminal."""
    widths = list(columns)
    return sum(widths) + _GAP * (len(widths) - 1) + _EDGES


def _unmarked(text: str) -> str:
    """Markdown's words without its marks."""
    return _MARKED.sub(r'\2', text)


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace('|', r'\|') for cell in cells)
    return f'| {" | ".join(escaped)} |'
