# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.common.header_key_dict import HeaderKeyDict

from shardmw.backend import Answer, LogicalContainer, sleep, spawn
from shardmw.layout import Layout
from shardmw.stats import ContainerStats, SummedStats

INFO = {'object_count': 1, 'bytes': 10}
TARGET = LogicalContainer('v1', 'AUTH_test', 'logs', INFO, Layout(2))
SHARD = HeaderKeyDict(
    {'X-Container-Object-Count': '2', 'X-Container-Bytes-Used': '20'}
)


class Backend:
    """Counts how often shards are read, which takes a while."""

    def __init__(self) -> None:
        self.reads = 0
        self.fails = False

    def head_shards(self, _env: dict, target: LogicalContainer):
        self.reads += 1
        sleep(0)
        if self.fails:
            self.fails = False
            raise RuntimeError
        return [Answer(i, '204 ', SHARD, []) for i in target.shards()]


@pytest.fixture
def backend() -> Backend:
    return Backend()


def test_sums_are_those_of_the_root_and_all_shards(backend):
    sums = SummedStats(backend, 60).of({}, TARGET)
    assert sums == ContainerStats(5, 50)


def test_sums_that_nobody_has_are_read_once_for_all(backend):
    stats = SummedStats(backend, 60)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(8)]
    assert {each.wait() for each in asked} == {ContainerStats(5, 50)}
    assert backend.reads == 1


def test_a_read_that_fails_is_another_ones_turn(backend):
    backend.fails = True
    stats = SummedStats(backend, 60)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(3)]
    with pytest.raises(RuntimeError):
        asked[0].wait()
    assert asked[1].wait() == asked[2].wait() == ContainerStats(5, 50)
    assert backend.reads == 2


def test_old_sums_are_used_while_they_are_read_anew(backend):
    stats = SummedStats(backend, 0.01)
    stats.of({}, TARGET)
    sleep(0.02)
    asked = [spawn(stats.of, {}, TARGET) for _ in range(5)]
    for each in asked:
        each.wait()
    assert backend.reads == 2
