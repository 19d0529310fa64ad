# SPDX-License-Identifier: Apache-2.0
"""Listings that may be some seconds old, for clients of two proxies."""

import time

import pytest
from shardmw_saio import Cluster, ClusterOptions

from shardmw.proxy.listing.max_age import (
    MAX_AGE_HEADER,
    REQUEST_HEADER,
)
from test.functional.client import Client
from test.functional.conftest import USER, make_plain, make_sharded
from test.functional.realclients import s3_client
from test.functional.test_faults import LASTING_TOKENS, LASTING_TRUST

REMOVE_HEADER = 'X-Remove-Container-Listing-Max-Age'

NAMES = [f'd{number // 10}/{number % 10}' for number in range(40)]
LIMIT = 5
OLD = {MAX_AGE_HEADER.replace('-', '_'): '3600'}


@pytest.fixture(scope='module')
def cluster(tmp_path_factory) -> Cluster:
    settings = {**LASTING_TOKENS, **LASTING_TRUST}
    options = ClusterOptions(proxies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('kept'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def proxies(cluster) -> list[Client]:
    """Clients of the same user at two proxies."""
    client = Client.login(cluster.auth_url, USER, cluster.users[USER])
    return [client.on(url) for url in cluster.proxy_urls]


@pytest.fixture
def container(proxies) -> str:
    """A container whose listings may be an hour old."""
    return filled(proxies[0], make_sharded(proxies[0], **OLD))


def filled(client: Client, container: str) -> str:
    for name in NAMES:
        assert client.put(container, name, b'x').status == 201
    return container


def test_both_proxies_return_a_kept_page_until_it_is_too_old(
    proxies, container
):
    first = proxies[0].listing(container)
    assert 'age' not in first.headers
    proxies[0].put(container, 'new', b'x')
    time.sleep(1)
    for client in proxies:
        again = client.listing(container)
        assert again.body == first.body
        assert 1 <= int(again.headers['age']) <= 3600
    anew = proxies[1].get(
        container, query='format=json', headers={REQUEST_HEADER: '1'}
    )
    assert 'age' not in anew.headers
    assert len(anew.json()) == len(NAMES) + 1


def test_a_head_is_exact(proxies, container):
    proxies[0].listing(container)
    proxies[0].put(container, 'new', b'x')
    counts = [
        answer.headers['x-container-object-count']
        for answer in (
            proxies[0].listing(container),
            proxies[0].head(container),
        )
    ]
    assert counts == [str(len(NAMES)), str(len(NAMES) + 1)]


@pytest.mark.parametrize('kind', ['plain', 'xml', 'json'])
def test_a_page_has_its_age_in_every_format(proxies, container, kind):
    first, again = (
        proxies[0].get(container, query={'format': kind}) for _ in range(2)
    )
    assert again.body == first.body
    assert 'age' in again.headers


def test_a_page_with_a_delimiter_is_kept(proxies, container):
    query = {'delimiter': '/', 'format': 'json'}
    first, again = (proxies[0].get(container, query=query) for _ in range(2))
    assert again.body == first.body
    assert [row['subdir'] for row in again.json()] == [
        'd0/',
        'd1/',
        'd2/',
        'd3/',
    ]
    assert 'age' in again.headers


def test_a_walk_reads_ahead(proxies, container):
    ages, listed = [], []
    while len(listed) < len(NAMES):
        marker = listed[-1] if listed else ''
        answer = proxies[0].listing(container, limit=LIMIT, marker=marker)
        listed += [row['name'] for row in answer.json()]
        ages.append('age' in answer.headers)
    assert listed == NAMES
    # the pages after the first one are read together
    assert ages == [False, False, *[True] * 6]


def test_a_walk_of_s3_lists_everything_once(cluster, proxies, container):
    s3 = s3_client(cluster, USER)

    def keys() -> list[str]:
        pages = s3.get_paginator('list_objects_v2').paginate(
            Bucket=container, PaginationConfig={'PageSize': LIMIT}
        )
        return [row['Key'] for page in pages for row in page['Contents']]

    assert keys() == NAMES
    proxies[0].delete(container, NAMES[7])
    assert keys() == NAMES


def test_a_page_of_a_web_site_is_kept(proxies):
    client = proxies[0]
    headers = {
        'X_Container_Read': '.r:*,.rlistings',
        'X_Container_Meta_Web_Listings': 'true',
    }
    container = filled(client, make_sharded(client, **OLD, **headers))
    visitor = client.anonymous()
    path = f'{visitor.path(container)}/d1/'
    first = visitor.raw('GET', path)
    assert first.status == 200
    assert b'>9<' in first.body
    client.delete(container, 'd1/9')
    assert visitor.raw('GET', path).body == first.body


def test_listings_of_parts_of_s3_uploads_are_never_kept(cluster, proxies):
    s3 = s3_client(cluster, USER)
    bucket = make_sharded(proxies[0], **OLD)
    proxies[0].post(f'{bucket}+segments', headers={MAX_AGE_HEADER: '3600'})
    upload = s3.create_multipart_upload(Bucket=bucket, Key='k')['UploadId']
    ids = {'Bucket': bucket, 'Key': 'k', 'UploadId': upload}
    parts = []
    for number in (1, 2):
        part = s3.upload_part(**ids, PartNumber=number, Body=b'x' * 5_300_000)
        parts.append({'PartNumber': number, 'ETag': part['ETag']})
        listed = s3.list_parts(**ids)['Parts']
        assert [each['PartNumber'] for each in listed] == list(
            range(1, number + 1)
        )
    s3.complete_multipart_upload(**ids, MultipartUpload={'Parts': parts})


def test_listings_of_versions_are_never_kept(proxies):
    client = proxies[0]
    container = make_sharded(client, **OLD, X_Versions_Enabled='true')
    for number in range(1, 4):
        client.put(container, 'o', b'x' * number)
        client.listing(container)
        answer = client.get(
            container, query={'versions': 'true', 'format': 'json'}
        )
        assert len(answer.json()) == number
        assert answer.json()[0]['bytes'] == number


def test_a_worker_keeps_pages_itself_without_memcached(
    cluster, proxies, container
):
    cluster.stop('memcached')
    try:
        first = proxies[0].listing(container, delimiter='/')
        proxies[0].put(container, 'new', b'x')
        again = proxies[0].listing(container, delimiter='/')
        other = proxies[1].listing(container, delimiter='/')
    finally:
        cluster.start('memcached')
    assert again.body == first.body
    assert 'age' in again.headers
    assert len(other.json()) == len(first.json()) + 1


@pytest.mark.parametrize('make', [make_plain, make_sharded])
def test_the_setting_is_stored_shown_and_removed(proxies, make):
    client = proxies[0]
    container = make(client)
    for headers, shown in (
        ({MAX_AGE_HEADER: '30'}, '30'),
        ({'X-Container-Meta-A': 'b'}, '30'),
        ({MAX_AGE_HEADER: '0'}, '0'),
        ({MAX_AGE_HEADER: '40'}, '40'),
        ({REMOVE_HEADER: 'x'}, None),
        ({MAX_AGE_HEADER: '50'}, '50'),
        ({MAX_AGE_HEADER: ''}, None),
    ):
        assert client.post(container, headers=headers).status == 204
        for answer in (client.head(container), client.listing(container)):
            assert answer.headers.get(MAX_AGE_HEADER.lower()) == shown
