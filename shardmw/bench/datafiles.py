# SPDX-License-Identifier: Apache-2.0
"""Objects on the disks of an own cluster, only looked at."""

import os
from pathlib import Path

from shardmw.bench.databases import hash_path, partition
from shardmw.bench.errors import BenchError
from shardmw.saio import Cluster


def attribute_bytes(
    cluster: Cluster, account: str, container: str, name: str
) -> dict[str, int]:
    """The extended attributes of an object's file, by name: their lengths.

    :param container: where it really lies, and ``name`` its name there
    :raises BenchError: if there is no such object
    """
    path = data_file(cluster, account, container, name)
    return {
        attribute: len(os.getxattr(path, attribute))
        for attribute in sorted(os.listxattr(path))
    }


def data_file(
    cluster: Cluster, account: str, container: str, name: str
) -> Path:
    """The file of an object, on any of its devices.

    :raises BenchError: if there is none
    """
    digest = hash_path(cluster, account, container, name)
    below = f'objects*/{partition(digest)}/{digest[-3:]}/{digest}/*.data'
    found = sorted(cluster.devices_path.glob(f'*/*/{below}'))
    if not found:
        raise BenchError(f'{account}/{container}/{name} is on no device')
    return found[0]
