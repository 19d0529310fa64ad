# SPDX-License-Identifier: Apache-2.0
"""Carry out the steps of a change of layout, or only note them.

:mod:`shardmw.reshard.resharding` decides which step is next. :class:`Executor`
carries it out; :class:`DryRun` only notes it. So a dry run takes the same
decisions as the change itself. It does not show what the change would have to
wait for: a replica that lacks the record, or Swift's own sharder.
"""

import math
import time
from dataclasses import replace

from swift.common.http import is_success
from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp

from shardmw.backend.answers import require_success
from shardmw.backend.backing_containers import delete_if_empty
from shardmw.backend.containers import (
    RECORD_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.nodes import ask_primaries
from shardmw.backend.requests import Backend
from shardmw.backend.roots import RootState, read_root, require_reported
from shardmw.backend.sync_settings import (
    agreed_settings,
    direct_sync,
    shard_headers,
)
from shardmw.core.layout import Layout, time_of_id
from shardmw.core.paths import Path, Place
from shardmw.core.phases import Side
from shardmw.reshard.progress import Progress, ProgressNotes
from shardmw.reshard.register import Register
from shardmw.reshard.row_pass import RowPass
from shardmw.swift.concurrency import sleep

#: The rate without a limit, for estimates of the time that a change takes.
USUAL_ROWS_PER_SECOND = 10_000

#: How often to look whether a change that waits has been cancelled.
LOOK_SECONDS = 10


class Executor:
    """Carries out the steps of changes of one container.

    :param env: the environment of a request, which needs no memcached
    :param path: the path of the container
    :param notes_progress: True to store the progress in the register
    """

    look_seconds: float = LOOK_SECONDS

    def __init__(
        self,
        backend: Backend,
        env: dict,
        path: Path,
        notes_progress: bool = False,
    ) -> None:
        self.backend = backend
        self.env = env
        self.path = path
        self.base = backend.owner_env(env)
        self._register = Register(backend, env)
        self._notes = None
        if notes_progress:
            self._notes = ProgressNotes(self._register, path)

    def now(self) -> float:
        """Return the time of the monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait."""
        sleep(seconds)

    def read_root(self, waits: bool = False) -> RootState:
        """Return the state of the root; `waits` is as for ``read_root``."""
        return read_root(self.backend, self.env, self.path, waits)

    def note(self, progress: Progress) -> None:
        """Store the progress in the register, if that is due."""
        if self._notes:
            self._notes.note(progress)

    def register(self) -> None:
        """Add the container to the register of changes."""
        self._register.note(self.path)

    def create_hidden_account(self, account: str) -> None:
        """Create the account of the shards, if it does not exist."""
        self.backend.create_hidden_account(self.env, account)

    def put_shards(self, target: LogicalContainer) -> None:
        """Create the shards of a layout that do not exist.

        :raises BackendError: if one cannot be created
        """
        for shard in range(target.layout.shards):
            put_shard(self.backend, self.env, target, shard)

    def write_record(self, layout: Layout) -> None:
        """Write the record of a layout to all replicas of the root.

        The record's own time is the timestamp, so Swift keeps the newest
        record, which is also the one that this filter uses.

        :raises BackendError: if a majority has not taken it, or if the root
                              has another one afterwards
        """
        timestamp = Timestamp(time_of_id(layout.changed)).internal
        answers = ask_primaries(
            self.backend.proxy_app,
            self.env,
            *self.path.place,
            'POST',
            {
                'X-Timestamp': timestamp,
                RECORD_HEADER: layout.to_record(),
            },
        )
        taken = sum(is_success(answer.status) for answer in answers)
        self.backend.forget_info(self.env, self.path)
        if 2 * taken <= len(answers):
            raise BackendError(
                None,
                503,
                f'{taken} of {len(answers)} replicas of the root stored the '
                'record',
            )
        if self.read_root().record != layout:
            raise BackendError(
                None,
                503,
                'the record was not stored: another process writes it, or the '
                'clock of this machine is behind',
            )

    def direct_sync(self, target: LogicalContainer, now: float) -> bool:
        """Switch container sync on and off, as the layout has it.

        The arguments, the result and the errors are those of
        :func:`shardmw.backend.sync_settings.direct_sync`.
        """
        return direct_sync(self.backend, self.env, target, now)

    def rows_in(self, places: list[Place]) -> int:
        """Return about how many rows there are in some places.

        :raises BackendError: if a place does not answer
        """
        answers = [
            self.backend.send(self.base, 'HEAD', place.path.to_wsgi())
            for place in places
        ]
        require_success(a for a in answers if not a.is_missing)
        return sum(answer.object_count for answer in answers)

    def move(self, row_pass: RowPass, places: list[Place]) -> int:
        """Look through places once; return how many rows were misplaced."""
        return row_pass.run(places)

    def forward_tombstones(
        self, row_pass: RowPass, places: list[Place]
    ) -> None:
        """Copy the tombstones of clients to where rows have moved."""
        row_pass.forward_tombstones(places)

    def require_reported(self, is_sharded: bool) -> None:
        """Check that Swift's sharder has reported where the rows are.

        The arguments and the errors are those of
        :func:`shardmw.backend.roots.require_reported`.
        """
        require_reported(self.backend, self.env, self.path, is_sharded)

    def delete(self, backing: Path) -> None:
        """Delete a backing container, if it is proved to be empty."""
        delete_if_empty(self.backend, self.env, backing)


class DryRun(Executor):
    """Notes the steps of a change, and carries out none.

    It reads what the steps need. Its clock shows how long they would take.

    :param rows_per_second: the most rows to move a second; 0 for no limit
    :ivar rows: about how many rows would move
    :ivar moves: True if rows would move, even if there are none now
    """

    look_seconds = math.inf

    def __init__(
        self, backend: Backend, env: dict, path: Path, rows_per_second: int
    ) -> None:
        super().__init__(backend, env, path)
        self.rows = 0
        self.moves = False
        self._steps: list[tuple[float, str]] = []
        self._deleted = 0
        self._rate = rows_per_second or USUAL_ROWS_PER_SECOND
        self._seconds = 0.0
        self._root: RootState | None = None

    def steps(self) -> list[tuple[float, str]]:
        """Return the steps, each with the seconds from the start to it."""
        if not self._deleted:
            return self._steps
        text = f'delete {self._deleted} shards of the former layout'
        return [*self._steps, (self._seconds, text)]

    def now(self) -> float:
        """Return how many seconds the steps so far would have taken."""
        return self._seconds

    def wait(self, seconds: float) -> None:
        """Count the seconds."""
        self._seconds += seconds

    def read_root(self, waits: bool = False) -> RootState:
        """Return the root with the record that would have been written."""
        if self._root is None:
            root = super().read_root(waits)
            self._root = replace(root, holders=root.replicas)
        return self._root

    def register(self) -> None:
        """Add nothing to the register."""

    def create_hidden_account(self, account: str) -> None:
        """Create nothing: the step that creates shards says so."""

    def put_shards(self, target: LogicalContainer) -> None:
        """Note that shards would be created."""
        if target.layout.shards:
            self._add(f'create {target.layout.shards} shards')

    def write_record(self, layout: Layout) -> None:
        """Note that the record would be written."""
        self._add(f'write the layout record: {layout.phase or "done"}')
        self._root = replace(self._root, record=layout)

    def direct_sync(self, target: LogicalContainer, now: float) -> bool:
        """Note that container sync would be switched, if it is set."""
        are_set = agreed_settings(self.backend, self.env, self.path).are_set
        if are_set:
            layout = target.layout
            side = 'new' if layout.rules.syncs is Side.NEW else 'old'
            place = 'nothing' if layout.synced is None else f'the {side} place'
            self._add(f'have container-sync read {place}')
        return are_set

    def move(self, row_pass: RowPass, places: list[Place]) -> int:
        """Note that rows would move; find none."""
        if not self.moves:
            self.moves = True
            self.rows = self.rows_in(places)
            self._add(f'move about {self.rows:,} rows')
            self._seconds += self.rows / self._rate
            row_pass.found = self.rows
        return 0

    def forward_tombstones(
        self, row_pass: RowPass, places: list[Place]
    ) -> None:
        """Copy nothing: it belongs to moving rows."""

    def require_reported(self, is_sharded: bool) -> None:
        """Require nothing: the rows would have moved."""

    def delete(self, backing: Path) -> None:
        """Note that a shard would be deleted."""
        self._deleted += 1

    def _add(self, text: str) -> None:
        """Note a step, unless it repeats an earlier one."""
        if text not in [each for _, each in self._steps]:
            self._steps.append((self._seconds, text))


def put_shard(
    backend: Backend, env: dict, target: LogicalContainer, shard: int
) -> None:
    """Create a shard of a container if it does not exist.

    If the root's policy has been deprecated since, the container servers are
    asked directly: the proxy would refuse such a policy.

    :raises BackendError: if it cannot be created
    """
    headers = shard_headers(target.container, {})
    policy = POLICIES[target.policy_index]
    if policy.is_deprecated:
        headers['X-Backend-Storage-Policy-Index'] = str(target.policy_index)
        place = target.place_in(shard)
        answers = ask_primaries(backend.proxy_app, env, *place, 'PUT', headers)
        if 2 * sum(a.is_success for a in answers) <= len(answers):
            raise BackendError(shard, 503)
        return
    headers['X-Storage-Policy'] = policy.name
    answer = backend.send_to_shard(
        backend.owner_env(env), target, shard, 'PUT', headers=headers
    )
    require_success([answer])
