# SPDX-License-Identifier: Apache-2.0
"""How many objects each shard really holds.

No client may ask for a backing container, so this looks where Swift keeps
them: in the container databases of the cluster's devices.
"""

from pathlib import Path

from swift.common.request_helpers import split_reserved_name
from swift.container.backend import ContainerBroker

from shardmw.placement import key_of, logical_key


def objects_by_shard(devices: Path, container: str) -> dict[int, int]:
    """``{shard: objects}`` of a container, from one replica of each.

    :param devices: below it, ``NODE/DEVICE`` folders hold the data
    """
    counts = {}
    for database in devices.glob('*/*/containers/*/*/*/*.db'):
        info = ContainerBroker(str(database)).get_info()
        if logical_key(info['container']) == key_of(container):
            *_owner, shard = split_reserved_name(info['container'])
            counts[int(shard)] = info['object_count']
    return dict(sorted(counts.items()))
