# SPDX-License-Identifier: Apache-2.0
"""How a cluster is logged in to: by python-swiftclient, or with a token."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import requests
from swiftclient.client import get_auth
from swiftclient.exceptions import ClientException

from shardmw.bench.errors import BenchError
from shardmw.bench.load.urls import check_url
from shardmw.bench.targets.asking import failure_of, unsendable

V1 = '1'

_REFUSED = (401, 403)

# A busy server may need another attempt.
_PAUSES_SECONDS = (0.2, 1, 5)


@dataclass(frozen=True)
class Access:
    """What a login gives.

    :param storage_url: of the account, such as
                        ``https://swift.example.com/v1/AUTH_test``
    :param is_insecure: whether the certificate is not checked
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


@dataclass(frozen=True)
class PasswordAuth:
    """A user and a key, which auth v1 or Keystone gives a token for.

    :param version: of the auth, as python-swiftclient has it
    :param os_options: of Keystone, likewise
    """

    auth_url: str
    user: str
    key: str = field(repr=False)
    is_insecure: bool = False
    version: str = V1
    os_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def login(self) -> Access:
        """Ask for a token.

        :raises BenchError: if there is none, and why
        """
        check_url(self.auth_url)
        pauses = iter(_PAUSES_SECONDS)
        while True:
            try:
                return self._login()
            except ClientException as err:
                pause = next(pauses, None)
                if pause is None or (err.http_status or 0) < 500:
                    raise self._refusal(err) from err
            time.sleep(pause)

    def _login(self) -> Access:
        try:
            url, token = get_auth(
                *(self.auth_url, self.user, self.key),
                auth_version=self.version,
                os_options=dict(self.os_options),
                insecure=self.is_insecure,
                # whom other requests trust, too
                cacert=ssl.get_default_verify_paths().cafile,
            )
        except ValueError as err:
            raise unsendable('GET', self.auth_url) from err
        except (OSError, requests.RequestException) as err:
            raise failure_of('GET', self.auth_url, err) from err
        if not (url and token):
            raise ClientException('no token', http_status=200)
        return Access(url, token, self.is_insecure)

    def _refusal(self, err: ClientException) -> BenchError:
        url = self.auth_url
        if err.http_status in _REFUSED:
            return BenchError(
                f'{url} refuses the user {self.user!r} ({err.http_status}): '
                'look at the user and the key'
            )
        if self.version != V1:
            reason = ' '.join(str(err).split())
            return BenchError(f'{url} gave no token: {reason}')
        return BenchError(
            f'{url} answered {err.http_status} to the login and gave no '
            'token: write a URL of auth v1, such as '
            'http://host:port/auth/v1.0'
        )


@dataclass(frozen=True)
class TokenAuth:
    """A token that somebody else got."""

    storage_url: str
    token: str = field(repr=False)
    is_insecure: bool = False

    def login(self) -> Access:
        """Return the access that the token gives; nothing is asked.

        :raises BenchError: if the URL is none of an account
        """
        return Access(self.storage_url, self.token, self.is_insecure)


Auth = PasswordAuth | TokenAuth
