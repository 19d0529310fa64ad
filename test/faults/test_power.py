# SPDX-License-Identifier: Apache-2.0
"""A loss of power during a change of layout."""

import os
import signal
from contextlib import ExitStack

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.faults.power import Disks
from test.faults.site import KINDS
from test.faults.test_disk import NEEDS_FUSE, sync
from test.functional.conftest import logins
from test.functional.operating import SETTINGS, Admin, wait_for_phase

pytestmark = NEEDS_FUSE

SERVERS = [f'{kind}-1' for kind in KINDS]

#: How long XFS may take to write back what is not synced.
XFS_SECONDS = 30

NAMES = [f'o{number:02}' for number in range(20)]


class Site:
    """A cluster with one storage node, which can lose its power."""

    def __init__(self, cluster: Cluster, disks: Disks) -> None:
        self.cluster, self.disks = cluster, disks
        self.device = cluster.devices_path / '1' / 'sdb1'
        self.client = logins(cluster)('test:tester')

    def cut_power(self) -> None:
        with self.disks.off([1]):
            for each in self.cluster.status():
                if each.pid and each.server.name in SERVERS:
                    os.kill(each.pid, signal.SIGKILL)
        self.disks.on([1])
        self.cluster.up()


@pytest.fixture
def site(tmp_path):
    options = ClusterOptions(settings=SETTINGS)
    with Cluster(tmp_path / 'cluster', options) as cluster, ExitStack() as at:
        disks = Disks(cluster.devices_path, tmp_path / 'disks')
        at.callback(disks.remove)
        folder = cluster.devices_path / '1' / 'sdb1'
        disks.use([folder], flush_seconds=XFS_SECONDS)
        yield Site(cluster, disks)


@pytest.fixture
def mover(site):
    """A mover that has moved the rows of a plain container to shards."""
    site.client.put('c')
    for name in NAMES:
        site.client.put('c', name)
    for path in site.device.rglob('*'):
        sync(path)
    path = f'{site.client.account}/c'
    options = ('--despite-backlog', '--settle-seconds', '60')
    mover = Admin(site.cluster).start('reshard', path, '3', *options)
    try:
        wait_for_phase(mover, 'settling')
        yield mover
    finally:
        mover.kill()
        mover.communicate()


def test_rows_that_have_moved_are_kept(site, mover):
    # This transaction in the old place commits the removal of the rows.
    site.client.post('c', headers={'X-Container-Meta-Color': 'blue'})
    site.cut_power()
    assert site.client.listing('c').names() == NAMES
