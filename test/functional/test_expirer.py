# SPDX-License-Identifier: Apache-2.0
"""What the object expirer clears, which has no shardmw in its pipeline."""

import json

import pytest

from test.functional.conftest import USER, Pair, make_plain, make_sharded

BODY = b'0123456789'
#: Late enough for a POST to come before it, on a busy machine, too.
SOON = {'X-Delete-After': '4'}
LATER = {'X-Delete-After': '1000'}
LONG_NAME = 'n' * 1024


@pytest.fixture(scope='module')
def cleared(cluster, login) -> Pair:
    """A plain and a sharded container, once the expirer came by."""
    owner = login(USER)
    pair = Pair(make_plain(owner), make_sharded(owner))
    put_objects(owner, pair.plain)
    put_objects(owner, pair.sharded)
    delete_large_object(owner, pair.plain)
    delete_large_object(owner, pair.sharded)
    owner.wait_until_gone(pair.plain, 'posted')
    owner.wait_until_gone(pair.sharded, 'posted')
    owner.put(pair.plain, 'again', BODY)
    owner.put(pair.sharded, 'again', BODY)
    cluster.daemon('container-updater')
    cluster.daemon('object-expirer')
    return pair


@pytest.fixture(params=Pair._fields)
def container(request, cleared) -> str:
    """Either of them."""
    return getattr(cleared, request.param)


def put_objects(owner, container):
    owner.put(container, 'put', BODY, headers=SOON)
    owner.put(container, LONG_NAME, BODY, headers=SOON)
    owner.put(container, 'again', b'old', headers=SOON)
    owner.put(container, 'later', BODY, headers=LATER)
    owner.put(container, 'saved', BODY, headers=SOON)
    owner.post(container, 'saved')
    owner.put(container, 'posted', BODY)
    owner.post(container, 'posted', headers=SOON)


def delete_large_object(owner, container):
    """Leave the segments of a large object to the expirer."""
    long_segment = 's' * 1024
    owner.put(container, 'segment', BODY)
    owner.put(container, long_segment, BODY)
    manifest = [
        {'path': f'/{container}/segment'},
        {'path': f'/{container}/{long_segment}'},
    ]
    owner.put(
        container,
        'large',
        json.dumps(manifest).encode(),
        query={'multipart-manifest': 'put'},
    )
    answer = owner.delete(
        container,
        'large',
        query={'multipart-manifest': 'delete', 'async': 'on'},
    )
    assert answer.status == 204


def test_expired_objects_go(client, container):
    names = client.listing(container).names()
    assert 'put' not in names
    assert LONG_NAME not in names
    headers = {'X-Open-Expired': 'true'}
    assert client.get(container, 'put', headers=headers).status == 404
    assert client.get(container, LONG_NAME, headers=headers).status == 404


def test_object_that_a_post_gave_its_time_goes(client, container):
    assert 'posted' not in client.listing(container).names()


def test_object_that_was_put_anew_stays(client, container):
    assert client.get(container, 'again').body == BODY
    assert 'again' in client.listing(container).names()


def test_object_that_a_post_saved_stays(client, container):
    assert client.get(container, 'saved').body == BODY
    assert 'saved' in client.listing(container).names()


def test_object_whose_time_is_to_come_stays(client, container):
    assert client.get(container, 'later').body == BODY


def test_segments_of_a_large_object_deleted_asynchronously_go(
    client, container
):
    names = client.listing(container).names()
    assert 'large' not in names
    assert 'segment' not in names
    assert 's' * 1024 not in names
    assert client.get(container, 'segment').status == 404


def test_rows_that_are_left(client, container):
    names = client.listing(container).names()
    assert names == ['again', 'later', 'saved']
    headers = client.head(container).headers
    assert headers['x-container-object-count'] == '3'
