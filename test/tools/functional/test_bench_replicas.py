# SPDX-License-Identifier: Apache-2.0
"""Replicas come back to a device that was emptied."""

import pytest
from shardmw_bench.databases import databases
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import sharded
from shardmw_bench.load.clients import Clients
from shardmw_bench.names import FlatNames
from shardmw_bench.replicas import contents, converge, empty_device
from shardmw_bench.site import embedded_site
from shardmw_saio import ClusterOptions

from test.tools.functional.benching import runner

KIND = sharded(2)
ROWS = 500


@pytest.fixture(scope='module')
def site():
    options = ClusterOptions(replicas=3)
    with (
        Clients(1) as clients,
        embedded_site(options, runner(clients)) as site,
    ):
        yield site


def test_an_emptied_device_gets_its_replicas_back(site):
    container = site.make(KIND)
    site.fill(container, KIND, FlatNames(ROWS))
    place = site.cluster, site.account.name, container
    before = contents(*place, KIND)
    assert len(before) == 9
    assert sum(each.rows for each in before.values()) == 3 * ROWS

    device = empty_device(site.cluster, 3)
    assert list(device.iterdir()) == []
    assert len(databases(*place)) == 2
    with pytest.raises(BenchError, match='has replicas that differ: 2 of 3'):
        contents(*place, KIND)

    passes, moments = converge(site.cluster, device, before)
    assert contents(*place, KIND) == before
    assert passes >= 1
    assert moments[0]['rows'] == 0
    assert moments[-1]['rows'] == ROWS
    assert moments[-1]['databases'] == 3

    # and the servers of the node are back
    assert site.account.names(container) == list(FlatNames(ROWS))
