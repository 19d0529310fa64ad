# SPDX-License-Identifier: Apache-2.0
"""Values that memcached keeps for some seconds, or a worker without it."""

import pytest
from swift.common.memcached import MemcacheConnectionError

from shardmw.backend import short_store
from shardmw.backend.short_store import OVERHEAD_BYTES, ShortStore
from test.unit.clocks import Clock

ACCOUNT, PLACE, KEY = 'AUTH_a', 'place', 'key'
VALUE = b'value'
MEGABYTE = 1_000_000

#: How long a value may be kept, and by how much less memcached keeps it: one
#: second for its clock, plus the timeouts of Swift's client.
SECONDS, EARLY = 30, 1 + 4


class Memcached:
    """A memcached whose values expire.

    :ivar calls: the number of requests
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls = 0
        self.is_away = False
        #: The seconds from a request to its response.
        self.late = 0.0
        self.entries = {}

    @property
    def size(self) -> int:
        """Return the bytes of all values that have not expired."""
        return sum(
            len(value)
            for value, until in self.entries.values()
            if until > self.clock.now and isinstance(value, bytes)
        )

    def get_multi(self, keys, _place):
        self.calls += 1
        if self.is_away:
            return None
        found = [self.entries.get(key, (None, 0)) for key in keys]
        return [
            value if until > self.clock.now else None for value, until in found
        ]

    def set(self, key, value, time, raise_on_error):
        self.calls += 1
        if self.is_away:
            raise MemcacheConnectionError
        self.entries[key] = value, self.clock.now + time

    def set_multi(self, values, _place, serialize, time):
        assert not serialize
        self.calls += 1
        if not self.is_away:
            until = self.clock.now + self.late + time
            self.entries.update({k: (v, until) for k, v in values.items()})


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(short_store, 'time', clock)
    return clock


@pytest.fixture
def memcached(clock) -> Memcached:
    return Memcached(clock)


@pytest.fixture
def env(memcached) -> dict:
    return {'swift.cache': memcached}


def get(store: ShortStore, env: dict, key: str = KEY, seconds: int = SECONDS):
    (value,) = store.get(env, ACCOUNT, PLACE, [key], seconds)
    return value or None


def put(
    store: ShortStore,
    env: dict,
    left: float = SECONDS,
    value: bytes = VALUE,
    key: str = KEY,
    account: str = ACCOUNT,
) -> None:
    expires = short_store.time.now + left
    store.put(env, account, PLACE, {key: value}, expires)


def last_seconds(store: ShortStore, env: dict, clock: Clock, **how) -> float:
    """Return for how many seconds a value is kept."""
    began = clock.now
    while get(store, env, **how) and clock.now < began + 2 * SECONDS:
        clock.now += 0.1
    return clock.now - began


def test_another_worker_gets_a_value_from_memcached(env):
    put(ShortStore(MEGABYTE), env)
    assert get(ShortStore(MEGABYTE), env) == VALUE


@pytest.mark.parametrize('late', [0, 1, 3.3])
def test_memcached_keeps_no_value_beyond_its_time_though_it_gets_it_late(
    clock, memcached, env, late
):
    memcached.late = late + 1  # memcached's clock may be 1 s late
    store = ShortStore(MEGABYTE)
    put(store, env)
    assert SECONDS - EARLY < last_seconds(store, env, clock) <= SECONDS + 0.1


def test_the_time_that_memcached_takes_to_answer_counts(
    clock, memcached, env, monkeypatch
):
    def confirm(*_args, **_kwargs):
        clock.now += 3

    monkeypatch.setattr(memcached, 'set', confirm)
    memcached.late = 1 + 3.3
    store = ShortStore(MEGABYTE)
    expires = clock.now + SECONDS
    store.put(env, ACCOUNT, PLACE, {KEY: VALUE}, expires)
    last_seconds(store, env, clock)
    assert clock.now <= expires + 0.1


@pytest.mark.parametrize('is_away', [True, False])
def test_a_worker_keeps_a_value_itself_without_memcached(
    clock, memcached, env, is_away
):
    memcached.is_away = True
    env = env if is_away else {}
    store = ShortStore(MEGABYTE)
    put(store, env)
    assert get(ShortStore(MEGABYTE), env) is None
    assert last_seconds(store, env, clock) == pytest.approx(SECONDS, abs=0.1)


def test_a_worker_keeps_a_value_itself_if_its_time_is_short(
    clock, memcached, env
):
    store = ShortStore(MEGABYTE)
    put(store, env, left=EARLY)
    lasts = last_seconds(store, env, clock, seconds=EARLY)
    assert lasts == pytest.approx(EARLY, abs=0.1)
    assert memcached.calls == 0


def test_a_value_of_no_time_is_not_kept(env):
    store = ShortStore(MEGABYTE)
    put(store, env, left=0)
    assert get(store, env) is None


def test_without_bytes_for_it_nothing_is_kept(env):
    store = ShortStore(0)
    put(store, env)
    assert get(store, env) is None


@pytest.mark.parametrize('is_away', [True, False])
def test_new_values_take_the_place_of_the_oldest_of_the_account(
    memcached, env, is_away
):
    memcached.is_away = is_away
    store = ShortStore(4 * 10 * (OVERHEAD_BYTES + 100 + 2))
    for number in range(30):
        put(store, env, value=b'v' * 100, key=f'{number:02}')
    kept = [number for number in range(30) if get(store, env, f'{number:02}')]
    assert kept == list(range(20, 30))


def test_an_account_takes_a_quarter_of_the_bytes(env, memcached):
    store = ShortStore(MEGABYTE)
    for number in range(1000):
        put(store, env, value=b'v' * 5000, key=f'{number}')
        assert memcached.size <= MEGABYTE / 4
    assert memcached.size > MEGABYTE / 5


def test_all_accounts_take_no_more_than_the_bytes(env, memcached):
    store = ShortStore(MEGABYTE)
    for number in range(1000):
        account = f'AUTH_{number % 10}'
        value = b'v' * 5000
        put(store, env, value=value, key=f'{number}', account=account)
        assert memcached.size <= MEGABYTE
    assert memcached.size > MEGABYTE * 4 / 5


def test_values_that_have_expired_are_not_dropped_from_memcached(
    clock, memcached, env
):
    store = ShortStore(4 * (OVERHEAD_BYTES + 100))
    put(store, env)
    clock.now += SECONDS
    calls = memcached.calls
    put(store, env, key='other')
    assert memcached.calls - calls == 2


def test_a_value_of_a_short_time_takes_the_place_of_one_in_memcached(
    memcached, env
):
    store = ShortStore(4 * (OVERHEAD_BYTES + 100))
    put(store, env)
    assert memcached.size == len(VALUE)
    put(store, env, left=EARLY, key='other')
    assert memcached.size == 0


def test_a_memcached_that_has_just_failed_is_sent_nothing_more(memcached, env):
    store = ShortStore(4 * (OVERHEAD_BYTES + 100))
    put(store, env)
    memcached.is_away = True
    calls = memcached.calls
    put(store, env, key='other')
    assert memcached.calls - calls == 1


def test_a_value_that_was_the_oldest_and_is_put_again_is_kept(clock, env):
    store = ShortStore(4 * 2 * (OVERHEAD_BYTES + len('a') + len(VALUE)))
    expires = clock.now + SECONDS
    store.put(env, ACCOUNT, PLACE, {'a': VALUE, 'b': VALUE}, expires)
    store.put(env, ACCOUNT, PLACE, {'c': VALUE, 'a': b'newer'}, expires)
    kept = [get(store, env, key) for key in 'abc']
    assert kept == [b'newer', None, VALUE]
