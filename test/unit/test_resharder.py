# SPDX-License-Identifier: Apache-2.0
"""The daemon that changes layouts: its configuration and its log."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from greenlet import getcurrent
from swift.common.exceptions import ChunkReadTimeout

from shardmw.backend.config import ConfigError, parse_options
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.core.layout import PLAIN, Layout, LayoutError
from shardmw.core.paths import Path as SwiftPath
from shardmw.core.paths import Place
from shardmw.core.placement import REGISTER, backing_container
from shardmw.reshard import automatic as automatic_module
from shardmw.reshard import job, leftovers
from shardmw.reshard.automatic import AutomaticChanges, AutomaticOptions
from shardmw.reshard.changes import Changes
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.daemon import SECTION, Resharder
from shardmw.reshard.executor import Executor
from shardmw.reshard.job import Job, Means
from shardmw.reshard.late_rows import NOTHING, Settled
from shardmw.reshard.leftovers import LOOK_AT_ALL_SECONDS, Leftovers
from shardmw.reshard.register import Register
from shardmw.reshard.resharding import MoveOptions, Slots
from shardmw.reshard.scope import Scope
from shardmw.swift.concurrency import sleep, spawn
from test.unit.clocks import Clock
from test.unit.containers import NEW_ID, OLD_ID
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, Logger

COMMAND = 'from shardmw.reshard.daemon import main; main()'


@pytest.fixture
def conf(tmp_path) -> Path:
    return tmp_path / 'shardmw-resharder.conf'


def write(conf: Path, line: str, section: str = SECTION) -> None:
    conf.write_text(f'[{section}]\n{line}\n')


@pytest.mark.parametrize(
    ('option', 'value', 'allowed'),
    [
        ('interval', 'often', 'a number, 0 or more'),
        ('interval', '-1', 'a number, 0 or more'),
        ('interval', 'inf', 'a number, 0 or more'),
        ('interval', 'nan', 'a number, 0 or more'),
        ('late_rows_interval', 'daily', 'a number, 0 or more'),
        ('reclaim_age', '7d', 'a number, 0 or more'),
        ('settle_seconds', '-5', 'a number, 0 or more'),
        ('info_cache_seconds', 'car', 'auto, or a number, 0 or more'),
        ('info_cache_seconds', '-1', 'auto, or a number, 0 or more'),
        ('concurrency', '0', 'a whole number, 1 or more'),
        ('concurrency', '1.5', 'a whole number, 1 or more'),
        ('rows_per_shard', '0', 'a whole number, 1 or more'),
        ('rows_per_shard', '1e6', 'a whole number, 1 or more'),
        ('rows_per_second', '-1', 'a whole number, 0 or more'),
        ('processes', '-1', 'a whole number, 0 or more'),
        ('process', 'first', 'a whole number, 0 or more'),
        ('process', '-1', 'a whole number, 0 or more'),
        ('auto_reshard', 'maybe', 'true or false'),
        ('auto_shrink', '2', 'true or false'),
        ('shrink_after_days', '-1', 'a number, 0 or more'),
        ('ask_for_objects', 'ja', 'true or false'),
    ],
)
def test_a_wrong_value_is_refused_and_the_allowed_ones_are_named(
    conf, option, value, allowed
):
    write(conf, f'{option} = {value}')
    with pytest.raises(ConfigError) as raised:
        Resharder({'__file__': str(conf), option: value})
    text = f'{SECTION}: {option} = {value}: must be {allowed}'
    assert str(raised.value) == text


def test_a_process_must_be_one_of_the_processes(conf):
    write(conf, '')
    options = {'processes': '2', 'process': '2'}
    with pytest.raises(ConfigError, match='must be less than processes = 2'):
        Resharder({'__file__': str(conf), **options})


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (
            BackendError(None, 503),
            'AUTH_a: cannot be listed: the root answered 503',
        ),
        (ChunkReadTimeout(None), 'AUTH_a: unexpected error'),
        (ValueError('half a page'), 'AUTH_a: unexpected error'),
    ],
)
def test_a_listing_that_breaks_off_is_logged_and_ends(error, line):
    def rows() -> Iterator[str]:
        yield 'first'
        raise error

    logger = Logger()
    scope = Scope(None, logger)
    assert list(scope.until_error('AUTH_a', rows())) == ['first']
    assert logger.lines == [line]
    assert scope.take_problem().startswith('AUTH_a: ')


@pytest.mark.parametrize(
    ('section', 'line', 'message'),
    [
        (
            SECTION,
            'auto_reshrad = true',
            'Error: shardmw-resharder: unknown option auto_reshrad in '
            '[shardmw-resharder]: did you mean auto_reshard?',
        ),
        (
            SECTION,
            'concurrency = many',
            'Error: shardmw-resharder: concurrency = many: must be a whole '
            'number, 1 or more',
        ),
        (
            'other',
            '',
            'Unable to find shardmw-resharder config section in {conf}',
        ),
        (
            SECTION,
            'swift_dir = {folder}',
            'Error: {folder}/swift.conf: no such file: name its folder with '
            '--swift-dir, in a file of the daemon with swift_dir',
        ),
    ],
)
def test_the_command_ends_with_one_line(conf, section, line, message):
    folder = conf.parent
    write(conf, line.format(folder=folder), section)
    ran = subprocess.run(
        [sys.executable, '-c', COMMAND, str(conf), 'once'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stderr == message.format(conf=conf, folder=folder) + '\n'


def test_the_command_reports_a_file_without_sections_in_one_line(conf):
    conf.write_text('garbage')
    ran = subprocess.run(
        [sys.executable, '-c', COMMAND, str(conf), 'once'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith('Error: File contains no section headers. ')


def test_a_pass_first_goes_on_with_what_was_interrupted():
    resharder = mock.Mock()
    resharder.automatic.begin.side_effect = ValueError
    with pytest.raises(ValueError):
        Resharder._pass(resharder)
    resharder._start_jobs.assert_called_once_with()


def test_a_job_whose_container_left_the_register_is_forgotten():
    ended = mock.Mock(is_running=False, is_over=False, progress=None)
    resharder = mock.Mock(_jobs={Place('AUTH_a', 'c'): ended})
    resharder.scope.changes.return_value = []
    Resharder._start_jobs(resharder)
    assert resharder._jobs == {}


LAYOUT, EARLIER = Layout(NEW_ID, 1), Layout(OLD_ID, 1)


def shard(layout: Layout, container: str = 'c') -> str:
    return f'/{HIDDEN}/{backing_container(container, layout.id, 0)}'


class Daemon:
    """The parts of a daemon for a Swift in this process."""

    def __init__(self, swift: FakeSwift) -> None:
        self.logger = Logger()
        self.logger.info = self.logger.warning
        options = parse_options({'head_cache_seconds': '0'})
        self.cluster = SwiftCluster(swift, options=options)
        self.cluster.backend.metrics = self.logger.metrics
        self.register = Register(self.cluster.backend, self.cluster.env)
        self.scope = Scope(self.register, self.logger)
        self.leftovers = Leftovers(
            self.cluster, self.scope, 300, 0, self.logger
        )
        self.means = Means(
            self.cluster,
            self.register,
            MoveOptions(0, 0),
            0,
            self.logger,
            Slots(),
        )
        self.job = Job(SwiftPath('v1', ACCOUNT, 'c'), self.means)

    def settle_all(self) -> None:
        self.leftovers.settle_all()

    def work(self) -> None:
        """Work on the container until the job is done."""
        self.job.start()
        while self.job.is_running:
            sleep(0)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock(1_800_000_000)
    for module in (leftovers, job):
        monkeypatch.setattr(module, 'time', clock)
    return clock


@pytest.fixture
def daemon(swift, clock) -> Daemon:
    """Return a daemon for a sharded container with a late row."""
    swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: LAYOUT.to_record()})
    for layout in (LAYOUT, EARLIER):
        swift.put_container(shard(layout))
    swift.put_row(f'{shard(EARLIER)}/late')
    swift.put_container(f'/{REGISTER}/{ACCOUNT}')
    report(swift)
    return Daemon(swift)


def report(swift: FakeSwift) -> None:
    """Report the counts of containers to their accounts."""
    swift.update_accounts()
    swift.memcached.values.clear()


def late(swift: FakeSwift) -> dict[str, int]:
    return swift.rows(*shard(EARLIER)[1:].split('/'))


@pytest.fixture
def settled(monkeypatch) -> list[str]:
    """Return the containers that are settled; nothing is found in them."""
    settled = []

    def settle(_backend, _env, path, *_seconds) -> Settled:
        settled.append(path.container)
        return NOTHING

    monkeypatch.setattr(leftovers, 'settle', settle)
    return settled


class TestSettling:
    def test_moves_late_rows_of_registered_accounts(self, swift, daemon):
        daemon.settle_all()
        assert late(swift) == {}
        assert daemon.logger.lines == [
            'AUTH_test/c: settled: 1 late rows and 0 strays moved, '
            '1 empty backing containers deleted'
        ]

    def test_looks_at_accounts_of_the_option_too(self, swift, daemon):
        swift.direct('DELETE', f'/{REGISTER}/{ACCOUNT}')
        report(swift)
        daemon.settle_all()
        assert 'late' in late(swift)
        daemon.scope.named = [ACCOUNT]
        daemon.settle_all()
        assert late(swift) == {}

    def test_is_due_once_an_interval(self, daemon, clock):
        assert daemon.leftovers.is_due
        daemon.settle_all()
        clock.now += 299
        assert not daemon.leftovers.is_due
        clock.now += 1
        assert daemon.leftovers.is_due

    def test_settles_several_containers_at_once(
        self, swift, daemon, monkeypatch
    ):
        for container in 'de':
            record = {RECORD_HEADER: LAYOUT.to_record()}
            swift.put_container(f'/{ACCOUNT}/{container}', record)
            for layout in (LAYOUT, EARLIER):
                swift.put_container(shard(layout, container))
        report(swift)
        begun, seen = set(), []

        def settle(_backend, _env, path, *_args) -> Settled:
            begun.add(path.container)
            for _ in range(100):
                sleep(0)
            seen.append(len(begun))
            return NOTHING

        monkeypatch.setattr(leftovers, 'settle', settle)
        daemon.settle_all()
        assert seen == [3, 3, 3]

    def test_ends_with_the_daemon(self, daemon, monkeypatch):
        main = getcurrent()

        def settle(*_args) -> Settled:
            spawn(main.throw, KeyboardInterrupt)
            sleep(60)

        monkeypatch.setattr(leftovers, 'settle', settle)
        with pytest.raises(KeyboardInterrupt):
            daemon.settle_all()

    def test_is_shared_by_the_processes(self, daemon, settled):
        daemon.scope.processes = 2
        for daemon.scope.process in range(2):
            daemon.settle_all()
        assert settled == ['c']

    def test_looks_again_at_an_account_that_had_leftovers(
        self, daemon, settled
    ):
        for _ in range(2):
            daemon.settle_all()
        assert settled == ['c', 'c']

    def test_goes_on_after_an_account_that_cannot_be_listed(
        self, swift, daemon
    ):
        daemon.scope.named = ['AUTH_away']
        swift.register('GET', '/v1/.shards_shardmw_AUTH_away', 503)
        daemon.settle_all()
        assert late(swift) == {}
        problem = daemon.scope.take_problem()
        assert problem.startswith('AUTH_away: cannot be listed: ')
        assert daemon.logger.lines[0] == problem
        assert daemon.scope.take_problem() == ''


class TestGrowth:
    """A shard has grown for an hour at its rate limit of 0.001 rows/s."""

    @pytest.fixture
    def automatic(self, daemon, clock, monkeypatch) -> AutomaticChanges:
        monkeypatch.setattr(automatic_module, 'time', clock)
        options = AutomaticOptions(
            grows=True,
            shrinks=False,
            despite_backlog=True,
            rows_per_shard=1000,
            containers=('*',),
            write_limit=lambda _rows: 0.001,
        )
        return AutomaticChanges(
            Changes(daemon.cluster, MoveOptions(0, 0)),
            daemon.scope,
            options,
            daemon.logger,
        )

    @pytest.mark.parametrize(('rows', 'shards'), [(4, 2), (3, 1)])
    def test_gives_twice_the_shards(
        self, swift, daemon, automatic, clock, rows, shards
    ):
        automatic.begin()
        for i in range(rows):
            swift.put_row(f'{shard(LAYOUT)}/o{i}')
        report(swift)
        clock.now += 3600
        automatic.begin()
        root = daemon.cluster.root(SwiftPath('v1', ACCOUNT, 'c'))
        assert root.record.shards == shards
        assert root.answer.floor == (shards if shards > 1 else 0)


class TestFigures:
    """Accounts without leftovers are skipped while counts do not change."""

    @pytest.fixture
    def looks(self, swift, daemon, monkeypatch) -> list[str]:
        """Return a list of the accounts that were looked at."""
        swift.direct('DELETE', f'{shard(EARLIER)}/late')
        swift.direct('DELETE', shard(EARLIER))
        report(swift)
        looks = []
        look = leftovers.containers_with_leftovers

        def looking(backend, env, account, sound):
            looks.append(account)
            return look(backend, env, account, sound)

        monkeypatch.setattr(leftovers, 'containers_with_leftovers', looking)
        daemon.settle_all()
        assert looks == [ACCOUNT]
        looks.clear()
        return looks

    def test_that_are_the_same_cost_no_listing(self, daemon, looks):
        daemon.settle_all()
        assert looks == []

    @pytest.mark.parametrize(
        'place', [f'/{ACCOUNT}/c', shard(LAYOUT)], ids=['root', 'shard']
    )
    def test_that_change_by_a_row_are_looked_at(
        self, swift, daemon, looks, place
    ):
        swift.put_row(f'{place}/o')
        report(swift)
        daemon.settle_all()
        assert looks == [ACCOUNT]

    def test_that_change_by_a_container_are_looked_at(
        self, swift, daemon, looks
    ):
        swift.put_container(shard(EARLIER))
        report(swift)
        daemon.settle_all()
        assert looks == [ACCOUNT]

    def test_are_looked_at_once_a_day_all_the_same(self, daemon, looks, clock):
        clock.now += LOOK_AT_ALL_SECONDS
        daemon.settle_all()
        assert looks == [ACCOUNT]


class TestUnsettled:
    @pytest.fixture
    def fail(self, monkeypatch):
        def fail(error: Exception | None) -> None:
            def settle(*_args) -> Settled:
                if error:
                    raise error
                return NOTHING

            monkeypatch.setattr(leftovers, 'settle', settle)

        return fail

    def test_is_logged_with_the_reason(self, daemon, fail):
        fail(BackendError(None, 503, '1 of 3 replicas stored the rows'))
        daemon.settle_all()
        assert daemon.logger.lines == [
            'AUTH_test/c: late rows wait: 1 of 3 replicas stored the rows'
        ]

    def test_is_logged_again_if_the_reason_changes(self, daemon, fail):
        for reason in ('one', 'one', 'other', 'one'):
            fail(BackendError(None, 503, reason))
            daemon.settle_all()
        assert [line.split()[-1] for line in daemon.logger.lines] == [
            'one',
            'other',
            'one',
        ]

    def test_is_a_record_that_cannot_be_read(self, daemon, fail):
        fail(LayoutError('damaged'))
        daemon.settle_all()
        assert daemon.logger.lines == [
            'AUTH_test/c: late rows wait: layout record: damaged'
        ]

    def test_is_counted_until_it_is_settled(self, daemon, fail):
        sent = []
        daemon.cluster.backend.metrics = SimpleNamespace(
            note=lambda metric, value, process: sent.append((value, process))
        )
        for error in (BackendError(None, 503, 'x'), None):
            fail(error)
            daemon.settle_all()
        assert sent == [(1, '0'), (0, '0')]

    def test_is_not_counted_once_another_process_has_settled_it(
        self, swift, daemon, fail
    ):
        fail(BackendError(None, 503, 'x'))
        daemon.settle_all()
        swift.direct('DELETE', f'{shard(EARLIER)}/late')
        swift.direct('DELETE', shard(EARLIER))
        report(swift)
        daemon.settle_all()
        assert daemon.leftovers._problems == {}


def test_a_change_that_waits_for_its_turn_says_so(swift, daemon):
    _announce(swift)
    seen = []
    daemon.means.moves.most = 1
    assert daemon.means.moves.take()  # another change moves rows

    class Waiting(Executor):
        def wait(self, seconds: float) -> None:
            if change.progress.problem:
                seen.append((change.progress.phase, change.progress.problem))
                daemon.means.moves.give_back()

    change = job.Resharding(
        Waiting(daemon.cluster.backend, daemon.cluster.env, daemon.job.path),
        MoveOptions(0, 0),
        slots=daemon.means.moves,
    )
    change.run()
    problem = 'rows of 1 other containers are moving (concurrency)'
    assert seen == [('waiting to move', problem)]
    assert not change.progress.is_queued
    assert change.progress.phase == 'done'


class TestChange:
    def test_of_a_root_without_database_stays_registered(self, swift, daemon):
        path = SwiftPath('v1', ACCOUNT, 'c')
        daemon.register.note(path)
        swift.lose(ACCOUNT, 'c', 0)
        for _ in range(3):
            daemon.work()
        assert list(daemon.register.changes(ACCOUNT)) == [path]
        assert {*daemon.logger.lines} == {
            'AUTH_test/c: 0 of 1 replicas of the root have a database, '
            '1 have answered'
        }

    def test_of_a_deleted_root_is_dropped(self, swift, daemon, clock):
        path = SwiftPath('v1', ACCOUNT, 'c')
        daemon.register.note(path)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        for _ in range(2):
            clock.now += daemon.means.write_seconds + 1
            daemon.work()
        assert list(daemon.register.changes(ACCOUNT)) == []

    def test_that_the_register_does_not_list_is_found_again(
        self, swift, daemon
    ):
        register = daemon.register
        _announce(swift)
        daemon.settle_all()
        path = SwiftPath('v1', ACCOUNT, 'c')
        assert list(register.changes(ACCOUNT)) == [path]

    def test_of_an_empty_plain_container_is_found_again(self, swift, daemon):
        swift.put_container(
            f'/{ACCOUNT}/d', {RECORD_HEADER: PLAIN.announced(1, 0).to_record()}
        )
        layout = daemon.cluster.root(SwiftPath('v1', ACCOUNT, 'd')).record
        swift.put_container(shard(layout, 'd'))
        report(swift)
        daemon.settle_all()
        assert SwiftPath('v1', ACCOUNT, 'd') in daemon.register.changes(
            ACCOUNT
        )

    def test_that_ended_long_ago_takes_its_last_steps(
        self, swift, daemon, clock, monkeypatch
    ):
        path = SwiftPath('v1', ACCOUNT, 'c')
        daemon.register.note(path)
        completed = []
        monkeypatch.setattr(
            job.Resharding,
            'complete',
            lambda self: completed.append(self),
        )
        for _ in range(2):
            clock.now += daemon.means.write_seconds + 1
            daemon.work()
        assert len(completed) == 1
        assert list(daemon.register.changes(ACCOUNT)) == []


def _announce(swift: FakeSwift) -> None:
    """Write the record of a change, but not to the register."""
    announced = LAYOUT.announced(2, 0)
    swift.put_container(
        f'/{ACCOUNT}/c', {RECORD_HEADER: announced.to_record()}
    )
