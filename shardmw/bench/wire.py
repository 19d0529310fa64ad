# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: just what a client under load needs. Pure.

Bodies of responses are counted and dropped.
"""

import contextlib
import math
from typing import NamedTuple
from urllib.parse import urlsplit

from shardmw.bench.errors import BenchError

_HEAD_END = b'\r\n\r\n'
_LINE_END = b'\r\n'
_BODILESS = (204, 304)
_PORTS = {'http': 80, 'https': 443}

# A line that says how long a chunk is, and no more than that.
_MOST_LINE_BYTES = 1024


class Address(NamedTuple):
    """Where a proxy listens.

    :param host: a name, or an address; one of IPv6 has no brackets
    """

    host: str
    port: int
    is_tls: bool = False

    @property
    def netloc(self) -> str:
        """As URLs have it."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        return f'{host}:{self.port}'


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
    """The address in an ``http://host:port`` or ``https://`` URL.

    :raises BenchError: if it's something else
    """
    parts = urlsplit(url)
    with contextlib.suppress(ValueError):
        port = parts.port or _PORTS.get(parts.scheme)
        if parts.hostname and parts.scheme in _PORTS:
            return Address(parts.hostname, port, parts.scheme == 'https')
    raise BenchError(
        f'{url!r} is no URL: write http://host:port or https://host:port'
    )


def request_tail(address: Address, token: str) -> bytes:
    """What is the same in all requests of a connection."""
    return (
        f' HTTP/1.1\r\nHost: {address.netloc}\r\nX-Auth-Token: {token}\r\n'
    ).encode()


def request_head(
    method: bytes, target: bytes, tail: bytes, body_bytes: int | None
) -> bytes:
    """A request, all but its body.

    :param target: the path and query, quoted
    :param tail: of :func:`request_tail`
    :param body_bytes: the size of the body, None if it has none
    """
    if body_bytes is None:
        return b'%s %s%s\r\n' % (method, target, tail)
    return b'%s %s%sContent-Length: %d\r\n\r\n' % (
        method,
        target,
        tail,
        body_bytes,
    )


class ReplyReader:
    """Reads the response to one request.

    :param is_head: whether the request was a HEAD
    """

    __slots__ = (
        '_body_bytes',
        '_buffer',
        '_chunks',
        '_is_head',
        '_reply',
        '_rest',
    )

    def __init__(self, is_head: bool = False) -> None:
        self._buffer = b''
        self._is_head = is_head
        self._reply: Reply | None = None
        self._body_bytes = 0
        #: of the body, still to come
        self._rest: float = 0
        self._chunks: _ChunkCounter | None = None

    def feed(self, received: bytes | memoryview) -> Reply | None:
        """Take what came, of which nothing is kept.

        :returns: the response if this was the last of it
        :raises ValueError: if it's no HTTP
        """
        if self._reply is None:
            self._buffer += received
            if not self._read_head():
                return None
            received, self._buffer = self._buffer, b''
        if self._chunks is not None:
            is_whole = self._chunks.feed(bytes(received))
            self._body_bytes = self._chunks.total
        else:
            self._body_bytes += len(received)
            self._rest -= len(received)
            is_whole = self._rest <= 0
        return self._whole() if is_whole else None

    def close(self) -> Reply | None:
        """Take note that the server closed the connection.

        :returns: the response if that's how it ends
        """
        return self._whole() if self._rest == math.inf else None

    def _whole(self) -> Reply:
        return self._reply._replace(body_bytes=self._body_bytes)

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
        is_chunked = _field(fields, b'transfer-encoding') == b'chunked'
        closing = _field(fields, b'connection') == b'close'
        if self._is_head or status in _BODILESS:
            self._rest = 0
        elif length is not None:
            self._rest = int(length)
        elif is_chunked:
            self._chunks = _ChunkCounter()
        else:
            self._rest = math.inf
        reusable = not closing and self._rest < math.inf
        retry_after = _seconds(_field(fields, b'retry-after'))
        self._reply = Reply(status, retry_after, 0, reusable)
        return True


class _ChunkCounter:
    """Counts what is in the chunks of a body.

    ``total`` is how much that is, when it is whole.
    """

    __slots__ = ('total', '_is_last', '_left', '_line')

    def __init__(self) -> None:
        self.total = 0
        self._is_last = False
        #: of the chunk that is under way, with the line end behind it
        self._left = 0
        #: what there is of a line that isn't whole
        self._line = b''

    def feed(self, received: bytes) -> bool:
        """Take what came; returns whether that was the last of it.

        :raises ValueError: if these are no chunks
        """
        received, self._line = self._line + received, b''
        at = min(self._left, len(received))
        self._left -= at
        while at < len(received):
            end = received.find(_LINE_END, at)
            if end < 0:
                self._line = received[at:]
                self._check(len(self._line) <= _MOST_LINE_BYTES)
                return False
            line = received[at:end]
            at = end + len(_LINE_END)
            if not self._is_last:
                at += self._begin(line)
                self._left = max(0, at - len(received))
            elif not line:
                return True
        return False

    def _begin(self, line: bytes) -> int:
        """Begin a chunk; returns how long it is, with its line end."""
        length = int(line.partition(b';')[0], 16)
        self._check(length >= 0)
        self.total += length
        self._is_last = not length
        return length + len(_LINE_END) if length else 0

    @staticmethod
    def _check(is_right: bool) -> None:
        if not is_right:
            raise ValueError('no chunks of an HTTP response')


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
