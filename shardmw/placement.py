# SPDX-License-Identifier: Apache-2.0
"""Where an object lies: name -> key -> shard -> backing name.

Pure: no request, no I/O. All names are native strings. Where an object lies
is a promise that stored data depends on; none of it may change.
"""

import functools
import hashlib
from typing import NamedTuple

from swift.common.constraints import (
    MAX_CONTAINER_NAME_LENGTH,
    MAX_OBJECT_NAME_LENGTH,
)
from swift.common.request_helpers import (
    get_reserved_name,
    split_reserved_name,
)
from swift.common.utils import RESERVED_STR

#: Object versioning's name for the container of another's old versions.
VERSIONS_COMPONENT = 'versions'


class Family(NamedTuple):
    """What the names of backing containers begin with.

    :param short: where the logical container's name follows
    :param long: where its digest does
    """

    short: str
    long: str


CLIENTS_FAMILY = Family('shardmw', 'shardmw-long')
VERSIONS_FAMILY = Family('shardmw-versions', 'shardmw-versions-long')

#: What the names of all backing containers begin with, and nothing else.
BACKING_PREFIX = RESERVED_STR + CLIENTS_FAMILY.short

#: No container can ever have more shards than this: backing names set aside
#: room for so many, so that growing a container never renames its shards.
SHARD_COUNT_LIMIT = 100_000

#: Of how many containers the names are kept that each request needs.
CONTAINERS_IN_USE = 1024

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


def versions_owner(container: str) -> str | None:
    """The container whose old versions a hidden one holds, None if no such."""
    if not is_reserved(container):
        return None
    try:
        component, owner = split_reserved_name(container)
    except ValueError:
        return None
    return owner if component == VERSIONS_COMPONENT else None


def versions_container(container: str) -> str:
    """The name of the hidden container that holds another's old versions."""
    return get_reserved_name(VERSIONS_COMPONENT, container)


def can_be_sharded(container: str) -> bool:
    """Whether a container is one of a client's, or of a client's versions."""
    return not is_reserved(container) or versions_owner(container) is not None


def lies_in_root(container: str, name: str) -> bool:
    """Whether an object is overflow by rule: its name can't be prefixed.

    Swift's limit is one of characters, and so is this.
    """
    return len(backing_bound(container, name)) > MAX_OBJECT_NAME_LENGTH


def backing_object(container: str, name: str) -> str:
    """The name of an object inside its backing container.

    Versions have names that are reserved already; those stay.
    """
    return backing_bound(container, name)


def backing_bound(container: str, text: str) -> str:
    """A marker or prefix as it is compared with names in a backing container.

    Unlike a name, it may hold any character.
    """
    return text if is_reserved(container) else RESERVED_STR + text


def logical_name(container: str, backing: str) -> str:
    """The name that an object, or a subdir, has for the client."""
    return backing if is_reserved(container) else backing[1:]


def backing_container(container: str, shard: int) -> str:
    """The name of one backing container of a logical container."""
    return f'{backing_prefix(container)}{shard}'


def has_long_name(container: str) -> bool:
    """Whether a container's backing names carry its digest, not its name."""
    component, _owner = key_of(container)
    return component in (CLIENTS_FAMILY.long, VERSIONS_FAMILY.long)


@functools.lru_cache(maxsize=CONTAINERS_IN_USE)
def backing_prefix(container: str) -> str:
    """What the names of all backing containers of a container begin with."""
    component, owner = key_of(container)
    return get_reserved_name(component, owner, '')


def logical_key(backing: str) -> tuple[str, str] | None:
    """Which logical container a name in the account listing belongs to.

    :returns: what :func:`key_of` gives for the logical container; None if
              the name is not a backing container's.
    """
    try:
        component, owner, index = split_reserved_name(backing)
    except ValueError:
        return None
    if component not in (*CLIENTS_FAMILY, *VERSIONS_FAMILY):
        return None
    return (component, owner) if index.isdecimal() else None


def key_of(container: str) -> tuple[str, str]:
    """What the names of a container's backing containers are made of.

    :returns: the family's short component and the container's name, or the
              long component and the digest of the name
    """
    family, owner = _family_of(container)
    longest = get_reserved_name(family.short, owner, _LONGEST_INDEX)
    if len(longest) <= MAX_CONTAINER_NAME_LENGTH:
        return family.short, owner
    return family.long, hashlib.sha256(owner.encode('utf-8')).hexdigest()


def _family_of(container: str) -> tuple[Family, str]:
    owner = versions_owner(container)
    if owner is None:
        return CLIENTS_FAMILY, container
    return VERSIONS_FAMILY, owner


def is_reserved(name: str | None) -> bool:
    """Whether a name holds the byte that clients may not use."""
    return name is not None and RESERVED_STR in name
