# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.proxy.ratelimit.limiter import GrowthEstimate
from test.unit.clocks import Clock

LEAST = 100
SIZE_SECONDS = 60


def write(growth: GrowthEstimate, known: int, count: int = 1) -> None:
    for _ in range(count):
        growth.size('c', known, LEAST)
        growth.add('c')


@given(st.integers(0, LEAST - 1), st.integers(1, 8), st.integers(0, LEAST))
def test_every_write_counts_as_one_object_for_each_worker(
    known, workers, writes
):
    growth = GrowthEstimate(workers, SIZE_SECONDS)
    write(growth, known, writes)
    size = growth.size('c', known, LEAST)
    assert size == min(LEAST, known + (writes + 1) * workers)


@given(st.integers(LEAST, 10**9))
def test_a_large_container_has_its_known_size(known):
    growth = GrowthEstimate(4, SIZE_SECONDS)
    write(growth, 0)
    assert growth.size('c', known, LEAST) == known


def test_writes_are_forgotten_when_the_known_size_changes():
    growth = GrowthEstimate(1, SIZE_SECONDS)
    write(growth, 3, count=50)
    assert growth.size('c', 20, LEAST) == 21


def test_writes_are_forgotten_when_the_known_size_must_include_them():
    clock = Clock()
    growth = GrowthEstimate(1, SIZE_SECONDS, clock)
    write(growth, 3)
    clock.now += SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 5
    growth.add('c')
    clock.now += SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 5
    clock.now += 2 * SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 4


def test_without_limits_no_growth_is_estimated():
    growth = GrowthEstimate(1, SIZE_SECONDS)
    assert growth.size('c', 3, None) == 3
    growth.add('c')
    assert growth.size('c', 3, LEAST) == 4
