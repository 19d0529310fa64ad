# SPDX-License-Identifier: Apache-2.0
"""Rules of a change of layout, each broken on purpose.

A search for wrong histories is worth what it finds: it must notice each of
these. The functions yield the patches that break a rule.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from shardmw.backend.containers import LogicalContainer
from shardmw.layout import moving, passes
from shardmw.layout.adoption import Adoption
from shardmw.layout.resharding import Resharding
from shardmw.listing import request
from shardmw.record import MICROSECONDS, Layout
from test.unit import changesim
from test.unit.changeplan import Plan, draw

#: How far a clock is ahead that is; longer than a history.
AHEAD_SECONDS = 3600


def one_tombstone() -> Iterator:
    """Leave a tombstone only where new rows go."""
    yield mock.patch.object(
        LogicalContainer,
        'places_of',
        lambda target, name: {target.place_of(name)},
    )


def skipped_phase() -> Iterator:
    """Begin the change with the phase *moving*."""
    announced = Layout.announced
    yield mock.patch.object(
        Layout,
        'announced',
        lambda layout, *args: announced(layout, *args).moving(args[1]),
    )


def no_wait() -> Iterator:
    """Begin a phase before all proxies know of the one before."""
    yield mock.patch.object(
        Resharding, '_wait_until_known', lambda *args, **kwargs: None
    )


def no_settling() -> Iterator:
    """End the change when the old place is empty, and forget late rows."""
    yield mock.patch.object(changesim, 'SETTLE_SECONDS', 0)
    yield mock.patch.object(Adoption, 'look', lambda *args, **kwargs: False)
    yield mock.patch.object(Resharding, 'sweep', lambda *args: 0)


def moved_at_once() -> Iterator:
    """Remove rows from their old place while listings that began before the
    copy may still be read."""
    yield mock.patch.object(passes, 'STAY_SECONDS', 0)
    yield mock.patch.object(request, 'STAY_SECONDS', math.inf)


def quorum_is_enough() -> Iterator:
    """Remove old rows when a quorum of replicas has the new ones."""
    merge_rows = moving.merge_rows
    yield mock.patch.object(
        moving, 'merge_rows', lambda *args: merge_rows(*args) or True
    )


def tombstones_of_now() -> Iterator:
    """Remove a row from its old place with the time of the move."""
    tombstone = moving.tombstone

    def of_now(*args) -> dict:
        row = tombstone(*args)
        return {**row, 'created_at': moving.Timestamp.now().internal}

    yield mock.patch.object(moving, 'tombstone', of_now)


def offsets_of_clocks() -> Iterator:
    """Move rows with offsets of clocks, of which one is ahead.

    That is the clock of the process that moves rows into shards.
    """

    def offset(layout: Layout) -> int:
        ahead = AHEAD_SECONDS if layout.shards else 0
        return int((time.time() + ahead) * MICROSECONDS)

    yield mock.patch.object(Layout, 'offset', property(offset))


def one_replica_is_trusted() -> Iterator:
    """Move a row that only some replicas have like all others."""
    compared = passes._compared

    def trusted(*args) -> tuple[list, list]:
        agreed, doubtful = compared(*args)
        return [*agreed, *doubtful], []

    yield mock.patch.object(passes, '_compared', trusted)


BREAKS: dict[str, Callable[[], Iterator]] = {
    each.__name__: each
    for each in (
        one_tombstone,
        skipped_phase,
        no_wait,
        no_settling,
        moved_at_once,
        quorum_is_enough,
        tombstones_of_now,
        offsets_of_clocks,
        one_replica_is_trusted,
    )
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Break a rule by its name; '' breaks none."""
    with ExitStack() as stack:
        for patch in BREAKS[name]() if name else ():
            stack.enter_context(patch)
        yield


def found(name: str, seeds: int) -> Plan | None:
    """Return the first plan whose history is wrong if a rule is broken.

    :param seeds: how many plans to try
    """
    for seed in range(seeds):
        plan = draw(seed)
        with broken(name):
            history = changesim.carry_out(plan)
        if history.violations():
            return plan
    return None
