# SPDX-License-Identifier: Apache-2.0
"""Send requests to single proxies, past load balancers and HTTP proxies."""

import http.client
import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from shardmw.admin.doctor.proxies import Proxy, clock_difference
from shardmw.reshard.errors import AdminError

#: How many proxies to ask at once.
AT_ONCE = 16

INFO_PATH = '/info'
SECTION = 'shardmw'


class NoAnswerError(Exception):
    """A proxy did not answer. The text says why."""


class Reply(NamedTuple):
    """The whole answer to a request."""

    status: int
    headers: Message
    body: bytes


def url_of(address: str) -> str:
    """Return the URL of a proxy's address, ``HOST:PORT`` or a URL.

    :raises AdminError: if it is neither
    """
    url = address if '://' in address else f'http://{address}'
    try:
        parts = urlsplit(url)
        has_place = bool(parts.hostname) and (parts.port or '://' in address)
    except ValueError:
        has_place = False
    if (
        not has_place
        or parts.scheme not in ('http', 'https')
        or parts.path.strip('/')
        or parts.query
    ):
        raise AdminError(
            f'{address}: not the address of a proxy, like 10.0.0.7:8080 or '
            'https://proxy-7.example.com'
        )
    return f'{parts.scheme}://{parts.netloc}'


def exchange(
    url: str,
    method: str,
    path: str,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Reply:
    """Send a request to a proxy and return its answer.

    :param url: the URL of the proxy
    :param path: the quoted path, with the query
    :param timeout: how many seconds the proxy may be silent
    :raises NoAnswerError: if there is no answer
    """
    parts = urlsplit(url)
    kind = http.client.HTTPConnection
    if parts.scheme == 'https':
        kind = http.client.HTTPSConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())
    except (OSError, http.client.HTTPException) as err:
        reason = str(err) or type(err).__name__
        raise NoAnswerError(f'it does not answer: {reason}') from err
    except ValueError:
        # The text of the error may have the token.
        raise NoAnswerError(
            'the token or the storage URL has characters that HTTP does not '
            'allow'
        ) from None
    finally:
        connection.close()


def ask_all(urls: Iterable[str], timeout: float) -> list[Proxy]:
    """Return what the ``/info`` of proxies shows, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda url: _ask(url, timeout), urls))


def _ask(url: str, timeout: float) -> Proxy:
    before = time.time()
    try:
        reply = exchange(url, 'GET', INFO_PATH, timeout)
    except NoAnswerError as err:
        return Proxy(url, problem=str(err))
    after = time.time()
    if reply.status != 200:
        return Proxy(
            url,
            problem=f'GET {INFO_PATH} answered {reply.status}: expose_info '
            'must be true in [app:proxy-server]',
        )
    try:
        info = json.loads(reply.body)
        section = info.get(SECTION)
        date = parsedate_to_datetime(reply.headers['Date']).timestamp()
    except (AttributeError, TypeError, ValueError):
        return Proxy(url, problem=f'GET {INFO_PATH} is not that of a Swift')
    difference = clock_difference(date, before, after)
    return Proxy(url, section, clock_seconds=difference)
