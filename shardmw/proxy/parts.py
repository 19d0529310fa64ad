# SPDX-License-Identifier: Apache-2.0
"""The parts of the filter, and how they are put together."""

import math
from collections.abc import Callable
from typing import NamedTuple

from shardmw.backend.accounts import AccountStats
from shardmw.backend.config import Options
from shardmw.backend.fanout_turns import Turns
from shardmw.backend.metrics import Metrics
from shardmw.backend.requests import Backend
from shardmw.backend.row_targets import RowTargets
from shardmw.backend.short_store import ShortStore
from shardmw.backend.write_marks import WriteMarks
from shardmw.proxy.account import AccountController
from shardmw.proxy.container import ContainerController, ReadTools
from shardmw.proxy.container_context import Tools
from shardmw.proxy.head_cache import HeadCache
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.lifecycle import Lifecycle
from shardmw.proxy.listing.kept_pages import KeptPages
from shardmw.proxy.object import ObjectController
from shardmw.proxy.ratelimit.account_rate import AccountRate
from shardmw.proxy.ratelimit.accounting import Accounting
from shardmw.proxy.ratelimit.limiter import RateLimiter
from shardmw.proxy.shard_sums import SummedStats

MEGABYTE = 1_000_000


class Parts(NamedTuple):
    """Hold the parts that answer requests, and those that they share.

    :param backend: sends the filter's own requests
    :param limiter: the rate limits of containers
    :param stats: the sums over the shards of containers
    :param account_stats: the sums over the containers of accounts
    :param accounts: answers requests for accounts, like the next two for
                     containers and objects
    """

    backend: Backend
    limiter: RateLimiter
    stats: SummedStats
    account_stats: AccountStats
    accounts: AccountController
    containers: ContainerController
    objects: ObjectController


def assemble(
    app: Callable, options: Options, logger, metrics: Metrics
) -> Parts:
    """Put the parts of a filter together.

    :param app: the rest of the pipeline
    """
    turns = Turns(
        options.max_fanouts,
        options.account_max_fanouts,
        options.fanout_wait_seconds,
    )
    backend = Backend(
        app,
        logger,
        options.fanout_concurrency,
        options.idle_connections,
        turns,
        Turns(options.max_reads, options.account_fanout_concurrency),
        Turns(math.inf, options.account_fanout_concurrency),
        metrics,
    )
    stats = SummedStats(backend, options.stats_cache_seconds)
    account_stats = AccountStats(backend, options.head_cache_seconds)
    limiter = RateLimiter(backend, options.rate_limits, logger)
    accounting = Accounting(backend, stats, limiter)
    layouts = Layouts(backend)
    marks = WriteMarks(options.head_cache_seconds)
    account_rate = AccountRate(
        options.account_ratelimit,
        options.account_ratelimit_clock_accuracy,
        options.account_ratelimit_buffer_seconds,
    )
    lifecycle = Lifecycle(
        Tools(app, backend, layouts, stats, account_rate, options, logger)
    )
    reads = ReadTools(
        app,
        backend,
        layouts,
        stats,
        HeadCache(marks),
        KeptPages(ShortStore(options.listing_kept_megabytes * MEGABYTE)),
        options.listing_max_age_of,
        accounting,
    )
    containers = ContainerController(reads, lifecycle)
    objects = ObjectController(
        app, backend, layouts, RowTargets(backend), marks, accounting
    )
    return Parts(
        backend,
        limiter,
        stats,
        account_stats,
        AccountController(app, backend, account_stats),
        containers,
        objects,
    )
