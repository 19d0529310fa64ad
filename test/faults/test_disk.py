# SPDX-License-Identifier: Apache-2.0
"""Test what a disk that loses power keeps."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from test.faults.power import Disk, why_not
from test.functional.operating import wait_until

NEEDS_FUSE = pytest.mark.skipif(
    bool(why_not()), reason='no disk can be mounted'
)
pytestmark = NEEDS_FUSE

NAME = 'user.swift.metadata'


@pytest.fixture
def disk(tmp_path):
    with Disk(tmp_path / 'mount', tmp_path / 'store') as disk:
        yield disk


@pytest.fixture
def folder(disk) -> Path:
    return disk.mount


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def _write_synced(path: Path, text: str) -> None:
    path.write_text(text)
    sync(path)


def test_content_is_kept_as_it_was_at_the_last_fsync(disk, folder):
    _write_synced(folder / 'a', 'synced')
    with (folder / 'a').open('a') as file:
        file.write(' and more')
    disk.cut()
    assert (folder / 'a').read_text() == 'synced'


def test_a_file_that_was_never_synced_is_lost(disk, folder):
    (folder / 'a').write_text('text')
    disk.cut()
    assert list(folder.iterdir()) == []


def test_without_its_own_fsync_a_file_in_a_synced_folder_is_empty(
    disk, folder
):
    (folder / 'a').write_text('text')
    sync(folder)
    disk.cut()
    assert (folder / 'a').read_text() == ''


def test_truncation_is_undone(disk, folder):
    _write_synced(folder / 'a', 'synced')
    os.truncate(folder / 'a', 0)
    disk.cut()
    assert (folder / 'a').read_text() == 'synced'


def test_what_was_truncated_does_not_come_back_within_a_longer_file(
    disk, folder
):
    _write_synced(folder / 'a', 'synced')
    with (folder / 'a').open('r+b') as file:
        file.truncate(2)
        file.seek(4)
        file.write(b'!')
    sync(folder / 'a')
    disk.cut()
    assert (folder / 'a').read_bytes() == b'sy\0\0!'


def test_an_attribute_is_kept_by_fsync(disk, folder):
    (folder / 'a').touch()
    os.setxattr(folder / 'a', NAME, b'old')
    sync(folder / 'a')
    os.setxattr(folder / 'a', NAME, b'new')
    disk.cut()
    assert os.getxattr(folder / 'a', NAME) == b'old'


def test_a_rename_is_undone(disk, folder):
    _write_synced(folder / 'old', 'text')
    (folder / 'old').rename(folder / 'new')
    disk.cut()
    assert [path.name for path in folder.iterdir()] == ['old']


def test_a_rename_is_kept_by_an_fsync_of_the_new_folder(disk, folder):
    for name in ('tmp', 'objects'):
        (folder / name).mkdir()
    _write_synced(folder / 'tmp/a', 'text')
    (folder / 'tmp/a').rename(folder / 'objects/a')
    sync(folder / 'objects')
    disk.cut()
    assert (folder / 'objects/a').read_text() == 'text'
    assert not (folder / 'tmp/a').exists()


def test_a_removal_is_kept_by_an_fsync_of_the_folder_alone(disk, folder):
    for name in ('a', 'b'):
        (folder / name).mkdir()
        _write_synced(folder / name / 'file', 'text')
        (folder / name / 'file').unlink()
    sync(folder / 'b')
    disk.cut()
    assert (folder / 'a/file').read_text() == 'text'
    assert not (folder / 'b/file').exists()


def test_folders_above_a_synced_file_are_kept(disk, folder):
    (folder / 'a/b/c').mkdir(parents=True)
    _write_synced(folder / 'a/b/c/file', 'text')
    disk.cut()
    assert (folder / 'a/b/c/file').read_text() == 'text'


def test_a_folder_that_is_made_again_is_kept_without_its_former_files(
    disk, folder
):
    (folder / 'a').mkdir()
    _write_synced(folder / 'a/old', 'text')
    (folder / 'a/old').unlink()
    (folder / 'a').rmdir()
    (folder / 'a').mkdir()
    _write_synced(folder / 'a/new', 'text')
    disk.cut()
    assert [path.name for path in (folder / 'a').iterdir()] == ['new']


def test_what_is_open_can_be_used_after_its_folder_was_removed(folder):
    (folder / 'a').mkdir()
    with (folder / 'a/file').open('w+b', buffering=0) as file:
        file.write(b'old')
        (folder / 'a/file').unlink()
        assert os.fstat(file.fileno()).st_size == 3
        (folder / 'a').rmdir()
        file.write(b' new')
        os.fsync(file.fileno())
        file.seek(0)
        assert file.read() == b'old new'
    assert list(folder.iterdir()) == []


def test_all_is_durable_some_seconds_later(disk, folder):
    (folder / 'a').write_text('text')
    wait_until((disk.store / 'durable/a').exists)
    disk.cut()
    assert (folder / 'a').read_text() == 'text'


def test_sqlite_loses_no_more_than_the_last_transaction(disk, folder):
    for number in range(3):
        _insert(folder / 'db', number)
    disk.cut()
    # SQLite does not sync the removal of the journal, which commits.
    assert _numbers(folder / 'db') == [0, 1]


def test_sqlite_forgets_a_transaction_that_is_not_committed(disk, folder):
    _insert(folder / 'db', 0)
    _insert(folder / 'db', 1)
    with contextlib.closing(sqlite3.connect(folder / 'db')) as db:
        db.execute('PRAGMA cache_size = 1')  # pages are written early
        db.executemany(
            'INSERT INTO numbers VALUES (?, ?)',
            [(number, 'x' * 1000) for number in range(2, 1000)],
        )
        disk.cut()
    assert _numbers(folder / 'db') == [0, 1]


def test_a_pending_row_is_lost_and_a_merged_one_before_another_is_kept(
    disk, folder
):
    path = folder / 'containers' / 'hash' / 'hash.db'
    broker = ContainerBroker(str(path), account='a', container='c')
    broker.initialize(Timestamp.now().internal, 0)
    for name in ('first', 'second', 'pending'):
        broker.put_object(name, Timestamp.now().internal, 0, 'x', 'e')
        if name != 'pending':
            broker.get_info()
    disk.cut()
    broker = ContainerBroker(str(path), account='a', container='c')
    assert [row[0] for row in _rows(broker)] == ['first']


def _rows(broker: ContainerBroker) -> list[tuple]:
    return broker.list_objects_iter(10, '', '', '', '')


def _insert(path: Path, number: int) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute('CREATE TABLE IF NOT EXISTS numbers (number, text)')
        db.execute('INSERT INTO numbers VALUES (?, "")', (number,))


def _numbers(path: Path) -> list[int]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute('SELECT number FROM numbers ORDER BY number')
        return [number for (number,) in rows]
