# SPDX-License-Identifier: Apache-2.0
"""Logins: auth v1, Keystone, or a token."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from swiftclient.client import get_auth
from swiftclient.exceptions import ClientException

from shardmw.bench.errors import BenchError
from shardmw.bench.load.urls import check_url
from shardmw.bench.targets.asking import ask

V1 = '1'


@dataclass(frozen=True)
class Access:
    """The URL of an account and a token: the result of a login.

    A user may have them, so that no login is needed.
    """

    storage_url: str
    token: str = field(repr=False)
    is_insecure: bool = False

    def __post_init__(self) -> None:
        check_url(self.storage_url)
        if len(urlsplit(self.storage_url).path.strip('/').split('/')) < 2:
            raise BenchError(
                f'{self.storage_url!r} names no account: write '
                'http://host:port/v1/ACCOUNT'
            )

    def login(self) -> 'Access':
        return self


@dataclass(frozen=True)
class PasswordAuth:
    """A user and a key, for auth v1 or Keystone.

    :param version: of the auth, as for python-swiftclient
    :param os_options: for Keystone, as for python-swiftclient
    """

    auth_url: str
    user: str
    key: str = field(repr=False)
    is_insecure: bool = False
    version: str = V1
    os_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def login(self) -> Access:
        """Get a token; raise BenchError if there is none."""
        check_url(self.auth_url)
        return self._login_v1() if self.version == V1 else self._keystone()

    def _login_v1(self) -> Access:
        url = self.auth_url
        headers = {'X-Auth-User': self.user, 'X-Auth-Key': self.key}
        answer = ask('GET', url, headers, self.is_insecure)
        if answer.status in (401, 403):
            raise BenchError(
                f'{url} refuses the user {self.user!r} ({answer.status}): '
                'look at the user and the key'
            )
        storage_url = answer.headers.get('X-Storage-Url')
        token = answer.headers.get('X-Auth-Token')
        if not (answer.is_success and storage_url and token):
            raise BenchError(
                f'{url} answered {answer.status} to the login and gave no '
                'token: write a URL of auth v1, such as '
                'http://host:port/auth/v1.0'
            )
        return Access(storage_url, token, self.is_insecure)

    def _keystone(self) -> Access:
        try:
            url, token = get_auth(
                *(self.auth_url, self.user, self.key),
                auth_version=self.version,
                os_options=dict(self.os_options),
                insecure=self.is_insecure,
                cacert=ssl.get_default_verify_paths().cafile,
            )
            if not (url and token):
                raise ClientException('no token or no storage URL')
        except (ClientException, OSError, ValueError) as err:
            reason = ' '.join(str(err).split())
            raise BenchError(
                f'{self.auth_url} gave no token: {reason}'
            ) from err
        return Access(url, token, self.is_insecure)


Auth = PasswordAuth | Access
