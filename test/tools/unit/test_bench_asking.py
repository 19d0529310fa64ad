# SPDX-License-Identifier: Apache-2.0
"""Logins and single requests, to a server that tests run."""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from shardmw_bench.errors import BenchError
from shardmw_bench.load.connection import Connection, tls_context
from shardmw_bench.targets.account import Account, Auth

#: Keystone's response to a login.
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
    """Run a server that gives these responses in order; yield its address."""
    left = [*statuses]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(left.pop(0))
            self.send_header('X-Auth-Token', 'token')
            here = self.headers['Host']
            self.send_header('X-Storage-Url', f'http://{here}/v1/AUTH_a')
            self.send_header('X-Account-Container-Count', '0')
            self.send_header('Content-Length', '0')
            self.end_headers()

        do_HEAD = do_GET

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
    monkeypatch.setattr('swiftclient.client.sleep', lambda seconds: None)


def token_auth(address: str, token: str = 't') -> Auth:
    url = f'http://{address}/v1/AUTH_a'
    return Auth(preauthurl=url, preauthtoken=token)


@pytest.mark.parametrize('statuses', [(200,), (503, 200), (503, 500, 200)])
def test_a_request_that_failed_is_repeated(statuses):
    with answering(*statuses) as address:
        Account(token_auth(address)).check()


def test_a_server_that_fails_again_and_again_is_reported():
    with (
        answering(503, 500, 502) as address,
        pytest.raises(BenchError, match='HEAD .*/v1/AUTH_a 502'),
    ):
        Account(token_auth(address)).check()


def test_a_login_gives_a_token():
    with answering(200) as address:
        account = Account(Auth(f'http://{address}', 'user', 'key'))
    assert (account.token, account.name) == ('token', 'AUTH_a')


def test_a_token_that_expired_is_renewed():
    with answering(200, 401, 200, 200) as address:
        Account(Auth(f'http://{address}', 'user', 'key')).check()


def test_a_token_that_cannot_be_renewed_is_reported():
    with (
        answering(200, 401, 200, 401) as address,
        pytest.raises(BenchError, match='refuses the token .401.'),
    ):
        Account(Auth(f'http://{address}', 'user', 'key')).check()


def keystone_auth(address: str) -> Auth:
    options = {
        'project_name': 'logs',
        'user_domain_id': 'default',
        'project_domain_id': 'default',
        'region_name': 'two',
    }
    return Auth(f'http://{address}', 'user', 'key', '3', options)


def test_keystone_gives_a_token_and_the_url_of_the_region():
    with answering(201) as address:
        account = Account(keystone_auth(address))
    assert account.token == 'token'
    assert account.proxy_urls == ('http://two',)
    assert account.path == '/v1/AUTH_p'


def test_a_refusal_by_keystone_is_reported_in_one_line():
    with (
        answering(401) as address,
        pytest.raises(BenchError, match='gave no token: .*Unauthorized'),
    ):
        Account(keystone_auth(address))


def test_a_keystone_that_is_away_is_reported_in_one_line():
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        address = '{}:{}'.format(*unused.getsockname())
        with pytest.raises(BenchError, match='gave no token: .* Unable to'):
            Account(keystone_auth(address))


def test_a_token_that_fits_no_header_is_reported_without_its_text():
    with (
        answering() as address,
        pytest.raises(BenchError, match='no header of HTTP takes') as caught,
    ):
        Account(token_auth(address, 'to\nken')).check()
    assert 'to\nken' not in str(caught.value)


class TestTlsToAServerWithoutIt:
    def test_is_reported_by_a_request(self):
        with (
            answering() as address,
            pytest.raises(BenchError, match='speaks no TLS: write http://'),
        ):
            Account(Auth(f'https://{address}', 'user', 'key'))

    def test_is_reported_by_a_client_of_a_load(self):
        with answering() as address:
            url = f'https://{address}'
            connection = Connection(url, 't', tls_context(True))
            with pytest.raises(BenchError, match='speaks no TLS'):
                asyncio.run(connection.connect())
