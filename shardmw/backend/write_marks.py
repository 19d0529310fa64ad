# SPDX-License-Identifier: Apache-2.0
"""Answers that are kept in memcached while no client writes to a container.

What was read of a container's shards is kept for a few seconds. A client's
write must show in the next answer of any proxy. So every write leaves a *mark*
in memcached before it is answered, and while there is a mark, no kept answer
is used. A worker does not renew its mark with each write: a mark lasts twice
as long as answers do, so during the first half of that time one mark covers
all of the worker's writes::

    worker A      write .. write ........ write
    mark          [======================][======================]
    answers       .....(kept: unused)     (read anew, kept again)

An answer that was read during a write may lack it. It expires before the mark
does, because its time counts from when the shards were asked.

A memcached server that was restarted lacks marks that workers have set. For as
long as a mark lasts after it is first seen, every container counts as written.

All of this holds as long as all proxies keep answers for the same time and use
the same memcached server for a container, and that server drops no mark early.
If a proxy cannot reach the server, the others show that proxy's writes only
after their kept answers expire. If it uses another server instead, it shows
the others' writes as late. If one of several servers fails or comes back, its
marks are not on the server that all proxies use next, which does not count as
restarted if it has marks of other containers. Writes then show late until the
workers set their marks again.
"""

import time
from collections.abc import Iterable

from shardmw.backend.containers import LogicalContainer
from shardmw.core.bounded import BoundedDict
from shardmw.swift.memcached import ROUNDING_SECONDS, SharedCache

MARK_KEY = 'shardmw/written'

#: A memcached server without the first key was restarted, or is new: it may
#: lack marks. The second key is then set, and stands for all of these marks.
#: The first key, which does not expire, is set after it.
HAS_MARKS_KEY = 'shardmw/has-marks'
LACKS_MARKS_KEY = 'shardmw/lacks-marks'
FOREVER = 0

#: How many containers' marks a worker remembers.
MARKS = 10_000


class WriteMarks:
    """Keeps answers of containers that no client writes to.

    :param seconds: how long to keep them; 0: not at all
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        # When this worker last marked a container.
        self._marked = BoundedDict(MARKS)

    def kept(
        self, env: dict, target: LogicalContainer, key: str
    ) -> list | None:
        """Return what is kept under a key, None if it must not be used.

        :param target: the container, as its root is now
        """
        if not self._may_be_kept(env, target):
            return None
        mark = _key(MARK_KEY, target)
        cache = SharedCache(env)
        written, lacks_marks, has_marks, kept = cache.get_together(
            [mark, LACKS_MARKS_KEY, HAS_MARKS_KEY, _key(key, target)], mark
        )
        if not has_marks:
            # The server gets the first key only after the second one was seen
            # there.
            if lacks_marks:
                cache.set_together({HAS_MARKS_KEY: True}, mark, FOREVER)
            else:
                seconds = self._mark_seconds(cache)
                cache.set_together({LACKS_MARKS_KEY: True}, mark, seconds)
            return None
        if written or lacks_marks or not kept:
            return None
        serial, *value = kept
        return value if serial == target.layout.serial else None

    def keep(
        self,
        env: dict,
        target: LogicalContainer,
        key: str,
        value: Iterable,
        asked: float,
    ) -> None:
        """Keep a value under a key.

        :param asked: when the shards were asked, by the monotonic clock
        """
        left = int(self.seconds - (time.monotonic() - asked))
        if left > 0 and self._may_be_kept(env, target):
            SharedCache(env).set_together(
                {_key(key, target): [target.layout.serial, *value]},
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
        lasts = self.seconds + ROUNDING_SECONDS
        return 2 * lasts + cache.latest_seconds

    def _may_be_kept(self, env: dict, target: LogicalContainer) -> bool:
        """Return True if answers may be kept: not while the layout changes."""
        is_changing = target.layout.is_changing
        is_newest = 'HTTP_X_NEWEST' in env
        return self.seconds > 0 and not (is_newest or is_changing)


def _key(key: str, target: LogicalContainer) -> str:
    """Return the memcached key of one kind of entry of a container."""
    return f'{key}/{target.account}/{target.container}'
