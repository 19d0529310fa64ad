# SPDX-License-Identifier: Apache-2.0
"""Account listing and statistics.

The account database counts and sizes the backing containers like any other
(so an account's objects and bytes are right by themselves). Here each sharded
container's row gets the figures of its shards, and the counts of containers
leave the backing ones out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from urllib.parse import quote

import orjson
from swift.common.constraints import ACCOUNT_LISTING_LIMIT
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_GONE, HTTP_NOT_FOUND
from swift.common.swob import Request, wsgi_to_str

from shardmw.backend import (
    Answer,
    Backend,
    BackendError,
    SharedCache,
    Verbatim,
    unavailable,
)
from shardmw.placement import (
    BACKING_PREFIX,
    backing_prefix,
    can_be_sharded,
    has_long_name,
    is_reserved,
    key_of,
    logical_key,
)

COUNT_HEADER = 'X-Account-Container-Count'
POLICY_COUNT_HEADER = 'X-Account-Storage-Policy-{policy}-Container-Count'

JSON = 'application/json'

COUNTS_KEY = 'shardmw/backing-counts/{account}'
#: As old as Swift's own cached account info may be.
COUNTS_SECONDS = 60

#: Sorts behind everything that follows a prefix of backing containers' names.
AFTER_ALL = '\x7f'


class AccountRequests:
    """Handles GET and HEAD of accounts."""

    def __init__(self, app: Callable, backend: Backend, logger) -> None:
        self.app = app
        self.backend = backend
        self.logger = logger

    def __call__(self, req: Request) -> Callable:
        """Answer a request.

        :param req: a request to an account
        :returns: the WSGI application that answers it
        """
        if req.method not in ('GET', 'HEAD'):
            return self.app
        answer = self.backend.send_as_client(req)
        if not answer.is_success or COUNT_HEADER not in answer.headers:
            return Verbatim(answer)
        self.logger.increment(f'account.{req.method}')
        try:
            return Verbatim(self._logical(req, answer))
        except BackendError as err:
            return unavailable(req, self.logger, err)

    def _logical(self, req: Request, answer: Answer) -> Answer:
        headers = HeaderKeyDict(answer.headers)
        if not req.allow_reserved_names:
            self._leave_out(headers, self._backing_counts(req))
        if req.method != 'GET' or JSON not in headers.get('Content-Type', ''):
            return answer._replace(headers=headers)
        body = orjson.dumps(self._with_sums(req, answer.rows()))
        headers['Content-Length'] = str(len(body))
        return answer._replace(headers=headers, body=[body])

    def _leave_out(
        self, headers: HeaderKeyDict, backing_counts: dict[str, int]
    ) -> None:
        for name, count in backing_counts.items():
            if name in headers:
                headers[name] = str(max(0, int(headers[name]) - count))

    def _backing_counts(self, req: Request) -> dict[str, int]:
        """How many backing containers each count of containers includes."""
        _version, account = req.split_path(2, 2)
        key = COUNTS_KEY.format(account=wsgi_to_str(account))
        cache = SharedCache(req.environ)
        counts = cache.get(key)
        if counts is None:
            counts = Counter()
            base = self.backend.owner_env(req.environ)
            start, end = BACKING_PREFIX, BACKING_PREFIX + AFTER_ALL
            for row in backing_rows(self.backend, base, req, start, end):
                counts[COUNT_HEADER] += 1
                policy = row.get('storage_policy')
                counts[POLICY_COUNT_HEADER.format(policy=policy)] += 1
            cache.set(key, counts, COUNTS_SECONDS)
        return counts

    def _with_sums(self, req: Request, rows: list[dict]) -> list[dict]:
        """The rows of a page with the figures of their shards added.

        Clients see their containers; object versioning, which asks for
        hidden ones, is told what the versions take up.
        """
        named = [
            row
            for row in rows
            if 'name' in row
            and can_be_sharded(row['name'])
            and is_reserved(row['name']) == req.allow_reserved_names
        ]
        sums = defaultdict(Counter)
        for row in self._shard_rows(req, [row['name'] for row in named]):
            key = logical_key(row['name'])
            sums[key].update(count=row['count'], bytes=row['bytes'])
        for row in named:
            for field, value in sums.get(key_of(row['name']), {}).items():
                row[field] += value
        return rows

    def _shard_rows(self, req: Request, names: list[str]) -> Iterator[dict]:
        """The backing rows of the containers of a page.

        Those of short names lie side by side; a long name's lie anywhere.
        """
        base = self.backend.owner_env(req.environ)
        short_names = [name for name in names if not has_long_name(name)]
        if short_names:
            yield from backing_rows(
                self.backend,
                base,
                req,
                backing_prefix(min(short_names)),
                backing_prefix(max(short_names)) + AFTER_ALL,
            )
        for name in names:
            if has_long_name(name):
                prefix = backing_prefix(name)
                yield from backing_rows(
                    self.backend, base, req, prefix, prefix + AFTER_ALL
                )


def backing_rows(
    backend: Backend, base: dict, req: Request, start: str, end: str
) -> Iterator[dict]:
    """Rows of the account listing, hidden ones too, between two names.

    :param base: an environment of :meth:`Backend.owner_env`
    :param req: a request to the account, or below it
    :raises BackendError: if the account can't be listed
    """
    version, account, _rest = req.split_path(2, 3, True)
    marker = start
    while True:
        answer = backend.send(
            base,
            'GET',
            f'/{version}/{account}',
            query=f'format=json&limit={ACCOUNT_LISTING_LIMIT}'
            f'&marker={quote(marker)}&end_marker={quote(end)}',
        )
        if answer.status in (HTTP_NOT_FOUND, HTTP_GONE):
            return
        if not answer.is_success:
            raise BackendError(None, answer.status)
        rows = answer.rows()
        yield from (row for row in rows if 'name' in row)
        if len(rows) < ACCOUNT_LISTING_LIMIT:
            return
        marker = rows[-1]['name']


def forget_backing_counts(env: dict, account: str) -> None:
    """Have an account's backing containers counted anew."""
    SharedCache(env).delete(COUNTS_KEY.format(account=account))
