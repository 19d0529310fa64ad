# SPDX-License-Identifier: Apache-2.0
"""The requests behind one listing of a sharded container.

The root and the shards are read at the same time; while the layout changes,
these are the shards before and after the change. Rows that move meanwhile stay
in both places for STAY_SECONDS. If the places that rows move out of answer
within this time, each row is in one of the answers: a row that had left its
old place was at its new one when the listing began. Rows move out of the
shards before a change, and out of the root if it only has strays or is
becoming sharded. If these answer later, the places that rows move into are
read again.

If a container is sharded by directory, only the shards that may have names of
the requested range are read: one, if the prefix has as many components as the
depth.

If a shard cannot be read, the listing fails. There is never a partial listing.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from swift.common.constraints import (
    CONTAINER_LISTING_LIMIT,
    MAX_HEADER_SIZE,
)
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from shardmw.backend.answers import Answer, next_marker, require_success
from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.requests import HOST, Backend, newest_header
from shardmw.backend.rows import STAY_SECONDS
from shardmw.backend.shard_reads import MOST_ROWS, ShardReads
from shardmw.core.batch import Source
from shardmw.core.layout import SHARD_COUNT_LIMIT
from shardmw.core.listing_page import Ask, Page
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import Rows, parse_rows
from shardmw.core.placement import NameRange, backing_container
from shardmw.core.unordered_page import Strays, UnorderedPage
from shardmw.proxy.listing.long_queries import brief_query, rows_of_listing
from shardmw.swift.concurrency import spawn

#: The root among the sources of a listing. Shards have their indices.
ROOT = -1

#: The most bytes of a line of a request that container servers accept: the
#: limit of their WSGI server, or that of a header if an operator allows less.
MAX_LINE = min(8192, MAX_HEADER_SIZE)

#: How many bytes of a line to reserve for the method, the device, the
#: partition and the protocol.
LINE_MARGIN = 64


class ListingRequest:
    """One client's GET of a sharded container.

    The caller first calls :meth:`read_root_and_shards` for an ordered listing
    or :meth:`read_root` for an unordered one, or puts the root's answer to the
    client's request into :attr:`answers`. It then calls :meth:`rows` or
    :meth:`unordered_rows`, once.

    :param req: the client's request
    :param target: the container
    """

    def __init__(
        self, backend: Backend, req: Request, target: LogicalContainer
    ) -> None:
        self.backend = backend
        self.req = req
        self.target = target
        #: The first answer of each source, by ROOT and the shards' indices.
        #: Their headers have the counts.
        self.answers: dict[int, Answer] = {}
        #: For how many pages rows are read from the shards.
        self.ahead = 1
        self._requests: Counter[int] = Counter()
        # The green thread that reads the shards at the same time as the root,
        # when it began, and when each source answered last, by the monotonic
        # clock.
        self._shard_reader = None
        self._began = 0.0
        self._answered: dict[int, float] = {}
        self._query_room = self._room_for_query()

    @property
    def request_count(self) -> int:
        """Return the number of requests to the root and to shards."""
        return self._requests.total()

    @property
    def refills(self) -> int:
        """Return how many requests asked a source once more."""
        return self.request_count - len(self._requests)

    @property
    def rounds(self) -> int:
        """Return the largest number of requests that one shard got."""
        return max(
            (n for source, n in self._requests.items() if source != ROOT),
            default=0,
        )

    @property
    def has_all_figures(self) -> bool:
        """Return True if the root and all shards have sent their figures."""
        return len(self.answers) == 1 + self.target.layout.backing_count

    def read_root(self) -> Answer:
        """Send the client's own request to the root.

        :returns: the root's answer, whatever it is
        """
        self._requests[ROOT] += 1
        root = self.answers[ROOT] = self.backend.send_as_client(self.req)
        return root

    def read_root_and_shards(
        self, params: ListingParams, ahead: int = 1
    ) -> Answer:
        """Send the client's own request to the root, and read the shards.

        :param params: those of an ordered listing
        :param ahead: how many pages to read, if the layout does not change
        :returns: the root's answer, whatever it is
        """
        if not self._fits(params.query(None, params.limit)):
            # The root may refuse the request.
            return self.read_root()
        if not self.target.layout.is_changing:
            self.ahead = ahead
        self._began = time.monotonic()
        pages = replace(params, limit=params.limit * self.ahead)
        stages = self.target.read_stages(params.names())
        # This stores the transaction id of this green thread's log lines.
        reads = self._reads()
        self._shard_reader = spawn(self._read_shards, stages, pages, reads)
        try:
            root = self.read_root()
        except BaseException:
            self.stop()
            raise
        self._answered[ROOT] = time.monotonic()
        if not root.is_success:
            self.stop()
        return root

    def stop(self) -> None:
        """End the requests to shards that are under way."""
        if self._shard_reader is not None:
            self._shard_reader.kill()
            self._shard_reader = None

    def rows(self, params: ListingParams) -> Rows:
        """Return the page of an ordered listing.

        Rows of further pages follow if more pages were read.

        :raises BackendError: if the root or a shard cannot be read
        """
        root = self._answer_of_root()
        # Compare with None: a green thread that has ended is false.
        if self._shard_reader is not None:
            return self._rows_read_at_once(params)
        self.answers = {ROOT: root}
        self.ahead = 1
        page = Page((), params.limit, params.reverse)
        page.merge(_rows_in(root))
        reads = self._reads()
        for stage in self.target.read_stages(params.names()):
            page.open(stage)
            self._fill([page], params, reads)
        if self.target.moves_to_root:
            page.merge(self._read_root_again(params))
        return page.rows()

    def _read_shards(
        self, stages: list[range], params: ListingParams, reads: ShardReads
    ) -> list[Rows] | BackendError:
        """Read the rows that shards have for a page.

        :param stages: the shards. Those of a stage have about equally many
                       rows
        :returns: the rows of each stage, or the failure
        """
        pages = [Page(stage, params.limit, params.reverse) for stage in stages]
        try:
            self._fill(pages, params, reads)
        except BackendError as err:
            return err
        return [page.rows() for page in pages]

    def _rows_read_at_once(self, params: ListingParams) -> Rows:
        """Return the page from what was read at the same time as the root.

        :raises BackendError: if a shard cannot be read
        """
        found = self._shard_reader.wait()
        if isinstance(found, BackendError):
            raise found
        pages = [_rows_in(self.answers[ROOT]), *found]
        if len(pages[0].names) >= params.limit:
            # The root may have more rows, for the pages after this one.
            self.ahead = 1
        stages = self.target.read_stages(params.names())
        # Rows move into the last stage, or into the root.
        former = [shard for stage in stages[:-1] for shard in stage]
        former.append(ROOT)
        if self.target.moves_to_root:
            former = [shard for stage in stages for shard in stage]
        answered = max(self._answered[source] for source in former)
        if answered - self._began >= STAY_SECONDS:
            pages.append(self._read_new_places_again(params))
        if len(pages) == 2 and not pages[0].names:
            return pages[1]
        page = Page((), params.limit * self.ahead, params.reverse)
        for rows in pages:
            page.merge(rows)
        return page.rows()

    def _read_new_places_again(self, params: ListingParams) -> Rows:
        """Read the places again that rows may have moved into meanwhile."""
        self.ahead = 1
        if self.target.moves_to_root:
            return self._read_root_again(params)
        shards = self.target.read_stages(params.names())[-1]
        for shard in shards:
            self.answers.pop(shard, None)
        found = self._read_shards([shards], params, self._reads())
        if isinstance(found, BackendError):
            raise found
        return found[0]

    def is_unordered(self, params: ListingParams) -> bool:
        """Return True if the page may have any order.

        While rows move between shards, these cannot be read one after another.
        If all names of a prefix are in one shard, they have an order.
        """
        if not params.is_unordered or self.target.layout.is_changing:
            return False
        names = NameRange(params.names_prefix())
        return self.target.read_stages(names) == self.target.read_stages()

    def unordered_rows(self, params: ListingParams, expected: float) -> Rows:
        """Return the page of an unordered listing.

        :param expected: about how many objects a shard has
        :raises BackendError: if the root or a shard cannot be read
        """
        root = self._answer_of_root()
        shard_of = self.target.shard_of
        first = shard_of(params.marker) if params.marker else 0
        strays = Strays(first, params.marker, params.limit, shard_of)
        if root.object_count > 0:
            self._read_strays(params, strays)
        shards = self.target.layout.shards
        page = UnorderedPage(shards, expected, strays)
        self._fill([page], params, self._reads())
        return page.rows()

    def _answer_of_root(self) -> Answer:
        root = self.answers[ROOT]
        require_success([root])
        return root

    def _room_for_query(self) -> int:
        """Return how many bytes the query of a request to a shard can have.

        The query is in the request line, and in the Referer header if the
        request goes through the proxy app.
        """
        target = self.target
        longest = backing_container(
            target.container, target.layout.id, SHARD_COUNT_LIMIT - 1
        )
        path = quote(f'/{target.hidden_account}/{longest}')
        return MAX_LINE - LINE_MARGIN - len(f'http://{HOST}{path}')

    def _fits(self, query: str) -> bool:
        """Return True if a container server accepts a query string."""
        return len(query) <= self._query_room

    def _read_strays(self, params: ListingParams, strays: Strays) -> None:
        """Read the rows of the root that the page may need.

        The client's request to the root had the client's marker. The marker
        applies to its own shard only.
        """
        answers = self.backend.fan_out(
            self._add_strays, [(None, params, strays)]
        )
        require_success(answers)

    def _add_strays(
        self, _shard: None, params: ListingParams, strays: Strays
    ) -> Answer:
        base = self.backend.owner_env(self.req.environ, uncached=True)
        headers = newest_header(self.req.environ)
        path = self.target.path.to_wsgi()
        ask = Ask(ROOT, '', CONTAINER_LISTING_LIMIT)
        while True:
            self._requests[ROOT] += 1
            query = self._query(ask, params)
            answer = self.backend.send(base, 'GET', path, query, headers)
            found = _rows_in(answer)
            strays.add(self._rows_of(ask, params, found))
            if len(found.names) < ask.limit or strays.fill_page:
                return answer
            last = next_marker('the root', ask.marker, found.names[-1])
            ask = ask._replace(marker=last)

    def _read_root_again(self, params: ListingParams) -> Rows:
        """Read the root again and return the rows that it has for the page."""
        base = self.backend.owner_env(self.req.environ, uncached=True)
        ask = Ask(ROOT, None, params.limit)
        answer = self.backend.send(
            base,
            'GET',
            self.target.path.to_wsgi(),
            self._query(ask, params),
            newest_header(self.req.environ),
        )
        require_success([answer])
        self.answers[ROOT] = answer
        self._requests[ROOT] += 1
        return self._rows_of(ask, params, _rows_in(answer))

    def _reads(self) -> ShardReads:
        return self.backend.shard_reads(self.req.environ, self.target)

    def _fill(
        self,
        pages: Sequence[Page | UnorderedPage],
        params: ListingParams,
        reads: ShardReads,
    ) -> None:
        """Send the queries that pages ask for, until one fails.

        Container servers fail for some delimiters, and the proxy stops using
        servers that fail often. So such a listing reads one shard at a time.

        :param pages: pages of different shards
        """
        is_risky = params.has_unskippable_delimiter()
        at_once = self.backend.concurrency * len(pages)
        while any(asked := [page.asks() for page in pages]):
            by_shard = {
                ask.source: (page, ask)
                for page, asks in zip(pages, asked, strict=True)
                for ask in asks
            }
            if is_risky:
                batches = [[Source(shard)] for shard in by_shard]
            else:
                batches = _batches(asked, params, reads)
            calls = []
            for batch in batches:
                asks = [by_shard[source.shard] for source in batch]
                calls.append((batch[0].shard, batch, asks, params, reads))
            answers = self.backend.fan_out(
                self._read,
                calls,
                concurrency=1 if is_risky else at_once,
                ends_at_failure=True,
            )
            require_success(answers)

    def _read(
        self,
        _shard: int,
        batch: list[Source],
        asks: list[tuple[Page | UnorderedPage, Ask]],
        params: ListingParams,
        reads: ShardReads,
    ) -> Answer:
        """Send queries to the shards of a batch and put the rows into pages.

        The rows are parsed while other shards are still at work.

        :param asks: the page and the query of each shard
        :returns: the first unsuccessful answer, else the last one
        """
        most = CONTAINER_LISTING_LIMIT // len(batch)
        asks = [
            (page, self._sendable(most, ask, page, params))
            for page, ask in asks
        ]
        if batch[0].node is None:
            asks = [self._sendable_alone(*asks[0], params)]
        queries = [self._query(ask, params) for _, ask in asks]
        if batch[0].node is None and not self._fits(queries[0]):
            return _without_room(batch[0].shard)
        self._requests.update(source.shard for source in batch)
        answers = reads.read_batch(batch, 'GET', queries, ends_at_failure=True)
        for (page, ask), answer in zip(asks, answers, strict=True):
            if not answer.is_success:
                return answer
            page.add(ask, self._rows_of(ask, params, _rows_in(answer)))
            self._answered[ask.source] = time.monotonic()
            answer = answer._replace(body=[])
            self.answers.setdefault(ask.source, answer)
        return answer

    def _is_brief(self, ask: Ask, params: ListingParams) -> bool:
        """Return True if the whole query of an ask may be too long."""
        return not self._fits(params.query(ask.marker, ask.limit, ask.end))

    def _query(self, ask: Ask, params: ListingParams) -> str:
        """Return the query to send; its rows go through :meth:`_rows_of`.

        If the query has to be brief, the ask has no end of its own.
        """
        if self._is_brief(ask, params):
            return brief_query(params, ask.marker, ask.limit)
        return params.query(ask.marker, ask.limit, ask.end)

    def _rows_of(self, ask: Ask, params: ListingParams, found: Rows) -> Rows:
        """Return the rows of an ask among those that its query has found."""
        if self._is_brief(ask, params):
            return rows_of_listing(params, found)
        return found

    def _sendable(
        self,
        most: int,
        ask: Ask,
        page: Page | UnorderedPage,
        params: ListingParams,
    ) -> Ask:
        """Return the ask to send, bounded by what the page needs.

        A shard that has more rows is asked again. If an ask ends at the
        probable end of the page, few shards have more rows before it.

        :param most: how many rows to ask for at most
        """
        shorter = ask if params.has_levels() else page.shortened(ask)
        if shorter.end is not None and self._is_brief(shorter, params):
            shorter = ask
        return shorter._replace(limit=min(shorter.limit, most))

    def _sendable_alone(
        self,
        page: Page | UnorderedPage,
        ask: Ask,
        params: ListingParams,
    ) -> tuple[Page | UnorderedPage, Ask]:
        """Return the ask to send without a batch: its query is in the URL.

        There may be room for the prefix and the client's marker, but not for
        the prefix and the last name of a shard. Then the shard is asked for
        the whole page.
        """
        has_room = self._fits(self._query(ask, params))
        if has_room or not params.has_levels():
            return page, ask
        return page, Ask(ask.source, None, page.limit)


def _batches(
    asked: list[list[Ask]], params: ListingParams, reads: ShardReads
) -> list[list[Source]]:
    """Group the shards to read together.

    With a delimiter, shards have the same pseudo-directories, so each finds
    far fewer than it is asked for. Shards of different pages have very
    different numbers of rows, so they are read together only if all queries
    ask for few.

    :param asked: the queries of each page
    """
    everything = [ask for asks in asked for ask in asks]
    rows = sum(ask.limit for ask in everything)
    if rows <= MOST_ROWS and not params.has_levels():
        return reads.batches(ask.source for ask in everything)
    batches = []
    for asks in filter(None, asked):
        most = max(ask.limit for ask in asks)
        shards = [ask.source for ask in asks]
        batches += reads.batches(shards, None if params.has_levels() else most)
    return batches


def _without_room(shard: int) -> Answer:
    """Return a 414 for a query that does not fit into a request line."""
    status = '414 Request-URI Too Long'
    return Answer(shard, status, HeaderKeyDict(), [])


def _rows_in(answer: Answer) -> Rows:
    """Return the rows of an answer, none if it is an error.

    :raises BackendError: if it is no listing
    """
    body = b''.join(answer.body) if answer.is_success else b''
    try:
        return parse_rows(body)
    except ValueError as err:
        raise BackendError(
            answer.shard, 503, f'an answer is no listing ({err})'
        ) from err
