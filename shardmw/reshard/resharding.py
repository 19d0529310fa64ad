# SPDX-License-Identifier: Apache-2.0
"""Changes of a container's layout while clients use it.

A change has three steps, each a write of the layout record
(:mod:`shardmw.core.phases` says what each phase means for requests). A step
begins only when every proxy must know the one before: all replicas of the root
have its record, and the time for which proxies cache container info has passed
since. This module decides which step is next, and
:mod:`shardmw.reshard.executor` carries it out.

In the phase *moving*, rows are read from the old place in pages, copied to the
new one, and removed from the old one a second after every replica of the new
one has them. An upload that began before the change, or an update that an
object server delayed, may bring rows to the old place later. So the old place
is looked through again, until it has been empty for the time to *settle*.

The process that does this can be killed at any point and started again, and
two of them do no harm: copying and removing rows is idempotent, and rows move
only in a direction that has been in the record for long enough. What is under
way is listed in the register (:mod:`shardmw.reshard.register`).
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from swift.common.constraints import AUTO_CREATE_ACCOUNT_PREFIX

from shardmw.backend.answers import require_success
from shardmw.backend.backing_containers import listed_backing
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.metrics import ADOPTED, LATE, RESHARDED_ROWS
from shardmw.backend.roots import RootState, lists_nothing, unproved
from shardmw.backend.rows import STAY_SECONDS
from shardmw.backend.split_roots import split_root
from shardmw.backend.sync_settings import agreed_settings
from shardmw.core.layout import PLAIN, Layout
from shardmw.core.paths import Path
from shardmw.core.phases import Side
from shardmw.core.placement import can_be_sharded
from shardmw.proxy.layouts import LEAST_SECONDS, UNCONFIRMED_SECONDS
from shardmw.reshard.executor import Executor
from shardmw.reshard.progress import Progress
from shardmw.reshard.row_pass import Pace, RowPass

#: The phase in which container-sync may still read the old place.
WAITING_FOR_SYNC = 'waiting for container-sync'

#: How long to wait before a failed step is retried.
RETRY_SECONDS = 5

#: How often to look whether all replicas of a root have a record.
POLL_SECONDS = 0.5

#: How old the last check of the record may be when rows are written. So rows
#: are removed only after a check that is not older than their copies.
CHECK_SECONDS = STAY_SECONDS

#: How often to look whether a change that waits for a slot may move rows.
SLOT_SECONDS = 0.5

#: How many times the old place is looked through while it settles.
PASSES_TO_SETTLE = 3


class ChangeRefusedError(Exception):
    """A change of layout cannot begin. The text says why."""


class _RecordChangedError(BackendError):
    """Another process has written the record of a container."""

    def __init__(self) -> None:
        super().__init__(None, 503, 'another process has changed the layout')


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """The waits and bounds of changes.

    :param cache_seconds: for how long proxies may cache container info
    :param settle_seconds: for how long the old place has to stay empty
    :param rows_per_second: the most rows to move a second; 0 for no limit
    :param asks_for_objects: True to check the object of each row before it
                             moves, and not only of rows that replicas lack
    :param sync_seconds: the longest time until container-sync has visited a
                         container again
    """

    cache_seconds: float = 60
    settle_seconds: float = 86400
    rows_per_second: int = 0
    asks_for_objects: bool = False
    sync_seconds: float = 360


class Slots:
    """Bounds how many changes do something at the same time.

    :param most: how many
    """

    def __init__(self, most: float = math.inf) -> None:
        self.most = most
        self._taken = 0

    def take(self) -> bool:
        """Take a slot; return False if none is free."""
        is_free = self._taken < self.most
        self._taken += is_free
        return is_free

    def give_back(self) -> None:
        """Give a slot back."""
        self._taken -= 1


class Resharding:
    """Changes the layout of one container.

    :param executor: carries out the steps, for the container's path
    :param report: called with the progress whenever it changes
    :param slots: bounds how many changes move rows at the same time
    """

    def __init__(
        self,
        executor: Executor,
        options: MoveOptions,
        report: Callable[[Progress], None] = lambda _progress: None,
        slots: Slots | None = None,
    ) -> None:
        self.executor = executor
        self.backend = executor.backend
        self.env = executor.env
        self.path = executor.path
        self.options = options
        self.progress = Progress()
        self.report = report
        self.slots = slots or Slots()
        self._checked = 0.0
        self._was_split = False
        # True if the container has synced at some point of the change.
        self._has_synced = False
        # The layout in which rows move, and since when no row has been found.
        self._moving: Layout | None = None
        self._quiet_since = 0.0
        self.pace = Pace(options.rows_per_second)

    def begin(self, shards: int, depth: int = 0) -> None:
        """Announce a change, unless the same change is under way.

        A change that has only its last steps left is under way, too.

        :param shards: the number of shards, 0 for a plain container
        :raises ChangeRefusedError: if it cannot be made
        :raises BackendError: if too few servers answer
        """
        try:
            self._announce(shards, depth)
        except BackendError:
            # Another process may have announced the same change meanwhile.
            root = self.executor.read_root()
            if not self.is_under_way(root, shards, depth):
                raise
            self.executor.register()

    def _announce(self, shards: int, depth: int) -> None:
        root = self._proved_root()
        layout = root.record or PLAIN
        if self.is_under_way(root, shards, depth):
            self.executor.register()
            return
        self.check(root, shards, depth)
        changed = layout.announced(shards, time.time(), depth)
        target = self._target(root, changed)
        self.executor.create_hidden_account(target.hidden_account)
        self._put_shards(target)
        self._write(changed, root.record)
        # The daemon may have removed it from the register before it saw the
        # record, and a process that cleaned up may have deleted some shards.
        self.executor.register()
        self._put_shards(target)

    def is_under_way(
        self, root: RootState, shards: int, depth: int = 0
    ) -> bool:
        """Return True if :meth:`run` would go on with this very change.

        :raises BackendError: if too few servers answer
        """
        layout = root.record
        if layout is None or layout.sharding != (shards, depth):
            return False
        return layout.is_changing or self._is_unfinished(layout)

    def check(self, root: RootState, shards: int, depth: int = 0) -> None:
        """Check that a change can be made.

        :raises ChangeRefusedError: if it cannot
        """
        is_internal = self.path.account.startswith(AUTO_CREATE_ACCOUNT_PREFIX)
        if is_internal or not can_be_sharded(self.path.container):
            raise ChangeRefusedError(
                'it is a shard, or a container that Swift keeps for itself'
            )
        if not root.exists:
            raise ChangeRefusedError('no such container')
        if not root.is_put:
            raise ChangeRefusedError(
                'a server knows of a later deletion: PUT the container first'
            )
        layout = root.record or PLAIN
        if layout.is_changing:
            raise ChangeRefusedError(
                f'its change {change_text(layout)} is under way: wait for '
                'its end, or cancel it'
            )
        if layout.sharding == (shards, depth):
            has_depth = f' and depth {depth}' if depth else ''
            raise ChangeRefusedError(
                f'it has {shards} shards{has_depth} already'
            )
        if root.was_split:
            try:
                split_root(self.backend, self.env, self.path.place)
            except BackendError as err:
                raise ChangeRefusedError(str(err)) from err
        target = self._target(root, layout)
        answers = self.backend.head_shards(self.env, target)
        require_success(answers)
        split = [answer.shard for answer in answers if answer.is_split]
        if split:
            raise ChangeRefusedError(
                f"Swift's own sharder has split shard {split[0]}: set "
                'auto_shard = false, and have it compacted into one database '
                '(run swift-manage-shard-ranges compact on the database of '
                f'{target.place_in(split[0])}, and then container-sharder, '
                'until it is collapsed)'
            )

    def cancel(self) -> None:
        """Cancel a change; :meth:`run` then moves the rows back.

        :raises ChangeRefusedError: if there is nothing to cancel
        :raises BackendError: if too few servers answer
        """
        root = self._proved_root()
        layout = root.record or PLAIN
        if not layout.is_changing:
            raise ChangeRefusedError('its layout is not changing')
        if layout.rules.is_cancelled:
            self.executor.register()
            return
        cancelled = layout.cancelled(time.time())
        self._write(cancelled, layout)
        # Another process may have been about to write the next record.
        self.executor.wait(CHECK_SECONDS)
        try:
            self._check_record(cancelled)
        except _RecordChangedError as err:
            raise ChangeRefusedError(
                'another process has just continued the change: try again'
            ) from err

    def run(self) -> None:
        """Continue a change until it is done.

        A step that fails is repeated until it succeeds.

        :raises LayoutError: if the record cannot be read
        """
        while True:
            try:
                is_done = self._step()
                self._note(problem='')
                if is_done:
                    return
            except _RecordChangedError:
                self._note(problem='')
                self.executor.wait(POLL_SECONDS)
            except BackendError as err:
                self._note(problem=str(err))
                self.executor.wait(RETRY_SECONDS)

    def run_dry(self) -> None:
        """Take the steps that are left, with an executor that only notes them.

        :raises BackendError: if a server does not answer
        """
        while not self._step():
            pass

    def sweep(self, kept_seconds: float = 0) -> int:
        """Move rows that are in a wrong place, once.

        This is for a container whose layout does not change: it moves strays,
        and rows that a fault has left. If the container syncs, rows in wrong
        shards stay there: container-sync would send their tombstones to the
        other container.

        :param kept_seconds: how long proxies cache what they read from shards
        :returns: how many it has found
        :raises BackendError: if a server does not answer
        """
        now = time.time()
        root = self.executor.read_root(waits=True)
        if root.record is None or root.record.is_changing:
            return 0
        if not root.is_proved:
            raise BackendError(None, 503, unproved(root))
        target = self._target(root, root.record)
        self._was_split = root.was_split
        is_synced = self.executor.direct_sync(target, now)
        if root.layout is None:
            return 0
        shards = [] if is_synced else target.shards()
        return self._look_through(
            target, [*shards, None], self._sweeping(target, kept_seconds)
        )

    def complete(self) -> None:
        """Finish a change whose last record is written, if steps are left.

        :raises BackendError: if a server does not answer
        """
        now = time.time()
        root = self.executor.read_root()
        if root.record is None or root.record.is_changing:
            return
        if not self._is_unfinished(root.record):
            return
        if root.holders < root.replicas:
            raise BackendError(None, 503, _holders_text(root))
        try:
            self._clean_up(root, now)
        except _RecordChangedError:
            return  # another change has begun, and will clean up

    def _is_unfinished(self, layout: Layout) -> bool:
        """Return True if the last steps of a change may be left to do.

        It is True for each container that syncs: its settings do not show
        whether they are in all places yet.

        :param layout: a layout that is not changing
        """
        settings = agreed_settings(self.backend, self.env, self.path)
        return settings.are_set or any(self._dropped(layout))

    def _clean_up(self, root: RootState, now: float) -> None:
        """Finish a change: switch container sync on, and delete old shards.

        :param now: a time before the root was read
        """
        # Sync is switched on in places where earlier phases switched it off.
        target = self._target(root, root.record)
        self.executor.direct_sync(target, now)
        self._wait_until_known(root.record)
        for backing in self._dropped(root.record):
            self._check_record_of_late(root.record)
            self.executor.delete(backing)

    def _step(self) -> bool:
        """Take one step of the change; return True if that was the last."""
        now = time.time()
        root = self._proved_root()
        layout = root.record
        if layout is None:
            return True
        if not layout.is_changing:
            self._note('cleaning up')
            self._clean_up(root, now)
            self._note('done')
            return True
        self.progress.change = layout.id, layout.former_sharding
        if layout.rules.moves_from is None:
            self._note(layout.phase)
            self._put_shards(self._target(root, layout))
            self._wait_until_known(layout)
            # It has to send the deletions of before from the old place.
            settings = agreed_settings(self.backend, self.env, self.path)
            self._wait_for_sync(layout, settings.are_set)
            self._write(layout.moving(time.time()), layout)
            return False
        self._note('waiting to move')
        self._wait_until_known(layout, self._seconds_to_turn(root))
        self._direct_sync(layout)
        self._move(root)
        if self._was_split:
            self.executor.require_reported(is_sharded=layout.shards > 0)
        target = self._target(root, layout)
        self.executor.forward_tombstones(
            self._row_pass(target),
            [target.place_in(shard) for shard in _sources(target)],
        )
        self._write(layout.done(time.time()), layout)
        return False

    def _seconds_to_turn(self, root: RootState) -> float:
        """Return how long a process may still move rows the other way.

        Before a change was cancelled, rows moved to where they now move from.
        Before a container becomes plain, strays moved out of its root. If the
        root is empty, none is moving, and a later one stays there.

        :raises BackendError: if the root does not answer
        """
        layout = root.record
        if not layout.rules.is_cancelled:
            if not self._target(root, layout).moves_to_root:
                return 0
            # The figures of a root that is split may be old.
            if not root.was_split and lists_nothing(
                self.backend, self.env, self.path
            ):
                return 0
        app = self.backend.proxy_app
        return CHECK_SECONDS + app.conn_timeout + app.node_timeout

    def _wait_until_known(self, layout: Layout, seconds: float = 0) -> None:
        """Wait until every proxy must know a record.

        :param seconds: the least time to wait
        :raises _RecordChangedError: if it is replaced meanwhile
        """
        earlier = self.progress.problem
        while True:
            root = self._check_record(layout, waits=True)
            if root.holders == root.replicas:
                break
            self._note(problem=_holders_text(root))
            self.executor.wait(POLL_SECONDS)
        self._note(problem=earlier)
        cached = max(self.options.cache_seconds, LEAST_SECONDS)
        # While no replica answers, a proxy uses its cache for longer.
        cached += min(cached, UNCONFIRMED_SECONDS)
        self.executor.wait(max(seconds, cached))
        self._check_record(layout)

    def _direct_sync(self, layout: Layout) -> None:
        """Wait until container-sync has stopped reading the old place.

        :raises _RecordChangedError: if the record is replaced meanwhile
        """
        now = time.time()
        target = self._target(self._check_record(layout), layout)
        is_synced = self.executor.direct_sync(target, now)
        self._wait_for_sync(layout, is_synced)

    def _wait_for_sync(self, layout: Layout, is_synced: bool) -> None:
        """Wait for a pass of container-sync.

        :param is_synced: True if the container has sync settings now. The
                          daemon may still use settings that were removed
        """
        self._has_synced = self._has_synced or is_synced
        if self._has_synced:
            self._note(WAITING_FOR_SYNC)
            self._sleep(self.options.sync_seconds, layout)

    def _proved_root(self, waits: bool = True) -> RootState:
        """Return the state of the root.

        :param waits: True to wait for every replica that may answer
        :raises BackendError: if no majority of its replicas has a database
        """
        root = self.executor.read_root(waits)
        if not root.is_proved:
            raise BackendError(None, 503, unproved(root))
        return root

    def _check_record(
        self, layout: Layout | None, waits: bool = False
    ) -> RootState:
        """Return the state of the root.

        :param waits: True to wait for every replica that may answer
        :raises BackendError: if no majority of its replicas has a database
        :raises _RecordChangedError: if its record is another one
        """
        asked = time.monotonic()
        root = self._proved_root(waits)
        if root.record != layout:
            raise _RecordChangedError
        self._was_split = root.was_split
        self._checked = asked
        return root

    def _check_before_rows_move(self, layout: Layout, was_split: bool) -> None:
        self._check_record_of_late(layout)
        if self._was_split != was_split:
            raise BackendError(
                None, 503, f"Swift's sharder has split {self.path.place}"
            )

    def _check_record_of_late(self, layout: Layout) -> None:
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            self._check_record(layout)

    def _move(self, root: RootState) -> None:
        """Move rows until the old place has stayed empty.

        If a pass fails that has found no rows, the time to settle goes on: the
        next pass finds the rows that have come meanwhile.
        """
        target = self._target(root, root.record)
        if self._moving != target.layout:
            self._moving = target.layout
            self._quiet_since = self.executor.now()
            self.progress.moved = 0
        self.progress.total = self.progress.moved + self.rows_to_move(root)
        sources = _sources(target)
        with self._move_slot():
            self._note('moving')
            while self._look_through(target, sources):
                self.executor.wait(POLL_SECONDS)
        self._note('settling')
        while (left := self._seconds_to_settle()) > 0:
            most = self.options.settle_seconds / PASSES_TO_SETTLE
            self._sleep(min(left, most), target.layout)
            if late := self._look_through(target, sources):
                self.backend.metrics.note(ADOPTED, late, kind=LATE)

    def _seconds_to_settle(self) -> float:
        """Return how long the old place still has to stay empty."""
        # In this order, a dry run reaches the end in spite of roundings.
        end = self._quiet_since + self.options.settle_seconds
        return end - self.executor.now()

    @contextmanager
    def _move_slot(self) -> Iterator[None]:
        """Hold one of the slots for changes that move rows in a block."""
        earlier = self.progress.problem
        while not self.slots.take():
            self.progress.is_queued = True
            self._note(
                'waiting to move',
                f'rows of {self.slots.most} other containers are moving '
                '(concurrency)',
            )
            self.executor.wait(SLOT_SECONDS)
        try:
            self.progress.is_queued = False
            self.progress.problem = earlier
            yield
        finally:
            self.slots.give_back()

    def _sleep(self, seconds: float, layout: Layout) -> None:
        """Wait, and check now and then that the record is the same.

        :raises _RecordChangedError: when it is replaced
        """
        end = self.executor.now() + seconds
        while (left := end - self.executor.now()) > 0:
            self.executor.wait(min(left, self.executor.look_seconds))
            self._check_record(layout)
            self._note()

    def rows_to_move(
        self, root: RootState, layout: Layout | None = None
    ) -> int:
        """Return about how many rows a change has to move.

        :param layout: the layout during the change; None for that of the root
        :raises BackendError: if a place does not answer
        """
        target = self._target(root, layout or root.record)
        return self.executor.rows_in(
            [target.place_in(shard) for shard in _sources(target)]
        )

    def _look_through(
        self,
        target: LogicalContainer,
        sources: list[int | None],
        row_pass: RowPass | None = None,
    ) -> int:
        """Move the rows that are in a wrong place.

        :param sources: the shards to look through, None for the root
        :param row_pass: looks through them; None for the pass of a change
        :returns: how many rows it has found
        """
        row_pass = row_pass or self._row_pass(target)
        places = [target.place_in(each) for each in sources]
        try:
            found = self.executor.move(row_pass, places)
        finally:
            # A pass that fails after it has found rows is not an empty one.
            if row_pass.found:
                self._quiet_since = self.executor.now()
        self._note(problem='')
        return found

    def _sweeping(
        self, target: LogicalContainer, kept_seconds: float
    ) -> RowPass:
        """Return a pass for rows that may return to an earlier place."""
        row_pass = self._row_pass(target)
        row_pass.may_be_hidden = True
        row_pass.kept_seconds = kept_seconds
        return row_pass

    def _row_pass(self, target: LogicalContainer) -> RowPass:
        was_split = self._was_split
        return RowPass(
            self.backend,
            self.env,
            target,
            target.policy_index,
            self.pace,
            self.options.asks_for_objects,
            lambda: self._check_before_rows_move(target.layout, was_split),
            self._note_moved,
            was_split=was_split,
        )

    def _note_moved(self, rows: int) -> None:
        self.progress.moved += rows
        self.backend.metrics.note(RESHARDED_ROWS, rows)
        self._note(problem='')

    def _put_shards(self, target: LogicalContainer) -> None:
        self.executor.put_shards(target)

    def _dropped(self, layout: Layout) -> Iterator[Path]:
        """List the backing containers of earlier layouts.

        A backing container with a later id is left out: it belongs to a change
        that is about to begin.
        """
        base = self.backend.owner_env(self.env)
        for each in listed_backing(self.backend, base, self.path):
            if each.name.layout_id < layout.serial and not layout.has(
                each.name.layout_id, each.name.shard
            ):
                yield each.path(self.path)

    def _write(self, layout: Layout, former: Layout | None) -> None:
        """Write the next record of the root.

        :param former: the record that it replaces
        :raises BackendError: if a majority has not taken it
        :raises _RecordChangedError: if the root has another record
        """
        self.executor.register()
        self._check_record(former)
        self.executor.write_record(layout)

    def _target(self, root: RootState, layout: Layout) -> LogicalContainer:
        return LogicalContainer(self.path, root.answer.info(), layout)

    def _note(
        self, phase: str | None = None, problem: str | None = None
    ) -> None:
        """Report the progress.

        The problem of a failed step stays until the step has succeeded or rows
        have moved: a retry waits long before it gets back to where it failed.
        """
        if phase is not None:
            self.progress.phase = phase
        if problem is not None:
            self.progress.problem = problem
        self.executor.note(self.progress)
        self.report(self.progress)


def change_text(layout: Layout) -> str:
    """Return a text that describes a change that is under way."""
    former, new = layout.former_sharding, layout.sharding
    counts = f'from {former.shards} to {new.shards} shards'
    if former.depth == new.depth == 0:
        return counts
    return f'{counts}, from depth {former.depth} to {new.depth}'


def _holders_text(root: RootState) -> str:
    holders = f'{root.holders} of {root.replicas}'
    return f'{holders} replicas of the root have the record'


def _sources(target: LogicalContainer) -> list[int | None]:
    """Return the shards that rows move out of, None for the root.

    Strays move to the shards, and stay if the root is the new place.
    """
    layout = target.layout
    # Before rows move, it is the side that they will move out of.
    side = layout.rules.moves_from or Side.OLD
    first = layout.first_shard(side)
    shards = range(first, first + layout.sharding_of(side).shards)
    return [*shards, None] if layout.shards else [*shards]
