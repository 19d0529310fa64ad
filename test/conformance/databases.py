# SPDX-License-Identifier: Apache-2.0
"""The container databases that a run has left on the devices.

The database of a deleted container stays until a replicator reclaims it. No
replicator runs, so each container that was created has a database.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

_DATABASES = '*/*/containers/*/*/*/*.db'
_NAME = 'SELECT account, container FROM container_info'


class ContainerName(NamedTuple):
    """The account and the name of a container."""

    account: str
    container: str


def container_names(devices: Path) -> set[ContainerName]:
    """Return the names of all containers that were created.

    :param devices: as :attr:`shardmw_saio.Cluster.devices_path`
    """
    return {_name(database) for database in devices.glob(_DATABASES)}


def _name(database: Path) -> ContainerName:
    # immutable: the servers have ended, so no lock is needed
    uri = f'{database.as_uri()}?immutable=1'
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        return ContainerName(*connection.execute(_NAME).fetchone())
