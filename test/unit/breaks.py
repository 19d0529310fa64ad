# SPDX-License-Identifier: Apache-2.0
"""Rules of a change of layout, each broken on purpose.

A search for wrong histories must find each of them. Every function yields the
patches that break one rule, and names the invariant of
:mod:`shardmw.core.phases` that no longer holds.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from shardmw.backend import accounts, nodes, roots
from shardmw.backend.answers import Answer
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.roots import RootState
from shardmw.core import evidence
from shardmw.core.evidence import Replica, Said
from shardmw.core.layout import MICROSECONDS, Layout
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.listing import request
from shardmw.proxy.object import ObjectController
from shardmw.reshard import late_rows, row_mover, row_pass
from shardmw.reshard.late_rows import NOTHING
from shardmw.reshard.resharding import Resharding
from test.unit import changesim
from test.unit.changeplan import Plan, draw

#: The deletion time that replicas without a database are given.
EARLY = 0.00001

#: How far a fast clock is ahead; longer than a history.
AHEAD_SECONDS = 3600


def one_tombstone() -> Iterator:
    """I2: Leave a tombstone only where new rows go."""
    yield mock.patch.object(
        LogicalContainer,
        'places_of',
        lambda target, name: {target.place_of(name)},
    )


def one_look() -> Iterator:
    """I2: Never look the layout up again for a DELETE that takes long."""
    yield mock.patch.object(
        ObjectController, '_looked_up_again', lambda *args: None
    )


def skipped_phase() -> Iterator:
    """I1: Begin the change with the phase *moving*."""
    announced = Layout.announced
    yield mock.patch.object(
        Layout,
        'announced',
        lambda layout, *args: announced(layout, *args).moving(args[1]),
    )


def no_wait() -> Iterator:
    """I1: Begin a phase before all proxies know of the previous one."""
    yield mock.patch.object(
        Resharding, '_wait_until_known', lambda *args, **kwargs: None
    )


def no_settling() -> Iterator:
    """I6: End the change once the old place is empty, and ignore late rows."""
    yield mock.patch.object(changesim, 'SETTLE_SECONDS', 0)
    yield mock.patch.object(changesim, 'settle', lambda *args: NOTHING)
    yield mock.patch.object(Resharding, 'sweep', lambda *args: 0)


def moved_at_once() -> Iterator:
    """I3: Remove rows from their old place while older listings may be read.

    These listings began before the rows were copied.
    """
    yield mock.patch.object(row_pass, 'STAY_SECONDS', 0)
    yield mock.patch.object(row_mover, 'make_durable', lambda *args: True)
    yield mock.patch.object(request, 'STAY_SECONDS', math.inf)


def quorum_is_enough() -> Iterator:
    """I4: Remove rows when a quorum of replicas has the new ones."""
    merge_rows = row_mover.merge_rows
    yield mock.patch.object(
        row_mover, 'merge_rows', lambda *args: merge_rows(*args) or True
    )


def tombstones_of_now() -> Iterator:
    """I5: Remove a row with a tombstone of the time of the move."""
    tombstone = row_mover.tombstone

    def of_now(*args) -> dict:
        row = tombstone(*args)
        return {**row, 'created_at': row_mover.Timestamp.now().internal}

    yield mock.patch.object(row_mover, 'tombstone', of_now)


def offsets_of_clocks() -> Iterator:
    """I5: Take the offsets of moved rows from clocks.

    The clock of the process that moves rows into shards is ahead.
    """

    def offset(layout: Layout) -> int:
        ahead = AHEAD_SECONDS if layout.shards else 0
        return int((time.time() + ahead) * MICROSECONDS)

    yield mock.patch.object(Layout, 'offset', property(offset))


def one_replica_is_trusted() -> Iterator:
    """I7: Move rows that only some replicas have like all other rows."""
    compared = row_pass._compared

    def trusted(*args) -> tuple[list, list]:
        agreed, doubtful = compared(*args)
        return [*agreed, *doubtful], []

    yield mock.patch.object(row_pass, '_compared', trusted)


def missing_is_deleted() -> Iterator:
    """I7: Count a replica without a database as deleted."""
    replica_of = nodes.replica_of

    def deleted(answer: Answer) -> Replica:
        replica = replica_of(answer)
        if replica.said is Said.MISSING:
            return Replica(Said.DELETED, deleted=EARLY)
        return replica

    yield from _everywhere('replica_of', deleted)


def two_fast_answers() -> Iterator:
    """I7: Decide by any majority of answers, without waiting for others."""

    def first_answers(*args, **kwargs) -> list[Answer]:
        fast = mock.patch.object(nodes, 'replica_of', _knows_if_answered)
        with fast:
            return ask_primaries(*args, **{**kwargs, 'waits': False})

    ask_primaries = nodes.ask_primaries
    yield mock.patch.object(roots, 'ask_primaries', first_answers)
    yield from _everywhere(
        'is_decided',
        lambda knowing, silent, replicas: 2 * (replicas - silent) > replicas,
    )
    yield mock.patch.object(RootState, 'is_proved', True)


def plain_by_one_replica() -> Iterator:
    """I7: Treat a container as plain if one replica says so."""
    yield mock.patch.object(
        Layouts, '_confirm_plain', lambda *args, **kwargs: None
    )


def _knows_if_answered(answer: Answer) -> Replica:
    is_answer = answer.is_success or answer.is_missing
    return Replica(Said.ALIVE if is_answer else Said.SILENT)


def _everywhere(name: str, function: Callable) -> Iterator:
    """Replace a function in all modules that use it."""
    for module in (evidence, nodes, roots, late_rows, row_pass, accounts):
        if hasattr(module, name):
            yield mock.patch.object(module, name, function)


BREAKS: dict[str, Callable[[], Iterator]] = {
    each.__name__: each
    for each in (
        one_tombstone,
        one_look,
        skipped_phase,
        no_wait,
        no_settling,
        moved_at_once,
        quorum_is_enough,
        tombstones_of_now,
        offsets_of_clocks,
        one_replica_is_trusted,
        missing_is_deleted,
        two_fast_answers,
        plain_by_one_replica,
    )
}


#: In how many histories each break must be found. A history takes a second or
#: two.
SEEDS_TO_FIND = 60

#: The first seed whose history shows each break. If the code takes other
#: steps, other seeds may: ``python -m test.unit.breaks`` finds them.
FIRST_SEEDS = {
    'one_tombstone': 0,
    'one_look': 8,
    'skipped_phase': 3,
    'no_wait': 3,
    'no_settling': 10,
    'moved_at_once': 157,
    'quorum_is_enough': 1,
    'tombstones_of_now': 2,
    'offsets_of_clocks': 2,
    'one_replica_is_trusted': 8,
    'missing_is_deleted': 19,
    'two_fast_answers': 13,
    'plain_by_one_replica': 3,
}


def usual_seeds(name: str) -> Iterator[int]:
    """Yield the seeds to try for a break, the one that is known first."""
    first = FIRST_SEEDS.get(name, 0)
    yield first
    yield from (seed for seed in range(SEEDS_TO_FIND) if seed != first)


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Break the named rule until the end of the block; '' breaks none."""
    with ExitStack() as stack:
        for patch in BREAKS[name]() if name else ():
            stack.enter_context(patch)
        yield


def found(name: str, seeds: Iterable[int]) -> Plan | None:
    """Return the first plan whose history shows that a rule is broken.

    :param seeds: of the plans to try
    """
    for seed in seeds:
        plan = draw(seed)
        with broken(name):
            history = changesim.carry_out(plan)
        if history.violations():
            return plan
    return None


def main() -> None:
    """Print the first seed that finds each break, for FIRST_SEEDS."""
    for name in BREAKS:
        plan = found(name, range(SEEDS_TO_FIND))
        print(f'    {name!r}: {plan and plan.seed},', flush=True)


if __name__ == '__main__':
    main()
