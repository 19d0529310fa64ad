# SPDX-License-Identifier: Apache-2.0
"""Delay or ignore the signals that end a command."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Delay these signals, so that no message is read only in part."""
    if threading.current_thread() is not threading.main_thread():
        # only the main thread handles signals
        yield
        return
    came: list[tuple] = []
    handlers = {
        number: signal.signal(number, lambda *signal: came.append(signal))
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
    """Delay these signals, and block them in processes started inside.

    A terminal sends Ctrl-C to all processes. A new process that has not yet
    called :func:`ignore` would end with a traceback.
    """
    # it would unblock the signals if it started inside
    resource_tracker.ensure_running()
    with held_back():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore these signals: the parent process handles them."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
