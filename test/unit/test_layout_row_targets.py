# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.backend import row_targets
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.row_targets import WHOLE_SECONDS, RowTargets
from shardmw.core.layout import Layout
from shardmw.core.paths import Path, Place
from test.unit.clocks import Clock
from test.unit.containers import NEW_ID, OLD_ID

TARGET = LogicalContainer(Path('v1', 'a', 'c'), {}, Layout(NEW_ID, 1))
SHARD = Place('.shards_shardmw_a', f'c.{NEW_ID}.0')
SPLIT = Place('.shards_x', 'first')


class Backend:
    """Looks up where rows go.

    :ivar found: what it finds
    :ivar asked: what it was asked for
    """

    def __init__(self) -> None:
        self.found = SHARD
        self.asked: list[tuple[Place, str]] = []

    def database_of(self, _env, place, name) -> Place:
        self.asked.append((place, name))
        return self.found


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(row_targets, 'time', clock)
    return clock


@pytest.fixture
def targets(backend, clock) -> RowTargets:
    return RowTargets(backend)


def test_a_row_goes_to_the_shard_of_its_name(targets, backend):
    assert targets.of({}, TARGET, 'o') == SHARD
    assert backend.asked == [(SHARD, 'o')]


def test_a_shard_is_looked_up_once_a_minute(targets, backend, clock):
    for name in 'abc':
        targets.of({}, TARGET, name)
    assert len(backend.asked) == 1
    clock.now += WHOLE_SECONDS
    targets.of({}, TARGET, 'd')
    assert len(backend.asked) == 2


def test_shards_without_writes_are_forgotten(targets, backend, clock):
    for shard in range(9):
        backend.found = Place('.shards_shardmw_a', f'c.{NEW_ID}.{shard}')
        targets.database({}, backend.found, 'o')
        clock.now += WHOLE_SECONDS / 4
    assert len(targets._whole) == 5


def test_a_shard_that_swift_has_split_is_looked_up_for_each_name(
    targets, backend
):
    backend.found = SPLIT
    for name in 'abc':
        assert targets.of({}, TARGET, name) == SPLIT
    assert [name for _, name in backend.asked] == ['a', 'b', 'c']


def test_a_shard_that_swift_splits_is_seen_within_a_minute(
    targets, backend, clock
):
    targets.of({}, TARGET, 'a')
    backend.found = SPLIT
    clock.now += WHOLE_SECONDS
    assert targets.of({}, TARGET, 'a') == SPLIT


def test_shards_of_another_layout_are_looked_up_anew(targets, backend):
    targets.of({}, TARGET, 'a')
    other = LogicalContainer(Path('v1', 'a', 'c'), {}, Layout(OLD_ID, 1))
    targets.of({}, other, 'a')
    assert len(backend.asked) == 2
