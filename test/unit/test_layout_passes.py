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
        (0, 4, CONTAINER_LISTING_LIMIT, ROWS_AT_A_TIME),
        (1, 4, 1, 1),
        (50, 4, 50, 5),
        (2000, 1, 400, 200),
        (2000, 32, 1920, 200),
        (2000, 1024, 2000, 200),
        (10**6, 4, CONTAINER_LISTING_LIMIT, ROWS_AT_A_TIME),
    ],
)
def test_pages_are_of_a_fifth_of_a_second_or_more_for_many_places(
    rate, places, page, part
):
    pace = Pace(rate)
    assert (pace.page(places), pace.part) == (page, part)


@given(st.integers(0, 10**7), st.integers(1, 1024))
def test_there_is_always_a_row_to_move(rate, places):
    pace = Pace(rate)
    assert 1 <= pace.part <= pace.page(places) <= CONTAINER_LISTING_LIMIT


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
