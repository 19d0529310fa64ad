# SPDX-License-Identifier: Apache-2.0
"""Answers that are kept in memcached while no client writes to a container.

What was read of a container's shards is kept for a few seconds. A client's
write must show in the next answer of any proxy. So every write leaves a *mark*
in memcached before it is answered, and while there is a mark, nothing that is
kept is used. A worker does not renew its mark with each write: a mark lasts
twice as long as answers do, so during the first half of that time one mark
covers all of the worker's writes::

    worker A      write .. write ........ write
    mark          [======================][======================]
    answers       .....(kept: unused)     (read anew, kept again)

An answer that was read during a write may lack it. It expires before the mark
does, because its time counts from when the shards were asked.

A memcached server that was restarted lacks marks that workers have set. For as
long as a mark lasts after it is first seen, every container counts as written.

All of this holds while all proxies keep answers for the same time, use the
same memcached server for a container, and it drops no mark before its time. If
a proxy cannot reach the server, the others show that proxy's writes when what
they have kept expires. If it uses another server instead, it shows the others'
writes as late. If one of several servers dies or comes back, its marks are not
on the server that all proxies use next, which has marks of other containers:
writes show late until the workers set their marks again.
"""

import math
import time
from collections.abc import Mapping, Sequence

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.memcached import SharedCache
from shardmw.lru import LRU

MARK_KEY = 'shardmw/written'

#: A memcached server without the first key was restarted, or is new: it may
#: lack marks. The second key is then set, and stands for all of these marks.
#: The first key, which does not expire, is set after it.
HAS_MARKS_KEY = 'shardmw/has-marks'
LACKS_MARKS_KEY = 'shardmw/lacks-marks'
FOREVER = 0

#: memcached counts whole seconds, so an entry may expire one earlier or later.
ROUNDING_SECONDS = 1

#: How many containers' marks a worker remembers.
MARKS = 10_000


class WriteMarks:
    """Keeps answers of containers that no client writes to.

    :param seconds: the most seconds for which anything is kept; 0: nothing is
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        # When this worker last marked a container.
        self._marked = LRU(MARKS)

    def kept(
        self, env: dict, target: LogicalContainer, keys: Sequence[str]
    ) -> list[list | None] | None:
        """Return what is kept under some keys.

        :param target: the container, as its root is now
        :returns: a value for each key, None for one that has none; None if
                  kept values must not be used or stored now
        """
        if not self._may_be_kept(env, target):
            return None
        mark = _key(MARK_KEY, target)
        cache = SharedCache(env)
        written, lacks_marks, has_marks, *values = cache.get_together(
            [mark, LACKS_MARKS_KEY, HAS_MARKS_KEY]
            + [_key(key, target) for key in keys],
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
        if written or lacks_marks:
            return None
        serial = target.layout.serial
        return [
            value[1:] if value and value[0] == serial else None
            for value in values
        ]

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        values: Mapping[str, list],
        asked: float,
        seconds: int,
    ) -> None:
        """Keep values by their keys.

        :param asked: when the shards were asked, by the monotonic clock
        :param seconds: for how long since then, at most that of the marks
        """
        left = int(seconds - (time.monotonic() - asked))
        if left > 0 and values and self._may_be_kept(env, target):
            serial = target.layout.serial
            SharedCache(env).set_together(
                {
                    _key(key, target): [serial, *value]
                    for key, value in values.items()
                },
                _key(MARK_KEY, target),
                left,
            )

    def mark(self, env: dict, target: LogicalContainer) -> None:
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

        An answer may reach memcached late, and then lasts longer.
        """
        late = math.ceil(cache.latest_seconds)
        return 2 * (self.seconds + ROUNDING_SECONDS) + late

    def _may_be_kept(self, env: dict, target: LogicalContainer) -> bool:
        """Return False also while rows move between the root and shards."""
        is_changing = target.layout.is_changing
        is_newest = 'HTTP_X_NEWEST' in env
        return self.seconds > 0 and not (is_newest or is_changing)


def _key(key: str, target: LogicalContainer) -> str:
    """Return the key of something of a container."""
    return f'{key}/{target.account}/{target.container}'
