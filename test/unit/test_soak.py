# SPDX-License-Identifier: Apache-2.0
"""What a soak counts as growth, as an error and as a wrong answer."""

import sqlite3

import pytest

from test.history import History, Read, Shown, Write
from test.soak.clients import KEPT_SECONDS, still_shown
from test.soak.logs import unexplained
from test.soak.samples import (
    DATABASE_BYTES,
    DATABASES,
    DELETED_ROWS,
    FILES,
    PENDING_BYTES,
    RESIDENT,
    TOMBSTONES,
    UPDATES,
    growths,
    look_at_disks,
)

WARM_UP = 100


def samples(what: str, values: list[float]):
    """Return samples of a process, ten seconds apart."""
    return [
        (10.0 * i, 'proxy-1', {what: value}) for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ('what', 'first', 'last', 'is_flat'),
    [
        (RESIDENT, 1000, 1050, True),
        (RESIDENT, 1000, 1060, False),
        (FILES, 40, 45, True),
        (FILES, 40, 60, False),
    ],
)
def test_growth_after_the_warm_up_is_found(what, first, last, is_flat):
    values = [1] * 10 + [first] * 10 + [last] * 10
    (growth,) = growths(samples(what, values), WARM_UP)
    assert (growth.first, growth.last) == (first, last)
    assert growth.is_flat == is_flat


def test_databases_updates_and_tombstones_on_disks_are_counted(tmp_path):
    database = tmp_path / '1/sdb1/containers/7/abc/0123/0123.db'
    update = tmp_path / '1/sdb1/async_pending/abc/0123-1.0'
    tombstone = tmp_path / '1/sdb1/objects/7/abc/0123/1.00000.ts'
    pending = database.with_name('0123.db.pending')
    for path in (database, update, tombstone):
        path.parent.mkdir(parents=True)
    for path in (update, tombstone, pending):
        path.write_bytes(b'12345')
    with sqlite3.connect(database) as db:
        db.execute('CREATE TABLE object (name TEXT, deleted INTEGER)')
        db.executemany(
            'INSERT INTO object VALUES (?, ?)', [('a', 0), ('b', 1), ('c', 1)]
        )
    assert look_at_disks(tmp_path) == {
        DATABASES: 1,
        DATABASE_BYTES: database.stat().st_size,
        DELETED_ROWS: 2,
        PENDING_BYTES: 5,
        UPDATES: 1,
        TOMBSTONES: 1,
    }


def test_errors_without_an_explanation_count_together():
    lines = [
        '2026-01-01T00:00:00.000Z 17 ERROR proxy-server: odd answer 3 (txn 1)',
        '2026-01-01T00:00:01.000Z 18 ERROR proxy-server: odd answer 4 (txn 2)',
        '2026-01-01T00:00:02.000Z 17 INFO proxy-server: all is well',
        '2026-01-01T00:00:02.000Z 17 ERROR proxy-server: shardmw: 503 for GET '
        '/v1/a/c: backing: no turn for account a in 30 s',
        'Traceback (most recent call last):',
    ]
    assert unexplained(lines) == {
        'ERROR proxy-server: odd answer N (txn N)': 2,
        'Traceback (most recent call last):': 1,
    }


WRITES = [
    Write('o', 'PUT', 1, 2, 'first', 5),
    Write('o', 'PUT', 3, 4, 'second', 6),
    Write('o', 'POST', 5, 6, meta='m'),
]


@pytest.mark.parametrize(
    ('value', 'count'), [('first', 1), ('second', 0), (None, 1)]
)
def test_the_kept_writes_show_the_same_wrong_reads_as_all_writes(value, count):
    now = KEPT_SECONDS + 100
    history = History()
    history.writes['o'] = still_shown(WRITES, now)
    shown = value and Shown(value, 'm')
    history.read(Read('GET', now, now + 1, {'o': shown}))
    assert len(history.violations()) == count


def test_writes_that_no_read_can_show_are_forgotten():
    assert still_shown(WRITES, KEPT_SECONDS + 100) == WRITES[1:]
