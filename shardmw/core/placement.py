# SPDX-License-Identifier: Apache-2.0
"""The place of an object's row: name -> key -> shard -> backing container.

Pure: no request, no I/O. All names are native strings. Stored rows depend on
every function here, so what it returns for a given layout never changes.
"""

import functools
import hashlib
import re
from typing import NamedTuple

from shardmw.core.layout import ID_DIGITS, SHARD_COUNT_LIMIT

#: Swift's prefix of the accounts that clients cannot use, and the character
#: that only Swift may use in a name, before each part.
INTERNAL_PREFIX = '.'
RESERVED = '\0'

#: The name that object versioning gives to the container of old versions.
VERSIONS_COMPONENT = 'versions'

#: The prefix of hidden accounts. Swift's auth filters deny clients accounts
#: whose names begin with a dot. In these accounts, a container server creates
#: a missing database when a row comes; listings would read it, although it
#: lacks all earlier rows. The prefix ``.shards_``, that of the accounts of
#: Swift's own shards, prevents this.
HIDDEN_PREFIX = f'{INTERNAL_PREFIX}shards_shardmw_'

#: The hidden account that lists the accounts with a hidden account: it has a
#: container for each, with the account's name.
REGISTER = HIDDEN_PREFIX

#: The length of the longest backing names, in characters. It is Swift's
#: default limit; unlike that, it cannot be configured.
LONGEST_BACKING_NAME = 256

#: For how many containers to keep the first part of backing names.
CACHED_CONTAINERS = 1024

#: For how many names to keep the shard. A write needs its shard twice: for its
#: row and for its rate.
CACHED_NAMES = 1024

#: The character that comes next after a slash. All names in a directory come
#: before the directory's name with this character in place of its last slash.
AFTER_SLASH = chr(ord('/') + 1)

_LONGEST_SUFFIX = len(f'.{"0" * ID_DIGITS}.{SHARD_COUNT_LIMIT - 1}')
_LONGEST_BASE = LONGEST_BACKING_NAME - _LONGEST_SUFFIX
_SUFFIX = re.compile(rf'\.([0-9a-f]{{{ID_DIGITS}}})\.(0|[1-9][0-9]{{0,3}})')
_DIGEST = re.compile('[0-9a-f]{64}$')
_JUMP_MULTIPLIER = 2862933555777941757
_UINT64 = (1 << 64) - 1


class NameRange(NamedTuple):
    """The range of names of a listing; '' where it has no bound.

    :param prefix: what the names begin with
    :param after: a name that they all come after
    :param before: a name that they all come before
    """

    prefix: str = ''
    after: str = ''
    before: str = ''


ALL_NAMES = NameRange()


class BackingName(NamedTuple):
    """The parts of a backing container's name.

    :param base: the logical container's name, or its digest
    :param layout_id: the id of the layout that the shard belongs to
    :param shard: the index of the shard
    """

    base: str
    layout_id: str
    shard: int


def directory_of(name: str, depth: int) -> str | None:
    """Return the first `depth` components of a name, each with its slash.

    :returns: None if the name has fewer slashes
    """
    end = 0
    for _ in range(depth):
        end = name.find('/', end) + 1
        if not end:
            return None
    return name[:end]


def shard_key(name: str, depth: int) -> str:
    """Return the part of an object's name that selects its shard.

    It is the directory that the first `depth` components make up, or the whole
    name if the depth is 0 or the name has fewer slashes.
    """
    return directory_of(name, depth) or name


def object_key(name: str, depth: int = 0) -> int:
    """Hash the name of an object to an unsigned 64-bit key.

    The key is BLAKE2b (RFC 7693) of the shard key's UTF-8 with a digest of 8
    bytes, read as a little-endian integer.
    """
    key = shard_key(name, depth).encode('utf-8')
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return int.from_bytes(digest, 'little')


def jump_consistent_hash(key: int, buckets: int) -> int:
    """Map a 64-bit key to a bucket in ``0..buckets-1``.

    Growing from n to m buckets moves (m-n)/m of the keys, all of them into
    new buckets. Source: J. Lamping, E. Veach, "A Fast, Minimal Memory,
    Consistent Hash Algorithm", 2014.
    """
    bucket, following = -1, 0
    while following < buckets:
        bucket = following
        key = (key * _JUMP_MULTIPLIER + 1) & _UINT64
        following = int((bucket + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return bucket


@functools.lru_cache(maxsize=CACHED_NAMES)
def shard_of(name: str, shard_count: int, depth: int = 0) -> int:
    """Return the index of the shard that lists an object."""
    return jump_consistent_hash(object_key(name, depth), shard_count)


def shards_of_range(
    names: NameRange, shard_count: int, depth: int = 0
) -> range:
    """Return the indices of the shards that may list names of a range.

    All names of a range that lies within one directory of the depth are in
    one shard.
    """
    if depth and shard_count:
        directory = _directory_of_range(names, depth)
        if directory is not None:
            shard = shard_of(directory, shard_count, depth)
            return range(shard, shard + 1)
    return range(shard_count)


def _directory_of_range(names: NameRange, depth: int) -> str | None:
    """Return the directory of a depth that has all names of a range.

    :returns: None if names of the range may be in several or in none
    """
    directory = directory_of(names.prefix, depth)
    if directory is not None:
        return directory
    directory = directory_of(names.after, depth)
    if directory is None or not names.before:
        return None
    end = directory[:-1] + AFTER_SLASH
    return directory if names.before <= end else None


def hidden_account(account: str) -> str:
    """Return the account that holds the backing containers of another one."""
    return HIDDEN_PREFIX + account


def owner_of(hidden: str) -> str:
    """Return the account whose backing containers a hidden account holds."""
    return hidden.removeprefix(HIDDEN_PREFIX)


def is_hidden_account(account: str) -> bool:
    """Return True for accounts with backing containers and the register."""
    return account.startswith(HIDDEN_PREFIX)


@functools.lru_cache(maxsize=CACHED_CONTAINERS)
def backing_base(container: str) -> str:
    """Return the first part of the names of a container's backing containers.

    It is the container's name, or the beginning of the name and its SHA-256
    in hexadecimal. So backing containers are listed in about the order of
    their containers.
    """
    if has_digest(container):
        digest = hashlib.sha256(container.encode('utf-8')).hexdigest()
        return container[: _LONGEST_BASE - len(digest)] + digest
    return container


def has_digest(container: str) -> bool:
    """Return True if backing names carry the container's digest.

    They do if the name would be too long for Swift, or if the name looks like
    the text that replaces a name that is too long.
    """
    if len(container) < _LONGEST_BASE:
        return False
    return (
        len(container) > _LONGEST_BASE or _DIGEST.search(container) is not None
    )


def backing_prefix(container: str) -> str:
    """Return the common prefix of the names of a container's shards.

    Names of other containers may begin with it, too.
    """
    return f'{backing_base(container)}.'


def backing_container(container: str, layout_id: str, shard: int) -> str:
    """Return the name of one backing container."""
    return f'{backing_base(container)}.{layout_id}.{shard}'


def parse_backing(name: str) -> BackingName | None:
    """Return the parts of a backing container's name.

    :returns: None if the name is not that of a backing container
    """
    base = name.rsplit('.', 2)[0]
    match = _SUFFIX.fullmatch(name, len(base))
    if not match or int(match[2]) >= SHARD_COUNT_LIMIT:
        return None
    return BackingName(base, match[1], int(match[2]))


def versions_owner(container: str) -> str | None:
    """Return the container whose old versions a reserved container holds.

    :returns: None if the container holds no versions
    """
    first, *parts = container.split(RESERVED)
    if first or len(parts) != 2 or parts[0] != VERSIONS_COMPONENT:
        return None
    return parts[1]


def versions_container(container: str) -> str:
    """Return the name of the container of another one's old versions."""
    return f'{RESERVED}{VERSIONS_COMPONENT}{RESERVED}{container}'


def can_be_sharded(container: str) -> bool:
    """Return True for the containers of clients and of their old versions."""
    return not is_reserved(container) or versions_owner(container) is not None


def is_reserved(name: str | None) -> bool:
    """Return True if a name holds the byte that Swift reserves for itself."""
    return name is not None and RESERVED in name
