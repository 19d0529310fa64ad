# SPDX-License-Identifier: Apache-2.0
"""The state of a root by all of its replicas.

Swift answers a HEAD with what one replica says, and the proxies cache it. A
replica that was away while a container was deleted and created anew still has
the old layout record. So what decides a layout is asked of all replicas here.
"""

import dataclasses
from dataclasses import dataclass

from shardmw.backend.answers import Answer
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.backend.nodes import ask_primaries, is_majority
from shardmw.backend.requests import Backend
from shardmw.paths import Path
from shardmw.record import Layout, parse_record, time_of_id

PUT_TIMESTAMP = 'X-Backend-Put-Timestamp'
DELETE_TIMESTAMP = 'X-Backend-Delete-Timestamp'


@dataclass(frozen=True, slots=True)
class RootState:
    """A root, as the newest of its replicas has it.

    :param answer: that replica's answer to a HEAD; None if the container does
                   not exist
    :param record: the layout that counts; None if the container has never
                   been sharded, or does not exist
    :param deleted: the last deletion that a replica knows of, in seconds since
                    1970; 0 for none
    :param is_revived: True if the container was not put since, but rows have
                       created it again, without metadata
    :param holders: how many replicas have the layout's record
    :param replicas: how many replicas there are
    :param missing: how many of them answer 404
    """

    answer: Answer | None
    record: Layout | None
    deleted: float = 0
    is_revived: bool = False
    holders: int = 0
    replicas: int = 0
    missing: int = 0

    @property
    def exists(self) -> bool:
        """Return True if the container exists, plain or sharded."""
        return self.answer is not None

    @property
    def is_deleted(self) -> bool:
        """Return True if it does not exist, as a majority of replicas says."""
        return not self.exists and 2 * self.missing > self.replicas

    @property
    def layout(self) -> Layout | None:
        """Return the layout, None if the container is plain or gone."""
        is_plain = self.record is None or self.record.is_plain
        return None if is_plain else self.record

    @property
    def is_safe(self) -> bool:
        """Return True if a majority of replicas has the layout.

        Swift acknowledges a PUT that handoffs have taken, but they are not
        asked.
        """
        return 2 * self.holders > self.replicas

    @property
    def policy_index(self) -> int:
        """Return the index of the storage policy of a root that exists."""
        headers = self.answer.headers
        return int(headers.get('X-Backend-Storage-Policy-Index', 0))


def read_root(backend: Backend, env: dict, path: Path) -> RootState:
    """Ask all replicas of a root and return what the newest of them says.

    :raises BackendError: if fewer than a majority of them answer
    :raises LayoutError: if a record cannot be read
    """
    answers = _heads(backend, env, path)
    told = [a for a in answers if a.is_success or a.is_missing]
    if not is_majority(told, len(answers)):
        raise BackendError(
            None, 503, f'{len(told)} of {len(answers)} roots answered'
        )
    return dataclasses.replace(
        newest_state(told),
        replicas=len(answers),
        missing=sum(answer.is_missing for answer in told),
    )


def newest_state(answers: list[Answer]) -> RootState:
    """Return the state of the replicas after Swift has replicated them.

    A deletion that any replica knows of undoes all that was put before it, the
    record included. A replica that was away may still have an earlier record,
    even if it took the PUT that created the container anew. An id tells when
    its record was put: :meth:`Lifecycle.put` commits no record with an id from
    before a deletion. Of several records, the one with the latest serial
    counts.

    :param answers: 2xx and 404 answers to HEADs
    :raises LayoutError: if a record cannot be read
    """
    deleted = max(map(_deleted, answers), default=0)
    alive = [a for a in answers if a.is_success and _put(a) > deleted]
    if not alive:
        return _revived_state(answers, deleted)
    layouts = [
        (parse_record(a.headers[RECORD_HEADER]), a)
        for a in alive
        if RECORD_HEADER in a.headers
    ]
    layouts = [
        (layout, a) for layout, a in layouts if time_of_id(layout.id) > deleted
    ]
    if layouts:
        layout, answer = max(layouts, key=lambda pair: pair[0].serial)
        holders = sum(each.serial == layout.serial for each, _ in layouts)
        return RootState(answer, layout, deleted, holders=holders)
    return RootState(max(alive, key=_put), None, deleted)


def _revived_state(answers: list[Answer], deleted: float) -> RootState:
    """Return the state of a root that was not put since it was deleted.

    A replica that knows of the deletion and answers 2xx all the same has got
    rows since.
    """
    revived = [a for a in answers if a.is_success and _deleted(a) == deleted]
    if not revived:
        return RootState(None, None, deleted)
    answer = max(revived, key=lambda answer: answer.object_count)
    return RootState(answer, None, deleted, is_revived=True)


def _heads(backend: Backend, env: dict, path: Path) -> list[Answer]:
    if backend.proxy_app:
        return ask_primaries(
            backend.proxy_app,
            env,
            path.account,
            path.container,
            'HEAD',
            needs_all=False,
        )
    headers = {'X-Newest': 'true'}
    base = backend.owner_env(env, uncached=True)
    root = path.of_container(path.container).to_wsgi()
    return [backend.send(base, 'HEAD', root, headers=headers)]


def _put(answer: Answer) -> float:
    """Return when a replica was put: 1 if the answer does not say."""
    return _seconds(answer, PUT_TIMESTAMP, '1')


def _deleted(answer: Answer) -> float:
    return _seconds(answer, DELETE_TIMESTAMP, '0')


def _seconds(answer: Answer, name: str, default: str) -> float:
    text = answer.headers.get(name) or default
    return float(text.partition('_')[0])
