# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.names import shuffling_step
from shardmw_bench.units import Mix, fraction


@given(st.integers(0))
def test_a_fraction_is_always_the_same_and_below_one(number):
    assert 0 <= fraction(number) < 1
    assert fraction(number) == fraction(number)


def test_fractions_are_even():
    tenths = [int(10 * fraction(n)) for n in range(5000)]
    assert all(400 < tenths.count(each) < 600 for each in range(10))


@given(st.integers(0, 10**9), st.integers(1, 3))
def test_operations_of_a_few_requests_are_in_proportion(first, step):
    mix = Mix(write=1, read=2, head=1)
    numbers = range(first, first + 200 * step, step)
    found = [mix.operation_of(number) for number in numbers]
    assert 40 < found.count('write') < 60
    assert 85 < found.count('read') < 115


@given(st.integers(1, 2000))
def test_a_shuffle_has_each_index_once(total):
    step = shuffling_step(total)
    assert {n * step % total for n in range(total)} == {*range(total)}
