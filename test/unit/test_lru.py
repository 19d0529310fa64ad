# SPDX-License-Identifier: Apache-2.0
from shardmw.lru import LONGEST_KEY, LRU, cached_if_short


def test_entry_that_was_set_longest_ago_is_dropped():
    entries = LRU(2)
    for key in ('a', 'b', 'a', 'c'):
        entries[key] = key
    assert list(entries) == ['a', 'c']


def test_reading_an_entry_does_not_keep_it():
    entries = LRU(2)
    entries['a'] = entries['b'] = 1
    assert entries.get('a') == 1
    entries['c'] = 1
    assert 'a' not in entries


def test_setting_an_entry_again_replaces_its_value():
    entries = LRU(2)
    entries['a'] = 1
    entries['a'] = 2
    assert dict(entries) == {'a': 2}


def test_results_for_short_texts_are_kept():
    @cached_if_short(1)
    def joined(*texts):
        return [*texts]

    assert joined('a', None) is joined('a', None)
    long = 'c' * LONGEST_KEY
    assert joined('', long) is joined('', long)
    assert joined('a', long) == joined('a', long)
    assert joined('a', long) is not joined('a', long)
