# SPDX-License-Identifier: Apache-2.0
"""The merge, compared with Swift's own listing of all rows together.

One of Swift's container databases has all rows. Each source of the merge has
another one.
"""

import json
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.listing_page import Ask, Page, first_share, with_slack
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import Rows, parse_rows, rows_of, to_json
from test.unit.container_databases import Database, query_of

SHARDS = 5

# Few letters, so that prefixes, delimiters and neighbours meet.
names = st.text('ab/0é', min_size=1, max_size=6)
# Uneven, so that a source runs out before the end of a page.
places = st.sampled_from([*[0] * 12, *range(1, SHARDS)])
spreads = st.dictionaries(names, places, max_size=80)
params = st.builds(
    ListingParams,
    limit=st.integers(0, 40),
    marker=st.just('') | names,
    end_marker=st.just('') | names,
    prefix=st.just('') | names,
    delimiter=st.sampled_from(['', '/', 'a', 'b/', '//', 'é']),
    reverse=st.booleans(),
)


def merged(
    shards: list[Database], wanted: ListingParams, root: Database
) -> list[dict]:
    page = Page(range(len(shards)), wanted.limit, wanted.reverse)
    page.merge(parsed(root, query_of(wanted) | {'limit': str(wanted.limit)}))
    while asks := page.asks():
        for ask in asks:
            if not wanted.has_levels():
                ask = page.shortened(ask)
            query = wanted.query(ask.marker, ask.limit, ask.end)
            page.add(ask, parsed(shards[ask.source], dict(of_query(query))))
    return json.loads(to_json(page.rows().texts))


def of_query(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True))


def parsed(database: Database, query: dict[str, str]) -> Rows:
    return parse_rows(json.dumps(database.rows(query)).encode())


@pytest.fixture(scope='module')
def databases(tmp_path_factory) -> list[Database]:
    """Return the database of all rows, and those of root and shards."""
    folder = tmp_path_factory.mktemp('databases')
    return [Database(folder / str(i)) for i in range(SHARDS + 2)]


@given(spread=spreads, strays=st.sets(names, max_size=8), wanted=params)
def test_a_merged_page_equals_the_page_of_all_rows(
    databases, spread, strays, wanted
):
    assert_alike(databases, spread, strays, wanted)


# Without names that Swift overlooks next to a pseudo-directory.
path_spreads = spreads.map(
    lambda spread: {n: i for n, i in spread.items() if '0' not in n}
)


@given(
    spread=path_spreads,
    limit=st.integers(0, 40),
    marker=st.just('') | names,
    path=st.sampled_from(['', 'a', 'a/', 'b', 'a/b', '/', 'é']),
)
def test_a_page_by_path_equals_the_page_of_all_rows(
    databases, spread, limit, marker, path
):
    wanted = ListingParams(limit=limit, marker=marker, path=path)
    assert_alike(databases, spread, set(), wanted)


def assert_alike(databases, spread, strays, wanted):
    whole, root, *shards = databases
    whole.fill(spread.keys() | strays)
    root.fill(strays)
    for i, shard in enumerate(shards):
        shard.fill(name for name, place in spread.items() if place == i)
    query = query_of(wanted) | {'limit': str(wanted.limit)}
    assert merged(shards, wanted, root) == whole.rows(query)


@given(
    st.lists(
        st.lists(st.integers(0, 60), unique=True), min_size=1, max_size=6
    ),
    st.integers(1, 30),
    st.booleans(),
)
def test_pages_in_a_row_hold_every_name_once(numbers, limit, reverse):
    sources = [
        sorted((f'{n:03}' for n in source), reverse=reverse)
        for source in numbers
    ]
    everything = sorted({n for source in sources for n in source})
    listed = []
    marker = None
    while page := page_after(sources, limit, reverse, marker):
        listed += page
        marker = page[-1]
    assert listed == (everything[::-1] if reverse else everything)


def page_after(sources, limit, reverse, marker):
    def is_before(name, other):
        return name > other if reverse else name < other

    def between(source, after, end):
        return [
            name
            for name in source
            if (after is None or is_before(after, name))
            and (end is None or is_before(name, end))
        ]

    page = Page(range(len(sources)), limit, reverse)
    while asks := page.asks():
        for ask in map(page.shortened, asks):
            after = ask.marker or marker
            rows = between(sources[ask.source], after, ask.end)
            page.add(ask, named(rows[: ask.limit]))
    return page.rows().names


def named(names) -> Rows:
    return rows_of({'name': name} for name in names)


@pytest.mark.parametrize('is_older_first', [True, False])
def test_the_newer_of_two_rows_with_one_name_is_kept(is_older_first):
    older = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000000'}
    newer = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000001'}
    page = Page([0, 1], 10)
    first, second = page.asks()
    page.add(first, rows_of([older if is_older_first else newer]))
    page.add(second, rows_of([newer if is_older_first else older]))
    assert page.rows() == rows_of([newer])


@pytest.mark.parametrize('is_older_in_root', [True, False])
def test_the_newer_of_the_rows_in_root_and_shard_is_kept(
    is_older_in_root,
):
    older = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000000'}
    newer = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000001'}
    page = Page([0], 10)
    page.merge(rows_of([older if is_older_in_root else newer]))
    (ask,) = page.asks()
    page.add(ask, rows_of([newer if is_older_in_root else older]))
    assert page.rows() == rows_of([newer])


@pytest.mark.parametrize(
    ('sources', 'limit'),
    [(4, 10000), (32, 10000), (128, 10000), (4, 1000), (32, 1000)],
)
def test_a_full_page_asks_each_source_for_little_more_than_its_share(
    sources, limit
):
    asked = first_share(limit, sources) * sources
    assert limit <= asked <= 1.3 * limit


@pytest.mark.parametrize(
    ('expected', 'rows'), [(0, 1), (4, 9), (30, 42), (31, 39), (100, 121)]
)
def test_a_source_is_asked_for_two_deviations_more_or_a_quarter(
    expected, rows
):
    assert with_slack(expected) == rows


def test_the_only_source_is_asked_for_the_whole_page():
    assert first_share(1000, 1) == 1000


@pytest.mark.parametrize('reverse', [True, False])
def test_a_source_is_asked_again_in_proportion_to_its_rows(reverse):
    page = Page(range(3), 100, reverse)
    first, second, third = page.asks()
    numbers = [f'{i:02}' for i in range(20)][:: -1 if reverse else 1]
    page.add(first._replace(limit=10), named(numbers[::2]))
    page.add(second._replace(limit=10), named(numbers[1::2]))
    page.add(third, named([]))
    # of the 81 and 80 rows that the page lacks
    assert [(ask.source, ask.limit) for ask in page.asks()] == [
        (0, with_slack(10 * 81 / 19)),
        (1, with_slack(10 * 80 / 20)),
    ]


@pytest.mark.parametrize('reverse', [True, False])
def test_later_sources_are_asked_up_to_where_the_page_probably_ends(reverse):
    names = sorted((f'{n:05}' for n in range(40_000)), reverse=reverse)
    sources = [names[i::32] for i in range(32)]
    page = Page(range(32), 10_000, reverse)
    taken = 0
    for ask in page.asks():
        ask = page.shortened(ask)
        rows = sources[ask.source][: ask.limit]
        if ask.end is not None:
            rows = [
                n for n in rows if (n > ask.end if reverse else n < ask.end)
            ]
        page.add(ask, named(rows))
        taken += len(rows)
    assert page.asks() == []
    assert page.rows().names == names[:10_000]
    assert taken < 10_700 < 32 * first_share(10_000, 32)


def test_the_end_is_estimated_anew_when_twice_as_many_sources_are_known():
    page = Page(range(8), 80)
    asks = []
    for ask in page.asks():
        asks.append(page.shortened(ask))
        rows = [f'{n:02}-{ask.source}' for n in range(asks[-1].limit)]
        end = asks[-1].end
        page.add(asks[-1], named(n for n in rows if not end or n < end))
    assert [ask.limit for ask in asks] == [18, 18, *[80] * 6]
    assert [ask.end for ask in asks] == [
        *[None] * 2,
        *['15-0'] * 2,
        *['13-0'] * 4,
    ]


def test_the_first_source_can_show_where_the_page_probably_ends():
    page = Page(range(3), 9)
    first, second, _ = page.asks()
    page.add(first, named('01234567'))
    assert page.shortened(second) == Ask(1, None, 9, '7')


def test_an_end_that_was_too_early_has_sources_asked_again():
    page = Page(range(8), 80)
    asks = page.asks()
    for ask in asks[:2]:
        page.add(ask, named(f'{n:02}-{ask.source}' for n in range(ask.limit)))
    ask = page.shortened(asks[2])
    assert ask.end == '15-0'
    for ask in map(page.shortened, asks[2:]):
        page.add(ask, named([]))
    again = page.asks()
    assert [ask.source for ask in again] == [0, 1, 2, 3]
    assert [ask.end for ask in map(page.shortened, again)] == [None] * 4


def test_a_source_that_was_not_cut_off_is_asked_once():
    page = Page([0, 1], 10)
    for ask in page.asks():
        page.add(ask, named([f'{ask.source}']))
    assert page.asks() == []


def test_only_a_source_that_ran_out_below_the_end_is_asked_again():
    page = Page([0, 1], 4)
    first, second = page.asks()
    low = [f'a{i}' for i in range(first.limit)]
    high = [f'b{i}' for i in range(second.limit)]
    page = Page([0, 1], first.limit + 1)
    page.add(first, named(low))
    page.add(second, named(high))
    assert [ask.source for ask in page.asks()] == [0]
    assert page.asks()[0].marker == low[-1]


def test_a_source_that_gave_the_whole_page_is_not_asked_again():
    page = Page([0, 1], 4)
    first, second = page.asks()
    page.add(second, named(['b', 'c']))
    page.add(first._replace(limit=4), named(['a0', 'a1', 'a2', 'a3']))
    assert page.asks() == []


@pytest.mark.parametrize('reverse', [True, False])
def test_a_source_whose_rows_end_with_the_page_is_not_asked_again(reverse):
    page = Page([0, 1], 2, reverse)
    first, second = page.asks()
    page.add(second, named([]))
    page.add(first._replace(limit=2), named('ba' if reverse else 'ab'))
    assert page.asks() == []


def test_a_source_that_was_cut_off_by_its_limit_is_asked_again():
    page = Page(range(4), 100, is_wanted=lambda n: not 'a050' <= n <= 'a099')
    *early, late = page.asks()
    for ask, letter in zip(early, 'mno', strict=True):
        page.add(ask, named(f'{letter}{i:03}' for i in range(ask.limit)))
    ask = page.shortened(late)
    assert ask.end == 'o014'
    page.add(ask, named(f'a{i:03}' for i in range(100)))
    assert 3 in [each.source for each in page.asks()]


def test_a_source_that_was_asked_again_is_one_source_of_a_sample():
    page = Page([0], 10, is_wanted=lambda name: name.endswith('0'))
    for name in 'abc':
        (ask,) = page.asks()
        page.add(ask, named(f'{name}{i}' for i in range(ask.limit)))
    page.open([1])
    assert page.shortened(page.asks()[-1]).source == 1


def test_rows_of_the_root_ask_nothing():
    page = Page([0], 2)
    page.merge(named(['a', 'b']))
    (ask,) = page.asks()
    page.add(ask, named(['c']))
    assert page.asks() == []
    assert page.rows().names == ['a', 'b']
    assert page.row_count == 2


@pytest.mark.parametrize('reverse', [True, False])
def test_rows_that_are_not_wanted_are_replaced_by_others(reverse):
    stored = sorted((f'{i:02}' for i in range(20)), reverse=reverse)
    page = Page([0], 3, reverse, is_wanted=lambda name: int(name) % 5 == 0)
    while asks := page.asks():
        (ask,) = asks
        start = stored.index(ask.marker) + 1 if ask.marker else 0
        page.add(ask, named(stored[start : start + ask.limit]))
    expected = ['15', '10', '05'] if reverse else ['00', '05', '10']
    assert page.rows().names == expected


@pytest.mark.parametrize('reverse', [False, True])
def test_a_page_holds_few_rows_wherever_they_come_from(monkeypatch, reverse):
    monkeypatch.setattr('shardmw.core.listing_page.MOST_ROWS', 20)
    numbers = [f'{i:03}' for i in range(400)]
    limit, sources = 10, 8
    page = Page(range(sources), limit, reverse)
    for ask in page.asks():
        # as if all names had been chosen to come before the page's end
        rows = numbers[ask.source :: sources][:: -1 if reverse else 1]
        ask = ask._replace(limit=len(rows))
        page.add(ask, named(rows))
        assert len(page._names) == len(page._texts) <= 20
    assert not page.asks()
    assert page.rows().names == sorted(numbers, reverse=reverse)[:limit]


@pytest.mark.parametrize(
    ('reverse', 'first', 'second'),
    [(False, 'ab', 'ab'), (False, 'bc', 'a'), (True, 'ba', 'ba')],
)
def test_a_source_that_ignores_the_marker_is_not_asked_for_ever(
    reverse, first, second
):
    page = Page([0], 9, reverse)
    page.add(Ask(0, None, len(first)), named([*first]))
    (ask,) = page.asks()
    with pytest.raises(ValueError, match='after'):
        page.add(ask, named([*second]))
