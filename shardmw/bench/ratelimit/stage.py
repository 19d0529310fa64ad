# SPDX-License-Identifier: Apache-2.0
"""Clusters with limits, and writes to them."""

import contextlib
from collections.abc import Iterator

from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.load.definition import Load
from shardmw.bench.load.sources import Uploads
from shardmw.bench.load.stage import Stage
from shardmw.bench.names import one_name_each
from shardmw.bench.ratelimit.limits import base_settings, limit_settings
from shardmw.bench.site import Site
from shardmw.saio import ClusterOptions

FRESH = 'new'
FILLED = 'with an object'

_FIRST_OBJECT = 'first'


@contextlib.contextmanager
def limited_site(
    stage: Stage,
    limiter: str | None = None,
    rate: float | None = None,
    least_size: int = 0,
) -> Iterator[Site]:
    """Start a cluster with a limit for a ``with`` block.

    See :func:`shardmw.bench.ratelimit.limits.limit_settings`.
    """
    parameters = stage.parameters
    options = ClusterOptions(
        proxies=parameters.proxies, settings=base_settings(parameters)
    ).with_settings(limit_settings(limiter, rate, least_size))
    with stage.site(options) as site:
        yield site


def kind_with(shards: int | None) -> Kind:
    """Return the kind of container with so many shards; None is plain."""
    return PLAIN if shards is None else sharded(shards)


def container_text(shards: int | None, state: str = FRESH) -> str:
    """Return a container for a cell of a table."""
    label = kind_with(shards).label
    return label if state == FRESH else f'{label}, {state}'


def filled(site: Site, shards: int | None) -> str:
    """Return a new container with an object in each shard.

    Swift's filter does not limit a container that seems to be empty.
    """
    container = site.make(kind_with(shards))
    for name in one_name_each(shards or 1, _FIRST_OBJECT):
        site.account.store(container, name)
    site.account.refresh(container)
    return container


def write_load(
    stage: Stage, site: Site, container: str, **changes: object
) -> Load:
    """Return a load of all clients that write to a container.

    :param changes: of the fields of the load
    """
    parameters = stage.parameters
    fields = {
        'clients': parameters.clients,
        'seconds': parameters.seconds,
        'on_refusal': parameters.on_refusal,
        'backoff_seconds': parameters.backoff_seconds,
        'drain_seconds': parameters.max_sleep_seconds + 10,
        **changes,
    }
    source = Uploads(site.container_path(container), parameters.size)
    return site.load(source, **fields)
