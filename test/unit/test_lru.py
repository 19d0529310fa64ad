# SPDX-License-Identifier: Apache-2.0
from shardmw.recent import Recent


def test_what_was_set_longest_ago_is_given_up():
    recent = Recent(2)
    for key in ('a', 'b', 'a', 'c'):
        recent[key] = key
    assert list(recent) == ['a', 'c']


def test_reading_keeps_nothing():
    recent = Recent(2)
    recent['a'] = recent['b'] = 1
    assert recent.get('a') == 1
    recent['c'] = 1
    assert 'a' not in recent
