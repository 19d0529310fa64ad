# SPDX-License-Identifier: Apache-2.0
"""The account's rate, compared with the accounting of Swift's own filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.memcached import MemcacheConnectionError
from swift.common.middleware import ratelimit as stock
from swift.common.swob import Request, Response, str_to_wsgi
from swift.proxy.controllers.base import get_cache_key

from shardmw.proxy.ratelimit import account_rate
from shardmw.proxy.ratelimit.account_rate import AccountRate
from test.unit.clocks import Clock

NOW = 1_700_000_000.25
ACCOUNT = 'AUTH_tést'
KEY = f'ratelimit/{str_to_wsgi(ACCOUNT)}'


class Memcached:
    """A memcached with counters in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.is_away = False

    def incr(self, key: str, delta: int = 1, time: int = 0) -> int:
        if self.is_away:
            raise MemcacheConnectionError
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]

    def decr(self, key: str, delta: int = 1, time: int = 0) -> int:
        return self.incr(key, -delta, time)

    def set(self, key: str, value: str, serialize: bool) -> None:
        assert not serialize
        self.values[key] = int(value)


class FakeApp:
    """The pipeline on the right of the ratelimit filter."""

    def __call__(self, env: dict, start_response):
        return Response(status=204)(env, start_response)


def stock_filter(memcached: Memcached, **conf) -> stock.RateLimitMiddleware:
    """Return Swift's filter, made to never sleep and never refuse."""
    conf = {'max_sleep_time_seconds': '1e18', **conf}
    middleware = stock.RateLimitMiddleware(FakeApp(), conf)
    middleware.memcache_client = memcached
    return middleware


@pytest.fixture(scope='module', autouse=True)
def clock():
    """Stop the clocks of both filters, and let no request sleep."""
    clock = Clock(NOW)
    # before Swift 2.38, the filter calls eventlet.sleep
    owner = stock if hasattr(stock, 'sleep') else stock.eventlet
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stock, 'time', clock)
        patch.setattr(owner, 'sleep', lambda _seconds: None)
        patch.setattr(account_rate, 'time', clock)
        yield clock


def put_container(middleware, memcached: Memcached) -> dict:
    """Send a PUT of a container; return its environment."""
    req = Request.blank('/v1/AUTH_t%C3%A9st/c', method='PUT')
    account_info = {'status': 200, 'sysmeta': {}}
    req.environ['swift.infocache'] = {get_cache_key(ACCOUNT): account_info}
    assert req.get_response(middleware).status_int == 204
    return dict(req.environ, **{'swift.cache': memcached})


rates = st.floats(0.01, 3000)
#: How far the running time is ahead of the present, in seconds.
offsets = st.one_of(st.none(), st.floats(-100, 100), st.floats(-6, -4))


@given(
    rates,
    offsets,
    st.integers(1, 1024),
    st.sampled_from([1, 1000, 10**6]),
    st.integers(0, 60),
)
def test_a_create_counts_as_swift_counts_as_many_puts(
    rate, offset, shards, accuracy, buffer
):
    conf = {
        'account_ratelimit': str(rate),
        'clock_accuracy': str(accuracy),
        'rate_buffer_seconds': str(buffer),
    }
    ours, expected = Memcached(), Memcached()
    if offset is not None:
        before = round((NOW + offset) * accuracy)
        ours.values[KEY] = expected.values[KEY] = before
    middleware = stock_filter(expected, **conf)
    for _ in range(shards):
        put_container(middleware, expected)
    env = put_container(stock_filter(ours, **conf), ours)
    AccountRate(rate, accuracy, buffer).charge_create(env, ACCOUNT, shards)
    assert ours.values == expected.values


@pytest.mark.parametrize('idle_seconds', [3, 60])
def test_a_running_time_in_the_past_is_treated_as_swift_treats_it(
    clock, idle_seconds
):
    """The creation takes long, or Swift's filter did not count the PUT."""
    rate = AccountRate(10)
    ours, expected = Memcached(), Memcached()
    for memcached in (ours, expected):
        before = round((NOW - idle_seconds) * 1000)
        memcached.values[KEY] = before
    for _ in range(31):
        put_container(stock_filter(expected, account_ratelimit='10'), expected)
    rate.charge_create({'swift.cache': ours}, ACCOUNT, 32)
    assert ours.values == expected.values


def test_the_next_create_waits_for_all_shards():
    memcached = Memcached()
    middleware = stock_filter(memcached, account_ratelimit='10')
    env = put_container(middleware, memcached)
    AccountRate(10).charge_create(env, ACCOUNT, 32)
    assert middleware._get_sleep_time(KEY, 10) == pytest.approx(3.2)


@pytest.mark.parametrize(('rate', 'shards'), [(0, 32), (10, 1)])
def test_without_a_rate_or_with_one_shard_nothing_counts(rate, shards):
    memcached = Memcached()
    env = {'swift.cache': memcached}
    AccountRate(rate).charge_create(env, ACCOUNT, shards)
    assert memcached.values == {}


def test_without_memcached_nothing_happens():
    AccountRate(10).charge_create({}, ACCOUNT, 32)


def test_while_memcached_is_away_nothing_happens():
    memcached = Memcached()
    memcached.is_away = True
    AccountRate(10).charge_create({'swift.cache': memcached}, ACCOUNT, 32)
    assert memcached.values == {}
