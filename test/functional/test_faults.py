# SPDX-License-Identifier: Apache-2.0
"""What clients and operators see while parts of a cluster are down.

An answer is complete and correct, or it is a 503.
"""

import contextlib

import pytest
from shardmw_saio import Cluster, ClusterOptions
from swift.proxy.controllers.base import get_cache_key

from shardmw.core.layout import Layout
from test.functional.backing import (
    Backing,
    memcached_of,
    name_in_shard,
    write_record,
)
from test.functional.client import Answer, Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    Pair,
    make_plain,
    make_sharded,
    unique,
)
from test.functional.operating import wait_until
from test.functional.unfiltered import running_unfiltered_proxy

#: Requests to slow nodes time out soon.
SHORT_TIMEOUTS = {
    'proxy-server.node_timeout': '3',
    'proxy-server.recoverable_node_timeout': '3',
}

#: Servers are used again as soon as they are back.
LASTING_TRUST = {
    'proxy-server.error_suppression_limit': '100000',
    'memcache.error_suppression_limit': '100000',
}

#: Tokens that can be checked without memcached.
LASTING_TOKENS = {
    'tempauth.fernet_key_any': 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm8tc2VjcmU=',
    'tempauth.active_fernet_key_id': 'any',
}

BODY = b'body'

#: Repetitions of what could depend on which replica is read.
ROUNDS = range(4)

METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']

UNREADABLE_RECORDS = {
    'older': '{"version": 1, "shards": 4}',
    'newer': '{"version": 3, "id": "65a1b2c3d4e5f", "shards": 4}',
    'damaged': '{"version": 2, "sha',
    'empty': '{"version": 2, "id": "65a1b2c3d4e5f", "shards": 0}',
    'unknown': '{"version": 2, "id": "65a1b2c3d4e5f", "shards": 4, "x": 1}',
}


def with_count(shards: int) -> dict[str, str]:
    """Return the headers that create a sharded container."""
    return {SHARD_COUNT_HEADER: str(shards)}


def login(cluster: Cluster) -> Client:
    return Client.login(cluster.auth_url, USER, cluster.users[USER])


class Logged:
    """A client, and the proxy's log lines of its requests.

    :param client: a client of the cluster's first proxy
    """

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self._log = cluster.log_path('proxy-1')
        self._client = client

    def request(self, *args, **kwargs) -> tuple[Answer, list[str]]:
        """Send a request; return its answer and the filter's log lines."""
        start = self._log.stat().st_size
        answer = self._client.request(*args, **kwargs)
        written = self._log.read_bytes()[start:].decode()
        lines = [line for line in written.splitlines() if 'shardmw:' in line]
        return answer, lines


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    """A cluster with one server of each kind, for tests that stop servers."""
    options = ClusterOptions(
        policies=2,
        settings={**SHORT_TIMEOUTS, **LASTING_TRUST, **LASTING_TOKENS},
    )
    with Cluster(tmp_path_factory.mktemp('small'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def small_unfiltered(small):
    """A proxy of the small cluster without shardmw."""
    with running_unfiltered_proxy(small) as url:
        yield url


@pytest.fixture
def client(small) -> Client:
    """The owner, who logs in before a server is stopped."""
    return login(small)


@pytest.fixture
def logged(small, client) -> Logged:
    return Logged(small, client)


@pytest.fixture
def backing(client, small_unfiltered) -> Backing:
    return Backing(client.on(small_unfiltered))


@pytest.fixture
def stopped(small):
    """Return a function that stops a server until the end of the test."""
    names = []

    def stopped(name: str) -> None:
        names.append(name)
        small.stop(name)

    yield stopped
    for name in names:
        small.start(name)


@pytest.fixture
def stored(client) -> str:
    """A sharded container with the object ``o``, known to the caches."""
    container = make_sharded(client)
    assert client.put(container, 'o', BODY).status == 201
    assert client.get(container, 'o').status == 200
    return container


def assert_one_line(lines: list[str], *parts: str) -> None:
    """Check that one log line with some parts reports the failed request."""
    failures = [line for line in lines if '503 for' in line]
    assert len(failures) == 1, lines
    for part in parts:
        assert part in failures[0]


@pytest.fixture(
    scope='class',
    params=[(Cluster.stop, Cluster.start), (Cluster.pause, Cluster.resume)],
    ids=['stopped', 'paused'],
)
def known(request, small) -> str:
    """A container that the caches know, while its server is down.

    The server refuses connections, or does not answer.
    """
    client = login(small)
    container = make_sharded(client)
    assert client.put(container, 'o', BODY).status == 201
    assert client.get(container, 'o').status == 200
    leave, come_back = request.param
    leave(small, 'container-1')
    yield container
    come_back(small, 'container-1')


class TestWithoutContainerServer:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_listings_fail_with_one_line(self, client, logged, known, method):
        answer, lines = logged.request(method, known)
        assert answer.status == 503
        assert_one_line(
            lines, f'503 for {method} {client.path(known)}: ', ' answered 503'
        )

    def test_objects_can_be_read(self, client, known):
        answer = client.get(known, 'o')
        assert (answer.status, answer.body) == (200, BODY)

    def test_a_missing_object_is_404(self, client, known):
        assert client.get(known, 'missing').status == 404


class TestContainerServerThatComesBack:
    @pytest.mark.parametrize('method', ['PUT', 'DELETE'])
    def test_failed_requests_change_no_container(
        self, client, small, stored, stopped, method
    ):
        stopped('container-1')
        headers = {SHARD_COUNT_HEADER: str(SHARDS)}
        answer = client.request(method, stored, headers=headers)
        assert answer.status == 503
        small.start('container-1')
        assert client.listing(stored).names() == ['o']

    def test_uploads_are_listed_later(self, client, small, stored, stopped):
        stopped('container-1')
        assert client.put(stored, 'later', BODY).status == 201
        assert client.get(stored, 'later').body == BODY
        small.start('container-1')
        small.daemon('object-updater')
        assert client.listing(stored).names() == ['later', 'o']

    def test_a_container_is_created_later(self, client, small, stopped):
        container = unique('later')
        headers = {SHARD_COUNT_HEADER: str(SHARDS)}
        stopped('container-1')
        assert client.put(container, headers=headers).status == 503
        small.start('container-1')
        assert client.put(container, headers=headers).status == 201
        assert client.put(container, 'o', BODY).status == 201
        assert client.listing(container).names() == ['o']


@pytest.fixture(scope='class')
def unknown(small) -> Pair:
    """Containers that no cache knows, while their server is down."""
    client = login(small)
    pair = Pair(make_plain(client), make_sharded(client))
    for container in pair:
        assert client.put(container, 'o', BODY).status == 201
        key = get_cache_key(client.account, container)
        memcached_of(small).delete(key)
    small.stop('container-1')
    yield pair
    small.start('container-1')


class TestWithoutContainerServerAndCaches:
    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'PUT', 'DELETE'])
    def test_container_requests_fail_with_one_line(
        self, client, logged, unknown, method
    ):
        answer, lines = logged.request(method, unknown.sharded)
        assert answer.status == 503
        path = client.path(unknown.sharded)
        assert_one_line(lines, f'503 for {method} {path}: ', 'root')

    @pytest.mark.parametrize('method', METHODS)
    def test_other_requests_fail_as_for_a_plain_container(
        self, client, unknown, method
    ):
        sharded = client.request(method, unknown.sharded, 'o')
        assert sharded.status == 503
        assert (
            sharded.status == client.request(method, unknown.plain, 'o').status
        )
        assert client.post(unknown.sharded).status == 503


@pytest.fixture(scope='class')
def unreachable(small) -> str:
    """A container whose object ``o`` is on a server that is down."""
    client = login(small)
    container = make_sharded(client)
    assert client.put(container, 'o', BODY).status == 201
    small.stop('object-1')
    yield container
    small.start('object-1')


class TestWithoutObjectServer:
    def test_listings_are_right(self, client, unreachable):
        assert client.listing(unreachable).names() == ['o']

    @pytest.mark.parametrize('method', METHODS)
    def test_object_requests_fail(self, client, unreachable, method):
        assert client.request(method, unreachable, 'o').status == 503


def test_an_upload_that_failed_changes_nothing(client, small, stored, stopped):
    stopped('object-1')
    assert client.put(stored, 'o', b'never stored').status == 503
    small.start('object-1')
    assert client.get(stored, 'o').body == BODY


class TestLostShard:
    """A backing container is missing."""

    @pytest.fixture
    def damaged(self, client, backing) -> str:
        """A container with an object in shard 0, and without shard 2."""
        container = make_sharded(client)
        client.put(container, name_in_shard(0, SHARDS), BODY)
        backing.delete_shard(container, 2)
        return container

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_fails_listings_with_one_line(
        self, client, logged, damaged, method
    ):
        answer, lines = logged.request(method, damaged)
        assert answer.status == 503
        assert_one_line(
            lines,
            f'503 for {method} {client.path(damaged)}: ',
            'shard 2 answered 404',
        )

    def test_fails_short_listings_too(self, client, damaged):
        assert client.listing(damaged, limit=1).status == 503
        assert client.listing(damaged, prefix='object').status == 503
        assert client.listing(damaged, delimiter='/').status == 503
        assert client.get(damaged, query='path=').status == 503

    def test_leaves_other_shards_readable(self, client, damaged):
        name = name_in_shard(0, SHARDS)
        assert client.get(damaged, name).body == BODY

    def test_lets_uploads_pass_if_quotas_cannot_be_checked(
        self, client, damaged
    ):
        headers = {'X-Container-Meta-Quota-Count': '10'}
        assert client.post(damaged, headers=headers).status == 204
        name = name_in_shard(0, SHARDS)
        assert client.put(damaged, name, BODY).status == 201


def replace_record(
    cluster: Cluster, unfiltered: str, container: str, record: str
) -> None:
    """Give a container another layout record, which all proxies see."""
    client = login(cluster)
    write_record(cluster, client.account, container, record)
    Backing(client.on(unfiltered)).forget(container)


@pytest.fixture(
    scope='class', params=UNREADABLE_RECORDS.values(), ids=UNREADABLE_RECORDS
)
def unreadable(request, small, small_unfiltered) -> str:
    """A container with an object, and with a record that can't be read."""
    client = login(small)
    container = make_sharded(client)
    assert client.put(container, 'o', BODY).status == 201
    replace_record(small, small_unfiltered, container, request.param)
    return container


class TestUnreadableRecord:
    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'PUT', 'DELETE'])
    def test_fails_container_requests_with_one_line(
        self, client, logged, unreadable, method
    ):
        answer, lines = logged.request(method, unreadable)
        assert answer.status == 503
        assert_one_line(
            lines, f'503 for {method} {client.path(unreadable)}: layout record'
        )

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_fails_writes_of_objects_with_one_line(
        self, client, logged, unreadable, method
    ):
        answer, lines = logged.request(method, unreadable, 'o')
        assert answer.status == 503
        path = client.path(unreadable, 'o')
        assert_one_line(lines, f'503 for {method} {path}: layout record')

    def test_leaves_objects_readable(self, client, unreadable):
        assert client.get(unreadable, 'o').body == BODY
        assert client.head(unreadable, 'o').status == 200


def test_an_unreadable_record_protects_the_container(
    client, backing, small, small_unfiltered, stored
):
    readable = Layout(*backing.layout_ids(stored), SHARDS).to_record()
    newer = UNREADABLE_RECORDS['newer']
    replace_record(small, small_unfiltered, stored, newer)
    assert client.delete(stored, 'o').status == 503
    assert client.delete(stored).status == 503
    replace_record(small, small_unfiltered, stored, readable)
    assert client.listing(stored).names() == ['o']
    assert client.get(stored, 'o').body == BODY


class TestStaleInfo:
    """memcached holds a container's info from before it was recreated."""

    @pytest.fixture
    def now_sharded(self, small, client) -> str:
        """A sharded container that the caches take for a plain one."""
        container = make_plain(client)
        with stale(small, client, container):
            assert client.delete(container).status == 204
            headers = {SHARD_COUNT_HEADER: str(SHARDS)}
            assert client.put(container, headers=headers).status == 201
            assert client.put(container, 'o', BODY).status == 201
        return container

    @pytest.fixture
    def now_plain(self, small, client) -> str:
        """A plain container that the caches take for a sharded one."""
        container = make_sharded(client)
        with stale(small, client, container):
            assert client.delete(container).status == 204
            assert client.put(container).status == 201
            assert client.put(container, 'o', BODY).status == 201
        return container

    @pytest.fixture
    def now_of_more_shards(self, small, client) -> str:
        """A container with more shards than the caches know of."""
        container = make_sharded(client, 1)
        with stale(small, client, container):
            assert client.delete(container).status == 204
            headers = {SHARD_COUNT_HEADER: str(SHARDS)}
            assert client.put(container, headers=headers).status == 201
            for shard in range(SHARDS):
                name = name_in_shard(shard, SHARDS)
                assert client.put(container, name, BODY).status == 201
        return container

    def test_an_upload_after_a_change_of_policy_is_kept(
        self, client, small, backing, sharded
    ):
        with stale(small, client, sharded):
            assert client.delete(sharded).status == 204
            headers = {**with_count(SHARDS), 'X-Storage-Policy': 'Policy-1'}
            assert client.put(sharded, headers=headers).status == 201
        assert client.put(sharded, 'o', BODY).status == 201
        assert client.listing(sharded).names() == ['o']
        backing.forget(sharded)
        assert client.get(sharded, 'o').body == BODY

    def test_a_sharded_container_is_listed_whole(self, client, now_sharded):
        assert client.listing(now_sharded).names() == ['o']

    def test_a_head_of_a_sharded_container_shows_its_sums(
        self, client, now_sharded
    ):
        headers = client.head(now_sharded).headers
        assert headers['x-container-shard-count'] == str(SHARDS)
        assert headers['x-container-object-count'] == '1'

    def test_a_nonempty_sharded_container_is_not_deleted(
        self, client, now_sharded
    ):
        assert client.delete(now_sharded).status == 409

    def test_an_upload_is_listed_and_read(self, client, now_sharded):
        assert client.put(now_sharded, 'new', BODY).status == 201
        assert client.listing(now_sharded).names() == ['new', 'o']
        assert client.get(now_sharded, 'new').body == BODY

    def test_a_plain_container_is_listed(self, client, now_plain):
        answer = client.listing(now_plain)
        assert answer.names() == ['o']
        assert SHARD_COUNT_HEADER.lower() not in answer.headers

    def test_a_head_of_a_plain_container_shows_its_sums(
        self, client, now_plain
    ):
        headers = client.head(now_plain).headers
        assert SHARD_COUNT_HEADER.lower() not in headers
        assert headers['x-container-object-count'] == '1'

    def test_new_shards_are_listed(self, client, now_of_more_shards):
        listing = client.listing(now_of_more_shards)
        assert len(listing.json()) == SHARDS

    def test_a_head_shows_the_sums_of_new_shards(
        self, client, now_of_more_shards
    ):
        headers = client.head(now_of_more_shards).headers
        assert headers['x-container-shard-count'] == str(SHARDS)
        assert headers['x-container-object-count'] == str(SHARDS)


@contextlib.contextmanager
def stale(cluster: Cluster, client: Client, container: str):
    """Put a container's info from before the block back into memcached."""
    client.get(container, 'any')
    memcached = memcached_of(cluster)
    key = get_cache_key(client.account, container)
    info = memcached.get(key)
    assert info
    yield
    memcached.set(key, info, time=60)


class TestWithoutMemcached:
    @pytest.fixture
    def client(self, client, stopped) -> Client:
        stopped('memcached')
        return client

    def test_containers_can_be_created_and_deleted(self, client, backing):
        container = make_sharded(client)
        answer = client.head(container)
        assert answer.headers['x-container-shard-count'] == str(SHARDS)
        assert client.delete(container).status == 204
        assert client.get(container).status == 404
        assert backing.shards(container) == []

    def test_objects_can_be_written_and_read(self, client):
        container = make_sharded(client)
        assert client.put(container, 'o', BODY).status == 201
        assert client.get(container, 'o').body == BODY
        colour = {'X-Object-Meta-Colour': 'red'}
        assert client.post(container, 'o', headers=colour).status == 202
        answer = client.head(container, 'o')
        assert answer.headers['x-object-meta-colour'] == 'red'
        assert client.delete(container, 'o').status == 204
        assert client.get(container, 'o').status == 404

    def test_listings_and_sums_are_right(self, client):
        container = make_sharded(client)
        names = [f'o{i}' for i in range(8)]
        for name in names:
            client.put(container, name, BODY)
        assert client.listing(container).names() == names
        headers = client.head(container).headers
        assert headers['x-container-object-count'] == '8'
        assert headers['x-container-bytes-used'] == str(8 * len(BODY))

    def test_a_nonempty_container_is_not_deleted(self, client):
        container = make_sharded(client)
        client.put(container, 'o', BODY)
        assert client.delete(container).status == 409
        assert client.listing(container).names() == ['o']

    def test_quotas_hold(self, client):
        container = make_sharded(client, X_Container_Meta_Quota_Count='0')
        assert client.put(container, 'o', BODY).status == 413

    def test_objects_from_before_are_there(self, client, stored):
        assert client.get(stored, 'o').body == BODY
        assert client.listing(stored).names() == ['o']


@pytest.fixture(scope='module')
def two_of_three(tmp_path_factory):
    """A cluster in which two of three replicas are left."""
    path = tmp_path_factory.mktemp('three')
    options = ClusterOptions(replicas=3, settings=LASTING_TRUST)
    with Cluster(path, options) as cluster:
        cluster.stop('container-1')
        cluster.stop('object-2')
        yield cluster


@pytest.fixture(scope='class')
def known_to_one(two_of_three) -> list[str]:
    """Containers whose object is listed by one of the two replicas left."""
    client = login(two_of_three)
    containers = [make_sharded(client) for _ in ROUNDS]
    # Each object server updates one container server, so all must be up to
    # update the only container server that is up.
    two_of_three.start('object-2')
    two_of_three.stop('container-2')
    for container in containers:
        assert client.put(container, 'o', BODY).status == 201
    two_of_three.start('container-2')
    two_of_three.stop('object-2')
    return containers


class TestOneNodeOfThreeAway:
    """One container server and one object server of another node are down."""

    @pytest.fixture
    def client(self, two_of_three) -> Client:
        return login(two_of_three)

    def test_containers_can_be_created_and_deleted(self, client):
        container = make_sharded(client)
        answer = client.head(container)
        assert answer.headers['x-container-shard-count'] == str(SHARDS)
        assert client.delete(container).status == 204
        assert client.get(container).status == 404

    def test_objects_can_be_written_and_read(self, client):
        container = make_sharded(client)
        assert client.put(container, 'o', BODY).status == 201
        assert client.get(container, 'o').body == BODY
        colour = {'X-Object-Meta-Colour': 'red'}
        assert client.post(container, 'o', headers=colour).status == 202
        answer = client.head(container, 'o')
        assert answer.headers['x-object-meta-colour'] == 'red'
        assert client.delete(container, 'o').status == 204
        assert client.get(container, 'o').status == 404

    def test_listings_are_right_once_replicas_agree(
        self, client, two_of_three
    ):
        container = make_sharded(client)
        names = [f'o{i}' for i in range(8)]
        for name in names:
            assert client.put(container, name, BODY).status == 201

        def are_listed() -> bool:
            two_of_three.daemon('object-updater')
            two_of_three.daemon('container-replicator')
            return client.listing(container).names() == names

        wait_until(are_listed)

    @pytest.mark.parametrize('i', ROUNDS)
    def test_a_container_whose_object_one_replica_lists_is_not_deleted(
        self, client, known_to_one, i
    ):
        container = known_to_one[i]
        assert client.delete(container).status in (409, 503)
        assert client.get(container, 'o').body == BODY
