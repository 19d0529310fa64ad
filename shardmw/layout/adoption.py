# SPDX-License-Identifier: Apache-2.0
"""Move rows that are not where the layout says.

There are two kinds of such rows. *Strays* are in the root of a sharded
container: a proxy without the filter, or with stale container info, treated
the container as plain. *Late rows* are in a backing container of an earlier
layout: the upload began before its container was deleted, the proxy did not
know of the deletion, or an object server delayed the update. Late rows are
found in the listing of the hidden account after Swift's updaters have run.

Both kinds are *adopted* at a GET, HEAD, PUT or DELETE of the container: they
move to the shards of its layout. If the container is plain or does not exist,
they move to the root, which is thereby created again, as Swift does with any
container that gets a late row.

A row is removed from its old place when every replica of the new place has
it, and STAY_SECONDS later if listings may read both places: the root, or the
shards before a change that has just ended. Moving rows is idempotent: it may
stop at any point, and two processes that move the same rows do no harm.

The object of a late row may have been deleted, with a tombstone in a layout
that was deleted, too. So if a row is older than the container's last deletion,
its object is asked for before the row is moved, or left in a root that late
rows have created again.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.http import HTTP_CONFLICT
from swift.common.utils import quote as quote_path

from shardmw.backend.answers import Answer
from shardmw.backend.concurrency import Event, sleep
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.pages import container_page
from shardmw.backend.requests import Backend
from shardmw.backend.rows import (
    STAY_SECONDS,
    all_replicas_answer,
    listed_at,
)
from shardmw.backend.write_marks import WriteMarks
from shardmw.layout.lookup import Layouts
from shardmw.layout.moving import (
    AT_A_TIME,
    RowMover,
    by_place,
    deleted_at,
    heads_of_objects,
)
from shardmw.layout.roots import RootState, read_root
from shardmw.layout.row_targets import RowTargets
from shardmw.lru import LRU
from shardmw.metrics import ADOPTED, LATE, STRAY
from shardmw.paths import Path
from shardmw.placement import (
    BackingName,
    backing_base,
    backing_prefix,
    hidden_account,
    parse_backing,
)
from shardmw.record import MICROSECONDS, Layout, id_of_time, time_of_id
from shardmw.stats.accounts import AFTER_ALL, account_rows

#: How many rows one client request moves at most. The next request continues.
ROWS_AT_A_TIME = CONTAINER_LISTING_LIMIT

#: How many rows are read and moved at once.
PAGE_ROWS = 1000

#: For how long after a change listings may read the shards before it, also if
#: clocks differ.
LISTED_SECONDS = 60

#: A row whose object has to be asked for counts as this many rows.
ASKED_ROW_COST = 10

#: How many empty backing containers one client request deletes at most.
LEFTOVERS_AT_A_TIME = 128

#: How many places that fail one client request tries to move rows to.
FAILURES = 3

#: No id of a layout is from before 2020, or later than the clock by more than
#: a year. So the containers logs.2026 and logs.a are not mistaken for shards
#: of the container logs.
EARLIEST_ID_SECONDS = 1_577_836_800
LATEST_ID_SECONDS = 365 * 24 * 3600

#: How long the creation of a container may take. Empty backing containers of
#: an id that no layout has are deleted after this time.
CREATION_SECONDS = 3600

#: For how many containers a worker remembers when it last looked for late
#: rows.
LOOKED = 10_000

#: How long not to try again when rows could not be moved.
PAUSE_SECONDS = 5


class Listed(NamedTuple):
    """A backing container in the listing of a hidden account."""

    name: BackingName
    container: str
    object_count: int

    def path(self, logical: Path) -> Path:
        """Return its path.

        :param logical: the path of the container that it belongs to
        """
        hidden = hidden_account(logical.account)
        return Path(logical.version, hidden, self.container)


def adopt_all(backend: Backend, env: dict, path: Path) -> None:
    """Move all strays and late rows of a container.

    A deleted container is created again if it has late rows. Rows that cannot
    be moved yet are logged, and stay where they are.
    """
    adoption = Adoption(
        backend,
        Layouts(backend),
        RowTargets(backend),
        WriteMarks(0),
        0,
        backend.logger,
    )
    while adoption.look(env, path, has_strays=True):
        pass


class Adoption:
    """Moves strays and late rows to where they belong.

    :param seconds: how often a worker looks for a container's late rows when
                    it is listed
    """

    def __init__(
        self,
        backend: Backend,
        layouts: Layouts,
        row_targets: RowTargets,
        marks: WriteMarks,
        seconds: int,
        logger,
    ) -> None:
        self.backend = backend
        self.layouts = layouts
        self.row_targets = row_targets
        self.marks = marks
        self.seconds = seconds
        self.logger = logger
        self._looked = LRU(LOOKED)
        self._paused = LRU(LOOKED)
        # Containers of whose late rows some have yet to be moved.
        self._unfinished = LRU(LOOKED)
        # The last row that was copied from a place, while others are left.
        self._copied = LRU(LOOKED)
        # Places of which all rows have been copied once. Rows may stay there
        # while a replica is away.
        self._whole = LRU(LOOKED)
        # The containers whose rows a request is moving; others wait for it.
        self._running: dict[tuple[str, str], Event] = {}

    def is_due(self, path: Path) -> bool:
        """Return True if it is time to look for a container's late rows."""
        looked = self._looked.get(_key(path))
        return looked is None or time.monotonic() - looked >= self.seconds

    def check_finished(self, path: Path) -> None:
        """Check that a listing of a container would be complete.

        Rows of an earlier layout are not listed before they are moved.

        :raises BackendError: if some rows have yet to be moved
        """
        if _key(path) in self._unfinished:
            raise BackendError(
                None, 503, 'rows of an earlier layout are being moved'
            )

    def look(
        self,
        env: dict,
        path: Path,
        known: LogicalContainer | None = None,
        has_strays: bool = False,
    ) -> bool:
        """Adopt the rows of a container, if there are any.

        A failure is logged; a later request tries again.

        :param known: the container, if it is known to be sharded
        :param has_strays: True if the root is sharded and has rows, or may
                           be one that late rows have brought back
        :returns: True if rows were moved or removed
        """
        key = _key(path)
        running = self._running.get(key)
        if running:
            return running.wait()
        if (
            self.backend.proxy_app is None
            or time.monotonic() < self._paused.get(key, 0)
        ):
            return False
        running = self._running[key] = Event()
        is_changed = False
        try:
            is_changed = self._look(env, path, known, has_strays)
        except BackendError as err:
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
            self.logger.warning(
                'shardmw: late rows of %s could not be moved yet: %s',
                quote_path(path.to_wsgi()),
                err,
            )
        finally:
            del self._running[key]
            running.send(is_changed)
        return is_changed

    def _look(
        self,
        env: dict,
        path: Path,
        known: LogicalContainer | None,
        has_strays: bool,
    ) -> bool:
        key = _key(path)
        hidden = hidden_account(path.account)
        if not self.backend.account_exists(env, hidden):
            return False
        # The root is read after the shards have been listed: a shard that has
        # rows is either one of the root's, or of an earlier layout.
        base = self.backend.owner_env(env)
        layout = known and known.layout
        listed = list(listed_backing(self.backend, base, path))
        if not (has_strays or any(abandoned(listed, layout))):
            self._looked[key] = time.monotonic()
            self._unfinished.pop(key, None)
            return False
        root = read_root(self.backend, env, path)
        found = list(abandoned(listed, root.record))
        if any(each.object_count for each in found):
            self._looked.pop(key, None)
        if any(
            each.object_count and each.path(path) not in self._whole
            for each in found
        ):
            self._unfinished[key] = True
        run = _Run(
            self.backend,
            self.row_targets,
            env,
            path,
            root,
            self.marks,
            self._copied,
            self._whole,
        )
        run.move_all(found)
        if run.left > 0:
            self._looked[key] = time.monotonic()
            self._unfinished.pop(key, None)
        if run.moved + run.removed < run.read:
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
        if run.moved or run.removed:
            self._note(env, path, run)
        return run.moved + run.removed > 0

    def _note(self, env: dict, path: Path, run: '_Run') -> None:
        if run.moved:
            self.logger.warning(
                'shardmw: %s: %d rows of late or unfiltered writes were moved '
                'to where they belong',
                quote_path(path.to_wsgi()),
                run.moved,
            )
            for kind, rows in ((STRAY, run.strays), (LATE, run.late)):
                if rows:
                    self.backend.metrics.note(ADOPTED, rows, kind=kind)
        self.backend.forget_info(env, path)


class _Run:
    """One adoption of a container's rows.

    :param marks: where it marks the container as written
    :param copied: the last row that was copied, by place; this run begins
                   after it
    :param whole: the places of which all rows have been copied
    :ivar left: how many more rows it may read, each that needs a request of
                its own counting as ASKED_ROW_COST
    :ivar read: how many rows it has read that do not belong where they are
    :ivar strays: how many rows of the root are at their new place only
    :ivar late: how many rows of backing containers are at their new place only
    :ivar removed: how many rows of deleted objects are gone
    """

    def __init__(
        self,
        backend: Backend,
        row_targets: RowTargets,
        env: dict,
        path: Path,
        root: RootState,
        marks: WriteMarks,
        copied: LRU,
        whole: LRU,
    ) -> None:
        self.backend = backend
        self.row_targets = row_targets
        self.env = env
        self.path = path
        self.root = root
        self.base = backend.owner_env(env)
        # The app would put info with the counts of the root alone into
        # memcached, and quotas would be enforced with these.
        self._uncached = backend.owner_env(env, uncached=True)
        self.target = (
            _target(path, root.answer, root.layout) if root.layout else None
        )
        self.left = ROWS_AT_A_TIME
        self.read = self.strays = self.late = self.removed = 0
        self._marks = marks
        self._copied = copied
        self._whole = whole
        self._sources: list[Path] = []
        self._failures = 0
        # Rows that have been copied, with their sources and their policies.
        self._copied_rows: list[tuple[Path, list[dict], int]] = []
        record = root.record
        # If the root has no record, the last one was made before its deletion,
        # and the next one comes after it.
        ended = round(root.deleted * MICROSECONDS) + 1
        offset = record.offset if record else ended
        self.mover = RowMover(backend, env, path, offset)

    @property
    def moved(self) -> int:
        """Return how many rows were moved: copied, and removed."""
        return self.strays + self.late

    def move_all(self, abandoned: list[Listed]) -> None:
        """Move late rows and strays.

        :param abandoned: the backing containers of earlier layouts
        """
        emptied = []
        try:
            for listed in abandoned:
                if listed.object_count > 0 and self.left > 0:
                    emptied.append(listed.path(self.path))
                    self._look_through(emptied[-1])
            self._delete_empty(
                [each for each in abandoned if each.object_count == 0]
            )
            has_rows = self.root.exists and self.root.answer.object_count > 0
            has_strays = self.target and not self.target.layout.is_changing
            if has_rows and (has_strays or self.root.is_revived):
                self._look_through(self.path)
        finally:
            self._remove_copied()
        if _age(self.root.record) > CREATION_SECONDS:
            for backing in emptied:
                self._delete(backing)
        if self.left > 0:
            for source in self._sources:
                self._copied.pop(source, None)

    def _delete(self, backing: Path) -> Answer:
        return self.backend.send(self.base, 'DELETE', backing.to_wsgi())

    def _delete_empty(self, leftovers: list[Listed]) -> None:
        """Delete backing containers that are listed as empty."""
        paths = [
            each.path(self.path) for each in leftovers[:LEFTOVERS_AT_A_TIME]
        ]
        answers = self.backend.fan_out(
            lambda _shard, backing: self._delete(backing),
            [(None, backing) for backing in paths],
            AT_A_TIME,
        )
        for backing, answer in zip(paths, answers, strict=True):
            if answer.status == HTTP_CONFLICT:
                self._look_through(backing)

    def _look_through(self, source: Path) -> None:
        """Copy the rows of a container, as many as are left to move."""
        marker = self._copied.get(source, '')
        self._sources.append(source)
        while (
            marker != AFTER_ALL and self.left > 0 and self._failures < FAILURES
        ):
            limit = container_page(min(PAGE_ROWS, self.left))
            page = self.backend.send(
                self._uncached,
                'GET',
                source.to_wsgi(),
                query=f'format=json&limit={limit}&marker={quote(marker)}',
                headers={'X-Newest': 'true'},
            )
            if not (page.is_success or page.is_missing):
                raise BackendError(None, page.status)
            rows = page.rows() if page.is_success else []
            if not rows:
                self._copied[source] = AFTER_ALL
                self._whole[source] = True
                return
            policy_index = int(
                page.headers.get('X-Backend-Storage-Policy-Index', 0)
            )
            self._move_page(source, policy_index, rows)
            marker = self._copied[source] = rows[-1]['name']

    def _move_page(
        self, source: Path, policy_index: int, rows: list[dict]
    ) -> None:
        deleted = self._of_deleted_objects(policy_index, rows)
        self.left -= len(rows)
        self.read += len(deleted)
        place_in_source = self._place_in(source)
        if self.mover.remove(deleted, policy_index, place_in_source):
            self.removed += len(deleted)
        if source == self.path and not self.target:
            return  # a root that came back: the other rows belong there
        gone = {row['name'] for row in deleted}
        rows = [row for row in rows if row['name'] not in gone]
        self.read += len(rows)
        destination = self._destination(policy_index)
        # Swift's reconciler looks for an object of the row's very timestamp.
        is_for_reconciler = (
            self.root.exists and policy_index != self.root.policy_index
        )
        hidden = hidden_account(self.path.account)
        for place, moving in by_place(rows, destination).items():
            if source == self.path and not self._can_take_strays(place):
                continue
            # Rows may have been removed from a root, where they return to, but
            # not from the shards of a layout that is not changing.
            is_fresh = place.startswith(f'{hidden}/')
            adds_offset = not (is_fresh or is_for_reconciler)
            if self.mover.copy(moving, place, policy_index, adds_offset):
                self._copied_rows.append((source, moving, policy_index))

    def _remove_copied(self) -> None:
        """Remove the rows that are at their new place, too."""
        copied, self._copied_rows = self._copied_rows, []
        if not copied:
            return
        if self.target:
            # Pages and sums that were read before the copy lack the rows.
            self._marks.mark(self.env, self.target)
        has_strays = any(source == self.path for source, *_ in copied)
        try:
            if has_strays or _age(self.root.record) < LISTED_SECONDS:
                sleep(STAY_SECONDS)
            if has_strays:
                self._check_record()
            for source, rows, policy_index in copied:
                self.mover.remove(rows, policy_index, self._place_in(source))
                if source == self.path:
                    self.strays += len(rows)
                else:
                    self.late += len(rows)
        except BackendError:
            for source, *_ in copied:
                self._copied.pop(source, None)  # to look at these rows again
            raise

    def _check_record(self) -> None:
        """Check that the root has the same layout as before.

        If the container is becoming plain, the copies of strays may be back
        in the root, in the very rows that would be removed.

        :raises BackendError: if the layout has changed
        """
        root = read_root(self.backend, self.env, self.path)
        if root.record != self.root.record:
            raise BackendError(None, 503, 'the layout has changed meanwhile')

    def _can_take_strays(self, place: str) -> bool:
        """Return True if every replica of a place could take rows.

        Strays in both places would be counted twice.
        """
        if self._failures == FAILURES:
            return False
        if all_replicas_answer(self.backend, self.env, place):
            return True
        self._failures += 1
        return False

    def _of_deleted_objects(
        self, policy_index: int, rows: list[dict]
    ) -> list[dict]:
        """Return the rows whose objects have been deleted since.

        Their tombstones may have gone with a container that was deleted, or
        with the shards of an earlier layout, so only rows from before the last
        deletion or change are looked into. A 404 without the timestamp of a
        tombstone proves nothing.
        """
        record = self.root.record
        changed = (
            time_of_id(record.changed) if record and record.changed else 0
        )
        latest = max(self.root.deleted, changed)
        doubtful = [row for row in rows if listed_at(row) <= latest]
        self.left -= (ASKED_ROW_COST - 1) * len(doubtful)
        answers = heads_of_objects(
            self.backend, self.base, self.path, policy_index, doubtful
        )
        return [
            row
            for row, answer in zip(doubtful, answers, strict=True)
            if answer.is_missing and float(deleted_at(answer)) > listed_at(row)
        ]

    def _destination(self, policy_index: int) -> Callable[[str], str]:
        """Return the function that says where rows of a policy belong.

        Rows of another policy than the root's go to the root: Swift's
        reconciler finds them there and moves their objects.
        """
        if self.target and policy_index == self.root.policy_index:
            return lambda name: self.row_targets.of(
                self.env, self.target, name
            )
        return self._place_in(self.path)

    def _place_in(self, container: Path) -> Callable[[str], str]:
        """Return the function that says which database has a name's row."""
        names = (container.account, container.container)
        if self.backend.is_split(self.env, *names):
            return lambda name: self.backend.row_path(self.env, *names, name)
        return lambda name: '/'.join(names)


def listed_backing(
    backend: Backend, base: dict, path: Path
) -> Iterator[Listed]:
    """List the backing containers of a container, of all its layouts.

    :param base: an environment of :meth:`Backend.owner_env`
    :raises BackendError: if the hidden account cannot be listed
    """
    hidden = Path(path.version, hidden_account(path.account))
    start, end = backing_range(path.container)
    rows = account_rows(backend, base, hidden, start, end)
    yield from backing_among(rows, path.container)


def backing_range(container: str) -> tuple[str, str]:
    """Return two names that all backing containers of a container lie between.

    Those of other containers may, too.
    """
    prefix = backing_prefix(container)
    start = prefix + id_of_time(EARLIEST_ID_SECONDS)
    end = prefix + id_of_time(time.time() + LATEST_ID_SECONDS)
    return start, end


def backing_among(rows: Iterable[dict], container: str) -> Iterator[Listed]:
    """Return those rows of an account that are a container's shards."""
    base_name = backing_base(container)
    for row in rows:
        name = parse_backing(row['name'])
        if name and name.base == base_name:
            yield Listed(name, row['name'], row['count'])


def _key(path: Path) -> tuple[str, str]:
    return path.account, path.container


def abandoned(
    listed: Iterable[Listed], layout: Layout | None
) -> Iterator[Listed]:
    """Return the backing containers of earlier layouts to adopt or delete.

    Those with rows are to be adopted, empty ones to be deleted. A young empty
    one is left alone: its container may be being created, or a proxy that
    does not know yet that a change has ended may still read it.
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


def _target(path: Path, root: Answer, layout) -> LogicalContainer:
    return LogicalContainer(
        path.version, path.account, path.container, root.info(), layout
    )
