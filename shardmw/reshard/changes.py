# SPDX-License-Identifier: Apache-2.0
"""Changes of layout that an operator requests."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from shardmw.backend.containers import BackendError
from shardmw.backend.roots import RootState, read_root, unproved
from shardmw.core.layout import (
    PLAIN,
    Layout,
    LayoutError,
    Sharding,
    time_of_id,
)
from shardmw.core.paths import Path, Place
from shardmw.core.placement import versions_owner
from shardmw.reshard.async_pending import backlog_text
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError
from shardmw.reshard.executor import DryRun, Executor
from shardmw.reshard.progress import NotedProgress, Progress
from shardmw.reshard.register import Register
from shardmw.reshard.resharding import (
    ChangeRefusedError,
    MoveOptions,
    Resharding,
)
from shardmw.swift.concurrency import spawn

#: How long after a change late rows may come: the time for which Swift keeps
#: tombstones by default.
RECLAIM_SECONDS = 7 * 86400


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a change, as a dry run has noted them.

    :param rows: about how many rows it moves
    :param seconds: about how long it takes, without the time to settle
    :param steps: what it does, each with the seconds from the start to it
    :param settle_seconds: how long it settles; 0 if only its last steps are
                           left
    """

    account: str
    container: str
    shards: int
    former: int
    rows: int
    seconds: float
    depth: int = 0
    former_depth: int = 0
    steps: tuple[tuple[float, str], ...] = ()
    settle_seconds: float = 0

    def __str__(self) -> str:
        """Return the change in words, with both depths if they differ."""
        former = Sharding(self.former, self.former_depth)
        new = Sharding(self.shards, self.depth)
        if former.depth == new.depth or 0 in (former.shards, new.shards):
            return f'from {former} to {new}'
        return (
            f'from {former.shards} shards, depth {former.depth}, to '
            f'{new.shards} shards, depth {new.depth}'
        )

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ChangeState:
    """A change that is under way, or that may still bring late rows.

    :param phase: announced, moving, returning or done, or why it is not known
    :param since: when that phase began, in seconds since 1970; 0 if the
                  container could not be read
    :param rows_left: about how many rows are still to be moved
    :param progress: the last progress that was noted; None if none was, or if
                     the change is done
    """

    account: str
    container: str
    former: int | None
    shards: int
    phase: str
    since: float
    rows_left: int
    depth: int = 0
    former_depth: int = 0
    progress: NotedProgress | None = None

    @property
    def is_known(self) -> bool:
        """Return True if the container could be read."""
        return self.since > 0

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        progress = self.progress.as_json() if self.progress else None
        return {**asdict(self), 'progress': progress}


class Changes:
    """Plans, makes and shows changes of layout.

    :param report: called with a container's name and its progress
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        options: MoveOptions,
        report: Callable[[str, Progress], None] = lambda *_args: None,
    ) -> None:
        self.cluster = cluster
        self.options = options
        self.report = report
        self.register = Register(cluster.backend, cluster.env)

    def asked(self, path: Path, shards: int, depth: int | None) -> Sharding:
        """Return the sharding that a command asks for.

        :param depth: None for the depth that the container has, or is
                      changing to
        :raises AdminError: if it is not allowed
        """
        self._check_count(path.place, shards)
        if shards == 0:
            return Sharding(0)
        if depth is None:
            depth = self._layout(path).depth
        return Sharding(shards, depth)

    def plan(
        self,
        path: Path,
        shards: int,
        depth: int | None = None,
        despite_backlog: bool = False,
    ) -> list[Plan]:
        """Return what :meth:`begin` and :meth:`run` would do.

        The arguments and the errors are those of :meth:`begin`.

        :returns: a plan for each container that would change
        """
        sharding, paths = self._checked(path, shards, depth, despite_backlog)
        return [self._plan(each, sharding) for each in paths]

    def begin(
        self,
        path: Path,
        shards: int,
        depth: int | None = None,
        despite_backlog: bool = False,
    ) -> list[Path]:
        """Announce a change.

        :param depth: the depth to change to, None to keep it
        :param despite_backlog: True to announce it even if object servers
                                have updates to deliver
        :returns: the containers that change: the container and that of its
                  old versions, except one that already has the requested
                  layout and no change to complete
        :raises AdminError: if the change is refused; neither changes then
        """
        sharding, paths = self._checked(path, shards, depth, despite_backlog)
        for each in paths:
            try:
                self._resharding(each).begin(*sharding)
            except ChangeRefusedError as err:
                raise _refused(each, err) from err
        return paths

    def cancel(self, path: Path) -> list[Path]:
        """Cancel a change.

        :returns: the containers whose rows move back
        :raises AdminError: if the container does not exist, or there is
                            nothing to cancel
        """
        self.cluster.root(path)
        cancelled, refusals, failures = [], [], []
        for each in self.cluster.with_versions(path):
            try:
                self._resharding(each).cancel()
                cancelled.append(each)
            except ChangeRefusedError as err:
                refusals.append(err)
            except BackendError as err:
                failures.append(err)
        if failures:
            raise failures[0]
        if not cancelled:
            raise AdminError(f'{path.place}: {refusals[0]}')
        return cancelled

    def run(self, paths: list[Path]) -> None:
        """Make all announced changes at the same time."""
        threads = [spawn(self._resharding(path).run) for path in paths]
        for thread in threads:
            thread.wait()

    def deleted(self, paths: list[Path]) -> list[str]:
        """Return the names of the containers that have been deleted."""
        return [
            str(path.place) for path in paths if self._root(path).is_deleted
        ]

    def differing(self, paths: list[Path], asked: Sharding) -> dict[str, str]:
        """Return the layouts that differ from the requested one, by name."""
        shardings = {path: self._layout(path).sharding for path in paths}
        return {
            str(path.place): str(sharding)
            for path, sharding in shardings.items()
            if sharding != asked
        }

    def under_way(self) -> Iterator[ChangeState]:
        """List the changes of all accounts that are under way or recent.

        :raises BackendError: if the register cannot be read
        """
        for account in self.register.accounts():
            for path, text in self.register.notes(account):
                progress = NotedProgress.from_text(text)
                try:
                    state = self.state(path, progress)
                except (BackendError, LayoutError) as err:
                    yield ChangeState(*path.place, None, 0, str(err), 0, 0)
                    continue
                if state:
                    yield state

    def state(
        self, path: Path, progress: NotedProgress | None = None
    ) -> ChangeState | None:
        """Return the state of a container's change.

        :param progress: the last progress that was noted for the container
        :returns: None if no change is known, or if it is over and no late
                  rows can come any more
        :raises BackendError: if no replica that answers has the root
        """
        root = self._root(path)
        if root.is_absent:
            raise BackendError(None, 503, unproved(root))
        layout = root.record
        if layout is None or not layout.changed:
            return None
        since = time_of_id(layout.changed)
        if not layout.is_changing and time.time() - since > RECLAIM_SECONDS:
            return None
        if progress and progress.layout_id != layout.id:
            progress = None
        former, former_depth = layout.former, layout.former_depth
        rows = 0
        if layout.is_changing:
            rows = self._resharding(path).rows_to_move(root)
        elif progress:
            # The record after a change does not name the former layout.
            former, former_depth = progress.former
        return ChangeState(
            *path.place,
            former,
            layout.shards,
            layout.phase or 'done',
            since,
            rows,
            layout.depth,
            former_depth,
            progress if layout.is_changing else None,
        )

    def _checked(
        self,
        path: Path,
        shards: int,
        depth: int | None,
        despite_backlog: bool,
    ) -> tuple[Sharding, list[Path]]:
        """Check that a change can begin, or go on.

        The arguments and the errors are those of :meth:`begin`.

        :returns: the sharding, and the containers to change
        """
        sharding = self.asked(path, shards, depth)
        paths = self._undone(path, sharding)
        are_new = [self._check(each, sharding) for each in paths]
        if any(are_new) and not despite_backlog:
            self._check_backlog(path.place)
        return sharding, paths

    def _undone(self, path: Path, sharding: Sharding) -> list[Path]:
        """Return the containers to change: one, and that of its old versions.

        A container that already has the requested layout, and no change to
        complete, is left out. If none is left, return the container itself.
        """
        paths = self.cluster.with_versions(path)
        undone = [each for each in paths if not self._is_done(each, sharding)]
        return undone or paths[:1]

    def _is_done(self, path: Path, sharding: Sharding) -> bool:
        root = self._root(path)
        if (root.record or PLAIN).sharding != sharding:
            return False
        return not self._resharding(path).is_under_way(root, *sharding)

    def _layout(self, path: Path) -> Layout:
        return self._root(path).record or PLAIN

    def _check_backlog(self, place: Place) -> None:
        if text := backlog_text(self.cluster.app):
            raise AdminError(
                f'{place}: {text}. If a deletion is among them, the deleted '
                'object may stay listed. Wait until there are none '
                '(swift-recon --async), or use --despite-backlog'
            )

    def _check(self, path: Path, sharding: Sharding) -> bool:
        """Check that a change can begin or is under way.

        :returns: True if it has yet to be announced
        :raises AdminError: if it cannot begin
        """
        root = self._root(path)
        resharding = self._resharding(path)
        if resharding.is_under_way(root, *sharding):
            return False
        try:
            resharding.check(root, *sharding)
        except ChangeRefusedError as err:
            raise _refused(path, err) from err
        return True

    def _root(self, path: Path) -> RootState:
        return read_root(self.cluster.backend, self.cluster.env, path)

    def _plan(self, path: Path, sharding: Sharding) -> Plan:
        layout = self._layout(path)
        former = layout.sharding
        if layout.is_changing:
            former = layout.former_sharding
        dry_run = DryRun(
            self.cluster.backend,
            self.cluster.env,
            path,
            self.options.rows_per_second,
        )
        change = Resharding(dry_run, self.options)
        try:
            change.begin(*sharding)
        except ChangeRefusedError as err:
            raise _refused(path, err) from err
        change.run_dry()
        settle_seconds = self.options.settle_seconds if dry_run.moves else 0
        return Plan(
            *path.place,
            sharding.shards,
            former.shards,
            dry_run.rows,
            dry_run.now() - settle_seconds,
            sharding.depth,
            former.depth,
            tuple(dry_run.steps()),
            settle_seconds,
        )

    def _check_count(self, place: Place, shards: int) -> None:
        options = self.cluster.options
        if options is None:
            raise AdminError(
                "the configuration has no filter shardmw: Swift's daemons "
                'need it, too'
            )
        if shards > options.max_shards:
            raise AdminError(
                f'{place}: {shards} shards are more than '
                f'max_shards = {options.max_shards} allows, in '
                '[filter:shardmw] of the configuration of this command'
            )

    def _resharding(self, path: Path) -> Resharding:
        executor = Executor(
            self.cluster.backend, self.cluster.env, path, notes_progress=True
        )
        name = str(path.place)
        return Resharding(
            executor,
            self.options,
            lambda progress: self.report(name, progress),
        )


def _refused(path: Path, err: ChangeRefusedError) -> AdminError:
    """Return the error for a change that cannot begin."""
    owner = versions_owner(path.container)
    if owner is None:
        return AdminError(f'{path.place}: {err}')
    return AdminError(f'{path.account}/{owner}: its old versions: {err}')
