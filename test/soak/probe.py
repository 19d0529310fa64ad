# SPDX-License-Identifier: Apache-2.0
"""A filter that reports how many green threads its proxy has."""

import gc
from collections.abc import Callable

from greenlet import greenlet

PATH = '/soak-probe'


def filter_factory(_global_conf: dict, **_local_conf: str) -> Callable:
    """Return a factory of the filter, for PasteDeploy."""

    def factory(app: Callable) -> Callable:
        def answer(env: dict, start_response: Callable):
            if env['PATH_INFO'] != PATH:
                return app(env, start_response)
            body = str(_count()).encode()
            start_response('200 OK', [('Content-Length', str(len(body)))])
            return [body]

        return answer

    return factory


def _count() -> int:
    """Return the number of green threads that have not ended."""
    objects = gc.get_objects()
    return sum(isinstance(each, greenlet) and bool(each) for each in objects)
