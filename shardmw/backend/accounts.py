# SPDX-License-Identifier: Apache-2.0
"""The objects and bytes that an account's hidden account counts.

An account's own database counts the rows of its plain containers and of roots
only. The hidden account's database counts those of the backing containers.
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping, MutableMapping
from urllib.parse import quote

from swift.common.http import HTTP_GONE, HTTP_NOT_FOUND

from shardmw.backend.answers import ContainerStats, next_marker
from shardmw.backend.containers import BackendError
from shardmw.backend.nodes import ask_primaries
from shardmw.backend.page_limits import account_page
from shardmw.backend.requests import Backend, newest_header
from shardmw.core.evidence import is_decided
from shardmw.core.paths import API_VERSION, Path
from shardmw.core.placement import (
    backing_base,
    backing_prefix,
    hidden_account,
    owner_of,
    parse_backing,
)
from shardmw.swift.memcached import SharedCache

OBJECT_COUNT_HEADER = 'X-Account-Object-Count'
BYTES_USED_HEADER = 'X-Account-Bytes-Used'
POLICY_PREFIX = 'X-Account-Storage-Policy-'
FIGURE_SUFFIXES = ('-Object-Count', '-Bytes-Used')

ROWS_KEY = 'shardmw/account-rows/{account}/{range}'

#: Sorts after every character of a name that follows a prefix.
AFTER_ALL = '\U0010ffff'

#: The statuses of an account that does not exist.
GONE = (HTTP_NOT_FOUND, HTTP_GONE)

NOTHING = ContainerStats(0, 0)


class AccountStats:
    """Reads the figures of an account's backing containers.

    :param seconds: how long to keep the figures of a page of the account's
                    listing in memcached
    """

    def __init__(self, backend: Backend, seconds: int) -> None:
        self.backend = backend
        self.seconds = seconds

    def totals(self, env: dict, account: str) -> dict[str, int]:
        """Return the totals of an account's hidden account, by header.

        :returns: an empty dictionary if there is no hidden account
        :raises BackendError: if the hidden account does not answer
        """
        hidden = hidden_account(account)
        if not self.backend.account_exists(env, hidden):
            return {}
        answer = self.backend.send(
            self.backend.owner_env(env),
            'HEAD',
            Path(API_VERSION, hidden).to_wsgi(),
            headers=newest_header(env),
        )
        if answer.status in GONE:
            return {}
        if not answer.is_success:
            raise _failure(hidden, answer.status)
        return {
            name: int(value)
            for name, value in answer.headers.items()
            if _is_figure(name)
        }

    def of_containers(
        self, env: dict, account: str, containers: Iterable[str]
    ) -> dict[str, ContainerStats]:
        """Return the figures of the backing containers of some containers.

        :param containers: the names of one page of the account's listing
        :returns: the figures of the containers that have any, by name
        :raises BackendError: if the hidden account does not answer
        """
        hidden = hidden_account(account)
        names = {backing_base(name): name for name in containers}
        if not names or not self.backend.account_exists(env, hidden):
            return {}
        prefixes = [backing_prefix(name) for name in names.values()]
        start, end = min(prefixes), max(prefixes) + AFTER_ALL
        return {
            names[base]: ContainerStats(*stats)
            for base, stats in self._between(env, hidden, start, end).items()
            if base in names
        }

    def _between(
        self, env: dict, hidden: str, start: str, end: str
    ) -> dict[str, list[int]]:
        """Return the figures of backing containers by the base of their names.

        :returns: objects and bytes, summed over layouts and shards
        """
        cache = SharedCache(env)
        digest = hashlib.sha256(f'{start}\0{end}'.encode()).hexdigest()
        key = ROWS_KEY.format(account=hidden, range=digest)
        figures = cache.get(key)
        if figures is not None:
            return figures
        with self.backend.turn(env, owner_of(hidden)):
            # Another request may have read them while this one waited.
            figures = cache.get(key)
            if figures is None:
                figures = self._read(env, hidden, start, end)
                cache.set(key, figures, self.seconds)
        return figures

    def _read(
        self, env: dict, hidden: str, start: str, end: str
    ) -> dict[str, list[int]]:
        figures = {}
        base = self.backend.owner_env(env)
        path = Path(API_VERSION, hidden)
        for row in account_rows(self.backend, base, path, start, end):
            name = parse_backing(row['name'])
            if name:
                sums = figures.setdefault(name.base, [0, 0])
                sums[0] += row['count']
                sums[1] += row['bytes']
        return figures


def add_counts(
    headers: MutableMapping[str, str], counts: Mapping[str, int]
) -> None:
    """Add counts to the headers of an answer.

    :param counts: by header
    """
    for name, count in counts.items():
        headers[name] = str(int(headers.get(name, 0)) + count)


def account_rows(
    backend: Backend, base: dict, account: Path, start: str, end: str
) -> Iterable[dict]:
    """List the containers of an account between two names.

    :param base: an environment of :meth:`Backend.owner_env`
    :raises BackendError: if the account cannot be listed
    """
    marker, page = start, account_page()
    while True:
        answer = backend.send(
            base,
            'GET',
            account.to_wsgi(),
            query=f'format=json&limit={page}'
            f'&marker={quote(marker)}&end_marker={quote(end)}',
        )
        if answer.status in GONE:
            return
        if not answer.is_success:
            raise _failure(account.account, answer.status)
        rows = answer.rows()
        yield from (row for row in rows if 'name' in row)
        if len(rows) < page:
            return
        marker = next_marker(
            f'account {account.account}', marker, rows[-1]['name']
        )


def counts_of_replicas(
    backend: Backend, env: dict, account: str
) -> dict[str, int] | None:
    """Return the containers that any replica of an account lists.

    One replica may lack most of them: an account server that has no database
    of a hidden account creates one for the report of any container.

    :returns: the largest object count that a replica has, by name; None if
              all have answered, and none has the account
    :raises BackendError: if the replicas that have the account do not speak
                          for all (:mod:`shardmw.core.evidence`)
    """
    counts: dict[str, int] = {}
    marker, limit = '', account_page()
    while True:
        answers = ask_primaries(
            backend.proxy_app,
            env,
            account,
            None,
            'GET',
            query=f'format=json&limit={limit}&marker={quote(marker)}',
        )
        knowing = sum(answer.is_success for answer in answers)
        silent = sum(answer.status not in GONE for answer in answers) - knowing
        if knowing == silent == 0:
            return None
        if not is_decided(knowing, silent, len(answers)):
            raise _failure(account, 503)
        pages = [answer.rows() for answer in answers if answer.is_success]
        for row in itertools.chain(*pages):
            name = row['name']
            counts[name] = max(row['count'], counts.get(name, 0))
        ends = [page[-1]['name'] for page in pages if len(page) == limit]
        if not ends:
            return counts
        marker = next_marker(f'account {account}', marker, min(ends))


def _is_figure(name: str) -> bool:
    """Return True for the headers with objects and bytes of an account."""
    if name in (OBJECT_COUNT_HEADER, BYTES_USED_HEADER):
        return True
    return name.startswith(POLICY_PREFIX) and name.endswith(FIGURE_SUFFIXES)


def _failure(account: str, status: int) -> BackendError:
    """Return the error for an account that cannot be read."""
    return BackendError(None, status, f'account {account} answered {status}')
