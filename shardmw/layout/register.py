# SPDX-License-Identifier: Apache-2.0
"""The register: which accounts have sharded containers, and which change.

It is the hidden account ``.shardmw_``. Its containers are named like the
accounts that have, or have had, a sharded container. Each lists the containers
of that account whose layout is changing, in rows without objects.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.requests import Backend
from shardmw.backend.rows import deletion, merge_rows
from shardmw.paths import Path
from shardmw.placement import REGISTER
from shardmw.record import Layout
from shardmw.stats.accounts import account_rows

API_VERSION = 'v1'


class Change(NamedTuple):
    """A container whose layout is changing.

    :param backing_count: how many backing containers it may have
    """

    path: Path
    backing_count: int


class Register:
    """Reads and writes the register."""

    def __init__(self, backend: Backend, env: dict) -> None:
        self.backend = backend
        self.env = env
        self.base = backend.owner_env(env)

    def accounts(self) -> Iterator[str]:
        """List the accounts that have had a sharded container.

        :raises BackendError: if the register does not answer
        """
        path = Path(API_VERSION, REGISTER)
        for row in account_rows(self.backend, self.base, path, '', ''):
            yield row['name']

    def changes(self, account: str, prefix: str = '') -> Iterator[Change]:
        """List the containers of an account whose layout is changing.

        :param prefix: what their names begin with
        :raises BackendError: if the register does not answer
        """
        marker = ''
        while rows := self._list(account, prefix, marker).rows():
            for row in rows:
                path = Path(API_VERSION, account, row['name'])
                yield Change(path, json.loads(row['content_type']))
            marker = rows[-1]['name']

    def note(self, path: Path, layout: Layout) -> None:
        """List a container, with the number of its backing containers.

        :param layout: the layout that it gets
        """
        count = max(layout.backing_count, self.backing_count(path))
        now = Timestamp.now().internal
        self._merge(
            path,
            {
                **deletion(path.container, now, 0),
                'content_type': json.dumps(count),
                'deleted': 0,
            },
        )

    def backing_count(self, path: Path) -> int:
        """Return how many backing containers a listed container may have."""
        for change in self.changes(path.account, path.container):
            if change.path.container == path.container:
                return change.backing_count
        return 0

    def remove(self, path: Path) -> None:
        """List a container no more."""
        row = deletion(path.container, Timestamp.now().internal, 0)
        self._merge(path, row)

    def _merge(self, path: Path, row: dict) -> None:
        answer = self._list(path.account, limit=1)
        index = int(answer.headers.get('X-Backend-Storage-Policy-Index', 0))
        merge_rows(
            self.backend,
            self.env,
            f'{REGISTER}/{path.account}',
            index,
            [{**row, 'storage_policy_index': index}],
        )

    def _list(
        self,
        account: str,
        prefix: str = '',
        marker: str = '',
        limit: int = 1000,
    ) -> Answer:
        answer = self.backend.send(
            self.base,
            'GET',
            Path(API_VERSION, REGISTER, account).to_wsgi(),
            f'format=json&limit={limit}&prefix={quote(prefix)}'
            f'&marker={quote(marker)}',
            {'X-Newest': 'true'},
        )
        if not (answer.is_success or answer.is_missing):
            raise BackendError(
                None, answer.status, f'the register answered {answer.status}'
            )
        return answer._replace(body=[]) if answer.is_missing else answer
