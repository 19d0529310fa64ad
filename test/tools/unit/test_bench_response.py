# SPDX-License-Identifier: Apache-2.0
import math

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.load.connection import Response

LENGTH = (
    b'HTTP/1.1 201 Created\r\nContent-Type: text/html\r\n'
    b'Content-Length: 5\r\n\r\nhello'
)
CHUNKED = (
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    b'5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n'
)
TRAILED = (
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    b'5\r\n\r\n\r\n0\r\n0\r\nETag: a\r\n\r\n'
)
REFUSED = (
    b'HTTP/1.1 498 Rate Limited\r\nRetry-After: 2\r\n'
    b'content-length: 9\r\n\r\nSlow down'
)
NO_CONTENT = b'HTTP/1.1 204 No Content\r\n\r\n'
CONTINUED = b'HTTP/1.1 100 Continue\r\n\r\n' + LENGTH
CLOSING = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'

RESPONSES = {
    LENGTH: (201, 5, True),
    CHUNKED: (200, 11, True),
    REFUSED: (498, 9, True),
    NO_CONTENT: (204, 0, True),
    TRAILED: (200, 5, True),
    CONTINUED: (201, 5, True),
    CLOSING: (200, 0, False),
}


def read(response: bytes, cuts=()) -> Response:
    """Read a response in pieces; the connection closes after the last one."""
    reader = Response()
    places = [0, *sorted({*cuts} - {0, len(response)}), len(response)]
    pieces = [response[a:b] for a, b in zip(places, places[1:], strict=False)]
    *early, last = map(reader.feed, pieces)
    assert last
    assert not any(early)
    return reader


@given(st.sampled_from(list(RESPONSES)), st.data())
def test_a_response_is_complete_with_its_last_byte(response, data):
    places = st.integers(0, len(response))
    found = read(response, data.draw(st.lists(places, max_size=5)))
    assert (
        found.status,
        found.body_bytes,
        found.is_reusable,
    ) == RESPONSES[response]


def test_retry_after_is_in_seconds():
    assert read(REFUSED).retry_after == 2
    assert math.isnan(read(LENGTH).retry_after)


def test_retry_after_that_is_a_date_says_nothing():
    dated = REFUSED.replace(b': 2', b': Sat, 21 Nov 2026 07:00:00 GMT')
    assert math.isnan(read(dated).retry_after)


def test_the_answer_to_a_head_has_no_body():
    reader = Response(is_head=True)
    assert reader.feed(LENGTH.removesuffix(b'hello'))
    assert (reader.status, reader.is_reusable) == (201, True)


def test_without_a_length_the_end_is_where_the_server_closes():
    reader = Response()
    assert not reader.feed(b'HTTP/1.1 200 OK\r\n\r\nhello')
    assert reader.close()
    assert (reader.status, reader.body_bytes) == (200, 5)
    assert not reader.is_reusable


@pytest.mark.parametrize('received', [b'', LENGTH[:9], LENGTH[:-1]])
def test_a_server_that_closes_too_early_gave_no_answer(received):
    reader = Response()
    reader.feed(received)
    assert not reader.close()


@pytest.mark.parametrize(
    'nonsense',
    [
        b'SSH-2.0 hello\r\n\r\n',
        b'HTTP/1.1 abc\r\n\r\n',
        CHUNKED.replace(b'5\r\n', b'-5\r\n'),
        CHUNKED.replace(b'5\r\n', b'hello' * 1000),
    ],
)
def test_a_response_that_is_no_http_is_an_error(nonsense):
    with pytest.raises(httptools.HttpParserError):
        read(nonsense)
