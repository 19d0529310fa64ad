# SPDX-License-Identifier: Apache-2.0
"""Single requests, which nobody measures."""

import errno
import http.client
import os
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from shardmw.bench.errors import BenchError
from shardmw.bench.tls import tls_context, tls_problem

_TIMEOUT_SECONDS = 120
_REASON_BYTES = 200

# A busy server may need another attempt.
_PAUSES_SECONDS = (0.2, 1, 5)


class Answer(NamedTuple):
    """A whole response; names of headers are taken in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """What a text says of a failure: empty, or such as `` (No policy)``.

        Pages for browsers are left out.
        """
        line = self.body[:_REASON_BYTES].decode(errors='replace').strip()
        line = ' '.join(line.split())
        return f' ({line})' if line and not line.startswith('<') else ''


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    is_insecure: bool = False,
) -> Answer:
    """Send a request without a body.

    :param url: with its path, quoted, and its query
    :param is_insecure: whether the certificate is not checked
    :raises BenchError: if there's no answer, or no such URL
    """
    connection = _connection(url, is_insecure)
    parts = urlsplit(url)
    target = f'{parts.path or "/"}{"?" if parts.query else ""}{parts.query}'
    try:
        connection.request(method, target, headers=dict(headers))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    except (OSError, http.client.HTTPException) as err:
        raise BenchError(
            tls_problem(err, parts.netloc)
            or f'{method} {url} failed ({_reason(err)}): is a proxy there?'
        ) from err
    except ValueError as err:
        # its text may have a key or a token in it
        raise BenchError(
            f'{method} {url} cannot be sent: the user, the key or the token '
            'has characters that no header of HTTP takes'
        ) from err
    finally:
        connection.close()


def ask_again(
    method: str,
    url: str,
    headers: Mapping[str, str],
    is_insecure: bool = False,
) -> Answer:
    """The same, sent again where a server fails (5xx)."""
    for pause in _PAUSES_SECONDS:
        answer = ask(method, url, headers, is_insecure)
        if answer.status < 500:
            return answer
        time.sleep(pause)
    return ask(method, url, headers, is_insecure)


def check_url(url: str) -> None:
    """Refuse what is no URL that requests can be sent to.

    :raises BenchError: if so
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ('http', 'https') and parts.hostname
        good = good and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise BenchError(
            f'{url!r} is no URL: write http://host:port or https://host'
        )


def _connection(url: str, is_insecure: bool) -> http.client.HTTPConnection:
    check_url(url)
    parts = urlsplit(url)
    if parts.scheme == 'http':
        return http.client.HTTPConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS
        )
    return http.client.HTTPSConnection(
        parts.hostname,
        parts.port,
        timeout=_TIMEOUT_SECONDS,
        context=tls_context(is_insecure),
    )


def _reason(err: Exception) -> str:
    """Return the reason of an error in one line.

    Sockets of green threads have another text for the system's errors.
    """
    if isinstance(err, ConnectionError) and err.errno in errno.errorcode:
        return os.strerror(err.errno)
    reason = getattr(err, 'strerror', None) or str(err) or repr(err)
    return ' '.join(reason.split())
