# SPDX-License-Identifier: Apache-2.0
"""A server that takes the place of a proxy and answers as a test says."""

import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: A function that returns the response to the n-th request, counted from 0.
#: An empty response closes the connection; None leaves the request unanswered.
Answers = Callable[[int], bytes | None]

CREATED = b'HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n'


def refused(retry_after: float | None = None) -> bytes:
    """Return a 498, with Retry-After if it is given."""
    told = b'' if retry_after is None else b'Retry-After: %g\r\n' % retry_after
    return (
        b'HTTP/1.1 498 Rate Limited\r\n%sContent-Length: 9\r\n\r\nSlow down'
        % told
    )


class AnsweringServer(socketserver.ThreadingTCPServer):
    """A server that keeps each request's head and its body's length.

    :ivar accepted: the number of connections that were handled
    :ivar closed: how many of them clients have closed
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, answers: Answers, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        scheme = 'http' if tls is None else 'https'
        self.url = '{}://{}:{}'.format(scheme, *self.server_address)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.heads: list[bytes] = []
        self.body_bytes: list[int] = []
        self.accepted = self.closed = 0
        self._answers = answers
        self._lock = threading.Lock()

    def answer(self, head: bytes) -> bytes | None:
        with self._lock:
            self.heads.append(head)
            return self._answers(len(self.heads) - 1)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.server.accepted += 1
        while head := self._read_request():
            response = self.server.answer(head)
            if response is None:
                continue
            if not response:
                return
            self.wfile.write(response)
        self.server.closed += 1

    def _read_request(self) -> bytes:
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            line = self.rfile.readline()
            if not line:
                return b''
            head += line
        _, _, rest = head.partition(b'Content-Length: ')
        length = int(rest.partition(b'\r\n')[0] or 0)
        self.server.body_bytes.append(len(self.rfile.read(length)))
        return head


@contextmanager
def answering(
    answers: Answers, tls: ssl.SSLContext | None = None
) -> Iterator[AnsweringServer]:
    """Run an :class:`AnsweringServer` until the end of the block.

    :param tls: a context with a certificate, to serve https
    """
    with AnsweringServer(answers, tls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
