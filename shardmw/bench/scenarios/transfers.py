# SPDX-License-Identifier: Apache-2.0
"""What scenarios share that write and read objects of some size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.load.sources import Reads, Uploads
from shardmw.bench.load.stage import Ledger, Stage
from shardmw.bench.load.turns import phase_of, rotated
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.scenarios.parameters import LoadParameters
from shardmw.bench.site import Site

WRITE = 'write'
READ = 'read'

# What loads of larger objects leave would fill the disk.
_LARGE_BYTES = 1 << 20

# More than this would take long to upload before.
_READ_BYTES = 128 << 20


class Transfer(NamedTuple):
    """A load of one size.

    :param work: :data:`WRITE` or :data:`READ`
    :param count: of operations; None for as many as there's time for
    """

    work: str
    size: int
    clients: int
    count: int | None = None

    @property
    def conditions(self) -> dict[str, object]:
        """As runs have them."""
        return {'clients': self.clients, 'size': self.size}


def measure(
    stage: Stage,
    keep: Callable[[Mapping[str, object]], None],
    transfers: Iterable[Transfer],
    objects: int = 0,
) -> dict[str, object]:
    """Do all of them on a plain container and a sharded one, in turns.

    The stage's parameters have ``shards``.

    :param objects: that there are to read in a container, if they're small
    """
    parameters = stage.parameters
    kinds = kinds_of(parameters.shards)
    steps = [
        (turn, transfer, kind)
        for turn in range(parameters.rounds)
        for transfer in transfers
        for kind in rotated(kinds, turn)
    ]
    ledger = Ledger(stage, keep, len(steps))
    with stage.site(parameters.cluster()) as site:
        shelves = _Shelves(site, objects)
        for turn, transfer, kind in steps:
            if transfer.work == WRITE:
                _write(site, ledger, parameters, turn, transfer, kind)
            else:
                load = site.load(
                    shelves.reads(kind, transfer.size),
                    transfer.clients,
                    seconds=parameters.seconds,
                )
                ledger.measure(load, READ, kind, turn, **transfer.conditions)
    return ledger.figures


class _Shelves:
    """Containers with objects to read; made when they're first needed."""

    def __init__(self, site: Site, objects: int) -> None:
        self._site = site
        self._objects = objects
        self._made: dict[tuple[Kind, int], str] = {}

    def reads(self, kind: Kind, size: int) -> Reads:
        """Reads from the one of this kind with objects of this size."""
        names = names_to_read(self._objects, size)
        if (kind, size) not in self._made:
            container = self._site.make(kind, names)
            self._site.populate(container, names, size)
            self._site.prepare(container, False, 0)
            self._made[kind, size] = container
        path = self._site.container_path(self._made[kind, size])
        return Reads(path, names, shuffled=True)


def _write(
    site: Site,
    ledger: Ledger,
    parameters: LoadParameters,
    turn: int,
    transfer: Transfer,
    kind: Kind,
) -> None:
    container = site.make(kind)
    site.prepare(container, True, phase_of(turn, parameters.rounds))
    load = site.load(
        Uploads(site.container_path(container), transfer.size),
        transfer.clients,
        seconds=None if transfer.count else parameters.seconds,
        count=transfer.count,
    )
    ledger.measure(load, WRITE, kind, turn, **transfer.conditions)
    if transfer.size >= _LARGE_BYTES:
        site.remove(container)


def kinds_of(shards: Sequence[int]) -> list[Kind]:
    """The plain container, and sharded ones. Pure."""
    return [PLAIN, *map(sharded, shards)]


def names_to_read(objects: int, size: int) -> Names:
    """So many objects, or fewer of a size that is large. Pure."""
    return FlatNames(max(1, min(objects, _READ_BYTES // max(1, size))))
