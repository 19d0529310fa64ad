# SPDX-License-Identifier: Apache-2.0
"""The register: which accounts have sharded containers, and which change.

It is the hidden account ``.shards_shardmw_``. Its containers are named like
the accounts that have, or have had, a sharded container. Each lists the
containers of that account whose layout is changing, in rows without objects.
"""

from collections.abc import Iterator
from urllib.parse import quote

from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.pages import container_page
from shardmw.backend.requests import Backend
from shardmw.backend.rows import deletion, merge_rows
from shardmw.paths import Path
from shardmw.placement import REGISTER
from shardmw.stats.accounts import account_rows

API_VERSION = 'v1'


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

    def changes(self, account: str) -> Iterator[Path]:
        """List the containers of an account whose layout is changing.

        :raises BackendError: if the register does not answer
        """
        marker = ''
        while rows := self._list(account, marker).rows():
            for row in rows:
                yield Path(API_VERSION, account, row['name'])
            marker = rows[-1]['name']

    def note(self, path: Path) -> None:
        """Add a container."""
        row = deletion(path.container, Timestamp.now().internal, 0)
        self._merge(path, {**row, 'content_type': 'text/plain', 'deleted': 0})

    def remove(self, path: Path) -> None:
        """Remove a container."""
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
        self, account: str, marker: str = '', limit: int = 1000
    ) -> Answer:
        limit = container_page(limit)
        answer = self.backend.send(
            self.base,
            'GET',
            Path(API_VERSION, REGISTER, account).to_wsgi(),
            f'format=json&limit={limit}&marker={quote(marker)}',
            {'X-Newest': 'true'},
        )
        if not (answer.is_success or answer.is_missing):
            raise BackendError(
                None,
                answer.status,
                f'container {REGISTER}/{account} answered {answer.status}',
            )
        return answer._replace(body=[]) if answer.is_missing else answer
