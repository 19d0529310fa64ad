# SPDX-License-Identifier: Apache-2.0
from shardmw.lru import LRU


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
