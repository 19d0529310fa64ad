# SPDX-License-Identifier: Apache-2.0
"""Rows that move between container databases, merged by Swift's own broker."""

import itertools
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker
from swift.container.server import ContainerController

from shardmw.backend.containers import BackendError
from shardmw.backend.requests import Backend
from shardmw.backend.rows import (
    DURABLE_HEADER,
    make_durable,
    merge_rows,
    moved_row,
    remove_row,
    tombstone,
)
from shardmw.core.layout import MICROSECONDS
from shardmw.core.paths import Place
from test.unit.fakeswift import HIDDEN, Logger, folder_in_memory

UPLOADED = 1_700_000_000
#: When rows are moved, in microseconds; UPLOADED is in seconds.
FIRST_MOVE = (UPLOADED + 100) * MICROSECONDS
SECOND_MOVE = FIRST_MOVE + 1
PLACE = Place(HIDDEN, 'backing')
#: A container with the storage policy 1.
SILVER = {'X-Backend-Storage-Policy-Index': '1'}


@given(st.integers(0, 4_000_000_000 * 100_000), st.integers(0, 2**52))
def test_a_moved_row_has_the_listed_time_and_the_offset(ticks, offset):
    uploaded = Timestamp(ticks / 100_000)
    listed = {
        'name': 'o',
        'bytes': 1,
        'content_type': 'text/plain',
        'hash': 'etag',
        'last_modified': uploaded.isoformat,
    }
    expected = Timestamp(uploaded, offset=offset).internal
    assert moved_row(listed, 0, offset)['created_at'] == expected
    assert tombstone(listed, 0, offset)['created_at'] == expected


def test_a_row_with_a_column_that_is_unknown_here_does_not_move():
    listed = {
        'name': 'o',
        'bytes': 1,
        'hash': 'etag',
        'content_type': 'text/plain',
        'last_modified': '2026-01-01T00:00:00.000000',
    }
    assert moved_row(listed, 0, 1)['name'] == 'o'
    with pytest.raises(BackendError, match='rows have checksum, which this'):
        moved_row({**listed, 'checksum': 'x'}, 0, 1)


class Database:
    """A container's database, of one policy.

    :cvar folder: where to create it
    """

    folder: Path

    def __init__(self, policy_index: int = 0) -> None:
        place = self.folder / uuid4().hex / 'hash.db'
        self.broker = ContainerBroker(str(place), account='a', container='c')
        self.broker.initialize(Timestamp(UPLOADED - 1).internal, policy_index)

    def upload(self, name: str, at: float = UPLOADED, size: int = 5) -> None:
        """Put the row of an upload."""
        self.broker.put_object(
            name, Timestamp(at).internal, size, 'text/plain', 'etag'
        )

    def delete(self, name: str, at: float) -> None:
        """Put the row of a DELETE."""
        self.broker.delete_object(name, Timestamp(at).internal)

    def merge(self, *rows: dict) -> None:
        """Merge rows as the container server's UPDATE does."""
        self.broker.merge_items([dict(row) for row in rows])

    def listing(self) -> list[dict]:
        """Return the JSON listing of a container server."""
        server = ContainerController({'devices': str(self.folder)})
        rows = self.broker.list_objects_iter(
            100,
            '',
            '',
            '',
            '',
            storage_policy_index=self.broker.storage_policy_index,
        )
        return [server.update_object_record(row) for row in rows]

    @property
    def names(self) -> list[str]:
        return [row['name'] for row in self.listing()]

    @property
    def figures(self) -> tuple[int, int]:
        info = self.broker.get_info()
        return info['object_count'], info['bytes_used']


@pytest.fixture(autouse=True, scope='module')
def folder():
    with folder_in_memory() as Database.folder:
        yield


@pytest.fixture
def old() -> Database:
    """The place that a row moves from."""
    database = Database()
    database.upload('o')
    return database


@pytest.fixture
def new() -> Database:
    """The place that a row moves to."""
    return Database()


def move(source: Database, destination: Database, offset: int) -> None:
    """Move all rows."""
    for row in source.listing():
        destination.merge(moved_row(row, 0, offset))
        source.merge(tombstone(row, 0, offset))


class TestMove:
    def test_leaves_the_row_in_the_new_place_only(self, old, new):
        before = old.listing()
        move(old, new, FIRST_MOVE)
        assert (old.listing(), new.listing()) == ([], before)

    def test_moves_the_figures(self, old, new):
        move(old, new, FIRST_MOVE)
        assert (old.figures, new.figures) == ((0, 0), (1, 5))

    def test_back_again_wins_over_the_tombstone(self, old, new):
        before = old.listing()
        move(old, new, FIRST_MOVE)
        move(new, old, SECOND_MOVE)
        assert (old.listing(), new.listing()) == (before, [])
        assert (old.figures, new.figures) == ((1, 5), (0, 0))

    def test_can_be_repeated_any_number_of_times(self, old, new):
        before = old.listing()
        for i in range(6):
            places = (old, new) if i % 2 == 0 else (new, old)
            move(*places, FIRST_MOVE + i)
        assert (old.listing(), new.listing()) == (before, [])

    def test_of_a_row_with_microseconds_keeps_its_time(self, new):
        old = Database()
        old.upload('o', at=UPLOADED + 0.12345)
        before = old.listing()
        move(old, new, FIRST_MOVE)
        assert new.listing() == before
        assert old.listing() == []


class TestMovedRow:
    def test_does_not_replace_a_later_upload(self, old, new):
        new.upload('o', at=UPLOADED + 1, size=9)
        move(old, new, FIRST_MOVE)
        assert [row['bytes'] for row in new.listing()] == [9]

    def test_does_not_return_after_a_later_delete(self, old, new):
        new.delete('o', at=UPLOADED + 1)
        move(old, new, FIRST_MOVE)
        assert new.names == []

    def test_replaces_an_earlier_upload(self, old, new):
        new.upload('o', at=UPLOADED - 1, size=9)
        move(old, new, FIRST_MOVE)
        assert [row['bytes'] for row in new.listing()] == [5]

    def test_is_removed_by_a_later_delete(self, old, new):
        move(old, new, FIRST_MOVE)
        new.delete('o', at=UPLOADED + 1)
        assert new.names == []

    def test_is_replaced_by_a_later_upload(self, old, new):
        move(old, new, FIRST_MOVE)
        new.upload('o', at=UPLOADED + 1, size=9)
        assert [row['bytes'] for row in new.listing()] == [9]

    def test_has_the_policy_of_its_container(self):
        old, new = Database(policy_index=1), Database(policy_index=1)
        old.broker.put_object(
            'o', Timestamp(UPLOADED).internal, 5, 'text/plain', 'etag', 0, 1
        )
        (row,) = old.listing()
        new.merge(moved_row(row, 1, FIRST_MOVE))
        assert new.names == ['o']


class TestTombstone:
    def test_leaves_a_later_upload(self, old, new):
        (row,) = old.listing()
        old.upload('o', at=UPLOADED + 1)
        old.merge(tombstone(row, 0, FIRST_MOVE))
        assert old.names == ['o']

    def test_that_comes_before_its_row_removes_it(self, old):
        (row,) = old.listing()
        late = Database()
        late.merge(tombstone(row, 0, FIRST_MOVE))
        late.upload('o')
        assert late.names == []

    def test_is_as_old_as_the_row_it_removes(self, old):
        (row,) = old.listing()
        created_at = tombstone(row, 0, FIRST_MOVE)['created_at']
        assert created_at.startswith(Timestamp(UPLOADED).normal)

    def test_adds_nothing_to_the_figures(self, old):
        (row,) = old.listing()
        old.merge(*[tombstone(row, 0, FIRST_MOVE + i) for i in range(3)])
        assert old.figures == (0, 0)


#: What may have happened to an object before its row is moved, in seconds.
clients = st.lists(
    st.tuples(st.sampled_from(['upload', 'delete']), st.integers(0, 3)),
    unique_by=lambda write: write[1],
    max_size=3,
)


@given(clients, st.permutations(range(3)))
def test_writes_and_moves_give_one_listing_in_any_order(writes, order):
    """Two movers move a row while clients write to the new place."""
    old = Database()
    old.upload('o')
    (row,) = old.listing()
    last = max([(0, 'upload'), *((at, write) for write, at in writes)])
    merges = [
        lambda new: [getattr(new, w)('o', UPLOADED + at) for w, at in writes],
        lambda new: new.merge(moved_row(row, 0, FIRST_MOVE)),
        lambda new: new.merge(moved_row(row, 0, SECOND_MOVE)),
    ]
    new = Database()
    for i in order:
        merges[i](new)
    is_listed = last[1] == 'upload' or last[0] == 0
    assert new.names == (['o'] if is_listed else [])


@given(st.permutations(range(4)))
def test_rows_of_two_moves_there_and_back_give_one_listing(order):
    old = Database()
    old.upload('o')
    (row,) = old.listing()
    rows = [
        tombstone(row, 0, FIRST_MOVE),
        moved_row(row, 0, SECOND_MOVE),
        tombstone(row, 0, SECOND_MOVE + 1),
        moved_row(row, 0, SECOND_MOVE + 2),
    ]
    for i in order:
        old.merge(rows[i])
    assert old.names == ['o']
    assert old.figures == (1, 5)


@pytest.fixture
def backend(replicated) -> Backend:
    replicated.put_container(f'/{PLACE}', SILVER)
    return Backend(replicated, Logger(), 4)


class TestMergeRows:
    @pytest.fixture
    def rows(self, old) -> list[dict]:
        return [moved_row(row, 1, FIRST_MOVE) for row in old.listing()]

    def test_writes_to_every_replica(self, replicated, backend, rows):
        assert merge_rows(backend, {}, PLACE, 1, rows) is True
        for i in range(3):
            assert replicated.rows(HIDDEN, 'backing', i) == {'o': 5}

    @pytest.mark.parametrize('container', ['a b', 'c%41', '☃', '\0versions'])
    @pytest.mark.parametrize('account', [HIDDEN, 'AUTH_test'])
    def test_writes_to_containers_with_any_name(
        self, replicated, backend, rows, account, container
    ):
        replicated.put_container(f'/{account}/{container}', SILVER)
        merge_rows(backend, {}, Place(account, container), 1, rows)
        assert replicated.rows(account, container) == {'o': 5}

    def test_reports_that_a_replica_has_not_taken_them(
        self, replicated, backend, rows
    ):
        replicated.servers.away = {'d1'}
        assert merge_rows(backend, {}, PLACE, 1, rows) is False
        assert replicated.rows(HIDDEN, 'backing', 2) == {'o': 5}

    def test_fails_if_less_than_a_majority_takes_them(
        self, replicated, backend, rows
    ):
        replicated.servers.away = {'d1', 'd2'}
        with pytest.raises(BackendError, match='1 of 3 replicas stored'):
            merge_rows(backend, {}, PLACE, 1, rows)

    def test_creates_no_database_that_another_replica_has(
        self, replicated, backend, rows
    ):
        """The new database would lack all earlier rows in listings."""
        merge_rows(backend, {}, PLACE, 1, rows)
        replicated.lose(HIDDEN, 'backing', 1)
        later = [{**row, 'name': 'later'} for row in rows]
        assert merge_rows(backend, {}, PLACE, 1, later) is False
        assert not replicated.exists(HIDDEN, 'backing', 1)
        assert replicated.rows(HIDDEN, 'backing', 2) == {'o': 5, 'later': 5}

    @pytest.mark.parametrize('container', ['backing', 'root'])
    @pytest.mark.parametrize('account', [HIDDEN, 'AUTH_test'])
    def test_creates_no_database_where_most_replicas_have_none(
        self, replicated, backend, rows, account, container
    ):
        place = Place(account, container)
        replicated.put_container(f'/{place}', SILVER)
        for i in (1, 2):
            replicated.lose(account, container, i)
        with pytest.raises(BackendError, match='1 of 3 replicas stored'):
            merge_rows(backend, {}, place, 1, rows)
        assert not replicated.exists(account, container, 1)

    @pytest.mark.parametrize('account', [HIDDEN, 'AUTH_test'])
    def test_creates_no_container(self, replicated, backend, rows, account):
        with pytest.raises(BackendError, match='0 of 3 replicas stored'):
            merge_rows(backend, {}, Place(account, 'none'), 1, rows)
        assert not replicated.exists(account, 'none')

    def test_a_tombstone_is_not_taken_where_there_is_no_database(
        self, replicated, backend, old, rows
    ):
        """The replica may get the row from another one later."""
        merge_rows(backend, {}, PLACE, 1, rows)
        replicated.lose(HIDDEN, 'backing', 1)
        gone = [tombstone(row, 1, SECOND_MOVE) for row in old.listing()]
        assert merge_rows(backend, {}, PLACE, 1, gone) is False
        assert not replicated.exists(HIDDEN, 'backing', 1)

    def test_is_undone_by_no_loss_of_power_once_it_is_made_durable(
        self, replicated, backend, rows
    ):
        """A transaction that follows puts it on the disk."""
        merge_rows(backend, {}, PLACE, 1, rows)
        broker = replicated.broker(HIDDEN, 'backing')
        before = broker.get_info()
        assert make_durable(backend, {}, PLACE)
        broker = replicated.broker(HIDDEN, 'backing')
        assert broker.metadata[DURABLE_HEADER.title()][0] == ''
        assert broker.get_info() == before

    def test_is_not_durable_if_a_replica_does_not_answer(
        self, replicated, backend, rows
    ):
        merge_rows(backend, {}, PLACE, 1, rows)
        replicated.lose(HIDDEN, 'backing', 1)
        assert not make_durable(backend, {}, PLACE)

    def test_is_durable_enough_in_a_container_that_was_deleted(
        self, replicated, backend
    ):
        replicated.direct('DELETE', f'/{PLACE}')
        assert make_durable(backend, {}, PLACE)

    def test_is_not_durable_if_all_replicas_are_missing(
        self, replicated, backend
    ):
        for replica in range(3):
            replicated.lose(HIDDEN, 'backing', replica)
        assert not make_durable(backend, {}, PLACE)

    @pytest.mark.parametrize('count', [1, 10_000])
    def test_takes_as_many_rows_as_a_listing_has(
        self, replicated, backend, rows, count
    ):
        many = [{**rows[0], 'name': f'{i:05}'} for i in range(count)]
        assert merge_rows(backend, {}, PLACE, 1, many)
        info = replicated.broker(HIDDEN, 'backing').get_info()
        assert info['object_count'] == count


class TestRemoveRow:
    @pytest.fixture
    def rows(self, backend, old) -> list[dict]:
        (row,) = [moved_row(row, 1, FIRST_MOVE) for row in old.listing()]
        rows = [{**row, 'name': name} for name in ('o', 'é/\0 %41☃')]
        merge_rows(backend, {}, PLACE, 1, rows)
        return rows

    def remove(self, backend, name, timestamp) -> None:
        remove_row(backend, {}, PLACE, 1, name, timestamp)

    def test_removes_it_from_every_replica(self, replicated, backend, rows):
        for row in rows:
            self.remove(backend, row['name'], Timestamp.now().internal)
        for i in range(3):
            assert replicated.rows(HIDDEN, 'backing', i) == {}

    def test_leaves_a_row_that_is_newer(self, replicated, backend, rows):
        self.remove(backend, 'o', Timestamp(1).internal)
        assert 'o' in replicated.rows(HIDDEN, 'backing')

    def test_needs_a_majority(self, replicated, backend, rows):
        replicated.servers.away = {'d1'}
        self.remove(backend, 'o', Timestamp.now().internal)
        replicated.servers.away = {'d1', 'd2'}
        with pytest.raises(BackendError, match='1 of 3 replicas stored'):
            self.remove(backend, 'o', Timestamp.now().internal)

    def test_creates_no_database(self, replicated, backend, rows):
        replicated.lose(HIDDEN, 'backing', 1)
        self.remove(backend, 'o', Timestamp.now().internal)
        assert not replicated.exists(HIDDEN, 'backing', 1)

    def test_is_not_taken_by_a_replica_without_a_database(
        self, replicated, backend, rows
    ):
        """The replica may get the row from another one later."""
        for i in (1, 2):
            replicated.lose(HIDDEN, 'backing', i)
        with pytest.raises(BackendError, match='1 of 3 replicas stored'):
            self.remove(backend, 'o', Timestamp.now().internal)


def test_every_offset_fits_a_timestamp():
    year_2112 = 4_480_000_000 * MICROSECONDS
    offsets = [
        Timestamp(UPLOADED, offset=offset).internal
        for offset in (1, FIRST_MOVE, SECOND_MOVE, year_2112)
    ]
    assert offsets == sorted(offsets)
    assert all(a < b for a, b in itertools.pairwise(offsets))
