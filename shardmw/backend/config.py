# SPDX-License-Identifier: Apache-2.0
"""Parse and check the filter's options, once, at start-up."""

import difflib
import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass

from swift.common.middleware.ratelimit import (
    get_maxrate,
    interpret_conf_limits,
)
from swift.common.utils import config_auto_int_value
from swift.common.wsgi import CPU_COUNT, ConfigFileError

from shardmw.core.layout import DEPTH_LIMIT, SHARD_COUNT_LIMIT, Sharding

RATELIMIT_PREFIX = 'container_ratelimit_'
LISTING_RATELIMIT_PREFIX = 'container_listing_ratelimit_'

#: The options of [filter:shardmw]. Options with a container size in their name
#: are recognized by their prefix.
OPTION_NAMES = (
    'account_fanout_concurrency',
    'client_max_shards',
    'default_depth',
    'default_shards',
    'fanout_concurrency',
    'fanout_wait_seconds',
    'head_cache_seconds',
    'idle_connections',
    'listing_kept_megabytes',
    'listing_max_age',
    'log_sleep_time_seconds',
    'max_fanouts',
    'max_shards',
    'max_sleep_time_seconds',
    'metric_containers',
    'rate_buffer_seconds',
    'ratelimit_proxies',
    'shard_rules',
    'stats_cache_seconds',
)
OPTION_PREFIXES = (RATELIMIT_PREFIX, LISTING_RATELIMIT_PREFIX)

#: The key under which Swift adds the section's name to its options.
SECTION_NAME = '__name__'

#: Options that Swift reads from the section of any filter, for its logger.
SWIFT_OPTION_NAMES = (
    'log_address',
    'log_custom_handlers',
    'log_facility',
    'log_headers',
    'log_level',
    'log_max_line_length',
    'log_name',
    'statsd_emit_legacy',
    'statsd_label_mode',
)
SWIFT_OPTION_PREFIXES = ('log_statsd_', 'log_udp_', 'statsd_user_label_')

#: How many shards a process may read at a time for each of ``max_fanouts``.
READS_PER_FANOUT = 4

#: How similar an option must be to a misspelt one to be suggested: 0 to 1.
SIMILARITY = 0.6

#: How long Swift caches container info by default.
INFO_SECONDS = 60

#: The largest ``listing_max_age`` that can be set, in seconds.
MOST_LISTING_AGE = 3600

#: The right side of a rule: the number of shards, then its other settings.
_RULE_VALUES = re.compile(
    r'([0-9]+)(?:\s+depth\s+([0-9]+))?(?:\s+listing_max_age\s+([0-9]+))?'
)

#: The lowest rate, in requests a second: one request in three hours.
LEAST_RATE = 0.0001


class ConfigError(ConfigFileError):
    """A configuration that the filter refuses.

    Swift's proxy prints the message and does not start.
    """


@dataclass(frozen=True, slots=True)
class ShardRule:
    """The sharding of new containers whose path matches a glob.

    :param pattern: a glob over ``account/container``
    :param shards: the number of shards, 0 for a plain container
    :param depth: the depth, None for the default
    :param listing_max_age: how many seconds old the listings of a container,
                            new or not, may be; None for the default
    """

    pattern: str
    shards: int
    depth: int | None = None
    listing_max_age: int | None = None


@dataclass(frozen=True, slots=True)
class SizedRates:
    """Rates by container size, as Swift's ratelimit filter represents them.

    :param steps: sizes in objects and rates in requests a second, as
                  ``interpret_conf_limits`` returns them
    :param by_size: the same for ``/info``, a list of ``[size, rate]``
    """

    steps: tuple = ()
    by_size: tuple = ()

    @property
    def least(self) -> int | None:
        """Return the lowest size that has a limit, None without limits."""
        return self.steps[0][0] if self.steps else None

    def rate_of(self, object_count: int) -> float | None:
        """Return the rate of a container, None if it has no limit.

        Swift's ratelimit filter never limits a container of size 0. This
        function does if there is a limit for size 0.

        :param object_count: the size of the container
        :returns: requests a second
        """
        if object_count > 0:
            return get_maxrate(self.steps, object_count)
        return self.steps[0][1] if self.least == 0 else None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rates at which a container may be written to and listed.

    :param writes: writes a second
    :param listings: listings a second
    :param max_sleep_time_seconds: a request that would have to wait longer is
                                   refused with 498
    :param rate_buffer_seconds: for how long unused slots can be used later, as
                                a burst
    :param log_sleep_time_seconds: waits longer than this are logged; 0: none
    :param workers: the number of worker processes of all proxies together
    :param size_seconds: how old the known size of a container may be
    :param proxies: the number of proxy servers
    """

    writes: SizedRates
    listings: SizedRates
    max_sleep_time_seconds: float
    rate_buffer_seconds: int
    log_sleep_time_seconds: float
    workers: int
    size_seconds: float
    proxies: int = 1

    @property
    def are_set(self) -> bool:
        """Return True if writes or listings have a limit."""
        return bool(self.writes.steps or self.listings.steps)


@dataclass(frozen=True, slots=True)
class Options:
    """All options of the filter.

    :param default_shards: shards of a new container if neither the client nor
                           a rule names a count; 0 makes a plain container
    :param default_depth: depth of a new container if neither the client nor a
                          rule names one
    :param shard_rules: searched in order, the first match counts
    :param max_shards: the most shards of any new container; 0 allows plain
                       containers only
    :param client_max_shards: the most shards that a client's header may ask
                              for, at most ``max_shards``; reseller admins may
                              ask for ``max_shards``
    :param fanout_concurrency: concurrent requests to shards for one client
                               request
    :param max_fanouts: how many requests that read many shards a process
                        serves at once
    :param account_fanout_concurrency: concurrent reads of shards for all
                                       requests to containers of one account
    :param fanout_wait_seconds: a request that has waited this long for its
                                turn is refused with 503
    :param idle_connections: how many connections to each container server stay
                             open after shards were read
    :param stats_cache_seconds: how old the sums may be that are used for rate
                                limits and by listings that read only some
                                shards
    :param head_cache_seconds: how old the sums may be that a HEAD of a
                               container shows, if no proxy has written to the
                               container since
    :param metric_containers: for how many of the busiest containers a process
                              sends metrics of their own
    :param listing_max_age: how many seconds old the listings of a container
                            may be if neither its owner nor a rule says so
    :param listing_kept_megabytes: the most megabytes of listing pages that a
                                   process has put into memcached, or keeps
                                   itself while memcached is unavailable; 0: no
                                   pages are kept
    :param rate_limits: the rates of containers
    :param account_ratelimit: container creations and deletions a second that
                              Swift's ratelimit filter allows an account; 0 for
                              no limit
    :param account_ratelimit_clock_accuracy: clock ticks a second of that
                                             filter's counters in memcached
    :param account_ratelimit_buffer_seconds: for how long that filter lets an
                                             account make up for an unused
                                             rate
    """

    default_shards: int
    shard_rules: tuple[ShardRule, ...]
    max_shards: int
    client_max_shards: int
    fanout_concurrency: int
    max_fanouts: int
    account_fanout_concurrency: int
    fanout_wait_seconds: float
    idle_connections: int
    stats_cache_seconds: int
    head_cache_seconds: int
    metric_containers: int
    listing_kept_megabytes: int
    rate_limits: RateLimits
    account_ratelimit: float = 0
    account_ratelimit_clock_accuracy: int = 1000
    account_ratelimit_buffer_seconds: int = 5
    default_depth: int = 0
    listing_max_age: int = 0

    @property
    def account_max_fanouts(self) -> int:
        """Return how many of max_fanouts one account may have.

        There are not more than the shards that the account may read at a time:
        further requests would only wait and use memory.
        """
        return min(
            self.account_fanout_concurrency, max(1, self.max_fanouts // 4)
        )

    @property
    def max_reads(self) -> int:
        """Return how many shards a process may read at a time for listings.

        One account can use at most half of them.
        """
        return max(
            2 * self.account_fanout_concurrency,
            READS_PER_FANOUT * self.max_fanouts,
        )

    @property
    def agreed(self) -> dict[str, object]:
        """Return the options that must be the same in all proxies, by name.

        They decide what clients get, or say what the proxies share in
        memcached. The other options suit the hardware of a proxy, its logs or
        its metrics, so they may differ.
        """
        limits = self.rate_limits
        return {
            'client_max_shards': self.client_max_shards,
            'default_depth': self.default_depth,
            'default_shards': self.default_shards,
            'head_cache_seconds': self.head_cache_seconds,
            'listing_max_age': self.listing_max_age,
            'max_shards': self.max_shards,
            'max_sleep_time_seconds': limits.max_sleep_time_seconds,
            'rate_buffer_seconds': limits.rate_buffer_seconds,
            'ratelimit_proxies': limits.proxies,
            'shard_rules': [astuple(rule) for rule in self.shard_rules],
            'stats_cache_seconds': self.stats_cache_seconds,
            RATELIMIT_PREFIX: limits.writes.by_size,
            LISTING_RATELIMIT_PREFIX: limits.listings.by_size,
        }

    def sharding_for(self, account: str, container: str) -> Sharding:
        """Return how a new container is sharded."""
        rule = self._rule_for(account, container)
        if rule is None:
            return Sharding(self.default_shards, self.default_depth)
        if rule.depth is None:
            return Sharding(rule.shards, self.default_depth)
        return Sharding(rule.shards, rule.depth)

    def listing_max_age_of(self, account: str, container: str) -> int:
        """Return how many seconds old the listings of a container may be.

        The owner's setting, which has precedence, is not considered here.
        """
        rule = self._rule_for(account, container)
        if rule is None or rule.listing_max_age is None:
            return self.listing_max_age
        return rule.listing_max_age

    def has_rule(self, account: str, container: str) -> bool:
        """Return True if one of the shard rules matches a container."""
        return self._rule_for(account, container) is not None

    def _rule_for(self, account: str, container: str) -> ShardRule | None:
        path = f'{account}/{container}'
        for rule in self.shard_rules:
            if fnmatch.fnmatchcase(path, rule.pattern):
                return rule
        return None


def parse_options(conf: Mapping[str, str]) -> Options:
    """Return the options of a ``[filter:shardmw]`` section.

    :param conf: the section, with what it inherits from ``[DEFAULT]``
    :raises ConfigError: with a message that names the option, its value and
                         the values that are allowed
    """
    max_shards = _shard_count(conf, 'max_shards', SHARD_COUNT_LIMIT)
    client_max_shards = _shard_count(conf, 'client_max_shards', 64)
    default_shards = _shard_count(conf, 'default_shards', 0)
    if default_shards > max_shards:
        raise ConfigError(
            f'shardmw: default_shards = {default_shards}: must be at most '
            f'max_shards = {max_shards}'
        )
    fanout_concurrency = _integer(conf, 'fanout_concurrency', 8, 1, 1024)
    stats_cache_seconds = _integer(conf, 'stats_cache_seconds', 60, 0, 86400)
    return Options(
        default_shards=default_shards,
        default_depth=_integer(conf, 'default_depth', 0, 0, DEPTH_LIMIT),
        shard_rules=_shard_rules(conf.get('shard_rules', ''), max_shards),
        max_shards=max_shards,
        client_max_shards=min(client_max_shards, max_shards),
        fanout_concurrency=fanout_concurrency,
        max_fanouts=_integer(conf, 'max_fanouts', 16, 1, 1024),
        account_fanout_concurrency=_integer(
            conf, 'account_fanout_concurrency', fanout_concurrency, 1, 1024
        ),
        fanout_wait_seconds=_seconds(conf, 'fanout_wait_seconds', 30),
        idle_connections=_integer(conf, 'idle_connections', 4, 0, 1024),
        stats_cache_seconds=stats_cache_seconds,
        head_cache_seconds=_integer(conf, 'head_cache_seconds', 5, 0, 60),
        metric_containers=_integer(conf, 'metric_containers', 20, 0, 1000),
        listing_max_age=_integer(
            conf, 'listing_max_age', 0, 0, MOST_LISTING_AGE
        ),
        listing_kept_megabytes=_integer(
            conf, 'listing_kept_megabytes', 32, 0, 1024
        ),
        rate_limits=_rate_limits(conf, stats_cache_seconds),
    )


def check_option_names(
    local_conf: Mapping[str, str],
    filter_name: str = 'shardmw',
    names: Iterable[str] = OPTION_NAMES,
    prefixes: tuple[str, ...] = OPTION_PREFIXES,
    section: str | None = None,
) -> None:
    """Check that a section has no unknown option.

    :param local_conf: the section without what it inherits from ``[DEFAULT]``
    :param filter_name: the name to use in the message
    :param names: the names of the filter's options
    :param prefixes: the prefixes of options that have a size in their name
    :param section: the name of the section; None for that of the filter
    :raises ConfigError: for the first unknown option, with the nearest name
    """
    known = [*names, *SWIFT_OPTION_NAMES]
    known_prefixes = (*prefixes, *SWIFT_OPTION_PREFIXES)
    if section is None:
        section = f'filter:{local_conf.get(SECTION_NAME) or filter_name}'
    for name in local_conf:
        if name == SECTION_NAME or name in known:
            continue
        if name.startswith(known_prefixes):
            continue
        advice = _advice(name, [*known, *(f'{each}SIZE' for each in prefixes)])
        raise ConfigError(
            f'{filter_name}: unknown option {name} in [{section}]: {advice}'
        )


def _advice(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name.lower(), known, 1, SIMILARITY)
    return f'did you mean {nearest[0]}?' if nearest else 'remove it'


def count_workers(conf: Mapping[str, str]) -> int:
    """Return how many worker processes all proxies have together.

    :param conf: with ``workers`` of one proxy and ``ratelimit_proxies``
    """
    try:
        workers = config_auto_int_value(conf.get('workers'), CPU_COUNT)
    except ValueError:
        workers = 1  # Swift itself refuses the value
    return _count_proxies(conf) * max(1, workers)


def _count_proxies(conf: Mapping[str, str]) -> int:
    return _integer(conf, 'ratelimit_proxies', 1, 1, 100_000)


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


def _shard_count(conf: Mapping[str, str], name: str, default: int) -> int:
    return _integer(conf, name, default, 0, SHARD_COUNT_LIMIT)


def _seconds(conf: Mapping[str, str], name: str, default: float) -> float:
    return _number(conf, name, default, 0, 86400, float, 'seconds')


def _shard_rules(text: str, max_shards: int) -> tuple[ShardRule, ...]:
    return tuple(
        _shard_rule(rule, max_shards)
        for rule in (part.strip() for part in text.split(','))
        if rule
    )


def _shard_rule(text: str, max_shards: int) -> ShardRule:
    pattern, equals, values = text.rpartition('=')
    pattern = pattern.strip()
    match = _RULE_VALUES.fullmatch(values.strip())
    if not (equals and '/' in pattern and match):
        raise ConfigError(
            f'shardmw: shard_rules: {text!r}: must be account/container = '
            'shards [depth k] [listing_max_age seconds], globs allowed'
        )
    count, depth, age = (value and int(value) for value in match.groups())
    for value, most, name in (
        (count, max_shards, f'must be at most max_shards = {max_shards}'),
        (depth, DEPTH_LIMIT, f'depth must be at most {DEPTH_LIMIT}'),
        (
            age,
            MOST_LISTING_AGE,
            f'listing_max_age must be at most {MOST_LISTING_AGE}',
        ),
    ):
        if value is not None and value > most:
            raise ConfigError(f'shardmw: shard_rules: {text!r}: {name}')
    return ShardRule(pattern, count, depth, age)


def _rate_limits(
    conf: Mapping[str, str], stats_cache_seconds: int
) -> RateLimits:
    return RateLimits(
        writes=_sized_rates(conf, RATELIMIT_PREFIX),
        listings=_sized_rates(conf, LISTING_RATELIMIT_PREFIX),
        max_sleep_time_seconds=_seconds(conf, 'max_sleep_time_seconds', 60),
        rate_buffer_seconds=_integer(conf, 'rate_buffer_seconds', 5, 0, 86400),
        log_sleep_time_seconds=_seconds(conf, 'log_sleep_time_seconds', 0),
        workers=count_workers(conf),
        size_seconds=max(INFO_SECONDS, stats_cache_seconds),
        proxies=_count_proxies(conf),
    )


def _sized_rates(conf: Mapping[str, str], prefix: str) -> SizedRates:
    names_by_size: dict[int, str] = {}
    for name in conf:
        if not name.startswith(prefix):
            continue
        size = _check_sized_rate(name, conf[name], prefix)
        other = names_by_size.setdefault(size, name)
        if other != name:
            raise ConfigError(
                f'shardmw: {other} and {name} are of the same size: remove '
                'one of them'
            )
    steps, by_size = interpret_conf_limits(conf, prefix, info=1)
    return SizedRates(tuple(steps), tuple(by_size))


def _check_sized_rate(name: str, text: str, prefix: str) -> int:
    """Return the container size of a rate.

    :raises ConfigError: if the size or the rate is not allowed
    """
    size = name.removeprefix(prefix)
    if not (size.isascii() and size.isdecimal()):
        raise ConfigError(
            f'shardmw: {name} = {text}: {size!r} must be a whole number of '
            f'objects, as in {prefix}1000 = 20'
        )
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not LEAST_RATE <= rate < math.inf:
        raise ConfigError(
            f'shardmw: {name} = {text}: must be {LEAST_RATE} or more requests '
            'a second'
        )
    return int(size)
