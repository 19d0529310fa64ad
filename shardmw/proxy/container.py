# SPDX-License-Identifier: Apache-2.0
"""Container requests: listings and statistics.

PUT is in :mod:`shardmw.proxy.creation`, POST and DELETE are in
:mod:`shardmw.proxy.lifecycle`.
"""

import dataclasses
import math
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import is_server_error
from swift.common.swob import (
    HTTPBadRequest,
    HTTPException,
    HTTPNotFound,
    Request,
    Response,
)
from swift.common.utils import drain_and_close

from shardmw.backend.answers import (
    Answer,
    ContainerStats,
    Verbatim,
    require_success,
    unavailable,
)
from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    STORED_SYNC_TO_HEADER,
    SYNC_TO_HEADER,
    BackendError,
    LogicalContainer,
    authorize,
    described_by,
    may_be_sharded,
)
from shardmw.backend.metrics import (
    CONTAINER_REQUESTS,
    FANOUT,
    FANOUT_REFILLS,
    FANOUT_REQUESTS,
    LISTINGS_KEPT,
    LISTINGS_OF_CONTAINER,
)
from shardmw.backend.requests import Backend
from shardmw.backend.roots import read_root
from shardmw.backend.rows import STAY_SECONDS
from shardmw.core.layout import LayoutError
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import Rows, to_json
from shardmw.core.paths import Path
from shardmw.proxy.head_cache import HeadCache
from shardmw.proxy.info_app import (
    read_and_share,
    share_stats,
    share_with_sums,
)
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.lifecycle import Lifecycle
from shardmw.proxy.listing import container_order, max_age
from shardmw.proxy.listing.kept_pages import KeptPages, Page
from shardmw.proxy.listing.max_age import MaxAge
from shardmw.proxy.listing.params import params_of
from shardmw.proxy.listing.request import ListingRequest
from shardmw.proxy.listings_filter import divert, note_head, take_order
from shardmw.proxy.ratelimit import rate_header
from shardmw.proxy.ratelimit.accounting import Accounting
from shardmw.proxy.shard_sums import SummedStats, total

LAYOUT_TRIES = 5
"""How often a page is read, if the layout changes while it is."""


class ReadTools(NamedTuple):
    """The parts of the filter that answer reads of containers.

    :param app: the rest of the pipeline
    :param default_max_age: called with an account and a container; returns how
                            many seconds old listings may be unless the owner
                            of the container has set this
    """

    app: Callable
    backend: Backend
    layouts: Layouts
    stats: SummedStats
    head_cache: HeadCache
    kept_pages: KeptPages
    default_max_age: Callable[[str, str], int]
    accounting: Accounting


class ContainerController:
    """Handles requests to containers."""

    def __init__(self, tools: ReadTools, lifecycle: Lifecycle) -> None:
        self.tools = tools
        self._handlers = {
            'GET': lambda req, path: GetContext(tools, req, path).answer(),
            'HEAD': lambda req, path: HeadContext(tools, req, path).answer(),
            'PUT': lifecycle.put,
            'POST': lifecycle.post,
            'DELETE': lifecycle.delete,
        }

    def __call__(self, req: Request, path: Path) -> Callable:
        """Return the WSGI application that answers a request.

        :param path: the path of a container
        """
        backend = self.tools.backend
        handler = self._handlers.get(req.method)
        if handler is None or not may_be_sharded(req, path):
            return self.tools.app
        try:
            answer = handler(req, path)
        except (BackendError, LayoutError) as err:
            answer = unavailable(req, path, backend, err)
        if isinstance(answer, Response):
            return backend.with_cors(req, path, answer)
        return answer


class _ReadContext:
    """One GET or HEAD of a container.

    :param path: the path of the container
    """

    def __init__(self, tools: ReadTools, req: Request, path: Path) -> None:
        self.tools = tools
        self.backend = tools.backend
        self.metrics = tools.backend.metrics
        self.req = req
        self.env = req.environ
        self.path = path

    def read_root(self) -> Answer:
        """Send the client's GET or HEAD to the root."""
        return self.share(self.backend.pass_on, self.req)

    def share(self, read: Callable, *args) -> Answer:
        """Read the root, and store its info for later requests."""
        return read_and_share(self.env, self.path, read, *args)

    def target_of(self, root: Answer) -> LogicalContainer | None:
        """Return the sharded container of a root; None if it is plain.

        The errors are those of :meth:`Layouts.of`.
        """
        return self.tools.layouts.of(self.env, self.path, root.info())

    def unsharded(self, root: Answer) -> Callable:
        """Return the root's answer: the container is plain or missing.

        A replica that missed a deletion answers with the record of a layout.

        :raises BackendError: if the replicas do not prove that the container
                              is plain or missing
        """
        path = self.path
        if RECORD_HEADER in root.headers and described_by(path, root.info()):
            drain_and_close(root.body)
            state = read_root(self.backend, self.env, path)
            if state.is_deleted:
                return HTTPNotFound(request=self.req)
            if state.layout:
                self.tools.layouts.forget(path)
            if state.layout or not state.exists:
                raise BackendError(None, 503, 'replicas of the root differ')
            root = self.read_root()
        if root.is_success:
            # There is a record if the container was sharded before.
            share_with_sums(self.env, path, root.headers)
        _show_settings(self.req, root, 0)
        return Verbatim(root)

    def refused_by(self, root: Answer) -> Callable:
        """Return the error response of a root.

        :raises BackendError: if it is a server error
        """
        if is_server_error(root.status):
            raise BackendError(None, root.status)
        return Verbatim(root)

    def summed(
        self,
        target: LogicalContainer,
        root: Answer,
        stats: ContainerStats,
        body: bytes | None,
    ) -> Callable:
        """Return a root's answer with the figures of the whole container.

        :param body: the listing, None for a HEAD
        """
        default = self.tools.default_max_age(target.account, target.container)
        _show_settings(self.req, root, default)
        headers = HeaderKeyDict(root.headers)
        headers['X-Container-Object-Count'] = str(stats.object_count)
        headers['X-Container-Bytes-Used'] = str(stats.bytes_used)
        sharding = target.layout.written_sharding
        if sharding.shards:
            headers[SHARD_COUNT_HEADER] = str(sharding.shards)
            headers[SHARD_DEPTH_HEADER] = str(sharding.depth)
        sync_to = headers.get(STORED_SYNC_TO_HEADER)
        if sync_to and self.backend.may_use(self.env, SYNC_TO_HEADER):
            headers[SYNC_TO_HEADER] = sync_to
        if body is None:
            note_head(self.req, headers)
        else:
            headers['Content-Length'] = str(len(body))
        return Verbatim(root._replace(headers=headers, body=[body or b'']))


class HeadContext(_ReadContext):
    """A HEAD of a container."""

    def answer(self) -> Callable:
        """Return the WSGI application that answers the request."""
        root = self.read_root()
        target = self.target_of(root)
        if target is None:
            return self.unsharded(root)
        self.metrics.note(CONTAINER_REQUESTS, method='HEAD')
        sums = self.tools.head_cache.kept(self.env, target)
        if sums is None:
            started = time.monotonic()
            refusal = self.tools.accounting.listing(
                self.req, self.path, target.info, target
            )
            if refusal:
                return refusal
            with self.backend.turn(self.env, self.path.account):
                is_late = time.monotonic() - started >= STAY_SECONDS
                if is_late or target.layout.is_changing:
                    # Rows may have moved, or the layout changed, meanwhile.
                    root = self.read_root()
                    if not root.is_success:
                        return self.refused_by(root)
                    target = self.target_of(root)
                    if target is None:
                        return self.unsharded(root)
                sums = self._sum_shards(target)
            if target.moves_to_root:
                root = self.read_root()
                require_success([root])
        stats = ContainerStats(
            root.object_count + sums.object_count,
            root.bytes_used + sums.bytes_used,
        )
        share_stats(self.env, target, stats)
        return self.summed(target, root, stats, None)

    def _sum_shards(self, target: LogicalContainer) -> ContainerStats:
        asked = time.monotonic()
        answers = self.backend.head_shards(self.env, target)
        require_success(answers)
        self.metrics.note(FANOUT_REQUESTS, len(answers) + 1)
        self.tools.head_cache.keep(self.env, target, answers, asked)
        return total(answers)


class GetContext(_ReadContext):
    """A GET of a container, a listing."""

    def answer(self) -> Callable:
        """Return the WSGI application that answers the request."""
        info = self.backend.container_info(self.env)
        if authorize(self.req, info['read_acl']):
            # The app denies it, with an ACL that may be newer.
            return self._plain()
        target = self.tools.layouts.of(self.env, self.path, info)
        refusal = self.tools.accounting.listing(
            self.req, self.path, info, target
        )
        if refusal:
            return refusal
        return self._plain() if target is None else self._list(target)

    def _open_root(self) -> Answer:
        """Send the client's GET to the root, without reading the listing."""
        status, headers, body = self.req.call_application(self.tools.app)
        return Answer(None, status, HeaderKeyDict(headers), body)

    def _plain(self) -> Callable:
        """Return the root's own answer, if it has no layout record.

        If it has one, the cached info was older: list the shards.
        """
        root = self.share(self._open_root)
        try:
            target = self.target_of(root)
        except (BackendError, LayoutError):
            drain_and_close(root.body)
            raise
        if target is not None:
            drain_and_close(root.body)
            return self._list(target)
        return self.unsharded(root)

    def _list(self, target: LogicalContainer) -> Callable:
        take_order(self.req)
        try:
            params = params_of(self.req)
        except (HTTPException, ValueError):
            # The root refuses them, as a plain container does.
            return self.refused_by(self.read_root())
        if params.has_unlistable_prefix():
            # It makes a database fail, so only the root is asked.
            return Verbatim(self.read_root())
        if container_order.allows_unordered(self.req, params, target.info):
            params = dataclasses.replace(params, is_unordered=True)
        if params.is_unordered and params.wants_order():
            return self._bad_request(
                'allow_unordered cannot be combined with delimiter, path or '
                'reverse'
            )
        try:
            age = self._max_age(target)
        except ValueError as err:
            return self._bad_request(str(err))
        self.metrics.note(CONTAINER_REQUESTS, method='GET')
        ahead, page = 0, None
        if age.asked:
            ahead, page = self.tools.kept_pages.find(
                self.env, target, params, age.kept
            )
        if page is not None:
            answer = self._kept(target, page, age)
            if answer is not None:
                return answer
        # Free the page: the wait for the turn may be long.
        del page
        seconds = age.kept if ahead else 0
        with self.backend.turn(self.env, self.path.account):
            for _ in range(LAYOUT_TRIES):
                listing = ListingRequest(self.backend, self.req, target)
                try:
                    answer = self._listed(
                        listing, params, max(1, ahead), seconds
                    )
                finally:
                    listing.stop()
                if answer is not None:
                    return answer
        raise BackendError(
            None, 503, 'the layout has changed while it was listed'
        )

    def _bad_request(self, body: str) -> Response:
        return HTTPBadRequest(
            request=self.req, content_type='text/plain', body=body
        )

    def _kept(
        self, target: LogicalContainer, page: Page, age: MaxAge
    ) -> Callable | None:
        """Return the answer with a kept page.

        The figures of the page are too old to decide about quotas.

        :returns: None if the page is too old, or if the root has another
                  layout or setting now
        """
        if not 0 <= page.age() <= age.asked:
            return None
        started = time.monotonic()
        listing = ListingRequest(self.backend, self.req, target)
        root = self.share(listing.read_root)
        if not root.is_success:
            return self.refused_by(root)
        present = self.target_of(root)
        if present is None or present.layout != target.layout:
            return None
        seconds = page.age()
        if seconds > self._max_age(present).asked:
            return None
        self.metrics.note(LISTINGS_KEPT)
        self._note_page(target, time.monotonic() - started)
        root.headers['Age'] = str(math.ceil(seconds))
        body = divert(self.req, page.body)
        return self.summed(target, root, page.stats, body)

    def _max_age(self, target: LogicalContainer) -> MaxAge:
        """Return how old a page may be to answer the request.

        :raises ValueError: if the client asks for an invalid age
        """
        default = self.tools.default_max_age(target.account, target.container)
        return max_age.of_request(self.req, target.info, default)

    def _listed(
        self,
        listing: ListingRequest,
        params: ListingParams,
        ahead: int,
        kept_seconds: int,
    ) -> Callable | None:
        """Read a page.

        :param ahead: how many pages to read
        :param kept_seconds: for how long to keep them; 0: not at all
        :returns: the answer, or None if the layout has changed meanwhile, so
                  that the page may lack rows
        """
        target = listing.target
        started, read_at = time.monotonic(), time.time()
        if listing.is_unordered(params):
            read = listing.read_root
        else:
            read = partial(listing.read_root_and_shards, params, ahead)
        root = self.share(read)
        if not root.is_success:
            return self.refused_by(root)
        present = self.target_of(root)
        if present is None or present.layout != target.layout:
            listing.stop()
        if present is None:
            return self.unsharded(root)
        if present.layout != target.layout:
            target = present
            listing = ListingRequest(self.backend, self.req, target)
            root = self.share(listing.read_root)
            require_success([root])
        rows = self._rows(listing, params)
        self._note_costs(listing, started)
        if (
            time.monotonic() - started >= self.tools.layouts.seconds
            and read_root(self.backend, self.env, self.path).layout
            != target.layout
        ):
            # Rows move only when every proxy must know the change, but this
            # request began before: some may be in shards that were not read.
            return None
        body = to_json(rows.texts[: params.limit])
        if not listing.has_all_figures:
            sums = self.tools.stats.known(self.env, target)
            stats = ContainerStats(
                root.object_count + sums.object_count,
                root.bytes_used + sums.bytes_used,
            )
        else:
            stats = total(listing.answers.values())
            share_stats(self.env, target, stats)
        # The setting in the cached info of the request may be older.
        kept_seconds = min(kept_seconds, self._max_age(present).kept)
        if kept_seconds:
            self.tools.kept_pages.keep(
                self.env,
                target,
                params,
                rows,
                Page(read_at, stats, body),
                listing.ahead,
                kept_seconds,
                started + kept_seconds,
            )
        return self.summed(target, root, stats, divert(self.req, body))

    def _rows(self, listing: ListingRequest, params: ListingParams) -> Rows:
        if not listing.is_unordered(params):
            return listing.rows(params)
        target = listing.target
        sums = self.tools.stats.of(self.env, target)
        return listing.unordered_rows(
            params, sums.object_count / target.layout.shards
        )

    def _note_costs(self, listing: ListingRequest, started: float) -> None:
        """Count what a listing has cost, in metrics and against its rate."""
        target, seconds = listing.target, time.monotonic() - started
        self.metrics.note(FANOUT, seconds)
        self.metrics.note(FANOUT_REQUESTS, listing.request_count)
        self.metrics.note(FANOUT_REFILLS, listing.refills)
        self._note_page(target, seconds)
        self.tools.accounting.more_of_listing(target, listing.rounds - 1)

    def _note_page(self, target: LogicalContainer, seconds: float) -> None:
        self.metrics.note_of(
            target.account, target.container, LISTINGS_OF_CONTAINER, seconds
        )


def _show_settings(req: Request, root: Answer, default_max_age: int) -> None:
    """Add to a root's answer what this filter stores for its container."""
    rate_header.show(req, root.headers)
    container_order.show(root.headers)
    max_age.show(root.headers, default_max_age)
