# SPDX-License-Identifier: Apache-2.0
"""Rings that change while the servers of a cluster run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shardmw_saio.rings import PART_POWER, RingDevices, write_rings
from swift.common.ring import RingBuilder
from swift.common.ring.ring import DEFAULT_RELOAD_TIME

#: The time until all servers and daemons have loaded a new ring.
RELOAD_SECONDS = DEFAULT_RELOAD_TIME + 1

REPLICAS = 3

#: How often a ring is rebalanced. Each time, at most one replica of a
#: partition moves.
REBALANCES = 4

_SEED = 'faults'


class Rings:
    """The rings of a cluster.

    Each device has a spare device on the same node, which rings do not use at
    first.

    :param etc: the folder of the rings
    :param devices: the devices of each ring, as arguments of its builder
    """

    def __init__(self, etc: Path, devices: RingDevices) -> None:
        self._etc = etc
        self._devices = devices
        self._builders: dict[str, RingBuilder] = {}

    @property
    def have_changed(self) -> bool:
        """Return True if the rings differ from those of the cluster."""
        return bool(self._builders)

    def restore(self) -> None:
        """Write the rings of the cluster, without spare devices."""
        write_rings(self._etc, REPLICAS, self._devices)
        self._builders = {}

    def begin(self, replicas: int) -> None:
        """Write rings with a number of replicas."""
        self._builders = {
            name: _builder(devices, replicas)
            for name, devices in self._devices.items()
        }
        self._write()

    def move(self) -> None:
        """Move half of the partitions to the spare devices.

        All replicas of some partitions move.
        """
        self._change(_use_spares)

    def grow(self) -> None:
        """Give each partition three replicas."""
        self._change(lambda builder: builder.set_replicas(REPLICAS))

    def _change(self, change: Callable[[RingBuilder], None]) -> None:
        for builder in self._builders.values():
            change(builder)
            for number in range(REBALANCES):
                builder.rebalance(seed=f'{_SEED} {number}')
        self._write()

    def _write(self) -> None:
        for name, builder in self._builders.items():
            new = self._etc / f'{name}.ring.gz.new'
            builder.get_ring().save(str(new))
            new.replace(self._etc / f'{name}.ring.gz')


def spare_of(device: str) -> str:
    """Return the name of the spare device beside a device."""
    return f'{device}-spare'


def _builder(
    devices: Sequence[Mapping[str, object]], replicas: int
) -> RingBuilder:
    builder = RingBuilder(PART_POWER, replicas, min_part_hours=0)
    for device in devices:
        builder.add_dev(dict(device))
    for number, device in enumerate(devices, len(devices)):
        spare = {'id': number, 'device': spare_of(device['device'])}
        builder.add_dev({**device, **spare, 'weight': 0.0})
    builder.rebalance(seed=_SEED)
    return builder


def _use_spares(builder: RingBuilder) -> None:
    for device in builder.devs:
        builder.set_dev_weight(device['id'], 1.0)
