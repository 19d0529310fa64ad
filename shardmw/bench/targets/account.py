# SPDX-License-Identifier: Apache-2.0
"""An account of the cluster: to make containers, and to look into them."""

import json
from collections.abc import Iterable, Mapping
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

# What the HEAD of an account has, and that of a container has not.
_ACCOUNT_HEADER = 'X-Account-Container-Count'

_USER = 'test:tester'

_REFUSED = (401, 403)


class ContainerHead(NamedTuple):
    """What a container says of itself.

    :param shards: by this filter; None if it has none
    """

    objects: int
    shards: int | None


class Account:
    """The account of a cluster's user.

    :param proxy_urls: requests made here go to the first
    :param path: such as ``/v1/AUTH_test``
    :param is_insecure: whether certificates are not checked
    """

    def __init__(
        self,
        proxy_urls: tuple[str, ...],
        path: str,
        token: str,
        is_insecure: bool = False,
    ) -> None:
        self.proxy_urls = proxy_urls
        self.path = path
        self.token = token
        self.is_insecure = is_insecure

    @classmethod
    def login(cls, cluster: Cluster) -> 'Account':
        """Get a token from a cluster's tempauth.

        :raises BenchError: if it gives none
        """
        key = cluster.users[_USER]
        account = cls.of(PasswordAuth(cluster.auth_url, _USER, key).login())
        account.proxy_urls = tuple(cluster.proxy_urls)
        return account

    @classmethod
    def of(cls, access: Access) -> 'Account':
        """The account that a login gave access to."""
        parts = urlsplit(access.storage_url)
        return cls(
            (f'{parts.scheme}://{parts.netloc}',),
            parts.path.rstrip('/'),
            access.token,
            access.is_insecure,
        )

    @property
    def name(self) -> str:
        """Such as ``AUTH_test``."""
        return self.path.rpartition('/')[2]

    def container_path(self, container: str) -> str:
        """The quoted path of a container."""
        return f'{self.path}/{quote(container, safe="")}'

    def is_refused(self) -> bool:
        """Whether the token does not do any more."""
        return self._ask('HEAD', self.path).status in _REFUSED

    def check(self) -> None:
        """See that the account can be used.

        :raises BenchError: if not, and why
        """
        answer = self._ask('HEAD', self.path)
        if answer.status in _REFUSED:
            raise BenchError(
                f'{self.proxy_urls[0]}{self.path} refuses the token '
                f'({answer.status}), which may have expired: get a new one, '
                'of this account'
            )
        self._checked(answer, 'HEAD', self.path)
        if _ACCOUNT_HEADER not in answer.headers:
            raise BenchError(
                f'{self.proxy_urls[0]}{self.path} is no account: write '
                'http://host:port/v1/ACCOUNT'
            )

    def features(self) -> Mapping[str, Mapping[str, object]]:
        """What the cluster says it can do, by feature.

        :raises BenchError: if it doesn't say
        """
        # beside v1, which may itself lie below something
        path = f'{self.path.rsplit("/", 2)[0]}/info'
        answer = self._ask('GET', path)
        try:
            return json.loads(answer.body) if answer.is_success else {}
        except ValueError:
            return {}

    def put(self, container: str, headers: Mapping[str, str]) -> None:
        """Make a container.

        :raises BenchError: if it can't be made
        """
        self._request('PUT', self.container_path(container), headers)

    def head(self, container: str) -> ContainerHead | None:
        """What a container says of itself, None if there is none.

        :raises BenchError: if it can't be asked
        """
        path = self.container_path(container)
        # rows may have come past the proxies, which keep sums for a while
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
        """Delete a container, if there is one; returns the status."""
        return self._ask('DELETE', self.container_path(container)).status

    def page(self, container: str, marker: str = '') -> list[str]:
        """Names of objects after a marker: as many as a page has.

        :raises BenchError: if it can't be listed
        """
        return [row['name'] for row in self._page(container, marker)]

    def store(self, container: str, name: str) -> None:
        """Put an empty object into a container."""
        self._request('PUT', f'{self.container_path(container)}/{quote(name)}')

    def miss(self, container: str, names: Iterable[str], writes: bool) -> None:
        """Ask each proxy for objects that do not exist.

        :param writes: delete them, which is a write
        :raises BenchError: if a proxy does not answer
        """
        path = self.container_path(container)
        method = 'DELETE' if writes else 'HEAD'
        headers = {'X-Auth-Token': self.token}
        for name in names:
            for url in self.proxy_urls:
                target = f'{url}{path}/{quote(name)}'
                ask(method, target, headers, self.is_insecure)

    def refresh(self, container: str) -> None:
        """Have the proxies look anew how much a container holds."""
        self._request('POST', self.container_path(container))

    def stored_times(self, container: str) -> dict[str, float]:
        """When the proxies took each object, by its name, on the wall clock.

        It's the timestamp of the write, to 10 microseconds, which Swift
        gives it when all filters have let it go on.
        """
        times = {}
        marker = ''
        while rows := self._page(container, marker):
            for row in rows:
                times[row['name']] = _wall_time(row['last_modified'])
            marker = rows[-1]['name']
        return times

    def _page(self, container: str, marker: str) -> list[Mapping[str, str]]:
        # without a limit, for it could be more than the cluster gives
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
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> Answer:
        url = f'{self.proxy_urls[0]}{path}'
        sent = {'X-Auth-Token': self.token, **(headers or {})}
        return ask(method, url, sent, self.is_insecure)


def _wall_time(last_modified: str) -> float:
    moment = datetime.fromisoformat(last_modified)
    return moment.replace(tzinfo=timezone.utc).timestamp()
