# SPDX-License-Identifier: Apache-2.0
"""The filter refuses a Swift that would not send rows to shards."""

import pytest

from shardmw.backend.config import ConfigError
from shardmw.proxy import filter as middleware
from shardmw.swift import infocache
from shardmw.swift.infocache import get_cache_key
from shardmw.swift.start_check import redirection_problem
from test.unit.fakeswift import loaded


def test_accepts_this_swift_without_a_request(swift):
    assert redirection_problem(swift) is None
    assert not swift.calls


@pytest.mark.parametrize('shard', ['updating', None])
def test_finds_a_key_of_the_info_cache_that_swift_has_renamed(
    swift, monkeypatch, shard
):
    def renamed(account, container, **kind):
        key = get_cache_key(account, container, **kind)
        return f'{key}/new' if kind.get('shard') == shard else key

    monkeypatch.setattr(infocache, 'get_cache_key', renamed)
    assert redirection_problem(swift)
    with pytest.raises(ConfigError, match='does not send rows to backing'):
        loaded(swift, ['memcache'])


def test_finds_a_name_of_the_state_that_swift_has_changed(swift, monkeypatch):
    redirected = infocache.redirected

    def changed(env, account, container, info, backing):
        found = redirected(env, account, container, info, backing)
        key = get_cache_key(account, container)
        found[key] = {**found[key], 'sharding_state': 'unsharded'}
        return found

    monkeypatch.setattr('shardmw.swift.start_check.redirected', changed)
    assert 'the row goes to the root' in redirection_problem(swift)


def test_the_prefix_of_internal_accounts_cannot_be_changed(monkeypatch):
    monkeypatch.setattr(middleware, 'AUTO_CREATE_ACCOUNT_PREFIX', '-')
    with pytest.raises(ConfigError, match='auto_create_account_prefix = - in'):
        middleware.filter_factory({})
