# SPDX-License-Identifier: Apache-2.0
"""The output of the benchmark on a terminal, or in a file."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from shardmw_bench import templates
from shardmw_bench.load.outcome import is_admitted, is_refused
from shardmw_bench.results.figures import latency
from shardmw_bench.tables import Table

_MEGABYTE = 1_000_000


class Screen:
    """The terminal, or the file that the output goes to."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)
        if not self.console.is_terminal:
            # that of a file
            self.console.width = 160
        self._status: Status | None = None

    @property
    def is_live(self) -> bool:
        return self.console.is_terminal

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.print(Text(text, style='bold cyan'))

    def line(self, text: str) -> None:
        self.console.print(Text(f'  {text}'))

    def warning(self, text: str) -> None:
        self.console.print(Text(f'! {text}', style='yellow'))

    def table(self, table: Table) -> None:
        self.console.print()
        self.console.print(table)

    @contextlib.contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show a text on a terminal during a ``with`` block."""
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
    ) -> Iterator[Callable[[np.ndarray], None]]:
        """Show a running load on a terminal, instead of a status.

        :param seconds: the length of the load; None if ``count`` ends it
        :returns: a function that takes the table since its last call
        """
        bar = Bar(console=self.console, auto_refresh=False)
        task = bar.add_task(label, total=seconds or count)
        began = shown = time.monotonic()
        totals = Counter()

        def show(table: np.ndarray) -> None:
            nonlocal shown
            now = time.monotonic()
            refused = int(is_refused(table['status']).sum())
            admitted = table[is_admitted(table['status'])]
            failed = len(table) - len(admitted) - refused
            totals.update(ops=len(table), refused=refused, errors=failed)
            done = now - began if seconds else totals['ops']
            bar.update(task, completed=done)
            text = load_text(totals, admitted, len(table), now - shown)
            live.update(Group(bar, Text(text)), refresh=True)
            shown = now

        with contextlib.ExitStack() as stack:
            if self._status is not None:
                self._status.stop()
                stack.callback(self._status.start)
            options = {'auto_refresh': False, 'transient': True}
            live = Live(bar, console=self.console, **options)
            stack.enter_context(live)
            yield show


def load_text(
    totals: Mapping[str, int],
    admitted: np.ndarray,
    operations: int,
    seconds: float,
) -> str:
    """Return the figures of a running load. Pure.

    :param admitted: samples of the last seconds
    :param operations: the number of all samples of the last seconds
    """
    seconds = max(seconds, 1e-3)
    sizes = admitted['sent_bytes'] + admitted['body_bytes']
    return templates.line(
        'load',
        totals=totals,
        rate=operations / seconds,
        megabytes=float(sizes.sum() / _MEGABYTE / seconds),
        latency=latency(admitted['end'] - admitted['start']),
    )
