# SPDX-License-Identifier: Apache-2.0
"""Write rates apply per container or shard, to all proxies together.

The rate is one write in many seconds, and writes may not wait that long: the
first write of a test succeeds, and the others are refused.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from string import ascii_letters

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import shard_of
from test.functional.alike import masked
from test.functional.client import Client
from test.functional.conftest import (
    OTHER_OWNER,
    STRANGER,
    make_plain,
    unique,
)
from test.functional.ratelimit.limits import (
    FIRST,
    INTERVAL,
    MAKERS,
    SECOND,
    SHARDS,
    assert_refused,
    lines_since,
    log_size,
    login,
    make_sharded,
    reconfigured,
)
from test.functional.realclients import s3_settings

#: A name of 1,024 characters that is listed by the same shard as FIRST.
LONGEST = next(
    name
    for name in (letter * 1024 for letter in ascii_letters)
    if shard_of(name, SHARDS) == 0
)

SETTINGS = {
    'shardmw.container_ratelimit_0': f'{1 / INTERVAL}',
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.stats_cache_seconds': '0',
}


@pytest.fixture(scope='module')
def limited(tmp_path_factory):
    """Two proxies that limit writes."""
    options = ClusterOptions(proxies=2, settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('limited'), options) as cluster:
        yield cluster


@pytest.fixture
def sharded(client) -> str:
    return make_sharded(client)


class TestLimit:
    def test_refuses_the_second_write(self, client, container):
        assert client.put(container, FIRST, b'x').status == 201
        assert_refused(client.put(container, FIRST, b'another'))
        assert client.get(container, FIRST).body == b'x'

    def test_refuses_repeated_writes(self, client, container):
        client.put(container, FIRST)
        for _ in range(3):
            assert_refused(client.put(container, FIRST))

    def test_is_separate_for_each_shard(self, client, sharded):
        assert client.put(sharded, FIRST).status == 201
        assert client.put(sharded, FIRST).status == 498
        assert client.put(sharded, SECOND).status == 201
        assert client.put(sharded, SECOND).status == 498

    def test_is_separate_for_each_container(self, client, container):
        assert client.put(container, FIRST).status == 201
        assert client.put(make_plain(client), FIRST).status == 201
        assert client.put(make_sharded(client), FIRST).status == 201

    def test_is_separate_for_each_account(self, limited, client):
        other = login(limited, OTHER_OWNER)
        name = unique('twice')
        for owner in (client, other):
            owner.put(name)
            assert owner.put(name, FIRST).status == 201
            assert owner.put(name, FIRST).status == 498

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_is_for_all_writes_together(self, client, container, method):
        client.put(container, FIRST)
        assert_refused(client.request(method, container, FIRST))
        assert client.head(container, FIRST).status == 200

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_is_used_up_by_any_write(self, client, container, method):
        client.request(method, container, FIRST)
        assert_refused(client.put(container, FIRST))

    def test_is_not_for_reads(self, client, container):
        client.put(container, 'a')
        assert client.put(container, 'a').status == 498
        assert client.get(container, 'a').status == 200
        assert client.head(container, 'a').status == 200
        assert client.get(container).status == 200
        assert client.head(container).status == 204

    def test_is_not_used_up_by_reads(self, client, container):
        client.get(container, 'a')
        client.head(container, 'a')
        client.get(container)
        client.head(container)
        assert client.put(container, 'a').status == 201

    def test_is_not_for_requests_to_the_container(self, client, container):
        client.put(container, FIRST)
        assert client.put(container).status == 202
        assert client.post(container).status == 204
        assert client.delete(container).status == 409

    def test_holds_at_all_proxies_together(
        self, client, other_proxy, container
    ):
        assert client.put(container, FIRST).status == 201
        assert_refused(other_proxy.put(container, FIRST))
        assert_refused(client.put(container, FIRST))

    def test_is_for_the_longest_names_as_well(self, client, sharded):
        assert client.put(sharded, LONGEST).status == 201
        assert_refused(client.put(sharded, FIRST))
        assert client.put(sharded, SECOND).status == 201

    def test_outlives_a_change_of_the_metadata(self, client, container):
        client.put(container, FIRST)
        other = {'X-Container-Meta-Colour': 'blue'}
        client.post(container, headers=other)
        assert_refused(client.put(container, FIRST))

    def test_is_not_used_up_by_clients_who_may_not_write(
        self, client, stranger, container
    ):
        assert stranger.put(container, FIRST).status == 403
        assert stranger.post(container, FIRST).status == 403
        assert stranger.delete(container, FIRST).status == 403
        assert client.anonymous().put(container, FIRST).status == 401
        assert client.put(container, FIRST).status == 201

    def test_is_not_shown_to_clients_who_may_not_write(
        self, client, stranger, container
    ):
        client.put(container, FIRST)
        assert stranger.put(container, FIRST).status == 403
        assert client.anonymous().put(container, FIRST).status == 401

    def test_is_shared_by_all_clients_who_may_write(
        self, client, stranger, container
    ):
        client.post(container, headers={'X-Container-Write': STRANGER})
        assert stranger.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))
        assert_refused(stranger.put(container, FIRST))

    def test_is_not_for_a_missing_container(self, client):
        name = unique('missing')
        assert client.put(name, FIRST).status == 404
        assert client.put(name, FIRST).status == 404

    def test_is_logged_when_it_refuses(self, limited, client, container):
        client.put(container, FIRST)
        start = log_size(limited, 'proxy-1')
        client.put(container, FIRST)
        (line,) = lines_since(limited, 'proxy-1', start)
        path = client.path(container, FIRST)
        assert f'shardmw: 498 for PUT {path}: would wait ' in line


class TestRefusal:
    def test_is_that_of_a_plain_container(self, client):
        answers = []
        for make in MAKERS.values():
            container = make(client)
            client.put(container, FIRST)
            answer = masked(client.put(container, FIRST), container)
            del answer.headers['retry-after']
            answers.append(answer)
        assert answers[0] == answers[1]
        assert answers[0].status == 498

    def test_says_when_to_retry(self, client, operator, container):
        operator.set_rate(container, '0.2')
        assert client.put(container, FIRST).status == 201
        answer = client.put(container, FIRST)
        assert answer.status == 498
        seconds = int(answer.headers['retry-after'])
        assert 1 <= seconds <= 5
        time.sleep(seconds)
        assert client.put(container, FIRST).status == 201


@pytest.fixture(scope='module')
def s3(limited) -> BaseClient:
    """An S3 client that does not retry."""
    settings = s3_settings(limited)
    once = Config(retries={'total_max_attempts': 1})
    settings['config'] = settings['config'].merge(once)
    return boto3.client('s3', **settings)


@pytest.fixture(scope='class')
def clients_own_fault(limited) -> Iterator[None]:
    """S3 reports refusals as errors of the client."""
    setting = {'s3api.ratelimit_as_client_error': 'true'}
    with reconfigured(limited, setting):
        yield


class TestS3:
    def refused(self, s3: BaseClient, bucket: str) -> Mapping:
        s3.put_object(Bucket=bucket, Key='o', Body=b'x')
        with pytest.raises(ClientError) as error:
            s3.put_object(Bucket=bucket, Key='o', Body=b'another')
        return error.value.response

    def test_refused_upload_is_slow_down(self, s3, client, container):
        refusal = self.refused(s3, container)
        assert refusal['Error']['Code'] == 'SlowDown'
        assert refusal['ResponseMetadata']['HTTPStatusCode'] == 503
        assert client.get(container, 'o').body == b'x'

    @pytest.mark.usefixtures('clients_own_fault')
    def test_refused_upload_is_429_if_configured(self, s3, container):
        refusal = self.refused(s3, container)
        assert refusal['Error']['Code'] == 'SlowDown'
        assert refusal['ResponseMetadata']['HTTPStatusCode'] == 429


@pytest.fixture(scope='class')
def sizes(limited) -> Iterator[None]:
    """Larger containers have lower rates."""
    settings = {
        'shardmw.container_ratelimit_0': None,
        'shardmw.container_ratelimit_10': f'{1 / INTERVAL}',
        'shardmw.container_ratelimit_20': f'{1 / INTERVAL / 2}',
    }
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('sizes')
class TestSize:
    """Retry-After shows which rate applies."""

    def test_below_the_lowest_is_not_limited(self, client, container):
        for _ in range(5):
            assert client.put(container, FIRST).status == 201

    def test_counts_in_a_plain_container(self, client, operator):
        container = make_plain(client)
        operator.fill(container, *map(str, range(10)))
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))

    def test_that_is_larger_means_a_lower_rate(self, client, operator):
        container = make_plain(client)
        operator.fill(container, *map(str, range(20)))
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST), slots=2)

    def test_that_counts_is_that_of_a_shard(self, client, operator):
        container = make_sharded(client)
        operator.fill(container, *map(str, range(10)))
        assert client.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201
        operator.fill(container, *map(str, range(19)))
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))


LEAST_SIZE = 6


@pytest.fixture(scope='class')
def least_size(limited) -> Iterator[None]:
    """Small containers are not limited, and proxies know how many they are."""
    settings = {
        'shardmw.container_ratelimit_0': None,
        f'shardmw.container_ratelimit_{LEAST_SIZE}': f'{1 / INTERVAL}',
        'shardmw.ratelimit_proxies': '2',
    }
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('least_size')
class TestGrowth:
    """A container becomes large before a proxy reads its size again."""

    def test_is_seen_at_once(self, client, container):
        for _ in range(LEAST_SIZE):
            client.put(container, FIRST)
        assert_refused(client.put(container, FIRST))

    def test_is_seen_by_all_proxies_together(
        self, client, other_proxy, container
    ):
        for _ in range(LEAST_SIZE):
            client.put(container, FIRST)
            other_proxy.put(container, FIRST)
        assert_refused(client.put(container, FIRST))
        assert_refused(other_proxy.put(container, FIRST))

    def test_of_one_shard_does_not_limit_another(self, client, sharded):
        for _ in range(LEAST_SIZE + 1):
            client.put(sharded, FIRST)
        assert client.put(sharded, SECOND).status == 201


@pytest.fixture(scope='class')
def patient(limited) -> Iterator[None]:
    """Writes wait for their turn."""
    settings = {
        'shardmw.max_sleep_time_seconds': '60',
        'shardmw.log_sleep_time_seconds': '0.5',
    }
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('patient')
class TestWaiting:
    def test_lasts_until_the_turn_and_is_logged(
        self, limited, client, operator, container
    ):
        operator.set_rate(container, '0.2')
        start = log_size(limited, 'proxy-1')
        started = time.monotonic()
        assert client.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201
        assert time.monotonic() - started > 5 - TOLERANCE
        (line,) = lines_since(limited, 'proxy-1', start)
        path = client.path(container, FIRST)
        assert f'shardmw: PUT {path} waits ' in line

    def test_for_a_short_time_is_not_logged(
        self, limited, client, operator, container
    ):
        operator.set_rate(container, '5')
        start = log_size(limited, 'proxy-1')
        for _ in range(3):
            assert client.put(container, FIRST).status == 201
        assert lines_since(limited, 'proxy-1', start) == []

    def test_of_many_writers_at_two_proxies_keeps_to_the_rate(
        self, limited, client, operator, container
    ):
        """No more writes are through at any time than the rate allows."""
        operator.set_rate(container, f'{RATE}')
        started = time.monotonic()
        clients = [client.on(url) for url in limited.proxy_urls * HALF]
        with ThreadPoolExecutor(len(clients)) as pool:
            containers = [container] * len(clients)
            written = pool.map(write_repeatedly, clients, containers)
            times = sorted(sum(written, []))
        assert len(times) == len(clients) * WRITES
        early = [
            went - started
            for i, went in enumerate(times)
            if went - started < i / RATE - TOLERANCE
        ]
        assert early == []


@pytest.fixture(scope='class')
def impatient(limited) -> Iterator[None]:
    """Writes that would have to wait are refused."""
    settings = {
        'shardmw.max_sleep_time_seconds': '0',
        'shardmw.rate_buffer_seconds': f'{BUFFER}',
    }
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('impatient')
class TestBuffer:
    def test_makes_up_for_unused_writes(
        self, client, other_proxy, operator, container
    ):
        """Only for those of ``BUFFER`` seconds, and for three quarters."""
        operator.set_rate(container, f'{BUFFERED_RATE}')
        client.put(container, FIRST)
        time.sleep(2 * BUFFER)
        started = time.monotonic()
        statuses = [
            proxy.put(container, FIRST).status
            for proxy in [client, other_proxy] * 10
        ]
        seconds = time.monotonic() - started + BUFFER + TOLERANCE
        unused = BUFFERED_RATE * BUFFER * 3 // 4
        assert statuses[:unused] == [201] * unused
        assert statuses.count(201) <= BUFFERED_RATE * seconds + 1


#: The buffer in whole seconds, and the rate in writes a second.
BUFFER = 1
BUFFERED_RATE = 5

#: Writers at each proxy, writes of each, and the rate in writes a second.
HALF = 8
WRITES = 2
RATE = 20

#: How many seconds too early a sleep may end.
TOLERANCE = 0.02


def write_repeatedly(client: Client, container: str) -> list[float]:
    """Write ``WRITES`` times; return the time at which each write ended."""
    through = []
    for _ in range(WRITES):
        assert client.put(container, FIRST).status == 201
        through.append(time.monotonic())
    return through
