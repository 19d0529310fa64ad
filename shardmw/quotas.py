# SPDX-License-Identifier: Apache-2.0
"""Container quotas of sharded containers.

Swift's container-quotas reads a container's info straight from the proxy and
sees the root's figures. The same middleware is asked here once more, with the
sums of root and shards in that info's place, so that the answer is its own.
"""

from swift.common.middleware.container_quotas import ContainerQuotaMiddleware
from swift.common.swob import HTTPOk, Request, Response

from shardmw.backend import LogicalContainer, with_info
from shardmw.stats import SummedStats

QUOTA_NAMES = ('quota-bytes', 'quota-count')


class Quotas:
    """Holds uploads into sharded containers against their quotas.

    :param stats: how much containers hold
    """

    def __init__(self, stats: SummedStats) -> None:
        self.stats = stats
        self._quotas = ContainerQuotaMiddleware(HTTPOk())

    def refusal(
        self, req: Request, target: LogicalContainer
    ) -> Response | None:
        """The 413 for an upload that would exceed a quota, or None.

        :param req: a PUT of an object of the container, or of a version of it
        """
        if not any(name in target.info['meta'] for name in QUOTA_NAMES):
            return None
        sums = self.stats.of(req.environ, target)
        summed_info = {
            **target.info,
            'object_count': sums.object_count,
            'bytes': sums.bytes_used,
            'sysmeta': {},
        }
        env = with_info(
            req.environ, target.account, target.container, summed_info
        )
        env['PATH_INFO'] = f'{target.path}/x'
        resp = Request(env).get_response(self._quotas)
        return None if resp.is_success else resp
