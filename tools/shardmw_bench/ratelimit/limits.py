# SPDX-License-Identifier: Apache-2.0
"""Parameters of the experiments, clusters with limits, and loads on them."""

import base64
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

import click
from shardmw_saio import ClusterOptions

from shardmw_bench import options as types
from shardmw_bench.kinds import PLAIN, Kind, sharded
from shardmw_bench.load.sources import (
    REFUSAL_POLICIES,
    RETRY_AFTER,
    Load,
    Uploads,
)
from shardmw_bench.load.stage import Stage
from shardmw_bench.names import one_name_each
from shardmw_bench.options import option
from shardmw_bench.scenarios import base
from shardmw_bench.site import Site
from shardmw_bench.tables import plain

SHARDMW = 'shardmw'
#: Swift's own filter.
STOCK = 'ratelimit'
FILTERS = (SHARDMW, STOCK)

FRESH = 'new'
FILLED = 'with an object'

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


@dataclass(frozen=True)
class LimitExperiment(base.Scenario):
    """An experiment on limits. All have the same parameters."""

    clients: int = base.shared('clients', 128)
    processes: int = base.shared('processes', 2)
    proxies: int = base.shared('proxies', 2)
    seconds: float = option(
        15.0,
        types.DURATION,
        'How long each load lasts; with outage, each of its three phases.',
    )
    size: int = base.shared('size', 1)
    max_sleep_seconds: float = option(
        1.0, types.DURATION, 'The longest delay of a write; then 498.'
    )
    buffer_seconds: float = option(
        5.0, types.DURATION, "The filters' option rate_buffer_seconds."
    )
    backoff_seconds: float = option(
        1.0, types.DURATION, 'Pause with --on-refusal backoff.'
    )
    rates: tuple[float, ...] = option(
        (5.0, 20.0, 100.0),
        types.RATES,
        'rates: limits of each backing container, in writes/s.',
    )
    shards: tuple[int, ...] = option(
        (1, 8, 32), types.COUNTS, 'rates: shard counts.'
    )
    stock_rates: tuple[float, ...] = option(
        (20.0,), types.RATES, "rates: limits of Swift's ratelimit filter."
    )
    seed_rate: float = option(100.0, types.RATE, 'seed: the limit.')
    seed_shards: int = option(32, types.POSITIVE, 'seed: the shard count.')
    rounds: int = option(3, types.POSITIVE, 'seed: the number of rounds.')
    middle_rate: float = option(
        20.0, types.RATE, 'outage, operations: the limit.'
    )
    middle_shards: int = option(
        8, types.POSITIVE, 'outage, operations, latency: the shard count.'
    )
    pairs: int = option(20, types.POSITIVE, 'latency: the number of rounds.')
    requests: int = option(
        50, types.POSITIVE, 'latency: writes of each client in a round.'
    )
    on_refusal: str = option(
        RETRY_AFTER,
        click.Choice(REFUSAL_POLICIES),
        'What a client does after a refusal: wait for the Retry-After of the '
        'response, wait for --backoff-seconds, or continue at once.',
    )
    settings: Mapping[str, str] = base.shared('settings', {})

    @property
    def cluster_settings(self) -> dict[str, str]:
        settings = {**_SWIFTS_TIMEOUTS, **token_settings()}
        settings[f'{SHARDMW}.ratelimit_proxies'] = str(self.proxies)
        for name in FILTERS:
            longest, buffer = self.max_sleep_seconds, self.buffer_seconds
            settings[f'{name}.max_sleep_time_seconds'] = plain(longest)
            settings[f'{name}.rate_buffer_seconds'] = plain(buffer)
        return {**settings, **self.settings}

    def site(
        self, stage: Stage, **limit: object
    ) -> contextlib.AbstractContextManager[Site]:
        """Return a cluster for a ``with`` block.

        :param limit: arguments of :func:`limit_settings`, for a limit
        """
        options = ClusterOptions(
            proxies=self.proxies, settings=self.cluster_settings
        ).with_settings(limit_settings(**limit))
        return stage.site(options)

    def write_load(
        self, site: Site, container: str, **changes: object
    ) -> Load:
        """Return a load of all clients that write to a container.

        :param changes: fields of the load that differ
        """
        fields = {
            'clients': self.clients,
            'seconds': self.seconds,
            'on_refusal': self.on_refusal,
            'backoff_seconds': self.backoff_seconds,
            'drain_seconds': self.max_sleep_seconds + 10,
            **changes,
        }
        source = Uploads(site.container_path(container), self.size)
        return site.load(source, **fields)


def token_settings() -> dict[str, str]:
    """Return settings for tokens that are checked without memcached.

    Such tokens survive an outage of memcached, and cause no operations of it.
    """
    key = base64.urlsafe_b64encode(os.urandom(32)).decode()
    return {
        'tempauth.fernet_key_bench': key,
        'tempauth.active_fernet_key_id': 'bench',
    }


def limit_settings(
    limiter: str | None = None, rate: float | None = None, least_size: int = 0
) -> dict[str, str | None]:
    """Return the settings of a limit, which replace those of any other.

    :param limiter: one of :data:`FILTERS`, None for no limit
    :param rate: the writes/s of a container
    :param least_size: containers with fewer objects are not limited
    """
    own = _EMPTY_FILTER if limiter == STOCK else None
    option = 'container_ratelimit'
    settings: dict[str, str | None] = {
        **{f'{name}.{option}_0': None for name in FILTERS},
        **{f'{name}.use': own for name in _OWN_FILTERS},
    }
    if limiter is not None and rate is not None:
        settings[f'{limiter}.{option}_{least_size}'] = plain(rate)
    return settings


def is_machine_bound(total_limit: float, unlimited_rate: float) -> bool:
    """Return True if a limit is near the rate without one. Pure."""
    return total_limit > 0.9 * unlimited_rate


def kind_with(shards: int | None) -> Kind:
    """Return the kind of container with so many shards; None is plain."""
    return PLAIN if shards is None else sharded(shards)


def container_text(row: Mapping) -> str:
    label = kind_with(row['shards']).label
    state = row.get('state', FRESH)
    return label if state == FRESH else f'{label}, {state}'


def limit_text(rate: float | None) -> str:
    return 'none' if rate is None else f'{plain(rate)} /s'


def filled(site: Site, shards: int | None) -> str:
    """Return a new container with an object in each shard.

    Swift's filter does not limit a container that seems to be empty.
    """
    container = site.make(kind_with(shards))
    for name in one_name_each(shards or 1, 'first'):
        site.account.store(container, name)
    site.account.refresh(container)
    return container
