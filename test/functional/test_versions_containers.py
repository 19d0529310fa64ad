# SPDX-License-Identifier: Apache-2.0
"""Containers that belong to a sharded container are sharded like it.

They are the hidden container in which object versioning keeps versions, and
the one in which S3 keeps the parts of large uploads.
"""

import pytest

from shardmw.core.placement import versions_container
from test.functional.backing import RESERVED_NAMES
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    make_plain,
    make_sharded,
    unique,
)
from test.functional.operating import settle

ON = {'X-Versions-Enabled': 'true'}
OFF = {'X-Versions-Enabled': 'false'}
EIGHT = {SHARD_COUNT_HEADER: '8'}

#: Enough versions for each shard to get one.
MANY = 40
FEW = 6


def versions_shards(backing, container) -> list[int]:
    """Return the indices of the shards of a versions container."""
    return backing.shard_indices(versions_container(container))


def objects_in(backing, container, shard) -> int:
    headers = backing.head_shard(container, shard).headers
    return int(headers['x-container-object-count'])


@pytest.fixture
def versioned(client, sharded):
    """A sharded container with versioning on."""
    assert client.post(sharded, headers=ON).status == 204
    return sharded


def rewrite(client, container, versions: int) -> None:
    """Make versions of one object ``o``."""
    for i in range(versions):
        assert client.put(container, 'o', f'{i}'.encode()).status == 201


@pytest.fixture
def rewritten(client, versioned):
    """A sharded container with a few versions of one object ``o``."""
    rewrite(client, versioned, FEW)
    return versioned


@pytest.fixture(scope='class')
def lasting(login):
    """A container with many versions, which no test changes."""
    owner = login(USER)
    container = make_sharded(owner, X_Versions_Enabled='true')
    rewrite(owner, container, MANY)
    return container


class TestVersionsContainer:
    def test_has_as_many_shards(self, backing, versioned):
        assert versions_shards(backing, versioned) == list(range(SHARDS))

    def test_of_a_plain_container_is_plain(self, client, plain, backing):
        assert client.post(plain, headers=ON).status == 204
        assert versions_shards(backing, plain) == []

    @pytest.mark.parametrize('length', [0, 200, 246])
    def test_has_as_many_shards_if_created_with_the_container(
        self, client, backing, length
    ):
        container = unique('versioned').ljust(length, 'c')
        headers = {**EIGHT, **ON}
        assert client.put(container, headers=headers).status == 201
        assert versions_shards(backing, container) == list(range(8))

    def test_spreads_the_versions_of_one_object(self, backing, lasting):
        versions = versions_container(lasting)
        found = [objects_in(backing, versions, i) for i in range(SHARDS)]
        assert sum(found) == MANY
        assert all(found)

    def test_holds_nothing_itself(self, backing, lasting):
        assert backing.root_names(versions_container(lasting)) == []

    def test_is_listed_in_pages(self, client, lasting):
        query = {'format': 'json', 'versions': '', 'limit': '7'}
        rows = client.get(lasting, query=query).json()
        walked = list(rows)
        while rows:
            last = rows[-1]
            query['marker'] = last['name']
            query['version_marker'] = last['version_id']
            rows = client.get(lasting, query=query).json()
            walked += rows
        ids = [row['version_id'] for row in walked]
        assert len(ids) == MANY
        assert ids == sorted(ids, reverse=True)

    def test_is_not_accessible_to_clients(self, client, versioned):
        versions = versions_container(versioned)
        assert client.get(versions).status == 412
        assert client.put(versions, '\0o\x001', b'x').status == 412
        headers = {'X-Backend-Allow-Reserved-Names': 'true'}
        assert client.get(versions, headers=headers).status == 412

    def test_goes_with_the_container(self, client, backing, versioned):
        assert client.delete(versioned).status == 204
        assert versions_shards(backing, versioned) == []
        assert backing.shards(versioned) == []

    def test_stays_with_its_versions(self, client, backing, rewritten):
        client.post(rewritten, headers=OFF)
        assert client.delete(rewritten, 'o').status == 204
        assert client.delete(rewritten).status == 409
        assert len(versions_shards(backing, rewritten)) == SHARDS

    def test_is_not_left_if_the_container_cannot_be_created(
        self, client, backing
    ):
        container = unique('versioned')
        headers = {**ON, **EIGHT, 'X-Container-Read': '.wrong:acl'}
        assert client.put(container, headers=headers).status == 400
        assert versions_shards(backing, container) == []
        assert client.head(container).status == 404

    def test_of_a_recreated_container_has_the_new_count(
        self, client, backing, versioned
    ):
        client.delete(versioned)
        headers = {**EIGHT, **ON}
        assert client.put(versioned, headers=headers).status == 201
        assert versions_shards(backing, versioned) == list(range(8))

    def test_that_a_proxy_without_the_filter_deleted_comes_back(
        self, cluster, client, unfiltered, backing, rewritten
    ):
        assert unfiltered.delete(rewritten).status == 204
        assert not backing.has_root(rewritten)
        cluster.daemon('container-updater')
        headers = {**EIGHT, **ON}
        assert client.put(rewritten, headers=headers).status in (201, 202)
        settle(cluster)
        assert client.listing(rewritten).names() == ['o']
        rows = client.get(
            rewritten, query={'format': 'json', 'versions': ''}
        ).json()
        assert len(rows) == FEW
        for row in rows:
            query = {'version-id': row['version_id']}
            assert client.get(rewritten, 'o', query=query).status == 200

    def test_that_was_left_over_keeps_its_policy(
        self, client, unfiltered, backing
    ):
        container = unique('versioned')
        unfiltered.put(
            versions_container(container),
            headers={**RESERVED_NAMES, 'X-Storage-Policy': 'Policy-1'},
        )
        headers = {**EIGHT, **ON, 'X-Storage-Policy': 'Policy-0'}
        assert client.put(container, headers=headers).status == 201
        assert client.put(container, 'o', b'1').status == 201
        assert client.get(container, 'o').body == b'1'
        versions = versions_container(container)
        for shard in range(8):
            headers = backing.head_shard(versions, shard).headers
            assert headers['x-storage-policy'] == 'Policy-1'
        assert sum(objects_in(backing, versions, i) for i in range(8)) == 1

    def test_is_the_same_after_versioning_was_off(
        self, client, backing, lasting
    ):
        client.post(lasting, headers=OFF)
        assert client.post(lasting, headers=ON).status == 204
        assert len(versions_shards(backing, lasting)) == SHARDS
        rows = client.get(
            lasting, query={'format': 'json', 'versions': ''}
        ).json()
        assert len(rows) == MANY


@pytest.fixture(scope='class', params=[{}, EIGHT], ids=['plain', 'sharded'])
def with_versions(request, new_account, cluster):
    """An account with a container of three versions of one object."""
    account = new_account()
    account.put('c', headers={**ON, **request.param})
    for body in (b'1', b'22', b'333'):
        account.put('c', 'o', body)
    cluster.daemon('container-updater')
    return account


class TestAccount:
    def test_listing_counts_the_versions_bytes(self, with_versions):
        (row,) = with_versions.get(query={'format': 'json'}).json()
        assert (row['name'], row['count'], row['bytes']) == ('c', 1, 6)

    def test_counts_the_hidden_container_but_no_shard(self, with_versions):
        headers = with_versions.head().headers
        assert headers['x-account-container-count'] == '2'

    def test_listing_of_a_page_counts_the_versions_bytes(self, with_versions):
        query = {'format': 'json', 'prefix': 'c', 'limit': '1'}
        (row,) = with_versions.get(query=query).json()
        assert row['bytes'] == 6


@pytest.fixture(scope='class')
def rules(cluster):
    """Rules that shard new containers of some names."""
    rules = '*/ruled-??? = 4, */own+segments = 2'
    cluster.reconfigure({'shardmw.shard_rules': rules})
    yield
    cluster.reconfigure({'shardmw.shard_rules': None})


class TestS3:
    def count_of(self, client, container) -> str | None:
        assert client.put(container).status in (201, 202)
        return client.head(container).headers.get(SHARD_COUNT_HEADER.lower())

    def test_parts_lie_in_as_many_shards_as_the_bucket(self, client, sharded):
        assert self.count_of(client, f'{sharded}+segments') == str(SHARDS)

    def test_a_bucket_may_be_called_segments(self, client):
        assert self.count_of(client, '+segments') is None

    def test_parts_of_a_plain_bucket_lie_in_a_plain_one(self, client, plain):
        assert self.count_of(client, f'{plain}+segments') is None

    def test_parts_follow_the_rule_of_the_bucket(self, client, rules):
        bucket = 'ruled-' + unique('')[-3:]
        assert self.count_of(client, bucket) == '4'
        assert self.count_of(client, f'{bucket}+segments') == '4'

    def test_parts_follow_a_rule_of_their_own(self, client, rules):
        client.put('own', headers=EIGHT)
        assert self.count_of(client, 'own+segments') == '2'

    def test_versions_follow_the_bucket(self, client, backing, rules):
        bucket = 'ruled-' + unique('')[-3:]
        assert client.put(bucket, headers=ON).status == 201
        assert len(versions_shards(backing, bucket)) == 4


def test_versions_of_a_container_older_than_the_filter_stay_plain(
    client, unfiltered, backing
):
    container = make_plain(unfiltered, X_Versions_Enabled='true')
    assert client.put(container, 'o', b'1').status == 201
    assert client.put(container, 'o', b'2').status == 201
    assert client.get(container, 'o').body == b'2'
    assert versions_shards(backing, container) == []
