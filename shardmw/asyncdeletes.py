# SPDX-License-Identifier: Apache-2.0
"""Asynchronous deletes of large objects' segments.

``DELETE ?multipart-manifest=delete&async=on`` (and S3's DELETE of a multi-part
object) has the object expirer delete the segments, by jobs that name their
paths. The expirer has no filter in its pipeline, so the jobs are made to name
the places where the segments lie.
"""

import json
from collections.abc import Callable, Iterator

from swift.common.swob import HTTPException, Request, str_to_wsgi
from swift.obj.expirer import ASYNC_DELETE_TYPE, parse_task_obj

from shardmw.backend import (
    Backend,
    BackendError,
    LogicalContainer,
    unavailable,
)
from shardmw.layout import LayoutError
from shardmw.placement import (
    backing_container,
    backing_object,
    lies_in_root,
)

PRIVATE_METHOD = 'UPDATE'


class AsyncDeletes:
    """Handles what enqueues jobs for the expirer."""

    def __init__(self, app: Callable, backend: Backend, logger) -> None:
        self.app = app
        self.backend = backend
        self.logger = logger

    def __call__(self, req: Request) -> Callable:
        """Answer a request.

        :param req: an UPDATE of a container, which only filters can send
        :returns: the WSGI application that answers it
        """
        body = req.body
        try:
            jobs = json.loads(body)
            req.body = json.dumps(list(self._placed(req, jobs))).encode()
        except (ValueError, TypeError, KeyError, HTTPException):
            req.body = body  # no jobs; Swift says what is wrong with it
        except (BackendError, LayoutError) as err:
            return unavailable(req, self.logger, err)
        return self.app

    def _placed(self, req: Request, jobs: list[dict]) -> Iterator[dict]:
        """The jobs, each for every place where its object may lie."""
        targets: dict[tuple[str, str], LogicalContainer | None] = {}
        for job in jobs:
            yield job
            if job['content_type'] != ASYNC_DELETE_TYPE:
                continue
            _time, account, container, name = parse_task_obj(job['name'])
            if (account, container) not in targets:
                path = str_to_wsgi(f'/v1/{account}/{container}')
                targets[account, container] = self.backend.container_at(
                    req, path
                )
            target = targets[account, container]
            if target is None or lies_in_root(container, name):
                continue
            for shard in target.shards_of(name):
                place = (
                    account,
                    backing_container(container, shard),
                    backing_object(container, name),
                )
                # The time as it stands there: rounded, it would be before
                # that of a segment just uploaded.
                timestamp = job['name'].partition('-')[0]
                yield dict(job, name=f'{timestamp}-{"/".join(place)}')
