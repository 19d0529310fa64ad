# SPDX-License-Identifier: Apache-2.0
"""Where an object lies: name -> key -> shard -> backing name.

Pure: no request, no I/O. All names are native strings. Where an object lies
is a promise that stored data depends on; none of it may change.
"""

import hashlib

from swift.common.constraints import (
    MAX_CONTAINER_NAME_LENGTH,
    MAX_OBJECT_NAME_LENGTH,
)
from swift.common.request_helpers import (
    get_reserved_name,
    split_reserved_name,
)
from swift.common.utils import RESERVED_STR

SHORT_COMPONENT = 'shardmw'
LONG_COMPONENT = 'shardmw-long'

#: No container can ever have more shards than this: backing names set aside
#: room for so many, so that growing a container never renames its shards.
SHARD_COUNT_LIMIT = 100_000

_LONGEST_INDEX = str(SHARD_COUNT_LIMIT - 1)
_JUMP_MULTIPLIER = 2862933555777941757
_UINT64 = (1 << 64) - 1


def object_key(name: str) -> int:
    """Hash an object's name to an unsigned 64-bit key.

    BLAKE2b (RFC 7693) of the name's UTF-8 with a digest of 8 bytes, read as
    a little-endian integer.
    """
    digest = hashlib.blake2b(name.encode('utf-8'), digest_size=8).digest()
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


def shard_of(name: str, shard_count: int) -> int:
    """The index of the shard that holds an object."""
    return jump_consistent_hash(object_key(name), shard_count)


def lies_in_root(name: str) -> bool:
    """Whether an object is overflow by rule: its name can't be prefixed.

    Swift's limit is one of characters, and so is this.
    """
    return len(name) >= MAX_OBJECT_NAME_LENGTH


def backing_object(name: str) -> str:
    """The name of an object inside its backing container."""
    return get_reserved_name(name)


def backing_bound(text: str) -> str:
    """A marker or prefix as it is compared with names in a backing container.

    Unlike a name, it may hold any character.
    """
    return RESERVED_STR + text


def backing_container(container: str, shard: int) -> str:
    """The name of one backing container of a logical container."""
    if has_long_name(container):
        return get_reserved_name(
            LONG_COMPONENT, container_digest(container), str(shard)
        )
    return get_reserved_name(SHORT_COMPONENT, container, str(shard))


def has_long_name(container: str) -> bool:
    """Whether a container's backing names carry its digest, not its name."""
    longest = get_reserved_name(SHORT_COMPONENT, container, _LONGEST_INDEX)
    return len(longest) > MAX_CONTAINER_NAME_LENGTH


def container_digest(container: str) -> str:
    """What stands for a long container name in its backing names."""
    return hashlib.sha256(container.encode('utf-8')).hexdigest()


def backing_prefix(container: str) -> str:
    """What the names of all backing containers of a container begin with."""
    return backing_container(container, 0)[:-1]


def logical_key(backing: str) -> tuple[str, str] | None:
    """Which logical container a name in the account listing belongs to.

    :returns: ``(SHORT_COMPONENT, container)`` or ``(LONG_COMPONENT,
              digest)``, as :func:`key_of` gives for the logical container;
              None if the name is not a backing container's.
    """
    try:
        component, owner, index = split_reserved_name(backing)
    except ValueError:
        return None
    if component not in (SHORT_COMPONENT, LONG_COMPONENT):
        return None
    return (component, owner) if index.isdecimal() else None


def key_of(container: str) -> tuple[str, str]:
    """What :func:`logical_key` gives for a container's backing names."""
    if has_long_name(container):
        return LONG_COMPONENT, container_digest(container)
    return SHORT_COMPONENT, container


def is_reserved(name: str | None) -> bool:
    """Whether a name holds the byte that clients may not use."""
    return name is not None and RESERVED_STR in name
