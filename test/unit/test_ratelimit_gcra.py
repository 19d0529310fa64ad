# SPDX-License-Identifier: Apache-2.0
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.gcra import (
    EPOCH,
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
    others = {'max_wait': 60 * SECOND, 'workers': 1, **others}
    return Limit(interval, burst, **others)


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


def test_the_first_time_is_the_beginning_of_2025():
    """Values that are in memcached count from it."""
    first = datetime.fromtimestamp(EPOCH, timezone.utc)
    assert first == datetime(2025, 1, 1, tzinfo=timezone.utc)


def test_a_value_has_12_bits_for_the_resets():
    assert reservation(1) == 1 << 12
    assert Counter.of((5 << 12) + 7) == (5, 7)


def test_resets_are_counted_from_0_again():
    last, first = Counter(0, RESET_MASK), Counter(0, 0)
    assert first.is_next_reset_after(last)
    assert not last.is_next_reset_after(first)


@pytest.mark.parametrize(
    ('interval', 'burst', 'workers', 'lease'),
    [
        (1_000, 10 * SECOND, 1, 100),
        (10_000, SECOND, 5, 10),
        (10_000, SECOND, 10, 5),
        (10_000, SECOND, 100, 1),
        (10_000, 0, 1, 1),
    ],
)
def test_a_lease_lasts_a_tenth_of_a_second_or_part_of_half_the_burst(
    interval, burst, workers, lease
):
    assert limit_of(interval, burst, workers=workers).max_lease == lease


@pytest.mark.parametrize(
    ('burst', 'idle_burst'), [(2, 1.5), (4, 3), (10, 9), (0, 0)]
)
def test_an_idle_container_lacks_a_quarter_or_a_second_of_its_burst(
    burst, idle_burst
):
    limit = limit_of(1_000, burst * SECOND)
    assert limit.idle_burst == idle_burst * SECOND


def test_a_counter_is_moved_by_whole_numbers():
    limit = limit_of(1_000, 2 * SECOND, workers=100)
    numbers = [
        limit.max_lease,
        limit.idle_burst,
        limit.horizon,
        limit.slots_within_max_wait(NOW, NOW),
    ]
    assert {type(number) for number in numbers} == {int}


@pytest.mark.parametrize(
    ('interval', 'workers', 'horizon'),
    [
        (1_000, 1, 130_200_000),
        (1_000, 4, 130_800_000),
        (SECOND, 4, 138 * SECOND),
    ],
)
def test_an_end_is_plausible_up_to_the_horizon(interval, workers, horizon):
    limit = limit_of(interval, workers=workers)
    assert limit.horizon == horizon
    assert limit.is_plausible(NOW + limit.horizon, NOW)
    assert not limit.is_plausible(NOW + limit.horizon + 1, NOW)


@pytest.mark.parametrize(
    ('ahead', 'slots'), [(4, 3), (0, 5), (-4, 5), (9, 1), (11, 1)]
)
def test_waiting_writes_of_all_workers_share_the_longest_wait(ahead, slots):
    limit = limit_of(SECOND, max_wait=10 * SECOND, workers=2)
    end = NOW + ahead * SECOND
    assert limit.slots_within_max_wait(end, NOW) == slots


@pytest.mark.parametrize(
    ('max_wait', 'wait', 'exceeds'),
    [(10, 9, False), (10, 10, True), (0, 0, False), (0, 1, True)],
)
def test_a_write_that_would_wait_too_long_is_refused(max_wait, wait, exceeds):
    limit = limit_of(SECOND, max_wait=max_wait)
    assert limit.exceeds_max_wait(wait) is exceeds


def test_a_counter_that_ends_on_its_first_day_is_new():
    limit = limit_of(SECOND, burst=10 * SECOND)
    day = 86400 * SECOND
    assert reset_needed(day - 1, day, 0, limit) == 1
    assert reset_needed(day, day + 1, 0, limit) == 0
