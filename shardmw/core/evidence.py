# SPDX-License-Identifier: Apache-2.0
"""Decide what the replicas of a container's database prove. Pure.

Each replica *says* one of four things:

========  ==========================================  ====================
alive     the container exists                        2xx
deleted   it was deleted, and when                    404 with the time
missing   there is no database: its disk is new, or   404 without a time
          the replica has yet to be moved there, or
          Swift has reclaimed it after a deletion
silent    nothing: the server is down, slow or fails  anything else
========  ==========================================  ====================

A replica *knows* if it says one of the first two. A replica that is missing
proves nothing, and one that is silent may know better than all others.

The rules for a container, with the :class:`Verdict` that they lead to:

1. What was put before the last deletion that any replica knows of is stale. A
   replica that knows of this deletion, and is alive again because rows have
   come since, is not stale if no replica was put later.
2. The replicas are *decided* if a majority of them knows, or if all have
   answered and at least one of them knows.
3. Decided, and something alive is not stale: ALIVE.
4. A majority says deleted, later than all that was put: DELETED.
5. A majority has answered, and none says alive: ABSENT. A client gets Swift's
   404. It is no proof: nothing is moved, deleted or dropped because of it.
6. All else is UNKNOWN: a client gets 503, a process tries again later. A root
   that can only be a plain one is left to Swift all the same
   (:func:`shardmw.backend.roots.state_of`).

And for the rows in a database (:func:`contents`):

7. HOLDS needs a replica that lists a row, and neither a majority that is alive
   and empty nor one that says deleted.
8. EMPTY needs a majority that is alive and empty, and none that lists a row.
9. GONE needs a majority that says deleted, and none that lists a row.
10. All else is UNKNOWN.
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple


class Said(enum.Enum):
    """The statement of one replica about a container."""

    ALIVE = 'alive'
    DELETED = 'deleted'
    MISSING = 'missing'
    SILENT = 'silent'


class Verdict(enum.Enum):
    """The conclusion from all replicas about a container."""

    ALIVE = 'alive'
    DELETED = 'deleted'
    ABSENT = 'absent'
    UNKNOWN = 'unknown'


class Contents(enum.Enum):
    """The conclusion from all replicas about the rows of a container."""

    HOLDS = 'holds'
    EMPTY = 'empty'
    GONE = 'gone'
    UNKNOWN = 'unknown'


class Replica(NamedTuple):
    """The statement of one replica, with its times and its row count.

    :param put: when the container was put last, in seconds since 1970
    :param deleted: when it was deleted last, 0 for never
    :param objects: how many rows it lists
    """

    said: Said
    put: float = 0
    deleted: float = 0
    objects: int = 0

    @property
    def is_alive(self) -> bool:
        """Return True if the replica says that the container exists."""
        return self.said is Said.ALIVE

    @property
    def knows(self) -> bool:
        """Return True if the replica has a database of the container."""
        return self.said in (Said.ALIVE, Said.DELETED)


def is_decided(knowing: int, silent: int, replicas: int) -> bool:
    """Return True if the replicas that know speak for all (rule 2).

    :param knowing: how many replicas know
    :param silent: how many have not answered
    :param replicas: how many there are
    """
    return 2 * knowing > replicas or (silent == 0 and knowing > 0)


def last_deletion(replicas: Sequence[Replica]) -> float:
    """Return when the container was deleted last, 0 if no replica knows."""
    return max((each.deleted for each in replicas if each.knows), default=0)


def current(replicas: Sequence[Replica]) -> list[int]:
    """Return the indices of the replicas that are alive and not stale.

    If rows have come to a deleted container, its databases that know of the
    deletion are alive again.
    """
    deleted = last_deletion(replicas)
    alive = [i for i, each in enumerate(replicas) if each.is_alive]
    put = [i for i in alive if replicas[i].put > deleted]
    return put or [i for i in alive if replicas[i].deleted == deleted]


def verdict(replicas: Sequence[Replica]) -> Verdict:
    """Return what the replicas of a container prove (rules 1 to 6)."""
    count = len(replicas)
    knowing = sum(each.knows for each in replicas)
    silent = sum(each.said is Said.SILENT for each in replicas)
    if current(replicas):
        if is_decided(knowing, silent, count):
            return Verdict.ALIVE
        return Verdict.UNKNOWN
    put = max((each.put for each in replicas if each.is_alive), default=0)
    deleted = sum(
        each.said is Said.DELETED and each.deleted > put for each in replicas
    )
    if 2 * deleted > count:
        return Verdict.DELETED
    is_disputed = any(each.is_alive for each in replicas)
    if not is_disputed and 2 * (count - silent) > count:
        return Verdict.ABSENT
    return Verdict.UNKNOWN


def contents(replicas: Sequence[Replica]) -> Contents:
    """Return what the replicas of a container list (rules 7 to 10)."""
    count = len(replicas)
    empty = sum(each.is_alive and not each.objects for each in replicas)
    deleted = sum(each.said is Said.DELETED for each in replicas)
    has_rows = any(each.is_alive and each.objects for each in replicas)
    if 2 * max(empty, deleted) <= count:
        return Contents.HOLDS if has_rows else Contents.UNKNOWN
    if has_rows:
        return Contents.UNKNOWN
    return Contents.EMPTY if empty > deleted else Contents.GONE
