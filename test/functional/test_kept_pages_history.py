# SPDX-License-Identifier: Apache-2.0
"""Walks through pages that may be some seconds old, while clients write.

The history checker finds pages that show what did not exist at any time in
the last seconds. It also finds walks that list an object twice, or that miss
one that existed from that many seconds before the walk until its end.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from shardmw_saio import Cluster, ClusterOptions

from shardmw.proxy.listing.max_age import MAX_AGE_HEADER, REQUEST_HEADER
from test.functional.client import Client
from test.functional.conftest import USER, make_sharded
from test.functional.history import Worker, merged
from test.functional.memcached import flush
from test.functional.operating import wait_until
from test.functional.statsd import Statsd
from test.functional.test_faults import LASTING_TOKENS, LASTING_TRUST

NAMES = [f'o{number:02}' for number in range(24)]
SEED = int(time.time())
SECONDS = 12

#: The maximum age of pages in seconds, and a lower one that some walkers ask
#: for. memcached keeps pages for at least two seconds less than their maximum.
MAX_AGE = 5
LESS = 2
SETTINGS = {
    **LASTING_TOKENS,
    **LASTING_TRUST,
    'memcache.connect_timeout': '0.3',
    'memcache.pool_timeout': '0.3',
    'memcache.io_timeout': '0.3',
    # Rows are in the databases before a write is acknowledged.
    'object-server.container_update_timeout': '30',
}


@pytest.fixture(scope='module')
def statsd() -> Iterator[Statsd]:
    listening = Statsd()
    yield listening
    listening.close()


@pytest.fixture(scope='module')
def cluster(tmp_path_factory, statsd) -> Iterator[Cluster]:
    settings = {
        **SETTINGS,
        'DEFAULT.log_statsd_host': '127.0.0.1',
        'DEFAULT.log_statsd_port': str(statsd.port),
    }
    options = ClusterOptions(proxies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('kept'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def proxies(cluster) -> list[Client]:
    """Clients of the same user at two proxies."""
    client = Client.login(cluster.auth_url, USER, cluster.users[USER])
    return [client.on(url) for url in cluster.proxy_urls]


@contextmanager
def repeating(works: list[Callable[[], None]]) -> Iterator[None]:
    """Repeat functions, each in a thread, until the end of the block."""
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


@contextmanager
def flushed(cluster: Cluster) -> Iterator[None]:
    """Have memcached forget everything, again and again."""
    with repeating([lambda: (flush(cluster), time.sleep(0.5))]):
        yield


@contextmanager
def away_for_a_while(cluster: Cluster) -> Iterator[None]:
    """Take memcached away during a third of the block."""

    def take_away() -> None:
        time.sleep(SECONDS / 3)
        cluster.stop('memcached')
        time.sleep(SECONDS / 3)
        cluster.start('memcached')

    thread = threading.Thread(target=take_away)
    thread.start()
    yield
    thread.join()


@contextmanager
def away(cluster: Cluster) -> Iterator[None]:
    cluster.stop('memcached')
    yield
    cluster.start('memcached')


@contextmanager
def there(_cluster: Cluster) -> Iterator[None]:
    yield


@pytest.mark.parametrize('memcached', [there, flushed, away_for_a_while, away])
def test_a_walk_never_misses_an_object_nor_lists_it_twice(
    cluster, proxies, statsd, memcached
):
    container = make_sharded(
        proxies[0], **{MAX_AGE_HEADER.replace('-', '_'): str(MAX_AGE)}
    )

    def worker(proxy: int, by: str, *args) -> Worker:
        by = f'{by}{proxy}'
        return Worker(proxies[proxy], container, NAMES, SEED, by, *args)

    less = {REQUEST_HEADER: str(LESS)}
    workers, walkers = [], []
    for proxy in range(2):
        workers += [worker(proxy, 'writer'), worker(proxy, 'other-writer')]
        walkers += [
            worker(proxy, 'walker', MAX_AGE),
            worker(proxy, 'less', LESS, less),
            worker(proxy, 'newest', 0, {'X-Newest': 'true'}),
        ]
    works = [each.work for each in workers] + [each.walk for each in walkers]
    counts = Counter()
    works.append(lambda: counts.update(statsd.counts(1)))
    with memcached(cluster), repeating(works):
        time.sleep(SECONDS)
        wait_until(lambda: counts['listing.kept'] >= 20)
    history = merged([*workers, *walkers])
    print('seed', SEED, dict(history.counts), counts['listing.kept'])
    violations = history.violations()
    assert [history.text(each) for each in violations[:1]] == []
