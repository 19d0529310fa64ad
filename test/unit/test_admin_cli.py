# SPDX-License-Identifier: Apache-2.0
"""The command line of shardmw-admin, on Swift's own databases."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from shardmw import __version__
from shardmw.admin import cli, interrupts
from shardmw.backend.config import parse_options
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.core.layout import Layout
from shardmw.core.paths import Path as SwiftPath
from shardmw.reshard import executor
from shardmw.reshard.changes import Changes, Plan
from shardmw.reshard.cluster import SwiftCluster, open_cluster
from shardmw.reshard.errors import AdminError
from shardmw.reshard.resharding import MoveOptions, Resharding
from test.unit.containers import OLD_ID, backing, create, layout_of
from test.unit.fakeswift import ACCOUNT, HIDDEN, filtered

COMMAND = 'from shardmw.admin.cli import main; main(prog_name="shardmw-admin")'

#: The waits of a change.
AT_ONCE = ('--settle-seconds', '0', '--info-cache-seconds', '0')

#: The filter's options. Strays move without a wait.
OPTIONS = parse_options({'head_cache_seconds': '0', 'max_shards': '64'})


@pytest.fixture
def admin(swift, monkeypatch) -> Callable[..., Result]:
    """Return a function that runs the command: ``admin('list')``."""
    monkeypatch.setattr(
        cli, '_open', lambda *_args: SwiftCluster(swift, options=OPTIONS)
    )
    return lambda *arguments, **options: CliRunner().invoke(
        cli.main, arguments, **options
    )


def test_prints_the_version(admin):
    assert admin('--version').stdout.endswith(f' {__version__}\n')


class TestAudit:
    def test_names_a_container_that_cannot_be_read(self, swift, admin):
        swift.put_container(f'/{ACCOUNT}/damaged', {RECORD_HEADER: '{}'})
        swift.update_accounts()
        for options in ([], ['--repair'], ['--json']):
            ran = admin('audit', '--account', ACCOUNT, *options)
            assert ran.exit_code == 1
            assert f'Error: {ACCOUNT}/damaged: version None' in ran.stderr
            assert 'container that could not be audited' in ran.stdout

    @pytest.fixture
    def lost(self, swift) -> str:
        """Lose a shard of the container `c`; return its name."""
        create(swift, filtered(swift), 2)
        name = backing(swift, 1)
        swift.lose(HIDDEN, name, 0)
        return name

    def test_does_not_mend_a_lost_shard_and_says_what_to_do(
        self, swift, admin, lost
    ):
        for options in ([], ['--repair']):
            ran = admin('audit', f'{ACCOUNT}/c', *options)
            assert ran.exit_code == 1
            assert ran.stderr.startswith(f'Error: {ACCOUNT}/c: the objects of')
            assert '--repair --accept-loss' in ran.stderr
            assert 'lost on all servers' in ran.stdout
            assert 'mended' not in ran.stdout
        assert not swift.exists(HIDDEN, lost)

    def test_creates_a_lost_shard_if_the_loss_is_accepted(
        self, swift, admin, lost
    ):
        path = f'{ACCOUNT}/c'
        ran = admin('audit', path, '--repair', '--accept-loss')
        assert (ran.exit_code, ran.stderr) == (0, '')
        assert ran.stdout.rstrip().endswith('mended')
        assert swift.exists(HIDDEN, lost)

    def test_takes_accept_loss_only_with_repair(self, admin):
        ran = admin('audit', f'{ACCOUNT}/c', '--accept-loss')
        assert ran.exit_code == 2
        assert '--accept-loss is for --repair' in ran.stderr


class TestStatus:
    def test_fails_if_a_container_cannot_be_read(self, swift, admin):
        cluster = SwiftCluster(swift)
        cluster.backend.create_hidden_account(cluster.env, HIDDEN)
        swift.put_container(f'/{ACCOUNT}/damaged', {RECORD_HEADER: '{}'})
        swift.update_accounts()
        assert admin('status').exit_code == 0
        Changes(cluster, MoveOptions()).register.note(
            SwiftPath('v1', ACCOUNT, 'damaged')
        )
        for options in ([], ['--json']):
            ran = admin('status', *options)
            assert ran.exit_code == 1
            assert 'version None' in ran.stdout


class TestCheck:
    @pytest.fixture(autouse=True)
    def container(self, swift) -> None:
        """A plain container of nine objects."""
        swift.put_container(f'/{ACCOUNT}/plain')
        for number in range(9):
            swift.put_row(f'/{ACCOUNT}/plain/{number}')
        swift.update_accounts()

    @pytest.mark.parametrize(
        ('rows', 'limit', 'advised'), [(10, 'near', 2), (8, 'exceeded', 4)]
    )
    def test_says_how_full_the_database_is(self, admin, rows, limit, advised):
        ran = admin('check', ACCOUNT, '--rows-per-shard', str(rows))
        assert ran.exit_code == 1
        heads, found = map(str.split, ran.stdout.splitlines())
        assert heads[3:] == ['fullest', 'limit', 'advised']
        assert found[3:] == ['9', limit, str(advised)]

    def test_says_what_a_full_container_that_changes_becomes(
        self, swift, admin
    ):
        layout = Layout(OLD_ID, 0).announced(4, time.time())
        for record in (layout, layout.moving(time.time()).cancelled(0)):
            headers = {RECORD_HEADER: record.to_record()}
            swift.direct('POST', f'/{ACCOUNT}/plain', headers)
            swift.put_container(f'/{HIDDEN}/plain.{layout.id}.0')
            swift.update_accounts()
            ran = admin('check', ACCOUNT, '--rows-per-shard', '8')
            assert ran.exit_code == 1
            becomes = str(record.sharding)
            assert ran.stdout.rstrip().endswith(f'wait: it becomes {becomes}')

    @pytest.mark.parametrize('arguments', [[ACCOUNT], ['other', ACCOUNT]])
    def test_takes_accounts_as_arguments(self, swift, admin, arguments):
        swift.put_account('other')
        ran = admin('check', *arguments, '--rows-per-shard', '8')
        assert (ran.exit_code, ran.stderr) == (1, '')
        assert f'{ACCOUNT}/plain' in ran.stdout

    def test_takes_accounts_from_a_file(self, admin, tmp_path):
        file = tmp_path / 'accounts'
        file.write_text(f'\n{ACCOUNT}\n{ACCOUNT}\n')
        ran = admin(
            'check', '--accounts-from', str(file), '--rows-per-shard', '8'
        )
        assert ran.exit_code == 1
        assert ran.stdout.count(f'{ACCOUNT}/plain') == 1

    def test_takes_accounts_from_stdin(self, admin):
        ran = admin(
            *('check', '--accounts-from', '-', '--rows-per-shard', '8'),
            input='AUTH%5Ftest\n',
        )
        assert ran.exit_code == 1
        assert f'{ACCOUNT}/plain' in ran.stdout

    def test_goes_on_after_an_account_that_does_not_exist(self, admin):
        ran = admin('check', 'none', ACCOUNT, '--rows-per-shard', '8')
        assert ran.exit_code == 1
        assert ran.stderr == 'Error: none: no such account\n'
        assert f'{ACCOUNT}/plain' in ran.stdout

    @pytest.mark.parametrize(
        ('text', 'message'),
        [('\n', 'names no account'), ('a/b\n', 'a/b: not a name like')],
    )
    def test_refuses_a_file_without_names_of_accounts(
        self, admin, text, message
    ):
        ran = admin('check', '--accounts-from', '-', input=text)
        assert ran.exit_code == 1
        assert message in ran.stderr


@pytest.mark.parametrize(
    ('former', 'new', 'text'),
    [
        ((0, 0), (4, 1), 'from plain to 4 shards, depth 1'),
        ((4, 1), (0, 0), 'from 4 shards, depth 1 to plain'),
        ((4, 1), (4, 0), 'from 4 shards, depth 1, to 4 shards, depth 0'),
        ((4, 1), (8, 1), 'from 4 shards, depth 1 to 8 shards, depth 1'),
        ((4, 0), (8, 0), 'from 4 shards to 8 shards'),
    ],
)
def test_a_planned_change_names_both_depths_if_they_differ(former, new, text):
    plan = Plan('a', 'c', new[0], former[0], 0, 0, new[1], former[1])
    assert str(plan) == text


class TestReshard:
    @pytest.fixture(autouse=True)
    def sharded(self, swift, monkeypatch) -> None:
        """The container `c` of four shards."""
        monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
        swift.servers.count_updates(0)
        create(swift, filtered(swift), 4)

    @pytest.fixture
    def reshard(self, admin) -> Callable[..., Result]:
        """Return a function that changes `c`: ``reshard('2')``."""
        return lambda *arguments: admin(
            'reshard', f'{ACCOUNT}/c', *arguments, *AT_ONCE
        )

    @pytest.fixture
    def during_the_move(self, monkeypatch) -> Callable[[Callable], None]:
        """Return a function that sets what happens when rows begin to move."""
        look_through = Resharding._look_through

        def have_happen(event: Callable[[Resharding], None]) -> None:
            def happen_and_look_through(change, *args):
                monkeypatch.setattr(Resharding, '_look_through', look_through)
                event(change)
                return look_through(change, *args)

            monkeypatch.setattr(
                Resharding, '_look_through', happen_and_look_through
            )

        return have_happen

    @pytest.mark.parametrize('count', ['0', '2'])
    def test_goes_on_with_a_change_that_was_killed_at_its_end(
        self, swift, reshard, monkeypatch, count
    ):
        former = [backing(swift, shard) for shard in range(4)]

        def kill(*_args) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Resharding, '_clean_up', kill)
            assert reshard(count).exit_code == 1
        assert layout_of(swift).shards == int(count)
        swift.update_accounts()
        assert all(swift.exists(HIDDEN, each) for each in former)
        ran = reshard(count)
        assert ran.exit_code == 0, ran.output
        assert not any(swift.exists(HIDDEN, each) for each in former)
        ran = reshard(count)
        assert ran.exit_code == 1
        assert f'it has {count} shards already' in ran.stderr

    @pytest.mark.parametrize('count', ['0', '2'])
    @pytest.mark.parametrize('options', [(), ('--json',)])
    def test_of_a_container_that_a_client_deletes_says_so(
        self, swift, reshard, during_the_move, count, options
    ):
        proxy = filtered(swift)
        during_the_move(
            lambda _change: swift.send(proxy, 'DELETE', f'/v1/{ACCOUNT}/c')
        )
        ran = reshard(count, *options)
        assert ran.exit_code == 1
        deleted = f'Error: {ACCOUNT}/c: a client has deleted it meanwhile'
        assert ran.stderr.splitlines()[-1] == deleted
        assert not swift.exists(ACCOUNT, 'c')

    @pytest.fixture
    def interrupt(self, monkeypatch):
        """Return a function that sends what ^C sends."""

        def leave(code: int):
            raise SystemExit(code)

        monkeypatch.setattr(interrupts.os, '_exit', leave)
        return lambda *_args: signal.raise_signal(signal.SIGINT)

    def test_that_is_interrupted_says_how_far_it_is(
        self, swift, reshard, during_the_move, interrupt, capfd
    ):
        during_the_move(interrupt)
        ran = reshard('2')
        assert ran.exit_code == 1
        told = capfd.readouterr().err.splitlines()[-1]
        assert told.startswith(
            f'Interrupted: {ACCOUNT}/c: moving, 0 rows moved. '
        )
        assert 'run the command again' in told
        assert f'"shardmw-admin cancel {ACCOUNT}/c"' in told
        assert layout_of(swift).phase == 'moving'

    def test_that_is_interrupted_before_it_begins_says_so(
        self, reshard, monkeypatch, interrupt, capfd
    ):
        monkeypatch.setattr(Resharding, 'begin', interrupt)
        ran = reshard('2')
        assert ran.exit_code == 1
        told = f'Interrupted: {ACCOUNT}/c: nothing is moved. '
        assert capfd.readouterr().err.startswith(told)

    def test_is_refused_while_object_servers_have_updates_to_deliver(
        self, swift, reshard
    ):
        swift.servers.count_updates(1)
        before = layout_of(swift)
        ran = reshard('2')
        assert ran.exit_code == 1
        (line,) = ran.stderr.splitlines()
        assert line.startswith(
            f'Error: {ACCOUNT}/c: object servers may have updates of '
            'containers to deliver: 127.0.0.1:3 has 1. '
        )
        assert line.endswith('or use --despite-backlog')
        assert layout_of(swift) == before
        assert reshard('2', '--despite-backlog').exit_code == 0
        assert layout_of(swift).shards == 2

    def test_goes_on_whatever_object_servers_have_to_deliver(
        self, swift, admin, reshard
    ):
        ran = admin('reshard', f'{ACCOUNT}/c', '2', '--detach')
        assert ran.exit_code == 0
        swift.servers.count_updates(1)
        assert reshard('2').exit_code == 0
        assert layout_of(swift).shards == 2

    def test_to_more_than_max_shards_is_refused(self, swift, reshard):
        ran = reshard('65')
        assert ran.exit_code == 1
        assert '65 shards are more than max_shards = 64 allows' in ran.stderr
        assert layout_of(swift).shards == 4

    def test_that_was_cancelled_meanwhile_says_so(
        self, swift, reshard, during_the_move
    ):
        during_the_move(lambda change: change.cancel())
        ran = reshard('2')
        assert ran.exit_code == 1
        assert f'Error: {ACCOUNT}/c: 4 shards, not 2 shards: ' in ran.stderr
        assert layout_of(swift).shards == 4


class TestStatusOfAChange:
    """A container of four shards that changes to two."""

    @pytest.fixture
    def change(self, swift, monkeypatch) -> Resharding:
        """The change, announced."""
        monkeypatch.setattr(executor, 'sleep', lambda _seconds: None)
        swift.servers.count_updates(0)
        create(swift, filtered(swift), 4)
        cluster = SwiftCluster(swift, options=OPTIONS)
        path = SwiftPath('v1', ACCOUNT, 'c')
        Changes(cluster, MoveOptions(0, 0)).begin(path, 2)
        return Changes(cluster, MoveOptions(0, 0))._resharding(path)

    def cells(self, ran: Result) -> dict[str, str]:
        """Return the cells of the only line of the table, by their heads."""
        heads, line = ran.stdout.splitlines()
        starts = [match.start() for match in re.finditer(r'\S+( \S+)*', heads)]
        bounds = zip(starts, [*starts[1:], None], strict=True)
        return {heads[a:b].strip(): line[a:b].strip() for a, b in bounds}

    def test_that_no_process_works_on_says_so(self, admin, change):
        assert self.cells(admin('status'))['progress'] == 'none yet'

    def test_that_waits_says_why_and_how_far_it_is(self, admin, change):
        def fail(*_args) -> None:
            change.progress.moved = 7
            raise BackendError(None, 503, 'a server is down')

        def end(_seconds) -> None:
            raise KeyboardInterrupt

        with (
            mock.patch.multiple(executor, sleep=end, direct_sync=fail),
            mock.patch.object(change, '_wait_until_known'),
            pytest.raises(KeyboardInterrupt),
        ):
            change.run()
        cells = self.cells(admin('status'))
        assert cells['from'] == '4 shards'
        assert re.fullmatch(r'waiting to move, \d+ s ago', cells['progress'])
        assert cells['waiting for'] == 'a server is down'
        (state,) = json.loads(admin('status', '--json').stdout)
        assert state['progress']['rows_moved'] == 7
        assert state['progress']['problem'] == 'a server is down'

    def test_that_is_done_says_what_it_was_before(self, admin, change):
        change.run()
        cells = self.cells(admin('status'))
        assert (cells['from'], cells['to']) == ('4 shards', '2 shards')
        assert (cells['phase'], cells['progress']) == ('done', '')


class TestWithoutTheFilter:
    """The configuration of the command lacks the filter."""

    @pytest.fixture
    def admin(self, swift, monkeypatch) -> Callable[..., Result]:
        cluster = SwiftCluster(swift, Path('internal-client.conf'))
        monkeypatch.setattr(cli, '_open', lambda *_args: cluster)
        return lambda *arguments: CliRunner().invoke(cli.main, arguments)

    @pytest.mark.parametrize(
        'command',
        [
            'list',
            'stat a/c',
            'locate a/c/o',
            'check',
            'audit a/c',
            'reshard a/c 0',
            'cancel a/c',
            'status',
        ],
    )
    def test_a_command_is_refused_with_one_line(self, admin, command):
        ran = admin(*command.split())
        assert ran.exit_code == 1
        (line,) = ran.stderr.splitlines()
        refused = 'internal-client.conf: the pipeline has no filter shardmw: '
        assert line.startswith(f'Error: {refused}')

    def test_names_are_exported(self, swift, admin):
        swift.put_container(f'/{ACCOUNT}/c')
        swift.put_row(f'/{ACCOUNT}/c/o')
        ran = admin('export', f'{ACCOUNT}/c')
        assert (ran.exit_code, ran.stdout) == (0, 'o\n')


class TestConfiguration:
    @pytest.mark.parametrize(
        'text',
        [
            'garbage',
            '[pipeline:main]\npipeline = shardmw',
            '[pipeline:main]\npipeline = shardmw proxy-server\n'
            '[app:proxy-server]\nuse = egg:swift#proxy\n'
            '[filter:shardmw]\nuse = egg:shardmw#shardmw\nfoo = 1',
            '[pipeline:main]\npipeline = container-server\n'
            '[app:container-server]\nuse = egg:swift#container',
        ],
    )
    def test_that_is_wrong_is_reported_in_one_line(
        self, tmp_path, monkeypatch, text
    ):
        monkeypatch.chdir(tmp_path)
        Path('bad.conf').write_text(text)
        for conf in (tmp_path / 'bad.conf', Path('bad.conf')):
            with pytest.raises(AdminError) as raised:
                open_cluster(conf, Path())
            assert str(raised.value).startswith(f'{conf}: ')
            assert 'relative' not in str(raised.value)

    @pytest.mark.parametrize('content', [b'garbage', b'', b'\x1f\x8b\x08'])
    def test_with_a_damaged_ring_is_reported_in_one_line(
        self, tmp_path, content
    ):
        ring = tmp_path / 'container.ring.gz'
        ring.write_bytes(content)
        conf = tmp_path / 'internal-client.conf'
        conf.write_text(
            '[pipeline:main]\npipeline = proxy-server\n'
            '[app:proxy-server]\nuse = egg:swift#proxy'
        )
        with pytest.raises(AdminError, match=f'^{ring}: damaged: ') as raised:
            open_cluster(conf, tmp_path)
        assert '\n' not in str(raised.value)

    @pytest.mark.parametrize('value', ['nan', 'inf', '1e400', '-1'])
    @pytest.mark.parametrize(
        'option',
        ['--info-cache-seconds', '--settle-seconds', '--sync-seconds'],
    )
    def test_takes_only_finite_times(self, admin, option, value):
        for command in (['reshard', 'a/c', '2'], ['cancel', 'a/c']):
            ran = admin(*command, option, value)
            assert ran.exit_code == 2
            assert f"Invalid value for '{option}': {value}" in ran.stderr

    @pytest.mark.parametrize(
        'command',
        [
            ['empty', '--yes'],
            ['empty', '--dry-run'],
            ['audit', '--objects', '--repair'],
            ['floor'],
        ],
    )
    def test_takes_only_containers_of_clients(self, swift, admin, command):
        for name in (f'/{HIDDEN}/shard', '/.expiring_objects/1'):
            swift.put_container(name)
            swift.put_row(f'{name}/o')
            ran = admin(*command, name)
            assert ran.exit_code == 2
            assert 'not in an account of a client' in ran.stderr
            assert list(swift.rows(*name[1:].split('/'))) == ['o']

    def test_takes_only_names_in_utf8(self, admin):
        for name in ('a/\udcff', 'a/%FF'):
            ran = admin('stat', name)
            assert ran.exit_code == 2
            assert 'not UTF-8' in ran.stderr

    @pytest.mark.parametrize(
        'text',
        [
            'garbage',
            '[swift-hash]\nswift_hash_path_suffix = a\n'
            '[swift-constraints]\nmax_file_size = many',
        ],
    )
    def test_with_a_wrong_swift_conf_is_reported_in_one_line(
        self, tmp_path, text
    ):
        (tmp_path / 'swift.conf').write_text(text)
        ran = subprocess.run(
            [sys.executable, '-c', COMMAND]
            + ['--swift-dir', str(tmp_path), 'status'],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 1
        assert ran.stderr.startswith(f'Error: {tmp_path}/swift.conf: ')
        assert ran.stderr.count('\n') == 1
