# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.common.memcached import MemcacheConnectionError

from shardmw.swift import memcached
from shardmw.swift.memcached import LockError, SharedCache
from test.unit.fakeswift import Memcached

KEY = 'shardmw/key'


class AwayMemcached:
    """Swift's client when no server answers."""

    def incr(self, _key, **_options):
        raise MemcacheConnectionError

    def set(self, _key, _value, time=0, raise_on_error=False):
        if raise_on_error:
            raise MemcacheConnectionError

    def get(self, _key):
        return None

    def get_multi(self, _keys, _server_key):
        return None

    def set_multi(self, _values, _server_key, serialize=True, time=0):
        pass

    def delete(self, _key):
        pass


@pytest.fixture
def cache() -> SharedCache:
    return SharedCache({'swift.cache': Memcached()})


@pytest.fixture(params=['none', 'away'])
def useless(request) -> SharedCache:
    """Return a cache without memcached, and one whose servers are away."""
    if request.param == 'none':
        return SharedCache({})
    return SharedCache({'swift.cache': AwayMemcached()})


class TestValues:
    def test_are_kept(self, cache):
        cache.set(KEY, [1, 2], 60)
        assert cache.get(KEY) == [1, 2]

    def test_are_not_kept_for_0_seconds(self, cache):
        cache.set(KEY, 1, 0)
        assert cache.get(KEY) is None

    def test_can_be_put_with_a_confirmation(self, cache):
        assert cache.put(KEY, 1, 60) is True
        assert cache.get(KEY) == 1

    def test_can_be_kept_together(self, cache):
        cache.set_together({'a': 1, 'b': 2}, KEY, 60)
        assert cache.get_together(['a', 'x', 'b'], KEY) == [1, None, 2]

    def test_can_be_bytes_that_are_kept_as_they_are(self, cache):
        cache.set_bytes_together({'a': b'"\xff'}, KEY, 60)
        assert cache.get_together(['a'], KEY) == [b'"\xff']

    def test_can_be_dropped(self, cache):
        cache.set(KEY, 1, 60)
        cache.delete(KEY)
        assert cache.get(KEY) is None

    def test_can_be_counters(self, cache):
        assert cache.add(KEY, 5, 60) == 5
        assert cache.add(KEY, -2, 60) == 3
        assert cache.add(KEY, -9, 60) == 0

    def test_can_be_taken_once(self, cache):
        assert cache.take(KEY, 60) is True
        assert cache.take(KEY, 60) is False
        cache.delete(KEY)
        assert cache.take(KEY, 60) is True


class TestUnavailable:
    def test_keeps_nothing(self, useless):
        useless.set(KEY, 1, 60)
        useless.set_together({KEY: 1}, KEY, 60)
        useless.set_bytes_together({KEY: b'1'}, KEY, 60)
        useless.delete(KEY)
        assert useless.get(KEY) is None
        assert useless.get_together([KEY, 'x'], KEY) == [None, None]

    def test_confirms_nothing(self, useless):
        assert useless.put(KEY, 1, 60) is False

    def test_counts_nothing(self, useless):
        assert useless.add(KEY, 1, 60) is None

    def test_lets_every_worker_take_a_key(self, useless):
        assert useless.take(KEY, 60) is True
        assert useless.take(KEY, 60) is True

    def test_has_no_locks(self, useless):
        with useless.lock(KEY, 60), useless.lock(KEY, 60):
            pass


class TestLock:
    @pytest.fixture(autouse=True)
    def waited(self, monkeypatch) -> list[float]:
        """Record the seconds of each wait for a lock."""
        waited = []
        monkeypatch.setattr(memcached, 'sleep', waited.append)
        return waited

    def test_is_held_by_one(self, cache):
        with cache.lock(KEY, 1), pytest.raises(LockError), cache.lock(KEY, 1):
            pytest.fail('two processes hold the lock')

    def test_can_be_held_again(self, cache, waited):
        for _ in range(2):
            with cache.lock(KEY, 1):
                pass
        assert waited == []

    def test_is_released_after_an_error(self, cache):
        with pytest.raises(RuntimeError), cache.lock(KEY, 1):
            raise RuntimeError
        assert cache.take(KEY, 1) is True

    def test_of_another_process_is_not_released_after_a_timeout(self, cache):
        cache.take(KEY, 1)
        with pytest.raises(LockError), cache.lock(KEY, 1):
            pass
        assert cache.take(KEY, 1) is False

    def test_is_waited_for_as_long_as_it_lasts(self, cache, waited):
        cache.take(KEY, 1)
        with pytest.raises(LockError), cache.lock(KEY, 2):
            pass
        assert 2 <= sum(waited) < 2.2

    def test_is_acquired_as_soon_as_it_is_released(
        self, cache, waited, monkeypatch
    ):
        cache.take(KEY, 1)
        monkeypatch.setattr(memcached, 'sleep', lambda _: cache.delete(KEY))
        with cache.lock(KEY, 1):
            assert cache.get(KEY) == 1
