# SPDX-License-Identifier: Apache-2.0
"""Tests of what counts against a rate, and in which container.

Most tests replace the limiter by one that records what it counts. They send
the requests that Swift's filters send for one client request.
"""

from io import BytesIO
from typing import NamedTuple

import pytest
from swift.common.middleware.versioned_writes.object_versioning import (
    DELETE_MARKER_CONTENT_TYPE,
    ByteCountingReader,
)
from swift.common.swob import Request, Response
from swift.proxy.controllers.base import (
    get_cache_key,
    headers_to_container_info,
)

from shardmw.backend.answers import ContainerStats
from shardmw.backend.config import parse_options
from shardmw.backend.containers import (
    RECORD_HEADER,
    LogicalContainer,
    described_by,
)
from shardmw.backend.requests import Backend
from shardmw.core.layout import Layout
from shardmw.core.paths import Path, parse_path
from shardmw.core.placement import (
    backing_container,
    hidden_account,
    shard_of,
    versions_container,
)
from shardmw.proxy.ratelimit import limiter
from shardmw.proxy.ratelimit.accounting import Accounting
from shardmw.proxy.ratelimit.limiter import RateLimiter, listing_key, write_key
from shardmw.proxy.ratelimit.rate_header import RATE_SYSMETA

ACCOUNT = 'AUTH_test'
LAYOUT = Layout('65a1b2c3d4e5f', 4)
VERSIONING = {
    'X-Container-Sysmeta-Versions-Container': '%00versions%00c',
    'X-Container-Sysmeta-Versions-Enabled': 'True',
}
VERSIONS_LOCATION = {'X-Container-Sysmeta-Versions-Location': 'archive'}

PLAIN_KEY = write_key(ACCOUNT, 'c')
LISTING_KEY = listing_key(ACCOUNT, 'c')


def shard_key(container: str, name: str) -> str:
    """Return the key at which a write to a sharded container counts."""
    backing = backing_container(
        container, LAYOUT.id, shard_of(name, LAYOUT.shards)
    )
    return write_key(hidden_account(ACCOUNT), backing)


class Logger:
    """A logger that ignores all messages and metrics."""

    def __getattr__(self, _name: str):
        return lambda *_args, **_kwargs: None


class Stats:
    """The sums of a sharded container without its root."""

    def __init__(self, object_count: int) -> None:
        self.object_count = object_count

    def of(self, _env: dict, _target: LogicalContainer) -> ContainerStats:
        return ContainerStats(self.object_count, 0)


class Counted(NamedTuple):
    """A request that the limiter has counted."""

    key: str
    object_count: int
    override: float | None = None
    can_refuse: bool = True


class RecordingLimiter:
    """A limiter that records requests; it refuses all if `is_full`."""

    def __init__(self, conf: dict[str, str]) -> None:
        self.limits = parse_options(conf).rate_limits
        self.counted: list[Counted] = []
        self.backlog: dict[str, int] = {}
        self.is_full = False

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self.counted]

    def write(self, req, path, key, object_count, override, can_refuse):
        assert path.account == ACCOUNT
        counted = Counted(key, object_count, override, can_refuse)
        self.counted.append(counted)
        return self._answer(req) if can_refuse else None

    def listing(self, req, path, key, object_count):
        assert path.account == ACCOUNT
        self.counted.append(Counted(key, object_count))
        return self._answer(req)

    def add_backlog(self, key, count):
        self.backlog[key] = self.backlog.get(key, 0) + count

    def _answer(self, req) -> Response | None:
        if not self.is_full:
            return None
        headers = {'Retry-After': '7'}
        return Response(status='498 Rate Limited', headers=headers)


LIMITS = {'container_ratelimit_0': '10', 'container_listing_ratelimit_0': '1'}


def no_app(_env, _start_response):
    raise AssertionError('the container info is at hand')


class Proxy:
    """An Accounting and the containers that it knows.

    :param objects: the sum of the objects in the shards of each container
    """

    def __init__(self, conf: dict = LIMITS, objects: int = 10) -> None:
        self.infos: dict[str, dict] = {}
        self.backend = Backend(no_app, Logger(), 4)
        self.limiter = RecordingLimiter(conf)
        self.accounting = Accounting(
            self.backend, Stats(objects), self.limiter
        )

    def add(self, container: str, status: int = 200, **headers: str) -> None:
        """Make a container known."""
        self.infos[container] = headers_to_container_info(
            {
                'X-Container-Object-Count': '3',
                'X-Container-Write': 'writers',
                'X-Container-Read': 'readers',
                **headers,
            },
            status,
        )

    def add_sharded(self, container: str, **headers: str) -> None:
        """Make a sharded container known."""
        record = {RECORD_HEADER: LAYOUT.to_record()}
        self.add(container, **headers, **record)

    def client(self) -> 'Client':
        """Start a client's request."""
        return Client(self)

    def send(self, *args, **kwargs) -> Response | None:
        """Send a client's request that consists of one request."""
        return self.client().send(*args, **kwargs)


class Client:
    """A client request, whose sub-requests share an info cache."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.infocache = {
            get_cache_key(ACCOUNT, container): info
            for container, info in proxy.infos.items()
        }

    def send(
        self,
        method: str,
        container: str,
        name: str | None = None,
        source: str | None = None,
        query: str = '',
        headers: dict[str, str] | None = None,
        is_read_from_client: bool = False,
    ) -> Response | None:
        """Send a request to the filter; return its refusal or None."""
        rest = f'/{name}' if name is not None else ''
        environ = {
            'REQUEST_METHOD': method,
            'PATH_INFO': f'/v1/{ACCOUNT}/{container}{rest}',
            'QUERY_STRING': query,
            'swift.infocache': self.infocache,
        }
        if source:
            environ['swift.source'] = source
        req = Request.blank('/', environ=environ, headers=headers)
        if is_read_from_client:
            req.environ['wsgi.input'] = ByteCountingReader(BytesIO())
        path = parse_path(req.path_info)
        info = self.proxy.infos[container]
        target = described_by(path, info)
        accounting = self.proxy.accounting
        count = accounting.write if name is not None else accounting.listing
        return count(req, path, info, target)


@pytest.fixture
def proxy() -> Proxy:
    proxy = Proxy()
    proxy.add('c')
    proxy.add_sharded('s')
    return proxy


class TestWrite:
    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_to_a_plain_container_counts_there(self, proxy, method):
        assert proxy.send(method, 'c', 'o') is None
        assert proxy.limiter.counted == [Counted(PLAIN_KEY, 3)]

    @pytest.mark.parametrize('name', ['o', 'p', 'x' * 1024, 'é'])
    def test_to_a_sharded_container_counts_in_the_shard(self, proxy, name):
        wsgi_name = name.encode().decode('latin-1')
        assert proxy.send('PUT', 's', wsgi_name) is None
        assert proxy.limiter.keys == [shard_key('s', name)]

    def test_size_of_a_shard_is_the_mean_rounded_up(self):
        proxy = Proxy(objects=9)
        proxy.add_sharded('s', **{'X-Container-Object-Count': '1000'})
        proxy.send('PUT', 's', 'o')
        assert [each.object_count for each in proxy.limiter.counted] == [3]

    def test_own_rate_of_the_container_is_handed_on(self):
        proxy = Proxy(conf={})
        proxy.add_sharded('s', **{RATE_SYSMETA: '0.5'})
        proxy.send('PUT', 's', 'o')
        assert [each.override for each in proxy.limiter.counted] == [0.5]

    def test_without_limits_nothing_counts(self):
        proxy = Proxy(conf={})
        proxy.add('c')
        assert proxy.send('PUT', 'c', 'o') is None
        assert proxy.limiter.counted == []

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'OPTIONS'])
    def test_reads_do_not_count(self, proxy, method):
        proxy.send(method, 's', 'o')
        assert proxy.limiter.counted == []

    def test_to_a_missing_container_does_not_count(self, proxy):
        proxy.add('missing', status=404)
        assert proxy.send('PUT', 'missing', 'o') is None
        assert proxy.limiter.counted == []

    def test_that_is_repeated_counts_each_time(self, proxy):
        client = proxy.client()
        client.send('PUT', 's', 'o')
        client.send('PUT', 's', 'o')
        assert len(proxy.limiter.counted) == 2

    def test_refusal_is_handed_on(self, proxy):
        proxy.limiter.is_full = True
        assert proxy.send('PUT', 's', 'o').status == '498 Rate Limited'


class TestVersionedContainer:
    """The requests that object versioning sends."""

    @pytest.fixture(params=['add', 'add_sharded'])
    def proxy(self, request) -> Proxy:
        proxy = Proxy()
        add = getattr(proxy, request.param)
        add('c', **VERSIONING)
        add(versions_container('c'))
        return proxy

    @pytest.fixture
    def key(self, request, proxy) -> str:
        """Return the key at which writes to the object `o` count."""
        if request.node.callspec.params['proxy'] == 'add_sharded':
            return shard_key('c', 'o')
        return PLAIN_KEY

    def store_version(self, client, version, **kwargs):
        return client.send(
            'PUT',
            versions_container('c'),
            f'\0o\0{version}',
            source='OV',
            **kwargs,
        )

    def upload(self, client, keeps_unversioned=False):
        if keeps_unversioned:
            client.send('GET', 'c', 'o', source='OV')
            refusal = self.store_version(client, 1)
            if refusal:
                return refusal
        refusal = self.store_version(client, 2, is_read_from_client=True)
        return refusal or client.send('PUT', 'c', 'o')

    def delete(self, client, keeps_unversioned=False):
        if keeps_unversioned:
            client.send('GET', 'c', 'o', source='OV')
            self.store_version(client, 1)
        headers = {'Content-Type': DELETE_MARKER_CONTENT_TYPE}
        self.store_version(client, 3, headers=headers)
        client.send('DELETE', 'c', 'o')

    @pytest.mark.parametrize('keeps_unversioned', [False, True])
    def test_upload_counts_once(self, proxy, key, keeps_unversioned):
        assert self.upload(proxy.client(), keeps_unversioned) is None
        assert proxy.limiter.keys == [key]

    @pytest.mark.parametrize('keeps_unversioned', [False, True])
    def test_delete_counts_once(self, proxy, key, keeps_unversioned):
        self.delete(proxy.client(), keeps_unversioned)
        assert proxy.limiter.keys == [key]

    def test_delete_of_a_version_counts_once(self, proxy, key):
        client = proxy.client()
        versions = versions_container('c')
        client.send('DELETE', versions, '\0o\0002', source='OV')
        client.send('PUT', 'c', 'o', source='OV')
        assert proxy.limiter.keys == [key]

    def test_each_upload_of_an_archive_counts(self, proxy, key):
        client = proxy.client()
        for _ in range(3):
            self.upload(client)
        assert proxy.limiter.keys == [key] * 3

    def test_refused_upload_is_refused_before_its_version_is_stored(
        self, proxy, key
    ):
        proxy.limiter.is_full = True
        client = proxy.client()
        assert self.upload(client).status_int == 498
        assert proxy.limiter.keys == [key]

    def test_upload_after_a_refused_one_counts(self, proxy, key):
        client = proxy.client()
        proxy.limiter.is_full = True
        self.upload(client)
        proxy.limiter.is_full = False
        assert self.upload(client) is None
        assert proxy.limiter.keys == [key] * 2

    def test_size_is_that_of_the_client_s_container(self, proxy, key):
        versions = versions_container('c')
        proxy.infos[versions]['object_count'] = '1000'
        self.upload(proxy.client())
        assert [each.object_count for each in proxy.limiter.counted] == [3]


class TestVersionsLocation:
    """The requests that ``X-Versions-Location`` causes."""

    @pytest.fixture
    def proxy(self) -> Proxy:
        proxy = Proxy()
        proxy.add_sharded('c', **VERSIONS_LOCATION)
        proxy.add_sharded('archive')
        return proxy

    def upload(self, client):
        refusal = client.send('GET', 'c', 'o', source='VW')
        if refusal:
            return refusal
        client.send('PUT', 'archive', '001o/1', source='VW')
        return client.send('PUT', 'c', 'o')

    def test_upload_counts_once_in_its_own_container(self, proxy):
        assert self.upload(proxy.client()) is None
        assert proxy.limiter.keys == [shard_key('c', 'o')]

    def test_delete_that_restores_a_version_counts_once(self, proxy):
        client = proxy.client()
        client.send('GET', 'archive', source='VW')
        client.send('GET', 'archive', '001o/1', source='VW')
        client.send('PUT', 'c', 'o', source='VW')
        client.send('DELETE', 'archive', '001o/1', source='VW')
        assert proxy.limiter.keys == [shard_key('c', 'o')]

    def test_refusal_is_a_503_that_says_when_to_retry(self, proxy):
        proxy.limiter.is_full = True
        refusal = self.upload(proxy.client())
        assert refusal.status_int == 503
        assert refusal.headers['Retry-After'] == '7'

    def test_read_by_the_client_does_not_count(self, proxy):
        proxy.send('GET', 'c', 'o')
        assert proxy.limiter.counted == []


class TestLargeObject:
    def test_delete_with_its_segments_counts_once(self, proxy):
        proxy.limiter.is_full = True
        client = proxy.client()
        for i in range(3):
            assert client.send('DELETE', 's', f'{i}', source='SLO') is None
        assert client.send('DELETE', 'c', 'large', source='SLO') is None
        (counted,) = proxy.limiter.counted
        assert counted.key == shard_key('s', '0')
        assert not counted.can_refuse

    def test_delete_that_leaves_its_segments_to_the_expirer_is_not_refused(
        self, proxy
    ):
        query = 'multipart-manifest=delete&async=yes'
        proxy.send('DELETE', 's', 'large', query=query)
        assert [each.can_refuse for each in proxy.limiter.counted] == [False]

    def test_upload_of_a_segment_can_be_refused(self, proxy):
        query = 'multipart-manifest=delete'
        proxy.send('PUT', 's', 'large', query=query)
        assert [each.can_refuse for each in proxy.limiter.counted] == [True]

    def test_end_of_an_s3_upload_in_parts_is_not_refused(self, proxy):
        headers = {'X-Static-Large-Object': 'True'}
        proxy.send('PUT', 's', 'large', source='S3', headers=headers)
        (counted,) = proxy.limiter.counted
        assert counted.key == shard_key('s', 'large')
        assert not counted.can_refuse

    def test_upload_of_a_part_can_be_refused(self, proxy):
        proxy.limiter.is_full = True
        refusal = proxy.send('PUT', 's', 'large/id/1', source='S3')
        assert refusal.status_int == 498


class TestListing:
    def test_counts_for_the_logical_container(self, proxy):
        assert proxy.send('GET', 's') is None
        key = listing_key(ACCOUNT, 's')
        assert proxy.limiter.counted == [Counted(key, 3)]

    def test_counts_for_a_plain_container(self, proxy):
        assert proxy.send('GET', 'c') is None
        assert proxy.limiter.counted == [Counted(LISTING_KEY, 3)]

    def test_that_is_refused_says_so(self, proxy):
        proxy.limiter.is_full = True
        assert proxy.send('GET', 's').status_int == 498

    def test_counts_once_in_a_client_request(self, proxy):
        client = proxy.client()
        client.send('GET', 's')
        client.send('GET', 's')
        assert len(proxy.limiter.counted) == 1

    def test_that_was_refused_does_not_count_as_admitted(self, proxy):
        client = proxy.client()
        proxy.limiter.is_full = True
        client.send('GET', 's')
        assert client.send('GET', 's').status_int == 498

    def test_of_versions_counts_once_with_its_container(self, proxy):
        proxy.add_sharded('c', **VERSIONING)
        proxy.add_sharded(versions_container('c'))
        client = proxy.client()
        client.send('GET', 'c')
        client.send('HEAD', versions_container('c'), source='OV')
        client.send('GET', versions_container('c'), source='OV')
        assert proxy.limiter.keys == [LISTING_KEY]

    @pytest.mark.parametrize('source', ['DLO', 'SLO', 'VW'])
    def test_for_an_object_does_not_count(self, proxy, source):
        proxy.send('GET', 's', source=source)
        assert proxy.limiter.counted == []

    def test_of_a_missing_container_does_not_count(self, proxy):
        proxy.add('missing', status=404)
        assert proxy.send('GET', 'missing') is None
        assert proxy.limiter.counted == []

    def test_without_limits_does_not_count(self):
        proxy = Proxy(conf={'container_ratelimit_0': '10'})
        proxy.add_sharded('s')
        assert proxy.send('GET', 's') is None
        assert proxy.limiter.counted == []


class TestHead:
    def test_of_a_sharded_container_counts_as_a_listing(self, proxy):
        assert proxy.send('HEAD', 's') is None
        assert proxy.limiter.keys == [listing_key(ACCOUNT, 's')]

    def test_of_a_plain_container_does_not_count(self, proxy):
        assert proxy.send('HEAD', 'c') is None
        assert proxy.limiter.counted == []

    def test_that_is_refused_says_so(self, proxy):
        proxy.limiter.is_full = True
        assert proxy.send('HEAD', 's').status_int == 498

    @pytest.mark.parametrize('methods', [('HEAD', 'GET'), ('GET', 'HEAD')])
    def test_and_listing_in_one_client_request_count_once(
        self, proxy, methods
    ):
        client = proxy.client()
        for method in methods:
            client.send(method, 's', source='S3')
        assert len(proxy.limiter.counted) == 1

    def test_by_object_versioning_for_a_delete_is_not_refused(self, proxy):
        """Object versioning would answer the DELETE with a 500."""
        proxy.add_sharded(versions_container('c'))
        proxy.limiter.is_full = True
        versions = versions_container('c')
        assert proxy.send('HEAD', versions, source='OV') is None
        assert proxy.limiter.counted == []


class TestMoreOfListing:
    def target(self, proxy: Proxy, container: str) -> LogicalContainer:
        return LogicalContainer(Path('v1', ACCOUNT, container), {}, LAYOUT)

    @pytest.mark.parametrize('container', ['c', versions_container('c')])
    def test_further_reads_delay_the_next_listing(self, proxy, container):
        proxy.accounting.more_of_listing(self.target(proxy, container), 2)
        assert proxy.limiter.backlog == {LISTING_KEY: 2}

    def test_a_single_read_adds_nothing(self, proxy):
        proxy.accounting.more_of_listing(self.target(proxy, 'c'), 0)
        assert proxy.limiter.backlog == {}

    def test_without_limits_nothing_counts(self):
        proxy = Proxy(conf={})
        proxy.accounting.more_of_listing(self.target(proxy, 'c'), 2)
        assert proxy.limiter.backlog == {}


class Memcached:
    """Counters in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def get(self, key: str, raise_on_error: bool = False):
        return self.values.get(key)

    def set(self, key: str, value, time: int = 0, **_others) -> None:
        self.values[key] = value

    def incr(self, key: str, delta: int = 1, time: int = 0) -> int:
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]


class TestRateLimiter:
    """Requests to the real limiter, with a fake memcached."""

    @pytest.fixture(autouse=True)
    def naps(self, monkeypatch) -> list[float]:
        """Record how long requests would sleep, and let none sleep."""
        naps = []
        monkeypatch.setattr(limiter, 'sleep', naps.append)
        return naps

    def limiter_of(self, **conf: str) -> RateLimiter:
        conf = {
            'container_ratelimit_0': '0.01',
            'container_listing_ratelimit_0': '0.01',
            'max_sleep_time_seconds': '0',
            'rate_buffer_seconds': '0',
            'workers': '1',
            **conf,
        }
        backend = Backend(no_app, Logger(), 4)
        limits = parse_options(conf).rate_limits
        return RateLimiter(backend, limits, Logger())

    @pytest.fixture
    def memcached(self) -> Memcached:
        return Memcached()

    @pytest.fixture
    def send(self, memcached):
        """Return a function that sends a request to a limiter."""

        def send(rates, method='PUT', flag='', **kwargs):
            req = Request.blank(f'/v1/{ACCOUNT}/c/o', method=method)
            info = {'status': 200, 'sysmeta': {limiter.ACCOUNT_FLAG: flag}}
            req.environ['swift.infocache'] = {get_cache_key(ACCOUNT): info}
            req.environ['swift.cache'] = memcached
            path = parse_path(req.path_info)
            if method == 'GET':
                return rates.listing(req, path, LISTING_KEY, 0)
            return rates.write(req, path, PLAIN_KEY, 0, **kwargs)

        return send

    def test_first_write_proceeds_and_the_second_is_refused(self, send):
        rates = self.limiter_of()
        assert send(rates) is None
        refusal = send(rates)
        assert refusal.status == '498 Rate Limited'
        assert refusal.body == b'Slow down'
        assert 99 <= int(refusal.headers['Retry-After']) <= 100

    def test_two_workers_share_the_counter(self, send):
        assert send(self.limiter_of()) is None
        assert send(self.limiter_of()).status_int == 498

    def test_writes_and_listings_have_counters_of_their_own(self, send):
        rates = self.limiter_of()
        assert send(rates) is None
        assert send(rates, 'GET') is None
        assert send(rates, 'GET').status_int == 498

    def test_write_waits_for_its_slot(self, send, naps):
        rates = self.limiter_of(
            container_ratelimit_0='2', max_sleep_time_seconds='10'
        )
        send(rates)
        assert send(rates) is None
        (seconds,) = naps
        assert 0.4 < seconds <= 0.5

    def test_write_that_cannot_be_refused_delays_the_next(self, send):
        rates = self.limiter_of()
        send(rates)
        assert send(rates, can_refuse=False) is None
        rates.limits = parse_options(
            {'container_ratelimit_0': '0.01', 'max_sleep_time_seconds': '150'}
        ).rate_limits
        assert send(rates).status_int == 498

    def test_own_rate_replaces_that_for_the_size(self, send):
        rates = self.limiter_of()
        for _ in range(3):
            assert send(rates, override=float('inf')) is None

    def test_whitelisted_account_has_no_limit(self, send):
        rates = self.limiter_of()
        for _ in range(3):
            assert send(rates, flag='WHITELIST') is None

    @pytest.mark.parametrize(
        ('flag', 'status'),
        [('BLACKLIST', 497), ('WHITELIST', None), ('', None)],
    )
    def test_blacklisted_account_is_refused(self, flag, status, naps):
        req = Request.blank(f'/v1/{ACCOUNT}/c/o')
        info = {'status': 200, 'sysmeta': {limiter.ACCOUNT_FLAG: flag}}
        req.environ['swift.infocache'] = {get_cache_key(ACCOUNT): info}
        path = parse_path(req.path_info)
        refusal = self.limiter_of().blacklisted(req, path)
        assert (refusal and refusal.status_int) == status
        assert naps == ([1] if status else [])

    def test_flag_of_a_long_name_is_not_kept(self):
        account = 'a' * 8000
        req = Request.blank(f'/v1/{account}/c/o')
        info = {'status': 404, 'sysmeta': {}}
        req.environ['swift.infocache'] = {get_cache_key(account): info}
        rates = self.limiter_of()
        assert rates.blacklisted(req, parse_path(req.path_info)) is None
        assert not rates._flags

    def test_without_limits_no_account_is_looked_up(self):
        req = Request.blank(f'/v1/{ACCOUNT}/c/o')
        rates = self.limiter_of()
        rates.limits = parse_options({}).rate_limits
        assert rates.blacklisted(req, parse_path(req.path_info)) is None
