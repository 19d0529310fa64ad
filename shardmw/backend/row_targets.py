# SPDX-License-Identifier: Apache-2.0
"""The databases that take the rows of a sharded container's objects."""

import time

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.core.bounded import BoundedDict
from shardmw.core.paths import Place

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
        self._whole = BoundedDict(WHOLE, WHOLE_SECONDS, time.monotonic)

    def of(self, env: dict, target: LogicalContainer, name: str) -> Place:
        """Return where the row of an object goes."""
        return self.database(env, target.place_of(name), name)

    def database(self, env: dict, place: Place, name: str) -> Place:
        """Return the database that has the row of a name for a container."""
        now = time.monotonic()
        if self._whole.get(place, 0) > now:
            return place
        found = self.backend.database_of(env, place, name)
        if found == place:
            self._whole[place] = now + WHOLE_SECONDS
        return found
