# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.gcra import (
    LEASE_DURATION,
    RESET_MASK,
    Counter,
    Limit,
    fallback_limit,
    next_slot,
    reservation,
    reset,
    reset_needed,
)
from shardmw.core.gcra import MICROSECONDS as SECOND

NOW = 60_000_000 * SECOND

intervals = st.integers(1_000, 200 * SECOND)
bursts = st.integers(0, 10 * SECOND)
ends = st.integers(0, 2**50)
reset_numbers = st.integers(0, RESET_MASK)


def limit_of(interval: int, burst: int = 0, **others: int) -> Limit:
    return Limit(interval, burst, **{'max_wait': 60 * SECOND, **others})


def start_times(arrivals: list[int], limit: Limit) -> list[int]:
    """Return when writes that arrive at these times may proceed."""
    end, starts = 0, []
    for now in arrivals:
        slot = next_slot(end, now, limit)
        end = slot + limit.interval
        starts.append(max(slot, now))
    return starts


@st.composite
def arrivals(draw) -> list[int]:
    """Draw ascending times, close together and far apart."""
    gaps = st.one_of(st.integers(0, 1000), st.integers(0, 5 * SECOND))
    times = [NOW]
    for gap in draw(st.lists(gaps, max_size=80)):
        times.append(times[-1] + gap)
    return times


@given(arrivals(), intervals, bursts)
def test_no_window_exceeds_the_rate_and_the_burst(times, interval, burst):
    starts = start_times(times, limit_of(interval, burst))
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            window = starts[j] - first
            assert (j - i) * interval <= window + burst


@given(st.lists(st.integers(0, SECOND), max_size=60), intervals, bursts)
def test_a_client_below_the_rate_never_waits(delays, interval, burst):
    times = [NOW]
    for delay in delays:
        times.append(times[-1] + interval + delay)
    assert start_times(times, limit_of(interval, burst)) == times


@given(arrivals(), intervals, bursts)
def test_writes_proceed_in_order_of_arrival(times, interval, burst):
    starts = start_times(times, limit_of(interval, burst))
    assert starts == sorted(starts)


@given(intervals, bursts, st.integers(1, 64))
def test_the_fallback_limits_of_all_workers_add_up_to_the_limit(
    interval, burst, workers
):
    limit = limit_of(interval, burst, workers=workers)
    share = fallback_limit(limit)
    assert share.interval == workers * interval
    assert fallback_limit(share) == share


@given(ends, st.integers(0, 10**12), reset_numbers)
def test_a_reservation_moves_the_end_only(end, duration, resets):
    value = reservation(end) + resets
    assert Counter.of(value) == (end, resets)
    after = Counter.of(value + reservation(duration))
    assert after == (end + duration, resets)


@given(
    st.integers(10**12, 2**49),
    st.integers(-(10**12), 10**14),
    reset_numbers,
)
def test_a_reset_is_recognized_and_can_be_undone(end, duration, resets):
    before = reservation(end) + resets
    once = before + reset(duration)
    twice = once + reset(duration)
    assert Counter.of(once).end - end in (duration, duration + 1)
    assert Counter.of(once).is_next_reset_after(Counter.of(before))
    assert not Counter.of(before).is_next_reset_after(Counter.of(before))
    assert not Counter.of(twice).is_next_reset_after(Counter.of(before))
    assert twice - reset(duration) == once


@given(intervals, bursts, st.integers(0, 10 * SECOND))
def test_slots_within_the_burst_need_no_reset(interval, burst, age):
    limit = limit_of(interval, burst)
    distance = reset_needed(NOW - age, NOW, 0, limit)
    assert (distance == 0) == (age <= burst)
    if distance:
        assert NOW - age + distance == NOW - limit.idle_burst
    assert 0.75 * burst <= limit.idle_burst <= burst


@given(intervals, bursts)
def test_a_new_counter_has_no_burst(interval, burst):
    limit = limit_of(interval, burst)
    assert reset_needed(0, NOW, 0, limit) == NOW
    assert reset_needed(interval, NOW, 0, limit) == NOW - interval


@given(intervals, bursts, st.integers(1, 60 * SECOND))
def test_a_lost_counter_continues_from_its_known_end(interval, burst, ahead):
    limit = limit_of(interval, burst)
    assert reset_needed(0, NOW, NOW + ahead, limit) == NOW + ahead
    assert reset_needed(NOW, NOW, NOW + ahead, limit) == ahead


@given(intervals, bursts, st.integers(1, 10**9))
def test_a_counter_beyond_the_horizon_starts_again(interval, burst, beyond):
    limit = limit_of(interval, burst)
    start = NOW + limit.horizon + beyond
    assert start + reset_needed(start, NOW, 0, limit) == NOW
    assert reset_needed(NOW, NOW, start, limit) == 0


@given(intervals, bursts, st.integers(1, 64))
def test_the_leases_of_all_workers_leave_half_of_the_burst(
    interval, burst, workers
):
    limit = limit_of(interval, burst, workers=workers)
    assert limit.max_lease >= 1
    if limit.max_lease > 1:
        assert limit.max_lease * interval * workers <= burst / 2
        assert limit.max_lease * interval <= LEASE_DURATION
