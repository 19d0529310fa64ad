# SPDX-License-Identifier: Apache-2.0
"""shardmw: one logical Swift container over many."""

from collections.abc import Callable

from swift.common.constraints import check_utf8, valid_api_version
from swift.common.registry import register_swift_info
from swift.common.swob import Request, wsgi_to_str
from swift.common.utils import get_logger, split_path

from shardmw.accounts import AccountRequests
from shardmw.backend import Backend
from shardmw.config import Options, parse_options
from shardmw.containers import ContainerRequests
from shardmw.objects import ObjectRequests
from shardmw.pipeline import check_pipeline
from shardmw.placement import is_reserved


class ShardMiddleware:
    """Picks the room that a request goes to."""

    def __init__(self, app: Callable, options: Options, logger) -> None:
        backend = Backend(app, logger, options.fanout_concurrency)
        self.app = app
        self._accounts = AccountRequests(app, backend, logger)
        self._containers = ContainerRequests(app, backend, options, logger)
        self._objects = ObjectRequests(app, backend, options, logger)

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        room = self._room(env)
        if room is None:
            return self.app(env, start_response)
        return room(Request(env))(env, start_response)

    def _room(self, env: dict) -> Callable | None:
        """Who handles a request, None if it is Swift alone.

        What Swift refuses for its path is left to it.
        """
        path = env['PATH_INFO']
        try:
            version, account, container, name = split_path(path, 2, 4, True)
            is_utf8 = check_utf8(wsgi_to_str(path), internal=True)
        except ValueError:
            return None
        if not is_utf8 or not valid_api_version(version):
            return None
        if is_reserved(account):
            return None
        if name:
            return self._objects
        return self._containers if container else self._accounts


def filter_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Make the filter, for PasteDeploy."""
    conf = {**global_conf, **local_conf}
    options = parse_options(conf)
    check_pipeline(conf, options)
    logger = get_logger(
        conf, log_route='shardmw', statsd_tail_prefix='shardmw'
    )
    register_swift_info(
        'shardmw',
        default_shards=options.default_shards,
        max_shards=options.max_shards,
        max_sleep_time_seconds=options.rate_limits.max_sleep_time_seconds,
        container_ratelimits=options.rate_limits.by_size,
    )
    return lambda app: ShardMiddleware(app, options, logger)
