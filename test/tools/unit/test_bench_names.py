# SPDX-License-Identifier: Apache-2.0
"""The names of the objects in a container."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.errors import BenchError
from shardmw_bench.names import (
    FlatNames,
    ScatteredNames,
    TreeNames,
)

FLAT = st.builds(FlatNames, st.integers(0, 300), st.text('abc/☃', max_size=5))
TREES = st.builds(TreeNames, st.integers(0, 12), st.integers(0, 30))
LISTED = st.builds(
    lambda names: tuple(sorted(names)),
    st.sets(st.text('ab/☃', min_size=1, max_size=4)),
)
NAMES = st.one_of(FLAT, TREES, LISTED)


@given(NAMES)
def test_the_length_is_the_number_of_names(names):
    assert len(list(names)) == len(names)


@given(NAMES)
def test_an_index_gives_what_iteration_gives(names):
    assert [names[i] for i in range(len(names))] == list(names)


@given(NAMES)
def test_names_ascend_without_duplicates(names):
    every = [name.encode() for name in names]
    assert every == sorted(set(every))


@given(st.one_of(FLAT, TREES))
def test_no_name_is_beyond_the_last(names):
    for index in (-len(names) - 1, len(names)):
        with pytest.raises(IndexError):
            names[index]


@given(NAMES)
def test_names_can_be_sent_to_a_process(names):
    assert pickle.loads(pickle.dumps(names)) == names


def test_many_names_take_no_more_bytes_to_send_than_few():
    few, many = FlatNames(1), FlatNames(10**9)
    assert len(pickle.dumps(many)) < len(pickle.dumps(few)) + 10


@given(st.integers(0, 300), st.integers(0, 300))
def test_more_flat_names_begin_with_the_same_names(few, more):
    assert list(FlatNames(few + more))[:few] == list(FlatNames(few))


@pytest.mark.parametrize(
    'make',
    [
        lambda: FlatNames(10**10 + 1),
        lambda: TreeNames(10**4 + 1, 1),
        lambda: TreeNames(1, 10**6 + 1),
    ],
)
def test_more_names_than_the_digits_allow_are_refused(make):
    with pytest.raises(BenchError, match='are the most'):
        make()


@given(st.integers(1, 50), st.integers(1, 200))
def test_scattered_names_fall_between_the_others(count, uploads):
    others = FlatNames(count)
    scattered = ScatteredNames(others, 'x')
    names = [scattered[i] for i in range(uploads)]
    assert len(set(names)) == uploads
    assert not set(names) & set(others)
    assert all(name > others[0] for name in names)
    # and between all of them, not only some
    if uploads >= count:
        owners = {name.partition('-')[0] for name in names}
        assert owners == set(others)
