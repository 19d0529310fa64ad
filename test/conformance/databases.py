# SPDX-License-Identifier: Apache-2.0
"""The containers that a run has left on the devices.

A deleted container's database stays until a replicator reclaims it, and none
runs. So there is one for every container that ever was.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

_DATABASES = '*/*/containers/*/*/*/*.db'
_NAME = 'SELECT account, container FROM container_info'


class ContainerName(NamedTuple):
    """Of a container, or a hidden one."""

    account: str
    container: str


def container_names(devices: Path) -> set[ContainerName]:
    """The names of all containers that were created.

    :param devices: as :attr:`shardmw.saio.Cluster.devices_path`
    """
    return {_name(database) for database in devices.glob(_DATABASES)}


def _name(database: Path) -> ContainerName:
    # immutable: nobody writes any more, so there's nothing to wait for
    uri = f'{database.as_uri()}?immutable=1'
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        return ContainerName(*connection.execute(_NAME).fetchone())
