# SPDX-License-Identifier: Apache-2.0
"""The export of names by shardmw-admin, from Swift's own databases."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists
from swift.common import constraints
from swift.common.header_key_dict import HeaderKeyDict

from shardmw.admin import export, walk
from shardmw.admin.walk import is_unique, places_of, taking_turns
from shardmw.backend.answers import Answer
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.core.layout import Layout
from shardmw.core.paths import Path
from shardmw.core.placement import backing_container, shard_of
from shardmw.reshard.cluster import SwiftCluster
from test.unit.containers import NEW_ID, OLD_ID
from test.unit.fakeswift import ACCOUNT, HIDDEN

PATH = Path('v1', ACCOUNT, 'c')
NAMES = [f'o{i:03}' for i in range(60)]

PLAIN_TO_4 = Layout(OLD_ID, 0).announced(4, time.time())
LAYOUTS = {
    'plain': None,
    'sharded': Layout(OLD_ID, 4),
    'announced': PLAIN_TO_4,
    'moving': PLAIN_TO_4.moving(time.time()),
    'returning': PLAIN_TO_4.moving(time.time()).cancelled(time.time()),
    'to plain': Layout(OLD_ID, 4).announced(0, time.time()),
    'to more': Layout(OLD_ID, 2).announced(5, time.time()),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch) -> None:
    """Read few rows at a time, as if containers had millions."""
    monkeypatch.setattr(constraints, 'CONTAINER_LISTING_LIMIT', 3)
    monkeypatch.setattr(export, 'ROWS_IN_MEMORY', 20)


def exported(swift, prefix='', after='') -> Iterator[dict]:
    cluster = SwiftCluster(swift)
    return export.export(cluster, places_of(cluster, PATH), prefix, after)


class Database:
    """The places of a container's rows in a layout."""

    def __init__(self, swift, layout: Layout | None) -> None:
        self.swift = swift
        layout = layout or Layout(OLD_ID, 0)
        headers = {RECORD_HEADER: layout.to_record()}
        swift.put_container(
            f'/{ACCOUNT}/c', headers if layout != Layout(OLD_ID, 0) else {}
        )
        self.new = (layout.id, layout.shards)
        self.former = (layout.former_id, layout.former)
        for layout_id, shards in (self.new, self.former):
            for shard in range(shards or 0):
                backing = backing_container('c', layout_id, shard)
                swift.put_container(f'/{HIDDEN}/{backing}')

    def put(self, name: str, where: tuple[str, int | None]) -> None:
        """Put a row into its place in a layout."""
        self.swift.put_row(self._path(name, where))

    def move(self, name: str) -> None:
        """Move a row to its new place, as a change of layout does."""
        self.put(name, self.new)
        self.swift.direct('DELETE', self._path(name, self.former))

    def _path(self, name: str, where: tuple[str, int | None]) -> str:
        layout_id, shards = where
        place = f'{ACCOUNT}/c'
        if shards:
            shard = shard_of(name, shards)
            place = f'{HIDDEN}/{backing_container("c", layout_id, shard)}'
        return f'/{place}/{name}'

    def names(self) -> list[str]:
        return [row['name'] for row in exported(self.swift)]


@pytest.mark.parametrize('layout', LAYOUTS.values(), ids=LAYOUTS)
def test_an_export_has_each_name_once_wherever_its_rows_are(swift, layout):
    database = Database(swift, layout)
    for i, name in enumerate(NAMES):
        if i % 3:
            database.put(name, database.new)
        if i % 3 != 1:
            database.put(name, database.former)
    late = backing_container('c', NEW_ID, 7)
    swift.put_container(f'/{HIDDEN}/{late}')
    swift.put_row(f'/{HIDDEN}/{late}/z')
    swift.update_accounts()
    assert database.names() == [*NAMES, 'z']


@pytest.mark.parametrize('order', [1, -1], ids=['ahead', 'from behind'])
@pytest.mark.parametrize('layout', list(LAYOUTS.values())[3:])
def test_an_export_has_rows_that_move_while_it_reads(
    swift, monkeypatch, layout, order
):
    """Each time a row is read, another row moves."""
    database = Database(swift, layout)
    for name in NAMES:
        database.put(name, database.former)
    swift.update_accounts()
    rows_of, left = export.rows_of, NAMES[::order]

    def reading(*args):
        for row in rows_of(*args):
            if left:
                database.move(left.pop(0))
            yield row

    monkeypatch.setattr(export, 'rows_of', reading)
    assert database.names() == NAMES
    assert left == []


@pytest.mark.parametrize('layout', LAYOUTS.values(), ids=LAYOUTS)
def test_an_export_holds_few_rows_in_memory(swift, monkeypatch, layout):
    database = Database(swift, layout)
    for name in NAMES:
        database.put(name, database.former)
        database.put(name, database.new)
    swift.update_accounts()
    rows_of, read = export.rows_of, []

    def reading(*args):
        for row in rows_of(*args):
            read.append(row['name'])
            yield row

    monkeypatch.setattr(export, 'rows_of', reading)
    rows = exported(swift)
    assert next(rows)['name'] == NAMES[0]
    assert len(read) <= 2 * export.ROWS_IN_MEMORY


@pytest.mark.parametrize('layout', LAYOUTS.values(), ids=LAYOUTS)
def test_an_export_can_begin_after_a_name_and_with_a_prefix(swift, layout):
    database = Database(swift, layout)
    for i, name in enumerate(NAMES):
        database.put(name, database.new if i % 2 else database.former)
    swift.update_accounts()
    assert [row['name'] for row in exported(swift, after='o011')] == NAMES[12:]
    assert [row['name'] for row in exported(swift, 'o01', 'o014')] == [
        *('o015', 'o016', 'o017', 'o018', 'o019')
    ]


@pytest.mark.parametrize('layout', LAYOUTS.values(), ids=LAYOUTS)
def test_a_walk_finds_each_row_in_its_place(swift, layout):
    database = Database(swift, layout)
    for i, name in enumerate(NAMES):
        database.put(name, database.new if i % 2 else database.former)
    swift.update_accounts()
    cluster = SwiftCluster(swift)
    places = places_of(cluster, PATH)
    found = list(walk.walk(cluster, places, 'o0'))
    assert sorted(row['name'] for _, row in found) == NAMES
    middle = len(found) // 2
    after = {place: row['name'] for place, row in found[:middle]}
    rest = [row['name'] for _, row in walk.walk(cluster, places, 'o0', after)]
    done = [row['name'] for _, row in found[:middle]]
    assert sorted(done + rest) == NAMES


@pytest.mark.parametrize('layout', LAYOUTS.values(), ids=LAYOUTS)
def test_rows_are_unique_if_nothing_moves_and_there_are_no_strays(
    swift, layout
):
    database = Database(swift, layout)
    cluster = SwiftCluster(swift)
    places = places_of(cluster, PATH)
    is_changing = bool(layout and layout.is_changing)
    assert is_unique(cluster, places) != is_changing
    if layout and not is_changing:
        database.put('stray', ('', 0))
        assert not is_unique(cluster, places)


@given(lists(lists(integers(), max_size=5), max_size=8), integers(1, 9))
def test_iterators_take_turns(items, most):
    started = []

    def iterate(number):
        started.append(number)
        for item in items[number]:
            yield number, item

    found = list(taking_turns(map(iterate, range(len(items))), most))
    assert sorted(started) == list(range(len(items)))
    for number, own in enumerate(items):
        assert [item for i, item in found if i == number] == own
    first = [number for number, _ in found[:most]]
    assert len({*first}) >= min(
        most, sum(1 for own in items[:most] if own), len(found)
    )


def test_a_walk_stops_at_a_server_that_ignores_markers():
    body = b'[{"name": "a"}, {"name": "b"}, {"name": "c"}]'
    same = Answer(None, '200 OK', HeaderKeyDict(), [body])
    backend = SimpleNamespace(send=lambda *_args: same)
    cluster = SimpleNamespace(backend=backend, base={})
    with pytest.raises(BackendError, match="lists 'c' after 'c'"):
        list(walk.rows_of(cluster, PATH, 3))
