# SPDX-License-Identifier: Apache-2.0
import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench import options
from shardmw_bench.units import (
    Mix,
    SizeMix,
    SizeStep,
    parse_count,
    parse_duration,
    parse_mix,
    parse_size,
    parse_size_mix,
    size_text,
)


@pytest.mark.parametrize(
    ('text', 'size'),
    [('0', 0), ('1', 1), ('4K', 4096), ('4k', 4096), ('4KiB', 4096)]
    + [('1M', 1 << 20), ('2G', 2 << 30), (' 7B ', 7)],
)
def test_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [('10', 10), ('1.5s', 1.5), ('200ms', 0.2), ('2m', 120), ('1h', 3600)],
)
def test_duration(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


LETTERS = options.several('letters', click.Choice(('a', 'b')))


def converted(kind: click.ParamType, text: str) -> object:
    return kind.convert(text, None, None)


def test_several_values_stay_in_their_order():
    assert converted(options.COUNTS, '8, 1,32') == (8, 1, 32)
    assert converted(options.SHARDS, '32,0') == (32, 0)
    assert converted(options.RATES, '5,0.5') == (5, 0.5)
    assert converted(options.SIZES, '4M, 4K') == (4 << 20, 4 << 10)


def test_several_values_are_shown_as_they_are_typed():
    assert options.COUNTS.typed((8, 1)) == '8,1'
    assert options.RATES.typed((5.0, 0.5)) == '5,0.5'
    assert options.SIZES.typed((4 << 20, 1500)) == '4M,1500'


@pytest.mark.parametrize(
    ('kind', 'texts', 'message'),
    [
        (options.SIZES, ' 4K, 4K,x', 'is no size'),
        (options.SIZES, '4K,4096', 'has a value twice'),
        (options.COUNTS, ' 1,,2 a 1.5', 'is not a valid integer'),
        (options.COUNTS, '0 1,-1', 'is not in the range x>=1'),
        (options.COUNTS, '1,1', 'has a value twice'),
        (options.SHARDS, '-1', 'is not in the range x>=0'),
        (options.RATES, ' 5,x', 'is not a valid float'),
        (options.RATES, '0 -5', 'is not in the range x>0'),
        (options.RATES, '5,5', 'has a value twice'),
        (LETTERS, ' d a,,b', 'is not one of'),
    ],
)
def test_values_that_cannot_be_read_are_refused(kind, texts, message):
    for text in texts.split(' '):
        with pytest.raises(click.BadParameter, match=message):
            converted(kind, text)


sizes = st.integers(0, 1 << 42)
shares = st.integers(1, 100)
steps = st.tuples(st.integers(1, 1 << 30), st.integers(0, 1 << 30)).flatmap(
    lambda pair: st.builds(
        SizeStep, st.just(pair[0]), st.just(sum(pair)), shares
    )
)
mixes_of_sizes = st.lists(steps, min_size=1, max_size=4).map(
    lambda steps: SizeMix(tuple(steps))
)


@given(sizes)
def test_a_size_is_read_as_it_is_written(size):
    assert parse_size(size_text(size)) == size


@pytest.mark.parametrize(
    ('size', 'text'),
    [(0, '0'), (1, '1'), (1500, '1500'), (4096, '4K'), (64 << 20, '64M')],
)
def test_a_size_is_written_as_people_do(size, text):
    assert size_text(size) == text


def test_a_mix_of_one_size():
    mix = parse_size_mix('4K')
    assert {mix.size_of(n) for n in range(50)} == {4096}
    assert (mix.mean, mix.largest, mix.label) == (4096, 4096, '4K')


def test_a_mix_has_each_size_by_its_share():
    mix = parse_size_mix('1K:80,64K:15,1M:5')
    found = [mix.size_of(n) for n in range(5000)]
    assert 3800 < found.count(1 << 10) < 4200
    assert 600 < found.count(64 << 10) < 900
    assert 150 < found.count(1 << 20) < 350
    assert mix.mean == pytest.approx(0.8 * 2**10 + 0.15 * 2**16 + 0.05 * 2**20)


def test_a_range_has_as_many_small_sizes_as_large_ones():
    mix = parse_size_mix('1K-1M')
    found = [mix.size_of(n) for n in range(5000)]
    assert 2300 < sum(each < 32 << 10 for each in found) < 2700
    assert min(found) < 1100
    assert max(found) > 900 << 10
    assert mix.mean == pytest.approx(sum(found) / len(found), rel=0.1)


def test_the_mean_of_a_range_is_that_of_its_logarithms():
    assert parse_size_mix('1K-2K').mean == pytest.approx(1477.32, abs=0.01)


@given(mixes_of_sizes, st.integers(0, 10**9))
def test_a_size_is_one_of_the_mix_and_always_the_same(mix, number):
    size = mix.size_of(number)
    assert any(step.low <= size <= step.high for step in mix.steps)
    assert size <= mix.largest
    assert mix.size_of(number) == size


@given(mixes_of_sizes)
def test_a_mix_of_sizes_is_read_as_it_is_written(mix):
    again = parse_size_mix(mix.label)
    assert again.label == mix.label
    assert again.mean == pytest.approx(mix.mean)


def test_a_mix_has_each_operation_by_its_share():
    mix = parse_mix('write=20, read=70,head=5,delete=5')
    assert mix == Mix(20, 70, 5, 5)
    found = [mix.operation_of(n) for n in range(5000)]
    assert 3350 < found.count('read') < 3650
    assert 180 < found.count('delete') < 320


def test_a_mix_may_leave_operations_out():
    mix = parse_mix('read=1,head=1')
    assert {mix.operation_of(n) for n in range(100)} == {'read', 'head'}
    assert mix.label == 'read=1,head=1'
    assert parse_mix(mix.label) == mix


@pytest.mark.parametrize(
    ('text', 'count'),
    [('1', 1), ('1000', 1000), ('1,000,000', 10**6), ('10e6', 10**7)]
    + [('1M', 10**6), ('1.5k', 1500), (' 31250 ', 31250)],
)
def test_count(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ('parse', 'texts', 'message'),
    [
        (parse_size, ' K -1 1.5K 4X', 'is no size: write bytes, or 4K'),
        (parse_size, '1_K', 'is no size'),
        (parse_duration, ' 0 0s -1 s 1d 1e3', 'is no duration: write sec'),
        (parse_size_mix, ' : 4K: 4K- -4K', 'is no (mix of sizes|size): wr'),
        (parse_size_mix, '4K:5 1K,2K 1K:1,2K', 'is no mix of sizes: write'),
        (parse_size_mix, '1K:x,2K:1 1K:-1 1K-2K-3K', 'is no (mix|size)'),
        (parse_size_mix, '4K-1K 0-4K', 'write the smaller one first'),
        (parse_size_mix, '1K:0,2K:0', 'write a share above 0'),
        (parse_mix, ' read read= read=x read=-1', 'is no mix: write some of'),
        (parse_mix, 'cry=1 read=1,read=1', 'is no mix: write some of'),
        (parse_mix, 'read=0', 'above 0'),
        (parse_mix, 'write=1,read=5,delete=2', 'deletes more than it writes'),
        (parse_count, ' 0 -1 1.5 1,00 1G e6', 'is no count: write a whole'),
        (parse_count, '1e-3 1,000M, 1e300 1e400', 'is no count: write a'),
    ],
)
def test_a_count_that_cannot_be_read_is_refused(parse, texts, message):
    for text in texts.split(' '):
        with pytest.raises(ValueError, match=message):
            parse(text.replace('_', ' '))
