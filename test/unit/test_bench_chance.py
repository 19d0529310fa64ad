# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench.load.chance import even_fraction, fraction, shuffling_step


@given(st.integers(0), st.sampled_from([b'', b'size']))
def test_a_fraction_is_always_the_same_and_below_one(number, purpose):
    assert 0 <= fraction(number, purpose) < 1
    assert fraction(number, purpose) == fraction(number, purpose)


def test_fractions_are_even():
    tenths = [int(10 * fraction(n, b'')) for n in range(5000)]
    assert all(400 < tenths.count(each) < 600 for each in range(10))


@given(st.integers(0, 10**9), st.integers(1, 3))
def test_even_fractions_of_a_few_are_even(first, step):
    numbers = range(first, first + 200 * step, step)
    tenths = [int(10 * even_fraction(number)) for number in numbers]
    assert all(15 < tenths.count(each) < 25 for each in range(10))


def test_purposes_tell_nothing_about_each_other():
    small = [n for n in range(5000) if fraction(n, b'a') < 0.5]
    also = sum(fraction(n, b'b') < 0.5 for n in small)
    assert 0.45 < also / len(small) < 0.55


@given(st.integers(1, 2000))
def test_a_shuffle_gets_everywhere_once(total):
    step = shuffling_step(total)
    assert {n * step % total for n in range(total)} == {*range(total)}
