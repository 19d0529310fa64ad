# SPDX-License-Identifier: Apache-2.0
from urllib.parse import parse_qsl

import pytest
from swift.common.swob import HTTPException, Request

from shardmw.core.listing_params import ListingParams
from shardmw.core.placement import NameRange
from shardmw.proxy.listing.params import params_of


def given(query: str) -> ListingParams:
    return params_of(Request.blank(f'/v1/a/c?{query}'))


def asked(query: str, marker: str | None = None, limit: int = 7) -> dict:
    return dict(
        parse_qsl(given(query).query(marker, limit), keep_blank_values=True)
    )


def test_a_shard_is_asked_for_its_share():
    assert asked('prefix=b&marker=a&end_marker=z&limit=100') == {
        'format': 'json',
        'limit': '7',
        'prefix': 'b',
        'marker': 'a',
        'end_marker': 'z',
    }


def test_a_shard_is_asked_again_after_the_last_name_that_it_gave():
    query = asked('marker=a&reverse=on', marker='m', limit=3)
    assert query == {
        'format': 'json',
        'limit': '3',
        'marker': 'm',
        'reverse': 'true',
    }


def test_an_empty_marker_replaces_the_clients():
    assert asked('marker=a', marker='') == {'format': 'json', 'limit': '7'}


def test_empty_parameters_ask_for_everything():
    query = asked('prefix=&marker=&end_marker=&delimiter=')
    assert query == {'format': 'json', 'limit': '7'}


def test_a_path_overrides_prefix_and_delimiter():
    query = asked('path=d/e&prefix=x&delimiter=y')
    assert query == {'format': 'json', 'limit': '7', 'path': 'd/e'}


def test_an_empty_path_is_asked_for_as_it_is():
    query = asked('path=')
    assert query == {'format': 'json', 'limit': '7', 'path': ''}


def test_a_shard_is_asked_for_pseudo_directories():
    query = asked('prefix=a&delimiter=/')
    assert (query['prefix'], query['delimiter']) == ('a', '/')


def test_a_shard_is_asked_up_to_where_the_page_probably_ends():
    query = given('end_marker=z').query('a', 7, 'm')
    assert dict(parse_qsl(query))['end_marker'] == 'm'


def test_without_parameters_all_names_are_listed_in_ascending_order():
    params = ListingParams(7)
    assert params == ListingParams(7, '', '', '', '', None, False, False)
    assert params.query(None, 7) == 'format=json&limit=7'
    assert params.names() == NameRange()


def test_a_query_is_quoted_as_swift_quotes_it():
    req = Request.blank('/v1/a/c?limit=7&prefix=%2F+%E2%98%83~&format=json')
    req.params = list(req.params.items())
    query = given(req.query_string).query(None, 7)
    assert sorted(query.split('&')) == sorted(req.query_string.split('&'))


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('', NameRange()),
        ('prefix=a&marker=b&end_marker=c', NameRange('a', 'b', 'c')),
        ('marker=c&end_marker=b&reverse=on', NameRange('', 'b', 'c')),
        ('prefix=x&path=a/b', NameRange('a/b/')),
        ('path=a//', NameRange('a/')),
        ('path=/', NameRange('/')),
        ('path=X', NameRange('X/')),
        ('prefix=x&path=', NameRange()),
        ('prefix=%2Fa', NameRange('/a')),
    ],
)
def test_a_query_has_a_range_of_names(query, names):
    assert given(query).names() == names


@pytest.mark.parametrize('character', ['%F4%8F%BF%BF', '%ED%9F%BF'])
def test_a_prefix_without_an_end_is_left_to_one_database(character):
    assert given(f'prefix=a{character}').has_unlistable_prefix()
    assert not given(f'prefix={character}a').has_unlistable_prefix()
    assert not given(f'path=a{character}').has_unlistable_prefix()


@pytest.mark.parametrize(
    ('query', 'is_unlistable'),
    [
        ('prefix=a%ED%9F%BF&end_marker=a%ED%9F%BFb', False),
        ('prefix=a%ED%9F%BF&marker=a%ED%9F%BFb&reverse=on', False),
        ('prefix=a%ED%9F%BF&marker=a%ED%9F%BFb', True),
        ('prefix=a%ED%9F%BF&end_marker=a%EE%80%80', True),
        ('prefix=a%F4%8F%BF%BF&end_marker=a', True),
        ('prefix=abc%ED%9F%BF&end_marker=abc', False),
        ('prefix=abc%ED%9F%BF&end_marker=abcd', False),
        ('prefix=abc%ED%9F%BF&end_marker=abd', True),
    ],
)
def test_an_end_before_that_of_the_prefix_makes_it_listable(
    query, is_unlistable
):
    assert given(query).has_unlistable_prefix() == is_unlistable


@pytest.mark.parametrize(
    ('query', 'has_levels', 'wants_order'),
    [
        ('prefix=a', False, False),
        ('delimiter=a', True, True),
        ('path=', True, True),
        ('reverse=on', False, True),
    ],
)
def test_levels_and_a_descending_listing_need_the_order_of_names(
    query, has_levels, wants_order
):
    assert given(query).has_levels() is has_levels
    assert given(query).wants_order() is wants_order


@pytest.mark.parametrize(
    ('query', 'is_unskippable'),
    [
        ('delimiter=a%ED%9F%BF', True),
        ('delimiter=a%F4%8F%BF%BF', True),
        ('delimiter=%ED%9F%BFa', False),
        ('delimiter=%ED%9F%BF&reverse=on', False),
        ('delimiter=%ED%9F%BF&path=a', False),
    ],
)
def test_a_delimiter_that_swift_cannot_skip_is_left_to_one_database(
    query, is_unskippable
):
    assert given(query).has_unskippable_delimiter() is is_unskippable


@pytest.mark.parametrize('query', ['limit=10001', 'prefix=%ff', 'marker=%ff'])
def test_values_that_swift_refuses_are_refused(query):
    with pytest.raises(HTTPException):
        given(query)


def test_object_versioning_gets_versions_in_order():
    assert given('allow_unordered=true').is_unordered
    assert not given('allow_unordered=true&versions').is_unordered
