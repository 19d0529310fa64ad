# SPDX-License-Identifier: Apache-2.0
"""Container quotas of sharded containers.

Swift's container-quotas reads a container's info straight from the proxy and
sees the root's figures. The same middleware is asked here once more, with the
sums of root and shards in that info's place, so that the answer is its own.
"""

from swift.common.middleware.container_quotas import ContainerQuotaMiddleware
from swift.common.swob import HTTPOk, Request, Response, str_to_wsgi

from shardmw.backend import (
    INFOCACHE_ENV,
    VERSIONS_NAME,
    Backend,
    LogicalContainer,
    is_uploaded_version,
    uploaded_bytes,
    with_info,
)
from shardmw.placement import versions_container
from shardmw.stats import SummedStats

QUOTA_NAMES = ('quota-bytes', 'quota-count')

#: In a request's info cache: a version was admitted, and so is its link.
ADMITTED_KEY = 'shardmw/admitted{path}'


class Quotas:
    """Holds uploads into sharded containers against their quotas.

    :param stats: how much containers hold
    """

    def __init__(self, backend: Backend, stats: SummedStats) -> None:
        self.backend = backend
        self.stats = stats
        self._quotas = ContainerQuotaMiddleware(HTTPOk())

    def hold_for(self, target: LogicalContainer) -> bool:
        """Whether a container has a quota."""
        return any(name in target.info['meta'] for name in QUOTA_NAMES)

    def refusal(
        self, req: Request, target: LogicalContainer
    ) -> Response | None:
        """The 413 for an upload that would exceed a quota, or None.

        :param req: a PUT of an object of the container
        """
        if not self.hold_for(target):
            return None
        infocache = req.environ.get(INFOCACHE_ENV, {})
        if infocache.pop(ADMITTED_KEY.format(path=target.path), False):
            return None
        return self._refusal(req, target)

    def refusal_of_version(
        self, req: Request, target: LogicalContainer
    ) -> Response | None:
        """The same for the PUT of a version of an object of the container.

        Swift looks once at what a client uploads, before anything is done:
        a copy of the object from before versioning is not refused, but has
        the sums read, and the link to an admitted version is not looked at.
        """
        refusal = self._refusal(req, target)
        if not is_uploaded_version(req):
            return None
        if refusal is None:
            infocache = req.environ.setdefault(INFOCACHE_ENV, {})
            infocache[ADMITTED_KEY.format(path=target.path)] = True
        return refusal

    def refusal_of_stored(
        self, req: Request, target: LogicalContainer
    ) -> Response | None:
        """The same for a version whose size shows only when it is stored.

        Object versioning does not say how long what it reads is. What a
        client sends without a length is not held against a quota.
        """
        if not is_uploaded_version(req) or 'transfer-encoding' in req.headers:
            return None
        return self._refusal(req, target, uploaded_bytes(req))

    def _refusal(
        self,
        req: Request,
        target: LogicalContainer,
        size: int | None = None,
    ) -> Response | None:
        """The 413 for an upload, or None.

        :param size: of the upload in bytes, None for what its request says
        """
        if not self.hold_for(target):
            return None
        sums = self.stats.of(req.environ, target)
        summed_info = {
            **target.info,
            'object_count': sums.object_count,
            'bytes': sums.bytes_used + self._bytes_of_versions(req, target),
            'sysmeta': {},
        }
        env = with_info(
            req.environ, target.account, target.container, summed_info
        )
        env['PATH_INFO'] = f'{target.path}/x'
        if size is not None:
            env['CONTENT_LENGTH'] = str(size)
        resp = Request(env).get_response(self._quotas)
        return None if resp.is_success else resp

    def _bytes_of_versions(
        self, req: Request, target: LogicalContainer
    ) -> int:
        """What the shards of the versions take up.

        Swift counts versions, too, and has added those in the root.
        """
        if VERSIONS_NAME not in target.info['sysmeta']:
            return 0
        hidden = str_to_wsgi(versions_container(target.container))
        path = f'/{target.version}/{str_to_wsgi(target.account)}/{hidden}'
        versions = self.backend.container_at(req, path)
        if versions is None:
            return 0
        sums = self.stats.of(req.environ, versions)
        return sums.bytes_used - versions.info['bytes']
