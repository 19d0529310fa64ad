# SPDX-License-Identifier: Apache-2.0
"""Check the pipeline that the filters stand in, at start-up.

shardmw must be the last filter before the proxy app: it works on logical
containers, and so do all filters on its left, encryption included. The
internal clients of Swift's daemons have pipelines of their own, which are
checked in the same way.
"""

import dataclasses
import math
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import NamedTuple

from swift.common.wsgi import loadcontext, loadwsgi

from shardmw.backend.config import (
    LISTING_RATELIMIT_PREFIX,
    RATELIMIT_PREFIX,
    ConfigError,
    Options,
    SizedRates,
    count_workers,
)

SHARDMW = 'shardmw'
LISTINGS = 'shardmw_listings'

#: The filters that may be right of shardmw.
RIGHT = ('proxy_logging',)

#: Filters that a proxy adds to a pipeline that lacks them, right of the first
#: proxy_logging. Internal clients do not add any.
ADDED_BY_SWIFT = ('copy', 'dlo', 'listing_formats', 'versioned_writes')

#: The packages of filters that shardmw-listings may carry listings around:
#: these filters neither count the bytes of a listing nor choose among its
#: rows.
KNOWN_PACKAGES = ('swift', 'keystonemiddleware')

#: Swift's own default of the option in [app:proxy-server].
RECHECK_SECONDS = 3600


class Filter(NamedTuple):
    """A filter of a pipeline.

    :param name: its name in the pipeline
    :param kind: its entry point, such as ``slo``; None if it has none
    :param conf: its options, with those of ``[DEFAULT]``
    :param package: the package that its code is from
    """

    name: str
    kind: str | None
    conf: Mapping[str, str]
    package: str = 'swift'


class Pipeline(NamedTuple):
    """A pipeline as in its file, before Swift adds filters.

    :param filters: its filters, from left to right
    :param app_name: the name of its last element, the proxy app
    :param app_conf: that app's options, with those of ``[DEFAULT]``
    """

    filters: list[Filter]
    app_name: str = 'proxy-server'
    app_conf: Mapping[str, str] = {}

    @property
    def kinds(self) -> list[str | None]:
        """Return the kinds of all filters, from left to right."""
        return [each.kind for each in self.filters]

    @property
    def is_internal_client(self) -> bool:
        """Return True for the pipeline of a daemon.

        A daemon listens on no port, and its internal client refuses the
        gatekeeper.
        """
        return 'gatekeeper' not in self.kinds and (
            'bind_port' not in self.app_conf
        )


class AccountRatelimit(NamedTuple):
    """The rate of an account, as set in Swift's ratelimit filter.

    :param rate: creations and deletions of containers a second; 0: no limit
    :param clock_accuracy: clock ticks a second of the counters in memcached
    :param buffer_seconds: for how long an unused rate can be used later
    """

    rate: float = 0
    clock_accuracy: int = 1000
    buffer_seconds: int = 5


def check_pipeline(conf: Mapping[str, str], options: Options) -> Options:
    """Return `options` with what the pipeline of the filter adds to them.

    :param conf: the filter's configuration. Without a file, or if the file's
                 main app is not a pipeline, `options` are returned unchanged
    :param options: the filter's own options
    :raises ConfigError: with a message that says what to change
    """
    pipeline = read_pipeline(conf)
    if pipeline is None:
        return options
    check_order(pipeline)
    check_app(pipeline)
    check_rate_limits(pipeline.filters, options)
    workers = count_workers(
        {**conf, 'workers': pipeline.app_conf.get('workers')}
    )
    limit = account_ratelimit(pipeline.filters)
    return dataclasses.replace(
        options,
        rate_limits=dataclasses.replace(options.rate_limits, workers=workers),
        account_ratelimit=limit.rate,
        account_ratelimit_clock_accuracy=limit.clock_accuracy,
        account_ratelimit_buffer_seconds=limit.buffer_seconds,
    )


def read_pipeline(conf: Mapping[str, str]) -> Pipeline | None:
    """Return the pipeline that a filter's configuration came from.

    :param conf: the filter's configuration
    :returns: None if there is no file, or its main app is not a pipeline
    """
    path = conf.get('__file__')
    if path is None:
        return None
    context = loadcontext(loadwsgi.APP, path)
    if context.object_type.name != 'pipeline':
        return None
    app = context.app_context
    return Pipeline(
        [_filter(each) for each in context.filter_contexts],
        _name(app),
        {**app.global_conf, **app.local_conf},
    )


def _filter(context: loadwsgi.LoaderContext) -> Filter:
    return Filter(
        _name(context),
        context.entry_point_name or _entry_point(_module(context)),
        {**context.global_conf, **context.local_conf},
        _module(context).partition('.')[0],
    )


def _name(context: loadwsgi.LoaderContext) -> str:
    return getattr(context, 'name', None) or str(context.entry_point_name)


def _module(context: loadwsgi.LoaderContext) -> str:
    return getattr(context.object, '__module__', '')


def _entry_point(module: str) -> str | None:
    """Return the entry point of a filter that its section names by module."""
    for each in entry_points(group='paste.filter_factory'):
        if each.value.partition(':')[0] == module:
            return each.name
    return None


def check_order(pipeline: Pipeline) -> None:
    """Check that shardmw is the last filter, right of a cache filter.

    :raises ConfigError: for the first filter that is out of place
    """
    filters, kinds = pipeline.filters, pipeline.kinds
    count = kinds.count(SHARDMW)
    if count != 1:
        raise ConfigError(
            f'shardmw: it is in the pipeline {count} times: list it exactly '
            'once'
        )
    place = kinds.index(SHARDMW)
    for each in filters[place + 1 :]:
        if each.kind not in RIGHT:
            raise ConfigError(
                f'shardmw: {each.name} is right of '
                f'{filters[place].name}: move {each.name} to the left: only '
                'proxy_logging may be between shardmw and the proxy app'
            )
    if 'memcache' not in kinds:
        raise ConfigError(
            'shardmw: the pipeline has no cache filter (egg:swift#memcache): '
            f'name one left of {filters[place].name}: without it Swift does '
            'not send rows to backing containers. Its servers may be down'
        )
    if not pipeline.is_internal_client:
        _check_added_filters(pipeline, place)


def _check_added_filters(pipeline: Pipeline, place: int) -> None:
    """Check that Swift will not add filters right of shardmw."""
    kinds = pipeline.kinds
    if 'proxy_logging' not in kinds or kinds.index('proxy_logging') < place:
        return
    for kind in ADDED_BY_SWIFT:
        if kind not in kinds:
            raise ConfigError(
                f'shardmw: the pipeline has no {kind}: name it left of '
                f'{pipeline.filters[place].name}, or Swift adds it on the '
                'right'
            )


def check_app(pipeline: Pipeline) -> None:
    """Check that the proxy app sends rows where shardmw tells it to.

    :raises ConfigError: if its options prevent this
    """
    text = pipeline.app_conf.get('recheck_updating_shard_ranges', '')
    if _number(text, RECHECK_SECONDS) > 0:
        return
    raise ConfigError(
        f'shardmw: recheck_updating_shard_ranges = {text} in '
        f'[app:{pipeline.app_name}]: must be above 0, or Swift does not send '
        'rows to backing containers'
    )


def check_rate_limits(filters: list[Filter], options: Options) -> None:
    """Check that shardmw, and no other filter, limits containers' rates.

    :raises ConfigError: if Swift's ratelimit filter does
    """
    limits = options.rate_limits
    for each in filters:
        if each.kind == 'ratelimit':
            _check_unset(each, limits.writes, RATELIMIT_PREFIX)
            _check_unset(each, limits.listings, LISTING_RATELIMIT_PREFIX)


def _check_unset(each: Filter, rates: SizedRates, prefix: str) -> None:
    names = [name for name in each.conf if name.startswith(prefix)]
    if not names:
        return
    if rates.steps:
        raise ConfigError(
            f'shardmw: {names[0]} is set in [filter:{each.name}], too: remove '
            f'{", ".join(names)} there, or two filters limit the same requests'
        )
    lines = ', '.join(f'"{name} = {each.conf[name]}"' for name in names)
    raise ConfigError(
        f'shardmw: {names[0]} is set in [filter:{each.name}] only: move '
        f'{lines} to [filter:shardmw], which limits plain containers, too: '
        f'{each.name} takes a sharded container for an empty one, so that '
        'clients could escape its limits'
    )


def account_ratelimit(filters: list[Filter]) -> AccountRatelimit:
    """Return the rate to which Swift's ratelimit filter limits accounts."""
    for each in filters:
        if each.kind == 'ratelimit':
            return _account_ratelimit(each.conf)
    return AccountRatelimit()


def _account_ratelimit(conf: Mapping[str, str]) -> AccountRatelimit:
    rate = _number(conf.get('account_ratelimit', ''), 0)
    if rate <= 0:
        return AccountRatelimit()
    return AccountRatelimit(
        rate,
        int(_number(conf.get('clock_accuracy', ''), 1000)),
        int(_number(conf.get('rate_buffer_seconds', ''), 5)),
    )


def check_listings(conf: Mapping[str, str]) -> None:
    """Check the pipeline that a filter shardmw-listings stands in.

    :param conf: that filter's configuration
    :raises ConfigError: with a message that says what to change
    """
    pipeline = read_pipeline(conf)
    if pipeline is not None and LISTINGS in pipeline.kinds:
        check_listings_order(pipeline)


def check_listings_order(pipeline: Pipeline) -> None:
    """Check that shardmw-listings can carry listings around other filters.

    :raises ConfigError: for the first filter that prevents it
    """
    filters, kinds = pipeline.filters, pipeline.kinds
    place = kinds.index(LISTINGS)
    name = filters[place].name
    if SHARDMW not in kinds:
        raise ConfigError(
            f'shardmw-listings: the pipeline has no filter shardmw: take '
            f'{name} out, or name shardmw (egg:shardmw#shardmw) as the last '
            'filter'
        )
    if 'encryption' in kinds:
        raise ConfigError(
            'shardmw-listings: the pipeline has encryption, which must '
            f'decrypt listings: take {name} out of the pipeline'
        )
    for kind in (SHARDMW, 'listing_formats'):
        if kind not in kinds[place + 1 :]:
            raise ConfigError(_listings_advice(filters, name, kind))
    for each in filters[place + 1 : kinds.index(SHARDMW)]:
        if each.package not in KNOWN_PACKAGES:
            raise ConfigError(
                f'shardmw-listings: {each.name} is right of {name} and '
                f'would not see listings: move {each.name} to the left of '
                f'{name}, or take {name} out of the pipeline'
            )


def _listings_advice(filters: list[Filter], name: str, kind: str) -> str:
    for each in filters:
        if each.kind == kind:
            return (
                f'shardmw-listings: {name} is right of {each.name}: move '
                f'{name} to the left of {each.name}'
            )
    return (
        f'shardmw-listings: the pipeline has no {kind}: name it right of '
        f'{name}, or Swift adds it on the left'
    )


def _number(text: str, default: float) -> float:
    """Return the number in an option of another filter, or a default.

    Return the default for a text that is not a finite number: the other filter
    refuses it.
    """
    try:
        value = float(text or default)
    except ValueError:
        return default
    return value if math.isfinite(value) else default
