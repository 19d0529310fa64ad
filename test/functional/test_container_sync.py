# SPDX-License-Identifier: Apache-2.0
"""Container sync between two clusters, in both directions.

A pair of plain containers shows what Swift does; pairs with sharded ones must
do the same.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from swift.common.utils import Timestamp

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    USER,
    unique,
)

KEY = 'a shared key'
DAEMON = 'container-sync'
#: A row that failed, or that another pass has to look at again, is looked at
#: by the second pass.
PASSES = 2

SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
}

KINDS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: '4'}}


class Side(NamedTuple):
    """One of the two clusters.

    :param name: how the other one calls it
    """

    name: str
    cluster: Cluster
    client: Client

    def realm_path(self, container: str) -> str:
        """Return what a container of the other cluster syncs to."""
        return f'//saio/{self.name}/{self.client.account}/{container}'


@pytest.fixture(scope='module')
def sides(tmp_path_factory) -> Iterator[list[Side]]:
    options = ClusterOptions(settings=SETTINGS)
    here, there = (
        Cluster(tmp_path_factory.mktemp(name), options)
        for name in ('here', 'there')
    )
    with here, there:
        for cluster, name, other in (
            (here, 'there', there),
            (there, 'here', here),
        ):
            url = f'{other.proxy_urls[0]}/v1/'
            setting = f'container-sync-realms.cluster_{name}'
            assert cluster.reconfigure({setting: url}) == []
        yield [
            Side(name, cluster, Client.login(
                cluster.auth_url, USER, cluster.users[USER]
            ))
            for name, cluster in (('here', here), ('there', there))
        ]
