# SPDX-License-Identifier: Apache-2.0
"""What the replicas of a root say together.

The model writes the history of a container to three replicas. Each write
reaches two or all of them, and nothing is replicated between them.
"""

import dataclasses
from collections.abc import Iterable
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.backend.requests import Backend
from shardmw.layout.roots import (
    DELETE_TIMESTAMP,
    PUT_TIMESTAMP,
    newest_state,
    read_root,
)
from shardmw.paths import Path
from shardmw.record import Layout, LayoutError, id_of_time
from test.unit.fakeswift import ACCOUNT, Logger

PATH = Path('v1', ACCOUNT, 'c')
START = 1_700_000_000
REPLICAS = range(3)
MAJORITIES = [*combinations(REPLICAS, 2), tuple(REPLICAS)]


@dataclasses.dataclass
class Replica:
    """A replica of a container, by the rules of Swift's container server."""

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

    :ivar layout: the layout that its last write gave it
    :ivar exists: True if that write was not a DELETE
    """

    def __init__(self) -> None:
        self.replicas = [Replica() for _ in REPLICAS]
        self.now = START
        self.exists = False
        self.layout: Layout | None = None

    def create(self, replicas: Iterable[int], shards: int = 0) -> None:
        """Put the container, which does not exist."""
        self.now += 1
        layout = Layout(id_of_time(self.now), shards) if shards else None
        self.now += 1
        self._put(replicas, layout)
        self.exists, self.layout = True, layout

    def update(self, replicas: Iterable[int]) -> None:
        """Put the container once more, with other metadata."""
        self.now += 1
        self._put(replicas, None)

    def delete(self, replicas: Iterable[int]) -> None:
        """Delete the container, if enough of these replicas have it."""
        alive = [i for i in replicas if self.replicas[i].is_alive]
        if len(alive) < 2:
            return  # the client gets a 503
        self.now += 1
        for i in replicas:
            self.replicas[i].take_delete(self.now)
        self.exists, self.layout = False, None

    def heads(self, replicas: Iterable[int] = REPLICAS) -> list[Answer]:
        return [self.replicas[i].head() for i in replicas]

    def _put(self, replicas: Iterable[int], layout: Layout | None) -> None:
        for i in replicas:
            self.replicas[i].take_put(self.now, layout)


majorities = st.sampled_from(MAJORITIES)
steps = st.tuples(
    majorities,
    st.sampled_from(['delete', 'delete', 'update']),
    st.sampled_from([0, 4]),
)


@given(st.lists(steps, max_size=6), majorities)
def test_the_last_write_decides_whichever_replicas_were_away(steps, present):
    root = Root()
    for replicas, change, shards in steps:
        if not root.exists:
            root.create(replicas, shards)
        else:
            getattr(root, change)(replicas)
    state = newest_state(root.heads(present))
    assert (state.exists, state.layout) == (root.exists, root.layout)


@pytest.mark.parametrize('shards', [0, 8])
def test_every_history_of_a_container_that_was_put_again(shards):
    for first, then, again, last in product(MAJORITIES, repeat=4):
        root = Root()
        root.create(REPLICAS, shards=4)
        root.update(first)
        root.delete(then)
        root.create(again, shards)
        root.update(last)
        for present in MAJORITIES:
            assert newest_state(root.heads(present)).layout == root.layout


class TestStaleReplica:
    """Replica 2 was away during a DELETE."""

    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS, shards=4)
        root.delete([0, 1])
        return root

    def test_does_not_revive_the_container(self, root):
        assert not newest_state(root.heads()).exists

    def test_does_not_shard_one_that_was_put_again_as_a_plain_one(self, root):
        root.create([0, 1])
        state = newest_state(root.heads())
        assert (state.exists, state.layout) == (True, None)

    def test_does_not_shard_one_even_if_it_took_the_put(self, root):
        root.create([0, 2])
        for present in MAJORITIES:
            assert newest_state(root.heads(present)).layout is None

    def test_does_not_give_one_its_old_count(self, root):
        root.create([0, 1], shards=8)
        for present in MAJORITIES:
            state = newest_state(root.heads(present))
            assert state.layout == root.layout

    def test_does_not_hide_the_new_record(self, root):
        root.create([0, 2], shards=8)
        for present in MAJORITIES:
            state = newest_state(root.heads(present))
            assert state.layout == root.layout


class TestRevivedRoot:
    """Rows have come since it was deleted."""

    @pytest.fixture
    def root(self) -> Root:
        root = Root()
        root.create(REPLICAS, shards=4)
        root.delete(REPLICAS)
        root.replicas[0].rows = 1
        root.replicas[1].rows = 2
        return root

    def test_exists_and_is_plain(self, root):
        state = newest_state(root.heads())
        assert (state.exists, state.is_revived) == (True, True)
        assert state.layout is None

    def test_is_what_the_replica_with_the_most_rows_says(self, root):
        assert newest_state(root.heads()).answer.object_count == 2

    def test_without_its_rows_does_not_exist(self, root):
        assert not newest_state(root.heads([2])).exists

    def test_that_is_put_is_a_container_like_any(self, root):
        root.create(REPLICAS, shards=8)
        state = newest_state(root.heads())
        assert (state.layout, state.is_revived) == (root.layout, False)

    def test_is_not_one_that_a_stale_replica_has(self):
        root = Root()
        root.create(REPLICAS, shards=4)
        root.replicas[2].rows = 1
        root.delete([0, 1])
        assert not newest_state(root.heads()).exists


class TestReplicaWithoutRecord:
    def test_is_not_taken_for_a_plain_container(self):
        root = Root()
        root.create([0, 1], shards=4)
        root.update([1, 2])
        for present in MAJORITIES:
            state = newest_state(root.heads(present))
            assert state.layout == root.layout


def test_of_two_creations_at_once_every_proxy_goes_by_the_same():
    root = Root()
    root.create([0, 1], shards=4)
    root.create([1, 2], shards=8)
    for answers in permutations(root.heads()):
        assert newest_state(answers).layout == root.layout


def test_the_last_deletion_is_told_whether_or_not_the_container_is_back():
    root = Root()
    root.create(REPLICAS)
    assert newest_state(root.heads()).deleted == 0
    root.delete([0, 1])
    assert newest_state(root.heads()).deleted == root.now
    deleted = root.now
    root.create([1, 2])
    assert newest_state(root.heads()).deleted == deleted


def test_a_container_without_replicas_does_not_exist():
    state = newest_state(Root().heads())
    assert (state.exists, state.answer, state.layout) == (False, None, None)


def test_a_replica_that_tells_no_time_counts():
    record = Layout('0000000000001', 2).to_record()
    headers = HeaderKeyDict({RECORD_HEADER: record})
    state = newest_state([Answer(None, '204 No Content', headers, [])])
    assert state.layout.shards == 2


def test_timestamps_with_an_offset_are_read():
    root = Root()
    root.create(REPLICAS)
    answers = root.heads()
    answers[0].headers[PUT_TIMESTAMP] += '_0000000000000001'
    assert newest_state(answers).exists


def test_the_policy_is_that_of_the_newest_replica():
    root = Root()
    root.create(REPLICAS)
    root.update([1, 2])
    answers = root.heads()
    for answer, index in zip(answers, '011', strict=True):
        answer.headers['X-Backend-Storage-Policy-Index'] = index
    assert newest_state(answers).policy_index == 1


def test_a_record_of_another_version_is_an_error():
    root = Root()
    root.create(REPLICAS, shards=2)
    answers = root.heads()
    answers[1].headers[RECORD_HEADER] = '{"version": 3}'
    with pytest.raises(LayoutError):
        newest_state(answers)


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
        with pytest.raises(BackendError, match='1 of 3 roots answered'):
            read_root(backend, {}, PATH)

    def test_asks_the_newest_by_way_of_another_app(self):
        asked = []

        def app(env, start_response):
            asked.append((env['REQUEST_METHOD'], env['HTTP_X_NEWEST']))
            start_response('204 No Content', [])
            return [b'']

        env = {'swift.infocache': {}}
        assert read_root(Backend(app, Logger(), 4), env, PATH).exists
        assert asked == [('HEAD', 'true')]
