# SPDX-License-Identifier: Apache-2.0
"""openstacksdk's object store, on plain and sharded containers."""

from importlib.metadata import version

import openstack
import pytest
from openstack.exceptions import ConflictException, NotFoundException
from packaging.version import Version

from test.functional.conftest import (
    MAKERS,
    SHARD_COUNT_HEADER,
    SHARDS,
    STORED_BODY,
    USER,
    unique,
)
from test.functional.realclients import COUNTS, names_in, store

# openstacksdk warns about its own code.
pytestmark = [
    pytest.mark.filterwarnings('ignore:Support for InfluxDB'),
    pytest.mark.filterwarnings('ignore:The _compute_attributes method'),
]

SEGMENT_SIZE = 1000
LARGE = bytes(range(250)) * 10
NAMES = ['a', 'b/1', 'b/2', 'b/c/3', 'with space', 'ü/☃']


@pytest.fixture(scope='module')
def connection(cluster):
    """The tests' user, logged in by auth v1.

    The auth plugin is part of python-swiftclient.
    """
    with openstack.connect(
        load_envvars=False,
        load_yaml_config=False,
        auth_type='v1password',
        auth_url=cluster.auth_url,
        username=USER,
        password=cluster.users[USER],
    ) as connection:
        yield connection


@pytest.fixture(scope='module')
def sdk(connection):
    """The object store."""
    return connection.object_store


@pytest.fixture(scope='class', params=MAKERS)
def filled(request, login) -> str:
    """A container with some objects, which no test changes."""
    owner = login(USER)
    container = MAKERS[request.param](owner)
    store(owner, container, *NAMES)
    return container


def names_of(resources) -> list[str]:
    return [each.name for each in resources]


class TestContainer:
    def test_can_be_created_and_deleted(self, client, sdk):
        name = unique('sdk')
        sdk.create_container(name)
        assert client.head(name).status == 204
        sdk.delete_container(name, ignore_missing=False)
        assert client.head(name).status == 404

    def test_is_sharded_by_a_header(self, client, sdk):
        name = unique('sdk')
        # create_container sends only headers that it knows.
        sdk.put(f'/{name}', headers={SHARD_COUNT_HEADER: '3'})
        headers = client.head(name).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '3'

    def test_that_exists_is_left_unchanged(self, client, sdk, sharded):
        sdk.create_container(sharded)
        headers = client.head(sharded).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == str(SHARDS)

    def test_with_objects_is_not_deleted(self, client, sdk, container):
        store(client, container, 'o')
        with pytest.raises(ConflictException):
            sdk.delete_container(container)
        assert names_in(client, container) == ['o']

    def test_that_is_missing_is_not_found(self, sdk):
        with pytest.raises(NotFoundException):
            sdk.get_container_metadata(unique('missing'))

    def test_shows_its_sums(self, sdk, filled):
        shown = sdk.get_container_metadata(filled)
        assert shown.object_count == len(NAMES)
        assert shown.bytes_used == len(NAMES) * len(STORED_BODY)

    def test_takes_metadata(self, sdk, container):
        sdk.set_container_metadata(container, colour='blue', size='large')
        sdk.delete_container_metadata(container, ['size'])
        shown = sdk.get_container_metadata(container)
        assert shown.metadata == {'colour': 'blue'}

    def test_can_be_opened_to_anybody(self, client, connection, container):
        store(client, container, 'o')
        connection.set_container_access(container, 'public')
        assert connection.get_container_access(container) == 'public'
        assert client.anonymous().get(container, 'o').body == STORED_BODY

    @pytest.mark.parametrize('kind', COUNTS)
    def test_is_listed_page_by_page(self, client, sdk, kind):
        prefix = unique('sdk')
        names = [f'{prefix}-{i}' for i in range(3)]
        for name in names:
            client.put(name, headers=COUNTS[kind])
        assert names_of(sdk.containers(prefix=prefix, limit=1)) == names


class TestListing:
    @pytest.mark.parametrize('limit', [1, 2, 10])
    @pytest.mark.parametrize('prefix', [None, 'b/'])
    def test_is_whole_by_pages_of_any_size(self, sdk, filled, limit, prefix):
        found = names_of(sdk.objects(filled, limit=limit, prefix=prefix))
        assert found == [n for n in NAMES if n.startswith(prefix or '')]

    def test_has_sizes_and_types(self, client, sdk, filled):
        shown = next(sdk.objects(filled))
        assert shown.content_length == len(STORED_BODY)
        assert shown.content_type == 'application/octet-stream'
        assert shown.etag == client.head(filled, 'a').headers['etag']

    def test_can_be_searched(self, connection, filled):
        found = connection.search_objects(filled, filters={'name': 'ü/☃'})
        assert names_of(found) == ['ü/☃']


class TestObject:
    def test_can_be_stored_read_and_deleted(self, sdk, container):
        sdk.create_object(container, 'b ☃/o', data=STORED_BODY)
        assert sdk.download_object('b ☃/o', container) == STORED_BODY
        sdk.delete_object('b ☃/o', container=container, ignore_missing=False)
        with pytest.raises(NotFoundException):
            sdk.get_object_metadata('b ☃/o', container)

    def test_that_is_missing_may_be_deleted_by_default(self, sdk, filled):
        sdk.delete_object('missing', container=filled)
        with pytest.raises(NotFoundException):
            sdk.delete_object(
                'missing', container=filled, ignore_missing=False
            )

    def test_is_streamed(self, sdk, filled):
        chunks = sdk.stream_object('ü/☃', filled, chunk_size=3)
        assert b''.join(chunks) == STORED_BODY

    def test_is_written_to_a_file(self, connection, filled, tmp_path):
        path = tmp_path / 'o'
        connection.get_object(filled, 'ü/☃', outfile=str(path))
        assert path.read_bytes() == STORED_BODY

    def test_takes_metadata(self, sdk, container):
        more = {'metadata': {'colour': 'blue'}}
        sdk.create_object(container, 'o', data=STORED_BODY, **more)
        sdk.set_object_metadata('o', container, size='large')
        shown = sdk.get_object_metadata('o', container).metadata
        assert shown == {'colour': 'blue', 'size': 'large'}

    def test_of_a_folder_marks_it(self, client, connection, container):
        connection.create_directory_marker_object(container, 'folder')
        (row,) = client.listing(container).json()
        assert row['content_type'] == 'application/directory'

    def test_can_be_read_by_anybody_with_a_url(self, client, sdk, container):
        store(client, container, 'o')
        sdk.set_container_temp_url_key(container, 'secret')
        key = sdk.get_temp_url_key(container)
        path = sdk.generate_temp_url(
            client.path(container, 'o'), 3600, 'GET', temp_url_key=key
        )
        assert client.anonymous().raw('GET', path).body == STORED_BODY


@pytest.fixture
def large(tmp_path) -> str:
    """The path of a file that is uploaded in three segments."""
    path = tmp_path / 'large'
    path.write_bytes(LARGE)
    return str(path)


class TestLargeObject:
    @pytest.fixture(params=[True, False], ids=['slo', 'dlo'])
    def uploaded(self, request, sdk, container, large) -> str:
        """A container with the file and its segments."""
        sdk.upload_object(
            container,
            'large',
            filename=large,
            segment_size=SEGMENT_SIZE,
            use_slo=request.param,
        )
        return container

    def test_is_made_of_segments(self, client, uploaded):
        segments = [f'large/{i:06}' for i in range(3)]
        assert names_in(client, uploaded) == ['large', *segments]

    def test_is_read_as_one(self, sdk, uploaded):
        shown = sdk.get_object_metadata('large', uploaded)
        assert shown.content_length == len(LARGE)
        assert sdk.download_object('large', uploaded) == LARGE
        chunks = sdk.stream_object('large', uploaded, chunk_size=600)
        assert b''.join(chunks) == LARGE

    def test_is_not_stale_until_the_file_changes(self, sdk, uploaded, large):
        assert not sdk.is_object_stale(uploaded, 'large', large)
        with open(large, 'ab') as file:
            file.write(b'more')
        assert sdk.is_object_stale(uploaded, 'large', large)

    @pytest.mark.skipif(
        Version(version('openstacksdk')) < Version('4.22'),
        reason='openstacksdk 4.13, for Python 3.10, leaves the segments',
    )
    def test_that_is_static_is_deleted_with_its_segments(
        self, client, connection, container, large
    ):
        connection.object_store.upload_object(
            container, 'large', filename=large, segment_size=SEGMENT_SIZE
        )
        assert len(names_in(client, container)) == 4
        connection.delete_object(container, 'large')
        assert names_in(client, container) == []
