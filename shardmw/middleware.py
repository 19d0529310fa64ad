# SPDX-License-Identifier: Apache-2.0
"""shardmw spreads one Swift container over many.

A container's listing is one SQLite database, which takes only so many writes
a second. A *sharded* container keeps its objects in N hidden *backing*
containers, chosen by a hash of each object's name, and looks like one.

What a client sends and gets
----------------------------

``X-Container-Shard-Count: 32`` on the PUT that creates a container shards it.
GET and HEAD of the container show the header again. From then on every
request is as on a plain container: objects, listings, metadata, ACLs,
quotas, large objects, symlinks, versions, S3, static web sites.

====================================================  ======================
shard count not a number from 1 to ``max_shards``     400, nothing created
another count, or any, for a container that exists    409, nothing changed
``X-Container-Sync-To`` for a sharded container       400
====================================================  ======================

``GET container?allow_unordered=true`` lists a sharded container shard after
shard (:mod:`shardmw.unordered`): each page reads one or two of them, or as
many as it takes to fill it, and the last name of a page is the next one's
marker, as usual. Any order will do, so those of ``delimiter``, ``path`` and
``reverse`` are refused with 400. A list of versions (``?versions``) keeps its
order. The figures in the headers are those that quotas go by, and so may be as
old.

What an operator sets
---------------------

The filter stands right of everything that speaks of logical containers and
left of encryption; the proxy does not start otherwise::

    ... copy container-quotas account-quotas slo dlo versioned_writes symlink
    shardmw keymaster encryption proxy-logging proxy-server

    [filter:shardmw]
    use = egg:shardmw#shardmw

A second one, :mod:`shardmw.relay`, makes large listings faster.

The options are in :mod:`shardmw.config`, and with their defaults and units in
``etc/proxy-server.conf-sample``. All proxies must share their memcached, and
all must have the filter: a proxy without it sees an almost empty container.
Do not take it out of the pipeline while there are sharded containers.

Where things lie
----------------

The *root*, the ordinary container of the client's name, holds the metadata,
the ACLs and the layout record. An object ``o`` of container ``C`` lies in
``\\0shardmw\\0C\\0i`` as ``\\0o``, in the reserved namespace of the same
account; ``i`` is :func:`shardmw.placement.shard_of` its name. *Overflow* lies
in the root itself: names of the full 1,024 characters, which can't be
prefixed, and what got there past the filter.

What belongs to a container is sharded like it. Old versions, which object
versioning keeps in ``\\0versions\\0C``, lie in ``\\0shardmw-versions\\0C\\0i``
under the names that it gives them; the parts of S3's uploads into a bucket
lie in ``bucket+segments``, a container as any.

What is different from a plain container
----------------------------------------

- A listing page or a HEAD of a container costs a request to each shard. Of a
  container that is not being written to, HEADs show the same sums for some
  seconds (:mod:`shardmw.heads`).
- An account's container limit (``max_containers_per_account``) counts the
  backing containers, too.
- Container sync of sharded containers is refused.
- While a backing container can't be read, listings and HEADs answer 503:
  there is never a partial listing. The same goes for a layout record that
  can't be read, on every request.

The rooms of this house
-----------------------

``objects``, ``containers``, ``lifecycle``, ``accounts`` and ``asyncdeletes``
handle one kind of request each; ``versions``, ``quotas``, ``stats``,
``heads``, ``listing`` and ``overrides`` serve them; so does ``charges``, by
way of ``ratelimit`` and ``permits``. ``backend`` is the seam to Swift;
``paging``, ``unordered``, ``rows``, ``paths``, ``layout``, ``placement``,
``gcra`` and ``desk`` are pure.
"""

from collections.abc import Callable

from swift.common.constraints import check_utf8, valid_api_version
from swift.common.registry import register_swift_info
from swift.common.swob import Request, wsgi_to_str
from swift.common.utils import config_true_value, get_logger

from shardmw.accounts import AccountRequests
from shardmw.asyncdeletes import PRIVATE_METHOD, AsyncDeletes
from shardmw.backend import Backend
from shardmw.charges import Charges
from shardmw.config import Options, parse_options
from shardmw.containers import ContainerRequests
from shardmw.heads import HeadSums
from shardmw.lifecycle import Lifecycle
from shardmw.objects import WRITTEN_ENV, ObjectRequests
from shardmw.paths import parse_path
from shardmw.pipeline import check_pipeline
from shardmw.placement import is_reserved
from shardmw.ratelimit import RateLimiter
from shardmw.stats import SummedStats

PRIVATE_METHODS_ENV = 'HTTP_X_BACKEND_ALLOW_PRIVATE_METHODS'


class ShardMiddleware:
    """Picks the room that a request goes to."""

    def __init__(self, app: Callable, options: Options, logger) -> None:
        backend = Backend(app, logger, options.fanout_concurrency)
        stats = SummedStats(backend, options.stats_cache_seconds)
        limiter = RateLimiter(backend, options.rate_limits, logger)
        charges = Charges(backend, stats, limiter)
        lifecycle = Lifecycle(app, backend, options, logger)
        self.app = app
        self._head_sums = HeadSums(options.head_cache_seconds)
        self._limiter = limiter
        self._async_deletes = AsyncDeletes(app, backend, logger)
        self._accounts = AccountRequests(app, backend, logger)
        self._containers = ContainerRequests(
            app,
            backend,
            lifecycle,
            stats,
            self._head_sums,
            charges,
            logger,
        )
        self._objects = ObjectRequests(
            app, backend, lifecycle, stats, charges, logger
        )

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        room = self._room(env)
        if room is None:
            return self.app(env, start_response)
        req = Request(env)
        answer = self._limiter.barred(req) or room(req)
        try:
            return answer(env, start_response)
        finally:
            written = env.pop(WRITTEN_ENV, None)
            if written:
                self._head_sums.note_write(env, written)

    def _room(self, env: dict) -> Callable | None:
        """Who handles a request, None if it is Swift alone.

        What Swift refuses for its path is left to it.
        """
        try:
            path = parse_path(env['PATH_INFO'])
        except ValueError:
            return None
        if not _is_utf8(env['PATH_INFO']):
            return None
        if not valid_api_version(path.version) or is_reserved(path.account):
            return None
        if path.name:
            return self._objects
        if path.container and env['REQUEST_METHOD'] == PRIVATE_METHOD:
            # Clients can't send this header: the gatekeeper drops it.
            allowed = env.get(PRIVATE_METHODS_ENV)
            return self._async_deletes if config_true_value(allowed) else None
        return self._containers if path.container else self._accounts


def _is_utf8(path: str) -> bool:
    """Whether Swift takes a path, a WSGI string, for text."""
    return path.isascii() or check_utf8(wsgi_to_str(path), internal=True)


def filter_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Make the filter, for PasteDeploy."""
    conf = {**global_conf, **local_conf}
    options = parse_options(conf)
    check_pipeline(conf, options)
    logger = get_logger(
        conf, log_route='shardmw', statsd_tail_prefix='shardmw'
    )
    limits = options.rate_limits
    register_swift_info(
        'shardmw',
        default_shards=options.default_shards,
        max_shards=options.max_shards,
        max_sleep_time_seconds=limits.max_sleep_time_seconds,
        container_ratelimits=limits.writes.by_size,
        container_listing_ratelimits=limits.listings.by_size,
        rate_buffer_seconds=limits.rate_buffer_seconds,
    )
    return lambda app: ShardMiddleware(app, options, logger)
