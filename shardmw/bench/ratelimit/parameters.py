# SPDX-License-Identifier: Apache-2.0
"""The options of ``shardmw-bench ratelimit``. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import click

from shardmw.bench import parameters
from shardmw.bench.load.definition import REFUSAL_POLICIES, RETRY_AFTER
from shardmw.bench.options import (
    CLIENTS,
    COUNTS,
    DURATION,
    POSITIVE,
    PROCESSES,
    RATE,
    RATES,
    SETTING,
    SIZE,
)
from shardmw.bench.parameters import option


@dataclass(frozen=True)
class Parameters(parameters.Parameters):
    """The options of all experiments.

    Rates are writes a second of a backing container.
    """

    clients: int = option(
        128, CLIENTS, 'Clients that write at once.', '-t', '--clients'
    )
    processes: int = option(
        2, PROCESSES, 'Processes that these are spread over.'
    )
    proxies: int = option(2, PROCESSES, 'Proxies of each cluster.')
    seconds: float = option(
        15.0, DURATION, 'Of each load, and each phase of outage.'
    )
    size: int = option(1, SIZE, 'Of the objects.', '-b', '--size')
    max_sleep_seconds: float = option(
        1.0, DURATION, 'A write that waits longer is refused.'
    )
    buffer_seconds: float = option(
        5.0, DURATION, 'rate_buffer_seconds of the filters.'
    )
    backoff_seconds: float = option(
        1.0, DURATION, 'Pause of a client, if it chooses itself.'
    )
    rates: tuple[float, ...] = option(
        (5.0, 20.0, 100.0),
        RATES,
        'rates: limits, in writes/s of a backing container.',
    )
    shards: tuple[int, ...] = option(
        (1, 8, 32), COUNTS, 'rates: shard counts.'
    )
    stock_rates: tuple[float, ...] = option(
        (20.0,), RATES, "rates: limits of Swift's own filter."
    )
    seed_rate: float = option(100.0, RATE, 'seed: the limit.')
    seed_shards: int = option(32, POSITIVE, 'seed: the shard count.')
    rounds: int = option(3, POSITIVE, 'seed: how often.')
    middle_rate: float = option(20.0, RATE, 'outage, operations: the limit.')
    middle_shards: int = option(
        8, POSITIVE, 'outage, operations, latency: shards.'
    )
    pairs: int = option(20, POSITIVE, 'latency: how often.')
    requests: int = option(
        50, POSITIVE, 'latency: writes of one client, each time.'
    )
    on_refusal: str = option(
        RETRY_AFTER,
        click.Choice(REFUSAL_POLICIES),
        'What a client does whose write was refused: wait as long as the '
        'answer says, wait for a pause of its own, or go on.',
    )
    settings: Mapping[str, str] = option(
        {},
        SETTING,
        'A setting of all clusters, as for shardmw-saio.',
        '--set',
        multiple=True,
    )
