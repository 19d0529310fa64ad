# SPDX-License-Identifier: Apache-2.0
"""The layouts of containers, confirmed by their replicas.

Swift's cached info of a container may come from a replica that was away while
the container was deleted and created anew. So a worker asks all replicas of a
root once a minute before it goes by a layout record.
"""

import time
from typing import NamedTuple

from swift.common.http import is_success

from shardmw.backend.containers import (
    RECORD_NAME,
    BackendError,
    LogicalContainer,
    described_by,
)
from shardmw.backend.requests import Backend
from shardmw.layout.roots import read_root
from shardmw.lru import LRU
from shardmw.paths import Path
from shardmw.record import Layout, parse_record

#: How long a confirmed layout counts, as long as Swift caches container info
#: by default; and how long an unconfirmed one does, while replicas are away.
CONFIRMED_SECONDS = 60
UNCONFIRMED_SECONDS = 5

#: How often at most the replicas are asked because one of them has no record
#: of a container that others have one of.
DOUBT_SECONDS = 1

#: How many containers' layouts a worker keeps.
CONFIRMED = 10_000


class _Confirmed(NamedTuple):
    """The layout that the replicas of a root agreed on.

    :param layout: the layout; None if the container is plain or deleted
    :param policy_index: the storage policy; None if it is not confirmed
    :param latest_id: the latest id that was seen by then; a record with a
                      later one is of a newer layout
    :param asked: when, by the monotonic clock
    :param expires: by the same clock
    """

    layout: Layout | None
    policy_index: int | None
    latest_id: str
    asked: float
    expires: float


class Layouts:
    """Looks up which layout a container has."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._confirmed = LRU(CONFIRMED)
        self._being_asked: set[tuple[str, str]] = set()

    def of(self, env: dict, path: Path, info: dict) -> LogicalContainer | None:
        """Return the sharded container of a path.

        :param path: the path of the container, or of an object in it
        :param info: what Swift knows of it, or what its root answered
        :returns: None if the container is plain or does not exist
        :raises BackendError: if the info says that the root did not answer
        :raises LayoutError: if the record cannot be read
        """
        if is_success(info['status']):
            record = info['sysmeta'].get(RECORD_NAME)
            if record is not None:
                layout = self._confirm(env, path, parse_record(record))
            else:
                layout = self._confirm_plain(env, path)
            if layout is None:
                return None
            info = self._with_policy(path, info)
            return LogicalContainer(
                path.version, path.account, path.container, info, layout
            )
        return described_by(path, info)

    def forget(self, path: Path) -> None:
        """Drop what is kept of a container."""
        self._confirmed.pop(_key(path), None)

    def _with_policy(self, path: Path, info: dict) -> dict:
        """Return info that has the storage policy of the confirmed layout.

        Shards take rows of that policy only: an object that was uploaded to
        the policy of an earlier container would never be found.
        """
        known = self._confirmed.get(_key(path))
        if known is None or known.policy_index is None:
            return info
        if int(info['storage_policy'] or 0) == known.policy_index:
            return info
        return {**info, 'storage_policy': str(known.policy_index)}

    def _confirm(self, env: dict, path: Path, layout: Layout) -> Layout | None:
        known = self._confirmed.get(_key(path))
        if known is not None and layout.id <= known.latest_id:
            is_being_asked = _key(path) in self._being_asked
            if is_being_asked or time.monotonic() < known.expires:
                return known.layout
        return self._ask(env, path, layout)

    def _confirm_plain(self, env: dict, path: Path) -> Layout | None:
        """Return the layout of a container that seems to be plain.

        If it was sharded a moment ago, it was deleted since, or the replica
        that says so has missed its creation.
        """
        known = self._confirmed.get(_key(path))
        now = time.monotonic()
        if known is None or known.layout is None or known.expires < now:
            return None
        if now - known.asked < DOUBT_SECONDS:
            return known.layout
        return self._ask(env, path, known.layout)

    def _ask(self, env: dict, path: Path, layout: Layout) -> Layout | None:
        """Ask all replicas; go by `layout` while too few of them answer."""
        key = _key(path)
        self._being_asked.add(key)
        try:
            root = read_root(self.backend, env, path)
        except BackendError:
            self._keep(path, layout, None, UNCONFIRMED_SECONDS)
            return layout
        finally:
            self._being_asked.discard(key)
        policy_index = root.policy_index if root.exists else None
        self._keep(
            path, root.layout, policy_index, CONFIRMED_SECONDS, layout.id
        )
        return root.layout

    def _keep(
        self,
        path: Path,
        layout: Layout | None,
        policy_index: int | None,
        seconds: int,
        seen_id: str = '',
    ) -> None:
        latest_id = max(layout.id if layout else '', seen_id)
        now = time.monotonic()
        self._confirmed[_key(path)] = _Confirmed(
            layout, policy_index, latest_id, now, now + seconds
        )


def _key(path: Path) -> tuple[str, str]:
    return path.account, path.container
