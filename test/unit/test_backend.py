# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.proxy.controllers.base import (
    get_cache_key,
    get_container_info,
    headers_to_container_info,
)

from shardmw.backend import INFOCACHE_ENV, Backend, backing_info

PATH = '/v1/AUTH_test/logs'
KEY = get_cache_key('AUTH_test', 'logs')

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


class App:
    """Nobody may be asked."""

    def __call__(self, _env, _start_response):
        pytest.fail('a container was asked')


def environ(infocache: dict, path: str = f'{PATH}/o') -> dict:
    return {
        'PATH_INFO': path,
        'REQUEST_METHOD': 'GET',
        'SCRIPT_NAME': '',
        INFOCACHE_ENV: infocache,
    }


def info_by_filter(env: dict) -> dict:
    return Backend(App(), None, 1).container_info(env)


@given(infos, st.sampled_from(['', '/o', '/o/p']))
def test_what_is_cached_is_told_as_swift_tells_it(info, name):
    env = environ({KEY: info}, PATH + name)
    assert info_by_filter(env) == get_container_info(env, App())


@given(infos)
def test_what_is_cached_stays_as_it_is(info):
    env = environ({KEY: info})
    before = repr(info)
    info_by_filter(env)
    assert repr(info) == before


def test_versions_are_counted_as_swift_counts_them():
    root = headers_to_container_info(
        {
            'X-Container-Bytes-Used': '5',
            'X-Container-Sysmeta-Versions-Container': '%00versions%00logs',
        },
        204,
    )
    versions = headers_to_container_info({'X-Container-Bytes-Used': '7'}, 204)
    versions_key = get_cache_key('AUTH_test', '\0versions\0logs')
    env = environ({KEY: root, versions_key: versions})
    assert info_by_filter(env)['bytes'] == 12


@given(infos)
def test_a_backing_container_has_its_policy_and_cors_from_the_root(info):
    root = info_by_filter(environ({KEY: info}))
    backing = backing_info(root)
    assert backing.keys() == info.keys()
    assert backing['storage_policy'] == root['storage_policy']
    assert backing['cors'] == root['cors']
    assert (backing['object_count'], backing['bytes']) == (0, 0)
    assert backing['sysmeta'] == backing['meta'] == {}
    assert backing['read_acl'] is backing['write_acl'] is None


@given(infos)
def test_swift_gets_a_copy_of_a_backing_containers_info(info):
    backing = backing_info(info_by_filter(environ({KEY: info})))
    env = environ({KEY: backing})
    before = repr(backing)
    copied = get_container_info(env, App())
    assert copied == backing
    copied['cors']['max_age'] = copied['meta']['a'] = copied['sysmeta'][
        'b'
    ] = 1
    assert repr(backing) == before
