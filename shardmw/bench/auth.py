# SPDX-License-Identifier: Apache-2.0
"""How a cluster is logged in to: auth v1, or a token that one has."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """What a login gives.

    :param storage_url: of the account, such as
                        ``https://swift.example.com/v1/AUTH_test``
    :param is_insecure: whether the certificate is not checked
    """

    storage_url: str
    token: str
    is_insecure: bool = False


@dataclass(frozen=True)
class V1Auth:
    """A user and a key, which auth v1 gives a token for."""

    auth_url: str
    user: str
    key: str
    is_insecure: bool = False

    def login(self) -> Access:
        """Ask for a token.

        :raises BenchError: if there is none, and why
        """
        raise NotImplementedError


@dataclass(frozen=True)
class TokenAuth:
    """A token that somebody else got."""

    storage_url: str
    token: str
    is_insecure: bool = False

    def login(self) -> Access:
        """Nothing has to be asked.

        :raises BenchError: if the URL is none of an account
        """
        raise NotImplementedError


Auth = V1Auth | TokenAuth
