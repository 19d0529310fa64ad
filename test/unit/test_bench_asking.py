# SPDX-License-Identifier: Apache-2.0
"""Single requests, to a server of the tests."""

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from shardmw.bench import asking
from shardmw.bench.asking import ask_again
from shardmw.bench.auth import V1Auth
from shardmw.bench.connection import Connection
from shardmw.bench.errors import BenchError
from shardmw.bench.tls import tls_context


@contextmanager
def answering(*statuses: int):
    """A server that answers so, one request after the other: its address."""
    left = [*statuses]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(left.pop(0))
            self.send_header('X-Auth-Token', 'token')
            self.send_header('X-Storage-Url', 'http://a/v1/AUTH_a')
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(('127.0.0.1', 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f'127.0.0.1:{server.server_port}'
        finally:
            server.shutdown()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(asking, '_PAUSES_SECONDS', (0, 0))


@pytest.mark.parametrize(
    ('statuses', 'status'),
    [((200,), 200), ((503, 404), 404), ((503, 500, 502), 502)],
)
def test_what_a_server_failed_at_is_asked_again(statuses, status):
    with answering(*statuses) as address:
        assert ask_again('GET', f'http://{address}', {}).status == status


def test_a_login_is_tried_again():
    with answering(503, 200) as address:
        access = V1Auth(f'http://{address}', 'user', 'key').login()
    assert access.token == 'token'


@pytest.mark.parametrize('token', ['to\nken', '\N{SNOWMAN}'])
def test_a_token_that_no_header_takes_is_told_without_it(token):
    with (
        answering() as address,
        pytest.raises(BenchError, match='no header of HTTP takes') as caught,
    ):
        ask_again('GET', f'http://{address}', {'X-Auth-Token': token})
    assert token not in str(caught.value)


class TestTlsToAServerWithoutIt:
    def test_a_request_tells_so(self):
        with (
            answering() as address,
            pytest.raises(BenchError, match='speaks no TLS: write http://'),
        ):
            ask_again('GET', f'https://{address}', {})

    def test_a_client_of_a_load_does(self):
        with answering() as address:
            url = f'https://{address}'
            connection = Connection(url, 't', 1, tls_context(True))
            with pytest.raises(BenchError, match='speaks no TLS'):
                asyncio.run(connection.connect())
