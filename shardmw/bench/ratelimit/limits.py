# SPDX-License-Identifier: Apache-2.0
"""Settings of the proxies for a limit, by either filter."""

import base64
import os

from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.tables import plain

SHARDMW = 'shardmw'
#: Swift's own filter.
STOCK = 'ratelimit'
FILTERS = (SHARDMW, STOCK)

_SECRET_BYTES = 32

# shardmw does not start next to a ratelimit filter that limits containers. A
# filter that passes all requests on replaces it then.
_OWN_FILTERS = (SHARDMW, 'shardmw-listings')
_EMPTY_FILTER = 'egg:swift#healthcheck'

# Swift's defaults, which other clusters of the benchmark do not have.
_SWIFTS_TIMEOUTS = {
    'proxy-server.node_timeout': '10',
    'proxy-server.recoverable_node_timeout': '10',
    'memcache.connect_timeout': '0.3',
    'memcache.pool_timeout': '1',
    'memcache.io_timeout': '2',
}


def base_settings(parameters: Parameters) -> dict[str, str]:
    """Return the settings that the clusters of all experiments have."""
    return {
        **_SWIFTS_TIMEOUTS,
        **token_settings(),
        f'{SHARDMW}.ratelimit_proxies': str(parameters.proxies),
        **{
            f'{name}.{option}': plain(value)
            for name in FILTERS
            for option, value in (
                ('max_sleep_time_seconds', parameters.max_sleep_seconds),
                ('rate_buffer_seconds', parameters.buffer_seconds),
            )
        },
        **parameters.settings,
    }


def token_settings() -> dict[str, str]:
    """Return settings for tokens that are checked without memcached.

    Tokens survive an outage of memcached, and add no operations to it.
    """
    key = base64.urlsafe_b64encode(os.urandom(_SECRET_BYTES)).decode()
    return {
        'tempauth.fernet_key_bench': key,
        'tempauth.active_fernet_key_id': 'bench',
    }


def limit_settings(
    limiter: str | None, rate: float | None, least_size: int = 0
) -> dict[str, str | None]:
    """Return the settings of a limit, which replace those of any other.

    The proxies have shardmw, unless Swift's own filter limits containers.

    :param limiter: one of :data:`FILTERS`, None for no limit at all
    :param rate: writes a second of a container
    :param least_size: containers with fewer objects are not limited
    """
    own = _EMPTY_FILTER if limiter == STOCK else None
    settings: dict[str, str | None] = {
        **{_option(name, 0): None for name in FILTERS},
        **{f'{name}.use': own for name in _OWN_FILTERS},
    }
    if limiter is not None and rate is not None:
        settings[_option(limiter, least_size)] = plain(rate)
    return settings


def allowed(rate: float, seconds: float, buffer_seconds: float) -> float:
    """Return the most writes that a limit admits in a window. Pure.

    An idle backing container may exceed its rate later, by the buffer.
    """
    return rate * (seconds + buffer_seconds)


def is_machine_bound(total_limit: float, unlimited_rate: float) -> bool:
    """Return True if a limit is near the rate without one. Pure."""
    return total_limit > 0.9 * unlimited_rate


def _option(limiter: str, least_size: int) -> str:
    return f'{limiter}.container_ratelimit_{least_size}'
