# SPDX-License-Identifier: Apache-2.0
"""Many listings at once, and the bound on concurrent requests to shards."""

import threading
from pathlib import Path

import pytest

from test.functional.client import Client
from test.functional.conftest import make_sharded
from test.functional.extra_proxy import running_proxy
from test.functional.operating import wait_until

LISTINGS = 12
BOUND = 2
SHARDS = 16
NAMES = [f'o{i:02}' for i in range(20)]

ESTABLISHED = '01'


@pytest.fixture(scope='module')
def bounded_url(cluster):
    """The URL of a proxy that reads few shards at once."""

    def change(conf) -> None:
        conf['filter:shardmw']['account_fanout_concurrency'] = str(BOUND)
        # Requests to the paused server do not time out.
        conf['app:proxy-server']['node_timeout'] = '60'
        conf['app:proxy-server']['recoverable_node_timeout'] = '60'
        # No idle connections are counted.
        conf['filter:shardmw']['idle_connections'] = '0'

    with running_proxy(cluster, 'bounded-proxy', change) as url:
        yield url


def connections_to(port: int) -> int:
    """Return how many connections to a local port are open."""
    lines = Path('/proc/net/tcp').read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(
        each[2].endswith(f':{port:04X}') and each[3] == ESTABLISHED
        for each in fields
    )


def test_concurrent_listings_keep_to_the_bound_and_are_right(
    cluster, client, bounded_url
):
    client = client.on(bounded_url)
    container = make_sharded(client, SHARDS)
    for name in NAMES:
        assert client.put(container, name).status == 201
    assert client.listing(container).names() == NAMES
    server = cluster.servers['container-1']
    # Another proxy keeps connections open for a while.
    wait_until(lambda: connections_to(server.port) == 0)
    answers = []

    def list_container() -> None:
        own = Client(client.storage_url, client.token)
        answers.append(own.listing(container))

    threads = [
        threading.Thread(target=list_container) for _ in range(LISTINGS)
    ]
    cluster.pause('container-1')
    try:
        for thread in threads:
            thread.start()
        # Each listing under way sends a request for the root, too.
        wait_until(lambda: connections_to(server.port) >= 2 * BOUND)
        # The object server is not paused: after these answers, the proxy has
        # received all listings.
        for name in NAMES:
            assert client.get(container, name).status == 200
        assert connections_to(server.port) == 2 * BOUND
    finally:
        cluster.resume('container-1')
        for thread in threads:
            thread.join()
    assert [answer.status for answer in answers] == [200] * LISTINGS
    assert all(answer.names() == NAMES for answer in answers)
