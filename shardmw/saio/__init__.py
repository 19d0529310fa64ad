# SPDX-License-Identifier: Apache-2.0
"""A real Swift on loopback: the embedded all-in-one.

Proxy, account, container and object servers of the installed ``swift``
package, and memcached: each a process of its own, all in one folder, listening
on 127.0.0.1 only. It takes no root, no mount and no /etc/swift; it takes
Linux, memcached on the PATH, and a file system with extended attributes.

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
    ``proxy-1`` to ``proxy-N``, ``memcached``, and on each of as many storage
    nodes as there are replicas ``account-N``, ``container-N`` and
    ``object-N``. Nodes are zones: each has one replica of everything.

The folder
    ``saio.json`` remembers what the cluster was made with, and its ports.
    ``etc`` has the configuration files and the rings, which are written anew
    by every start; ``log`` has a log for each server and daemon; ``devices``
    has the data, in ``devices/NODE/DEVICE``. Data and options survive ``down``
    and ``up``.

Options
    See :class:`ClusterOptions`. A cluster can be brought up again with other
    proxies, workers, ports and settings, even while it runs: the servers that
    are concerned are restarted. Replicas, devices, policies and encryption
    are what its data depends on, and stay.

Settings
    ``{'section.option': 'value'}``. A section is ``DEFAULT`` or a filter of
    the proxies, ``proxy-server``, a storage server (``container-server``), a
    daemon (``container-sharder``), ``memcache``, or ``swift-constraints``.

Crashes
    What belongs to a cluster is told by a mark in its processes' environment,
    and by nothing that could be out of date. ``up`` starts what is dead or
    half dead; ``down`` ends whatever is left, and nothing else.

Errors
    A :class:`SaioError` says in one line what was wrong and what to do. If a
    server ends at its start, it's the reason from the server's log.
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
