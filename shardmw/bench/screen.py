# SPDX-License-Identifier: Apache-2.0
"""What the benchmark prints, and how."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live
from rich.status import Status
from rich.text import Text

from shardmw.bench.live import LiveLoad, live_table
from shardmw.bench.tables import Table

# A file has room for all columns.
_FILE_WIDTH = 160


class Screen:
    """The terminal, or the file that the output goes to."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)
        if not self.console.is_terminal:
            self.console.width = _FILE_WIDTH
        self._status: Status | None = None

    @property
    def is_live(self) -> bool:
        """Whether somebody sees it change."""
        return self.console.is_terminal

    def heading(self, text: str) -> None:
        """Open an experiment."""
        self.console.print()
        self.console.print(Text(text, style='bold cyan'))

    def line(self, text: str) -> None:
        """Print a line about what is under way."""
        self.console.print(Text(f'  {text}'))

    def warning(self, text: str) -> None:
        """Print what makes figures doubtful."""
        self.console.print(Text(f'! {text}', style='yellow'))

    def table(self, table: Table) -> None:
        """Print a table."""
        self.console.print()
        self.console.print(table)

    @contextlib.contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show, on a terminal, what is under way inside a ``with``."""
        if not self.is_live:
            yield
            return
        with self.console.status(Text(text), spinner='line') as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    @contextlib.contextmanager
    def live(self, load: LiveLoad) -> Iterator[Live]:
        """A table of a load, on a terminal, as long as it runs.

        In the place of a status: there can't be two things at a time.
        Show it anew with ``live.update(live_table(load), refresh=True)``.
        """
        status = self._status
        if status is not None:
            status.stop()
        try:
            with Live(
                live_table(load),
                console=self.console,
                auto_refresh=False,
                transient=True,
            ) as live:
                yield live
        finally:
            if status is not None:
                status.start()
