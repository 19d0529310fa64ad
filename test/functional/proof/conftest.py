# SPDX-License-Identifier: Apache-2.0
"""A cluster of three replicas, any of which can be missing, slow or stale.

There are as many devices as replicas, so there are no handoffs, and no daemon
runs by itself: a missing database stays missing.

Each module has a cluster of its own. On a shared one, the daemon could resume
a change of a failed test of another module while servers are down.
"""

import configparser
import functools
from collections.abc import Callable

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.backing import Backing
from test.functional.client import Client
from test.functional.conftest import account_maker, logins, new_owner
from test.functional.extra_proxy import running_proxy
from test.functional.operating import SETTINGS, admin_of, resharder_of
from test.functional.proof.replicas import NODES, Stored, store
from test.functional.unfiltered import unfiltered_url

#: The node whose replicas one of the proxies reads first.
PREFERRED = 2

#: An address that refuses connections.
NO_MEMCACHED = '127.0.0.1:1'

#: Proxies time out soon and don't avoid a server after errors. Tokens need no
#: memcached. Auditors, which run only when a test runs them, rebuild an index.
REPLICA_SETTINGS = {
    **SETTINGS,
    'proxy-server.node_timeout': '3',
    'proxy-server.recoverable_node_timeout': '3',
    'proxy-server.error_suppression_limit': '100000',
    'object-server.node_timeout': '2',
    'object-server.container_update_timeout': '2',
    'object-auditor.watchers': 'shardmw#dark_data',
    'object-auditor.action': 'relist',
    'object-auditor.grace_age': '0',
    'shardmw.stats_cache_seconds': '0',
    'shardmw.head_cache_seconds': '0',
    'tempauth.fernet_key_any': 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm8tc2VjcmU=',
    'tempauth.active_fernet_key_id': 'any',
}


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    options = ClusterOptions(replicas=len(NODES), settings=REPLICA_SETTINGS)
    with Cluster(tmp_path_factory.mktemp('proof'), options) as cluster:
        yield cluster


login = pytest.fixture(scope='module')(logins)
new_account = pytest.fixture(scope='module')(account_maker)
unfiltered_proxy = pytest.fixture(scope='module')(unfiltered_url)
admin = pytest.fixture(scope='module')(admin_of)
resharder = pytest.fixture(scope='module')(resharder_of)
client = pytest.fixture(scope='class')(new_owner)


@pytest.fixture(scope='class')
def unfiltered(client, unfiltered_proxy) -> Client:
    return client.on(unfiltered_proxy)


@pytest.fixture(scope='class')
def backing(unfiltered) -> Backing:
    return Backing(unfiltered)


@pytest.fixture(scope='module')
def preferring_proxy(cluster):
    """The URL of a proxy that reads the replicas of one node first.

    It has no memcached, so it never hears what another proxy has done.
    """

    def change(conf: configparser.RawConfigParser) -> None:
        conf['filter:cache']['memcache_servers'] = NO_MEMCACHED
        conf['app:proxy-server']['sorting_method'] = 'affinity'
        conf['app:proxy-server']['read_affinity'] = f'r1z{PREFERRED}=100'

    with running_proxy(cluster, 'preferring-proxy', change) as url:
        yield url


@pytest.fixture(scope='class')
def cold(client, preferring_proxy) -> Client:
    """The owner at the proxy that reads the replicas of one node first."""
    return client.on(preferring_proxy)


@pytest.fixture(scope='class')
def fill(cluster, client, backing) -> Callable[..., Stored]:
    """Return a function that fills a container, as :func:`store` does."""
    return functools.partial(store, cluster, client, backing)
