# SPDX-License-Identifier: Apache-2.0
"""Tables of figures, for a page and for the terminal. Pure."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions
from rich.table import Table as RichTable
from rich.text import Text

_MISSING = '—'
_BYTE_STEPS = ('B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB')

# Columns that belong to the column on their left.
_FOLLOWERS = ('95 % interval', 'trimmed')

# Characters between two columns of a terminal.
_GAP = 3

# Emphasis and code in Markdown.
_MARKED = re.compile(r'(\*|`)(\S|\S[^*`\n]*\S)\1')


@dataclass(frozen=True)
class Table:
    """A table of text.

    :param columns: the heads
    :param notes: paragraphs below the table
    :param names: the number of columns of words; those of figures follow
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
        figures = len(self.columns) - self.names
        rule = ['---'] * self.names + ['---:'] * figures
        rows = map(_markdown_row, (self.columns, rule, *self.rows))
        heading = [f'### {self.title}'] if self.title else []
        return '\n\n'.join([*heading, '\n'.join(rows), *self.notes])

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RichTable | Text]:
        """Yield the table in parts that fit into the terminal."""
        for part in self.within(options.max_width):
            yield part._rich(options.max_width)
        if self.notes:
            yield Text(_MARKED.sub(r'\2', '\n'.join(self.notes)), style='dim')

    def within(self, width: int) -> list['Table']:
        """Return the table in parts of a width, so that no figure is cut.

        Each part has all columns of words. The first one has the title.
        """
        least = self._widths(str.split)
        names = list(range(self.names))
        together: list[list[int]] = []
        for i in range(self.names, len(self.columns)):
            if together and self.columns[i] in _FOLLOWERS:
                together[-1].append(i)
            else:
                together.append([i])
        parts = [names]
        for own in together:
            wanted = [*parts[-1], *own]
            if len(parts[-1]) > len(names) and _total(least, wanted) > width:
                parts.append(names)
            parts[-1] = [*parts[-1], *own]
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
        whole = self._widths(lambda head: [head])
        is_narrow = _total(whole, range(len(whole))) > width
        least = self._widths(str.split)
        for i, column in enumerate(self.columns):
            is_figure = i >= self.names
            table.add_column(
                Text(column),
                justify='right' if is_figure else 'left',
                # words may be wrapped, figures may not
                width=least[i] if is_figure and is_narrow else None,
            )
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _widths(self, wrapped: Callable[[str], list[str]]) -> list[int]:
        """Return the widths of the columns with heads that are wrapped."""
        columns = zip(self.columns, *self.rows, strict=True)
        return [
            max(map(len, (*wrapped(head), *cells))) for head, *cells in columns
        ]


def tables_of(text: str) -> list[Table]:
    """Return the tables of a text in Markdown.

    Each has a heading, a table and paragraphs, which are its notes. The
    columns on the left that are not aligned to the right are those of words.
    """
    found = []
    for part in re.split(r'^### ', text, flags=re.MULTILINE)[1:]:
        title, body, *notes = re.split(r'\n(?:[ \t]*\n)+', part.strip())
        head, rule, *rows = (
            [cell.strip() for cell in line.strip()[1:-1].split('|')]
            for line in body.splitlines()
            if line.strip()
        )
        notes = [' '.join(note.split()) for note in notes]
        found.append(Table(title, head, rows, notes, rule.count('---')))
    return found


def joined(tables: Iterable[Table]) -> list[Table]:
    """Return tables with the same columns as one.

    The titles become notes.
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
    """Return a figure with thousands separators; a dash for None."""
    if value is None or math.isnan(value):
        return _MISSING
    return f'{value:,.{digits}f}'


def figure(value: float | None) -> str:
    """Return a figure with three digits, or all before the point."""
    if not value or math.isnan(value):
        return _MISSING if value is None or value else '0'
    digits = 2 - math.floor(math.log10(abs(value)))
    return number(value, max(0, digits)) if abs(value) < 1e15 else str(value)


def ratio(value: float | None, base: float | None) -> str:
    """Return a quotient with two decimals; a dash without a base."""
    if value is None or not base:
        return _MISSING
    return number(value / base, 2)


def plain(value: float) -> str:
    """Return a number as a user types it: 5, 0.5."""
    return f'{value:g}'


def bytes_text(size: float) -> str:
    """Return bytes in a unit that fits, such as ``1.8 GB``."""
    step = 0
    while size >= 1000 and step < len(_BYTE_STEPS) - 1:
        size /= 1000
        step += 1
    return f'{figure(size)} {_BYTE_STEPS[step]}'


def _total(widths: Sequence[int], columns: Iterable[int]) -> int:
    return sum(widths[i] + _GAP for i in columns)


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace('|', r'\|') for cell in cells)
    return f'| {" | ".join(escaped)} |'
