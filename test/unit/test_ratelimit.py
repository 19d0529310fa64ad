# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.ratelimit import LocalCounters, book

STEP = 50
BUFFER = 5000

gaps = st.lists(st.integers(0, 500), min_size=1, max_size=200)


def admitted_times(gaps: list[int]) -> list[int]:
    """When each of a row of writes goes on, all in milliseconds."""
    now, booked, admitted = 10**6, 0, []
    for gap in gaps:
        now += gap
        booked += STEP
        booking = book(booked, now, STEP, BUFFER)
        if booking.restart_at is not None:
            booked = booking.restart_at
        admitted.append(now + booking.wait_ms)
    return admitted


@given(gaps)
def test_no_window_admits_more_than_the_rate_and_the_buffer(gaps):
    times = admitted_times(gaps)
    for i, start in enumerate(times):
        window = times[-1] - start
        assert len(times) - i <= (window + BUFFER) / STEP + 2


@given(st.lists(st.integers(STEP, 500), min_size=1, max_size=100))
def test_a_client_below_the_rate_never_waits(gaps):
    now, booked = 10**6, 0
    for gap in gaps:
        now += gap
        booked += STEP
        booking = book(booked, now, STEP, BUFFER)
        booked = booking.restart_at or booked
        assert booking.wait_ms == 0


@given(gaps)
def test_writes_go_on_in_the_order_they_came(gaps):
    times = admitted_times(gaps)
    assert times == sorted(times)


def test_a_local_counter_starts_at_nothing_and_adds_up():
    counters = LocalCounters(2)
    assert counters.add('a', 5) == 5
    assert counters.add('a', 5) == 10
    assert counters.add('a', -20) == 0


def test_the_counter_that_was_not_used_for_longest_is_given_up():
    counters = LocalCounters(2)
    for key in ('a', 'b', 'a', 'c'):
        counters.add(key, 1)
    assert counters.add('a', 1) == 3
    assert counters.add('b', 1) == 1
