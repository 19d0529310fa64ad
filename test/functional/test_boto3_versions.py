# SPDX-License-Identifier: Apache-2.0
"""Unmodified boto3 on plain and sharded buckets with versions."""

import pytest

from test.functional.conftest import (
    MAKERS,
    USER,
    Pair,
    make_plain,
    make_sharded,
)
from test.functional.realclients import (
    keys_of,
    path_of,
    prefixes_of,
    s3_client,
    s3_resource,
)

FIRST = b'1'
SECOND = b'22'
KEYS = ['a', 'b/1', 'b/2', 'c', 'ü']
ENABLED = {'Status': 'Enabled'}
SUSPENDED = {'Status': 'Suspended'}


@pytest.fixture(scope='module')
def s3(cluster):
    return s3_client(cluster)


@pytest.fixture(params=MAKERS)
def versioned(request, s3, client) -> str:
    """A new bucket with versioning on."""
    bucket = MAKERS[request.param](client)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=ENABLED)
    return bucket


def put_two(s3, bucket, key) -> list[str]:
    """Store two versions; return their ids, the older first."""
    answers = [
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        for body in (FIRST, SECOND)
    ]
    return [answer['VersionId'] for answer in answers]


@pytest.fixture
def ids(s3, versioned) -> list[str]:
    """The ids of two versions of ``o``, the older first."""
    return put_two(s3, versioned, 'o')


@pytest.fixture(scope='module')
def filled_pair(s3, login) -> Pair:
    """Buckets with two versions of each key; ``c`` is deleted.

    No test changes them.
    """
    pair = Pair(make_plain(login(USER)), make_sharded(login(USER)))
    for bucket in pair:
        s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration=ENABLED
        )
        for key in KEYS:
            put_two(s3, bucket, key)
        s3.delete_object(Bucket=bucket, Key='c')
    return pair


@pytest.fixture(params=Pair._fields)
def filled(request, filled_pair) -> str:
    """A bucket of ``filled_pair``, once the plain and once the sharded one."""
    return getattr(filled_pair, request.param)


def rows_of(listing) -> list[dict]:
    """Return a listing's versions and delete markers, in its order."""
    rows = [*listing.get('Versions', []), *listing.get('DeleteMarkers', [])]
    # by key, the newest first: version ids are times
    rows.sort(key=lambda row: row['VersionId'], reverse=True)
    rows.sort(key=lambda row: row['Key'])
    return rows


def identity_of(row) -> tuple[str, str]:
    return row['Key'], row['VersionId']


def paged_by_own_markers(s3, page_size, **params) -> list[dict]:
    """Return all rows of a walk whose markers are the pages' last rows."""
    rows = []
    is_truncated = True
    while is_truncated:
        page = s3.list_object_versions(MaxKeys=page_size, **params)
        rows += rows_of(page)
        key, version = identity_of(rows[-1])
        params.update(KeyMarker=key, VersionIdMarker=version)
        is_truncated = page['IsTruncated']
    return rows


def paged_by_boto3(s3, page_size, **params) -> list[list[tuple]]:
    """Return boto3's pages without what differs between any two buckets."""
    paginator = s3.get_paginator('list_object_versions')
    config = {'PageSize': page_size}
    pages = paginator.paginate(PaginationConfig=config, **params)
    return [
        [
            (row['Key'], row.get('Size'), row['IsLatest'])
            for row in rows_of(page)
        ]
        for page in pages
    ]


class TestListing:
    def test_has_the_newest_first(self, s3, filled):
        listing = s3.list_object_versions(Bucket=filled)
        rows = listing['Versions']
        shown = [(row['Key'], row['Size'], row['IsLatest']) for row in rows]
        assert shown == [
            (key, size, size == len(SECOND) and key != 'c')
            for key in KEYS
            for size in (len(SECOND), len(FIRST))
        ]
        (marker,) = listing['DeleteMarkers']
        assert (marker['Key'], marker['IsLatest']) == ('c', True)

    @pytest.mark.parametrize('page_size', [1, 2, 3])
    @pytest.mark.parametrize('params', [{}, {'Prefix': 'b/'}], ids=str)
    def test_is_the_same_page_by_page(self, s3, filled, page_size, params):
        paged = paged_by_own_markers(s3, page_size, Bucket=filled, **params)
        whole = s3.list_object_versions(Bucket=filled, **params)
        assert paged == rows_of(whole)

    # Before 2.38, Swift does not return the version to go on from, so boto3
    # misses rows: it must miss the same rows of both buckets.
    @pytest.mark.parametrize('page_size', [1, 2, 3])
    @pytest.mark.parametrize('params', [{}, {'Prefix': 'b/'}], ids=str)
    def test_has_the_pages_of_a_plain_bucket(
        self, s3, filled_pair, page_size, params
    ):
        plain, sharded = filled_pair
        paged = paged_by_boto3(s3, page_size, Bucket=sharded, **params)
        assert paged == paged_by_boto3(s3, page_size, Bucket=plain, **params)

    def test_by_delimiter_has_common_prefixes(self, s3, filled):
        listing = s3.list_object_versions(Bucket=filled, Delimiter='/')
        assert prefixes_of(listing) == ['b/']
        found = {row['Key'] for row in listing['Versions']}
        assert found == {'a', 'c', 'ü'}

    def test_of_objects_has_no_versions(self, s3, filled):
        found = keys_of(s3.list_objects_v2(Bucket=filled))
        assert found == ['a', 'b/1', 'b/2', 'ü']


class TestVersion:
    def test_can_be_read(self, s3, versioned, ids):
        where = {'Bucket': versioned, 'Key': 'o', 'VersionId': ids[0]}
        assert s3.head_object(**where)['ContentLength'] == len(FIRST)
        got = s3.get_object(**where)
        assert got['Body'].read() == FIRST
        assert got['VersionId'] == ids[0]

    def test_can_be_read_by_anybody_with_a_url(
        self, s3, client, versioned, ids
    ):
        where = {'Bucket': versioned, 'Key': 'o', 'VersionId': ids[0]}
        url = s3.generate_presigned_url('get_object', where)
        assert client.anonymous().raw('GET', path_of(url)).body == FIRST

    def test_can_be_copied(self, s3, versioned, ids):
        source = {'Bucket': versioned, 'Key': 'o', 'VersionId': ids[0]}
        answer = s3.copy_object(
            Bucket=versioned, Key='copied', CopySource=source
        )
        assert answer['CopySourceVersionId'] == ids[0]
        got = s3.get_object(Bucket=versioned, Key='copied')
        assert got['Body'].read() == FIRST

    def test_is_as_large_as_its_parts(self, s3, versioned, ids):
        where = {'Bucket': versioned, 'Key': 'o'}
        started = s3.create_multipart_upload(**where)
        upload = {**where, 'UploadId': started['UploadId']}
        part = s3.upload_part(PartNumber=1, Body=b'333', **upload)
        parts = {'Parts': [{'PartNumber': 1, 'ETag': part['ETag']}]}
        s3.complete_multipart_upload(MultipartUpload=parts, **upload)
        rows = s3.list_object_versions(Bucket=versioned)['Versions']
        assert [row['Size'] for row in rows] == [3, 2, 1]
        assert s3.get_object(**where)['Body'].read() == b'333'


class TestDelete:
    def test_of_several_versions_removes_them(self, s3, versioned, ids):
        named = [{'Key': 'o', 'VersionId': each} for each in ids]
        answer = s3.delete_objects(Bucket=versioned, Delete={'Objects': named})
        assert len(answer['Deleted']) == 2
        assert 'Versions' not in s3.list_object_versions(Bucket=versioned)

    def test_of_several_keys_leaves_markers(self, s3, versioned, ids):
        named = [{'Key': 'o'}, {'Key': 'ü'}]
        s3.delete_objects(Bucket=versioned, Delete={'Objects': named})
        listing = s3.list_object_versions(Bucket=versioned)
        markers = [row['Key'] for row in listing['DeleteMarkers']]
        assert markers == ['o', 'ü']
        assert len(listing['Versions']) == 2

    def test_of_all_versions_lets_the_bucket_be_deleted(
        self, s3, cluster, versioned, ids
    ):
        put_two(s3, versioned, 'ü/☃')
        s3.delete_object(Bucket=versioned, Key='o')
        bucket = s3_resource(cluster).Bucket(versioned)
        bucket.object_versions.delete()
        bucket.delete()
        s3.get_waiter('bucket_not_exists').wait(Bucket=versioned)


class TestSuspended:
    @pytest.fixture
    def suspended(self, s3, versioned, ids):
        """A bucket whose versioning was suspended after two versions."""
        s3.put_bucket_versioning(
            Bucket=versioned, VersioningConfiguration=SUSPENDED
        )
        return versioned

    def test_keeps_existing_versions(self, s3, suspended, ids):
        answer = s3.get_bucket_versioning(Bucket=suspended)
        assert answer['Status'] == 'Suspended'
        rows = s3.list_object_versions(Bucket=suspended)['Versions']
        assert [row['VersionId'] for row in rows] == ids[::-1]

    def test_keeps_one_more_version(self, s3, suspended, ids):
        for body in (b'333', b'4444'):
            s3.put_object(Bucket=suspended, Key='o', Body=body)
        rows = s3.list_object_versions(Bucket=suspended)['Versions']
        assert [row['VersionId'] for row in rows] == ['null', *ids[::-1]]
        assert [row['Size'] for row in rows] == [4, 2, 1]
