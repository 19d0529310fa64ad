# SPDX-License-Identifier: Apache-2.0
"""Single requests, to a server of the tests."""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from shardmw.bench.errors import BenchError
from shardmw.bench.load.connection import Connection
from shardmw.bench.load.urls import tls_context
from shardmw.bench.targets import asking
from shardmw.bench.targets.asking import ask
from shardmw.bench.targets.auth import Access, PasswordAuth

#: What Keystone knows of a user.
KEYSTONE_TOKEN = {
    'methods': ['password'],
    'user': {'id': 'u', 'name': 'user', 'domain': {'id': 'default'}},
    'project': {'id': 'p', 'name': 'logs', 'domain': {'id': 'default'}},
    'expires_at': '2036-11-23T03:00:00.000000Z',
    'issued_at': '2026-11-23T03:00:00.000000Z',
    'roles': [],
    'catalog': [
        {
            'type': 'object-store',
            'endpoints': [
                {
                    'interface': 'public',
                    'region': region,
                    'url': f'http://{region}/v1/AUTH_p',
                }
                for region in ('one', 'two')
            ],
        }
    ],
}


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

        def do_POST(self) -> None:
            length = int(self.headers['Content-Length'])
            asked = json.loads(self.rfile.read(length))['auth']
            assert asked['identity']['password']['user']['name'] == 'user'
            assert asked['scope']['project']['name'] == 'logs'
            body = json.dumps({'token': KEYSTONE_TOKEN}).encode()
            self.send_response(left.pop(0))
            self.send_header('X-Subject-Token', 'token')
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

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
    retries = asking._RETRIES.new(total=2, backoff_factor=0)
    monkeypatch.setattr(asking, '_RETRIES', retries)


@pytest.mark.parametrize(
    ('statuses', 'status'),
    [((200,), 200), ((503, 404), 404), ((503, 500, 502), 502)],
)
def test_what_a_server_failed_at_is_asked_again(statuses, status):
    with answering(*statuses) as address:
        assert ask('GET', f'http://{address}', {}).status == status


def test_a_login_is_tried_again():
    with answering(503, 200) as address:
        access = PasswordAuth(f'http://{address}', 'user', 'key').login()
    assert access.token == 'token'


def keystone_auth(address: str) -> PasswordAuth:
    options = {
        'project_name': 'logs',
        'user_domain_id': 'default',
        'project_domain_id': 'default',
        'region_name': 'two',
    }
    url = f'http://{address}'
    return PasswordAuth(url, 'user', 'key', False, '3', options)


def test_keystone_gives_a_token_and_the_url_of_the_region():
    with answering(201) as address:
        access = keystone_auth(address).login()
    assert access == Access('http://two/v1/AUTH_p', 'token')


def test_a_refusal_of_keystone_is_told_in_a_line():
    with (
        answering(401) as address,
        pytest.raises(BenchError, match='gave no token: .*Unauthorized'),
    ):
        keystone_auth(address).login()


def test_a_keystone_that_is_away_is_told_in_a_line():
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        address = '{}:{}'.format(*unused.getsockname())
        with pytest.raises(BenchError, match='gave no token: .* Unable to'):
            keystone_auth(address).login()


@pytest.mark.parametrize('token', ['to\nken', '\N{SNOWMAN}'])
def test_a_token_that_no_header_takes_is_told_without_it(token):
    with (
        answering() as address,
        pytest.raises(BenchError, match='no header of HTTP takes') as caught,
    ):
        ask('GET', f'http://{address}', {'X-Auth-Token': token})
    assert token not in str(caught.value)


class TestTlsToAServerWithoutIt:
    def test_a_request_tells_so(self):
        with (
            answering() as address,
            pytest.raises(BenchError, match='speaks no TLS: write http://'),
        ):
            ask('GET', f'https://{address}', {})

    def test_a_client_of_a_load_does(self):
        with answering() as address:
            url = f'https://{address}'
            connection = Connection(url, 't', tls_context(True))
            with pytest.raises(BenchError, match='speaks no TLS'):
                asyncio.run(connection.connect())
