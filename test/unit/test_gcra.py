# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.gcra import (
    LEASE,
    MICROSECONDS,
    Counter,
    Limit,
    alone,
    booking,
    jump,
    jump_needed,
    next_slot,
)

NOW = 60_000_000 * MICROSECONDS
SECOND = MICROSECONDS

intervals = st.integers(1_000, 200 * SECOND)
bursts = st.integers(0, 10 * SECOND)
ends = st.integers(0, 2**50)


def limit_of(interval: int, burst: int = 0, **others: int) -> Limit:
    return Limit(interval, burst, **{'patience': 60 * SECOND, **others})


def slots_of(times: list[int], limit: Limit) -> list[int]:
    """When writes that come at these times may go on."""
    end, slots = 0, []
    for now in times:
        slot = next_slot(end, now, limit)
        end = slot + limit.interval
        slots.append(max(slot, now))
    return slots


@st.composite
def arrivals(draw) -> list[int]:
    """Times in order, close together and far apart."""
    gaps = st.one_of(st.integers(0, 1000), st.integers(0, 5 * SECOND))
    times = [NOW]
    for gap in draw(st.lists(gaps, max_size=80)):
        times.append(times[-1] + gap)
    return times


@given(arrivals(), intervals, bursts)
def test_no_window_has_more_than_the_rate_and_the_burst(
    times, interval, burst
):
    going = slots_of(times, limit_of(interval, burst))
    for i, first in enumerate(going):
        for j in range(i, len(going)):
            window = going[j] - first
            assert (j - i) * interval <= window + burst


@given(st.lists(st.integers(0, SECOND), max_size=60), intervals, bursts)
def test_a_client_below_the_rate_never_waits(delays, interval, burst):
    times = [NOW]
    for delay in delays:
        times.append(times[-1] + interval + delay)
    assert slots_of(times, limit_of(interval, burst)) == times


@given(arrivals(), intervals, bursts)
def test_writes_go_on_in_the_order_they_come(times, interval, burst):
    going = slots_of(times, limit_of(interval, burst))
    assert going == sorted(going)


@given(intervals, bursts, st.integers(1, 64))
def test_shares_of_all_workers_are_the_whole(interval, burst, workers):
    limit = limit_of(interval, burst, workers=workers)
    assert alone(limit).interval == workers * interval
    assert alone(alone(limit)) == alone(limit)


@given(ends, st.integers(0, 10**12), st.integers(1, 10**6))
def test_a_booking_moves_the_end_and_no_more(end, duration, jumps):
    value = booking(end) + jumps % 4096
    assert Counter.of(value) == (end, jumps % 4096)
    assert Counter.of(value + booking(duration)) == (
        end + duration,
        jumps % 4096,
    )


@given(st.integers(10**12, 2**49), st.integers(-(10**12), 10**14), ends)
def test_a_jump_is_seen_as_one_and_can_be_taken_back(end, duration, jumps):
    before = booking(end) + jumps % 4096
    after = before + jump(duration)
    assert Counter.of(after).end - end in (duration, duration + 1)
    assert Counter.of(after).jumped_once_since(Counter.of(before))
    assert not Counter.of(before).jumped_once_since(Counter.of(before))
    twice = after + jump(duration)
    assert not Counter.of(twice).jumped_once_since(Counter.of(before))
    assert twice - jump(duration) == after


@given(intervals, bursts, st.integers(0, 10 * SECOND))
def test_slots_not_older_than_the_burst_are_good_as_they_are(
    interval, burst, age
):
    limit = limit_of(interval, burst)
    missing = jump_needed(NOW - age, NOW, 0, limit)
    assert (missing == 0) == (age <= burst)
    if missing:
        assert NOW - age + missing == NOW - limit.burst_of_idle
    assert 0.75 * burst <= limit.burst_of_idle <= burst


@given(intervals, bursts)
def test_a_new_counter_has_no_burst(interval, burst):
    limit = limit_of(interval, burst)
    assert jump_needed(0, NOW, 0, limit) == NOW
    assert jump_needed(interval, NOW, 0, limit) == NOW - interval


@given(intervals, bursts, st.integers(1, 60 * SECOND))
def test_a_lost_counter_starts_where_it_was_seen(interval, burst, ahead):
    limit = limit_of(interval, burst)
    assert jump_needed(0, NOW, NOW + ahead, limit) == NOW + ahead
    assert jump_needed(NOW, NOW, NOW + ahead, limit) == ahead


@given(intervals, bursts, st.integers(1, 10**9))
def test_a_counter_that_is_ahead_of_all_reason_starts_anew(
    interval, burst, beyond
):
    limit = limit_of(interval, burst)
    start = NOW + limit.horizon + beyond
    assert start + jump_needed(start, NOW, 0, limit) == NOW
    assert jump_needed(NOW, NOW, start, limit) == 0


@given(intervals, bursts, st.integers(1, 64))
def test_what_all_workers_hold_leaves_half_of_the_burst(
    interval, burst, workers
):
    limit = limit_of(interval, burst, workers=workers)
    assert limit.lease >= 1
    if limit.lease > 1:
        assert limit.lease * interval * workers <= burst / 2
        assert limit.lease * interval <= LEASE
