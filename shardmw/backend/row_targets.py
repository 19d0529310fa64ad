# SPDX-License-Identifier: Apache-2.0
"""The databases that take the rows of a sharded container's objects."""

import time

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.core.bounded import LRU

#: How long a backing container counts as not split by Swift's own sharder: the
#: time for which Swift caches container info by default.
WHOLE_SECONDS = 60

#: How many such backing containers a worker keeps, or up to twice as many.
WHOLE = 50_000


class RowTargets:
    """Finds the database for a row, with one look-up per shard and minute."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        # When backing containers have to be looked up again.
        self._whole = LRU(WHOLE, WHOLE_SECONDS, time.monotonic)

    def of(self, env: dict, target: LogicalContainer, name: str) -> str:
        """Return where the row of an object goes, ``account/container``."""
        return self.database(env, target.place_of(name), name)

    def database(self, env: dict, path: str, name: str) -> str:
        """Return the database that has the row of a name for a container.

        :param path: the container, ``account/container``
        """
        account, backing = path.split('/', 1)
        now = time.monotonic()
        if self._whole.get(path, 0) > now:
            return path
        found = self.backend.row_path(env, account, backing, name)
        if found == path:
            self._whole[path] = now + WHOLE_SECONDS
        return found
