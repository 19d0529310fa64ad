# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.core.gcra import MICROSECONDS as SECOND
from shardmw.core.gcra import Limit
from shardmw.proxy.ratelimit.worker_state import LeasedSlots, WorkerState

NOW = 60_000_000 * SECOND


def limit_of(interval: int, burst: int = 0, **others: int) -> Limit:
    others = {'max_wait': 60 * SECOND, 'workers': 1, **others}
    return Limit(interval, burst, **others)


class TestLeasedSlots:
    def test_slots_are_taken_in_order_until_they_expire(self):
        leased = LeasedSlots()
        for age in (9, 5, 1):
            leased.add(NOW - age)
        limit = limit_of(1, burst=5)
        assert leased.take(NOW, limit) == NOW - 5
        assert leased.take(NOW, limit) == NOW - 1
        assert leased.take(NOW, limit) is None

    def test_slots_of_a_much_lower_rate_are_dropped(self):
        leased = LeasedSlots()
        leased.add(NOW + 100 * SECOND)
        assert leased.take(NOW, limit_of(1, max_wait=SECOND)) is None
        leased.add(NOW + 100 * SECOND)
        slow = limit_of(100 * SECOND, max_wait=SECOND)
        assert leased.take(NOW, slow) == NOW + 100 * SECOND

    def test_slots_that_are_put_back_are_taken_in_order(self):
        leased = LeasedSlots()
        leased.add(NOW + 4)
        for slot in (NOW + 1, NOW + 3, NOW + 2):
            leased.put_back(slot)
        limit = limit_of(1)
        taken = [leased.take(NOW, limit) for _ in range(4)]
        assert taken == [NOW + 1, NOW + 2, NOW + 3, NOW + 4]
        assert len(leased) == 0

    def test_batches_grow_while_they_are_used_up_and_shrink_otherwise(self):
        leased = LeasedSlots()
        limit = limit_of(10_000, burst=5 * SECOND)
        now, sizes = NOW, []
        for gap in (SECOND, 1, 1, 1, 1, 1, SECOND, SECOND):
            now += gap
            sizes.append(leased.batch_size(1, now, now, limit))
        assert sizes == [1, 2, 4, 8, 10, 10, 5, 2]

    def test_a_batch_serves_all_waiting_writes_within_the_longest_wait(self):
        limit = limit_of(SECOND, workers=2, max_wait=60 * SECOND)

        def size(waiting: int, ahead: int) -> int:
            end = NOW + ahead * SECOND
            return LeasedSlots().batch_size(waiting, end, NOW, limit)

        assert size(20, 0) == 20
        assert size(50, 0) == 30
        assert size(50, 40) == 10
        assert size(50, 90) == 1


class TestBacklog:
    @pytest.mark.parametrize(
        ('interval', 'age', 'taken'),
        [
            (SECOND // 10, 60 * SECOND, 600),
            (SECOND // 10, 61 * SECOND, 0),
            (100 * SECOND, 61 * SECOND, 1),
        ],
    )
    def test_is_reserved_as_far_as_it_delays_no_one_for_too_long(
        self, interval, age, taken
    ):
        state = WorkerState()
        state.add_backlog(1000, NOW - age)
        assert state.take_backlog(NOW, limit_of(interval)) == taken
        assert state.take_backlog(NOW, limit_of(interval)) == 0
