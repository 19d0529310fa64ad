# SPDX-License-Identifier: Apache-2.0
"""URLs of proxies: which can be used, and whom to trust with https."""

import ssl
from urllib.parse import urlsplit

from shardmw.bench.errors import BenchError

# What a server seems to do that answers without TLS.
_NO_TLS = frozenset({'WRONG_VERSION_NUMBER', 'RECORD_LAYER_FAILURE'})


def tls_context(is_insecure: bool) -> ssl.SSLContext:
    """What servers to trust, as the system and ``SSL_CERT_FILE`` say.

    :param is_insecure: trust all
    """
    context = ssl.create_default_context()
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def tls_problem(err: Exception, netloc: str) -> str | None:
    """What was wrong with TLS, and what to do; None if that was not it.

    :param netloc: host and port of the server
    """
    if isinstance(err, ssl.SSLCertVerificationError):
        return (
            f'{netloc} is not trusted ({err.verify_message}): put its CA '
            'into SSL_CERT_FILE, or choose --insecure'
        )
    if isinstance(err, ssl.SSLError) and err.reason in _NO_TLS:
        return f'{netloc} speaks no TLS: write http:// in the URL'
    return None


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
