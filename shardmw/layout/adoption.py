# SPDX-License-Identifier: Apache-2.0
"""Rows that lie elsewhere than the layout says, and how they get there.

Two kinds of rows do. *Strays* lie in the root of a sharded container: a proxy
without the filter, or with outdated container info, took the upload for one
into a plain container. *Late rows* lie in a backing container of an earlier
layout: the upload began before its container was deleted, the proxy did not
know of the deletion, or an object server put the update off. Late rows are
found in the listing of the hidden account once Swift's updaters have run.

Both are adopted when the container is listed, asked for its statistics, put
or deleted: they move to the shards of the container's layout, or, if it is
plain or gone, to the root, which thereby comes back like any Swift container
that takes a late row.

A row is removed from its old place once every replica of the new one has it.
Moving rows is idempotent; it may stop at any point, and two movers do no harm.
"""

import base64
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.http import HTTP_CONFLICT
from swift.common.utils import quote as quote_path

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.backend.rows import (
    all_replicas_answer,
    merge_rows,
    moved_row,
    tombstone,
)
from shardmw.layout.lookup import Layouts
from shardmw.layout.roots import RootState, read_root
from shardmw.layout.row_targets import RowTargets
from shardmw.lru import LRU
from shardmw.paths import Path
from shardmw.placement import (
    BackingName,
    backing_base,
    backing_prefix,
    hidden_account,
    parse_backing,
)
from shardmw.record import MICROSECONDS, time_of_id
from shardmw.stats.accounts import AFTER_ALL, account_rows
from shardmw.stats.head_cache import HeadCache

#: How many rows one client request moves at most. The next one goes on.
ROWS_AT_A_TIME = CONTAINER_LISTING_LIMIT

#: How long the creation of a container may take. Empty backing containers of
#: an id that nobody uses are deleted after this time.
CREATION_SECONDS = 3600

#: How many containers a worker remembers the last look for late rows of.
LOOKED = 10_000

#: How many manifests to ask for their size at once.
AT_A_TIME = 32

#: How long not to try again when rows could not be moved.
PAUSE_SECONDS = 5

#: How the ETag of a large object's manifest is told from others in a listing.
MANIFEST_MARK = 'slo_etag='

#: How an encrypted ETag is told from others. Encryption hides the mark of a
#: manifest in it, but not its length.
ENCRYPTED_MARK = 'swift_meta='
ENCRYPTED_ETAG_LENGTH = len(base64.b64encode(bytes(32)))


class Listed(NamedTuple):
    """A backing container in the listing of a hidden account."""

    name: BackingName
    container: str
    object_count: int


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
        head_cache: HeadCache,
        seconds: int,
        logger,
    ) -> None:
        self.backend = backend
        self.layouts = layouts
        self.row_targets = row_targets
        self.head_cache = head_cache
        self.seconds = seconds
        self.logger = logger
        self._looked = LRU(LOOKED)
        self._paused = LRU(LOOKED)
        # Containers of whose late rows some have yet to be moved.
        self._unfinished = LRU(LOOKED)
        self._running: set[tuple[str, str]] = set()

    def is_due(self, path: Path) -> bool:
        """Return True if it is time to look for a container's late rows."""
        looked = self._looked.get(_key(path))
        return looked is None or time.monotonic() - looked >= self.seconds

    def check_finished(self, path: Path) -> None:
        """Check that a listing of a container would be whole.

        Rows of an earlier layout are not listed before they have been moved.

        :raises BackendError: if some have yet to be moved
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
        :param has_strays: True if the root is known to have rows
        :returns: True if rows were moved
        """
        key = _key(path)
        if (
            self.backend.proxy_app is None
            or key in self._running
            or time.monotonic() < self._paused.get(key, 0)
        ):
            return False
        self._running.add(key)
        try:
            return self._look(env, path, known, has_strays)
        except BackendError as err:
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
            self.logger.warning(
                'shardmw: rows of %s are not adopted yet: %s',
                quote_path(path.to_wsgi()),
                err,
            )
            return False
        finally:
            self._running.discard(key)

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
        listed = [
            each
            for each in listed_backing(self.backend, base, path)
            if known is None or each.name.layout_id != known.layout.id
        ]
        if not (has_strays or any(map(_is_to_be_taken_over, listed))):
            self._looked[key] = time.monotonic()
            self._unfinished.pop(key, None)
            return False
        root = read_root(self.backend, env, path)
        current = root.layout and root.layout.id
        abandoned = [
            each
            for each in listed
            if each.name.layout_id != current and _is_to_be_taken_over(each)
        ]
        if any(each.object_count for each in abandoned):
            self._unfinished[key] = True
            self._looked.pop(key, None)
        run = _Run(self.backend, self.row_targets, env, path, root)
        run.move_all(abandoned)
        if run.left > 0:
            self._looked[key] = time.monotonic()
            self._unfinished.pop(key, None)
        if run.moved < ROWS_AT_A_TIME - run.left:
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
        if run.moved:
            self._note(env, path, root, run.moved)
        return run.moved > 0

    def _note(
        self, env: dict, path: Path, root: RootState, moved: int
    ) -> None:
        self.logger.warning(
            'shardmw: %s: %d rows of late or unfiltered writes were moved to '
            'where they belong',
            quote_path(path.to_wsgi()),
            moved,
        )
        self.logger.update_stats('adopted', moved)
        self.backend.forget_info(env, path)
        if root.layout:
            self.head_cache.mark_write(
                env, _target(path, root.answer, root.layout)
            )


class _Run:
    """One adoption of a container's rows.

    :ivar left: how many more rows it may try to move
    :ivar moved: how many rows are at their new place only
    """

    def __init__(
        self,
        backend: Backend,
        row_targets: RowTargets,
        env: dict,
        path: Path,
        root: RootState,
    ) -> None:
        self.backend = backend
        self.row_targets = row_targets
        self.env = env
        self.path = path
        self.root = root
        self.base = backend.owner_env(env)
        self.target = (
            _target(path, root.answer, root.layout) if root.layout else None
        )
        self.left = ROWS_AT_A_TIME
        self.moved = 0
        self.moved_at = int(time.time() * MICROSECONDS)

    def move_all(self, abandoned: list[Listed]) -> None:
        """Move late rows and strays.

        :param abandoned: the backing containers of earlier layouts
        """
        for listed in abandoned:
            if self.left > 0:
                self._take_over(listed)
        if self.target and self.root.answer.object_count > 0:
            self._move_rows(self.path)

    def _take_over(self, listed: Listed) -> None:
        """Move a backing container's rows, and delete it when it is empty."""
        hidden = hidden_account(self.path.account)
        backing = Path(self.path.version, hidden, listed.container)
        if listed.object_count > 0:
            self._move_rows(backing)
        deleted = self.backend.send(self.base, 'DELETE', backing.to_wsgi())
        if deleted.status == HTTP_CONFLICT and listed.object_count == 0:
            self._move_rows(backing)

    def _move_rows(self, source: Path) -> None:
        """Move the rows of a container, as many as are left to move."""
        marker = ''
        while self.left > 0:
            page = self.backend.send(
                self.base,
                'GET',
                source.to_wsgi(),
                query=f'format=json&limit={self.left}&marker={quote(marker)}',
                headers={'X-Newest': 'true'},
            )
            if page.is_missing:
                return
            if not page.is_success:
                raise BackendError(None, page.status)
            rows = page.rows()
            if not rows:
                return
            policy_index = int(
                page.headers.get('X-Backend-Storage-Policy-Index', 0)
            )
            self._move_page(source, policy_index, rows)
            self.left -= len(rows)
            marker = rows[-1]['name']

    def _move_page(
        self, source: Path, policy_index: int, rows: list[dict]
    ) -> None:
        destination = self._destination(policy_index)
        place_in_source = self._place_in(source)
        # Swift's reconciler looks for an object of the row's very timestamp.
        is_for_reconciler = (
            self.root.exists and policy_index != self.root.policy_index
        )
        moved_at = 0 if is_for_reconciler else self.moved_at
        for place, moving in _by_place(rows, destination).items():
            if source == self.path and not all_replicas_answer(
                self.backend, self.env, place
            ):
                continue  # strays in both places would be counted twice
            copies = [
                moved_row(row, policy_index, moved_at)
                for row in self._complete(moving)
            ]
            if not merge_rows(
                self.backend, self.env, place, policy_index, copies
            ):
                continue
            removed = [
                tombstone(row, policy_index, self.moved_at) for row in moving
            ]
            for old, gone in _by_place(removed, place_in_source).items():
                merge_rows(self.backend, self.env, old, policy_index, gone)
            self.moved += len(moving)

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

    def _complete(self, rows: list[dict]) -> list[dict]:
        """Return listed rows with the sizes that their database has.

        Of a large object's manifest the listing shows the size of the whole;
        the database keeps that in the content type.
        """
        manifests = [row for row in rows if _may_be_manifest(row['hash'])]
        answers = self.backend.fan_out(
            lambda _shard, name: self.backend.send(
                self.base, 'HEAD', self.path._replace(name=name).to_wsgi()
            ),
            [(None, row['name']) for row in manifests],
            AT_A_TIME,
        )
        sizes = {
            row['name']: int(answer.headers.get('Content-Length', 0))
            if answer.is_success
            else 0
            for row, answer in zip(manifests, answers, strict=True)
        }
        return [
            {
                **row,
                'bytes': sizes[row['name']],
                'content_type': f'{row["content_type"]}'
                f';swift_bytes={row["bytes"]}',
            }
            if row['name'] in sizes
            else row
            for row in rows
        ]


def listed_backing(
    backend: Backend, base: dict, path: Path
) -> Iterator[Listed]:
    """List the backing containers of a container, of all its layouts.

    :param base: an environment of :meth:`Backend.owner_env`
    :raises BackendError: if the hidden account cannot be listed
    """
    prefix = backing_prefix(path.container)
    hidden = Path(path.version, hidden_account(path.account))
    base_name = backing_base(path.container)
    for row in account_rows(backend, base, hidden, prefix, prefix + AFTER_ALL):
        name = parse_backing(row['name'])
        if name and name.base == base_name:
            yield Listed(name, row['name'], row['count'])


def _key(path: Path) -> tuple[str, str]:
    return path.account, path.container


def _is_to_be_taken_over(listed: Listed) -> bool:
    """Return True for a backing container that has rows, or is left over.

    An empty one of late may be that of a container which is being created.
    """
    age = time.time() - time_of_id(listed.name.layout_id)
    return listed.object_count > 0 or age > CREATION_SECONDS


def _target(path: Path, root: Answer, layout) -> LogicalContainer:
    return LogicalContainer(
        path.version, path.account, path.container, root.info(), layout
    )


def _may_be_manifest(etag: str) -> bool:
    """Return True if a row may be that of a large object's manifest.

    :param etag: the ETag as the container's database has it
    """
    value, _, parameters = etag.partition(';')
    if ENCRYPTED_MARK in parameters:
        return len(value) > ENCRYPTED_ETAG_LENGTH
    return MANIFEST_MARK in parameters


def _by_place(
    rows: list[dict], place_of: Callable[[str], str]
) -> dict[str, list[dict]]:
    """Return rows by the container whose database takes them."""
    places = defaultdict(list)
    for row in rows:
        places[place_of(row['name'])].append(row)
    return places
