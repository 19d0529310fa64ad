# SPDX-License-Identifier: Apache-2.0
"""Tests of what the checker of histories accepts and reports."""

import math

import pytest

from test.history import History, Read, Shown, Write, smallest


def put(began, ended, size=1, **fields) -> Write:
    value = f'v{size}'
    return Write('o', 'PUT', began, ended, value, size, **fields)


def delete(began, ended, **fields) -> Write:
    return Write('o', 'DELETE', began, ended, **fields)


def post(began, ended, meta, **fields) -> Write:
    return Write('o', 'POST', began, ended, meta=meta, **fields)


def got(began, size=None, meta='') -> Read:
    shown = size and Shown(f'v{size}', meta)
    return Read('GET', began, began + 1, {'o': shown})


def listed(began, size=None) -> Read:
    shown = size and Shown(size=size)
    return Read('page', began, began + 1, {'o': shown}, is_listing=True)


EXPLAINED = {
    'an object that was put': ([put(1, 2)], got(3, 1)),
    'nothing before the first PUT': ([put(5, 6)], got(3)),
    'either state during a PUT': ([put(1, 2), put(3, 6, 7)], got(4, 1)),
    'either of two PUTs that met': ([put(1, 4), put(2, 3, 7)], got(5, 1)),
    'no object during a DELETE': ([put(1, 2), delete(3, 6)], got(4)),
    'a write without an answer': (
        [put(1, 2), delete(3, math.inf, is_sure=False)],
        got(9),
    ),
    'the state before a write without an answer': (
        [put(1, 2), delete(3, math.inf, is_sure=False)],
        got(9, 1),
    ),
    'the metadata of a POST': (
        [put(1, 2), post(3, 4, 'posted')],
        got(5, 1, 'posted'),
    ),
    'the metadata of a PUT after a POST': (
        [put(1, 2), post(3, 4, 'posted'), put(5, 6, meta='put')],
        got(7, 1, 'put'),
    ),
    'a row that has not come yet': ([put(1, 2, listed=9)], listed(3)),
    'a row that a tombstone has yet to remove': (
        [put(1, 2), delete(3, 4, listed=9)],
        listed(5, 1),
    ),
    'an old replica of an object': (
        [put(1, 2), put(3, 4, 7, stored=9)],
        got(5, 1),
    ),
    'an older size while an object is deleted': (
        [put(1, 2), put(3, 4, 7), delete(5, 8)],
        listed(6, 1),
    ),
    'an older size if a POST met a PUT': (
        [put(1, 2), put(3, 6, 7), post(4, 5, 'posted')],
        listed(8, 1),
    ),
}

VIOLATIONS = {
    'a lost object': ([put(1, 2)], got(3)),
    'an object that was overwritten': ([put(1, 2), put(3, 4, 7)], got(5, 1)),
    'an object that was deleted': ([put(1, 2), delete(3, 4)], got(5, 1)),
    'an object that was never put': ([put(1, 2)], got(3, 7)),
    'lost metadata': ([put(1, 2), post(3, 4, 'posted')], got(5, 1)),
    'metadata of before the last PUT': (
        [put(1, 2), post(3, 4, 'posted'), put(5, 6)],
        got(7, 1, 'posted'),
    ),
    'a missing row': ([put(1, 2)], listed(3)),
    'a row of a deleted object': ([put(1, 2), delete(3, 4)], listed(5, 1)),
    'a row that was overwritten': ([put(1, 2), put(3, 4, 7)], listed(5, 1)),
    'an old object that no replica has any more': (
        [put(1, 2), put(3, 4, 7, stored=5)],
        got(6, 1),
    ),
    'a listing of an overwritten object, though replicas are old': (
        [put(1, 2), put(3, 4, 7, stored=9)],
        listed(5, 1),
    ),
    'a missing row that had come': ([put(1, 2, listed=4)], listed(5)),
}


def history_of(writes: list[Write], read: Read) -> History:
    history = History()
    for write in writes:
        history.wrote(write)
    history.read(read)
    return history


@pytest.mark.parametrize('name', EXPLAINED)
def test_a_read_that_an_order_of_the_writes_explains_is_no_violation(name):
    assert history_of(*EXPLAINED[name]).violations() == []


@pytest.mark.parametrize('name', VIOLATIONS)
def test_a_read_that_no_order_of_the_writes_explains_is_a_violation(name):
    writes, read = VIOLATIONS[name]
    (violation,) = history_of(writes, read).violations()
    assert violation == (read, 'o')


PAGE = Read('page', 5, 6, {})
NAMES = ('a', 'b', 'c', 'd')


def existing() -> History:
    """Return a history with all names put."""
    history = History()
    for name in NAMES:
        history.wrote(Write(name, 'PUT', 1, 2, size=1))
    return history


def test_a_page_shows_names_between_its_marker_and_its_last_row():
    history = existing()
    history.page(PAGE, [('b', 1), ('c', 1)], NAMES, 'a', is_last=False)
    assert history.violations() == []


def test_the_last_page_shows_all_that_follows():
    history = existing()
    history.page(PAGE, [('b', 1), ('c', 1)], NAMES, 'a')
    assert [each.name for each in history.violations()] == ['d']


def test_a_reverse_page_ends_before_its_marker():
    history = existing()
    rows = [('c', 1), ('b', 1)]
    history.page(PAGE, rows, NAMES, 'd', is_last=False, is_reverse=True)
    assert history.violations() == []


@pytest.mark.parametrize(
    'listed', [['a', 'b', 'b', 'c', 'd'], ['a', 'c', 'b', 'd']]
)
def test_a_walk_shows_each_object_once_and_in_order(listed):
    history = existing()
    history.walked(PAGE._replace(what='walk'), listed, NAMES)
    (violation,) = history.violations()
    assert violation.name is None


def test_a_read_that_has_failed_is_a_violation():
    history = History()
    history.failed(Read('503', 1, 2, {}, by='me'))
    (violation,) = history.violations()
    assert history.text(violation) == '    1.000     2.000 me 503 shows '


def test_a_walk_shows_what_existed_all_the_time():
    history = existing()
    history.wrote(Write('c', 'DELETE', 5, 6))
    history.walked(PAGE._replace(what='walk'), ['a', 'b'], NAMES)
    assert [each.name for each in history.violations()] == ['d']


def test_the_shortest_history_has_only_the_writes_that_matter():
    writes = [put(1, 2), delete(3, 4), put(5, 6, 7), put(7, 8, 9)]
    history = history_of(writes, got(9, 7))
    (violation,) = history.violations()
    *steps, read = history.shortest(violation)
    assert (steps, read.what) == ([put(5, 6, 7), put(7, 8, 9)], 'GET')


def test_the_text_of_a_violation_tells_what_happened_meanwhile():
    history = history_of([put(1, 2, by='client 1')], got(5))
    history.note(0, 'too early')
    history.note(3, 'a server is killed')
    (violation,) = history.violations()
    assert history.text(violation).splitlines() == [
        '    1.000     2.000 client 1 PUT o v1 of 1 bytes',
        '    3.000           | a server is killed',
        '    5.000     6.000  GET shows o: missing',
    ]


def test_the_smallest_part_needs_all_that_is_left():
    assert smallest(range(20), lambda part: {3, 11} <= set(part)) == [3, 11]
