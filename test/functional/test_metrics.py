# SPDX-License-Identifier: Apache-2.0
"""The metrics that reach an operator's statsd."""

import pytest

from test.functional.conftest import SHARDS
from test.functional.releases import LABELS
from test.functional.statsd import Statsd


@pytest.fixture(scope='module')
def statsd(cluster):
    listening = Statsd()
    cluster.reconfigure(
        {
            'DEFAULT.log_statsd_host': '127.0.0.1',
            'DEFAULT.log_statsd_port': str(listening.port),
        }
    )
    yield listening
    cluster.reconfigure(
        {'DEFAULT.log_statsd_host': None, 'DEFAULT.log_statsd_port': None}
    )
    listening.close()


@pytest.fixture
def counted(statsd, sharded):
    """The metrics, without those of the container's creation."""
    statsd.counts()
    return statsd


def test_writes_of_objects_are_counted_by_method(counted, client, sharded):
    client.put(sharded, 'o', b'x')
    client.post(sharded, 'o')
    client.post(sharded, 'o')
    client.delete(sharded, 'o')
    counts = counted.counts()
    assert counts['object.PUT'] == 1
    assert counts['object.POST'] == 2
    assert counts['object.DELETE'] == 1


def test_busy_containers_have_metrics_of_their_own(counted, client, sharded):
    client.put(sharded, 'o', b'x')
    client.listing(sharded)
    of_container = f'{client.account}.{sharded}'
    counts = counted.counts()
    assert counts[f'top.writes.{of_container}'] == 1
    assert counts[f'top.listing.{of_container}'] > 0


def test_reads_of_objects_are_not_counted(counted, client, sharded):
    client.get(sharded, 'o')
    client.head(sharded, 'o')
    assert counted.counts() == {}


def test_a_listing_counts_its_requests_and_their_time(
    counted, client, sharded
):
    client.listing(sharded)
    counts = counted.counts()
    assert counts['container.GET'] == 1
    assert counts['fanout.requests'] == SHARDS + 1
    assert counts['fanout.time'] > 0
    assert counts['fanout.refills'] == 0


def test_a_plain_container_counts_nothing(counted, client, plain):
    client.put(plain, 'o', b'x')
    client.listing(plain)
    assert counted.counts() == {}


@pytest.fixture
def labelled(cluster, statsd):
    cluster.reconfigure({'DEFAULT.statsd_label_mode': 'dogstatsd'})
    yield statsd
    cluster.reconfigure({'DEFAULT.statsd_label_mode': None})


@LABELS
def test_metrics_have_labels_if_configured(labelled, client, sharded):
    labelled.counts()
    client.put(sharded, 'o', b'x')
    client.listing(sharded)
    of_container = f'#account:{client.account},container:{sharded}'
    counts = labelled.counts()
    assert counts['object_requests#method:PUT'] == 1
    assert counts[f'top_writes{of_container}'] == 1
    assert counts['container_requests#method:GET'] == 1
    assert not any('.' in name.partition('#')[0] for name in counts)
