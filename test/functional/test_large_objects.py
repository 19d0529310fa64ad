# SPDX-License-Identifier: Apache-2.0
"""Static and dynamic large objects, across plain and sharded containers."""

import hashlib
import json

import pytest

from test.functional.conftest import USER, make_sharded, unique
from test.functional.releases import PART_NUMBERS

PARTS = [b'first-', b'second-', b'third']
WHOLE = b''.join(PARTS)
ETAGS = [hashlib.md5(part).hexdigest() for part in PARTS]
#: Swift's ETag of a large object, made from its segments' ETags.
LARGE_ETAG = hashlib.md5(''.join(ETAGS).encode()).hexdigest()
SLO_ETAG = f'"{LARGE_ETAG}"'

GET_MANIFEST = {'multipart-manifest': 'get'}
PUT_MANIFEST = {'multipart-manifest': 'put'}
DELETE_MANIFEST = {'multipart-manifest': 'delete'}


def put_segments(client, container, prefix='seg/'):
    for i, part in enumerate(PARTS):
        assert client.put(container, f'{prefix}{i}', part).status == 201


def manifest_of(container, prefix='seg/') -> bytes:
    """Return a manifest with the ETag and the size of every segment."""
    return json.dumps(
        [
            {
                'path': f'/{container}/{prefix}{i}',
                'etag': ETAGS[i],
                'size_bytes': len(PARTS[i]),
            }
            for i in range(len(PARTS))
        ]
    ).encode()


def put_manifest(client, container, name, manifest, **headers):
    return client.put(
        container, name, manifest, query=PUT_MANIFEST, headers=headers
    )


def make_slo(client, manifests, segments):
    put_segments(client, segments)
    answer = put_manifest(client, manifests, 'large', manifest_of(segments))
    assert answer.status == 201
    assert answer.headers['etag'] == SLO_ETAG


def make_dlo(client, manifests, segments):
    put_segments(client, segments)
    client.put(segments, 'other', b'no segment')
    headers = {'X-Object-Manifest': f'{segments}/seg/'}
    answer = client.put(manifests, 'large', headers=headers)
    assert answer.status == 201


@pytest.fixture
def slo(client, lasting_two):
    """The containers of a static ``large`` and of its segments."""
    make_slo(client, *lasting_two)
    return lasting_two


@pytest.fixture
def dlo(client, lasting_two):
    """The containers of a dynamic ``large`` and of its segments."""
    make_dlo(client, *lasting_two)
    return lasting_two


@pytest.fixture(scope='class')
def lasting_slo(login, lasting_two):
    """The containers of ``slo``, for tests that change nothing."""
    make_slo(login(USER), *lasting_two)
    return lasting_two


@pytest.fixture(scope='class')
def lasting_dlo(login, lasting_two):
    """The containers of ``dlo``, for tests that change nothing."""
    make_dlo(login(USER), *lasting_two)
    return lasting_two


class TestReadOfAStaticLargeObject:
    def test_gets_the_whole(self, client, lasting_slo):
        got = client.get(lasting_slo[0], 'large')
        assert (got.status, got.body) == (200, WHOLE)
        assert got.headers['etag'] == SLO_ETAG
        assert got.headers['x-static-large-object'] == 'True'
        assert got.headers['content-length'] == str(len(WHOLE))

    def test_by_head_shows_the_whole(self, client, lasting_slo):
        got = client.head(lasting_slo[0], 'large')
        assert got.status == 200
        assert got.headers['etag'] == SLO_ETAG
        assert got.headers['content-length'] == str(len(WHOLE))

    @pytest.mark.parametrize(
        ('asked', 'body'),
        [
            ('bytes=0-2', WHOLE[:3]),
            ('bytes=4-9', WHOLE[4:10]),
            ('bytes=3-15', WHOLE[3:16]),
            ('bytes=-7', WHOLE[-7:]),
        ],
    )
    def test_of_a_range_crosses_segments(
        self, client, lasting_slo, asked, body
    ):
        got = client.get(lasting_slo[0], 'large', headers={'Range': asked})
        assert (got.status, got.body) == (206, body)

    def test_of_many_ranges_is_multipart(self, client, lasting_slo):
        headers = {'Range': 'bytes=0-1,5-7'}
        got = client.get(lasting_slo[0], 'large', headers=headers)
        assert got.status == 206
        assert got.headers['content-type'].startswith('multipart/byteranges')
        assert b'\r\n\r\nfi\r\n' in got.body
        assert b'\r\n\r\n-se\r\n' in got.body

    def test_of_a_range_beyond_the_end_is_416(self, client, lasting_slo):
        headers = {'Range': 'bytes=1000-'}
        assert (
            client.get(lasting_slo[0], 'large', headers=headers).status == 416
        )

    def test_compares_conditions_with_its_own_etag(self, client, lasting_slo):
        headers = {'If-None-Match': SLO_ETAG}
        assert (
            client.get(lasting_slo[0], 'large', headers=headers).status == 304
        )
        headers = {'If-Match': SLO_ETAG}
        assert (
            client.get(lasting_slo[0], 'large', headers=headers).body == WHOLE
        )
        headers = {'If-Match': '"other"'}
        assert (
            client.get(lasting_slo[0], 'large', headers=headers).status == 412
        )

    def test_can_get_the_manifest(self, client, lasting_slo):
        got = client.get(lasting_slo[0], 'large', query=GET_MANIFEST)
        assert got.status == 200
        assert got.headers['content-type'].startswith('application/json')
        names = [row['name'] for row in got.json()]
        assert names == [f'/{lasting_slo[1]}/seg/{i}' for i in range(3)]
        assert [row['hash'] for row in got.json()] == ETAGS

    def test_can_get_the_raw_manifest(self, client, lasting_slo):
        query = {'multipart-manifest': 'get', 'format': 'raw'}
        got = client.get(lasting_slo[0], 'large', query=query)
        assert got.json() == json.loads(manifest_of(lasting_slo[1]))

    @PART_NUMBERS
    def test_can_get_a_part_by_number(self, client, lasting_slo):
        got = client.get(lasting_slo[0], 'large', query={'part-number': 2})
        assert (got.status, got.body) == (206, PARTS[1])
        assert got.headers['x-parts-count'] == '3'

    def test_by_listing_shows_size_and_etag_of_the_whole(
        self, client, lasting_slo
    ):
        (row,) = client.listing(lasting_slo[0], prefix='large').json()
        assert row['bytes'] == len(WHOLE)
        assert row['slo_etag'] == SLO_ETAG


class TestStaticLargeObject:
    def test_post_keeps_it_a_large_object(self, client, slo):
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(slo[0], 'large', headers=headers).status == 202
        got = client.get(slo[0], 'large')
        assert got.body == WHOLE
        assert got.headers['x-object-meta-colour'] == 'blue'

    def test_copy_makes_one_object_of_it(self, client, slo):
        manifests, segments = slo
        answer = client.copy(manifests, 'large', f'{segments}/copied')
        assert answer.status == 201
        got = client.get(segments, 'copied')
        assert got.body == WHOLE
        assert got.headers['etag'] == hashlib.md5(WHOLE).hexdigest()
        assert 'x-static-large-object' not in got.headers

    def test_copy_of_the_manifest_makes_another(self, client, slo):
        manifests, segments = slo
        answer = client.copy(
            manifests, 'large', f'{segments}/copied', query=GET_MANIFEST
        )
        assert answer.status == 201
        got = client.get(segments, 'copied')
        assert got.body == WHOLE
        assert got.headers['x-static-large-object'] == 'True'

    def test_delete_leaves_the_segments(self, client, slo):
        manifests, segments = slo
        assert client.delete(manifests, 'large').status == 204
        assert client.get(manifests, 'large').status == 404
        assert client.get(segments, 'seg/0').body == PARTS[0]

    def test_delete_can_include_its_segments(self, client, slo):
        manifests, segments = slo
        answer = client.delete(
            manifests,
            'large',
            query=DELETE_MANIFEST,
            headers={'Accept': 'application/json'},
        )
        assert answer.status == 200
        assert answer.json()['Number Deleted'] == 4
        assert answer.json()['Errors'] == []
        assert client.listing(manifests, prefix='large').json() == []
        assert client.listing(segments, prefix='seg/').json() == []

    def test_get_is_409_if_a_segment_is_gone(self, client, slo):
        manifests, segments = slo
        client.delete(segments, 'seg/0')
        assert client.get(manifests, 'large').status == 409

    def test_get_is_409_if_a_segment_changed(self, client, slo):
        manifests, segments = slo
        client.put(segments, 'seg/0', b'other!')
        assert client.get(manifests, 'large').status == 409

    def test_can_be_a_segment_of_another(self, client, slo):
        manifests, segments = slo
        manifest = json.dumps(
            [
                {'path': f'/{manifests}/large'},
                {'path': f'/{segments}/seg/0'},
            ]
        ).encode()
        answer = put_manifest(client, segments, 'larger', manifest)
        assert answer.status == 201
        got = client.get(segments, 'larger')
        assert got.body == WHOLE + PARTS[0]

    def test_stranger_needs_to_read_both(
        self, client, stranger, two_containers
    ):
        make_slo(client, *two_containers)
        manifests, segments = two_containers
        headers = {'X-Container-Read': 'test:tester3'}
        client.post(manifests, headers=headers)
        assert stranger.get(manifests, 'large').status == 409
        client.post(segments, headers=headers)
        assert stranger.get(manifests, 'large').body == WHOLE


@pytest.fixture(scope='class')
def segmented(login, lasting_two):
    """The containers of manifests and of their segments."""
    put_segments(login(USER), lasting_two[1])
    return lasting_two


class TestPutOfAManifest:
    def test_with_a_missing_segment_is_400(self, client, segmented):
        manifests, segments = segmented
        answer = put_manifest(
            client,
            manifests,
            'refused',
            manifest_of(segments, 'missing/'),
            Accept='application/json',
        )
        assert answer.status == 400
        assert sorted(answer.json()['Errors']) == [
            [f'/{segments}/missing/0', '404 Not Found'],
            [f'/{segments}/missing/1', '404 Not Found'],
            [f'/{segments}/missing/2', '404 Not Found'],
        ]
        assert client.get(manifests, 'refused').status == 404

    @pytest.mark.parametrize(
        ('field', 'value', 'error'),
        [
            ('etag', '0' * 32, 'Etag Mismatch'),
            ('size_bytes', 1000, 'Size Mismatch'),
        ],
    )
    def test_with_a_wrong_etag_or_size_is_400(
        self, client, segmented, field, value, error
    ):
        manifests, segments = segmented
        manifest = json.loads(manifest_of(segments))
        manifest[2][field] = value
        answer = put_manifest(
            client,
            manifests,
            'large',
            json.dumps(manifest).encode(),
            Accept='application/json',
        )
        assert answer.status == 400
        assert answer.json()['Errors'] == [[f'/{segments}/seg/2', error]]

    def test_with_segments_in_a_missing_container_is_400(
        self, client, container
    ):
        answer = put_manifest(
            client, container, 'large', manifest_of(unique('missing'))
        )
        assert answer.status == 400

    @pytest.mark.parametrize(
        'manifest', [b'', b'{}', b'no JSON', b'[{"path": "/c"}]']
    )
    def test_that_is_malformed_is_400(self, client, lasting, manifest):
        answer = put_manifest(client, lasting, 'large', manifest)
        assert answer.status == 400
        assert client.get(lasting, 'large').status == 404

    def test_with_ranges_of_segments_succeeds(self, client, segmented):
        manifests, segments = segmented
        manifest = json.dumps(
            [
                {'path': f'/{segments}/seg/1', 'range': '0-2'},
                {'path': f'/{segments}/seg/0', 'range': '-3'},
            ]
        ).encode()
        assert put_manifest(client, manifests, 'x', manifest).status == 201
        assert client.get(manifests, 'x').body == b'secst-'

    def test_with_inline_data_succeeds(self, client, segmented):
        manifests, segments = segmented
        manifest = json.dumps(
            [{'path': f'/{segments}/seg/0'}, {'data': 'aW5saW5l'}]
        ).encode()
        assert put_manifest(client, manifests, 'x', manifest).status == 201
        assert client.get(manifests, 'x').body == PARTS[0] + b'inline'

    def test_with_metadata_and_content_type_stores_both(
        self, client, segmented
    ):
        manifests, segments = segmented
        headers = {'Content-Type': 'text/x-own', 'X-Object-Meta-A': 'b'}
        put_manifest(
            client, manifests, 'large', manifest_of(segments), **headers
        )
        got = client.head(manifests, 'large').headers
        assert got['content-type'] == 'text/x-own'
        assert got['x-object-meta-a'] == 'b'
        (row,) = client.listing(manifests, prefix='large').json()
        assert row['content_type'] == 'text/x-own'

    def test_with_an_etag_compares_that_of_the_whole(self, client, segmented):
        manifests, segments = segmented
        manifest = manifest_of(segments)
        answer = put_manifest(client, manifests, 'x', manifest, ETag='0' * 32)
        assert answer.status == 422
        answer = put_manifest(
            client, manifests, 'x', manifest, ETag=LARGE_ETAG
        )
        assert answer.status == 201

    def test_with_names_of_1024_bytes_succeeds(self, client, two_containers):
        manifests, segments = two_containers
        prefix = 's' * 1023
        put_segments(client, segments, prefix)
        manifest = manifest_of(segments, prefix)
        name = 'm' * 1024
        assert put_manifest(client, manifests, name, manifest).status == 201
        assert client.get(manifests, name).body == WHOLE

    def test_with_unicode_names_succeeds(self, client, two_containers):
        manifests, segments = two_containers
        put_segments(client, segments, 'ü/☃ ')
        manifest = manifest_of(segments, 'ü/☃ ')
        assert put_manifest(client, manifests, 'ö', manifest).status == 201
        assert client.get(manifests, 'ö').body == WHOLE

    def test_with_segments_of_a_backing_container_is_400(
        self, client, sharded
    ):
        put_segments(client, sharded)
        manifest = manifest_of(f'\0shardmw\0{sharded}\0000', '\0seg/')
        answer = put_manifest(client, sharded, 'large', manifest)
        assert answer.status == 400

    def test_in_one_container_with_its_segments_succeeds(
        self, client, container
    ):
        put_segments(client, container)
        manifest = manifest_of(container)
        put_manifest(client, container, 'large', manifest)
        assert client.get(container, 'large').body == WHOLE
        assert client.listing(container).names() == [
            'large',
            'seg/0',
            'seg/1',
            'seg/2',
        ]


class TestReadOfADynamicLargeObject:
    def test_gets_the_whole(self, client, lasting_dlo):
        got = client.get(lasting_dlo[0], 'large')
        assert (got.status, got.body) == (200, WHOLE)
        assert got.headers['etag'] == SLO_ETAG
        assert got.headers['x-object-manifest'] == f'{lasting_dlo[1]}/seg/'

    def test_by_head_shows_the_whole(self, client, lasting_dlo):
        got = client.head(lasting_dlo[0], 'large')
        assert got.status == 200
        assert got.headers['etag'] == SLO_ETAG
        assert got.headers['content-length'] == str(len(WHOLE))

    @pytest.mark.parametrize(
        ('asked', 'body'),
        [
            ('bytes=0-2', WHOLE[:3]),
            ('bytes=3-15', WHOLE[3:16]),
            ('bytes=-7', WHOLE[-7:]),
        ],
    )
    def test_of_a_range_crosses_segments(
        self, client, lasting_dlo, asked, body
    ):
        got = client.get(lasting_dlo[0], 'large', headers={'Range': asked})
        assert (got.status, got.body) == (206, body)

    def test_compares_conditions_with_the_whole(self, client, lasting_dlo):
        headers = {'If-None-Match': SLO_ETAG}
        assert (
            client.get(lasting_dlo[0], 'large', headers=headers).status == 304
        )
        headers = {'If-Match': '"other"'}
        assert (
            client.get(lasting_dlo[0], 'large', headers=headers).status == 412
        )

    def test_can_get_the_manifest(self, client, lasting_dlo):
        got = client.get(lasting_dlo[0], 'large', query=GET_MANIFEST)
        assert (got.status, got.body) == (200, b'')
        assert got.headers['etag'] == hashlib.md5().hexdigest()

    def test_by_listing_shows_the_manifest(self, client, lasting_dlo):
        (row,) = client.listing(lasting_dlo[0], prefix='large').json()
        assert row['bytes'] == 0


class TestDynamicLargeObject:
    def test_follows_its_segments(self, client, dlo):
        manifests, segments = dlo
        client.put(segments, 'seg/9', b'-more')
        assert client.get(manifests, 'large').body == WHOLE + b'-more'
        client.delete(segments, 'seg/9')
        assert client.get(manifests, 'large').body == WHOLE
        client.delete(segments, 'seg/1')
        assert client.get(manifests, 'large').body == PARTS[0] + PARTS[2]

    def test_is_empty_without_segments(self, client, dlo):
        manifests, segments = dlo
        client.delete(segments, 'seg/0')
        client.delete(segments, 'seg/1')
        client.delete(segments, 'seg/2')
        got = client.get(manifests, 'large')
        assert (got.status, got.body) == (200, b'')

    def test_copy_makes_one_object_of_it(self, client, dlo):
        manifests, segments = dlo
        client.copy(manifests, 'large', f'{segments}/copied')
        got = client.get(segments, 'copied')
        assert got.body == WHOLE
        assert 'x-object-manifest' not in got.headers

    def test_post_can_change_its_segments(self, client, dlo):
        manifests, segments = dlo
        headers = {'X-Object-Manifest': f'{segments}/oth'}
        assert client.post(manifests, 'large', headers=headers).status == 202
        assert client.get(manifests, 'large').body == b'no segment'

    def test_delete_leaves_the_segments(self, client, dlo):
        manifests, segments = dlo
        assert client.delete(manifests, 'large').status == 204
        assert client.get(segments, 'seg/0').body == PARTS[0]

    def test_stranger_needs_to_read_both(
        self, client, stranger, two_containers
    ):
        make_dlo(client, *two_containers)
        manifests, segments = two_containers
        headers = {'X-Container-Read': 'test:tester3'}
        client.post(manifests, headers=headers)
        assert stranger.get(manifests, 'large').status == 403
        headers = {'X-Container-Read': 'test:tester3,.rlistings'}
        client.post(segments, headers=headers)
        assert stranger.get(manifests, 'large').body == WHOLE


def test_dynamic_large_object_may_have_more_segments_than_shards(client):
    container = make_sharded(client, shards=2)
    put_segments(client, container, 'seg/a')
    put_segments(client, container, 'seg/b')
    put_segments(client, container, 'seg/c')
    headers = {'X-Object-Manifest': f'{container}/seg/'}
    client.put(container, 'large', headers=headers)
    assert client.get(container, 'large').body == WHOLE * 3
