# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests that run Swift's daemons.

A daemon visits all containers, and the other tests leave thousands of them.
"""

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.conftest import account_maker, logins
from test.functional.unfiltered import running_unfiltered_proxy


@pytest.fixture(scope='session')
def cluster(tmp_path_factory):
    options = ClusterOptions(policies=2)
    folder = tmp_path_factory.mktemp('daemons')
    with Cluster(folder, options) as cluster:
        yield cluster


@pytest.fixture(scope='session')
def login(cluster):
    """Logs a user of tempauth in."""
    return logins(cluster)


@pytest.fixture(scope='session')
def new_account(login):
    """Makes somebody the owner of an account that nobody used before."""
    return account_maker(login)


@pytest.fixture(scope='session')
def unfiltered_proxy(cluster):
    """The URL of one more proxy of this cluster, without shardmw."""
    with running_unfiltered_proxy(cluster) as url:
        yield url
