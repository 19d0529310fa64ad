# SPDX-License-Identifier: Apache-2.0
"""A clock that tests set."""


class Clock:
    """A replacement for the module ``time`` or one of its functions.

    :ivar now: the time in seconds; tests change it
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        """Return the time that the test has set."""
        return self.now

    time = __call__ = monotonic
