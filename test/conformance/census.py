# SPDX-License-Identifier: Apache-2.0
"""Count the containers that were sharded, by the names that exist. Pure."""

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

from shardmw.placement import (
    backing_base,
    can_be_sharded,
    hidden_account,
    is_hidden_account,
    parse_backing,
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

    :param shards: how many each logical one should have; 0 for none
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
    """Return the shards that there are.

    :returns: by hidden account and the base of the names, then by layout
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
