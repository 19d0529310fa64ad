# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests of the command and the daemon that change layouts.

A daemon looks at all changes, and proxies cache little, to make them short.
"""

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Client
from test.functional.conftest import account_maker, logins
from test.functional.operating import SETTINGS, Admin, Resharder
from test.functional.unfiltered import running_unfiltered_proxy


@pytest.fixture(scope='session')
def cluster(tmp_path_factory):
    options = ClusterOptions(settings=SETTINGS)
    folder = tmp_path_factory.mktemp('operators')
    with Cluster(folder, options) as cluster:
        yield cluster


@pytest.fixture(scope='session')
def new_account(cluster):
    """Makes somebody the owner of an account that nobody used before."""
    return account_maker(logins(cluster))


@pytest.fixture
def client(new_account) -> Client:
    """The owner of an account that nobody used before."""
    return new_account()


@pytest.fixture(scope='session')
def unfiltered_proxy(cluster):
    """The URL of one more proxy of this cluster, without shardmw."""
    with running_unfiltered_proxy(cluster) as url:
        yield url


@pytest.fixture(scope='session')
def admin(cluster):
    return Admin(cluster)


@pytest.fixture(scope='session')
def resharder(cluster):
    return Resharder(cluster)
