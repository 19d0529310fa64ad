# SPDX-License-Identifier: Apache-2.0
"""Listings in any order: ``GET container?allow_unordered=true``."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

import pytest

from shardmw.core.placement import shard_of
from test.functional.alike import make_twins, masked
from test.functional.backing import name_in_shard
from test.functional.client import Answer, Client
from test.functional.conftest import (
    SHARDS,
    USER,
    Pair,
    make_plain,
    make_sharded,
)

NAMES = (
    *(f'logs/{i:03}' for i in range(60)),
    '\u2603', '\u00e9/"a"', '\\', '}, {"', '\n', '\U0001f600',
    *(f'{i}' + 'x' * 1023 for i in range(3)),
)  # fmt: skip

UNORDERED = {'allow_unordered': 'true'}


def pages(client: Client, container: str, **params) -> Iterator[list[str]]:
    """Yield the pages of an unordered listing, up to the empty one."""
    params = {**UNORDERED, **params}
    marker = params.pop('marker', '')
    while names := client.listing(container, marker=marker, **params).names():
        yield names
        marker = names[-1]


def walk(client: Client, container: str, **params) -> list[str]:
    return [n for page in pages(client, container, **params) for n in page]


@pytest.fixture(scope='module')
def full(login) -> str:
    """A sharded container with an object under each of ``NAMES``."""
    owner = login(USER)
    container = make_sharded(owner)
    for name in NAMES:
        assert owner.put(container, name, b'x').status == 201
    return container


@pytest.fixture
def astray(client, unfiltered) -> str:
    """A sharded container with objects in the root that belong to shards."""
    container = make_sharded(client)
    for i in range(20):
        assert client.put(container, f'{i}').status == 201
        assert unfiltered.put(container, f'stray-{i}').status == 201
    return container


class TestWalk:
    @pytest.mark.parametrize('limit', [1, 2, 7, 10, 1000])
    def test_lists_every_object_once(self, client, full, limit):
        assert sorted(walk(client, full, limit=limit)) == sorted(NAMES)

    def test_goes_through_shard_after_shard(self, client, full):
        shards = [shard_of(name, SHARDS) for name in walk(client, full)]
        assert shards == sorted(shards)

    def test_has_full_pages(self, client, full):
        sizes = [len(page) for page in pages(client, full, limit=10)]
        assert sizes == [10] * (len(NAMES) // 10) + [len(NAMES) % 10]

    @pytest.mark.parametrize('limit', [1, 3, 100])
    def test_lists_strays_once(self, client, astray, limit):
        found = walk(client, astray, limit=limit)
        stored = [f'{i}' for i in range(20)]
        strays = [f'stray-{i}' for i in range(20)]
        assert sorted(found) == sorted(stored + strays)

    def test_goes_on_after_a_marker_that_is_gone(self, client, sharded):
        names = [f'{i}' for i in range(20)]
        for name in names:
            client.put(sharded, name)
        walked = []
        for page in pages(client, sharded, limit=3):
            walked += page
            for name in page:
                assert client.delete(sharded, name).status == 204
        assert sorted(walked) == sorted(names)

    def test_misses_nothing_while_others_write(self, login, client, sharded):
        lasting = [f'{i:02}' for i in range(40)]
        for name in lasting:
            client.put(sharded, name)
        with writing(login(USER), sharded):
            walked = walk(client, sharded, limit=3)
        assert sorted(n for n in walked if '-' not in n) == lasting

    def test_of_an_empty_container_has_no_pages(self, client, sharded):
        assert walk(client, sharded) == []


class TestParameters:
    def test_prefix_selects_names(self, client, full):
        found = walk(client, full, prefix='logs/01', limit=3)
        assert sorted(found) == [f'logs/01{i}' for i in range(10)]

    def test_prefix_without_names_lists_nothing(self, client, full):
        assert walk(client, full, prefix='none') == []

    def test_end_marker_ends_a_walk(self, client, full):
        found = walk(client, full, end_marker='logs/005', prefix='logs/')
        assert sorted(found) == [f'logs/00{i}' for i in range(5)]

    def test_limit_of_0_lists_nothing(self, client, full):
        assert client.listing(full, limit=0, **UNORDERED).names() == []

    @pytest.mark.parametrize('value', ['true', 'True', '1', 'yes', 'on', 't'])
    def test_that_are_true_drop_the_order(self, client, full, value):
        ordered = client.listing(full).names()
        names = client.listing(full, allow_unordered=value).names()
        assert names != ordered
        assert sorted(names) == sorted(ordered)

    @pytest.mark.parametrize('value', ['false', '', '0', 'no', 'other'])
    def test_that_are_not_true_keep_the_order(self, client, full, value):
        ordered = client.listing(full).names()
        names = client.listing(full, allow_unordered=value).names()
        assert names == ordered

    @pytest.mark.parametrize(
        'order', ['delimiter=/', 'reverse=true', 'path=logs', 'path=']
    )
    def test_that_need_an_order_are_refused(self, client, full, order):
        query = f'allow_unordered=true&{order}'
        assert client.get(full, query=query).status == 400

    @pytest.mark.parametrize('order', ['delimiter=', 'reverse=false'])
    def test_that_need_no_order_are_accepted(self, client, full, order):
        query = f'allow_unordered=true&{order}'
        assert client.get(full, query=query).status == 200

    @pytest.mark.parametrize(
        'query', ['limit=10001', 'limit=-1', 'prefix=%ff']
    )
    def test_that_swift_refuses_are_refused(self, client, query):
        assert_alike(client, make_twins(client), query)


class TestAnswer:
    @pytest.mark.parametrize('wanted', ['plain', 'json', 'xml'])
    def test_is_that_of_a_plain_container_but_for_the_order(
        self, client, wanted
    ):
        twins = make_twins(client, 1)
        for container in twins:
            client.put(container, 'a', b'1')
            client.put(container, 'b/\u2603', b'22')
        assert_alike(client, twins, f'format={wanted}')

    def test_has_every_object_in_text(self, client, full):
        query = 'allow_unordered=true&prefix=logs/'
        lines = client.get(full, query=query).text.splitlines()
        assert sorted(lines) == [f'logs/{i:03}' for i in range(60)]

    def test_has_every_object_in_xml(self, client, full):
        query = 'allow_unordered=true&format=xml&prefix=logs/'
        tree = ElementTree.fromstring(client.get(full, query=query).body)
        names = [name.text for name in tree.iter('name')]
        assert sorted(names) == [f'logs/{i:03}' for i in range(60)]

    def test_has_the_sums_of_the_whole(self, client, full):
        headers = client.listing(full, limit=1, **UNORDERED).headers
        assert headers['x-container-object-count'] == str(len(NAMES))
        assert headers['x-container-shard-count'] == str(SHARDS)

    def test_is_refused_to_strangers(self, stranger, full):
        assert stranger.listing(full, **UNORDERED).status == 403

    def test_needs_only_the_shards_of_the_page_once_counts_are_known(
        self, client, backing, sharded
    ):
        in_first = name_in_shard(0, SHARDS)
        client.put(sharded, in_first)
        known = client.listing(sharded, limit=1, **UNORDERED)
        backing.delete_shard(sharded, 2)
        listing = client.listing(sharded, limit=1, **UNORDERED)
        assert listing.names() == known.names() == [in_first]
        assert client.listing(sharded, limit=2, **UNORDERED).status == 503


class TestPlainContainer:
    @pytest.mark.parametrize(
        'query', ['', 'delimiter=/', 'reverse=true', 'path=b', 'limit=1']
    )
    def test_ignores_the_parameter(self, client, query):
        container = make_plain(client)
        for name in ('a', 'b/c', 'd'):
            client.put(container, name)
        ordered = client.get(container, query=query)
        unordered = client.get(
            container, query=f'{query}&allow_unordered=true'
        )
        assert masked(unordered, container) == masked(ordered, container)


class TestVersions:
    def test_are_listed_in_their_order(self, client, sharded):
        enabled = {'X-Versions-Enabled': 'true'}
        assert client.post(sharded, headers=enabled).status == 204
        names = [f'{i}' for i in range(8)]
        for name in names:
            client.put(sharded, name, b'1')
            client.put(sharded, name, b'2')
        query = {'versions': '', 'allow_unordered': 'true'}
        listed = client.listing(sharded, **query).names()
        assert listed == [name for name in names for _version in range(2)]


def assert_alike(client: Client, twins: Pair, query: str) -> None:
    plain, sharded = (
        unordered(client, container, query) for container in twins
    )
    assert sharded == plain


def unordered(client: Client, container: str, query: str) -> Answer:
    query = f'allow_unordered=true&{query}'
    return masked(client.get(container, query=query), container)


@contextmanager
def writing(client: Client, container: str) -> Iterator[None]:
    """Create and delete objects in all shards until the end of the block."""
    is_over = threading.Event()

    def write() -> None:
        for i in itertools.takewhile(
            lambda _i: not is_over.is_set(), itertools.count()
        ):
            client.put(container, f'{i % 40:02}-{i}')
            client.delete(container, f'{i % 40:02}-{i - 5}')

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
