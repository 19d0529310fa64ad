# SPDX-License-Identifier: Apache-2.0
"""A model of what the replicas of a root prove.

A container, plain or with a shard, is deleted and created again with a shard,
and its layout changes. Meanwhile, a name is uploaded once. The steps:

- The EVENTS of the container happen in this order. One replica of three may
  miss an event, another one each time.
- A database is lost; not a second one before the first is restored.
- Replicators make all replicas the same, at any time.
- The upload looks the layout up at any time, and its row comes any time later,
  to all replicas: to a shard, or to the root, which exists again if it was
  deleted meanwhile.
- If replicas prove the record, the row moves to where the record says.
  (:mod:`test.model.rows` is about how rows move.)

A process that asks the replicas may get no answer from one of them. A client
is answered by a worker that knows nothing yet, with the container info that
any replica has given, and looks for newer info while the replicas prove
nothing. The order of the replicas makes no difference.

The properties: while the row is where the record says, or in the root, each
listing that is answered 200 reads that place. What is proved is so, or was so
before the last record. And the row can always get to where the record says.

One kind of listing is left out: by the record of the deleted container, from
the info of a replica that has missed the deletion, while the others do not
answer or have no database ("What cannot hold" in ``doc/reliability.md``).
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

from swift.common.header_key_dict import HeaderKeyDict

from shardmw.backend.answers import Answer
from shardmw.backend.containers import (
    RECORD_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.nodes import DELETE_TIMESTAMP, NO_ANSWER, PUT_TIMESTAMP
from shardmw.backend.roots import RootState, state_of
from shardmw.core.layout import PLAIN, Layout, id_of_time
from shardmw.core.paths import Path, Place
from shardmw.proxy import layouts

NAME = 'name'
PATH = Path('v1', 'AUTH_a', 'c')
ROOT = PATH.place
INFO = {'storage_policy': '0', 'object_count': 0}

#: The layouts of the container that is deleted.
EARLIER = {'plain': PLAIN, 'sharded': Layout(id_of_time(1), 1)}

ONE = Layout(id_of_time(3), 1)
TWO = ONE.announced(1, 4, 1)
MOVING = TWO.moving(5)
DONE = MOVING.done(6)


class Event(NamedTuple):
    """A request that changes the container, and its layout afterwards."""

    name: str
    method: str
    layout: Layout


EVENTS = (
    Event('the container exists', 'PUT', PLAIN),
    Event('it is deleted', 'DELETE', PLAIN),
    Event('it is created again', 'PUT', ONE),
    Event('the change is announced', 'POST', TWO),
    Event('rows move', 'POST', MOVING),
    Event('the change is done', 'POST', DONE),
)
EXISTS, DELETED, CREATED, _, _, LAST = range(len(EVENTS))


class Database(NamedTuple):
    """The database of the root on a replica.

    :param put: the time of the event that put the container last
    :param deleted: when it was deleted last, 0 for never
    :param written: when its layout record was written or cleared
    :param record: the record, or ''
    :param rows: 1 if it has the row
    """

    put: int
    deleted: int = 0
    written: int = 0
    record: str = ''
    rows: int = 0

    @property
    def is_alive(self) -> bool:
        """Return True if the container exists for the server."""
        return self.put > self.deleted or self.rows > 0

    def after(self, number: int) -> 'Database':
        """Return the database after an event, whose time is number + 1."""
        at, (_, method, layout) = number + 1, EVENTS[number]
        if method == 'DELETE':
            return self._replace(deleted=at, written=at, record='')
        written = self._replace(written=at, record=layout.to_record())
        return written._replace(put=at) if method == 'PUT' else written


#: The databases of the replicas, None for one that is missing.
Replicas = tuple[Database | None, ...]


class State(NamedTuple):
    """A state of the model.

    :param event: the number of the last event
    :param upload: where the row of the upload goes; None before it begins
    :param row: where the row is; None before it comes
    """

    event: int
    replicas: Replicas
    upload: Place | None = None
    row: Place | None = None

    def of(self, *replicas: Database | None, **changes) -> 'State':
        """Return the state with other replicas."""
        replicas = sorted(replicas, key=lambda each: each or ())
        return self._replace(replicas=tuple(replicas), **changes)

    def with_row(self, place: Place) -> 'State':
        """Return the state with the row in a place."""
        replicas = [
            each and each._replace(rows=int(place == ROOT))
            for each in self.replicas
        ]
        return self.of(*replicas, row=place)


class RootsModel:
    """See the head of this module.

    :param earlier: the layout of the container before it is deleted
    """

    def __init__(self, earlier: Layout) -> None:
        self.earlier = earlier
        self._roots, self._layouts = cache(_roots), cache(_layouts)

    def initial(self) -> Iterator[State]:
        """Yield the state before the deletion."""
        record = self.earlier.to_record() if self.earlier.shards else ''
        yield State(EXISTS, (Database(1, 0, 1, record),) * 3)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what can happen next, and the state after it."""
        replicas = state.replicas
        merged = (_merged(replicas),) * 3
        if replicas != merged:
            yield 'replicators run', state.of(*merged)
        for i in range(0 if None in replicas else 3):
            left = state.of(*replicas[:i], None, *replicas[i + 1 :])
            yield f'one is lost: {_text(left.replicas)}', left
        yield from self._go_on(state)
        if not state.upload:
            for layout in self._layouts(replicas):
                place = _place(layout)
                step = f'an upload to {place.container} begins'
                yield step, state._replace(upload=place)
        elif not state.row:
            step = f'the row comes to {state.upload.container}'
            yield step, state.with_row(state.upload)
        elif self._may_move(state):
            place = _place(self._layout(state))
            yield f'the row moves to {place.container}', state.with_row(place)

    def is_over(self, state: State) -> bool:
        """Return True if the row is where the record says."""
        return state.row == _place(self._layout(state))

    def violation(self, state: State) -> str:
        """Return what a process or a client gets wrong, or ''."""
        now = [self._layout(state)]
        if EVENTS[state.event].method == 'POST':
            now.append(EVENTS[state.event - 1].layout)
        for root in self._roots(state.replicas):
            is_wrong = (root.record or PLAIN) not in now or (
                state.event != DELETED and not root.exists
            )
            if root.is_proved and is_wrong:
                proved = _record(root)
                return f'proved to be {proved}: {_text(state.replicas)}'
        if state.event == DELETED or state.row not in _read(now[0]):
            return ''  # there is no row yet, or it is late
        for layout in self._layouts(state.replicas):
            is_left_out = layout != PLAIN and layout == self.earlier
            if state.row not in _read(layout) and not is_left_out:
                return f'a listing lacks the row: {_text(state.replicas)}'
        return ''

    def _layout(self, state: State) -> Layout:
        is_earlier = state.event == EXISTS
        return self.earlier if is_earlier else EVENTS[state.event].layout

    def _go_on(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield the next event, on all replicas or on two of them."""
        number = state.event + 1
        if state.event == LAST or not self._may_go_on(state):
            return
        for missed in (None, 0, 1, 2):
            replicas = [*state.replicas]
            taken = 0
            for i, each in enumerate(state.replicas):
                is_put = EVENTS[number].method == 'PUT'
                if i != missed and (is_put or (each and each.is_alive)):
                    replicas[i] = (each or Database(0)).after(number)
                    taken += 1
            if taken > 1:
                after = state.of(*replicas, event=number)
                step = f'{EVENTS[number].name}: {_text(after.replicas)}'
                yield step, after

    def _may_go_on(self, state: State) -> bool:
        """Return True if replicas may prove what the next event needs."""
        roots = self._roots(state.replicas)
        if state.event == EXISTS:
            return not state.row  # a container with rows is not deleted
        if state.event == DELETED:
            return any(not root.exists or root.is_revived for root in roots)
        if state.event == CREATED:
            return any(
                root.is_proved and root.is_put and root.record == ONE
                for root in roots
            )
        old = _place(ONE)
        is_settled = state.row != old and (state.row or state.upload != old)
        return self._is_known(state) and (
            is_settled or self._layout(state) is TWO
        )

    def _may_move(self, state: State) -> bool:
        """Return True if a process may move the row."""
        layout = self._layout(state)
        sources = {ROOT, _place(self.earlier)}
        if layout is MOVING:
            sources = {ROOT, _place(ONE)}
        is_movable = state.row in sources - {_place(layout)}
        is_moving = layout in (ONE, MOVING, DONE)
        return is_movable and is_moving and self._is_known(state)

    def _is_known(self, state: State) -> bool:
        """Return True if all replicas have the record, as a process sees."""
        return any(
            root.is_proved
            and root.record == self._layout(state)
            and root.holders == root.replicas
            for root in self._roots(state.replicas)
        )


@cache
def _place(layout: Layout) -> Place:
    """Return where a layout puts the row."""
    return LogicalContainer(PATH, INFO, layout).place_of(NAME)


@cache
def _read(layout: Layout) -> set[Place]:
    """Return the places that a listing reads."""
    target = LogicalContainer(PATH, INFO, layout)
    shards = [shard for stage in target.read_stages() for shard in stage]
    return {ROOT, *map(target.place_in, shards)}


def _merged(replicas: Replicas) -> Database:
    """Return the database that all replicas have after replication."""
    known = [each for each in replicas if each]
    newest = max(known, key=lambda each: each.written)
    return newest._replace(
        put=max(each.put for each in known),
        deleted=max(each.deleted for each in known),
        rows=max(each.rows for each in known),
    )


def _answers(replicas: Replicas) -> list[list[Answer]]:
    """Return what the replicas answer: all of them, or two in time."""
    answers = [_answer(each) for each in replicas]
    silent = [[*answers[:i], NO_ANSWER, *answers[i + 1 :]] for i in range(3)]
    return [answers, *silent]


def _answer(database: Database | None) -> Answer:
    if database is None:
        return Answer(None, '404 Not Found', HeaderKeyDict(), [])
    headers = {
        PUT_TIMESTAMP: f'{database.put:010}.00000',
        DELETE_TIMESTAMP: f'{database.deleted:010}.00000',
        'X-Container-Object-Count': str(database.rows),
    }
    if database.record:
        headers[RECORD_HEADER] = database.record
    status = '204 No Content' if database.is_alive else '404 Not Found'
    return Answer(None, status, HeaderKeyDict(headers), [])


def _roots(replicas: Replicas) -> list[RootState]:
    """Return what a process may learn of the root."""
    found = []
    for answers in _answers(replicas):
        try:
            found.append(state_of(answers))
        except BackendError:
            continue
    return found


def _layouts(replicas: Replicas) -> list[Layout]:
    """Return the layouts that workers may take the container to have."""
    alive = {each for each in replicas if each and each.is_alive}
    infos = [_answer(each).info() for each in alive]
    found = set()
    for info, newer, answers in product(infos, infos, _answers(replicas)):
        read_root = partial(_root_of, answers)
        with mock.patch.object(layouts, 'read_root', read_root):
            try:
                lookup = layouts.Layouts(_backend(newer))
                target = lookup.of({}, PATH, info)
            except BackendError:
                continue  # the client gets 503
        found.add(target.layout if target else PLAIN)
    return sorted(found, key=lambda each: each.serial)


def _root_of(answers: list[Answer], *_args) -> RootState:
    return state_of(answers)


def _record(root: RootState) -> str:
    if not root.exists:
        return 'deleted'
    return f'of {root.record.serial}' if root.record else 'plain'


def _text(replicas: Replicas) -> str:
    return ', '.join(
        'missing'
        if each is None
        else f'put {each.put} deleted {each.deleted} record {each.written}'
        for each in replicas
    )


def _backend(info: dict) -> SimpleNamespace:
    """Return as much of a backend as a look-up of a layout needs.

    :param info: Swift's info of the container
    """
    return SimpleNamespace(
        proxy_app=SimpleNamespace(recheck_container_existence=60),
        account_exists=lambda *args: True,
        container_info_of=lambda *args: info,
    )
