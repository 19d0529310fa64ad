# SPDX-License-Identifier: Apache-2.0
"""The daemon ``shardmw-resharder``.

It continues changes of layout that were interrupted, and makes those that were
announced for it (``shardmw-admin reshard --detach``), each in a
:mod:`job <shardmw.reshard.job>`. Every few minutes it looks at the accounts
whose figures have changed, for late rows, strays and empty backing containers,
and settles them (:mod:`shardmw.reshard.leftovers`): no other daemon does. With
``auto_reshard`` it also gives more shards to containers that have too many
rows in one database (:mod:`shardmw.reshard.automatic`). After each pass it
leaves a note in the register (:mod:`shardmw.reshard.heartbeat`).

Any number of daemons may run, on any machines: the changes under way are
listed in the register and in the layout records, and two daemons that change
the same container do no harm. ``processes`` and ``process`` divide the
containers among them.
"""

import configparser
import contextlib
import socket
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from optparse import OptionParser
from pathlib import Path as FilePath

from swift.common.daemon import Daemon, run_daemon
from swift.common.utils import TRUE_VALUES, get_logger, parse_options

from shardmw import __version__
from shardmw.backend.config import ConfigError, check_option_names
from shardmw.backend.containers import BackendError
from shardmw.backend.metrics import CHANGES, open_metrics
from shardmw.core.paths import Place
from shardmw.reshard.automatic import AutomaticChanges, AutomaticOptions
from shardmw.reshard.changes import RECLAIM_SECONDS, Changes
from shardmw.reshard.cluster import open_cluster
from shardmw.reshard.errors import AdminError
from shardmw.reshard.heartbeat import Heartbeat
from shardmw.reshard.job import Job, Means
from shardmw.reshard.leftovers import Leftovers
from shardmw.reshard.resharding import MoveOptions, Slots
from shardmw.reshard.scope import Scope
from shardmw.reshard.shard_advice import ROWS_PER_SHARD
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
    'shrink_after_days',
    'swift_dir',
    'sync_seconds',
)

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
        late_rows_interval = _number(conf, 'late_rows_interval', 300)
        reclaim_age = _number(conf, 'reclaim_age', RECLAIM_SECONDS)
        concurrency = _count(conf, 'concurrency', 4, 1)
        processes = _count(conf, 'processes', 0)
        process = _count(conf, 'process', 0)
        if processes and process >= processes:
            raise ConfigError(
                f'{SECTION}: process = {process}: must be less than '
                f'processes = {processes}'
            )
        automatic = AutomaticOptions(
            grows=_flag(conf, 'auto_reshard'),
            shrinks=_flag(conf, 'auto_shrink'),
            despite_backlog=_flag(conf, 'despite_backlog'),
            rows_per_shard=_count(conf, 'rows_per_shard', ROWS_PER_SHARD, 1),
            containers=tuple(conf.get('containers', '*').split()),
            shrink_after_days=_number(conf, 'shrink_after_days', 7),
        )
        metric_containers = _count(conf, 'metric_containers', 20)
        cache_seconds = None
        if conf.get('info_cache_seconds', AUTO) != AUTO:
            cache_seconds = _number(
                conf, 'info_cache_seconds', 0, 'auto, or a number'
            )
        options = MoveOptions(
            settle_seconds=_number(conf, 'settle_seconds', 86400),
            rows_per_second=_count(conf, 'rows_per_second', 0),
            asks_for_objects=_flag(conf, 'ask_for_objects'),
            sync_seconds=_number(conf, 'sync_seconds', 360),
        )
        swift_dir = FilePath(conf.get('swift_dir', '/etc/swift'))
        use_swift_dir(swift_dir)
        self.cluster = open_cluster(FilePath(conf['__file__']), swift_dir)
        if cache_seconds is None:
            cache_seconds = self.cluster.info_cache_seconds
        options = replace(options, cache_seconds=cache_seconds)
        filter_options = self.cluster.options
        if filter_options is None:
            raise ConfigError(
                f'{SECTION}: the pipeline has no filter shardmw: add it'
            )
        self.metrics = open_metrics(conf, self.logger, metric_containers)
        self.cluster.backend.metrics = self.metrics
        changes = Changes(self.cluster, options)
        self.scope = Scope(
            changes.register,
            self.logger,
            conf.get('accounts', '').replace(',', ' ').split(),
            processes,
            process,
        )
        self.leftovers = Leftovers(
            self.cluster,
            self.scope,
            late_rows_interval,
            options.rows_per_second,
            self.logger,
        )
        self.automatic = AutomaticChanges(
            changes,
            self.scope,
            replace(
                automatic,
                max_shards=filter_options.max_shards,
                write_limit=filter_options.rate_limits.writes.rate_of,
            ),
            self.logger,
        )
        self.means = Means(
            self.cluster,
            changes.register,
            options,
            reclaim_age,
            self.logger,
            Slots(concurrency),
        )
        self._jobs: dict[Place, Job] = {}
        # How many of them were working on a change at the last look.
        self._changing = 0
        # The green thread that settles leftovers. It is false once it has
        # ended.
        self._settling = None

    def run_once(self, *args, **kwargs) -> None:
        """Settle leftovers, and make all changes under way, to their end."""
        started = time.monotonic()
        self.leftovers.settle_all()
        self.automatic.begin()
        begun: set[Place] = set()
        while True:
            begun.update(self._start_jobs(begun))
            if not any(job.is_running for job in self._jobs.values()):
                break
            sleep(1)
        self._note(time.monotonic() - started, self.scope.take_problem())

    def run_forever(self, *args, **kwargs) -> None:
        """Make changes as they come."""
        while True:
            started = time.monotonic()
            problem = self._problem_of(self._pass)
            problem = problem or self.scope.take_problem()
            seconds = time.monotonic() - started
            self._problem_of(partial(self._note, seconds, problem))
            sleep(self.interval)

    def _pass(self) -> None:
        """Begin what is due, first what was interrupted."""
        begun = self._start_jobs()
        if self.leftovers.is_due and not self._settling:
            self._settling = spawn(self.leftovers.settle_all)
        self.automatic.begin()
        self._start_jobs(begun)

    def _problem_of(self, act: Callable[[], None]) -> str:
        """Call a function, and log an error that it raises.

        :returns: the name of the error, '' for none
        """
        try:
            act()
        except (Exception, Timeout) as err:
            self.logger.exception('unexpected error')
            return type(err).__name__
        return ''

    def _note(self, pass_seconds: float, problem: str = '') -> None:
        """Leave a note of a pass in the register.

        Go on if the register does not answer: its listings log that.
        """
        note = Heartbeat(
            self.scope.process,
            self.scope.processes,
            socket.gethostname(),
            __version__,
            self.interval,
            round(pass_seconds, 3),
            self._changing,
            self.leftovers.settled,
            self.leftovers.waiting,
            problem,
            time.time(),
        )
        with contextlib.suppress(BackendError):
            self.means.register.note_process(
                self.scope.process, note.to_text()
            )

    def _start_jobs(self, done: Collection[Place] = ()) -> list[Place]:
        """Start to work on the changes that this process does not work on yet.

        :param done: changes to leave out, which it has worked on already
        :returns: the changes that it has started to work on
        """
        started, listed = [], set()
        for path in self.scope.changes():
            place = path.place
            listed.add(place)
            job = self._jobs.setdefault(place, Job(path, self.means))
            if not (job.is_running or place in done):
                job.start()
                started.append(place)
        self._jobs = {
            place: job
            for place, job in self._jobs.items()
            if job.is_running or (place in listed and not job.is_over)
        }
        changing = [job for job in self._jobs.values() if job.progress]
        self._changing = len(changing)
        self.metrics.note(
            CHANGES, self._changing, process=str(self.scope.process)
        )
        for job in changing:
            job.note_metrics()
        return started


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
