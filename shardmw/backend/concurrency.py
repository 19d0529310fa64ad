# SPDX-License-Identifier: Apache-2.0
"""Green threads, as the installed Swift has them, and how they take turns."""

import os
import time
from collections.abc import Callable

try:
    from swift.common.concurrency import Event as Event
    from swift.common.concurrency import Semaphore as Semaphore
    from swift.common.concurrency import Timeout as Timeout
    from swift.common.concurrency import green_os, patcher
    from swift.common.concurrency import sleep as sleep
    from swift.common.concurrency import spawn as spawn
except ImportError:  # before Swift 2.38
    from eventlet import Event as Event
    from eventlet import Timeout as Timeout
    from eventlet import patcher
    from eventlet import sleep as sleep
    from eventlet import spawn as spawn
    from eventlet.green import os as green_os
    from eventlet.semaphore import Semaphore as Semaphore

_Thread = patcher.original('threading').Thread

#: How long a green thread works, in seconds, before others have their turn.
TURN_SECONDS = 0.01


class Turn:
    """The time that a green thread works for.

    The work that follows has to call :meth:`end_in_time` again and again.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def end_in_time(self) -> None:
        """Let others work, and begin the next turn, if this one was long."""
        if time.monotonic() - self._began > TURN_SECONDS:
            sleep()
            self._began = time.monotonic()


def run_in_thread(call: Callable[[], None]) -> None:
    """Call a function in a native thread of its own, and wait for it.

    Other green threads have turns meanwhile. The threads of ``eventlet.tpool``
    are few: all of them may wait for a lock that the caller holds.

    :raises RuntimeError: if the system starts no more threads
    :raises BaseException: what the function raises
    """
    failures = []
    is_done, done = os.pipe()

    def run() -> None:
        try:
            call()
        except BaseException as err:
            failures.append(err)
        finally:
            os.close(done)

    os.set_blocking(is_done, False)
    try:
        try:
            _Thread(target=run, daemon=True).start()
        except RuntimeError:
            os.close(done)
            raise
        green_os.read(is_done, 1)
    finally:
        os.close(is_done)
    if failures:
        raise failures[0]
