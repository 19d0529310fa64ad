# SPDX-License-Identifier: Apache-2.0
"""Merge rows in the background that have been listed while they waited.

Nothing says when rows in a ``.pending`` file reach the disk. Swift merges them
before each of its listings; a client that lists an object knows that it is
there for good. So what has been listed while it waited is merged some seconds
later, by one green thread, which works at most half of the time.
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
