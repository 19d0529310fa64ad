# SPDX-License-Identifier: Apache-2.0
"""A clock that tests set."""


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now
