# SPDX-License-Identifier: Apache-2.0
"""The dispatch of requests: those that the filter ignores or refuses."""

import pytest
from swift.common import registry
from swift.common.middleware.gatekeeper import GatekeeperMiddleware
from swift.common.swob import Request

from shardmw import __version__
from shardmw.backend.config import ConfigError
from shardmw.core.layout import DEPTH_LIMIT
from shardmw.proxy.filter import filter_factory
from shardmw.proxy.ratelimit import limiter
from test.unit.containers import CONTAINER, create
from test.unit.fakeswift import ACCOUNT, HIDDEN, filtered

OBJECT = f'{CONTAINER}/o'
METHODS = ('GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'COPY')


class TestObjectRead:
    @pytest.fixture
    def infocache(self) -> dict:
        return {'entry': object()}

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'OPTIONS'])
    def test_reaches_the_app_in_the_same_environment(
        self, swift, infocache, method
    ):
        env = Request.blank(OBJECT).environ
        env['REQUEST_METHOD'] = method
        env['swift.infocache'] = infocache
        before = dict(env), dict(infocache)
        Request(env).call_application(filtered(swift))
        (call,) = swift.calls
        assert call.env is env
        assert call.env['swift.infocache'] is infocache
        changed = {'swift.infocache': infocache}
        assert ({**env, **changed}, infocache) == before

    def test_of_a_sharded_container_sends_one_request(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, 2)
        swift.send(filter_app, 'GET', OBJECT)
        assert swift.sent() == [('GET', OBJECT)]
        assert swift.servers.asked == []

    def test_of_an_account_with_another_name_is_passed_on(self, swift):
        path = '/v1/shardmw_AUTH_test/c/o'
        swift.send(filtered(swift), 'GET', path)
        assert swift.sent() == [('GET', path)]


class TestHiddenAccount:
    @pytest.mark.parametrize('rest', ['', '/', '/c', '/c/', '/c/o', '/c/a/b'])
    @pytest.mark.parametrize('method', METHODS)
    def test_does_not_exist_for_clients(self, swift, method, rest):
        path = f'/v1/{HIDDEN}{rest}'
        resp = swift.send(filtered(swift), method, path)
        assert resp.status_int == 404
        assert swift.calls == []

    def test_answers_like_a_missing_one(self, swift):
        create(swift, filtered(swift), 2)
        present = swift.send(filtered(swift), 'GET', f'/v1/{HIDDEN}')
        absent = swift.send(
            filtered(swift), 'GET', '/v1/.shards_shardmw_AUTH_no'
        )
        assert present.headers == absent.headers
        assert present.body == absent.body

    def test_is_not_found_before_a_client_is_authorized(self, swift):
        env = {'swift.authorize': pytest.fail}
        resp = swift.send(filtered(swift), 'GET', f'/v1/{HIDDEN}/c', env=env)
        assert resp.status_int == 404

    def test_is_open_to_the_internal_clients_of_daemons(self, swift):
        filter_app = filtered(swift)
        filter_app._pipeline = [filter_app, swift]
        filter_app._pipeline_request_logging_app = swift
        filter_app._pipeline_final_app = swift
        path = f'/v1/{HIDDEN}/c'
        swift.send(filter_app, 'GET', path)
        assert ('GET', path) in swift.sent()

    def test_is_hidden_behind_a_gatekeeper(self, swift):
        filter_app = filtered(swift)
        gatekeeper = GatekeeperMiddleware(filter_app, {})
        filter_app._pipeline = [gatekeeper, filter_app, swift]
        filter_app._pipeline_request_logging_app = swift
        filter_app._pipeline_final_app = swift
        resp = swift.send(gatekeeper, 'GET', f'/v1/{HIDDEN}/c')
        assert resp.status_int == 404

    def test_of_another_filter_is_left_to_swift(self, swift):
        path = '/v1/.shards_AUTH_test/c'
        swift.send(filtered(swift), 'GET', path)
        assert ('GET', path) in swift.sent()


class TestPathsThatSwiftRefuses:
    @pytest.mark.parametrize('method', ['GET', 'PUT', 'DELETE'])
    @pytest.mark.parametrize(
        'path',
        [
            '/',
            '/v1',
            '/v1/',
            '/info',
            '/healthcheck',
            '/v1//c',
            f'/v1/{ACCOUNT}//o',
            f'/v9/{ACCOUNT}/c',
            f'/v9/{HIDDEN}/c',
            '/v1/\0a/c',
        ],
    )
    def test_reach_the_app_alone(self, swift, method, path):
        swift.send(filtered(swift), method, path)
        assert swift.sent() == [(method, path)]

    @pytest.mark.parametrize(
        'path', ['/v1/a/\xff', '/v1/\xff/c', '/v1/a/c/\xff']
    )
    def test_because_they_are_not_utf8_reach_the_app_alone(self, swift, path):
        req = Request.blank('/', {'PATH_INFO': path, 'REQUEST_METHOD': 'PUT'})
        req.call_application(filtered(swift))
        (call,) = swift.calls
        assert call.env is req.environ


class TestBlacklist:
    CONF = {'container_ratelimit_0': '10'}

    @pytest.mark.parametrize('path', [f'/v1/{ACCOUNT}', CONTAINER, OBJECT])
    def test_refuses_requests_of_every_kind(self, swift, monkeypatch, path):
        monkeypatch.setattr(limiter, 'sleep', lambda _seconds: None)
        flag = {'X-Account-Sysmeta-Global-Write-Ratelimit': 'BLACKLIST'}
        swift.register('HEAD', f'/v1/{ACCOUNT}', 204, flag)
        resp = swift.send(filtered(swift, **self.CONF), 'PUT', path)
        assert resp.status_int == 497
        assert swift.sent() == [('HEAD', f'/v1/{ACCOUNT}')]


class TestFactory:
    @pytest.fixture(autouse=True)
    def swift_info(self, monkeypatch) -> dict:
        info = {}
        monkeypatch.setattr(registry, '_swift_info', info)
        return info

    def test_makes_a_filter_with_its_options(self, swift):
        factory = filter_factory({}, max_shards='3', client_max_shards='2')
        resp = swift.send(
            factory(swift),
            'PUT',
            CONTAINER,
            {'X-Container-Shard-Count': '3'},
        )
        assert resp.body == (
            b'X-Container-Shard-Count must be a number from 1 to 2'
        )

    def test_tells_clients_its_limits_by_info(self, swift_info):
        filter_factory(
            {}, max_shards='128', default_shards='4', listing_max_age='30'
        )
        limits = swift_info['shardmw']
        assert limits['version'] == __version__
        assert limits['head_cache_seconds'] == 5
        assert limits['max_shards'] == 128
        assert limits['client_max_shards'] == 64
        assert limits['default_shards'] == 4
        assert limits['default_depth'] == 0
        assert limits['max_depth'] == DEPTH_LIMIT
        assert limits['unordered_listings'] is True
        assert limits['listing_max_age'] == 30

    def test_refuses_an_unknown_option(self):
        with pytest.raises(ConfigError, match='defualt_shards'):
            filter_factory({}, defualt_shards='4')
