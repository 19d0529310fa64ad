# SPDX-License-Identifier: Apache-2.0
"""Swift's own quota filters see the sums over all shards.

The pipelines are loaded by Swift's loadapp, with Swift's filters.
"""

import time

import pytest
from swift.common.swob import HTTPForbidden, Request, Response
from swift.proxy.controllers.base import (
    get_account_info,
    get_cache_key,
    get_container_info,
)

from shardmw.backend.containers import RECORD_HEADER, SHARD_COUNT_HEADER
from shardmw.core.layout import Layout
from shardmw.core.placement import versions_container
from shardmw.proxy import info_app
from shardmw.proxy.filter import ShardMiddleware
from shardmw.proxy.info_app import InfoApp
from shardmw.swift.concurrency import sleep, spawn
from test.unit.containers import (
    CONTAINER,
    NEW_ID,
    backing,
    create,
    forget_requests,
    put_sharded_row,
)
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    Logger,
    loaded,
)

FILTERS = [
    'catch_errors',
    'gatekeeper',
    'proxy_logging',
    'memcache',
    'listing_formats',
    'account_quotas',
    'container_quotas',
    'copy',
    'dlo',
    'versioned_writes',
]
OBJECT = f'{CONTAINER}/o'
PATH = f'/v1/{ACCOUNT}'
OWNER = {'swift_owner': True}
RESELLER = {'swift_owner': True, 'reseller_request': True}
READ_ACL = 'X-Container-Read'
COLOUR = 'X-Account-Meta-Colour'

#: A prefix for which Swift finds no end of the names.
NO_END = 'a%ED%9F%BF'
EXCEEDED = (413, b'Upload exceeds quota.')


@pytest.fixture
def app(swift):
    """Load a proxy, with a sharded container of 3 objects of 30 bytes."""
    app = loaded(swift, FILTERS)
    create(swift, app, 2)
    for name in ('a', 'b', 'c'):
        put_sharded_row(swift, name, size=10)
    swift.update_accounts()
    return app


def set_meta(swift, app, path: str, name: str, value: int, env=OWNER):
    """Set metadata of a container or account, such as a quota."""
    resp = swift.send(app, 'POST', path, {name: str(value)}, env)
    assert resp.is_success, resp.status
    forget_requests(swift)


def upload(swift, app, size: int = 0, path: str = OBJECT):
    """Send an upload; return the status and body of the response."""
    headers = {'Content-Length': str(size)}
    env = {'REMOTE_USER': 'somebody'}
    resp = swift.send(app, 'PUT', path, headers, env)
    return resp.status_int, resp.body


def filter_in(app) -> ShardMiddleware:
    """Return this project's filter in a pipeline."""
    return next(each for each in app._pipeline if _is_filter(each))


def info_app_of(app) -> InfoApp:
    """Return the app to which the filters of a pipeline send info requests."""
    return filter_in(app)._pipeline_request_logging_app


def _is_filter(app) -> bool:
    return isinstance(app, ShardMiddleware)


class TestContainerQuota:
    COUNT = 'X-Container-Meta-Quota-Count'
    BYTES = 'X-Container-Meta-Quota-Bytes'

    @pytest.mark.parametrize('most, status', [(3, 413), (4, 201)])
    def test_of_objects_counts_all_shards(self, swift, app, most, status):
        set_meta(swift, app, CONTAINER, self.COUNT, most)
        assert upload(swift, app)[0] == status

    @pytest.mark.parametrize('most, status', [(39, 413), (40, 201)])
    def test_of_bytes_counts_all_shards(self, swift, app, most, status):
        set_meta(swift, app, CONTAINER, self.BYTES, most)
        assert upload(swift, app, 10)[0] == status

    def test_counts_rows_in_the_root_too(self, swift, app):
        swift.put_row(f'/{ACCOUNT}/c/stray')
        set_meta(swift, app, CONTAINER, self.COUNT, 4)
        assert upload(swift, app) == EXCEEDED

    def test_is_refused_by_swifts_filter(self, swift, app):
        set_meta(swift, app, CONTAINER, self.COUNT, 3)
        assert upload(swift, app) == EXCEEDED
        assert ('PUT', OBJECT) not in swift.sent()

    def test_of_a_plain_container_holds_as_before(self, swift, app):
        path = f'{PATH}/plain'
        swift.send(app, 'PUT', path)
        swift.put_row(f'/{ACCOUNT}/plain/a')
        set_meta(swift, app, path, self.COUNT, 1)
        assert upload(swift, app, path=f'{path}/o') == EXCEEDED

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_holds_after_a_client_has_read_the_container(
        self, swift, app, method
    ):
        set_meta(swift, app, CONTAINER, self.COUNT, 3)
        swift.send(app, method, CONTAINER)
        assert upload(swift, app) == EXCEEDED

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_holds_while_a_client_reads_the_container(
        self, swift, app, method
    ):
        set_meta(swift, app, CONTAINER, self.COUNT, 3)
        swift.memcached.values.clear()
        uploads = []

        def upload_meanwhile():
            uploads.append(spawn(upload, swift, app))
            sleep(0)

        shard = f'/{HIDDEN}/{backing(swift, 1)}'
        swift.servers.before(shard, upload_meanwhile)
        swift.send(app, method, CONTAINER)
        assert uploads[0].wait() == EXCEEDED

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_holds_after_a_client_was_denied_the_container(
        self, swift, app, method
    ):
        set_meta(swift, app, CONTAINER, self.COUNT, 3)
        swift.memcached.values.clear()
        denied = {'swift.authorize': lambda req: HTTPForbidden(request=req)}
        assert swift.send(app, method, CONTAINER, env=denied).status_int == 403
        assert upload(swift, app) == EXCEEDED

    @pytest.mark.parametrize(
        'query',
        [f'prefix={NO_END}&end_marker={NO_END}z', 'allow_unordered=true'],
    )
    def test_holds_after_a_listing_that_reads_the_root_alone(
        self, swift, app, query
    ):
        swift.put_row(f'/{ACCOUNT}/c/stray')
        set_meta(swift, app, CONTAINER, self.COUNT, 4)
        swift.memcached.values.clear()
        swift.send(app, 'GET', CONTAINER, query=query)
        assert upload(swift, app) == EXCEEDED

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_counts_strays(self, swift, app, method):
        swift.put_row(f'/{ACCOUNT}/c/stray')
        set_meta(swift, app, CONTAINER, self.COUNT, 4)
        swift.memcached.values.clear()
        swift.send(app, method, CONTAINER)
        assert upload(swift, app) == EXCEEDED

    def test_holds_if_a_shard_cannot_be_read(self, swift, app):
        """The shard counts like the mean of the others."""
        set_meta(swift, app, CONTAINER, self.COUNT, 3)
        fewest = min(
            (backing(swift, shard) for shard in range(2)),
            key=lambda name: len(swift.rows(HIDDEN, name)),
        )
        swift.servers.broken = {f'/{HIDDEN}/{fewest}'}
        assert upload(swift, app) == EXCEEDED


class TestVersions:
    """Old versions, which count against the quota of their container."""

    VERSIONS = versions_container('c')
    ALLOWED = {'X-Backend-Allow-Reserved-Names': 'true'}

    def test_count_wherever_they_are_listed(self, swift, app):
        path = f'{PATH}/{self.VERSIONS}'
        headers = {**self.ALLOWED, SHARD_COUNT_HEADER: '2'}
        swift.send(filter_in(app), 'PUT', path, headers)
        put_sharded_row(swift, '\0o\x001', self.VERSIONS, size=100)
        versioned = {
            'X-Container-Sysmeta-Versions-Container': '%00versions%00c',
            'X-Container-Meta-Quota-Bytes': '135',
        }
        swift.send(filter_in(app), 'POST', CONTAINER, versioned, OWNER)
        assert upload(swift, app, 10) == EXCEEDED
        assert upload(swift, app, 5)[0] == 201


class TestAccountQuota:
    COUNT = 'X-Account-Quota-Count'
    BYTES = 'X-Account-Meta-Quota-Bytes'

    @pytest.mark.parametrize('most, status', [(39, 413), (40, 201)])
    def test_of_bytes_counts_all_shards(self, swift, app, most, status):
        set_meta(swift, app, PATH, self.BYTES, most, RESELLER)
        assert upload(swift, app, 10)[0] == status

    @pytest.mark.parametrize('most, status', [(39, 413), (40, 201)])
    def test_by_policy_counts_the_shards_of_that_policy(
        self, swift, app, most, status
    ):
        name = 'X-Account-Quota-Bytes-Policy-gold'
        set_meta(swift, app, PATH, name, most, RESELLER)
        assert upload(swift, app, 10)[0] == status

    def test_by_another_policy_does_not_count_them(self, swift, app):
        name = 'X-Account-Quota-Bytes-Policy-silver'
        set_meta(swift, app, PATH, name, 1, RESELLER)
        assert upload(swift, app, 10)[0] == 201

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_holds_after_a_client_has_read_the_account(
        self, swift, app, method
    ):
        set_meta(swift, app, PATH, self.BYTES, 39, RESELLER)
        swift.send(app, method, PATH)
        assert upload(swift, app, 10) == EXCEEDED

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_holds_while_a_client_reads_the_account(self, swift, app, method):
        set_meta(swift, app, PATH, self.BYTES, 39, RESELLER)
        swift.memcached.values.clear()
        uploads = []
        swift.before(
            method, PATH, lambda: uploads.append(upload(swift, app, 10))
        )
        swift.send(app, method, PATH)
        assert uploads == [EXCEEDED]

    def test_goes_by_the_account_alone_if_the_hidden_one_is_away(
        self, swift, app
    ):
        set_meta(swift, app, PATH, self.BYTES, 39, RESELLER)
        logger = Logger()
        info_app_of(app).logger = logger
        swift.register('HEAD', f'/v1/{HIDDEN}', 503)
        assert upload(swift, app, 10)[0] == 201
        assert (
            'quotas of /AUTH_test lack the counts of shards' in logger.lines[0]
        )


class TestInfo:
    """The info that other filters get."""

    def env(self, swift, path: str) -> dict:
        env = Request.blank(path).environ
        return {**env, 'swift.cache': swift.memcached}

    def test_of_a_container_without_a_quota_is_that_of_the_root(
        self, swift, app
    ):
        swift.memcached.values.clear()
        forget_requests(swift)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert info['object_count'] == 0
        heads = [path for _, _, path in swift.servers.asked]
        assert f'/{ACCOUNT}/c' in heads
        assert not [path for path in heads if path.startswith(f'/{HIDDEN}')]

    def test_of_a_container_with_a_quota_is_cached_with_the_sums(
        self, swift, app
    ):
        name = TestContainerQuota.COUNT
        set_meta(swift, app, CONTAINER, name, 100)
        get_container_info(self.env(swift, CONTAINER), app)
        forget_requests(swift)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert (info['object_count'], info['bytes']) == (3, 30)
        assert swift.calls == []

    def test_keeps_the_metadata_and_acls_of_the_root(self, swift, app):
        name = TestContainerQuota.COUNT
        set_meta(swift, app, CONTAINER, 'X-Container-Read', '.r:*')
        set_meta(swift, app, CONTAINER, name, 100)
        for _ in range(2):
            info = get_container_info(self.env(swift, CONTAINER), app)
            assert info['read_acl'] == '.r:*'
            assert info['meta']['quota-count'] == '100'
            assert 'shardmw-layout' in info['sysmeta']

    def test_of_an_account_with_a_quota_is_that_of_both(self, swift, app):
        name = TestAccountQuota.BYTES
        set_meta(swift, app, PATH, name, 100, RESELLER)
        info = get_account_info(self.env(swift, PATH), app)
        assert (info['total_object_count'], info['bytes']) == (3, 30)
        assert info['container_count'] == 1

    def test_of_the_hidden_account_is_its_own(self, swift, app):
        swift.memcached.values.clear()
        info = get_account_info(self.env(swift, f'/v1/{HIDDEN}'), app)
        assert (info['total_object_count'], info['container_count']) == (3, 2)

    def test_with_a_damaged_record_is_that_of_the_root(self, swift, app):
        logger = Logger()
        info_app_of(app).logger = logger
        headers = {
            RECORD_HEADER: 'damaged',
            TestContainerQuota.COUNT: '100',
        }
        swift.put_container(f'/{ACCOUNT}/c', headers)
        swift.memcached.values.clear()
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert info['object_count'] == 0
        assert (
            'quotas of /AUTH_test/c lack the counts of shards'
            in logger.lines[0]
        )

    @pytest.mark.parametrize('account', ['AUTH_new', ACCOUNT])
    def test_of_an_account_is_cached_like_swift_caches_it(
        self, swift, app, account
    ):
        swift.memcached.values.clear()
        get_account_info(self.env(swift, f'/v1/{account}'), app)
        cached = swift.memcached.get(get_cache_key(account))
        swift.memcached.values.clear()
        get_account_info(self.env(swift, f'/v1/{account}'), swift)
        assert swift.memcached.get(get_cache_key(account)) == cached
        is_there = account == ACCOUNT
        assert bool(cached['account_really_exists']) is is_there

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_not_older_than_a_post_that_came_while_shards_were_read(
        self, swift, app, method
    ):
        set_meta(swift, app, CONTAINER, READ_ACL, 'before')
        swift.servers.before(
            f'/{HIDDEN}/{backing(swift, 1)}',
            lambda: set_meta(swift, app, CONTAINER, READ_ACL, 'after'),
        )
        query = 'allow_unordered=true'
        swift.send(app, method, CONTAINER, env=OWNER, query=query)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert info['read_acl'] == 'after'

    @pytest.fixture
    def cached(self, swift, app):
        """Cache the info of a container with a quota and a read ACL."""
        set_meta(swift, app, CONTAINER, TestContainerQuota.COUNT, 4)
        set_meta(swift, app, CONTAINER, READ_ACL, 'before')
        get_container_info(self.env(swift, CONTAINER), app)

    def has_info(self, swift) -> bool:
        """Return True if memcached has the info of the container."""
        return bool(swift.memcached.get(get_cache_key(ACCOUNT, 'c')))

    def test_is_read_once_for_the_requests_of_all_workers(
        self, swift, app, cached
    ):
        other = loaded(swift, FILTERS)
        swift.memcached.values.clear()
        forget_requests(swift)
        shard = f'/{HIDDEN}/{backing(swift, 1)}'
        read = []

        def read_meanwhile():
            env = self.env(swift, CONTAINER)
            read.append(spawn(get_container_info, env, other))
            sleep(0)

        swift.servers.before(shard, read_meanwhile)
        get_container_info(self.env(swift, CONTAINER), app)
        assert read[0].wait()['object_count'] == 3
        places = [path for _, _, path in swift.servers.asked]
        assert places.count(shard) == 1

    def test_is_read_after_a_while_if_another_worker_does_not_share_it(
        self, swift, app, cached, monkeypatch
    ):
        monkeypatch.setattr(info_app, 'LOCK_SECONDS', 0.1)
        swift.memcached.values.clear()
        key = get_cache_key(ACCOUNT, 'c')
        swift.memcached.incr(info_app.LOCK_KEY.format(key), time=60)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert info['object_count'] == 3
        assert self.has_info(swift)

    def test_has_the_counts_that_a_worker_knows_while_memcached_is_away(
        self, swift, app, cached
    ):
        put_sharded_row(swift, 'd', size=10)
        forget_requests(swift)
        info = get_container_info(Request.blank(CONTAINER).environ, app)
        assert info['object_count'] == 3
        places = [path for _, _, path in swift.servers.asked]
        assert not [path for path in places if path.startswith(f'/{HIDDEN}')]

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_has_the_counts_of_a_clients_answer(
        self, swift, app, cached, method
    ):
        put_sharded_row(swift, 'd', size=10)
        resp = swift.send(app, method, CONTAINER)
        assert resp.headers['X-Container-Object-Count'] == '4'
        forget_requests(swift)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert (info['object_count'], info['bytes']) == (4, 40)
        assert info['read_acl'] == 'before'
        assert (swift.calls, swift.servers.asked) == ([], [])

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_an_account_has_the_counts_of_a_clients_answer(
        self, swift, app, method
    ):
        set_meta(swift, app, PATH, TestAccountQuota.BYTES, 100, RESELLER)
        get_account_info(self.env(swift, PATH), app)
        put_sharded_row(swift, 'd', size=10)
        swift.update_accounts()
        resp = swift.send(app, method, PATH)
        assert resp.headers['X-Account-Bytes-Used'] == '40'
        forget_requests(swift)
        info = get_account_info(self.env(swift, PATH), app)
        assert (info['total_object_count'], info['bytes']) == (4, 40)
        assert swift.calls == []

    def test_has_new_counts_whenever_it_is_read(self, swift, app, cached):
        put_sharded_row(swift, 'd', size=10)
        swift.memcached.delete(get_cache_key(ACCOUNT, 'c'))
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert (info['object_count'], info['bytes']) == (4, 40)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_dropped_by_a_post_while_a_client_reads_the_shards(
        self, swift, app, cached, method
    ):
        swift.servers.before(
            f'/{HIDDEN}/{backing(swift, 1)}',
            lambda: set_meta(swift, app, CONTAINER, READ_ACL, 'after'),
        )
        swift.send(app, method, CONTAINER)
        assert not self.has_info(swift)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_dropped_if_another_request_reads_it_while_a_client_does(
        self, swift, app, cached, method
    ):
        """The other request reads newer info after a POST, but older sums."""

        def change_and_read():
            set_meta(swift, app, CONTAINER, READ_ACL, 'after')
            get_container_info(self.env(swift, CONTAINER), app)
            assert self.has_info(swift)

        shard = f'/{HIDDEN}/{backing(swift, 1)}'
        swift.servers.before(shard, change_and_read)
        swift.send(app, method, CONTAINER)
        assert not self.has_info(swift)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_not_cached_by_a_read_if_it_was_not_before(
        self, swift, app, cached, method
    ):
        """Otherwise, a concurrent POST would be missed."""
        swift.memcached.values.clear()
        swift.servers.before(
            f'/{HIDDEN}/{backing(swift, 1)}',
            lambda: set_meta(swift, app, CONTAINER, READ_ACL, 'after'),
        )
        swift.send(app, method, CONTAINER)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert info['read_acl'] == 'after'

    def test_keeps_its_counts_after_a_listing_that_reads_one_shard(
        self, swift, app, cached
    ):
        put_sharded_row(swift, 'd', size=10)
        query = 'allow_unordered=true&limit=1'
        swift.send(app, 'GET', CONTAINER, query=query)
        forget_requests(swift)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert (info['object_count'], swift.calls) == (3, [])

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_a_container_that_is_plain_again_has_the_counts_of_an_answer(
        self, swift, app, method
    ):
        now = time.time()
        layout = Layout(NEW_ID, 2).announced(0, now).moving(now).done(now)
        headers = {
            RECORD_HEADER: layout.to_record(),
            TestContainerQuota.COUNT: '2',
        }
        swift.put_container(f'/{ACCOUNT}/plain', headers)
        path = f'{PATH}/plain'
        get_container_info(self.env(swift, path), app)
        swift.put_row(f'/{ACCOUNT}/plain/a')
        swift.send(app, method, path)
        forget_requests(swift)
        info = get_container_info(self.env(swift, path), app)
        assert (info['object_count'], swift.calls) == (1, [])

    def test_is_not_older_than_a_post_that_came_while_sums_were_read(
        self, swift, app
    ):
        set_meta(swift, app, CONTAINER, TestContainerQuota.COUNT, 100)
        set_meta(swift, app, CONTAINER, READ_ACL, 'before')
        swift.servers.before(
            f'/{HIDDEN}/{backing(swift, 1)}',
            lambda: set_meta(swift, app, CONTAINER, READ_ACL, 'after'),
        )
        upload(swift, app)
        info = get_container_info(self.env(swift, CONTAINER), app)
        assert (info['read_acl'], info['object_count']) == ('after', 3)

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'PUT'])
    def test_of_an_account_is_not_older_than_a_post(self, swift, app, method):
        set_meta(swift, app, PATH, TestAccountQuota.BYTES, 100, RESELLER)
        set_meta(swift, app, PATH, COLOUR, 'before')
        swift.before(
            'HEAD',
            f'/v1/{HIDDEN}',
            lambda: set_meta(swift, app, PATH, COLOUR, 'after'),
        )
        path = {'PUT': OBJECT}.get(method, PATH)
        swift.send(app, method, path, {'Content-Length': '0'}, OWNER)
        info = get_account_info(self.env(swift, PATH), app)
        assert info['meta']['colour'] == 'after'

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_a_plain_container_is_cached_when_it_is_read(
        self, swift, app, method
    ):
        path = f'{PATH}/plain'
        swift.send(app, 'PUT', path)
        set_meta(swift, app, path, TestContainerQuota.COUNT, 1)
        swift.put_row(f'/{ACCOUNT}/plain/a')
        swift.send(app, method, path)
        forget_requests(swift)
        info = get_container_info(self.env(swift, path), app)
        assert (int(info['object_count']), swift.calls) == (1, [])

    @pytest.mark.parametrize('name', ['missing', 'c'])
    def test_is_cached_like_swift_caches_it(self, swift, app, name):
        path = f'{PATH}/{name}'
        swift.memcached.values.clear()
        get_container_info(self.env(swift, path), app)
        cached = swift.memcached.get(get_cache_key(ACCOUNT, name))
        swift.memcached.values.clear()
        get_container_info(self.env(swift, path), swift)
        assert swift.memcached.get(get_cache_key(ACCOUNT, name)) == cached
        assert cached['status'] == (404 if name == 'missing' else 204)


class TestInstall:
    def test_gives_every_filter_the_info_app(self, swift):
        app = loaded(swift, FILTERS)
        filters = app._pipeline[:-1]
        info_app = info_app_of(app)
        assert {each._pipeline_request_logging_app for each in filters} == {
            info_app
        }

    def test_gives_it_to_the_apps_on_the_right_with_the_first_request(
        self, swift
    ):
        app = loaded(swift, FILTERS)
        swift.send(app, 'HEAD', PATH)
        info_app = info_app_of(app)
        assert swift._pipeline_request_logging_app is info_app

    def test_keeps_the_filter_that_logs_requests_for_info(self, swift):
        app = loaded(swift, FILTERS)
        logging_app = info_app_of(app).app
        assert type(logging_app).__name__ == 'ProxyLoggingMiddleware'


class TestOtherRequests:
    """Requests other than those that Swift sends for info."""

    @pytest.fixture
    def sent(self) -> list:
        return []

    @pytest.fixture
    def info_app(self, sent) -> InfoApp:
        def app(env, start_response):
            sent.append(env)
            headers = {
                'X-Account-Meta-Quota-Bytes': '1',
                'X-Container-Meta-Quota-Count': '1',
                RECORD_HEADER: Layout(NEW_ID, 2).to_record(),
            }
            return Response(headers=headers)(env, start_response)

        return InfoApp(app, None, None, Logger())

    @pytest.mark.parametrize(
        'method, path',
        [
            ('GET', CONTAINER),
            ('PUT', CONTAINER),
            ('HEAD', OBJECT),
            ('HEAD', f'/v1/{HIDDEN}'),
            ('HEAD', f'/v1/{HIDDEN}/c'),
            ('HEAD', '/info'),
        ],
    )
    def test_are_passed_on(self, info_app, sent, method, path):
        req = Request.blank(path, method=method)
        resp = req.get_response(info_app)
        assert resp.status_int == 200
        (env,) = sent
        assert env is req.environ

    def test_see_the_attributes_of_the_wrapped_app(self, info_app):
        info_app.app.logger = logger = Logger()
        info_app.app.max_containers = 7
        assert info_app.max_containers == 7
        assert info_app.app.logger is logger
