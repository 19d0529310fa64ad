# SPDX-License-Identifier: Apache-2.0
"""The embedded Swift: a whole cluster on one machine.

A cluster has the proxy, account, container and object servers of the installed
``swift`` package, and memcached. Each is a process of its own. They listen on
127.0.0.1, unless the option ``hosts`` names other hosts. All their files are
in one folder. A cluster needs Linux, memcached on the PATH, and a file system
with extended attributes. It does not need root, a mount or /etc/swift.

From a shell::

    shardmw-saio up                      # ready in seconds
    eval "$(shardmw-saio env)"
    swift upload pictures cat.jpg        # or anything that uses boto3
    shardmw-saio logs -f proxy-1
    shardmw-saio up --set shardmw.default_shards=16
    shardmw-saio up --unset shardmw.default_shards
    shardmw-saio down                    # keeps the data
    shardmw-saio purge                   # deletes it

    shardmw-saio run --set shardmw.default_shards=8 -- pytest

From Python::

    from shardmw_saio import Cluster, ClusterOptions, SaioError

    options = ClusterOptions(replicas=3, settings={'shardmw.max_shards': '8'})
    with Cluster('/some/folder', options) as cluster:
        cluster.proxy_urls                # ['http://127.0.0.1:23456']
        cluster.auth_url, cluster.s3_url, cluster.storage_url
        cluster.users['test:tester']      # its key
        cluster.environment()             # what `shardmw-saio env` prints
        cluster.stop('container-1')       # start() starts it again
        cluster.pause('container-1')      # resume() ends the pause
        cluster.daemon('container-updater')
        cluster.reconfigure({'shardmw.max_shards': '16'})
        cluster.log_path('proxy-1').read_text()

Servers
    ``proxy-1`` to ``proxy-N``, ``memcached``, and ``account-N``,
    ``container-N`` and ``object-N`` on each storage node. There is one node
    per replica. Each node is a zone, so it has one replica of everything.

Daemons
    :meth:`Cluster.daemon` runs one pass of a daemon on all nodes and waits for
    it. With the option ``daemons``, one more process, ``daemons``, runs them
    in the background: with pauses of at least 5 s, they update counts, delete
    expired objects, replicate and so on (:mod:`shardmw_saio.daemons`).
    ``shardmw-saio up`` makes clusters with this option, ``shardmw-saio run``
    and Python without it: tests run a daemon when they need it, and get the
    same result in each run. Daemons that write objects have shardmw in the
    pipelines of their internal clients, with the settings of the proxies.

The folder
    ``saio.json`` stores the options and ports of the cluster. ``etc`` has the
    configuration files and the rings, which a start writes again if they
    change; ``log`` has a log for each server and daemon; ``devices`` has the
    data, in ``devices/NODE/DEVICE``. ``down`` keeps data and options,
    ``purge`` deletes them.

Options
    See :class:`ClusterOptions`. Proxies, workers, daemons, ports and settings
    can be changed when a cluster is brought up again, even while it runs: the
    servers whose configuration changes are restarted. Replicas, devices,
    policies and encryption cannot be changed, because the data depends on
    them. If a server does not start with changed options, the cluster gets its
    former options back.

Settings
    ``{'section.option': 'value'}``. A section is ``DEFAULT`` (of the proxies'
    files), a filter of the proxies, ``proxy-server``, a storage server such as
    ``container-server``, its filter ``shardmw-container``, a daemon such as
    ``container-sharder``, ``memcache``, ``swift-constraints`` or
    ``container-sync-realms``. Settings of ``proxy-server`` also apply to the
    internal clients of commands and daemons, unless ``internal-client`` has
    others.

Container sync
    All embedded clusters are in the realm ``saio``. To sync with another
    cluster, set its URL while both run::

        url = f'{other.proxy_urls[0]}/v1/'
        cluster.reconfigure({'container-sync-realms.cluster_other': url})

    A container then syncs to ``//saio/other/AUTH_test/pictures`` whenever
    ``cluster.daemon('container-sync')`` runs.

Crashes
    The processes of a cluster are found by a variable in their environment,
    and not by a file with process ids, which could be out of date. ``up``
    restarts servers that are dead or have lost a process. ``down`` ends all
    processes of the cluster, and no others.

Errors
    A :class:`SaioError` says in one line what was wrong and what to do. If a
    server ends at its start, the line has the reason from the server's log.
"""

# It hides a warning that eventlet would print.
import shardmw  # noqa: F401
from shardmw_saio.cluster import DAEMON_NAMES, Cluster
from shardmw_saio.errors import SaioError
from shardmw_saio.options import ClusterOptions
from shardmw_saio.status import ServerStatus
from shardmw_saio.topology import Server

__all__ = [
    'DAEMON_NAMES',
    'Cluster',
    'ClusterOptions',
    'SaioError',
    'Server',
    'ServerStatus',
]
