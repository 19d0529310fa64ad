# SPDX-License-Identifier: Apache-2.0
"""Container requests: listing, statistics and metadata.

What brings sharded containers into being and ends them is in
:mod:`shardmw.lifecycle`.
"""

import time
from collections.abc import Callable

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPBadRequest, HTTPException, Request
from swift.common.utils import drain_and_close

from shardmw import overrides
from shardmw.backend import (
    SHARD_COUNT_HEADER,
    Answer,
    Backend,
    BackendError,
    LogicalContainer,
    Verbatim,
    authorize,
    info_of,
    may_be_sharded,
    require_success,
    unavailable,
)
from shardmw.charges import Charges
from shardmw.heads import HeadSums, with_shards
from shardmw.layout import LayoutError
from shardmw.lifecycle import Lifecycle
from shardmw.listing import (
    ROOT,
    ListingParams,
    ListingRequest,
    RootAnswer,
)
from shardmw.relay import divert
from shardmw.rows import Rows, to_json
from shardmw.stats import ContainerStats, SummedStats, total

MILLISECONDS = 1000


class ContainerRequests:
    """Handles requests to containers."""

    def __init__(
        self,
        app: Callable,
        backend: Backend,
        lifecycle: Lifecycle,
        stats: SummedStats,
        head_sums: HeadSums,
        charges: Charges,
        logger,
    ) -> None:
        self.app = app
        self.backend = backend
        self.stats = stats
        self.head_sums = head_sums
        self.charges = charges
        self.logger = logger
        self._handlers = {
            'GET': self._get,
            'HEAD': self._head,
            'PUT': lifecycle.put,
            'POST': lifecycle.post,
            'DELETE': lifecycle.delete,
        }

    def __call__(self, req: Request) -> Callable:
        """Answer a request.

        :param req: a request to a container
        :returns: the WSGI application that answers it
        """
        _version, _account, container = req.split_path(3, 3)
        handler = self._handlers.get(req.method)
        if handler is None or not may_be_sharded(req, container):
            return self.app
        try:
            return handler(req)
        except (BackendError, LayoutError) as err:
            return unavailable(req, self.logger, err)

    def _get(self, req: Request) -> Callable:
        info = self.backend.container_info(req.environ)
        target = self._readable(req, info)
        refusal = self.charges.listing(req, info, target)
        if refusal:
            return refusal
        if target is None:
            return self._plain(req)
        return self._list(req, target)

    def _head(self, req: Request) -> Callable:
        """The root's answer, which says whether there are shards to sum up."""
        root = self.backend.pass_on(req)
        target = self._target_of(req, root)
        overrides.show(req, root.headers)
        if target is None:
            return Verbatim(root)
        self.logger.increment('container.HEAD')
        sums = self.head_sums.kept(req.environ, target)
        if sums is None:
            sums = self._sum_shards(req, target)
        return _Summed(target, root, with_shards(root, sums), None)

    def _readable(self, req: Request, info: dict) -> LogicalContainer | None:
        """The sharded container that a client may read, else None.

        A stranger's request must not cost a fan-out: it goes to the root,
        whose denial is the answer.

        :param info: Swift's info of the container
        """
        target = self.backend.described_by(req, info)
        if target and authorize(req, target.info['read_acl']):
            return None
        return target

    def _plain(self, req: Request) -> Callable:
        """The root's own answer, if it confirms that there are no shards.

        What is cached of a container may be older than its record.
        """
        status, headers, body = req.call_application(self.app)
        root = Answer(None, status, HeaderKeyDict(headers), body)
        try:
            target = self._target_of(req, root)
        except (BackendError, LayoutError):
            drain_and_close(body)
            raise
        if target is None:
            overrides.show(req, root.headers)
            return Verbatim(root)
        drain_and_close(body)
        return self._list(req, target)

    def _target_of(
        self, req: Request, root: Answer
    ) -> LogicalContainer | None:
        return self.backend.described_by(req, info_of(root))

    def _list(self, req: Request, target: LogicalContainer) -> Callable:
        try:
            params = ListingParams.of(req)
        except HTTPException:
            return self.app  # the root refuses them the same way
        if params.has_unlistable_prefix():
            return self.app  # one database fails for it, not all
        if params.is_unordered and params.wants_order():
            return HTTPBadRequest(
                request=req,
                content_type='text/plain',
                body='allow_unordered can not be combined with delimiter, '
                'path or reverse',
            )
        self.logger.increment('container.GET')
        started = time.monotonic()
        listing = ListingRequest(self.backend, req.environ, target)
        try:
            rows = self._rows(req, listing, params)
        except RootAnswer as err:
            present = self._target_of(req, err.answer)
            if present is None:
                return Verbatim(err.answer)
            return self._list(req, present)
        root = listing.answers[ROOT]
        self.logger.timing(
            'fanout.time', (time.monotonic() - started) * MILLISECONDS
        )
        self.logger.update_stats('fanout.requests', listing.request_count)
        self.logger.update_stats('fanout.refills', listing.refills)
        self.charges.more_of_listing(target, listing.rounds - 1)
        overrides.show(req, root.headers)
        figures = self._figures(req, listing, params)
        body = divert(req, to_json(rows.texts))
        return _Summed(target, root, figures, body)

    def _rows(
        self, req: Request, listing: ListingRequest, params: ListingParams
    ) -> Rows:
        if not params.is_unordered:
            return listing.rows(params)
        target = listing.target
        sums = self.stats.of(req.environ, target)
        return listing.unordered_rows(
            params, sums.object_count / target.layout.shards
        )

    def _figures(
        self, req: Request, listing: ListingRequest, params: ListingParams
    ) -> ContainerStats:
        """The figures that a listing shows.

        An unordered one did not ask all shards; it shows those of a while ago.
        """
        if params.is_unordered:
            return self.stats.of(req.environ, listing.target)
        return total(listing.answers.values())

    def _sum_shards(
        self, req: Request, target: LogicalContainer
    ) -> ContainerStats:
        asked = time.monotonic()
        answers = self.backend.head_shards(req.environ, target)
        require_success(answers)
        self.logger.update_stats('fanout.requests', len(answers) + 1)
        self.head_sums.keep(req.environ, target, answers, asked)
        return total(answers)


class _Summed(Verbatim):
    """A root's answer with the figures of the whole container.

    :param root: the root's answer
    :param figures: those of root and shards together
    :param body: the listing, None for a HEAD
    """

    def __init__(
        self,
        target: LogicalContainer,
        root: Answer,
        figures: ContainerStats,
        body: bytes | None,
    ) -> None:
        headers = HeaderKeyDict(root.headers)
        headers['X-Container-Object-Count'] = str(figures.object_count)
        headers['X-Container-Bytes-Used'] = str(figures.bytes_used)
        headers[SHARD_COUNT_HEADER] = str(target.layout.shards)
        if body is not None:
            headers['Content-Length'] = str(len(body))
        super().__init__(root._replace(headers=headers, body=[body or b'']))
