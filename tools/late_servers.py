# SPDX-License-Identifier: Apache-2.0
"""Storage servers that answer late, as over a network or from slow disks.

For ``use = call:late_servers:container`` in a server's configuration, with
``latency_seconds`` beside it.
"""

from collections.abc import Callable
from functools import partial

from swift.common.wsgi import loadwsgi

from shardmw.backend.concurrency import sleep


def _server(
    kind: str, global_conf: dict, latency_seconds: str, **conf: str
) -> Callable:
    """Return one of Swift's storage servers, which waits before it works.

    Other requests to the process go on during the wait.
    """
    app = loadwsgi.loadapp(
        f'egg:swift#{kind}', global_conf={**global_conf, **conf}
    )
    seconds = float(latency_seconds)

    def late(env: dict, start_response: Callable):
        sleep(seconds)
        return app(env, start_response)

    return late


account, container, obj = (
    partial(_server, kind) for kind in ('account', 'container', 'object')
)


def settings(seconds: float) -> dict[str, str]:
    """Return the settings of a cluster with such servers."""
    calls = {'account': 'account', 'container': 'container', 'object': 'obj'}
    return {
        setting: value
        for kind, name in calls.items()
        for setting, value in (
            (f'{kind}-server.use', f'call:{__name__}:{name}'),
            (f'{kind}-server.latency_seconds', str(seconds)),
        )
    }
