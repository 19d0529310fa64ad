# SPDX-License-Identifier: Apache-2.0
"""Make the command lines that start servers and daemons. Pure."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from shardmw_saio.errors import SaioError
from shardmw_saio.options import Host
from shardmw_saio.topology import HOST

MEMCACHED_MEGABYTES = 64

#: The module that runs a server or a daemon.
LAUNCH = 'shardmw_saio.launch'

#: The daemon whose watchers do not know ``swift_dir``.
AUDITOR = 'object-auditor'

#: The module and the class of each daemon.
DAEMON_CLASSES = {
    'account-auditor': 'swift.account.auditor:AccountAuditor',
    'account-reaper': 'swift.account.reaper:AccountReaper',
    'account-replicator': 'swift.account.replicator:AccountReplicator',
    'container-auditor': 'swift.container.auditor:ContainerAuditor',
    'container-reconciler': 'swift.container.reconciler:ContainerReconciler',
    'container-replicator': 'swift.container.replicator:ContainerReplicator',
    'container-sharder': 'swift.container.sharder:ContainerSharder',
    'container-sync': 'swift.container.sync:ContainerSync',
    'container-updater': 'swift.container.updater:ContainerUpdater',
    AUDITOR: 'swift.obj.auditor:ObjectAuditor',
    'object-expirer': 'swift.obj.expirer:ObjectExpirer',
    'object-replicator': 'swift.obj.replicator:ObjectReplicator',
    'object-updater': 'swift.obj.updater:ObjectUpdater',
    'shardmw-resharder': 'shardmw.reshard.daemon:Resharder',
}


def server_command(kind: str, conf: Path, log: Path) -> list[str]:
    """Return the command line of one of Swift's servers."""
    return [sys.executable, '-m', LAUNCH, 'server', kind, str(conf), str(log)]


def daemons_command(
    port: int, etc: Path, log: Path, names: Sequence[str]
) -> list[str]:
    """Return the command line of the process that runs daemons.

    :param names: ``DAEMON@FILE``, with files in `etc`
    """
    module = 'shardmw_saio.daemons'
    places = [str(port), str(etc), str(log)]
    return [sys.executable, '-m', module, *places, *names]


def memcached_command(port: int, user: str, address: str = HOST) -> list[str]:
    """Return the command line of memcached.

    :param address: the address that it listens on
    :raises SaioError: if memcached is not installed
    """
    # Without -u, memcached refuses to run as root.
    return [
        *(memcached_path(), '-v', '-u', user),
        *('-l', address, '-p', str(port), '-U', '0'),
        *('-m', str(MEMCACHED_MEGABYTES)),
    ]


def memcached_path() -> str:
    """Return the path of memcached.

    :raises SaioError: if memcached is not installed
    """
    path = shutil.which('memcached')
    if path is None:
        raise SaioError(
            'memcached is not on the PATH: install it, such as with '
            'apt install memcached'
        )
    return path


def on_host(host: Host, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command on a host."""
    if not host.namespace:
        return [*command]
    return ['ip', 'netns', 'exec', host.namespace, *command]
