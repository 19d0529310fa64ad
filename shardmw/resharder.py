# SPDX-License-Identifier: Apache-2.0
"""The daemon ``shardmw-resharder``.

It goes on with the changes of layout that somebody has begun and not finished,
and with those that were left to it (``shardmw-admin reshard --detach``). Until
Swift forgets tombstones, it comes back to containers that have changed, and
moves rows that came late. With ``auto_reshard`` it also gives containers more
shards that have too many rows in one database.

Any number of them may run, on any machines: what is under way is listed in the
register and in the layout records, and two that change the same container do
no harm. ``processes`` and ``process`` share the containers out.
"""

import configparser
import fnmatch
import time
from collections.abc import Collection, Iterator
from pathlib import Path as FilePath

from swift.common.daemon import Daemon, run_daemon
from swift.common.registry import get_swift_info
from swift.common.utils import (
    config_auto_int_value,
    config_true_value,
    get_logger,
    hash_path,
    parse_options,
)

from shardmw.admin.advice import advised_shards, findings_among
from shardmw.admin.changes import RECLAIM_SECONDS, Changes
from shardmw.admin.cluster import open_cluster
from shardmw.admin.errors import AdminError
from shardmw.admin.survey import Survey
from shardmw.backend.concurrency import sleep, spawn
from shardmw.backend.containers import BackendError
from shardmw.config import ConfigError, check_option_names
from shardmw.layout.adoption import adopt_all
from shardmw.layout.resharding import MoveOptions, Progress, Resharding
from shardmw.layout.roots import read_root
from shardmw.paths import Path
from shardmw.record import LayoutError, time_of_id

SECTION = 'shardmw-resharder'

OPTION_NAMES = (
    'accounts',
    'ask_for_objects',
    'auto_reshard',
    'auto_shrink',
    'concurrency',
    'containers',
    'info_cache_seconds',
    'interval',
    'late_rows_interval',
    'process',
    'processes',
    'reclaim_age',
    'rows_per_second',
    'rows_per_shard',
    'settle_seconds',
    'swift_dir',
)

#: The phases of a change that take time, but no work.
WAITING_PHASES = ('announced', 'waiting to move', 'settling', 'cleaning up')

#: A container shrinks if it has this many times the shards that it needs.
SHRINK_FACTOR = 4


class Resharder(Daemon):
    """Changes layouts in the background.

    :param conf: its section, with the name of the file as ``__file__``
    """

    def __init__(self, conf: dict, logger=None) -> None:
        super().__init__(conf)
        self.logger = logger or get_logger(conf, log_route=SECTION)
        check_option_names(
            _own_options(conf['__file__']), SECTION, OPTION_NAMES, (), SECTION
        )
        self.interval = _number(conf, 'interval', 300)
        self.late_rows_interval = _number(conf, 'late_rows_interval', 86400)
        self.reclaim_age = _number(conf, 'reclaim_age', RECLAIM_SECONDS)
        self.concurrency = int(_number(conf, 'concurrency', 4, least=1))
        self.processes = int(_number(conf, 'processes', 0))
        self.process = int(_number(conf, 'process', 0))
        if self.processes and self.process >= self.processes:
            raise ConfigError(
                f'{SECTION}: process = {self.process} must be less than '
                f'processes = {self.processes}'
            )
        self.auto_reshard = config_true_value(conf.get('auto_reshard'))
        self.auto_shrink = config_true_value(conf.get('auto_shrink'))
        self.rows_per_shard = int(
            _number(conf, 'rows_per_shard', 1_000_000, least=1)
        )
        self.accounts = conf.get('accounts', '').replace(',', ' ').split()
        self.containers = conf.get('containers', '*').split()
        swift_dir = FilePath(conf.get('swift_dir', '/etc/swift'))
        self.cluster = open_cluster(FilePath(conf['__file__']), swift_dir)
        cache_seconds = config_auto_int_value(
            conf.get('info_cache_seconds', 'auto'),
            self.cluster.info_cache_seconds,
        )
        self.options = MoveOptions(
            cache_seconds,
            _number(conf, 'settle_seconds', 86400),
            int(_number(conf, 'rows_per_second', 0)),
            config_true_value(conf.get('ask_for_objects')),
        )
        info = get_swift_info().get('shardmw')
        if info is None:
            raise ConfigError(
                f'{SECTION}: the pipeline has no filter shardmw: add it'
            )
        self.max_shards = info['max_shards']
        self.changes = Changes(self.cluster, self.options)
        self._running: dict[tuple[str, str], object] = {}
        self._swept: dict[tuple[str, str], float] = {}
        # The last progress that was logged, by container.
        self._states: dict[tuple[str, str], tuple[str, str]] = {}

    def run_once(self, *args, **kwargs) -> None:
        """Make all changes that are under way, to their end."""
        self._begin_changes()
        started: set[tuple[str, str]] = set()
        while True:
            self._start_changes(started)
            started.update(self._running)
            if not self._running:
                return
            sleep(1)

    def run_forever(self, *args, **kwargs) -> None:
        """Make changes as they come."""
        while True:
            self._begin_changes()
            self._start_changes()
            sleep(self.interval)

    def _start_changes(self, started: Collection = ()) -> None:
        """Start to work on the changes that nobody here works on.

        :param started: those that were worked on already
        """
        for key, thread in list(self._running.items()):
            if thread.dead:
                del self._running[key]
        try:
            for path in self._own_changes():
                if self._busy() >= self.concurrency:
                    return
                key = (path.account, path.container)
                if key not in self._running and key not in started:
                    self._running[key] = spawn(self._work_on, path)
        except BackendError as err:
            self.logger.error('the changes cannot be listed: %s', err)

    def _busy(self) -> int:
        """Return how many changes are being worked on, and do not wait."""
        return sum(
            phase not in WAITING_PHASES and not problem
            for phase, problem in (
                self._states.get(key, ('', '')) for key in self._running
            )
        )

    def _own_changes(self) -> Iterator[Path]:
        """List the registered changes that are this process's."""
        for account in self.changes.register.accounts():
            for path in self.changes.register.changes(account):
                if self._is_own(path.account, path.container):
                    yield path

    def _is_own(self, account: str, container: str) -> bool:
        if not self.processes:
            return True
        digest = int(hash_path(account, container), 16)
        return digest % self.processes == self.process

    def _is_due(self, key: tuple[str, str]) -> bool:
        """Return True if it is time to look for late rows of a change."""
        swept = self._swept.get(key)
        now = time.monotonic()
        return swept is None or now - swept >= self.late_rows_interval

    def _work_on(self, path: Path) -> None:
        """Go on with a change, or look for late rows after it."""
        name = f'{path.account}/{path.container}'
        key = (path.account, path.container)
        resharding = Resharding(
            self.cluster.backend,
            self.cluster.env,
            path,
            self.options,
            lambda progress: self._log(key, progress),
        )
        try:
            root = read_root(self.cluster.backend, self.cluster.env, path)
            layout = root.record
            if layout and layout.is_changing:
                resharding.run()
            elif layout is None or self._is_over(layout.serial):
                self.changes.register.remove(path)
            elif self._is_due(key):
                adopt_all(self.cluster.backend, self.cluster.env, path)
                self._swept[key] = time.monotonic()
        except (BackendError, LayoutError) as err:
            self.logger.error('%s: %s', name, err)
        except Exception:
            self.logger.exception('%s: unexpected error', name)

    def _is_over(self, serial: str) -> bool:
        """Return True if no rows from before a change can come any more."""
        return time.time() - time_of_id(serial) > self.reclaim_age

    def _log(self, key: tuple[str, str], progress: Progress) -> None:
        state = (progress.phase, progress.problem)
        if self._states.get(key) == state:
            return
        self._states[key] = state
        name = '/'.join(key)
        if progress.problem:
            self.logger.warning('%s: waiting: %s', name, progress.problem)
        else:
            self.logger.info(
                '%s: %s, %d rows moved', name, progress.phase, progress.moved
            )

    def _begin_changes(self) -> None:
        """Announce the changes that the rows of containers ask for."""
        if not (self.auto_reshard or self.auto_shrink):
            return
        survey = Survey(self.cluster)
        try:
            accounts = {*survey.accounts(), *self.accounts}
            for account in sorted(accounts):
                self._begin_changes_of(survey, account)
        except BackendError as err:
            self.logger.error('containers cannot be listed: %s', err)

    def _begin_changes_of(self, survey: Survey, account: str) -> None:
        listed = [
            each
            for each in survey.containers(account)
            if not each.problem
            and self._is_own(account, each.container)
            and self._is_chosen(f'{account}/{each.container}')
        ]
        if self.auto_reshard:
            for finding in findings_among(listed, self.rows_per_shard):
                shards = min(finding.advised_shards, self.max_shards)
                if finding.is_over and shards > finding.shards:
                    self._begin(account, finding.container, shards)
        if self.auto_shrink:
            for each in listed:
                needed = advised_shards(each.objects, self.rows_per_shard)
                if each.shards >= SHRINK_FACTOR * needed > 0:
                    self._begin(account, each.container, needed)

    def _is_chosen(self, name: str) -> bool:
        return any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self.containers
        )

    def _begin(self, account: str, container: str, shards: int) -> None:
        try:
            self.changes.begin(account, container, shards)
            self.logger.info(
                '%s/%s: begins to change to %d shards',
                account,
                container,
                shards,
            )
        except (AdminError, BackendError, LayoutError) as err:
            self.logger.warning('%s', err)


def _own_options(conf_file: str) -> dict[str, str]:
    """Return the options of the daemon's section, without [DEFAULT]."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(conf_file)
    return {
        name: value
        for name, value in parser.items(SECTION)
        if name not in parser.defaults()
    }


def _number(conf: dict, name: str, default: float, least: float = 0) -> float:
    """Return the value of an option.

    :raises ConfigError: if it is no number, or less than `least`
    """
    text = conf.get(name, default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value < float('inf'):
        raise ConfigError(
            f'{SECTION}: {name} = {text} must be a number from {least:g}'
        )
    return value


def main() -> None:
    """``shardmw-resharder CONF``."""
    conf_file, options = parse_options(once=True)
    run_daemon(Resharder, conf_file, SECTION, **options)
