# SPDX-License-Identifier: Apache-2.0
"""The digests in /info: equal for what is the same, and nothing else."""

import re

import pytest

from shardmw.backend.config import OPTION_NAMES, OPTION_PREFIXES, parse_options
from shardmw.backend.digests import Digests

DIGESTS = Digests(b'prefix', b'suffix')

#: Options that may differ from proxy to proxy.
OWN_OPTIONS = {
    'account_fanout_concurrency': '3',
    'fanout_concurrency': '3',
    'fanout_wait_seconds': '3',
    'idle_connections': '3',
    'listing_kept_megabytes': '3',
    'log_sleep_time_seconds': '3',
    'max_fanouts': '3',
    'metric_containers': '3',
}

#: Another value than the default for each option that all must share.
SHARED_OPTIONS = {
    'client_max_shards': '3',
    'container_listing_ratelimit_0': '3',
    'container_ratelimit_0': '3',
    'default_depth': '3',
    'default_shards': '3',
    'head_cache_seconds': '3',
    'listing_max_age': '3',
    'max_shards': '3',
    'max_sleep_time_seconds': '3',
    'rate_buffer_seconds': '3',
    'ratelimit_proxies': '3',
    'shard_rules': 'AUTH_a/* = 3',
    'stats_cache_seconds': '3',
}


def of_options(**conf: str) -> str:
    return DIGESTS.of_options(parse_options(conf))


def test_each_option_is_shared_or_not():
    named = {*OWN_OPTIONS, *SHARED_OPTIONS}
    sized = {f'{prefix}0' for prefix in OPTION_PREFIXES}
    assert named == {*OPTION_NAMES, *sized}


@pytest.mark.parametrize('name', SHARED_OPTIONS)
def test_a_shared_option_changes_the_digest(name):
    assert of_options(**{name: SHARED_OPTIONS[name]}) != of_options()


def test_options_of_a_machine_do_not_change_the_digest():
    assert of_options(**OWN_OPTIONS) == of_options()


def test_the_same_value_in_other_words_is_the_same():
    assert of_options(max_sleep_time_seconds='60.0') == of_options()
    assert of_options(shard_rules='a/b=3') == of_options(
        shard_rules=' a/b = 3 ,'
    )


def test_a_digest_is_short_and_hexadecimal():
    for digest in (
        DIGESTS.hash_path(),
        of_options(),
        DIGESTS.of_memcached([]),
    ):
        assert re.fullmatch('[0-9a-f]{16}', digest)


@pytest.mark.parametrize(
    'hash_path', [(b'prefix', b''), (b'', b'suffix'), (b'prefixs', b'uffix')]
)
def test_another_hash_path_changes_all_digests(hash_path):
    other = Digests(*hash_path)
    options = parse_options({})
    assert other.hash_path() != DIGESTS.hash_path()
    assert other.of_options(options) != DIGESTS.of_options(options)
    assert other.of_memcached(['a:1']) != DIGESTS.of_memcached(['a:1'])


class TestMemcached:
    def test_servers_may_be_in_any_order(self):
        one = DIGESTS.of_memcached(['a:1', 'b:1'], 'host')
        assert one == DIGESTS.of_memcached(['b:1', 'a:1'], 'other')
        assert one != DIGESTS.of_memcached(['a:1'], 'host')

    @pytest.mark.parametrize(
        'server', ['127.0.0.1:11211', 'localhost:11211', '[::1]:11211']
    )
    def test_a_loopback_address_is_another_server_on_each_host(self, server):
        one = DIGESTS.of_memcached([server], 'host')
        assert one == DIGESTS.of_memcached([server], 'host')
        assert one != DIGESTS.of_memcached([server], 'other')
