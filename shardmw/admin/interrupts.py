# SPDX-License-Identifier: Apache-2.0
"""End a command when the user interrupts it."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from shardmw.reshard.errors import FOUND

STDERR = 2


@contextlib.contextmanager
def interruptible(text: Callable[[], str]) -> Iterator[None]:
    """End the process, with a text on stderr, if it gets a SIGINT in a block.

    Python would raise KeyboardInterrupt in whichever green thread runs, where
    Swift's filter catch_errors takes it for a failed request, and goes on.
    """

    def end(_signal: int, _frame: object) -> None:
        # The signal may have come while a line was being printed.
        os.write(STDERR, f'{text()}\n'.encode(errors='replace'))
        os._exit(FOUND)

    before = signal.getsignal(signal.SIGINT)
    # A shell starts commands in the background with the signal ignored.
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
