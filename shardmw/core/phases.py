# SPDX-License-Identifier: Apache-2.0
"""Define what each phase of a change of layout means: one table. Pure.

The layout record, the filter, the mover, container sync and the commands read
this table. No other code decides what a phase means.

A *side* is the place or places of rows in one layout: backing containers, or
the root of a plain container. If Swift's own sharder has split that root, the
shard containers stand for it (:mod:`shardmw.backend.split_roots`). OLD is the
side before a change, NEW the side after it. A change that is cancelled goes
back: the two sides are swapped.

The table and the code around it keep these invariants. Code, tests and the
breaks of the simulation cite their numbers:

I1  A phase begins only when every proxy must know the record of the phase
    before: all replicas of the root have it, and no cache can be older.
I2  While both sides may have a row of a name, a DELETE leaves a tombstone on
    both. If it has outlasted a wait, it looks up again which sides they are.
I3  A listing reads the side that rows leave before the side that they enter,
    and the root last. A row that moves meanwhile is found on one of the two.
I4  A row is removed only when every replica of its new place has it, on its
    disk.
I5  The tombstone of a move is newer than its row by an offset alone, and the
    offset grows with each record. So neither a later upload of the name nor a
    row that returns is hidden.
I6  A change ends only when the old side has stayed empty for the time to
    settle.
I7  Rows are moved, and containers deleted, only on proof: what a server does
    not say is no evidence (:mod:`shardmw.core.evidence`).
"""

from enum import Enum
from typing import NamedTuple

#: The names of phases, as they are in the record.
ANNOUNCED = 'announced'
MOVING = 'moving'
#: The same as moving, for a change that has been cancelled.
RETURNING = 'returning'
#: No change is under way.
DONE = None


class Side(Enum):
    """The places of rows before a change, or after it."""

    OLD = 'old'
    NEW = 'new'


OLD, NEW = Side


class Phase(NamedTuple):
    """The rules of a phase.

    :param name: as in the record
    :param rows_to: where rows of new uploads go
    :param tombstones_to: where a DELETE leaves tombstones
    :param reads: what a listing reads, in this order; then it reads the root
    :param syncs: what container-sync reads; None for nothing. Rows are removed
                  with tombstones, which it would send as deletions, so it does
                  not read a side that rows return to
    :param syncs_root: False if it reads nothing where that side is the root,
                       to which rows return
    :param moves_from: what rows are moved out of; None if no rows move
    :param is_cancelled: True if another process may still move rows the other
                         way, so that all rows that return get an offset (I5)
    :param next: the name of the next phase, or the same name for none
    """

    name: str | None
    rows_to: Side
    tombstones_to: tuple[Side, ...]
    reads: tuple[Side, ...]
    syncs: Side | None
    syncs_root: bool
    moves_from: Side | None
    is_cancelled: bool
    next: str | None


PHASES = {
    phase.name: phase
    for phase in (
        Phase(
            ANNOUNCED,
            rows_to=OLD,
            tombstones_to=(OLD, NEW),
            reads=(OLD, NEW),
            syncs=OLD,
            syncs_root=True,
            moves_from=None,
            is_cancelled=False,
            next=MOVING,
        ),
        Phase(
            MOVING,
            rows_to=NEW,
            tombstones_to=(NEW, OLD),
            reads=(OLD, NEW),
            syncs=NEW,
            syncs_root=False,
            moves_from=OLD,
            is_cancelled=False,
            next=DONE,
        ),
        Phase(
            RETURNING,
            rows_to=NEW,
            tombstones_to=(NEW, OLD),
            reads=(OLD, NEW),
            syncs=None,
            syncs_root=False,
            moves_from=OLD,
            is_cancelled=True,
            next=DONE,
        ),
        Phase(
            DONE,
            rows_to=NEW,
            tombstones_to=(NEW,),
            reads=(NEW,),
            syncs=NEW,
            syncs_root=True,
            moves_from=None,
            is_cancelled=False,
            next=DONE,
        ),
    )
}
