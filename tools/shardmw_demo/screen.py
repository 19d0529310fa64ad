# SPDX-License-Identifier: Apache-2.0
"""The output of the demo."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.table import Table
from rich.text import Text

_INDENT = 3
_MOST_LINES = 5
_SHARDS_PER_LINE = 4
_BAR_WIDTH = 8


class Screen:
    """Prints to stdout, a terminal or a file."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)

    def heading(self, number: int, title: str, why: str) -> None:
        """Print the heading of a step."""
        self.console.print()
        self.console.print(Text(f'{number:>2} {title}', style='bold cyan'))
        self._print(Text(why, style='dim'))

    def line(self, text: str) -> None:
        """Print a line."""
        self._print(Text(text))

    def lines(self, texts: Sequence[str]) -> None:
        """Print the first lines, and how many more there are."""
        for text in texts[:_MOST_LINES]:
            self._print(Text(f'  {text}', no_wrap=True, overflow='ellipsis'))
        if more := len(texts) - len(texts[:_MOST_LINES]):
            self._print(Text(f'  ... and {more:,} more', style='dim'))

    def request(self, request: str, *headers: str, answer: str) -> None:
        """Print a request and its answer."""
        self._print(Text(request, style='bold'))
        self.lines(headers)
        self._print(Text(f'-> {answer}', style='green'))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence]) -> None:
        """Print a table whose rows have a name and then numbers."""
        table = Table(box=None, pad_edge=False, header_style='dim')
        for i, column in enumerate(columns):
            table.add_column(column, justify='right' if i else 'left')
        for name, *numbers in rows:
            table.add_row(name, *(f'{number:,}' for number in numbers))
        self._print(Padding.indent(table, 2))

    def shards(self, counts: Mapping[int, int]) -> None:
        """Print a bar for each shard, several on a line."""
        longest = max(counts.values()) or 1
        cells = []
        for shard, count in counts.items():
            bar = '█' * round(_BAR_WIDTH * count / longest)
            cells.append(
                Text.assemble(
                    (f'{shard:>3} ', 'dim'),
                    (f'{bar:<{_BAR_WIDTH}}', 'cyan'),
                    f' {count:<5,}',
                )
            )
        height = -(-len(cells) // _SHARDS_PER_LINE)
        for row in range(height):
            line = Text(' ').join(cells[row::height])
            line.rstrip()
            self._print(line)

    def progress(self) -> Progress:
        """Return a progress bar, for a ``with`` block."""
        return Progress(
            TextColumn(' ' * (_INDENT - 1)),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            _RateColumn(),
            console=self.console,
        )

    def _print(self, what: RenderableType) -> None:
        self.console.print(Padding.indent(what, _INDENT))


class _RateColumn(ProgressColumn):
    """Shows the number of uploads per second."""

    def render(self, task: Task) -> Text:
        rate = task.completed / task.elapsed if task.elapsed else 0
        return Text(f'{rate:.0f}/s', style='cyan')
