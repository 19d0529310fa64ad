# SPDX-License-Identifier: Apache-2.0
"""The merge against Swift's own listing of the sorted whole.

The model is Swift's own container database: one with all rows, and one for
each source of the merge.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from shardmw.listing import ListingParams
from shardmw.paging import Page, first_share
from shardmw.placement import backing_object
from shardmw.rows import Rows, rows_of, to_json

SHARDS = 5

# Few letters, so that prefixes, delimiters and neighbours meet.
names = st.text('ab/0é', min_size=1, max_size=6)
# Uneven, so that a source runs out below the end of a page.
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


class Database:
    """A real container database."""

    def __init__(self, folder: Path) -> None:
        self.broker = ContainerBroker(
            str(folder / 'c.db'), account='a', container='c'
        )
        self.broker.initialize(Timestamp(1).internal, 0)

    def fill(self, names: list[str]) -> None:
        """Have it hold these objects and no others."""
        with self.broker.get() as conn:
            conn.execute('DELETE FROM object')
            conn.commit()
        self.broker.merge_items(
            [
                {
                    'name': name,
                    'created_at': Timestamp(1).internal,
                    'size': 1,
                    'content_type': 'text/plain',
                    'etag': 'etag',
                    'deleted': 0,
                }
                for name in names
            ]
        )

    def rows(self, limit: int, query: dict) -> list[dict]:
        found = self.broker.list_objects_iter(
            limit,
            query.get('marker', ''),
            query.get('end_marker', ''),
            query.get('prefix') or None,
            query.get('delimiter') or None,
            query.get('path'),
            reverse='reverse' in query,
            allow_reserved=True,
        )
        return [
            {'subdir': name}
            if content_type is None
            else {'name': name, 'last_modified': time, 'bytes': size}
            for name, time, size, content_type, _etag in found
        ]


def whole_query(wanted: ListingParams) -> dict:
    query = {
        'marker': wanted.marker,
        'end_marker': wanted.end_marker,
        'prefix': wanted.prefix,
        'delimiter': wanted.delimiter,
        'path': wanted.path,
    }
    return dict(query, reverse='true') if wanted.reverse else query


def merged(shards: list[Database], wanted: ListingParams) -> list[dict]:
    page = Page(range(len(shards)), wanted.limit, wanted.reverse)
    while asks := page.asks():
        for ask in asks:
            rows = shards[ask.source].rows(
                ask.limit, wanted.for_shard('c', ask)
            )
            page.add(ask, rows_of(rows, are_hidden=True))
    return json.loads(to_json(page.rows().texts))


@pytest.fixture(scope='module')
def databases(tmp_path_factory) -> list[Database]:
    """The whole's database, then those of the shards."""
    folder = tmp_path_factory.mktemp('databases')
    return [Database(folder / str(i)) for i in range(SHARDS + 1)]


@given(spread=spreads, wanted=params)
def test_a_merged_page_equals_the_page_of_the_whole(databases, spread, wanted):
    assert_alike(databases, spread, wanted)


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
def test_a_page_by_path_equals_the_page_of_the_whole(
    databases, spread, limit, marker, path
):
    wanted = ListingParams(limit=limit, marker=marker, path=path)
    assert_alike(databases, spread, wanted)


def assert_alike(databases, spread, wanted):
    whole, *shards = databases
    whole.fill(list(spread))
    for i, shard in enumerate(shards):
        shard.fill(
            [
                backing_object('c', name)
                for name, place in spread.items()
                if place == i
            ]
        )
    expected = whole.rows(wanted.limit, whole_query(wanted))
    assert merged(shards, wanted) == expected


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
    def rest(source, after):
        return [
            name
            for name in source
            if after is None or (name < after if reverse else name > after)
        ]

    page = Page(range(len(sources)), limit, reverse)
    while asks := page.asks():
        for ask in asks:
            after = ask.marker or marker
            rows = rest(sources[ask.source], after)[: ask.limit]
            page.add(ask, named(rows))
    return page.rows().names


def named(names) -> Rows:
    return rows_of({'name': name} for name in names)


@pytest.mark.parametrize('older_first', [True, False])
def test_of_one_name_in_two_places_the_newer_row_is_kept(older_first):
    older = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000000'}
    newer = {'name': 'a', 'last_modified': '2026-01-01T00:00:00.000001'}
    page = Page([0, 1], 10)
    first, second = page.asks()
    page.add(first, rows_of([older if older_first else newer]))
    page.add(second, rows_of([newer if older_first else older]))
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
