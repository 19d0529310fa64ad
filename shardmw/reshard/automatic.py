# SPDX-License-Identifier: Apache-2.0
"""Begin changes of containers that have too many rows, or too many shards."""

import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from shardmw.backend.containers import BackendError
from shardmw.backend.metrics import (
    FULLEST,
    ROWS_LIMIT,
    SHARDS,
    SKEW,
    container_labels,
)
from shardmw.core.layout import SHARD_COUNT_LIMIT, LayoutError
from shardmw.core.paths import Path, Place
from shardmw.core.placement import can_be_sharded, versions_owner
from shardmw.reshard.async_pending import backlog_text
from shardmw.reshard.changes import Changes
from shardmw.reshard.errors import AdminError
from shardmw.reshard.scope import Scope
from shardmw.reshard.shard_advice import (
    HEADROOM,
    NEAR,
    Fullest,
    Growth,
    Listed,
    power_of_two,
    suitable_shards,
)
from shardmw.reshard.survey import Survey
from shardmw.swift.concurrency import Timeout

SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True)
class AutomaticOptions:
    """Which changes the daemon begins by itself.

    :param grows: True to give containers more shards
    :param shrinks: True to give containers fewer shards
    :param despite_backlog: True to begin even if object servers have updates
                            to deliver
    :param rows_per_shard: the most rows that a database should have
    :param containers: globs over ``account/container``
    :param shrink_after_days: how long a layout must have been there before it
                              gets fewer shards
    :param write_limit: returns the writes per second that a shard may take in
                        a container whose shards have so many rows on average;
                        None for no limit
    :param max_shards: the most shards that a container may get
    """

    grows: bool
    shrinks: bool
    despite_backlog: bool
    rows_per_shard: int
    containers: tuple[str, ...]
    shrink_after_days: float = 0
    write_limit: Callable[[int], float | None] = lambda _rows: None
    max_shards: int = SHARD_COUNT_LIMIT


class AutomaticChanges:
    """Announces the changes that containers need for rows and write rates."""

    def __init__(
        self, changes: Changes, scope: Scope, options: AutomaticOptions, logger
    ) -> None:
        self.changes = changes
        self.scope = scope
        self.options = options
        self.logger = logger
        self.metrics = changes.cluster.backend.metrics
        self.survey = Survey(changes.cluster)
        self._growth = Growth(options.write_limit)
        # The containers that a rate limit has held for an hour until now.
        self._held: set[Place] = set()

    def begin(self) -> None:
        """Announce the changes, and send metrics of the fullest containers."""
        options = self.options
        is_noted = self.metrics.is_on and self.metrics.containers > 0
        if not (options.grows or options.shrinks or is_noted):
            return
        self._held.clear()
        fullest = Fullest(self.metrics.containers)
        backlog = '' if options.despite_backlog else None
        for account in self.scope.accounts():
            containers = self.survey.containers(
                account, NEAR * options.rows_per_shard
            )
            listed = self.scope.until_error(account, containers)
            for path in self._unsuitable(fullest.among(listed)):
                if backlog is None:
                    backlog = self._read_backlog()
                if not backlog:
                    self._begin(path)
        self._note_rows(fullest.containers)

    def _read_backlog(self) -> str:
        """Return why no change may begin now, and log it; '' if one may."""
        backlog = backlog_text(self.changes.cluster.app)
        if backlog:
            self.logger.warning('no automatic change: %s', backlog)
        return backlog

    def _note_rows(self, containers: Iterable[Listed]) -> None:
        """Send the metrics of the containers with the fullest databases."""
        self.metrics.note(ROWS_LIMIT, self.options.rows_per_shard)
        for each in containers:
            labels = container_labels(each.account, each.container)
            self.metrics.note(FULLEST, each.fullest, **labels)
            self.metrics.note(SHARDS, each.shards, **labels)
            self.metrics.note(SKEW, round(each.skew, 3), **labels)

    def _unsuitable(self, listed: Iterator[Listed]) -> list[Path]:
        """Return the containers that seem to need another shard count.

        A container changes together with that of its old versions.
        """
        places = set()
        for each in listed:
            if each.problem or each.phase:
                continue
            if self._growth.is_held(each, time.monotonic()):
                self._held.add(Place(each.account, each.container))
            is_changed = self._suitable(each) != each.shards
            if is_changed and can_be_sharded(each.container):
                owner = versions_owner(each.container) or each.container
                places.add(Place(each.account, owner))
        return [
            place.path
            for place in sorted(places)
            if self.scope.has(place.path) and self._is_chosen(str(place))
        ]

    def _suitable(self, container: Listed) -> int:
        """Return the shard count that a container should have.

        It is the present count if the daemon may not make such a change.
        """
        options = self.options
        suitable = suitable_shards(
            container, options.rows_per_shard, options.max_shards
        )
        if Place(container.account, container.container) in self._held:
            more = power_of_two(HEADROOM * max(1, container.shards))
            suitable = max(suitable, min(more, options.max_shards))
        if suitable > container.shards:
            is_allowed = options.grows
        else:
            days = (time.time() - container.since) / SECONDS_A_DAY
            is_allowed = options.shrinks and days >= options.shrink_after_days
        return suitable if is_allowed else container.shards

    def _is_chosen(self, name: str) -> bool:
        return any(
            fnmatch.fnmatchcase(name, pattern)
            for pattern in self.options.containers
        )

    def _begin(self, path: Path) -> None:
        """Begin a change to the shard count that a container should have.

        The listings of accounts may be older than the last change, so the
        row counts are read from the databases.
        """
        place = path.place
        try:
            paths = self.changes.cluster.with_versions(path)
            measured = [self.survey.measured(each) for each in paths]
            suitable = max(map(self._suitable, measured))
            if any(each.shards != suitable for each in measured):
                self.changes.begin(path, suitable, despite_backlog=True)
                if self._held.intersection(each.place for each in paths):
                    # It has few rows, and auto_shrink would take them back.
                    self.changes.cluster.set_floor(path, suitable)
                self.logger.info(
                    '%s: begins to change from %d to %d shards',
                    place,
                    measured[0].shards,
                    suitable,
                )
        except AdminError as err:
            self.logger.warning('no automatic change: %s', err)
        except (BackendError, LayoutError) as err:
            self.logger.warning('%s: %s', place, err)
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', place)
