# SPDX-License-Identifier: Apache-2.0
"""Unordered listings walked to their end, whatever else happens.

Shards are lists here, and the turn of a name is its digit, or the root's own
for a name with none.
"""

from hypothesis import given
from hypothesis import strategies as st

from shardmw.rows import Rows, rows_of
from shardmw.unordered import UnorderedPage

SHARDS = 4
ROOT = -1

names = st.text('0123ab', min_size=1, max_size=5)
limits = st.integers(1, 12)
expectations = st.sampled_from([0, 0.5, 3, 100])


def turn_of(name: str) -> int:
    return next((int(c) for c in name if c.isdigit()), SHARDS)


class Container:
    """Shards and a root that hold objects.

    :param strays: names that lie in the root in spite of their turn
    """

    def __init__(self, names, strays=()) -> None:
        self.places = {i: set() for i in (ROOT, *range(SHARDS))}
        for name in names:
            self.place_of(name).add(name)
        self.places[ROOT].update(strays)

    def place_of(self, name: str) -> set[str]:
        return self.places.get(turn_of(name), self.places[ROOT])

    def names(self) -> set[str]:
        return set().union(*self.places.values())

    def sources_of(self, turn: int) -> list[int]:
        return [ROOT] if turn == SHARDS else [ROOT, turn]

    def rows(self, source: int, marker: str, limit: int) -> Rows:
        found = sorted(n for n in self.places[source] if n > marker)
        return rows_of({'name': name} for name in found[:limit])

    def page(self, marker: str, limit: int, expected: float = 3) -> list[str]:
        """A page of the listing."""
        page = UnorderedPage(
            first=turn_of(marker) if marker else 0,
            turns=SHARDS + 1,
            limit=limit,
            sources_of=self.sources_of,
            turn_of=turn_of,
            whole=ROOT,
            expected=expected,
        )
        while asks := page.asks():
            for ask in asks:
                after = marker if ask.marker is None else ask.marker
                page.add(ask, self.rows(ask.source, after, ask.limit))
        assert page.can_be_continued()
        return page.rows().names


def walk(container: Container, limit: int, expected: float) -> list[str]:
    walked = []
    while page := container.page((walked or [''])[-1], limit, expected):
        walked += page
    return walked


@given(st.sets(names), st.sets(names), limits, expectations)
def test_a_walk_lists_every_object_once(stored, strays, limit, expected):
    container = Container(stored, strays)
    walked = walk(container, limit, expected)
    assert sorted(walked) == sorted(container.names())


@given(st.sets(names), st.sets(names), limits)
def test_all_pages_but_the_last_are_full(stored, strays, limit):
    container = Container(stored, strays)
    left = len(container.names())
    marker = ''
    while page := container.page(marker, limit):
        assert len(page) == min(limit, left)
        left -= len(page)
        marker = page[-1]


@given(
    st.sets(names),
    limits,
    st.lists(st.tuples(st.booleans(), names), max_size=30),
)
def test_what_is_there_all_the_while_is_listed_once(stored, limit, writes):
    container = Container(stored)
    lasting = set(stored) - {name for _is_put, name in writes}
    walked = []
    while page := container.page((walked or [''])[-1], limit):
        walked += page
        if writes:
            is_put, name = writes.pop()
            place = container.place_of(name)
            place.add(name) if is_put else place.discard(name)
    assert lasting <= set(walked)
    assert all(walked.count(name) == 1 for name in lasting)


@given(st.sets(names, min_size=1), limits)
def test_a_marker_need_not_exist_any_more(stored, limit):
    container = Container(stored)
    walked = []
    while page := container.page((walked or [''])[-1], limit):
        walked += page
        for place in container.places.values():
            place.difference_update(page)
    assert sorted(walked) == sorted(stored)


def test_a_page_asks_one_shard_and_the_root():
    container = Container([f'{i}{c}' for i in range(4) for c in 'abcdefgh'])
    asked = asks_of(container, limit=8, expected=8)
    assert [(ask.source, ask.limit) for ask in asked] == [(ROOT, 8), (0, 8)]


def test_many_small_shards_are_asked_at_once():
    container = Container([f'{i}a' for i in range(4)])
    asked = asks_of(container, limit=100, expected=1)
    turns = [ask.turn for ask in asked]
    assert turns == [0, 0, 1, 1, 2, 2, 3, 3, 4]


def asks_of(container: Container, limit: int, expected: float) -> list:
    page = UnorderedPage(
        0, SHARDS + 1, limit, container.sources_of, turn_of, ROOT, expected
    )
    asked = []
    while asks := page.asks():
        asked += asks
        for ask in asks:
            rows = container.rows(ask.source, ask.marker or '', ask.limit)
            page.add(ask, rows)
    return asked


def test_a_name_in_a_foreign_shard_ends_no_page():
    page = UnorderedPage(0, 5, 1, lambda turn: [turn], turn_of, ROOT, 1)
    (ask,) = page.asks()
    page.add(ask, rows_of([{'name': '3'}]))
    assert not page.can_be_continued()


def test_a_name_in_a_foreign_shard_is_passed_over_if_asked_to():
    page = UnorderedPage(
        0, 5, 1, lambda turn: [turn], turn_of, ROOT, 1, is_mixed=True
    )
    (ask,) = page.asks()
    page.add(ask, rows_of([{'name': '3'}]))
    (ask,) = page.asks()
    page.add(ask, rows_of([{'name': 'a0'}]))
    assert page.rows().names == ['a0']
    assert page.can_be_continued()
