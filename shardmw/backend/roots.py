# SPDX-License-Identifier: Apache-2.0
"""The state of a root, as all of its replicas prove it.

Swift answers a HEAD with what one replica says, and the proxies cache it. A
replica that was away while a container was deleted and created anew still has
the old layout record. So all replicas are asked here, and the rules of
:mod:`shardmw.core.evidence` decide which layout counts.
"""

from dataclasses import dataclass

from shardmw.backend.answers import Answer, require_success
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.backend.nodes import ask_primaries, replica_of
from shardmw.backend.requests import Backend
from shardmw.core.evidence import (
    Contents,
    Said,
    Verdict,
    contents,
    current,
    last_deletion,
    verdict,
)
from shardmw.core.layout import Layout, parse_record, time_of_id
from shardmw.core.paths import Path
from shardmw.swift import COLLAPSED


@dataclass(frozen=True, slots=True)
class RootState:
    """A root, as the newest of its replicas has it.

    A root that neither exists nor is deleted is absent: no replica that has
    answered has the container, which proves nothing.

    :param answer: that replica's answer to a HEAD; None if the container does
                   not exist
    :param record: the layout that counts; None if the container has never
                   been sharded, or does not exist
    :param deleted: the last deletion that a replica knows of, in seconds since
                    1970; 0 for none
    :param is_deleted: True if a majority of the replicas proves that it was
                       deleted
    :param is_revived: True if, after the deletion, only rows have created the
                       container again, without metadata
    :param holders: how many replicas have the layout's record
    :param replicas: how many replicas there are
    :param answered: how many of them have answered
    :param knowing: how many of them have a database
    :param was_split: True if Swift's own sharder has split a replica, also if
                      it has shrunk all ranges into the root since
    """

    answer: Answer | None
    record: Layout | None
    deleted: float = 0
    is_deleted: bool = False
    is_revived: bool = False
    holders: int = 0
    replicas: int = 0
    answered: int = 0
    knowing: int = 0
    was_split: bool = False

    @property
    def exists(self) -> bool:
        """Return True if the container exists, plain or sharded."""
        return self.answer is not None

    @property
    def is_put(self) -> bool:
        """Return True if it was put after each deletion that is known.

        If not, no record is written to it: Swift may still clear its metadata,
        or a later PUT may bring back a record that did not count meanwhile.
        """
        return self.exists and replica_of(self.answer).put > self.deleted

    @property
    def is_absent(self) -> bool:
        """Return True if no answer shows the container, which is no proof."""
        return not (self.exists or self.is_deleted)

    @property
    def is_proved(self) -> bool:
        """Return True if a majority of replicas has a database.

        Fewer may decide what clients get, but nothing is moved or deleted on
        their word: a replica that has missed a creation may be the only one
        that is left.
        """
        return 2 * self.knowing > self.replicas

    @property
    def layout(self) -> Layout | None:
        """Return the layout, None if the container is plain or gone."""
        is_plain = self.record is None or self.record.is_plain
        return None if is_plain else self.record

    @property
    def is_safe(self) -> bool:
        """Return True if a majority of replicas has the layout.

        Swift also acknowledges a PUT that handoffs have taken, but handoffs
        are not asked.
        """
        return 2 * self.holders > self.replicas

    @property
    def policy_index(self) -> int:
        """Return the index of the storage policy of a root that exists."""
        headers = self.answer.headers
        return int(headers.get('X-Backend-Storage-Policy-Index', 0))


def read_root(
    backend: Backend, env: dict, path: Path, waits: bool = False
) -> RootState:
    """Ask all replicas of a root and return what they prove.

    :param waits: True to wait for every replica that may answer, before a step
                  that cannot be undone
    :raises BackendError: if they prove nothing, and the root is not absent
                          either
    :raises LayoutError: if a record cannot be read
    """
    return state_of(_heads(backend, env, path, waits))


def state_of(answers: list[Answer]) -> RootState:
    """Return the state that replicas will have when Swift has replicated them.

    A deletion that any replica knows of undoes all that was put before it, the
    record included. A replica that was away may still have an earlier record,
    even if it took the PUT that created the container anew. An id shows when
    its record was put: :mod:`shardmw.proxy.creation` commits no record with an
    id from before a deletion. Of several records, the one with the latest
    serial counts.

    :param answers: the answer of each replica to a HEAD
    :raises BackendError: if they prove nothing
    :raises LayoutError: if a record cannot be read
    """
    replicas = [replica_of(answer) for answer in answers]
    found = verdict(replicas)
    deleted = last_deletion(replicas)
    answered = sum(a.is_success or a.is_missing for a in answers)
    numbers = {
        'deleted': deleted,
        'replicas': len(answers),
        'answered': answered,
        'knowing': sum(each.knows for each in replicas),
        'was_split': any(
            a.is_success and (a.is_split or a.sharding_state == COLLAPSED)
            for a in answers
        ),
    }
    if found is Verdict.UNKNOWN:
        state = RootState(_without_record(answers), None, **numbers)
        if state.exists and state.is_proved:
            return state
        raise BackendError(None, 503, unproved(state))
    if found is not Verdict.ALIVE:
        is_deleted = found is Verdict.DELETED
        return RootState(None, None, is_deleted=is_deleted, **numbers)
    alive = [(answers[i], replicas[i]) for i in current(replicas)]
    if all(replica.put <= deleted for _, replica in alive):
        newest = max((a for a, _ in alive), key=lambda a: a.object_count)
        return RootState(newest, None, is_revived=True, **numbers)
    layouts = [
        (parse_record(answer.headers[RECORD_HEADER]), answer)
        for answer, _ in alive
        if RECORD_HEADER in answer.headers
    ]
    layouts = [
        (layout, a) for layout, a in layouts if time_of_id(layout.id) > deleted
    ]
    if layouts:
        layout, newest = max(layouts, key=lambda pair: pair[0].serial)
        holders = sum(each.serial == layout.serial for each, _ in layouts)
        return RootState(newest, layout, holders=holders, **numbers)
    newest, _ = max(alive, key=lambda pair: pair[1].put)
    return RootState(newest, None, **numbers)


def _without_record(answers: list[Answer]) -> Answer | None:
    """Return the newest answer of a container that can only be a plain one.

    A DELETE that Swift refused because most replicas list a row may have
    deleted the replica that lacks it. Swift goes on with the others.

    :returns: None if a replica is silent or has a record of a layout
    """
    said = [replica_of(answer) for answer in answers]
    is_silent = any(each.said is Said.SILENT for each in said)
    if is_silent or any(RECORD_HEADER in a.headers for a in answers):
        return None
    alive = [a for a in answers if a.is_success]
    return max(alive, key=lambda a: replica_of(a).put, default=None)


def contents_of(backend: Backend, env: dict, path: Path) -> Contents:
    """Ask all replicas of a container and return what they prove of its rows.

    If Swift's own sharder has split the container, its figures are only the
    last reports of its ranges, so it is listed, too. Swift goes by the
    figures: a DELETE deletes each replica whose figures are 0.

    :raises BackendError: if a split container cannot be listed
    """
    answers = _heads(backend, env, path, waits=True)
    is_split = any(answer.is_success and answer.is_split for answer in answers)
    if is_split and _lists_rows(backend, env, path):
        return Contents.HOLDS
    return contents([replica_of(answer) for answer in answers])


def _lists_rows(backend: Backend, env: dict, path: Path) -> bool:
    """Return True if Swift lists a row of a container."""
    listing = backend.send(
        backend.owner_env(env),
        'GET',
        path.to_wsgi(),
        'format=json&limit=1',
        {'X-Newest': 'true'},
    )
    require_success([listing])
    return bool(listing.rows())


def lists_nothing(backend: Backend, env: dict, path: Path) -> bool:
    """Return True if each replica of a root has answered, and lists no row."""
    return _has_figures(backend, env, path, has_rows=False)


def require_reported(
    backend: Backend, env: dict, path: Path, is_sharded: bool
) -> None:
    """Check that the figures of a root that is split show if it has rows.

    They are what Swift's sharder has reported last. Clients see them, and
    Swift deletes the container if they are 0, and only then.

    :param is_sharded: True if all rows have moved out of the root
    :raises BackendError: if those of a replica do not, or if the root cannot
                          be listed
    """
    has_rows = not is_sharded and _lists_rows(backend, env, path)
    if not _has_figures(backend, env, path, has_rows):
        raise BackendError(
            None,
            503,
            "Swift's sharder has yet to report that the shard containers of "
            f'{path.place} {"have rows" if has_rows else "are empty"} (run '
            'container-sharder, then container-replicator)',
        )


def _has_figures(
    backend: Backend, env: dict, path: Path, has_rows: bool
) -> bool:
    """Return True if each replica has answered, and agrees with `has_rows`."""
    replicas = map(replica_of, _heads(backend, env, path, waits=True))
    return all(
        each.is_alive and (each.objects > 0) == has_rows for each in replicas
    )


def unproved(root: RootState) -> str:
    """Return the text for a root whose replicas do not prove its state."""
    return (
        f'{root.knowing} of {root.replicas} replicas of the root have a '
        f'database, {root.answered} have answered'
    )


def unproved_empty(path: Path) -> str:
    """Return the text for a container of unknown contents."""
    return f'the replicas of {path.place} do not prove that it is empty'


def _heads(
    backend: Backend, env: dict, path: Path, waits: bool
) -> list[Answer]:
    return ask_primaries(
        backend.proxy_app,
        env,
        *path.place,
        'HEAD',
        needs_all=False,
        waits=waits,
    )
