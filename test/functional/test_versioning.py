# SPDX-License-Identifier: Apache-2.0
"""Object versioning and its two older modes, in containers of both kinds."""

import hashlib

import pytest

from test.functional.conftest import USER, unique

FIRST = b'the first'
SECOND = b'the second one'
ON = {'X-Versions-Enabled': 'true'}
OFF = {'X-Versions-Enabled': 'false'}


def versions_of(client, container, **params):
    """Return the rows of the listing of all versions."""
    answer = client.get(
        container, query={'format': 'json', 'versions': '', **params}
    )
    assert answer.status == 200
    return answer.json()


def put_version(client, container, name, body) -> str:
    """Store a version; return its id."""
    answer = client.put(container, name, body)
    assert answer.status == 201
    return answer.headers['x-object-version-id']


@pytest.fixture
def versioned(client, container):
    """A container with versioning on."""
    assert client.post(container, headers=ON).status == 204
    return container


def make_versions(client, container) -> list[str]:
    """Store two versions of ``o``; return their ids, the older first."""
    return [
        put_version(client, container, 'o', FIRST),
        put_version(client, container, 'o', SECOND),
    ]


@pytest.fixture
def versions(client, versioned):
    """The ids of two versions of the object ``o``, the older first."""
    return make_versions(client, versioned)


@pytest.fixture(scope='class')
def lasting_versions(login, lasting):
    """The same in a container that no test changes."""
    owner = login(USER)
    owner.post(lasting, headers=ON)
    return make_versions(owner, lasting)


class TestReadOfVersions:
    def test_gets_the_newest(self, client, lasting, lasting_versions):
        got = client.get(lasting, 'o')
        assert got.body == SECOND
        assert got.headers['x-object-version-id'] == lasting_versions[1]
        got = client.head(lasting, 'o')
        assert got.headers['content-length'] == str(len(SECOND))
        assert got.headers['etag'] == hashlib.md5(SECOND).hexdigest()

    @pytest.mark.parametrize(('i', 'body'), [(0, FIRST), (1, SECOND)])
    def test_by_id_gets_that_version(
        self, client, lasting, lasting_versions, i, body
    ):
        query = {'version-id': lasting_versions[i]}
        got = client.get(lasting, 'o', query=query)
        assert (got.status, got.body) == (200, body)
        assert got.headers['x-object-version-id'] == lasting_versions[i]
        got = client.head(lasting, 'o', query=query)
        assert got.headers['content-length'] == str(len(body))

    def test_by_an_unknown_id_fails(self, client, lasting, lasting_versions):
        query = {'version-id': '1234567890.00000'}
        assert client.get(lasting, 'o', query=query).status == 404
        query = {'version-id': 'nonsense'}
        assert client.get(lasting, 'o', query=query).status == 400

    def test_by_listing_shows_the_newest(
        self, client, lasting, lasting_versions
    ):
        (row,) = client.listing(lasting).json()
        assert row['name'] == 'o'
        assert row['bytes'] == len(SECOND)
        assert row['hash'] == hashlib.md5(SECOND).hexdigest()
        assert row['version_symlink'] is True

    def test_by_listing_of_versions_shows_all(
        self, client, lasting, lasting_versions
    ):
        newest, oldest = versions_of(client, lasting)
        assert newest['name'] == oldest['name'] == 'o'
        assert newest['version_id'] == lasting_versions[1]
        assert oldest['version_id'] == lasting_versions[0]
        assert newest['is_latest'] is True
        assert oldest['is_latest'] is False
        assert newest['bytes'] == len(SECOND)
        assert oldest['bytes'] == len(FIRST)
        assert oldest['hash'] == hashlib.md5(FIRST).hexdigest()

    def test_statistics_count_the_bytes_of_all_versions(
        self, client, lasting, lasting_versions
    ):
        headers = client.head(lasting).headers
        assert headers['x-container-object-count'] == '1'
        assert headers['x-container-bytes-used'] == str(len(FIRST + SECOND))


class TestVersioning:
    def test_container_says_whether_it_is_on(self, client, container):
        assert 'x-versions-enabled' not in client.head(container).headers
        client.post(container, headers=ON)
        assert client.head(container).headers['x-versions-enabled'] == 'True'
        client.post(container, headers=OFF)
        assert client.head(container).headers['x-versions-enabled'] == 'False'

    @pytest.mark.parametrize('count', [{}, {'X-Container-Shard-Count': '4'}])
    def test_can_be_on_from_the_start(self, client, count):
        container = unique('versioned')
        headers = {**ON, **count}
        assert client.put(container, headers=headers).status == 201
        put_version(client, container, 'o', FIRST)
        put_version(client, container, 'o', SECOND)
        assert client.get(container, 'o').body == SECOND
        assert len(versions_of(client, container)) == 2

    def test_listing_of_versions_has_many_objects(self, client, versioned):
        put_version(client, versioned, 'a', FIRST)
        put_version(client, versioned, 'b/1', FIRST)
        put_version(client, versioned, 'a', SECOND)
        put_version(client, versioned, 'b/2', FIRST)
        put_version(client, versioned, 'c', FIRST)
        rows = versions_of(client, versioned)
        names = [row['name'] for row in rows]
        assert names == ['a', 'a', 'b/1', 'b/2', 'c']
        latest = [row['is_latest'] for row in rows]
        assert latest == [True, False, True, True, True]
        rows = versions_of(client, versioned, prefix='a')
        assert len(rows) == 2
        rows = versions_of(client, versioned, delimiter='/', prefix='b')
        assert rows == [{'subdir': 'b/'}]
        rows = versions_of(client, versioned, limit='2')
        assert [row['name'] for row in rows] == ['a', 'a']
        rows = versions_of(client, versioned, marker='a')
        assert [row['name'] for row in rows] == ['b/1', 'b/2', 'c']

    def test_listing_of_versions_goes_on_after_a_version(
        self, client, versioned, versions
    ):
        put_version(client, versioned, 'p', FIRST)
        rows = versions_of(
            client, versioned, marker='o', version_marker=versions[1]
        )
        assert [row['name'] for row in rows] == ['o', 'p']
        assert rows[0]['version_id'] == versions[0]

    def test_delete_leaves_a_marker(self, client, versioned, versions):
        answer = client.delete(versioned, 'o')
        assert answer.status == 204
        marker = answer.headers['x-object-version-id']
        assert client.get(versioned, 'o').status == 404
        assert client.listing(versioned).json() == []
        rows = versions_of(client, versioned)
        ids = [row['version_id'] for row in rows]
        assert ids == [marker, versions[1], versions[0]]
        assert rows[0]['content_type'] == (
            'application/x-deleted;swift_versions_deleted=1'
        )
        query = {'version-id': versions[1]}
        assert client.get(versioned, 'o', query=query).body == SECOND

    def test_version_can_be_restored(self, client, versioned, versions):
        client.delete(versioned, 'o')
        query = {'version-id': versions[0]}
        answer = client.put(versioned, 'o', query=query)
        assert answer.status == 201
        got = client.get(versioned, 'o')
        assert got.body == FIRST
        assert got.headers['x-object-version-id'] == versions[0]
        assert client.listing(versioned).names() == ['o']

    def test_delete_of_the_newest_version_restores_none(
        self, client, versioned, versions
    ):
        query = {'version-id': versions[1]}
        answer = client.delete(versioned, 'o', query=query)
        assert answer.status == 204
        assert client.get(versioned, 'o').status == 404
        (row,) = versions_of(client, versioned)
        assert row['version_id'] == versions[0]

    def test_delete_of_an_older_version_keeps_the_newest(
        self, client, versioned, versions
    ):
        query = {'version-id': versions[0]}
        assert client.delete(versioned, 'o', query=query).status == 204
        assert client.get(versioned, 'o').body == SECOND
        assert client.get(versioned, 'o', query=query).status == 404
        assert len(versions_of(client, versioned)) == 1

    def test_object_from_before_it_becomes_a_version(self, client, container):
        client.put(container, 'o', FIRST)
        client.post(container, headers=ON)
        put_version(client, container, 'o', SECOND)
        assert [row['bytes'] for row in versions_of(client, container)] == [
            len(SECOND),
            len(FIRST),
        ]
        query = {'version-id': 'null'}
        assert client.get(container, 'o', query=query).status == 404

    def test_object_from_before_it_is_the_null_version(
        self, client, container
    ):
        client.put(container, 'o', FIRST)
        client.post(container, headers=ON)
        (row,) = versions_of(client, container)
        assert row['version_id'] == 'null'
        query = {'version-id': 'null'}
        assert client.get(container, 'o', query=query).body == FIRST

    def test_when_off_keeps_the_versions_and_adds_none(
        self, client, versioned, versions
    ):
        client.post(versioned, headers=OFF)
        answer = client.put(versioned, 'o', b'unversioned')
        assert answer.status == 201
        assert client.get(versioned, 'o').body == b'unversioned'
        ids = [row['version_id'] for row in versions_of(client, versioned)]
        assert ids == ['null', versions[1], versions[0]]
        assert client.delete(versioned, 'o').status == 204
        ids = [row['version_id'] for row in versions_of(client, versioned)]
        assert ids == [versions[1], versions[0]]

    def test_post_changes_metadata_of_the_newest(
        self, client, versioned, versions
    ):
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(versioned, 'o', headers=headers).status == 202
        got = client.get(versioned, 'o')
        assert got.headers['x-object-meta-colour'] == 'blue'
        assert got.body == SECOND
        query = {'version-id': versions[0]}
        got = client.head(versioned, 'o', query=query)
        assert 'x-object-meta-colour' not in got.headers

    def test_container_with_versions_can_not_be_deleted(
        self, client, versioned, versions
    ):
        client.delete(versioned, 'o')
        assert client.listing(versioned).json() == []
        assert client.delete(versioned).status == 409
        assert len(versions_of(client, versioned)) == 3
        assert client.put(versioned, 'p', FIRST).status == 201

    def test_container_without_versions_can_be_deleted(
        self, client, versioned, versions
    ):
        older = {'version-id': versions[0]}
        newer = {'version-id': versions[1]}
        client.delete(versioned, 'o', query=older)
        client.delete(versioned, 'o', query=newer)
        assert client.delete(versioned).status == 204
        assert client.head(versioned).status == 404

    def test_copy_of_a_version_copies_that_version(
        self, client, versioned, versions, sharded
    ):
        answer = client.copy(
            versioned,
            'o',
            f'{sharded}/copied',
            query={'version-id': versions[0]},
        )
        assert answer.status == 201
        assert client.get(sharded, 'copied').body == FIRST

    def test_copy_into_the_container_makes_a_version(
        self, client, versioned, versions, sharded
    ):
        client.put(sharded, 'source', b'copied')
        assert client.copy(sharded, 'source', f'{versioned}/o').status == 201
        assert client.get(versioned, 'o').body == b'copied'
        assert len(versions_of(client, versioned)) == 3

    def test_keeps_versions_of_a_large_object(
        self, client, versioned, sharded
    ):
        client.put(sharded, 'seg', FIRST)
        client.put(
            versioned,
            'large',
            f'[{{"path": "/{sharded}/seg"}}]'.encode(),
            query={'multipart-manifest': 'put'},
        )
        put_version(client, versioned, 'large', SECOND)
        newest, oldest = versions_of(client, versioned)
        query = {'version-id': oldest['version_id']}
        assert client.get(versioned, 'large', query=query).body == FIRST
        assert client.get(versioned, 'large').body == SECOND

    def test_keeps_versions_of_unusual_names(self, client, versioned):
        put_version(client, versioned, 'ü/☃ %', FIRST)
        put_version(client, versioned, 'ü/☃ %', SECOND)
        assert client.get(versioned, 'ü/☃ %').body == SECOND
        names = [row['name'] for row in versions_of(client, versioned)]
        assert names == ['ü/☃ %'] * 2

    @pytest.mark.parametrize('name', ['o.txt', '.css', 'o', 'o.unknown'])
    def test_content_type_is_not_guessed_from_the_name(
        self, client, versioned, name
    ):
        assert client.put(versioned, name, FIRST).status == 201
        got = client.get(versioned, name)
        listed = client.listing(versioned).json()[0]['content_type']
        link = client.get(versioned, name, query='symlink=get')
        assert (
            got.headers['content-type'],
            listed,
            link.headers['content-type'],
        ) == ('application/octet-stream',) * 3

    def test_strangers_write_by_acl(self, client, stranger, versioned):
        assert stranger.put(versioned, 'o', FIRST).status == 403
        headers = {
            'X-Container-Read': 'test:tester3',
            'X-Container-Write': 'test:tester3',
        }
        client.post(versioned, headers=headers)
        put_version(stranger, versioned, 'o', FIRST)
        put_version(stranger, versioned, 'o', SECOND)
        assert stranger.get(versioned, 'o').body == SECOND
        assert stranger.delete(versioned, 'o').status == 204
        assert len(versions_of(client, versioned)) == 3


class TestVersionsLocation:
    """Older versions go into another container, and come back."""

    @pytest.fixture
    def stacked(self, client, two_containers):
        """The containers of the current and of older versions."""
        current, archive = two_containers
        headers = {'X-Versions-Location': archive}
        assert client.post(current, headers=headers).status == 204
        return two_containers

    def test_is_shown(self, client, stacked):
        current, archive = stacked
        headers = client.head(current).headers
        assert headers['x-versions-location'] == archive
        headers = client.get(current).headers
        assert headers['x-versions-location'] == archive

    def test_put_archives_what_was_there(self, client, stacked):
        current, archive = stacked
        client.put(current, 'o', FIRST)
        assert client.listing(archive).json() == []
        client.put(current, 'o', SECOND)
        assert client.get(current, 'o').body == SECOND
        (name,) = client.listing(archive).names()
        assert name.startswith('001o/')
        assert client.get(archive, name).body == FIRST

    def test_delete_restores_the_version_before(self, client, stacked):
        current, archive = stacked
        client.put(current, 'o', FIRST)
        client.put(current, 'o', SECOND)
        client.put(current, 'o', b'third')
        assert client.delete(current, 'o').status == 204
        assert client.get(current, 'o').body == SECOND
        assert client.delete(current, 'o').status == 204
        assert client.get(current, 'o').body == FIRST
        assert client.delete(current, 'o').status == 204
        assert client.get(current, 'o').status == 404
        assert client.listing(archive).json() == []

    def test_can_be_removed(self, client, stacked):
        current, archive = stacked
        headers = {'X-Remove-Versions-Location': 'true'}
        client.post(current, headers=headers)
        client.put(current, 'o', FIRST)
        client.put(current, 'o', SECOND)
        assert client.listing(archive).json() == []


class TestHistoryLocation:
    """Every version and delete marker goes into another container."""

    @pytest.fixture
    def kept(self, client, two_containers):
        """The containers of the current version and of the history."""
        current, history = two_containers
        headers = {'X-History-Location': history}
        assert client.post(current, headers=headers).status == 204
        return two_containers

    def test_is_shown(self, client, kept):
        current, history = kept
        headers = client.head(current).headers
        assert headers['x-history-location'] == history

    def test_delete_keeps_the_version_and_a_marker(self, client, kept):
        current, history = kept
        client.put(current, 'o', FIRST)
        client.put(current, 'o', SECOND)
        assert client.delete(current, 'o').status == 204
        assert client.get(current, 'o').status == 404
        rows = client.listing(history).json()
        assert [row['bytes'] for row in rows] == [len(FIRST), len(SECOND), 0]
        assert rows[2]['content_type'] == (
            'application/x-deleted;swift_versions_deleted=1'
        )
        assert client.get(history, rows[0]['name']).body == FIRST
        assert client.get(history, rows[1]['name']).body == SECOND
