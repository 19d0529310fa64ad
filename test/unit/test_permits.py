# SPDX-License-Identifier: Apache-2.0
"""Many workers, one counter: a cluster in miniature.

Workers are real, memcached and the clocks are not: time stands still while a
write asks for its slot, so that a run is the same each time.
"""

import logging
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmw import permits
from shardmw.backend import sleep, spawn
from shardmw.clock import CLOCK_KEY, SharedClock
from shardmw.desk import TooLongError
from shardmw.gcra import LEASE, MICROSECONDS, Limit
from shardmw.permits import Permits

SECOND = MICROSECONDS
START = 60_000_000 * SECOND
KEY = 'shardmw/ratelimit/AUTH_test/logs'


@pytest.fixture(scope='module', autouse=True)
def timeless():
    """Nothing depends on how long a run takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permits, 'JUMP_PAUSE_SECONDS', 0)
        patch.setattr(permits, 'JUMP_PAUSES', 2000)
        patch.setattr(permits, 'FIRST_LOOK_SECONDS', 3600)
        yield


class Memcached:
    """A :class:`shardmw.backend.SharedCache` over a dictionary."""

    timeout_seconds = 5

    def __init__(self) -> None:
        self.values = {}
        self.is_away = False
        self.count = 0

    def get(self, key: str):
        return None if self.is_away else self.values.get(key)

    def set(self, key: str, value, _seconds: int) -> None:
        if not self.is_away:
            self.values[key] = value

    def add(self, key: str, delta: int, _seconds: int) -> int | None:
        self.count += 1
        sleep(0)  # others come between
        if self.is_away:
            return None
        value = self.values[key] = max(0, self.values.get(key, 0) + delta)
        sleep(0)
        return value


class Logger(logging.LoggerAdapter):
    """Counts what would go to statsd."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger('test'), {})
        self.counts = {}
        self.lines = []

    def update_stats(self, name: str, count: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + count

    def increment(self, name: str) -> None:
        self.update_stats(name, 1)

    def warning(self, line: str, *args) -> None:
        self.lines.append(line % args)


class Cluster:
    """Workers that share a memcached and, but for their skew, a clock."""

    def __init__(self, limit: Limit, skews: tuple[int, ...] = ()) -> None:
        self.limit = limit
        self.now = START
        self.memcached = Memcached()
        self.logger = Logger()
        skews = skews or (0,) * limit.workers
        self.workers = [self._worker(skew) for skew in skews]

    def _worker(self, skew: int) -> Permits:
        clock = SharedClock(lambda: self.now + skew, lambda: self.now / SECOND)
        return Permits(self.logger, clock)

    def find_memcached(self) -> None:
        """Have all workers know whether it is there."""
        for worker in self.workers:
            worker._link._is_up = not self.memcached.is_away

    def write(self, worker: int) -> int | None:
        """One write; when it may go on, None if it is refused."""
        now = self.now
        try:
            wait = self.workers[worker].take(self.memcached, KEY, self.limit)
        except TooLongError:
            return None
        return now + wait

    def write_at_once(self, workers: list[int]) -> list[int]:
        """Many writes at one time; when those that may go on do so."""
        writes = [spawn(self.write, worker) for worker in workers]
        times = [write.wait() for write in writes]
        return [time for time in times if time is not None]


def check_windows(times: list[int], limit: Limit, more: int = 0) -> None:
    """No window has more writes than the rate allows, and the burst.

    :param more: writes beyond that
    """
    ahead = [i * limit.interval - time for i, time in enumerate(sorted(times))]
    least = math.inf
    for each in ahead:
        least = min(least, each)
        assert each - least <= limit.burst + more * limit.interval


def check_all_used(times: list[int], limit: Limit) -> None:
    """While all wait, hardly a slot is lost."""
    span = max(times) - min(times)
    assert len(times) * limit.interval >= 0.97 * span


limits = st.builds(
    Limit,
    interval=st.sampled_from([2_000, 10_000, 50_000, 333_333, 7 * SECOND]),
    burst=st.sampled_from([0, SECOND, 5 * SECOND]),
    patience=st.sampled_from([0, SECOND // 2, 20 * SECOND]),
    workers=st.integers(1, 4),
)
gaps = st.one_of(
    st.just(0), st.integers(0, 20_000), st.integers(0, 12 * SECOND)
)
#: For how long nobody comes, and which workers' writes come then at once.
crowds = st.one_of(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.builds(
        lambda worker, count: [worker] * count,
        st.integers(0, 3),
        st.integers(50, 300),
    ),
)
waves = st.lists(st.tuples(gaps, crowds), min_size=1, max_size=25)


def play(cluster: Cluster, waves: list) -> list[int]:
    times = []
    for gap, workers in waves:
        cluster.now += gap
        present = [i % len(cluster.workers) for i in workers]
        times += cluster.write_at_once(present)
    return times


@settings(max_examples=60)
@given(limits, waves)
def test_no_window_has_more_than_the_rate_and_the_burst(limit, waves):
    check_windows(play(Cluster(limit), waves), limit)


@settings(max_examples=60)
@given(limits, waves)
def test_nobody_waits_longer_than_his_patience(limit, waves):
    cluster = Cluster(limit)
    for gap, workers in waves:
        cluster.now += gap
        for i in workers:
            time = cluster.write(i % limit.workers)
            if time is not None and time > cluster.now:
                assert time - cluster.now < limit.patience


@settings(max_examples=60)
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


@settings(max_examples=60)
@given(limits.filter(lambda limit: limit.patience), st.integers(10, 60))
def test_nobody_starves_while_all_ask(limit, rounds):
    """Everyone's write goes on in the end, at the rate of all."""
    limit = limit._replace(patience=10**12)
    cluster = Cluster(limit)
    everyone = list(range(limit.workers))
    times = []
    for _ in range(rounds):
        present = cluster.write_at_once(everyone)
        assert len(present) == limit.workers
        times += present
    span = max(times) - min(times)
    leases = limit.lease * limit.workers
    assert span <= (len(times) + leases) * limit.interval


@settings(max_examples=60)
@given(limits, waves)
def test_each_worker_alone_has_its_share(limit, waves):
    cluster = Cluster(limit)
    cluster.memcached.is_away = True
    times = play(cluster, waves)
    check_windows(times, limit, more=limit.workers - 1)


@settings(max_examples=60)
@given(limits, waves, waves, waves)
def test_the_rate_holds_while_memcached_comes_and_goes(
    limit, before, during, after
):
    """But for a burst more, and what waits from before a change."""
    cluster = Cluster(limit)
    times = play(cluster, before)
    cluster.memcached.is_away = True
    times += play(cluster, during)
    cluster.memcached.values.clear()
    cluster.memcached.is_away = False
    cluster.find_memcached()
    times += play(cluster, after)
    leases = limit.lease * limit.workers
    waiting = limit.patience // (4 * limit.interval)
    burst = limit.burst // limit.interval
    more = 2 * (burst + limit.workers) + leases + waiting
    check_windows(times, limit, more)


@settings(max_examples=60)
@given(limits, waves, waves)
def test_a_restarted_memcached_costs_no_more_than_a_burst(
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
            'patience': 60 * SECOND,
            'workers': 2,
            **others,
        },
    )


def test_a_busy_worker_asks_once_for_many_writes():
    cluster = Cluster(limit_of(100, workers=1))
    for _ in range(300):
        cluster.now += SECOND // 100
        assert cluster.write(0) == cluster.now
    assert cluster.memcached.count < 60


def test_a_client_below_the_rate_costs_little_more_than_one_operation():
    cluster = Cluster(limit_of(20, workers=1))
    for _ in range(600):
        cluster.now += SECOND // 5
        assert cluster.write(0) == cluster.now
    assert cluster.memcached.count < 1.6 * 600


def test_a_worker_that_dies_costs_a_lease():
    limit = limit_of(100, burst=SECOND)
    cluster = Cluster(limit)
    for _ in range(50):
        cluster.now += SECOND // 100
        cluster.write(0)
    cluster.now += 2 * SECOND
    held = cluster.memcached.values[KEY] >> 12
    cluster.workers[0] = None
    times = [cluster.write(1) for _ in range(110)]
    without = 110 * limit.interval - limit.burst_of_idle
    assert max(times) - cluster.now <= without + LEASE
    assert held < cluster.now


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
def test_workers_that_start_at_once_share_what_there_is(workers, rate):
    cluster = Cluster(limit_of(rate, workers=workers))
    admitted = cluster.write_at_once([*range(workers)])
    assert len(admitted) >= min(workers, 60 * rate) - 1
    end = cluster.memcached.values[KEY] >> 12
    assert cluster.limit.is_plausible(end, cluster.now)


def test_a_quiet_worker_forgets_what_another_clock_told():
    cluster = Cluster(limit_of(10), (0, 0))
    cluster.memcached.values[CLOCK_KEY] = START + 3600 * SECOND
    cluster.write(0)
    cluster.now += SECOND
    cluster.write(0)
    del cluster.memcached.values[CLOCK_KEY]
    cluster.now += 60 * SECOND
    assert cluster.workers[0].clock.now() == cluster.now


def test_refused_writes_do_not_keep_others_out():
    cluster = Cluster(limit_of(1, burst=0, patience=SECOND // 2))
    assert cluster.write(0) == START
    for _ in range(100):
        assert cluster.write(0) is None
        assert cluster.write(1) is None
    cluster.now += SECOND
    assert cluster.write(1) == cluster.now
    cluster.now += SECOND
    assert cluster.write(0) == cluster.now


def test_a_refused_write_costs_memcached_nothing_when_it_is_known():
    cluster = Cluster(limit_of(0.01, burst=0, patience=SECOND))
    cluster.write(0)
    before = cluster.memcached.count
    for _ in range(10):
        assert cluster.write(0) is None
    assert cluster.memcached.count == before


def test_proxies_go_by_the_fastest_clock():
    skews = (0, 3 * SECOND)
    limit = limit_of(10, burst=0)
    cluster = Cluster(limit, skews)
    cluster.write(1)
    for _ in range(100):
        cluster.now += SECOND // 4
        for worker in (1, 0):
            time = cluster.write(worker)
    assert time - cluster.now < SECOND


def test_a_counter_that_someone_set_far_ahead_is_mended():
    limit = limit_of(10)
    cluster = Cluster(limit)
    cluster.write(0)
    cluster.memcached.values[KEY] += (86400 * SECOND) << 12
    cluster.now += SECOND
    assert cluster.write(1) == cluster.now
    assert cluster.write(0) == cluster.now + limit.interval


def test_an_elected_worker_that_dies_holds_nobody_up():
    cluster = Cluster(limit_of(10))
    cluster.memcached.values[f'{KEY}/jump/0'] = 1
    assert cluster.write(0) == START
    assert cluster.logger.counts['ratelimit.alone'] == 1


def test_what_a_listing_cost_more_is_counted_by_the_next():
    cluster = Cluster(limit_of(1, burst=0, workers=1))
    cluster.write(0)
    cluster.workers[0].charge(KEY, 2)
    cluster.now += SECOND
    assert cluster.write(0) == cluster.now + 2 * SECOND


class TestChange:
    def test_is_logged_once(self):
        cluster = Cluster(limit_of(1))
        cluster.memcached.is_away = True
        cluster.write_at_once([0] * 5)
        cluster.write_at_once([0] * 5)
        assert len(cluster.logger.lines) == 1
        assert cluster.logger.counts['ratelimit.fallback'] == 1

    def test_what_was_let_in_alone_is_booked_afterwards(self):
        limit = limit_of(1, burst=0)
        cluster = Cluster(limit)
        cluster.memcached.is_away = True
        alone = [cluster.write(0) for _ in range(4)]
        assert alone == [START + 2 * i * SECOND for i in range(4)]
        cluster.memcached.is_away = False
        cluster.find_memcached()
        assert cluster.write(0) == START + 4 * SECOND

    def test_what_waited_before_is_not_booked_again(self):
        """A moment without memcached while a container is busy."""
        limit = limit_of(10, workers=4)
        cluster = Cluster(limit)
        everyone = [0, 1, 2, 3] * 5
        times = []
        for second in range(60):
            cluster.memcached.is_away = second == 30
            cluster.find_memcached()
            times += cluster.write_at_once(everyone)
            cluster.now += SECOND
        check_windows(times, limit, limit.burst // limit.interval)
        check_all_used(times, limit)

    def test_alone_a_clock_that_is_set_back_holds_nobody_up(self):
        cluster = Cluster(limit_of(1, workers=1))
        cluster.memcached.is_away = True
        cluster.write(0)
        cluster.now -= 3600 * SECOND
        assert cluster.write(0) == cluster.now

    def test_alone_what_could_not_be_refused_counts(self):
        cluster = Cluster(limit_of(1, burst=0, workers=1))
        cluster.memcached.is_away = True
        cluster.write(0)
        cluster.workers[0].charge(KEY, 3)
        cluster.now += SECOND
        assert cluster.write(0) == cluster.now + 3 * SECOND
