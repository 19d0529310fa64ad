# SPDX-License-Identifier: Apache-2.0
"""Requests to an account and its containers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from shardmw.bench.errors import BenchError
from shardmw.bench.targets.asking import Answer, ask
from shardmw.bench.targets.auth import Access, PasswordAuth
from shardmw.saio import Cluster

SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
SHARD_DEPTH_HEADER = 'X-Container-Shard-Depth'
POLICY_HEADER = 'X-Storage-Policy'

# In the response to a HEAD of an account, and not of a container.
_ACCOUNT_HEADER = 'X-Account-Container-Count'

_USER = 'test:tester'

_REFUSED = (401, 403)


class ContainerHead(NamedTuple):
    """The counts in a HEAD of a container.

    :param shards: None if this filter does not shard it
    """

    objects: int
    shards: int | None


@dataclass
class Account:
    """An account, and a token for it.

    Methods raise BenchError if a request fails.

    :param proxy_urls: most requests go to the first
    :param path: such as ``/v1/AUTH_test``
    :param is_insecure: True to accept any certificate
    """

    proxy_urls: tuple[str, ...]
    path: str
    token: str = field(repr=False)
    is_insecure: bool = False

    @classmethod
    def login(cls, cluster: Cluster) -> 'Account':
        """Return an account of a temporary cluster."""
        key = cluster.users[_USER]
        account = cls.of(PasswordAuth(cluster.auth_url, _USER, key).login())
        account.proxy_urls = tuple(cluster.proxy_urls)
        return account

    @classmethod
    def of(cls, access: Access) -> 'Account':
        """Return the account of a login."""
        parts = urlsplit(access.storage_url)
        url = f'{parts.scheme}://{parts.netloc}'
        path = parts.path.rstrip('/')
        return cls((url,), path, access.token, access.is_insecure)

    @property
    def name(self) -> str:
        """Return the name, such as ``AUTH_test``."""
        return self.path.rpartition('/')[2]

    def container_path(self, container: str) -> str:
        """Return the quoted path of a container."""
        return f'{self.path}/{quote(container, safe="")}'

    def is_refused(self) -> bool:
        """Return True if the token is not valid any more."""
        return self._ask('HEAD', self.path).status in _REFUSED

    def check(self) -> None:
        """Raise BenchError if the account cannot be used."""
        answer = self._ask('HEAD', self.path)
        if answer.status in _REFUSED:
            raise BenchError(
                f'{self.proxy_urls[0]}{self.path} refuses the token '
                f'({answer.status}), which may have expired: get a new one '
                'for this account'
            )
        self._checked(answer, 'HEAD', self.path)
        if _ACCOUNT_HEADER not in answer.headers:
            raise BenchError(
                f'{self.proxy_urls[0]}{self.path} is no account: write '
                'http://host:port/v1/ACCOUNT'
            )

    def features(self) -> Mapping[str, Mapping[str, object]]:
        """Return the content of /info, or {} if the cluster hides it."""
        answer = self._ask('GET', f'{self.path.rsplit("/", 2)[0]}/info')
        try:
            return json.loads(answer.body) if answer.is_success else {}
        except ValueError:
            return {}

    def put(self, container: str, headers: Mapping[str, str]) -> None:
        """Create a container."""
        self._request('PUT', self.container_path(container), headers)

    def head(self, container: str) -> ContainerHead | None:
        """Return the counts of a container; None if it does not exist."""
        path = self.container_path(container)
        # rows may be newer than the sums that the proxies cache
        answer = self._ask('HEAD', path, {'X-Newest': 'true'})
        if answer.status == 404:
            return None
        headers = self._checked(answer, 'HEAD', path).headers
        shards = headers.get(SHARD_COUNT_HEADER)
        return ContainerHead(
            int(headers.get('X-Container-Object-Count', 0)),
            int(shards) if shards else None,
        )

    def delete(self, container: str) -> int:
        """Delete a container, and return the status."""
        return self._ask('DELETE', self.container_path(container)).status

    def page(self, container: str, marker: str = '') -> list[str]:
        """Return the names of a page of the listing."""
        return [row['name'] for row in self._page(container, marker)]

    def store(self, container: str, name: str) -> None:
        """Upload an empty object."""
        self._request('PUT', f'{self.container_path(container)}/{quote(name)}')

    def miss(self, container: str, names: Iterable[str], writes: bool) -> None:
        """Request objects that do not exist from each proxy.

        :param writes: True for a DELETE, False for a HEAD
        """
        path = self.container_path(container)
        method = 'DELETE' if writes else 'HEAD'
        for name in names:
            for url in self.proxy_urls:
                self._ask(method, f'{path}/{quote(name)}', url=url)

    def refresh(self, container: str) -> None:
        """Make the proxies look up the counts of a container again."""
        self._request('POST', self.container_path(container))

    def stored_times(self, container: str) -> dict[str, float]:
        """Return the timestamp of each object, by its name.

        A proxy takes it when all filters have passed the upload on.
        """
        times = {}
        marker = ''
        while rows := self._page(container, marker):
            for row in rows:
                moment = datetime.fromisoformat(row['last_modified'])
                utc = moment.replace(tzinfo=timezone.utc)
                times[row['name']] = utc.timestamp()
            marker = rows[-1]['name']
        return times

    def _page(self, container: str, marker: str) -> list[Mapping[str, str]]:
        # no limit: the default of the cluster is its maximum
        query = urlencode({'format': 'json', 'marker': marker})
        path = f'{self.container_path(container)}?{query}'
        return json.loads(self._request('GET', path).body or '[]')

    def _request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self._checked(self._ask(method, path, headers), method, path)

    def _checked(self, answer: Answer, method: str, path: str) -> Answer:
        if not answer.is_success:
            url = f'{self.proxy_urls[0]}{path}'
            raise BenchError(
                f'{method} {url} was answered {answer.status}{answer.reason}'
            )
        return answer

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        url: str = '',
    ) -> Answer:
        sent = {'X-Auth-Token': self.token, **(headers or {})}
        target = f'{url or self.proxy_urls[0]}{path}'
        return ask(method, target, sent, self.is_insecure)
