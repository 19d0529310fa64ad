# SPDX-License-Identifier: Apache-2.0
"""Storage policies: features that reach from one policy into another."""

import pytest

from test.functional.conftest import MAKERS

BODY = b'0123456789'


@pytest.fixture(params=MAKERS)
def first(request, client):
    """A container of the first policy."""
    return MAKERS[request.param](client, X_Storage_Policy='Policy-0')


@pytest.fixture(params=MAKERS)
def second(request, client):
    """A container of the second policy."""
    return MAKERS[request.param](client, X_Storage_Policy='Policy-1')


def test_objects_lie_in_the_containers_policy(client, cluster, first, second):
    client.put(first, 'o', BODY)
    client.put(second, 'o', BODY)
    assert client.get(first, 'o').body == BODY
    assert client.get(second, 'o').body == BODY
    client.post(second, 'o', headers={'X-Object-Meta-Colour': 'blue'})
    headers = client.head(second, 'o').headers
    assert headers['x-object-meta-colour'] == 'blue'
    assert client.delete(second, 'o').status == 204
    assert client.listing(second).json() == []


def test_copy(client, first, second):
    client.put(first, 'o', BODY)
    assert client.copy(first, 'o', f'{second}/p').status == 201
    assert client.get(second, 'p').body == BODY
    assert client.copy(second, 'p', f'{first}/q').status == 201
    assert client.get(first, 'q').body == BODY


def test_copy_of_names_of_1024_bytes(client, first, second):
    client.put(second, 'n' * 1024, BODY)
    assert client.copy(second, 'n' * 1024, f'{first}/q').status == 201
    assert client.get(first, 'q').body == BODY


@pytest.mark.parametrize('headers', [{}, {'X-Newest': 'true'}], ids=str)
def test_symlink(client, first, second, headers):
    client.put(first, 'o', BODY)
    client.put(second, 'o', BODY)
    to_first = {'X-Symlink-Target': f'{first}/o'}
    to_second = {'X-Symlink-Target': f'{second}/o'}
    client.put(first, 'link', headers=to_second)
    client.put(second, 'link', headers=to_first)
    assert client.get(first, 'link', headers=headers).body == BODY
    assert client.get(second, 'link', headers=headers).body == BODY
    assert client.head(second, 'link', headers=headers).status == 200


def test_static_large_object(client, first, second):
    client.put(first, 'seg', b'first,')
    client.put(second, 'seg', b'second')
    manifest = f'[{{"path": "/{first}/seg"}}, {{"path": "/{second}/seg"}}]'
    query = {'multipart-manifest': 'put'}
    client.put(first, 'large', manifest.encode(), query=query)
    client.put(second, 'large', manifest.encode(), query=query)
    assert client.get(first, 'large').body == b'first,second'
    assert client.get(second, 'large').body == b'first,second'


def test_dynamic_large_object(client, first, second):
    client.put(first, 'seg/1', b'one,')
    client.put(first, 'seg/2', b'two')
    headers = {'X-Object-Manifest': f'{first}/seg/'}
    client.put(second, 'large', headers=headers)
    assert client.get(second, 'large').body == b'one,two'


def test_object_versioning(client, second):
    client.post(second, headers={'X-Versions-Enabled': 'true'})
    client.put(second, 'o', b'old')
    client.put(second, 'o', BODY)
    assert client.get(second, 'o').body == BODY
    rows = client.get(second, query='format=json&versions').json()
    query = {'version-id': rows[1]['version_id']}
    assert client.get(second, 'o', query=query).body == b'old'


def test_versions_location(client, first, second):
    client.post(second, headers={'X-Versions-Location': first})
    client.put(second, 'o', b'old')
    client.put(second, 'o', BODY)
    (name,) = client.listing(first).names()
    assert client.get(first, name).body == b'old'
    assert client.delete(second, 'o').status == 204
    assert client.get(second, 'o').body == b'old'
