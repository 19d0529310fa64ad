# SPDX-License-Identifier: Apache-2.0
"""Many workers that share one counter, as in a small cluster.

The workers are real; memcached and the clocks are not. Time stands still while
a write reserves its slot, so every run gives the same result.
"""

import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.backend.metrics import ALONE, FALLBACK, Metric
from shardmw.core.gcra import LEASE_DURATION, Counter, Limit, reservation
from shardmw.core.gcra import MICROSECONDS as SECOND
from shardmw.proxy.ratelimit import slots
from shardmw.proxy.ratelimit.clock import CLOCK_KEY, SharedClock
from shardmw.proxy.ratelimit.slots import SlotAllocator
from shardmw.proxy.ratelimit.worker_state import MaxWaitExceededError
from shardmw.swift.concurrency import sleep, spawn

START = 60_000_000 * SECOND
KEY = 'shardmw/ratelimit/.shards_shardmw_AUTH_test/logs.65a1b2c3d4e5f.0'


@pytest.fixture(scope='module', autouse=True)
def timeless():
    """Make the results independent of the duration of a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, 'RESET_CHECK_SECONDS', 0)
        patch.setattr(slots, 'RESET_CHECKS', 2000)
        patch.setattr(slots, 'FIRST_PROBE_SECONDS', 3600)
        yield


class Memcached:
    """A :class:`shardmw.swift.memcached.SharedCache` with a dictionary."""

    timeout_seconds = 5

    def __init__(self) -> None:
        self.values = {}
        self.is_away = False
        self.operations = 0

    def get(self, key: str):
        return None if self.is_away else self.values.get(key)

    def set(self, key: str, value, _seconds: int) -> None:
        if not self.is_away:
            self.values[key] = value

    def add(self, key: str, delta: int, _seconds: int) -> int | None:
        self.operations += 1
        sleep(0)  # let other workers run
        if self.is_away:
            return None
        value = self.values[key] = max(0, self.values.get(key, 0) + delta)
        sleep(0)
        return value


class Logger(logging.LoggerAdapter):
    """Counts the metrics and keeps the warnings."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger('test'), {})
        self.counts = {}
        self.lines = []

    def note(self, metric: Metric, count: int = 1) -> None:
        self.counts[metric] = self.counts.get(metric, 0) + count

    def warning(self, line: str, *args) -> None:
        self.lines.append(line % args)


class Cluster:
    """Workers that share memcached and, except for their skew, a clock."""

    def __init__(self, limit: Limit, skews: tuple[int, ...] = ()) -> None:
        self.limit = limit
        self.now = START
        self.memcached = Memcached()
        self.logger = Logger()
        skews = skews or (0,) * limit.workers
        self.workers = [self._worker(skew) for skew in skews]

    def _worker(self, skew: int) -> SlotAllocator:
        clock = SharedClock(lambda: self.now + skew, lambda: self.now / SECOND)
        return SlotAllocator(self.logger, self.logger, clock)

    @property
    def counter(self) -> Counter:
        return Counter.of(self.memcached.values[KEY])

    def set_memcached(self, is_away: bool) -> None:
        """Stop or start memcached; all workers know of it."""
        self.memcached.is_away = is_away
        for worker in self.workers:
            worker._memcached._is_available = not is_away

    def write(self, worker: int) -> int | None:
        """Return when one write may proceed, None if it is refused."""
        now = self.now
        allocator = self.workers[worker]
        try:
            wait = allocator.reserve(self.memcached, KEY, self.limit)
        except MaxWaitExceededError:
            return None
        return now + wait

    def write_at_once(self, workers: list[int]) -> list[int]:
        """Return when the admitted ones of concurrent writes proceed."""
        writes = [spawn(self.write, worker) for worker in workers]
        times = [write.wait() for write in writes]
        return [time for time in times if time is not None]


def check_windows(times: list[int], limit: Limit, more: int = 0) -> None:
    """Check that no window has more writes than the rate and the burst.

    :param more: the number of writes to allow beyond that
    """
    ahead = [i * limit.interval - time for i, time in enumerate(sorted(times))]
    least = math.inf
    for each in ahead:
        least = min(least, each)
        assert each - least <= limit.burst + more * limit.interval


def check_all_used(times: list[int], limit: Limit) -> None:
    """Check that hardly any slot stays unused while writes wait."""
    span = max(times) - min(times)
    assert len(times) * limit.interval >= 0.97 * span


limits = st.builds(
    Limit,
    interval=st.sampled_from([2_000, 10_000, 50_000, 333_333, 7 * SECOND]),
    burst=st.sampled_from([0, SECOND, 5 * SECOND]),
    max_wait=st.sampled_from([0, SECOND // 2, 20 * SECOND]),
    workers=st.integers(1, 4),
)
gaps = st.one_of(
    st.just(0), st.integers(0, 20_000), st.integers(0, 12 * SECOND)
)
#: The workers that concurrent writes arrive at.
crowds = st.one_of(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.builds(
        lambda worker, count: [worker] * count,
        st.integers(0, 3),
        st.integers(50, 300),
    ),
)
#: Idle times, each with the writes that arrive after it.
waves = st.lists(st.tuples(gaps, crowds), min_size=1, max_size=25)


def play(cluster: Cluster, waves: list) -> list[int]:
    """Return when the writes proceed that are admitted."""
    times = []
    for gap, workers in waves:
        cluster.now += gap
        present = [i % len(cluster.workers) for i in workers]
        times += cluster.write_at_once(present)
    return times


@given(limits, waves)
def test_no_window_exceeds_the_rate_and_the_burst(limit, waves):
    check_windows(play(Cluster(limit), waves), limit)


@given(limits, waves)
def test_no_write_waits_longer_than_the_longest_wait(limit, waves):
    cluster = Cluster(limit)
    for gap, workers in waves:
        cluster.now += gap
        for i in workers:
            time = cluster.write(i % limit.workers)
            if time is not None and time > cluster.now:
                assert time - cluster.now < limit.max_wait


@given(
    limits,
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, SECOND)), max_size=40
    ),
)
def test_a_client_below_the_rate_never_waits(limit, writes):
    cluster = Cluster(limit)
    for worker, delay in writes:
        cluster.now += limit.interval * limit.workers + delay
        assert cluster.write(worker % limit.workers) == cluster.now


@given(limits.filter(lambda limit: limit.max_wait), st.integers(10, 60))
def test_no_worker_starves_while_all_write(limit, rounds):
    """Every write proceeds in the end, at the rate of the container."""
    limit = limit._replace(max_wait=10**12)
    cluster = Cluster(limit)
    everyone = list(range(limit.workers))
    times = []
    for _ in range(rounds):
        present = cluster.write_at_once(everyone)
        assert len(present) == limit.workers
        times += present
    span = max(times) - min(times)
    leases = limit.max_lease * limit.workers
    assert span <= (len(times) + leases) * limit.interval


@given(limits, waves)
def test_without_memcached_each_worker_has_its_share(limit, waves):
    cluster = Cluster(limit)
    cluster.memcached.is_away = True
    times = play(cluster, waves)
    check_windows(times, limit, more=limit.workers - 1)


@given(limits, waves, waves, waves)
def test_the_rate_holds_while_memcached_goes_away_and_comes_back(
    limit, before, during, after
):
    """Only one more burst, and writes that were waiting, may exceed it."""
    cluster = Cluster(limit)
    times = play(cluster, before)
    waiting = sum(time > cluster.now for time in times)
    cluster.memcached.is_away = True
    times += play(cluster, during)
    waiting += sum(time > cluster.now for time in times)
    cluster.memcached.values.clear()
    cluster.set_memcached(is_away=False)
    times += play(cluster, after)
    leases = limit.max_lease * limit.workers
    burst = limit.burst // limit.interval
    more = 2 * (burst + limit.workers) + leases + waiting
    check_windows(times, limit, more)


@given(limits, waves, waves)
def test_a_restart_of_memcached_admits_at_most_one_more_burst(
    limit, before, after
):
    cluster = Cluster(limit)
    times = play(cluster, before)
    cluster.memcached.values.clear()
    times += play(cluster, after)
    backlog = max(0, max(times, default=0) - cluster.now)
    more = (limit.burst + backlog) // limit.interval + limit.workers
    check_windows(times, limit, more)


def limit_of(rate: float, **others: int) -> Limit:
    return Limit(
        interval=round(SECOND / rate),
        **{
            'burst': 5 * SECOND,
            'max_wait': 60 * SECOND,
            'workers': 2,
            **others,
        },
    )


def test_a_busy_worker_sends_one_operation_for_many_writes():
    cluster = Cluster(limit_of(100, workers=1))
    for _ in range(300):
        cluster.now += SECOND // 100
        assert cluster.write(0) == cluster.now
    assert cluster.memcached.operations < 60


def test_a_client_below_the_rate_costs_little_more_than_one_operation():
    cluster = Cluster(limit_of(20, workers=1))
    for _ in range(600):
        cluster.now += SECOND // 5
        assert cluster.write(0) == cluster.now
    assert cluster.memcached.operations < 1.6 * 600


def test_a_worker_that_dies_loses_no_more_than_its_lease():
    limit = limit_of(100, burst=SECOND)
    cluster = Cluster(limit)
    for _ in range(50):
        cluster.now += SECOND // 100
        cluster.write(0)
    cluster.now += 2 * SECOND
    end_before = cluster.counter.end
    cluster.workers[0] = None
    times = [cluster.write(1) for _ in range(110)]
    without = 110 * limit.interval - limit.idle_burst
    assert max(times) - cluster.now <= without + LEASE_DURATION
    assert end_before < cluster.now


@pytest.mark.parametrize(
    ('workers', 'rate', 'crowd'),
    [(1, 1, 100), (2, 1, 300), (4, 10, 400), (2, 10, 2000), (8, 100, 2000)],
)
def test_a_crowd_gets_the_rate_and_no_more(workers, rate, crowd):
    limit = limit_of(rate, workers=workers)
    cluster = Cluster(limit)
    times = []
    for _ in range(40):
        present = [i % workers for i in range(crowd)]
        times += cluster.write_at_once(present)
        cluster.now += 5 * SECOND
    check_windows(times, limit)
    check_all_used(times, limit)


@pytest.mark.parametrize(('workers', 'rate'), [(8, 0.1), (8, 1), (64, 1)])
def test_workers_that_start_at_once_share_the_slots(workers, rate):
    cluster = Cluster(limit_of(rate, workers=workers))
    admitted = cluster.write_at_once([*range(workers)])
    assert len(admitted) >= min(workers, 60 * rate) - 1
    assert cluster.limit.is_plausible(cluster.counter.end, cluster.now)


def test_an_idle_worker_forgets_the_offset_of_another_clock():
    cluster = Cluster(limit_of(10), (0, 0))
    cluster.memcached.values[CLOCK_KEY] = START + 3600 * SECOND
    cluster.write(0)
    cluster.now += SECOND
    cluster.write(0)
    del cluster.memcached.values[CLOCK_KEY]
    cluster.now += 60 * SECOND
    assert cluster.workers[0].clock.now() == cluster.now


def test_refused_writes_take_no_slots():
    cluster = Cluster(limit_of(1, burst=0, max_wait=SECOND // 2))
    assert cluster.write(0) == START
    for _ in range(100):
        assert cluster.write(0) is None
        assert cluster.write(1) is None
    cluster.now += SECOND
    assert cluster.write(1) == cluster.now
    cluster.now += SECOND
    assert cluster.write(0) == cluster.now


def test_a_write_that_must_be_refused_costs_memcached_nothing():
    cluster = Cluster(limit_of(0.01, burst=0, max_wait=SECOND))
    cluster.write(0)
    before = cluster.memcached.operations
    for _ in range(10):
        assert cluster.write(0) is None
    assert cluster.memcached.operations == before


def test_proxies_follow_the_fastest_clock():
    skews = (0, 3 * SECOND)
    limit = limit_of(10, burst=0)
    cluster = Cluster(limit, skews)
    cluster.write(1)
    for _ in range(100):
        cluster.now += SECOND // 4
        for worker in (1, 0):
            time = cluster.write(worker)
    assert time - cluster.now < SECOND


def test_a_counter_far_in_the_future_is_reset():
    limit = limit_of(10)
    cluster = Cluster(limit)
    cluster.write(0)
    cluster.memcached.values[KEY] += reservation(86400 * SECOND)
    cluster.now += SECOND
    assert cluster.write(1) == cluster.now
    assert cluster.write(0) == cluster.now + limit.interval


def test_an_elected_worker_that_dies_delays_no_write():
    cluster = Cluster(limit_of(10))
    cluster.memcached.values[f'{KEY}/reset/0'] = 1
    assert cluster.write(0) == START
    assert cluster.logger.counts[ALONE] == 1


def test_the_backlog_delays_the_next_write():
    cluster = Cluster(limit_of(1, burst=0, workers=1))
    cluster.write(0)
    cluster.workers[0].add_backlog(KEY, 2)
    cluster.now += SECOND
    assert cluster.write(0) == cluster.now + 2 * SECOND


def test_a_large_backlog_delays_others_by_no_more_than_the_longest_wait():
    limit = limit_of(10, workers=2, max_wait=60 * SECOND)
    cluster = Cluster(limit)
    cluster.write(0)
    cluster.workers[0].add_backlog(KEY, 145_000)
    assert refused_seconds(cluster) <= 61


def test_backlogs_of_many_workers_do_not_add_up():
    limit = limit_of(10, workers=8, max_wait=60 * SECOND)
    cluster = Cluster(limit)
    for _ in range(30):
        for worker in range(8):
            cluster.write(worker)
            cluster.workers[worker].add_backlog(KEY, 1000)
        cluster.now += SECOND
    assert refused_seconds(cluster) <= 120


def test_a_worker_with_a_backlog_first_reads_how_far_the_counter_is():
    cluster = Cluster(limit_of(10, workers=8, max_wait=60 * SECOND))
    for worker in range(8):
        cluster.write(worker)
        cluster.workers[worker].add_backlog(KEY, 1000)
    ends = []
    for worker in range(8):
        cluster.write(worker)
        ends.append(cluster.counter.end)
    assert max(ends) <= cluster.now + 121 * SECOND


def test_a_backlog_of_one_slot_counts_at_a_rate_below_the_longest_wait():
    cluster = Cluster(limit_of(0.01, burst=0, workers=1, max_wait=SECOND))
    cluster.write(0)
    cluster.now += 90 * SECOND
    cluster.workers[0].add_backlog(KEY, 1)
    cluster.now += 90 * SECOND
    assert cluster.write(0) is None


def refused_seconds(cluster: Cluster) -> int:
    """Return after how many seconds no worker refuses a write any more."""
    refused = 0
    for second in range(1, 1000):
        cluster.now += SECOND
        for worker in range(len(cluster.workers)):
            if cluster.write(worker) is None:
                refused = second
    return refused


class TestOutage:
    def test_is_logged_once(self):
        cluster = Cluster(limit_of(1))
        cluster.memcached.is_away = True
        cluster.write_at_once([0] * 5)
        cluster.write_at_once([0] * 5)
        assert len(cluster.logger.lines) == 1
        assert cluster.logger.counts[FALLBACK] == 1

    def test_fallback_slots_are_reserved_afterwards(self):
        limit = limit_of(1, burst=0)
        cluster = Cluster(limit)
        cluster.memcached.is_away = True
        times = [cluster.write(0) for _ in range(4)]
        assert times == [START + 2 * i * SECOND for i in range(4)]
        cluster.set_memcached(is_away=False)
        assert cluster.write(0) == START + 4 * SECOND

    def test_slots_from_before_are_not_reserved_again(self):
        """memcached is away for a moment while a container is busy."""
        limit = limit_of(10, workers=4)
        cluster = Cluster(limit)
        everyone = [0, 1, 2, 3] * 5
        times = []
        for second in range(60):
            cluster.set_memcached(is_away=second == 30)
            times += cluster.write_at_once(everyone)
            cluster.now += SECOND
        check_windows(times, limit, limit.burst // limit.interval)
        check_all_used(times, limit)

    def test_a_clock_that_is_set_back_delays_no_write(self):
        cluster = Cluster(limit_of(1, workers=1))
        cluster.memcached.is_away = True
        cluster.write(0)
        cluster.now -= 3600 * SECOND
        assert cluster.write(0) == cluster.now

    def test_the_backlog_delays_the_next_write(self):
        cluster = Cluster(limit_of(1, burst=0, workers=1))
        cluster.memcached.is_away = True
        cluster.write(0)
        cluster.workers[0].add_backlog(KEY, 3)
        cluster.now += SECOND
        assert cluster.write(0) == cluster.now + 3 * SECOND


def test_a_worker_forgets_containers_without_writes():
    cluster = Cluster(limit_of(1, workers=1))
    (worker,) = cluster.workers
    worker._states.clock = lambda: cluster.now / SECOND
    for number in range(20):
        worker.reserve(cluster.memcached, f'c{number}', cluster.limit)
        cluster.now += slots.STATE_SECONDS * SECOND // 4
    assert 'c15' in worker._states
    assert 'c10' not in worker._states
