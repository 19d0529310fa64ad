# SPDX-License-Identifier: Apache-2.0
"""An account of the cluster: to make containers, and to look into them."""

import http.client
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from urllib.parse import quote, urlencode, urlsplit

from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster

SHARD_COUNT_HEADER = 'X-Container-Shard-Count'

_USER = 'test:tester'
_TIMEOUT_SECONDS = 120
_PAGE_ROWS = 10_000

# A busy machine may need another attempt.
_PAUSES_SECONDS = (0.2, 1, 5)


class Account:
    """The account of a cluster's user.

    :param proxy_urls: requests made here go to the first
    :param path: such as ``/v1/AUTH_test``
    """

    def __init__(
        self, proxy_urls: tuple[str, ...], path: str, token: str
    ) -> None:
        self.proxy_urls = proxy_urls
        self.path = path
        self.token = token
        self._numbers = itertools.count(1)

    @classmethod
    def login(cls, cluster: Cluster) -> 'Account':
        """Get a token from a cluster's tempauth.

        :raises BenchError: if it gives none
        """
        headers = {'X-Auth-User': _USER, 'X-Auth-Key': cluster.users[_USER]}
        urls = tuple(cluster.proxy_urls)
        status, given, _ = _ask(urls[0], 'GET', '/auth/v1.0', headers)
        if status != 200:
            raise BenchError(f'{urls[0]} answered {status} to the login')
        path = urlsplit(given['X-Storage-Url']).path
        return cls(urls, path, given['X-Auth-Token'])

    def container_path(self, container: str) -> str:
        """The quoted path of a container."""
        return f'{self.path}/{quote(container)}'

    def create(self, shards: int | None) -> str:
        """Make a new container; returns its name.

        :param shards: None for a plain one
        """
        name = f'bench-{next(self._numbers):03d}-{shards or "plain"}'
        headers = {SHARD_COUNT_HEADER: str(shards)} if shards else {}
        self._request('PUT', self.container_path(name), headers)
        return name

    def store(self, container: str, name: str) -> None:
        """Put an empty object into a container."""
        self._request('PUT', f'{self.container_path(container)}/{quote(name)}')

    def refresh(self, container: str) -> None:
        """Have the proxies look anew how much a container holds."""
        self._request('POST', self.container_path(container))

    def stored_times(self, container: str) -> dict[str, float]:
        """When the proxies took each object, by its name, on the wall clock.

        It's the timestamp of the write, to 10 microseconds, which Swift
        gives it when all filters have let it go on.
        """
        return {
            row['name']: _wall_time(row['last_modified'])
            for row in self._rows(container)
        }

    def _rows(self, container: str) -> Iterator[Mapping[str, str]]:
        marker = ''
        while True:
            query = {
                'format': 'json',
                'limit': _PAGE_ROWS,
                'marker': marker,
            }
            path = f'{self.container_path(container)}?{urlencode(query)}'
            rows = json.loads(self._request('GET', path) or '[]')
            yield from rows
            if len(rows) < _PAGE_ROWS:
                return
            marker = rows[-1]['name']

    def _request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> bytes:
        sent = {'X-Auth-Token': self.token, **(headers or {})}
        for pause in (*_PAUSES_SECONDS, None):
            status, _, body = _ask(self.proxy_urls[0], method, path, sent)
            if status < 500 or pause is None:
                break
            time.sleep(pause)
        if not 200 <= status < 300:
            raise BenchError(f'{method} {path} was answered {status}')
        return body


def _ask(
    url: str, method: str, path: str, headers: Mapping[str, str]
) -> tuple[int, Mapping[str, str], bytes]:
    connection = http.client.HTTPConnection(
        urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS
    )
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    except (OSError, http.client.HTTPException) as err:
        raise BenchError(f'{method} {url}{path} failed: {err!r}') from err
    finally:
        connection.close()


def _wall_time(last_modified: str) -> float:
    moment = datetime.fromisoformat(last_modified)
    return moment.replace(tzinfo=timezone.utc).timestamp()
