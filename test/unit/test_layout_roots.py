# SPDX-License-Identifier: Apache-2.0
"""The state of a root by the answers of its replicas.

The model writes the history of a container to three replicas. Each write
reaches two or all of them, and nothing is replicated between them.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations, permutations, product
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import Timestamp

from shardmw.backend import nodes, roots
from shardmw.backend.answers import STATE_HEADER, Answer
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.backend.nodes import (
    DELETE_TIMESTAMP,
    NO_ANSWER,
    PUT_TIMESTAMP,
)
from shardmw.backend.requests import Backend
from shardmw.backend.roots import (
    RootState,
    contents_of,
    read_root,
    state_of,
)
from shardmw.core.evidence import Contents
from shardmw.core.layout import Layout, LayoutError, id_of_time
from shardmw.core.paths import Path
from shardmw.swift.concurrency import sleep
from test.unit.fakeswift import ACCOUNT, FakeSwift, Logger

PATH = Path('v1', ACCOUNT, 'c')
START = 1_700_000_000
REPLICAS = range(3)
MAJORITIES = [*combinations(REPLICAS, 2), tuple(REPLICAS)]


@dataclasses.dataclass
class Replica:
    """A replica of a container that follows Swift's container server."""

    put: int = 0
    deleted: int = 0
    layout: Layout | None = None
    rows: int = 0

    @property
    def is_alive(self) -> bool:
        return self.put > self.deleted or self.rows > 0

    def take_put(self, at: int, layout: Layout | None) -> None:
        self.put = at
        self.layout = layout or self.layout

    def take_delete(self, at: int) -> None:
        if self.put:  # else there is no database
            self.deleted = at
            self.layout = None

    def head(self) -> Answer:
        status = '204 No Content' if self.is_alive else '404 Not Found'
        headers = HeaderKeyDict()
        if self.put:
            headers[PUT_TIMESTAMP] = Timestamp(self.put).internal
            headers[DELETE_TIMESTAMP] = Timestamp(self.deleted).internal
            headers['X-Container-Object-Count'] = str(self.rows)
        if self.layout:
            headers[RECORD_HEADER] = self.layout.to_record()
        return Answer(None, status, headers, [])


class Root:
    """A root with three replicas.

    :ivar layout: the layout after the last write
    :ivar exists: True if the last write was not a DELETE
    """

    def __init__(self) -> None:
        self.replicas = [Replica() for _ in REPLICAS]
        self.now = START
        self.exists = False
        self.layout: Layout | None = None

    def create(self, replicas: Iterable[int], shards: int = 0) -> None:
        """Create the container, which does not exist."""
        self.now += 1
        layout = Layout(id_of_time(self.now), shards) if shards else None
        self.now += 1
        self._put(replicas, layout)
        self.exists, self.layout = True, layout

    def update(self, replicas: Iterable[int]) -> None:
        """Put the existing container, with other metadata."""
        self.now += 1
        self._put(replicas, None)

    def delete(self, replicas: Iterable[int]) -> None:
        """Delete the container, if enough of these replicas have it."""
        alive = [i for i in replicas if self.replicas[i].is_alive]
        if len(alive) < 2:
            return  # the response is a 503
        self.now += 1
        for i in replicas:
            self.replicas[i].take_delete(self.now)
        self.exists, self.layout = False, None

    def heads(self, present: Iterable[int] = REPLICAS) -> list[Answer]:
        """Return the answers of replicas while the others are away."""
        return [
            self.replicas[i].head() if i in present else NO_ANSWER
            for i in REPLICAS
        ]

    def _put(self, replicas: Iterable[int], layout: Layout | None) -> None:
        for i in replicas:
            self.replicas[i].take_put(self.now, layout)


majorities = st.sampled_from(MAJORITIES)
steps = st.tuples(
    majorities,
    st.sampled_from(['delete', 'delete', 'update']),
    st.sampled_from([0, 4]),
)


@st.composite
def histories(draw) -> Root:
    root = Root()
    for replicas, change, shards in draw(st.lists(steps, max_size=6)):
        if not root.exists:
            root.create(replicas, shards)
        else:
            getattr(root, change)(replicas)
    return root


@given(histories(), majorities)
def test_the_last_write_decides_whichever_replicas_were_away(root, present):
    try:
        state = state_of(root.heads(present))
    except BackendError:
        return  # a replica without a database proves nothing
    assert (state.exists, state.layout) == (root.exists, root.layout)


@given(histories())
def test_the_state_is_known_if_all_replicas_answer(root):
    state = state_of(root.heads())
    assert (state.exists, state.layout) == (root.exists, root.layout)


@pytest.mark.parametrize('shards', [0, 8])
def test_the_last_put_decides_in_every_history_of_a_recreation(shards):
    for first, then, again, last in product(MAJORITIES, repeat=4):
        root = Root()
        root.create(REPLICAS, shards=4)
        root.update(first)
        root.delete(then)
        root.create(again, shards)
        root.update(last)
        for present in MAJORITIES:
            assert state_of(root.heads(present)).layout == root.layout


class TestState:
    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS)
        return root

    def test_of_no_answers_proves_nothing(self):
        state = RootState(None, None)
        assert (state.is_absent, state.is_deleted) == (True, False)
        assert not (state.is_proved or state.is_safe or state.is_put)
        assert state.was_split is False
        assert (state.deleted, state.answered, state.replicas) == (0, 0, 0)
        with pytest.raises(BackendError, match='0 of 0') as caught:
            state_of([])
        assert (caught.value.shard, caught.value.status) == (None, 503)

    def test_is_not_changed_by_those_who_share_it(self, root):
        with pytest.raises(dataclasses.FrozenInstanceError):
            state_of(root.heads()).deleted = 1

    @pytest.mark.parametrize(
        ('number', 'replicas', 'is_majority'),
        [(1, 3, False), (2, 3, True), (2, 4, False), (3, 4, True)],
    )
    def test_is_proved_and_safe_by_a_majority(
        self, root, number, replicas, is_majority
    ):
        state = dataclasses.replace(
            state_of(root.heads()), knowing=number, replicas=replicas
        )
        assert (state.is_proved, state.is_safe) == (is_majority, False)
        state = dataclasses.replace(state, knowing=0, holders=number)
        assert (state.is_proved, state.is_safe) == (False, is_majority)

    def test_is_put_if_the_put_came_after_the_deletion(self, root):
        state = state_of(root.heads())
        assert state.is_put
        assert not dataclasses.replace(state, deleted=root.now).is_put

    def test_counts_the_replicas_that_have_the_record(self):
        root = Root()
        root.create([0, 1], shards=4)
        state = state_of(root.heads())
        assert (state.holders, state.knowing, state.replicas) == (2, 2, 3)
        root.create([1, 2], shards=8)
        assert state_of(root.heads()).holders == 2

    def test_of_a_record_without_shards_has_no_layout(self, root):
        plain = Layout(id_of_time(root.now), 0, changed=id_of_time(root.now))
        root.replicas[0].layout = plain
        state = state_of(root.heads())
        assert (state.record, state.layout) == (plain, None)

    def test_has_the_first_policy_if_no_replica_tells(self, root):
        assert state_of(root.heads()).policy_index == 0


class TestPutAtTheTimeOfTheDeletion:
    """A PUT and a DELETE have one timestamp: Swift's database is alive."""

    def test_is_no_later_put(self):
        replica = Replica(put=START, deleted=START, rows=1)
        assert state_of([replica.head()] * 3).is_revived

    def test_brings_no_record_of_that_time_back(self):
        layout = Layout(id_of_time(START), 4)
        replica = Replica(put=START + 1, deleted=START, layout=layout)
        assert state_of([replica.head()] * 3).record is None


class TestStaleReplica:
    """Replica 2 was away during a DELETE."""

    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS, shards=4)
        root.delete([0, 1])
        return root

    def test_does_not_revive_the_container(self, root):
        assert not state_of(root.heads()).exists

    def test_does_not_shard_one_that_was_put_again_as_a_plain_one(self, root):
        root.create([0, 1])
        state = state_of(root.heads())
        assert (state.exists, state.layout) == (True, None)

    def test_does_not_shard_one_even_if_it_took_the_put(self, root):
        root.create([0, 2])
        for present in MAJORITIES:
            assert state_of(root.heads(present)).layout is None

    def test_does_not_give_one_its_old_count(self, root):
        root.create([0, 1], shards=8)
        for present in MAJORITIES:
            state = state_of(root.heads(present))
            assert state.layout == root.layout

    def test_does_not_hide_the_new_record(self, root):
        root.create([0, 2], shards=8)
        for present in MAJORITIES:
            state = state_of(root.heads(present))
            assert state.layout == root.layout


class TestRevivedRoot:
    """Rows have arrived since the root was deleted."""

    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS, shards=4)
        root.delete(REPLICAS)
        root.replicas[0].rows = 1
        root.replicas[1].rows = 2
        return root

    def test_exists_and_is_plain(self, root):
        state = state_of(root.heads())
        assert (state.exists, state.is_revived) == (True, True)
        assert state.layout is None

    def test_is_known_by_all_replicas_that_tell_of_the_deletion(self, root):
        state = state_of(root.heads([0, 1]))
        assert (state.deleted, state.knowing) == (root.now, 2)
        assert (state.answered, state.replicas) == (2, 3)

    def test_is_what_the_replica_with_the_most_rows_says(self, root):
        assert state_of(root.heads()).answer.object_count == 2

    def test_is_deleted_if_the_replicas_with_rows_are_away(self, root):
        root.replicas[1].rows = 0
        assert state_of(root.heads([1, 2])).is_deleted

    def test_that_is_put_is_a_container_like_any(self, root):
        root.create(REPLICAS, shards=8)
        state = state_of(root.heads())
        assert (state.layout, state.is_revived) == (root.layout, False)

    def test_is_not_one_that_a_stale_replica_has(self):
        root = Root()
        root.create(REPLICAS, shards=4)
        root.replicas[2].rows = 1
        root.delete([0, 1])
        assert not state_of(root.heads()).exists


class TestReplicaWithoutRecord:
    def test_is_not_taken_for_a_plain_container(self):
        root = Root()
        root.create([0, 1], shards=4)
        root.update([1, 2])
        for present in MAJORITIES:
            state = state_of(root.heads(present))
            assert state.layout == root.layout


def test_every_proxy_takes_the_same_of_two_concurrent_creations():
    root = Root()
    root.create([0, 1], shards=4)
    root.create([1, 2], shards=8)
    for answers in permutations(root.heads()):
        assert state_of(answers).layout == root.layout


def test_the_last_deletion_is_known_even_if_the_container_is_back():
    root = Root()
    root.create(REPLICAS)
    assert state_of(root.heads()).deleted == 0
    root.delete([0, 1])
    assert state_of(root.heads()).deleted == root.now
    deleted = root.now
    root.create([1, 2])
    assert state_of(root.heads()).deleted == deleted


class TestDeleted:
    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS, shards=4)
        root.delete([0, 1])
        return root

    def test_is_what_a_majority_says(self, root):
        for present in [(0, 1), REPLICAS]:
            state = state_of(root.heads(present))
            assert (state.is_deleted, state.is_absent) == (True, False)
            assert (state.exists, state.layout) == (False, None)

    @pytest.mark.parametrize('present', [(0, 2), (1, 2), (0,), (2,)])
    def test_is_not_known_from_one_replica(self, root, present):
        with pytest.raises(BackendError):
            state_of(root.heads(present))


class TestRefusedDeletion:
    """One replica lacked the rows for which the others refused to delete."""

    def refused(self, shards: int) -> Root:
        root = Root()
        root.create(REPLICAS, shards)
        root.replicas[0].take_delete(root.now + 1)
        root.replicas[1].rows = root.replicas[2].rows = 1
        return root

    def test_leaves_a_plain_container_plain(self):
        state = state_of(self.refused(shards=0).heads())
        assert (state.exists, state.layout) == (True, None)

    def test_leaves_the_container_as_it_was_put_last(self):
        root = self.refused(shards=0)
        root.replicas[2].take_put(root.now + 2, None)
        root.replicas[0].take_delete(root.now + 3)
        root.replicas[2].rows = 7
        assert state_of(root.heads()).answer.object_count == 7

    def test_is_not_known_if_a_replica_that_was_not_deleted_is_away(self):
        with pytest.raises(BackendError):
            state_of(self.refused(shards=0).heads([0, 1]))

    def test_is_not_known_of_a_container_with_a_record(self):
        with pytest.raises(BackendError):
            state_of(self.refused(shards=4).heads())


class TestAbsent:
    """No replica that answers has a database, which is no deletion."""

    @pytest.mark.parametrize('present', MAJORITIES)
    def test_does_not_exist_and_is_not_deleted(self, present):
        state = state_of(Root().heads(present))
        assert (state.is_absent, state.is_deleted) == (True, False)
        assert (state.exists, state.answer, state.layout) == (
            False,
            None,
            None,
        )

    @pytest.mark.parametrize('present', MAJORITIES)
    def test_tells_how_many_have_answered(self, present):
        state = state_of(Root().heads(present))
        assert (state.answered, state.replicas) == (len(present), 3)

    def test_is_also_what_two_new_disks_and_a_silent_replica_show(self):
        root = Root()
        root.create([2], shards=4)
        assert state_of(root.heads([0, 1])).is_absent
        assert state_of(root.heads()).layout == root.layout

    def test_is_not_known_if_most_are_away(self):
        with pytest.raises(BackendError):
            state_of(Root().heads([0]))


def test_the_error_tells_how_many_replicas_know_and_have_answered():
    root = Root()
    root.create([0], shards=4)
    text = '1 of 3 replicas of the root have a database, 2 have answered'
    with pytest.raises(BackendError, match=text):
        state_of(root.heads([0, 1]))


def test_a_replica_without_timestamps_counts():
    record = Layout('0000000000001', 2).to_record()
    headers = HeaderKeyDict({RECORD_HEADER: record})
    state = state_of([Answer(None, '204 No Content', headers, [])])
    assert state.layout.shards == 2


def test_timestamps_with_an_offset_are_read():
    root = Root()
    root.create(REPLICAS)
    answers = root.heads()
    answers[0].headers[PUT_TIMESTAMP] += '_0000000000000001'
    assert state_of(answers).exists


def test_the_policy_is_that_of_the_newest_replica():
    root = Root()
    root.create(REPLICAS)
    root.update([1, 2])
    answers = root.heads()
    for answer, index in zip(answers, '011', strict=True):
        answer.headers['X-Backend-Storage-Policy-Index'] = index
    assert state_of(answers).policy_index == 1


@pytest.mark.parametrize(
    ('sharding_state', 'was_split'),
    [
        ('unsharded', False),
        ('sharding', True),
        ('sharded', True),
        ('collapsed', True),
    ],
)
def test_a_root_was_split_if_swifts_sharder_has_split_a_replica(
    sharding_state, was_split
):
    root = Root()
    root.create(REPLICAS)
    answers = root.heads()
    answers[2].headers[STATE_HEADER] = sharding_state
    assert state_of(answers).was_split is was_split


def test_a_record_of_another_version_is_an_error():
    root = Root()
    root.create(REPLICAS, shards=2)
    answers = root.heads()
    answers[1].headers[RECORD_HEADER] = '{"version": 3}'
    with pytest.raises(LayoutError):
        state_of(answers)


@contextmanager
def slow_replica(swift: FakeSwift) -> Iterator[None]:
    """Let replica 2 answer after a request has stopped waiting for it."""

    def ask_node(app, node, *args, **kwargs):
        if node['id'] == 2:
            sleep(0.2)
        return asked(app, node, *args, **kwargs)

    asked = nodes.ask_node
    with (
        mock.patch.object(nodes, 'SLOW_SECONDS', 0.05),
        mock.patch.object(nodes, 'ask_node', ask_node),
    ):
        yield


class TestReadRoot:
    @pytest.fixture
    def backend(self, replicated) -> Backend:
        replicated.put_container(f'/{ACCOUNT}/c')
        return Backend(replicated, Logger(), 4)

    def test_asks_all_replicas(self, replicated, backend):
        replicated.servers.asked.clear()
        assert read_root(backend, {}, PATH).exists
        heads = [(f'd{i}', 'HEAD', f'/{ACCOUNT}/c') for i in REPLICAS]
        assert sorted(replicated.servers.asked) == heads

    def test_needs_two_of_three_replicas(self, replicated, backend):
        replicated.servers.away = {'d0'}
        assert read_root(backend, {}, PATH).exists
        replicated.servers.away = {'d0', 'd2'}
        with pytest.raises(BackendError, match='1 of 3 replicas'):
            read_root(backend, {}, PATH)

    def test_does_not_wait_for_a_slow_minority(self, replicated, backend):
        with slow_replica(replicated):
            state = read_root(backend, {}, PATH)
        assert (state.exists, state.answered) == (True, 2)

    def test_waits_for_all_before_an_irreversible_step(
        self, replicated, backend
    ):
        with slow_replica(replicated):
            state = read_root(backend, {}, PATH, waits=True)
        assert state.answered == 3


class TestContentsOf:
    @pytest.fixture
    def backend(self, replicated) -> Backend:
        replicated.put_container(f'/{ACCOUNT}/c')
        return Backend(replicated, Logger(), 4)

    def found(self, backend) -> Contents:
        return contents_of(backend, {'swift.infocache': {}}, PATH)

    def test_are_empty_if_most_replicas_have_no_row(self, replicated, backend):
        replicated.servers.away = {'d1'}
        assert self.found(backend) is Contents.EMPTY

    def test_hold_if_most_replicas_list_a_row(self, replicated, backend):
        replicated.put_row(f'/{ACCOUNT}/c/o', replicas=[1, 2])
        assert self.found(backend) is Contents.HOLDS

    def test_are_unknown_if_one_replica_lists_a_row(self, replicated, backend):
        replicated.put_row(f'/{ACCOUNT}/c/o', replicas=[1])
        assert self.found(backend) is Contents.UNKNOWN

    def test_are_unknown_if_most_databases_are_lost(self, replicated, backend):
        for replica in (1, 2):
            replicated.lose(ACCOUNT, 'c', replica)
        assert self.found(backend) is Contents.UNKNOWN

    def test_are_gone_if_it_was_deleted(self, replicated, backend):
        replicated.direct('DELETE', f'/{ACCOUNT}/c')
        assert self.found(backend) is Contents.GONE

    def test_are_what_the_slowest_replica_lists(self, replicated, backend):
        replicated.put_row(f'/{ACCOUNT}/c/o', replicas=[2])
        with slow_replica(replicated):
            assert self.found(backend) is Contents.UNKNOWN

    @pytest.mark.parametrize(
        ('listing', 'expected'),
        [(b'[]', Contents.EMPTY), (b'[{"name": "o"}]', Contents.HOLDS)],
    )
    def test_of_one_that_is_split_are_its_listing(
        self, replicated, backend, monkeypatch, listing, expected
    ):
        split = {'X-Backend-Sharding-State': 'sharded'}
        monkeypatch.setattr(
            roots,
            'ask_primaries',
            lambda *_, **__: [
                Answer(None, '204 No Content', HeaderKeyDict(split), [])
            ],
        )
        replicated.register('GET', f'/v1/{ACCOUNT}/c', 200, body=listing)
        assert self.found(backend) is expected
