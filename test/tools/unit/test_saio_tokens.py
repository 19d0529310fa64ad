# SPDX-License-Identifier: Apache-2.0
"""Tokens that need no memcached, on Swift before 2.36."""

import pytest
from shardmw_saio.tokens import FOLDER, OPTION, keep_without_memcached
from swift.common.middleware import tempauth
from swift.common.swob import Request

LOGIN = {'X-Auth-User': 'test:tester', 'X-Auth-Key': 'testing'}
CONF = {'user_test_tester': 'testing .admin', 'storage_url_scheme': 'http'}


@pytest.fixture
def conf(tmp_path):
    """The configuration of a proxy that asks for Fernet tokens."""
    path = tmp_path / 'proxy-1.conf'
    path.write_text(f'[filter:tempauth]\n{OPTION} = any\n')
    return path


@pytest.fixture
def cache_from_env(monkeypatch):
    """The function by which tempauth finds memcached, restored at the end."""
    found = tempauth.cache_from_env
    monkeypatch.setattr(tempauth, 'cache_from_env', found)
    return found


@pytest.fixture
def old(monkeypatch, cache_from_env):
    """A tempauth without Fernet tokens."""
    monkeypatch.delattr(tempauth, 'fernet', raising=False)


def new_tempauth():
    return tempauth.filter_factory(CONF)(None)


def log_in(auth):
    response = Request.blank('/auth/v1.0', headers=LOGIN).get_response(auth)
    assert response.status_int == 200
    return response.headers['X-Auth-Token']


def test_proxies_share_tokens_without_memcached(old, conf):
    keep_without_memcached(conf)
    token = log_in(new_tempauth())
    another = new_tempauth()
    groups = another.get_groups({}, token)
    assert groups == 'test,test:tester,AUTH_test'
    assert log_in(another) == token


@pytest.mark.parametrize('token', ['0', '../x', 't\0\xff', 'long' * 999])
def test_an_unknown_token_has_no_groups(old, conf, token):
    keep_without_memcached(conf)
    assert new_tempauth().get_groups({}, f'AUTH_tk{token}') is None


def test_fernet_tokens_need_no_files(monkeypatch, cache_from_env, conf):
    monkeypatch.setattr(tempauth, 'fernet', object(), raising=False)
    keep_without_memcached(conf)
    assert tempauth.cache_from_env is cache_from_env
    assert not conf.with_name(FOLDER).exists()


def test_without_the_option_tokens_stay_in_memcached(
    old, cache_from_env, conf
):
    conf.write_text('[filter:tempauth]\n')
    keep_without_memcached(conf)
    assert tempauth.cache_from_env is cache_from_env
    assert not conf.with_name(FOLDER).exists()
