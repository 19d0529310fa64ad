# SPDX-License-Identifier: Apache-2.0
"""The cluster that commands and the daemon work on, on Swift's own code."""

from shardmw.core.paths import Path
from shardmw.reshard.cluster import SwiftCluster
from test.unit.fakeswift import ACCOUNT


def test_info_cached_in_one_request_is_not_used_by_the_next(swift):
    cluster = SwiftCluster(swift)
    backend = cluster.backend
    # Each write of a layout record does this.
    backend.forget_info(cluster.env, Path('v1', ACCOUNT, 'c'))
    assert not backend.account_exists(cluster.env, 'AUTH_new')
    swift.put_account('AUTH_new')
    assert backend.account_exists(cluster.env, 'AUTH_new')
