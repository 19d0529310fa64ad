# SPDX-License-Identifier: Apache-2.0
"""A model of one name while the layout of its container changes.

The container lists the name. Then one PUT and one DELETE of the name begin, at
any moments and in any order, each through one of two proxies. The layout
changes once, and the change may be cancelled once. The steps:

- A record is written. Proxies learn of the newest record sooner or later.
- A PUT chooses its place when it begins; its row comes any time later, and the
  object is stored at the beginning or at the end. A DELETE chooses its places
  when it begins, and leaves one tombstone after the other; the first one when
  the object is deleted. If it has outlasted a wait of the change by then, it
  chooses its places again.
- The mover reads the row, copies it and removes it. It may be killed before
  each request. When the change is cancelled, it may be paused before a
  request, which it sends any time later.
- A listing reads its places one by one, in any order.

Of the three replicas of a place, two are always up. The third one may miss any
write, and catches up at any time. So a place has the row of the two, and the
row of the third one. A listing may read any replica. It makes no difference
which replica is the third one, or which proxy is which.

Time is the order of the steps, and three guards:

- *known*: no proxy has an older record than the newest, nor has a listing that
  is under way. A DELETE that is under way and began before that record was
  written has outlasted a wait.
- *settled*: no upload and no paused mover will bring a row to the old place.
- *long*: if a listing is under way when a row is removed, and has not found
  the row, it is older than STAY_SECONDS, and reads the last place again.

The property: while no write is under way, and no replica lacks one, each
listing shows the name exactly if the object exists, with the time of the
object. And the change can always be brought to its end.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.rows import listed_at, moved_row
from shardmw.core.layout import PLAIN, Layout, id_of_time, time_of_id
from shardmw.core.paths import Path
from shardmw.core.phases import DONE
from shardmw.reshard import row_mover, row_pass
from shardmw.reshard.resharding import _sources

NAME = 'name'
PATH = Path('v1', 'AUTH_a', 'c')
INFO = {'storage_policy': '0', 'object_count': 0}
ONE = Layout(id_of_time(1), 1)

#: The changes of layout: the layout before, and the shards and depth after.
CHANGES = {
    'reshard': (ONE, 1, 1),
    'convert': (PLAIN, 1, 0),
    'unshard': (ONE, 0, 0),
}

#: A row as a database has it: its timestamp, and True for a tombstone.
Row = tuple[str, bool] | None


class Rules(NamedTuple):
    """Says what a record means for the name. Places and records are numbers.

    :param deletes: where a DELETE leaves tombstones, in this order
    :param reads: what a listing reads; the place that rows move to is last
    :param leaves: the place that rows move out of, in a tuple
    :param next: the record that follows, None for none
    :param cancelled: the record that cancels this change, None for none
    """

    phase: str
    layout: Layout
    puts: int
    deletes: tuple[int, ...]
    reads: tuple[int, ...]
    leaves: tuple[int, ...]
    next: int | None
    cancelled: int | None


class Place(NamedTuple):
    """The row of a place on two of its replicas, and on the third one.

    :param owed: True if the third one lacks what a client has written
    """

    two: Row = None
    third: Row = None
    owed: bool = False

    def taken(self, row: Row, by_all: bool, owed: bool = False) -> 'Place':
        """Return the place with a row: the newest one stays."""
        two = _newest(self.two, row)
        third = _newest(self.third, row) if by_all else self.third
        owed = self.owed or (owed and not by_all)
        return Place(two, third, owed and two != third)

    def shows(self, at: int) -> set[bool]:
        """Return if the replicas list the object of a time."""
        row = client_row(at, False)[0]
        return {
            each is not None and not each[1] and each[0].startswith(row)
            for each in self[:2]
        }


#: How long a DELETE takes: less than a wait; that, and it began before the
#: newest record was written; more than a wait.
SHORT, SPANNING, LONG = range(3)


class Write(NamedTuple):
    """A PUT or DELETE.

    :param left: the places that have yet to get its row
    :param done: the places in which a DELETE has left a tombstone
    """

    at: int
    is_delete: bool
    left: tuple[int, ...]
    done: tuple[int, ...] = ()
    length: int = SHORT


class Request(NamedTuple):
    """A request that a mover is about to send.

    :param kind: copy or remove
    :param at: the time of the row
    """

    kind: str
    at: int
    record: int


class Listing(NamedTuple):
    """A listing that has not found the name yet: the places left to read.

    :param again: 1 if it has to read the last place again, 2 if it does so
    """

    record: int
    left: tuple[int, ...]
    again: int = 0


class State(NamedTuple):
    """A state of the model.

    :param known: the records that the proxies have
    :param to_begin: the writes that have yet to begin, P and D
    :param stored: when the object was written, and True if it is deleted
    """

    record: int
    known: tuple[int, ...]
    places: tuple[Place, ...]
    to_begin: str
    stored: tuple[int, bool] = (1, False)
    writes: tuple[Write, ...] = ()
    mover: Request | None = None
    paused: Request | None = None
    listing: Listing | None = None

    @property
    def is_quiet(self) -> bool:
        """Return True if all replicas have what clients have written."""
        return not self.writes and not any(p.owed for p in self.places)

    def aged(self, length: int) -> 'State':
        """Return the state when DELETEs under way take longer than they did.

        :param length: of those that were one step shorter
        """
        writes = [
            each._replace(length=length)
            if each.is_delete and each.length == length - 1
            else each
            for each in self.writes
        ]
        return self._replace(writes=tuple(sorted(writes)))

    def put(self, place: int, *args, **changes) -> 'State':
        """Return the state after a place has taken a row."""
        places = [*self.places]
        places[place] = places[place].taken(*args)
        return self._replace(places=tuple(places), **changes)


Steps = Iterator[tuple[str, State]]


class RowsModel:
    """See the head of this module.

    :param change: one of CHANGES
    :param broken: the name of a broken rule that this module has
    :param writes: which writes begin: a P for each PUT, a D for each DELETE
    """

    def __init__(
        self, change: str, broken: str = '', writes: str = 'PD'
    ) -> None:
        self.broken = broken
        self.writes = writes
        self.rules = _rules(*CHANGES[change])
        self._row, self._found = cache(_row), cache(_found)

    def initial(self) -> Iterator[State]:
        """Yield the state before the change."""
        row = client_row(1, False)
        places = (Place(), Place())
        state = State(0, (0, 0), places, self.writes)
        yield state.put(self.rules[0].puts, row, True)

    def steps(self, state: State) -> Steps:
        """Yield what can happen next, and the state after it."""
        for record in {*state.known} - {state.record}:
            known = [*state.known]
            known[known.index(record)] = state.record
            step = f'a proxy learns of {self._phase(state.record)}'
            yield step, state._replace(known=tuple(sorted(known)))
        for number, place in enumerate(state.places):
            if place.two != place.third:
                step = f'place {number} is replicated'
                yield step, state.put(number, place.two, True)
        for record in {*state.known}:
            yield from self._begin(state, self.rules[record], record)
        for write in state.writes:
            yield from self._deliver(state, write)
        yield from self._list(state)
        yield from self._write_record(state)
        yield from self._move(state)

    def is_over(self, state: State) -> bool:
        """Return True if the change has ended and nothing is under way."""
        is_last = self.rules[state.record].next is None
        return is_last and state.is_quiet and self._is_known(state)

    def violation(self, state: State) -> str:
        """Return what a listing shows wrongly, or ''."""
        listing = state.listing
        if listing and not listing.left and listing.again != 1:
            return f'a listing in {self._phase(listing.record)} lacks the name'
        if not state.is_quiet:
            return ''
        at, is_deleted = state.stored
        for record in {*state.known}:
            read = [state.places[i] for i in self.rules[record].reads]
            if is_deleted:
                rows = [row for place in read for row in place[:2]]
                is_wrong = any(row and not row[1] for row in rows)
            else:
                is_wrong = all(False in place.shows(at) for place in read)
            if is_wrong:
                verb = 'shows' if is_deleted else 'lacks'
                return f'a listing in {self._phase(record)} {verb} the name'
        return ''

    def _begin(self, state: State, rules: Rules, record: int) -> Steps:
        """Yield the writes that a proxy with a record may begin."""
        at = len(self.writes) - len(state.to_begin) + 2
        for method in sorted({*state.to_begin}):
            is_delete = method == 'D'
            left = rules.deletes if is_delete else (rules.puts,)
            write = Write(at, is_delete, left)
            begun = state._replace(
                to_begin=state.to_begin.replace(method, '', 1),
                listing=None,
                writes=tuple(sorted([*state.writes, write])),
            )
            name = 'DELETE' if is_delete else 'PUT'
            yield f'{name} {at} begins in {rules.phase}', begun
            if not is_delete:
                step = f'PUT {at} is stored in {rules.phase}, its row is late'
                yield step, begun._replace(stored=(at, False))

    def _deliver(self, state: State, write: Write) -> Steps:
        place, *_ = write.left
        others = {*state.writes} - {write}
        row = client_row(write.at, write.is_delete)
        for after, by_all in product(self._after(state, write), (True, False)):
            step = f'row {write.at} comes to {_text(place, by_all)}'
            writes = {*others, after} if after.left else others
            yield (
                step,
                state.put(
                    place,
                    row,
                    by_all,
                    True,
                    stored=max(state.stored, (write.at, write.is_delete)),
                    writes=tuple(sorted(writes)),
                ),
            )

    def _after(self, state: State, write: Write) -> Iterator[Write]:
        """Yield what may be left of a write when its next row has come."""
        place, *left = write.left
        done = (*write.done, place) if write.is_delete else ()
        after = write._replace(left=tuple(left), done=tuple(sorted(done)))
        if left or write.length < LONG or self.broken == 'one_look':
            yield after
        if write.is_delete and not left:
            for record in {*state.known}:
                again = [
                    each
                    for each in self.rules[record].deletes
                    if each not in done
                ]
                yield after._replace(left=tuple(again), length=SHORT)

    def _list(self, state: State) -> Steps:
        """Yield the answers to listings that may lack the name."""
        at, is_deleted = state.stored
        if is_deleted or not state.is_quiet:
            return
        listings = [state.listing]
        if not state.listing:
            listings = [Listing(r, self.rules[r].reads) for r in state.known]
        for listing in {*listings}:
            phase = self._phase(listing.record)
            for place in listing.left:
                step = f'a listing in {phase} reads place {place}'
                shows = state.places[place].shows(at)
                if True in shows and state.listing:
                    yield f'{step}, which shows', state._replace(listing=None)
                if False in shows:
                    left = tuple(i for i in listing.left if i != place)
                    after = listing._replace(left=left)
                    yield step, state._replace(listing=after)
            if not listing.left:
                last = self.rules[listing.record].reads[-1:]
                again = listing._replace(left=last, again=2)
                yield 'it is long', state._replace(listing=again)

    def _is_known(self, state: State) -> bool:
        """Return True if every proxy must know the newest record (I1)."""
        known = {*state.known}
        if state.listing:
            known.add(state.listing.record)
        return known == {state.record} or self.broken == 'no_wait'

    def _waited(self, state: State) -> State:
        """Return the state after the wait until a record is known."""
        return state if self.broken == 'no_wait' else state.aged(LONG)

    def _has_settled(self, state: State) -> bool:
        """Return True if no row will come to the old place any more (I6)."""
        coming = [
            place
            for write in state.writes
            if not write.is_delete
            for place in write.left
        ]
        if state.paused and state.paused.kind == 'copy':
            coming.append(self.rules[state.paused.record].puts)
        is_settled = not {*self.rules[state.record].leaves} & {*coming}
        return is_settled or self.broken == 'no_settling'

    def _write_record(self, state: State) -> Steps:
        rules = self.rules[state.record]
        if rules.cancelled is not None:
            cancelled = state.aged(SPANNING)._replace(
                record=rules.cancelled, mover=None
            )
            yield 'the change is cancelled', cancelled
            if state.mover:
                step = 'the change is cancelled, and the mover is paused'
                yield step, cancelled._replace(paused=state.mover)
        is_empty = not any(
            row and not row[1]
            for place in rules.leaves
            for row in state.places[place][:2]
        )
        is_ready = is_empty and not state.mover and self._has_settled(state)
        if rules.next is not None and is_ready and self._is_known(state):
            step = f'the record says {self._phase(rules.next)}'
            written = self._waited(state).aged(SPANNING)
            yield step, written._replace(record=rules.next)

    def _move(self, state: State) -> Steps:
        if state.paused:
            rest = state._replace(paused=None)
            yield 'the paused mover is killed', rest
            yield from self._send(rest, state.paused)
        if state.mover:
            rest = state._replace(mover=None)
            yield 'the mover is killed', rest
            yield from self._send(rest, state.mover)
        elif self._is_known(state):
            for place in self.rules[state.record].leaves:
                yield from self._read(self._waited(state), place)

    def _read(self, state: State, place: int) -> Steps:
        """Yield what the mover does with a row that it reads."""
        at, is_agreed = self._found(*state.places[place][:2])
        deleted, is_deleted = state.stored
        if at and not is_agreed and is_deleted and deleted > at:
            row = client_row(deleted, True)
            for by_all in (True, False):
                step = f'the mover deletes row {at} of {_text(place, by_all)}'
                yield step, state.put(place, row, by_all)
        elif at:
            request = Request('copy', at, state.record)
            yield f'the mover reads row {at}', state._replace(mover=request)

    def _send(self, state: State, request: Request) -> Steps:
        """Yield what may come of a request of a mover."""
        kind, at, record = request
        rules = self.rules[record]
        place = rules.puts if kind == 'copy' else rules.leaves[0]
        row = self._row(kind, at, rules.layout)
        for by_all in (True, False):
            after = state.put(place, row, by_all)
            is_enough = by_all or self.broken == 'quorum_is_enough'  # I4
            if kind == 'copy' and is_enough and record == state.record:
                after = after._replace(mover=Request('remove', at, record))
            listing = state.listing
            if kind == 'remove' and listing and not listing.again:
                again = int(self.broken != 'moved_at_once')
                after = after._replace(listing=listing._replace(again=again))
            yield f'{kind} row {at}: {_text(place, by_all)}', after

    def _phase(self, record: int) -> str:
        return self.rules[record].phase


@cache
def client_row(at: int, is_delete: bool) -> Row:
    """Return the row of a client's write."""
    return f'{at:010}.00000', is_delete


def _newest(old: Row, new: Row) -> Row:
    return new if old is None or (new and new[0] > old[0]) else old


def _text(place: int, by_all: bool) -> str:
    return f'place {place}, {"all" if by_all else "two"} replicas'


def _listed(at: int) -> dict:
    """Return a row of the name as a container server lists it."""
    time = f'1970-01-01T00:00:0{at}.000000'
    others = {'bytes': 0, 'hash': '', 'content_type': ''}
    return {'name': NAME, 'last_modified': time, **others}


def _row(kind: str, at: int, layout: Layout) -> Row:
    """Return the row that a mover sends to copy or to remove a row."""
    if kind == 'remove':
        row = row_mover.tombstone(_listed(at), 0, layout.offset)
    else:
        offset = layout.offset if layout.rules.is_cancelled else 0
        row = moved_row(_listed(at), 0, offset)
    return row['created_at'], bool(row['deleted'])


def _found(two: Row, third: Row) -> tuple[int, bool]:
    """Return which row the mover finds, 0 for none, and if all agree."""
    pages = [
        [_listed(int(row[0][:10]))] if row and not row[1] else []
        for row in (two, two, third)
    ]
    agreed, doubtful = row_pass._compared(pages, None)
    at = [int(listed_at(row)) for row in (*agreed, *doubtful)]
    return at[0] if at else 0, bool(agreed)


def _rules(first: Layout, shards: int, depth: int) -> list[Rules]:
    """Return what the records of a change mean, the first one first."""
    layouts, following = [first], {first: [first.announced(shards, 2, depth)]}
    for layout in layouts:
        now = time_of_id(layout.serial) + 1
        if layout.is_changing:
            is_last = layout.rules.next is DONE
            after = [layout.done(now) if is_last else layout.moving(now)]
            if not layout.rules.is_cancelled:
                after.append(layout.cancelled(9))
            following[layout] = after
        layouts += [e for e in following.get(layout, ()) if e not in layouts]
    targets = [LogicalContainer(PATH, INFO, layout) for layout in layouts]
    places = sorted({place for t in targets for place in t.places_of(NAME)})
    return [
        _rules_of(target, places, [layouts.index(e) for e in after])
        for target in targets
        for after in [following.get(target.layout, ())]
    ]


def _rules_of(target: LogicalContainer, places: list, after: list) -> Rules:
    """Return the rules of a record, as the code has them."""
    layout, puts = target.layout, target.place_of(NAME)
    root = PATH.place
    reads = [target.place_in(i) for each in target.read_stages() for i in each]
    reads.insert(len(reads) if target.moves_to_root else 0, root)
    leaves = {target.place_in(each) for each in _sources(target)} - {puts}

    def numbers(found) -> tuple[int, ...]:
        return tuple(places.index(each) for each in found if each in places)

    return Rules(
        layout.phase or ('done' if layout.changed else 'the old layout'),
        layout,
        places.index(puts),
        numbers([puts, *sorted(target.places_of(NAME) - {puts})]),
        numbers(reads),
        numbers(leaves if layout.rules.moves_from else ()),
        *[*after, None, None][:2],
    )
