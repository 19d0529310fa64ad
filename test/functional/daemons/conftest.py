# SPDX-License-Identifier: Apache-2.0
"""A cluster of their own for tests that run Swift's daemons.

A daemon visits all containers, and the other tests leave thousands behind.
"""

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.conftest import account_maker, logins
from test.functional.unfiltered import unfiltered_url


@pytest.fixture(scope='session')
def cluster(tmp_path_factory):
    options = ClusterOptions(policies=2)
    folder = tmp_path_factory.mktemp('daemons')
    with Cluster(folder, options) as cluster:
        yield cluster


login = pytest.fixture(scope='session')(logins)
new_account = pytest.fixture(scope='session')(account_maker)
unfiltered_proxy = pytest.fixture(scope='session')(unfiltered_url)
