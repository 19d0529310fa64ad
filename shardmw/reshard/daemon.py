# SPDX-License-Identifier: Apache-2.0
"""The daemon ``shardmw-resharder``.

It continues changes of layout that were interrupted, and makes those that were
announced for it (``shardmw-admin reshard --detach``). Every few minutes it
looks at the accounts whose figures have changed, for late rows, strays and
empty backing containers, and settles them (:mod:`shardmw.reshard.late_rows`):
no other daemon does. With ``auto_reshard`` it also gives more shards to
containers that have too many rows in one database.

Any number of daemons may run, on any machines: the changes under way are
listed in the register and in the layout records, and two daemons that change
the same container do no harm. ``processes`` and ``process`` divide the
containers among them.
"""

import configparser
import fnmatch
import math
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from optparse import OptionParser
from pathlib import Path as FilePath

from swift.common.daemon import Daemon, run_daemon
from swift.common.registry import get_swift_info
from swift.common.utils import (
    TRUE_VALUES,
    get_logger,
    hash_path,
    parse_options,
)

from shardmw.backend.backing import is_forgotten
from shardmw.backend.config import ConfigError, check_option_names
from shardmw.backend.containers import BackendError
from shardmw.backend.metrics import (
    CHANGES,
    FULLEST,
    MOVED,
    ROWS_LIMIT,
    SHARDS,
    SKEW,
    TO_MOVE,
    UNSETTLED,
    WAITING,
    container_labels,
    open_metrics,
)
from shardmw.backend.roots import read_root, unproved
from shardmw.core.layout import MOVING, Layout, LayoutError, time_of_id
from shardmw.core.paths import Path
from shardmw.core.placement import (
    can_be_sharded,
    hidden_account,
    versions_owner,
)
from shardmw.reshard.advice import (
    NEAR,
    ROWS_PER_SHARD,
    Fullest,
    Listed,
    suitable_shards,
)
from shardmw.reshard.backlog import backlog_text
from shardmw.reshard.change import (
    MoveOptions,
    Progress,
    Resharding,
)
from shardmw.reshard.change_list import RECLAIM_SECONDS, Changes
from shardmw.reshard.cluster import open_cluster
from shardmw.reshard.errors import AdminError
from shardmw.reshard.late_rows import (
    NOTHING,
    containers_with_leftovers,
    settle,
)
from shardmw.reshard.progress import ProgressNotes
from shardmw.reshard.survey import Survey
from shardmw.reshard.swift_folder import in_one_line, use_swift_dir
from shardmw.swift.concurrency import Timeout, sleep, spawn

SECTION = 'shardmw-resharder'

DESCRIPTION = (
    'Change the layouts of sharded containers in the background: continue '
    'changes that were interrupted or announced with "shardmw-admin reshard '
    '--detach", and, if auto_reshard is set, give more shards to containers '
    'that have become too large. CONFIG is a file like '
    'shardmw-resharder.conf-sample, such as /etc/swift/shardmw-resharder.conf.'
)

OPTION_NAMES = (
    'accounts',
    'ask_for_objects',
    'auto_reshard',
    'auto_shrink',
    'concurrency',
    'containers',
    'despite_backlog',
    'info_cache_seconds',
    'interval',
    'late_rows_interval',
    'metric_containers',
    'process',
    'processes',
    'reclaim_age',
    'rows_per_second',
    'rows_per_shard',
    'settle_seconds',
    'swift_dir',
    'sync_seconds',
)

#: How often a waiting change checks whether fewer than ``concurrency`` changes
#: are moving rows.
SLOT_SECONDS = 0.5

#: How many layouts of registered containers to read at once.
LOOKS_AT_A_TIME = 16

#: The figures of an account that change when rows or containers come or go.
FIGURES = ('status', 'container_count', 'total_object_count', 'bytes')

#: How often to look for late rows in all accounts, whatever their figures say.
LOOK_AT_ALL_SECONDS = 86400

#: How often to check whether fewer than LOOKS_AT_A_TIME layouts are read.
LOOK_SECONDS = 0.05

#: The value of ``info_cache_seconds`` that stands for the proxy app's own.
AUTO = 'auto'

#: The values of an option that is off. Swift defines those of one that is on.
FALSE_VALUES = {'false', '0', 'no', 'off', 'f', 'n', ''}


class Resharder(Daemon):
    """Changes layouts in the background.

    :param conf: the daemon's section, with the file's name as ``__file__``
    """

    def __init__(self, conf: dict, logger=None) -> None:
        super().__init__(conf)
        self.logger = logger or get_logger(conf, log_route=SECTION)
        check_option_names(
            _own_options(conf['__file__']), SECTION, OPTION_NAMES, (), SECTION
        )
        self.interval = _number(conf, 'interval', 300)
        self.late_rows_interval = _number(conf, 'late_rows_interval', 300)
        self.reclaim_age = _number(conf, 'reclaim_age', RECLAIM_SECONDS)
        self.concurrency = _count(conf, 'concurrency', 4, 1)
        self.turn_text = f'concurrency = {self.concurrency}: others move rows'
        self.processes = _count(conf, 'processes', 0)
        self.process = _count(conf, 'process', 0)
        if self.processes and self.process >= self.processes:
            raise ConfigError(
                f'{SECTION}: process = {self.process}: must be less than '
                f'processes = {self.processes}'
            )
        self.auto_reshard = _flag(conf, 'auto_reshard')
        self.auto_shrink = _flag(conf, 'auto_shrink')
        self.despite_backlog = _flag(conf, 'despite_backlog')
        self.rows_per_shard = _count(conf, 'rows_per_shard', ROWS_PER_SHARD, 1)
        self.accounts = conf.get('accounts', '').replace(',', ' ').split()
        self.containers = conf.get('containers', '*').split()
        cache_seconds = None
        if conf.get('info_cache_seconds', AUTO) != AUTO:
            cache_seconds = _number(
                conf, 'info_cache_seconds', 0, 'auto, or a number'
            )
        settle_seconds = _number(conf, 'settle_seconds', 86400)
        rows_per_second = _count(conf, 'rows_per_second', 0)
        asks_for_objects = _flag(conf, 'ask_for_objects')
        sync_seconds = _number(conf, 'sync_seconds', 360)
        metric_containers = _count(conf, 'metric_containers', 20)
        swift_dir = FilePath(conf.get('swift_dir', '/etc/swift'))
        use_swift_dir(swift_dir)
        self.cluster = open_cluster(FilePath(conf['__file__']), swift_dir)
        if cache_seconds is None:
            cache_seconds = self.cluster.info_cache_seconds
        self.options = MoveOptions(
            cache_seconds,
            settle_seconds,
            rows_per_second,
            asks_for_objects,
            sync_seconds,
        )
        info = get_swift_info().get('shardmw')
        if info is None:
            raise ConfigError(
                f'{SECTION}: the pipeline has no filter shardmw: add it'
            )
        self.max_shards = info['max_shards']
        self.metrics = open_metrics(conf, self.logger, metric_containers)
        self.cluster.backend.metrics = self.metrics
        self.changes = Changes(self.cluster, self.options)
        # How long a change may take from its registration to its record.
        app = self.cluster.app
        self.write_seconds = 2 * (app.conn_timeout + app.node_timeout)
        self._running: dict[tuple[str, str], object] = {}
        # The containers whose layout this process reads now.
        self._looking: set[tuple[str, str]] = set()
        # The containers whose rows this process moves now.
        self._moving: set[tuple[str, str]] = set()
        # When this process last looked for late rows, and in all accounts.
        self._settled = self._looked_at_all = -math.inf
        # The green thread that settles rows. It is false once it has ended.
        self._settling = None
        # The figures of the accounts that had no leftovers.
        self._clean: dict[str, tuple] = {}
        # What accounts listed of the containers without other layouts.
        self._sound: dict[Path, tuple] = {}
        # Why the late rows of some containers wait.
        self._unsettled: dict[tuple[str, str], str] = {}
        # The serial of each container's last record, once this process has
        # taken the last steps: the writer may have been interrupted.
        self._completed: dict[tuple[str, str], str] = {}
        # When registered containers were first seen without a change.
        self._unneeded: dict[tuple[str, str], float] = {}
        # The last progress that was logged, by container.
        self._states: dict[tuple[str, str], tuple[str, str]] = {}
        # The progress of the changes under way, by container.
        self._progress: dict[tuple[str, str], Progress] = {}

    def run_once(self, *args, **kwargs) -> None:
        """Settle late rows, and make all changes under way, to their end."""
        self._settle_all()
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
            try:
                self._begin_changes()
                self._start_changes()
                if self._is_due() and not self._settling:
                    self._settling = spawn(self._settle_all)
            except (Exception, Timeout):
                self.logger.exception('unexpected error')
            sleep(self.interval)

    def _start_changes(self, started: Collection = ()) -> None:
        """Start to work on the changes that this process does not work on yet.

        :param started: changes to leave out, which it has worked on already
        """
        for key, thread in list(self._running.items()):
            if thread.dead:
                del self._running[key]
        for path in self._own_changes():
            key = (path.account, path.container)
            if key in self._running or key in started:
                continue
            while len(self._looking) >= LOOKS_AT_A_TIME:
                sleep(LOOK_SECONDS)
            self._looking.add(key)
            self._running[key] = spawn(self._work_on, path)
        self._note_changes()

    def _own_changes(self) -> Iterator[Path]:
        """List the registered changes that this process has to make."""
        register = self.changes.register
        for account in self._read('register', register.accounts()):
            changes = register.changes(account)
            for path in self._read(f'changes of {account}', changes):
                if self._is_own(path.account, path.container):
                    yield path

    def _read(self, what: str, rows: Iterator) -> Iterator:
        """Yield the items of a listing, and log an error that ends it."""
        try:
            yield from rows
        except BackendError as err:
            self.logger.error('%s: cannot be listed: %s', what, err)
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', what)

    def _is_own(self, account: str, container: str) -> bool:
        if not self.processes:
            return True
        digest = int(hash_path(account, container), 16)
        return digest % self.processes == self.process

    def _is_due(self) -> bool:
        """Return True if it is time to look for late rows."""
        return time.monotonic() - self._settled >= self.late_rows_interval

    def _settle_all(self) -> None:
        """Settle the late rows, strays and leftovers of all accounts.

        An account in which nothing was found is skipped until its figures
        change or a day has passed.
        """
        now = self._settled = time.monotonic()
        if now - self._looked_at_all >= LOOK_AT_ALL_SECONDS:
            self._looked_at_all = now
            self._clean.clear()
            self._sound.clear()
        accounts = self._read('register', self.changes.register.accounts())
        for account in sorted({*accounts, *self.accounts}):
            try:
                self._settle_account(account)
            except BackendError as err:
                self.logger.error('%s: cannot be listed: %s', account, err)
            except (Exception, Timeout):
                self.logger.exception('%s: unexpected error', account)
        process = str(self.process)
        self.metrics.note(UNSETTLED, len(self._unsettled), process=process)

    def _settle_account(self, account: str) -> None:
        """Settle the leftovers of an account, if it may have any.

        :raises BackendError: if the account cannot be listed
        """
        figures = self._figures_of(account)
        if self._clean.get(account) == figures:
            return
        paths = containers_with_leftovers(
            self.cluster.backend, self.cluster.env, account, self._sound
        )
        found = set()
        for path in paths:
            found.add((path.account, path.container))
            if self._is_own(path.account, path.container):
                self._settle(path)
        for key in [each for each in self._unsettled if each[0] == account]:
            if key not in found:
                del self._unsettled[key]  # another process has settled it
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
        key, name = (path.account, path.container), _name(path)
        problem = ''
        try:
            done = settle(
                self.cluster.backend,
                self.cluster.env,
                path,
                self.options.rows_per_second,
                self.cluster.kept_seconds,
            )
            if done != NOTHING:
                self.logger.info('%s: settled: %s', name, done)
        except BackendError as err:
            problem = str(err)
        except LayoutError as err:
            problem = f'layout record: {err}'
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', name)
        if not problem:
            self._unsettled.pop(key, None)
        elif self._unsettled.get(key) != problem:
            self._unsettled[key] = problem
            self.logger.warning('%s: late rows wait: %s', name, problem)

    def _work_on(self, path: Path) -> None:
        """Go on with a change, or take its last steps."""
        name = _name(path)
        key = (path.account, path.container)
        note = ProgressNotes(self.cluster, path)
        resharding = Resharding(
            self.cluster.backend,
            self.cluster.env,
            path,
            self.options,
            lambda progress: self._take_turn(key, progress, note),
        )
        try:
            root = read_root(
                self.cluster.backend, self.cluster.env, path, waits=True
            )
            self._looking.discard(key)
            layout = root.record
            if not root.is_proved and not is_forgotten(
                self.cluster.backend, self.cluster.env, path, root
            ):
                raise BackendError(None, 503, unproved(root))
            if layout and layout.is_changing:
                self._unneeded.pop(key, None)
                resharding.run()
                return
            if layout and self._completed.get(key) != layout.serial:
                resharding.complete()
                self._completed[key] = layout.serial
            if layout is None or self._is_over(layout):
                self._drop(path)
        except BackendError as err:
            self.logger.error('%s: %s', name, err)
        except LayoutError as err:
            self.logger.error('%s: layout record: %s', name, err)
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', name)
        finally:
            self._looking.discard(key)
            self._moving.discard(key)
            progress = self._progress.pop(key, None)
            if progress:
                self._note_change(key, progress)

    def _take_turn(
        self, key: tuple[str, str], progress: Progress, note: ProgressNotes
    ) -> None:
        """Make a change wait for its turn to move, and log its progress.

        In all phases but *moving*, the change gives up its turn.
        """
        if progress.phase == MOVING:
            waiting = replace(progress, problem=self.turn_text)
            self._take_slot(key, lambda: note(waiting))
        else:
            self._moving.discard(key)
        self._progress[key] = progress
        self._log(key, progress)
        note(progress)

    def _take_slot(
        self, key: tuple[str, str], wait: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until fewer than ``concurrency`` others are moving rows.

        :param wait: called repeatedly meanwhile
        """
        while key not in self._moving:
            if len(self._moving) < self.concurrency:
                self._moving.add(key)
            else:
                wait()
                sleep(SLOT_SECONDS)

    def _drop(self, path: Path) -> None:
        """Remove a container from the register if no change comes.

        A change is registered before its record is written, so the container
        stays registered for ``write_seconds``.
        """
        now = time.monotonic()
        key = (path.account, path.container)
        if now - self._unneeded.setdefault(key, now) > self.write_seconds:
            self.changes.register.remove(path)
            del self._unneeded[key]
            root = read_root(self.cluster.backend, self.cluster.env, path)
            if root.record and root.record.is_changing:
                self.changes.register.note(path)

    def _is_over(self, layout: Layout) -> bool:
        """Return True if no rows from before a change can come any more."""
        age = time.time() - time_of_id(layout.serial)
        return not layout.is_changing and age > self.reclaim_age

    def _log(self, key: tuple[str, str], progress: Progress) -> None:
        phase = '' if progress.problem else progress.phase
        state = (phase, progress.problem)
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

    def _note_changes(self) -> None:
        """Send the metrics of the changes that this process makes."""
        self.metrics.note(
            CHANGES, len(self._progress), process=str(self.process)
        )
        for key, progress in list(self._progress.items()):
            self._note_change(key, progress)

    def _note_change(self, key: tuple[str, str], progress: Progress) -> None:
        metrics, (account, container) = self.metrics, key
        is_waiting = int(bool(progress.problem))
        metrics.note_of(account, container, WAITING, is_waiting)
        metrics.note_of(account, container, MOVED, progress.moved)
        if progress.total is not None:
            metrics.note_of(account, container, TO_MOVE, progress.total)

    def _begin_changes(self) -> None:
        """Announce the changes that containers need for their row counts."""
        is_noted = self.metrics.is_on and self.metrics.containers > 0
        if not (self.auto_reshard or self.auto_shrink or is_noted):
            return
        survey = Survey(self.cluster)
        known = self._read('accounts', survey.accounts())
        fullest = Fullest(self.metrics.containers)
        backlog = '' if self.despite_backlog else None
        for account in sorted({*known, *self.accounts}):
            containers = survey.containers(account, NEAR * self.rows_per_shard)
            listed = self._read(account, containers)
            containers = fullest.among(listed)
            for container in self._unsuitable(account, containers):
                if backlog is None:
                    backlog = self._read_backlog()
                if not backlog:
                    self._begin_suitable(survey, account, container)
        self._note_rows(fullest.containers)

    def _read_backlog(self) -> str:
        """Return why no change may begin now, and log it; '' if one may."""
        backlog = backlog_text(self.cluster.app)
        if backlog:
            self.logger.warning('no automatic change: %s', backlog)
        return backlog

    def _note_rows(self, containers: Iterable[Listed]) -> None:
        """Send the metrics of the containers with the fullest databases."""
        self.metrics.note(ROWS_LIMIT, self.rows_per_shard)
        for each in containers:
            labels = container_labels(each.account, each.container)
            self.metrics.note(FULLEST, each.fullest, **labels)
            self.metrics.note(SHARDS, each.shards, **labels)
            self.metrics.note(SKEW, round(each.skew, 3), **labels)

    def _unsuitable(self, account: str, listed: Iterator[Listed]) -> list[str]:
        """Return the containers that seem to need another shard count.

        A container changes together with that of its old versions.
        """
        names = {
            versions_owner(each.container) or each.container
            for each in listed
            if not (each.problem or each.phase)
            and can_be_sharded(each.container)
            and self._suitable(each) != each.shards
        }
        return [
            name
            for name in sorted(names)
            if self._is_own(account, name)
            and self._is_chosen(f'{account}/{name}')
        ]

    def _suitable(self, container: Listed) -> int:
        """Return the shard count that a container should have.

        It is the present count if the daemon may not make such a change.
        """
        suitable = suitable_shards(
            container, self.rows_per_shard, self.max_shards
        )
        grows = suitable > container.shards
        is_allowed = self.auto_reshard if grows else self.auto_shrink
        return suitable if is_allowed else container.shards

    def _is_chosen(self, name: str) -> bool:
        return any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self.containers
        )

    def _begin_suitable(
        self, survey: Survey, account: str, container: str
    ) -> None:
        """Begin a change to the shard count that a container should have.

        The listings of accounts may be older than the last change, so the
        row counts are read from the databases.
        """
        name = f'{account}/{container}'
        try:
            paths = self.changes.with_versions(account, container)
            measured = [survey.measured(*path[1:3]) for path in paths]
            suitable = max(map(self._suitable, measured))
            if any(each.shards != suitable for each in measured):
                self.changes.begin(
                    account, container, suitable, despite_backlog=True
                )
                self.logger.info(
                    '%s: begins to change from %d to %d shards',
                    name,
                    measured[0].shards,
                    suitable,
                )
        except AdminError as err:
            self.logger.warning('no automatic change: %s', err)
        except (BackendError, LayoutError) as err:
            self.logger.warning('%s: %s', name, err)
        except (Exception, Timeout):
            self.logger.exception('%s: unexpected error', name)


def _name(path: Path) -> str:
    return f'{path.account}/{path.container}'


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


def _number(
    conf: dict, name: str, default: float, kind: str = 'a number'
) -> float:
    """Return the value of an option.

    :param kind: what the option may be, for the text of the error
    :raises ConfigError: if it is not a number, or less than 0
    """
    text = conf.get(name, default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float('inf'):
        raise ConfigError(
            f'{SECTION}: {name} = {text}: must be {kind}, 0 or more'
        )
    return value


def _count(conf: dict, name: str, default: int, least: int = 0) -> int:
    """Return the value of an option that is a whole number.

    :raises ConfigError: if it is not a whole number, or less than `least`
    """
    text = str(conf.get(name, default))
    if not (text.isascii() and text.isdecimal() and int(text) >= least):
        raise ConfigError(
            f'{SECTION}: {name} = {text}: must be a whole number, '
            f'{least} or more'
        )
    return int(text)


def _flag(conf: dict, name: str) -> bool:
    """Return the value of an option that is on or off.

    :raises ConfigError: if it is neither
    """
    text = conf.get(name, 'false')
    if text.lower() not in TRUE_VALUES | FALSE_VALUES:
        raise ConfigError(f'{SECTION}: {name} = {text}: must be true or false')
    return text.lower() in TRUE_VALUES


def main() -> None:
    """Run the command ``shardmw-resharder``."""
    parser = OptionParser('%prog CONFIG [options]', description=DESCRIPTION)
    conf_file, options = parse_options(parser, once=True)
    try:
        run_daemon(Resharder, conf_file, SECTION, **options)
    except (AdminError, ConfigError, configparser.Error) as err:
        sys.exit(f'Error: {in_one_line(err)}')
