# SPDX-License-Identifier: Apache-2.0
"""S3 listings in any order: ``allow-unordered=true``, as in Ceph."""

import configparser
import itertools
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError

from shardmw.core.placement import shard_of
from shardmw.proxy.listing.container_order import UNORDERED_HEADER
from test.functional.alike import make_twins
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    Pair,
    make_sharded,
    unique,
)
from test.functional.extra_proxy import running_proxy
from test.functional.realclients import (
    code_of,
    keys_of,
    pages_of,
    path_of,
    s3_client,
)

BODY = b'x'
NAMES = (
    'ado', 'bot', 'cob', 'dog', 'emu',
    *(f'abc/{i:02}' for i in range(20)),
    'e e', 'x+y', '100%', '\u00fc/\u2603', '}, {"', '<&>', '\u0085',
    '9' * 1024,
)  # fmt: skip
OPERATIONS = ['list_objects', 'list_objects_v2']
STARTS = [('list_objects', 'Marker'), ('list_objects_v2', 'StartAfter')]

each_operation = pytest.mark.parametrize('operation', OPERATIONS)


def by_shard(names) -> list[str]:
    return sorted(names, key=lambda name: (shard_of(name, SHARDS), name))


def client_that_adds(cluster, parameter: str, **config):
    """Return boto3's client, with a parameter added to every GET."""
    s3 = s3_client(cluster, **config)

    def add(request, **_kwargs) -> None:
        if request.method == 'GET':
            mark = '&' if '?' in request.url else '?'
            request.url += mark + parameter

    s3.meta.events.register('before-sign.s3', add)
    return s3


def walk(s3, operation: str, page_size: int, **params) -> list[str]:
    pages = pages_of(s3, operation, page_size, **params)
    return [key for page in pages for key in keys_of(page)]


def answer(s3, operation: str, **params) -> dict:
    """Return an operation's answer, without what differs each time."""
    answer = getattr(s3, operation)(**params)
    del answer['ResponseMetadata']
    return answer


@pytest.fixture(scope='module')
def s3(cluster):
    """A client that asks for unordered listings."""
    return client_that_adds(cluster, 'allow-unordered=true')


@pytest.fixture(scope='module')
def ordering(cluster):
    """A client that does not ask for unordered listings."""
    return s3_client(cluster)


@pytest.fixture(scope='module')
def twins(ordering, login) -> Pair:
    """A plain and a sharded bucket with the same keys, for all tests."""
    twins = make_twins(login(USER))
    for bucket, name in itertools.product(twins, NAMES):
        ordering.put_object(Bucket=bucket, Key=name, Body=BODY)
    return twins


@pytest.fixture(scope='module')
def bucket(twins) -> str:
    return twins.sharded


class TestPages:
    @each_operation
    @pytest.mark.parametrize('page_size', [1, 2, 7, 1000])
    def test_hold_every_key_once_by_shard(
        self, s3, bucket, operation, page_size
    ):
        found = walk(s3, operation, page_size, Bucket=bucket)
        assert found == by_shard(NAMES) != sorted(NAMES)

    @each_operation
    def test_have_the_keys_that_swift_lists(
        self, s3, login, bucket, operation
    ):
        pages = pages_of(s3, operation, 7, Bucket=bucket)
        owner, marker = login(USER), ''
        for page in pages:
            listing = owner.listing(
                bucket, allow_unordered='true', marker=marker, limit=7
            )
            assert keys_of(page) == listing.names()
            marker = listing.names()[-1]

    @each_operation
    @pytest.mark.parametrize('page_size', [1, 3, 20, 1000])
    def test_of_a_prefix_hold_its_keys_once(
        self, s3, bucket, operation, page_size
    ):
        found = walk(s3, operation, page_size, Bucket=bucket, Prefix='abc/')
        assert found == by_shard(f'abc/{i:02}' for i in range(20))

    @each_operation
    def test_are_full_and_only_the_last_is_not_truncated(
        self, s3, bucket, operation
    ):
        pages = pages_of(s3, operation, 10, Bucket=bucket, Prefix='abc/')
        assert [len(keys_of(page)) for page in pages] == [10, 10]
        assert [page['IsTruncated'] for page in pages] == [True, False]

    @each_operation
    def test_of_no_keys_are_empty_and_not_truncated(
        self, s3, bucket, operation
    ):
        page = getattr(s3, operation)(Bucket=bucket, MaxKeys=0)
        assert keys_of(page) == []
        assert not page['IsTruncated']

    @pytest.mark.parametrize(('operation', 'start'), STARTS)
    def test_go_on_after_the_last_key_of_a_page(
        self, s3, bucket, operation, start
    ):
        ask = getattr(s3, operation)
        first = keys_of(ask(Bucket=bucket, MaxKeys=6))
        second = keys_of(ask(Bucket=bucket, MaxKeys=6, **{start: first[-1]}))
        assert first + second == by_shard(NAMES)[:12]

    @pytest.mark.parametrize(('operation', 'start'), STARTS)
    def test_after_another_key_begin_in_the_shard_of_that_key(
        self, s3, bucket, operation, start
    ):
        found = walk(s3, operation, 3, Bucket=bucket, **{start: 'abc/0'})
        ordered = by_shard([*NAMES, 'abc/0'])
        assert found == ordered[ordered.index('abc/0') + 1 :]

    def test_go_on_by_the_token_despite_start_after(self, s3, bucket):
        ask = {'Bucket': bucket, 'MaxKeys': 4, 'StartAfter': 'bot'}
        first = s3.list_objects_v2(**ask)
        token = first['NextContinuationToken']
        second = s3.list_objects_v2(**ask, ContinuationToken=token)
        found = keys_of(first) + keys_of(second)
        ordered = by_shard(NAMES)
        start = ordered.index('bot') + 1
        assert found == ordered[start : start + 8]

    def test_hold_every_key_once_while_the_walk_deletes_them(
        self, s3, ordering, login
    ):
        bucket = make_sharded(login(USER))
        for name in NAMES:
            ordering.put_object(Bucket=bucket, Key=name, Body=BODY)
        found = []
        for page in s3.get_paginator('list_objects_v2').paginate(
            Bucket=bucket, PaginationConfig={'PageSize': 4}
        ):
            found += keys_of(page)
            for key in keys_of(page):
                ordering.delete_object(Bucket=bucket, Key=key)
        assert found == by_shard(NAMES)


class TestDelimiter:
    @each_operation
    def test_is_refused_with_the_reason(self, s3, bucket, operation):
        with pytest.raises(ClientError) as error:
            getattr(s3, operation)(Bucket=bucket, Delimiter='/')
        answer = error.value.response
        assert answer['ResponseMetadata']['HTTPStatusCode'] == 400
        assert answer['Error'] == {
            'Code': 'InvalidRequest',
            'Message': 'allow_unordered cannot be combined with delimiter, '
            'path or reverse',
        }

    @each_operation
    def test_that_is_empty_is_ignored(self, s3, bucket, operation):
        found = walk(s3, operation, 1000, Bucket=bucket, Delimiter='')
        assert found == by_shard(NAMES)


class TestValue:
    @pytest.mark.parametrize('value', ['True', '1', 'yes'])
    def test_that_is_true_for_swift_gives_no_order(
        self, cluster, bucket, value
    ):
        s3 = client_that_adds(cluster, f'allow-unordered={value}')
        page = s3.list_objects_v2(Bucket=bucket)
        assert keys_of(page) == by_shard(NAMES)

    @pytest.mark.parametrize(
        'parameter',
        ['', '=', '=false', '=0', '=maybe', '=%C3%BC', '=%FF', '=a%26b'],
    )
    def test_that_is_not_true_gives_the_order_of_names(
        self, cluster, bucket, parameter
    ):
        s3 = client_that_adds(cluster, f'allow-unordered{parameter}')
        page = s3.list_objects_v2(Bucket=bucket)
        assert keys_of(page) == sorted(NAMES)

    def test_false_gives_the_order_of_names_in_an_unordered_bucket(
        self, cluster, login, ordering
    ):
        owner = login(USER)
        bucket = make_sharded(owner)
        headers = {UNORDERED_HEADER: 'true'}
        assert owner.post(bucket, headers=headers).status == 204
        for name in NAMES:
            ordering.put_object(Bucket=bucket, Key=name, Body=BODY)
        s3 = client_that_adds(cluster, 'allow-unordered=false')
        page = ordering.list_objects_v2(Bucket=bucket)
        assert keys_of(page) == by_shard(NAMES)
        assert walk(s3, 'list_objects_v2', 3, Bucket=bucket) == sorted(NAMES)


class TestPlainBucket:
    @each_operation
    @pytest.mark.parametrize(
        'params',
        [{}, {'Delimiter': '/'}, {'MaxKeys': 3}, {'Prefix': 'abc/'}],
        ids=str,
    )
    def test_is_listed_as_without_the_parameter(
        self, s3, ordering, twins, operation, params
    ):
        asked, unasked = (
            answer(each, operation, Bucket=twins.plain, **params)
            for each in (s3, ordering)
        )
        assert asked == unasked


class TestOtherRequests:
    @pytest.mark.parametrize('params', [{}, {'Delimiter': '/'}], ids=str)
    @pytest.mark.parametrize(
        'operation',
        [
            'list_object_versions',
            'list_multipart_uploads',
            'get_bucket_acl',
            'get_bucket_versioning',
            'head_bucket',
        ],
    )
    def test_ignore_the_parameter(
        self, s3, ordering, bucket, operation, params
    ):
        if not operation.startswith('list_'):
            params = {}
        asked, unasked = (
            answer(each, operation, Bucket=bucket, **params)
            for each in (s3, ordering)
        )
        assert asked == unasked

    def test_list_versions_in_order(self, s3, ordering, login):
        bucket = make_sharded(login(USER))
        ordering.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={'Status': 'Enabled'}
        )
        for name in NAMES[:20] * 2:
            ordering.put_object(Bucket=bucket, Key=name, Body=BODY)
        assert walk(s3, 'list_objects_v2', 3, Bucket=bucket) == by_shard(
            NAMES[:20]
        )
        listed = s3.list_object_versions(Bucket=bucket)
        keys = [version['Key'] for version in listed['Versions']]
        assert keys == sorted(NAMES[:20] * 2)

    def test_list_uploads_in_order(self, s3, ordering, login):
        bucket = make_sharded(login(USER))
        for name in NAMES[:20]:
            ordering.create_multipart_upload(Bucket=bucket, Key=name)
        asked = s3.list_multipart_uploads(Bucket=bucket)
        keys = [upload['Key'] for upload in asked['Uploads']]
        assert keys == sorted(NAMES[:20])

    def test_read_an_object(self, s3, bucket):
        answer = s3.get_object(Bucket=bucket, Key='ado')
        assert answer['Body'].read() == BODY

    @each_operation
    def test_for_a_missing_bucket_get_no_such_bucket(self, s3, operation):
        with pytest.raises(ClientError) as error:
            getattr(s3, operation)(Bucket='missing', Delimiter='/')
        assert code_of(error) == 'NoSuchBucket'


class TestPresignedUrl:
    @each_operation
    def test_lists_without_an_order(self, cluster, client, bucket, operation):
        s3 = client_that_adds(
            cluster, 'allow-unordered=true', signature_version='s3v4'
        )
        url = s3.generate_presigned_url(operation, {'Bucket': bucket})
        answer = client.anonymous().raw('GET', path_of(url))
        assert answer.status == 200
        places = [
            answer.body.index(f'<Key>{quote(name)}</Key>'.encode())
            for name in by_shard(NAMES)
        ]
        assert places == sorted(places)

    def test_is_refused_if_the_parameter_is_not_signed(
        self, cluster, client, bucket
    ):
        s3 = s3_client(cluster, signature_version='s3v4')
        url = s3.generate_presigned_url('list_objects_v2', {'Bucket': bucket})
        anybody = client.anonymous()
        assert anybody.raw('GET', path_of(url)).status == 200
        path = path_of(url) + '&allow-unordered=true'
        answer = anybody.raw('GET', path)
        assert answer.status == 403
        assert b'<Code>SignatureDoesNotMatch</Code>' in answer.body


@pytest.fixture(scope='module')
def s3_acl_proxy(cluster):
    """The URL of a proxy with ``s3_acl``, S3's own ACLs."""

    def change(conf: configparser.RawConfigParser) -> None:
        conf['filter:s3api']['s3_acl'] = 'true'

    with running_proxy(cluster, 's3-acl-proxy', change) as url:
        yield url


class TestProxyWithAclsOfS3:
    """s3api handles requests in another way if ``s3_acl`` is set."""

    @each_operation
    def test_lists_without_an_order(self, cluster, s3_acl_proxy, operation):
        s3 = client_that_adds(
            cluster, 'allow-unordered=true', url=s3_acl_proxy
        )

        def add_shard_count(params, **_kwargs) -> None:
            params['headers'][SHARD_COUNT_HEADER] = str(SHARDS)

        s3.meta.events.register('before-call.s3.CreateBucket', add_shard_count)
        bucket = unique('s3-acl')
        s3.create_bucket(Bucket=bucket)
        for name in NAMES:
            s3.put_object(Bucket=bucket, Key=name, Body=BODY)
        assert walk(s3, operation, 7, Bucket=bucket) == by_shard(NAMES)
        with pytest.raises(ClientError) as error:
            getattr(s3, operation)(Bucket=bucket, Delimiter='/')
        assert code_of(error) == 'InvalidRequest'


@pytest.fixture(scope='module')
def proxy_without_listings(cluster):
    """The URL of a proxy without the filter shardmw-listings."""

    def change(conf: configparser.RawConfigParser) -> None:
        pipeline = conf['pipeline:main']['pipeline'].split()
        pipeline.remove('shardmw-listings')
        conf['pipeline:main']['pipeline'] = ' '.join(pipeline)

    with running_proxy(cluster, 'listingless-proxy', change) as url:
        yield url


class TestProxyWithoutShardmwListings:
    @each_operation
    @pytest.mark.parametrize('params', [{}, {'Delimiter': '/'}], ids=str)
    def test_ignores_the_parameter(
        self,
        cluster,
        proxy_without_listings,
        ordering,
        bucket,
        operation,
        params,
    ):
        s3 = client_that_adds(
            cluster, 'allow-unordered=true', url=proxy_without_listings
        )
        asked, unasked = (
            answer(each, operation, Bucket=bucket, **params)
            for each in (s3, ordering)
        )
        assert asked == unasked


class TestSwiftClient:
    @pytest.mark.parametrize('query', [{}, {'delimiter': '/'}], ids=str)
    def test_cannot_use_the_parameter_of_s3(self, login, bucket, query):
        owner = login(USER)
        asked, unasked = (
            owner.listing(bucket, **query, **parameter)
            for parameter in ({'allow-unordered': 'true'}, {})
        )
        assert asked.status == 200
        assert asked.json() == unasked.json()
