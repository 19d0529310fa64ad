# SPDX-License-Identifier: Apache-2.0
"""The command ``shardmw-admin``, run as operators run it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest
from swift.container.backend import ContainerBroker

from shardmw.core.placement import hidden_account, shard_of
from test.functional.backing import databases, name_in_shard, put_rows
from test.functional.conftest import SHARD_COUNT_HEADER, unique

SAIO = 'from shardmw_saio.cli import main; main(prog_name="shardmw-saio")'
ADMIN = 'from shardmw.admin.cli import main; main(prog_name="shardmw-admin")'
NAMES = [f'o{i}' for i in range(10)]
SNOWMAN = '☃ 50%'


def run(code: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, '-c', code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope='module')
def admin(cluster) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs the command: ``admin('list')``."""
    return lambda *arguments: run(
        SAIO, 'admin', '--dir', str(cluster.path), *arguments
    )


@pytest.fixture(scope='module')
def owner(new_account):
    """The owner of an account with a sharded and a plain container."""
    client = new_account()
    sharded = {SHARD_COUNT_HEADER: '4'}
    assert client.put(SNOWMAN, headers=sharded).status == 201
    assert client.put('plain').status == 201
    for name in NAMES:
        assert client.put(SNOWMAN, name, b'xx').status == 201
        assert client.put('plain', name, b'x').status == 201
    return client


@pytest.fixture(scope='module')
def updated(cluster, owner):
    cluster.daemon('container-updater')
    return owner


def test_list_shows_the_sharded_containers(admin, updated):
    account = updated.account
    ran = admin('list', account, '--json')
    assert ran.returncode == 0, ran.stderr
    (listed,) = json.loads(ran.stdout)
    assert listed['container'] == SNOWMAN
    assert listed['shards'] == 4
    assert (listed['objects'], listed['bytes']) == (10, 20)
    assert listed['fullest'] == 3
    ran = admin('list')
    assert f'{account}/{SNOWMAN}' in ran.stdout
    assert f'{account}/plain' not in ran.stdout


def test_stat_shows_each_shard(admin, owner):
    ran = admin('stat', f'{owner.account}/{SNOWMAN}')
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    values = dict(re.split('  +', line, maxsplit=1) for line in lines[:9])
    assert values['layout'] == '4 shards'
    assert values['skew (fullest shard / mean)'] == '1.20'
    shown = [line for line in lines if line.startswith(f'{SNOWMAN}.')]
    assert len(shown) == 2 * 4
    state = json.loads(
        admin('stat', f'{owner.account}/{SNOWMAN}', '--json').stdout
    )
    assert sorted(each['rows'] for each in state['shards']) == [1, 3, 3, 3]
    assert state['objects'] == 10


def test_floor_is_the_count_of_the_client_until_another_is_set(admin, owner):
    name = f'{owner.account}/{SNOWMAN}'
    assert admin('floor', name).stdout == f'{name}: 4\n'
    for shards in ('2', '0'):
        assert admin('floor', name, shards).stdout == f'{name}: {shards}\n'
        state = json.loads(admin('stat', name, '--json').stdout)
        assert state['floor'] == int(shards)
    assert admin('floor', f'{owner.account}/none').returncode == 1


def test_stat_shows_the_paths_of_the_databases(admin, owner, cluster):
    name = f'{owner.account}/{SNOWMAN}'
    text = admin('stat', name).stdout
    state = json.loads(admin('stat', name, '--json').stdout)
    (root,) = state['nodes']
    device = cluster.devices_path / '1' / root.rpartition('/')[2]
    for each in (state, *state['shards']):
        assert each['database'] in text
        info = ContainerBroker(str(device / each['database'])).get_info()
        assert info['container'] == each['container']


@pytest.mark.parametrize('container', [SNOWMAN, '%E2%98%83%2050%25', 'plain'])
def test_locate_finds_an_object_and_its_row(admin, owner, container):
    ran = admin('locate', f'{owner.account}/{container}/o3', '--json')
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [each['has_it'] for each in found['row_replicas']] == [True]
    assert [each['has_it'] for each in found['object_replicas']] == [True]
    is_plain = container == 'plain'
    hidden = hidden_account(owner.account)
    account = owner.account if is_plain else hidden
    assert found['row_account'] == account
    assert (found['shard'] is None) == is_plain


def test_locate_says_that_an_object_is_not_there(admin, owner):
    ran = admin('locate', f'{owner.account}/{SNOWMAN}/none')
    assert ran.returncode == 1
    assert ran.stdout.count('is not there') == 2


def test_check_names_full_containers_and_advises_shard_counts(admin, updated):
    account = updated.account
    assert admin('check', account).returncode == 0
    ran = admin('check', account, '--rows-per-shard', '4', '--json')
    assert ran.returncode == 1
    (finding,) = json.loads(ran.stdout)
    assert finding['container'] == 'plain'
    assert finding['is_over']
    assert finding['advised_shards'] == 8
    assert admin('check', '--rows-per-shard', '4').returncode == 1


def test_check_takes_accounts_that_never_had_a_sharded_container(
    admin, cluster, new_account, tmp_path
):
    client = new_account()
    assert client.put('plain').status == 201
    for name in NAMES:
        assert client.put('plain', name, b'').status == 201
    cluster.daemon('container-updater')
    full = ('check', '--rows-per-shard', '4')
    assert f'{client.account}/plain' not in admin(*full).stdout
    file = tmp_path / 'accounts'
    file.write_text(f'{client.account}\n')
    for accounts in ([client.account], ['--accounts-from', str(file)]):
        ran = admin(*full, *accounts)
        assert ran.returncode == 1
        assert f'{client.account}/plain' in ran.stdout


@pytest.mark.parametrize('container', [SNOWMAN, 'plain'])
def test_export_prints_all_names(admin, owner, container):
    name = f'{owner.account}/{container}'
    assert admin('export', name).stdout.splitlines() == NAMES
    assert admin('export', name, '-0').stdout.split('\0') == [*NAMES, '']
    rows = map(json.loads, admin('export', name, '--json').stdout.splitlines())
    assert [row['name'] for row in rows] == NAMES


def test_export_needs_no_filter(admin, owner, cluster, tmp_path):
    text = (cluster.swift_dir / 'internal-client.conf').read_text()
    pipeline = re.compile('^(pipeline = .*) shardmw ', re.MULTILINE)
    text, count = pipeline.subn(r'\1 ', text)
    assert count == 1
    conf = tmp_path / 'internal-client.conf'
    conf.write_text(text)
    name = f'{owner.account}/{SNOWMAN}'
    ran = admin('--conf', str(conf), 'export', name)
    assert ran.stdout.splitlines() == NAMES, ran.stderr


@pytest.mark.parametrize(
    ('arguments', 'code', 'text'),
    [
        (['stat', 'a/none'], 1, 'a/none: no such container'),
        (['list', 'AUTH_none'], 1, 'AUTH_none: no such account'),
        (['check', 'AUTH_none'], 1, 'AUTH_none: no such account'),
        (['audit', '--account', 'AUTH_no'], 1, 'AUTH_no: no such account'),
        (['export', 'a/none'], 1, 'a/none: no such container'),
        (['stat', 'a'], 2, 'a: not a name like ACCOUNT/CONTAINER'),
        (['nothing'], 2, "No such command 'nothing'"),
    ],
)
def test_a_mistake_is_reported_without_a_traceback(
    admin, arguments, code, text
):
    ran = admin(*arguments)
    assert ran.returncode == code
    assert text in ran.stderr
    assert 'Traceback' not in ran.stderr


@pytest.mark.parametrize('missing', ['swift.conf', 'internal-client.conf'])
def test_a_missing_configuration_file_is_reported(tmp_path, cluster, missing):
    for name in {'swift.conf', 'internal-client.conf'} - {missing}:
        text = (cluster.swift_dir / name).read_text()
        (tmp_path / name).write_text(text)
    ran = run(ADMIN, '--swift-dir', str(tmp_path), 'list')
    assert ran.returncode == 1
    assert ran.stderr.startswith(f'Error: {tmp_path}/{missing}: no such file')
    assert ran.stderr.count('\n') == 1


class TestAudit:
    @pytest.fixture
    def sharded(self, client) -> str:
        """A container with an object for each name."""
        container = unique('audited')
        headers = {SHARD_COUNT_HEADER: '4'}
        assert client.put(container, headers=headers).status == 201
        for name in NAMES:
            assert client.put(container, name, b'').status == 201
        return container

    def audit(self, admin, client, container, *options) -> tuple[int, list]:
        path = f'{client.account}/{container}'
        ran = admin('audit', path, '--json', *options)
        assert ran.stderr == ''
        found = [
            (each['kind'], each['name'], each['is_mended'])
            for each in json.loads(ran.stdout)
        ]
        return ran.returncode, sorted(found)

    def test_finds_nothing_in_a_sound_container(self, admin, client, sharded):
        assert self.audit(admin, client, sharded, '--objects') == (0, [])

    def test_mends_misplaced_rows(
        self, admin, client, cluster, backing, sharded
    ):
        hidden = hidden_account(client.account)
        wrong = (shard_of(NAMES[0], 4) + 1) % 4
        place = backing.shard_name(sharded, wrong)
        put_rows(cluster, hidden, place, [NAMES[0]])
        other = name_in_shard(0, 4)
        place = backing.shard_name(sharded, 1)
        put_rows(cluster, hidden, place, [other])
        put_rows(cluster, client.account, sharded, ['stray'])
        problems = [
            ('object that is listed twice', NAMES[0]),
            ('row in the wrong shard', NAMES[0]),
            ('row in the wrong shard', other),
            ('stray row in the root', 'stray'),
        ]
        found = sorted((*each, False) for each in problems)
        assert self.audit(admin, client, sharded) == (1, found)
        mended = sorted((*each, True) for each in problems)
        assert self.audit(admin, client, sharded, '--repair') == (0, mended)
        assert self.audit(admin, client, sharded, '--repair') == (0, [])
        listed = client.listing(sharded).names()
        assert listed == sorted([*NAMES, other, 'stray'])

    def test_mends_rows_of_objects_that_are_gone(
        self, admin, client, unfiltered, sharded
    ):
        assert unfiltered.delete(sharded, NAMES[3]).status == 204
        assert NAMES[3] in client.listing(sharded).names()
        assert self.audit(admin, client, sharded) == (0, [])
        problem = ('row without an object', NAMES[3])
        found = self.audit(admin, client, sharded, '--objects', '--repair')
        assert found == (0, [(*problem, True)])
        assert NAMES[3] not in client.listing(sharded).names()

    @pytest.fixture
    def lost(self, cluster, client, backing, sharded, tmp_path) -> str:
        """The name of a shard whose database is only in `tmp_path`."""
        cluster.daemon('container-updater')
        name = backing.shard_name(sharded, shard_of(NAMES[0], 4))
        hidden = hidden_account(client.account)
        (path,) = databases(cluster, hidden, name)
        shutil.move(path.parent, tmp_path / 'copy')
        return name

    def test_leaves_a_lost_shard_alone_and_says_what_is_lost(
        self, admin, client, sharded, lost
    ):
        ran = admin('audit', f'{client.account}/{sharded}', '--repair')
        assert ran.returncode == 1
        told = 'lost on all servers; rows in its last report: 1\n'
        assert f'{lost}  {told}' in ran.stdout
        assert 'the objects of lost rows can be read' in ran.stderr
        assert client.listing(sharded).status == 503

    def test_finds_no_fault_when_the_database_is_put_back_where_stat_says(
        self, admin, client, cluster, sharded, lost, tmp_path
    ):
        path = f'{client.account}/{sharded}'
        state = json.loads(admin('stat', path, '--json').stdout)
        (shard,) = [e for e in state['shards'] if e['container'] == lost]
        device = shard['nodes'][0].rpartition('/')[2]
        place = cluster.devices_path / '1' / device / shard['database']
        shutil.move(tmp_path / 'copy', place.parent)
        assert self.audit(admin, client, sharded, '--objects') == (0, [])
        assert client.listing(sharded).names() == NAMES

    def test_creates_a_lost_shard_if_the_loss_is_accepted(
        self, admin, client, sharded, lost
    ):
        options = ('--repair', '--accept-loss')
        found = self.audit(admin, client, sharded, *options)
        assert found == (0, [('missing shard', lost, True)])
        listed = client.listing(sharded).names()
        lacking = [n for n in NAMES if shard_of(n, 4) == shard_of(NAMES[0], 4)]
        assert listed == sorted({*NAMES} - {*lacking})
        assert client.get(sharded, NAMES[0]).status == 200

    def test_finds_and_mends_ghosts_in_a_container_that_was_never_sharded(
        self, admin, client, cluster
    ):
        container = unique('plain')
        assert client.put(container).status == 201
        assert client.put(container, 'o', b'').status == 201
        cluster.stop('container-1')
        try:
            assert client.delete(container, 'o').status == 204
        finally:
            cluster.start('container-1')
        assert client.listing(container).names() == ['o']
        problem = ('row without an object', 'o')
        found = self.audit(admin, client, container, '--objects')
        assert found == (1, [(*problem, False)])
        found = self.audit(admin, client, container, '--objects', '--repair')
        assert found == (0, [(*problem, True)])
        assert client.listing(container).names() == []

    def test_looks_through_a_whole_account(self, admin, owner):
        ran = admin('audit', '--account', owner.account)
        assert (ran.returncode, ran.stdout) == (0, ''), ran

    @pytest.mark.parametrize('arguments', [[], ['a/c', '--account', 'a']])
    def test_requires_either_a_container_or_an_account(self, admin, arguments):
        assert admin('audit', *arguments).returncode == 2
