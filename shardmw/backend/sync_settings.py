# SPDX-License-Identifier: Apache-2.0
"""Container sync of sharded containers.

Swift's daemon ``container-sync`` looks for databases that have both
``X-Container-Sync-To`` and ``X-Container-Sync-Key``. For each row it reads the
object through an internal client and sends it to the other container; for
each tombstone it sends a DELETE.

- The backing containers that new rows go to have both headers. Their rows have
  the names of objects of the logical container: :func:`logical_path` returns
  the path at which the internal client finds the object of such a row.
- The root does not sync while the container is sharded. Strays are removed
  from it with tombstones that are newer than the objects, and a DELETE of
  that time would remove the object from the other container. So the root
  keeps ``X-Container-Sync-To`` under another name.
- A change of layout removes rows with such tombstones, too. So the daemon must
  have stopped reading a place before the first row is removed from it, and
  must not read it again before all rows that are to return have returned
  (:attr:`shardmw.core.layout.Layout.synced`).
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, unquote

from swift.common.http import is_client_error
from swift.common.swob import Request
from swift.common.utils import Timestamp

from shardmw.backend.answers import Answer, require_success
from shardmw.backend.containers import (
    LOGICAL_HEADER,
    LOGICAL_NAME,
    STORED_SYNC_TO_HEADER,
    SYNC_KEY_HEADER,
    SYNC_TO_HEADER,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.nodes import ask_primaries, replica_of
from shardmw.backend.requests import Backend, to_environ
from shardmw.backend.roots import read_root
from shardmw.core.evidence import Said
from shardmw.core.layout import (
    SHARD_COUNT_LIMIT,
    TICKS_SECONDS,
    Layout,
    time_of_id,
)
from shardmw.core.paths import Path
from shardmw.core.placement import owner_of

#: How many backing containers to write to at once.
AT_A_TIME = 32

#: How many to write to at once if no client waits for it. With fewer, the
#: requests of clients are slowed down less.
DIRECTED_AT_A_TIME = 4

TIMESTAMP_HEADER = 'X-Timestamp'

(_POLICY_ENV,) = to_environ({'X-Backend-Storage-Policy-Index': ''})


class SyncSettings(NamedTuple):
    """The settings of container sync that a root has; '' if unset."""

    to: str
    key: str

    @classmethod
    def of(cls, root: Answer) -> 'SyncSettings':
        """Return the settings in a root's answer to a HEAD."""
        headers = root.headers
        to = headers.get(SYNC_TO_HEADER) or headers.get(STORED_SYNC_TO_HEADER)
        return cls(to or '', headers.get(SYNC_KEY_HEADER, ''))

    @property
    def are_set(self) -> bool:
        """Return True if a setting is present."""
        return bool(self.to or self.key)

    def headers(self) -> dict[str, str]:
        """Return the headers that give a place these settings."""
        return {SYNC_TO_HEADER: self.to, SYNC_KEY_HEADER: self.key}


def asked_settings(backend: Backend, req: Request) -> dict[str, str]:
    """Return the settings that a client's PUT or POST changes.

    :returns: the new values by header, '' for a setting that is removed
    """
    asked = {}
    for header in (SYNC_TO_HEADER, SYNC_KEY_HEADER):
        if removing_header(header) in req.headers:
            asked[header] = ''
        if header in req.headers and backend.may_use(req.environ, header):
            asked[header] = req.headers[header]
    return asked


def removing_header(header: str) -> str:
    """Return the name of the header that removes a setting."""
    return header.replace('X-', 'X-Remove-', 1)


def root_headers(
    settings: Mapping[str, str], synced: int | None
) -> dict[str, str]:
    """Return the headers that set or remove settings in a root.

    :param synced: see :attr:`shardmw.core.layout.Layout.synced`
    """
    if synced == 0 or SYNC_TO_HEADER not in settings:
        return dict(settings)
    return {
        **settings,
        SYNC_TO_HEADER: '',
        STORED_SYNC_TO_HEADER: settings[SYNC_TO_HEADER],
    }


def shard_headers(
    container: str, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers that set or remove settings in a shard.

    :param container: the name of the logical container
    """
    return {LOGICAL_HEADER: quote(container), **settings}


class SyncChange:
    """A change of the settings of a sharded container by a client.

    The root and the shards store it with the same timestamp, so that the same
    one of several changes counts everywhere.

    :param asked_at: when the request came, before the layout was read. So it
                     is earlier than the next phase of a change of layout
    """

    def __init__(
        self,
        backend: Backend,
        req: Request,
        target: LogicalContainer,
        asked_at: Timestamp,
    ) -> None:
        self.backend = backend
        self.target = target
        self.settings = asked_settings(backend, req)
        self._env = req.environ
        self._base = backend.owner_env(req.environ)
        after_record = time_of_id(target.layout.serial) + TICKS_SECONDS
        self._timestamp = max(asked_at, Timestamp(after_record)).internal

    def refusal(self) -> Answer | None:
        """Return Swift's error for an invalid X-Container-Sync-To, or None.

        Only the container servers know which values are allowed. They check
        the value before they look for the container, so the request names a
        container that cannot exist.

        :raises BackendError: if they do not answer
        """
        to = self.settings.get(SYNC_TO_HEADER)
        if not to or self.target.layout.synced == 0:
            return None
        headers = {SYNC_TO_HEADER: to}
        answer = self._post(2 * SHARD_COUNT_LIMIT, headers)
        if answer.is_missing:
            return None
        if is_client_error(answer.status):
            return answer
        raise BackendError(None, answer.status)

    def root_headers(self) -> dict[str, str]:
        """Return the headers to send to the root."""
        if not self.settings:
            return {}
        headers = root_headers(self.settings, self.target.layout.synced)
        return {**headers, TIMESTAMP_HEADER: self._timestamp}

    def turn(self) -> AbstractContextManager:
        """Hold a turn to write the root and the shards, if settings change.

        :raises NoTurn: if the request would have to wait too long
        """
        if not self.settings:
            return nullcontext()
        return self.backend.turn(self._env, self.target.account)

    def write_shards(self) -> None:
        """Store the settings in the shards that sync.

        :raises BackendError: if a shard does not take them, or the layout has
                              changed: the client has to repeat the request
        """
        if not self.settings:
            return
        headers = shard_headers(self.target.container, self.settings)
        headers[TIMESTAMP_HEADER] = self._timestamp
        answers = self.backend.fan_out(
            lambda shard: self._post(shard, headers),
            [(shard,) for shard in synced_shards(self.target)],
            AT_A_TIME,
        )
        require_success(answers)
        root = read_root(self.backend, self._env, self.target.path)
        if root.record != self.target.layout:
            raise BackendError(
                None, 503, 'the layout has changed meanwhile: try again'
            )

    def _post(self, shard: int, headers: Mapping[str, str]) -> Answer:
        return self.backend.send_to_shard(
            self._base, self.target, shard, 'POST', headers=headers
        )


def synced_shards(target: LogicalContainer) -> range:
    """Return the backing containers that sync if the container syncs."""
    layout = target.layout
    side = layout.rules.syncs
    first = layout.first_shard(side) if side else 0
    return range(first, first + (layout.synced or 0))


def direct_sync(
    backend: Backend, env: dict, target: LogicalContainer, now: float
) -> bool:
    """Switch container sync on where a layout has it, and off elsewhere.

    It is switched on with the time of the layout record, so that later changes
    by clients stay. The call may be repeated.

    :param target: the container in the layout that counts
    :param now: a time before that layout was read, so that what a later layout
                switches on stays on
    :returns: True if the container has settings of container sync
    :raises BackendError: if not every replica takes its part
    """
    settings = agreed_settings(backend, env, target.path)
    calls = [
        (None, target.path, *call)
        for call in _root_posts(settings, target.layout, now)
    ]
    calls += [
        (
            shard,
            target.backing_path(shard),
            *_shard_post(settings, target, shard, now),
        )
        for shard in target.shards()
    ]

    def post(
        shard: int | None, path: Path, headers: dict, timestamp: float
    ) -> Answer:
        ask = partial(ask_primaries, backend.proxy_app, env, *path.place)
        headers = {**headers, TIMESTAMP_HEADER: Timestamp(timestamp).internal}
        answers = ask('POST', headers)
        taken = sum(answer.is_success for answer in answers)
        if taken < len(answers):
            # The answer to a POST does not show a deletion.
            heads = ask('HEAD')
            taken += sum(replica_of(a).said is Said.DELETED for a in heads)
        is_taken = taken >= len(answers)
        status = '200 OK' if is_taken else '503 Replica Away'
        return Answer(shard, status, {}, [])

    require_success(backend.fan_out(post, calls, DIRECTED_AT_A_TIME))
    backend.forget_info(env, target.path)
    return settings.are_set


def agreed_settings(backend: Backend, env: dict, path: Path) -> SyncSettings:
    """Return the settings that all replicas of a root have.

    :raises BackendError: if they differ because one has missed a change, or if
                          one does not answer
    """
    answers = ask_primaries(backend.proxy_app, env, *path.place, 'HEAD')
    require_success(answers)
    settings = {SyncSettings.of(answer) for answer in answers}
    if len(settings) > 1:
        raise BackendError(
            None, 503, 'replicas of the root differ in X-Container-Sync-To'
        )
    return settings.pop()


def _root_posts(
    settings: SyncSettings, layout: Layout, now: float
) -> Iterator[tuple[dict, float]]:
    """Yield what to write to a root: headers and their time."""
    if settings.to:
        stored = {STORED_SYNC_TO_HEADER: settings.to}
        shown = {SYNC_TO_HEADER: settings.to, STORED_SYNC_TO_HEADER: ''}
        is_on = layout.synced == 0
        yield shown if is_on else stored, time_of_id(layout.serial)
    if layout.synced != 0:
        yield _off(layout, now)


def _shard_post(
    settings: SyncSettings, target: LogicalContainer, shard: int, now: float
) -> tuple[dict, float]:
    """Return what to write to a shard: headers and their time."""
    if shard not in synced_shards(target):
        return _off(target.layout, now)
    headers = shard_headers(target.container, settings.headers())
    return headers, time_of_id(target.layout.serial)


def _off(layout: Layout, now: float) -> tuple[dict, float]:
    """Return the header that switches container sync off, and its time.

    The time is not before that of the record, which comes from another clock.
    """
    return {SYNC_TO_HEADER: ''}, max(now, time_of_id(layout.serial))


def logical_path(backend: Backend, env: dict, path: Path) -> Path | None:
    """Return the path of the object whose row is in a backing container.

    :param env: the environment of a request for it
    :param path: the path of the row: that of a hidden account
    :returns: None if there is no such backing container, or if an object of
              another storage policy is asked for, as the reconciler does
    """
    info = backend.container_info_of(env, path)
    container = info['sysmeta'].get(LOGICAL_NAME)
    policy_index = str(info['storage_policy'])
    if not container or env.get(_POLICY_ENV, policy_index) != policy_index:
        return None
    account = owner_of(path.account)
    return Path(path.version, account, unquote(container), path.name)
