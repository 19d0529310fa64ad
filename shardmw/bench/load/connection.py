# SPDX-License-Identifier: Apache-2.0
"""A client's connection: sends one request, reads its response."""

import asyncio
import math
import random
import ssl
import time
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

from shardmw.bench.errors import BenchError
from shardmw.bench.load.response import ResponseReader
from shardmw.bench.load.samples import LOST, TIMED_OUT
from shardmw.bench.load.sources import Request
from shardmw.bench.load.urls import check_url, tls_problem

_CONNECT_SECONDS = 10
_PORTS = {'http': 80, 'https': 443}

# A body of up to this size is sent together with the head.
_SMALL_BYTES = 1 << 14

# What bodies are made of: random, so that no disk can compress it.
_CONTENT = memoryview(random.Random(0).randbytes(1 << 20))

# All connections of a process receive into this, one at a time: of bodies,
# only the size is kept.
_received = memoryview(bytearray(1 << 18))


class Exchange(NamedTuple):
    """What came of a request: see :mod:`shardmw.bench.load.samples`."""

    start: float
    sent: float
    first_byte: float
    end: float
    status: int
    retry_after: float = math.nan
    body_bytes: int = 0


class Connection(asyncio.BufferedProtocol):
    """A connection that is kept alive, and opened again once it is closed.

    :param url: of the proxy, of which the path does not matter
    :param token: sent with each request
    :param timeout_seconds: after so long a request is given up
    :param tls: what servers to trust, if the URL is of https
    :raises BenchError: if it is no URL
    """

    def __init__(
        self,
        url: str,
        token: str,
        timeout_seconds: float,
        tls: ssl.SSLContext | None = None,
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
        #: what comes of the request that is under way
        self._exchange: asyncio.Future[Exchange] | None = None
        self._reader = ResponseReader()
        self._body_left = 0
        self._start = self._sent = self._first_byte = math.nan

    @property
    def is_idle(self) -> bool:
        """Return True if no request is under way."""
        return self._exchange is None

    async def connect(self) -> None:
        """Open the connection ahead of the first request.

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
        # a name is looked up only once
        self._host = self._transport.get_extra_info('peername')[0]

    async def exchange(self, request: Request, now: float) -> Exchange:
        """Send a request, and wait for its response or its failure."""
        loop = asyncio.get_running_loop()
        self._exchange = loop.create_future()
        self._reader = ResponseReader(request.method == b'HEAD')
        self._start = now
        self._sent = self._first_byte = math.nan
        timer = loop.call_later(self._timeout_seconds, self.abort, TIMED_OUT)
        try:
            if self._transport is None:
                self._opening = asyncio.ensure_future(self._reopen(request))
            else:
                self._send(request)
            return await self._exchange
        finally:
            timer.cancel()
            self._exchange = None

    def abort(self, status: int) -> None:
        """Close the connection.

        :param status: of the request that is under way, if there is one
        """
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        self._end(status)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:
        # pause until the kernel has taken all; with 0, one of TLS never
        # resumes
        transport.set_write_buffer_limits(high=1, low=0)
        self._transport, self._is_paused = transport, False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            if not self.is_idle and self._reader.close():
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

    def _end_response(self) -> None:
        """End the request, whose response is whole."""
        reader = self._reader
        is_sent = not self._body_left and not self._is_paused
        self._end(reader.status, reader.retry_after, reader.body_bytes)
        if not (reader.is_reusable and is_sent):
            self.abort(LOST)

    def _end(self, status: int, *received: float) -> None:
        if self._exchange is not None and not self._exchange.done():
            self._exchange.set_result(
                Exchange(
                    *(self._start, self._sent, self._first_byte),
                    *(time.monotonic(), status, *received),
                )
            )
