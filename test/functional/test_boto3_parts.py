# SPDX-License-Identifier: Apache-2.0
"""Unmodified boto3 on plain and sharded buckets: objects in parts."""

import io

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from test.functional.conftest import MAKERS, USER
from test.functional.realclients import (
    code_of,
    names_in,
    pages_of,
    s3_client,
)
from test.functional.releases import PART_COPIES, PART_NUMBERS

MIN_PART = 5 << 20
SMALL = b'0123456789'
LARGE = b'1' * MIN_PART + SMALL
IN_PARTS = TransferConfig(multipart_threshold=1, multipart_chunksize=MIN_PART)
IN_RANGES = TransferConfig(multipart_threshold=1, multipart_chunksize=1 << 20)
NO_ETAG = '"00000000000000000000000000000000"'


@pytest.fixture(scope='module')
def s3(cluster):
    return s3_client(cluster)


@pytest.fixture(scope='module', params=MAKERS)
def holding_large(request, s3, login) -> str:
    """A bucket with the object ``large``, which was uploaded in parts."""
    bucket = MAKERS[request.param](login(USER))
    more = {'Metadata': {'colour': 'blue'}}
    s3.upload_fileobj(
        io.BytesIO(LARGE), bucket, 'large', Config=IN_PARTS, ExtraArgs=more
    )
    return bucket


class TestTransfer:
    def test_in_parts_makes_one_object(self, s3, holding_large):
        got = s3.get_object(Bucket=holding_large, Key='large')
        assert got['ETag'].endswith('-2"')
        assert got['Metadata'] == {'colour': 'blue'}
        assert got['Body'].read() == LARGE

    def test_in_ranges_gets_one_object(self, s3, holding_large):
        got = io.BytesIO()
        s3.download_fileobj(holding_large, 'large', got, Config=IN_RANGES)
        assert got.getvalue() == LARGE

    @PART_NUMBERS
    def test_of_one_part_gets_that_part(self, s3, holding_large):
        got = s3.get_object(Bucket=holding_large, Key='large', PartNumber=2)
        assert got['Body'].read() == SMALL
        assert got['PartsCount'] == 2

    @PART_COPIES
    @pytest.mark.parametrize('other', MAKERS.values(), ids=MAKERS)
    def test_between_buckets_copies_parts(
        self, s3, client, holding_large, other
    ):
        bucket = other(client)
        source = {'Bucket': holding_large, 'Key': 'large'}
        s3.copy(source, bucket, 'copied', Config=IN_PARTS)
        got = s3.get_object(Bucket=bucket, Key='copied')
        assert got['ETag'].endswith('-2"')
        assert got['Metadata'] == {'colour': 'blue'}
        assert got['Body'].read() == LARGE

    def test_of_a_file_gets_it_back(self, s3, bucket, tmp_path):
        (tmp_path / 'sent').write_bytes(SMALL)
        s3.upload_file(tmp_path / 'sent', bucket, 'ü/☃')
        s3.download_file(bucket, 'ü/☃', tmp_path / 'got')
        assert (tmp_path / 'got').read_bytes() == SMALL


def start_upload(s3, bucket, key, *parts) -> dict:
    """Upload parts of an object; return the parameters of the upload."""
    where = {'Bucket': bucket, 'Key': key}
    started = s3.create_multipart_upload(**where)
    where['UploadId'] = started['UploadId']
    for number, part in enumerate(parts, 1):
        s3.upload_part(PartNumber=number, Body=part, **where)
    return where


def complete(s3, upload, numbers) -> dict:
    """Complete an upload with some of its parts."""
    rows = s3.list_parts(**upload)['Parts']
    etags = {row['PartNumber']: row['ETag'] for row in rows}
    parts = [{'PartNumber': n, 'ETag': etags.get(n, NO_ETAG)} for n in numbers]
    return s3.complete_multipart_upload(
        MultipartUpload={'Parts': parts}, **upload
    )


@pytest.fixture(scope='class', params=MAKERS)
def busy(request, login) -> str:
    """The bucket of the unfinished ``uploads``."""
    return MAKERS[request.param](login(USER))


@pytest.fixture(scope='class')
def uploads(s3, busy) -> dict[str, dict]:
    """The parameters of unfinished uploads, by their keys."""
    keys = ('a', 'b/1', 'b/2', 'ü')
    parts = (b'1', b'22', b'333')
    return {key: start_upload(s3, busy, key, *parts) for key in keys}


class TestParts:
    @pytest.mark.parametrize('page_size', [1, 3])
    def test_of_an_upload_are_listed_by_pages(self, s3, uploads, page_size):
        pages = pages_of(s3, 'list_parts', page_size, **uploads['ü'])
        parts = [part for page in pages for part in page.get('Parts', [])]
        shown = [(part['PartNumber'], part['Size']) for part in parts]
        assert shown == [(1, 1), (2, 2), (3, 3)]

    @pytest.mark.parametrize('page_size', [2, 3])
    @pytest.mark.parametrize(
        ('params', 'keys'),
        [({}, ['a', 'b/1', 'b/2', 'ü']), ({'Prefix': 'b/'}, ['b/1', 'b/2'])],
        ids=['all', 'prefix'],
    )
    def test_have_unfinished_uploads_that_are_listed_by_pages(
        self, s3, busy, uploads, page_size, params, keys
    ):
        params = {'Bucket': busy, **params}
        pages = pages_of(s3, 'list_multipart_uploads', page_size, **params)
        rows = [row for page in pages for row in page.get('Uploads', [])]
        assert [row['Key'] for row in rows] == keys
        ids = [uploads[key]['UploadId'] for key in keys]
        assert [row['UploadId'] for row in rows] == ids

    @pytest.mark.parametrize(
        ('numbers', 'code'),
        [
            ([1, 2], 'EntityTooSmall'),
            ([2, 1], 'InvalidPartOrder'),
            ([9], 'InvalidPart'),
            ([], 'MalformedXML'),
        ],
    )
    def test_that_do_not_make_an_object_are_refused(
        self, s3, uploads, numbers, code
    ):
        with pytest.raises(ClientError) as error:
            complete(s3, uploads['a'], numbers)
        assert code_of(error) == code

    def test_may_be_left_out(self, s3, bucket):
        upload = start_upload(s3, bucket, 'o', b'1', b'22')
        complete(s3, upload, [2])
        got = s3.get_object(Bucket=bucket, Key='o')
        assert got['Body'].read() == b'22'

    def test_may_be_uploaded_again(self, s3, bucket):
        upload = start_upload(s3, bucket, 'o', b'old')
        s3.upload_part(PartNumber=1, Body=b'new', **upload)
        complete(s3, upload, [1])
        got = s3.get_object(Bucket=bucket, Key='o')
        assert got['Body'].read() == b'new'

    def test_may_be_ranges_of_other_objects(self, s3, bucket):
        s3.put_object(Bucket=bucket, Key='ü/☃', Body=SMALL)
        upload = start_upload(s3, bucket, 'o')
        s3.upload_part_copy(
            PartNumber=1,
            CopySource={'Bucket': bucket, 'Key': 'ü/☃'},
            CopySourceRange='bytes=2-4',
            **upload,
        )
        complete(s3, upload, [1])
        got = s3.get_object(Bucket=bucket, Key='o')
        assert got['Body'].read() == b'234'

    def test_of_an_aborted_upload_are_deleted(self, s3, client, bucket):
        upload = start_upload(s3, bucket, 'o', b'1', b'22')
        assert len(names_in(client, f'{bucket}+segments')) == 3
        s3.abort_multipart_upload(**upload)
        assert names_in(client, f'{bucket}+segments') == []
