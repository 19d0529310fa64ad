# SPDX-License-Identifier: Apache-2.0
"""Check at start-up that Swift sends rows to where the filter tells it."""

from swift.common.http import HTTP_OK
from swift.common.swob import Request
from swift.proxy.controllers.obj import BaseObjectController
from swift.proxy.server import Application

from shardmw.core.paths import Place
from shardmw.core.placement import hidden_account
from shardmw.swift.infocache import INFOCACHE_ENV, redirected
from shardmw.swift.proxy_app import headers_to_container_info

# Made up: no container of this name is asked for.
_ACCOUNT, _CONTAINER, _NAME = 'AUTH_shardmw', 'check', 'object'
_BACKING = Place(hidden_account(_ACCOUNT), 'check.0')


class _NoMemcache:
    """Stands for memcached: Swift must find all in the info cache."""


def redirection_problem(app: Application) -> str | None:
    """Return why the row of an object would not be redirected; None if it is.

    Swift's own code for the PUT of an object gets the info cache that the
    filter makes for one. It sends no request if it finds what it looks for.
    """
    info = headers_to_container_info({}, HTTP_OK)
    env = {
        'REQUEST_METHOD': 'PUT',
        'PATH_INFO': f'/v1/{_ACCOUNT}/{_CONTAINER}/{_NAME}',
        'swift.cache': _NoMemcache(),
        INFOCACHE_ENV: redirected({}, _ACCOUNT, _CONTAINER, info, _BACKING),
    }
    controller = BaseObjectController(app, _ACCOUNT, _CONTAINER, _NAME)
    req = Request(env)
    try:
        info = controller.container_info(_ACCOUNT, _CONTAINER, req)
        # From Swift 2.34 on, the state of the root follows.
        _part, _nodes, place, *_ = controller._get_update_target(req, info)
    except Exception as err:
        return f'{type(err).__name__}: {err}'
    if place == str(_BACKING):
        return None
    return f'the row goes to {place or "the root"}, not to the shard'
