# SPDX-License-Identifier: Apache-2.0
"""The listing of a sharded container: many GETs, one page.

The rows of the root and of all shards are merged by :mod:`shardmw.paging`;
this module asks for them. A shard that can't be read makes the listing fail:
there is never a partial one.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.http import is_client_error
from swift.common.request_helpers import validate_container_params
from swift.common.swob import Request
from swift.common.utils import config_true_value

from shardmw.backend import (
    RECORD_HEADER,
    RECORD_NAME,
    Answer,
    Backend,
    LogicalContainer,
    require_success,
)
from shardmw.paging import Ask, Page
from shardmw.placement import backing_bound, is_reserved, lies_in_root
from shardmw.rows import Rows, parse_rows
from shardmw.unordered import UnorderedPage

#: The root's number among the sources of a page; shards have their index.
ROOT = -1

#: Container servers compute the character after a prefix's last one; these
#: have none that could be part of a name.
NO_SUCCESSOR = ('\U0010ffff', '\ud7ff')


@dataclass(frozen=True, slots=True)
class ListingParams:
    """What a client asks of a container listing, as native strings.

    :param limit: rows at the most
    :param path: the pseudo-directory to list, None for none; it overrides
                 prefix and delimiter
    :param is_unordered: whether any order will do
    """

    limit: int
    marker: str = ''
    end_marker: str = ''
    prefix: str = ''
    delimiter: str = ''
    path: str | None = None
    reverse: bool = False
    is_unordered: bool = False

    @classmethod
    def of(cls, req: Request) -> 'ListingParams':
        """Read a listing request's parameters.

        :raises HTTPException: as Swift's container server does
        """
        params = validate_container_params(req)
        return cls(
            limit=params.get('limit', CONTAINER_LISTING_LIMIT),
            marker=params.get('marker') or '',
            end_marker=params.get('end_marker') or '',
            prefix=params.get('prefix') or '',
            delimiter=params.get('delimiter') or '',
            path=params.get('path'),
            reverse=config_true_value(params.get('reverse')),
            is_unordered=_allows_unordered(req),
        )

    def for_shard(self, container: str, ask: Ask) -> dict[str, str | int]:
        """The query of one ask to a backing container.

        :param container: the logical container
        """
        return self._query(ask, functools.partial(backing_bound, container))

    def for_root(self, ask: Ask) -> dict[str, str | int]:
        """The query of one ask to the root, if it is not the client's own."""
        return self._query(ask, str)

    def _query(
        self, ask: Ask, bound: Callable[[str], str]
    ) -> dict[str, str | int]:
        marker = self.marker if ask.marker is None else ask.marker
        query = {'format': 'json', 'limit': ask.limit}
        if marker:
            query['marker'] = bound(marker)
        if self.end_marker:
            query['end_marker'] = bound(self.end_marker)
        if self.reverse:
            query['reverse'] = 'true'
        if self.path is not None:
            # An empty one lists the whole container's top level, there, too.
            query['path'] = self.path and bound(self.path)
        elif self.prefix or self.delimiter:
            query['prefix'] = bound(self.prefix)
            query['delimiter'] = self.delimiter
        return query

    def wants_order(self) -> bool:
        """Whether it asks for what is only there in the order of names."""
        return bool(self.delimiter) or self.reverse or self.path is not None

    def has_unlistable_prefix(self) -> bool:
        """Whether Swift fails to find the end of the prefix, a 500."""
        return self.path is None and self.prefix.endswith(NO_SUCCESSOR)


class RootAnswer(Exception):
    """The root refused, or its record is not what was cached of it.

    :param answer: what it said
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status_line)
        self.answer = answer


class ListingRequest:
    """One client's GET of a sharded container."""

    def __init__(
        self, backend: Backend, env: dict, target: LogicalContainer
    ) -> None:
        self.backend = backend
        self.env = env
        self.target = target
        self.reads = backend.shard_reads(env, target)
        # Versions have the same names in backing containers.
        self.are_versions = is_reserved(target.container)
        #: The first answer of each source; their headers hold the counts.
        self.answers: dict[int, Answer] = {}
        self.request_count = 0
        self.refills = 0
        #: How often the most asked of the shards were asked.
        self.rounds = 0

    def rows(self, params: ListingParams) -> Rows:
        """The merged page.

        :raises RootAnswer: if the root refuses or has another record
        :raises BackendError: if a shard can't be read
        """
        sources = [ROOT, *self.target.shards()]
        page = Page(sources, params.limit, params.reverse, whole=ROOT)
        return self._filled(page, params)

    def unordered_rows(self, params: ListingParams, expected: float) -> Rows:
        """The page of an unordered listing.

        :param expected: how many objects a shard holds, or so
        :raises RootAnswer: the same
        :raises BackendError: the same
        """
        page = self._unordered_page(params, expected)
        rows = self._filled(page, params)
        if page.can_be_continued():
            return rows
        self.answers.clear()
        page = self._unordered_page(params, expected, is_mixed=True)
        return self._filled(page, params)

    def _unordered_page(
        self, params: ListingParams, expected: float, is_mixed: bool = False
    ) -> UnorderedPage:
        layout = self.target.layout
        return UnorderedPage(
            first=self._turn_of(params.marker) if params.marker else 0,
            turns=layout.shards + 1,
            limit=params.limit,
            sources_of=self._sources_of,
            turn_of=self._turn_of,
            whole=ROOT,
            expected=expected,
            is_mixed=is_mixed or layout.previous is not None,
        )

    def _turn_of(self, name: str) -> int:
        """When a name is listed: with its shard, or the root's at the end."""
        if lies_in_root(self.target.container, name):
            return self.target.layout.shards
        return self.target.shards_of(name)[0]

    def _sources_of(self, turn: int) -> list[int]:
        """Where names of a turn may lie.

        The root answers to the client, and with the first turn says whether
        it has rows of others.
        """
        if turn == self.target.layout.shards:
            return [ROOT]
        sources = {turn, *range(self.target.layout.previous or 0)}
        root = self.answers.get(ROOT)
        if root is None or root.object_count > 0:
            sources.add(ROOT)
        return sorted(sources)

    def _filled(
        self, page: Page | UnorderedPage, params: ListingParams
    ) -> Rows:
        """The rows of a page, when all that it asks for is in."""
        asked = Counter()
        while asks := page.asks():
            answers = self.backend.fan_out(
                self._add_to,
                [(_shard_of_source(ask), ask, page, params) for ask in asks],
            )
            self._require_success(answers)
            for ask, answer in zip(asks, answers, strict=True):
                self.answers.setdefault(ask.source, answer)
            asked.update(ask.source for ask in asks)
        self.request_count += asked.total()
        self.refills += asked.total() - len(asked)
        self.rounds += max(asked.values())
        return page.rows()

    def _add_to(
        self, shard: int | None, ask: Ask, page: Page, params: ListingParams
    ) -> Answer:
        """Carry out an ask: its rows go into the page at once.

        While some rows are taken in, servers look for others.

        :returns: the answer; of a shard, without its rows
        """
        answer = self._send(shard, ask, params)
        if not answer.is_success:
            return answer
        are_hidden = shard is not None and not self.are_versions
        page.add(ask, parse_rows(b''.join(answer.body), are_hidden))
        return answer if shard is None else answer._replace(body=[])

    def _send(
        self, shard: int | None, ask: Ask, params: ListingParams
    ) -> Answer:
        if shard is not None:
            query = params.for_shard(self.target.container, ask)
            return self.reads.read(shard, 'GET', _query_string(query))
        if ask.marker is None:
            return self.backend.send_as_client(Request(self.env))
        return self.backend.send(
            self.reads.base,
            'GET',
            self.target.path,
            _query_string(params.for_root(ask)),
        )

    def _require_success(self, answers: list[Answer]) -> None:
        for answer in answers:
            if answer.shard is None:
                self._heed_root(answer)
        require_success(answers)

    def _heed_root(self, answer: Answer) -> None:
        """See whether the root lists, by the layout that it is asked by.

        :raises RootAnswer: if not; else the shards are the right ones
        """
        if is_client_error(answer.status):
            raise RootAnswer(answer)
        if answer.is_success:
            record = answer.headers.get(RECORD_HEADER)
            if record != self.target.info['sysmeta'].get(RECORD_NAME):
                raise RootAnswer(answer)


def _allows_unordered(req: Request) -> bool:
    """Whether a client allows for any order.

    Object versioning needs one for lists of versions, which it merges.
    """
    params = req.params
    allows = config_true_value(params.get('allow_unordered'))
    return allows and 'versions' not in params


def _shard_of_source(ask: Ask) -> int | None:
    return None if ask.source == ROOT else ask.source


def _query_string(query: dict) -> str:
    return '&'.join(
        f'{name}={quote(str(value))}' for name, value in query.items()
    )
