# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.proxy.controllers.base import get_cache_key

from shardmw.core.paths import Path, Place
from shardmw.swift.infocache import (
    INFOCACHE_ENV,
    RequestState,
    info_at_hand,
    redirected,
    without_sharing_info,
)
from test.unit.fakeswift import Memcached

KEY = get_cache_key('a', 'c')
UPDATING_KEY = get_cache_key('a', 'c', shard='updating')
INFO = {'status': 204, 'sharding_state': 'unsharded', 'storage_policy': '1'}


class TestRequestState:
    def test_is_shared_by_the_requests_with_one_infocache(self):
        env = {INFOCACHE_ENV: {}}
        assert RequestState.of(dict(env)) is RequestState.of(dict(env))

    def test_of_another_client_request_is_another_one(self):
        one, other = {INFOCACHE_ENV: {}}, {INFOCACHE_ENV: {}}
        assert RequestState.of(one) is not RequestState.of(other)

    def test_is_created_without_an_infocache(self):
        env = {}
        state = RequestState.of(env)
        assert (state.counted, state.sums) == ({}, {})
        assert RequestState.of(env) is state

    def test_is_kept_by_a_redirected_write(self):
        env = {INFOCACHE_ENV: {KEY: INFO}}
        state = RequestState.of(env)
        infocache = redirected(env, 'a', 'c', INFO, Place('.h', 'c.0'))
        assert RequestState.of({INFOCACHE_ENV: infocache}) is state


class TestRedirected:
    def test_tells_swift_that_the_container_is_sharded(self):
        infocache = redirected({}, 'a', 'c', INFO, Place('.h', 'c.0'))
        assert infocache[KEY] == {**INFO, 'sharding_state': 'sharded'}

    @pytest.mark.parametrize('name', ['', 'o', '☃', '\0o', '\U0010ffff'])
    def test_has_one_namespace_for_all_names(self, name):
        infocache = redirected({}, 'a', 'c', INFO, Place('.h', 'c.0'))
        namespace = infocache[UPDATING_KEY].get_namespace(name)
        assert namespace.name == '.h/c.0'
        assert (namespace.account, namespace.container) == ('.h', 'c.0')

    def test_changes_none_of_its_arguments(self):
        env = {INFOCACHE_ENV: {KEY: INFO, 'other': 1}}
        info = dict(INFO)
        infocache = redirected(env, 'a', 'c', info, Place('.h', 'c.0'))
        assert env == {INFOCACHE_ENV: {KEY: INFO, 'other': 1}}
        assert info == INFO
        assert infocache['other'] == 1


class TestWithoutSharingInfo:
    PATH = Path('v1', 'a', 'c')

    def test_stores_all_but_the_info_in_memcached(self):
        env = {'swift.cache': (cache := Memcached())}
        with without_sharing_info(env, self.PATH):
            env['swift.cache'].set(KEY, INFO, time=60)
            env['swift.cache'].set('other', 1, time=60)
        assert list(cache.values) == ['other']

    def test_finds_all_in_memcached(self):
        env = {'swift.cache': (cache := Memcached())}
        cache.set(KEY, INFO)
        with without_sharing_info(env, self.PATH):
            assert env['swift.cache'].get(KEY) == INFO

    def test_ends_after_an_error(self):
        env = {'swift.cache': (cache := Memcached())}
        with (
            pytest.raises(RuntimeError),
            without_sharing_info(env, self.PATH),
        ):
            raise RuntimeError
        assert env == {'swift.cache': cache}

    def test_needs_no_memcached(self):
        env = {}
        with without_sharing_info(env, self.PATH):
            pass
        assert env == {}


@pytest.mark.parametrize('env', [{}, {INFOCACHE_ENV: {}}])
def test_info_is_not_at_hand_before_it_was_asked_for(env):
    assert info_at_hand(env, 'a', 'c') is None


def test_info_at_hand_is_not_copied():
    assert info_at_hand({INFOCACHE_ENV: {KEY: INFO}}, 'a', 'c') is INFO
