# SPDX-License-Identifier: Apache-2.0
"""Advice on the number of shards of a container: pure."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from shardmw.core.bounded import BoundedDict
from shardmw.core.layout import SHARD_COUNT_LIMIT

#: The most rows with which a database is fast. Swift's own sharder splits
#: larger ones.
ROWS_PER_SHARD = 1_000_000

#: A database with at least this share of the allowed rows is nearly full.
NEAR = 0.8

#: The advised count leaves room for this many times the present objects.
HEADROOM = 2

#: Shards are uneven if the fullest one has more than this many times the mean.
#: With depth 0, shards that are nearly full differ by much less.
UNEVEN = 2

#: A container with this many times the advised count has too many shards.
SHRINK_FACTOR = 4

#: A database that grows by this share of its rate limit is held by it.
NEAR_LIMIT = 0.9

#: For how many containers with a rate limit to note the growth.
CONTAINERS_NOTED = 100_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A container with the figures of its databases.

    :param shards: the number of shards, 0 for a plain container
    :param objects: the rows of all shards and of the root
    :param fullest: the rows of the fullest database
    :param problem: why its layout could not be read, '' if it was read
    :param phase: the phase of the change that is under way, '' without one
    :param depth: how many components of a name select its shard
    :param new_shards: the number of shards after the change that is under way
    :param floor: the least number of shards that ``auto_shrink`` leaves
    :param since: when the layout became what it is, in seconds since 1970; 0
                  if the container was never sharded
    """

    account: str
    container: str
    shards: int
    objects: int
    bytes: int
    fullest: int
    problem: str = ''
    phase: str = ''
    depth: int = 0
    new_shards: int = 0
    floor: int = 0
    since: float = 0

    @property
    def skew(self) -> float:
        """Return the rows of the fullest shard divided by the mean.

        It is 1 for a plain container. It is never less, even if the account
        lists counts of the root and of the shards that differ in age.
        """
        if not (self.shards and self.objects):
            return 1.0
        return max(1.0, self.fullest * self.shards / self.objects)

    @property
    def is_uneven(self) -> bool:
        """Return True if the depth puts far too many rows into one shard.

        Return False during a change, when rows are in two places.
        """
        if self.phase or not self.depth:
            return False
        return self.skew > UNEVEN


class Fullest:
    """Selects the containers with the fullest databases.

    Containers whose layout changes are left out: their rows are in two places.

    :param count: how many to keep
    """

    def __init__(self, count: int) -> None:
        self._count = count
        # A heap of (rows, account, name, container), the fewest rows first.
        self._kept: list[tuple[int, str, str, Listed]] = []

    @property
    def containers(self) -> list[Listed]:
        """Return the selected containers, the fullest first."""
        return [each for *_, each in sorted(self._kept, reverse=True)]

    def among(self, containers: Iterable[Listed]) -> Iterator[Listed]:
        """Yield all containers, and select the fullest of them."""
        for each in containers:
            if not (each.problem or each.phase):
                entry = (each.fullest, each.account, each.container, each)
                heapq.heappush(self._kept, entry)
            if len(self._kept) > self._count:
                heapq.heappop(self._kept)
            yield each


@dataclass(frozen=True, slots=True)
class Finding:
    """A container whose fullest database has too many rows, or nearly so.

    :param is_over: False if it is only near the limit
    :param advised_shards: the count that leaves room to grow; during a
                           change, the count after it
    :param is_uneven: True if more shards would not help, because large
                      directories are in one shard
    :param phase: the phase of the change that is under way, '' without one
    """

    account: str
    container: str
    shards: int
    objects: int
    fullest: int
    is_over: bool
    advised_shards: int
    depth: int = 0
    is_uneven: bool = False
    phase: str = ''


def findings_among(
    containers: Iterable[Listed], rows_per_shard: int
) -> Iterator[Finding]:
    """Yield the containers whose fullest database is full, or nearly."""
    for each in containers:
        if each.fullest < NEAR * rows_per_shard:
            continue
        advised = max(
            each.shards, advised_shards(each.objects, rows_per_shard)
        )
        yield Finding(
            each.account,
            each.container,
            each.shards,
            each.objects,
            each.fullest,
            each.fullest > rows_per_shard,
            each.new_shards if each.phase else advised,
            each.depth,
            each.is_uneven,
            each.phase,
        )


def advised_shards(objects: int, rows_per_shard: int) -> int:
    """Return the shard count that leaves a container room to grow.

    :returns: a power of two, at most :data:`SHARD_COUNT_LIMIT`
    """
    needed = shards_for_rows(HEADROOM * objects, rows_per_shard)
    return min(SHARD_COUNT_LIMIT, power_of_two(needed))


def shards_for_rows(objects: int, rows: int) -> int:
    """Return how many shards are needed, with at most `rows` objects each."""
    return max(1, -(-objects // rows))


def power_of_two(count: int) -> int:
    """Return the smallest power of two that is at least `count`."""
    return 1 << (count - 1).bit_length()


def suitable_shards(
    container: Listed, rows_per_shard: int, max_shards: int
) -> int:
    """Return the shard count that a container should have.

    :param max_shards: the most shards that it may get
    :returns: its own count, unless its fullest database has too many rows, or
              it has far more shards than it needs and its floor allows
    """
    own = container.shards
    advised = advised_shards(container.objects, rows_per_shard)
    if container.fullest > rows_per_shard:
        return max(own, min(advised, max_shards))
    least = max(advised, container.floor)
    return least if own >= SHRINK_FACTOR * least else own


class Growth:
    """Finds containers whose fullest database takes all the rows it may.

    Such a container has a client that writes faster than the rate limit lets
    it. Rows that replace or delete others are not seen: they do not count.

    More shards do not help a container whose depth puts far too many rows into
    one shard.

    :param limit: returns the rows per second that a shard may get in a
                  container whose shards have so many rows on average; None for
                  no limit
    :param seconds: for how long a container must have grown at its limit
    """

    def __init__(
        self, limit: Callable[[int], float | None], seconds: float = 3600
    ) -> None:
        self._limit = limit
        self._seconds = seconds
        # By account, container and shards: a time, and the rows then.
        self._noted = BoundedDict(CONTAINERS_NOTED)

    def is_held(self, container: Listed, now: float) -> bool:
        """Note the rows of a container; return True if its limit held it.

        :param now: the time, in seconds
        """
        limit = self._limit(container.objects // max(1, container.shards))
        if limit is None or container.is_uneven:
            return False
        key = container.account, container.container, container.shards
        began, rows = self._noted.get(key, (now, container.fullest))
        is_long = now - began >= self._seconds
        if is_long or key not in self._noted:
            self._noted[key] = now, container.fullest
        least = NEAR_LIMIT * limit * (now - began)
        return is_long and container.fullest - rows >= least


def skew(rows: list[int]) -> float:
    """Return the rows of the fullest shard divided by the mean of all."""
    total = sum(rows)
    return max(rows) * len(rows) / total if total else 1.0
