# SPDX-License-Identifier: Apache-2.0
"""Which containers were sharded, told by the names that exist. Pure."""

from collections.abc import Set
from dataclasses import dataclass

from shardmw.placement import (
    backing_container,
    can_be_sharded,
    logical_key,
)
from test.conformance.databases import ContainerName

# Of Swift's own, such as the expirer's queue: storage servers create their
# containers, past all proxies.
_HIDDEN_ACCOUNT = '.'


@dataclass(frozen=True)
class Census:
    """How many containers of each kind were made.

    :param logical: those of clients, and those of their objects' versions
    :param sharded: those of them that had all their backing containers
    :param backing: backing containers
    :param unsharded: the names of logical ones without, as 'account/container'
    """

    logical: int
    sharded: int
    backing: int
    unsharded: tuple[str, ...]


def take_census(names: Set[ContainerName], shards: int) -> Census:
    """Count containers.

    :param shards: how many each logical one should have
    """
    backing = {each for each in names if logical_key(each.container)}
    logical = {each for each in names if _is_logical(each)}
    sharded = {each for each in logical if _backing_of(each, shards) <= names}
    return Census(
        logical=len(logical),
        sharded=len(sharded) if shards else 0,
        backing=len(backing),
        unsharded=tuple(sorted(map('/'.join, logical - sharded))),
    )


def _is_logical(name: ContainerName) -> bool:
    is_hidden = name.account.startswith(_HIDDEN_ACCOUNT)
    return can_be_sharded(name.container) and not is_hidden


def _backing_of(name: ContainerName, shards: int) -> set[ContainerName]:
    return {
        ContainerName(name.account, backing_container(name.container, shard))
        for shard in range(shards)
    }
