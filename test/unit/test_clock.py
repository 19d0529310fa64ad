# SPDX-License-Identifier: Apache-2.0
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmw.clock import LOOK_BACK_SECONDS, STEP_SECONDS, SharedClock
from shardmw.gcra import MICROSECONDS

SECOND = MICROSECONDS
STEP = STEP_SECONDS * SECOND
START = 10**13


class Told:
    """The time in memcached."""

    def __init__(self) -> None:
        self.time = None

    def get(self, _key: str):
        return self.time

    def set(self, _key: str, time, _seconds: int) -> None:
        self.time = time


class Proxies:
    """Proxies whose clocks are off by so much."""

    def __init__(self, skews: list[int]) -> None:
        self.now = START
        self.told = Told()
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
                if clock.is_due():
                    clock.keep_in_step(self.told)

    def times(self) -> list[int]:
        return [clock.now() for clock in self.clocks]


skews = st.lists(st.integers(0, 3600 * SECOND), min_size=1, max_size=5)


@settings(max_examples=50)
@given(skews)
def test_all_go_by_the_fastest_clock_within_a_step_and_a_half(skews):
    proxies = Proxies(skews)
    proxies.run(3 * LOOK_BACK_SECONDS)
    times = proxies.times()
    assert max(times) == proxies.now + max(skews)
    assert max(times) - min(times) <= 1.5 * STEP


@settings(max_examples=50)
@given(st.integers(2 * SECOND, 3600 * SECOND))
def test_a_clock_that_is_set_right_is_followed(skew):
    proxies = Proxies([0, skew])
    proxies.run(2 * LOOK_BACK_SECONDS)
    proxies.skews[1] = 0
    proxies.told.time = None  # memcached forgets it after a while
    proxies.run(2 * LOOK_BACK_SECONDS)
    assert proxies.times() == [proxies.now] * 2


def test_what_was_read_long_ago_does_not_count():
    proxies = Proxies([0, 3600 * SECOND])
    proxies.run(5)
    proxies.now += 60 * SECOND
    assert proxies.times()[0] == proxies.now


def test_without_others_it_is_the_own_clock():
    proxies = Proxies([0])
    proxies.run(5)
    assert proxies.times() == [proxies.now]
