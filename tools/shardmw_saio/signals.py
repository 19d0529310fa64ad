# SPDX-License-Identifier: Apache-2.0
"""Make signals end a command in a way that lets it clean up."""

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import NoReturn

#: A shell adds this to the number of the signal that ended a command.
ENDED_BY_SIGNAL = 128

_AGAIN_SECONDS = 0.1


class _Ended(SystemExit):
    """A signal ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__(ENDED_BY_SIGNAL + number)
        self.number = number


def raise_at_signals() -> None:
    """Let SIGTERM and SIGHUP raise SystemExit, as SIGINT raises its exception.

    Python ignores an exception that is raised while a destructor or a callback
    of a weak reference runs. The signal is then sent again.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    sys.unraisablehook = partial(_send_again, sys.unraisablehook)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise _Ended(number)


def _send_again(
    former: Callable[['sys.UnraisableHookArgs'], object],
    ignored: 'sys.UnraisableHookArgs',
) -> None:
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        number = signal.SIGINT
    elif isinstance(ignored.exc_value, _Ended):
        number = ignored.exc_value.number
    else:
        former(ignored)
        return
    target = threading.main_thread().ident, number
    timer = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, target)
    timer.daemon = True
    timer.start()
