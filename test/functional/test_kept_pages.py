# SPDX-License-Identifier: Apache-2.0
"""Listings whose pages are kept show every write, of either proxy."""

import time

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Client
from test.functional.conftest import USER, make_sharded

NAMES = [f'{number:03}' for number in range(40)]
LIMIT = 5
#: A page that is kept when the walk has come as far as the one before.
AHEAD = slice(20, 25)

#: The longest that a mark of a write lasts: twice as long as pages do, with a
#: second for each and for memcached to answer.
MARK_SECONDS = 14

WRITES = ('PUT', 'DELETE', 'overwrite', 'POST')
AGAIN = 'again'


@pytest.fixture(scope='module')
def proxies(tmp_path_factory):
    """Clients of the same user by two proxies."""
    settings = {
        'shardmw.listing_cache_seconds': '4',
        'shardmw.head_cache_seconds': '1',
    }
    options = ClusterOptions(proxies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('page-cache'), options) as cluster:
        key = cluster.users[USER]
        client = Client.login(cluster.auth_url, USER, key)
        yield [client.on(url) for url in cluster.proxy_urls]


@pytest.fixture(scope='module')
def containers(proxies):
    """A container for each kind of write, which nobody writes to any more."""
    made = {each: make_sharded(proxies[0]) for each in (*WRITES, AGAIN)}
    for container in made.values():
        for name in NAMES:
            assert proxies[0].put(container, name, b'x').status == 201
        # So that memcached is known to have marks.
        proxies[1].listing(container, limit=LIMIT, marker=NAMES[0])
    time.sleep(MARK_SECONDS)
    for container in made.values():
        proxies[1].listing(container, limit=LIMIT, marker=NAMES[0])
    return made


def rows(client: Client, container: str, marker: str) -> list[tuple]:
    answer = client.listing(container, limit=LIMIT, marker=marker)
    assert answer.status == 200
    return [(row['name'], row['bytes']) for row in answer.json()]


def walk_to(client: Client, container: str, marker: str) -> None:
    """Ask for all pages up to one that ends with a name."""
    last = ''
    while last != marker:
        last = rows(client, container, last)[-1][0]


def test_a_write_shows_in_the_same_page(proxies, containers):
    reader, writer = proxies
    container = containers[AGAIN]
    first = [(name, 1) for name in NAMES[:LIMIT]]
    for _again in range(2):
        assert rows(reader, container, '') == first
    assert writer.put(container, '000a', b'xy').status == 201
    assert rows(reader, container, '')[:2] == [first[0], ('000a', 2)]


@pytest.mark.parametrize('write', WRITES)
def test_a_write_shows_in_the_next_page(proxies, containers, write):
    walker, writer = proxies
    container = containers[write]
    marker = NAMES[AHEAD.start - 1]
    walk_to(walker, container, marker)
    expected = [(name, 1) for name in NAMES[AHEAD]]
    assert rows(walker, container, marker) == expected
    name = NAMES[AHEAD.start + 1]
    if write == 'PUT':
        assert writer.put(container, f'{name}a', b'xy').status == 201
        expected[2:] = [(f'{name}a', 2), *expected[2:-1]]
    elif write == 'DELETE':
        assert writer.delete(container, name).status == 204
        expected = [*expected[:1], *expected[2:], (NAMES[AHEAD.stop], 1)]
    elif write == 'overwrite':
        assert writer.put(container, name, b'xyz').status == 201
        expected[1] = (name, 3)
    else:
        headers = {'Content-Type': 'text/x'}
        answer = writer.post(container, name, headers=headers)
        assert answer.status == 202
        page = walker.listing(container, limit=LIMIT, marker=marker)
        assert page.json()[1]['content_type'] == 'text/x'
    assert rows(walker, container, marker) == expected
