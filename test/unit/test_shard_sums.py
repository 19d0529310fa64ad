# SPDX-License-Identifier: Apache-2.0
import dataclasses
import time

import pytest
from swift.common.header_key_dict import HeaderKeyDict

from shardmw.backend.answers import Answer, ContainerStats
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.core.layout import Layout
from shardmw.core.paths import Path
from shardmw.proxy.shard_sums import CACHE_KEY, SummedStats, estimated_total
from shardmw.swift.concurrency import sleep, spawn

LAYOUT = Layout('65a1b2c3d4e5f', 2)
LATER = Layout('65a1b2c3d4e60', 2)
TARGET = LogicalContainer(Path('v1', 'AUTH_test', 'logs'), {}, LAYOUT)
KEY = CACHE_KEY.format(account='AUTH_test', container='logs')
SHARD = HeaderKeyDict(
    {'X-Container-Object-Count': '2', 'X-Container-Bytes-Used': '20'}
)


class Backend:
    """A backend that counts the reads of shards, which take a while."""

    def __init__(self) -> None:
        self.reads = 0
        self.fails = False
        self.status_line = '204 '
        self.away: set[int] = set()

    def head_shards(self, _env: dict, target: LogicalContainer):
        self.reads += 1
        sleep(0)
        if self.fails:
            self.fails = False
            raise RuntimeError
        return [self._answer(shard) for shard in target.shards()]

    def _answer(self, shard: int) -> Answer:
        if shard in self.away:
            return Answer(shard, '503 ', HeaderKeyDict(), [])
        return Answer(shard, self.status_line, SHARD, [])


@pytest.fixture
def backend() -> Backend:
    return Backend()


def test_sums_are_those_of_all_shards(backend):
    sums = SummedStats(backend, 60).of({}, TARGET)
    assert sums == ContainerStats(4, 40)


def test_missing_sums_are_read_once_for_concurrent_requests(backend):
    stats = SummedStats(backend, 60)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(8)]
    assert {each.wait() for each in asked} == {ContainerStats(4, 40)}
    assert backend.reads == 1


def test_after_a_read_that_fails_another_request_reads(backend):
    backend.fails = True
    stats = SummedStats(backend, 60)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(3)]
    with pytest.raises(RuntimeError):
        asked[0].wait()
    assert asked[1].wait() == asked[2].wait() == ContainerStats(4, 40)
    assert backend.reads == 2


def test_old_sums_are_used_while_they_are_read_anew(backend):
    stats = SummedStats(backend, 0.01)
    stats.of({}, TARGET)
    sleep(0.02)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(5)]
    for each in asked:
        each.wait()
    assert backend.reads == 2


class Memcached:
    """A replacement for Swift's memcached client that counts reads."""

    def __init__(self) -> None:
        self.values = {}
        self.asked = 0

    def get(self, key: str):
        self.asked += 1
        return self.values.get(key)

    def set(self, key: str, value, **_options) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def incr(self, key: str, **_options) -> int:
        self.values[key] = self.values.get(key, 0) + 1
        return self.values[key]


def environ(memcached: Memcached) -> dict:
    return {'swift.cache': memcached}


@pytest.fixture
def memcached() -> Memcached:
    return Memcached()


def test_while_sums_are_fresh_a_worker_sends_no_request(backend, memcached):
    stats = SummedStats(backend, 60)
    for _ in range(10):
        assert stats.of(environ(memcached), TARGET) == (4, 40)
    assert (memcached.asked, backend.reads) == (1, 1)


def test_sums_that_another_worker_has_read_are_used(backend, memcached):
    SummedStats(backend, 60).of(environ(memcached), TARGET)
    stats = SummedStats(backend, 60)
    for _ in range(10):
        assert stats.of(environ(memcached), TARGET) == (4, 40)
    assert (memcached.asked, backend.reads) == (2, 1)


def test_a_container_that_is_created_anew_has_sums_of_its_own(
    backend, memcached
):
    stats = SummedStats(backend, 60)
    stats.of(environ(memcached), TARGET)
    anew = dataclasses.replace(TARGET, layout=LATER)
    stats.of(environ(memcached), anew)
    assert backend.reads == 2


def test_expired_sums_are_used_while_another_worker_reads_them_anew(
    backend, memcached
):
    stats = SummedStats(backend, 60)
    stats.of(environ(memcached), TARGET)
    memcached.values[KEY][2] = 0
    stats._local.clear()
    memcached.values[f'{KEY}/refresh'] = 1
    for _ in range(3):
        stats.of(environ(memcached), TARGET)
    memcached.values[KEY] = [100, 0, time.time() + 60, LAYOUT.id]
    assert stats.of(environ(memcached), TARGET).object_count == 100
    assert backend.reads == 1


def test_without_a_cache_time_each_request_reads_sums(backend, memcached):
    stats = SummedStats(backend, 0)
    for _ in range(3):
        stats.of(environ(memcached), TARGET)
    assert backend.reads == 3


def test_sums_do_not_stay_fresh_when_a_clock_is_set_back(
    backend, memcached, monkeypatch
):
    stats = SummedStats(backend, 60)
    stats.of(environ(memcached), TARGET)
    an_hour_ago = time.time() - 3600
    monkeypatch.setattr(
        'shardmw.proxy.shard_sums.time.time', lambda: an_hour_ago
    )
    stats.of(environ(memcached), TARGET)
    assert backend.reads == 2


def test_while_no_shard_can_be_read_older_sums_stay(backend):
    stats = SummedStats(backend, 0.01)
    stats.of({}, TARGET)
    sleep(0.02)
    backend.status_line = '503 '
    assert stats.of({}, TARGET) == ContainerStats(4, 40)
    assert backend.reads == 2


def test_while_a_shard_cannot_be_read_older_sums_are_shown(
    backend, memcached, monkeypatch
):
    stats = SummedStats(backend, 60)
    stats.of(environ(memcached), TARGET)
    later = time.time() + 61
    monkeypatch.setattr('shardmw.proxy.shard_sums.time.time', lambda: later)
    backend.away = {1}
    monkeypatch.setitem(SHARD, 'X-Container-Object-Count', '50')
    assert stats.known(environ(memcached), TARGET) == ContainerStats(4, 40)
    assert backend.reads == 2


def test_an_estimate_is_shown_to_no_client(backend, memcached):
    stats = SummedStats(backend, 60)
    backend.away = {1}
    env = environ(memcached)
    assert stats.of(env, TARGET) == ContainerStats(4, 40)
    for each in (env, environ(memcached)):
        with pytest.raises(BackendError, match='shard 1 answered 503'):
            stats.known(each, TARGET)


def test_after_an_estimate_the_shards_are_read_for_a_client(
    backend, memcached
):
    stats = SummedStats(backend, 60)
    backend.away = {1}
    stats.of(environ(memcached), TARGET)
    backend.away = set()
    env = environ(memcached)
    assert stats.known(env, TARGET) == ContainerStats(4, 40)
    assert memcached.values[KEY][:2] == [4, 40]


def test_an_estimate_lasts_for_seconds_in_one_worker(
    backend, memcached, monkeypatch
):
    stats = SummedStats(backend, 60)
    backend.away = {1}
    for _ in range(3):
        stats.of(environ(memcached), TARGET)
    assert (backend.reads, memcached.values) == (1, {})
    later = time.time() + 6
    monkeypatch.setattr('shardmw.proxy.shard_sums.time.time', lambda: later)
    stats.of(environ(memcached), TARGET)
    assert backend.reads == 2


def test_a_shard_that_cannot_be_read_counts_like_the_mean_of_others():
    answers = [
        Answer(0, '204 ', SHARD, []),
        Answer(1, '503 ', HeaderKeyDict(), []),
    ]
    assert estimated_total(answers) == ContainerStats(4, 40)


def test_within_one_client_request_sums_stay_the_same(backend):
    stats = SummedStats(backend, 0)
    env = {}
    assert stats.of(env, TARGET) == stats.of(env, TARGET)
    assert backend.reads == 1


def test_forgotten_sums_are_read_again(backend, memcached):
    stats = SummedStats(backend, 60)
    stats.of(environ(memcached), TARGET)
    stats.forget(environ(memcached), TARGET)
    stats.of(environ(memcached), TARGET)
    assert backend.reads == 2
