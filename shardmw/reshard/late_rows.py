# SPDX-License-Identifier: Apache-2.0
"""Move rows that are not where the layout says, and delete empty leftovers.

``shardmw-resharder`` and ``shardmw-admin audit --repair`` do this; the proxy
does not. There are three kinds of leftovers:

- *Strays* are rows in the root of a sharded container: a proxy without the
  filter, or with stale container info, treated the container as plain. They
  are listed, and move to the shards.
- *Late rows* are in a backing container of an earlier layout: the upload began
  before its container was deleted, the proxy did not know of the deletion or
  of another proxy's creation, or an object server delayed the update. Until
  they move, they are not listed, like Swift's pending updates. They move to
  the shards, or to the root if the container is plain or was deleted. This
  creates a deleted root again, as Swift does when a container gets a late row.
- *Empty backing containers* that belong to no layout remain from a creation
  that was interrupted, a change of layout, or a deleted container. They are
  deleted.

Each step needs proof (:mod:`shardmw.core.evidence`): leftovers stay where they
are unless the replicas of the root prove that it exists, or that it was
deleted. If they prove neither, and all of them answer that they do not have
the container, backing containers are deleted only if all are empty, and if all
replicas of the account answer and none of them lists the container. Before a
row moves, its object is checked: it may have been deleted, with a tombstone in
a layout that was deleted, too. Moving rows is idempotent: it may stop at any
point, and two processes that move the same rows do no harm.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shardmw.backend.backing_containers import (
    Listed,
    delete_if_empty,
    is_forgotten,
    listed_backing,
)
from shardmw.backend.containers import (
    BackendError,
    LogicalContainer,
)
from shardmw.backend.metrics import ADOPTED, LATE, LEFTOVERS, STRAY
from shardmw.backend.nodes import ask_primaries, replica_of
from shardmw.backend.requests import Backend
from shardmw.backend.roots import RootState, read_root, unproved
from shardmw.backend.row_targets import RowTargets
from shardmw.backend.rows import STAY_SECONDS
from shardmw.core.evidence import Verdict, verdict
from shardmw.core.layout import (
    TICKS_SECONDS,
    Layout,
    id_of_time,
    time_of_id,
)
from shardmw.core.paths import Path, Place
from shardmw.reshard.register import Register
from shardmw.reshard.row_pass import Pace, RowPass

#: How long the creation of a container may take. Empty backing containers
#: whose id belongs to no layout are deleted after this time.
CREATION_SECONDS = 3600


class Settled(NamedTuple):
    """The numbers of leftovers of a container that were settled.

    :param late: how many late rows have moved
    :param strays: how many strays have moved
    :param deleted: how many empty backing containers were deleted
    """

    late: int = 0
    strays: int = 0
    deleted: int = 0

    def __str__(self) -> str:
        """Return the numbers in words."""
        return (
            f'{self.late} late rows and {self.strays} strays moved, '
            f'{self.deleted} empty backing containers deleted'
        )


NOTHING = Settled()


def settle(
    backend: Backend,
    env: dict,
    path: Path,
    pace: Pace,
    kept_seconds: float = 0,
) -> Settled:
    """Settle the leftovers of a container whose layout does not change.

    A change that is under way is added to the register if it is missing there.

    :param pace: limits the rows of all containers that share it
    :param kept_seconds: how long proxies cache what they read from shards.
                         Strays stay in the root for longer: while it has
                         rows, proxies do not use this cache
    :raises BackendError: if replicas do not prove what is needed, or do not
                          take rows
    :raises LayoutError: if the record of the container cannot be read
    """
    # The root is read after the shards have been listed: a listed shard
    # belongs to the root's layout or to an earlier one.
    base = backend.owner_env(env)
    listed = list(listed_backing(backend, base, path))
    root = read_root(backend, env, path, waits=True)
    if root.record and root.record.is_changing:
        # The daemon may have dropped it from the register before this record
        # was written.
        Register(backend, env).note(path)
        return NOTHING
    left = list(abandoned(listed, root.record))
    if not (left or root.exists):
        return NOTHING
    has_rows = any(each.object_count for each in left)
    if not root.is_proved and (
        has_rows or not is_forgotten(backend, env, path, root)
    ):
        raise BackendError(None, 503, unproved(root))
    settling = _Settling(backend, env, path, root, pace, kept_seconds)
    return settling.settle(left)


class _Settling:
    """Settles the leftovers of one container.

    :param root: one that exists, is proved to be deleted, or is forgotten
    """

    def __init__(
        self,
        backend: Backend,
        env: dict,
        path: Path,
        root: RootState,
        pace: Pace,
        kept_seconds: float,
    ) -> None:
        self.backend = backend
        self.env = env
        self.path = path
        self.root = root
        self.pace = pace
        self.kept_seconds = kept_seconds
        # Without a record, all earlier layouts are from before the deletion of
        # the root, and a new one comes after it.
        ended = id_of_time(root.deleted + TICKS_SECONDS)
        layout = root.record or Layout(ended, 0)
        info = root.answer.info() if root.exists else {}
        self.target = LogicalContainer(path, info, layout)
        self._row_targets = RowTargets(backend)
        self._checked = time.monotonic()
        self._problem = ''

    def settle(self, left: list[Listed]) -> Settled:
        """Settle leftovers.

        :param left: the backing containers of earlier layouts
        """
        late = 0
        sources = [each.place(self.path) for each in left if each.object_count]
        for policy_index, places in self._by_policy(sources).items():
            late += self._tried(places, policy_index)
        strays = 0
        # Until Swift's sharder reports them, rows of a root that it has split
        # are not in its figures.
        has_rows = self.root.was_split or (
            self.root.exists and self.root.answer.object_count > 0
        )
        if has_rows and (self.root.layout or self.root.is_revived):
            # memcached counts whole seconds
            kept_seconds = self.kept_seconds and self.kept_seconds + 1
            strays = self._tried(
                [self.path.place], self.root.policy_index, kept_seconds
            )
        if late or strays:
            self.backend.forget_info(self.env, self.path)
        emptied = (each._replace(object_count=0) for each in left)
        deleted = self._delete(list(abandoned(emptied, self.root.record)))
        metrics = self.backend.metrics
        for kind, rows in ((LATE, late), (STRAY, strays)):
            if rows:
                metrics.note(ADOPTED, rows, kind=kind)
        if deleted:
            metrics.note(LEFTOVERS, deleted)
        if self._problem:
            raise BackendError(None, 503, self._problem)
        return Settled(late, strays, deleted)

    def _delete(self, left: list[Listed]) -> int:
        """Delete the empty ones of some backing containers; return how many.

        They stay while a replica of the root is silent: it may have a record
        that no other replica has.
        """
        if not left:
            return 0
        root = read_root(self.backend, self.env, self.path, waits=True)
        is_same = root.record == self.root.record
        if not is_same or root.answered < root.replicas:
            return 0
        return sum(
            delete_if_empty(self.backend, self.env, each.path(self.path))
            for each in left
        )

    def _tried(
        self, places: list[Place], policy_index: int, kept_seconds: float = 0
    ) -> int:
        """Move the rows of places to where they belong, or note why they wait.

        Rows of another policy than the root's go to the root: Swift's
        reconciler finds them there and moves their objects. It looks for an
        object with exactly the row's timestamp.

        :returns: how many have moved
        """
        root = self.root
        is_for_root = root.exists and policy_index != root.policy_index
        # RowPass knows its shard ranges; those in memcached may be old.
        is_for_split = root.was_split and root.layout is None
        needs_ranges = root.was_split and (
            is_for_root
            or is_for_split
            or self.target.layout.is_changing
            or self.path.place in places
        )

        def place_of(name: str) -> Place:
            if is_for_root or is_for_split:
                return self.target.place_in(None)
            return self._row_targets.of(self.env, self.target, name)

        row_pass = RowPass(
            self.backend,
            self.env,
            self.target,
            policy_index,
            self.pace,
            asks_for_objects=True,
            check=self._check,
            place_of=place_of,
            may_be_hidden=not is_for_root,
            kept_seconds=kept_seconds,
            was_split=needs_ranges,
        )
        try:
            row_pass.run(places)
        except BackendError as err:
            self._problem = self._problem or str(err)
        return row_pass.moved

    def _check(self) -> None:
        """Check that the root is the same, if the last check is too old.

        :raises BackendError: if it has changed
        """
        now = time.monotonic()
        if now - self._checked < STAY_SECONDS:
            return
        root = read_root(self.backend, self.env, self.path)
        was_put = self.root.is_deleted and root.exists and not root.is_revived
        is_same = (root.record, root.was_split) == (
            self.root.record,
            self.root.was_split,
        )
        if not is_same or was_put or not root.is_proved:
            raise BackendError(
                None, 503, 'the container has changed meanwhile'
            )
        self._checked = now

    def _by_policy(self, places: list[Place]) -> dict[int, list[Place]]:
        """Return backing containers by their storage policy.

        A backing container whose policy is not known is left out: its rows
        wait.
        """
        found = defaultdict(list)
        for place in places:
            answers = ask_primaries(
                self.backend.proxy_app,
                self.env,
                *place,
                'HEAD',
                needs_all=False,
            )
            policies = {
                int(answer.headers.get('X-Backend-Storage-Policy-Index', 0))
                for answer in answers
                if answer.is_success
            }
            found_to_be = verdict([replica_of(each) for each in answers])
            if found_to_be is Verdict.DELETED:
                continue  # the hidden account still lists it
            if len(policies) != 1:
                self._problem = (
                    f'the replicas of {place} do not show its storage policy'
                )
                continue
            found[policies.pop()].append(place)
        return found


def abandoned(
    listed: Iterable[Listed], layout: Layout | None
) -> Iterator[Listed]:
    """Return the backing containers of earlier layouts.

    An empty one is left out while it is new, as its container may be under
    creation, and for a while after a change: a proxy that does not know yet
    that the change has ended may still read it.
    """
    is_settled = _age(layout) > CREATION_SECONDS
    for each in listed:
        if layout and layout.has(each.name.layout_id, each.name.shard):
            continue
        age = time.time() - time_of_id(each.name.layout_id)
        is_left = is_settled and age > CREATION_SECONDS
        if is_left or each.object_count > 0:
            yield each


def _age(layout: Layout | None) -> float:
    """Return how many seconds ago a container's layout was changed.

    :param layout: None if the container is gone, or was never sharded
    """
    if layout is None or layout.changed is None:
        return math.inf
    return time.time() - time_of_id(layout.changed)
