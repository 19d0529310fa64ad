# SPDX-License-Identifier: Apache-2.0
"""How many objects each shard really holds.

No client may ask for a backing container, so this module looks where Swift
keeps them: in the container databases of the cluster's devices.
"""

from pathlib import Path

from swift.container.backend import ContainerBroker

from shardmw.placement import backing_base, is_hidden_account, parse_backing


def objects_by_shard(devices: Path, container: str) -> dict[int, int]:
    """Return the number of objects in each shard, from one replica of each.

    :param devices: the folder with the data, in ``NODE/DEVICE`` folders
    :param container: a container whose name is used in one account only
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
