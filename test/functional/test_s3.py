# SPDX-License-Identifier: Apache-2.0
"""S3 through s3api, on plain and sharded buckets."""

import hashlib
import urllib.request

import pytest
from botocore.exceptions import ClientError

from test.functional.conftest import (
    MAKERS,
    SHARD_COUNT_HEADER,
    USER,
    unique,
)
from test.functional.realclients import (
    code_of,
    keys_of,
    prefixes_of,
    s3_client,
)
from test.functional.releases import CONDITIONAL_PUTS

BODY = b'0123456789'
BODY_ETAG = f'"{hashlib.md5(BODY).hexdigest()}"'
MIN_PART = 5 << 20
NAMES = ['a', 'b/1', 'b/2', 'b/c/3', 'd', 'z', 'ü/☃']


@pytest.fixture(scope='module')
def s3(cluster):
    """boto3's S3 client for the owner of the tests' account."""
    return s3_client(
        cluster,
        signature_version='s3v4',
        request_checksum_calculation='when_required',
        response_checksum_validation='when_required',
    )


@pytest.fixture(scope='class', params=MAKERS)
def lasting_bucket(request, login):
    """A bucket for all tests of a class."""
    return MAKERS[request.param](login(USER))


@pytest.fixture(scope='class')
def filled(s3, lasting_bucket):
    """A bucket with some objects, which no test changes."""
    for name in NAMES:
        s3.put_object(Bucket=lasting_bucket, Key=name, Body=BODY)
    return lasting_bucket


class TestBucket:
    def test_exists_and_is_listed(self, s3, bucket):
        assert s3.head_bucket(Bucket=bucket)
        names = [row['Name'] for row in s3.list_buckets()['Buckets']]
        assert bucket in names
        assert [name for name in names if 'shardmw' in name] == []

    def test_can_be_deleted_when_empty(self, s3, bucket):
        s3.delete_bucket(Bucket=bucket)
        with pytest.raises(ClientError) as error:
            s3.head_bucket(Bucket=bucket)
        assert code_of(error) == '404'

    def test_can_not_be_deleted_with_objects(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
        with pytest.raises(ClientError) as error:
            s3.delete_bucket(Bucket=bucket)
        assert code_of(error) == 'BucketNotEmpty'
        s3.delete_object(Bucket=bucket, Key='o')
        s3.delete_bucket(Bucket=bucket)

    def test_can_not_be_created_twice(self, s3, bucket):
        with pytest.raises(ClientError) as error:
            s3.create_bucket(Bucket=bucket)
        assert code_of(error) == 'BucketAlreadyOwnedByYou'

    def test_that_is_missing_is_no_such_bucket(self, s3):
        with pytest.raises(ClientError) as error:
            s3.list_objects_v2(Bucket=unique('missing'))
        assert code_of(error) == 'NoSuchBucket'


class TestObject:
    def test_can_be_stored_read_and_deleted(self, s3, bucket):
        put = s3.put_object(
            Bucket=bucket,
            Key='a/ö',
            Body=BODY,
            Metadata={'colour': 'blue'},
            ContentType='text/x-own',
        )
        assert put['ETag'] == BODY_ETAG
        got = s3.get_object(Bucket=bucket, Key='a/ö')
        assert got['Body'].read() == BODY
        assert got['Metadata'] == {'colour': 'blue'}
        assert got['ContentType'] == 'text/x-own'
        assert got['ETag'] == BODY_ETAG
        head = s3.head_object(Bucket=bucket, Key='a/ö')
        assert head['ContentLength'] == len(BODY)
        s3.delete_object(Bucket=bucket, Key='a/ö')
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket=bucket, Key='a/ö')
        assert code_of(error) == 'NoSuchKey'

    def test_can_be_read_by_range(self, s3, filled):
        got = s3.get_object(Bucket=filled, Key='a', Range='bytes=2-4')
        assert got['Body'].read() == b'234'
        assert got['ContentRange'] == 'bytes 2-4/10'

    def test_is_read_under_conditions(self, s3, filled):
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket=filled, Key='a', IfNoneMatch=BODY_ETAG)
        assert code_of(error) == '304'
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket=filled, Key='a', IfMatch='"other"')
        assert code_of(error) == 'PreconditionFailed'

    @CONDITIONAL_PUTS
    def test_can_be_put_if_it_is_missing(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='o', Body=BODY, IfNoneMatch='*')
        with pytest.raises(ClientError) as error:
            s3.put_object(Bucket=bucket, Key='o', Body=b'x', IfNoneMatch='*')
        assert code_of(error) == 'PreconditionFailed'

    def test_may_have_a_key_of_1024_bytes(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='n' * 1024, Body=BODY)
        got = s3.get_object(Bucket=bucket, Key='n' * 1024)
        assert got['Body'].read() == BODY
        assert keys_of(s3.list_objects(Bucket=bucket)) == ['n' * 1024]

    def test_with_a_longer_key_is_refused(self, s3, bucket):
        with pytest.raises(ClientError) as error:
            s3.put_object(Bucket=bucket, Key='n' * 1025, Body=BODY)
        assert code_of(error) == 'KeyTooLongError'

    def test_that_is_missing_can_be_deleted(self, s3, filled):
        answer = s3.delete_object(Bucket=filled, Key='missing')
        assert answer['ResponseMetadata']['HTTPStatusCode'] == 204

    def test_can_be_stored_and_read_by_presigned_urls(self, s3, bucket):
        where = {'Bucket': bucket, 'Key': 'o'}
        url = s3.generate_presigned_url('put_object', where)
        urllib.request.urlopen(
            urllib.request.Request(url, BODY, method='PUT')
        ).close()
        url = s3.generate_presigned_url('get_object', where)
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == BODY


class TestCopy:
    @pytest.mark.parametrize('other', MAKERS.values(), ids=MAKERS)
    def test_between_buckets_keeps_metadata(self, s3, client, bucket, other):
        destination = other(client)
        s3.put_object(
            Bucket=bucket, Key='o', Body=BODY, Metadata={'colour': 'blue'}
        )
        answer = s3.copy_object(
            Bucket=destination, Key='p', CopySource=f'{bucket}/o'
        )
        assert answer['CopyObjectResult']['ETag'] == BODY_ETAG
        got = s3.get_object(Bucket=destination, Key='p')
        assert got['Body'].read() == BODY
        assert got['Metadata'] == {'colour': 'blue'}

    def test_onto_itself_replaces_metadata(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
        s3.copy_object(
            Bucket=bucket,
            Key='o',
            CopySource=f'{bucket}/o',
            Metadata={'colour': 'blue'},
            MetadataDirective='REPLACE',
        )
        got = s3.get_object(Bucket=bucket, Key='o')
        assert got['Body'].read() == BODY
        assert got['Metadata'] == {'colour': 'blue'}

    def test_of_a_missing_object_is_no_such_key(self, s3, bucket):
        with pytest.raises(ClientError) as error:
            s3.copy_object(
                Bucket=bucket, Key='p', CopySource=f'{bucket}/missing'
            )
        assert code_of(error) == 'NoSuchKey'


class TestListing:
    @pytest.fixture(params=['list_objects', 'list_objects_v2'])
    def listing(self, request, s3, filled):
        """Return a function that lists the bucket by a version of the API."""

        def listing(**params):
            return getattr(s3, request.param)(Bucket=filled, **params)

        return listing

    def test_of_everything_has_all_keys(self, listing):
        answer = listing()
        assert keys_of(answer) == NAMES
        assert answer['IsTruncated'] is False
        row = answer['Contents'][0]
        assert row['Size'] == len(BODY)
        assert row['ETag'] == BODY_ETAG

    def test_of_a_prefix_has_its_keys(self, listing):
        assert keys_of(listing(Prefix='b/')) == ['b/1', 'b/2', 'b/c/3']
        assert keys_of(listing(Prefix='x')) == []

    def test_by_delimiter_has_the_top_level(self, listing):
        answer = listing(Delimiter='/')
        assert keys_of(answer) == ['a', 'd', 'z']
        assert prefixes_of(answer) == ['b/', 'ü/']

    def test_by_prefix_and_delimiter_has_one_level(self, listing):
        answer = listing(Prefix='b/', Delimiter='/')
        assert keys_of(answer) == ['b/1', 'b/2']
        assert prefixes_of(answer) == ['b/c/']

    def test_of_no_keys_is_empty(self, listing):
        assert keys_of(listing(MaxKeys=0)) == []

    @pytest.mark.parametrize('api', ['list_objects', 'list_objects_v2'])
    @pytest.mark.parametrize('size', [1, 2, 3, 7])
    def test_page_by_page_has_all_keys(self, s3, filled, api, size):
        pages = s3.get_paginator(api).paginate(
            Bucket=filled, PaginationConfig={'PageSize': size}
        )
        assert [key for page in pages for key in keys_of(page)] == NAMES

    @pytest.mark.parametrize('api', ['list_objects', 'list_objects_v2'])
    def test_page_by_page_by_delimiter_has_the_top_level(
        self, s3, filled, api
    ):
        pages = s3.get_paginator(api).paginate(
            Bucket=filled, Delimiter='/', PaginationConfig={'PageSize': 2}
        )
        pages = list(pages)
        assert [k for page in pages for k in keys_of(page)] == ['a', 'd', 'z']
        prefixes = [p for page in pages for p in prefixes_of(page)]
        assert prefixes == ['b/', 'ü/']

    def test_after_a_key_has_later_keys(self, s3, filled):
        answer = s3.list_objects_v2(Bucket=filled, StartAfter='b/2')
        assert keys_of(answer) == ['b/c/3', 'd', 'z', 'ü/☃']
        answer = s3.list_objects(Bucket=filled, Marker='b/2', MaxKeys=1)
        assert keys_of(answer) == ['b/c/3']

    def test_counts_its_keys(self, s3, filled):
        answer = s3.list_objects_v2(Bucket=filled, MaxKeys=3)
        assert answer['KeyCount'] == 3
        assert answer['IsTruncated'] is True


class TestMultiDelete:
    def test_deletes_what_is_named(self, s3, bucket):
        for key in ('a', 'b', 'ü/☃', 'n' * 1024):
            s3.put_object(Bucket=bucket, Key=key, Body=BODY)
        answer = s3.delete_objects(
            Bucket=bucket,
            Delete={
                'Objects': [
                    {'Key': 'a'},
                    {'Key': 'ü/☃'},
                    {'Key': 'n' * 1024},
                    {'Key': 'missing'},
                ]
            },
        )
        assert 'Errors' not in answer
        deleted = {row['Key'] for row in answer['Deleted']}
        assert deleted == {'a', 'ü/☃', 'n' * 1024, 'missing'}
        assert keys_of(s3.list_objects(Bucket=bucket)) == ['b']


class TestMultipartUpload:
    @pytest.fixture
    def upload(self, s3, bucket):
        """An incomplete upload in two parts."""
        where = {'Bucket': bucket, 'Key': 'large'}
        started = s3.create_multipart_upload(**where)
        where['UploadId'] = started['UploadId']
        first = b'1' * MIN_PART
        s3.upload_part(PartNumber=1, Body=first, **where)
        s3.upload_part(PartNumber=2, Body=b'2' * 10, **where)
        return where

    def complete(self, s3, upload):
        parts = s3.list_parts(**upload)['Parts']
        parts = [
            {'PartNumber': part['PartNumber'], 'ETag': part['ETag']}
            for part in parts
        ]
        return s3.complete_multipart_upload(
            MultipartUpload={'Parts': parts}, **upload
        )

    def test_makes_one_object_of_its_parts(self, s3, bucket, upload):
        answer = self.complete(s3, upload)
        assert answer['ETag'].endswith('-2"')
        got = s3.get_object(Bucket=bucket, Key='large')
        assert got['Body'].read() == b'1' * MIN_PART + b'2' * 10
        assert got['ETag'] == answer['ETag']
        (row,) = s3.list_objects(Bucket=bucket)['Contents']
        assert row['Size'] == MIN_PART + 10
        assert row['ETag'] == answer['ETag']
        got = s3.get_object(
            Bucket=bucket,
            Key='large',
            Range=f'bytes={MIN_PART - 2}-{MIN_PART + 1}',
        )
        assert got['Body'].read() == b'1122'
        s3.delete_object(Bucket=bucket, Key='large')
        assert keys_of(s3.list_objects(Bucket=bucket)) == []

    def test_is_not_visible_before_it_is_complete(self, s3, bucket, upload):
        assert keys_of(s3.list_objects(Bucket=bucket)) == []
        with pytest.raises(ClientError) as error:
            s3.head_object(Bucket=bucket, Key='large')
        assert code_of(error) == '404'

    def test_shows_its_parts(self, s3, upload):
        parts = s3.list_parts(**upload)['Parts']
        assert [part['PartNumber'] for part in parts] == [1, 2]
        assert [part['Size'] for part in parts] == [MIN_PART, 10]

    def test_is_among_the_uploads(self, s3, bucket, upload):
        (row,) = s3.list_multipart_uploads(Bucket=bucket)['Uploads']
        assert row['Key'] == 'large'
        assert row['UploadId'] == upload['UploadId']

    def test_can_be_aborted(self, s3, bucket, upload):
        s3.abort_multipart_upload(**upload)
        with pytest.raises(ClientError) as error:
            s3.list_parts(**upload)
        assert code_of(error) == 'NoSuchUpload'
        assert 'Uploads' not in s3.list_multipart_uploads(Bucket=bucket)

    def test_part_can_be_copied(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='source', Body=BODY)
        where = {'Bucket': bucket, 'Key': 'large'}
        started = s3.create_multipart_upload(**where)
        where['UploadId'] = started['UploadId']
        copied = s3.upload_part_copy(
            PartNumber=1, CopySource=f'{bucket}/source', **where
        )
        part = {'PartNumber': 1, 'ETag': copied['CopyPartResult']['ETag']}
        s3.complete_multipart_upload(
            MultipartUpload={'Parts': [part]}, **where
        )
        got = s3.get_object(Bucket=bucket, Key='large')
        assert got['Body'].read() == BODY


class TestVersioning:
    @pytest.fixture
    def versioned(self, s3, bucket):
        """A bucket with versioning on."""
        s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={'Status': 'Enabled'}
        )
        return bucket

    @pytest.fixture
    def versions(self, s3, versioned):
        """The ids of two versions of ``o``, the older first."""
        return [
            s3.put_object(Bucket=versioned, Key='o', Body=body)['VersionId']
            for body in (b'first', b'second')
        ]

    def test_is_shown(self, s3, versioned):
        answer = s3.get_bucket_versioning(Bucket=versioned)
        assert answer['Status'] == 'Enabled'

    def test_lists_the_versions(self, s3, versioned, versions):
        rows = s3.list_object_versions(Bucket=versioned)['Versions']
        ids = [row['VersionId'] for row in rows]
        assert ids == [versions[1], versions[0]]
        assert [row['IsLatest'] for row in rows] == [True, False]
        assert [row['Size'] for row in rows] == [6, 5]

    def test_reads_a_version(self, s3, versioned, versions):
        got = s3.get_object(Bucket=versioned, Key='o')
        assert got['Body'].read() == b'second'
        got = s3.get_object(Bucket=versioned, Key='o', VersionId=versions[0])
        assert got['Body'].read() == b'first'

    def test_delete_leaves_a_marker(self, s3, versioned, versions):
        answer = s3.delete_object(Bucket=versioned, Key='o')
        assert answer['DeleteMarker'] is True
        assert keys_of(s3.list_objects(Bucket=versioned)) == []
        listing = s3.list_object_versions(Bucket=versioned)
        (marker,) = listing['DeleteMarkers']
        assert marker['VersionId'] == answer['VersionId']
        assert marker['IsLatest'] is True
        assert len(listing['Versions']) == 2

    def test_delete_of_the_marker_restores(self, s3, versioned, versions):
        marker = s3.delete_object(Bucket=versioned, Key='o')['VersionId']
        s3.delete_object(Bucket=versioned, Key='o', VersionId=marker)
        got = s3.get_object(Bucket=versioned, Key='o')
        assert got['Body'].read() == b'second'

    def test_delete_of_a_version_removes_it(self, s3, versioned, versions):
        s3.delete_object(Bucket=versioned, Key='o', VersionId=versions[1])
        got = s3.get_object(Bucket=versioned, Key='o')
        assert got['Body'].read() == b'first'
        (row,) = s3.list_object_versions(Bucket=versioned)['Versions']
        assert row['VersionId'] == versions[0]

    def test_bucket_with_versions_can_not_be_deleted(
        self, s3, versioned, versions
    ):
        s3.delete_object(Bucket=versioned, Key='o')
        with pytest.raises(ClientError) as error:
            s3.delete_bucket(Bucket=versioned)
        assert code_of(error) == 'BucketNotEmpty'


@pytest.fixture(scope='class')
def sharding_of_everything(cluster):
    """A default that shards every new container."""
    cluster.reconfigure({'shardmw.default_shards': '4'})
    yield
    cluster.reconfigure({'shardmw.default_shards': None})


def headers_of_swift(answer: dict) -> dict[str, str]:
    """Return an answer's container headers, which S3 does not have."""
    headers = answer['ResponseMetadata']['HTTPHeaders']
    return {
        name: value
        for name, value in headers.items()
        if name.startswith('x-container-')
    }


class TestHeadOfABucket:
    def test_shows_the_counts_of_a_sharded_one(self, s3, sharded):
        s3.put_object(Bucket=sharded, Key='o', Body=BODY)
        assert headers_of_swift(s3.head_bucket(Bucket=sharded)) == {
            'x-container-object-count': '1',
            'x-container-bytes-used': '10',
            'x-container-shard-count': '4',
            'x-container-shard-depth': '0',
        }

    def test_shows_no_counts_of_a_plain_one(self, s3, plain):
        assert headers_of_swift(s3.head_bucket(Bucket=plain)) == {}

    def test_does_not_change_the_head_of_a_key(self, s3, sharded):
        s3.put_object(Bucket=sharded, Key='o', Body=BODY)
        shown = s3.head_object(Bucket=sharded, Key='o')
        assert headers_of_swift(shown) == {}


class TestBucketsShardedByDefault:
    @pytest.fixture
    def bucket(self, s3, sharding_of_everything):
        name = unique('bucket')
        s3.create_bucket(Bucket=name)
        return name

    def test_new_bucket_is_sharded(self, client, bucket):
        headers = client.head(bucket).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '4'

    def test_object_can_be_stored_read_and_deleted(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
        got = s3.get_object(Bucket=bucket, Key='o')
        assert got['Body'].read() == BODY
        assert keys_of(s3.list_objects_v2(Bucket=bucket)) == ['o']
        s3.delete_object(Bucket=bucket, Key='o')
        s3.delete_bucket(Bucket=bucket)

    def test_large_object_has_its_parts_in_a_sharded_container(
        self, s3, client, bucket
    ):
        where = {'Bucket': bucket, 'Key': 'large'}
        started = s3.create_multipart_upload(**where)
        where['UploadId'] = started['UploadId']
        part = s3.upload_part(PartNumber=1, Body=BODY, **where)
        parts = [{'PartNumber': 1, 'ETag': part['ETag']}]
        s3.complete_multipart_upload(MultipartUpload={'Parts': parts}, **where)
        got = s3.get_object(Bucket=bucket, Key='large')
        assert got['Body'].read() == BODY
        headers = client.head(f'{bucket}+segments').headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '4'

    def test_versions_are_kept(self, s3, bucket):
        s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={'Status': 'Enabled'}
        )
        s3.put_object(Bucket=bucket, Key='o', Body=b'first')
        s3.put_object(Bucket=bucket, Key='o', Body=b'second')
        rows = s3.list_object_versions(Bucket=bucket)['Versions']
        assert [row['Size'] for row in rows] == [6, 5]
