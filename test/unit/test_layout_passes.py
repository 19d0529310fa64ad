# SPDX-License-Identifier: Apache-2.0
"""Test how fast rows move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.constraints import CONTAINER_LISTING_LIMIT

from shardmw.layout import passes
from shardmw.layout.passes import CATCH_UP_SECONDS, ROWS_AT_A_TIME, Pace
from test.unit.clocks import Clock


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """A clock that sleeping sets."""
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(passes, 'time', clock)
    monkeypatch.setattr(passes, 'sleep', sleep)
    return clock


@pytest.mark.parametrize(
    ('rate', 'places', 'page', 'part'),
    [
        (0, 1, CONTAINER_LISTING_LIMIT, ROWS_AT_A_TIME),
        (1, 1, 1, 1),
        (50, 1, 25, 1),
        (2000, 1, 200, 50),
        (2000, 32, 800, 50),
        (100, 32, 100, 2),
        (10**6, 32, CONTAINER_LISTING_LIMIT, ROWS_AT_A_TIME),
    ],
)
def test_few_rows_are_read_and_written_at_once(rate, places, page, part):
    pace = Pace(rate)
    assert (pace.page(places), pace.part) == (page, part)


@given(st.integers(0, 10**7), st.integers(1, 1024))
def test_there_is_always_a_row_to_move(rate, places):
    pace = Pace(rate)
    page = pace.page(places)
    assert 1 <= pace.part <= page <= CONTAINER_LISTING_LIMIT


def test_without_a_rate_nothing_waits(clock):
    before = clock.now
    Pace(0).pay(10**6)
    assert clock.now == before


def test_rows_move_at_the_rate(clock):
    pace = Pace(2000)
    before = clock.now
    for _ in range(50):
        pace.pay(200)  # a copy
        pace.pay(200)  # and its tombstones
    assert clock.now - before == pytest.approx(5, abs=CATCH_UP_SECONDS + 0.1)


def test_little_is_caught_up_on(clock):
    pace = Pace(2000)
    pace.pay(200)
    clock.now += 60
    before = clock.now
    for _ in range(40):
        pace.pay(200)
    assert clock.now - before >= 2 - CATCH_UP_SECONDS - 0.1
