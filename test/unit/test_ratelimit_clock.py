# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.gcra import MICROSECONDS as SECOND
from shardmw.proxy.ratelimit.clock import (
    OFFSET_SECONDS,
    SYNC_SECONDS,
    SharedClock,
)

#: The longest time between two reads of the shared time.
LONGEST_SYNC = 1.5 * SYNC_SECONDS * SECOND
START = 10**13


class SharedTime:
    """The shared time in memcached."""

    def __init__(self) -> None:
        self.time = None

    def get(self, _key: str):
        return self.time

    def set(self, _key: str, time, _seconds: int) -> None:
        self.time = time


class Proxies:
    """Proxies that share a memcached.

    :param skews: how far the clock of each is ahead, in microseconds
    """

    def __init__(self, skews: list[int]) -> None:
        self.now = START
        self.shared = SharedTime()
        self.skews = list(skews)
        self.clocks = [
            SharedClock(
                lambda i=i: self.now + self.skews[i],
                lambda: self.now / SECOND,
            )
            for i in range(len(skews))
        ]

    def run(self, seconds: int) -> None:
        for _ in range(4 * seconds):
            self.now += SECOND // 4
            for clock in self.clocks:
                if clock.is_sync_due():
                    clock.sync(self.shared)

    def times(self) -> list[int]:
        return [clock.now() for clock in self.clocks]


skews = st.lists(st.integers(0, 3600 * SECOND), min_size=1, max_size=5)


@given(skews)
def test_all_proxies_follow_the_fastest_clock_within_one_sync(skews):
    proxies = Proxies(skews)
    proxies.run(3 * OFFSET_SECONDS)
    times = proxies.times()
    assert max(times) == proxies.now + max(skews)
    assert max(times) - min(times) <= LONGEST_SYNC


@given(st.integers(2 * SECOND, 3600 * SECOND))
def test_after_a_fast_clock_is_corrected_all_proxies_follow(skew):
    proxies = Proxies([0, skew])
    proxies.run(2 * OFFSET_SECONDS)
    proxies.skews[1] = 0
    proxies.shared.time = None  # it expires in memcached
    proxies.run(2 * OFFSET_SECONDS)
    assert proxies.times() == [proxies.now] * 2


def test_an_offset_expires():
    proxies = Proxies([0, 3600 * SECOND])
    proxies.run(5)
    proxies.now += 60 * SECOND
    assert proxies.times()[0] == proxies.now


def test_a_single_proxy_follows_its_own_clock():
    proxies = Proxies([0])
    proxies.run(5)
    assert proxies.times() == [proxies.now]
