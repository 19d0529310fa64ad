# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.bounded import (
    LONGEST_KEY,
    BoundedDict,
    SizedStore,
    cached_if_short,
)

COUNT, SECONDS = 4, 10

_keys = st.integers(0, 9)
_steps = st.lists(
    st.tuples(st.sampled_from(['set', 'pop']), _keys, st.integers(0, 7))
)


class Clock:
    now = 0

    def __call__(self):
        return self.now


@given(_steps)
def test_entries_that_were_set_last_are_kept_and_the_others_dropped(steps):
    clock = Clock()
    entries = BoundedDict(COUNT, SECONDS, clock)
    set_at = {}  # the last key is the one that was set last
    for number, (step, key, wait) in enumerate(steps):
        clock.now += wait
        known = set_at.pop(key, (None, None))[1]
        if step == 'set':
            entries[key] = number
            set_at[key] = clock.now, number
        else:
            assert entries.pop(key) in (known, None)
        young = [
            each
            for each, (at, _) in list(set_at.items())[-COUNT:]
            if clock.now - at < SECONDS
        ]
        assert set(young) <= set(entries) <= set(set_at)
        assert len(entries) == len(list(entries)) <= 2 * COUNT
        for each in entries:
            assert each in entries
            assert entries.get(each) == set_at[each][1]


def test_entries_that_are_too_old_are_dropped_when_others_are_set():
    clock = Clock()
    entries = BoundedDict(COUNT, SECONDS, clock)
    for number in range(4):
        entries[number] = number
        clock.now += SECONDS
    assert list(entries) == [2, 3]


def test_twice_as_many_entries_are_kept_as_asked_for():
    entries = BoundedDict(COUNT, SECONDS, Clock())
    for number in range(3 * COUNT):
        entries[number] = number
    assert list(entries) == [*range(COUNT, 3 * COUNT)]


def test_an_entry_that_is_set_again_is_kept_once():
    entries = BoundedDict(COUNT, SECONDS, Clock())
    for number in range(COUNT + 1):
        entries[number] = number
    entries[0] = 'new'
    assert list(entries) == [1, 2, 3, 4, 0]
    assert entries.pop(0) == 'new'
    assert 0 not in entries


def test_an_entry_that_is_set_anew_drops_no_others():
    entries = BoundedDict(COUNT, SECONDS, Clock())
    for number in [*range(2 * COUNT), *[2 * COUNT - 1] * COUNT]:
        entries[number] = number
    assert list(entries) == [*range(2 * COUNT)]


_owners = st.sampled_from('abc')


@given(st.lists(st.tuples(_owners, _keys, st.integers(1, 12))))
def test_no_owner_has_more_than_its_bytes_nor_all_more_than_theirs(steps):
    entries = SizedStore(10, 15)
    sizes = {}
    for owner, key, size in steps:
        dropped = entries.set(owner, f'{owner}{key}', size, size)
        sizes[f'{owner}{key}'] = size
        for each, value in dropped.items():
            assert sizes.pop(each) == value
            assert entries.get(each[0], each) is None
        for each, value in sizes.items():
            assert entries.get(each[0], each) == value
        mine = [value for each, value in sizes.items() if each[0] == owner]
        assert sum(mine) <= 10
        assert sum(sizes.values()) <= 15


def test_the_oldest_entry_of_an_owner_that_has_too_much_is_dropped():
    entries = SizedStore(10, 100)
    for key in 'xyx':
        entries.set('a', key, key, 5)
    entries.set('b', 'z', 'z', 5)
    assert entries.set('a', 'w', 'w', 5) == {'y': 'y'}


def test_the_owner_that_set_nothing_for_longest_loses_its_entries_first():
    entries = SizedStore(10, 15)
    for key in ('a1', 'b1', 'a2'):
        entries.set(key[0], key, key, 5)
    assert list(entries.set('c', 'c1', 'c1', 10)) == ['b1', 'a1']


def test_an_entry_that_is_larger_than_its_owner_may_have_is_not_kept():
    entries = SizedStore(10, 15)
    assert entries.set('a', 'x', 'x', 11) == {'x': 'x'}
    assert entries.get('a', 'x') is None


def test_a_value_that_replaces_another_one_takes_no_more_bytes():
    entries = SizedStore(10, 10)
    dropped = [entries.set('a', 'x', value, 5) for value in range(3)]
    assert dropped == [{}, {}, {}]


def test_a_missing_key_has_the_default_value():
    entries = BoundedDict(1)
    assert entries.get('a') is entries.pop('a') is None
    assert entries.get('a', 1) == entries.pop('a', 1) == 1
    assert 'a' not in entries


def test_entries_can_be_cleared():
    entries = BoundedDict(1)
    entries['a'] = entries['b'] = 1
    entries.clear()
    assert list(entries) == []


def test_results_for_short_texts_are_kept():
    @cached_if_short(1)
    def joined(*texts):
        return [*texts]

    assert joined.__name__ == 'joined'
    assert joined('a', None) is joined('a', None)
    long = 'c' * LONGEST_KEY
    assert joined('', long) is joined('', long)
    assert joined('a', long) == joined('a', long)
    assert joined('a', long) is not joined('a', long)
