# SPDX-License-Identifier: Apache-2.0
"""The empty accounts that Swift's tests expect to exist."""

import contextlib
import http.client
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from test.conformance.errors import ConformanceError

_TIMEOUT_SECONDS = 60


def create_accounts(
    url: str, accounts: Iterable[str], user: str, key: str
) -> None:
    """Create accounts.

    :param url: the URL of the cluster
    :param user: a reseller admin
    :raises ConformanceError: if the cluster refuses to
    """
    credentials = {'X-Auth-User': user, 'X-Auth-Key': key}
    response = _request(url, 'GET', '/auth/v1.0', credentials)
    token = {'X-Auth-Token': response.getheader('X-Auth-Token')}
    for account in accounts:
        # unlike a PUT, a POST creates an account with any setting
        _request(url, 'POST', f'/v1/{account}', token)


def _request(
    url: str, method: str, path: str, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(
        urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS
    )
    with contextlib.closing(connection):
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        response.read()
    if response.status >= 300:
        raise ConformanceError(
            f'the cluster answers {response.status} to {method} {path}'
        )
    return response
