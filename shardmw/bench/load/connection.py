# SPDX-License-Identifier: Apache-2.0
"""The connection of a client."""

import asyncio
import math
import random
import ssl
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httptools

from shardmw.bench.errors import BenchError
from shardmw.bench.load.response import ResponseReader
from shardmw.bench.load.samples import LOST, TIMED_OUT, Sample
from shardmw.bench.load.sources import Request
from shardmw.bench.load.urls import check_url, tls_problem

_CONNECT_SECONDS = 10
_PORTS = {'http': 80, 'https': 443}

# A body of up to this size is sent together with the head.
_SMALL_BYTES = 1 << 14

# The content of bodies: random, so that no disk can compress it.
_CONTENT = memoryview(random.Random(0).randbytes(1 << 20))

# All connections of a process receive into this buffer, one at a time.
_received = memoryview(bytearray(1 << 18))


#: Called after each request: ``ended(connection, request, sample)``.
Ended = Callable[['Connection', Request, Sample], None]


class Connection(asyncio.BufferedProtocol):
    """A connection that is kept alive, and opened again once it is closed.

    :param url: of the proxy; its path is ignored
    :param token: sent with each request
    :param timeout_seconds: the time after which a request is given up
    :param tls: for https
    :raises BenchError: if the URL is invalid
    """

    def __init__(
        self,
        url: str,
        token: str,
        timeout_seconds: float,
        tls: ssl.SSLContext | None,
        ended: Ended,
    ) -> None:
        check_url(url)
        parts = urlsplit(url)
        self._netloc = parts.netloc
        self._host = self._name = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = tls if parts.scheme == 'https' else None
        self._timeout_seconds = timeout_seconds
        self._tail = (
            f' HTTP/1.1\r\nHost: {self._netloc}\r\nX-Auth-Token: {token}\r\n'
        ).encode()
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Future | None = None
        self._is_paused = False
        self._ended = ended
        #: the request that waits for its response
        self._request: Request | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reader = ResponseReader()
        self._body_left = 0
        self._start = self._sent = self._first_byte = math.nan

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
        self._host = self._transport.get_extra_info('peername')[0]

    def send(self, request: Request, now: float) -> None:
        """Begin to send a request."""
        loop = asyncio.get_running_loop()
        self._request = request
        self._reader = ResponseReader(request.method == b'HEAD')
        self._start = now
        self._sent = self._first_byte = math.nan
        self._timer = loop.call_later(
            self._timeout_seconds, self.abort, TIMED_OUT
        )
        if self._transport is None:
            self._opening = loop.create_task(self._reopen(request))
        else:
            self._send(request)

    def abort(self, status: int) -> None:
        """Close the connection; end a request, if any, with a status."""
        self._close()
        self._end(status)

    # The event loop calls these.

    def connection_made(self, transport: asyncio.Transport) -> None:
        # pause until the kernel has taken all; with 0, TLS never resumes
        transport.set_write_buffer_limits(high=1, low=0)
        self._transport, self._is_paused = transport, False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            if self._reader.close():
                self._end_response()
            else:
                self._end(LOST)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._send_body()

    def get_buffer(self, sizehint: int) -> memoryview:
        return _received

    def buffer_updated(self, nbytes: int) -> None:
        if math.isnan(self._first_byte):
            self._first_byte = time.monotonic()
        try:
            if self._reader.feed(_received[:nbytes]):
                self._end_response()
        except httptools.HttpParserError:
            self.abort(LOST)

    def _send(self, request: Request) -> None:
        size = request.body_bytes
        length = b'' if size is None else b'Content-Length: %d\r\n' % size
        head = b'%s %s%s%s\r\n' % (
            *(request.method, request.target, self._tail, length),
        )
        self._body_left = size or 0
        if self._body_left <= _SMALL_BYTES:
            head += _CONTENT[: self._body_left]
            self._body_left = 0
        self._transport.write(head)
        self._send_body()

    def _send_body(self) -> None:
        """Send as much of the body as the kernel takes."""
        while self._body_left and not self._is_paused:
            part = _CONTENT[: self._body_left]
            self._body_left -= len(part)
            self._transport.write(part)
        if not self._is_paused and math.isnan(self._sent):
            self._sent = time.monotonic()

    async def _reopen(self, request: Request) -> None:
        try:
            await self._open()
        except OSError:
            self._opening = None
            self._end(LOST)
        else:
            self._opening = None
            self._send(request)

    async def _open(self) -> None:
        await asyncio.get_running_loop().create_connection(
            lambda: self,
            *(self._host, self._port),
            ssl=self._tls,
            server_hostname=self._name if self._tls else None,
        )

    def _close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _end_response(self) -> None:
        reader = self._reader
        if not reader.is_reusable or self._body_left or self._is_paused:
            self._close()
        self._end(reader.status, reader.retry_after, reader.body_bytes)

    def _end(
        self, status: int, retry_after: float = math.nan, body_bytes: int = 0
    ) -> None:
        request, self._request = self._request, None
        if request is not None:
            self._timer.cancel()
            sample = Sample(
                *(request.kind, request.number),
                *(self._start, self._sent, self._first_byte),
                *(time.monotonic(), status, retry_after, body_bytes),
                request.body_bytes or 0,
            )
            self._ended(self, request, sample)
