# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.bench.units import (
    parse_choices,
    parse_counts,
    parse_duration,
    parse_rate,
    parse_rates,
    parse_size,
)


@pytest.mark.parametrize(
    ('text', 'size'),
    [('0', 0), ('1', 1), ('4K', 4096), ('4k', 4096), ('4KiB', 4096)]
    + [('1M', 1 << 20), ('2G', 2 << 30), (' 7B ', 7)],
)
def test_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize('text', ['', 'K', '-1', '1.5K', '4X', '1 K'])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match='is no size: write bytes, or 4K'):
        parse_size(text)


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [('10', 10), ('1.5s', 1.5), ('200ms', 0.2), ('2m', 120), ('1h', 3600)],
)
def test_duration(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize('text', ['', '0', '0s', '-1', 's', '1d', '1e3'])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match='is no duration: write seconds'):
        parse_duration(text)


def test_counts_stay_in_their_order():
    assert parse_counts('8, 1,32') == (8, 1, 32)


@pytest.mark.parametrize('text', ['', '0', '1,1', '1,,2', 'a', '1.5', '-1'])
def test_what_are_no_counts_is_refused(text):
    with pytest.raises(ValueError, match='is no list: write whole numbers'):
        parse_counts(text)


def test_rates_may_be_small():
    assert parse_rates('5,0.5') == (5, 0.5)


@pytest.mark.parametrize('text', ['', '0', '-5', 'nan', 'inf', '5,5', '5,x'])
def test_what_are_no_rates_is_refused(text):
    with pytest.raises(ValueError, match='is no list: write rates above 0'):
        parse_rates(text)


def test_a_single_rate_is_one_number():
    assert parse_rate('20') == 20
    with pytest.raises(ValueError, match='write one number'):
        parse_rate('20,30')


def test_choices_come_in_the_order_of_what_is_known():
    known = ('a', 'b', 'c')
    assert parse_choices('c, a', known) == ('a', 'c')


@pytest.mark.parametrize('text', ['', 'd', 'a,,b'])
def test_a_choice_that_is_unknown_is_refused(text):
    with pytest.raises(ValueError, match='is unknown: take some of a,b'):
        parse_choices(text, ('a', 'b'))
