# SPDX-License-Identifier: Apache-2.0
"""Look for leftovers in all accounts, and have them settled.

Leftovers are late rows, strays and empty backing containers:
:mod:`shardmw.reshard.late_rows` says what is done about each.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from swift.common.utils import ContextPool

from shardmw.backend.accounts import account_rows
from shardmw.backend.backing_containers import logical_name
from shardmw.backend.containers import BackendError
from shardmw.backend.metrics import UNSETTLED
from shardmw.backend.requests import Backend
from shardmw.backend.roots import read_root
from shardmw.core.layout import LayoutError
from shardmw.core.paths import API_VERSION, Path, Place
from shardmw.core.placement import (
    backing_base,
    hidden_account,
    parse_backing,
)
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.late_rows import NOTHING, settle
from shardmw.reshard.row_mover import AT_A_TIME
from shardmw.reshard.row_pass import SOURCES_AT_A_TIME, Pace
from shardmw.reshard.scope import Scope
from shardmw.swift.concurrency import Timeout

#: The figures of an account that change when rows or containers come or go.
FIGURES = ('status', 'container_count', 'total_object_count', 'bytes')

#: How many containers to settle at once, each out of one place at a time: so
#: no more objects are asked for at once than if one container were settled out
#: of several places.
SETTLED_AT_A_TIME = SOURCES_AT_A_TIME

#: How often to look for leftovers in all accounts, whatever their figures say.
LOOK_AT_ALL_SECONDS = 86400


class Leftovers:
    """Settles the leftovers of the containers of one process.

    It settles several containers at once: with strays, most of the time of
    each is a wait until proxies have dropped what they cache.

    :param interval: how often to look for them, in seconds
    :param rows_per_second: the most rows of all containers to move a second;
                            0 for no limit
    :ivar settled: how many containers had leftovers that it has settled
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        scope: Scope,
        interval: float,
        rows_per_second: int,
        logger,
    ) -> None:
        self.cluster = cluster
        self.scope = scope
        self.interval = interval
        self.pace = Pace(rows_per_second, sources=1)
        self.logger = logger
        self.settled = 0
        # When this process last looked for them, and in all accounts.
        self._looked = self._looked_at_all = -math.inf
        # The figures of the accounts that had none.
        self._clean: dict[str, tuple] = {}
        # What accounts listed of the containers without other layouts.
        self._sound: dict[Path, tuple] = {}
        # Why the leftovers of some containers wait.
        self._problems: dict[Place, str] = {}

    @property
    def is_due(self) -> bool:
        """Return True if it is time to look for leftovers."""
        return time.monotonic() - self._looked >= self.interval

    @property
    def waiting(self) -> int:
        """Return how many containers have leftovers that have to wait."""
        return len(self._problems)

    def settle_all(self) -> None:
        """Settle the leftovers of all accounts.

        An account in which nothing was found is skipped until its figures
        change or a day has passed.
        """
        now = self._looked = time.monotonic()
        if now - self._looked_at_all >= LOOK_AT_ALL_SECONDS:
            self._looked_at_all = now
            self._clean.clear()
            self._sound.clear()
        for account in self.scope.accounts():
            try:
                self._settle_account(account)
            except (Exception, Timeout) as err:
                self.scope.report(account, err)
        self.cluster.backend.metrics.note(
            UNSETTLED, self.waiting, process=str(self.scope.process)
        )

    def _settle_account(self, account: str) -> None:
        """Settle the leftovers of an account, if it may have any.

        :raises BackendError: if the account cannot be listed
        """
        figures = self._figures_of(account)
        if self._clean.get(account) == figures:
            return
        paths = list(
            containers_with_leftovers(
                self.cluster.backend, self.cluster.env, account, self._sound
            )
        )
        with ContextPool(SETTLED_AT_A_TIME) as pool:
            for path in filter(self.scope.has, paths):
                pool.spawn(self._settle, path)
            pool.waitall()
        found = {path.place for path in paths}
        for place in [each for each in self._problems if each[0] == account]:
            if place not in found:
                del self._problems[place]  # another process has settled it
        if not found:
            self._clean[account] = figures
        else:
            self._clean.pop(account, None)

    def _figures_of(self, account: str) -> tuple:
        """Return the figures of an account that change when leftovers come."""
        infos = [
            self.cluster.backend.account_info(self.cluster.env, name)
            for name in (account, hidden_account(account))
        ]
        return tuple(info.get(key) for info in infos for key in FIGURES)

    def _settle(self, path: Path) -> None:
        """Settle the leftovers of a container, or log why they wait."""
        place = path.place
        problem = ''
        try:
            done = settle(
                self.cluster.backend,
                self.cluster.env,
                path,
                self.pace,
                self.cluster.kept_seconds,
            )
            if done != NOTHING:
                self.settled += 1
                self.logger.info('%s: settled: %s', place, done)
        except BackendError as err:
            problem = str(err)
        except LayoutError as err:
            problem = f'layout record: {err}'
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', place)
        if not problem:
            self._problems.pop(place, None)
        elif self._problems.get(place) != problem:
            self._problems[place] = problem
            self.logger.warning('%s: late rows wait: %s', place, problem)


def containers_with_leftovers(
    backend: Backend, env: dict, account: str, sound: dict[Path, tuple]
) -> Iterator[Path]:
    """List the containers of an account that may have leftovers.

    Those are the containers whose backing containers have several ids or an
    id other than the root's, those whose root the account does not list, and
    those with both shards and rows in the root.

    :param sound: the id and the listed time of each container whose only id
                  was the root's when it was read last; filled here. If such a
                  container is created again, another time is listed
    :raises BackendError: if the account or its hidden account does not answer
    """
    base = backend.owner_env(env)
    hidden = Path(API_VERSION, hidden_account(account))
    shards: dict[str, dict[str, str]] = defaultdict(dict)
    for row in account_rows(backend, base, hidden, '', ''):
        if name := parse_backing(row['name']):
            shards[name.base].setdefault(name.layout_id, row['name'])
    if not shards:
        return
    path = Path(API_VERSION, account)
    doubtful: dict[Path, tuple] = {}
    for row in account_rows(backend, base, path, '', ''):
        ids = shards.pop(backing_base(row['name']), None)
        this = path.of_container(row['name'])
        if not ids:
            continue
        if len(ids) > 1 or row['count']:
            yield this
        elif sound.get(this) != (*ids, row['last_modified']):
            doubtful[this] = (*ids, row['last_modified'])
    paths = list(doubtful)
    for start in range(0, len(paths), AT_A_TIME):
        batch = paths[start : start + AT_A_TIME]
        ids = backend.for_each(partial(_id_of, backend, env), batch, AT_A_TIME)
        for this, layout_id in zip(batch, ids, strict=True):
            if layout_id == doubtful[this][0]:
                sound[this] = doubtful[this]
            else:
                yield this
    for ids in shards.values():
        backing = hidden.of_container(next(iter(ids.values())))
        if container := logical_name(backend, base, backing):
            yield path.of_container(container)


def _id_of(backend: Backend, env: dict, path: Path) -> str | None:
    """Return the id of a container's layout.

    :returns: None if it is not known, or the layout is changing
    """
    try:
        root = read_root(backend, env, path)
    except (BackendError, LayoutError):
        return None
    is_changing = root.record and root.record.is_changing
    return root.layout.id if root.layout and not is_changing else None
