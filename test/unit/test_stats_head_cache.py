# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from swift.common.memcached import MemcacheConnectionError

from shardmw.backend import write_marks
from shardmw.backend.answers import Answer, ContainerStats
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.write_marks import WriteMarks
from shardmw.core.layout import Layout
from shardmw.core.paths import Path
from shardmw.proxy.head_cache import HeadCache
from test.unit.clocks import Clock

SECONDS = 5
SHARDS = [
    Answer(
        shard,
        '204 No Content',
        {'X-Container-Object-Count': '2', 'X-Container-Bytes-Used': '30'},
        [],
    )
    for shard in range(3)
]
SUMS = ContainerStats(6, 90)
ID = '65a1b2c3d4e5f'
LATER_ID = '65a1b2c3d4e60'


class Memcached:
    """A memcached that keeps sums as long, and marks as short, as may be."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.set_count = 0
        self.is_away = False
        # As on a server that has been up for a long time.
        self.entries = {write_marks.HAS_MARKS_KEY: (True, math.inf)}

    def restart(self) -> None:
        self.entries.clear()

    def get_multi(self, keys, _place):
        return [self._get(key) for key in keys]

    def _get(self, key):
        value, until = self.entries.get(key, (None, 0))
        return value if self.clock.now < until else None

    def set(self, key, value, time, raise_on_error):
        if self.is_away:
            raise MemcacheConnectionError
        self.set_multi({key: value}, key, time)

    def set_multi(self, values, _place, time):
        self.set_count += 1
        for key, value in values.items():
            late = 1 if 'head' in key else -1
            until = self.clock.now + time + late if time else math.inf
            self.entries[key] = (value, until)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(write_marks, 'time', clock)
    return clock


@pytest.fixture
def memcached(clock) -> Memcached:
    return Memcached(clock)


@pytest.fixture
def env(memcached) -> dict:
    return {'swift.cache': memcached}


def head_cache(seconds: int) -> HeadCache:
    return HeadCache(WriteMarks(seconds))


def container(layout_id: str = ID) -> LogicalContainer:
    return LogicalContainer(Path('v1', 'a', 'c'), {}, Layout(layout_id, 3))


def keep(sums: HeadCache, env: dict, clock: Clock) -> None:
    sums.keep(env, container(), SHARDS, asked=clock.now)


def test_sums_are_kept_for_their_time(clock, env):
    sums = head_cache(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(env, container()) == SUMS
    clock.now += SECONDS + write_marks.ROUNDING_SECONDS
    assert sums.kept(env, container()) is None


def test_the_time_of_sums_counts_from_when_they_were_asked_for(clock, env):
    sums = head_cache(SECONDS)
    sums.keep(env, container(), SHARDS, asked=clock.now - SECONDS)
    assert sums.kept(env, container()) is None


def test_sums_are_of_one_layout(clock, env):
    sums = head_cache(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(env, container(LATER_ID)) is None


def test_x_newest_reads_sums_anew(clock, env):
    sums = head_cache(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(dict(env, HTTP_X_NEWEST='true'), container()) is None


def test_0_seconds_keep_nothing(clock, env, memcached):
    sums = head_cache(0)
    keep(sums, env, clock)
    sums.marks.mark(env, container())
    assert sums.kept(env, container()) is None
    assert memcached.set_count == 0


def test_without_memcached_nothing_is_kept(clock):
    sums = head_cache(SECONDS)
    keep(sums, {}, clock)
    sums.marks.mark({}, container())
    assert sums.kept({}, container()) is None


@pytest.mark.parametrize('since_first', [0, 1, 4.9, 5, 7, 11.9, 12, 30])
@pytest.mark.parametrize('until_write', [0, 0.5, 3, 4.9])
def test_a_write_by_any_worker_shows(clock, env, since_first, until_write):
    """Sums that were read during the write may not include it."""
    writer, reader = head_cache(SECONDS), head_cache(SECONDS)
    writer.marks.mark(env, container())
    clock.now += since_first
    asked = clock.now
    clock.now += until_write
    writer.marks.mark(env, container())
    reader.keep(env, container(), SHARDS, asked)
    for _tenth in range(300):
        assert reader.kept(env, container()) is None
        clock.now += 0.1


def test_a_worker_marks_a_container_from_time_to_time(clock, env, memcached):
    sums = head_cache(SECONDS)
    for _write in range(100):
        sums.marks.mark(env, container())
        clock.now += 0.1
    assert memcached.set_count == 2


def test_a_mark_that_was_not_set_is_set_by_the_next_write(
    clock, env, memcached
):
    writer, reader = head_cache(SECONDS), head_cache(SECONDS)
    memcached.is_away = True
    writer.marks.mark(env, container())
    memcached.is_away = False
    keep(reader, env, clock)
    writer.marks.mark(env, container())
    assert reader.kept(env, container()) is None


@pytest.mark.parametrize('since_mark', [0, 2, 4.9])
@pytest.mark.parametrize('since_restart', [0, 2, 4.9, 10])
def test_marks_that_memcached_has_lost_count_all_the_same(
    clock, env, memcached, since_mark, since_restart
):
    """The worker remembers that it has set the mark, and does not renew it."""
    writer, reader = head_cache(SECONDS), head_cache(SECONDS)
    writer.marks.mark(env, container())
    clock.now += since_mark
    memcached.restart()
    for _head in range(3):
        clock.now += since_restart / 3
        assert reader.kept(env, container()) is None
    keep(reader, env, clock)
    writer.marks.mark(env, container())
    for _tenth in range(90):
        assert reader.kept(env, container()) is None
        clock.now += 0.1


def test_sums_are_used_again_when_memcached_is_known_for_some_time(
    clock, env, memcached
):
    sums = head_cache(SECONDS)
    memcached.restart()
    for _second in range(20):
        sums.kept(env, container())
        clock.now += 1
    keep(sums, env, clock)
    assert sums.kept(env, container()) == SUMS
