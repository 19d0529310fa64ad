# SPDX-License-Identifier: Apache-2.0
"""Count the shards of a new container against the account's rate.

``account_ratelimit`` of Swift's ratelimit filter is the rate at which the
containers of one account may be created and deleted. That filter counts the
client's PUT as one write, but a create of a sharded container creates as many
backing containers as it has shards. This module counts the others, in the
filter's own counter in memcached.

The counter is the account's *running time*: the time when the next write is
due, in units of 1 / ``clock_accuracy`` seconds since 1970. Each write adds
1 / rate to it. A running time that is more than ``rate_buffer_seconds`` in the
past is first set to the present.
"""

import time

from swift.common.memcached import MemcacheConnectionError
from swift.common.swob import str_to_wsgi
from swift.common.utils import cache_from_env

#: The key and the default options of Swift's ratelimit filter.
RUNNING_TIME_KEY = 'ratelimit/{account}'
CLOCK_ACCURACY = 1000
RATE_BUFFER_SECONDS = 5


class AccountRate:
    """The account's rate, as Swift's ratelimit filter is configured.

    :param rate_per_second: ``account_ratelimit``, 0 for no limit
    :param clock_accuracy: units of the running time per second
    :param rate_buffer_seconds: how far the running time may be in the past
    """

    def __init__(
        self,
        rate_per_second: float,
        clock_accuracy: int = CLOCK_ACCURACY,
        rate_buffer_seconds: int = RATE_BUFFER_SECONDS,
    ) -> None:
        self._clock_accuracy = clock_accuracy
        self._buffer = rate_buffer_seconds * clock_accuracy
        self._time_of_write = 0
        if rate_per_second > 0:
            self._time_of_write = round(clock_accuracy / rate_per_second)

    def charge_create(self, env: dict, account: str, shards: int) -> None:
        """Count a create of a sharded container as one write per shard.

        Do nothing if there is no rate or memcached is unavailable. The create
        itself never waits and is never refused for it; the account's next
        creates and deletes of containers are.

        :param env: the environment of the client's PUT, which the ratelimit
                    filter has counted as one write
        :param account: the client's account, a native string
        """
        memcached = cache_from_env(env, True)
        writes = shards - 1
        if not memcached or not self._time_of_write or writes < 1:
            return
        # Swift's ratelimit filter makes the key of a WSGI string.
        key = RUNNING_TIME_KEY.format(account=str_to_wsgi(account))
        now = round(time.time() * self._clock_accuracy)
        duration = writes * self._time_of_write
        try:
            running_time = memcached.incr(key, delta=duration)
        except MemcacheConnectionError:
            return
        after_first = running_time - duration + self._time_of_write
        if now - after_first > self._buffer:
            memcached.set(key, str(now + duration), serialize=False)
