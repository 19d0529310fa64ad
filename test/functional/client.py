# SPDX-License-Identifier: Apache-2.0
"""A Swift client that sends what a test says and returns whole responses."""

import http.client
import json
import select
import threading
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_SECONDS = 60
EXPIRY_SECONDS = 10


class Answer(NamedTuple):
    """A whole response; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode('utf-8')

    def json(self):
        return json.loads(self.body)

    def names(self) -> list[str]:
        """Return the names and subdirs of a JSON listing."""
        return [row.get('name', row.get('subdir')) for row in self.json()]


class Client:
    """A user of one account, with a connection for each thread.

    :param storage_url: the account's URL, ``http://host:port/v1/AUTH_x``
    :param token: sent with every request; None sends none
    """

    def __init__(self, storage_url: str, token: str | None) -> None:
        self.storage_url = storage_url
        self.token = token
        parts = urlsplit(storage_url)
        self.host = parts.netloc
        self.account_path = parts.path
        self.account = parts.path.rpartition('/')[2]
        self._local = threading.local()

    @classmethod
    def login(cls, auth_url: str, user: str, key: str) -> 'Client':
        """Return a client for a user of tempauth, logged in by auth v1."""
        parts = urlsplit(auth_url)
        connection = http.client.HTTPConnection(parts.netloc)
        connection.request(
            'GET', parts.path, headers={'X-Auth-User': user, 'X-Auth-Key': key}
        )
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status in (200, 204), response.status
        return cls(
            response.headers['X-Storage-Url'], response.headers['X-Auth-Token']
        )

    @property
    def _connection(self) -> http.client.HTTPConnection:
        """Return this thread's connection."""
        if not hasattr(self._local, 'connection'):
            self._local.connection = http.client.HTTPConnection(
                self.host, timeout=TIMEOUT_SECONDS
            )
        return self._local.connection

    def on(self, proxy_url: str) -> 'Client':
        """Return a client for the same user at another proxy."""
        return Client(proxy_url + self.account_path, self.token)

    def anonymous(self) -> 'Client':
        """Return a client for the same account that sends no token."""
        return Client(self.storage_url, None)

    def visiting(self, other: 'Client') -> 'Client':
        """Return a client for this user in another user's account."""
        return Client(other.storage_url, self.token)

    def path(self, container: str | None = None, name: str | None = None):
        """Return the quoted path of the account, a container or an object."""
        path = self.account_path
        for segment in (container, name):
            if segment is not None:
                path += '/' + quote(segment, safe='/')
        return path

    def request(
        self,
        method: str,
        container: str | None = None,
        name: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        query: Mapping[str, object] | str | None = None,
    ) -> Answer:
        """Send a request for the account, a container or an object."""
        path = self.path(container, name)
        if query:
            text = query if isinstance(query, str) else urlencode(query)
            path += '?' + text
        return self.raw(method, path, headers=headers, body=body)

    def raw(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
    ) -> Answer:
        """Send a request for a path exactly as given.

        An iterable body is sent chunked.
        """
        sent = {} if self.token is None else {'X-Auth-Token': self.token}
        sent.update(headers or {})
        try:
            return self._exchange(method, path, sent, body)
        except (ConnectionError, http.client.HTTPException):
            self._connection.close()
            if body is not None and not isinstance(body, bytes):
                raise
            return self._exchange(method, path, sent, body)

    def _exchange(self, method, path, headers, body) -> Answer:
        self._connection.request(method, path, headers=headers, body=body)
        response = self._connection.getresponse()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )

    def wait_until_read(self) -> None:
        """Wait until the server reads the body of this thread's request.

        The request must have the header ``Expect: 100-continue``: the server
        answers it once it begins to read the body.
        """
        sock = self._connection.sock
        assert select.select([sock], [], [], TIMEOUT_SECONDS)[0], 'no answer'

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        self._connection.close()

    def put(self, container, name=None, body=b'', **kwargs) -> Answer:
        return self.request('PUT', container, name, body=body, **kwargs)

    def get(self, container=None, name=None, **kwargs) -> Answer:
        return self.request('GET', container, name, **kwargs)

    def head(self, container=None, name=None, **kwargs) -> Answer:
        return self.request('HEAD', container, name, **kwargs)

    def post(self, container=None, name=None, **kwargs) -> Answer:
        return self.request('POST', container, name, **kwargs)

    def delete(self, container=None, name=None, **kwargs) -> Answer:
        return self.request('DELETE', container, name, **kwargs)

    def copy(self, container, name, destination: str, **kwargs) -> Answer:
        headers = dict(kwargs.pop('headers', {}), Destination=destination)
        return self.request('COPY', container, name, headers=headers, **kwargs)

    def wait_until_gone(self, container, name) -> None:
        """Wait for an object that is about to expire."""
        deadline = time.monotonic() + EXPIRY_SECONDS
        while self.head(container, name).status != 404:
            assert time.monotonic() < deadline, 'the object does not expire'
            time.sleep(0.05)

    def listing(self, container=None, **params) -> Answer:
        """Send a request for a listing in JSON."""
        return self.get(container, query={'format': 'json', **params})
