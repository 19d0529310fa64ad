# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from shardmw.lru import LONGEST_KEY, LRU, cached_if_short

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
    entries = LRU(COUNT, SECONDS, clock)
    set_at = {}  # the key that was set last is the last one
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
    entries = LRU(COUNT, SECONDS, clock)
    for number in range(4):
        entries[number] = number
        clock.now += SECONDS
    assert list(entries) == [2, 3]


def test_a_missing_key_has_the_default_value():
    entries = LRU(1)
    assert entries.get('a') is entries.pop('a') is None
    assert entries.get('a', 1) == entries.pop('a', 1) == 1
    assert 'a' not in entries


def test_entries_can_be_cleared():
    entries = LRU(1)
    entries['a'] = entries['b'] = 1
    entries.clear()
    assert list(entries) == []


def test_results_for_short_texts_are_kept():
    @cached_if_short(1)
    def joined(*texts):
        return [*texts]

    assert joined('a', None) is joined('a', None)
    long = 'c' * LONGEST_KEY
    assert joined('', long) is joined('', long)
    assert joined('a', long) == joined('a', long)
    assert joined('a', long) is not joined('a', long)
