# SPDX-License-Identifier: Apache-2.0
"""Walks through kept pages, by two proxies, while clients write now and then.

The history checker finds each page that lacks an acknowledged write.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.client import Client
from test.functional.conftest import USER, make_sharded
from test.functional.history import Worker, merged
from test.functional.operating import wait_until
from test.functional.statsd import Statsd

NAMES = [f'o{number:02}' for number in range(24)]
SEED = int(time.time())
BURSTS = 3
BURST_SECONDS = 3

#: Answers from kept pages between bursts: they come when the marks of the
#: last writes have lapsed.
KEPT = 25
SETTINGS = {
    'shardmw.listing_cache_seconds': '2',
    'shardmw.head_cache_seconds': '2',
    # Rows are in the databases before a write is acknowledged.
    'object-server.container_update_timeout': '30',
}


@pytest.fixture(scope='module')
def statsd() -> Iterator[Statsd]:
    listening = Statsd()
    yield listening
    listening.close()


@pytest.fixture(scope='module')
def proxies(tmp_path_factory, statsd) -> Iterator[list[Client]]:
    """Clients of the same user by two proxies."""
    settings = {
        **SETTINGS,
        'DEFAULT.log_statsd_host': '127.0.0.1',
        'DEFAULT.log_statsd_port': str(statsd.port),
    }
    options = ClusterOptions(proxies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('kept'), options) as cluster:
        key = cluster.users[USER]
        client = Client.login(cluster.auth_url, USER, key)
        yield [client.on(url) for url in cluster.proxy_urls]


@contextmanager
def repeating(works: list[Callable[[], None]]) -> Iterator[None]:
    """Repeat some works, each in a thread, until the end of the block."""
    stop = threading.Event()

    def repeat(work: Callable[[], None]) -> None:
        while not stop.wait(0.05):
            work()

    with ThreadPoolExecutor(len(works)) as pool:
        repeated = [pool.submit(repeat, each) for each in works]
        try:
            yield
        finally:
            stop.set()
    for each in repeated:
        each.result()


def workers(proxies: list[Client], container: str, kind: str) -> list[Worker]:
    """Return two clients of each proxy."""
    return [
        Worker(proxy, container, NAMES, SEED, f'{kind}{number}')
        for number, proxy in enumerate(2 * proxies)
    ]


def test_a_kept_page_never_lacks_an_acknowledged_write(proxies, statsd):
    container = make_sharded(proxies[0])
    walkers = workers(proxies, container, 'walker')
    writers = workers(proxies, container, 'writer')
    counts = Counter()
    walks = [each.walk for each in walkers]
    with repeating([*walks, lambda: counts.update(statsd.counts(1))]):
        for _ in range(BURSTS):
            with repeating([each.work for each in writers]):
                time.sleep(BURST_SECONDS)
            enough = counts['listing.kept'] + KEPT
            wait_until(lambda enough=enough: counts['listing.kept'] >= enough)
    history = merged([*walkers, *writers])
    print('seed', SEED, dict(history.counts), counts['listing.kept'])
    violations = history.violations()
    assert [history.text(each) for each in violations[:1]] == []
