# SPDX-License-Identifier: Apache-2.0
"""The listing of a sharded container: many GETs, one page.

The rows of the root and of all shards are merged by :mod:`shardmw.paging`;
this module asks for them. A shard that can't be read makes the listing fail:
there is never a partial one.
"""

from dataclasses import dataclass, replace
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.http import is_client_error
from swift.common.request_helpers import validate_container_params
from swift.common.swob import Request, str_to_wsgi
from swift.common.utils import config_true_value

from shardmw.backend import (
    RECORD_HEADER,
    RECORD_NAME,
    Answer,
    Backend,
    LogicalContainer,
    newest_header,
    require_success,
)
from shardmw.paging import Ask, Page, Row, name_of, without_duplicates
from shardmw.placement import backing_bound, shard_of

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
    """

    limit: int
    marker: str = ''
    end_marker: str = ''
    prefix: str = ''
    delimiter: str = ''
    path: str | None = None
    reverse: bool = False

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
        )

    def for_shard(self, ask: Ask) -> dict[str, str | int]:
        """The query of one ask to a backing container."""
        marker = self.marker if ask.marker is None else ask.marker
        query = {'format': 'json', 'limit': ask.limit}
        if marker:
            query['marker'] = backing_bound(marker)
        if self.end_marker:
            query['end_marker'] = backing_bound(self.end_marker)
        if self.reverse:
            query['reverse'] = 'true'
        if self.path:
            query['path'] = backing_bound(self.path)
        elif self.lists_top_level_path():
            query.update(prefix=backing_bound(''), delimiter='/')
        elif self.prefix or self.delimiter:
            query['prefix'] = backing_bound(self.prefix)
            query['delimiter'] = self.delimiter
        return query

    def includes(self, name: str) -> bool:
        """Whether a name lies between marker and end_marker."""
        low, high = self.marker, self.end_marker
        if self.reverse:
            low, high = high, low
        return (not low or name > low) and (not high or name < high)

    def has_unlistable_prefix(self) -> bool:
        """Whether Swift fails to find the end of the prefix, a 500."""
        return self.path is None and self.prefix.endswith(NO_SUCCESSOR)

    def lists_top_level_path(self) -> bool:
        """Whether this is a listing by ``path`` of the whole container.

        No path names the top of a backing container, so its shards are
        listed by delimiter, and each subdir is looked up as an object.
        """
        return self.path == ''


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
        self.base = backend.owner_env(env, uncached=True)
        self.newest = newest_header(env)
        #: The first answer of each source; their headers hold the counts.
        self.answers: dict[int, Answer] = {}
        self.request_count = 0
        self.refills = 0

    def rows(self, params: ListingParams) -> list[Row]:
        """The merged page.

        :raises RootAnswer: if the root refuses or has another record
        :raises BackendError: if a shard can't be read
        """
        if params.lists_top_level_path() and params.limit > 0:
            return self._objects_of_top_level(params)
        return self._page(params).rows()

    def _page(self, params: ListingParams) -> Page:
        sources = [ROOT, *self.target.shards()]
        page = Page(sources, params.limit, params.reverse, whole=ROOT)
        while asks := page.asks():
            answers = self.backend.fan_out(
                self._send,
                [(_shard_of_source(ask), ask, params) for ask in asks],
            )
            self._require_success(answers)
            for ask, answer in zip(asks, answers, strict=True):
                self.answers.setdefault(ask.source, answer)
                page.add(ask, _rows_of(answer))
            self.request_count += len(asks)
            self.refills += sum(ask.marker is not None for ask in asks)
        return page

    def _send(
        self, shard: int | None, ask: Ask, params: ListingParams
    ) -> Answer:
        if shard is None:
            return self._ask_root(params)
        return self._ask_shard(shard, params.for_shard(ask))

    def _ask_root(self, params: ListingParams) -> Answer:
        """The client's own request, from where the listing goes on."""
        req = Request(self.env.copy())
        if ROOT in self.answers:
            req.params = {
                **req.params,
                'limit': str(params.limit),
                'marker': str_to_wsgi(params.marker),
            }
        return self.backend.send_as_client(req)

    def _ask_shard(self, shard: int, query: dict) -> Answer:
        return self.backend.send_to_shard(
            self.base,
            self.target,
            shard,
            'GET',
            query=_query_string(query),
            headers=self.newest,
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

    def _objects_of_top_level(self, params: ListingParams) -> list[Row]:
        found: list[Row] = []
        while len(found) < params.limit:
            rest = replace(params, limit=params.limit - len(found))
            page = self._page(rest)
            rows = page.rows()
            found += [
                row
                for row in self._subdirs_as_objects(rows, params.reverse)
                if params.includes(name_of(row))
            ]
            if page.is_last():
                break
            params = replace(params, marker=name_of(rows[-1]))
        return found

    def _subdirs_as_objects(self, rows: list[Row], reverse: bool) -> list[Row]:
        """The rows with each subdir replaced by the object of its name.

        A subdir that is no object goes.
        """
        subdirs = [row['subdir'] for row in rows if 'subdir' in row]
        answers = self.backend.fan_out(
            lambda shard, name: self._ask_shard(
                shard,
                {'format': 'json', 'limit': 1, 'prefix': backing_bound(name)},
            ),
            [
                (shard_of(name, count), name)
                for count in self.target.layout.counts()
                for name in subdirs
            ],
        )
        require_success(answers)
        objects = [
            row
            for answer in answers
            for row in _rows_of(answer)
            if row['name'] in subdirs
        ]
        objects += [row for row in rows if 'subdir' not in row]
        objects.sort(key=name_of, reverse=reverse)
        return without_duplicates(objects)


def _shard_of_source(ask: Ask) -> int | None:
    return None if ask.source == ROOT else ask.source


def _rows_of(answer: Answer) -> list[Row]:
    """The rows of an answer under their logical names."""
    rows = answer.rows()
    if answer.shard is None:
        return rows
    for row in rows:
        key = 'name' if 'name' in row else 'subdir'
        row[key] = row[key][1:]
    return rows


def _query_string(query: dict) -> str:
    return '&'.join(
        f'{name}={quote(str(value))}' for name, value in query.items()
    )
