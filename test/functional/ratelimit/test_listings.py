# SPDX-License-Identifier: Apache-2.0
"""Listing rates apply per container, to all proxies together.

The rate is one listing in many seconds, and listings may not wait that long:
the first listing of a test succeeds, and the others are refused.
"""

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import shard_of
from test.functional.alike import masked
from test.functional.conftest import STRANGER, make_plain, unique
from test.functional.ratelimit.limits import (
    FIRST,
    INTERVAL,
    MAKERS,
    SHARDS,
    SLOW_DOWN,
    assert_refused,
    lines_since,
    log_size,
    make_sharded,
    reconfigured,
)
from test.functional.realclients import code_of, keys_of, s3_client
from test.functional.test_large_objects import PARTS, WHOLE, make_dlo
from test.functional.test_versioning import ON, put_version, versions_of

LIMIT = 'shardmw.container_listing_ratelimit_0'
SETTINGS = {
    LIMIT: f'{1 / INTERVAL}',
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.stats_cache_seconds': '0',
}


@pytest.fixture(scope='module')
def limited(tmp_path_factory):
    """Two proxies that limit listings."""
    options = ClusterOptions(proxies=2, settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('listings'), options) as cluster:
        yield cluster


class TestLimit:
    def test_refuses_the_second_listing(self, client, container):
        assert client.listing(container).status == 200
        assert_refused(client.listing(container))

    def test_is_for_all_sorts_of_listings_together(self, client, container):
        client.put(container, 'a/b')
        assert client.listing(container).names() == ['a/b']
        assert_refused(client.get(container))
        assert_refused(client.listing(container, prefix='a/'))
        assert_refused(client.listing(container, delimiter='/'))
        assert_refused(client.listing(container, marker='a'))
        assert_refused(client.listing(container, limit='0'))

    def test_holds_at_all_proxies_together(
        self, client, other_proxy, container
    ):
        assert client.listing(container).status == 200
        assert_refused(other_proxy.listing(container))

    def test_is_separate_for_each_container(self, client, container):
        assert client.listing(container).status == 200
        assert client.listing(make_plain(client)).status == 200
        assert client.listing(make_sharded(client)).status == 200

    def test_is_not_for_heads_of_plain_containers(self, client):
        container = make_plain(client)
        client.listing(container)
        assert client.head(container).status == 204
        assert client.head(container).status == 204

    def test_is_not_used_up_by_heads_of_plain_containers(self, client):
        container = make_plain(client)
        client.head(container)
        client.head(container)
        assert client.listing(container).status == 200

    def test_is_for_heads_of_sharded_containers(self, client):
        container = make_sharded(client)
        client.listing(container)
        answer = client.head(container)
        assert answer.status == 498
        seconds = int(answer.headers['retry-after'])
        assert 0 < seconds <= INTERVAL

    def test_is_used_up_by_heads_of_sharded_containers(self, client):
        container = make_sharded(client)
        assert client.head(container).status == 204
        assert_refused(client.listing(container))

    def test_is_not_used_up_by_heads_of_clients_who_may_not_read(
        self, client, stranger
    ):
        container = make_sharded(client)
        assert stranger.head(container).status == 403
        assert client.head(container).status == 204
        assert stranger.head(container).status == 403

    def test_is_not_for_objects(self, client, container):
        client.listing(container)
        for _ in range(2):
            assert client.put(container, FIRST, b'x').status == 201
            assert client.get(container, FIRST).status == 200

    def test_is_not_used_up_by_writes(self, client, container):
        client.put(container, FIRST, b'x')
        client.post(container)
        assert client.listing(container).status == 200

    def test_is_not_for_the_account(self, client):
        for _ in range(2):
            assert client.listing().status == 200

    def test_is_not_used_up_by_clients_who_may_not_read(
        self, client, stranger, container
    ):
        assert stranger.listing(container).status == 403
        assert client.anonymous().listing(container).status == 401
        assert client.listing(container).status == 200

    def test_is_not_shown_to_clients_who_may_not_read(
        self, client, stranger, container
    ):
        client.listing(container)
        assert stranger.listing(container).status == 403
        assert client.anonymous().listing(container).status == 401

    def test_is_shared_by_all_clients_who_may_read(
        self, client, stranger, container
    ):
        client.post(container, headers={'X-Container-Read': STRANGER})
        assert stranger.listing(container).status == 200
        assert_refused(client.listing(container))
        assert_refused(stranger.listing(container))

    def test_is_not_for_a_missing_container(self, client):
        name = unique('missing')
        assert client.listing(name).status == 404
        assert client.listing(name).status == 404

    def test_is_not_for_the_segments_of_a_large_object(
        self, client, container
    ):
        make_dlo(client, container, container)
        for _ in range(2):
            assert client.get(container, 'large').body == WHOLE
        names = client.listing(container).names()
        assert len(names) == len(PARTS) + 2

    def test_is_logged_when_it_refuses(self, limited, client, container):
        client.listing(container)
        start = log_size(limited, 'proxy-1')
        client.listing(container)
        (line,) = lines_since(limited, 'proxy-1', start)
        path = client.path(container)
        assert f'shardmw: 498 for GET {path}: would wait ' in line

    def test_refusal_is_that_of_a_plain_container(self, client):
        answers = []
        for make in MAKERS.values():
            container = make(client)
            client.listing(container)
            answer = masked(client.listing(container), container)
            del answer.headers['retry-after']
            answers.append(answer)
        assert answers[0] == answers[1]
        assert answers[0].status == 498


class TestS3:
    def test_refused_listing_is_slow_down(self, limited, container):
        s3 = s3_client(limited)
        assert keys_of(s3.list_objects_v2(Bucket=container)) == []
        with pytest.raises(ClientError) as error:
            s3.list_objects_v2(Bucket=container)
        assert code_of(error) == 'SlowDown'


class TestHeadOfVersions:
    """A HEAD of a versioned container also HEADs its versions container."""

    @pytest.fixture
    def versioned(self, client) -> str:
        container = make_sharded(client)
        client.post(container, headers=ON)
        return container

    def test_counts_once(self, client, versioned):
        assert client.head(versioned).status == 204
        assert client.head(versioned).status == 498

    def test_for_a_delete_is_not_limited(self, client, versioned):
        assert client.listing(versioned).status == 200
        assert client.delete(versioned).status == 204


class TestListingOfVersions:
    @pytest.fixture
    def versioned(self, client, container) -> str:
        """A container with an object that has two versions."""
        client.post(container, headers=ON)
        put_version(client, container, FIRST, b'first')
        put_version(client, container, FIRST, b'second')
        return container

    def test_counts_once(self, client, versioned):
        assert len(versions_of(client, versioned)) == 2
        assert_refused(client.listing(versioned))

    def test_is_refused(self, client, versioned):
        assert client.listing(versioned).status == 200
        answer = client.listing(versioned, versions='')
        assert_refused(answer)

    def test_for_deletes_in_older_modes_is_not_limited(
        self, client, container
    ):
        """For a DELETE, Swift lists the archive in these modes."""
        archive = make_plain(client)
        headers = {'X-Versions-Location': archive}
        client.post(container, headers=headers)
        client.put(container, FIRST, b'first')
        client.put(container, FIRST, b'second')
        client.put(container, FIRST, b'third')
        client.listing(archive)
        client.delete(container, FIRST)
        assert client.get(container, FIRST).body == b'second'
        client.delete(container, FIRST)
        assert client.get(container, FIRST).body == b'first'


@pytest.fixture(scope='class')
def sizes(limited) -> Iterator[None]:
    """Listings of small containers are not limited."""
    settings = {LIMIT: None, 'shardmw.container_listing_ratelimit_5': '0.01'}
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('sizes')
class TestSize:
    def fill(self, client, container):
        for name in map(str, range(5)):
            client.put(container, name)
        client.post(container)

    def test_small_container_is_not_limited(self, client, container):
        for _ in range(3):
            assert client.listing(container).status == 200

    def test_large_container_is_limited(self, client):
        container = make_plain(client)
        self.fill(client, container)
        assert client.listing(container).status == 200
        assert_refused(client.listing(container))

    def test_that_counts_is_that_of_a_shard(self, client):
        container = make_sharded(client)
        self.fill(client, container)
        for _ in range(2):
            assert client.listing(container).status == 200


#: The size of a page of one shard's names that takes two requests.
PAGE = 20
NEIGHBOURS = [
    name for name in map(str, range(99)) if shard_of(name, SHARDS) == 0
][: PAGE + 1]

#: Seconds for each listing: a listing may wait for one turn, but not for two.
TURN = 10


@pytest.fixture(scope='class')
def patient(limited) -> Iterator[None]:
    settings = {LIMIT: f'{1 / TURN}', 'shardmw.max_sleep_time_seconds': '15'}
    with reconfigured(limited, settings):
        yield


@pytest.mark.usefixtures('patient')
class TestRefill:
    def test_counts_as_another_listing(self, client):
        container = make_sharded(client)
        for name in NEIGHBOURS:
            client.put(container, name)
        page = client.listing(container, limit=f'{PAGE}').names()
        assert page == sorted(NEIGHBOURS)[:PAGE]
        answer = client.listing(container)
        assert (answer.status, answer.body) == SLOW_DOWN
        assert int(answer.headers['retry-after']) <= 2 * TURN - 15
