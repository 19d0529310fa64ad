# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.ratelimit import Growth

LEAST = 100
SIZE_SECONDS = 60


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(0, LEAST - 1), st.integers(1, 8), st.integers(0, LEAST))
def test_a_container_is_as_large_as_its_writes_may_have_made_it(
    known, workers, writes
):
    growth = Growth(workers, SIZE_SECONDS)
    for _ in range(writes):
        growth.size('c', known, LEAST)
        growth.add('c')
    size = growth.size('c', known, LEAST)
    assert size == min(LEAST, known + (writes + 1) * workers)


@given(st.integers(LEAST, 10**9))
def test_one_that_is_large_is_as_large_as_it_is_known(known):
    growth = Growth(4, SIZE_SECONDS)
    growth.size('c', 0, LEAST)
    growth.add('c')
    assert growth.size('c', known, LEAST) == known


def test_writes_are_forgotten_when_the_size_is_another():
    growth = Growth(1, SIZE_SECONDS)
    for _ in range(50):
        growth.size('c', 3, LEAST)
        growth.add('c')
    assert growth.size('c', 20, LEAST) == 21


def test_writes_are_forgotten_when_the_size_must_have_been_read_since():
    clock = Clock()
    growth = Growth(1, SIZE_SECONDS, clock)
    growth.size('c', 3, LEAST)
    growth.add('c')
    clock.now += SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 5
    growth.add('c')
    clock.now += SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 5
    clock.now += 2 * SIZE_SECONDS
    assert growth.size('c', 3, LEAST) == 4


def test_without_limits_nothing_is_watched():
    growth = Growth(1, SIZE_SECONDS)
    assert growth.size('c', 3, None) == 3
    growth.add('c')
    assert growth.size('c', 3, LEAST) == 4
