# SPDX-License-Identifier: Apache-2.0
"""Merge pending rows soon after they were listed.

A row in a ``.pending`` file may be lost in a power failure of its node. Swift
merges such rows, and waits for the disk, before each listing of a container.
If pending rows were listed without a merge, one green thread of the process
merges them some seconds later. It rests after each merge.
"""

import math
import time
from collections.abc import Callable

from shardmw.swift.concurrency import sleep, spawn

#: How many seconds after the first listing of pending rows to merge them. All
#: rows that are pending by then are merged in one transaction.
DELAY_SECONDS = 2

#: How late a merge may be, in seconds. If the backlog is greater, the pending
#: rows of further containers have to be merged before they are listed.
MOST_LATE_SECONDS = 2

#: The longest pause after a merge, in seconds.
MOST_REST_SECONDS = 1

#: The most containers with a merge to come in one process. The pending rows of
#: other containers have to be merged before they are listed.
MOST_CONTAINERS = 1024


class BackgroundMerges:
    """Merges the pending rows of containers, one container after another.

    :param merge: merges the rows of one container, and raises no error
    """

    def __init__(self, merge: Callable[..., None]) -> None:
        self._merge = merge
        # When to merge, by container, the earliest time first.
        self._due: dict[tuple, float] = {}
        self._is_running = False

    def has_room(self, *where: str) -> bool:
        """Return True if a container can be added, or will soon be merged.

        :param where: as for :meth:`add`
        """
        due = self._due.get(where)
        if due is None:
            if len(self._due) >= MOST_CONTAINERS:
                return False
            due = next(iter(self._due.values()), math.inf)
        return time.monotonic() <= due + MOST_LATE_SECONDS

    def add(self, *where: str) -> None:
        """Schedule a merge of a container's rows.

        :param where: the arguments for the function that merges
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
