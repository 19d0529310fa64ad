# SPDX-License-Identifier: Apache-2.0
"""Scans, compared with listings by one query of any length."""

import json
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmw.listing import scan as scan_module
from shardmw.listing.params import ListingParams
from shardmw.listing.rows import Rows, parse_rows, rows_of
from shardmw.listing.scan import QueryTooLong, Scan
from test.unit.container_databases import Database, query_of

# Few letters, so that names meet in subdirs.
names = st.text('ab/', min_size=1, max_size=5) | st.text(
    'ab/0é\U0010ffff', min_size=1, max_size=8
)
prefixes = names.filter(lambda name: not name.endswith('\U0010ffff'))
stored = st.sets(names, max_size=40)
limits = st.integers(0, 12) | st.just(100)
bounds = st.just('') | st.sampled_from(['a/', 'b/', 'a', 'aa/', '/']) | names
# Of so many bytes, the shortest query takes 36, and é takes 6.
query_limits = st.integers(36, 90)
listings = st.builds(
    ListingParams,
    limit=limits,
    marker=bounds,
    end_marker=bounds,
    prefix=st.sampled_from(['', 'a', 'a/']) | prefixes,
    delimiter=st.sampled_from(['', '/', '/', 'a', 'b/', '//', 'é']),
    reverse=st.booleans(),
)


@pytest.fixture(scope='module')
def database(tmp_path_factory) -> Database:
    return Database(tmp_path_factory.mktemp('databases') / 'whole')


def scanned(database: Database, scan: Scan, longest: int) -> list[dict]:
    found = []
    while scan.query is not None:
        assert len(scan.query) <= longest
        query = dict(parse_qsl(scan.query))
        body = json.dumps(database.rows(query)).encode()
        found += scan.add(parse_rows(body)).texts
    return [json.loads(b'{%b}' % text) for text in found]


def assert_alike(database, stored, wanted, longest):
    if database.names != list(stored):
        database.fill(stored)
    scan = Scan(
        wanted,
        wanted.marker,
        wanted.limit,
        lambda query: len(query) <= longest,
    )
    expected = database.rows(query_of(wanted) | {'limit': str(wanted.limit)})
    assert scanned(database, scan, longest) == expected


@given(stored, listings, query_limits)
def test_a_scan_lists_what_one_query_lists(database, stored, wanted, longest):
    assert_alike(database, stored, wanted, longest)


@given(
    # Without names that Swift overlooks next to a pseudo-directory.
    st.sets(names.filter(lambda name: '0' not in name), max_size=40),
    limits,
    bounds,
    bounds,
    st.sampled_from(['', 'a', 'a/', 'b', 'a/b', '/', 'é']),
    st.booleans(),
    query_limits,
)
def test_a_scan_by_path_lists_what_one_query_lists(
    database, stored, limit, marker, end_marker, path, reverse, longest
):
    wanted = ListingParams(
        limit, marker, end_marker, path=path, reverse=reverse
    )
    assert_alike(database, stored, wanted, longest)


@given(stored, listings, query_limits, st.integers(1, 4))
def test_a_scan_goes_on_behind_a_full_answer(
    database, stored, wanted, longest, listing_limit
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, 'CONTAINER_LISTING_LIMIT', listing_limit)
        try:
            assert_alike(database, stored, wanted, longest)
        except QueryTooLong:
            assert longest < len(longest_query(stored, wanted))


def longest_query(stored: set[str], wanted: ListingParams) -> str:
    """Return a query as long as any that a scan needs to go on."""
    bounds = {wanted.marker, wanted.prefix, *stored}
    return max(
        (wanted.query(name + '\U0010ffff', 9) for name in bounds), key=len
    )


#: Names that meet in subdirs, and that are neighbours of prefixes.
NAMES = [
    *('a', 'a/', 'a/1', 'a/2', 'a/b/', 'a/b/1', 'a/b/2', 'a//', 'a//1'),
    *('a1', 'ab', 'b', 'b/', 'b/1', 'b/1/2', 'c/1', 'é', 'é/', 'é/1'),
    *('a/\ud7ff', 'a/\ud7ffé', 'a/\U0010ffff', 'a/\U0010ffff\U0010ffffé'),
]  # fmt: skip
BY_LAST = NAMES[-1]
in_names = st.sampled_from(
    ['', '', 'a', 'a/', 'a/1', 'a/b/', 'a//', 'b', 'b/', 'é', *NAMES[-4:]]
)


in_listings = st.builds(
    ListingParams,
    limit=st.sampled_from([2, 100]),
    marker=in_names,
    end_marker=in_names,
    prefix=st.sampled_from(['', 'a', 'a/', 'é/', 'a/\ud7ffé', BY_LAST]),
    delimiter=st.sampled_from(['', '/', 'b/', 'é']),
    path=st.sampled_from([None, None, None, '', 'a', 'a/']),
    reverse=st.booleans(),
)


@settings(max_examples=600)
@given(in_listings, st.sampled_from([36, 44, 50, 57, 64, 200]))
def test_a_scan_of_some_names_lists_what_one_query_lists(
    database, wanted, longest
):
    assert_alike(database, NAMES, wanted, longest)


@settings(max_examples=600)
@given(in_listings, st.integers(1, 4))
def test_a_scan_of_some_names_goes_on_behind_a_full_answer(
    database, wanted, listing_limit
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, 'CONTAINER_LISTING_LIMIT', listing_limit)
        assert_alike(database, NAMES, wanted, 200)


def test_a_scan_without_limit_lists_everything(database):
    database.fill(['a', 'b1', 'b2', 'c'])
    scan = Scan(ListingParams(1, prefix='b'), '', None, lambda _query: True)
    found = scanned(database, scan, 100)
    assert [row['name'] for row in found] == ['b1', 'b2']


def test_a_marker_within_the_prefix_is_sent_without_it():
    scan = Scan(ListingParams(9, prefix='b'), 'b1', 9, lambda _query: True)
    assert scan.query == 'format=json&limit=9&marker=b1'


def test_a_prefix_behind_the_marker_is_sent_without_it():
    scan = Scan(ListingParams(9, prefix='b'), 'a', 9, lambda _query: True)
    assert scan.query == 'format=json&limit=9&prefix=b'


def test_a_large_subdir_is_passed_by(monkeypatch):
    monkeypatch.setattr(scan_module, 'CONTAINER_LISTING_LIMIT', 2)
    wanted = ListingParams(9, delimiter='/')
    scan = Scan(wanted, '', 9, lambda _query: True)
    rows = scan.add(rows_of([{'name': 'a/1'}, {'name': 'a/2'}]))
    assert rows == rows_of([{'subdir': 'a/'}])
    assert scan.query == 'format=json&limit=2&marker=a%2F%F4%8F%BF%BF'


@pytest.mark.parametrize(
    ('reverse', 'names', 'marker'),
    [
        (False, ['a/b/1', 'a/b/2'], 'a%2Fb%2F%F4%8F%BF%BF'),
        (True, ['a/b/2', 'a/b/1'], 'a%2Fb%2F'),
    ],
)
def test_a_scan_by_path_passes_a_large_directory_by(
    monkeypatch, reverse, names, marker
):
    monkeypatch.setattr(scan_module, 'CONTAINER_LISTING_LIMIT', 2)
    wanted = ListingParams(9, path='a', reverse=reverse)
    scan = Scan(wanted, '', 9, lambda _query: True)
    assert scan.add(rows_of([{'name': name} for name in names])).names == []
    assert dict(parse_qsl(scan.query))['marker'] == unquote(marker)


def asked_limits(wanted: ListingParams, names: list[str]) -> list[int]:
    """Return how many rows a scan asks for, of a source with these names."""
    limits = []
    scan = Scan(wanted, wanted.marker, wanted.limit, lambda _query: True)
    while scan.query is not None:
        query = dict(parse_qsl(scan.query))
        limits.append(int(query['limit']))
        after = [name for name in names if name > query.get('marker', '')]
        page = after[: limits[-1]]
        scan.add(Rows(page, [b''] * len(page)))
    return limits


def test_a_scan_asks_for_more_and_more_rows_while_it_finds_none():
    names = [f'a/{i:05}/x' for i in range(30_000)]
    limits = asked_limits(ListingParams(1, path='a'), names)
    assert limits[:4] == [1, 2, 4, 8]
    assert max(limits) == 10_000
    assert len(limits) < 20


def test_with_a_delimiter_a_scan_asks_for_no_more_rows_than_are_wanted():
    names = [f'{i:03}/x' for i in range(200)]
    assert asked_limits(ListingParams(50, delimiter='/'), names) == [50]


@pytest.mark.parametrize('last', ['\U0010ffff', '\ud7ff'])
@pytest.mark.parametrize('reverse', [False, True])
def test_a_long_prefix_is_sent_as_a_marker_before_it(reverse, last):
    prefix = 'logs/' + f'{last}a' * 600
    wanted = ListingParams(1, prefix=prefix, reverse=reverse)
    scan = Scan(wanted, '', 1, lambda query: len(query) <= 1000)
    query = dict(parse_qsl(scan.query))
    end = '\U0010ffff' if reverse else ''
    beginning = query['marker'].removesuffix(end)
    assert prefix.startswith(beginning)
    assert len(beginning) > 100
    assert query['limit'] == '10000'


@pytest.mark.parametrize('reverse', [False, True])
def test_a_prefix_that_container_servers_fail_at_is_not_sent(reverse):
    wanted = ListingParams(1, prefix='a\ud7ff', reverse=reverse)
    scan = Scan(wanted, '', 1, lambda _query: True)
    query = dict(parse_qsl(scan.query))
    assert query['marker'] == ('a\U0010ffff' if reverse else 'a')
    assert 'prefix' not in query


@pytest.mark.parametrize('parameter', ['marker', 'prefix'])
@pytest.mark.parametrize('reverse', [False, True])
def test_a_long_bound_is_shortened_in_a_few_steps(parameter, reverse):
    tried = []

    def fits(query):
        tried.append(query)
        return len(query) <= 1000

    wanted = ListingParams(9, reverse=reverse, **{parameter: '!' * 7800})
    scan = Scan(wanted, wanted.marker, 9, fits)
    assert 990 < len(scan.query) <= 1000
    assert len(tried) < 20


def test_a_scan_that_cannot_go_on_fails(monkeypatch):
    monkeypatch.setattr(scan_module, 'CONTAINER_LISTING_LIMIT', 2)
    scan = Scan(
        ListingParams(9), 'a' * 99 + '2', 9, lambda query: len(query) < 60
    )
    names = ['a' * 99 + '0', 'a' * 99 + '1']
    with pytest.raises(QueryTooLong):
        scan.add(Rows(names, [b'', b'']))
