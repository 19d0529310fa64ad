# SPDX-License-Identifier: Apache-2.0
"""The work of the daemon on one container of the register."""

import time
from dataclasses import dataclass, field

from shardmw.backend.backing_containers import is_forgotten
from shardmw.backend.containers import BackendError
from shardmw.backend.metrics import MOVED, TO_MOVE, WAITING
from shardmw.backend.roots import RootState, read_root, unproved
from shardmw.core.layout import Layout, LayoutError, time_of_id
from shardmw.core.paths import Path
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.executor import Executor
from shardmw.reshard.progress import Progress
from shardmw.reshard.register import Register
from shardmw.reshard.resharding import MoveOptions, Resharding, Slots
from shardmw.swift.concurrency import Timeout, sleep, spawn

#: How many layouts of registered containers to read at once.
LOOKS_AT_A_TIME = 16

#: How often to check whether fewer than LOOKS_AT_A_TIME layouts are read.
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Means:
    """Holds the parts and options that all jobs of a process share.

    :param reclaim_age: how long late rows of a former layout may come, in
                        seconds
    :param moves: bounds how many changes move rows at the same time
    :param looks: bounds how many layouts are read at the same time
    """

    cluster: SwiftCluster
    register: Register
    options: MoveOptions
    reclaim_age: float
    logger: object
    moves: Slots
    looks: Slots = field(default_factory=lambda: Slots(LOOKS_AT_A_TIME))

    @property
    def write_seconds(self) -> float:
        """Return how long a change may take until its record is written.

        It is registered before.
        """
        app = self.cluster.app
        return 2 * (app.conn_timeout + app.node_timeout)


class Job:
    """Continues the change of one container, or takes its last steps.

    :ivar progress: of the change that it is working on; None for none
    :ivar is_over: True once it has removed the container from the register
    """

    def __init__(self, path: Path, means: Means) -> None:
        self.path = path
        self.means = means
        self.progress: Progress | None = None
        self.is_over = False
        self._thread = None
        # The serial of the last record, once this process has taken the last
        # steps of its change: the writer may have been interrupted.
        self._completed = ''
        # When the container was first seen without a change.
        self._unneeded: float | None = None
        # The phase and the problem that were logged last.
        self._logged = ('', '')

    @property
    def is_running(self) -> bool:
        """Return True while it works."""
        return self._thread is not None and not self._thread.dead

    def start(self) -> None:
        """Begin to work, once few other jobs are about to read a layout."""
        while not self.means.looks.take():
            sleep(LOOK_SECONDS)
        self.is_over = False
        self._thread = spawn(self._run)

    def _run(self) -> None:
        place, logger = self.path.place, self.means.logger
        try:
            self._work(self._look())
        except BackendError as err:
            logger.error('%s: %s', place, err)
        except LayoutError as err:
            logger.error('%s: layout record: %s', place, err)
        except (Exception, Timeout):
            logger.exception('%s: unexpected error', place)

    def _look(self) -> RootState:
        try:
            return self._read_root()
        finally:
            self.means.looks.give_back()

    def _read_root(self) -> RootState:
        cluster = self.means.cluster
        return read_root(cluster.backend, cluster.env, self.path, waits=True)

    def _work(self, root: RootState) -> None:
        """Go on with a change, or take its last steps."""
        cluster = self.means.cluster
        layout = root.record
        if not root.is_proved and not is_forgotten(
            cluster.backend, cluster.env, self.path, root
        ):
            raise BackendError(None, 503, unproved(root))
        executor = Executor(
            cluster.backend, cluster.env, self.path, notes_progress=True
        )
        change = Resharding(
            executor, self.means.options, self._report, self.means.moves
        )
        try:
            if layout and layout.is_changing:
                self._unneeded = None
                change.run()
                return
            if layout and self._completed != layout.serial:
                change.complete()
                self._completed = layout.serial
            if layout is None or self._is_settled(layout):
                self._drop()
        finally:
            self.note_metrics()
            self.progress = None

    def _is_settled(self, layout: Layout) -> bool:
        """Return True if no rows from before a change can come any more."""
        age = time.time() - time_of_id(layout.serial)
        return not layout.is_changing and age > self.means.reclaim_age

    def _drop(self) -> None:
        """Remove the container from the register if no change comes.

        A change is registered before its record is written, so the container
        stays registered for a while.
        """
        now = time.monotonic()
        if self._unneeded is None:
            self._unneeded = now
        if now - self._unneeded > self.means.write_seconds:
            self.means.register.remove(self.path)
            self._unneeded = None
            self.is_over = True
            root = self._read_root()
            if root.record and root.record.is_changing:
                self.is_over = False
                self.means.register.note(self.path)

    def _report(self, progress: Progress) -> None:
        """Log the progress if the phase or the problem is another one."""
        self.progress = progress
        if progress.is_queued:
            return
        phase = '' if progress.problem else progress.phase
        state = (phase, progress.problem)
        if self._logged == state:
            return
        self._logged = state
        place, logger = self.path.place, self.means.logger
        if progress.problem:
            logger.warning('%s: waiting: %s', place, progress.problem)
        else:
            logger.info(
                '%s: %s, %d rows moved', place, progress.phase, progress.moved
            )

    def note_metrics(self) -> None:
        """Send the metrics of the change that it is working on."""
        if self.progress is None:
            return
        progress, metrics = self.progress, self.means.cluster.backend.metrics
        account, container = self.path.place
        has_failed = bool(progress.problem) and not progress.is_queued
        metrics.note_of(account, container, WAITING, int(has_failed))
        metrics.note_of(account, container, MOVED, progress.moved)
        if progress.total is not None:
            metrics.note_of(account, container, TO_MOVE, progress.total)
