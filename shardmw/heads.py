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

A memcached that was restarted lacks marks that workers remember to have set.
So until it is known for as long as a mark lasts, it is as if all containers
had been written to.
"""

import math
import time
from collections.abc import Iterable

from shardmw.backend import Answer, LogicalContainer, SharedCache
from shardmw.recent import Recent
from shardmw.stats import ContainerStats, total

SUMS_KEY = 'shardmw/head/{account}/{container}'
MARK_KEY = 'shardmw/written/{account}/{container}'

#: A memcached server has the one for ever when it has had the other, which
#: stands for all marks that it may lack.
HAS_MARKS_KEY = 'shardmw/has-marks'
LACKS_MARKS_KEY = 'shardmw/lacks-marks'
FOR_EVER = 0

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
        mark = _key(MARK_KEY, target)
        cache = SharedCache(env)
        written, lacks_marks, has_marks, sums = cache.get_together(
            [mark, LACKS_MARKS_KEY, HAS_MARKS_KEY, _key(SUMS_KEY, target)],
            mark,
        )
        if not has_marks:
            # The one must be seen to be there before the other is set.
            if lacks_marks:
                cache.set_together({HAS_MARKS_KEY: True}, mark, FOR_EVER)
            else:
                lasting = self._lasting(cache)
                cache.set_together({LACKS_MARKS_KEY: True}, mark, lasting)
            return None
        if written or lacks_marks or not sums or sums[0] != _tag(target):
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
            sums = {_key(SUMS_KEY, target): [_tag(target), *total(shards)]}
            place = _key(MARK_KEY, target)
            SharedCache(env).set_together(sums, place, seconds)

    def note_write(self, env: dict, target: LogicalContainer) -> None:
        """Mark a container, before a write to it is answered."""
        if self.seconds == 0:
            return
        mark = _key(MARK_KEY, target)
        now = time.monotonic()
        if now - self._marked.get(mark, -self.seconds) < self.seconds:
            return
        cache = SharedCache(env)
        if cache.put(mark, True, self._lasting(cache)):
            self._marked[mark] = now

    def _lasting(self, cache: SharedCache) -> int:
        """How long marks last: sums may be late by what memcached may take."""
        late = math.ceil(cache.timeout_seconds)
        return 2 * (self.seconds + ROUNDING_SECONDS) + late

    def _may_be_kept(self, env: dict) -> bool:
        return self.seconds > 0 and 'HTTP_X_NEWEST' not in env


def with_shards(root: Answer, sums: list) -> ContainerStats:
    """The figures of a root and of its shards together."""
    objects, size = sums
    return ContainerStats(root.object_count + objects, root.bytes_used + size)


def _tag(target: LogicalContainer) -> list:
    """What tells a container from others that had its name."""
    return [target.layout.to_record(), target.info.get('put_timestamp')]


def _key(template: str, target: LogicalContainer) -> str:
    return template.format(account=target.account, container=target.container)
