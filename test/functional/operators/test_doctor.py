# SPDX-License-Identifier: Apache-2.0
"""shardmw-admin doctor finds each mistake that was planted, and no other."""

import json
import shutil
from typing import NamedTuple

import pytest
from shardmw_saio import Cluster, ClusterOptions

from shardmw import __version__
from test.functional.conftest import USER, logins
from test.functional.extra_proxy import running_detached_proxy
from test.functional.operating import Admin, Resharder, wait_until
from test.functional.operators.planting import (
    OLD_VERSION,
    Machine,
    late_clock_factory,
    old_version_factory,
    proxy_of_folder,
    proxy_with_filter,
    proxy_with_options,
)
from test.functional.unfiltered import running_unfiltered_proxy

#: An address that refuses connections.
NOBODY = 'http://127.0.0.1:1'


class Diagnosis(NamedTuple):
    """What the command has found.

    :param findings: pairs of a place and a problem with its remedy
    """

    code: int
    findings: list[tuple[str, str]]
    notes: dict[str, str]
    checked: list[str]


class Doctor:
    """Runs the command on the proxies of a cluster, and on others."""

    def __init__(self, cluster: Cluster) -> None:
        self.admin = Admin(cluster)
        self.urls = cluster.proxy_urls

    def run(self, *urls: str, machine: Machine | None = None, json_=False):
        """Run the command, and return the process that has ended."""
        options = ['--swift-dir', str(machine.path)] if machine else []
        ran = self.admin(
            *options, 'doctor', *self.urls, *urls, *['--json'] * json_
        )
        assert ran.stderr == ''
        return ran

    def __call__(
        self, *urls: str, machine: Machine | None = None
    ) -> Diagnosis:
        ran = self.run(*urls, machine=machine, json_=True)
        shown = json.loads(ran.stdout)
        return Diagnosis(
            ran.returncode,
            [
                (each['where'], f'{each["problem"]}: {each["remedy"]}')
                for each in shown['findings']
            ],
            {each['where']: each['text'] for each in shown['notes']},
            shown['checked'],
        )

    def only_finding(
        self, *urls: str, machine: Machine | None = None
    ) -> tuple[str, str]:
        """Run the command, which must find one mistake, and return that."""
        found = self(*urls, machine=machine)
        assert found.code == 1
        (finding,) = found.findings
        return finding


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp('doctor')
    with Cluster(folder, ClusterOptions(proxies=3)) as cluster:
        yield cluster


login = pytest.fixture(scope='module')(logins)


@pytest.fixture(scope='module')
def resharder(cluster) -> Resharder:
    return Resharder(cluster)


@pytest.fixture(scope='module')
def before_the_daemon(cluster) -> Diagnosis:
    """Return what the command finds before a daemon has run."""
    return Doctor(cluster)()


@pytest.fixture(scope='module')
def ready(cluster, before_the_daemon, resharder) -> Doctor:
    """The command, for a cluster in which nothing is wrong."""
    resharder.once()
    return Doctor(cluster)


@pytest.fixture
def healthy(ready, monkeypatch) -> Doctor:
    """The command without a token, which makes no probe."""
    monkeypatch.delenv('OS_AUTH_TOKEN', raising=False)
    return ready


@pytest.fixture
def doctor(healthy, login, monkeypatch) -> Doctor:
    """The command with a token, which also probes."""
    owner = login(USER)
    monkeypatch.setenv('OS_STORAGE_URL', owner.storage_url)
    monkeypatch.setenv('OS_AUTH_TOKEN', owner.token)
    yield healthy
    left = [each['name'] for each in owner.listing().json()]
    assert not [name for name in left if name.startswith('shardmw-doctor')]


@pytest.fixture
def machine(cluster, tmp_path) -> Machine:
    return Machine(cluster, tmp_path / 'swift')


class TestHealthy:
    """Nothing is wrong."""

    def test_says_in_one_line_what_was_checked(self, doctor):
        ran = doctor.run()
        assert ran.returncode == 0
        *notes, line = ran.stdout.splitlines()
        assert all(note.startswith('note: ') for note in notes)
        assert line.startswith('nothing is wrong: 3 proxies, ')
        assert line.endswith(', shardmw-resharder, a probe through each proxy')

    def test_files_have_their_usual_names(self, healthy, machine):
        found = healthy(machine=machine)
        assert found.findings == []
        assert str(machine.path) not in found.notes

    def test_a_file_may_be_a_folder(self, healthy, machine):
        machine.split('object-expirer')
        assert healthy(machine=machine).findings == []

    def test_notes_what_the_daemon_did_last(self, healthy):
        (note,) = [
            text
            for where, text in healthy().notes.items()
            if where.startswith('shardmw-resharder 0 on ')
        ]
        assert '0 changes under way, 0 containers settled' in note

    def test_files_that_are_elsewhere_are_a_note(self, healthy, cluster):
        notes = healthy().notes
        assert notes[str(cluster.swift_dir)] == (
            'has no proxy-server.conf, object-server.conf, '
            'container-server.conf'
        )

    def test_makes_no_probe_without_a_token(self, healthy):
        found = healthy()
        assert (found.code, found.findings) == (0, [])
        assert found.notes['probe'].startswith('not made: OS_STORAGE_URL or')

    @pytest.mark.parametrize('option', ['max_shards', 'client_max_shards'])
    def test_makes_no_probe_if_clients_may_not_create_shards(
        self, doctor, cluster, option
    ):
        cluster.reconfigure({f'shardmw.{option}': '0'})
        try:
            found = doctor()
        finally:
            cluster.reconfigure({f'shardmw.{option}': None})
        assert found.findings == []
        assert found.notes['probe'] == f'not made: {option} = 0 in the proxies'


class TestProxies:
    """One proxy is not like the others."""

    def test_without_the_filter(self, doctor, cluster):
        with running_unfiltered_proxy(cluster) as url:
            found = doctor(url)
        assert found.code == 1
        shown, probed = found.findings
        assert shown[0] == probed[0] == url
        assert shown[1].startswith('/info shows no shardmw: put the filter')
        assert probed[1].startswith('the row of its object went to the root')

    @pytest.mark.parametrize(
        ('options', 'difference'),
        [
            ({'default_shards': '2'}, 'default_shards = 2 instead of 0: '),
            (
                {'container_ratelimit_0': '1000'},
                'container_ratelimits = [[0, 1000.0]] instead of []: ',
            ),
            (
                {'head_cache_seconds': '9'},
                'head_cache_seconds = 9 instead of 5: ',
            ),
            (
                {'shard_rules': 'AUTH_none/* = 4'},
                'ratelimit_proxies or shard_rules or stats_cache_seconds',
            ),
        ],
    )
    def test_with_another_option(self, doctor, cluster, options, difference):
        with proxy_with_options(cluster, **options) as url:
            where, text = doctor.only_finding(url)
        assert where == url
        model = cluster.proxy_urls[0]
        start = f'its options are not those of {model}: '
        assert text.startswith(start + difference)

    def test_with_options_that_suit_its_machine(self, doctor, cluster):
        options = {'max_fanouts': '3', 'idle_connections': '0'}
        with proxy_with_options(cluster, **options) as url:
            assert doctor(url).findings == []

    def test_with_another_version(self, doctor, cluster):
        with proxy_with_filter(cluster, old_version_factory) as url:
            where, text = doctor.only_finding(url)
        assert where == url
        assert text.startswith(
            f'shardmw {OLD_VERSION}, most proxies have {__version__}: install'
        )

    def test_with_another_memcached(self, doctor, cluster):
        with running_detached_proxy(cluster) as url:
            shown, probed = doctor(url).findings
        assert shown[0] == probed[0] == url
        assert shown[1].startswith('its memcached servers are not those of')
        # Its memcached has not the token either.
        assert 'answered 401' in probed[1]

    def test_with_another_hash_path(self, doctor, cluster, machine):
        machine.set('swift', 'swift-hash', swift_hash_path_suffix='other')
        with proxy_of_folder(cluster, machine.path) as url:
            where, text = doctor.only_finding(url)
        assert where == url
        assert text.startswith('it has another hash path in swift.conf, so it')

    def test_with_another_clock(self, doctor, cluster):
        with proxy_with_filter(cluster, late_clock_factory) as url:
            where, text = doctor.only_finding(url)
        assert where == url
        assert ' s behind that of this machine: synchronize the' in text

    def test_that_is_down(self, doctor):
        where, text = doctor.only_finding(NOBODY)
        assert where == NOBODY
        assert text.startswith('not checked: it does not answer: ')
        assert text.endswith(': start the proxy, or correct its address')

    def test_whose_info_is_hidden(self, doctor, cluster):
        cluster.reconfigure({'proxy-server.expose_info': 'false'})
        try:
            found = doctor()
        finally:
            cluster.reconfigure({'proxy-server.expose_info': None})
        assert [where for where, _ in found.findings] == doctor.urls
        for _, text in found.findings:
            assert text.startswith('not checked: GET /info answered 403: ')


class TestFiles:
    """A file of this machine is not right."""

    @pytest.mark.parametrize(
        ('name', 'user'),
        [
            ('internal-client', 'container-sync and container-sharder'),
            ('object-expirer', 'object-expirer'),
            ('container-reconciler', 'container-reconciler'),
            ('proxy-server', 'proxy-server'),
        ],
    )
    def test_without_the_filter(self, healthy, machine, name, user):
        machine.take_filter_out(name)
        where, text = healthy.only_finding(machine=machine)
        assert where == machine.file(name)
        start = f'the pipeline has no filter shardmw, which {user} must have: '
        assert text.startswith(start)
        assert f'{name}.conf-sample' in text

    def test_of_container_sync_without_the_filter(self, healthy, machine):
        machine.take_filter_out('container-sync-client')
        path = machine.file('container-sync-client')
        option = {'internal_client_conf_path': path}
        machine.set('container-server', 'container-sync', **option)
        where, text = healthy.only_finding(machine=machine)
        assert where == path
        assert 'which container-sync must have' in text

    def test_that_a_daemon_needs_is_missing(self, healthy, machine):
        option = {'internal_client_conf_path': '/nowhere/client.conf'}
        machine.set('container-server', 'container-sharder', **option)
        where, text = healthy.only_finding(machine=machine)
        assert where == '/nowhere/client.conf'
        assert text.startswith('no such file, which container-sharder must')

    def test_with_filters_in_the_wrong_order(self, healthy, machine):
        machine.reorder(
            'container-reconciler',
            lambda names: ['shardmw', *(x for x in names if x != 'shardmw')],
        )
        where, text = healthy.only_finding(machine=machine)
        assert where == machine.file('container-reconciler')
        assert 'is right of shardmw: move' in text

    def test_with_another_memcached(self, healthy, machine):
        option = {'memcache_servers': '127.0.0.1:11'}
        machine.set('object-expirer', 'filter:cache', **option)
        where, text = healthy.only_finding(machine=machine)
        assert where == machine.file('object-expirer')
        assert text.startswith('its memcached servers are not those of the')

    def test_with_the_watcher_of_swift(self, healthy, machine):
        machine.set('object-server', 'object-auditor', watchers='dark_data')
        where, text = healthy.only_finding(machine=machine)
        assert where == machine.file('object-server')
        assert "has Swift's watcher dark_data, which takes" in text

    def test_that_commands_need_is_missing(self, healthy, machine):
        shutil.move(machine.file('internal-client'), machine.path / 'away')
        for section in ('container-sync', 'container-sharder'):
            machine.remove(
                'container-server', section, 'internal_client_conf_path'
            )
        needed, unchecked = healthy(machine=machine).findings
        assert needed[0] == machine.file('internal-client')
        assert "container-sync uses Swift's own pipeline" in needed[1]
        assert unchecked[0] == str(machine.path)
        assert unchecked[1].startswith('not checked: the daemon and the probe')

    def test_with_the_hash_path_of_another_cluster(self, healthy, machine):
        machine.set('swift', 'swift-hash', swift_hash_path_suffix='other')
        found = healthy(machine=machine)
        assert found.code == 1
        where, text = found.findings[0]
        assert where == machine.file('swift')
        assert text.startswith('the hash path is not that of the proxies')


class TestDaemon:
    """No shardmw-resharder looks after some containers."""

    def test_that_has_never_run(self, before_the_daemon):
        assert before_the_daemon.code == 1
        ((where, text),) = before_the_daemon.findings
        assert where == 'shardmw-resharder'
        assert text.startswith('no process has noted a pass: start it on one')

    def test_of_which_one_process_does_not_run(self, healthy, resharder):
        resharder.once(processes=2, process=0)
        try:
            where, text = healthy.only_finding()
        finally:
            resharder.once()
        assert where == 'shardmw-resharder 1'
        assert text.startswith('has not noted a pass: start it on one machine')

    def test_of_which_another_process_runs(self, healthy, resharder):
        resharder.once(processes=3, process=0)
        first, second = healthy().findings
        assert first[0] == 'shardmw-resharder 1'
        assert second[0] == 'shardmw-resharder 2'
        with resharder.running(processes=3, process=2):
            wait_until(lambda: healthy().findings == [first])
        resharder.once()


class TestProbe:
    """The probe through the proxies."""

    def test_with_a_token_that_is_not_valid(self, doctor, monkeypatch):
        monkeypatch.setenv('OS_AUTH_TOKEN', 'AUTH_tk_none')
        where, text = doctor.only_finding()
        assert where == doctor.urls[0]
        assert text.startswith('not checked: PUT /v1/AUTH_test/shardmw-doctor')
        assert 'answered 401: renew OS_AUTH_TOKEN' in text

    def test_with_a_url_that_is_not_valid(self, doctor, monkeypatch):
        monkeypatch.setenv('OS_STORAGE_URL', 'http://127.0.0.1/')
        where, text = doctor.only_finding()
        assert where == 'probe'
        assert text.startswith('not checked: OS_STORAGE_URL = http://127.0.0')


class TestUsage:
    """The proxies are named as arguments, or in a file."""

    def test_takes_proxies_from_a_file(self, healthy, tmp_path):
        file = tmp_path / 'proxies'
        places = [url.removeprefix('http://') for url in healthy.urls]
        file.write_text('\n'.join(['# all', '', *places, NOBODY]))
        ran = healthy.admin('doctor', '--proxies-from', str(file))
        assert ran.returncode == 1
        (line,) = [x for x in ran.stdout.splitlines() if x[:4] == 'http']
        assert line.startswith(f'{NOBODY}: not checked: it does not answer')

    @pytest.mark.parametrize('address', ['proxy', 'ftp://p:1', 'p:1/path'])
    def test_refuses_what_is_no_address(self, healthy, address):
        ran = healthy.admin('doctor', address)
        assert ran.returncode == 2
        assert f'{address}: not the address of a proxy, like' in ran.stderr

    def test_refuses_a_file_that_names_none(self, healthy, tmp_path):
        file = tmp_path / 'proxies'
        file.write_text('# none\n\n')
        ran = healthy.admin('doctor', '--proxies-from', str(file))
        assert ran.returncode == 1
        assert '--proxies-from: the file names no proxy' in ran.stderr

    def test_says_that_no_proxy_is_named(self, healthy):
        ran = healthy.admin('doctor')
        assert ran.returncode == 0
        assert 'note: proxies: not checked: none is named' in ran.stdout
