# SPDX-License-Identifier: Apache-2.0
"""What the benchmark prints, and how."""

from rich.console import Console
from rich.text import Text

from shardmw.bench.tables import Table

# A file has room for all columns.
_FILE_WIDTH = 160


class Screen:
    """The terminal, or the file that the output goes to."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)
        if not self.console.is_terminal:
            self.console.width = _FILE_WIDTH

    def heading(self, text: str) -> None:
        """Open an experiment."""
        self.console.print()
        self.console.print(Text(text, style='bold cyan'))

    def line(self, text: str) -> None:
        """Print a line about what is under way."""
        self.console.print(Text(f'  {text}'))

    def table(self, table: Table) -> None:
        """Print a table."""
        self.console.print()
        self.console.print(table.rich())
