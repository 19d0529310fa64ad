# SPDX-License-Identifier: Apache-2.0
"""Objects that lie in the root of a sharded container.

Those of the longest names do so by rule. Others got there by a proxy without
the filter, before the container was sharded or by mistake.
"""

import hashlib

import pytest

from test.functional.conftest import SHARD_COUNT_HEADER

OLD = b'older'
NEW = b'the newer one'
NEW_ETAG = hashlib.md5(NEW).hexdigest()


@pytest.fixture
def noticed(client, sharded):
    """Has the proxies forget what they knew of the container."""
    return lambda: client.post(sharded)


@pytest.fixture
def stray(client, unfiltered, sharded, noticed):
    """A sharded container with the object ``o`` in its root."""
    headers = {'X-Object-Meta-Colour': 'red'}
    assert unfiltered.put(sharded, 'o', OLD, headers=headers).status == 201
    noticed()
    return sharded


@pytest.fixture
def twice(client, stray):
    """A sharded container with ``o`` in its root, and newer in a shard."""
    assert client.put(stray, 'o', NEW).status == 201
    return stray


class TestStray:
    def test_can_be_read(self, client, stray):
        got = client.get(stray, 'o')
        assert (got.status, got.body) == (200, OLD)
        assert got.headers['x-object-meta-colour'] == 'red'
        assert client.head(stray, 'o').headers['content-length'] == '5'

    def test_can_be_read_in_parts(self, client, stray):
        headers = {'Range': 'bytes=1-2'}
        got = client.get(stray, 'o', headers=headers)
        assert (got.status, got.body) == (206, b'ld')

    @pytest.mark.parametrize(
        ('headers', 'status'),
        [
            ({'If-Match': '*'}, 200),
            ({'If-Match': hashlib.md5(OLD).hexdigest()}, 200),
            ({'If-Match': '"other"'}, 412),
            ({'If-None-Match': '*'}, 304),
            ({'If-None-Match': hashlib.md5(OLD).hexdigest()}, 304),
            ({'If-None-Match': '"other"'}, 200),
            ({'X-Newest': 'true'}, 200),
        ],
        ids=str,
    )
    def test_can_be_read_under_a_condition(
        self, client, stray, headers, status
    ):
        assert client.get(stray, 'o', headers=headers).status == status
        assert client.head(stray, 'o', headers=headers).status == status

    def test_is_listed_once(self, client, stray):
        assert client.listing(stray).names() == ['o']

    def test_is_listed_in_its_place(self, client, unfiltered, stray):
        client.put(stray, 'a')
        client.put(stray, 'z')
        unfiltered.put(stray, 'p', OLD)
        assert client.listing(stray).names() == ['a', 'o', 'p', 'z']

    def test_is_counted(self, client, stray):
        client.put(stray, 'p', NEW)
        headers = client.head(stray).headers
        assert headers['x-container-object-count'] == '2'
        assert headers['x-container-bytes-used'] == str(len(OLD + NEW))

    def test_takes_metadata(self, client, stray):
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(stray, 'o', headers=headers).status == 202
        got = client.get(stray, 'o')
        assert got.body == OLD
        assert got.headers['x-object-meta-colour'] == 'blue'

    def test_can_be_copied(self, client, stray, container):
        assert client.copy(stray, 'o', f'{container}/p').status == 201
        assert client.get(container, 'p').body == OLD

    def test_can_be_copied_onto_itself(self, client, stray):
        assert client.copy(stray, 'o', f'{stray}/o').status == 201
        assert client.get(stray, 'o').body == OLD
        assert client.listing(stray).names() == ['o']

    def test_can_be_deleted(self, client, unfiltered, stray):
        assert client.delete(stray, 'o').status == 204
        assert client.get(stray, 'o').status == 404
        assert unfiltered.get(stray, 'o').status == 404
        assert client.listing(stray).json() == []
        assert client.delete(stray, 'o').status == 404

    def test_is_seen_by_if_none_match_star(self, client, stray):
        headers = {'If-None-Match': '*'}
        answer = client.put(stray, 'o', NEW, headers=headers)
        assert answer.status == 412
        assert client.get(stray, 'o').body == OLD
        assert client.listing(stray).names() == ['o']

    def test_leaves_if_none_match_star_of_others_alone(self, client, stray):
        headers = {'If-None-Match': '*'}
        assert client.put(stray, 'p', NEW, headers=headers).status == 201
        assert client.put(stray, 'p', OLD, headers=headers).status == 412
        assert client.get(stray, 'p').body == NEW

    def test_is_refused_to_strangers(self, client, stranger, stray):
        assert stranger.get(stray, 'o').status == 403
        assert stranger.put(stray, 'o', NEW).status == 403
        assert stranger.post(stray, 'o').status == 403
        assert stranger.delete(stray, 'o').status == 403
        assert client.get(stray, 'o').body == OLD

    def test_is_readable_by_acl(self, client, stranger, stray):
        client.post(stray, headers={'X-Container-Read': 'test:tester3'})
        assert stranger.get(stray, 'o').body == OLD

    def test_keeps_the_container_from_deletion(self, client, stray):
        assert client.delete(stray).status == 409
        assert client.get(stray, 'o').body == OLD

    def test_that_expires_is_gone(self, client, stray):
        headers = {'X-Delete-After': '1000'}
        assert client.post(stray, 'o', headers=headers).status == 202
        assert 'x-delete-at' in client.head(stray, 'o').headers

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST', 'DELETE'])
    def test_beside_it_a_missing_object_is_404_as_ever(
        self, client, stray, plain, method
    ):
        expected = client.request(method, plain, 'missing')
        answer = client.request(method, stray, 'missing')
        assert expected.status == answer.status == 404
        assert answer.body == expected.body
        assert list(answer.headers) == list(expected.headers)

    def test_is_no_obstacle_to_large_uploads(self, client, stray):
        body = hashlib.shake_128(b'seed').digest(5 << 20)
        chunks = iter([body[: 3 << 20], body[3 << 20 :]])
        assert client.put(stray, 'p', chunks).status == 201
        assert client.get(stray, 'p').body == body

    def test_page_by_page(self, client, unfiltered, stray):
        client.put(stray, 'a')
        client.put(stray, 'q')
        unfiltered.put(stray, 'p', OLD)
        first = client.listing(stray, limit=2)
        assert first.names() == ['a', 'o']
        second = client.listing(stray, limit=2, marker='o')
        assert second.names() == ['p', 'q']


class TestObjectInRootAndShard:
    def test_reads_the_newer(self, client, twice):
        got = client.get(twice, 'o')
        assert got.body == NEW
        assert 'x-object-meta-colour' not in got.headers

    def test_is_listed_once_as_the_newer(self, client, twice):
        (row,) = client.listing(twice).json()
        assert row['name'] == 'o'
        assert row['bytes'] == len(NEW)
        assert row['hash'] == NEW_ETAG

    def test_takes_metadata_for_the_newer(self, client, twice):
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(twice, 'o', headers=headers).status == 202
        got = client.get(twice, 'o')
        assert got.body == NEW
        assert got.headers['x-object-meta-colour'] == 'blue'

    def test_is_deleted_in_both_places(self, client, unfiltered, twice):
        assert client.delete(twice, 'o').status == 204
        assert client.get(twice, 'o').status == 404
        assert unfiltered.get(twice, 'o').status == 404
        assert client.listing(twice).json() == []
        headers = client.head(twice).headers
        assert headers['x-container-object-count'] == '0'
        assert client.delete(twice).status == 204

    def test_is_seen_by_if_none_match_star(self, client, twice):
        headers = {'If-None-Match': '*'}
        assert client.put(twice, 'o', OLD, headers=headers).status == 412
        assert client.get(twice, 'o').body == NEW

    def test_newer_in_the_root_is_listed_and_read(
        self, client, unfiltered, sharded, noticed
    ):
        client.put(sharded, 'o', OLD)
        unfiltered.put(sharded, 'o', NEW)
        noticed()
        (row,) = client.listing(sharded).json()
        assert row['bytes'] == len(NEW)
        assert client.get(sharded, 'o').body == NEW


class TestLongName:
    NAME = 'n' * 1024

    def test_lies_in_the_root(self, client, unfiltered, sharded):
        client.put(sharded, self.NAME, NEW)
        assert unfiltered.get(sharded, self.NAME).body == NEW

    def test_is_listed_among_the_others(self, client, sharded):
        client.put(sharded, 'a')
        client.put(sharded, self.NAME, NEW)
        client.put(sharded, 'z')
        listing = client.listing(sharded)
        assert listing.names() == ['a', self.NAME, 'z']
        assert listing.json()[1]['hash'] == NEW_ETAG

    def test_is_seen_by_if_none_match_star(self, client, sharded):
        headers = {'If-None-Match': '*'}
        first = client.put(sharded, self.NAME, NEW, headers=headers)
        assert first.status == 201
        again = client.put(sharded, self.NAME, OLD, headers=headers)
        assert again.status == 412

    def test_is_counted(self, client, sharded):
        client.put(sharded, self.NAME, NEW)
        client.put(sharded, 'a', OLD)
        headers = client.head(sharded).headers
        assert headers['x-container-object-count'] == '2'
        assert headers['x-container-bytes-used'] == str(len(OLD + NEW))

    def test_leaves_other_names_in_their_shards(
        self, client, unfiltered, sharded
    ):
        client.put(sharded, self.NAME, NEW)
        client.put(sharded, 'o', NEW)
        assert unfiltered.get(sharded, 'o').status == 404
        assert client.get(sharded, 'o').body == NEW


def test_shorter_names_lie_in_shards(client, unfiltered, sharded):
    client.put(sharded, 'n' * 1023, NEW)
    assert unfiltered.listing(sharded).json() == []
    assert client.listing(sharded).names() == ['n' * 1023]


def test_proxy_without_the_filter_shows_only_the_root(
    client, unfiltered, stray
):
    client.put(stray, 'p', NEW)
    assert unfiltered.listing(stray).names() == ['o']
    assert SHARD_COUNT_HEADER.lower() not in unfiltered.head(stray).headers
