# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw import heads
from shardmw.backend import Answer, LogicalContainer
from shardmw.heads import HeadSums
from shardmw.layout import Layout

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
SUMS = [6, 90]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Memcached:
    """Keeps entries as long as it may at the most, or at the least."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.entries = {}
        self.set_count = 0

    def get_multi(self, keys, _place):
        return [self._get(key) for key in keys]

    def _get(self, key):
        value, until = self.entries.get(key, (None, 0))
        return value if self.clock.now < until else None

    def set_multi(self, values, _place, time):
        self.set_count += 1
        for key, value in values.items():
            late = -1 if 'written' in key else 1
            self.entries[key] = (value, self.clock.now + time + late)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(heads, 'time', clock)
    return clock


@pytest.fixture
def memcached(clock) -> Memcached:
    return Memcached(clock)


@pytest.fixture
def env(memcached) -> dict:
    return {'swift.cache': memcached}


def container(shards: int = 3) -> LogicalContainer:
    return LogicalContainer('v1', 'a', 'c', {}, Layout(shards))


def keep(sums: HeadSums, env: dict, clock: Clock) -> None:
    sums.keep(env, container(), SHARDS, asked=clock.now)


def test_sums_are_kept_for_their_time(clock, env):
    sums = HeadSums(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(env, container()) == SUMS
    clock.now += SECONDS + heads.ROUNDING_SECONDS
    assert sums.kept(env, container()) is None


def test_their_time_counts_from_when_they_were_asked_for(clock, env):
    sums = HeadSums(SECONDS)
    sums.keep(env, container(), SHARDS, asked=clock.now - SECONDS)
    assert sums.kept(env, container()) is None


def test_they_are_of_one_layout(clock, env):
    sums = HeadSums(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(env, container(4)) is None


def test_who_asks_for_the_newest_gets_them(clock, env):
    sums = HeadSums(SECONDS)
    keep(sums, env, clock)
    assert sums.kept(dict(env, HTTP_X_NEWEST='true'), container()) is None


def test_0_seconds_keep_nothing(clock, env, memcached):
    sums = HeadSums(0)
    keep(sums, env, clock)
    sums.note_write(env, container())
    assert sums.kept(env, container()) is None
    assert memcached.set_count == 0


def test_without_memcached_nothing_is_kept(clock):
    sums = HeadSums(SECONDS)
    keep(sums, {}, clock)
    sums.note_write({}, container())
    assert sums.kept({}, container()) is None


@pytest.mark.parametrize('since_first', [0, 1, 4.9, 5, 7, 11.9, 12, 30])
@pytest.mark.parametrize('until_write', [0, 0.5, 3, 4.9])
def test_a_write_by_any_worker_shows(clock, env, since_first, until_write):
    """Whenever sums were read that lack it, and the writer marked before."""
    writer, reader = HeadSums(SECONDS), HeadSums(SECONDS)
    writer.note_write(env, container())
    clock.now += since_first
    asked = clock.now
    clock.now += until_write
    writer.note_write(env, container())
    reader.keep(env, container(), SHARDS, asked)
    for _tenth in range(300):
        assert reader.kept(env, container()) is None
        clock.now += 0.1


def test_a_worker_marks_a_container_once_in_a_while(clock, env, memcached):
    sums = HeadSums(SECONDS)
    for _write in range(100):
        sums.note_write(env, container())
        clock.now += 0.1
    assert memcached.set_count == 2
