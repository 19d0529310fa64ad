# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.common.swob import HTTPException, Request

from shardmw.listing import ListingParams
from shardmw.paging import Ask

FIRST = Ask(source=0, marker=None, limit=7)


def params_of(query: str) -> ListingParams:
    return ListingParams.of(Request.blank(f'/v1/a/c?{query}'))


def test_a_shard_is_asked_for_its_share_under_backing_names():
    query = params_of('prefix=b&marker=a&end_marker=z').for_shard('c', FIRST)
    assert query == {
        'format': 'json',
        'limit': 7,
        'prefix': '\0b',
        'marker': '\0a',
        'end_marker': '\0z',
        'delimiter': '',
    }


def test_a_shard_is_asked_again_from_the_last_name_that_it_gave():
    query = params_of('marker=a').for_shard('c', Ask(0, 'm', 3))
    assert query == {'format': 'json', 'limit': 3, 'marker': '\0m'}


def test_empty_parameters_ask_for_everything():
    query = params_of('prefix=&marker=&end_marker=&delimiter=')
    assert query.for_shard('c', FIRST) == {'format': 'json', 'limit': 7}


def test_a_path_overrides_prefix_and_delimiter():
    query = params_of('path=d/e&prefix=x&delimiter=y').for_shard('c', FIRST)
    assert query == {'format': 'json', 'limit': 7, 'path': '\0d/e'}


def test_an_empty_path_is_asked_for_as_it_is():
    query = params_of('path=').for_shard('c', FIRST)
    assert query == {'format': 'json', 'limit': 7, 'path': ''}


@pytest.mark.parametrize('character', ['%F4%8F%BF%BF', '%ED%9F%BF'])
def test_a_prefix_that_swift_fails_for_is_left_to_one_database(character):
    assert params_of(f'prefix=a{character}').has_unlistable_prefix()
    assert not params_of(f'prefix={character}a').has_unlistable_prefix()
    assert not params_of(f'path=a{character}').has_unlistable_prefix()


@pytest.mark.parametrize('query', ['limit=10001', 'prefix=%ff', 'marker=%ff'])
def test_what_swift_refuses_is_refused(query):
    with pytest.raises(HTTPException):
        params_of(query)
