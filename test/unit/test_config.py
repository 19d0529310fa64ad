# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.config import ConfigError, parse_options


def test_nothing_is_sharded_or_limited_by_default():
    options = parse_options({})
    assert options.shards_for('AUTH_a', 'c') == 0
    assert not options.rate_limits.are_set
    assert options.rate_limits.writes.rate_of(10**6) is None


def test_the_first_rule_that_matches_counts():
    options = parse_options(
        {
            'default_shards': '2',
            'shard_rules': 'AUTH_ci/logs*=32, AUTH_ci/*=0, */*+segments = 8',
        }
    )
    assert options.shards_for('AUTH_ci', 'logs-2026') == 32
    assert options.shards_for('AUTH_ci', 'x+segments') == 0
    assert options.shards_for('AUTH_b', 'x+segments') == 8
    assert options.shards_for('AUTH_b', 'x') == 2
    assert options.has_rule('AUTH_ci', 'x')
    assert not options.has_rule('AUTH_b', 'x')


def test_rules_tell_capitals_apart():
    options = parse_options({'shard_rules': '*/logs=4'})
    assert options.shards_for('AUTH_a', 'Logs') == 0


def test_rates_between_two_sizes_are_interpolated():
    limits = parse_options(
        {'container_ratelimit_100': '100', 'container_ratelimit_200': '50'}
    ).rate_limits
    assert limits.writes.rate_of(99) is None
    assert limits.writes.rate_of(150) == 75
    assert limits.writes.rate_of(10**9) == 50
    assert limits.listings.rate_of(10**9) is None


def test_listings_have_rates_of_their_own():
    limits = parse_options({'container_listing_ratelimit_10': '3'}).rate_limits
    assert limits.listings.rate_of(9) is None
    assert limits.listings.rate_of(10) == 3
    assert limits.writes.rate_of(10) is None


def test_an_empty_container_is_limited_if_its_size_is_named():
    def rate_of_empty(size: int) -> float | None:
        conf = {f'container_ratelimit_{size}': '5'}
        return parse_options(conf).rate_limits.writes.rate_of(0)

    assert rate_of_empty(0) == 5
    assert rate_of_empty(1) is None


@pytest.mark.parametrize(
    ('conf', 'workers'),
    [
        ({'workers': '0'}, 1),
        ({'workers': '1', 'ratelimit_proxies': '3'}, 3),
        ({'workers': '4', 'ratelimit_proxies': '3'}, 12),
    ],
)
def test_workers_of_all_proxies_are_counted(conf, workers):
    assert parse_options(conf).rate_limits.workers == workers


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('default_shards', '-1'),
        ('default_shards', 'many'),
        ('default_shards', '1025'),
        ('max_shards', '0'),
        ('max_shards', '100001'),
        ('max_shards', '1.5'),
        ('shard_rules', 'logs=32'),
        ('shard_rules', 'a/logs'),
        ('shard_rules', 'a/logs=x'),
        ('shard_rules', 'a/logs=-1'),
        ('shard_rules', 'a/logs=2000'),
        ('fanout_concurrency', '0'),
        ('stats_cache_seconds', '-1'),
        ('container_ratelimit_0', 'fast'),
        ('container_ratelimit_0', '0'),
        ('container_ratelimit_0', '-5'),
        ('container_ratelimit_0', 'inf'),
        ('container_ratelimit_0', '1e-320'),
        ('container_ratelimit_-5', '5'),
        ('container_ratelimit_x', '5'),
        ('container_listing_ratelimit_0', '0'),
        ('ratelimit_proxies', '0'),
        ('max_sleep_time_seconds', '-1'),
        ('max_sleep_time_seconds', 'nan'),
        ('rate_buffer_seconds', 'x'),
        ('log_sleep_time_seconds', ''),
    ],
)
def test_a_senseless_option_is_named_in_one_line(name, value):
    with pytest.raises(ConfigError) as err:
        parse_options({name: value})
    message = str(err.value)
    assert name.rpartition('_')[0] in message
    assert '\n' not in message
