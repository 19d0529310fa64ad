# SPDX-License-Identifier: Apache-2.0
"""A client's connection: sends one request, reads its response."""

import select
import socket

from shardmw.bench.errors import BenchError
from shardmw.bench.sources import Request
from shardmw.bench.wire import (
    Address,
    Reply,
    ReplyReader,
    request_bytes,
    request_tail,
)

_CONNECT_SECONDS = 10
_RECEIVE_BYTES = 65536


class ConnectionLost(Exception):
    """The connection failed, or broke a response off."""


class Connection:
    """One client, without blocking.

    :param epoll: tells when there's something to do; all connections share it
    :param by_descriptor: where to find the connection then

    ``request`` is what it waits for an answer to, None for nothing, and
    ``started`` when that was sent; who uses it clears the request.
    """

    __slots__ = (
        'address',
        'request',
        'started',
        '_by_descriptor',
        '_epoll',
        '_is_sending',
        '_reader',
        '_socket',
        '_tail',
        '_unsent',
    )

    def __init__(
        self,
        address: Address,
        token: str,
        epoll: select.epoll,
        by_descriptor: dict[int, 'Connection'],
    ) -> None:
        self.address = address
        self.request: Request | None = None
        self.started = 0.0
        self._tail = request_tail(address, token)
        self._epoll = epoll
        self._by_descriptor = by_descriptor
        self._socket: socket.socket | None = None
        self._reader: ReplyReader | None = None
        self._unsent = b''
        self._is_sending = False

    def connect(self) -> None:
        """Connect, and wait for it.

        :raises BenchError: if nobody's there
        """
        try:
            opened = socket.create_connection(self.address, _CONNECT_SECONDS)
        except OSError as err:
            host, port = self.address
            raise BenchError(
                f'cannot connect to {host}:{port} ({err}): is a proxy there?'
            ) from err
        self._use(opened)

    def send(self, request: Request, now: float) -> None:
        """Send a request, as much of it as the connection takes.

        :raises ConnectionLost: if it can't be sent
        """
        self.request = request
        self.started = now
        self._reader = ReplyReader(request.method == b'HEAD')
        self._unsent = request_bytes(
            request.method, request.target, self._tail, request.body
        )
        if self._socket is None:
            self._connect_later()
        else:
            self._send_on()

    def handle(self, event: int) -> Reply | None:
        """Do what can be done.

        :param event: of epoll
        :returns: the response if that was the end of it
        :raises ConnectionLost: if there will be none
        """
        if self._unsent and event & ~select.EPOLLIN:
            self._send_on()
        if event & ~select.EPOLLOUT:
            return self._receive()
        return None

    def close(self) -> None:
        """Let go of the socket; the next request opens another."""
        if self._socket is not None:
            descriptor = self._socket.fileno()
            self._by_descriptor.pop(descriptor, None)
            self._epoll.unregister(descriptor)
            self._socket.close()
            self._socket = None
            self._is_sending = False

    def _use(self, opened: socket.socket) -> None:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = opened
        self._by_descriptor[opened.fileno()] = self
        self._epoll.register(opened.fileno(), select.EPOLLIN)

    def _connect_later(self) -> None:
        opened = socket.socket()
        opened.setblocking(False)
        opened.connect_ex(self.address)
        self._use(opened)
        self._await_room(True)

    def _await_room(self, is_sending: bool) -> None:
        """Be told when more can be sent, or not any more."""
        if is_sending != self._is_sending:
            self._is_sending = is_sending
            events = select.EPOLLIN | (select.EPOLLOUT if is_sending else 0)
            self._epoll.modify(self._socket.fileno(), events)

    def _send_on(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as err:
            raise ConnectionLost(str(err)) from err
        self._unsent = self._unsent[sent:]
        self._await_room(bool(self._unsent))

    def _receive(self) -> Reply | None:
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError as err:
            raise ConnectionLost(str(err)) from err
        if self.request is None:
            # a server may close what is idle
            self.close()
            return None
        try:
            reply = self._take(received)
        except ValueError as err:
            raise ConnectionLost(f'no HTTP response: {err}') from err
        if reply is not None and not reply.reusable:
            self.close()
        return reply

    def _take(self, received: bytes) -> Reply | None:
        if received:
            return self._reader.feed(received)
        reply = self._reader.close()
        if reply is None:
            raise ConnectionLost('closed')
        return reply
