# SPDX-License-Identifier: Apache-2.0
"""Write rates are held per shard, by all proxies together.

The rate is one write in many seconds and nobody may wait for so long, so that
of the writes of one test the first goes through and the others are refused.
"""

import pytest

from shardmw.saio import Cluster, ClusterOptions
from test.functional.alike import masked
from test.functional.backing import name_in_shard
from test.functional.client import Client
from test.functional.conftest import (
    STRANGER,
    USER,
    Pair,
    make_plain,
    make_sharded,
)

#: Limits hold from this many objects on, in a plain container or a shard.
LIMITED_SIZE = 2
SHARDS = 2

SETTINGS = {
    f'shardmw.container_ratelimit_{LIMITED_SIZE}': '0.01',
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.stats_cache_seconds': '0',
    # Tokens that need no memcached to be checked.
    'tempauth.fernet_key_any': 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm8tc2VjcmU=',
    'tempauth.active_fernet_key_id': 'any',
    # What is back is used again at once.
    'memcache.error_suppression_limit': '100000',
}

#: Waiting is allowed, and told of.
PATIENT = {
    f'shardmw.container_ratelimit_{LIMITED_SIZE}': '1',
    'shardmw.max_sleep_time_seconds': '60',
    'shardmw.log_sleep_time_seconds': '0.001',
}

FIRST = name_in_shard(0, SHARDS)
SECOND = name_in_shard(1, SHARDS)
#: Enough for both shards to be limited.
STORED = ('a', 'b', 'c', 'd')

SLOW_DOWN = (498, b'Slow down')


@pytest.fixture(scope='module')
def limited(tmp_path_factory):
    """Two proxies that limit writes."""
    options = ClusterOptions(proxies=2, settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('limited'), options) as cluster:
        yield cluster


def login(cluster: Cluster, user: str) -> Client:
    return Client.login(cluster.auth_url, user, cluster.users[user])


@pytest.fixture(scope='module')
def client(limited) -> Client:
    return login(limited, USER)


@pytest.fixture(scope='module')
def other_proxy(limited, client) -> Client:
    """The same user, by way of the second proxy."""
    return client.on(limited.proxy_urls[1])


@pytest.fixture
def pair(client) -> Pair:
    """A plain and a sharded container that are large enough."""
    pair = Pair(make_plain(client), make_sharded(client, SHARDS))
    for container in pair:
        fill(client, container)
    return pair


def fill(client: Client, container: str) -> None:
    """Store objects, and have Swift know how many."""
    for name in STORED:
        assert client.put(container, name, b'body').status == 201
    client.post(container)


@pytest.fixture
def full(client) -> str:
    """A sharded container that is large enough."""
    container = make_sharded(client, SHARDS)
    fill(client, container)
    return container


@pytest.fixture(params=['plain', 'sharded'])
def container(request, pair) -> str:
    """A plain or a sharded container that is large enough."""
    return getattr(pair, request.param)


class TestLimit:
    def test_refuses_the_second_write(self, client, container):
        assert client.put(container, FIRST, b'x').status == 201
        answer = client.put(container, FIRST, b'another')
        assert (answer.status, answer.body) == SLOW_DOWN
        assert client.get(container, FIRST).body == b'x'

    def test_is_one_of_each_shard(self, client, full):
        assert client.put(full, FIRST).status == 201
        assert client.put(full, FIRST).status == 498
        assert client.put(full, SECOND).status == 201
        assert client.put(full, SECOND).status == 498

    def test_is_one_of_each_container(self, client, pair):
        for container in pair:
            assert client.put(container, FIRST).status == 201
            assert client.put(container, FIRST).status == 498

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_is_for_all_writes_together(self, client, container, method):
        client.put(container, FIRST)
        answer = client.request(method, container, FIRST)
        assert (answer.status, answer.body) == SLOW_DOWN

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_is_used_up_by_any_write(self, client, container, method):
        client.request(method, container, FIRST)
        assert client.put(container, FIRST).status == 498

    def test_is_not_for_reads(self, client, container):
        client.put(container, 'a')
        client.put(container, 'a')
        assert client.get(container, 'a').status == 200
        assert client.head(container, 'a').status == 200
        assert client.get(container).status == 200
        assert client.head(container).status == 204

    def test_is_not_for_requests_to_the_container(self, client, container):
        client.put(container, FIRST)
        assert client.put(container).status == 202
        assert client.post(container).status == 204
        assert client.delete(container).status == 409

    def test_holds_at_all_proxies_together(
        self, client, other_proxy, container
    ):
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 498

    def test_is_for_names_that_lie_in_the_root_as_well(self, client, full):
        names = [f'{i}'.zfill(1024) for i in range(LIMITED_SIZE)]
        for name in names:
            client.put(full, name)
        client.post(full)
        assert client.put(full, 'x' * 1024).status == 201
        assert client.put(full, 'y' * 1024).status == 498
        assert client.put(full, FIRST).status == 201

    def test_is_for_copies(self, client, container):
        client.put(container, FIRST)
        answer = client.copy(container, 'a', f'{container}/{FIRST}')
        assert (answer.status, answer.body) == SLOW_DOWN

    def test_is_not_used_up_by_those_who_may_not_write(self, limited, client):
        container = make_sharded(client, SHARDS)
        fill(client, container)
        stranger = login(limited, STRANGER).visiting(client)
        assert stranger.put(container, FIRST).status == 403
        assert client.put(container, FIRST).status == 201

    def test_is_kept_from_those_who_may_not_write(self, limited, client, full):
        client.put(full, FIRST)
        stranger = login(limited, STRANGER).visiting(client)
        assert stranger.put(full, FIRST).status == 403

    def test_is_logged_when_it_refuses(self, limited, client, full):
        client.put(full, FIRST)
        log = limited.log_path('proxy-1')
        start = log.stat().st_size
        client.put(full, FIRST)
        lines = log.read_bytes()[start:].decode().splitlines()
        (line,) = [each for each in lines if 'shardmw:' in each]
        path = client.path(full, FIRST)
        assert f'shardmw: 498 for PUT {path}: would wait ' in line


class TestSize:
    def test_small_container_is_not_limited(self, client):
        container = make_plain(client)
        for _ in range(3):
            assert client.put(container, 'a').status == 201

    def test_that_counts_is_that_of_a_shard(self, client):
        container = make_sharded(client, SHARDS)
        for name in STORED:
            client.put(container, name)
        client.delete(container, 'd')
        assert client.put(container, 'c').status == 201
        assert client.put(container, 'c').status == 201


def test_refusal_is_that_of_a_plain_container(client, pair):
    for container in pair:
        client.put(container, FIRST)
    plain, sharded = (
        masked(client.put(container, FIRST), container) for container in pair
    )
    assert sharded == plain
    assert sharded.status == 498


class TestWithoutMemcached:
    @pytest.fixture
    def alone(self, limited, client, full) -> str:
        """A container that is large enough when memcached goes away."""
        limited.stop('memcached')
        yield full
        limited.start('memcached')

    def test_every_proxy_limits_for_itself(self, client, other_proxy, alone):
        assert client.put(alone, FIRST).status == 201
        assert client.put(alone, FIRST).status == 498
        assert other_proxy.put(alone, FIRST).status == 201
        assert other_proxy.put(alone, FIRST).status == 498

    def test_every_shard_has_its_own(self, client, alone):
        assert client.put(alone, FIRST).status == 201
        assert client.put(alone, SECOND).status == 201


@pytest.fixture(scope='class')
def patient(limited) -> None:
    """Writes that come too early wait."""
    limited.reconfigure(PATIENT)
    yield
    limited.reconfigure({name: SETTINGS.get(name) for name in PATIENT})


@pytest.mark.usefixtures('patient')
class TestWaiting:
    def test_write_waits_for_its_turn(self, limited, client, container):
        log = limited.log_path('proxy-1')
        start = log.stat().st_size
        assert client.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201
        path = client.path(container, FIRST)
        written = log.read_bytes()[start:].decode()
        assert f'shardmw: PUT {path} waits ' in written
