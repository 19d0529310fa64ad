# SPDX-License-Identifier: Apache-2.0
"""Sites: the benchmark's own cluster, and remote clusters."""

import socket
import threading
from contextlib import contextmanager
from itertools import islice
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.sources import Listings, Uploads
from shardmw_bench.names import FlatNames, TreeNames
from shardmw_bench.site import embedded_site, remote_site
from shardmw_bench.targets.account import Account, Auth, ContainerHead
from shardmw_saio import ClusterOptions

from test.functional.conftest import USER, make_plain, unique
from test.tools.functional.benching import runner

KINDS = (PLAIN, sharded(3), native(3))
NAMES = TreeNames(2, 10)


@pytest.fixture(scope='module')
def clients():
    with Clients(1) as clients:
        yield clients


@pytest.fixture(scope='module')
def own(clients):
    with embedded_site(ClusterOptions(), runner(clients)) as site:
        yield site


@pytest.fixture
def remote(cluster, clients):
    """The tests' cluster as a remote site."""
    site = remote_site(auth_of(cluster), runner(clients), unique('bench'))
    yield site
    site.cleanup()


def auth_of(cluster, **changes) -> Auth:
    given = {
        'authurl': cluster.auth_url,
        'user': USER,
        'key': cluster.users[USER],
    }
    return Auth(**{**given, **changes})


def token_auth(url: str, token: str) -> Auth:
    return Auth(preauthurl=url, preauthtoken=token)


@contextmanager
def told_in_a_line(*words: str):
    with pytest.raises(BenchError) as told:
        yield
    message = str(told.value)
    assert '\n' not in message
    for word in words:
        assert word in message


def test_a_busy_memcached_is_waited_for(own):
    own.cluster.pause('memcached')
    # longer than Swift waits by default, in three attempts
    timer = threading.Timer(7, own.cluster.resume, ('memcached',))
    timer.start()
    try:
        own.account.check()
    finally:
        timer.join()


def marker_of(request) -> str:
    query = parse_qs(urlsplit(request.target.decode()).query)
    return query.get('marker', [''])[0]


def listed(site, request) -> list[str]:
    """Send a request for a listing; return the names."""
    url = f'{site.urls[0]}{request.target.decode()}'
    answer = requests.get(url, headers={'X-Auth-Token': site.account.token})
    return [row['name'] for row in answer.json()]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.label)
def kind(request):
    return request.param


@pytest.fixture(scope='module', params=KINDS, ids=lambda kind: kind.label)
def filled(request, own):
    """A container filled with the names, and its kind."""
    container = own.make(request.param, NAMES)
    own.fill(container, request.param, NAMES)
    return container, request.param


class TestOwn:
    def test_a_filled_container_lists_and_counts_all(self, own, filled):
        container, _ = filled
        assert own.account.names(container) == list(NAMES)
        assert own.account.head(container).objects == len(NAMES)

    def test_a_populated_container_lists_all_and_can_be_removed(
        self, own, kind
    ):
        container = own.make(kind, NAMES)
        own.populate(container, NAMES, 5)
        assert own.account.names(container) == list(NAMES)
        # the same names overwrite the objects, and so need no room
        own.populate(container, NAMES, 5)
        assert own.account.head(container).objects == len(NAMES)
        own.remove(container)
        assert own.account.head(container) is None

    def test_a_container_can_be_filled_step_by_step(self, own):
        container = own.make(PLAIN)
        own.fill(container, PLAIN, FlatNames(10))
        own.fill(container, PLAIN, FlatNames(30), first=10)
        assert own.account.head(container).objects == 30

    def test_an_unordered_walk_lists_everything_and_ends(self, own, filled):
        container, _ = filled
        names = own.account.names(
            container, query_string='allow_unordered=true'
        )
        assert sorted(names) == list(NAMES)
        source = Listings(
            own.container_path(container), names, 3, unordered=True
        )
        walked = []
        for request in islice(source.requests(0, 1), source.pages):
            assert marker_of(request) == (walked[-1] if walked else '')
            page = listed(own, request)
            assert len(page) == source.rows_of(request.number)
            walked += page
        assert sorted(walked) == list(NAMES)

    def test_spread_uploads_fall_evenly_into_native_ranges(self, own):
        container = own.make(native(3))
        path = own.container_path(container)
        source = Uploads(path, 1, spread=True)
        own._run(own.load(source, 2, count=90), '')
        own._settle_usage(container)
        assert own.account.head(container).objects == 90
        ranges = [0, 0, 0]
        for name in own.account.names(container):
            ranges[int(name[:4], 16) * 3 >> 16] += 1
        assert min(ranges) > 15

    def test_ranges_that_cannot_be_filled_are_refused(self, own):
        with told_in_a_line('2 objects cannot fill 3 native ranges'):
            own.make(native(3), FlatNames(2))


class TestRemote:
    def test_containers_are_created_populated_and_removed(self, remote):
        made = []
        for kind in (PLAIN, sharded(3)):
            container = remote.make(kind)
            remote.populate(container, NAMES)
            head = remote.account.head(container)
            assert head == ContainerHead(len(NAMES), kind.shards)
            made.append(container)
        remote.cleanup()
        assert [remote.account.head(each) for each in made] == [None, None]

    def test_a_token_gives_access_too(self, cluster, clients):
        token = Account(auth_of(cluster)).token
        auth = token_auth(cluster.storage_url, token)
        site = remote_site(auth, runner(clients), unique('bench'))
        site.make(PLAIN)
        site.cleanup()

    def test_has_the_version_of_swift(self, remote):
        assert remote.swift_version.startswith('2.')

    def test_a_policy_can_be_chosen(self, remote, client):
        container = remote.make(sharded(2), policy='Policy-1')
        head = client.head(container)
        assert head.headers['x-storage-policy'] == 'Policy-1'

    def test_a_container_in_use_is_not_touched(self, remote, client):
        container = make_plain(client)
        client.put(container, 'precious', b'1')
        with told_in_a_line(container, 'in use', '1 objects'):
            remote.make(PLAIN, name=container)
        with pytest.raises(ValueError, match='was not made here'):
            remote.remove(container)
        remote.cleanup()
        assert client.get(container).text == 'precious\n'

    def test_cleanup_leaves_other_containers(self, remote, client):
        theirs = make_plain(client)
        remote.make(PLAIN)
        remote.cleanup()
        assert client.head(theirs).status == 204

    def test_refuses_more_shards_than_allowed(self, remote):
        with told_in_a_line('up to 64 shards', 'client_max_shards'):
            remote.make(sharded(2000))

    def test_refuses_native_sharding(self, remote):
        with told_in_a_line('native sharding needs the temporary cluster'):
            remote.make(native(2))

    def test_refuses_to_write_rows(self, remote):
        container = remote.make(PLAIN)
        with told_in_a_line('databases of the temporary cluster'):
            remote.fill(container, PLAIN, NAMES)

    def test_refuses_an_unknown_policy(self, remote):
        with told_in_a_line('400', 'Invalid X-Storage-Policy'):
            remote.make(PLAIN, policy='gold')


class TestAccess:
    def refused(self, auth, clients, *words):
        with told_in_a_line(*words):
            remote_site(auth, runner(clients))

    def test_with_a_wrong_key_is_refused(self, cluster, clients):
        auth = auth_of(cluster, key='wrong')
        self.refused(auth, clients, 'refuses the user', '401')

    def test_at_a_url_that_is_no_auth_url_is_refused(self, cluster, clients):
        auth = auth_of(cluster, authurl=f'{cluster.proxy_urls[0]}/info')
        self.refused(auth, clients, 'gave no token', 'auth v1')

    def test_with_a_wrong_token_is_refused(self, cluster, clients):
        auth = token_auth(cluster.storage_url, 'wrong')
        self.refused(auth, clients, 'refuses the token', '401')

    def test_to_a_port_without_a_server_is_refused(self, clients):
        with socket.socket() as unused:
            unused.bind(('127.0.0.1', 0))
            url = 'http://{}:{}/v1/AUTH_a'.format(*unused.getsockname())
            self.refused(token_auth(url, 't'), clients, 'Connection refused')

    def test_to_an_unknown_host_fails(self, clients):
        auth = token_auth('http://nobody.invalid/v1/AUTH_a', 't')
        self.refused(auth, clients, 'nobody.invalid', 'failed')


def test_a_proxy_without_the_filter_has_plain_containers_only(
    cluster, clients, unfiltered_proxy
):
    url = f'{unfiltered_proxy}/v1/AUTH_test'
    auth = token_auth(url, Account(auth_of(cluster)).token)
    site = remote_site(auth, runner(clients), unique('bench'))
    with told_in_a_line('has no shardmw filter'):
        site.make(sharded(2))
    site.make(PLAIN)
    site.cleanup()
