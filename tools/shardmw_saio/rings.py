# SPDX-License-Identifier: Apache-2.0
"""Build the rings. They are built again when servers get other ports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

RingDevices = Mapping[str, Sequence[Mapping[str, object]]]

# Swift's container-updater starts a process for each partition of each device
# that has containers, so many partitions keep a small machine busy.
PART_POWER = 3

# The same seed and devices give the same partitions, so data stays in its
# place when only ports change.
_SEED = 'shardmw'


def write_rings(etc: Path, replicas: int, rings: RingDevices) -> None:
    """Build rings from their devices and write them into a folder."""
    # Imported here, as it takes half a second that most commands do not need.
    from swift.common.ring import RingBuilder

    for name, devices in rings.items():
        builder = RingBuilder(PART_POWER, replicas, min_part_hours=0)
        for device in devices:
            builder.add_dev(dict(device))
        builder.rebalance(seed=_SEED)
        unfinished = etc / f'{name}.ring.gz.new'
        builder.get_ring().save(str(unfinished))
        unfinished.replace(etc / f'{name}.ring.gz')
