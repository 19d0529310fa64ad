# SPDX-License-Identifier: Apache-2.0
"""Have rows merged soon after they have been listed while they wait.

A row in a ``.pending`` file may be lost with the power of its node. Swift
merges such rows, and waits for the disk, before each listing of a container.
So rows that were listed without that are merged some seconds later, by one
green thread of the process, which works at most half of the time.
"""

import time
from collections.abc import Callable

from shardmw.backend.concurrency import sleep, spawn

#: How long after the first listing of waiting rows they are merged. What else
#: waits by then is merged with them, in one transaction.
DELAY_SECONDS = 2

#: How many containers a process remembers at most. Rows of others have to be
#: merged before they are listed.
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
        """Return True if a container can be added.

        :param where: as of :meth:`add`
        """
        return where in self._due or len(self._due) < MOST_CONTAINERS

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
                sleep(time.monotonic() - began)
        finally:
            self._is_running = False
