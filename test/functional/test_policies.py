# SPDX-License-Identifier: Apache-2.0
"""Storage policies, and features that span two policies."""

import pytest

from test.functional.conftest import MAKERS, USER, unique

BODY = b'0123456789'


@pytest.fixture(scope='class', params=MAKERS)
def first(request, login):
    """A container with the first policy."""
    return MAKERS[request.param](login(USER), X_Storage_Policy='Policy-0')


@pytest.fixture(scope='class', params=MAKERS)
def second(request, login):
    """A container with the second policy."""
    return MAKERS[request.param](login(USER), X_Storage_Policy='Policy-1')


class TestObject:
    def test_can_be_stored_read_and_deleted_in_the_policy_of_its_container(
        self, client, second
    ):
        client.put(second, 'alive', BODY)
        assert client.get(second, 'alive').body == BODY
        client.post(second, 'alive', headers={'X-Object-Meta-Colour': 'blue'})
        headers = client.head(second, 'alive').headers
        assert headers['x-object-meta-colour'] == 'blue'
        assert client.delete(second, 'alive').status == 204
        assert client.listing(second, prefix='alive').json() == []

    @pytest.mark.parametrize('name', ['o', 'n' * 1024], ids=['o', 'long'])
    def test_lies_on_disk_in_the_policy_of_its_container(
        self, client, cluster, second, name
    ):
        body = unique('body').encode()
        client.put(second, name, body)
        files = cluster.devices_path.glob('*/*/objects*/*/*/*/*.data')
        (found,) = [
            file
            for file in files
            if file.stat().st_size == len(body) and file.read_bytes() == body
        ]
        assert 'objects-1' in found.parts

    def test_has_its_versions_in_the_same_policy(self, client, second):
        client.post(second, headers={'X-Versions-Enabled': 'true'})
        client.put(second, 'versioned', b'old')
        client.put(second, 'versioned', BODY)
        assert client.get(second, 'versioned').body == BODY
        rows = client.get(second, query='format=json&versions&prefix=v').json()
        query = {'version-id': rows[1]['version_id']}
        assert client.get(second, 'versioned', query=query).body == b'old'


class TestAcrossPolicies:
    def test_objects_can_be_copied(self, client, first, second):
        client.put(first, 'copy-1', BODY)
        assert client.copy(first, 'copy-1', f'{second}/copy-2').status == 201
        assert client.get(second, 'copy-2').body == BODY
        assert client.copy(second, 'copy-2', f'{first}/copy-3').status == 201
        assert client.get(first, 'copy-3').body == BODY

    def test_objects_with_names_of_1024_bytes_can_be_copied(
        self, client, first, second
    ):
        client.put(second, 'n' * 1024, BODY)
        copied = client.copy(second, 'n' * 1024, f'{first}/short')
        assert copied.status == 201
        assert client.get(first, 'short').body == BODY

    @pytest.mark.parametrize('headers', [{}, {'X-Newest': 'true'}], ids=str)
    def test_symlinks_are_followed(self, client, first, second, headers):
        client.put(first, 'target', BODY)
        client.put(second, 'target', BODY)
        to_first = {'X-Symlink-Target': f'{first}/target'}
        to_second = {'X-Symlink-Target': f'{second}/target'}
        client.put(first, 'link', headers=to_second)
        client.put(second, 'link', headers=to_first)
        assert client.get(first, 'link', headers=headers).body == BODY
        assert client.get(second, 'link', headers=headers).body == BODY
        assert client.head(second, 'link', headers=headers).status == 200

    def test_static_large_objects_have_segments(self, client, first, second):
        client.put(first, 'static', b'first,')
        client.put(second, 'static', b'second')
        manifest = (
            f'[{{"path": "/{first}/static"}}, {{"path": "/{second}/static"}}]'
        ).encode()
        query = {'multipart-manifest': 'put'}
        client.put(first, 'large', manifest, query=query)
        client.put(second, 'large', manifest, query=query)
        assert client.get(first, 'large').body == b'first,second'
        assert client.get(second, 'large').body == b'first,second'

    def test_dynamic_large_objects_have_segments(self, client, first, second):
        client.put(first, 'dynamic/1', b'one,')
        client.put(first, 'dynamic/2', b'two')
        headers = {'X-Object-Manifest': f'{first}/dynamic/'}
        client.put(second, 'dynamic', headers=headers)
        assert client.get(second, 'dynamic').body == b'one,two'

    def test_versions_location_keeps_old_versions(self, client, first, second):
        client.post(second, headers={'X-Versions-Location': first})
        name = unique('o')
        client.put(second, name, b'old')
        client.put(second, name, BODY)
        prefix = f'{len(name):03x}{name}/'
        (version,) = client.listing(first, prefix=prefix).names()
        assert client.get(first, version).body == b'old'
        assert client.delete(second, name).status == 204
        assert client.get(second, name).body == b'old'
