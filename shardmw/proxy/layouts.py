# SPDX-License-Identifier: Apache-2.0
"""The layouts of containers, confirmed by their replicas.

Swift's cached info of a container may come from a replica that was down while
the container was deleted and created again, with shards or without. So a
worker uses a layout record only if it has asked all replicas of the root
within the last minute. If the account has a hidden account, the same holds for
info without a record.
"""

import time
from typing import NamedTuple

from swift.common.http import is_success

from shardmw.backend.containers import (
    RECORD_NAME,
    ROOT_OBJECTS_KEY,
    BackendError,
    LogicalContainer,
    described_by,
)
from shardmw.backend.requests import Backend
from shardmw.backend.roots import read_root, unproved
from shardmw.core.bounded import BoundedDict
from shardmw.core.layout import Layout, parse_record
from shardmw.core.paths import Path, Place
from shardmw.core.placement import hidden_account
from shardmw.swift.infocache import INFOCACHE_ENV

#: How long a confirmed layout is valid (the time for which Swift caches
#: container info by default), and how long an unconfirmed one is valid while
#: replicas do not answer.
CONFIRMED_SECONDS = 60
UNCONFIRMED_SECONDS = 5

#: How long a confirmed layout is valid if Swift's info lacks its record, or
#: for the DELETE of an object: a row in an earlier layout is found and moved
#: later, but a tombstone there removes nothing.
DOUBT_SECONDS = 1

#: The shortest time for which a confirmed layout is valid.
LEAST_SECONDS = 1

#: How many containers' layouts a worker keeps.
CONFIRMED = 10_000


class _Confirmed(NamedTuple):
    """The layout that the replicas of a root agreed on.

    :param layout: the layout; None if the container was never sharded or is
                   deleted
    :param policy_index: the storage policy; None if it is not confirmed
    :param root_objects: how many rows the root had
    :param latest: the latest serial of a layout that was seen by then
    :param is_confirmed: False while too few replicas answer
    :param asked: when the replicas were asked, by the monotonic clock
    :param expires: when it expires, by the same clock
    """

    layout: Layout | None
    policy_index: int | None
    root_objects: int
    latest: str
    is_confirmed: bool
    asked: float
    expires: float

    def counts(self, max_age: float) -> bool:
        """Return True if it has not expired and is not older than `max_age`.

        An unconfirmed layout is valid until it expires, whatever its age.
        """
        now = time.monotonic()
        return now < self.expires and (
            not self.is_confirmed or now - self.asked < max_age
        )


class Layouts:
    """Looks up which layout a container has."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._confirmed = BoundedDict(CONFIRMED)
        self._being_asked: set[Place] = set()

    @property
    def seconds(self) -> float:
        """Return how long a confirmed layout is valid.

        Changes of layout wait for as long as proxies cache container info.
        """
        cached = self.backend.proxy_app.recheck_container_existence
        cached = max(LEAST_SECONDS, cached)
        return min(CONFIRMED_SECONDS, cached)

    def of(
        self,
        env: dict,
        path: Path,
        info: dict,
        max_age: float = CONFIRMED_SECONDS,
    ) -> LogicalContainer | None:
        """Return the sharded container of a path.

        :param path: the path of the container, or of an object in it
        :param info: Swift's cached info, or the info of the root's answer
        :param max_age: for how many seconds the replicas' answer is valid
        :returns: None if the container is plain or does not exist
        :raises BackendError: if the info says that the root did not answer, or
                              if it is not known whether it is sharded
        :raises LayoutError: if the record cannot be read
        """
        if is_success(info['status']):
            record = info['sysmeta'].get(RECORD_NAME)
            if record is not None:
                layout = parse_record(record)
                layout = self._confirm(env, path, layout, max_age)
            else:
                layout = self._confirm_plain(env, path, max_age)
            if layout is None or layout.is_plain:
                return None
            info = self._with_root(path, info)
            return LogicalContainer.at(path, info, layout)
        return described_by(path, info)

    def forget(self, path: Path) -> None:
        """Drop the layout of a container."""
        self._confirmed.pop(path.place, None)

    def _with_root(self, path: Path, info: dict) -> dict:
        """Return info with the confirmed policy and row count of the root.

        Shards take only rows of the root's storage policy: an object that is
        uploaded to the policy of an earlier container would never be found. If
        the root has rows, DELETEs of objects write to it, too.
        """
        known = self._confirmed.get(path.place)
        if known is None:
            return info
        confirmed = {}
        if known.policy_index not in (None, int(info['storage_policy'] or 0)):
            confirmed['storage_policy'] = str(known.policy_index)
        if known.root_objects:
            confirmed[ROOT_OBJECTS_KEY] = known.root_objects
        return {**info, **confirmed} if confirmed else info

    def _confirm(
        self, env: dict, path: Path, layout: Layout, max_age: float
    ) -> Layout | None:
        """Return the layout of a container whose info has a record."""
        known = self._confirmed.get(path.place)
        if known is not None and layout.serial <= known.latest:
            if known.counts(max_age) or self._suffices(path, known, max_age):
                return known.layout
            layout = known.layout
        return self._ask(env, path, layout, is_known=True)

    def _suffices(self, path: Path, known: _Confirmed, max_age: float) -> bool:
        """Return True if a layout may be used while another request asks.

        It may not if it expired long ago, nor for the DELETE of an object.
        """
        return (
            path.place in self._being_asked
            and max_age >= CONFIRMED_SECONDS
            and time.monotonic() < known.expires + UNCONFIRMED_SECONDS
        )

    def _confirm_plain(
        self, env: dict, path: Path, max_age: float
    ) -> Layout | None:
        """Return the layout of a container whose info has no record.

        If it was sharded a moment ago, it has been deleted since, or the info
        comes from a replica that missed its creation.

        :raises BackendError: if it is not known whether it is sharded
        """
        known = self._confirmed.get(path.place)
        layout = known and known.layout
        is_for_delete = max_age < CONFIRMED_SECONDS
        if known is not None and not (layout and is_for_delete):
            if known.counts(DOUBT_SECONDS if layout else max_age):
                return layout
            if not layout and self._suffices(path, known, max_age):
                return layout
        hidden = hidden_account(path.account)
        # Info that a long request cached at its beginning may be stale.
        fresh = {**env, INFOCACHE_ENV: {}}
        if layout is None and not self.backend.account_exists(fresh, hidden):
            seconds = min(UNCONFIRMED_SECONDS, self.seconds)
            self._keep(path, None, None, 0, seconds, time.monotonic())
            return None
        return self._ask(env, path, layout, is_known=known is not None)

    def _ask(
        self, env: dict, path: Path, layout: Layout | None, is_known: bool
    ) -> Layout | None:
        """Ask all replicas; use `layout` while they prove nothing.

        :param layout: what is used unless Swift's info has a later one
        :param is_known: False if only one replica's info says that the
                         container has this layout
        :raises BackendError: if they prove nothing, and it is not known
        """
        key = path.place
        asked = time.monotonic()
        self._being_asked.add(key)
        root = None
        try:
            root = read_root(self.backend, env, path)
            if root.exists and not (root.record or root.is_proved):
                # A replica that has missed the creation of shards may be the
                # only one that has a database.
                raise BackendError(None, 503, unproved(root))
        except BackendError:
            root = None
            if not is_known:
                raise
            layout = self._latest(env, path, layout)
        finally:
            self._being_asked.discard(key)
        known = self._confirmed.get(key)
        if known is not None and known.is_confirmed and known.asked > asked:
            return known.layout  # a later request was answered first
        if root is None or root.is_absent:
            # If it is absent, the info comes from a handoff.
            is_same = known is not None and known.layout == layout
            self._keep(
                path,
                layout,
                known.policy_index if is_same else None,
                known.root_objects if is_same else 0,
                min(UNCONFIRMED_SECONDS, self.seconds),
                time.monotonic(),
                is_confirmed=False,
            )
            return layout
        policy_index = root.policy_index if root.exists else None
        self._keep(
            path,
            root.record,
            policy_index,
            root.answer.object_count if root.exists else 0,
            self.seconds,
            asked,
            layout.serial if layout else '',
        )
        return root.record

    def _latest(
        self, env: dict, path: Path, layout: Layout | None
    ) -> Layout | None:
        """Return a layout, or a later one that Swift's info has.

        A long request, such as a bulk DELETE, has info of its beginning, and
        the layout may be as old. Changes wait only for info that is cached by
        other requests, too.

        :raises BackendError: if there is no info
        """
        fresh = {**env, INFOCACHE_ENV: {}}
        info = self.backend.container_info_of(fresh, path)
        if not is_success(info['status']):
            raise BackendError(None, info['status'])
        record = info['sysmeta'].get(RECORD_NAME)
        if record is None:
            return layout
        found, known = parse_record(record), self._confirmed.get(path.place)
        seen = [known.latest if known else '', layout.serial if layout else '']
        return found if found.serial > max(seen) else layout

    def _keep(
        self,
        path: Path,
        layout: Layout | None,
        policy_index: int | None,
        root_objects: int,
        seconds: float,
        asked: float,
        seen: str = '',
        is_confirmed: bool = True,
    ) -> None:
        known = self._confirmed.get(path.place)
        latest = max(
            layout.serial if layout else '',
            seen,
            known.latest if known else '',
        )
        expires = asked + seconds
        self._confirmed[path.place] = _Confirmed(
            layout,
            policy_index,
            root_objects,
            latest,
            is_confirmed,
            asked,
            expires,
        )
