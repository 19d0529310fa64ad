# SPDX-License-Identifier: Apache-2.0
"""Run a proxy without shardmw next to those of an embedded cluster."""

import configparser
import contextlib
from collections.abc import Callable, Iterator

from shardmw_saio import Cluster

from test.functional.extra_proxy import running_proxy

FILTERS = ('shardmw', 'shardmw-listings')


@contextlib.contextmanager
def running_unfiltered_proxy(cluster: Cluster) -> Iterator[str]:
    """Run a proxy without shardmw; yield its URL.

    All clients of this proxy own all accounts, including hidden accounts,
    which no user of an auth system can access. With Swift's header for
    operators, ``X-Allow-Reserved-Names: true``, they may use reserved names.
    """
    with running_proxy(cluster, 'unfiltered-proxy', _unfiltered) as url:
        yield url


def unfiltered_url(cluster: Cluster) -> Iterator[str]:
    """Run a proxy without shardmw as a fixture; yield its URL."""
    with running_unfiltered_proxy(cluster) as url:
        yield url


def owner_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Return a filter that takes tempauth's place and allows everything."""

    def owner(app: Callable) -> Callable:
        def filtered(env: dict, start_response: Callable):
            env['swift_owner'] = env['reseller_request'] = True
            env['swift.authorize'] = lambda req: None
            return app(env, start_response)

        return filtered

    return owner


def _unfiltered(conf: configparser.RawConfigParser) -> None:
    pipeline = conf['pipeline:main']['pipeline'].split()
    kept = [name for name in pipeline if name not in FILTERS]
    conf['pipeline:main']['pipeline'] = ' '.join(kept)
    conf['filter:gatekeeper']['allow_reserved_names_header'] = 'true'
    factory = f'{owner_factory.__module__}:{owner_factory.__name__}'
    conf['filter:tempauth'] = {'paste.filter_factory': factory}
