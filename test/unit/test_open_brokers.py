# SPDX-License-Identifier: Apache-2.0
"""Databases that stay open, with Swift's container broker."""

import os
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from swift.common.db import DatabaseConnectionError
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from shardmw.swift import open_brokers
from shardmw.swift.concurrency import sleep
from shardmw.swift.open_brokers import OpenBrokers


class Databases:
    """The databases of containers, by name.

    :ivar made: the brokers that were created
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[ContainerBroker] = []

    def path(self, name: str) -> Path:
        return self.folder / name / f'{name}.db'

    def make(self, name: str) -> ContainerBroker:
        broker = self.broker(self.path(name))
        self.made.append(broker)
        return broker

    @staticmethod
    def broker(path: Path) -> ContainerBroker:
        return ContainerBroker(str(path), account='a', container='c')

    def create(self, name: str) -> None:
        self.broker(self.path(name)).initialize(Timestamp(1).internal, 0)

    def put(self, name: str, row: str) -> None:
        now = Timestamp.now().internal
        broker = self.broker(self.path(name))
        broker.put_object(row, now, 0, 'text/plain', 'etag')
        broker.get_info()  # the row no longer waits


@pytest.fixture
def databases(tmp_path):
    databases = Databases(tmp_path)
    for name in ('one', 'two', 'three'):
        databases.create(name)
    return databases


@pytest.fixture
def brokers(databases):
    return OpenBrokers(databases.make)


def names(brokers, name='one'):
    with brokers.broker(name) as broker:
        broker.get_info()
        rows = broker.list_objects_iter(100, '', None, None, None)
        return [row[0] for row in rows]


def wait_until_closed(brokers):
    until = time.monotonic() + 10
    while len(brokers):
        assert time.monotonic() < until
        sleep(0.05)


def pragma(broker, name):
    return broker.conn.execute(f'PRAGMA {name}').fetchone()[0]


def is_open(broker):
    try:
        broker.conn.execute('SELECT 1')
    except sqlite3.ProgrammingError:
        return False
    return True


def test_the_next_read_finds_the_database_open(databases, brokers):
    assert names(brokers) == []
    databases.put('one', 'o')
    assert names(brokers) == ['o']
    assert len(databases.made) == 1
    assert is_open(databases.made[0])


def test_a_file_that_was_replaced_is_not_read(databases, brokers):
    databases.put('one', 'before')
    assert names(brokers) == ['before']
    databases.put('two', 'after')
    databases.path('two').rename(databases.path('one'))
    assert names(brokers) == ['after']
    assert not is_open(databases.made[0])


def test_a_file_that_was_replaced_while_it_was_opened_is_closed(
    databases, brokers
):
    databases.put('two', 'after')
    with brokers.broker('one') as broker:
        broker.get_info()
        databases.path('two').rename(databases.path('one'))
    assert not is_open(broker)
    assert names(brokers) == ['after']


def test_a_database_that_was_removed_is_closed(databases, brokers):
    names(brokers)
    shutil.rmtree(databases.path('one').parent)
    with pytest.raises(DatabaseConnectionError):
        names(brokers)
    assert not is_open(databases.made[0])
    assert len(brokers) == 0


def test_a_database_that_swift_splits_is_not_kept_open(databases, brokers):
    names(brokers)
    splitting = databases.broker(databases.path('one'))
    splitting.enable_sharding(Timestamp.now())
    assert splitting.set_sharding_state()
    for made in (2, 3):
        with brokers.broker('one') as broker:
            assert len(broker.db_files) == 2
            broker.get_info()
        assert not is_open(broker)
        assert len(databases.made) == made


def test_a_database_that_is_missing_is_not_kept(brokers):
    with brokers.broker('none') as broker:
        assert broker.get_info_is_deleted() == ({}, True)
    assert len(brokers) == 0


def test_a_broker_that_failed_is_not_used_again(databases, brokers):
    names(brokers)
    with pytest.raises(KeyError), brokers.broker('one') as broker:
        raise KeyError
    assert not is_open(broker)
    assert names(brokers) == []
    assert len(databases.made) == 2


def test_concurrent_reads_have_brokers_of_their_own(databases, brokers):
    with brokers.broker('one') as broker:
        broker.get_info()
        with brokers.broker('one') as other:
            assert other is not broker
            other.get_info()
    assert len(brokers) == 1
    assert (is_open(broker), is_open(other)) == (True, False)


def test_open_databases_are_not_locked(databases, brokers):
    databases.put('one', 'o')
    with brokers.broker('one') as broker:
        broker.get_info()
        broker.list_objects_iter(1, '', None, None, None)
    other = sqlite3.connect(databases.path('one'), timeout=0)
    other.execute('BEGIN EXCLUSIVE')
    other.rollback()


def test_open_databases_stay_open_if_there_are_too_many(
    databases, brokers, monkeypatch
):
    monkeypatch.setattr(open_brokers, 'MOST_OPEN', 2)
    for name in ('one', 'two', 'three', 'one', 'two'):
        names(brokers, name)
    assert [is_open(each) for each in databases.made] == [True, True, False]
    assert len(brokers) == 2


def test_a_new_database_replaces_the_oldest_one_that_is_not_used(
    databases, brokers, monkeypatch
):
    monkeypatch.setattr(open_brokers, 'MOST_OPEN', 2)
    for name in ('one', 'two'):
        names(brokers, name)
    monkeypatch.setattr(open_brokers, 'TURN_SECONDS', 0)
    names(brokers, 'three')
    assert [is_open(each) for each in databases.made] == [False, True, True]
    assert len(brokers) == 2


def test_a_database_that_swift_opens_anew_is_like_a_new_one(
    databases, brokers
):
    names(brokers)
    with brokers.broker('one') as broker:
        broker.conn.close()
        broker.conn = None
        assert broker.get_info()
    assert len(databases.made) == len(brokers) == 1
    assert pragma(broker, 'cache_size') == -open_brokers.CACHE_KIB
    with brokers.broker('one'):
        broker.conn.close()
        broker.conn = None
        databases.put('two', 'after')
        databases.path('two').rename(databases.path('one'))
        assert broker.get_info()
    assert not is_open(broker)
    assert names(brokers) == ['after']


def test_a_database_that_is_not_used_is_closed(
    databases, brokers, monkeypatch
):
    monkeypatch.setattr(open_brokers, 'IDLE_SECONDS', 0.2)
    for _again in range(2):  # the second time, nothing was open
        names(brokers)
        names(brokers, 'two')
        assert len(brokers) == 2
        wait_until_closed(brokers)
    assert not any(is_open(each) for each in databases.made)
    assert len(databases.made) == 4


def test_a_database_is_closed_after_a_failure_to_close_another(
    databases, brokers, monkeypatch
):
    monkeypatch.setattr(open_brokers, 'IDLE_SECONDS', 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(open_brokers, 'close', None)
        names(brokers)
        names(brokers, 'two')
        sleep(0.3)
    assert len(brokers) == 1
    names(brokers, 'two')
    wait_until_closed(brokers)


def test_a_database_that_is_used_stays_open(databases, brokers, monkeypatch):
    monkeypatch.setattr(open_brokers, 'IDLE_SECONDS', 1)
    for _again in range(30):
        names(brokers)
        sleep(0.1)
    assert len(databases.made) == 1


def test_no_files_are_left_open(databases, brokers, monkeypatch):
    before = len(os.listdir('/proc/self/fd'))
    for name in ('one', 'two', 'three'):
        names(brokers, name)
    databases.made.clear()
    monkeypatch.setattr(open_brokers, 'IDLE_SECONDS', 0)
    until = time.monotonic() + 10
    while len(os.listdir('/proc/self/fd')) > before:
        assert time.monotonic() < until
        sleep(0.1)
