# SPDX-License-Identifier: Apache-2.0
"""Containers that are sharded by directory, as clients see them."""

import json

import pytest
from swift.common.middleware.versioned_writes.object_versioning import (
    ObjectVersioningMiddleware,
)

from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
)
from shardmw.core.placement import shard_of, versions_container
from test.unit.containers import (
    CONTAINER,
    backing,
    create,
    forget_requests,
    layout_of,
    put_sharded_row,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, filtered

SHARDS = 4
COUNT = {SHARD_COUNT_HEADER: '4'}
DEPTH = {SHARD_DEPTH_HEADER: '1'}
NAMES = ['a/1', 'a/2', 'b/1', 'c/1', 'top']
NEEDS_COUNT = b'X-Container-Shard-Depth needs X-Container-Shard-Count'
OUT_OF_BOUNDS = b'X-Container-Shard-Depth must be a number from 0 to 16'


@pytest.fixture
def filter_app(swift):
    return filtered(swift)


def put(swift, app, headers=None, name='c'):
    """Put a container."""
    return swift.send(app, 'PUT', f'/v1/{ACCOUNT}/{name}', headers or {})


def listing(swift, app, query):
    return swift.send(app, 'GET', CONTAINER, query=f'format=json&{query}')


def names_in(resp):
    """Return the names on the page that a response has."""
    return [row['name'] for row in json.loads(resp.body)]


class TestCreate:
    def test_records_the_depth(self, swift, filter_app):
        assert put(swift, filter_app, COUNT | DEPTH).status_int == 201
        assert layout_of(swift).sharding == (4, 1)

    def test_without_a_depth_writes_a_record_in_the_former_format(
        self, swift, filter_app
    ):
        put(swift, filter_app, COUNT)
        metadata = swift.broker(ACCOUNT, 'c').metadata
        record = json.loads(metadata[RECORD_HEADER.title()][0])
        assert record == {
            'version': 2,
            'id': layout_of(swift).id,
            'shards': 4,
        }

    @pytest.mark.parametrize('depth', ['17', '-1', 'x', '', '1.0', '９'])
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_with_a_depth_out_of_bounds_is_refused(
        self, swift, filter_app, method, depth
    ):
        if method == 'POST':
            create(swift, filter_app, SHARDS)
        headers = {SHARD_DEPTH_HEADER: depth.encode().decode('latin-1')}
        resp = swift.send(filter_app, method, CONTAINER, COUNT | headers)
        assert (resp.status_int, resp.body) == (400, OUT_OF_BOUNDS)

    @pytest.mark.parametrize('depth', ['0', '1'])
    def test_of_a_plain_container_with_a_depth_is_refused(
        self, swift, filter_app, depth
    ):
        resp = put(swift, filter_app, {SHARD_DEPTH_HEADER: depth})
        assert (resp.status_int, resp.body) == (400, NEEDS_COUNT)
        assert not swift.exists(ACCOUNT, 'c')

    @pytest.mark.parametrize(
        ('headers', 'sharding'),
        [({}, (3, 2)), (DEPTH, (3, 1)), (COUNT, (4, 2))],
    )
    def test_follows_the_operators_rule_for_headers_that_are_missing(
        self, swift, headers, sharding
    ):
        rules = {'shard_rules': f'{ACCOUNT}/* = 3 depth 2'}
        put(swift, filtered(swift, **rules), headers)
        assert layout_of(swift).sharding == sharding

    def test_of_parts_of_uploads_takes_the_depth_of_the_bucket(
        self, swift, filter_app
    ):
        create(swift, filter_app, SHARDS, depth=2)
        put(swift, filter_app, name='c+segments')
        assert layout_of(swift, 'c+segments').sharding == (SHARDS, 2)

    def test_of_old_versions_takes_the_depth_of_their_container(
        self, swift, filter_app
    ):
        create(swift, filter_app, SHARDS, depth=2)
        versioning = ObjectVersioningMiddleware(filter_app, {})
        headers = {'X-Versions-Enabled': 'true'}
        swift.send(versioning, 'POST', CONTAINER, headers)
        versions = versions_container('c')
        assert layout_of(swift, versions).sharding == (SHARDS, 2)


class TestPresentContainer:
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    @pytest.mark.parametrize('headers', [{}, COUNT, DEPTH, COUNT | DEPTH])
    def test_takes_its_own_depth(self, swift, filter_app, method, headers):
        create(swift, filter_app, SHARDS, depth=1)
        resp = swift.send(filter_app, method, CONTAINER, headers)
        assert resp.is_success

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    @pytest.mark.parametrize('depth', ['0', '2'])
    def test_refuses_another_depth(self, swift, filter_app, method, depth):
        create(swift, filter_app, SHARDS, depth=1)
        headers = {SHARD_DEPTH_HEADER: depth}
        resp = swift.send(filter_app, method, CONTAINER, headers)
        assert resp.status_int == 409
        assert resp.body == (
            b'This container has depth 1; X-Container-Shard-Depth can only be '
            b'set when a container is created'
        )
        assert layout_of(swift).sharding == (SHARDS, 1)

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_that_is_plain_refuses_any_depth(self, swift, filter_app, method):
        put(swift, filter_app)
        resp = swift.send(filter_app, method, CONTAINER, DEPTH)
        assert resp.status_int == 409
        assert resp.body.startswith(b'This container is not sharded;')

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize('depth', [0, 1])
    def test_shows_its_depth(self, swift, filter_app, method, depth):
        create(swift, filter_app, SHARDS, depth=depth)
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.headers[SHARD_DEPTH_HEADER] == str(depth)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_that_is_plain_shows_none(self, swift, filter_app, method):
        put(swift, filter_app)
        resp = swift.send(filter_app, method, CONTAINER)
        assert SHARD_DEPTH_HEADER not in resp.headers


class TestObject:
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_with_a_depth_is_refused_with_advice(
        self, swift, filter_app, method
    ):
        resp = swift.send(filter_app, method, f'{CONTAINER}/o', DEPTH)
        assert resp.status_int == 400
        assert resp.body == (
            b'X-Container-Shard-Depth is for containers, not objects: send it '
            b'with the PUT that creates the container'
        )


class TestListing:
    @pytest.fixture(autouse=True)
    def rows(self, swift, filter_app):
        create(swift, filter_app, SHARDS, depth=1)
        for name in NAMES:
            put_sharded_row(swift, name, size=1)
        forget_requests(swift)

    @pytest.mark.parametrize('query', ['', '&allow_unordered=true'])
    def test_of_a_directory_shows_the_figures_of_the_container(
        self, swift, filter_app, query
    ):
        resp = listing(swift, filter_app, f'prefix=a/{query}')
        assert names_in(resp) == ['a/1', 'a/2']
        assert resp.headers['X-Container-Object-Count'] == '5'
        assert resp.headers['X-Container-Bytes-Used'] == '5'

    def test_of_a_directory_does_without_the_other_shards(
        self, swift, filter_app
    ):
        listing(swift, filter_app, 'prefix=a/')  # then the counts are known
        other = backing(swift, (shard_of('a/', SHARDS) + 1) % SHARDS)
        swift.direct('DELETE', f'/{HIDDEN}/{other}')
        assert listing(swift, filter_app, '').status_int == 503
        resp = listing(swift, filter_app, 'prefix=a/')
        assert names_in(resp) == ['a/1', 'a/2']

    def test_shows_strays_of_the_directory(self, swift, filter_app):
        swift.put_row(f'/{ACCOUNT}/c/a/0', size=1)
        resp = listing(swift, filter_app, 'prefix=a/')
        assert names_in(resp) == ['a/0', 'a/1', 'a/2']
