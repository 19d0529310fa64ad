# SPDX-License-Identifier: Apache-2.0
"""Replicas of container databases: lost with a device, and made whole again.

On an own cluster, by Swift's own container-replicator.
"""

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from shardmw.bench.databases import Content, content, databases, parts
from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.saio import Cluster

REPLICATOR = 'container-replicator'

# A pass makes everything whole, unless the machine is too busy for it.
_MOST_PASSES = 20

_LOOK_SECONDS = 0.1

_SERVERS = ('account', 'container', 'object')

#: What each database holds, by where it is.
Contents = Mapping[Path, Content]


class Moment(NamedTuple):
    """What a device had by a time.

    :param seconds: since the replicator was started
    :param databases: that were whole
    """

    seconds: float
    rows: int
    databases: int


@dataclass(frozen=True)
class Convergence:
    """How a device became whole again.

    :param seconds: from the replicator's start
    :param passes: how often it was started
    :param moments: what the device had on the way, and at its end
    """

    seconds: float
    passes: int
    moments: tuple[Moment, ...]


def contents(
    cluster: Cluster, account: str, container: str, kind: Kind
) -> dict[Path, Content]:
    """What every replica of every database of a container holds.

    :raises BenchError: if one can't be read, or differs from its replicas
    """
    found: dict[Path, Content] = {}
    for part in parts(cluster, account, container, kind):
        replicas = databases(cluster, part.account, part.container)
        own = {each: content(each) for each in replicas}
        if len(own) < cluster.options.replicas or len(set(own.values())) > 1:
            raise BenchError(
                f'{part.container!r} has replicas that differ: {len(own)} of '
                f'{cluster.options.replicas}, with '
                f'{sorted(each.rows for each in own.values())} rows'
            )
        found |= own
    return found


def empty_device(cluster: Cluster, node: int) -> Path:
    """Swap a node's device for an empty one, its servers down meanwhile.

    :param node: one that has a single device
    :returns: the device's folder
    """
    (device,) = (cluster.devices_path / str(node)).iterdir()
    names = [f'{kind}-{node}' for kind in _SERVERS]
    for name in names:
        cluster.stop(name)
    for entry in device.iterdir():
        shutil.rmtree(entry)
    for name in names:
        cluster.start(name)
    return device


def converge(cluster: Cluster, device: Path, before: Contents) -> Convergence:
    """Run the replicator until a device has all that it had.

    :param before: what all devices had
    :raises BenchError: if it doesn't come to that
    :raises SaioError: if the replicator fails
    """
    lost = {
        path: each
        for path, each in before.items()
        if path.is_relative_to(device)
    }
    moments: list[Moment] = []
    began = time.monotonic()
    for passes in range(1, _MOST_PASSES + 1):
        with _replicating(cluster) as is_running:
            while True:
                # looked at once more when it has ended
                is_last = not is_running()
                found = _found(lost)
                seconds = time.monotonic() - began
                moments.append(moment(seconds, lost, found))
                moments[-3:] = without_middle(moments[-3:])
                if found == lost:
                    return Convergence(seconds, passes, tuple(moments))
                if is_last:
                    break
                time.sleep(_LOOK_SECONDS)
    raise BenchError(
        f'{device} is not whole after {_MOST_PASSES} passes of {REPLICATOR}: '
        f'see {cluster.log_path(REPLICATOR)}'
    )


def moment(seconds: float, lost: Contents, found: Contents) -> Moment:
    """What of that which was lost is there. Pure."""
    whole = sum(found.get(path) == each for path, each in lost.items())
    rows = sum(each.rows for each in found.values())
    return Moment(round(seconds, 3), rows, whole)


def without_middle(moments: Sequence[Moment]) -> list[Moment]:
    """Of three moments, those that tell more than the others. Pure."""
    if len({each[1:] for each in moments}) == 1:
        return [moments[0], *moments[1:][-1:]]
    return list(moments)


@contextlib.contextmanager
def _replicating(cluster: Cluster) -> Iterator:
    """A pass of the replicator, which the end of the ``with`` waits for."""
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(cluster.daemon, REPLICATOR)
        yield lambda: not run.done()
        run.result()


def _found(lost: Contents) -> dict[Path, Content]:
    found = {}
    for path in lost:
        # on its way, it may be in no state to be read
        with contextlib.suppress(BenchError):
            if path.exists():
                found[path] = content(path)
    return found
