# SPDX-License-Identifier: Apache-2.0
"""Find rows and backing containers that are not as they should be."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from swift.common.utils import Timestamp

from shardmw.admin.cluster import API_VERSION, SwiftCluster
from shardmw.admin.export import rows_of
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.rows import deletion, listed_at, merge_rows
from shardmw.layout.backing import Listed, listed_backing
from shardmw.layout.late_rows import abandoned, settle
from shardmw.layout.moving import deleted_at, heads_of_objects
from shardmw.layout.resharding import MoveOptions, Resharding
from shardmw.layout.roots import RootState, read_root
from shardmw.paths import Path
from shardmw.placement import backing_base, hidden_account, parse_backing
from shardmw.record import LayoutError
from shardmw.stats.accounts import account_rows

#: How many rows to look at together.
PAGE_ROWS = 1000

MISSING_SHARD = 'missing shard'
MISPLACED_ROW = 'row in the wrong shard'
STRAY = 'stray row in the root'
DOUBLE = 'object that is listed twice'
NO_OBJECT = 'row without an object'
EARLIER_LAYOUT = 'backing container of an earlier layout'
NO_ROOT = 'backing container without a container'
CHANGING = 'layout that is changing'
FAILED = 'container that could not be audited'


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be.

    :param kind: one of the constants of this module
    :param container: the container that it concerns
    :param name: an object, a backing container, or ''
    :param reason: why the container could not be audited, else ''
    """

    kind: str
    container: str
    name: str
    reason: str = field(default='', compare=False)

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return asdict(self)


def mended(found: list[Problem], left: list[Problem]) -> set[Problem]:
    """Return the problems that a repair has mended.

    None of a container that could not be audited afterwards is among them.

    :param left: what was found after the repair
    """
    failed = {each.container for each in left if each.kind == FAILED}
    gone = set(found).difference(left)
    return {each for each in gone if each.container not in failed}


class Audit:
    """Looks through the containers of an account.

    :param looks_for_objects: True to ask for the object of every row
    """

    def __init__(
        self, cluster: SwiftCluster, account: str, looks_for_objects: bool
    ) -> None:
        self.cluster = cluster
        self.account = account
        self.looks_for_objects = looks_for_objects

    def look(self, container: str | None) -> list[Problem]:
        """Return what is found in a container, None for the whole account.

        A container that cannot be read is a problem, too.

        :raises AdminError: if the container does not exist
        :raises BackendError: if the account cannot be listed
        """
        if container is not None:
            self.cluster.root(self.account, container)
            return list(self._found_in(container))
        names = self.containers()
        return [
            *(p for each in names for p in self._found_in(each)),
            *self.without_root(names),
        ]

    def repair_all(self, problems: list[Problem]) -> list[Problem]:
        """Mend problems.

        :returns: a problem for each container of which that failed
        """
        failures = []
        for container in sorted({each.container for each in problems}):
            try:
                self.repair(container)
            except (BackendError, LayoutError) as err:
                failures.append(Problem(FAILED, container, '', str(err)))
        return failures

    def _found_in(self, container: str) -> Iterator[Problem]:
        try:
            yield from self.problems(container)
        except (BackendError, LayoutError) as err:
            yield Problem(FAILED, container, '', str(err))

    def containers(self) -> list[str]:
        """Return the names of the account's containers.

        Plain ones are among them: rows may come late to the shards that a
        container had before it was made plain.

        :raises BackendError: if the account cannot be listed
        """
        path = Path(API_VERSION, self.account)
        rows = account_rows(
            self.cluster.backend, self.cluster.base, path, '', ''
        )
        return [row['name'] for row in rows]

    def without_root(self, containers: list[str]) -> Iterator[Problem]:
        """List the backing containers whose container does not exist.

        :param containers: the names of those that exist
        :raises BackendError: if the hidden account cannot be listed
        """
        hidden = Path(API_VERSION, hidden_account(self.account))
        backend, base = self.cluster.backend, self.cluster.base
        roots = set(map(backing_base, containers))
        for row in account_rows(backend, base, hidden, '', ''):
            name = parse_backing(row['name'])
            if name and name.base not in roots:
                listed = Listed(name, row['name'], row['count'])
                for _ in abandoned([listed], None):
                    yield Problem(NO_ROOT, name.base, row['name'])

    def problems(self, container: str) -> Iterator[Problem]:
        """Look through a container.

        :raises BackendError: if a database cannot be read
        :raises LayoutError: if its record cannot be read
        """
        root = self._root(container)
        layout = root.record
        path = Path(API_VERSION, self.account, container)
        backing = list(
            listed_backing(self.cluster.backend, self.cluster.base, path)
        )
        if layout and layout.is_changing:
            yield Problem(CHANGING, container, '')
            return
        for each in abandoned(backing, layout):
            yield Problem(EARLIER_LAYOUT, container, each.container)
        target = self.cluster.logical(self.account, container, root)
        if target:
            yield from self._problems_of_shards(target)
        elif layout and self.looks_for_objects:
            # It was sharded, so rows have moved to it.
            for page in self._pages(path):
                yield from self._without_objects(path, root.policy_index, page)

    def _problems_of_shards(
        self, target: LogicalContainer
    ) -> Iterator[Problem]:
        container = target.container
        heads = self.cluster.backend.head_shards(
            self.cluster.env, target, newest=True
        )
        missing = [each.shard for each in heads if each.is_missing]
        for shard in missing:
            yield Problem(MISSING_SHARD, container, target.backing(shard))
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
        """Yield the misplaced rows that are in the right place, too."""
        for row in rows:
            _, replicas = self.cluster.row_replicas(
                *target.place_of(row['name']).split('/', 1), row['name']
            )
            if any(replica.has_it for replica in replicas):
                yield Problem(DOUBLE, target.container, row['name'])

    def _without_objects(
        self, path: Path, policy_index: int, rows: list[dict]
    ) -> Iterator[Problem]:
        for row, _ in self._deleted(path, policy_index, rows):
            yield Problem(NO_OBJECT, path.container, row['name'])

    def _deleted(
        self, path: Path, policy_index: int, rows: list[dict]
    ) -> list[tuple[dict, str]]:
        """Return the rows whose objects have been deleted since.

        :param path: the path of the logical container
        :returns: rows, with the timestamps of the deletions
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
        """Mend what :meth:`problems` finds.

        Rows move to where they belong. A row without an object goes if the
        object's deletion is known.

        :raises BackendError: if a server does not answer
        :raises LayoutError: if its record cannot be read
        """
        cluster = self.cluster
        root = self._root(container)
        path = Path(API_VERSION, self.account, container)
        resharding = Resharding(
            cluster.backend, cluster.env, path, MoveOptions()
        )
        target = cluster.logical(self.account, container, root)
        if target and not target.layout.is_changing:
            heads = cluster.backend.head_shards(
                cluster.env, target, newest=True
            )
            for each in heads:
                if each.is_missing:
                    resharding.put_shard(target, each.shard)
            places = [target.backing_path(n) for n in target.shards()]
        elif root.record and root.record.is_plain:
            places = [path]
        else:
            places = []
        if self.looks_for_objects:
            self._remove_without_objects(path, root, places)
        resharding.sweep()
        settle(cluster.backend, cluster.env, path)

    def _remove_without_objects(
        self, path: Path, root: RootState, places: list[Path]
    ) -> None:
        """Remove the rows of objects that are known to be deleted.

        :param path: the path of the logical container
        :param places: the containers that have its rows
        """
        for place in places:
            for page in self._pages(place):
                tombstones = [
                    deletion(row['name'], deleted, root.policy_index)
                    for row, deleted in self._deleted(
                        path, root.policy_index, page
                    )
                    if float(Timestamp(deleted))
                ]
                if tombstones:
                    merge_rows(
                        self.cluster.backend,
                        self.cluster.env,
                        f'{place.account}/{place.container}',
                        root.policy_index,
                        tombstones,
                    )

    def _pages(self, path: Path) -> Iterator[list[dict]]:
        page: list[dict] = []
        for row in rows_of(self.cluster, path, PAGE_ROWS):
            page.append(row)
            if len(page) == PAGE_ROWS:
                yield page
                page = []
        yield page

    def _root(self, container: str) -> RootState:
        path = Path(API_VERSION, self.account, container)
        return read_root(self.cluster.backend, self.cluster.env, path)
