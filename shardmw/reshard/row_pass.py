# SPDX-License-Identifier: Apache-2.0
"""One pass over places, which moves the rows that are in a wrong place.

A page is read from all replicas. If some of them lack a row, they may have
seen the deletion of its object that the others have missed, so the object is
checked before the row is copied. A deletion that no replica knows of, because
it is pending on an object server, is found only with the option that checks
the objects of all rows.

A row is removed from its place STAY_SECONDS after every replica of the new
place lists it, and when it is on their disks. So a listing that takes less
time may read both places at once.

If Swift's own sharder has split the root, the shard containers are its places:
rows move out of each of them, or into the one whose range has their name. See
:mod:`shardmw.backend.split_roots` for what this needs.
"""

import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.http import is_client_error

from shardmw.backend.answers import listing_of, next_marker, require_success
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.move_throttle import MOST_IN_REQUEST
from shardmw.backend.nodes import ask_primaries, replica_of
from shardmw.backend.page_limits import container_page
from shardmw.backend.requests import Backend
from shardmw.backend.rows import (
    COPY,
    STAY_SECONDS,
    Moving,
    deletion,
    listed_at,
    merge_rows,
    reading,
    require_known_columns,
    rows_in_request,
)
from shardmw.backend.split_roots import (
    SplitRoot,
    require_split,
    require_whole,
    split_root,
)
from shardmw.core.batch import (
    METHOD,
    TOMBSTONES,
    Read,
    decode_found,
    encode_reads,
)
from shardmw.core.evidence import Said, Verdict, verdict
from shardmw.core.paths import Place
from shardmw.reshard.row_mover import (
    AT_A_TIME,
    RowMover,
    by_place,
    deleted_at,
    heads_of_objects,
)
from shardmw.swift.concurrency import Event, sleep

#: The most places, or groups of places, to move rows out of at once.
SOURCES_AT_A_TIME = 4

#: The most rows to read with one request. The server does nothing else while
#: it reads them, for about as long as it takes to merge MOST_IN_REQUEST rows.
PAGE_ROWS = 1000

#: The least rows to read from each of many places that are read side by side:
#: only the rows up to the first end of a page can be used, which are too few
#: if pages are smaller. Also how many more rows to read than were copied to a
#: place where they may be hidden.
LEAST_ROWS = 100

#: With a limit on rows a second: the most seconds' worth of rows to read at
#: once, and to write with one request. Each request is a transaction that
#: waits for the disk two or three times, and clients wait meanwhile.
PAGE_SECONDS = 0.5

#: The most seconds' worth of rows to collect, from all places together, before
#: they are copied to many places: each place should get as many as a request
#: has room for.
COLLECT_SECONDS = 5

#: How many seconds of unused rate the mover may use later.
CATCH_UP_SECONDS = 0.2

#: A step that takes less time than this says nothing about the rate of copies.
MIN_SECONDS = 0.01

#: How many more steps may be due while the rows of one are removed, so that
#: the mover copies some rows while it removes others.
MOST_DUE = 2

#: How often a row that moves is written: to its new place, and as a tombstone
#: to the old one.
WRITES_A_ROW = 2


class Pace:
    """Limits how many rows are moved a second.

    :param rate: rows a second; 0 for as many as the servers have room for
    :param sources: the most places to move rows out of at a time
    :ivar part: how many rows to write with one request, at most
    :ivar page: how many rows to read at once
    :ivar sources: how many places to move rows out of at a time. The rows of
                   all of them are collected at the same time
    """

    def __init__(self, rate: int, sources: int = SOURCES_AT_A_TIME) -> None:
        self._rate = rate
        self._paid_until = 0.0
        self.part = _bounded(rate * PAGE_SECONDS, MOST_IN_REQUEST)
        self.page = _bounded(rate * PAGE_SECONDS, PAGE_ROWS)
        collected = rate * COLLECT_SECONDS / CONTAINER_LISTING_LIMIT
        self.sources = _bounded(collected, sources)

    def collected(self, rate: float) -> float:
        """Return how many rows to read before they are copied.

        :param rate: how many rows a second were copied so far
        """
        rows = (self._rate or rate) * COLLECT_SECONDS
        return min(rows, CONTAINER_LISTING_LIMIT)

    def rest(self) -> None:
        """Wait before a further page of the same step is read.

        Reading a step then takes about half of the time in which the rows of
        the step before it are written.
        """
        if self._rate:
            sleep(self.page / (2 * self._rate))

    def pay(self, rows: int) -> None:
        """Wait until this number of further rows may be written."""
        if not self._rate:
            return
        now = time.monotonic()
        start = max(now - CATCH_UP_SECONDS, self._paid_until)
        self._paid_until = start + rows / (WRITES_A_ROW * self._rate)
        sleep(max(0, start - now))


class _Step(NamedTuple):
    """The next rows of some places, and the misplaced ones among them.

    :param start: the name that the rows come after
    :param end: the last name, None if there are no more rows
    :param moving: the misplaced rows by the place that they are in
    :param misplaced: the same rows by the place that they belong to
    :param read: how many rows have been read
    """

    start: str
    end: str | None
    moving: dict[Place, list[dict]]
    misplaced: dict[Place, list[dict]]
    read: int


_NOTHING = _Step('', None, {}, {}, 0)


class _Shown:
    """Steps whose rows are listed in the new place, and not yet removed.

    :param seconds: how long rows stay in both places
    :ivar has_failed: True if a block of :meth:`failing` has failed
    """

    def __init__(self, seconds: float) -> None:
        self.has_failed = False
        self._seconds = seconds
        self._steps: deque[tuple[float, _Step]] = deque()
        self._is_complete = False
        self._change = Event()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Record a failure in a block; after that, no step becomes due."""
        try:
            yield
        except BaseException:
            self.has_failed = True
            self._tell()
            raise

    def add(self, step: _Step) -> None:
        """Add a step that is due when its rows have stayed long enough."""
        self._steps.append((time.monotonic() + self._seconds, step))
        self._tell()

    def complete(self) -> None:
        """Record that no more steps will be added."""
        self._is_complete = True
        self._tell()

    def wait_for_room(self) -> None:
        """Wait until few steps are due, so few rows are in both places."""
        while (
            not self.has_failed
            and len(self._steps) > MOST_DUE
            and self._steps[MOST_DUE][0] <= time.monotonic()
        ):
            self._change.wait()

    def due(self) -> Iterator[_Step]:
        """Yield all steps, each when it is due."""
        while not (self.has_failed or (self._is_complete and not self._steps)):
            if not self._steps:
                self._change.wait()
                continue
            due, step = self._steps[0]
            sleep(max(0, due - time.monotonic()))
            if not self.has_failed:
                self._steps.popleft()
                self._tell()
                yield step

    def _tell(self) -> None:
        """Wake up the loop that waits for a change."""
        change, self._change = self._change, Event()
        change.send()


def _bounded(rows: float, most: int) -> int:
    """Return `rows` as an int from 1 to `most`; for 0, return `most`."""
    return max(1, min(int(rows), most)) if rows else most


class RowPass:
    """Looks through places of a container once.

    :param target: the container, in the layout that says where rows belong
    :param policy_index: the storage policy of the rows
    :param asks_for_objects: True to check the object of every row
    :param check: called before rows are written; raises if the layout is no
                  longer that of the target. It may use a result that is up to
                  STAY_SECONDS old
    :param report: called when rows have been moved, with their number
    :param place_of: returns where the row of a name belongs; None to use the
                     target's placement
    :param may_be_hidden: True if tombstones of earlier moves may hide rows in
                          any place that they belong to, False if in none;
                          None if in the root alone
    :param kept_seconds: how long proxies may cache what they have read from
                         the new places before the rows came
    :param was_split: True if Swift's own sharder has split the root, also if
                      it has shrunk all ranges into the root since
    :ivar found: how many rows it has found in wrong places, or without an
                 object
    :ivar moved: how many rows it has moved
    """

    def __init__(
        self,
        backend: Backend,
        env: dict,
        target: LogicalContainer,
        policy_index: int,
        pace: Pace,
        asks_for_objects: bool,
        check: Callable[[], None],
        report: Callable[[int], None] = lambda _rows: None,
        place_of: Callable[[str], Place] | None = None,
        may_be_hidden: bool | None = None,
        kept_seconds: float = 0,
        was_split: bool = False,
    ) -> None:
        self.backend = backend
        self.env = env
        self.base = backend.owner_env(env)
        self.target = target
        self.policy_index = policy_index
        self._place_of = place_of or target.place_of
        self.may_be_hidden = may_be_hidden
        self.kept_seconds = kept_seconds
        self.was_split = was_split
        self.pace = pace
        self._asks_for_objects = asks_for_objects
        self._check_layout = check
        self._report = report
        self.found = self.moved = 0
        self.mover = RowMover(
            backend, env, target.path, target.layout.offset, self._check
        )
        self._root = target.place_in(None)
        # The shard containers of the root, and when they were asked for.
        self._split: SplitRoot | None = None
        self._split_checked = 0.0
        # What has been read from each place: the rows may not be used up yet.
        self._read: dict[Place, tuple[list[dict], list[dict], str | None]] = {}
        # False once a server has not answered as shardmw-container does.
        self._lists_tombstones = True

    def run(self, sources: list[Place]) -> int:
        """Move the rows that are in a wrong place.

        :param sources: the places to look through
        :returns: how many rows it has found
        :raises BackendError: if a place does not answer, or not all replicas
                              take their rows
        """
        sources = self._databases(sources)
        # The root gets the rows of all shards in the order of their names if
        # all are read side by side.
        groups = [(place,) for place in sources]
        if self.target.layout.shards == 0:
            groups = [tuple(sources)]
        count = min(self.pace.sources, len(groups))
        chains = [groups[i::count] for i in range(count)]
        self.found = self.moved = 0
        self.backend.for_each(self._move_out_of, chains, len(chains))
        return self.found

    def _databases(self, places: list[Place]) -> list[Place]:
        """Return places, with the shard containers of a root that is split.

        :raises BackendError: if Swift's sharder is at work on them
        """
        self._split = None
        if not self.was_split:
            return places
        self._split_checked = time.monotonic()
        split = self._split = split_root(self.backend, self.env, self._root)
        require = partial(require_split, self.backend, self.env)
        self.backend.for_each(require, split.former, AT_A_TIME)
        others = [place for place in places if place != self._root]
        has_root = len(others) < len(places)
        return [*others, *(split.places if has_root else [])]

    def _check(self) -> None:
        """Check that rows may be written now.

        :raises BackendError: if the layout, or a shard range, has changed
        """
        now = time.monotonic()
        is_old = now - self._split_checked >= STAY_SECONDS
        if self._split is not None and is_old:
            if split_root(self.backend, self.env, self._root) != self._split:
                raise BackendError(
                    None, 503, f'the shard ranges of {self._root} have changed'
                )
            self._split_checked = now
        self._check_layout()  # last, as reading the ranges may take long

    def place_of(self, name: str) -> Place:
        """Return the container whose database takes the row of a name."""
        place = self._place_of(name)
        if self._split is not None and place == self._root:
            return self._split.place_of(name)
        return place

    def _may_be_split(self, place: Place) -> bool:
        """Return True if a place is split, and has only misplaced rows."""
        return self._split is not None and self._split.is_misplaced_in(place)

    def forward_tombstones(self, sources: list[Place]) -> None:
        """Copy the tombstones of clients to where rows have moved.

        A pending deletion of an object server may reach a place after its row
        has moved. Only servers with the filter shardmw-container can list
        tombstones; on other servers, they stay where they are.

        :param sources: the places that rows have moved out of
        :raises BackendError: if a replica does not answer, or does not take
                              them
        """
        for source in self._databases(sources):
            # Servers do not list those of a database that is split.
            marker = None if self._may_be_split(source) else ''
            while marker is not None:
                deletions, marker = self._deletions(source, marker)
                places = by_place(deletions, self.place_of)
                for place, rows in places.items():
                    if place != source:
                        self._write(self._merge(place), place, rows)

    def _deletions(
        self, place: Place, marker: str
    ) -> tuple[list[dict], str | None]:
        """Return the next deletions by clients that a place has.

        :returns: tombstones, the newest of each name; the next page's marker,
                  None after the last one
        :raises BackendError: if a replica does not answer
        """
        limit = container_page(CONTAINER_LISTING_LIMIT)
        query = f'limit={limit}&marker={quote(marker)}'
        bodies = self._listed_tombstones(place, query)
        if bodies is None:
            # Servers without the filter list none. Others do, unless the place
            # was deleted.
            if self._lists_tombstones and self._listings(
                place, 'format=json&limit=1'
            ):
                raise BackendError(
                    None, 503, f'the tombstones of {place} cannot be read'
                )
            return [], None
        newest: dict[str, str] = {}
        ends = []
        for page in map(listing_of, bodies):
            if len(page) == limit:
                ends.append(page[-1][0])
            for name, timestamp in page:
                if '_' not in timestamp:  # not the tombstone of a move
                    newest[name] = max(timestamp, newest.get(name, ''))
        rows = [
            deletion(name, timestamp, self.policy_index)
            for name, timestamp in newest.items()
        ]
        end = min(ends, default=None)
        return rows, end and next_marker(place, marker, end)

    def _merge(self, place: Place) -> Callable[[list[dict]], bool]:
        """Return the function that merges rows into a place."""
        return partial(
            merge_rows,
            self.backend,
            self.env,
            place,
            self.policy_index,
            moving=Moving(COPY, self._check),
        )

    def _move_out_of(self, groups: list[tuple[Place, ...]]) -> None:
        """Move the misplaced rows out of groups of places.

        :param groups: the groups, which are read one after the other; the
                       places of a group are read side by side
        """
        shown = _Shown(max(STAY_SECONDS, self.kept_seconds))
        calls = [
            partial(self._copy_out_of, groups, shown),
            partial(self._remove_when_due, shown),
        ]
        self.backend.for_each(lambda call: call(), calls, len(calls))

    def _copy_out_of(
        self, groups: list[tuple[Place, ...]], shown: _Shown
    ) -> None:
        """Copy the misplaced rows of groups of places.

        While the rows of a step are copied, those of the step before it are
        made visible, and the next step is read.

        :param shown: gets the steps whose rows are to be removed
        """
        copied = _NOTHING
        steps = self._steps(groups)
        with shown.failing():
            step = next(steps, None)
            while step or copied.moving:
                following = None

                def read_on() -> None:
                    nonlocal following
                    following = next(steps, None)

                shown.wait_for_room()
                if shown.has_failed:
                    break
                step = step or _NOTHING
                self._copy_rows(copied, step, read_on)
                if copied.moving:
                    shown.add(copied)
                copied, step = step, following
            shown.complete()

    def _remove_when_due(self, shown: _Shown) -> None:
        """Remove moved rows from their old places when they are due.

        :raises BackendError: if a replica does not remove them
        """
        with shown.failing():
            for step in shown.due():
                for place in step.misplaced:
                    _require_stored(self.mover.make_durable(place))
                for place, rows in step.moving.items():
                    self._write(partial(self._remove, place), place, rows)
                    self.moved += len(rows)
                    self._report(len(rows))

    def _steps(self, groups: list[tuple[Place, ...]]) -> Iterator[_Step]:
        """Yield the rows of groups of places, one step at a time."""
        rate = 0.0
        for places in groups:
            end = ''
            while end is not None:
                step = self._next_step(places, end, self.pace.collected(rate))
                end = step.end
                began = time.monotonic()
                yield step
                # Meanwhile, the rows of a step were copied, unless this is the
                # first step or none had to be copied.
                seconds = time.monotonic() - began
                if seconds > MIN_SECONDS:
                    rate = step.read / seconds
            for place in places:
                self._read.pop(place, None)

    def _next_step(
        self, places: Sequence[Place], start: str, least: float
    ) -> _Step:
        """Read the next rows of some places.

        :param start: the name that the rows come after
        :param least: how many rows to read, if there are as many
        """
        end = start
        moving: dict[Place, list[dict]] = defaultdict(list)
        misplaced: dict[Place, list[dict]] = defaultdict(list)
        read = 0
        while end is not None and (end == start or read < least):
            if end != start:
                self.pace.rest()
            pages, end = self._pages(places, end)
            for place, (agreed, doubtful) in pages.items():
                read += len(agreed) + len(doubtful)
                existing = self._existing(doubtful, place)
                self.found += len(doubtful) - len(existing)
                for row in [*agreed, *existing]:
                    new_place = self.place_of(row['name'])
                    if new_place != place:
                        self.found += 1
                        moving[place].append(row)
                        misplaced[new_place].append(row)
        return _Step(start, end, moving, misplaced, read)

    def _copy_rows(
        self, copied: _Step, found: _Step, read_on: Callable[[], None]
    ) -> None:
        """Copy the rows of one step, show those of another, and read on.

        :param copied: the rows to make visible where they belong
        :param found: the rows to copy to where they belong
        :param read_on: reads the next step
        :raises BackendError: if a replica does not take them
        """
        if copied.moving or found.moving:
            self._check()
        calls = [
            read_on,
            *(
                partial(self._show, rows, place)
                for place, rows in copied.misplaced.items()
                if self._may_be_hidden_in(place)
            ),
            *(
                partial(self._copy, rows, place, self._adds_offset(place))
                for place, rows in found.misplaced.items()
            ),
        ]
        self.backend.for_each(lambda call: call(), calls, AT_A_TIME)

    def _write(
        self,
        write: Callable[[list[dict]], bool],
        place: Place,
        rows: list[dict],
    ) -> None:
        """Write rows to a place in parts, at the allowed rate.

        :param write: writes a part; returns True if every replica has taken it
        :raises BackendError: if a replica does not take them
        """
        start = 0
        while start < len(rows):
            most = rows_in_request(self.backend, place)
            part = rows[start : start + min(most, self.pace.part)]
            self.pace.pay(len(part))
            _require_stored(write(part))
            start += len(part)

    def _remove(self, place: Place, rows: list[dict]) -> bool:
        return self.mover.remove(rows, place, self.policy_index)

    def _copy(self, rows: list[dict], place: Place, adds_offset: bool) -> None:
        def copy(part: list[dict]) -> bool:
            return self.mover.copy(part, place, self.policy_index, adds_offset)

        self._write(copy, place, rows)
        # A replica that Swift's sharder begins to split has its new rows where
        # it does not list them. It may have been silent when it was asked.
        if rows and (place == self._root or self._is_listed_by_swift(place)):
            require_whole(self.backend, self.env, place)

    def _adds_offset(self, place: Place) -> bool:
        """Return True if all rows that move to a place get an offset.

        If rows go back to where they were, a mover that was paused before the
        change was cancelled may still send tombstones. Into the databases of a
        root that is split, Swift's sharder may bring tombstones of moves later
        than the rows.
        """
        if self.target.layout.rules.is_cancelled:
            return True
        return self.may_be_hidden is not False and self._is_listed_by_swift(
            place
        )

    def _is_listed_by_swift(self, place: Place) -> bool:
        """Return True if a place takes the rows of a root that is split."""
        return self._split is not None and place in self._split.listed

    def _may_be_hidden_in(self, place: Place) -> bool:
        """Return True if tombstones of moves may hide copies in a place."""
        may_be = self.may_be_hidden
        if may_be is None:
            may_be = place == self._root
        return may_be and not self._adds_offset(place)

    def _show(self, rows: list[dict], place: Place) -> None:
        """Make copied rows visible in a place where tombstones may hide them.

        Rows that are listed keep their timestamps. The others are hidden by
        tombstones, of moves out of the place or of clients. They get an
        offset on their timestamps, which makes them newer than the tombstones
        of moves.
        """
        left = sorted(row['name'] for row in rows)
        hidden: set[str] = set()
        limit = min(len(rows) + LEAST_ROWS, PAGE_ROWS)
        marker = ''
        while left:
            # The place may have many other rows between these.
            marker = max(marker, left[0][:-1])
            agreed, _, end = self._page(place, marker, limit)
            count = len(left) if end is None else bisect_right(left, end)
            hidden.update(left[:count])
            hidden.difference_update(row['name'] for row in agreed)
            left = left[count:]
            marker = end or ''
        shown = [row for row in rows if row['name'] in hidden]
        self._copy(shown, place, adds_offset=True)

    def _pages(
        self, places: Sequence[Place], marker: str
    ) -> tuple[dict[Place, tuple[list[dict], list[dict]]], str | None]:
        """Read the next rows of some places, up to the same name.

        The unused rows of a page are used for the next ones, as all rows of a
        directory may be in one place. The next page of a place is read when
        less than half a page is left: otherwise, if all pages end at about the
        same name, every other page would be a short one.

        :returns: for each place, the rows that all replicas have and the rows
                  whose objects to check; and the next pages' marker, None
                  after the last ones
        :raises BackendError: if a replica does not answer
        """
        limit = self.pace.page
        if len(places) > 1:
            limit = max(LEAST_ROWS, limit // len(places))

        def read(place: Place) -> tuple[list[dict], list[dict], str | None]:
            agreed, doubtful, end = self._read.get(place, ([], [], ''))
            agreed = _after(marker, agreed)
            doubtful = _after(marker, doubtful)
            left = len(agreed) + len(doubtful)
            if end is not None and (end <= marker or 2 * left < limit):
                start = max(end, marker)
                more_agreed, more_doubtful, end = self._page(
                    place, start, limit
                )
                agreed += more_agreed
                doubtful += more_doubtful
            self._read[place] = agreed, doubtful, end
            return self._read[place]

        pages = self.backend.for_each(read, places, AT_A_TIME)
        pages = dict(zip(places, pages, strict=True))
        end = min(
            (end for *_, end in pages.values() if end is not None),
            default=None,
        )
        return {
            place: self._to_ask(
                place, _up_to(end, agreed), _up_to(end, doubtful)
            )
            for place, (agreed, doubtful, _) in pages.items()
        }, end

    def _to_ask(
        self, place: Place, agreed: list[dict], doubtful: list[dict]
    ) -> tuple[list[dict], list[dict]]:
        split = self._split
        if self._asks_for_objects:
            return [], [*agreed, *doubtful]
        if split is None or place not in split.places:
            return agreed, doubtful
        sure, asked = [], [*doubtful]
        for row in agreed:
            is_asked = split.may_lack_tombstone(place, row['name'])
            (asked if is_asked else sure).append(row)
        return sure, asked

    def _page(
        self, place: Place, marker: str, limit: int
    ) -> tuple[list[dict], list[dict], str | None]:
        """Read one page of a place from all of its replicas.

        :returns: the rows that all replicas have, the newest ones of those
                  that they do not agree on, and the next page's marker, None
                  after the last one
        :raises BackendError: if a replica does not answer
        """
        limit = container_page(limit)
        query = f'format=json&limit={limit}&marker={quote(marker)}'
        with reading(self.backend, place):
            # Not as shardmw-container lists it: that knows today's columns.
            bodies = self._listings(place, query)
        if not bodies:
            return [], [], None
        pages = [listing_of(body) for body in bodies]
        ends = [page[-1]['name'] for page in pages if len(page) == limit]
        end = min(ends, default=None)
        if end is not None:
            next_marker(place, marker, end)
        if len(set(bodies)) == 1:
            return pages[0], [], end
        # Of a row that replicas list differently, only one is moved.
        for page in pages:
            require_known_columns(page)
        return (*_compared(pages, end), end)

    def _listed_tombstones(
        self, place: Place, query: str
    ) -> list[bytes] | None:
        """List the tombstones of a place, by the filter shardmw-container.

        :returns: the tombstones of each replica; None if not all servers can
                  list them
        :raises BackendError: if a replica does not answer
        """
        if not self._lists_tombstones:
            return None

        def body(node: dict, part: int) -> bytes:
            read = Read(node['device'], part, *place, TOMBSTONES, query)
            return encode_reads([read])

        answers = ask_primaries(
            self.backend.proxy_app, self.env, *place, METHOD, body=body
        )
        if any(is_client_error(answer.status) for answer in answers):
            self._lists_tombstones = False
            return None
        if not all(answer.is_success for answer in answers):
            raise BackendError(
                None, 503, f'a replica of {place} did not answer'
            )
        try:
            found = [decode_found(b''.join(a.body), 1)[0] for a in answers]
        except ValueError:
            self._lists_tombstones = False
            return None
        return [each.body for each in found] if all(found) else None

    def _listings(self, place: Place, query: str) -> list[bytes]:
        """List a place.

        :returns: the listing of each replica; an empty list if the place was
                  deleted
        :raises BackendError: if a replica does not list it, unless all answer
                              and prove that it was deleted; or if Swift's own
                              sharder has split it, unless that is known
        """
        answers = ask_primaries(
            self.backend.proxy_app, self.env, *place, 'GET', query=query
        )
        replicas = [replica_of(answer) for answer in answers]
        has_silent = any(each.said is Said.SILENT for each in replicas)
        if verdict(replicas) is Verdict.DELETED and not has_silent:
            return []
        if not all(answer.is_success for answer in answers):
            told = sum(answer.is_success for answer in answers)
            raise BackendError(
                None, 503, f'{told} of {len(answers)} replicas list {place}'
            )
        is_split = any(answer.is_split for answer in answers)
        if is_split and not self._may_be_split(place):
            raise BackendError(None, 503, f"Swift's sharder has split {place}")
        return [b''.join(answer.body) for answer in answers]

    def _existing(self, rows: list[dict], place: Place) -> list[dict]:
        """Return the rows whose objects exist, and remove the others.

        A 404 without the timestamp of a tombstone proves nothing.

        :raises BackendError: if an object does not answer
        """
        if not rows:
            return rows
        policy_index = self.policy_index
        answers = heads_of_objects(
            self.backend, self.base, self.target.path, policy_index, rows
        )
        require_success(a for a in answers if not a.is_missing)
        existing, tombstones = [], []
        for row, answer in zip(rows, answers, strict=True):
            deleted = deleted_at(answer)
            if answer.is_missing and float(deleted) > listed_at(row):
                tombstones.append(
                    deletion(row['name'], deleted.internal, policy_index)
                )
            else:
                existing.append(row)
        if tombstones:
            self._check()
            merge_rows(self.backend, self.env, place, policy_index, tombstones)
        return existing


def _require_stored(is_stored: bool) -> None:
    """Check that every replica of a place has stored what it was sent.

    :raises BackendError: if one has not
    """
    if not is_stored:
        raise BackendError(
            None, 503, 'a replica did not store the rows that move'
        )


def _after(marker: str, rows: list[dict]) -> list[dict]:
    """Return the rows that come after a name."""
    return [row for row in rows if row['name'] > marker]


def _up_to(end: str | None, rows: list[dict]) -> list[dict]:
    """Return the rows up to a name; all if it is None."""
    return [row for row in rows if end is None or row['name'] <= end]


def _compared(
    pages: list[list[dict]], end: str | None
) -> tuple[list[dict], list[dict]]:
    """Return the rows that all pages have, and the newest of the others.

    :param end: the last name to look at; None for all
    """
    found: dict[str, list[dict]] = {}
    for page in pages:
        for row in page:
            if end is None or row['name'] <= end:
                found.setdefault(row['name'], []).append(row)
    agreed, doubtful = [], []
    for rows in found.values():
        newest = max(rows, key=listed_at)
        is_agreed = all(row == newest for row in rows)
        if is_agreed and len(rows) == len(pages):
            agreed.append(newest)
        else:
            doubtful.append(newest)
    return agreed, doubtful
