# SPDX-License-Identifier: Apache-2.0
"""A real Swift on loopback: the embedded all-in-one.

Proxy, account, container and object servers of the installed ``swift``
package, and memcached: each is a process of its own, all of them have their
files in one folder and listen on 127.0.0.1 only. Required are Linux, memcached
on the PATH, and a file system with extended attributes; root, a mount or
/etc/swift are not.

From a shell::

    shardmw-saio up                      # ready in seconds
    eval "$(shardmw-saio env)"
    swift upload pictures cat.jpg        # or anything that uses boto3
    shardmw-saio logs -f proxy-1
    shardmw-saio daemon container-updater
    shardmw-saio down

    shardmw-saio run --set shardmw.default_shards=8 -- pytest

From Python::

    from shardmw.saio import Cluster, ClusterOptions, SaioError

    options = ClusterOptions(replicas=3, settings={'shardmw.max_shards': '8'})
    with Cluster('/some/folder', options) as cluster:
        cluster.proxy_urls                # ['http://127.0.0.1:23456']
        cluster.auth_url, cluster.s3_url, cluster.storage_url
        cluster.users['test:tester']      # its key
        cluster.environment()             # what `shardmw-saio env` prints
        cluster.stop('container-1')       # and start: any server, by its name
        cluster.pause('container-1')      # and resume: to see time-outs
        cluster.daemon('container-updater')
        cluster.reconfigure({'shardmw.max_shards': '16'})
        cluster.log_path('proxy-1').read_text()

Servers
    ``proxy-1`` to ``proxy-N``, ``memcached``, and ``account-N``,
    ``container-N`` and ``object-N`` on each storage node. There is one node a
    replica. Nodes are zones: each has one replica of everything.

Daemons
    None runs in the background: :meth:`Cluster.daemon` runs one once, on all
    nodes. Those that write objects have shardmw in the pipelines of their
    internal clients, with the settings of the proxies.

The folder
    ``saio.json`` stores the cluster's options and ports. ``etc`` has the
    configuration files and the rings, which every start writes anew; ``log``
    has a log for each server and daemon; ``devices`` has the data, in
    ``devices/NODE/DEVICE``. Data and options survive ``down`` and ``up``.

Options
    See :class:`ClusterOptions`. A cluster can be brought up again with other
    proxies, workers, ports and settings, even while it runs: the servers whose
    configuration changes are restarted. Replicas, devices, policies and
    encryption cannot be changed, as the data depends on them.

Settings
    ``{'section.option': 'value'}``. A section is ``DEFAULT`` or a filter of
    the proxies, ``proxy-server``, a storage server (``container-server``), a
    daemon (``container-sharder``), ``memcache``, ``swift-constraints`` or
    ``container-sync-realms``.

Container sync
    All embedded clusters have the realm ``saio`` in common. A cluster is told
    where another one is, while both run::

        url = f'{other.proxy_urls[0]}/v1/'
        cluster.reconfigure({'container-sync-realms.cluster_other': url})

    A container then syncs to ``//saio/other/AUTH_test/pictures`` whenever
    ``cluster.daemon('container-sync')`` runs.

Crashes
    The processes of a cluster are found by a mark in their environment, and
    not by a file that could be out of date. ``up`` restarts servers that are
    dead or have lost a process; ``down`` ends all processes of the cluster and
    no others.

Errors
    A :class:`SaioError` says in one line what was wrong and what to do. If a
    server ends at its start, the line is the reason from the server's log.
"""

from shardmw.saio.cluster import DAEMON_NAMES, Cluster
from shardmw.saio.errors import SaioError
from shardmw.saio.options import ClusterOptions
from shardmw.saio.status import ServerStatus
from shardmw.saio.topology import Server

__all__ = [
    'DAEMON_NAMES',
    'Cluster',
    'ClusterOptions',
    'SaioError',
    'Server',
    'ServerStatus',
]
