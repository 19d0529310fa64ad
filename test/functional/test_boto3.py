# SPDX-License-Identifier: Apache-2.0
"""Unmodified boto3 on plain and sharded buckets: what it builds on S3.

Paginators, presigned URLs, resources and waiters, and the answers to
operations that Swift's S3 does not support.
"""

import io
import json

import pytest
import requests
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from shardmw.core.placement import shard_of
from shardmw.proxy.listing.container_order import UNORDERED_HEADER
from test.functional.alike import TRANSACTION, make_twins
from test.functional.conftest import (
    MAKERS,
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    Pair,
    make_sharded,
    unique,
)
from test.functional.realclients import (
    code_of,
    keys_of,
    pages_of,
    path_of,
    prefixes_of,
    s3_client,
    s3_resource,
)

BODY = b'0123456789'
BODY_ETAG = '"781e5e245d69b566979b86e28d23f2c7"'
NAMES = ['a', 'b/1', 'b/2', 'b/c/3', 'd', 'e e', 'x+y', 'z', 'ü/1', 'ü/☃']

LONG_AGO = '2001-01-01T00:00:00Z'
LONG_AFTER = '2101-01-01T00:00:00Z'


@pytest.fixture(scope='module')
def s3(cluster):
    return s3_client(cluster)


@pytest.fixture(scope='module')
def resource(cluster):
    """boto3's resources, which are objects with methods."""
    return s3_resource(cluster)


@pytest.fixture(scope='module', params=MAKERS)
def filled(request, s3, login) -> str:
    """A bucket with some objects, which no test changes."""
    bucket = MAKERS[request.param](login(USER))
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=BODY)
    return bucket


class TestPages:
    @pytest.mark.parametrize('operation', ['list_objects', 'list_objects_v2'])
    @pytest.mark.parametrize('page_size', [1, 3])
    @pytest.mark.parametrize(
        ('params', 'keys', 'prefixes'),
        [
            ({}, NAMES, []),
            ({'Prefix': 'b/'}, ['b/1', 'b/2', 'b/c/3'], []),
            ({'Delimiter': '/'}, ['a', 'd', 'e e', 'x+y', 'z'], ['b/', 'ü/']),
            ({'Prefix': 'b/', 'Delimiter': '/'}, ['b/1', 'b/2'], ['b/c/']),
            ({'Prefix': 'missing'}, [], []),
        ],
        ids=['all', 'prefix', 'delimiter', 'both', 'nothing'],
    )
    def test_hold_all_keys_once(
        self, s3, filled, operation, page_size, params, keys, prefixes
    ):
        pages = pages_of(s3, operation, page_size, Bucket=filled, **params)
        assert [key for page in pages for key in keys_of(page)] == keys
        found = [prefix for page in pages for prefix in prefixes_of(page)]
        assert found == prefixes

    @pytest.mark.parametrize('operation', ['list_objects', 'list_objects_v2'])
    def test_are_as_long_as_asked(self, s3, filled, operation):
        pages = pages_of(s3, operation, 4, Bucket=filled)
        assert [len(keys_of(page)) for page in pages] == [4, 4, 2]

    @pytest.mark.parametrize(
        ('operation', 'start'),
        [('list_objects', 'Marker'), ('list_objects_v2', 'StartAfter')],
    )
    @pytest.mark.parametrize('after', ['b/2', 'b/20', 'ü/1'])
    def test_begin_after_a_key(self, s3, filled, operation, start, after):
        params = {'Bucket': filled, start: after}
        pages = pages_of(s3, operation, 2, **params)
        found = [key for page in pages for key in keys_of(page)]
        assert found == [name for name in NAMES if name > after]

    def test_can_be_resumed(self, s3, filled):
        paginator = s3.get_paginator('list_objects_v2')
        config = {'PageSize': 2, 'MaxItems': 3}
        first = paginator.paginate(Bucket=filled, PaginationConfig=config)
        head = first.build_full_result()
        assert keys_of(head) == NAMES[:3]
        config = {'PageSize': 2, 'StartingToken': head['NextToken']}
        rest = paginator.paginate(Bucket=filled, PaginationConfig=config)
        assert keys_of(rest.build_full_result()) == NAMES[3:]


@pytest.fixture(scope='module')
def unordered(s3, login) -> str:
    """A bucket whose owner allows unordered listings."""
    owner = login(USER)
    bucket = make_sharded(owner)
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=BODY)
    headers = {UNORDERED_HEADER: 'true'}
    assert owner.post(bucket, headers=headers).status == 204
    return bucket


class TestUnorderedBucket:
    BY_SHARD = sorted(NAMES, key=lambda name: (shard_of(name, SHARDS), name))

    @pytest.mark.parametrize('operation', ['list_objects', 'list_objects_v2'])
    def test_has_pages_that_hold_all_keys_once(self, s3, unordered, operation):
        pages = pages_of(s3, operation, 3, Bucket=unordered)
        found = [key for page in pages for key in keys_of(page)]
        assert found == self.BY_SHARD != NAMES

    def test_can_be_created_with_s3_alone(self, cluster, client):
        own = s3_client(cluster)

        def add_headers(params, **_kwargs) -> None:
            params['headers'][SHARD_COUNT_HEADER] = str(SHARDS)
            params['headers'][UNORDERED_HEADER] = 'true'

        own.meta.events.register('before-call.s3.CreateBucket', add_headers)
        bucket = unique('unordered')
        own.create_bucket(Bucket=bucket)
        for name in NAMES:
            own.put_object(Bucket=bucket, Key=name, Body=BODY)
        assert keys_of(own.list_objects_v2(Bucket=bucket)) == self.BY_SHARD
        assert client.head(bucket).headers[UNORDERED_HEADER.lower()] == 'true'

    def test_lists_levels_in_order(self, s3, unordered):
        page = s3.list_objects_v2(Bucket=unordered, Delimiter='/')
        assert keys_of(page) == ['a', 'd', 'e e', 'x+y', 'z']
        assert prefixes_of(page) == ['b/', 'ü/']


class TestResource:
    def test_of_a_bucket_shows_its_objects(self, resource, filled):
        objects = resource.Bucket(filled).objects
        found = objects.filter(Prefix='b/').page_size(1)
        assert [each.key for each in found] == ['b/1', 'b/2', 'b/c/3']

    def test_of_a_bucket_empties_and_deletes_it(self, s3, resource, bucket):
        for i in range(30):
            s3.put_object(Bucket=bucket, Key=f'ü {i}', Body=BODY)
        (answer,) = resource.Bucket(bucket).objects.delete()
        assert len(answer['Deleted']) == 30
        resource.Bucket(bucket).delete()
        s3.get_waiter('bucket_not_exists').wait(Bucket=bucket)

    def test_of_an_object_is_as_stored(self, s3, resource, bucket):
        stored = resource.Object(bucket, 'ü/☃')
        stored.put(Body=BODY, Metadata={'colour': 'blue'})
        s3.get_waiter('object_exists').wait(Bucket=bucket, Key='ü/☃')
        stored.load()
        assert stored.content_length == len(BODY)
        assert stored.metadata == {'colour': 'blue'}
        assert stored.get()['Body'].read() == BODY

    def test_of_an_object_can_be_deleted(self, s3, resource, bucket):
        stored = resource.Object(bucket, 'o')
        stored.put(Body=BODY)
        stored.delete()
        s3.get_waiter('object_not_exists').wait(Bucket=bucket, Key='o')


class TestDeleteOfMany:
    def test_can_be_quiet(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
        named = [{'Key': 'o'}, {'Key': 'missing'}]
        answer = s3.delete_objects(
            Bucket=bucket, Delete={'Objects': named, 'Quiet': True}
        )
        assert 'Deleted' not in answer
        assert 'Errors' not in answer
        assert keys_of(s3.list_objects_v2(Bucket=bucket)) == []


class TestRead:
    @pytest.mark.parametrize(
        ('asked', 'got', 'shown'),
        [
            ('bytes=2-4', b'234', 'bytes 2-4/10'),
            ('bytes=7-', b'789', 'bytes 7-9/10'),
            ('bytes=-3', b'789', 'bytes 7-9/10'),
            ('bytes=8-99', b'89', 'bytes 8-9/10'),
        ],
    )
    def test_of_a_range_gets_the_range(self, s3, filled, asked, got, shown):
        where = {'Bucket': filled, 'Key': 'ü/☃', 'Range': asked}
        answer = s3.get_object(**where)
        assert answer['Body'].read() == got
        assert answer['ContentRange'] == shown
        assert s3.head_object(**where)['ContentLength'] == len(got)

    def test_of_a_range_beyond_the_end_is_refused(self, s3, filled):
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket=filled, Key='a', Range='bytes=10-')
        assert code_of(error) == 'InvalidRange'

    @pytest.mark.parametrize(
        'condition',
        [
            {'IfMatch': BODY_ETAG},
            {'IfNoneMatch': '"other"'},
            {'IfModifiedSince': LONG_AGO},
            {'IfUnmodifiedSince': LONG_AFTER},
        ],
        ids='-'.join,
    )
    def test_under_a_condition_that_holds_succeeds(
        self, s3, filled, condition
    ):
        where = {'Bucket': filled, 'Key': 'ü/☃'}
        assert s3.get_object(**where, **condition)['Body'].read() == BODY
        assert s3.head_object(**where, **condition)['ETag'] == BODY_ETAG

    @pytest.mark.parametrize(
        ('condition', 'status'),
        [
            ({'IfMatch': '"other"'}, 412),
            ({'IfNoneMatch': BODY_ETAG}, 304),
            ({'IfModifiedSince': LONG_AFTER}, 304),
            ({'IfUnmodifiedSince': LONG_AGO}, 412),
        ],
    )
    @pytest.mark.parametrize('operation', ['get_object', 'head_object'])
    def test_under_a_condition_that_fails_is_304_or_412(
        self, s3, filled, operation, condition, status
    ):
        with pytest.raises(ClientError) as error:
            getattr(s3, operation)(Bucket=filled, Key='ü/☃', **condition)
        metadata = error.value.response['ResponseMetadata']
        assert metadata['HTTPStatusCode'] == status


class TestPresignedUrl:
    @pytest.fixture(params=['s3', 's3v4'])
    def presigned(self, request, cluster, client):
        """Return a function that presigns a request for anybody to send."""
        signing = s3_client(cluster, signature_version=request.param)
        anybody = client.anonymous()

        def presigned(operation, method, **params):
            url = signing.generate_presigned_url(operation, params)
            return lambda **kwargs: anybody.raw(method, path_of(url), **kwargs)

        return presigned

    def test_reads(self, presigned, filled):
        ask = presigned('get_object', 'GET', Bucket=filled, Key='ü/☃')
        assert ask().body == BODY
        got = ask(headers={'Range': 'bytes=2-4'})
        assert (got.status, got.body) == (206, b'234')

    def test_sets_headers_of_the_answer(self, presigned, filled):
        more = {'ResponseContentType': 'text/x-own'}
        ask = presigned('get_object', 'GET', Bucket=filled, Key='a', **more)
        assert ask().headers['content-type'] == 'text/x-own'

    def test_writes_heads_and_deletes(self, s3, presigned, bucket):
        where = {'Bucket': bucket, 'Key': 'e e/ü'}
        assert presigned('put_object', 'PUT', **where)(body=BODY).status == 200
        assert s3.get_object(**where)['Body'].read() == BODY
        got = presigned('head_object', 'HEAD', **where)()
        assert got.headers['etag'] == BODY_ETAG
        assert presigned('delete_object', 'DELETE', **where)().status == 204
        assert presigned('head_object', 'HEAD', **where)().status == 404

    def test_that_expired_is_refused(self, cluster, client, filled):
        signing = s3_client(cluster, signature_version='s3')
        where = {'Bucket': filled, 'Key': 'a'}
        url = signing.generate_presigned_url('get_object', where, ExpiresIn=0)
        got = client.anonymous().raw('GET', path_of(url))
        assert got.status == 403
        assert b'<Code>AccessDenied</Code>' in got.body

    def test_is_for_its_method_only(self, presigned, bucket):
        ask = presigned('get_object', 'PUT', Bucket=bucket, Key='o')
        got = ask(body=BODY)
        assert got.status == 403
        assert b'<Code>SignatureDoesNotMatch</Code>' in got.body


@pytest.fixture(scope='module')
def twins(s3, login) -> Pair:
    """A plain and a sharded bucket with the object ``o``."""
    twins = make_twins(login(USER))
    for bucket in twins:
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
    return twins


def answer_of(s3, bucket, operation, **params) -> tuple[int, dict]:
    """Return an answer without what differs between any two buckets."""
    try:
        answer = getattr(s3, operation)(Bucket=bucket, **params)
    except ClientError as error:
        answer = error.response
    status = answer.pop('ResponseMetadata')['HTTPStatusCode']
    # only dates are not JSON
    text = json.dumps(answer, default=lambda _: '*').replace(bucket, '*')
    return status, json.loads(TRANSACTION.sub(b'*', text.encode()))


TAGS = {'TagSet': [{'Key': 'colour', 'Value': 'blue'}]}


class TestTwins:
    """A plain and a sharded bucket answer alike, even with errors."""

    @pytest.mark.parametrize(
        'operation',
        [
            'delete_bucket_cors',
            'delete_bucket_policy',
            'delete_bucket_tagging',
            'get_bucket_accelerate_configuration',
            'get_bucket_acl',
            'get_bucket_cors',
            'get_bucket_encryption',
            'get_bucket_lifecycle_configuration',
            'get_bucket_location',
            'get_bucket_logging',
            'get_bucket_policy',
            'get_bucket_replication',
            'get_bucket_tagging',
            'get_bucket_versioning',
            'get_bucket_website',
            'get_object_lock_configuration',
            'get_public_access_block',
            'head_bucket',
            'list_multipart_uploads',
            'list_object_versions',
            'list_objects',
            'list_objects_v2',
        ],
    )
    def test_answer_requests_for_the_bucket_alike(self, s3, twins, operation):
        plain, sharded = (answer_of(s3, each, operation) for each in twins)
        assert sharded == plain

    @pytest.mark.parametrize(
        ('operation', 'params'),
        [
            ('abort_multipart_upload', {'UploadId': 'nonsense'}),
            ('delete_object', {'VersionId': 'nonsense'}),
            ('delete_object_tagging', {}),
            ('get_object_acl', {}),
            ('get_object_tagging', {}),
            ('get_object_torrent', {}),
            ('head_object', {}),
            ('head_object', {'VersionId': 'nonsense'}),
            ('head_object', {'VersionId': 'null'}),
            ('list_parts', {'UploadId': 'nonsense'}),
            ('put_object', {'Body': BODY, 'StorageClass': 'GLACIER'}),
            ('put_object', {'Body': BODY, 'Tagging': 'colour=blue'}),
            ('put_object', {'Body': BODY, 'ContentMD5': 'bm9uc2Vuc2U='}),
            ('put_object', {'Body': BODY, 'ChecksumCRC32': 'AAAAAA=='}),
            ('put_object', {'Body': BODY, 'ServerSideEncryption': 'AES256'}),
            ('put_object_acl', {'ACL': 'public-read'}),
            ('put_object_tagging', {'Tagging': TAGS}),
            ('restore_object', {'RestoreRequest': {'Days': 1}}),
            ('upload_part', {'UploadId': 'nonsense', 'PartNumber': 1}),
        ],
    )
    def test_answer_requests_for_an_object_alike(
        self, s3, twins, operation, params
    ):
        plain, sharded = (
            answer_of(s3, each, operation, Key='o', **params) for each in twins
        )
        assert sharded == plain

    @pytest.mark.parametrize(
        ('operation', 'params'),
        [
            ('list_objects_v2', {'ContinuationToken': 'nonsense'}),
            ('list_objects_v2', {'FetchOwner': True}),
            ('list_objects_v2', {'MaxKeys': -1}),
            ('list_object_versions', {'VersionIdMarker': 'nonsense'}),
            ('put_bucket_acl', {'ACL': 'bucket-owner-read'}),
            ('put_bucket_acl', {'ACL': 'public-read-write'}),
            ('put_bucket_acl', {'ACL': 'private'}),
            ('put_bucket_policy', {'Policy': '{}'}),
            ('put_bucket_tagging', {'Tagging': TAGS}),
            ('get_object', {'Key': 'missing'}),
            ('get_object', {'Key': 'o', 'VersionId': 'nonsense'}),
            ('copy_object', {'Key': 'p', 'CopySource': 'missing/o'}),
        ],
    )
    def test_answer_odd_requests_alike(self, s3, twins, operation, params):
        plain, sharded = (
            answer_of(s3, each, operation, **params) for each in twins
        )
        assert sharded == plain

    def test_refuse_a_presigned_post_alike(self, s3, twins):
        forms = [s3.generate_presigned_post(each, 'o') for each in twins]
        plain, sharded = (
            requests.post(
                form['url'], data=form['fields'], files={'file': ('o', BODY)}
            )
            for form in forms
        )
        assert (sharded.status_code, sharded.text) == (400, plain.text)


@pytest.fixture(scope='module')
def sharding_by_rule(cluster):
    """A rule that shards new buckets of some names."""
    cluster.reconfigure({'shardmw.shard_rules': 'AUTH_test/ruled-* = 4'})
    yield
    cluster.reconfigure({'shardmw.shard_rules': None})


class TestBucketShardedByRule:
    @pytest.fixture
    def ruled(self, s3, sharding_by_rule):
        name = unique('ruled')
        s3.create_bucket(Bucket=name)
        return name

    def test_is_sharded_and_others_are_not(self, s3, client, ruled):
        other = unique('other')
        s3.create_bucket(Bucket=other)
        headers = client.head(ruled).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '4'
        assert SHARD_COUNT_HEADER.lower() not in client.head(other).headers

    def test_takes_uploads_in_parts_and_can_be_deleted(
        self, s3, resource, client, ruled
    ):
        in_parts = TransferConfig(multipart_threshold=1)
        s3.upload_fileobj(io.BytesIO(BODY), ruled, 'o', Config=in_parts)
        headers = client.head(f'{ruled}+segments').headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '4'
        assert s3.get_object(Bucket=ruled, Key='o')['Body'].read() == BODY
        resource.Bucket(ruled).objects.delete()
        resource.Bucket(ruled).delete()
        s3.get_waiter('bucket_not_exists').wait(Bucket=ruled)
