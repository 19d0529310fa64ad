# SPDX-License-Identifier: Apache-2.0
from shardmw.desk import Held
from shardmw.gcra import MICROSECONDS as SECOND
from shardmw.gcra import Limit

NOW = 60_000_000 * SECOND


def limit_of(interval: int, burst: int = 0, **others: int) -> Limit:
    return Limit(interval, burst, **{'patience': 60 * SECOND, **others})


class TestHeld:
    def test_slots_are_taken_in_order_until_they_are_too_old(self):
        held = Held()
        for age in (9, 5, 1):
            held.add(NOW - age)
        limit = limit_of(1, burst=5)
        assert held.take(NOW, limit) == NOW - 5
        assert held.take(NOW, limit) == NOW - 1
        assert held.take(NOW, limit) is None

    def test_slots_of_a_much_lower_rate_are_given_up(self):
        held = Held()
        held.add(NOW + 100 * SECOND)
        assert held.take(NOW, limit_of(1, patience=SECOND)) is None
        held.add(NOW + 100 * SECOND)
        slow = limit_of(100 * SECOND, patience=SECOND)
        assert held.take(NOW, slow) == NOW + 100 * SECOND

    def test_what_is_given_back_comes_in_order(self):
        held = Held()
        held.add(NOW + 4)
        for slot in (NOW + 1, NOW + 3, NOW + 2):
            held.give_back(slot)
        limit = limit_of(1)
        taken = [held.take(NOW, limit) for _ in range(4)]
        assert taken == [NOW + 1, NOW + 2, NOW + 3, NOW + 4]
        assert len(held) == 0

    def test_batches_grow_while_they_are_used_up_and_shrink_when_not(self):
        held = Held()
        limit = limit_of(10_000, burst=5 * SECOND)
        now, sizes = NOW, []
        for gap in (SECOND, 1, 1, 1, 1, 1, SECOND, SECOND):
            now += gap
            sizes.append(held.batch(1, now, now, limit))
        assert sizes == [1, 2, 4, 8, 10, 10, 5, 2]

    def test_a_batch_is_for_all_that_wait_and_are_in_reach(self):
        limit = limit_of(SECOND, workers=2, patience=60 * SECOND)
        assert Held().batch(20, NOW, NOW, limit) == 20
        assert Held().batch(50, NOW, NOW, limit) == 30
        assert Held().batch(50, NOW + 40 * SECOND, NOW, limit) == 10
        assert Held().batch(50, NOW + 90 * SECOND, NOW, limit) == 1
