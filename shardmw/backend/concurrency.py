# SPDX-License-Identifier: Apache-2.0
"""Green threads, as the installed Swift has them, and how they take turns."""

import time

try:
    from swift.common.concurrency import Event as Event
    from swift.common.concurrency import Timeout as Timeout
    from swift.common.concurrency import sleep as sleep
    from swift.common.concurrency import spawn as spawn
except ImportError:  # before Swift 2.38
    from eventlet import Event as Event
    from eventlet import Timeout as Timeout
    from eventlet import sleep as sleep
    from eventlet import spawn as spawn

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
