# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.common.swob import Request

from shardmw import lifecycle
from shardmw.backend import LogicalContainer
from shardmw.layout import Layout
from shardmw.lifecycle import UPLOAD_GRACE_SECONDS, Lifecycle
from test.unit.clocks import Clock

MOMENT = 0.4 * UPLOAD_GRACE_SECONDS


def container(shards: int, name: str = 'logs') -> LogicalContainer:
    return LogicalContainer('v1', 'AUTH_test', name, {}, Layout(shards))


TARGET = container(4)


class Backend:
    """Memcached has all containers, and counts who asks."""

    def __init__(self) -> None:
        self.asked = []

    def is_confirmed(self, _env: dict, target: LogicalContainer) -> bool:
        self.asked.append(target)
        return True


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lifecycle, 'time', clock)
    return clock


@pytest.fixture
def keep(backend, clock):
    rules = Lifecycle(None, backend, None, None)

    def keep(target: LogicalContainer) -> None:
        rules.keep(Request.blank(f'{target.path}/o'), target)

    return keep


def test_memcached_is_asked_once_for_uploads_that_end_together(
    keep, backend, clock
):
    keep(TARGET)
    clock.now += MOMENT
    keep(TARGET)
    assert backend.asked == [TARGET]


def test_a_later_upload_asks_again_however_many_came_between(
    keep, backend, clock
):
    for _ in range(4):
        keep(TARGET)
        clock.now += MOMENT
    assert backend.asked == [TARGET, TARGET]


def test_another_container_or_layout_is_asked_for(keep, backend):
    targets = [TARGET, container(4, 'other'), container(8)]
    for target in targets:
        keep(target)
    assert backend.asked == targets
