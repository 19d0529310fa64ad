# SPDX-License-Identifier: Apache-2.0
"""The account rate of Swift's own filter counts each shard of a create.

The rate is one create in some seconds, and a create may wait that long. After
the create of a container with many shards, the wait would be too long.
"""

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Client
from test.functional.conftest import RESELLER_ADMIN, make_sharded, unique
from test.functional.ratelimit.limits import login

#: Seconds for each write, and the longest wait in seconds.
INTERVAL = 1
LONGEST_WAIT = 5

#: So many that their writes take longer than a create may wait.
MANY_SHARDS = 16

SETTINGS = {
    'ratelimit.account_ratelimit': f'{1 / INTERVAL}',
    'ratelimit.max_sleep_time_seconds': f'{LONGEST_WAIT}',
    'ratelimit.rate_buffer_seconds': '0',
}


@pytest.fixture(scope='module')
def limited(tmp_path_factory):
    """A cluster in which Swift's own filter limits accounts."""
    options = ClusterOptions(settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('account_rate'), options) as cluster:
        yield cluster


@pytest.fixture
def owner(limited, client) -> Client:
    """The owner of a new account."""
    admin = login(limited, RESELLER_ADMIN).visiting(client)
    url = admin.storage_url.rpartition('/')[0]
    owner = Client(f'{url}/AUTH_{unique("new")}', admin.token)
    assert owner.request('PUT').status == 201
    return owner


def test_create_of_a_plain_container_counts_once(owner):
    assert owner.put(unique('plain')).status == 201
    assert owner.put(unique('plain')).status == 201


def test_create_of_a_sharded_container_counts_once_for_each_shard(owner):
    make_sharded(owner, MANY_SHARDS)
    assert owner.put(unique('plain')).status == 498


def test_create_counts_in_its_own_account_only(owner, client):
    make_sharded(owner, MANY_SHARDS)
    assert client.put(unique('plain')).status == 201
