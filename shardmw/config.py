# SPDX-License-Identifier: Apache-2.0
"""The filter's options, parsed and checked once, at start-up."""

import fnmatch
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from swift.common.middleware.ratelimit import (
    get_maxrate,
    interpret_conf_limits,
)
from swift.common.utils import config_auto_int_value
from swift.common.wsgi import CPU_COUNT, ConfigFileError

from shardmw.placement import SHARD_COUNT_LIMIT

RATELIMIT_PREFIX = 'container_ratelimit_'
#: For how long Swift keeps what it knows of a container, by default.
INFO_SECONDS = 60

#: Requests a second: one in three hours. Less would be none.
LEAST_RATE = 0.0001
LISTING_RATELIMIT_PREFIX = 'container_listing_ratelimit_'


class ConfigError(ConfigFileError):
    """An option that makes no sense; Swift prints it and does not start."""


@dataclass(frozen=True, slots=True)
class ShardRule:
    """The shard count of new containers whose path matches a glob.

    :param pattern: a glob over ``account/container``
    :param shards: the number of shards, 0 for a plain container
    """

    pattern: str
    shards: int


@dataclass(frozen=True, slots=True)
class SizedRates:
    """Rates by container size, as the stock ratelimit filter has them.

    :param steps: sizes in objects and rates in requests a second, as
                  ``interpret_conf_limits`` gives them
    :param by_size: the same for ``/info``, a list of ``[size, rate]``
    """

    steps: tuple = ()
    by_size: tuple = ()

    @property
    def least(self) -> int | None:
        """The size from which on there is a limit, None if there is none."""
        return self.steps[0][0] if self.steps else None

    def rate_of(self, object_count: int) -> float | None:
        """Requests a second for a container of so many objects.

        Unlike the stock filter, which never limits a container of size 0.
        """
        if object_count > 0:
            return get_maxrate(self.steps, object_count)
        return self.steps[0][1] if self.least == 0 else None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How fast a container may be written to and listed.

    :param writes: writes a second
    :param listings: listings a second
    :param max_sleep_time_seconds: who had to wait longer is refused, with 498
    :param rate_buffer_seconds: for how long unused writes may be made up for
    :param log_sleep_time_seconds: waits longer than this are logged; 0: none
    :param workers: of all proxies together
    :param size_seconds: how old the known size of a container may be
    """

    writes: SizedRates
    listings: SizedRates
    max_sleep_time_seconds: float
    rate_buffer_seconds: int
    log_sleep_time_seconds: float
    workers: int
    size_seconds: float

    @property
    def are_set(self) -> bool:
        """Whether there are any."""
        return bool(self.writes.steps or self.listings.steps)


@dataclass(frozen=True, slots=True)
class Options:
    """All options of the filter.

    :param default_shards: shards of a new container when neither the client
                           nor a rule says; 0 makes it plain
    :param shard_rules: looked through in order, the first match counts
    :param max_shards: the most shards that a client may ask for
    :param fanout_concurrency: reads of shards at once on behalf of one request
    :param stats_cache_seconds: how old the sums may be that quotas and rate
                                limits are held against
    :param head_cache_seconds: how old the sums may be that HEADs of containers
                               show to which the proxies wrote nothing since
    """

    default_shards: int
    shard_rules: tuple[ShardRule, ...]
    max_shards: int
    fanout_concurrency: int
    stats_cache_seconds: int
    head_cache_seconds: int
    rate_limits: RateLimits

    def shards_for(self, account: str, container: str) -> int:
        """The shard count of a new container, 0 for a plain one."""
        rule = self._rule_for(account, container)
        return self.default_shards if rule is None else rule.shards

    def has_rule(self, account: str, container: str) -> bool:
        """Whether one of the shard rules is for a container."""
        return self._rule_for(account, container) is not None

    def _rule_for(self, account: str, container: str) -> ShardRule | None:
        path = f'{account}/{container}'
        for rule in self.shard_rules:
            if fnmatch.fnmatchcase(path, rule.pattern):
                return rule
        return None


def parse_options(conf: Mapping[str, str]) -> Options:
    """Read the options of a ``[filter:shardmw]`` section.

    :raises ConfigError: with a message that names the option, its value and
                         what would be right
    """
    max_shards = _integer(conf, 'max_shards', 1024, 1, SHARD_COUNT_LIMIT)
    stats_cache_seconds = _integer(conf, 'stats_cache_seconds', 60, 0, 86400)
    return Options(
        default_shards=_integer(conf, 'default_shards', 0, 0, max_shards),
        shard_rules=_shard_rules(conf.get('shard_rules', ''), max_shards),
        max_shards=max_shards,
        fanout_concurrency=_integer(conf, 'fanout_concurrency', 4, 1, 1024),
        stats_cache_seconds=stats_cache_seconds,
        head_cache_seconds=_integer(conf, 'head_cache_seconds', 5, 0, 60),
        rate_limits=_rate_limits(conf, stats_cache_seconds),
    )


def _number(
    conf: Mapping[str, str],
    name: str,
    default: float,
    lowest: float,
    highest: float,
    convert: Callable,
    kind: str,
) -> float:
    text = conf.get(name, default)
    try:
        value = convert(text)
    except ValueError:
        value = None
    if value is None or not lowest <= value <= highest:
        raise ConfigError(
            f'shardmw: {name} = {text}: must be {kind} from {lowest} to '
            f'{highest}'
        )
    return value


def _integer(
    conf: Mapping[str, str], name: str, default: int, lowest: int, highest: int
) -> int:
    return _number(conf, name, default, lowest, highest, int, 'a whole number')


def _seconds(conf: Mapping[str, str], name: str, default: float) -> float:
    return _number(conf, name, default, 0, 86400, float, 'seconds')


def _shard_rules(text: str, max_shards: int) -> tuple[ShardRule, ...]:
    return tuple(
        _shard_rule(rule, max_shards)
        for rule in (part.strip() for part in text.split(','))
        if rule
    )


def _shard_rule(text: str, max_shards: int) -> ShardRule:
    pattern, equals, count = text.rpartition('=')
    pattern, count = pattern.strip(), count.strip()
    is_count = count.isascii() and count.isdecimal()
    if not (equals and '/' in pattern and is_count):
        raise ConfigError(
            f'shardmw: shard_rules: {text!r}: must be '
            'account/container = shards, globs allowed'
        )
    if int(count) > max_shards:
        raise ConfigError(
            f'shardmw: shard_rules: {text!r}: must be at most max_shards = '
            f'{max_shards}'
        )
    return ShardRule(pattern, int(count))


def _rate_limits(
    conf: Mapping[str, str], stats_cache_seconds: int
) -> RateLimits:
    proxies = _integer(conf, 'ratelimit_proxies', 1, 1, 100_000)
    return RateLimits(
        writes=_sized_rates(conf, RATELIMIT_PREFIX),
        listings=_sized_rates(conf, LISTING_RATELIMIT_PREFIX),
        max_sleep_time_seconds=_seconds(conf, 'max_sleep_time_seconds', 60),
        rate_buffer_seconds=_integer(conf, 'rate_buffer_seconds', 5, 0, 86400),
        log_sleep_time_seconds=_seconds(conf, 'log_sleep_time_seconds', 0),
        workers=proxies * _workers_of_proxy(conf),
        size_seconds=max(INFO_SECONDS, stats_cache_seconds),
    )


def _sized_rates(conf: Mapping[str, str], prefix: str) -> SizedRates:
    try:
        steps, by_size = interpret_conf_limits(conf, prefix, info=1)
    except (ValueError, ZeroDivisionError) as err:
        raise ConfigError(
            f'shardmw: {prefix}SIZE = RATE: both must be numbers, requests '
            f'a second by objects in the container, each SIZE once: {err}'
        ) from err
    for size, rate in by_size:
        if not (size >= 0 and LEAST_RATE <= rate < math.inf):
            raise ConfigError(
                f'shardmw: {prefix}{size} = {rate}: must be {LEAST_RATE} '
                'requests a second or more, for a size of 0 or more'
            )
    return SizedRates(tuple(steps), tuple(by_size))


def _workers_of_proxy(conf: Mapping[str, str]) -> int:
    """How many processes a proxy server has, by its ``[DEFAULT]`` section."""
    try:
        workers = config_auto_int_value(conf.get('workers'), CPU_COUNT)
    except ValueError:
        workers = 1  # Swift complains of it itself
    return max(1, workers)
