# SPDX-License-Identifier: Apache-2.0
"""How a cluster is logged in to: auth v1, or a token that one has."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from shardmw.bench.asking import ask_again, check_url
from shardmw.bench.errors import BenchError

_REFUSED = (401, 403)


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
class V1Auth:
    """A user and a key, which auth v1 gives a token for."""

    auth_url: str
    user: str
    key: str = field(repr=False)
    is_insecure: bool = False

    def login(self) -> Access:
        """Ask for a token.

        :raises BenchError: if there is none, and why
        """
        url = self.auth_url
        headers = {'X-Auth-User': self.user, 'X-Auth-Key': self.key}
        answer = ask_again('GET', url, headers, self.is_insecure)
        if answer.status in _REFUSED:
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


@dataclass(frozen=True)
class TokenAuth:
    """A token that somebody else got."""

    storage_url: str
    token: str = field(repr=False)
    is_insecure: bool = False

    def login(self) -> Access:
        """Nothing has to be asked.

        :raises BenchError: if the URL is none of an account
        """
        return Access(self.storage_url, self.token, self.is_insecure)


Auth = V1Auth | TokenAuth
