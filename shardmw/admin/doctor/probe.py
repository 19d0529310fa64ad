# SPDX-License-Identifier: Apache-2.0
"""Write to a sharded container through each proxy, and see where rows go."""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

from shardmw.admin.doctor.asking import NoAnswerError, Reply, exchange
from shardmw.admin.doctor.findings import NOT_CHECKED, Finding
from shardmw.backend.containers import (
    SHARD_COUNT_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.core.layout import LayoutError
from shardmw.core.paths import Path, Place, parse_path, wsgi_of
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError
from shardmw.swift.concurrency import Timeout

PREFIX = 'shardmw-doctor-'
BODY = b'shardmw-admin doctor'

#: Asks a proxy for a listing that is not old.
NEW_LISTING = {'X-Listing-Max-Age': '0'}

#: How long a row may take to get where it belongs, in seconds. Object servers
#: wait less for a container server before they leave a row to their updater.
ROW_SECONDS = 5
POLL_SECONDS = 0.2

#: For how long to try to delete the container, and how often, in seconds. A
#: proxy notices within a second that the root has rows.
CLEAN_SECONDS = 20
CLEAN_POLL_SECONDS = 1

#: How much of an error's text to show, in bytes.
MOST_TEXT = 200

ADD_FILTER = (
    'put the filter shardmw into its pipeline as the last filter, with the '
    'cache filter on its left, and reload it'
)


class ProbeError(Exception):
    """A step of the probe failed.

    :param problem: what is wrong
    :param remedy: what to do
    :param is_refused: True if the proxy has changed nothing
    """

    def __init__(
        self, problem: str, remedy: str, is_refused: bool = False
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.is_refused = is_refused

    def at(self, where: str) -> Finding:
        """Return the failure as a finding."""
        return Finding(where, self.problem, self.remedy)


class Probe:
    """Writes, lists and deletes objects in a container of its own.

    :param storage_url: the URL of an account, of which only the path is used
    :param token: the token of an owner of the account
    :param timeout: how many seconds a proxy may be silent
    :raises AdminError: if the URL is not that of an account
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        storage_url: str,
        token: str,
        timeout: float,
    ) -> None:
        self._cluster = cluster
        self._headers = {'X-Auth-Token': token}
        self._timeout = timeout
        self._account_path = urlsplit(storage_url).path.rstrip('/')
        self.path = _account_in(storage_url, self._account_path).of_container(
            PREFIX + secrets.token_hex(6)
        )
        # What may exist: the container, and objects in it.
        self._may_exist = False
        self._names: list[str] = []

    def run(
        self, urls: Sequence[str], creators: Sequence[str], shards: int
    ) -> list[Finding]:
        """Probe all proxies, and delete what the probe has created.

        :param urls: the proxies to probe
        :param creators: those that may create and delete the container
        :param shards: the number of shards of the container
        """
        try:
            found = self._probe(urls, creators[0], shards)
        finally:
            left = self._clean(creators)
        return found + left

    def _probe(
        self, urls: Sequence[str], creator: str, shards: int
    ) -> list[Finding]:
        try:
            target = self._create(creator, shards)
        except ProbeError as err:
            return [err.at(creator)]
        found = []
        for number, url in enumerate(urls):
            try:
                self._check(url, f'object-{number}', target)
            except ProbeError as err:
                found.append(err.at(url))
        return found

    def _create(self, url: str, shards: int) -> LogicalContainer:
        """Create the container and return it.

        :raises ProbeError: if it is not there, or not sharded
        """
        headers = {SHARD_COUNT_HEADER: str(shards)}
        self._may_exist = True
        try:
            self._send(url, 'PUT', (201, 202), headers=headers)
        except ProbeError as err:
            self._may_exist = not err.is_refused
            raise
        try:
            root = self._cluster.root(self.path)
            target = self._cluster.logical(self.path, root)
        except (AdminError, BackendError, LayoutError, Timeout) as err:
            raise ProbeError(
                f'{NOT_CHECKED}the container that it has created cannot be '
                f'read: {err}',
                'see if container servers are down, or swift.conf or a ring '
                'of this machine is not that of the proxy',
            ) from err
        if target is None:
            raise ProbeError(
                f'it creates a plain container if asked for {shards} shards',
                ADD_FILTER,
            )
        return target

    def _check(self, url: str, name: str, target: LogicalContainer) -> None:
        """Write, read, list and delete an object through a proxy.

        :raises ProbeError: for the first step that fails
        """
        self._names.append(name)
        self._send(url, 'PUT', (201,), name, body=BODY)
        shard = target.place_of(name)
        self._wait(lambda: self._row_has_arrived(shard, name))
        read = self._send(url, 'GET', (200,), name)
        if read.body != BODY:
            raise ProbeError(
                'GET of an object does not return what PUT stored',
                'compare its rings with those of other proxies',
            )
        self._wait(lambda: self._is_listed(url, name))
        self._send(url, 'DELETE', (204,), name)
        self._wait(lambda: self._row_is_gone(shard, name))

    def _row_has_arrived(self, shard: Place, name: str) -> ProbeError | None:
        if any(self._rows_in(self.path.place, name)):
            return ProbeError(
                'the row of its object went to the root, not to a shard',
                ADD_FILTER,
            )
        if any(self._rows_in(shard, name)):
            return None
        return ProbeError(
            f'the row of its object is not in {shard}, nor in the root, '
            f'after {ROW_SECONDS} s',
            'see if container servers are slow (swift-recon --async)',
        )

    def _row_is_gone(self, shard: Place, name: str) -> ProbeError | None:
        # An object server may still have to tell some replicas.
        if not all(self._rows_in(shard, name)):
            return None
        return ProbeError(
            f'the row of its deleted object is still in {shard} after '
            f'{ROW_SECONDS} s',
            ADD_FILTER,
        )

    def _is_listed(self, url: str, name: str) -> ProbeError | None:
        query = f'?format=json&prefix={name}'
        reply = self._send(
            url, 'GET', (200,), query=query, headers=NEW_LISTING
        )
        if name in (row.get('name') for row in json.loads(reply.body)):
            return None
        return ProbeError('it does not list an object', ADD_FILTER)

    def _rows_in(self, place: Place, name: str) -> list[bool]:
        """Return which replicas of a container have the row of an object.

        Replicas that do not answer are left out.

        :raises ProbeError: if none answers
        """
        _part, replicas = self._cluster.row_replicas(place, name)
        known = [each.has_it for each in replicas if each.has_it is not None]
        if not known:
            servers = ', '.join(each.server for each in replicas)
            raise ProbeError(
                f'{NOT_CHECKED}no replica of {place} answers',
                f'see if {servers} are up, and reachable from this machine',
            )
        return known

    def _wait(self, look: Callable[[], ProbeError | None]) -> None:
        """Look again and again until all is well.

        :raises ProbeError: if it is not after ROW_SECONDS
        """
        deadline = time.monotonic() + ROW_SECONDS
        while problem := look():
            if time.monotonic() > deadline:
                raise problem
            time.sleep(POLL_SECONDS)

    def _send(
        self,
        url: str,
        method: str,
        statuses: Sequence[int],
        name: str = '',
        query: str = '',
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """Send a request for the container, or an object in it.

        :param statuses: the statuses of success
        :raises ProbeError: if the proxy gives none of these
        """
        path = f'{self._account_path}/{self.path.container}'
        path += f'/{name}' * bool(name) + query
        try:
            reply = exchange(
                url,
                method,
                path,
                self._timeout,
                {**self._headers, **(headers or {})},
                body,
            )
        except NoAnswerError as err:
            raise ProbeError(
                f'{method} {path}: {err}', 'look at the log of the proxy'
            ) from err
        if reply.status not in statuses:
            raise _refused(method, path, reply)
        return reply

    def _clean(self, urls: Sequence[str]) -> list[Finding]:
        """Delete the objects and the container, through any proxy that can."""
        if not self._may_exist:
            return []
        deadline = time.monotonic() + CLEAN_SECONDS
        attempt = 0
        while True:
            url = urls[attempt % len(urls)]
            attempt += 1
            try:
                for name in self._names:
                    self._send(url, 'DELETE', (204, 404), name)
                self._send(url, 'DELETE', (204, 404))
                return []
            except ProbeError as err:
                problem = err.problem
            if time.monotonic() > deadline:
                break
            time.sleep(CLEAN_POLL_SECONDS)
        return [
            Finding(
                str(self.path.place),
                f'the container of the probe cannot be deleted: {problem}',
                f'swift delete {self.path.container}',
            )
        ]


def _refused(method: str, path: str, reply: Reply) -> ProbeError:
    is_refused = reply.status // 100 == 4
    if reply.status in (401, 403):
        return ProbeError(
            f'{NOT_CHECKED}{method} {path} answered {reply.status}',
            'renew OS_AUTH_TOKEN, with a user who owns the account',
            is_refused,
        )
    text = f'{method} {path} answered {reply.status}'
    if reply.status == 400:
        reason = reply.body[:MOST_TEXT].decode('utf-8', 'replace').strip()
        text = f'{text} ({reason})'
    return ProbeError(text, 'look at the log of the proxy', is_refused)


def _account_in(storage_url: str, account_path: str) -> Path:
    """Return the path of the account in a storage URL.

    :raises AdminError: if it is not the URL of an account
    """
    try:
        path = parse_path(wsgi_of(unquote(account_path)))
    except ValueError:
        path = None
    if path is None or path.container is not None:
        raise AdminError(
            f'OS_STORAGE_URL = {storage_url}: not the URL of an account, '
            'like https://swift.example.com/v1/AUTH_ci'
        )
    return path
