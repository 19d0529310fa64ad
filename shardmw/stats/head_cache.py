# SPDX-License-Identifier: Apache-2.0
"""The sums that HEADs of containers show while no client writes.

A HEAD reads every shard and keeps the sums in memcached for a few seconds.
While they are kept, the next HEAD reads the root only. A client's write must
show in its next HEAD, on any proxy. So every write leaves a *mark* in
memcached before it is answered, and while there is a mark, kept sums are not
used. A worker does not renew its mark with each write: a mark lasts twice as
long as sums do, so during the first half of that time one mark covers all of
the worker's writes::

    worker A      write .. write ........ write
    mark          [======================][======================]
    HEAD          .....(sums: unused)     (read anew, kept again)

Sums that were read during a write may lack it. They expire before the mark
does, because their time counts from when the shards were asked.

A memcached server that was restarted lacks marks that workers have set. For as
long as a mark lasts after it is first seen, every container counts as written.
"""

import math
import time
from collections.abc import Iterable

from shardmw.backend.answers import Answer
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.memcached import SharedCache
from shardmw.lru import LRU
from shardmw.stats.sums import ContainerStats, total

SUMS_KEY = 'shardmw/head/{account}/{container}'
MARK_KEY = 'shardmw/written/{account}/{container}'

#: A memcached server has the first key forever after it has had the second
#: key, which stands for all marks that the server may have lost.
HAS_MARKS_KEY = 'shardmw/has-marks'
LACKS_MARKS_KEY = 'shardmw/lacks-marks'
FOREVER = 0

#: memcached counts whole seconds, so an entry may expire one earlier or later.
ROUNDING_SECONDS = 1

#: How many containers' marks a worker remembers.
MARKS = 10_000


class HeadCache:
    """Keeps the sums of containers that no client writes to.

    :param seconds: how long to keep sums; 0: not at all
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        # When this worker last marked a container.
        self._marked = LRU(MARKS)

    def kept(
        self, env: dict, target: LogicalContainer
    ) -> ContainerStats | None:
        """Return the kept sums over the shards, or None to read them.

        :param target: the container, as its root is now
        """
        if not self._may_be_kept(env, target):
            return None
        mark = _key(MARK_KEY, target)
        cache = SharedCache(env)
        written, lacks_marks, has_marks, sums = cache.get_together(
            [mark, LACKS_MARKS_KEY, HAS_MARKS_KEY, _key(SUMS_KEY, target)],
            mark,
        )
        if not has_marks:
            # The server must be seen to have the second key before it gets
            # the first.
            if lacks_marks:
                cache.set_together({HAS_MARKS_KEY: True}, mark, FOREVER)
            else:
                seconds = self._mark_seconds(cache)
                cache.set_together({LACKS_MARKS_KEY: True}, mark, seconds)
            return None
        serial = target.layout.serial
        if written or lacks_marks or not sums or sums[0] != serial:
            return None
        return ContainerStats(*sums[1:])

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        shards: Iterable[Answer],
        asked: float,
    ) -> None:
        """Keep the sums of what all shards answered.

        :param asked: when they were asked, by the monotonic clock
        """
        seconds = int(self.seconds - (time.monotonic() - asked))
        if seconds > 0 and self._may_be_kept(env, target):
            sums = [target.layout.serial, *total(shards)]
            SharedCache(env).set_together(
                {_key(SUMS_KEY, target): sums}, _key(MARK_KEY, target), seconds
            )

    def mark_write(self, env: dict, target: LogicalContainer) -> None:
        """Mark a container as written, before the write is answered."""
        if self.seconds == 0:
            return
        mark = _key(MARK_KEY, target)
        now = time.monotonic()
        if now - self._marked.get(mark, -self.seconds) < self.seconds:
            return
        cache = SharedCache(env)
        if cache.put(mark, True, self._mark_seconds(cache)):
            self._marked[mark] = now

    def _mark_seconds(self, cache: SharedCache) -> int:
        """Return how long marks last.

        Sums may reach memcached late by as long as it may take to answer.
        """
        late = math.ceil(cache.timeout_seconds)
        return 2 * (self.seconds + ROUNDING_SECONDS) + late

    def _may_be_kept(self, env: dict, target: LogicalContainer) -> bool:
        """Return True if sums may be cached: not while rows move."""
        is_changing = target.layout.is_changing
        is_newest = 'HTTP_X_NEWEST' in env
        return self.seconds > 0 and not (is_newest or is_changing)


def _key(template: str, target: LogicalContainer) -> str:
    return template.format(account=target.account, container=target.container)
