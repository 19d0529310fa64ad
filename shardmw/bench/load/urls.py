# SPDX-License-Identifier: Apache-2.0
"""URLs of proxies, and TLS."""

import ssl
from urllib.parse import urlsplit

from shardmw.bench.errors import BenchError

# Errors of a client whose server answers without TLS.
_NO_TLS = frozenset({'WRONG_VERSION_NUMBER', 'RECORD_LAYER_FAILURE'})


def tls_context(is_insecure: bool) -> ssl.SSLContext:
    """Return the TLS settings of a client.

    :param is_insecure: True to accept any certificate
    """
    context = ssl.create_default_context()
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def tls_problem(err: BaseException, netloc: str) -> str | None:
    """Return the text of a TLS error; None for other errors."""
    if isinstance(err, ssl.SSLCertVerificationError):
        return (
            f'{netloc} is not trusted ({err.verify_message}): put its CA '
            'into SSL_CERT_FILE, or choose --insecure'
        )
    if isinstance(err, ssl.SSLError) and err.reason in _NO_TLS:
        return f'{netloc} speaks no TLS: write http:// in the URL'
    return None


def check_url(url: str) -> None:
    """Raise BenchError if no request can be sent to a URL."""
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
