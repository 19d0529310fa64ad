# SPDX-License-Identifier: Apache-2.0
"""The output of the benchmark on a terminal, or in a file."""

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from shardmw.bench.load.progress import Progress
from shardmw.bench.tables import Table, figure, number

# A file has room for all columns.
_FILE_WIDTH = 160

_MEGABYTE = 1_000_000


class Screen:
    """The terminal, or the file that the output goes to."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)
        if not self.console.is_terminal:
            self.console.width = _FILE_WIDTH
        self._status: Status | None = None

    @property
    def is_live(self) -> bool:
        """Return True if somebody sees the output change."""
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
    def live(
        self, label: str, seconds: float | None, count: int | None
    ) -> Iterator[Callable[[Progress], None]]:
        """Show a load on a terminal inside a ``with``, instead of a status.

        Gives the function that is called with each further part of the load.

        :param seconds: the load's length; None if only a count ends it
        :param count: the load's operations; None if only the time ends it
        """
        bar = Bar(console=self.console, auto_refresh=False)
        task = bar.add_task(label, total=seconds or count)
        began = shown = time.monotonic()
        total = Progress()

        def show(part: Progress) -> None:
            nonlocal shown, total
            now = time.monotonic()
            total += part
            done = now - began if seconds else total.operations
            bar.update(task, completed=done)
            text = load_text(total, part, now - shown)
            live.update(Group(bar, Text(text)), refresh=True)
            shown = now

        with contextlib.ExitStack() as stack:
            if self._status is not None:
                self._status.stop()
                stack.callback(self._status.start)
            live = stack.enter_context(
                Live(
                    bar,
                    console=self.console,
                    auto_refresh=False,
                    transient=True,
                )
            )
            yield show


def load_text(total: Progress, recent: Progress, seconds: float) -> str:
    """Return the figures of a load under way. Pure.

    :param recent: the last part, which rates and latencies are of
    :param seconds: the length of the last part
    """
    seconds = max(seconds, 1e-3)
    carried = (recent.bytes_sent + recent.bytes_received) / _MEGABYTE
    p50, p95, p99 = map(recent.histogram.percentile, (0.5, 0.95, 0.99))
    return (
        f'{number(total.operations)} ops, '
        f'{figure(recent.operations / seconds)} ops/s, '
        f'{number(carried / seconds, 2)} MB/s, '
        f'p50 {figure(p50)} p95 {figure(p95)} p99 {figure(p99)} ms, '
        f'{number(total.refused)} refused, {number(total.failed)} errors'
    )
