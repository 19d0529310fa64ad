# SPDX-License-Identifier: Apache-2.0
"""The commands that change layouts: output, refusals and exit codes."""

import json
import signal
import time
from collections.abc import Callable

import pytest
from shardmw_bench.targets.native import (
    begin_sharding,
    root_database,
    shard_natively,
)

from shardmw.core.placement import hidden_account
from test.functional.backing import forget_rows, put_rows
from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, SHARD_DEPTH_HEADER
from test.functional.operating import (
    SETTLE_SECONDS,
    Admin,
    delete_unheard,
    fill,
    shards_of,
    wait_for_phase,
)

SHARDED = {'headers': {SHARD_COUNT_HEADER: '4'}}
VERSIONED = {'X-Versions-Enabled': 'true'}


def path_of(client: Client, container: str) -> str:
    return f'{client.account}/{container}'


class TestUsage:
    """Exit code 2, and a message with what is allowed."""

    @pytest.mark.parametrize(
        ('arguments', 'message'),
        [
            (['reshard', 'a/c', '1025'], '1025 is not in the range 0<=x<=102'),
            (
                ['reshard', 'a/c', 'many'],
                "'many' is not a valid integer range",
            ),
            (['reshard', 'a/c'], "Missing argument 'N'"),
            (
                ['reshard', 'a/c', '0', '--depth', '1'],
                '--depth needs N > 0: N = 0 has no shards.',
            ),
            (
                ['reshard', 'a/c', '4', '--detach', '--rows-per-second', '5'],
                'leave --rows-per-second or --detach out.',
            ),
            (
                ['cancel', 'a/c', '--detach', '--ask-for-objects'],
                'leave --ask-for-objects or --detach out.',
            ),
            (['reshard', 'a', '4'], 'a: not a name like ACCOUNT/CONTAINER'),
            (['cancel', 'a'], 'a: not a name like ACCOUNT/CONTAINER'),
            (['cancel', 'a/c', '--settle-seconds', '-1'], '-1.0 is not in'),
            (['status', 'a/c'], 'Got unexpected extra argument (a/c)'),
            (
                ['audit'],
                'Name either a container, A/C, or an account with --account.',
            ),
        ],
    )
    def test_that_is_wrong_is_explained(self, admin, arguments, message):
        ran = admin(*arguments)
        assert (ran.returncode, ran.stdout) == (2, '')
        assert message in ran.stderr


class TestCommandRefuses:
    """Exit code 1, one line that names the container, and nothing changes."""

    @pytest.fixture
    def refused(self, admin, client) -> Callable[..., str]:
        """Return a function that runs a command and returns its refusal."""

        def run(command: str, container: str, *arguments: str) -> str:
            name = path_of(client, container)
            ran = admin(command, name, *arguments)
            assert (ran.returncode, ran.stdout) == (1, '')
            (line,) = ran.stderr.splitlines()
            start = f'Error: {name}: '
            assert line.startswith(start)
            return line.removeprefix(start)

        return run

    @pytest.mark.parametrize(
        'arguments',
        [('reshard', '4'), ('reshard', '4', '--dry-run'), ('cancel',)],
    )
    def test_a_missing_container(self, refused, arguments):
        command, *others = arguments
        assert refused(command, 'none', *others) == 'no such container'

    def test_the_count_that_the_container_has(self, client, refused):
        fill(client, 'c', 1, **SHARDED)
        assert refused('reshard', 'c', '4') == 'it has 4 shards already'

    def test_the_depth_that_the_container_has(self, client, refused):
        headers = {**SHARDED['headers'], SHARD_DEPTH_HEADER: '1'}
        fill(client, 'c', 1, headers=headers)
        told = 'it has 4 shards and depth 1 already'
        assert refused('reshard', 'c', '4') == told

    def test_a_count_above_max_shards(self, cluster, client, refused):
        fill(client, 'c', 1)
        cluster.reconfigure({'shardmw.max_shards': '8'})
        try:
            for option in ([], ['--dry-run']):
                told = refused('reshard', 'c', '9', *option)
                assert told.startswith(
                    '9 shards are more than max_shards = 8 allows'
                )
        finally:
            cluster.reconfigure({'shardmw.max_shards': None})

    def test_a_change_while_another_is_under_way(self, admin, client, refused):
        fill(client, 'c', 1)
        admin.detach(client, 'c', 4)
        told = 'its change from 0 to 4 shards is under way: '
        remedy = 'wait for its end, or cancel it'
        assert refused('reshard', 'c', '8') == told + remedy
        assert refused('reshard', 'c', '8', '--dry-run') == told + remedy

    def test_a_change_while_old_versions_change_differently(
        self, admin, client, refused
    ):
        fill(client, 'c', 1)
        assert client.post('c', headers=VERSIONED).status == 204
        admin.detach(client, '%00versions%00c', 4)
        told = refused('reshard', 'c', '8')
        assert told.startswith('its old versions: its change from 0 to 4')
        assert 'c' not in admin.changes(client)

    def test_to_cancel_if_nothing_changes(self, client, refused):
        fill(client, 'c', 1)
        assert refused('cancel', 'c') == 'its layout is not changing'

    def test_any_change_while_the_servers_are_down(
        self, cluster, client, refused
    ):
        fill(client, 'c', 1)
        cluster.stop('container-1')
        try:
            for command in (['reshard', '4'], ['cancel']):
                name, *count = command
                told = refused(name, 'c', *count)
                assert told == (
                    '0 of 1 replicas of the root have a database, '
                    '0 have answered'
                )
        finally:
            cluster.start('container-1')
        assert shards_of(client, 'c') == 0

    def test_a_change_while_a_deletion_is_pending(
        self, cluster, client, admin, refused
    ):
        names = fill(client, 'c', 3)
        path = path_of(client, 'c')
        cluster.daemon('object-updater')
        delete_unheard(admin, f'{path}/o001')
        told = refused('reshard', 'c', '4')
        assert told.startswith('object servers may have updates of containers')
        assert 'has 1. ' in told
        assert shards_of(client, 'c') == 0
        cluster.daemon('object-updater')
        ran = admin('reshard', path, '4', '--settle-seconds', SETTLE_SECONDS)
        assert ran.returncode == 0, ran.stderr
        names.remove('o001')
        assert client.listing('c').names() == names

    def test_a_configuration_without_the_filter(
        self, cluster, client, admin, tmp_path
    ):
        fill(client, 'c', 1)
        conf = tmp_path / 'internal-client.conf'
        text = (cluster.swift_dir / conf.name).read_text()
        conf.write_text(text.replace(' shardmw ', ' '))
        for command in (['reshard', '4'], ['cancel'], ['stat']):
            name, *count = command
            path = path_of(client, 'c')
            ran = admin('--conf', str(conf), name, path, *count)
            assert ran.returncode == 1
            (line,) = ran.stderr.splitlines()
            told = f'Error: {conf}: the pipeline has no filter shardmw: '
            assert line.startswith(told)
        ran = admin('--conf', str(conf), 'export', path_of(client, 'c'))
        assert (ran.returncode, ran.stdout) == (0, 'o000\n')

    def test_a_container_that_swifts_sharder_is_splitting(
        self, cluster, client, refused
    ):
        fill(client, 'c', 9)
        database = root_database(cluster, client.account, 'c')
        begin_sharding(database, ['o002', 'o004', 'o006'])
        cluster.daemon('container-sharder')
        told = refused('reshard', 'c', '4')
        assert told.startswith("Swift's sharder is splitting or shrinking")
        assert 'container-sharder' in told

    def test_a_container_whose_shard_swifts_sharder_has_split(
        self, cluster, client, backing, refused
    ):
        fill(client, 'c', 9, **SHARDED)
        hidden = hidden_account(client.account)
        name = backing.shard_name('c', 0)
        shard_natively(cluster, hidden, name, ['o004'])
        told = refused('reshard', 'c', '8')
        assert told.startswith("Swift's own sharder has split shard 0")
        assert f'compact on the database of {hidden}/{name}' in told


class TestOutput:
    """Exit code 0, and JSON if asked."""

    def run(self, admin: Admin, *arguments: str) -> list:
        ran = admin(*arguments, '--json')
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def test_of_reshard_has_the_rows_that_it_moved(self, admin, client):
        fill(client, 'c', 5)
        options = ['--settle-seconds', SETTLE_SECONDS]
        name = path_of(client, 'c')
        (state,) = self.run(admin, 'reshard', name, '4', *options)
        assert (state['account'], state['container']) == (client.account, 'c')
        assert (state['phase'], state['shards']) == ('done', 4)
        assert (state['rows_moved'], state['rows_left']) == (5, 0)

    def test_of_reshard_has_its_phases_on_stderr(self, admin, client):
        fill(client, 'c', 5)
        assert client.post('c', headers=VERSIONED).status == 204
        name = path_of(client, 'c')
        ran = admin('reshard', name, '4', '--settle-seconds', SETTLE_SECONDS)
        assert ran.returncode == 0
        old = path_of(client, '%00versions%00c')
        assert ran.stdout == f'{name}: 4 shards\n{old}: 4 shards\n'
        for each in (name, old):
            lines = [x for x in ran.stderr.splitlines() if x.startswith(each)]
            phases = [x.removeprefix(f'{each}: ').split(',')[0] for x in lines]
            assert phases == [
                'announced',
                'waiting to move',
                'moving',
                'settling',
                'cleaning up',
                'done',
            ]

    def test_of_a_dry_run_is_the_plan(self, admin, client):
        fill(client, 'c', 5)
        name = path_of(client, 'c')
        (plan,) = self.run(admin, 'reshard', name, '4', '--dry-run')
        assert (plan['former'], plan['shards'], plan['rows']) == (0, 4, 5)
        assert admin.changes(client) == {}

    def test_of_status_and_list_has_a_change_under_way(
        self, cluster, admin, client
    ):
        fill(client, 'c', 5)
        name = path_of(client, 'c')
        ran = admin('reshard', name, '4', '--detach')
        detached = 'announced; shardmw-resharder goes on with it'
        assert ran.stdout == f'{name}: {detached}\n'
        state = admin.changes(client)['c']
        assert (state['phase'], state['rows_left']) == ('announced', 5)
        (line,) = [
            each
            for each in admin('status').stdout.splitlines()
            if each.startswith(name)
        ]
        assert line.split()[1:5] == ['plain', '4', 'shards', 'announced']
        cluster.daemon('container-updater')
        (listed,) = self.run(admin, 'list', client.account)
        assert (listed['shards'], listed['phase']) == (0, 'announced')
        assert listed['objects'] == 5

    def test_of_cancel_has_the_way_back(self, admin, client, resharder):
        fill(client, 'c', 5)
        name = path_of(client, 'c')
        admin.detach(client, 'c', 4)
        ran = admin('cancel', name, '--detach')
        detached = 'cancelled; shardmw-resharder moves its rows back'
        assert (ran.returncode, ran.stdout) == (0, f'{name}: {detached}\n')
        state = admin.changes(client)['c']
        assert (state['phase'], state['shards']) == ('returning', 0)
        (state,) = self.run(
            admin, 'cancel', name, '--settle-seconds', SETTLE_SECONDS
        )
        assert (state['phase'], state['shards']) == ('done', 0)

    def test_of_list_shows_reserved_names_as_commands_take_them(
        self, admin, client
    ):
        fill(client, 'c', 1, **SHARDED)
        assert client.post('c', headers=VERSIONED).status == 204
        old = path_of(client, '%00versions%00c')
        assert old in admin('list', client.account).stdout
        ran = admin('stat', old)
        assert ran.returncode == 0
        assert ran.stdout.splitlines()[0].split() == ['container', old]

    def test_of_audit_has_its_findings(self, cluster, admin, client):
        fill(client, 'c', 2, **SHARDED)
        name = path_of(client, 'c')
        assert self.run(admin, 'audit', name) == []
        put_rows(cluster, client.account, 'c', ['stray'])
        ran = admin('audit', name)
        assert ran.returncode == 1
        assert ran.stdout.splitlines()[1].split('  ')[0] == (
            'stray row in the root'
        )
        assert self.run(admin, 'audit', name, '--repair')[0]['is_mended']

    def test_of_audit_has_rows_without_objects_of_a_container_that_was_sharded(
        self, cluster, admin, client
    ):
        """Find a row whose deletion the container has not heard of."""
        fill(client, 'c', 3, **SHARDED)
        name = path_of(client, 'c')
        settle = ('--settle-seconds', SETTLE_SECONDS)
        self.run(admin, 'reshard', name, '0', *settle)
        assert self.run(admin, 'audit', name, '--objects') == []
        uploaded = time.time()
        assert client.delete('c', 'o001').status == 204
        assert client.listing('c').names() == ['o000', 'o002']
        place = (cluster, client.account, 'c')
        forget_rows(*place, ['o001'])
        put_rows(*place, ['o001'], at=uploaded)
        assert client.listing('c').names() == ['o000', 'o001', 'o002']
        assert admin('audit', name, '--objects').returncode == 1
        for arguments in ([name], ['--account', client.account]):
            assert admin('audit', *arguments).returncode == 0
        (found,) = self.run(admin, 'audit', name, '--objects', '--repair')
        assert (found['kind'], found['name'], found['is_mended']) == (
            'row without an object',
            'o001',
            True,
        )
        assert client.listing('c').names() == ['o000', 'o002']

    def test_of_audit_names_a_container_that_changes(self, admin, client):
        fill(client, 'c', 2)
        admin.detach(client, 'c', 4)
        for option in ([], ['--repair']):
            ran = admin('audit', path_of(client, 'c'), *option)
            assert ran.returncode == 1
            assert 'layout that is changing' in ran.stdout


class TestMeanwhile:
    """Something else happens while the command changes a container."""

    #: Options with which rows move for some seconds.
    SLOW = (
        *('--settle-seconds', SETTLE_SECONDS, '--rows-per-second', '2'),
        '--despite-backlog',
    )

    def test_the_same_command_runs_and_both_end_well(self, admin, client):
        names = fill(client, 'c', 12)
        path = path_of(client, 'c')
        command = ('reshard', path, '4', *self.SLOW)
        both = [admin.start(*command) for _ in '12']
        for each in both:
            output, errors = each.communicate(timeout=120)
            assert each.returncode == 0, errors
            assert output == f'{path}: 4 shards\n'
        assert client.listing('c').names() == names

    @pytest.mark.parametrize('count', ['0', '2'])
    def test_a_client_deletes_the_container(self, admin, client, count):
        fill(client, 'c', 1, **SHARDED)
        path = path_of(client, 'c')
        command = admin.start('reshard', path, count, *self.SLOW)
        wait_for_phase(command, 'moving')
        assert client.delete('c', 'o000').status == 204
        assert client.delete('c').status == 204
        output, errors = command.communicate(timeout=120)
        assert (command.returncode, output) == (1, '')
        told = f'Error: {path}: a client has deleted it meanwhile'
        assert errors.splitlines()[-1] == told

    def test_the_operator_interrupts_it(self, admin, client):
        names = fill(client, 'c', 40)
        path = path_of(client, 'c')
        command = admin.start('reshard', path, '4', *self.SLOW)
        wait_for_phase(command, 'moving')
        command.send_signal(signal.SIGINT)
        output, errors = command.communicate(timeout=30)
        assert (command.returncode, output) == (1, '')
        told = errors.splitlines()[-1]
        assert told.startswith(f'Interrupted: {path}: moving, ')
        assert f'"shardmw-admin cancel {path}"' in told
        assert client.listing('c').names() == names
        state = admin.changes(client)['c']
        assert (state['former'], state['phase']) == (0, 'moving')
        assert state['progress']['phase'] == 'moving'
        admin.reshard(client, 'c', 4)
        state = admin.changes(client)['c']
        assert (state['former'], state['phase']) == (0, 'done')


class TestDepth:
    """A change of the depth moves rows, there and back."""

    NAMES = ('a/1', 'a/2', 'b/1', 'c/d/1', 'top')

    def fill(self, client: Client, container: str, **headers: str) -> None:
        headers = {**SHARDED['headers'], **headers}
        assert client.put(container, headers=headers).status == 201
        for name in self.NAMES:
            assert client.put(container, name, b'body').status == 201

    def test_changes_with_the_same_count(self, admin, client, resharder):
        self.fill(client, 'name')
        self.fill(client, 'directory', **{SHARD_DEPTH_HEADER: '1'})
        changes = {'name': '1', 'directory': '0'}
        for container, depth in changes.items():
            admin.detach(client, container, 4, '--depth', depth)
        resharder.once()
        for container, depth in changes.items():
            listed = client.listing(container).names()
            assert listed == list(self.NAMES)
            listed = client.listing(container, prefix='a/').names()
            assert listed == ['a/1', 'a/2']
            shown = client.head(container).headers
            assert shown[SHARD_COUNT_HEADER.lower()] == '4'
            assert shown[SHARD_DEPTH_HEADER.lower()] == depth
        assert admin('audit', '--account', client.account).returncode == 0


class TestVersions:
    """The container of old versions changes with its container."""

    def test_change_with_their_container_despite_another_count(
        self, admin, client
    ):
        fill(client, 'c', 2, **SHARDED)
        assert client.post('c', headers=VERSIONED).status == 204
        admin.reshard(client, '%00versions%00c', 2)
        state = admin.reshard(client, 'c', 2)
        assert (state['container'], state['shards']) == ('c', 2)
        admin.reshard(client, '%00versions%00c', 3)
        state = admin.reshard(client, 'c', 2)
        assert state['container'] == '\0versions\0c'
