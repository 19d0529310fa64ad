# SPDX-License-Identifier: Apache-2.0
"""The register of accounts with sharded containers, and of changes.

It is the hidden account ``.shards_shardmw_``. Its containers are named like
the accounts that have, or have had, a sharded container. Each lists the
containers of that account whose layout is changing, in rows without objects.
A row may have a text with the progress of the change.

The metadata of the hidden account itself has the last note of each process of
the daemon (:mod:`shardmw.reshard.heartbeat`).
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.utils import Timestamp

from shardmw.backend.accounts import account_rows
from shardmw.backend.answers import Answer, next_marker
from shardmw.backend.containers import BackendError
from shardmw.backend.requests import Backend
from shardmw.backend.rows import deletion, merge_rows
from shardmw.core.paths import API_VERSION, Path, Place
from shardmw.core.placement import REGISTER

#: The ETag of rows without one, as Swift writes it for deletions.
NO_ETAG = 'noetag'

#: The header of a process's note, which ends with the number of the process.
#: Swift writes header names in this case.
PROCESS_HEADER = get_sys_meta_prefix('account').title() + 'Shardmw-Resharder-'


class Note(NamedTuple):
    """A container in the register.

    :param text: the text of its row, '' for none
    """

    path: Path
    text: str


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
        for each in self.notes(account):
            yield each.path

    def notes(self, account: str) -> Iterator[Note]:
        """List the containers of an account that are changing, with texts.

        :raises BackendError: if the register does not answer
        """
        marker = ''
        while rows := self._list(account, f'marker={quote(marker)}').rows():
            for row in rows:
                path = Path(API_VERSION, account, row['name'])
                yield Note(path, _text_of(row))
            where = Place(REGISTER, account)
            marker = next_marker(where, marker, rows[-1]['name'])

    def note(self, path: Path, text: str = '') -> None:
        """Add a container, or renew its row.

        If the register has lost the account's container, create it again.

        :param text: the text of the row; '' to keep the present one
        """
        answer = self._find(path)
        if answer.is_missing:
            self.backend.register(self.env, path.account)
            answer = self._find(path)
        for each in answer.rows():
            if each['name'] == path.container:
                text = text or _text_of(each)
        row = {
            **deletion(path.container, Timestamp.now().internal, 0),
            'content_type': 'text/plain',
            'etag': text or NO_ETAG,
            'deleted': 0,
        }
        self._merge(path, row, answer)

    def remove(self, path: Path) -> None:
        """Remove a container."""
        row = deletion(path.container, Timestamp.now().internal, 0)
        self._merge(path, row, self._find(path))

    def note_process(self, number: int, text: str) -> None:
        """Replace the note of a process of the daemon.

        :raises BackendError: if the register does not take it
        """
        answer = self._post_note(number, text)
        if answer.is_missing:
            self.backend.create_register(self.env)
            answer = self._post_note(number, text)
        _require(answer)

    def notes_of_processes(self) -> list[str]:
        """Return the last note of each process of the daemon.

        :raises BackendError: if the register does not answer
        """
        path = Path(API_VERSION, REGISTER).to_wsgi()
        answer = self.backend.send(
            self.base, 'HEAD', path, headers={'X-Newest': 'true'}
        )
        if answer.is_missing:
            return []
        _require(answer)
        return [
            text
            for name, text in answer.headers.items()
            if name.startswith(PROCESS_HEADER)
        ]

    def _post_note(self, number: int, text: str) -> Answer:
        path = Path(API_VERSION, REGISTER).to_wsgi()
        headers = {f'{PROCESS_HEADER}{number}': text}
        return self.backend.send(self.base, 'POST', path, headers=headers)

    def _find(self, path: Path) -> Answer:
        """Return a listing that begins with a container if it is noted."""
        query = f'prefix={quote(path.container)}&limit=1'
        return self._list(path.account, query)

    def _merge(self, path: Path, row: dict, listing: Answer) -> None:
        index = int(listing.headers.get('X-Backend-Storage-Policy-Index', 0))
        merge_rows(
            self.backend,
            self.env,
            Place(REGISTER, path.account),
            index,
            [{**row, 'storage_policy_index': index}],
        )

    def _list(self, account: str, query: str) -> Answer:
        place = Place(REGISTER, account)
        answer = self.backend.send(
            self.base,
            'GET',
            place.path.to_wsgi(),
            f'format=json&{query}',
            {'X-Newest': 'true'},
        )
        if not (answer.is_success or answer.is_missing):
            raise BackendError(
                None,
                answer.status,
                f'container {place} answered {answer.status}',
            )
        return answer._replace(body=[]) if answer.is_missing else answer


def _require(answer: Answer) -> None:
    """Check that the account of the register has answered.

    :raises BackendError: if it has not
    """
    if not answer.is_success:
        raise BackendError(
            None,
            answer.status,
            f'account {REGISTER} answered {answer.status}',
        )


def _text_of(row: dict) -> str:
    """Return the text of a row, which is in the place of an ETag."""
    text = row['hash']
    return '' if text == NO_ETAG else text
