# SPDX-License-Identifier: Apache-2.0
"""Containers that are sharded by directory answer like a plain one."""

import pytest

from shardmw.core.placement import shard_of
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_DEPTH_HEADER,
    SHARDS,
    USER,
    make_plain,
    make_sharded,
)

NAMES = (
    '/', '//', '/a', '/a/b', 'a', 'a ', 'a-/b', 'a/', 'a//', 'a//b', 'a/b',
    'a/b/', 'a/b/c', 'a/b/c/d', 'a/b1', 'a/c', 'a1', 'aa/b', 'b/c', 'b/d/',
    'c/d', 'd/e/f/g/h', 'zz', '\u2603/a', '\u2603/b/c', '\u2603\u2603',
    '\U0001f600/a', 'long/' + 'x' * 1019,
)  # fmt: skip

#: Parameters of listings; a listing of one directory reads one shard.
LISTINGS = (
    {},
    {'delimiter': '/'},
    {'prefix': 'a'},
    {'prefix': 'a/'},
    {'prefix': 'a/', 'delimiter': '/'},
    {'prefix': 'a/', 'delimiter': '/', 'limit': 2, 'marker': 'a/b/'},
    {'prefix': 'a/b/', 'delimiter': '/', 'reverse': 'true'},
    {'prefix': '/', 'delimiter': '/'},
    {'prefix': '\u2603/', 'reverse': 'true'},
    {'prefix': 'none/'},
    {'path': 'a'},
    {'path': ''},
    {'path': 'a/b/'},
    {'marker': 'a/', 'end_marker': 'a0'},
    {'marker': 'a/c', 'end_marker': 'a/b', 'reverse': 'true'},
    {'marker': 'a/b', 'limit': 3},
    {'prefix': 'long/', 'marker': 'long/' + 'x' * 1000},
)


def pages(client: Client, container: str, **params) -> list[str]:
    """Return the names of a walk in pages of two."""
    walked, marker = [], ''
    while names := client.listing(
        container, marker=marker, limit=2, **params
    ).names():
        walked += names
        marker = names[-1]
    return walked


@pytest.fixture(scope='module')
def containers(login) -> dict[int | None, str]:
    """Containers with the same objects by their depth, None for plain."""
    owner = login(USER)
    made = {None: make_plain(owner)}
    for depth in (1, 2):
        made[depth] = make_sharded(owner, X_Container_Shard_Depth=str(depth))
    for container in made.values():
        for size, name in enumerate(NAMES):
            owner.put(container, name, b'x' * size)
    return made


@pytest.mark.parametrize('depth', [1, 2])
def test_listings_are_those_of_a_plain_container(client, containers, depth):
    for params in LISTINGS:
        plain, sharded = (
            client.listing(containers[each], **params)
            for each in (None, depth)
        )
        assert sharded.status == plain.status
        rows = [
            [(row.get('subdir'), row.get('name'), row.get('bytes'))
             for row in each.json()]
            for each in (plain, sharded)
        ]  # fmt: skip
        assert rows[1] == rows[0], params


@pytest.mark.parametrize('depth', [1, 2])
@pytest.mark.parametrize('params', [{}, {'prefix': 'a/'}])
def test_an_unordered_walk_lists_every_name_once(
    client, containers, depth, params
):
    walked = pages(client, containers[depth], allow_unordered='true', **params)
    listed = client.listing(containers[None], **params).names()
    assert sorted(walked) == sorted(listed)


@pytest.mark.parametrize('depth', [1, 2])
def test_rows_lie_in_the_shards_of_their_directories(
    client, containers, backing, depth
):
    container = containers[depth]
    found = {}
    for shard in range(SHARDS):
        found.update(
            dict.fromkeys(backing.list_shard(container, shard), shard)
        )
    assert found == {name: shard_of(name, SHARDS, depth) for name in NAMES}


@pytest.mark.parametrize('depth', [1, 2])
def test_a_head_shows_the_depth_and_the_sums(client, containers, depth):
    plain, sharded = (
        client.head(containers[each]).headers for each in (None, depth)
    )
    assert sharded[SHARD_DEPTH_HEADER.lower()] == str(depth)
    for figure in ('x-container-object-count', 'x-container-bytes-used'):
        assert sharded[figure] == plain[figure]


def test_a_deleted_object_leaves_its_directory(client):
    container = make_sharded(client, X_Container_Shard_Depth='1')
    for name in ('d/1', 'd/2'):
        client.put(container, name, b'')
    assert client.delete(container, 'd/1').status == 204
    assert client.listing(container, prefix='d/').names() == ['d/2']
    assert client.delete(container).status == 409
    assert client.delete(container, 'd/2').status == 204
    assert client.delete(container).status == 204
