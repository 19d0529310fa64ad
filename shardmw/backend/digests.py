# SPDX-License-Identifier: Apache-2.0
"""Digests of what all proxies of a cluster must have in common.

Two proxies show the same digests in ``GET /info`` if they have the same hash
path, options and memcached servers. Every client can read ``/info``, and must
learn nothing else from it. So the digests are HMACs, whose key is derived from
the hash path of ``swift.conf``, which clients do not know. The derivation is
slow, so that a client cannot try many hash paths or, without the hash path,
any options.
"""

import functools
import hashlib
import hmac
import json
import socket
from collections.abc import Iterable

from swift.common import utils

from shardmw.backend.config import Options

#: How often PBKDF2 applies its function. It takes about 50 ms, once for each
#: process of a proxy.
ITERATIONS = 200_000
SALT = b'shardmw'

#: The length of a digest in hexadecimal digits.
DIGITS = 16

#: How the addresses of memcached servers begin that no other machine reaches.
LOOPBACK = ('127.', 'localhost:', '[::1]:')


class Digests:
    """Makes digests with the key of a hash path.

    :param prefix: Swift's hash path prefix
    :param suffix: Swift's hash path suffix
    """

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self._key = _key(prefix, suffix)

    def hash_path(self) -> str:
        """Return the digest that shows which hash path is in use."""
        return self._of('hash_path', '')

    def of_options(self, options: Options) -> str:
        """Return the digest of the options that all proxies must share."""
        return self._of('options', options.agreed)

    def of_memcached(
        self, servers: Iterable[str], host: str | None = None
    ) -> str:
        """Return the digest of memcached servers, in any order.

        A server with a loopback address is another one on each machine.

        :param host: the name of this machine; None to ask for it
        """
        host = host or socket.gethostname()
        return self._of(
            'memcache',
            sorted(
                f'{each} of {host}' if each.startswith(LOOPBACK) else each
                for each in servers
            ),
        )

    def _of(self, kind: str, value: object) -> str:
        text = json.dumps([kind, value], sort_keys=True).encode()
        digest = hmac.new(self._key, text, hashlib.sha256).hexdigest()
        return digest[:DIGITS]


def local_digests() -> Digests:
    """Return what makes digests with the hash path that this process uses."""
    return Digests(utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX)


@functools.lru_cache(maxsize=1)
def _key(prefix: bytes, suffix: bytes) -> bytes:
    secret = prefix + b'\0' + suffix
    return hashlib.pbkdf2_hmac('sha256', secret, SALT, ITERATIONS)
