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

from shardmw_bench.errors import BenchError
from shardmw_bench.load.outcome import LOST, TIMED_OUT, UNANSWERED, Sample
from shardmw_bench.load.sources import Request

# Errors of a client whose server answers without TLS.
_NO_TLS = frozenset({'WRONG_VERSION_NUMBER', 'RECORD_LAYER_FAILURE'})

# A body of up to this size is sent together with the head.
_SMALL_BYTES = 1 << 14

# The content of bodies: random, so that no disk can compress it.
_CONTENT = memoryview(random.Random(0).randbytes(1 << 20))

# All connections of a process receive into this buffer, one at a time.
_received = memoryview(bytearray(1 << 18))


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


class Connection(asyncio.BufferedProtocol):
    """A connection that is kept alive, and opened again once it is closed.

    :param url: of the proxy; its path is ignored
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
        self._port = parts.port or {'http': 80, 'https': 443}[parts.scheme]
        self._tls = {}
        if parts.scheme == 'https':
            self._tls = {'ssl': tls, 'server_hostname': parts.hostname}
        self._tail = (
            f' HTTP/1.1\r\nHost: {self._netloc}\r\nX-Auth-Token: {token}\r\n'
        ).encode()
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._body_left = 0
        self._sent = self._first_byte = math.nan
        self._response = Response()
        #: has a status and its time, once the request is over
        self._ended: asyncio.Future | None = None

    async def connect(self) -> None:
        """Open the connection; raise BenchError if that fails."""
        try:
            await asyncio.wait_for(self._open(), timeout=10)
        except (OSError, asyncio.TimeoutError) as err:
            raise BenchError(
                tls_problem(err, self._netloc)
                or f'cannot connect to {self._netloc} '
                f'({err or "timed out"}): is a proxy there?'
            ) from err
        # the name need not be resolved again
        self._host = self._transport.get_extra_info('peername')[0]

    async def send(
        self, request: Request, start: float, timeout_seconds: float
    ) -> Sample:
        """Send a request, begun at ``start``, and return what came of it.

        It is given up after a time, or when the task is cancelled.
        """
        loop = asyncio.get_running_loop()
        self._sent = self._first_byte = math.nan
        self._response = Response(request.method == b'HEAD')
        self._ended = loop.create_future()
        timer = loop.call_later(
            timeout_seconds, asyncio.current_task().cancel, TIMED_OUT
        )
        try:
            if self._transport is None:
                await self._open()
            self._begin_to_send(request)
            status, end = await self._ended
        except OSError:
            status, end = LOST, time.monotonic()
        except asyncio.CancelledError as given_up:
            status = given_up.args[0] if given_up.args else UNANSWERED
            end = time.monotonic()
        timer.cancel()
        response = self._response
        if not response.is_reusable or self._body_left or self._is_paused:
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
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # The event loop calls these.

    def connection_made(self, transport: asyncio.Transport) -> None:
        # pause until the kernel has taken all; with 0, TLS never resumes
        transport.set_write_buffer_limits(high=1, low=0)
        self._transport, self._is_paused = transport, False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            is_whole = self._response.close()
            self._end(self._response.status if is_whole else LOST)

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
            if self._response.feed(_received[:nbytes]):
                self._end(self._response.status)
        except httptools.HttpParserError:
            self._end(LOST)

    async def _open(self) -> None:
        await asyncio.get_running_loop().create_connection(
            lambda: self, self._host, self._port, **self._tls
        )

    def _begin_to_send(self, request: Request) -> None:
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
        while self._body_left and not self._is_paused:
            part = _CONTENT[: self._body_left]
            self._body_left -= len(part)
            self._transport.write(part)
        if not self._is_paused and math.isnan(self._sent):
            self._sent = time.monotonic()

    def _end(self, status: int) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result((status, time.monotonic()))


def tls_context(is_insecure: bool) -> ssl.SSLContext:
    """Return the TLS settings of a client, which may accept anything."""
    context = ssl.create_default_context()
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def tls_problem(err: BaseException, netloc: str) -> str | None:
    """Return the text of a TLS error; None for other errors."""
    if isinstance(err, ssl.SSLCertVerificationError):
        return (
            f'{netloc} is not trusted ({err.verify_message}): put its CA '
            'into SSL_CERT_FILE, or choose --insecure'
        )
    if isinstance(err, ssl.SSLError) and err.reason in _NO_TLS:
        return f'{netloc} speaks no TLS: write http:// in the URL'
    return None


def check_url(url: str) -> None:
    """Raise BenchError if no request can be sent to a URL."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ('http', 'https') and parts.hostname
        good = good and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise BenchError(
            f'{url!r} is no URL: write http://host:port or https://host'
        )
