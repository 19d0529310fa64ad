# SPDX-License-Identifier: Apache-2.0
"""Storage servers that answer late, as over a network or from slow disks.

For ``use = call:late_servers:obj`` in a server's configuration, with
``latency_seconds`` beside it, or for that of a filter of container servers.
"""

from collections.abc import Callable
from functools import partial

from swift.common.wsgi import loadwsgi

from shardmw.container_server import filter as container_filter
from shardmw.swift.concurrency import sleep


def _server(
    kind: str, global_conf: dict, latency_seconds: str, **conf: str
) -> Callable:
    """Return one of Swift's storage servers, which waits before it works.

    Other requests to the process go on during the wait.
    """
    app = loadwsgi.loadapp(
        f'egg:swift#{kind}', global_conf={**global_conf, **conf}
    )
    return _late(app, float(latency_seconds))


def _late(app: Callable, seconds: float) -> Callable:
    def late(env: dict, start_response: Callable):
        sleep(seconds)
        return app(env, start_response)

    return late


account, obj = (partial(_server, kind) for kind in ('account', 'object'))


def container(
    global_conf: dict, latency_seconds: str, **conf: str
) -> Callable:
    """Return shardmw-container, which waits before it works."""
    reads = container_filter.filter_factory(global_conf, **conf)
    return lambda app: _late(reads(app), float(latency_seconds))


def settings(seconds: float) -> dict[str, str]:
    """Return the settings of a cluster with such servers."""
    calls = {
        'account-server': 'account',
        'shardmw-container': 'container',
        'object-server': 'obj',
    }
    return {
        setting: value
        for section, name in calls.items()
        for setting, value in (
            (f'{section}.use', f'call:{__name__}:{name}'),
            (f'{section}.latency_seconds', str(seconds)),
        )
    }
