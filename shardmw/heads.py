# SPDX-License-Identifier: Apache-2.0
"""The sums that HEADs of quiet containers show.

A HEAD asks every shard, and its sums are kept in memcached for a few seconds.
While they are, another HEAD asks the root only. What a client has written must
show in its next HEAD, whichever proxy that meets. So every write leaves a mark
in memcached before it is answered, and while there is a mark, no sums are
taken from there. A worker need not renew its mark with each write: it lasts
twice as long as sums do, so for the first half of its time it is good for all
of a worker's writes::

    worker A      write .. write ........ write
    mark          [======================][======================]
    HEAD          .....(sums: unused)     (read anew, kept again)

Sums that were read while a write went on are kept, too, and may lack it; they
are gone before the mark is. That is why their time counts from when they were
asked for.
"""

import time
from collections.abc import Iterable

from shardmw.backend import Answer, LogicalContainer, SharedCache
from shardmw.recent import Recent
from shardmw.stats import ContainerStats, total

SUMS_KEY = 'shardmw/head/{account}/{container}'
MARK_KEY = 'shardmw/written/{account}/{container}'

#: memcached counts whole seconds: an entry may go one sooner, or later.
ROUNDING_SECONDS = 1

#: How many containers' marks a worker remembers.
MARKS = 10_000


class HeadSums:
    """Sums over the shards of containers that nobody writes to.

    :param seconds: for how long to keep them, 0 for not at all
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        # When this worker last marked a container.
        self._marked = Recent(MARKS)

    def kept(self, env: dict, target: LogicalContainer) -> list | None:
        """The shards' objects and bytes, None if they must be read.

        :param target: the container, as its root is now
        """
        if not self._may_be_kept(env):
            return None
        key = _key(SUMS_KEY, target)
        mark, sums = SharedCache(env).get_together(
            [_key(MARK_KEY, target), key], key
        )
        if mark or not sums or sums[0] != target.layout.to_record():
            return None
        return sums[1:]

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        shards: Iterable[Answer],
        asked: float,
    ) -> None:
        """Keep what all shards answered.

        :param asked: since when they were asked, of the monotonic clock
        """
        seconds = int(self.seconds - (time.monotonic() - asked))
        if seconds > 0 and self._may_be_kept(env):
            key = _key(SUMS_KEY, target)
            sums = [target.layout.to_record(), *total(shards)]
            SharedCache(env).set_together({key: sums}, key, seconds)

    def note_write(self, env: dict, target: LogicalContainer) -> None:
        """Mark a container, before a write to it is answered."""
        if self.seconds == 0:
            return
        mark, key = _key(MARK_KEY, target), _key(SUMS_KEY, target)
        now = time.monotonic()
        if now - self._marked.get(mark, -self.seconds) < self.seconds:
            return
        lasting = 2 * (self.seconds + ROUNDING_SECONDS)
        SharedCache(env).set_together({mark: True}, key, lasting)
        self._marked[mark] = now

    def _may_be_kept(self, env: dict) -> bool:
        return self.seconds > 0 and 'HTTP_X_NEWEST' not in env


def with_shards(root: Answer, sums: list) -> ContainerStats:
    """The figures of a root and of its shards together."""
    objects, size = sums
    return ContainerStats(root.object_count + objects, root.bytes_used + size)


def _key(template: str, target: LogicalContainer) -> str:
    return template.format(account=target.account, container=target.container)
