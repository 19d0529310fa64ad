# SPDX-License-Identifier: Apache-2.0
"""Count the containers that were sharded, by the names of databases. Pure."""

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

from shardmw.core.placement import (
    backing_base,
    can_be_sharded,
    hidden_account,
    is_hidden_account,
    parse_backing,
)
from test.conformance.databases import ContainerName

# The prefix of Swift's own accounts, such as that of the expirer's queue.
# Storage servers create containers there without a proxy.
_HIDDEN_ACCOUNT = '.'


@dataclass(frozen=True)
class Census:
    """The number of containers of each kind that were created.

    :param logical: containers of clients and of old versions of objects
    :param sharded: logical containers with all of their backing containers
    :param backing: backing containers
    :param unsharded: the names of the other logical containers, as
                      'account/container'
    """

    logical: int
    sharded: int
    backing: int
    unsharded: tuple[str, ...]


def take_census(names: Set[ContainerName], shards: int) -> Census:
    """Count containers.

    :param shards: the shards that each logical container should have; 0 if it
                   should be plain
    """
    backing = _layouts(names)
    logical = {each for each in names if _is_logical(each)}
    sharded = {
        each
        for each in logical
        if any(
            found >= set(range(shards))
            for found in backing[
                hidden_account(each.account), backing_base(each.container)
            ].values()
        )
    }
    return Census(
        logical=len(logical),
        sharded=len(sharded) if shards else 0,
        backing=sum(
            len(found)
            for layouts in backing.values()
            for found in layouts.values()
        ),
        unsharded=tuple(sorted(map('/'.join, logical - sharded))),
    )


def _is_logical(name: ContainerName) -> bool:
    is_hidden = name.account.startswith(_HIDDEN_ACCOUNT)
    return can_be_sharded(name.container) and not is_hidden


def _layouts(
    names: Set[ContainerName],
) -> dict[tuple[str, str], dict[str, set[int]]]:
    """Return the shards that exist.

    :returns: the shards by hidden account and base of the names, then by
              layout
    """
    layouts = defaultdict(lambda: defaultdict(set))
    for each in names:
        if is_hidden_account(each.account):
            name = parse_backing(each.container)
            if name:
                layouts[each.account, name.base][name.layout_id].add(
                    name.shard
                )
    return layouts
