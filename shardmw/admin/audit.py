# SPDX-License-Identifier: Apache-2.0
"""Find and repair misplaced rows, missing shards and leftover containers."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from swift.common.utils import Timestamp

from shardmw.admin.walk import rows_of
from shardmw.backend.accounts import account_rows
from shardmw.backend.answers import Answer
from shardmw.backend.backing_containers import (
    Listed,
    listed_backing,
    logical_name,
)
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.nodes import ask_primaries
from shardmw.backend.roots import RootState, read_root, unproved
from shardmw.backend.row_targets import RowTargets
from shardmw.backend.rows import deletion, listed_at, merge_rows
from shardmw.backend.sync_settings import agreed_settings
from shardmw.core.layout import LayoutError
from shardmw.core.paths import API_VERSION, Path, Place
from shardmw.core.placement import (
    REGISTER,
    backing_base,
    hidden_account,
    parse_backing,
)
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.executor import Executor, put_shard
from shardmw.reshard.late_rows import abandoned, settle
from shardmw.reshard.resharding import MoveOptions, Resharding
from shardmw.reshard.row_mover import by_place, deleted_at, heads_of_objects
from shardmw.reshard.row_pass import Pace

#: How many rows to look at together.
PAGE_ROWS = 1000

MISSING_SHARD = 'missing shard'
MISPLACED_ROW = 'row in the wrong shard'
STRAY = 'stray row in the root'
DOUBLE = 'object that is listed twice'
NO_OBJECT = 'row without an object'
EARLIER_LAYOUT = 'backing container of an earlier layout'
NO_ROOT = 'backing container without a container'
UNREGISTERED = 'account that the register lacks'
CHANGING = 'layout that is changing'
FAILED = 'container that could not be audited'

WRONG_SHARD = (MISPLACED_ROW, DOUBLE)
LEFTOVERS = (EARLIER_LAYOUT, NO_ROOT)

#: Why a problem is not repaired.
UNDER_WAY = 'audit it when the change has ended: shardmw-admin status'
UNKNOWN_DELETION = 'no server knows of its deletion: DELETE the object'
SHARD_IS_MISSING = 'a shard of the container is missing'
SYNCS = 'the container syncs, which would delete the object at the other end'
NAME_IS_CUT = (
    "no server tells the container's full name: repeat the command, or PUT "
    'the container'
)
NOT_REPORTED = 'its account lists it until container-updater has run'
NOT_YET = 'not done yet: repeat the command'

#: What to do about lost shards.
REMEDY = (
    'the objects of lost rows can be read, but are not listed. Put the '
    'database back from a backup or another disk (shardmw-admin stat shows '
    'its path). Or create an empty shard with --repair --accept-loss, and '
    'have the object-auditors write the rows again: action = relist of the '
    'watcher shardmw#dark_data'
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that an audit has found.

    :param kind: one of the constants of this module
    :param container: the name of the container that has it, '' if it is a
                      problem of the account
    :param name: the name of an object or of a backing container, or ''
    :param reason: why it is not repaired, or could not be audited; '' if no
                   reason is known
    """

    kind: str
    container: str
    name: str
    reason: str = field(default='', compare=False)

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return asdict(self)


def mended(found: list[Problem], left: list[Problem]) -> set[Problem]:
    """Return the problems that a repair has removed.

    Problems of a container that could not be audited afterwards are left out.

    :param left: the problems that were found after the repair
    """
    failed = {each.container for each in left if each.kind == FAILED}
    gone = set(found).difference(left)
    return {each for each in gone if each.container not in failed}


class Audit:
    """Looks through the containers of an account.

    :param looks_for_objects: True to check the object of every row
    :param accepts_loss: True to create lost shards again, without their rows
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        account: str,
        looks_for_objects: bool,
        accepts_loss: bool = False,
    ) -> None:
        self.cluster = cluster
        self.account = account
        self.looks_for_objects = looks_for_objects
        self.accepts_loss = accepts_loss

    def look(self, container: str | None) -> list[Problem]:
        """Return the problems of a container, or of the whole account.

        A container that cannot be read is a problem, too.

        :param container: None for all containers of the account
        :raises AdminError: if the container does not exist
        :raises BackendError: if the account cannot be listed
        """
        if container is not None:
            self.cluster.root(self._path(container))
            return list(self._found_in(container))
        names = self.containers()
        return [
            *self._unregistered(),
            *(p for each in names for p in self._found_in(each)),
            *self.without_root(names),
        ]

    def repair_all(self, problems: list[Problem]) -> list[Problem]:
        """Repair the containers that have problems, and the account.

        :returns: one problem per container that could not be repaired
        """
        failures = []
        for container in sorted({each.container for each in problems}):
            try:
                if container:
                    self.repair(container)
                else:
                    self.cluster.backend.register(
                        self.cluster.env, self.account
                    )
            except (BackendError, LayoutError) as err:
                failures.append(Problem(FAILED, container, '', str(err)))
        return failures

    def _unregistered(self) -> Iterator[Problem]:
        """Yield a problem if shardmw-resharder does not know the account."""
        backend, base = self.cluster.backend, self.cluster.base
        if not backend.account_exists(base, hidden_account(self.account)):
            return
        place = Place(REGISTER, self.account)
        answer = backend.send(base, 'HEAD', place.path.to_wsgi())
        if answer.is_missing:
            yield Problem(UNREGISTERED, '', '')
        elif not answer.is_success:
            reason = f'container {place} answered {answer.status}'
            yield Problem(FAILED, '', '', reason)

    def _found_in(self, container: str) -> Iterator[Problem]:
        try:
            yield from self.problems(container)
        except (BackendError, LayoutError) as err:
            yield Problem(FAILED, container, '', str(err))

    def containers(self) -> list[str]:
        """Return the names of the account's containers.

        Plain containers are included: late rows may reach the shards that
        such a container had earlier.

        :raises BackendError: if the account cannot be listed
        """
        path = Path(API_VERSION, self.account)
        rows = account_rows(
            self.cluster.backend, self.cluster.base, path, '', ''
        )
        return [row['name'] for row in rows]

    def without_root(self, containers: list[str]) -> Iterator[Problem]:
        """Yield the backing containers whose container does not exist.

        :param containers: the names of the containers that exist
        :raises BackendError: if the hidden account cannot be listed
        """
        hidden = Path(API_VERSION, hidden_account(self.account))
        backend, base = self.cluster.backend, self.cluster.base
        roots = set(map(backing_base, containers))
        names: dict[str, str | None] = {}
        for row in account_rows(backend, base, hidden, '', ''):
            name = parse_backing(row['name'])
            if name and name.base not in roots:
                listed = Listed(name, row['name'], row['count'])
                for _ in abandoned([listed], None):
                    if name.base not in names:
                        names[name.base] = logical_name(
                            backend, base, hidden.of_container(row['name'])
                        )
                    container = names[name.base] or name.base
                    yield Problem(NO_ROOT, container, row['name'])

    def problems(self, container: str) -> Iterator[Problem]:
        """Yield the problems of a container.

        :raises BackendError: if a database cannot be read
        :raises LayoutError: if its record cannot be read
        """
        root = self._root(container)
        if root.is_absent:
            raise BackendError(None, 503, unproved(root))
        layout = root.record
        path = self._path(container)
        backing = list(
            listed_backing(self.cluster.backend, self.cluster.base, path)
        )
        if layout and layout.is_changing:
            yield Problem(CHANGING, container, '', UNDER_WAY)
            return
        for each in abandoned(backing, layout):
            yield Problem(EARLIER_LAYOUT, container, each.container)
        target = self.cluster.logical(path, root)
        if target:
            counts = {each.container: each.object_count for each in backing}
            yield from self._problems_of_shards(target, counts)
        elif root.exists and self.looks_for_objects:
            for page in self._pages(path):
                yield from self._without_objects(path, root.policy_index, page)

    def _problems_of_shards(
        self, target: LogicalContainer, counts: dict[str, int]
    ) -> Iterator[Problem]:
        """Yield the problems of a container's shards and root.

        :param counts: the row counts that backing containers reported last
        """
        container = target.container
        missing = self._missing_shards(target)
        for shard in missing:
            name = target.backing(shard)
            reason = self._loss(target, shard, counts.get(name))
            yield Problem(MISSING_SHARD, container, name, reason)
        for shard in target.shards():
            if shard in missing:
                continue
            path = target.backing_path(shard)
            for page in self._pages(path):
                yield from self._problems_of_rows(target, page, shard)
        for page in self._pages(target.path):
            for row in page:
                yield Problem(STRAY, container, row['name'])
            yield from self._doubles(target, page)

    def _missing_shards(self, target: LogicalContainer) -> list[int]:
        """Return the shards that are missing on all servers that answer."""
        heads = self.cluster.backend.head_shards(
            self.cluster.env, target, newest=True
        )
        return [each.shard for each in heads if each.is_missing]

    def _loss(
        self, target: LogicalContainer, shard: int, count: int | None
    ) -> str:
        """Return the reason to show for a missing shard."""
        if self._may_exist(target, shard):
            return 'it may be on a server that does not answer'
        rows = 'unknown' if count is None else count
        return f'lost on all servers; rows in its last report: {rows}'

    def _may_exist(self, target: LogicalContainer, shard: int) -> bool:
        """Return True unless all servers answer that they lack a shard."""
        answers = self._heads(target.backing_path(shard))
        return not all(answer.is_missing for answer in answers)

    def _heads(self, path: Path) -> list[Answer]:
        """HEAD a container on all of its primary servers."""
        cluster = self.cluster
        return ask_primaries(cluster.app, cluster.env, *path.place, 'HEAD')

    def _problems_of_rows(
        self, target: LogicalContainer, rows: list[dict], shard: int
    ) -> Iterator[Problem]:
        container = target.container
        wrong = [row for row in rows if target.shard_of(row['name']) != shard]
        for row in wrong:
            yield Problem(MISPLACED_ROW, container, row['name'])
        yield from self._doubles(target, wrong)
        if self.looks_for_objects:
            yield from self._without_objects(
                target.path, target.policy_index, rows
            )

    def _doubles(
        self, target: LogicalContainer, rows: list[dict]
    ) -> Iterator[Problem]:
        """Yield a problem for each row that is also in the right place."""
        for row in rows:
            name = row['name']
            _, replicas = self.cluster.row_replicas(
                target.place_of(name), name
            )
            if any(replica.has_it for replica in replicas):
                yield Problem(DOUBLE, target.container, name)

    def _without_objects(
        self, path: Path, policy_index: int, rows: list[dict]
    ) -> Iterator[Problem]:
        for row, deleted in self._deleted(path, policy_index, rows):
            is_known = float(Timestamp(deleted)) > 0
            reason = '' if is_known else UNKNOWN_DELETION
            yield Problem(NO_OBJECT, path.container, row['name'], reason)

    def _deleted(
        self, path: Path, policy_index: int, rows: list[dict]
    ) -> list[tuple[dict, str]]:
        """Return the rows whose objects are gone.

        :param path: the path of the logical container
        :returns: each row with the timestamp of the deletion, which is 0 if
                  no server knows it
        :raises BackendError: if an object does not answer
        """
        answers = heads_of_objects(
            self.cluster.backend,
            self.cluster.base,
            path,
            policy_index,
            rows,
        )
        found = []
        for row, answer in zip(rows, answers, strict=True):
            if not (answer.is_success or answer.is_missing):
                name = f'{path.container}/{row["name"]}'
                reason = f'{name} answered {answer.status}'
                raise BackendError(None, answer.status, reason)
            deleted = deleted_at(answer)
            if answer.is_missing and (
                not float(deleted) or float(deleted) > listed_at(row)
            ):
                found.append((row, deleted.internal))
        return found

    def repair(self, container: str) -> None:
        """Repair what :meth:`problems` finds.

        Rows move to where they belong. A row without an object is removed if
        the object's deletion is known. Shards that are lost on all servers
        are created again if the loss is accepted. Otherwise, a container with
        a missing shard is not changed.

        :raises BackendError: if a server does not answer
        :raises LayoutError: if its record cannot be read
        """
        cluster = self.cluster
        root = self._root(container)
        if root.exists and not root.is_proved:
            raise BackendError(None, 503, unproved(root))
        path = self._path(container)
        target = cluster.logical(path, root)
        if target and not target.layout.is_changing:
            for shard in self._missing_shards(target):
                if not self.accepts_loss or self._may_exist(target, shard):
                    return
                put_shard(cluster.backend, cluster.env, target, shard)
            places = [target.backing_path(n) for n in target.shards()]
        elif target or not root.exists:
            places = []
        else:
            places = [path]
        if self.looks_for_objects:
            self._remove_without_objects(path, root, places)
        executor = Executor(cluster.backend, cluster.env, path)
        Resharding(executor, MoveOptions()).sweep(cluster.kept_seconds)
        settle(
            cluster.backend,
            cluster.env,
            path,
            Pace(0),
            cluster.kept_seconds,
        )

    def _remove_without_objects(
        self, path: Path, root: RootState, places: list[Path]
    ) -> None:
        """Remove the rows of objects that are known to be deleted.

        :param path: the path of the logical container
        :param places: the containers that have its rows
        """
        row_targets = RowTargets(self.cluster.backend)
        for place in places:
            for page in self._pages(place):
                tombstones = [
                    deletion(row['name'], deleted, root.policy_index)
                    for row, deleted in self._deleted(
                        path, root.policy_index, page
                    )
                    if float(Timestamp(deleted))
                ]
                # Swift's own sharder may have split the container.
                databases = by_place(
                    tombstones,
                    partial(
                        row_targets.database, self.cluster.env, place.place
                    ),
                )
                for database, rows in databases.items():
                    merge_rows(
                        self.cluster.backend,
                        self.cluster.env,
                        database,
                        root.policy_index,
                        rows,
                    )

    def with_reasons(
        self, left: list[Problem], failures: list[Problem]
    ) -> list[Problem]:
        """Return the problems that a repair has left, each with a reason.

        :param failures: the problems that :meth:`repair_all` has returned
        """
        known = {
            each.container: SHARD_IS_MISSING
            for each in left
            if each.kind == MISSING_SHARD
        }
        known |= {each.container: each.reason for each in failures}
        obstacles = {
            container: known.get(container)
            or (container and self._obstacle(container))
            for container in {each.container for each in left}
        }
        return [
            each
            if each.reason
            else replace(
                each, reason=self._why_left(each, obstacles[each.container])
            )
            for each in left
        ]

    def _why_left(self, problem: Problem, obstacle: str) -> str:
        """Return why a repair has left a problem.

        :param obstacle: the reason that holds for the whole container, '' if
                         there is none
        :raises BackendError: if a server of the root does not answer
        """
        if problem.kind in LEFTOVERS:
            name = parse_backing(problem.name)
            if backing_base(problem.container) != name.base:
                return NAME_IS_CUT
            hidden = hidden_account(self.account)
            heads = self._heads(Path(API_VERSION, hidden, problem.name))
            if not any(a.is_success and a.object_count for a in heads):
                return NOT_REPORTED
        if obstacle:
            return obstacle
        if problem.kind in WRONG_SHARD and self._syncs(problem.container):
            return SYNCS
        return NOT_YET

    def _obstacle(self, container: str) -> str:
        """Return what keeps the rows of a container from moving, or ''."""
        path = self._path(container)
        try:
            root = self._root(container)
        except (BackendError, LayoutError) as err:
            return str(err)
        target = self.cluster.logical(path, root)
        shards = map(target.backing_path, target.shards()) if target else ()
        return next(filter(None, map(self._disagreement, [path, *shards])), '')

    def _disagreement(self, path: Path) -> str:
        """Return why not all replicas of a container take rows, or ''."""
        answers = self._heads(path)
        have_it = sum(answer.is_success for answer in answers)
        missing = sum(answer.is_missing for answer in answers)
        if have_it + missing < len(answers):
            return f'a server of {path.place} does not answer'
        if have_it and missing:
            return (
                f'container-replicator has to copy {path.place} to all servers'
            )
        return ''

    def _syncs(self, container: str) -> bool:
        cluster = self.cluster
        return agreed_settings(
            cluster.backend, cluster.env, self._path(container)
        ).are_set

    def _pages(self, path: Path) -> Iterator[list[dict]]:
        page: list[dict] = []
        for row in rows_of(self.cluster, path, PAGE_ROWS):
            page.append(row)
            if len(page) == PAGE_ROWS:
                yield page
                page = []
        yield page

    def _root(self, container: str) -> RootState:
        path = self._path(container)
        return read_root(
            self.cluster.backend, self.cluster.env, path, waits=True
        )

    def _path(self, container: str) -> Path:
        return Path(API_VERSION, self.account, container)
