# SPDX-License-Identifier: Apache-2.0
"""Keys of Swift's encryption, which is left of the filter."""

from swift.common.middleware.crypto.crypto_utils import CRYPTO_KEY_CALLBACK
from swift.common.middleware.crypto.keymaster import KeyMasterContext

from shardmw.core.paths import Path


def move_keys(env: dict, path: Path) -> None:
    """Make the keymasters derive the keys of a request from another path.

    Each keymaster has stored the path of the request. An object with a name
    that is not ASCII can be decrypted only if that path is the object's own.

    :param env: the environment of a request, with or without encryption
    """
    fetch = env.get(CRYPTO_KEY_CALLBACK)
    while isinstance(
        context := getattr(fetch, '__self__', None), KeyMasterContext
    ):
        context.account, context.container = path.account, path.container
        fetch = context.alternate_fetch_keys
