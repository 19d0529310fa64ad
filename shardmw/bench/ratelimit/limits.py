# SPDX-License-Identifier: Apache-2.0
"""Settings of the proxies for a limit, by either filter. Pure."""

import base64
from collections.abc import Mapping

from shardmw.bench.parameters import MOST_SHARDS
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.tables import plain

SHARDMW = 'shardmw'
#: Swift's own filter.
STOCK = 'ratelimit'
FILTERS = (SHARDMW, STOCK)

#: Of the secret that tokens are signed with.
SECRET_BYTES = 32

# shardmw does not start beside a ratelimit filter that limits containers. A
# filter that passes all requests on takes its place then.
_OWN_FILTERS = (SHARDMW, 'shardmw-listings')
_EMPTY_FILTER = 'egg:swift#healthcheck'


def base_settings(parameters: Parameters, secret: bytes) -> dict[str, str]:
    """What all clusters have.

    :param secret: see :func:`token_settings`
    """
    return {
        **token_settings(secret),
        f'{SHARDMW}.client_max_shards': str(MOST_SHARDS),
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


def token_settings(secret: bytes) -> dict[str, str]:
    """Have tokens such that it takes no memcached to check them.

    So they outlive it, and cost it nothing.

    :param secret: to sign tokens with, of :data:`SECRET_BYTES`
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f'a secret has {SECRET_BYTES} bytes')
    key = base64.urlsafe_b64encode(secret).decode()
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
    :param least_size: of objects in it, from which on the limit holds
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
    """The most writes in a window that a limit lets through.

    A backing container may make up for what it did not use.
    """
    return rate * (seconds + buffer_seconds)


def is_machine_bound(total_limit: float, unlimited_rate: float) -> bool:
    """Whether a limit is about what the machine can do without one."""
    return total_limit > 0.9 * unlimited_rate


def without_unset(settings: Mapping[str, str | None]) -> dict[str, str]:
    """The settings of a cluster that has none yet."""
    return {k: v for k, v in settings.items() if v is not None}


def _option(limiter: str, least_size: int) -> str:
    return f'{limiter}.container_ratelimit_{least_size}'
