# SPDX-License-Identifier: Apache-2.0
"""The output while tests run."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from test.conformance.jobs import RunResult

_BAR_WIDTH = 30


class Screen:
    """The output: a bar for each run on a terminal, otherwise a line.

    A context manager: the bars are shown until the end of the block.
    """

    def __init__(self) -> None:
        self._console = Console(highlight=False, emoji=False, markup=False)
        self._progress = Progress(
            TextColumn('{task.description}'),
            BarColumn(bar_width=_BAR_WIDTH),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> 'Screen':
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, name: str) -> None:
        """Show the bar of a run that begins."""
        self._bars[name] = self._progress.add_task(name, total=None)

    def progressed(self, name: str, done: int, total: int) -> None:
        """Update the bar of a run."""
        self._progress.update(
            self._bars[name], completed=done, total=total or None
        )

    def finished(self, name: str, result: RunResult) -> None:
        """Remove the bar of a run that has ended, and print its result."""
        self._progress.remove_task(self._bars.pop(name))
        minutes, seconds = divmod(round(result.seconds), 60)
        self.line(
            f'{name}: {result.problem or "done"}, {minutes}:{seconds:02}'
        )

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, soft_wrap=True)
