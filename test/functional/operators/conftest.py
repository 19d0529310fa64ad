# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests of the command and the daemon that change layouts.

It is not shared with other tests: a daemon looks at all changes. Its proxies
have short cache times, so that changes are quick.
"""

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.conftest import account_maker, logins, new_owner
from test.functional.operating import SETTINGS, admin_of, resharder_of
from test.functional.unfiltered import unfiltered_url


@pytest.fixture(scope='session')
def cluster(tmp_path_factory):
    options = ClusterOptions(settings=SETTINGS)
    folder = tmp_path_factory.mktemp('operators')
    with Cluster(folder, options) as cluster:
        yield cluster


login = pytest.fixture(scope='session')(logins)
new_account = pytest.fixture(scope='session')(account_maker)
unfiltered_proxy = pytest.fixture(scope='session')(unfiltered_url)
admin = pytest.fixture(scope='session')(admin_of)
resharder = pytest.fixture(scope='session')(resharder_of)
client = pytest.fixture(new_owner)
