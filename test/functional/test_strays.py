# SPDX-License-Identifier: Apache-2.0
"""What a proxy without the filter writes into a sharded container.

Its rows are strays in the root. Clients see them like all other rows, and
``shardmw-resharder`` moves them to the shards.
"""

import hashlib
import json

import pytest

from test.functional.backing import put_rows
from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.operating import Resharder, settle, update

OLD = b'older'
NEW = b'the newer one'
NEW_ETAG = hashlib.md5(NEW).hexdigest()

#: More rows than the daemon reads at once at ``ROWS_PER_SECOND``.
MANY = 250
ROWS_PER_SECOND = 200


@pytest.fixture
def stray(unfiltered, sharded) -> str:
    """A sharded container with the object ``o``, listed by its root."""
    headers = {'X-Object-Meta-Colour': 'red'}
    assert unfiltered.put(sharded, 'o', OLD, headers=headers).status == 201
    return sharded


@pytest.fixture
def twice(client, stray) -> str:
    """A sharded container with a stray ``o``, and a newer one in a shard."""
    assert client.put(stray, 'o', NEW).status == 201
    return stray


class TestStray:
    def test_can_be_read(self, client, stray):
        got = client.get(stray, 'o')
        assert (got.status, got.body) == (200, OLD)
        assert got.headers['x-object-meta-colour'] == 'red'
        assert client.head(stray, 'o').headers['content-length'] == '5'

    def test_is_listed_in_its_place(self, client, unfiltered, stray):
        client.put(stray, 'a')
        client.put(stray, 'z')
        unfiltered.put(stray, 'p', OLD)
        assert client.listing(stray).names() == ['a', 'o', 'p', 'z']

    def test_is_listed_page_by_page(self, client, unfiltered, stray):
        client.put(stray, 'a')
        client.put(stray, 'q')
        unfiltered.put(stray, 'p', OLD)
        assert client.listing(stray, limit=2).names() == ['a', 'o']
        second = client.listing(stray, limit=2, marker='o')
        assert second.names() == ['p', 'q']

    def test_is_counted(self, client, stray):
        client.put(stray, 'p', NEW)
        headers = client.head(stray).headers
        assert headers['x-container-object-count'] == '2'
        assert headers['x-container-bytes-used'] == str(len(OLD + NEW))

    def test_takes_metadata(self, client, stray):
        headers = {'X-Object-Meta-Colour': 'blue', 'Content-Type': 'text/x'}
        assert client.post(stray, 'o', headers=headers).status == 202
        got = client.get(stray, 'o')
        assert got.body == OLD
        assert got.headers['x-object-meta-colour'] == 'blue'
        (row,) = client.listing(stray).json()
        assert (row['bytes'], row['content_type']) == (len(OLD), 'text/x')

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
        assert client.delete(stray).status == 204

    def test_that_was_deleted_does_not_prevent_a_deletion(
        self, client, unfiltered, sharded
    ):
        assert client.head(sharded, 'o').status == 404
        unfiltered.put(sharded, 'o', OLD)
        assert client.delete(sharded, 'o').status == 204
        assert client.delete(sharded).status == 204

    def test_is_seen_by_if_none_match_star(self, client, stray):
        headers = {'If-None-Match': '*'}
        answer = client.put(stray, 'o', NEW, headers=headers)
        assert answer.status == 412
        assert client.get(stray, 'o').body == OLD
        assert client.listing(stray).names() == ['o']

    def test_is_refused_to_strangers(self, client, stranger, stray):
        assert stranger.get(stray, 'o').status == 403
        assert stranger.put(stray, 'o', NEW).status == 403
        assert stranger.get(stray).status == 403
        assert client.get(stray, 'o').body == OLD

    def test_is_listed_by_acl(self, client, stranger, stray):
        client.post(stray, headers={'X-Container-Read': '.r:*,.rlistings'})
        assert stranger.anonymous().listing(stray).names() == ['o']

    def test_prevents_deletion_of_the_container(self, client, stray):
        assert client.delete(stray).status == 409
        assert client.get(stray, 'o').body == OLD

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'PUT', 'DELETE'])
    def test_stays_in_the_root_after_a_request_for_the_container(
        self, client, backing, stray, method
    ):
        assert client.request(method, stray).status in (200, 202, 204, 409)
        assert backing.root_names(stray) == ['o']

    def test_older_than_the_row_of_a_shard_is_not_listed(self, client, twice):
        (row,) = client.listing(twice).json()
        assert (row['bytes'], row['hash']) == (len(NEW), NEW_ETAG)

    def test_that_was_overwritten_is_deleted_with_the_object(
        self, client, backing, twice
    ):
        assert client.delete(twice, 'o').status == 204
        assert client.get(twice, 'o').status == 404
        assert client.listing(twice).json() == []
        headers = client.head(twice).headers
        assert headers['x-container-object-count'] == '0'
        assert backing.root_names(twice) == []
        assert client.delete(twice).status == 204

    def test_newer_than_the_row_of_a_shard_is_listed_and_read(
        self, client, unfiltered, sharded
    ):
        client.put(sharded, 'o', OLD)
        unfiltered.put(sharded, 'o', NEW)
        (row,) = client.listing(sharded).json()
        assert row['hash'] == NEW_ETAG
        assert client.get(sharded, 'o').body == NEW


class TestDaemon:
    def test_moves_strays(self, cluster, client, backing, stray):
        settle(cluster)
        assert backing.root_names(stray) == []
        assert backing.list_all_shards(stray) == ['o']
        assert client.listing(stray).names() == ['o']

    def test_changes_no_row(
        self, cluster, client, unfiltered, backing, sharded
    ):
        unfiltered.put(sharded, 'typed', OLD)
        typed = {'Content-Type': 'text/x'}
        unfiltered.post(sharded, 'typed', headers=typed)
        unfiltered.put(sharded, 'ü/☃ %', OLD)
        to_link = {'X-Symlink-Target': f'{sharded}/typed'}
        unfiltered.put(sharded, 'link', headers=to_link)
        manifest = json.dumps([{'path': f'{sharded}/typed'}]).encode()
        query = {'multipart-manifest': 'put'}
        unfiltered.put(sharded, 'large', manifest, query=query)
        before = unfiltered.listing(sharded).json()
        used = unfiltered.head(sharded).headers['x-container-bytes-used']
        settle(cluster)
        assert client.listing(sharded).json() == before
        assert backing.root_names(sharded) == []
        headers = client.head(sharded).headers
        assert headers['x-container-bytes-used'] == used

    def test_moves_more_strays_than_it_reads_at_once(
        self, cluster, client, backing, sharded
    ):
        names = [f'{i:05}' for i in range(MANY)]
        put_rows(cluster, client.account, sharded, names)
        update(cluster)
        Resharder(cluster).once(rows_per_second=ROWS_PER_SECOND)
        assert client.listing(sharded).names() == names
        assert backing.root_names(sharded) == []

    def test_keeps_the_newer_row_of_a_shard(
        self, cluster, client, backing, twice
    ):
        settle(cluster)
        (row,) = client.listing(twice).json()
        assert row['name'] == 'o'
        assert row['bytes'] == len(NEW)
        assert row['hash'] == NEW_ETAG
        assert backing.root_names(twice) == []
        headers = client.head(twice).headers
        assert headers['x-container-object-count'] == '1'
        assert headers['x-container-bytes-used'] == str(len(NEW))

    def test_moves_later_strays_of_the_same_name(
        self, cluster, client, unfiltered, backing, stray
    ):
        settle(cluster)
        unfiltered.put(stray, 'o', NEW)
        (row,) = client.listing(stray).json()
        assert row['hash'] == NEW_ETAG
        assert client.delete(stray, 'o').status == 204
        unfiltered.put(stray, 'o', OLD)
        settle(cluster)
        (row,) = client.listing(stray).json()
        assert row['bytes'] == len(OLD)
        assert backing.root_names(stray) == []


class TestUnfilteredProxy:
    def test_shows_only_the_root(self, client, unfiltered, stray):
        client.put(stray, 'p', NEW)
        assert unfiltered.listing(stray).names() == ['o']
        headers = unfiltered.head(stray).headers
        assert SHARD_COUNT_HEADER.lower() not in headers

    def test_reads_all_objects(self, client, unfiltered, sharded):
        client.put(sharded, 'o', NEW)
        assert unfiltered.get(sharded, 'o').body == NEW

    def test_changes_metadata_that_is_listed(
        self, client, unfiltered, sharded
    ):
        client.put(sharded, 'o', NEW)
        typed = {'Content-Type': 'text/x'}
        assert unfiltered.post(sharded, 'o', headers=typed).status == 202
        (row,) = client.listing(sharded).json()
        assert (row['hash'], row['content_type']) == (NEW_ETAG, 'text/x')
        assert client.delete(sharded, 'o').status == 204
        assert client.listing(sharded).json() == []

    def test_deletes_objects_whose_rows_a_repeated_delete_removes(
        self, client, unfiltered, sharded
    ):
        client.put(sharded, 'o', NEW)
        assert unfiltered.delete(sharded, 'o').status == 204
        assert client.get(sharded, 'o').status == 404
        assert client.listing(sharded).names() == ['o']
        assert client.delete(sharded, 'o').status == 404
        assert client.listing(sharded).json() == []
        assert client.delete(sharded).status == 204


@pytest.mark.parametrize('name', ['n' * 1024, '件' * 341])
def test_longest_names_are_listed_by_shards(client, backing, sharded, name):
    headers = {'If-None-Match': '*'}
    assert client.put(sharded, name, NEW, headers=headers).status == 201
    assert client.put(sharded, name, OLD, headers=headers).status == 412
    assert client.get(sharded, name).body == NEW
    assert client.listing(sharded).names() == [name]
    assert backing.root_names(sharded) == []
    assert backing.list_all_shards(sharded) == [name]
