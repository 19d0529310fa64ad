# SPDX-License-Identifier: Apache-2.0
"""Sharded containers in a cluster that encrypts what it stores."""

import hashlib

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Client
from test.functional.conftest import USER, make_plain, make_sharded

BODY = b'to be found in the clear nowhere ' * 100


@pytest.fixture(scope='module')
def encrypting(tmp_path_factory):
    options = ClusterOptions(encryption=True)
    folder = tmp_path_factory.mktemp('encrypting')
    with Cluster(folder, options) as cluster:
        yield cluster


@pytest.fixture
def client(encrypting):
    return Client.login(encrypting.auth_url, USER, encrypting.users[USER])


@pytest.fixture(params=[make_plain, make_sharded])
def container(request, client):
    return request.param(client)


def test_an_object_reads_back_as_it_was_sent(client, container):
    client.put(container, 'o', BODY, headers={'X-Object-Meta-A': 'b'})
    answer = client.get(container, 'o')
    assert answer.body == BODY
    assert answer.headers['etag'] == hashlib.md5(BODY).hexdigest()
    assert answer.headers['x-object-meta-a'] == 'b'


def test_a_range_is_decrypted(client, container):
    client.put(container, 'o', BODY)
    answer = client.get(container, 'o', headers={'Range': 'bytes=30-40'})
    assert answer.status == 206
    assert answer.body == BODY[30:41]


def test_a_listing_shows_the_etag_of_what_was_sent(client, container):
    client.put(container, 'o', BODY)
    (row,) = client.listing(container).json()
    assert row['hash'] == hashlib.md5(BODY).hexdigest()
    assert row['bytes'] == len(BODY)


def test_an_object_can_be_copied_to_another_container(client, container):
    client.put(container, 'o', BODY)
    other = make_sharded(client)
    assert client.copy(container, 'o', f'{other}/p').status == 201
    assert client.get(other, 'p').body == BODY


def test_conditions_hold_against_the_etag_of_what_was_sent(client, container):
    client.put(container, 'o', BODY)
    etag = hashlib.md5(BODY).hexdigest()
    unchanged = client.get(container, 'o', headers={'If-None-Match': etag})
    assert unchanged.status == 304
    assert client.get(container, 'o', headers={'If-Match': etag}).body == BODY


def test_nothing_lies_on_disk_in_the_clear(encrypting, client):
    container = make_sharded(client)
    client.put(container, 'o', BODY)
    stored = [
        path.read_bytes() for path in encrypting.devices_path.rglob('*.data')
    ]
    assert stored
    assert not any(BODY[:33] in content for content in stored)
