# SPDX-License-Identifier: Apache-2.0
"""Unordered listings, read page by page to their end.

Shards are sets in these tests, and a name belongs to the shard of its first
digit.
"""

from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.listing_rows import Rows, rows_of
from shardmw.core.unordered_page import Strays, UnorderedPage

SHARDS = 4
ROOT = -1

names = st.text('0123ab', min_size=1, max_size=5)
limits = st.integers(1, 12)
expectations = st.sampled_from([0, 0.5, 3, 100])


def shard_of(name: str) -> int:
    return next((int(c) for c in name if c.isdigit()), 0)


def named(names) -> Rows:
    return rows_of({'name': name} for name in names)


class Container:
    """Shards and a root that hold objects.

    :param strays: names in the root
    :param misplaced: names in a wrong shard
    """

    def __init__(self, names, strays=(), misplaced=()) -> None:
        self.places = {i: set() for i in (ROOT, *range(SHARDS))}
        for name in names:
            self.places[shard_of(name)].add(name)
        for name in misplaced:
            self.places[(shard_of(name) + 1) % SHARDS].add(name)
        self.places[ROOT].update(strays)
        self.asked = []

    def rows(self, place: int, marker: str, limit: int) -> Rows:
        found = sorted(n for n in self.places[place] if n > marker)
        return named(found[:limit])

    def strays(self, marker: str, limit: int, read_limit: int = 5) -> Strays:
        """Read the root in small pages, as far as a page of rows needs."""
        first = shard_of(marker) if marker else 0
        strays = Strays(first, marker, limit, shard_of)
        after = ''
        while rows := self.rows(ROOT, after, read_limit):
            strays.add(rows)
            if len(rows.names) < read_limit or strays.fill_page:
                break
            after = rows.names[-1]
        return strays

    def page(self, marker: str, limit: int, expected: float = 3) -> list[str]:
        """Return a page of the listing."""
        strays = self.strays(marker, limit)
        page = UnorderedPage(SHARDS, expected, strays)
        while asks := page.asks():
            self.asked += asks
            for ask in asks:
                after = marker if ask.marker is None else ask.marker
                page.add(ask, self.rows(ask.source, after, ask.limit))
        assert page.asks() == []
        assert page.can_be_continued()
        return page.rows().names

    def walk(self, limit: int, expected: float = 3) -> list[str]:
        """Return the names on all pages."""
        walked = []
        while page := self.page((walked or [''])[-1], limit, expected):
            walked += page
        return walked

    def walk_like_s3api(self, limit: int) -> list[str]:
        """Return the names on all pages, as s3api reads them.

        s3api asks for one row more than it shows, to see if there are more.
        """
        walked, is_truncated = [], True
        while is_truncated:
            page = self.page((walked or [''])[-1], limit + 1)
            is_truncated = len(page) > limit
            walked += page[:limit]
            assert len(walked) == len(set(walked))
        return walked


@given(st.sets(names), st.sets(names), limits, expectations)
def test_every_object_is_listed_once(stored, strays, limit, expected):
    walked = Container(stored, strays).walk(limit, expected)
    assert sorted(walked) == sorted(stored | strays)


@given(st.sets(names), st.sets(names), limits)
def test_names_come_by_shard_and_in_their_order(stored, strays, limit):
    walked = Container(stored, strays).walk(limit)
    assert walked == sorted(walked, key=lambda name: (shard_of(name), name))


@given(st.sets(names), st.sets(names), limits)
def test_all_pages_but_the_last_are_full(stored, strays, limit):
    container = Container(stored, strays)
    left = len(stored | strays)
    marker = ''
    while page := container.page(marker, limit):
        assert len(page) == min(limit, left)
        left -= len(page)
        marker = page[-1]


@given(st.sets(names), st.sets(names, max_size=8), limits)
def test_misplaced_rows_hide_no_other(stored, misplaced, limit):
    walked = Container(stored, misplaced=misplaced - stored).walk(limit)
    assert stored <= set(walked)
    assert len(walked) == len(set(walked))


def test_a_misplaced_row_is_listed_if_pages_begin_after_later_rows():
    container = Container(['2d', '2e'], misplaced=['1c'])
    assert container.page('', limit=10) == ['1c', '2d', '2e']


@given(st.sets(names), st.sets(names, max_size=8), limits)
def test_misplaced_rows_hide_no_other_from_s3api(stored, misplaced, limit):
    container = Container(stored, misplaced=misplaced - stored)
    assert stored <= set(container.walk_like_s3api(limit))


@given(
    st.sets(names),
    limits,
    st.lists(st.tuples(st.booleans(), names), max_size=30),
)
def test_objects_that_exist_all_the_time_are_listed_once(
    stored, limit, writes
):
    container = Container(stored)
    lasting = set(stored) - {name for _is_put, name in writes}
    walked = []
    while page := container.page((walked or [''])[-1], limit):
        walked += page
        if writes:
            is_put, name = writes.pop()
            place = container.places[shard_of(name)]
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


def test_a_page_asks_one_shard():
    container = Container([f'{i}{c}' for i in range(4) for c in 'abcdefgh'])
    container.page('', limit=8, expected=8)
    assert [(ask.source, ask.limit) for ask in container.asked] == [(0, 8)]


def test_many_small_shards_are_asked_at_once():
    container = Container([f'{i}a' for i in range(4)])
    container.page('', limit=100, expected=1)
    assert [ask.source for ask in container.asked] == [0, 1, 2, 3]


def asked_in_turn(
    expected: float, limit: int, found: list[int]
) -> list[list[int]]:
    """Return which of 64 shards a page asks in each round of requests.

    :param found: how many rows each shard has in the first round, and so on
    """
    strays = Strays(0, '', limit, lambda name: int(name[:2]))
    page = UnorderedPage(64, expected, strays)
    rounds = []
    for count in found:
        asks = page.asks()
        rounds.append([ask.source for ask in asks])
        for ask in asks:
            names = [f'{ask.source:02}{i:03}' for i in range(count)]
            page.add(ask, named(names))
    return rounds


def test_as_many_shards_are_asked_as_the_page_probably_needs():
    rounds = asked_in_turn(10, 100, [4, 3, 0, 0])
    assert rounds == [[0], [*range(1, 10)], [*range(10, 33)], [*range(33, 64)]]


def test_twice_as_many_shards_are_asked_after_empty_ones():
    rounds = asked_in_turn(20, 100, [1, 0, 0])
    assert rounds == [[0], [1, 2, 3, 4], [*range(5, 13)]]


def test_one_shard_is_asked_if_each_has_more_rows_than_the_page():
    assert asked_in_turn(200, 100, [1, 95, 0]) == [[0], [1], [2]]


def test_shards_of_few_rows_are_expected_to_have_one():
    assert asked_in_turn(0.1, 40, [4, 0]) == [[0], [*range(1, 37)]]


def test_only_the_shard_of_the_marker_is_asked_with_it():
    container = Container([f'{i}a' for i in range(4)])
    container.page('1', limit=100, expected=1)
    markers = [(ask.source, ask.marker) for ask in container.asked]
    assert markers == [(1, None), (2, ''), (3, '')]


def test_the_root_is_read_only_as_far_as_the_page_needs_it():
    strays = Strays(1, '1c', 2, shard_of)
    strays.add(named(['1a', '1d', '2a']))
    assert not strays.fill_page
    strays.add(named(['2b', '2c', '3a', '3b', '1e']))
    assert strays.fill_page


def test_no_more_strays_are_kept_than_a_page_has():
    strays = Strays(1, '', 3, shard_of)
    strays.add(named(['0a', '1a', '2a', '2b', '2c', '3a']))
    kept = [strays.of(shard) for shard in range(SHARDS)]
    assert kept == [*map(named, [[], ['1a'], ['2a', '2b'], []])]
