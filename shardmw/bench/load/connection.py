# SPDX-License-Identifier: Apache-2.0
"""The connection of a client."""

import asyncio
import contextlib
import math
import random
import ssl
import time
from urllib.parse import urlsplit

import httptools

from shardmw.bench.errors import BenchError
from shardmw.bench.load.samples import LOST, TIMED_OUT, Sample
from shardmw.bench.load.sources import Request
from shardmw.bench.load.urls import check_url, tls_problem

_CONNECT_SECONDS = 10
_PORTS = {'http': 80, 'https': 443}

# A body of up to this size is sent together with the head.
_SMALL_BYTES = 1 << 14

# The content of bodies: random, so that no disk can compress it.
_CONTENT = memoryview(random.Random(0).randbytes(1 << 20))

_RECEIVED_BYTES = 1 << 18


class Response:
    """A response to one request, of which only figures are kept.

    ``status``, ``retry_after`` (seconds; NaN without one), ``body_bytes`` and
    ``is_reusable`` (True if the connection can be used again) are valid once
    the response is complete.
    """

    def __init__(self, is_head: bool = False) -> None:
        self.status = 0
        self.retry_after = math.nan
        self.body_bytes = 0
        self.is_reusable = False
        self._is_head = is_head
        self._is_whole = False
        self._has_length = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, received: bytes | memoryview) -> bool:
        """Parse received bytes; return True if the response is complete.

        :raises httptools.HttpParserError: if it is not HTTP
        """
        self._parser.feed_data(received)
        return self._is_whole

    def close(self) -> bool:
        """Return True if the response is complete when the server closes."""
        return self.status >= 200 and not self._has_length

    # The parser calls these.

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in (b'content-length', b'transfer-encoding'):
            self._has_length = True
        elif name == b'retry-after':
            # dates are not supported
            with contextlib.suppress(ValueError):
                self.retry_after = max(0.0, float(value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._is_head:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        self.body_bytes += len(part)

    def on_message_complete(self) -> None:
        # a 100 comes before the response
        if self.status >= 200:
            self._is_whole = True
            self.is_reusable = self._parser.should_keep_alive()


class Connection:
    """A connection that is kept alive, and opened again once it is closed.

    :param url: of the proxy; its path is ignored
    :param token: sent with each request
    :param tls: for https
    :raises BenchError: if the URL is invalid
    """

    def __init__(
        self, url: str, token: str, tls: ssl.SSLContext | None = None
    ) -> None:
        check_url(url)
        parts = urlsplit(url)
        self._netloc = parts.netloc
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = {}
        if parts.scheme == 'https':
            self._tls = {'ssl': tls, 'server_hostname': parts.hostname}
        self._tail = (
            f' HTTP/1.1\r\nHost: {self._netloc}\r\nX-Auth-Token: {token}\r\n'
        ).encode()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        #: when the request was handed to the network, and the answer began
        self._sent = self._first_byte = math.nan

    async def connect(self) -> None:
        """Open the connection before the first request.

        :raises BenchError: if that fails
        """
        try:
            await asyncio.wait_for(self._open(), _CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError) as err:
            raise BenchError(
                tls_problem(err, self._netloc)
                or f'cannot connect to {self._netloc} '
                f'({err or "timed out"}): is a proxy there?'
            ) from err
        # the name need not be resolved again
        self._host = self._writer.get_extra_info('peername')[0]

    async def send(self, request: Request, timeout_seconds: float) -> Sample:
        """Send a request, and return what came of it.

        The request is given up after a time, or when the task is cancelled
        with a status.
        """
        give_up = asyncio.current_task().cancel
        loop = asyncio.get_running_loop()
        timer = loop.call_later(timeout_seconds, give_up, TIMED_OUT)
        start = time.monotonic()
        self._sent = self._first_byte = math.nan
        response = Response(request.method == b'HEAD')
        status = LOST
        try:
            if self._writer is None:
                await self._open()
            if await self._exchange(request, response):
                status = response.status
        except (OSError, httptools.HttpParserError):
            pass
        except asyncio.CancelledError as given_up:
            (status,) = given_up.args
        end = time.monotonic()
        timer.cancel()
        if not response.is_reusable or math.isnan(self._sent):
            self.close()
        has_response = status >= 200
        return Sample(
            *(request.kind, request.number, start, self._sent),
            *(self._first_byte, end, status),
            response.retry_after if has_response else math.nan,
            response.body_bytes if has_response else 0,
            request.body_bytes or 0,
        )

    def close(self) -> None:
        """Close the connection at once."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def _open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            self._host, self._port, limit=_RECEIVED_BYTES, **self._tls
        )
        # wait until the kernel has taken all; with 0, TLS never resumes
        self._writer.transport.set_write_buffer_limits(high=1, low=0)

    async def _exchange(self, request: Request, response: Response) -> bool:
        """Send a request and read its response; return False if it is cut."""
        sending = self._send(request)
        if (request.body_bytes or 0) <= _SMALL_BYTES:
            await sending
        else:
            # a server may respond before it has the whole body
            sending = asyncio.gather(sending, return_exceptions=True)
        try:
            while received := await self._reader.read(_RECEIVED_BYTES):
                if math.isnan(self._first_byte):
                    self._first_byte = time.monotonic()
                if response.feed(received):
                    return True
        finally:
            if math.isnan(self._sent):
                sending.cancel()
        return response.close()

    async def _send(self, request: Request) -> None:
        size = request.body_bytes
        length = b'' if size is None else b'Content-Length: %d\r\n' % size
        head = b'%s %s%s%s\r\n' % (
            *(request.method, request.target, self._tail, length),
        )
        left = size or 0
        if left <= _SMALL_BYTES:
            head, left = head + _CONTENT[:left], 0
        self._writer.write(head)
        while left:
            await self._writer.drain()
            self._writer.write(_CONTENT[:left])
            left -= min(left, len(_CONTENT))
        await self._writer.drain()
        self._sent = time.monotonic()
