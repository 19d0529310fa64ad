# SPDX-License-Identifier: Apache-2.0
"""The embedded all-in-one: real processes, really killed."""

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shardmw_saio import Cluster, ClusterOptions, SaioError, processes
from swift.container.backend import ContainerBroker

from test.functional.client import Client
from test.functional.unfiltered import running_unfiltered_proxy

COMMAND = Path(sys.executable).with_name('shardmw-saio')
UP = [COMMAND, 'up', '--no-daemons']
USER = 'test:tester'
SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
PATIENCE_SECONDS = 120


@pytest.fixture
def folder(tmp_path):
    """A folder for a cluster, which is down after the test."""
    yield tmp_path / 'saio'
    Cluster(tmp_path / 'saio').down()


# Requests to slow nodes time out soon.
SMALL = ClusterOptions(
    settings={
        'proxy-server.node_timeout': '3',
        'proxy-server.recoverable_node_timeout': '3',
    }
)

# More than one of everything.
LARGE = ClusterOptions(
    proxies=2,
    replicas=3,
    policies=2,
    encryption=True,
    settings={'swift-constraints.max_object_name_length': '40'},
)


@pytest.fixture(scope='module')
def clusters(tmp_path_factory):
    """Clusters that tests share, by their options; brought up when needed.

    Changes of servers and settings are undone before the next test.
    """
    paths = {}

    def shared(options):
        key = str(options.as_json())
        paths.setdefault(key, tmp_path_factory.mktemp('shared'))
        cluster = Cluster(paths[key], options)
        cluster.up()
        return cluster

    yield shared
    for path in paths.values():
        Cluster(path).down()


@pytest.fixture
def small(clusters):
    return clusters(SMALL)


@pytest.fixture
def large(clusters):
    return clusters(LARGE)


@pytest.fixture
def with_workers(clusters):
    return clusters(ClusterOptions(workers=2))


def shardmw_saio(*arguments, **kwargs):
    """Run the command to its end."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        **kwargs,
    )


def login(cluster, user=USER):
    return Client.login(cluster.auth_url, user, cluster.users[user])


def main_pid(cluster, name):
    return {each.server.name: each.pid for each in cluster.status()}[name]


def states(cluster):
    return {each.server.name: each.state for each in cluster.status()}


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, 'waited in vain'
        time.sleep(0.01)


def data_files(cluster, pattern):
    return sorted(cluster.devices_path.glob(f'*/*/{pattern}/*/*/*/*.data'))


def assert_one_line(text, *parts):
    assert text.count('\n') == 1 and text.endswith('\n'), text
    for part in parts:
        assert part in text


def assert_all_run(cluster):
    assert set(states(cluster).values()) == {'running'}


# Up and down


def test_up_is_ready_for_requests(folder):
    port = free_port_run(6)
    done = shardmw_saio('up', folder, '--port', port, '--no-daemons')
    assert done.returncode == 0, done.stderr
    assert f'http://127.0.0.1:{port}' in done.stdout
    cluster = Cluster(folder)
    client = login(cluster)
    assert client.put('c').status == 201
    assert client.put('c', 'o', b'body').status == 201
    assert client.get('c', 'o').body == b'body'
    assert_all_run(cluster)


def free_port_run(count):
    """Return the first of some consecutive free ports."""
    for first in range(20_000, 30_000, count):
        taken = [
            socket.socket().connect_ex(('127.0.0.1', port)) == 0
            for port in range(first, first + count)
        ]
        if not any(taken):
            return first
    raise AssertionError('no free ports')


def test_up_of_a_running_cluster_changes_nothing(small):
    before = {each.pid for each in processes.find(small.path)}
    done = shardmw_saio('up', small.path)
    assert (done.returncode, done.stderr) == (0, '')
    assert 'already up' in done.stdout
    assert {each.pid for each in processes.find(small.path)} == before


def test_down_leaves_no_process_and_keeps_data_and_options(folder):
    options = ClusterOptions(workers=2, policies=2)
    cluster = Cluster(folder, options)
    cluster.up()
    client = login(cluster)
    client.put('c')
    client.put('c', 'o', b'body')
    proxy_urls = cluster.proxy_urls

    done = shardmw_saio('down', folder)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith('down in')
    assert processes.find(folder) == []

    again = Cluster(folder)
    again.up()
    assert again.options == options
    assert again.proxy_urls == proxy_urls
    assert login(again).get('c', 'o').body == b'body'


def test_commands_report_that_a_cluster_is_down(with_workers):
    with_workers.down()
    folder = with_workers.path

    done = shardmw_saio('status', folder)
    assert done.returncode == 3
    assert done.stdout.count(' down ') == 5

    done = shardmw_saio('down', folder)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith('already down')

    done = shardmw_saio('daemon', 'container-updater', '--dir', folder)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'down')


def test_down_of_no_cluster_is_an_error(tmp_path):
    done = shardmw_saio('down', tmp_path / 'nothing')
    assert done.returncode == 1
    assert_one_line(done.stderr, 'no cluster')
    assert not (tmp_path / 'nothing').exists()


def test_down_ends_processes_whose_folder_was_removed(folder):
    cluster = Cluster(folder)
    cluster.up()
    folder.rename(folder.with_name('elsewhere'))
    assert processes.find(folder)
    assert shardmw_saio('down', folder).returncode == 0
    assert processes.find(folder) == []


def test_down_leaves_other_clusters_alone(with_workers, small):
    assert shardmw_saio('down', with_workers.path).returncode == 0
    assert processes.find(with_workers.path) == []
    assert_all_run(small)


def test_a_folders_name_may_begin_with_anothers(tmp_path):
    one, other = tmp_path / 'saio', tmp_path / 'saio:2'
    sleeper = processes.start(other, 'a', ['sleep', '60'], tmp_path / 'log')
    wait_for(lambda: processes.find(other))
    processes.end(one, lambda each: True, patience_seconds=1)
    assert [each.pid for each in processes.find(other)] == [sleeper.pid]
    processes.end(other, lambda each: True, patience_seconds=1)
    assert sleeper.wait() == -signal.SIGTERM


def test_clusters_that_start_at_once_get_ports_of_their_own(tmp_path):
    folders = [tmp_path / name for name in 'ab']
    starts = [
        subprocess.Popen([*UP, folder, '--port', '0']) for folder in folders
    ]
    assert [start.wait() for start in starts] == [0, 0]
    clusters = [Cluster(folder) for folder in folders]
    ports = [s.port for each in clusters for s in each.servers.values()]
    for cluster in clusters:
        assert_all_run(cluster)
        cluster.down()
    assert len(set(ports)) == len(ports)


def test_data_is_found_after_a_server_moved_to_another_port(folder):
    cluster = Cluster(folder, ClusterOptions(devices=4))
    cluster.up()
    client = login(cluster)
    client.put('c')
    for i in range(8):
        client.put('c', f'o{i}', b'body')
    cluster.down()
    ports = {name: each.port for name, each in cluster.servers.items()}
    with socket.create_server(('127.0.0.1', ports['object-1'])):
        cluster.up()
    moved = {n for n, s in cluster.servers.items() if s.port != ports[n]}
    assert moved == {'object-1'}
    client = login(cluster)
    found = [client.get('c', f'o{i}').status for i in range(8)]
    assert found == [200] * 8


# Crashes


def test_down_works_after_up_was_killed_halfway(folder):
    starting = subprocess.Popen([*UP, folder, '--port', '0'])
    wait_for(lambda: processes.find(folder))
    starting.kill()
    starting.wait()
    assert processes.find(folder)
    assert shardmw_saio('down', folder).returncode == 0
    assert processes.find(folder) == []


def test_up_works_after_up_was_killed_halfway(folder):
    starting = subprocess.Popen([*UP, folder, '--port', '0'])
    wait_for(lambda: processes.find(folder))
    starting.kill()
    starting.wait()
    done = shardmw_saio('up', folder)
    assert done.returncode == 0, done.stderr
    assert_all_run(Cluster(folder))


def orphan_workers_of(cluster, name):
    """Kill only a server's parent process."""
    os.kill(main_pid(cluster, name), signal.SIGKILL)
    wait_for(lambda: states(cluster)[name] == 'orphaned')


def test_up_replaces_workers_whose_parent_was_killed(with_workers):
    others = set(processes.find(with_workers.path))
    others = {each for each in others if each.server != 'proxy-1'}
    orphan_workers_of(with_workers, 'proxy-1')
    assert with_workers.up() == ['proxy-1']
    assert_all_run(with_workers)
    assert login(with_workers).put('c').status in (201, 202)
    assert others <= set(processes.find(with_workers.path))


def test_down_ends_orphaned_and_paused_servers(with_workers):
    orphan_workers_of(with_workers, 'proxy-1')
    with_workers.pause('object-1')
    with_workers.down()
    assert processes.find(with_workers.path) == []


def test_up_starts_only_what_is_dead(small):
    os.kill(main_pid(small, 'object-1'), signal.SIGKILL)
    wait_for(lambda: states(small)['object-1'] == 'down')
    assert shardmw_saio('status', small.path).returncode == 3
    proxy = main_pid(small, 'proxy-1')
    done = shardmw_saio('up', small.path)
    assert (done.returncode, done.stderr) == (0, '')
    assert main_pid(small, 'proxy-1') == proxy
    assert_all_run(small)


def test_a_process_that_took_over_an_id_is_not_signalled(folder):
    stranger = subprocess.Popen(['sleep', '60'])
    mistaken = processes.Process(stranger.pid, 'proxy-1', stranger.pid)
    processes.send_signal(folder, mistaken, signal.SIGKILL)
    # had it been killed, this signal would come too late
    stranger.terminate()
    assert stranger.wait() == -signal.SIGTERM


# What goes wrong


def test_a_taken_port_is_an_error(folder):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
        done = shardmw_saio('up', folder, '--port', port)
    assert done.returncode == 1
    assert_one_line(done.stderr, f'port {port}', 'proxy-1', '--port')
    assert processes.find(folder) == []


def test_a_port_that_leaves_no_room_for_the_others_is_an_error(folder):
    done = shardmw_saio('up', folder, '--port', 65533)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'port is 65533')


def test_a_missing_memcached_is_an_error(folder, tmp_path):
    done = shardmw_saio('up', folder, env={'PATH': str(tmp_path)})
    assert done.returncode == 1
    assert_one_line(done.stderr, 'memcached', 'install')
    assert not folder.exists()


def test_a_file_system_without_extended_attributes_is_an_error(
    folder, monkeypatch
):
    # a machine may have no file system without them
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, 'setxattr', refuse)
    with pytest.raises(SaioError, match='extended attributes'):
        Cluster(folder).up()
    assert processes.find(folder) == []


def test_a_folder_with_other_files_is_an_error(tmp_path):
    precious = tmp_path / 'thesis.txt'
    precious.write_text('42')
    done = shardmw_saio('up', tmp_path)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'not a cluster')
    assert list(tmp_path.iterdir()) == [precious]


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    path = tmp_path / 'file'
    path.touch()
    done = shardmw_saio('up', path)
    assert done.returncode == 1
    assert_one_line(done.stderr, str(path))


def test_an_unreadable_state_is_an_error(folder):
    folder.mkdir()
    (folder / 'saio.json').write_text('{')
    done = shardmw_saio('up', folder)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'saio.json')


@pytest.mark.parametrize(
    'option', [['--replicas', 3], ['--policies', 2], ['--encryption']]
)
def test_options_that_do_not_fit_the_data_are_an_error(small, option):
    done = shardmw_saio('up', small.path, *option)
    assert done.returncode == 1
    assert_one_line(done.stderr, option[0].lstrip('-'), 'another folder')
    assert_all_run(small)


@pytest.mark.parametrize(
    'command', [['logs', 'proxy-7'], ['daemon', 'proxy-1']]
)
def test_an_unknown_server_or_daemon_is_an_error(small, command):
    done = shardmw_saio(*command, '--dir', small.path)
    assert done.returncode == 1
    assert_one_line(done.stderr, command[1], 'take one of')


@pytest.mark.parametrize('method', ['start', 'stop', 'pause', 'resume'])
def test_a_server_that_the_cluster_lacks_is_an_error(small, method):
    with pytest.raises(SaioError, match="'container-2'"):
        getattr(small, method)('container-2')


@pytest.mark.parametrize(
    'setting', ['nothing', 'nothing=1', 'nosuch.option=1', '.option=1']
)
def test_an_unknown_setting_is_an_error(folder, setting):
    done = shardmw_saio('up', folder, '--set', setting)
    assert done.returncode == 1
    assert_one_line(done.stderr, setting.partition('=')[0])
    assert not folder.exists()


def test_a_server_that_dies_of_an_exception_is_an_error(folder):
    setting = 'container-server.conn_timeout=soon'
    options = ['--port', 0, '--no-daemons', '--set', setting]
    done = shardmw_saio('up', folder, *options)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'container-1', 'ValueError', 'soon')
    assert processes.find(folder) == []


# One server


def test_a_stopped_server_can_be_started(small):
    client = login(small)
    client.put('c')
    small.stop('object-1')
    assert states(small)['object-1'] == 'down'
    assert client.put('c', 'o').status == 503
    small.start('object-1')
    assert states(small)['object-1'] == 'running'
    wait_for(lambda: client.put('c', 'o').status == 201)


def test_a_stopped_memcached_can_be_started(small):
    client = login(small)
    small.stop('memcached')
    # tokens are in memcached
    assert client.listing().status == 401
    small.start('memcached')
    assert login(small).listing().status == 200


def test_start_of_a_running_server_leaves_it_alone(small):
    pid = main_pid(small, 'account-1')
    small.start('account-1')
    assert main_pid(small, 'account-1') == pid


def test_start_of_a_server_whose_port_was_taken_is_an_error(small):
    small.stop('object-1')
    try:
        with (
            socket.create_server(
                ('127.0.0.1', small.servers['object-1'].port)
            ),
            pytest.raises(SaioError, match='is taken'),
        ):
            small.start('object-1')
    finally:
        small.start('object-1')


def test_a_paused_server_times_out_until_it_is_resumed(small):
    client = login(small)
    client.put('paused')
    small.pause('container-1')
    assert states(small)['container-1'] == 'paused'
    began = time.monotonic()
    assert client.listing('paused').status == 503
    assert time.monotonic() - began >= 3
    small.resume('container-1')
    wait_for(lambda: client.listing('paused').status == 200)
    assert_all_run(small)


# Settings


def test_reconfigure_restarts_the_servers_concerned(small):
    user = {'tempauth.user_new_somebody': 'secret .admin'}
    with pytest.raises(AssertionError, match='401'):
        Client.login(small.auth_url, 'new:somebody', 'secret')
    assert small.reconfigure(user) == ['proxy-1']
    assert small.users['new:somebody'] == 'secret'
    assert login(small, 'new:somebody').put('c').status == 201
    # unchanged settings need no restart
    assert small.reconfigure(user) == []
    none = dict.fromkeys(user)
    assert small.reconfigure(none) == ['proxy-1']
    assert 'new:somebody' not in small.users


def test_reconfigure_leaves_stopped_servers_stopped(small):
    small.stop('object-1')
    small.reconfigure({'tempauth.user_new_somebody': 'secret'})
    assert states(small)['object-1'] == 'down'
    assert small.up() == ['object-1']


def test_settings_that_the_filter_refuses_change_nothing(small):
    proxy = main_pid(small, 'proxy-1')
    with pytest.raises(SaioError, match='max_shards = many: must be'):
        small.reconfigure({'shardmw.max_shards': 'many'})
    assert main_pid(small, 'proxy-1') == proxy


def test_settings_that_a_server_refuses_are_undone(small):
    before = small.options
    with pytest.raises(SaioError, match=r'proxy-1 .*soon.*former options'):
        small.reconfigure({'proxy-server.node_timeout': 'soon'})
    assert small.options == before
    assert_all_run(small)
    assert small.up() == []
    assert login(small).listing().status == 200


def test_constraints_go_to_all_servers(large):
    client = login(large)
    client.put('c')
    assert client.put('c', 'o' * 40).status == 201
    assert client.put('c', 'o' * 41).status == 400


def test_up_with_other_options_restarts_what_they_change(folder):
    Cluster(folder).up()
    storage = main_pid(Cluster(folder), 'object-1')
    done = shardmw_saio('up', folder, '--proxies', 2)
    assert done.returncode == 0, done.stderr
    cluster = Cluster(folder)
    assert len(cluster.proxy_urls) == 2
    assert_all_run(cluster)
    assert main_pid(cluster, 'object-1') == storage
    shardmw_saio('up', folder, '--proxies', 1)
    assert {each.server for each in processes.find(folder)} == set(
        Cluster(folder).servers
    )


# Shapes


def test_proxies_share_a_memcached(large):
    first, second = large.proxy_urls
    client = login(large)
    for url in first, second:
        assert client.on(url).listing().status == 200
    # the token is known to both because it's in memcached
    large.stop('memcached')
    assert client.on(second).listing().status == 401


def test_each_node_has_a_replica(large):
    client = login(large)
    client.put('c')
    before = set(data_files(large, 'objects'))
    client.put('c', 'replicated', b'body')

    def nodes():
        new = set(data_files(large, 'objects')) - before
        return {path.parents[5].name for path in new}

    # The proxy answers when a majority has it.
    wait_for(lambda: nodes() == {'1', '2', '3'})
    assert client.get('c', 'replicated').body == b'body'


def test_a_policy_has_objects_of_its_own(large):
    client = login(large)
    policy = {'X-Storage-Policy': 'Policy-1'}
    assert client.put('other', headers=policy).status == 201
    client.put('other', 'o', b'body')
    assert len(data_files(large, 'objects-1')) == 3
    assert client.get('other', 'o').body == b'body'


def test_replicators_bring_a_node_up_to_date(large):
    client = login(large)
    for role in 'container', 'object':
        large.stop(f'{role}-1')
    assert client.put('missed').status == 201
    assert client.put('missed', 'o', b'body').status == 201
    for role in 'container', 'object':
        large.start(f'{role}-1')
    others = [f'{role}-{n}' for role in ('container', 'object') for n in '23']

    def is_up_to_date():
        # Late rows of the other nodes have to be replicated, too. As in any
        # cluster, replicators may need some passes.
        large.daemon('object-updater')
        large.daemon('container-replicator')
        large.daemon('object-replicator')
        for name in others:
            large.stop(name)
        listed = client.listing('missed')
        found = listed.status, client.get('missed', 'o').body
        for name in others:
            large.start(name)
        return found == (200, b'body') and listed.names() == ['o']

    wait_for(is_up_to_date)


def test_encryption_leaves_no_plain_bodies_on_disk(large):
    client = login(large)
    client.put('c')
    client.put('c', 'secret', b'nobody shall read this')
    assert client.get('c', 'secret').body == b'nobody shall read this'
    stored = [path.read_bytes() for path in data_files(large, 'objects')]
    assert stored
    assert not any(b'nobody' in each for each in stored)


# Daemons


def test_daemons_run_in_the_background(clusters):
    cluster = clusters(ClusterOptions(daemons=True))
    assert states(cluster)['daemons'] == 'running'
    client = login(cluster)
    client.put('counted', headers={SHARD_COUNT_HEADER: '2'})
    client.put('counted', 'o', b'12345')
    wait_for(lambda: client.listing().json()[0]['bytes'] == 5)
    assert cluster.log_path('daemons').read_text() == ''


def test_the_updater_updates_the_counts_of_the_account(small):
    client = login(small)
    client.put('counted')
    client.put('counted', 'o', b'12345')

    def counts():
        rows = client.listing(prefix='counted').json()
        return [(row['count'], row['bytes']) for row in rows]

    assert counts() == [(0, 0)]
    done = shardmw_saio('daemon', 'container-updater', '--dir', small.path)
    assert done.returncode == 0, done.stderr
    assert counts() == [(1, 5)]


@pytest.fixture(params=[0, 4], ids=['plain', 'sharded'])
def shard_count(request):
    return {SHARD_COUNT_HEADER: str(request.param)} if request.param else {}


def test_the_expirer_deletes_objects_and_rows(small, shard_count):
    client = login(small)
    container = f'expiring-{len(shard_count)}'
    client.put(container, headers=shard_count)
    after = {'X-Delete-After': '4'}
    assert client.put(container, 'o', headers=after).status == 201
    wait_for(lambda: client.head(container, 'o').status == 404)
    assert client.listing(container).names() == ['o']
    # the expirer finds its queues by the account's listing
    small.daemon('container-updater')
    small.daemon('object-expirer')
    assert client.listing(container).names() == []


#: A script that stores an object in the wrong policy and queues it for the
#: reconciler.
MISPLACE = """if True:
    import io, sys
    from pathlib import Path
    from swift.common import utils
    etc, container = Path(sys.argv[1]), sys.argv[2]
    utils.SWIFT_CONF_FILE = str(etc / 'swift.conf')
    from swift.common.internal_client import InternalClient
    from swift.container.reconciler import add_to_reconciler_queue
    swift = InternalClient(str(etc / 'internal-client.conf'), 'test', 1)
    now = utils.Timestamp.now().internal
    swift.upload_object(
        io.BytesIO(b'body'), 'AUTH_test', container, 'o',
        {'X-Timestamp': now, 'X-Backend-Storage-Policy-Index': '1'},
    )
    ring = swift.container_ring
    target = 'AUTH_test', container, 'o', 1, now, 'PUT'
    assert add_to_reconciler_queue(ring, *target)
"""


def test_the_reconciler_moves_objects_and_rows(clusters, shard_count):
    cluster = clusters(ClusterOptions(policies=2))
    client = login(cluster)
    container = f'reconciled-{len(shard_count)}'
    client.put(container, headers=shard_count)
    command = [sys.executable, '-c', MISPLACE, cluster.path / 'etc', container]
    subprocess.run(command, check=True)
    assert client.get(container, 'o').status == 404
    # the reconciler finds its queues by the account's listing
    cluster.daemon('container-updater')
    cluster.daemon('container-reconciler')
    assert client.get(container, 'o').body == b'body'
    assert client.listing(container).names() == ['o']
    assert client.delete(container, 'o').status == 204
    assert client.listing(container).names() == []


SHARDER = {
    'container-sharder.auto_shard': 'true',
    'container-sharder.shard_container_threshold': '10',
    'container-sharder.cleave_batch_size': '10',
}


def split_containers(cluster, account):
    """Return the containers of an account that the sharder has split."""
    databases = cluster.devices_path.glob('1/*/containers/*/*/*/*_*.db')
    infos = [ContainerBroker(str(path)).get_info() for path in databases]
    return [row['container'] for row in infos if row['account'] == account]


def test_the_sharder_shards_natively(small):
    small.reconfigure(SHARDER)
    admin = login(small, 'admin:admin').visiting(login(small))
    admin.put('native', headers={'X-Container-Sharding': 'on'})
    names = [f'o{i:02}' for i in range(20)]
    for name in names:
        admin.put('native', name)

    def is_split():
        small.daemon('container-sharder')
        return 'native' in split_containers(small, 'AUTH_test')

    wait_for(is_split)
    assert admin.listing('native').names() == names


def test_the_sharder_splits_backing_containers(small):
    client = login(small)
    client.put('deep', headers={SHARD_COUNT_HEADER: '2'})
    names = [f'o{i:02}' for i in range(50)]
    for name in names:
        client.put('deep', name, b'x')
    hidden = '.shards_shardmw_AUTH_test'
    with running_unfiltered_proxy(small) as url:
        operator = Client(f'{url}/v1/{hidden}', client.token)
        for backing in operator.listing(prefix='deep.').names():
            operator.post(backing, headers={'X-Container-Sharding': 'on'})
    small.reconfigure(SHARDER)

    def are_split():
        small.daemon('container-sharder')
        return len(split_containers(small, hidden)) == 2

    wait_for(are_split)
    assert client.listing('deep').names() == names
    assert client.put('deep', 'p', b'x').status == 201
    assert client.delete('deep', 'o00').status == 204
    # rows of a proxy that has not noticed the split yet are misplaced
    small.daemon('container-sharder')
    assert client.listing('deep').names() == [*names[1:], 'p']


def test_a_daemon_that_fails_is_an_error(small):
    small.reconfigure({'container-updater.concurrency': 'lots'})
    done = shardmw_saio('daemon', 'container-updater', '--dir', small.path)
    assert done.returncode == 1
    assert_one_line(done.stderr, 'container-updater', 'ValueError', 'lots')


# For clients


def test_env_is_what_the_swift_client_needs(small):
    script = f"""
        eval "$({COMMAND} env {small.path})"
        export PATH={COMMAND.parent}:$PATH
        echo hello > greeting
        swift upload from-env greeting && swift list from-env
    """
    done = subprocess.run(
        ['sh', '-ec', script],
        cwd=small.path.parent,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ['greeting', 'greeting'], done.stderr


def test_env_is_what_boto3_needs(small):
    client = login(small)
    client.put('bucket')
    client.put('bucket', 'by-swift', b'1')
    script = """if True:
        import boto3
        s3 = boto3.client('s3')
        s3.put_object(Bucket='bucket', Key='by-s3', Body=b'2')
        for row in s3.list_objects_v2(Bucket='bucket')['Contents']:
            print(row['Key'])
    """
    done = subprocess.run(
        [sys.executable, '-c', script],
        env={**os.environ, **small.environment()},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ['by-s3', 'by-swift'], done.stderr
    assert client.get('bucket', 'by-s3').body == b'2'


def test_env_uses_the_folder_in_the_environment(small):
    named = {**os.environ, 'SHARDMW_SAIO_DIR': str(small.path)}
    done = shardmw_saio('env', env=named)
    assert f'export ST_AUTH={small.auth_url}\n' in done.stdout


def test_run_provides_a_cluster_and_exits_with_the_commands_code():
    script = """if True:
        import os, sys, swiftclient
        names = 'ST_AUTH', 'ST_USER', 'ST_KEY'
        connection = swiftclient.Connection(*map(os.environ.get, names))
        connection.put_container('c')
        connection.put_object('c', 'o', b'body')
        print(connection.get_object('c', 'o')[1].decode())
        print(os.environ['SHARDMW_SAIO_DIR'])
        sys.exit(7)
    """
    done = shardmw_saio('run', '--workers', 1, sys.executable, '-c', script)
    assert done.returncode == 7, done.stderr
    body, folder = done.stdout.split()
    assert body == 'body'
    assert processes.find(Path(folder)) == []
    assert not Path(folder).exists()


def test_run_leaves_a_running_cluster_up(small):
    done = shardmw_saio('run', '--dir', small.path, 'true')
    assert done.returncode == 0, done.stderr
    assert_all_run(small)


def test_run_of_a_missing_command_is_an_error(small):
    done = shardmw_saio('run', '--dir', small.path, 'no-such-command')
    assert done.returncode == 127
    assert_one_line(done.stderr, 'no-such-command')


def test_run_that_is_terminated_cleans_up(folder):
    running = subprocess.Popen(
        [COMMAND, 'run', '--dir', folder, 'sh', '-c', 'echo on; sleep 60'],
        stdout=subprocess.PIPE,
    )
    assert running.stdout.readline() == b'on\n'
    running.terminate()
    assert running.wait() == 128 + signal.SIGTERM
    assert processes.find(folder) == []


# Logs


def test_logs_show_requests(small):
    login(small).head('logged-container')
    wait_for(lambda: 'logged-container' in log_tail(small, 'proxy-1'))
    assert 'logged-container' in log_tail(small, 'container-1')


def log_tail(cluster, name):
    done = shardmw_saio('logs', name, '-n', 5, '--dir', cluster.path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('\n') <= 5
    return done.stdout


def test_logs_show_all_servers(small):
    done = shardmw_saio('logs', '-n', 1, '--dir', small.path)
    for name in ('proxy-1', 'account-1', 'container-1', 'object-1'):
        assert f'==> {name} <==\n' in done.stdout


def test_logs_can_be_followed(small):
    following = subprocess.Popen(
        [COMMAND, 'logs', '-f', '-n', '1', 'proxy-1', '--dir', small.path],
        stdout=subprocess.PIPE,
    )
    try:
        # an earlier line shows that the command follows the log
        following.stdout.readline()
        login(small).head('followed-container')
        seen = b''
        while b'followed-container' not in seen:
            ready, _, _ = select.select(
                [following.stdout], [], [], PATIENCE_SECONDS
            )
            assert ready, 'nothing followed'
            seen += os.read(following.stdout.fileno(), 65536)
    finally:
        following.terminate()
        following.wait()
        following.stdout.close()
