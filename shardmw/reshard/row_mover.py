# SPDX-License-Identifier: Apache-2.0
"""Move rows from one container's database to another.

A container database keeps, for each name, the row with the newest timestamp,
so a copied row never replaces a newer one, and copying is idempotent. A row is
removed from its old place some time after every replica of the new one has it
on its disk.
"""

import base64
from collections import defaultdict
from collections.abc import Callable, Iterable

from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer, require_success
from shardmw.backend.requests import Backend
from shardmw.backend.rows import (
    COPY,
    REMOVAL,
    Moving,
    make_durable,
    merge_rows,
    moved_row,
    tombstone,
)
from shardmw.core.paths import Path, Place

#: How many objects to ask for, or places to write to, at once.
AT_A_TIME = 32

#: Marks the ETag of a large object's manifest in a listing.
MANIFEST_MARK = 'slo_etag='

#: Marks an encrypted ETag. Encryption hides the mark of a manifest, but not
#: that its ETag is longer.
ENCRYPTED_MARK = 'swift_meta='
ENCRYPTED_ETAG_LENGTH = len(base64.b64encode(bytes(32)))


class RowMover:
    """Copies and removes rows of one container's objects.

    :param path: the path of the logical container
    :param offset: the offset of the layout in which rows move
    :param check: see :class:`shardmw.backend.rows.Moving`
    """

    def __init__(
        self,
        backend: Backend,
        env: dict,
        path: Path,
        offset: int,
        check: Callable[[], None],
    ) -> None:
        self.backend = backend
        self.env = env
        self.path = path
        self.offset = offset
        self.check = check

    def copy(
        self,
        rows: list[dict],
        place: Place,
        policy_index: int,
        adds_offset: bool = False,
    ) -> bool:
        """Copy listed rows to a place.

        :param adds_offset: True to add the layout's offset to the timestamps,
                            so that rows can return to a place that they have
                            been removed from
        :returns: True if every replica has them
        :raises BackendError: if fewer than a majority have them
        """
        offset = self.offset if adds_offset else 0
        copies = [
            moved_row(row, policy_index, offset)
            for row in self._complete(rows)
        ]
        return merge_rows(
            self.backend,
            self.env,
            place,
            policy_index,
            copies,
            Moving(COPY, self.check),
        )

    def make_durable(self, place: Place) -> bool:
        """Put what was copied to a place on the disks of its replicas.

        :returns: True if every replica has done so
        """
        return make_durable(self.backend, self.env, place)

    def remove(
        self, rows: list[dict], place: Place, policy_index: int
    ) -> bool:
        """Remove listed rows from a place.

        :returns: True if every replica has removed them
        :raises BackendError: if fewer than a majority have removed them
        """
        gone = [tombstone(row, policy_index, self.offset) for row in rows]
        return merge_rows(
            self.backend,
            self.env,
            place,
            policy_index,
            gone,
            Moving(REMOVAL, self.check),
        )

    def _complete(self, rows: list[dict]) -> list[dict]:
        """Return listed rows with the sizes that their database has.

        For a manifest, the listing shows the size of the large object, which
        the database keeps in the content type.

        :raises BackendError: if a manifest does not answer
        """
        manifests = [row for row in rows if _may_be_manifest(row['hash'])]
        if not manifests:
            return rows
        base = self.backend.owner_env(self.env)
        answers = self.backend.fan_out(
            lambda _shard, name: self.backend.send(
                base, 'HEAD', self.path._replace(name=name).to_wsgi()
            ),
            [(None, row['name']) for row in manifests],
            AT_A_TIME,
        )
        require_success(a for a in answers if not a.is_missing)
        sizes = {
            row['name']: int(answer.headers.get('Content-Length', 0))
            if answer.is_success
            else 0
            for row, answer in zip(manifests, answers, strict=True)
        }
        return [
            {
                **row,
                'bytes': sizes[row['name']],
                'content_type': f'{row["content_type"]}'
                f';swift_bytes={row["bytes"]}',
            }
            if row['name'] in sizes
            else row
            for row in rows
        ]


def heads_of_objects(
    backend: Backend, base: dict, path: Path, policy_index: int, rows: list
) -> list[Answer]:
    """HEAD the objects of rows, on all of their replicas.

    :param base: an environment of :meth:`Backend.owner_env`
    :param path: the path of the logical container
    """
    headers = {
        'X-Newest': 'true',
        'X-Backend-Storage-Policy-Index': str(policy_index),
    }
    return backend.fan_out(
        lambda _shard, row: backend.send(
            base,
            'HEAD',
            path._replace(name=row['name']).to_wsgi(),
            headers=headers,
        ),
        [(None, row) for row in rows],
        AT_A_TIME,
    )


def deleted_at(answer: Answer) -> Timestamp:
    """Return when a missing object was deleted, 0 if no replica knows it."""
    return Timestamp(answer.headers.get('X-Backend-Timestamp', 0))


def by_place(
    rows: Iterable[dict], place_of: Callable[[str], Place]
) -> dict[Place, list[dict]]:
    """Group rows by the place that a function returns for their names."""
    places = defaultdict(list)
    for row in rows:
        places[place_of(row['name'])].append(row)
    return places


def _may_be_manifest(etag: str) -> bool:
    """Return True if a row may be that of a large object's manifest.

    :param etag: the ETag as the container's database has it
    """
    value, _, parameters = etag.partition(';')
    if ENCRYPTED_MARK in parameters:
        return len(value) > ENCRYPTED_ETAG_LENGTH
    return MANIFEST_MARK in parameters
