# SPDX-License-Identifier: Apache-2.0
import pytest

from shardmw.config import ConfigError, parse_options
from shardmw.pipeline import (
    ADDED_BY_SWIFT,
    LEFT,
    LISTINGS,
    RIGHT,
    Filter,
    check_order,
    check_rate_limits,
)


def pipeline(*kinds: str) -> list[Filter]:
    return [Filter(f'my-{kind}', kind, {}) for kind in kinds]


def test_the_documented_order_is_accepted():
    check_order(pipeline(*LEFT, 'shardmw', *RIGHT, 'proxy_logging'))


@pytest.mark.parametrize('kind', ADDED_BY_SWIFT)
def test_what_swift_would_add_on_the_right_must_be_named(kind):
    named = [other for other in ADDED_BY_SWIFT if other != kind]
    with pytest.raises(ConfigError, match=f'name {kind} in the pipeline'):
        check_order(pipeline(*named, 'shardmw', 'proxy_logging'))
    check_order(pipeline(*named, 'proxy_logging', 'shardmw'))


def test_filters_of_others_may_stand_anywhere():
    check_order(pipeline('theirs', 'shardmw', 'theirs'))


@pytest.mark.parametrize('kind', LEFT)
def test_what_speaks_of_logical_containers_must_stand_left(kind):
    with pytest.raises(ConfigError, match=f'move my-{kind} to the left'):
        check_order(pipeline('shardmw', kind))


@pytest.mark.parametrize('kind', RIGHT)
def test_what_derives_keys_from_backing_paths_must_stand_right(kind):
    with pytest.raises(ConfigError, match=f'move my-{kind} to the right'):
        check_order(pipeline(kind, 'shardmw'))


def test_the_filter_of_listings_stands_left_of_the_filter():
    check_order(pipeline(LISTINGS, 'listing_formats', 's3api', 'shardmw'))
    with pytest.raises(ConfigError, match=f'move my-{LISTINGS} to the left'):
        check_order(pipeline('listing_formats', 'shardmw', LISTINGS))


@pytest.mark.parametrize('package', ['swift', 'keystonemiddleware'])
def test_the_filter_of_listings_passes_those_by_that_are_known(package):
    check_order(with_listings(Filter('other', 'other', {}, package)))


def test_the_filter_of_listings_passes_nobody_elses_by():
    theirs = Filter('billing', 'billing', {}, 'theirs')
    with pytest.raises(ConfigError, match='to the right of billing'):
        check_order(with_listings(theirs))
    check_order([theirs, *with_listings()])


def with_listings(*between: Filter) -> list[Filter]:
    left, right = pipeline('listing_formats', LISTINGS), pipeline('shardmw')
    return [*left, *between, *right]


def test_the_filter_stands_in_a_pipeline_once():
    with pytest.raises(ConfigError, match='exactly once'):
        check_order(pipeline('shardmw', 'shardmw'))


def test_container_rates_may_be_set_in_one_filter_only():
    stock = Filter('rl', 'ratelimit', {'container_ratelimit_5': '10'})
    ours = parse_options({'container_ratelimit_0': '100'})
    with pytest.raises(ConfigError, match='container_ratelimit_5 .* rl'):
        check_rate_limits([stock], ours)
    check_rate_limits([stock], parse_options({}))
    listings = parse_options({'container_listing_ratelimit_0': '1'})
    check_rate_limits([stock], listings)


def test_listing_rates_may_be_set_in_one_filter_only():
    stock = Filter('rl', 'ratelimit', {'container_listing_ratelimit_5': '1'})
    ours = parse_options({'container_listing_ratelimit_0': '1'})
    with pytest.raises(ConfigError, match='container_listing_ratelimit_5'):
        check_rate_limits([stock], ours)
    check_rate_limits([stock], parse_options({'container_ratelimit_0': '1'}))


def test_stock_ratelimit_may_limit_other_things():
    stock = Filter('rl', 'ratelimit', {'account_ratelimit': '10'})
    check_rate_limits([stock], parse_options({'container_ratelimit_0': '9'}))
