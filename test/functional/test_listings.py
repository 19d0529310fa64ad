# SPDX-License-Identifier: Apache-2.0
"""Listings of containers: formats, parameters, pages."""

from collections.abc import Iterator

import pytest

from test.functional.alike import make_twins, masked
from test.functional.archives import archive_of
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    USER,
    Pair,
    make_sharded,
    unique,
)

NAMES = (
    ' ', '!', '%', '%2F', '&<>"', '-', '.', '/', '//', '/a', 'A', 'a',
    'a ', 'a-', 'a-/b', 'a/', 'a//', 'a//b', 'a/b', 'a/b-', 'a/b-c/d', 'a/b/',
    'a/b/c', 'a/b/c/d', 'a/b1', 'a/c', 'a1', 'aa', 'aa/b', 'ab', 'b', 'b/c',
    'b/d/', 'c/d', 'c/e', 'd/e/f/g/h', 'zz', '~', '\x7f', '\x01', '\n',
    '\u00e9', '\u00e9/a', '\u2603', '\u2603/a', '\u2603\u2603', '\uffff',
    '\U00010000', '\U0001f600/a', '\U0010ffff', 'long/' + 'x' * 1019,
)  # fmt: skip


def put_all(client: Client, container: str, names: tuple[str, ...]) -> None:
    """Store an object under each name, each one byte longer than the last."""
    for i, name in enumerate(names):
        assert client.put(container, name, b'x' * i).status == 201


@pytest.fixture(scope='module')
def twins(login) -> Pair:
    """A plain and a sharded container with the same objects in them."""
    owner = login(USER)
    twins = make_twins(owner)
    for container in twins:
        put_all(owner, container, NAMES)
    return twins


@pytest.fixture
def assert_alike(client, twins):
    """Return a function that compares the answers of both containers."""

    def assert_alike(method: str, query: str = '', **headers: str) -> None:
        plain, sharded = (
            masked(
                client.request(
                    method, container, query=query, headers=headers
                ),
                container,
            )
            for container in twins
        )
        assert sharded == plain

    return assert_alike


def pages(client: Client, container: str, **params) -> Iterator[list[str]]:
    """Yield the pages of a listing, up to the empty one."""
    marker = ''
    while names := client.listing(container, marker=marker, **params).names():
        yield names
        marker = names[-1]


class TestWholeListing:
    def test_holds_every_name_in_the_order_of_its_bytes(self, client, twins):
        in_order = sorted(NAMES, key=str.encode)
        assert client.listing(twins.sharded).names() == in_order

    def test_can_be_reversed(self, client, twins):
        listing = client.listing(twins.sharded, reverse='true')
        assert listing.names() == sorted(NAMES, key=str.encode, reverse=True)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize(
        'wanted', ['json', 'xml', 'plain', 'JSON', 'other', '']
    )
    def test_has_the_format_of_the_query(self, assert_alike, method, wanted):
        assert_alike(method, f'format={wanted}')

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize(
        'accepted',
        [
            'application/json',
            'application/xml',
            'text/xml',
            'text/plain',
            '*/*',
            'application/*',
            'text/plain;q=0.5, application/json',
            'image/png',
            'image/png, text/xml',
            'broken',
        ],
    )
    def test_has_the_format_that_is_accepted(
        self, assert_alike, method, accepted
    ):
        assert_alike(method, Accept=accepted)

    def test_format_of_the_query_takes_precedence(self, assert_alike):
        assert_alike('GET', 'format=json', Accept='image/png')

    def test_that_is_not_acceptable_is_406(self, client, twins):
        headers = {'Accept': 'image/png'}
        assert client.get(twins.sharded, headers=headers).status == 406

    @pytest.mark.parametrize('wanted', ['json', 'xml', 'plain'])
    def test_of_an_empty_container_is_that_of_a_plain_one(
        self, client, wanted
    ):
        plain, sharded = (
            masked(client.get(container, query=f'format={wanted}'), container)
            for container in make_twins(client)
        )
        assert sharded == plain

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_a_missing_container_is_404(self, client, method):
        assert client.request(method, unique('missing')).status == 404

    def test_with_x_newest_is_that_of_a_plain_container(self, assert_alike):
        assert_alike('GET', **{'X-Newest': 'true'})

    @pytest.mark.parametrize(
        'headers',
        [
            {'If-None-Match': '*'},
            {'If-Match': '"x"'},
            {'If-Modified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT'},
            {'Range': 'bytes=0-9'},
        ],
        ids=' '.join,
    )
    def test_under_a_condition_is_that_of_a_plain_container(
        self, assert_alike, headers
    ):
        assert_alike('GET', 'format=json', **headers)


class TestTwinsAnswerAlike:
    @pytest.mark.parametrize('name', ['marker', 'end_marker', 'prefix'])
    @pytest.mark.parametrize('reverse', ['', '&reverse=on'])
    @pytest.mark.parametrize(
        'value',
        [
            '', 'a', 'a/', 'a/b', 'a/b/c/d', 'a/b0', 'none', '//', '%C3%A9',
            '%E2%98%83', '%01', 'long/xxx', '+', '%F0%90%80%80', 'x' * 1025,
            '%26', 'a%00',
        ],
        ids=lambda text: text[:9],
    )  # fmt: skip
    def test_for_a_bound(self, assert_alike, name, value, reverse):
        assert_alike('GET', f'format=json&{name}={value}{reverse}')

    @pytest.mark.parametrize(
        'bounds',
        [
            'marker=a&end_marker=b',
            'marker=b&end_marker=a',
            'marker=a&end_marker=a',
            'marker=a/&end_marker=a/b/&prefix=a/b',
            'marker=b&prefix=a',
            'marker=A&prefix=a',
            'end_marker=a&prefix=b',
            'marker=a/b&prefix=a/&delimiter=/',
            'marker=a/&end_marker=b/&delimiter=/',
        ],
    )
    @pytest.mark.parametrize('reverse', ['', '&reverse=on'])
    def test_for_two_bounds(self, assert_alike, bounds, reverse):
        assert_alike('GET', f'format=json&{bounds}{reverse}')

    @pytest.mark.parametrize(
        'delimiter',
        ['/', '//', 'b', '/b', '%E2%98%83', '%F0%90%80%80', '%00'],
    )
    @pytest.mark.parametrize('prefix', ['', 'a', 'a/', '%E2%98%83'])
    @pytest.mark.parametrize('reverse', ['', '&reverse=on'])
    def test_for_a_delimiter(self, assert_alike, delimiter, prefix, reverse):
        query = f'format=json&delimiter={delimiter}&prefix={prefix}{reverse}'
        assert_alike('GET', query)

    @pytest.mark.parametrize('wanted', ['xml', 'plain'])
    def test_for_a_delimiter_in_other_formats(self, assert_alike, wanted):
        assert_alike('GET', f'format={wanted}&delimiter=/')

    # Swift's own listing by path overlooks an object that is named just past
    # a pseudo-directory (``a0`` next to ``a/b``), and backwards one that is
    # named like it (``a/``), unless they lie in different databases: so the
    # container has no such names.

    @pytest.mark.parametrize(
        'path',
        ['', '/', 'a', 'a/', 'a//', 'a/b', 'b', 'd/e', 'none', '%E2%98%83',
         'a&prefix=b', 'a&delimiter=b', 'a&marker=a/b', 'a&end_marker=a/b1',
         'a&limit=2', '&marker=a', '&end_marker=b', '&limit=3', '&limit=0',
         '&prefix=b', '%00'],
    )  # fmt: skip
    def test_for_a_path(self, assert_alike, path):
        assert_alike('GET', f'format=json&path={path}')

    @pytest.mark.parametrize('path', ['b', 'b/', 'd/e', 'long', 'c&limit=1'])
    def test_for_a_path_backwards(self, assert_alike, path):
        assert_alike('GET', f'format=json&reverse=on&path={path}')

    @pytest.mark.parametrize(
        'limit',
        ['0', '1', '7', '10000', '10001', '', 'x', '-1', '1.5', '%D9%A3'],
    )
    def test_for_a_limit(self, assert_alike, limit):
        assert_alike('GET', f'format=json&limit={limit}')

    @pytest.mark.parametrize(
        'reverse', ['true', '1', 'yes', 'on', 't', 'y', 'x', 'false', '']
    )
    def test_for_reverse(self, assert_alike, reverse):
        assert_alike('GET', f'format=json&reverse={reverse}')

    @pytest.mark.parametrize(
        'name', ['marker', 'end_marker', 'prefix', 'delimiter', 'path',
                 'limit', 'format', 'reverse', 'states', 'other'],
    )  # fmt: skip
    def test_for_values_that_are_not_utf8(self, assert_alike, name):
        assert_alike('GET', f'{name}=%FF')

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize(
        'query',
        ['limit=1&limit=2', 'prefix=a&prefix=b', 'x=y', '&&', '=', 'limit',
         'LIMIT=1', 'includes=a', 'states=listing', 'symlink=get'],
    )  # fmt: skip
    def test_for_odd_queries(self, assert_alike, method, query):
        assert_alike(method, query)


class TestPages:
    @pytest.mark.parametrize('limit', [1, 13, 50, 52])
    @pytest.mark.parametrize('reverse', ['false', 'true'])
    @pytest.mark.parametrize('delimiter', ['', '/'])
    def test_of_any_size_make_the_listing(
        self, client, twins, limit, reverse, delimiter
    ):
        params = {'delimiter': delimiter, 'reverse': reverse}
        whole = client.listing(twins.plain, **params).names()
        paged = list(pages(client, twins.sharded, limit=limit, **params))
        assert sum(paged, []) == whole
        assert {len(page) for page in paged[:-1]} <= {limit}

    @pytest.mark.parametrize('limit', [1, 2, 7])
    def test_of_a_path_make_the_listing(self, client, twins, limit):
        for path in ('', 'a', 'a/b'):
            whole = client.listing(twins.plain, path=path).names()
            paged = pages(client, twins.sharded, path=path, limit=limit)
            assert sum(paged, []) == whole

    def test_after_a_name_are_those_of_a_plain_container(self, client, twins):
        for name in NAMES[::4]:
            for reverse in ('false', 'true'):
                params = {'marker': name, 'limit': 3, 'reverse': reverse}
                plain = client.listing(twins.plain, **params)
                sharded = client.listing(twins.sharded, **params)
                assert sharded.names() == plain.names()

    def test_show_the_statistics_of_the_whole_container(self, client, twins):
        shown = client.listing(twins.sharded, limit=1).headers
        assert shown['x-container-object-count'] == str(len(NAMES))


MANY = [f'{i % 10}/{i:04d}' for i in range(400)]
MANY_SHARDS = 32


@pytest.fixture(scope='class')
def large(login) -> str:
    """A container of many objects in many shards."""
    owner = login(USER)
    container = make_sharded(owner, MANY_SHARDS)
    path = f'{owner.path(container)}?extract-archive=tar'
    archive = archive_of(dict.fromkeys(MANY, b''))
    assert owner.raw('PUT', path, body=archive).status == 200
    return container


class TestLargeContainer:
    def test_has_its_shards(self, client, large):
        shown = client.head(large).headers
        assert shown[SHARD_COUNT_HEADER.lower()] == str(MANY_SHARDS)
        assert shown['x-container-object-count'] == str(len(MANY))

    def test_is_listed_at_once(self, client, large):
        assert client.listing(large).names() == sorted(MANY)

    @pytest.mark.parametrize('limit', [100, 400, 401])
    def test_is_listed_by_pages(self, client, large, limit):
        paged = list(pages(client, large, limit=limit))
        assert sum(paged, []) == sorted(MANY)
        assert len(paged) == -(-len(MANY) // limit)

    def test_is_listed_by_pages_backwards(self, client, large):
        paged = pages(client, large, limit=150, reverse='true')
        assert sum(paged, []) == sorted(MANY, reverse=True)

    def test_is_listed_by_its_directories(self, client, large):
        directories = [f'{i}/' for i in range(10)]
        assert client.listing(large, delimiter='/').names() == directories

    def test_is_listed_by_prefix(self, client, large):
        names = sorted(name for name in MANY if name.startswith('7/'))
        assert client.listing(large, prefix='7/').names() == names
        assert client.listing(large, path='7').names() == names


class TestWhatChanges:
    def test_object_is_listed_as_it_is_now(self, client, container):
        client.put(container, 'o', b'one', headers={'Content-Type': 'a/b'})
        client.put(container, 'o', b'three', headers={'Content-Type': 'c/d'})
        (row,) = client.listing(container).json()
        assert row['bytes'] == 5
        assert row['content_type'] == 'c/d'

    def test_deleted_object_is_not_listed(self, client, container):
        client.put(container, 'a')
        client.put(container, 'b')
        client.delete(container, 'a')
        assert client.listing(container).names() == ['b']

    def test_subdir_goes_with_its_last_object(self, client, container):
        client.put(container, 'a/b')
        client.put(container, 'a/c')
        client.delete(container, 'a/b')
        assert client.listing(container, delimiter='/').names() == ['a/']
        client.delete(container, 'a/c')
        assert client.listing(container, delimiter='/').names() == []
