# SPDX-License-Identifier: Apache-2.0
"""A client's connection: sends one request, reads its response."""

import contextlib
import functools
import math
import random
import select
import socket
import ssl
import time

from shardmw.bench.errors import BenchError
from shardmw.bench.sources import Request
from shardmw.bench.tls import tls_problem
from shardmw.bench.wire import (
    Address,
    Reply,
    ReplyReader,
    request_head,
    request_tail,
)

_CONNECT_SECONDS = 10

# What bodies are made of, over and over; it can't be compressed, for there
# are disks that would.
_CONTENT_BYTES = 1 << 20

# A body that is no longer goes out together with the head.
_SMALL_BYTES = 1 << 14

# What one connection sends at most before the others have their turn.
_TURN_BYTES = 1 << 22

_RECEIVE_BYTES = 1 << 18

# TLS gives no more than a record of it at a time.
_TLS_READS = 16

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

# All connections of a process read into it, one at a time; only what they
# count is kept.
_received = memoryview(bytearray(_RECEIVE_BYTES))


class ConnectionLost(Exception):
    """The connection failed, or broke a response off."""


class Connection:
    """One client, without blocking.

    :param epoll: tells when there's something to do; all connections share it
    :param by_descriptor: where to find the connection then
    :param tls: what to trust, if the address is one of TLS

    ``request`` is what it waits for an answer to, None for nothing; who uses
    the connection clears it. ``started``, ``sent`` and ``first_byte`` are
    times of it, as :class:`shardmw.bench.samples.Sample` has them.
    """

    __slots__ = (
        'address',
        'first_byte',
        'request',
        'sent',
        'started',
        '_body_left',
        '_by_descriptor',
        '_content',
        '_descriptor',
        '_epoll',
        '_head',
        '_is_awaiting_room',
        '_is_open',
        '_peer',
        '_reader',
        '_socket',
        '_tail',
        '_tls',
    )

    def __init__(
        self,
        address: Address,
        token: str,
        epoll: select.epoll,
        by_descriptor: dict[int, 'Connection'],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address
        self.request: Request | None = None
        self.started = 0.0
        self.sent = self.first_byte = math.nan
        self._tail = request_tail(address, token)
        self._epoll = epoll
        self._by_descriptor = by_descriptor
        self._content = _content()
        self._tls = tls if address.is_tls else None
        self._socket: socket.socket | None = None
        self._descriptor = -1
        #: whether requests can be sent; without TLS it is for the kernel
        self._is_open = False
        #: ``(family, address)`` of who was there the first time
        self._peer: tuple[int, tuple] | None = None
        self._reader: ReplyReader | None = None
        #: what has to be sent: first this, then so many bytes of the body
        self._head = b''
        self._body_left = 0
        self._is_awaiting_room = False

    def connect(self) -> None:
        """Connect, and wait for it.

        :raises BenchError: if nobody's there
        """
        host, port, _ = self.address
        try:
            opened = socket.create_connection((host, port), _CONNECT_SECONDS)
            if self._tls is not None:
                opened = self._tls.wrap_socket(opened, server_hostname=host)
        except OSError as err:
            netloc = self.address.netloc
            raise BenchError(
                tls_problem(err, netloc)
                or f'cannot connect to {netloc} ({err}): is a proxy there?'
            ) from err
        self._peer = opened.family, opened.getpeername()
        self._use(opened)
        self._is_open = True

    def send(self, request: Request, now: float) -> None:
        """Send a request, as much of it as the connection takes.

        :raises ConnectionLost: if it can't be sent
        """
        self.request = request
        self.started = now
        self.sent = self.first_byte = math.nan
        self._reader = ReplyReader(request.method == b'HEAD')
        size = request.body_bytes
        self._head = request_head(
            request.method, request.target, self._tail, size
        )
        self._body_left = size or 0
        if size and size <= _SMALL_BYTES:
            self._head += self._content[:size]
            self._body_left = 0
        if self._socket is None:
            self._connect_later()
        elif self._is_open:
            self._send_on()

    def handle(self, event: int) -> Reply | None:
        """Do what can be done.

        :param event: of epoll
        :returns: the response if that was the end of it
        :raises ConnectionLost: if there will be none
        """
        if not self._is_open:
            self._shake_hands()
            return None
        if self._has_unsent and event & ~select.EPOLLIN:
            self._send_on()
        if event & ~select.EPOLLOUT:
            return self._receive()
        return None

    def close(self) -> None:
        """Let go of the socket; the next request opens another."""
        if self._socket is not None:
            self._by_descriptor.pop(self._descriptor, None)
            # a handshake that failed has closed it
            with contextlib.suppress(OSError):
                self._epoll.unregister(self._descriptor)
            self._socket.close()
            self._socket = None
            self._is_open = self._is_awaiting_room = False
        self._head, self._body_left = b'', 0

    @property
    def _has_unsent(self) -> bool:
        return bool(self._head or self._body_left)

    def _use(self, opened: socket.socket) -> None:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = opened
        self._descriptor = opened.fileno()
        self._by_descriptor[self._descriptor] = self
        self._epoll.register(self._descriptor, select.EPOLLIN)

    def _connect_later(self) -> None:
        family, address = self._peer
        opened = socket.socket(family)
        opened.setblocking(False)
        opened.connect_ex(address)
        self._use(opened)
        self._is_open = self._tls is None
        self._await_room(True)

    def _shake_hands(self) -> None:
        """Begin with TLS, or go on with it; then with the request."""
        try:
            if not isinstance(self._socket, ssl.SSLSocket):
                self._begin_tls()
            self._socket.do_handshake()
        except _WOULD_BLOCK as err:
            self._await_room(isinstance(err, ssl.SSLWantWriteError))
        except OSError as err:
            raise ConnectionLost(str(err)) from err
        else:
            self._is_open = True
            self._send_on()

    def _begin_tls(self) -> None:
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, 'no connection')
        self._socket = self._tls.wrap_socket(
            self._socket,
            server_hostname=self.address.host,
            do_handshake_on_connect=False,
        )

    def _await_room(self, is_wanted: bool) -> None:
        """Be told when more can be sent, or not any more."""
        if is_wanted != self._is_awaiting_room:
            self._is_awaiting_room = is_wanted
            events = select.EPOLLIN | (select.EPOLLOUT if is_wanted else 0)
            self._epoll.modify(self._descriptor, events)

    def _send_on(self) -> None:
        """Send until the connection takes no more, or for a turn."""
        try:
            if self._head:
                self._head = self._head[self._socket.send(self._head) :]
            if self._body_left and not self._head:
                self._send_body()
        except _WOULD_BLOCK:
            pass
        except OSError as err:
            raise ConnectionLost(str(err)) from err
        if not self._has_unsent:
            self.sent = time.monotonic()
        self._await_room(self._has_unsent)

    def _send_body(self) -> None:
        turn_ends = self._body_left - _TURN_BYTES
        while self._body_left > max(0, turn_ends):
            part = self._content[: self._body_left]
            self._body_left -= self._socket.send(part)

    def _receive(self) -> Reply | None:
        for _ in range(1 if self._tls is None else _TLS_READS):
            count = self._read()
            if count is None:
                return None
            try:
                reply = self._take(_received[:count])
            except ValueError as err:
                raise ConnectionLost(f'no HTTP response: {err}') from err
            if reply is not None:
                if self._has_unsent or not reply.reusable:
                    self.close()
                return reply
        return None

    def _read(self) -> int | None:
        """Read what there is of a response; None if there's nothing."""
        try:
            count = self._socket.recv_into(_received)
        except _WOULD_BLOCK:
            return None
        except OSError as err:
            raise ConnectionLost(str(err)) from err
        if self.request is None:
            # a server may close what is idle
            self.close()
            return None
        if count and math.isnan(self.first_byte):
            self.first_byte = time.monotonic()
        return count

    def _take(self, received: memoryview) -> Reply | None:
        if received:
            return self._reader.feed(received)
        reply = self._reader.close()
        if reply is None:
            raise ConnectionLost('closed')
        return reply


@functools.cache
def _content() -> memoryview:
    return memoryview(random.Random(0).randbytes(_CONTENT_BYTES))
