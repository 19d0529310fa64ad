# SPDX-License-Identifier: Apache-2.0
"""Count the objects of each shard.

Clients cannot read backing containers, so this module reads the container
databases on the devices of the cluster.
"""

from pathlib import Path

from swift.container.backend import ContainerBroker

from shardmw.core.placement import (
    backing_base,
    is_hidden_account,
    parse_backing,
)


def objects_by_shard(devices: Path, container: str) -> dict[int, int]:
    """Return the number of objects in each shard, from one replica of each.

    :param devices: the folder with the data, in ``NODE/DEVICE`` folders
    :param container: a container; no other account has one of this name
    """
    counts = {}
    for database in devices.glob('*/*/containers/*/*/*/*.db'):
        info = ContainerBroker(str(database)).get_info()
        name = parse_backing(info['container'])
        if not name or not is_hidden_account(info['account']):
            continue
        if name.base == backing_base(container):
            counts[name.shard] = info['object_count']
    return dict(sorted(counts.items()))
