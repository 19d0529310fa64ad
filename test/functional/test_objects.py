# SPDX-License-Identifier: Apache-2.0
"""Objects: what Swift's API promises of them, plain and sharded alike."""

import hashlib
import http.client
import time
from urllib.parse import quote

import pytest

from test.functional.conftest import (
    MAKERS,
    SHARD_COUNT_HEADER,
    STORED_BODY,
    USER,
    make_sharded,
    unique,
)
from test.functional.releases import EXPIRED_OBJECTS

BODY = STORED_BODY
BODY_ETAG = hashlib.md5(BODY).hexdigest()
LONG_AGO = 'Thu, 01 Jan 2015 00:00:00 GMT'
FAR_AHEAD = 'Fri, 01 Jan 2100 00:00:00 GMT'
NEXT_YEAR_SECONDS = 366 * 86400

NAMES = [
    'o',
    '.',
    '/leading',
    'trailing/',
    'a//b',
    '//',
    'percent%',
    '%41',
    '%00',
    'question?',
    'a&b=c;d',
    '<&>',
    'back\\slash',
    'new\nline',
    '\x7f',
    'ü ☃',
    '𐍈',
    '\uffff',
    'n' * 1024,
    'é' * 700,
]


def converse(client, request: bytes, *, hang_up: bool = False):
    """Send a request's bytes; return the response.

    :param hang_up: whether the client then ends its side of the connection
    """
    connection = http.client.HTTPConnection(client.host, timeout=30)
    connection.connect()
    connection.sock.sendall(request)
    if hang_up:
        connection.sock.shutdown(1)
    response = http.client.HTTPResponse(connection.sock)
    response.begin()
    connection.close()
    return response


def head_of(client, method, container, name, *headers) -> bytes:
    """Return the head of a request."""
    lines = [
        f'{method} {client.path(container, name)} HTTP/1.1',
        f'Host: {client.host}',
        f'X-Auth-Token: {client.token}',
        *headers,
    ]
    return ('\r\n'.join(lines) + '\r\n\r\n').encode()


class TestPut:
    def test_creates_an_object(self, client, container):
        answer = client.put(container, 'o', BODY)
        assert answer.status == 201
        assert answer.body == b''
        assert answer.headers['etag'] == BODY_ETAG
        assert answer.headers['content-length'] == '0'
        assert answer.headers['last-modified'].endswith(' GMT')
        assert answer.headers['x-trans-id'].startswith('tx')
        assert client.get(container, 'o').body == BODY

    def test_of_a_chunked_body_creates_an_object(self, client, container):
        answer = client.put(container, 'o', iter([b'01234', b'', b'56789']))
        assert answer.status == 201
        assert answer.headers['etag'] == BODY_ETAG
        got = client.get(container, 'o')
        assert got.body == BODY
        assert got.headers['content-length'] == '10'

    def test_of_zero_bytes_creates_an_object(self, client, container):
        answer = client.put(container, 'o', b'')
        assert answer.status == 201
        assert answer.headers['etag'] == hashlib.md5().hexdigest()
        got = client.get(container, 'o')
        assert got.status == 200
        assert got.body == b''
        assert got.headers['content-length'] == '0'

    def test_of_a_chunked_body_of_zero_bytes_creates_an_object(
        self, client, container
    ):
        assert client.put(container, 'o', iter([])).status == 201
        assert client.get(container, 'o').body == b''

    def test_replaces_body_and_metadata(self, client, container):
        old = {'X-Object-Meta-Colour': 'red', 'Content-Type': 'text/old'}
        client.put(container, 'o', b'old', headers=old)
        assert client.put(container, 'o', BODY).status == 201
        got = client.get(container, 'o')
        assert got.body == BODY
        assert got.headers['content-type'] == 'application/octet-stream'
        assert 'x-object-meta-colour' not in got.headers
        assert [row['bytes'] for row in client.listing(container).json()] == [
            10
        ]

    def test_streams_twenty_megabytes_both_ways(self, client, container):
        body = hashlib.shake_128(b'seed').digest(20 << 20)
        etag = hashlib.md5(body).hexdigest()
        answer = client.put(container, 'o', body, headers={'ETag': etag})
        assert answer.status == 201
        assert client.get(container, 'o').body == body

    def test_streams_twenty_megabytes_in_chunks(self, client, container):
        chunk = hashlib.shake_128(b'seed').digest(1 << 20)
        assert client.put(container, 'o', iter([chunk] * 20)).status == 201
        assert client.get(container, 'o').body == chunk * 20

    def test_into_a_missing_container_is_404(self, client):
        assert client.put(unique('missing'), 'o', BODY).status == 404

    @pytest.mark.parametrize('make', MAKERS.values(), ids=MAKERS)
    def test_into_another_policy_succeeds(self, client, make):
        container = make(client, X_Storage_Policy='Policy-1')
        assert client.put(container, 'o', BODY).status == 201
        assert client.get(container, 'o').body == BODY
        row = client.listing(container).json()[0]
        assert row['hash'] == BODY_ETAG

    def test_adds_a_row_to_the_listing(self, client, container):
        answer = client.put(
            container, 'o', BODY, headers={'Content-Type': 'text/plain'}
        )
        (row,) = client.listing(container).json()
        head = client.head(container, 'o')
        assert row.pop('last_modified').endswith('0')
        assert (
            head.headers['last-modified'] == (answer.headers['last-modified'])
        )
        assert row == {
            'name': 'o',
            'bytes': 10,
            'hash': BODY_ETAG,
            'content_type': 'text/plain',
        }


class TestConditionalPut:
    def test_if_none_match_star_creates_a_new_object(self, client, container):
        headers = {'If-None-Match': '*'}
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 201
        assert client.get(container, 'o').body == BODY

    def test_if_none_match_star_refuses_an_existing_object(
        self, client, container
    ):
        client.put(container, 'o', BODY)
        headers = {'If-None-Match': '*'}
        answer = client.put(container, 'o', b'new', headers=headers)
        assert answer.status == 412
        assert client.get(container, 'o').body == BODY

    def test_if_none_match_star_recreates_a_deleted_object(
        self, client, container
    ):
        client.put(container, 'o', b'old')
        client.delete(container, 'o')
        headers = {'If-None-Match': '*'}
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 201

    def test_if_none_match_with_an_etag_is_400(self, client, container):
        headers = {'If-None-Match': '"abc"'}
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 400
        assert answer.text == 'If-None-Match only supports *'
        assert client.get(container, 'o').status == 404

    def test_if_none_match_star_refuses_before_it_asks_for_the_body(
        self, client, container
    ):
        client.put(container, 'o', BODY)
        response = converse(
            client,
            head_of(
                client,
                'PUT',
                container,
                'o',
                'Content-Length: 1000',
                'Expect: 100-continue',
                'If-None-Match: *',
            ),
        )
        assert response.status == 412


class TestPutIsChecked:
    def test_wrong_etag_is_422_and_nothing_is_stored(self, client, container):
        headers = {'ETag': hashlib.md5(b'other').hexdigest()}
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 422
        assert client.get(container, 'o').status == 404
        assert client.listing(container).json() == []

    def test_wrong_etag_leaves_the_object_as_it_was(self, client, container):
        client.put(container, 'o', BODY)
        headers = {'ETag': '0' * 32}
        assert client.put(container, 'o', b'x', headers=headers).status == 422
        assert client.get(container, 'o').body == BODY

    def test_quoted_etag_is_accepted(self, client, container):
        headers = {'ETag': f'"{BODY_ETAG}"'}
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 201

    def test_without_a_length_is_411(self, client, container):
        response = converse(client, head_of(client, 'PUT', container, 'o'))
        assert response.status == 411
        assert client.get(container, 'o').status == 404

    @pytest.mark.parametrize('length', ['abc', '-1', '1.5'])
    def test_with_an_invalid_length_is_400(self, client, container, length):
        request = head_of(
            client, 'PUT', container, 'o', f'Content-Length: {length}'
        )
        assert converse(client, request).status == 400
        assert client.get(container, 'o').status == 404

    def test_body_shorter_than_its_length_is_499_and_not_stored(
        self, client, container
    ):
        head = head_of(client, 'PUT', container, 'o', 'Content-Length: 100')
        response = converse(client, head + BODY, hang_up=True)
        assert response.status == 499
        assert client.get(container, 'o').status == 404
        assert client.listing(container).json() == []

    def test_chunked_body_that_breaks_off_is_not_stored(
        self, client, container
    ):
        head = head_of(
            client, 'PUT', container, 'o', 'Transfer-Encoding: chunked'
        )
        response = converse(client, head + b'a\r\n0123', hang_up=True)
        assert response.status == 499
        assert client.get(container, 'o').status == 404

    def test_body_longer_than_five_gibibytes_is_413(self, client, container):
        length = 5 * 1024**3 + 3
        request = head_of(
            client, 'PUT', container, 'o', f'Content-Length: {length}'
        )
        assert converse(client, request).status == 413

    def test_client_gets_100_continue(self, client, container):
        request = head_of(
            client,
            'PUT',
            container,
            'o',
            'Content-Length: 10',
            'Expect: 100-continue',
        )
        connection = http.client.HTTPConnection(client.host, timeout=30)
        connection.connect()
        connection.sock.sendall(request)
        assert connection.sock.recv(1000).startswith(b'HTTP/1.1 100 ')
        connection.sock.sendall(BODY)
        response = http.client.HTTPResponse(connection.sock)
        response.begin()
        connection.close()
        assert response.status == 201
        assert client.get(container, 'o').body == BODY

    @pytest.mark.parametrize(
        'headers',
        [
            {'Content-Type': '\xff'},
            {'X-Object-Meta-' + 'n' * 129: 'v'},
            {'X-Object-Meta-N': 'v' * 257},
            {f'X-Object-Meta-{i}': 'v' for i in range(91)},
            {f'X-Object-Meta-{i}': 'v' * 256 for i in range(16)},
            {'X-Object-Meta-': 'nameless'},
            {'X-Delete-At': 'abc'},
            {'X-Delete-At': '1'},
            {'X-Delete-After': 'abc'},
            {'X-Delete-After': '-1'},
            {'X-Delete-After': '0'},
            {'X-Object-Manifest': 'no-slash'},
        ],
        ids=[
            'content type of broken UTF-8',
            'long metadata name',
            'long metadata value',
            'too many metadata',
            'too much metadata',
            'metadata without a name',
            'delete at no time',
            'delete in the past',
            'delete after no time',
            'delete before now',
            'delete now',
            'manifest of nothing',
        ],
    )
    def test_headers_out_of_bounds_are_refused_alike(
        self, client, stored_pair, headers
    ):
        plain = client.put(stored_pair.plain, 'x', BODY, headers=headers)
        sharded = client.put(stored_pair.sharded, 'x', BODY, headers=headers)
        assert plain.status == 400
        assert sharded.status == 400
        assert sharded.body == plain.body
        assert client.get(stored_pair.sharded, 'x').status == 404

    def test_with_an_unknown_transfer_encoding_is_400(self, client, container):
        request = head_of(
            client, 'PUT', container, 'o', 'Transfer-Encoding: gzip'
        )
        assert converse(client, request).status == 400

    def test_metadata_up_to_the_limits_is_stored(self, client, container):
        headers = {
            'X-Object-Meta-' + 'n' * 128: 'long name',
            'X-Object-Meta-V': 'v' * 256,
            **{f'X-Object-Meta-{i}': str(i) for i in range(40)},
        }
        answer = client.put(container, 'o', BODY, headers=headers)
        assert answer.status == 201
        got = client.head(container, 'o').headers
        assert got['x-object-meta-v'] == 'v' * 256
        assert got['x-object-meta-' + 'n' * 128] == 'long name'
        assert got['x-object-meta-39'] == '39'


class TestHeadersOfAnObject:
    @pytest.mark.parametrize(
        ('name', 'content_type'),
        [
            ('page.html', 'text/html'),
            ('a/picture.jpg', 'image/jpeg'),
            ('text.txt', 'text/plain'),
            ('nothing-known', 'application/octet-stream'),
            ('dir.html/plain', 'application/octet-stream'),
        ],
    )
    def test_content_type_is_guessed_from_the_name(
        self, client, lasting, name, content_type
    ):
        client.put(lasting, name, BODY)
        headers = client.head(lasting, name).headers
        assert headers['content-type'] == content_type
        (row,) = client.listing(lasting, prefix=name).json()
        assert row['content_type'] == content_type

    def test_content_type_of_the_client_is_kept(self, client, container):
        headers = {'Content-Type': 'text/x-own; charset=utf-8'}
        client.put(container, 'page.html', BODY, headers=headers)
        headers = client.head(container, 'page.html').headers
        assert headers['content-type'] == 'text/x-own; charset=utf-8'

    def test_detect_content_type_ignores_the_clients(self, client, container):
        headers = {
            'Content-Type': 'text/x-own',
            'X-Detect-Content-Type': 'true',
        }
        client.put(container, 'page.html', BODY, headers=headers)
        headers = client.head(container, 'page.html').headers
        assert headers['content-type'] == 'text/html'

    def test_stored_headers_are_returned(self, client, container):
        headers = {
            'Content-Encoding': 'gzip',
            'Content-Disposition': 'attachment; filename="ü.txt"',
            'Cache-Control': 'max-age=60',
            'Content-Language': 'de',
            'Expires': FAR_AHEAD,
            'X-Robots-Tag': 'noindex',
        }
        sent = {k: v.encode() for k, v in headers.items()}
        assert client.put(container, 'o', BODY, headers=sent).status == 201
        got = client.get(container, 'o').headers
        assert got['content-encoding'] == 'gzip'
        assert got['content-disposition'].encode('latin1').decode() == (
            'attachment; filename="ü.txt"'
        )
        assert got['cache-control'] == 'max-age=60'
        assert got['content-language'] == 'de'
        assert got['expires'] == FAR_AHEAD
        assert got['x-robots-tag'] == 'noindex'

    def test_metadata_is_returned(self, client, container):
        headers = {
            'X-Object-Meta-Colour': 'blue',
            'X-Object-Meta-Unicode': '☃'.encode(),
            'X-Object-Meta-Empty': '',
        }
        assert client.put(container, 'o', BODY, headers=headers).status == 201
        got = client.head(container, 'o').headers
        assert got['x-object-meta-colour'] == 'blue'
        assert got['x-object-meta-unicode'] == '☃'.encode().decode('latin1')
        assert got['x-object-meta-empty'] == ''

    def test_every_header_is_as_in_a_plain_container(self, client, pair):
        headers = {'X-Object-Meta-Colour': 'blue', 'X-Delete-After': '1000'}
        client.put(pair.plain, 'o', BODY, headers=headers)
        client.put(pair.sharded, 'o', BODY, headers=headers)
        plain = client.get(pair.plain, 'o')
        sharded = client.get(pair.sharded, 'o')
        assert list(sharded.headers) == list(plain.headers)

    def test_timestamp_of_a_client_is_ignored(self, client, container):
        headers = {'X-Timestamp': '1.00000'}
        client.put(container, 'o', BODY, headers=headers)
        got = client.head(container, 'o').headers
        assert float(got['x-timestamp']) > 1e9


class TestNames:
    @pytest.mark.parametrize('name', NAMES, ids=lambda name: ascii(name)[1:21])
    def test_object_can_be_stored_read_and_deleted(
        self, client, lasting, name
    ):
        assert client.put(lasting, name, BODY).status == 201
        got = client.get(lasting, name)
        assert (got.status, got.body) == (200, BODY)
        assert client.head(lasting, name).headers['etag'] == BODY_ETAG
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(lasting, name, headers=headers).status == 202
        got = client.head(lasting, name).headers
        assert got['x-object-meta-colour'] == 'blue'
        assert client.listing(lasting).names() == [name]
        assert client.delete(lasting, name).status == 204
        assert client.get(lasting, name).status == 404
        assert client.listing(lasting).json() == []

    def test_names_that_look_alike_are_different_objects(
        self, client, container
    ):
        client.put(container, 'a/b', b'one')
        client.put(container, 'a//b', b'two')
        client.put(container, '/a/b', b'three')
        client.put(container, 'a/b/', b'four')
        client.put(container, 'a%2Fb', b'five')
        client.put(container, 'A/B', b'six')
        assert client.get(container, 'a/b').body == b'one'
        assert client.get(container, 'a//b').body == b'two'
        assert client.get(container, '/a/b').body == b'three'
        assert client.get(container, 'a/b/').body == b'four'
        assert client.get(container, 'a%2Fb').body == b'five'
        assert client.get(container, 'A/B').body == b'six'
        assert len(client.listing(container).json()) == 6

    @pytest.mark.parametrize('name', ['n' * 1025, 'é' * 1025], ids=ascii)
    def test_longer_than_1024_characters_can_not_be_put(
        self, client, lasting, name
    ):
        answer = client.put(lasting, name, BODY)
        assert answer.status == 400
        assert answer.text == 'Object name length of 1025 longer than 1024'

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST', 'DELETE'])
    def test_longer_than_1024_characters_are_not_there(
        self, client, lasting, method
    ):
        assert client.request(method, lasting, 'n' * 1025).status == 404

    @pytest.mark.parametrize('method', ['PUT', 'GET', 'POST', 'DELETE'])
    @pytest.mark.parametrize('name', ['%00o', 'o%00', '%FF', '%ED%A0%80'])
    def test_with_a_nul_or_broken_utf8_are_412(
        self, client, lasting, method, name
    ):
        path = f'{client.path(lasting)}/{name}'
        answer = client.raw(method, path, body=b'')
        assert answer.status == 412


class TestGet:
    def test_head_shows_what_get_shows(self, client, stored):
        get = client.get(stored, 'o')
        head = client.head(stored, 'o')
        assert head.status == get.status == 200
        assert head.body == b''
        assert sorted(head.headers) == sorted(get.headers)
        assert head.headers['content-length'] == '10'
        assert head.headers['etag'] == BODY_ETAG

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST', 'DELETE'])
    def test_missing_object_is_404_alike(self, client, stored_pair, method):
        plain = client.request(method, stored_pair.plain, 'missing')
        sharded = client.request(method, stored_pair.sharded, 'missing')
        assert plain.status == sharded.status == 404
        assert sharded.body == plain.body
        assert list(sharded.headers) == list(plain.headers)

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST', 'DELETE'])
    def test_object_in_a_missing_container_is_404(self, client, method):
        assert client.request(method, unique('none'), 'o').status == 404

    def test_with_x_newest_succeeds(self, client, stored):
        got = client.get(stored, 'o', headers={'X-Newest': 'true'})
        assert (got.status, got.body) == (200, BODY)

    def test_with_x_newest_of_a_missing_object_is_404(self, client, stored):
        got = client.get(stored, 'missing', headers={'X-Newest': 'true'})
        assert got.status == 404

    @pytest.mark.parametrize(
        ('asked', 'body', 'content_range'),
        [
            ('bytes=0-0', b'0', 'bytes 0-0/10'),
            ('bytes=2-4', b'234', 'bytes 2-4/10'),
            ('bytes=7-', b'789', 'bytes 7-9/10'),
            ('bytes=7-100', b'789', 'bytes 7-9/10'),
            ('bytes=-3', b'789', 'bytes 7-9/10'),
            ('bytes=-100', BODY, 'bytes 0-9/10'),
        ],
    )
    def test_of_a_range_is_206(
        self, client, stored, asked, body, content_range
    ):
        got = client.get(stored, 'o', headers={'Range': asked})
        assert got.status == 206
        assert got.body == body
        assert got.headers['content-range'] == content_range
        assert got.headers['content-length'] == str(len(body))

    @pytest.mark.parametrize(
        'asked', ['bytes=', 'bytes=4-2', 'lines=1-2', 'nonsense']
    )
    def test_ignores_an_invalid_range(self, client, stored, asked):
        got = client.get(stored, 'o', headers={'Range': asked})
        assert (got.status, got.body) == (200, BODY)

    @pytest.mark.parametrize('asked', ['bytes=10-', 'bytes=100-200'])
    def test_of_a_range_beyond_the_end_is_416(self, client, stored, asked):
        got = client.get(stored, 'o', headers={'Range': asked})
        assert got.status == 416
        assert got.headers['content-range'] == 'bytes */10'

    def test_of_many_ranges_is_multipart(self, client, stored):
        got = client.get(stored, 'o', headers={'Range': 'bytes=0-1,4-5,-1'})
        assert got.status == 206
        content_type, _, boundary = got.headers['content-type'].partition(
            ';boundary='
        )
        assert content_type == 'multipart/byteranges'
        parts = got.body.split(b'--' + boundary.encode())
        assert [part.split(b'\r\n\r\n')[-1] for part in parts[1:-1]] == [
            b'01\r\n',
            b'45\r\n',
            b'9\r\n',
        ]
        assert b'Content-Range: bytes 4-5/10' in parts[2]
        assert got.headers['content-length'] == str(len(got.body))

    def test_of_a_range_of_a_large_object_is_exact(self, client, container):
        body = hashlib.shake_128(b'seed').digest(3 << 20)
        client.put(container, 'o', body)
        headers = {'Range': 'bytes=1000000-2000000'}
        got = client.get(container, 'o', headers=headers)
        assert got.body == body[1000000:2000001]

    @pytest.mark.parametrize(
        ('headers', 'status'),
        [
            ({'If-Match': BODY_ETAG}, 200),
            ({'If-Match': f'"{BODY_ETAG}"'}, 200),
            ({'If-Match': '*'}, 200),
            ({'If-Match': '"other"'}, 412),
            ({'If-Match': f'"other", "{BODY_ETAG}"'}, 200),
            ({'If-None-Match': BODY_ETAG}, 304),
            ({'If-None-Match': '*'}, 304),
            ({'If-None-Match': '"other"'}, 200),
            ({'If-Modified-Since': LONG_AGO}, 200),
            ({'If-Modified-Since': FAR_AHEAD}, 304),
            ({'If-Unmodified-Since': LONG_AGO}, 412),
            ({'If-Unmodified-Since': FAR_AHEAD}, 200),
            ({'If-Modified-Since': 'no date'}, 200),
            ({'Range': 'bytes=0-1', 'If-None-Match': BODY_ETAG}, 304),
        ],
        ids=str,
    )
    def test_under_a_condition_depends_on_it(
        self, client, stored, headers, status
    ):
        got = client.get(stored, 'o', headers=headers)
        assert got.status == status
        assert client.head(stored, 'o', headers=headers).status == status

    def test_of_a_range_under_a_condition_is_206(self, client, stored):
        headers = {'Range': 'bytes=0-1', 'If-Match': BODY_ETAG}
        got = client.get(stored, 'o', headers=headers)
        assert (got.status, got.body) == (206, b'01')

    @pytest.mark.parametrize(
        ('headers', 'status'),
        [
            ({'If-None-Match': BODY_ETAG}, 304),
            ({'If-Match': '"other"'}, 412),
            ({'If-Unmodified-Since': LONG_AGO}, 412),
            ({'Range': 'bytes=100-'}, 416),
        ],
        ids=str,
    )
    def test_refusal_is_that_of_a_plain_container(
        self, client, stored_pair, headers, status
    ):
        plain = client.get(stored_pair.plain, 'o', headers=headers)
        sharded = client.get(stored_pair.sharded, 'o', headers=headers)
        assert plain.status == sharded.status == status
        assert sharded.body == plain.body
        assert list(sharded.headers) == list(plain.headers)

    @pytest.mark.parametrize(
        ('headers', 'status'),
        [
            ({'If-Match': '*'}, 412),
            ({'If-Match': '"abc"'}, 404),
            ({'If-None-Match': '*'}, 404),
            ({'If-Unmodified-Since': LONG_AGO}, 404),
        ],
        ids=str,
    )
    def test_under_a_condition_of_a_missing_object_is_404_or_412(
        self, client, stored, headers, status
    ):
        got = client.get(stored, 'missing', headers=headers)
        assert got.status == status


class TestPost:
    def test_replaces_the_metadata(self, client, container):
        old = {'X-Object-Meta-Old': 'old', 'X-Object-Meta-Both': 'old'}
        client.put(container, 'o', BODY, headers=old)
        new = {'X-Object-Meta-New': 'new', 'X-Object-Meta-Both': 'new'}
        assert client.post(container, 'o', headers=new).status == 202
        got = client.get(container, 'o')
        assert 'x-object-meta-old' not in got.headers
        assert got.headers['x-object-meta-new'] == 'new'
        assert got.headers['x-object-meta-both'] == 'new'
        assert got.body == BODY
        assert got.headers['etag'] == BODY_ETAG

    def test_changes_the_content_type_in_the_listing_too(
        self, client, container
    ):
        client.put(container, 'o', BODY, headers={'Content-Type': 'a/old'})
        client.post(container, 'o', headers={'Content-Type': 'a/new'})
        got = client.head(container, 'o').headers
        assert got['content-type'] == 'a/new'
        (row,) = client.listing(container).json()
        assert row['content_type'] == 'a/new'
        assert row['bytes'] == 10

    def test_keeps_the_content_type(self, client, container):
        client.put(container, 'o', BODY, headers={'Content-Type': 'a/old'})
        client.post(container, 'o', headers={'X-Object-Meta-A': 'b'})
        headers = client.head(container, 'o').headers
        assert headers['content-type'] == 'a/old'

    def test_sets_and_drops_stored_headers(self, client, container):
        headers = {'Content-Encoding': 'gzip', 'Cache-Control': 'no-cache'}
        client.put(container, 'o', BODY, headers=headers)
        headers = {'Content-Disposition': 'inline'}
        assert client.post(container, 'o', headers=headers).status == 202
        got = client.head(container, 'o').headers
        assert got['content-disposition'] == 'inline'
        assert 'content-encoding' not in got
        assert 'cache-control' not in got

    def test_of_a_missing_object_is_404_and_creates_none(
        self, client, container
    ):
        headers = {'X-Object-Meta-A': 'b'}
        assert client.post(container, 'o', headers=headers).status == 404
        assert client.get(container, 'o').status == 404
        assert client.listing(container).json() == []

    def test_of_metadata_out_of_bounds_changes_nothing(
        self, client, container
    ):
        headers = {'X-Object-Meta-A': 'old'}
        client.put(container, 'o', BODY, headers=headers)
        headers = {'X-Object-Meta-A': 'v' * 257}
        assert client.post(container, 'o', headers=headers).status == 400
        got = client.head(container, 'o').headers
        assert got['x-object-meta-a'] == 'old'

    def test_sets_and_removes_the_time_of_deletion(self, client, container):
        client.put(container, 'o', BODY)
        at = str(int(time.time()) + NEXT_YEAR_SECONDS)
        headers = {'X-Delete-At': at}
        assert client.post(container, 'o', headers=headers).status == 202
        assert client.head(container, 'o').headers['x-delete-at'] == at
        assert client.post(container, 'o').status == 202
        assert 'x-delete-at' not in client.head(container, 'o').headers

    def test_of_a_time_of_deletion_in_the_past_is_400(self, client, container):
        client.put(container, 'o', BODY)
        headers = {'X-Delete-At': '1'}
        assert client.post(container, 'o', headers=headers).status == 400


class TestDelete:
    def test_deletes_and_then_finds_nothing(self, client, container):
        client.put(container, 'o', BODY)
        answer = client.delete(container, 'o')
        assert answer.status == 204
        assert answer.body == b''
        assert client.get(container, 'o').status == 404
        assert client.listing(container).json() == []
        assert client.delete(container, 'o').status == 404

    def test_of_a_missing_object_is_404(self, client, container):
        assert client.delete(container, 'o').status == 404

    def test_on_condition_of_another_expiry_time_is_412(
        self, client, container
    ):
        client.put(container, 'o', BODY, headers={'X-Delete-After': '1000'})
        headers = {'X-If-Delete-At': str(int(time.time()))}
        answer = client.delete(container, 'o', headers=headers)
        assert answer.status == 412
        assert client.get(container, 'o').body == BODY

    def test_leaves_other_objects(self, client, container):
        client.put(container, 'a', BODY)
        client.put(container, 'b', BODY)
        assert client.delete(container, 'a').status == 204
        assert client.listing(container).names() == ['b']
        assert client.get(container, 'b').body == BODY


class TestExpiry:
    def test_delete_at_is_shown(self, client, lasting):
        at = str(int(time.time()) + NEXT_YEAR_SECONDS)
        client.put(lasting, 'o', BODY, headers={'X-Delete-At': at})
        assert client.head(lasting, 'o').headers['x-delete-at'] == at
        assert client.get(lasting, 'o').headers['x-delete-at'] == at

    def test_delete_after_becomes_delete_at(self, client, lasting):
        before = int(time.time())
        client.put(lasting, 'o', BODY, headers={'X-Delete-After': '1000'})
        headers = client.head(lasting, 'o').headers
        assert 'x-delete-after' not in headers
        at = int(headers['x-delete-at'])
        assert before + 1000 <= at <= before + 1010

    def test_expired_object_is_gone(self, client, container):
        client.put(container, 'o', BODY, headers={'X-Delete-After': '1'})
        client.wait_until_gone(container, 'o')
        assert client.get(container, 'o').status == 404
        assert client.post(container, 'o').status == 404
        assert client.delete(container, 'o').status == 404

    @EXPIRED_OBJECTS
    def test_expired_object_is_shown_if_asked_for(self, client, container):
        client.put(container, 'o', BODY, headers={'X-Delete-After': '1'})
        client.wait_until_gone(container, 'o')
        headers = {'X-Open-Expired': 'true'}
        assert client.get(container, 'o', headers=headers).body == BODY


class TestCopy:
    META = {
        'X-Object-Meta-Colour': 'blue',
        'Content-Type': 'text/x-own',
        'Content-Disposition': 'inline',
    }

    @pytest.fixture
    def between(self, client, lasting_two):
        """Two containers, the first with an object ``a/ö``."""
        source, _destination = lasting_two
        client.put(source, 'a/ö', BODY, headers=self.META)
        return lasting_two

    def assert_copied(self, got):
        assert got.status == 200
        assert got.body == BODY
        assert got.headers['etag'] == BODY_ETAG
        assert got.headers['content-type'] == 'text/x-own'
        assert got.headers['content-disposition'] == 'inline'

    def test_by_copy_succeeds(self, client, between):
        source, destination = between
        answer = client.copy(source, 'a/ö', f'{destination}/b/%C3%BC')
        assert answer.status == 201
        assert answer.headers['x-copied-from'] == f'{source}/a/%C3%B6'
        assert answer.headers['x-copied-from-account'] == client.account
        assert answer.headers['etag'] == BODY_ETAG
        got = client.get(destination, 'b/ü')
        self.assert_copied(got)
        assert got.headers['x-object-meta-colour'] == 'blue'
        assert client.listing(destination, prefix='b/').names() == ['b/ü']

    def test_by_put_succeeds(self, client, between):
        source, destination = between
        headers = {'X-Copy-From': f'/{source}/a/%C3%B6'}
        answer = client.put(destination, 'by-put', headers=headers)
        assert answer.status == 201
        assert answer.headers['x-copied-from'] == f'{source}/a/%C3%B6'
        got = client.get(destination, 'by-put')
        self.assert_copied(got)
        assert got.headers['x-object-meta-colour'] == 'blue'

    def test_adds_metadata(self, client, between):
        source, destination = between
        client.copy(
            source,
            'a/ö',
            f'{destination}/added',
            headers={'X-Object-Meta-Size': 'big'},
        )
        got = client.get(destination, 'added').headers
        assert got['x-object-meta-colour'] == 'blue'
        assert got['x-object-meta-size'] == 'big'

    def test_with_fresh_metadata_drops_the_old(self, client, between):
        source, destination = between
        client.copy(
            source,
            'a/ö',
            f'{destination}/fresh',
            headers={
                'X-Fresh-Metadata': 'true',
                'X-Object-Meta-Size': 'big',
            },
        )
        got = client.get(destination, 'fresh')
        assert got.body == BODY
        assert 'x-object-meta-colour' not in got.headers
        assert got.headers['x-object-meta-size'] == 'big'

    def test_of_a_range_copies_the_range(self, client, between):
        source, destination = between
        headers = {'Range': 'bytes=2-4'}
        client.copy(source, 'a/ö', f'{destination}/part', headers=headers)
        assert client.get(destination, 'part').body == b'234'

    def test_from_and_to_names_of_1024_bytes_succeeds(
        self, client, lasting_two
    ):
        source, destination = lasting_two
        client.put(source, 's' * 1024, BODY)
        copied = client.copy(source, 's' * 1024, f'{destination}/short')
        assert copied.status == 201
        copied = client.copy(
            destination, 'short', f'{destination}/' + 'd' * 1024
        )
        assert copied.status == 201
        assert client.get(destination, 'd' * 1024).body == BODY

    @pytest.mark.parametrize('make', MAKERS.values(), ids=MAKERS)
    def test_by_another_account_succeeds(self, client, login, container, make):
        headers = {'X-Container-Read': 'test2:tester2'}
        client.post(container, headers=headers)
        client.put(container, 'o', BODY)
        other = login('test2:tester2')
        headers = {
            'X-Copy-From': f'{container}/o',
            'X-Copy-From-Account': client.account,
        }
        theirs = make(other)
        answer = other.put(theirs, 'o', headers=headers)
        assert answer.status == 201
        assert answer.headers['x-copied-from-account'] == client.account
        assert other.get(theirs, 'o').body == BODY

    @pytest.mark.parametrize('make', MAKERS.values(), ids=MAKERS)
    def test_into_another_account_succeeds(
        self, client, login, container, make
    ):
        headers = {'X-Container-Write': 'test2:tester2'}
        client.post(container, headers=headers)
        other = login('test2:tester2')
        theirs = make(other)
        other.put(theirs, 'o', b'theirs')
        headers = {'Destination-Account': client.account}
        answer = other.copy(
            theirs, 'o', f'{container}/from-them', headers=headers
        )
        assert answer.status == 201
        assert client.get(container, 'from-them').body == b'theirs'

    def test_from_another_account_needs_its_read_acl(
        self, client, login, container
    ):
        client.put(container, 'o', BODY)
        other = login('test2:tester2')
        theirs = make_sharded(other)
        headers = {
            'X-Copy-From': f'{container}/o',
            'X-Copy-From-Account': client.account,
        }
        assert other.put(theirs, 'o', headers=headers).status == 403
        assert other.get(theirs, 'o').status == 404

    def test_into_another_account_needs_its_write_acl(
        self, client, login, container
    ):
        other = login('test2:tester2')
        theirs = make_sharded(other)
        other.put(theirs, 'o', BODY)
        headers = {'Destination-Account': client.account}
        answer = other.copy(theirs, 'o', f'{container}/o', headers=headers)
        assert answer.status == 403
        assert client.get(container, 'o').status == 404

    def test_onto_itself_changes_metadata(self, client, container):
        client.put(container, 'o', BODY, headers=self.META)
        answer = client.copy(
            container,
            'o',
            f'{container}/o',
            headers={'X-Object-Meta-Size': 'big', 'Content-Type': 'a/b'},
        )
        assert answer.status == 201
        got = client.get(container, 'o')
        assert got.body == BODY
        assert got.headers['content-type'] == 'a/b'
        assert got.headers['x-object-meta-colour'] == 'blue'
        assert got.headers['x-object-meta-size'] == 'big'
        assert client.listing(container).names() == ['o']

    def test_of_a_missing_object_is_404(self, client, lasting_two):
        source, destination = lasting_two
        assert (
            client.copy(source, 'missing', f'{destination}/missing').status
            == 404
        )
        headers = {'X-Copy-From': f'{source}/missing'}
        assert (
            client.put(destination, 'missing', headers=headers).status == 404
        )
        assert client.get(destination, 'missing').status == 404

    def test_into_a_missing_container_is_404(self, client, stored):
        missing = unique('missing')
        assert client.copy(stored, 'o', f'{missing}/o').status == 404

    @pytest.mark.parametrize('source', ['no-object', '/', 'c/'])
    def test_from_an_invalid_source_is_412(self, client, stored, source):
        headers = {'X-Copy-From': source}
        assert client.put(stored, 'p', headers=headers).status == 412

    def test_without_a_destination_is_412(self, client, stored):
        assert client.request('COPY', stored, 'o').status == 412

    def test_with_a_body_is_400(self, client, stored):
        headers = {'X-Copy-From': f'{stored}/o'}
        answer = client.put(stored, 'p', b'body', headers=headers)
        assert answer.status == 400

    def test_under_a_condition_depends_on_it(self, client, between):
        source, destination = between
        to = f'{destination}/condition'
        headers = {'If-Match': '"other"'}
        assert client.copy(source, 'a/ö', to, headers=headers).status == 412
        assert client.get(destination, 'condition').status == 404
        headers = {'If-Match': BODY_ETAG}
        assert client.copy(source, 'a/ö', to, headers=headers).status == 201


class TestOtherFilters:
    """Filters left of shardmw whose tests have no file of their own."""

    def test_etags_are_quoted_if_the_container_says_so(
        self, client, container
    ):
        client.put(container, 'o', BODY)
        assert client.get(container, 'o').headers['etag'] == BODY_ETAG
        client.post(
            container, headers={'X-Container-Rfc-Compliant-Etags': 't'}
        )
        assert client.get(container, 'o').headers['etag'] == f'"{BODY_ETAG}"'

    def test_container_can_be_named_by_the_host(self, client, stored):
        account = client.account.replace('_', '-').lower()
        host = {'Host': f'{stored}.{account}.example.com'}
        got = client.raw('GET', '/o', headers=host)
        assert (got.status, got.body) == (200, BODY)
        got = client.raw('GET', '/', headers=host)
        assert got.text == 'o\n'


@pytest.fixture(
    scope='class',
    params=['{} ☃%', '%41 {}', '.{}', '{}' + 'n' * 220, '☃' * 70 + '{}'],
    ids=['snowman', 'percent', 'dot', 'long', 'long snowmen'],
)
def container_name(request):
    """An unusual name."""
    return request.param.format(unique('c'))


@pytest.fixture(
    scope='class', params=[{}, {SHARD_COUNT_HEADER: '4'}], ids=MAKERS
)
def named(request, login, container_name):
    """A container with that name, once plain and once sharded."""
    name = f'{container_name}{len(request.param)}'
    assert login(USER).put(name, headers=request.param).status == 201
    return name


class TestContainerNames:
    def test_objects_can_be_stored_read_and_deleted(self, client, named):
        assert client.put(named, 'a/ö', BODY).status == 201
        assert client.get(named, 'a/ö').body == BODY
        assert client.post(named, 'a/ö').status == 202
        assert client.listing(named, prefix='a/').names() == ['a/ö']
        assert client.delete(named, 'a/ö').status == 204
        assert client.listing(named, prefix='a/').json() == []

    def test_objects_can_be_copied_from_and_to(self, client, named, container):
        client.put(named, 'o', BODY)
        assert client.copy(named, 'o', f'{container}/o').status == 201
        assert client.get(container, 'o').body == BODY
        destination = quote(f'{named}/p')
        assert client.copy(container, 'o', destination).status == 201
        assert client.get(named, 'p').body == BODY


class TestMethods:
    @pytest.mark.parametrize('method', ['PATCH', 'LOCK', 'NONSENSE'])
    def test_unknown_is_405(self, client, stored, method):
        answer = client.request(method, stored, 'o')
        assert answer.status == 405
        assert sorted(answer.headers['allow'].split(', ')) == [
            'DELETE',
            'GET',
            'HEAD',
            'OPTIONS',
            'POST',
            'PUT',
        ]

    @pytest.mark.parametrize(
        'method', ['REPLICATE', 'UPDATE', 'GETorHEAD', '__init__']
    )
    def test_internal_to_swift_are_405(self, client, stored, method):
        assert client.request(method, stored, 'o').status == 405

    def test_options_lists_the_methods(self, client, stored):
        answer = client.request('OPTIONS', stored, 'o')
        assert answer.status == 200
        assert 'PUT' in answer.headers['allow'].split(', ')

    def test_options_needs_no_token(self, client, stored):
        answer = client.anonymous().request('OPTIONS', stored, 'o')
        assert answer.status == 200

    def test_post_of_a_body_leaves_the_object(self, client, container):
        client.put(container, 'o', BODY)
        answer = client.post(container, 'o', body=b'ignored')
        assert answer.status == 202
        assert client.get(container, 'o').body == BODY
