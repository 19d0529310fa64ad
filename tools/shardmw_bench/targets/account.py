# SPDX-License-Identifier: Apache-2.0
"""Logins, and requests to an account that are not measured."""

import contextlib
import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import swiftclient
from requests.exceptions import InvalidHeader, RequestException
from shardmw_saio import Cluster
from swift.common.utils import last_modified_date_to_timestamp
from swiftclient.exceptions import ClientException

from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, Kind
from shardmw_bench.load.connection import check_url, tls_problem

_SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
_SHARD_DEPTH_HEADER = 'X-Container-Shard-Depth'
_POLICY_HEADER = 'X-Storage-Policy'

# Only in the response to a HEAD of an account, not of a container.
_ACCOUNT_HEADER = 'x-account-container-count'

_USER = 'test:tester'

_REFUSED = (401, 403)
_V1 = '1'


@dataclass(frozen=True)
class Auth:
    """Access to an account; fields as in :class:`swiftclient.Connection`.

    A user has a URL for logins, or the URL of the account and a token.
    """

    authurl: str | None = None
    user: str = ''
    key: str = field(default='', repr=False)
    auth_version: str = _V1
    os_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    preauthurl: str | None = None
    preauthtoken: str | None = field(default=None, repr=False)
    insecure: bool = False


class ContainerHead(NamedTuple):
    """The counts in a HEAD of a container.

    :param shards: None if this filter does not shard it
    """

    objects: int
    shards: int | None


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn failures of requests into BenchErrors of one line."""
    try:
        yield
    except ClientException as err:
        raise BenchError(' '.join(str(err).split())) from err
    except (InvalidHeader, UnicodeError) as err:
        # its text may have a key or a token in it
        raise BenchError(
            'a request cannot be sent: the user, the key or the token has '
            'characters that no header of HTTP takes'
        ) from err
    except RequestException as err:
        netloc = urlsplit(err.request.url).netloc if err.request else 'the URL'
        cause = _cause_of(err)
        reason = getattr(cause, 'strerror', None) or str(cause) or repr(cause)
        raise BenchError(
            tls_problem(cause, netloc)
            or f'{netloc} failed ({" ".join(reason.split())}): is a proxy '
            'there?'
        ) from err
    except ValueError as err:
        raise BenchError(f'a request cannot be sent: {err}') from err


def _cause_of(err: BaseException) -> BaseException:
    """Return the innermost exception that a library has wrapped."""
    for inner in (err.__cause__, *err.args, getattr(err, 'reason', None)):
        if isinstance(inner, BaseException):
            return _cause_of(inner)
    return err


class Account:
    """An account to which one has logged in.

    The token is renewed after it has expired, if there is a way to log in.
    Requests are repeated after a 5xx. Methods raise BenchError if a request
    fails, and so does the login.

    :param proxy_urls: of all proxies, if not only that of the account
    """

    def __init__(self, auth: Auth, proxy_urls: Iterable[str] = ()) -> None:
        check_url(auth.authurl or auth.preauthurl)
        self.is_insecure = auth.insecure
        # the load uses no HTTP proxy, so other requests must not, either
        os.environ['no_proxy'] = '*'
        paths = ssl.get_default_verify_paths()
        self._tls = {'cacert': paths.cafile or paths.capath}
        self._swift = swiftclient.Connection(
            **vars(auth),
            **self._tls,
            retries=2,
            starting_backoff=0.5,
            timeout=120,
        )
        if auth.authurl:
            self._login()
        parts = urlsplit(self._swift.url)
        self.path = parts.path.rstrip('/')
        self.name = self.path.rpartition('/')[2]
        if self.path.count('/') < 2:
            raise BenchError(
                f'{self._swift.url!r} names no account: write '
                'http://host:port/v1/ACCOUNT'
            )
        own_url = f'{parts.scheme}://{parts.netloc}'
        self.proxy_urls = tuple(proxy_urls) or (own_url,)

    @classmethod
    def of_cluster(cls, cluster: Cluster) -> 'Account':
        auth = Auth(cluster.auth_url, _USER, cluster.users[_USER])
        return cls(auth, cluster.proxy_urls)

    @property
    def token(self) -> str:
        return self._swift.token

    def container_path(self, container: str) -> str:
        return f'{self.path}/{quote(container, safe="")}'

    @_told()
    def check(self) -> None:
        """Raise BenchError if the account cannot be used."""
        url = f'{self.proxy_urls[0]}{self.path}'
        try:
            headers = self._swift.head_account()
        except ClientException as err:
            if err.http_status not in _REFUSED:
                raise
            raise BenchError(
                f'{url} refuses the token ({err.http_status}), which may '
                'have expired: get a new one for this account'
            ) from err
        if _ACCOUNT_HEADER not in headers:
            raise BenchError(
                f'{url} is no account: write http://host:port/v1/ACCOUNT'
            )

    def renew(self) -> None:
        """Log in again if there is a way to, or else check the token."""
        if self._swift.authurl:
            self._login()
        else:
            self.check()

    @_told()
    def features(self) -> Mapping[str, Mapping[str, object]]:
        """Return the content of /info, or {} if the cluster hides it."""
        try:
            return self._swift.get_capabilities()
        except (ClientException, ValueError):
            return {}

    @_told()
    def put(
        self, container: str, kind: Kind = PLAIN, policy: str | None = None
    ) -> None:
        headers = {
            _SHARD_COUNT_HEADER: kind.shards,
            _SHARD_DEPTH_HEADER: kind.depth,
            _POLICY_HEADER: policy,
        }
        self._swift.put_container(
            container, {k: str(v) for k, v in headers.items() if v}
        )

    @_told()
    def head(self, container: str) -> ContainerHead | None:
        """Return the counts of a container; None if it does not exist."""
        try:
            # rows may be newer than the sums that the proxies cache
            headers = self._swift.head_container(
                container, {'X-Newest': 'true'}
            )
        except ClientException as err:
            if err.http_status == 404:
                return None
            raise
        shards = headers.get(_SHARD_COUNT_HEADER.lower())
        return ContainerHead(
            int(headers.get('x-container-object-count', 0)),
            int(shards) if shards else None,
        )

    @_told()
    def delete(self, container: str) -> int:
        """Delete a container, and return the status."""
        try:
            self._swift.delete_container(container)
        except ClientException as err:
            return err.http_status
        return 204

    def names(self, container: str, **query: object) -> list[str]:
        """Return the names of all rows of a listing, in their order."""
        return [
            row.get('name') or row['subdir']
            for row in self._listing(container, **query)
        ]

    def stored_times(self, container: str) -> dict[str, float]:
        """Return when a proxy forwarded each object, by its name."""
        return {
            row['name']: float(
                last_modified_date_to_timestamp(row['last_modified'])
            )
            for row in self._listing(container)
        }

    @_told()
    def store(self, container: str, name: str) -> None:
        self._swift.put_object(container, name, b'')

    @_told()
    def refresh(self, container: str) -> None:
        """Make the proxies look up the counts of a container again."""
        self._swift.post_container(container, {})

    @_told()
    def miss(self, container: str, names: Iterable[str], writes: bool) -> None:
        """Write (DELETE) or read (HEAD) missing objects through each proxy."""
        ask = swiftclient.client.head_object
        if writes:
            ask = swiftclient.client.delete_object
        for proxy, name in product(self._proxies(), names):
            with contextlib.suppress(ClientException):
                ask('', self.token, container, name, http_conn=proxy)

    @_told()
    def warm_up(self, container: str) -> None:
        """Create a container, and upload an object through each proxy."""
        self.put(container)
        upload = swiftclient.client.put_object
        for proxy in self._proxies():
            upload('', self.token, container, 'o', b'', http_conn=proxy)

    def _proxies(self) -> list[tuple]:
        return [
            swiftclient.client.http_connection(
                f'{url}{self.path}', insecure=self.is_insecure, **self._tls
            )
            for url in self.proxy_urls
        ]

    @_told()
    def _listing(self, container: str, **query: object) -> list[dict]:
        rows, marker = [], ''
        while page := self._swift.get_container(container, marker, **query)[1]:
            rows += page
            marker = page[-1].get('name') or page[-1]['subdir']
        return rows

    @_told()
    def _login(self) -> None:
        auth = self._swift
        try:
            if all(auth.get_auth()):
                return
            reason = 'no token or no storage URL'
        except ClientException as err:
            if auth.auth_version == _V1 and err.http_status in _REFUSED:
                raise BenchError(
                    f'{auth.authurl} refuses the user {auth.user!r} '
                    f'({err.http_status}): look at the user and the key'
                ) from err
            reason = ' '.join(str(err).split())
        if auth.auth_version == _V1:
            reason += ': write a URL of auth v1, http://host:port/auth/v1.0'
        raise BenchError(f'{auth.authurl} gave no token: {reason}')
