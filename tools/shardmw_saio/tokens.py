# SPDX-License-Identifier: Apache-2.0
"""Tokens that need no memcached, for Swift before 2.36.

Its tempauth ignores the options of Fernet tokens, and has its tokens in
memcached only.
"""

import hashlib
import json
import os
from pathlib import Path

#: The option of tempauth that asks for tokens without memcached.
OPTION = 'active_fernet_key_id'

#: The folder of tokens, next to the configuration of the proxies.
FOLDER = 'tokens'


class TokenFiles:
    """Keeps tempauth's tokens, with the methods of a memcached client.

    All proxies of a cluster use the same folder. tempauth checks itself
    whether a token has expired.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def get(self, key: str) -> object:
        """Return the value of a key, or None."""
        try:
            return json.loads(self._path(key).read_text())
        except FileNotFoundError:
            return None

    def set(self, key: str, value: object, **_how: object) -> None:
        """Store a value in one step: another proxy may store one, too."""
        path = self._path(key)
        unfinished = path.with_suffix(f'.{os.getpid()}')
        unfinished.write_text(json.dumps(value))
        unfinished.replace(path)

    def _path(self, key: str) -> Path:
        # A client may send a token of any length and any characters.
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


def keep_without_memcached(conf: Path) -> None:
    """Have tempauth use files if a proxy is to have Fernet tokens but cannot.

    :param conf: the proxy's configuration
    """
    if OPTION not in conf.read_text():
        return
    from swift.common.middleware import tempauth

    if not hasattr(tempauth, 'fernet'):  # before Swift 2.36
        files = TokenFiles(conf.with_name(FOLDER))
        tempauth.cache_from_env = lambda env: files
