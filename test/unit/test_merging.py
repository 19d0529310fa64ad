# SPDX-License-Identifier: Apache-2.0
"""Rows that are merged, by shardmw and by Swift's container broker."""

import itertools
import sqlite3
from contextlib import closing, nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from shardmw import figures, merging
from shardmw.backend import concurrency
from shardmw.backend.concurrency import Timeout, sleep, spawn
from shardmw.merging import ROWS_A_STATEMENT, MergingBroker, merge_rows

SECONDS = ['1790000000.00000', '1790000000.00001', '1790000001.00000']
OFFSETS = ['_0', '_1', '_000000000000000f', '_0000000000000010', '_ff']
DELTAS = ['+1', '-1', '+0+5', '+1-1']
TIMES = [
    *SECONDS * 5,
    *(SECONDS[0] + each for each in OFFSETS + DELTAS),
    *(SECONDS[1] + each for each in OFFSETS + DELTAS),
]
TYPES = ['text/plain'] * 4 + [
    'text/plain;swift_bytes=7',
    'a/b; x=1; y=2',
]

#: A row, as an object server, a proxy or the mover sends it.
ROWS = st.fixed_dictionaries(
    {
        'name': st.sampled_from(['a', '☃']),
        'created_at': st.sampled_from(TIMES),
        'size': st.integers(0, 5),
        'content_type': st.sampled_from(TYPES),
        'etag': st.sampled_from(['e', 'f']),
        'deleted': st.sampled_from([0, 0, 1]),
    }
)
FIELDS = st.sampled_from(
    [{'storage_policy_index': 0}] * 8
    + [
        {'storage_policy_index': 1},
        {},
        {'storage_policy_index': 0, 'ctype_timestamp': SECONDS[1]},
        {'storage_policy_index': 0, 'meta_timestamp': SECONDS[2]},
    ]
)
MERGES = st.lists(st.tuples(ROWS, FIELDS), min_size=1, max_size=3)

#: Uploads and deletions at one time, each of its own name.
SIMPLE_ROWS = st.fixed_dictionaries(
    {
        'name': st.sampled_from(['a', '☃']),
        'created_at': st.builds(
            '{}{}'.format,
            st.sampled_from(SECONDS),
            st.sampled_from(['', *OFFSETS]),
        ),
        'deleted': st.sampled_from([0, 1]),
        'size': st.just(1),
        'content_type': st.just('text/plain'),
        'etag': st.just('e'),
        'storage_policy_index': st.sampled_from([0, 1]),
    }
)
SIMPLE_MERGES = st.lists(
    SIMPLE_ROWS, min_size=1, max_size=2, unique_by=lambda row: row['name']
)


@pytest.fixture(scope='module')
def brokers(tmp_path_factory):
    """Two brokers with a database each."""
    return [broker_in(tmp_path_factory.mktemp('container')) for _ in range(2)]


def broker_in(folder):
    folder.mkdir(exist_ok=True)
    broker = ContainerBroker(str(folder / 'c.db'), account='a', container='c')
    broker.initialize(Timestamp(1).internal, 0)
    return broker


def clear(broker):
    with broker.get() as conn:
        conn.execute('DELETE FROM object')
        conn.execute('DELETE FROM policy_stat WHERE storage_policy_index > 0')
        conn.execute("UPDATE container_info SET hash = '0'")
        conn.commit()


#: What two databases of the same container differ in.
OWN = {'id', 'created_at'}


def content(broker):
    """Return all rows, the figures and the other facts of a database."""
    queries = (
        'SELECT name, created_at, size, content_type, etag, deleted, '
        'storage_policy_index FROM object ORDER BY name, 7, 2',
        'SELECT * FROM policy_stat ORDER BY storage_policy_index',
    )
    with broker.get() as conn:
        rows, stats = (
            [tuple(row) for row in conn.execute(query)] for query in queries
        )
        (info,) = conn.execute('SELECT * FROM container_info')
    return rows, stats, {key: info[key] for key in {*info.keys()} - OWN}


@settings(max_examples=300)
@given(st.lists(MERGES, min_size=2, max_size=5))
def test_the_database_is_the_same_as_swifts(brokers, merges):
    ours, swifts = brokers
    for broker in brokers:
        clear(broker)
    for each in merges:
        merge_rows(ours, [row | fields for row, fields in each])
        swifts.merge_items([row | fields for row, fields in each])
        assert content(ours) == content(swifts)


@given(st.lists(SIMPLE_MERGES, min_size=2, max_size=4), st.integers(0, 300))
def test_rows_that_return_are_those_that_swift_would_hide(
    brokers, merges, offset
):
    ours, swifts = brokers
    for broker in brokers:
        clear(broker)
    for rows in merges:
        assert merge_rows(ours, [dict(row) for row in rows], offset)
        swifts.merge_items([with_offset(swifts, row, offset) for row in rows])
        assert content(ours) == content(swifts)


def with_offset(broker, row, offset):
    """Return a row as it is to be merged if it may have been removed."""
    seconds, _, own = row['created_at'].partition('_')
    for name, created_at, *_, deleted, policy in content(broker)[0]:
        is_removed = deleted and not row['deleted']
        is_same = (name, policy) == (row['name'], row['storage_policy_index'])
        if is_removed and is_same and created_at.startswith(seconds):
            larger = max(offset, int(own or '0', 16))
            return {
                **row,
                'created_at': Timestamp(seconds, offset=larger).internal,
            }
    return row


def test_a_row_returns_with_its_offset(tmp_path):
    broker = broker_in(tmp_path)
    kept, removed = [row(name)['created_at'] for name in 'ab']
    gone = [
        row('a', deleted=1, created_at=f'{removed}_5'),
        row('b', 2, deleted=1),
        row('c', deleted=1, created_at=f'{removed}_7'),
    ]
    assert merge_rows(broker, gone)
    assert merge_rows(broker, [row(name) for name in 'abcd'], 6)
    listed = broker.list_objects_iter(10, '', None, None, None)
    assert [each[:2] for each in listed] == [
        ('a', f'{removed}_{6:016x}'),
        ('d', kept),
    ]


def test_a_database_that_is_being_split_may_lack_tombstones(tmp_path):
    broker = broker_in(tmp_path)
    broker.__class__ = MergingBroker
    broker.merge_items([row('a')])
    assert broker.is_complete
    broker.enable_sharding(Timestamp.now())
    assert broker.set_sharding_state()
    broker.merge_items([row('b')])
    assert not broker.is_complete


def test_rows_that_are_left_to_swift_have_no_offset(tmp_path):
    broker = broker_in(tmp_path)
    assert not merge_rows(
        broker, [row('a'), row('b', content_type='a/b; x=1')], 6
    )
    assert not merge_rows(broker, [row('a'), row('a', 2)], 6)


def row(name, second=1, deleted=0, **fields):
    return {
        'name': name,
        'created_at': Timestamp(second).internal,
        'size': 1,
        'content_type': 'text/plain',
        'etag': 'e',
        'deleted': deleted,
        'storage_policy_index': 0,
        **fields,
    }


def test_more_names_than_a_statement_takes(tmp_path):
    broker = broker_in(tmp_path)
    names = [f'{number:05}' for number in range(2 * ROWS_A_STATEMENT + 2)]
    merge_rows(broker, [row(name) for name in names])
    assert broker.get_info()['object_count'] == len(names)
    merge_rows(broker, [row(name, 2, deleted=1) for name in names[:-1]])
    listed = broker.list_objects_iter(10, '', None, None, None)
    assert [each[0] for each in listed] == names[-1:]


@pytest.fixture
def short_turns(monkeypatch):
    monkeypatch.setattr(concurrency, 'TURN_SECONDS', 0)


MANY = [f'{number:05}' for number in range(10 * ROWS_A_STATEMENT)]


@pytest.mark.usefixtures('short_turns')
def test_others_have_turns_while_rows_are_merged(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    turns = itertools.count()
    monkeypatch.setattr(concurrency, 'sleep', lambda: next(turns))
    merge_rows(broker, [row(name) for name in MANY])
    assert next(turns) == len(MANY) / ROWS_A_STATEMENT


@pytest.mark.usefixtures('short_turns')
def test_a_merge_that_is_cut_off_leaves_nothing(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    merge_rows(broker, [row(name) for name in MANY[::2]])
    before = content(broker)
    turns = itertools.count(1)

    def cut_off():
        # Rows have been found, removed and inserted.
        if next(turns) == 10:
            raise Timeout

    monkeypatch.setattr(concurrency, 'sleep', cut_off)
    with pytest.raises(Timeout):
        merge_rows(broker, [row(name, 2, deleted=1) for name in MANY])
    assert content(broker) == before
    merge_rows(broker, [row(name, 2, deleted=1) for name in MANY])
    assert broker.get_info()['object_count'] == 0


@pytest.mark.usefixtures('short_turns')
def test_merges_of_swift_that_wait_do_not_keep_the_lock_from_being_given_back(
    tmp_path,
):
    broker_in(tmp_path)
    path = str(tmp_path / 'c.db')

    def merge(broker_class, rows):
        broker_class(path, timeout=5).merge_items(rows)

    # As many as eventlet has native threads.
    merges = [spawn(merge, MergingBroker, [row(name) for name in MANY])] + [
        spawn(merge, ContainerBroker, [row(f'other {number}')])
        for number in range(20)
    ]
    for each in merges:
        each.wait()
    info = ContainerBroker(path, account='a', container='c').get_info()
    assert info['object_count'] == len(MANY) + 20


@pytest.mark.usefixtures('short_turns')
def test_a_container_can_be_read_while_rows_are_merged(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    counts = []

    def count():
        with closing(sqlite3.connect(tmp_path / 'c.db', timeout=0)) as conn:
            counts.extend(conn.execute('SELECT count(*) FROM object'))

    monkeypatch.setattr(concurrency, 'sleep', count)
    # more than SQLite's cache has room for
    merge_rows(broker, [row(name + 4000 * 'x') for name in MANY])
    assert set(counts) == {(0,)}


def test_a_merge_waits_for_readers_before_it_is_committed(tmp_path):
    broker = broker_in(tmp_path)
    with closing(sqlite3.connect(tmp_path / 'c.db')) as reader:
        rows = reader.execute('SELECT hash FROM container_info')
        merging = spawn(merge_rows, broker, [row('a')])
        sleep(0.1)
        assert len(rows.fetchall()) == 1
    assert merging.wait()
    assert broker.get_info()['object_count'] == 1


@pytest.mark.usefixtures('short_turns')
def test_few_databases_are_locked_at_a_time(tmp_path, monkeypatch):
    paths = [tmp_path / str(number) for number in range(10)]
    brokers = [broker_in(path) for path in paths]
    locked = []

    def is_locked(path):
        with closing(sqlite3.connect(path / 'c.db', timeout=0)) as conn:
            try:
                conn.execute('BEGIN IMMEDIATE')
            except sqlite3.OperationalError:
                return True
        return False

    def let_others_work():
        locked.append(sum(map(is_locked, paths)))
        sleep()

    monkeypatch.setattr(concurrency, 'sleep', let_others_work)
    rows = [row(name) for name in MANY]
    for each in [spawn(merge_rows, broker, rows) for broker in brokers]:
        each.wait()
    assert 1 < max(locked) <= 4
    for broker in brokers:
        assert broker.get_info()['object_count'] == len(MANY)


def test_simple_rows_are_not_left_to_swift(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    monkeypatch.delattr(ContainerBroker, 'merge_items')
    merge_rows(broker, [row('a'), row('b')])
    merge_rows(broker, [row('a', 2, deleted=1), row('b', 0)])
    assert [each[:2] for each in content(broker)[0]] == [
        ('a', Timestamp(2).internal),
        ('b', Timestamp(1).internal),
    ]


def test_nothing_is_merged_if_a_row_cannot_be(tmp_path):
    broker = broker_in(tmp_path)
    merge_rows(broker, [row('a')])
    before = content(broker)
    with pytest.raises(sqlite3.Error):
        merge_rows(broker, [row('a', 2), row('b', etag=[])])
    assert content(broker) == before
    merge_rows(broker, [row('b')])
    assert len(content(broker)[0]) == 2


@pytest.mark.parametrize(
    ('event', 'column', 'noted'),
    [
        ('INSERT ON object', 'name', ['a', 'b']),
        ('INSERT ON Container_Info', 'container', []),
    ],
)
def test_triggers_that_are_not_known_do_their_work(
    tmp_path, event, column, noted
):
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        conn.executescript(
            'CREATE TABLE names (name TEXT);'
            f'CREATE TRIGGER note_name AFTER {event} BEGIN '
            f'INSERT INTO names VALUES (new.{column}); END;'
        )
    assert merge_rows(broker, [row('a'), row('b')])
    with broker.get() as conn:
        names = [name for (name,) in conn.execute('SELECT * FROM names')]
    assert names == noted
    assert broker.get_info()['object_count'] == 2


def test_swifts_triggers_are_known(tmp_path):
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        # Only triggers call it.
        conn.create_function('chexor', 3, pytest.fail)
        values = merging._simple_values(row('a'))  # noqa: SLF001
        merging._merge(conn, [values], 0)  # noqa: SLF001
    assert broker.get_info()['object_count'] == 1


def test_nothing_is_counted_twice_if_triggers_write(tmp_path, monkeypatch):
    monkeypatch.setattr(
        figures, '_ignore_triggers', lambda *_: sqlite3.SQLITE_OK
    )
    broker, swifts = (broker_in(tmp_path / name) for name in ('a', 'b'))
    for rows in [[row('a'), row('b')], [row('a', 2, deleted=1)]]:
        assert not merge_rows(broker, [dict(each) for each in rows])
        swifts.merge_items(rows)
    assert content(broker) == content(swifts)


def test_triggers_count_the_same_statement_after_a_merge(tmp_path):
    statement = (
        "INSERT INTO object (name, created_at, size) VALUES ('a', 1, 2)"
    )
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        for is_merge in (True, False, True):
            conn.execute('BEGIN IMMEDIATE')
            once = figures.Figures().written_once(conn)
            with once if is_merge else nullcontext():
                conn.execute(statement)
            conn.commit()
    assert broker.get_info()['object_count'] == 1


def test_rows_that_are_left_to_swift_are_unchanged(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    names = [f'{number:03}' for number in range(ROWS_A_STATEMENT + 1)]
    removed = Timestamp(1, offset=1).internal
    merge_rows(
        broker, [row(name, deleted=1, created_at=removed) for name in names]
    )
    with broker.get() as conn:
        conn.execute(
            'INSERT INTO object (name, created_at, size, deleted) '
            'VALUES (?, ?, 0, 1)',
            (names[-1], Timestamp(1).internal),
        )
        conn.commit()
    left = []
    monkeypatch.setattr(
        ContainerBroker, 'merge_items', lambda _broker, rows: left.extend(rows)
    )
    assert not merge_rows(broker, [row(name) for name in names], offset=2)
    assert left == [row(name) for name in names]


@pytest.mark.parametrize('size', [-1, 2**62, '5', None, 1.5])
def test_uncommon_sizes_are_left_to_swift(tmp_path, size):
    ours, swifts = (broker_in(tmp_path / name) for name in ('a', 'b'))
    for broker, merge in (
        (ours, merge_rows),
        (swifts, ContainerBroker.merge_items),
    ):
        merge(broker, [row('a', size=size), row('b'), row('c', size=size)])
        merge(broker, [row('a', 2), row('b', 2, size=size)])
    assert content(ours) == content(swifts)


@pytest.mark.parametrize(
    'statement',
    [
        "UPDATE container_info SET metadata = CAST(x'ff' AS TEXT)",
        'ALTER TABLE container_info ADD COLUMN more AS (hash)',
        'DELETE FROM container_info',
        'INSERT INTO container_info SELECT * FROM container_info',
    ],
    ids=['no UTF-8', 'a computed column', 'no hash', 'two hashes'],
)
def test_a_database_with_uncommon_info_is_left_to_swift(tmp_path, statement):
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        conn.execute(statement)
        conn.commit()
    assert not merge_rows(broker, [row('a')])
    with broker.get() as conn:
        ((found,),) = conn.execute('SELECT object_count FROM policy_stat')
    assert found == 1


def test_nothing_is_written_if_no_row_is_new(tmp_path):
    broker = broker_in(tmp_path)
    merge_rows(broker, [row('a', 2)])
    with closing(sqlite3.connect(broker.db_file)) as reader:
        query = 'PRAGMA data_version'
        before = reader.execute(query).fetchall()
        assert merge_rows(broker, [row('a')])
        assert reader.execute(query).fetchall() == before
        merge_rows(broker, [row('b')])
        assert reader.execute(query).fetchall() != before


def test_a_table_without_policies_is_left_to_swift(tmp_path, monkeypatch):
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        conn.execute('DROP TABLE object')
        conn.execute(
            'CREATE TABLE object (ROWID INTEGER PRIMARY KEY, name TEXT, '
            'created_at TEXT, size INTEGER, content_type TEXT, etag TEXT, '
            'deleted INTEGER DEFAULT 0)'
        )
        conn.execute(
            'CREATE INDEX ix_object_deleted_name ON object (deleted, name)'
        )
        conn.commit()
    left = []
    monkeypatch.setattr(
        ContainerBroker, 'merge_items', lambda _broker, rows: left.extend(rows)
    )
    merge_rows(broker, [row('a'), row('b')])
    assert left == [row('a'), row('b')]


def test_a_name_with_two_rows_is_left_to_swift(tmp_path):
    broker = broker_in(tmp_path)
    with broker.get() as conn:
        for deleted in 0, 1:
            conn.execute(
                'INSERT INTO object (name, created_at, size, content_type, '
                'etag, deleted) VALUES (?, ?, 1, ?, ?, ?)',
                ('a', Timestamp(1).internal, 'text/plain', 'e', deleted),
            )
        conn.commit()
    merge_rows(broker, [row('a', 2), row('b')])
    assert [each[:2] for each in content(broker)[0]] == [
        ('a', Timestamp(2).internal),
        ('b', Timestamp(1).internal),
    ]
