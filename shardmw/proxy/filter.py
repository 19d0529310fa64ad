# SPDX-License-Identifier: Apache-2.0
"""shardmw spreads the listing of one Swift container over many.

A container's listing is one SQLite database, which takes a limited number of
writes a second. The rows of a *sharded* container are in N hidden *backing*
containers: a hash of each object's name selects one. The objects are stored
like those of any container.

What a client sends and gets
----------------------------

``X-Container-Shard-Count: 32`` on the PUT that creates a container shards it.
With ``X-Container-Shard-Depth: 1`` in addition, the first component of a name
selects its shard instead of the whole name: a listing of a directory then
reads one shard, and all writes into the directory go to it. GET and HEAD of
the container show both headers. All other requests are the same as for a plain
container: objects, listings, metadata, ACLs, quotas, large objects, symlinks,
versions, S3, static web sites.

====================================================  ======================
a shard count that is not a number from 1 to          400, nothing created
``client_max_shards``
a depth that is not a number from 0 to 16, or any     400, nothing created
depth for a new container that gets no shards
a count or depth other than the container's           409, nothing changed
a shard count or depth with the PUT or POST of an     400
object
====================================================  ======================

``GET container?allow_unordered=true`` lists a sharded container shard after
shard (:mod:`shardmw.core.unordered_page`): each page reads one or two shards,
or as many as it takes to fill it, and the last name of a page is the marker of
the next one, as usual. ``delimiter``, ``path`` and ``reverse`` need an order,
so they are refused with 400. A list of versions (``?versions``) keeps its
order. The figures in the headers may be ``stats_cache_seconds`` old. S3
clients send ``allow-unordered=true`` (:mod:`shardmw.proxy.listings_filter`).
The owner of a container can make this the default of its listings with
``X-Container-Unordered-Listings``
(:mod:`shardmw.proxy.listing.container_order`).

With ``X-Container-Listing-Max-Age: 30``, the listings of the container may be
up to 30 seconds old (:mod:`shardmw.proxy.listing.max_age`). Pages are then
kept and read ahead, and a request for a kept page reads only the root.

``GET /info`` shows, under ``shardmw``, what a client may ask for: the default
and the largest shard count and depth, ``unordered_listings``, the default of
``listing_max_age``, ``head_cache_seconds``, and the rates. For operators it
shows the version, and ``digests`` by which ``shardmw-admin doctor`` compares
the proxies (:mod:`shardmw.backend.digests`).

What an operator sets
---------------------

The filter must be the last one before the proxy app, except for proxy-logging.
Otherwise the proxy does not start::

    ... slo dlo versioned_writes symlink keymaster encryption shardmw
    proxy-logging proxy-server

    [filter:shardmw]
    use = egg:shardmw#shardmw

Swift's daemons that write objects (the expirer, the reconciler) and
container-sync need it in the pipeline of their internal client, too. A second
filter, :mod:`shardmw.proxy.listings_filter`, makes large listings faster,
shows the counts of sharded buckets to S3 clients, and lets them list in any
order.

The options are in :mod:`shardmw.backend.config`, their defaults and units in
``etc/proxy-server.conf-sample``. All proxies must share their memcached, and
all must have the filter before the first sharded container is created.

Container sync
--------------

``X-Container-Sync-To`` and ``X-Container-Sync-Key`` work as on any container.
The backing containers have both, so Swift's daemon reads their rows
(:mod:`shardmw.backend.sync_settings`). It reads the objects of these rows
through its internal client, in which this filter replaces the path in the
hidden account by that of the object. For clients, the hidden account does not
exist.

Where rows are
--------------

The *root* is the Swift container with the name that clients use. It has the
metadata, the ACLs and the layout record (:mod:`shardmw.core.layout`). The row
of an object ``o`` of container ``C`` in account ``A`` is in container
``C.<id>.<i>`` of the hidden account ``.shards_shardmw_A``.
:func:`shardmw.core.placement.shard_of` computes ``i`` from the name, and the
count and depth of the layout. The proxy app tells the object servers where to
send a row: the filter makes it believe that Swift's own sharder has split the
container (:mod:`shardmw.swift.infocache`). Rows in other places wait for
``shardmw-resharder`` (:mod:`shardmw.reshard.late_rows`): the filter moves
none.

The containers of old versions and of the parts of S3 uploads
(``bucket+segments``) are sharded like the container that they belong to.

The rooms
---------

``core`` is pure. ``swift`` has all that is used of Swift's inner modules.
``backend`` sends requests to backing containers, for all processes. ``proxy``
runs in proxies, ``container_server`` and ``object_server`` in those servers,
``reshard`` in the daemon and the commands, ``admin`` in the commands alone.
Imports point from the last to the first of these only.
"""

from collections.abc import Callable, Iterable
from functools import partial

from swift import __version__ as swift_version
from swift.common.constraints import (
    AUTO_CREATE_ACCOUNT_PREFIX,
    check_utf8,
    valid_api_version,
)
from swift.common.middleware.gatekeeper import GatekeeperMiddleware
from swift.common.registry import register_swift_info
from swift.common.swob import HTTPNotFound, Request, wsgi_to_str
from swift.common.utils import get_logger

from shardmw import __version__
from shardmw.backend.config import (
    ConfigError,
    Options,
    check_option_names,
    parse_options,
)
from shardmw.backend.digests import local_digests
from shardmw.backend.metrics import SILENT, Metrics, open_metrics
from shardmw.backend.sync_settings import logical_path
from shardmw.core.layout import DEPTH_LIMIT
from shardmw.core.paths import Path, parse_path
from shardmw.core.placement import (
    HIDDEN_PREFIX,
    INTERNAL_PREFIX,
    is_hidden_account,
    is_reserved,
)
from shardmw.proxy.info_app import InfoApp
from shardmw.proxy.object import WRITES
from shardmw.proxy.parts import assemble
from shardmw.proxy.pipeline import check_pipeline
from shardmw.proxy.ratelimit.accounting import VERSIONED_WRITES_SOURCE
from shardmw.swift.crypto import move_keys
from shardmw.swift.loading import LoadedFilter, send_info_requests_to
from shardmw.swift.memcached import servers_of
from shardmw.swift.proxy_app import pass_timestamps_on
from shardmw.swift.start_check import redirection_problem

#: The section of ``/info`` that the filter fills.
INFO_SECTION = 'shardmw'

#: The methods with which Swift's daemons read objects of backing containers.
READS = ('GET', 'HEAD')

#: In requests of Swift's sharder for the shard ranges of a root.
RECORD_TYPE_ENV = 'HTTP_X_BACKEND_RECORD_TYPE'


class ShardMiddleware(LoadedFilter):
    """Hands each request to the controller of its kind."""

    def __init__(
        self,
        app: Callable,
        options: Options,
        logger,
        metrics: Metrics = SILENT,
    ) -> None:
        pass_timestamps_on()
        self.app = app
        self.options = options
        self._logger = logger
        self._parts = assemble(app, options, logger, metrics)
        self._faces_clients = True
        # Sends info requests of all filters to the app with sums; None if
        # that is done, or if there is no pipeline.
        self._install: Callable[[], None] | None = None

    def pipeline_is_known(self, pipeline: list, info_app: Callable) -> None:
        """Send the info requests of all filters to an app with sums.

        :raises ConfigError: if rows would not go to shards
        """
        problem = redirection_problem(pipeline[-1])
        if problem:
            raise ConfigError(
                f'shardmw: Swift {swift_version} does not send rows to '
                f'backing containers ({problem}): install a release of Swift '
                'that doc/compatibility.md names'
            )
        self._faces_clients = any(
            isinstance(app, GatekeeperMiddleware) for app in pipeline
        )
        if self._faces_clients:
            register_swift_info(
                INFO_SECTION, digests=_digests(self.options, pipeline)
            )
        info_app = InfoApp(
            info_app,
            self._parts.stats,
            self._parts.account_stats,
            self._logger,
        )
        self._install = partial(send_info_requests_to, info_app, pipeline)
        self._install()

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        if self._install:
            # By now, the loader has set the attributes of the apps on the
            # right.
            self._install()
            self._install = None
        if self._is_object_read(env):
            return self.app(env, start_response)
        return self._controlled(env)(env, start_response)

    def _is_object_read(self, env: dict) -> bool:
        """Return True for requests that the filter leaves alone."""
        if env['REQUEST_METHOD'] in WRITES:
            return False
        parts = env['PATH_INFO'].split('/', 4)
        if len(parts) < 5 or not parts[4]:
            return False
        if parts[2].startswith(HIDDEN_PREFIX):
            return False
        # X-Versions-Location reads what an upload is about to replace. This
        # read counts as the upload, before anything is copied.
        return env.get('swift.source') != VERSIONED_WRITES_SOURCE

    def _controlled(self, env: dict) -> Callable:
        """Return the WSGI application that answers a request.

        A path that Swift refuses goes to the app, which refuses it.
        """
        try:
            path = parse_path(env['PATH_INFO'])
        except ValueError:
            return self.app
        if not _is_utf8(env['PATH_INFO']):
            return self.app
        if not valid_api_version(path.version) or is_reserved(path.account):
            return self.app
        req = Request(env)
        if is_hidden_account(path.account):
            if self._faces_clients:
                return HTTPNotFound(request=req)
            return self._hidden(req, path)
        refusal = self._parts.limiter.blacklisted(req, path)
        if refusal:
            return refusal
        if path.name:
            return self._parts.objects(req, path)
        if path.container:
            is_for_ranges = env.get(RECORD_TYPE_ENV, '').lower() == 'shard'
            if is_for_ranges and not self._faces_clients:
                return self.app
            return self._parts.containers(req, path)
        return self._parts.accounts(req, path)

    def _hidden(self, req: Request, path: Path) -> Callable:
        """Return the WSGI application for a hidden account's requests.

        They come from internal clients: Swift's sharder reads the backing
        containers that it has split, and container-sync reads the objects that
        they list.
        """
        if not path.name or req.method not in READS:
            return self.app
        logical = logical_path(self._parts.backend, req.environ, path)
        if logical is None:
            return self.app

        def read(env: dict, start_response: Callable):
            move_keys(env, logical)
            env = dict(env, PATH_INFO=logical.to_wsgi())
            return self.app(env, start_response)

        return read


def _digests(options: Options, pipeline: Iterable[Callable]) -> dict[str, str]:
    """Return what ``/info`` shows of what all proxies must have in common."""
    digests = local_digests()
    shown = {
        'hash_path': digests.hash_path(),
        'options': digests.of_options(options),
    }
    servers = servers_of(pipeline)
    if servers is not None:
        shown['memcache'] = digests.of_memcached(servers)
    return shown


def _is_utf8(path: str) -> bool:
    """Return True if Swift accepts a path, a WSGI string, as UTF-8."""
    return path.isascii() or check_utf8(wsgi_to_str(path), internal=True)


def filter_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Return the filter's constructor, for PasteDeploy."""
    conf = {**global_conf, **local_conf}
    check_option_names(local_conf)
    if AUTO_CREATE_ACCOUNT_PREFIX != INTERNAL_PREFIX:
        raise ConfigError(
            'shardmw: auto_create_account_prefix = '
            f'{AUTO_CREATE_ACCOUNT_PREFIX} in swift.conf: must be '
            f'{INTERNAL_PREFIX}, as the names of hidden accounts begin'
        )
    options = check_pipeline(conf, parse_options(conf))
    logger = get_logger(conf, log_route='shardmw')
    metrics = open_metrics(conf, logger, options.metric_containers)
    limits = options.rate_limits
    register_swift_info(
        INFO_SECTION,
        version=__version__,
        default_shards=options.default_shards,
        default_depth=options.default_depth,
        max_depth=DEPTH_LIMIT,
        max_shards=options.max_shards,
        client_max_shards=options.client_max_shards,
        unordered_listings=True,
        listing_max_age=options.listing_max_age,
        head_cache_seconds=options.head_cache_seconds,
        max_sleep_time_seconds=limits.max_sleep_time_seconds,
        container_ratelimits=limits.writes.by_size,
        container_listing_ratelimits=limits.listings.by_size,
        rate_buffer_seconds=limits.rate_buffer_seconds,
    )
    return lambda app: ShardMiddleware(app, options, logger, metrics)
