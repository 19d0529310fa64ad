# SPDX-License-Identifier: Apache-2.0
"""Account requests: statistics, listings and deletion.

The account's database has the counts of the roots of sharded containers. The
counts of their backing containers come from the hidden account.
"""

from collections.abc import Callable, Mapping
from functools import partial

import orjson
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPConflict, Request

from shardmw.backend.accounts import (
    OBJECT_COUNT_HEADER,
    AccountStats,
    add_counts,
    counts_of_replicas,
)
from shardmw.backend.answers import Answer, Verbatim, unavailable
from shardmw.backend.containers import BackendError, authorize
from shardmw.backend.metrics import ACCOUNT_REQUESTS
from shardmw.backend.nodes import ask_primaries
from shardmw.backend.requests import Backend
from shardmw.backend.roots import contents_of, unproved_empty
from shardmw.core.evidence import Contents
from shardmw.core.paths import Path
from shardmw.core.placement import (
    REGISTER,
    can_be_sharded,
    hidden_account,
    owner_of,
)
from shardmw.proxy.info_app import read_and_share, share_with_sums

JSON = 'application/json'

#: How many backing containers to ask at a time before an account is deleted.
AT_A_TIME = 32


class AccountController:
    """Handles requests to accounts."""

    def __init__(
        self, app: Callable, backend: Backend, stats: AccountStats
    ) -> None:
        self.app = app
        self.backend = backend
        self.stats = stats

    def __call__(self, req: Request, path: Path) -> Callable:
        """Return the WSGI application that answers a request."""
        try:
            if req.method in ('GET', 'HEAD'):
                return self._read(req, path)
            if req.method == 'DELETE':
                return self._delete(req, path)
        except BackendError as err:
            return unavailable(req, path, self.backend, err)
        return self.app

    def _read(self, req: Request, path: Path) -> Callable:
        answer = read_and_share(req.environ, path, self.backend.pass_on, req)
        if not answer.is_success or OBJECT_COUNT_HEADER not in answer.headers:
            return Verbatim(answer)
        self.backend.metrics.note(ACCOUNT_REQUESTS, method=req.method)
        answer = answer._replace(headers=HeaderKeyDict(answer.headers))
        totals = self.stats.totals(req.environ, path.account)
        add_counts(answer.headers, totals)
        share_with_sums(req.environ, path, answer.headers)
        if req.method == 'GET':
            answer = self._with_sums(req, path, answer)
        return Verbatim(answer)

    def _with_sums(self, req: Request, path: Path, answer: Answer) -> Answer:
        """Return a listing with the counts of the shards added to its rows."""
        if JSON not in answer.headers.get('Content-Type', ''):
            return answer
        rows = answer.rows()
        named = {
            row['name']: row
            for row in rows
            if 'name' in row and can_be_sharded(row['name'])
        }
        sums = self.stats.of_containers(req.environ, path.account, named)
        if not sums:
            return answer
        for name, stats in sums.items():
            named[name]['count'] += stats.object_count
            named[name]['bytes'] += stats.bytes_used
        body = orjson.dumps(rows)
        answer.headers['Content-Length'] = str(len(body))
        return answer._replace(body=[body])

    def _delete(self, req: Request, path: Path) -> Callable:
        """Delete an account, unless its backing containers hold objects.

        Swift's account reaper deletes the objects that the account's
        containers list. It would not find those that backing containers list.
        """
        hidden = Path(path.version, hidden_account(path.account))
        if authorize(req) or self._is_refused(req):
            return self.app
        try:
            counts = counts_of_replicas(
                self.backend, req.environ, hidden.account
            )
        except BackendError:
            if self._is_registered(req.environ, path):
                raise
            counts = None
        if counts is None:
            return self.app
        if self._holds_objects(req.environ, hidden, counts):
            return HTTPConflict(
                request=req,
                content_type='text/plain',
                body='The account has sharded containers with objects: '
                'delete these first',
            )
        answer = self.backend.send_as_client(req)
        if answer.is_success:
            self.backend.send(
                self.backend.owner_env(req.environ), 'DELETE', hidden.to_wsgi()
            )
        return Verbatim(answer)

    def _is_registered(self, env: dict, path: Path) -> bool:
        """Return False if the account has never had a sharded container."""
        answers = ask_primaries(
            self.backend.proxy_app, env, REGISTER, path.account, 'HEAD'
        )
        return not all(answer.is_missing for answer in answers)

    def _is_refused(self, req: Request) -> bool:
        """Return True if Swift refuses this request for any account."""
        is_allowed = self.backend.proxy_app.allow_account_management
        return bool(req.query_string) or not is_allowed

    def _holds_objects(
        self, env: dict, hidden: Path, counts: Mapping[str, int]
    ) -> bool:
        """Return True if a backing container holds an object.

        :param counts: the object counts that the hidden account lists. They
                       may be stale, so they only say which containers to ask
                       first
        :raises BackendError: if the replicas of a backing container do not
                              prove whether it holds one
        """
        paths = [
            hidden.of_container(name)
            for name in sorted(counts, key=counts.__getitem__, reverse=True)
        ]
        with self.backend.turn(env, owner_of(hidden.account)):
            for start in range(0, len(paths), AT_A_TIME):
                found = self.backend.for_each(
                    partial(contents_of, self.backend, env),
                    paths[start : start + AT_A_TIME],
                    AT_A_TIME,
                )
                if Contents.HOLDS in found:
                    return True
                if Contents.UNKNOWN in found:
                    unknown = paths[start + found.index(Contents.UNKNOWN)]
                    raise BackendError(None, 503, unproved_empty(unknown))
        return False
