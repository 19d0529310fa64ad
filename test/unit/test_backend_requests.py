# SPDX-License-Identifier: Apache-2.0
"""The filter's requests to the rest of the pipeline, and Swift's info."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.middleware.proxy_logging import ProxyLoggingMiddleware
from swift.common.swob import Request
from swift.proxy.controllers.base import (
    get_cache_key,
    get_container_info,
    headers_to_container_info,
)

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.requests import HOST, Backend, newest_header, to_environ
from shardmw.core.paths import Path, parse_path
from shardmw.core.placement import REGISTER
from shardmw.swift.concurrency import Timeout, sleep
from shardmw.swift.infocache import INFOCACHE_ENV
from test.unit.containers import CONTAINER, create
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    Logger,
    fake_swift,
    filtered,
)

KEY = get_cache_key(ACCOUNT, 'c')

words = st.text('abc-', min_size=1, max_size=6)
numbers = st.integers(0, 10**12).map(str)
headers = st.fixed_dictionaries(
    {},
    optional={
        'X-Container-Read': words,
        'X-Container-Write': words,
        'X-Container-Object-Count': numbers,
        'X-Container-Bytes-Used': numbers,
        'X-Backend-Storage-Policy-Index': st.sampled_from('012'),
        'X-Container-Meta-Access-Control-Allow-Origin': words,
        'X-Container-Meta-Quota-Count': numbers,
        'X-Container-Sysmeta-Shardmw-Layout': words,
        'X-Versions-Location': words,
    },
)
infos = st.builds(headers_to_container_info, headers, st.just(204))


class NoApp:
    """An app that must get no request."""

    def __call__(self, _env, _start_response):
        pytest.fail('a container was asked')


@pytest.fixture
def backend(swift) -> Backend:
    return Backend(swift, Logger(), 4)


def environ(path: str = f'{CONTAINER}/o', **env) -> dict:
    """Return the environment of a client's request."""
    return {**Request.blank(path).environ, INFOCACHE_ENV: {}, **env}


class TestContainerInfo:
    @given(infos, st.sampled_from(['', '/o', '/o/p']))
    def test_at_hand_is_the_same_as_from_swift(self, info, name):
        env = environ(CONTAINER + name, **{INFOCACHE_ENV: {KEY: info}})
        told = Backend(NoApp(), None, 1).container_info(env)
        swifts = get_container_info(env, NoApp())
        for key in ('status', 'read_acl', 'write_acl', 'sysmeta', 'meta'):
            assert told[key] == swifts[key]
        for key in ('storage_policy', 'object_count', 'bytes'):
            assert int(told[key] or 0) == swifts[key]

    def test_at_hand_is_not_copied(self):
        info = headers_to_container_info({}, 204)
        env = environ(**{INFOCACHE_ENV: {KEY: info}})
        assert Backend(NoApp(), None, 1).container_info(env) is info

    def test_is_asked_of_swift_once(self, swift, backend):
        swift.put_container(f'/{ACCOUNT}/c')
        env = environ()
        for _ in range(2):
            assert backend.container_info(env)['status'] == 204
        assert swift.sent() == [
            ('HEAD', f'/v1/{ACCOUNT}'),
            ('HEAD', CONTAINER),
        ]

    def test_of_another_container_leaves_the_request_alone(
        self, swift, backend
    ):
        swift.put_container(f'/{ACCOUNT}/☃')
        env = environ()
        info = backend.container_info_of(env, Path('v1', ACCOUNT, '☃'))
        assert info['status'] == 204
        assert env['PATH_INFO'] == f'{CONTAINER}/o'

    def test_is_asked_for_again_when_it_was_forgotten(self, swift, backend):
        env = environ(**{'swift.cache': swift.memcached})
        assert backend.container_info(env)['status'] == 404
        swift.put_container(f'/{ACCOUNT}/c')
        assert backend.container_info(env)['status'] == 404
        backend.forget_info(env, parse_path(CONTAINER))
        assert backend.container_info(env)['status'] == 204


class TestOwnersRequest:
    """A request of the filter, which does not depend on the client's."""

    @pytest.fixture
    def base(self, backend) -> dict:
        env = environ(
            HTTP_ORIGIN='https://example.com',
            HTTP_HOST='h' * 7800,
            HTTP_X_CONTAINER_META_COLOR='blue',
            HTTP_X_NEWEST='true',
            QUERY_STRING='prefix=a',
            **{
                'swift.authorize': pytest.fail,
                'swift.cache': 'memcached',
                'swift.trans_id': 'tx7',
            },
        )
        return backend.owner_env(env)

    def call(self, swift, backend, base, **kwargs):
        backend.send(base, 'PUT', CONTAINER, **kwargs)
        return swift.calls[-1]

    def test_needs_no_authorization(self, swift, backend, base):
        call = self.call(swift, backend, base)
        assert call.env['swift.authorize'](Request(call.env)) is None
        assert call.env['swift_owner'] is True

    def test_has_none_of_the_clients_headers(self, swift, backend, base):
        call = self.call(swift, backend, base)
        for name in ('Origin', 'X-Container-Meta-Color', 'X-Newest'):
            assert name not in call.headers
        assert call.query == ''
        assert call.headers['Host'] == HOST

    def test_has_a_short_referer(self, base):
        referer = Request(base).as_referer()
        assert referer == f'GET http://shardmw{CONTAINER}/o'

    def test_is_that_of_the_clients_transaction(self, swift, backend, base):
        call = self.call(swift, backend, base)
        assert call.env['swift.trans_id'] == 'tx7'
        assert call.env['swift.source'] == 'SMW'

    def test_may_name_reserved_containers(self, swift, backend, base):
        call = self.call(swift, backend, base)
        assert call.headers['X-Backend-Allow-Reserved-Names'] == 'true'

    def test_is_not_logged_as_a_clients(self, swift, backend, base):
        call = self.call(swift, backend, base)
        assert call.env['swift.proxy_access_log_made'] is True

    def test_has_the_headers_query_and_body_that_it_is_given(
        self, swift, backend, base
    ):
        call = self.call(
            swift,
            backend,
            base,
            query='limit=1',
            headers={'X-One': '1'},
            body=b'body',
        )
        assert (call.query, call.headers['X-One']) == ('limit=1', '1')
        assert call.env['wsgi.input'].getvalue() == b'body'
        assert call.headers['Content-Length'] == '4'

    def test_shares_the_infocache(self, backend):
        env = environ()
        assert backend.owner_env(env)[INFOCACHE_ENV] is env[INFOCACHE_ENV]

    def test_that_caches_nothing_has_an_infocache_of_its_own(self, backend):
        env = environ(**{'swift.cache': 'memcached'})
        base = backend.owner_env(env, uncached=True)
        assert 'swift.cache' not in base
        base[INFOCACHE_ENV]['key'] = 1
        assert env[INFOCACHE_ENV] == {}


class TestClientsRequest:
    def test_that_is_sent_on_has_an_environment_of_its_own(
        self, swift, backend
    ):
        req = Request(environ(CONTAINER, **{'swift.cache': swift.memcached}))
        backend.send_as_client(req, {'HTTP_X_ONE': '1'})
        assert swift.calls[0].env is not req.environ
        assert swift.calls[0].headers['X-One'] == '1'
        assert 'HTTP_X_ONE' not in req.environ

    def test_that_is_passed_on_keeps_its_environment(self, swift, backend):
        req = Request(environ(CONTAINER, **{'swift.cache': swift.memcached}))
        backend.pass_on(req)
        assert swift.calls[0].env is req.environ

    def test_reads_the_whole_body_and_closes_it(self):
        closed = []

        class Body:
            def __iter__(self):
                return iter([b'a', b'b'])

            def close(self):
                closed.append(True)

        def app(_env, start_response):
            start_response('200 OK', [])
            return Body()

        req = Request(environ(CONTAINER))
        answer = Backend(app, Logger(), 1).pass_on(req)
        assert (list(answer.body), closed) == ([b'ab'], [True])


class TestFanOut:
    @pytest.fixture
    def backend(self) -> Backend:
        return Backend(NoApp(), Logger(), 2)

    def test_answers_in_the_order_of_the_calls(self, backend):
        def send(shard):
            sleep(0.01 * (3 - shard))
            return Answer(shard, '204 X', {}, [])

        answers = backend.fan_out(send, [(i,) for i in range(4)])
        assert [answer.shard for answer in answers] == [0, 1, 2, 3]

    def test_limits_the_calls_at_a_time(self, backend):
        running, most = 0, 0

        def send(shard):
            nonlocal running, most
            running += 1
            most = max(most, running)
            sleep(0.001)
            running -= 1
            return Answer(shard, '204 X', {}, [])

        calls = [(i,) for i in range(9)]
        backend.fan_out(send, calls)
        assert most == 2
        backend.fan_out(send, calls, 5)
        assert most == 5

    @pytest.mark.parametrize('error', [RuntimeError, Timeout])
    def test_turns_an_error_into_a_503(self, backend, error):
        def send(shard, _name):
            if shard == 1:
                raise error
            return Answer(shard, '204 X', {}, [])

        answers = backend.fan_out(send, [(0, 'a'), (1, 'b'), (2, 'c')])
        assert [answer.status for answer in answers] == [204, 503, 204]
        assert answers[1].shard == 1
        assert backend.logger.lines == ['shardmw: request to shard failed']

    @pytest.mark.parametrize('error', [None, RuntimeError])
    def test_may_end_at_a_failure(self, backend, error):
        called = []

        def send(shard):
            called.append(shard)
            if shard != 3:
                sleep(0.001)
            elif error:
                raise error
            return Answer(shard, '500 X' if shard == 3 else '204 X', {}, [])

        calls = [(i,) for i in range(9)]
        answers = backend.fan_out(send, calls, ends_at_failure=True)
        assert called == [0, 1, 2, 3]
        statuses = [answer.status for answer in answers]
        assert statuses[:3] == [204] * 3
        assert min(statuses[3:]) >= 500
        assert [answer.shard for answer in answers] == [*range(9)]

    def test_of_no_calls_is_empty(self, backend):
        assert backend.fan_out(pytest.fail, []) == []


class TestProxyApp:
    def test_is_found_behind_a_logging_filter(self, swift):
        app = ProxyLoggingMiddleware(swift, {})
        app._pipeline_final_app = swift
        assert Backend(app, Logger(), 1).proxy_app is swift


class TestHiddenAccount:
    def test_is_created_if_it_does_not_exist(self, swift, backend):
        env = environ(CONTAINER, **{'swift.cache': swift.memcached})
        assert not backend.account_exists(env, HIDDEN)
        backend.create_hidden_account(env, HIDDEN)
        assert backend.account_exists(env, HIDDEN)

    def test_is_created_without_account_autocreate(self):
        with fake_swift(account_autocreate='false') as swift:
            backend = Backend(swift, Logger(), 4)
            env = environ(CONTAINER, **{'swift.cache': swift.memcached})
            assert not backend.account_exists(env, HIDDEN)
            backend.create_hidden_account(env, HIDDEN)
            swift.update_accounts()
            assert swift.containers(REGISTER) == [ACCOUNT]

    def test_is_asked_for_once(self, swift, backend):
        env = environ(CONTAINER, **{'swift.cache': swift.memcached})
        backend.create_hidden_account(env, HIDDEN)
        swift.servers.asked.clear()
        backend.create_hidden_account(env, HIDDEN)
        methods = [method for _, method, _ in swift.servers.asked]
        assert methods == ['HEAD']
        swift.servers.asked.clear()
        backend.create_hidden_account(env, HIDDEN)
        assert swift.servers.asked == []

    def test_is_registered_for_its_owner(self, swift, backend):
        env = environ(CONTAINER, **{'swift.cache': swift.memcached})
        backend.create_hidden_account(env, HIDDEN)
        swift.update_accounts()
        assert swift.containers(REGISTER) == [ACCOUNT]

    def test_that_cannot_be_registered_is_not_created(self, swift, backend):
        env = environ(CONTAINER, **{'swift.cache': swift.memcached})
        swift.register('PUT', f'/v1/{REGISTER}/{ACCOUNT}', 503)
        with pytest.raises(
            BackendError, match=f'container {REGISTER}/{ACCOUNT} answered 503'
        ):
            backend.create_hidden_account(env, HIDDEN)
        swift.memcached.values.clear()
        env['swift.infocache'] = {}
        assert not backend.account_exists(env, HIDDEN)

    def test_has_no_limit_of_containers(self):
        with fake_swift(max_containers_per_account='2') as swift:
            filter_app = filtered(swift)
            create(swift, filter_app, 4)
            create(swift, filter_app, 4, 'd')
            swift.memcached.values.clear()
            path = f'/v1/{ACCOUNT}/e'
            assert swift.send(filter_app, 'PUT', path).status_int == 403

    def test_leaves_the_operators_whitelist_as_it_is(self):
        conf = {
            'max_containers_per_account': '1',
            'max_containers_whitelist': 'AUTH_rich',
        }
        with fake_swift(**conf) as swift:
            create(swift, filtered(swift), 2)
            assert 'AUTH_rich' in swift.max_containers_whitelist
            assert ACCOUNT not in swift.max_containers_whitelist


@pytest.mark.parametrize(
    'env, expected',
    [
        ({}, {}),
        ({'swift_owner': True}, {}),
        ({'HTTP_X_NEWEST': 'true'}, {}),
        (
            {'HTTP_X_NEWEST': 'true', 'swift_owner': True},
            {'X-Newest': 'true'},
        ),
        (
            {'HTTP_X_NEWEST': 'false', 'swift_owner': True},
            {'X-Newest': 'false'},
        ),
    ],
)
def test_only_an_owner_may_ask_for_the_newest(env, expected):
    assert newest_header(env) == expected


def test_headers_are_named_as_in_an_environment():
    assert to_environ({'X-One-Two': '3'}) == {'HTTP_X_ONE_TWO': '3'}
