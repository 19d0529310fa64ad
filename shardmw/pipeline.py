# SPDX-License-Identifier: Apache-2.0
"""The check of the proxy's pipeline at start-up.

The filter works only right of all that speaks of logical containers, and left
of what derives keys from backing paths.
"""

from collections.abc import Mapping
from typing import NamedTuple

from swift.common.wsgi import PipelineWrapper, loadcontext, loadwsgi

from shardmw.config import (
    LISTING_RATELIMIT_PREFIX,
    RATELIMIT_PREFIX,
    ConfigError,
    Options,
    SizedRates,
)

#: Filters of Swift that must see the logical container, by entry point.
LEFT = (
    'account_quotas',
    'bulk',
    'catch_errors',
    'cname_lookup',
    'container_quotas',
    'container_sync',
    'copy',
    'crossdomain',
    'dlo',
    'domain_remap',
    'etag_quoter',
    'formpost',
    'gatekeeper',
    'keystoneauth',
    'listing_formats',
    'memcache',
    'name_check',
    'ratelimit',
    'read_only',
    's3api',
    's3token',
    'slo',
    'staticweb',
    'symlink',
    'tempauth',
    'tempurl',
    'versioned_writes',
)

#: Filters that Swift adds to a pipeline that lacks them, right of the first
#: proxy_logging.
ADDED_BY_SWIFT = ('copy', 'dlo', 'listing_formats', 'versioned_writes')

#: shardmw's own, that hands listings around filters on its right.
LISTINGS = 'shardmw_listings'

#: Where the filters come from that may stand between the two: it is known that
#: they neither count what they pass on, nor choose among a listing's rows.
KNOWN_PACKAGES = ('swift', 'keystonemiddleware')

#: Filters of Swift that must see the backing container.
RIGHT = ('encryption', 'keymaster', 'kmip_keymaster', 'kms_keymaster')


class Filter(NamedTuple):
    """One filter of a pipeline.

    :param name: its name in the pipeline
    :param kind: its entry point, such as ``slo``
    :param conf: its options
    :param package: of whose code it is
    """

    name: str
    kind: str
    conf: Mapping[str, str]
    package: str = 'swift'


def check_pipeline(conf: Mapping[str, str], options: Options) -> None:
    """Check the pipeline that a filter's configuration came from.

    :param conf: the filter's configuration; without a file there is nothing
                 to check
    :raises ConfigError: with a message that says what to move
    """
    path = conf.get('__file__')
    if path is None:
        return
    context = loadcontext(loadwsgi.APP, path)
    if context.object_type.name != 'pipeline':
        return
    filters = [
        Filter(
            getattr(filter_context, 'name', filter_context.entry_point_name),
            filter_context.entry_point_name,
            filter_context.local_conf,
            filter_context.object.__module__.partition('.')[0],
        )
        for filter_context in PipelineWrapper(context).context.filter_contexts
    ]
    check_order(filters)
    check_rate_limits(filters, options)


def check_order(filters: list[Filter]) -> None:
    """Check that every filter stands on its side of shardmw.

    :raises ConfigError: for the first that does not
    """
    kinds = [each.kind for each in filters]
    if kinds.count('shardmw') != 1:
        raise ConfigError('shardmw: the pipeline must name it exactly once')
    place = kinds.index('shardmw')
    if 'proxy_logging' in kinds and kinds.index('proxy_logging') > place:
        for kind in ADDED_BY_SWIFT:
            if kind not in kinds:
                raise ConfigError(
                    f'shardmw: name {kind} in the pipeline, left of shardmw: '
                    'Swift would add it on the right'
                )
    if LISTINGS in kinds:
        _check_listings(filters, kinds.index(LISTINGS), place)
    for i, each in enumerate(filters):
        if each.kind in LEFT and i > place:
            raise ConfigError(_misplaced(each.name, 'left'))
        if each.kind in RIGHT and i < place:
            raise ConfigError(_misplaced(each.name, 'right'))


def _check_listings(filters: list[Filter], listings: int, place: int) -> None:
    """Check whom it passes by.

    Others' filters may hide rows, or count bytes. They would see none.
    """
    name = filters[listings].name
    if listings > place:
        raise ConfigError(_misplaced(name, 'left'))
    for each in filters[listings + 1 : place]:
        if each.package not in KNOWN_PACKAGES:
            raise ConfigError(
                f'shardmw: wrong pipeline order: move {name} to the right of '
                f'{each.name}, which would not see listings'
            )


def check_rate_limits(filters: list[Filter], options: Options) -> None:
    """Check that containers' rates are not limited twice.

    :raises ConfigError: if stock ratelimit limits them, too
    """
    limits = options.rate_limits
    _check_not_in_stock(filters, limits.writes, RATELIMIT_PREFIX)
    _check_not_in_stock(filters, limits.listings, LISTING_RATELIMIT_PREFIX)


def _check_not_in_stock(
    filters: list[Filter], rates: SizedRates, prefix: str
) -> None:
    if not rates.steps:
        return
    for each in filters:
        names = [name for name in each.conf if name.startswith(prefix)]
        if each.kind == 'ratelimit' and names:
            raise ConfigError(
                f'shardmw: {names[0]} is set in filter {each.name}, too, '
                'which would hold a sharded container to the rate of one: '
                'remove it there'
            )


def _misplaced(name: str, side: str) -> str:
    return (
        f'shardmw: wrong pipeline order: move {name} to the {side} of shardmw'
    )
