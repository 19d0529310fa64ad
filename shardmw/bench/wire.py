# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: just what a client under load needs. Pure.

Bodies of responses are counted and dropped.
"""

import math
from typing import NamedTuple
from urllib.parse import urlsplit

from shardmw.bench.errors import BenchError

_HEAD_END = b'\r\n\r\n'
_LINE_END = b'\r\n'
_BODILESS = (204, 304)


class Address(NamedTuple):
    """Where a proxy listens."""

    host: str
    port: int


class Reply(NamedTuple):
    """A response, when it is whole.

    :param retry_after: seconds; NaN if it doesn't say
    :param reusable: whether the connection can take another request
    """

    status: int
    retry_after: float
    body_bytes: int
    reusable: bool


def address_of(url: str) -> Address:
    """The address in an ``http://host:port`` URL.

    :raises BenchError: if it's something else
    """
    parts = urlsplit(url)
    if parts.scheme != 'http' or not parts.hostname:
        raise BenchError(f'{url!r} is no URL: write http://host:port')
    return Address(parts.hostname, parts.port or 80)


def request_tail(address: Address, token: str) -> bytes:
    """What is the same in all requests of a connection."""
    return (
        f' HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n'
        f'X-Auth-Token: {token}\r\n'
    ).encode()


def request_bytes(
    method: bytes, target: bytes, tail: bytes, body: bytes | None
) -> bytes:
    """A whole request.

    :param target: the path and query, quoted
    :param tail: of :func:`request_tail`
    :param body: None for requests that have none
    """
    if body is None:
        return b'%s %s%s\r\n' % (method, target, tail)
    return b'%s %s%sContent-Length: %d\r\n\r\n%s' % (
        method,
        target,
        tail,
        len(body),
        body,
    )


class ReplyReader:
    """Reads the response to one request.

    :param is_head: whether the request was a HEAD
    """

    __slots__ = ('_buffer', '_is_head', '_reply', '_rest', '_chunked')

    def __init__(self, is_head: bool = False) -> None:
        self._buffer = b''
        self._is_head = is_head
        self._reply: Reply | None = None
        self._rest: float = 0
        self._chunked = False

    @property
    def has_begun(self) -> bool:
        """Whether anything came yet."""
        return self._reply is not None or bool(self._buffer)

    def feed(self, received: bytes) -> Reply | None:
        """Take what came.

        :returns: the response if this was the last of it
        :raises ValueError: if it's no HTTP
        """
        if self._reply is None:
            self._buffer += received
            if not self._read_head():
                return None
            received, self._buffer = self._buffer, b''
        if self._chunked:
            return self._feed_chunks(received)
        self._count(len(received))
        self._rest -= len(received)
        return self._reply if self._rest <= 0 else None

    def close(self) -> Reply | None:
        """Take note that the server closed the connection.

        :returns: the response if that's how it ends
        """
        return self._reply if self._rest == math.inf else None

    def _read_head(self) -> bool:
        """Read the head, once it's there, and leave what's behind it."""
        head, end, rest = self._buffer.partition(_HEAD_END)
        if not end:
            return False
        self._buffer = rest
        status = int(head[9:12])
        if not head.startswith(b'HTTP/1.') or status < 100:
            raise ValueError('no HTTP response')
        if status < 200:
            return self._read_head()
        fields = head.lower()
        length = _field(fields, b'content-length')
        self._chunked = _field(fields, b'transfer-encoding') == b'chunked'
        closing = _field(fields, b'connection') == b'close'
        if self._is_head or status in _BODILESS:
            self._chunked = False
        elif length is not None:
            self._rest = int(length)
        elif not self._chunked:
            self._rest = math.inf
        reusable = not closing and self._rest < math.inf
        retry_after = _seconds(_field(fields, b'retry-after'))
        self._reply = Reply(status, retry_after, 0, reusable)
        return True

    def _feed_chunks(self, received: bytes) -> Reply | None:
        self._buffer += received
        while True:
            size, end, rest = self._buffer.partition(_LINE_END)
            if not end:
                return None
            length = int(size.partition(b';')[0], 16)
            if len(rest) < length + len(_LINE_END):
                return None
            if not length:
                return self._reply
            self._count(length)
            self._buffer = rest[length + len(_LINE_END) :]

    def _count(self, received: int) -> None:
        if received:
            counted = self._reply.body_bytes + received
            self._reply = self._reply._replace(body_bytes=counted)


def _field(fields: bytes, name: bytes) -> bytes | None:
    """The value of a header field, from lower-case lines."""
    _, found, rest = fields.partition(b'\r\n' + name + b':')
    return rest.partition(_LINE_END)[0].strip() if found else None


def _seconds(value: bytes | None) -> float:
    """What Retry-After says, if it's a number; a date is no number."""
    try:
        return max(0.0, float(value)) if value else math.nan
    except ValueError:
        return math.nan
