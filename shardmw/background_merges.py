# SPDX-License-Identifier: Apache-2.0
"""Have rows merged soon after they have been listed while they wait.

A row in a ``.pending`` file may be lost with the power of its node. Swift
merges such rows, and waits for the disk, before each listing of a container.
So rows that were listed without that are merged some seconds later, by one
green thread of the process, which rests after each merge.
"""

import math
import time
from collections.abc import Callable

from shardmw.backend.concurrency import sleep, spawn

#: How long after the first listing of waiting rows they are merged. What else
#: waits by then is merged with them, in one transaction.
DELAY_SECONDS = 2

#: By how much a merge may be late, in seconds. Rows of further containers have
#: to be merged before they are listed then.
MOST_LATE_SECONDS = 2

#: The longest pause after a merge, in seconds.
MOST_REST_SECONDS = 1

#: How many containers a process remembers at most. For others, the same holds.
MOST_CONTAINERS = 1024


class BackgroundMerges:
    """Merges the rows of containers, one container after the other.

    :param merge: merges the rows of the container that it is given, and
                  raises no error
    """

    def __init__(self, merge: Callable[..., None]) -> None:
        self._merge = merge
        # The times to merge at, by container, the earliest one first.
        self._due: dict[tuple, float] = {}
        self._is_running = False

    def has_room(self, *where: str) -> bool:
        """Return True if a container can be added, or will soon be merged.

        :param where: as of :meth:`add`
        """
        due = self._due.get(where)
        if due is None:
            if len(self._due) >= MOST_CONTAINERS:
                return False
            due = next(iter(self._due.values()), math.inf)
        return time.monotonic() <= due + MOST_LATE_SECONDS

    def add(self, *where: str) -> None:
        """Have the rows of a container merged soon.

        :param where: what to give to the function that merges
        """
        self._due.setdefault(where, time.monotonic() + DELAY_SECONDS)
        if not self._is_running:
            self._is_running = True
            spawn(self._run)

    def _run(self) -> None:
        try:
            while self._due:
                where, due = next(iter(self._due.items()))
                sleep(max(0, due - time.monotonic()))
                del self._due[where]
                began = time.monotonic()
                self._merge(*where)
                sleep(min(time.monotonic() - began, MOST_REST_SECONDS))
        finally:
            self._is_running = False
