# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and the like, at moments when they may come."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold back signals that end a command until a ``with`` block is left.

    A message that is read or written in part would spoil those after it.
    """
    if threading.current_thread() is not threading.main_thread():
        # no signal is handled here
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))

    handlers = {
        number: signal.signal(number, note)
        for number in ENDING
        if callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came[:1]:
            handlers[number](number, frame)


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Hold them back, and from the processes that are started inside, too.

    A terminal sends Ctrl-C to all at once: one that has not come to
    :func:`ignore` yet would end with a traceback. These never get them.
    """
    # the first of its processes would unblock what it starts with
    resource_tracker.ensure_running()
    with held_back():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Leave these signals to the process that started this one."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
