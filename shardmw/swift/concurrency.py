# SPDX-License-Identifier: Apache-2.0
"""Green threads of the installed Swift, and how they take turns."""

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

#: How long a green thread works, in seconds, before it yields to others.
TURN_SECONDS = 0.01


class TimeSlice:
    """The time that a green thread works before it yields to others.

    Its work must call :meth:`end_in_time` again and again.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def end_in_time(self) -> None:
        """Yield to other green threads if this time slice was long enough."""
        if time.monotonic() - self._began > TURN_SECONDS:
            sleep()
            self._began = time.monotonic()
