# SPDX-License-Identifier: Apache-2.0
"""Single requests, which are not measured."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from shardmw.bench.errors import BenchError
from shardmw.bench.load.urls import check_url, tls_context, tls_problem

_TIMEOUT_SECONDS = 120
_REASON_BYTES = 200

# A busy server may need another attempt. The last response counts.
_RETRIES = urllib3.Retry(
    *(3, False, False),
    other=False,
    status_forcelist=range(500, 600),
    allowed_methods=None,
    raise_on_status=False,
    respect_retry_after_header=False,
    backoff_factor=0.5,
)


class Answer(NamedTuple):
    """A response; names of headers are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """Return a plain body such as `` (No policy)``, or ''."""
        line = self.body[:_REASON_BYTES].decode(errors='replace').strip()
        line = ' '.join(line.split())
        return f' ({line})' if line and not line.startswith('<') else ''


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    is_insecure: bool = False,
) -> Answer:
    """Send a request without a body; retry after a 5xx.

    :param url: with a quoted path
    :raises BenchError: if there is no response, or the URL is invalid
    """
    check_url(url)
    is_tls = url.startswith('https:')
    tls = {'ssl_context': tls_context(is_insecure)} if is_tls else {}
    try:
        with urllib3.PoolManager(
            retries=_RETRIES, timeout=_TIMEOUT_SECONDS, **tls
        ) as http:
            found = http.request(method, url, headers=headers, redirect=False)
        return Answer(found.status, found.headers, found.data)
    except HTTPError as err:
        cause = _cause_of(err)
        reason = getattr(cause, 'strerror', None) or str(cause) or repr(cause)
        raise BenchError(
            tls_problem(cause, urlsplit(url).netloc)
            or f'{method} {url} failed ({" ".join(reason.split())}): is a '
            'proxy there?'
        ) from err
    except ValueError as err:
        # its text may have a key or a token in it
        raise BenchError(
            f'{method} {url} cannot be sent: the user, the key or the token '
            'has characters that no header of HTTP takes'
        ) from err


def _cause_of(err: BaseException) -> BaseException:
    """Return the innermost exception that a library has wrapped."""
    for inner in (err.__cause__, *err.args):
        if isinstance(inner, BaseException):
            return _cause_of(inner)
    return err
