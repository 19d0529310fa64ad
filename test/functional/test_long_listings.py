# SPDX-License-Identifier: Apache-2.0
"""Listings whose queries nearly fill a request line."""

from itertools import count, islice
from urllib.parse import quote, urlencode

import pytest

from shardmw.core.placement import shard_of
from test.functional.alike import make_twins, masked
from test.functional.client import Client
from test.functional.conftest import USER, Pair

SHARDS = 2
PREFIX = '文' * 439 + '/'
#: Names in one shard, too long to be a query's marker beside the prefix.
NAMES = tuple(
    islice(
        (
            name
            for name in (PREFIX + '件' * 60 + f'{i:03}' for i in count())
            if shard_of(name, SHARDS) == 0
        ),
        40,
    )
)
PARAMETERS = {
    'prefix': {'prefix': PREFIX},
    'reverse': {'prefix': PREFIX, 'reverse': 'true'},
    'end_marker': {'prefix': PREFIX[:380], 'end_marker': NAMES[35]},
    'marker': {'prefix': PREFIX[:380], 'marker': NAMES[5]},
    'delimiter': {'prefix': PREFIX, 'delimiter': '7'},
    'delimiter and reverse': {
        'prefix': PREFIX,
        'delimiter': '7',
        'reverse': 'true',
    },
    'path': {'path': PREFIX[:-1]},
}
#: The parameters that take a name after all others.
LAST_NAMES = {
    'prefix': 'end_marker',
    'reverse': 'marker',
    'delimiter': 'end_marker',
    'delimiter and reverse': 'marker',
    'path': 'end_marker',
}


@pytest.fixture(scope='module')
def twins(login) -> Pair:
    """A plain and a sharded container with the same objects in them."""
    owner = login(USER)
    twins = make_twins(owner, SHARDS)
    for container in twins:
        for name in NAMES:
            assert owner.put(container, name).status == 201
    return twins


@pytest.fixture(params=[{}, {'X-Newest': 'true'}], ids=['', 'newest'])
def headers(request) -> dict[str, str]:
    """Headers of listings: X-Newest reads each shard in its own requests."""
    return request.param


def assert_alike(
    client: Client, twins: Pair, query: dict, headers: dict | None = None
) -> int:
    """Compare the answers of both containers and return their status."""
    query = {'format': 'json', **query}
    plain, sharded = (
        masked(client.get(container, query=query, headers=headers), container)
        for container in twins
    )
    assert sharded == plain
    return plain.status


@pytest.mark.parametrize('name', PARAMETERS)
@pytest.mark.parametrize('limit', [1, 30, 1000])
def test_names_of_hundreds_of_characters_are_listed(
    client, twins, name, limit, headers
):
    query = {**PARAMETERS[name], 'limit': limit}
    assert assert_alike(client, twins, query, headers) == 200


@pytest.mark.parametrize('limit', [3, 30])
def test_long_names_are_listed_in_any_order(client, twins, limit):
    params = {'prefix': PREFIX[:380], 'allow_unordered': 'true'}
    walked = []
    while page := client.listing(
        twins.sharded, limit=limit, marker=(walked or [''])[-1], **params
    ).names():
        walked += page
    assert sorted(walked) == sorted(NAMES)


@pytest.mark.parametrize('name', LAST_NAMES)
@pytest.mark.parametrize('missing', [40, 60, 90, 120, 150, 180])
def test_a_query_that_barely_fits_is_answered_as_by_a_plain_container(
    client, twins, name, missing, headers
):
    query = longest_query(client, twins, name, missing)
    assert assert_alike(client, twins, query, headers) == 200
    assert client.listing(twins.sharded, **query).names()


@pytest.mark.parametrize('name', LAST_NAMES)
@pytest.mark.parametrize('missing', [0, 20])
def test_a_query_that_is_too_long_is_answered_as_by_a_plain_container(
    client, twins, name, missing
):
    query = longest_query(client, twins, name, missing)
    assert assert_alike(client, twins, query) >= 400


def longest_query(
    client: Client, twins: Pair, name: str, missing: int
) -> dict:
    """Return the longest query for a container server's request line.

    :param missing: how many bytes of the line it leaves unused
    """
    query = {**PARAMETERS[name], LAST_NAMES[name]: '龍', 'limit': 30}
    line = f'GET /d1/1023/{client.account}/{twins.plain}? HTTP/1.1\r\n'
    length = len(line) + len(urlencode({'format': 'json', **query}))
    characters, rest = divmod(8192 - missing - length, len(quote('龍')))
    query[LAST_NAMES[name]] += '龍' * characters + 'a' * rest
    return query


def test_a_query_that_needs_no_quotes_is_answered_as_by_a_plain_container(
    client, twins
):
    line = f'GET {client.account_path}/{twins.plain}?prefix= HTTP/1.1\r\n'
    prefix = '%61' * ((8191 - len(line)) // 3)
    plain, sharded = (
        masked(client.get(container, query=f'prefix={prefix}'), container)
        for container in twins
    )
    assert sharded == plain
    assert plain.status == 204
