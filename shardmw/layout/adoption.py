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
from shardmw.backend.rows import merge_rows, moved_row, tombstone
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

#: How long not to try again when rows could not be moved.
PAUSE_SECONDS = 5

#: How the ETag of a large object's manifest is told from others in a listing.
MANIFEST_MARK = 'slo_etag='


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
        looked = self._looked.get((path.account, path.container))
        return looked is None or time.monotonic() - looked >= self.seconds

    def check_finished(self, path: Path) -> None:
        """Check that a listing of a container would be whole.

        Rows of an earlier layout are not listed before they have been moved.

        :raises BackendError: if some have yet to be moved
        """
        if (path.account, path.container) in self._unfinished:
            raise BackendError(
                None, 503, 'rows of an earlier layout are being moved'
            )

    def look(self, env: dict, path: Path) -> bool:
        """Adopt the rows of a container, unless that fails.

        For requests that can be answered without it.

        :returns: True if rows were moved
        """
        try:
            if not self._may_have_rows(env, path):
                return False
            paused_until = self._paused.get((path.account, path.container), 0)
            if time.monotonic() < paused_until:
                return False
            return self.run(env, path, read_root(self.backend, env, path))
        except BackendError as err:
            self.logger.warning(
                'shardmw: rows of %s are not adopted yet: %s',
                quote_path(path.to_wsgi()),
                err,
            )
            return False

    def run(self, env: dict, path: Path, root: RootState) -> bool:
        """Adopt the rows of a container.

        :param root: the root, read after the last change that this request
                     made to it
        :returns: True if rows were moved
        :raises BackendError: if a replica that is needed does not answer
        """
        key = (path.account, path.container)
        if self.backend.proxy_app is None or key in self._running:
            return False
        self._running.add(key)
        # If the run fails, the next one waits.
        self._paused[key] = time.monotonic() + PAUSE_SECONDS
        try:
            run = _Run(self, env, path, root)
            run.move_all()
        finally:
            self._running.discard(key)
        if run.left == ROWS_AT_A_TIME - run.moved:
            del self._paused[key]
        if run.left > 0:
            self._looked[key] = time.monotonic()
            self._unfinished.pop(key, None)
        elif run.has_late_rows:
            self._unfinished[key] = True
        if run.moved:
            self._note(env, path, root, run.moved)
        return run.moved > 0

    def _may_have_rows(self, env: dict, path: Path) -> bool:
        if self.backend.proxy_app is None:
            return False
        hidden = hidden_account(path.account)
        return self.backend.account_exists(env, hidden)

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
    :ivar has_late_rows: True if it met rows of an earlier layout
    """

    def __init__(
        self, adoption: Adoption, env: dict, path: Path, root: RootState
    ) -> None:
        self.backend = adoption.backend
        self.row_targets = adoption.row_targets
        self.env = env
        self.path = path
        self.root = root
        self.base = adoption.backend.owner_env(env)
        self.target = (
            _target(path, root.answer, root.layout) if root.layout else None
        )
        self.left = ROWS_AT_A_TIME
        self.moved = 0
        self.has_late_rows = False
        self.moved_at = int(time.time() * MICROSECONDS)

    def move_all(self) -> None:
        """Move late rows and strays."""
        for listed in self._abandoned():
            self._take_over(listed)
        if self.target and self.root.answer.object_count > 0:
            self._move_rows(self.path)

    def _abandoned(self) -> list[Listed]:
        """Return the backing containers of other layouts than the root's."""
        current = self.root.layout and self.root.layout.id
        return [
            listed
            for listed in listed_backing(self.backend, self.base, self.path)
            if listed.name.layout_id != current
        ]

    def _take_over(self, listed: Listed) -> None:
        """Move a backing container's rows, and delete it when it is empty."""
        self.has_late_rows |= listed.object_count > 0
        if self.left <= 0:
            return
        hidden = hidden_account(self.path.account)
        backing = Path(self.path.version, hidden, listed.container)
        age = time.time() - time_of_id(listed.name.layout_id)
        if listed.object_count == 0 and age < CREATION_SECONDS:
            return  # somebody may be about to create the container
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
            copies = [
                moved_row(self._complete(row), policy_index, moved_at)
                for row in moving
            ]
            if not merge_rows(
                self.backend, self.env, place, policy_index, copies
            ):
                continue  # a replica lacks them: they stay in both places
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

    def _complete(self, row: dict) -> dict:
        """Return a listed row with the size that its database has.

        Of a large object's manifest the listing shows the size of the whole;
        the database keeps that in the content type.
        """
        if MANIFEST_MARK not in row['hash']:
            return row
        path = self.path._replace(name=row['name']).to_wsgi()
        manifest = self.backend.send(self.base, 'HEAD', path)
        size = int(manifest.headers.get('Content-Length', 0))
        content_type = f'{row["content_type"]};swift_bytes={row["bytes"]}'
        return {
            **row,
            'bytes': size if manifest.is_success else 0,
            'content_type': content_type,
        }


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


def _target(path: Path, root: Answer, layout) -> LogicalContainer:
    return LogicalContainer(
        path.version, path.account, path.container, root.info(), layout
    )


def _by_place(
    rows: list[dict], place_of: Callable[[str], str]
) -> dict[str, list[dict]]:
    """Return rows by the container whose database takes them."""
    places = defaultdict(list)
    for row in rows:
        places[place_of(row['name'])].append(row)
    return places
