# SPDX-License-Identifier: Apache-2.0
"""Shortened queries, compared with complete ones."""

import json
from urllib.parse import parse_qsl

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shardmw.core.listing_params import LAST_CHARACTER, ListingParams
from shardmw.core.listing_rows import parse_rows
from shardmw.proxy.listing import long_queries
from shardmw.proxy.listing.long_queries import (
    NAME_LENGTH,
    brief_query,
    rows_of_listing,
)
from test.unit.container_databases import Database, query_of

#: The most characters of a name here.
LONGEST = 4

letters = 'ab/é\ud7ff\U0010ffff'
stored = st.sets(st.text('ab/', min_size=1, max_size=LONGEST), max_size=40)
stored_of_any = st.sets(
    st.text(letters, min_size=1, max_size=LONGEST), max_size=40
)
bounds = st.text('ab/', max_size=9) | st.text(letters, max_size=9)
prefixes = st.text('ab/', max_size=3) | bounds
listings = st.builds(
    ListingParams,
    limit=st.integers(0, 12) | st.just(100),
    marker=bounds,
    end_marker=bounds,
    prefix=prefixes,
    delimiter=st.sampled_from(['', '', '/', 'a', 'b/', '//', 'é', 'a/b/a']),
    path=st.none() | st.none() | prefixes,
    reverse=st.booleans(),
)


@pytest.fixture(scope='module')
def database(tmp_path_factory) -> Database:
    return Database(tmp_path_factory.mktemp('databases') / 'whole')


def parsed(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True))


def rows_of(database: Database, query: dict[str, str]) -> list[dict]:
    try:
        return database.rows(query)
    except ValueError:
        # Swift fails: the prefix or a subdir has no end.
        assume(False)


@settings(max_examples=500)
@given(stored | stored_of_any, listings)
def test_a_brief_query_finds_what_a_whole_one_finds(database, stored, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_queries, 'NAME_LENGTH', LONGEST)
        if database.names != list(stored):
            database.fill(stored)
        limit = {'limit': str(wanted.limit)}
        expected = rows_of(database, query_of(wanted) | limit)
        query = parsed(brief_query(wanted, None, wanted.limit))
        body = json.dumps(database.rows(query)).encode()
        found = rows_of_listing(wanted, parse_rows(body))
        assert [json.loads(b'{%b}' % text) for text in found.texts] == expected


def query_for(**params) -> dict[str, str]:
    return parsed(brief_query(ListingParams(9, **params), None, 9))


def test_a_brief_query_asks_for_no_more_rows():
    assert query_for(marker='a' * 8000)['limit'] == '9'


@pytest.mark.parametrize('parameter', ['marker', 'end_marker', 'delimiter'])
def test_a_parameter_that_is_longer_than_names_is_cut_or_left_out(parameter):
    query = query_for(**{parameter: 'a' * 8000})
    assert len(query.get(parameter, '')) <= NAME_LENGTH + 1


def test_no_rows_are_asked_for_if_the_prefix_is_longer_than_names():
    assert query_for(prefix='a' * 8000) == {'format': 'json', 'limit': '0'}


def test_a_marker_within_the_prefix_is_sent_without_it():
    assert 'prefix' not in query_for(prefix='a', marker='ab')


def test_a_prefix_behind_the_marker_is_sent():
    assert query_for(prefix='b', marker='a')['prefix'] == 'b'


def test_a_marker_before_the_prefix_is_cut_at_the_first_other_character():
    query = query_for(prefix='aab', marker='aaaaa', end_marker='bbbb')
    assert query['marker'] == 'aaa'


def test_pseudo_directories_need_all_bounds():
    params = {'prefix': 'a', 'marker': 'ab', 'end_marker': 'ac'}
    assert params.items() <= query_for(**params, delimiter='/').items()


def test_an_end_is_sent_with_a_prefix_that_has_no_end():
    last = LAST_CHARACTER
    assert query_for(prefix=f'a{last}', end_marker=f'a{last}b')['end_marker']
