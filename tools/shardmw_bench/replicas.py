# SPDX-License-Identifier: Apache-2.0
"""Empty a device, and replicate with Swift's container-replicator."""

import contextlib
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shardmw_saio import Cluster

from shardmw_bench.databases import Content, content, databases, parts
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import Kind

REPLICATOR = 'container-replicator'

# One pass is enough, unless the machine is too busy.
_MOST_PASSES = 20
_POLL_SECONDS = 0.1

#: The content of each database, by its path.
Contents = Mapping[Path, Content]


def contents(
    cluster: Cluster, account: str, container: str, kind: Kind
) -> dict[Path, Content]:
    """Return the contents of all databases of a container, with replicas.

    :raises BenchError: if one cannot be read, or replicas differ
    """
    found: dict[Path, Content] = {}
    for part in parts(cluster, account, container, kind):
        paths = databases(cluster, part.account, part.container)
        own = {each: content(each) for each in paths}
        if len(own) < cluster.options.replicas or len(set(own.values())) > 1:
            raise BenchError(
                f'{part.container!r} has replicas that differ: {len(own)} of '
                f'{cluster.options.replicas}, with '
                f'{sorted(each.rows for each in own.values())} rows'
            )
        found |= own
    return found


def empty_device(cluster: Cluster, node: int) -> Path:
    """Empty a node's only device while its servers are stopped; return it."""
    (device,) = (cluster.devices_path / str(node)).iterdir()
    names = [f'{kind}-{node}' for kind in ('account', 'container', 'object')]
    for name in names:
        cluster.stop(name)
    for entry in device.iterdir():
        shutil.rmtree(entry)
    for name in names:
        cluster.start(name)
    return device


def converge(
    cluster: Cluster, device: Path, before: Contents
) -> tuple[int, list[dict[str, float]]]:
    """Run the replicator until a device is complete again.

    :param before: the content of all devices before the loss
    :returns: the number of runs, and the device's moments until the end
    :raises BenchError: if the device is incomplete after many passes
    :raises SaioError: if the replicator fails
    """
    lost = {
        path: each for path, each in before.items() if device in path.parents
    }
    moments: list[dict[str, float]] = []
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        for passes in range(1, _MOST_PASSES + 1):
            run = pool.submit(cluster.daemon, REPLICATOR)
            is_last = False
            while not is_last:
                # check once more after the end of the pass
                is_last = run.done()
                found = _found(lost)
                seconds = time.monotonic() - began
                moments.append(moment(seconds, lost, found))
                if found == lost:
                    run.result()
                    return passes, moments
                time.sleep(_POLL_SECONDS)
            run.result()
    raise BenchError(
        f'{device} is not complete after {_MOST_PASSES} passes of '
        f'{REPLICATOR}: see {cluster.log_path(REPLICATOR)}'
    )


def moment(
    seconds: float, lost: Contents, found: Contents
) -> dict[str, float]:
    """Return the counts of existing rows and complete databases. Pure."""
    return {
        'seconds': round(seconds, 3),
        'rows': sum(each.rows for each in found.values()),
        'databases': sum(
            found.get(path) == each for path, each in lost.items()
        ),
    }


def _found(lost: Contents) -> dict[Path, Content]:
    found = {}
    for path in lost:
        # a database that is being replicated may be unreadable
        with contextlib.suppress(BenchError):
            if path.exists():
                found[path] = content(path)
    return found
