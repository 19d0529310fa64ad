# SPDX-License-Identifier: Apache-2.0
"""Write rates while memcached is down, hangs, or has lost its content.

Each worker then applies its share of the rate: of two workers, each admits one
write in twice the time that the shared rate has for a write.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Client
from test.functional.conftest import make_plain
from test.functional.memcached import flush
from test.functional.ratelimit.limits import (
    FIRST,
    INTERVAL,
    SECOND,
    assert_refused,
    lines_since,
    log_size,
    make_sharded,
    wait_until,
)

TOGETHER = INTERVAL // 2

SETTINGS = {
    'shardmw.container_ratelimit_0': f'{1 / TOGETHER}',
    'shardmw.ratelimit_proxies': '2',
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.log_statsd_host': '127.0.0.1',
    # Tokens that can be checked without memcached.
    'tempauth.fernet_key_any': 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm8tc2VjcmU=',
    'tempauth.active_fernet_key_id': 'any',
    # memcached is used again as soon as it is back.
    'memcache.error_suppression_limit': '100000',
    'memcache.io_timeout': '0.5',
}

PROXIES = ('proxy-1', 'proxy-2')
GONE = 'memcached does not answer: this worker limits each container to its'
BACK = 'memcached answers again: the rates are shared by all workers'

#: Writers at each proxy while memcached hangs, and how long they may take in
#: seconds: Swift itself also sends it some requests for each write.
HALF = 4
HANG_SECONDS = 20


@pytest.fixture(scope='module')
def limited(tmp_path_factory, statsd):
    """Two proxies, with ``ratelimit_proxies = 2``."""
    port = {'shardmw.log_statsd_port': str(statsd.port)}
    options = ClusterOptions(proxies=2, settings={**SETTINGS, **port})
    with Cluster(tmp_path_factory.mktemp('outage'), options) as cluster:
        yield cluster


class Outages:
    """Stops memcached, and waits until it is used again.

    :param probe: a container that is not limited
    """

    def __init__(
        self, cluster: Cluster, clients: list[Client], probe: str
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._probe = probe
        self._starts = [0] * len(clients)

    def begin(self) -> None:
        """Stop memcached, and have both proxies notice that."""
        self._starts = [log_size(self._cluster, name) for name in PROXIES]
        self._cluster.stop('memcached')
        self.write()

    def hang(self) -> None:
        """Have memcached hang, which the proxies have not noticed yet."""
        self._starts = [log_size(self._cluster, name) for name in PROXIES]
        self._cluster.pause('memcached')

    def end(self) -> None:
        """Bring memcached back, and wait until both proxies use it."""
        self._cluster.start('memcached')
        self._cluster.resume('memcached')
        wait_until(self._is_over)

    def write(self) -> None:
        """Write at both proxies, which no rate limits."""
        for client in self._clients:
            assert client.put(self._probe, 'o').status == 201

    def lines(self, text: str) -> list[int]:
        """Return how many lines with a text each proxy has logged since."""
        return [
            sum(text in line for line in lines_since(self._cluster, *log))
            for log in zip(PROXIES, self._starts, strict=True)
        ]

    def _is_over(self) -> bool:
        self.write()
        return all(self.lines(BACK))


@pytest.fixture(scope='module')
def outages(limited, client, other_proxy, operator) -> Outages:
    probe = make_plain(client)
    operator.set_rate(probe, '1000')
    return Outages(limited, [client, other_proxy], probe)


@pytest.fixture(scope='class')
def away(outages) -> Iterator[None]:
    """memcached is down."""
    outages.begin()
    yield
    outages.end()


@pytest.fixture
def away_for_a_while(outages) -> Iterator[Outages]:
    yield outages
    outages.end()


@pytest.mark.usefixtures('away')
class TestOutage:
    def test_gives_each_proxy_its_share(self, client, other_proxy, container):
        for proxy in (client, other_proxy):
            assert proxy.put(container, FIRST).status == 201
            answer = proxy.put(container, FIRST)
            assert_refused(answer)
            assert int(answer.headers['retry-after']) > TOGETHER

    def test_gives_each_shard_its_own_rate(self, client):
        container = make_sharded(client)
        for name in (FIRST, SECOND):
            assert client.put(container, name).status == 201
            assert_refused(client.put(container, name))

    def test_is_counted(self, client, statsd, container):
        statsd.counts()
        for _ in range(3):
            client.put(container, FIRST)
        seen = statsd.counts()
        assert seen['ratelimit.alone'] == 1
        assert seen['ratelimit.refused.write'] == 2
        assert seen['ratelimit.permits'] == 0

    def test_is_logged_once(self, outages):
        outages.write()
        outages.write()
        assert outages.lines(GONE) == [1, 1]
        assert outages.lines(BACK) == [0, 0]


def test_rate_is_shared_while_memcached_is_up(client, container):
    client.put(container, FIRST)
    answer = client.put(container, FIRST)
    assert answer.status == 498
    assert int(answer.headers['retry-after']) <= TOGETHER


class TestShortOutage:
    def test_is_noticed_and_logged_once(self, outages, statsd):
        statsd.counts()
        outages.begin()
        assert statsd.counts()['ratelimit.fallback'] == len(PROXIES)
        outages.end()
        outages.write()
        assert outages.lines(GONE) == [1, 1]
        assert outages.lines(BACK) == [1, 1]
        assert statsd.counts()['ratelimit.fallback'] == 0

    def test_leaves_a_shared_rate(
        self, client, other_proxy, outages, container
    ):
        outages.begin()
        outages.end()
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 498

    def test_counts_earlier_writes(self, client, away_for_a_while, container):
        assert client.put(container, FIRST).status == 201
        away_for_a_while.begin()
        assert client.put(container, FIRST).status == 498

    def test_has_writes_that_count_later(self, client, outages, container):
        outages.begin()
        assert client.put(container, FIRST).status == 201
        outages.end()
        assert client.put(container, FIRST).status == 498


class TestRestart:
    def test_leaves_a_used_up_rate_used_up(
        self, limited, client, other_proxy, outages, container
    ):
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 498
        outages.begin()
        outages.end()
        assert client.put(container, FIRST).status == 498
        assert other_proxy.put(container, FIRST).status == 498

    def test_that_is_unnoticed_leaves_a_used_up_rate_used_up(
        self, limited, client, other_proxy, container
    ):
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 498
        flush(limited)
        assert client.put(container, FIRST).status == 498
        assert other_proxy.put(container, FIRST).status == 498

    def test_that_is_unnoticed_leaves_a_shared_rate(
        self, limited, client, other_proxy, container
    ):
        flush(limited)
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 498


class TestHang:
    def test_delays_no_write_for_long(
        self, limited, client, operator, away_for_a_while, container
    ):
        operator.set_rate(container, '1000')
        clients = [client.on(url) for url in limited.proxy_urls * HALF]
        away_for_a_while.hang()
        started = time.monotonic()
        with ThreadPoolExecutor(len(clients)) as pool:
            answers = pool.map(
                lambda each: each.put(container, FIRST), clients
            )
            statuses = [answer.status for answer in answers]
        took = time.monotonic() - started
        # Of two concurrent uploads, the older one is answered 202.
        assert {*statuses} <= {201, 202}
        assert took < HANG_SECONDS

    def test_is_noticed_and_logged_once(self, outages):
        outages.hang()
        outages.write()
        outages.end()
        assert outages.lines(GONE) == [1, 1]
        assert outages.lines(BACK) == [1, 1]
