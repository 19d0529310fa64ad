# SPDX-License-Identifier: Apache-2.0
"""What the object expirer clears: objects, and their rows.

The expirer deletes through an internal client, which has the filter.
"""

import json
import time

import pytest

from test.functional.conftest import USER, Pair, make_plain, make_sharded
from test.functional.realclients import s3_client

BODY = b'0123456789'
#: Late enough for a POST before it, even on a busy machine.
SOON = {'X-Delete-After': '4'}
LATER = {'X-Delete-After': '1000'}
LONG_NAME = 'n' * 1024


@pytest.fixture(scope='module')
def cleared(cluster, login) -> Pair:
    """A plain and a sharded container after the expirer has run."""
    owner = login(USER)
    pair = Pair(make_plain(owner), make_sharded(owner))
    put_objects(owner, pair.plain)
    put_objects(owner, pair.sharded)
    for container in pair:
        delete_large_object(owner, container)
        delete_s3_upload(s3_client(cluster), container)
    owner.wait_until_gone(pair.plain, 'posted')
    owner.wait_until_gone(pair.sharded, 'posted')
    owner.put(pair.plain, 'again', BODY)
    owner.put(pair.sharded, 'again', BODY)
    cluster.daemon('container-updater')
    cluster.daemon('object-expirer')
    return pair


@pytest.fixture(params=Pair._fields)
def container(request, cleared) -> str:
    """Each of the containers of ``cleared``."""
    return getattr(cleared, request.param)


def put_objects(owner, container):
    owner.put(container, 'put', BODY, headers=SOON)
    owner.put(container, LONG_NAME, BODY, headers=SOON)
    at = {'X-Delete-At': str(int(time.time()) + 4)}
    owner.put(container, 'put-at', BODY, headers=at)
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


def delete_s3_upload(s3, bucket):
    """Leave the part of an upload by S3 to the expirer."""
    target = {'Bucket': bucket, 'Key': 'upload'}
    upload = s3.create_multipart_upload(**target)
    target['UploadId'] = upload['UploadId']
    part = s3.upload_part(**target, PartNumber=1, Body=BODY)
    parts = [{'PartNumber': 1, 'ETag': part['ETag']}]
    s3.complete_multipart_upload(**target, MultipartUpload={'Parts': parts})
    keys = {'Objects': [{'Key': 'upload'}]}
    deleted = s3.delete_objects(Bucket=bucket, Delete=keys)
    assert [each['Key'] for each in deleted['Deleted']] == ['upload']


@pytest.mark.parametrize('name', ['put', 'put-at', LONG_NAME])
def test_expired_objects_are_deleted(client, container, name):
    assert name not in client.listing(container).names()
    headers = {'X-Open-Expired': 'true'}
    assert client.get(container, name, headers=headers).status == 404


def test_object_with_an_expiry_time_set_by_post_is_deleted(client, container):
    assert 'posted' not in client.listing(container).names()


def test_object_that_was_overwritten_stays(client, container):
    assert client.get(container, 'again').body == BODY
    assert 'again' in client.listing(container).names()


def test_object_whose_expiry_time_a_post_removed_stays(client, container):
    assert client.get(container, 'saved').body == BODY
    assert 'saved' in client.listing(container).names()


def test_object_that_expires_later_stays(client, container):
    assert client.get(container, 'later').body == BODY


def test_segments_of_an_asynchronously_deleted_object_are_deleted(
    client, container
):
    names = client.listing(container).names()
    assert 'large' not in names
    assert 'segment' not in names
    assert 's' * 1024 not in names
    assert client.get(container, 'segment').status == 404


def test_parts_of_an_upload_deleted_by_s3_are_deleted(client, container):
    segments = f'{container}+segments'
    assert client.listing(segments).names() == []
    headers = client.head(segments).headers
    assert headers['x-container-object-count'] == '0'


def test_no_other_rows_are_left(client, container):
    names = client.listing(container).names()
    assert names == ['again', 'later', 'saved']
    headers = client.head(container).headers
    assert headers['x-container-object-count'] == '3'
    assert headers['x-container-bytes-used'] == '30'


def test_root_has_no_rows(backing, cleared):
    assert backing.root_names(cleared.sharded) == []
