# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.backend.config import (
    ConfigError,
    check_option_names,
    parse_options,
)


def refusal_of(**conf: str) -> str:
    """Return the message with which options are refused."""
    with pytest.raises(ConfigError) as err:
        parse_options(conf)
    message = str(err.value)
    assert '\n' not in message
    return message


def test_nothing_is_sharded_or_limited_by_default():
    options = parse_options({})
    assert options.sharding_for('AUTH_a', 'c').shards == 0
    assert not options.rate_limits.are_set
    assert options.rate_limits.writes.rate_of(10**6) is None
    assert options.account_ratelimit == 0


def test_the_first_rule_that_matches_counts():
    options = parse_options(
        {
            'default_shards': '2',
            'shard_rules': 'AUTH_ci/logs*=32, AUTH_ci/*=0, */*+segments = 8',
        }
    )
    assert options.sharding_for('AUTH_ci', 'logs-2026').shards == 32
    assert options.sharding_for('AUTH_ci', 'x+segments').shards == 0
    assert options.sharding_for('AUTH_b', 'x+segments').shards == 8
    assert options.sharding_for('AUTH_b', 'x').shards == 2
    assert options.has_rule('AUTH_ci', 'x')
    assert not options.has_rule('AUTH_b', 'x')


def test_rules_are_case_sensitive():
    options = parse_options({'shard_rules': '*/logs=4'})
    assert options.sharding_for('AUTH_a', 'Logs').shards == 0


def test_a_rule_may_name_a_depth():
    options = parse_options(
        {
            'default_shards': '2',
            'default_depth': '3',
            'shard_rules': '*/a = 8 depth 1, */b=8 depth 0, */c=8',
        }
    )
    assert options.sharding_for('AUTH_a', 'a') == (8, 1)
    assert options.sharding_for('AUTH_a', 'b') == (8, 0)
    assert options.sharding_for('AUTH_a', 'c') == (8, 3)
    assert options.sharding_for('AUTH_a', 'd') == (2, 3)


def test_names_are_hashed_whole_by_default():
    options = parse_options({'default_shards': '2', 'shard_rules': '*/a=8'})
    assert options.sharding_for('AUTH_a', 'a').depth == 0
    assert options.sharding_for('AUTH_a', 'b').depth == 0


@pytest.mark.parametrize(
    ('conf', 'message'),
    [
        (
            {'default_depth': '17'},
            'shardmw: default_depth = 17: must be a whole number from 0 to 16',
        ),
        (
            {'shard_rules': '*/c=8 depth 17'},
            "shardmw: shard_rules: '*/c=8 depth 17': depth must be at most 16",
        ),
        (
            {'shard_rules': '*/c=8 depth'},
            "shardmw: shard_rules: '*/c=8 depth': must be account/container = "
            'shards [depth k] [listing_max_age seconds], globs allowed',
        ),
    ],
)
def test_other_depths_are_refused(conf, message):
    assert refusal_of(**conf) == message


# Listings that may be old


def test_no_listings_are_kept_by_default():
    assert parse_options({}).listing_max_age_of('AUTH_a', 'c') == 0


def test_a_rule_may_say_how_old_listings_may_be():
    options = parse_options(
        {
            'listing_max_age': '5',
            'shard_rules': '*/a=8 depth 1 listing_max_age 30, '
            '*/b=8 listing_max_age 0, */c=8',
        }
    )
    ages = [options.listing_max_age_of('AUTH_a', each) for each in 'abcd']
    assert ages == [30, 0, 5, 5]
    assert options.sharding_for('AUTH_a', 'a') == (8, 1)
    assert options.sharding_for('AUTH_a', 'b') == (8, 0)


@pytest.mark.parametrize(
    ('conf', 'message'),
    [
        (
            {'listing_max_age': '3601'},
            'shardmw: listing_max_age = 3601: must be a whole number from 0 '
            'to 3600',
        ),
        (
            {'shard_rules': '*/c=8 listing_max_age 3601'},
            "shardmw: shard_rules: '*/c=8 listing_max_age 3601': "
            'listing_max_age must be at most 3600',
        ),
    ],
)
def test_listings_are_not_older_than_an_hour(conf, message):
    assert refusal_of(**conf) == message


# Bounds of the shard count


def test_clients_may_ask_for_64_shards_and_operators_for_1024_by_default():
    options = parse_options({})
    assert (options.client_max_shards, options.max_shards) == (64, 1024)


def test_clients_may_not_ask_for_more_shards_than_anyone():
    options = parse_options({'max_shards': '16', 'client_max_shards': '32'})
    assert options.client_max_shards == 16


def test_clients_may_be_allowed_no_shards_while_operators_are():
    options = parse_options({'client_max_shards': '0', 'default_shards': '8'})
    assert options.client_max_shards == 0
    assert options.sharding_for('AUTH_a', 'c').shards == 8


def test_without_shards_for_anyone_there_are_none_for_clients():
    options = parse_options({'max_shards': '0', 'shard_rules': '*/*=0'})
    assert options.client_max_shards == 0
    assert options.sharding_for('AUTH_a', 'c').shards == 0


def test_without_shards_for_anyone_there_are_none_by_default():
    assert refusal_of(max_shards='0', default_shards='1') == (
        'shardmw: default_shards = 1: must be at most max_shards = 0'
    )


def test_without_shards_for_anyone_there_are_none_by_rule():
    assert refusal_of(max_shards='0', shard_rules='*/logs=1') == (
        "shardmw: shard_rules: '*/logs=1': must be at most max_shards = 0"
    )


# Rates


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


def test_an_empty_container_is_limited_if_size_0_has_a_limit():
    def rate_of_empty(size: int) -> float | None:
        conf = {f'container_ratelimit_{size}': '5'}
        return parse_options(conf).rate_limits.writes.rate_of(0)

    assert rate_of_empty(0) == 5
    assert rate_of_empty(1) is None


@pytest.mark.parametrize(
    ('conf', 'workers'),
    [
        ({'workers': '0'}, 1),
        ({'workers': 'many'}, 1),
        ({'workers': '1', 'ratelimit_proxies': '3'}, 3),
        ({'workers': '4', 'ratelimit_proxies': '3'}, 12),
    ],
)
def test_workers_of_all_proxies_are_counted(conf, workers):
    assert parse_options(conf).rate_limits.workers == workers


# Values that are refused


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('default_shards', '-1'),
        ('default_shards', 'many'),
        ('default_shards', '1025'),
        ('max_shards', '-1'),
        ('max_shards', '1025'),
        ('max_shards', '1.5'),
        ('client_max_shards', '-1'),
        ('client_max_shards', '1025'),
        ('shard_rules', 'logs=32'),
        ('shard_rules', 'a/logs'),
        ('shard_rules', 'a/logs=x'),
        ('shard_rules', 'a/logs=-1'),
        ('shard_rules', 'a/logs=2000'),
        ('fanout_concurrency', '0'),
        ('max_fanouts', '0'),
        ('account_fanout_concurrency', '0'),
        ('fanout_wait_seconds', '-1'),
        ('stats_cache_seconds', '-1'),
        ('head_cache_seconds', '61'),
        ('container_ratelimit_0', 'fast'),
        ('container_ratelimit_0', '0'),
        ('container_ratelimit_0', '-5'),
        ('container_ratelimit_0', 'nan'),
        ('container_ratelimit_0', 'inf'),
        ('container_ratelimit_0', '1e-320'),
        ('container_ratelimit_-5', '5'),
        ('container_ratelimit_x', '5'),
        ('container_ratelimit_', '5'),
        ('container_listing_ratelimit_0', '0'),
        ('container_listing_ratelimit_1e3', '5'),
        ('ratelimit_proxies', '0'),
        ('max_sleep_time_seconds', '-1'),
        ('max_sleep_time_seconds', 'nan'),
        ('rate_buffer_seconds', 'x'),
        ('log_sleep_time_seconds', ''),
    ],
)
def test_a_refusal_begins_with_option_and_value(name, value):
    message = refusal_of(**{name: value})
    assert message.startswith(f'shardmw: {name}')
    assert value in message[: len(f'shardmw: {name} = {value}: ')]


def test_a_refused_size_says_what_it_must_be():
    assert refusal_of(container_ratelimit_x='5') == (
        "shardmw: container_ratelimit_x = 5: 'x' must be a whole number of "
        'objects, as in container_ratelimit_1000 = 20'
    )


def test_two_rates_of_one_size_are_refused():
    message = refusal_of(
        container_ratelimit_10='5', container_ratelimit_010='6'
    )
    assert 'container_ratelimit_10 and container_ratelimit_010' in message


# Names that are refused


@pytest.mark.parametrize(
    ('name', 'meant'),
    [
        ('defualt_shards', 'default_shards'),
        ('default-shards', 'default_shards'),
        ('Default_Shards', 'default_shards'),
        ('client_max_shard', 'client_max_shards'),
        ('shards_rules', 'shard_rules'),
        ('max_sleep_time', 'max_sleep_time_seconds'),
        ('log_slep_time_seconds', 'log_sleep_time_seconds'),
        ('container_ratelimt_0', 'container_ratelimit_SIZE'),
        ('container_listing_rate_5', 'container_listing_ratelimit_SIZE'),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_name(name, meant):
    with pytest.raises(ConfigError) as err:
        check_option_names({'__name__': 'my-shardmw', name: '8'})
    assert str(err.value) == (
        f'shardmw: unknown option {name} in [filter:my-shardmw]: did you mean '
        f'{meant}?'
    )


def test_an_option_like_no_other_is_refused():
    with pytest.raises(ConfigError) as err:
        check_option_names({'colour': 'blue'})
    assert str(err.value) == (
        'shardmw: unknown option colour in [filter:shardmw]: remove it'
    )


def test_all_options_of_swifts_loggers_are_accepted():
    check_option_names(
        {
            '__name__': 'shardmw',
            'log_name': 'shardmw',
            'log_level': 'DEBUG',
            'log_facility': 'LOG_LOCAL1',
            'log_address': '/dev/log',
            'log_headers': 'false',
            'log_max_line_length': '0',
            'log_custom_handlers': '',
            'log_udp_host': '127.0.0.1',
            'log_udp_port': '514',
            'log_statsd_host': '127.0.0.1',
            'log_statsd_metric_prefix': 'x',
            'statsd_emit_legacy': 'false',
            'statsd_label_mode': 'dogstatsd',
            'statsd_user_label_site': 'a',
        }
    )


def test_rates_of_any_size_are_known_options():
    check_option_names(
        {'container_ratelimit_5': '1', 'container_listing_ratelimit_7': '1'}
    )
