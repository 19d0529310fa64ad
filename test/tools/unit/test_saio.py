# SPDX-License-Identifier: Apache-2.0
import configparser
import json
import signal

import pytest
from click.testing import CliRunner
from shardmw_saio import (
    Cluster,
    cli,
    cluster,
    commands,
    config,
    logs,
    options,
    processes,
    topology,
)
from shardmw_saio.errors import SaioError
from shardmw_saio.options import ClusterOptions, Host, check_same_structure
from shardmw_saio.ports import PortReservations
from shardmw_saio.rings import write_rings

from shardmw.backend.config import OPTION_PREFIXES

SHARDMW = 'filter:shardmw'

PLACE = config.Place('/c/etc', '/c/devices', '/c/cache', 'somebody')


def all_servers(given):
    names = topology.server_names(given)
    ports = {name: 1000 + i for i, name in enumerate(names)}
    return topology.servers(given, ports)


def parsed(given, name):
    texts = config.config_files(given, all_servers(given), PLACE)
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str
    parser.read_string(texts[name])
    return parser


def pipeline(given):
    conf = parsed(given, 'proxy-1.conf')
    return conf['pipeline:main']['pipeline'].split()


# Options


@pytest.mark.parametrize(
    'given',
    [
        {'proxies': 0},
        {'replicas': 0},
        {'policies': 0},
        {'workers': -1},
        {'port': -1},
        {'replicas': 3, 'devices': 2},
        {'settings': {'option': 'value'}},
    ],
)
def test_options_that_make_no_sense_are_refused(given):
    with pytest.raises(SaioError):
        ClusterOptions(**given)


def test_there_are_as_many_devices_as_replicas_by_default():
    assert ClusterOptions(replicas=3).devices == 3
    assert ClusterOptions(replicas=2, devices=5).devices == 5


def test_options_survive_json():
    given = ClusterOptions(
        proxies=2,
        settings={'shardmw.max_shards': '8'},
        hosts={'proxy-1': Host('10.0.0.1', 'space')},
    )
    text = json.dumps(given.as_json())
    assert ClusterOptions.from_json(json.loads(text)) == given


def test_settings_are_added_replaced_and_taken_out():
    before = ClusterOptions(settings={'a.keep': '1', 'a.b': '1', 'a.c': '1'})
    after = before.with_settings({'a.b': '2', 'a.c': None, 'a.d': '4'})
    assert after.settings == {'a.keep': '1', 'a.b': '2', 'a.d': '4'}


def test_a_setting_may_hold_dots_and_equals_signs():
    text = 'shardmw.shard_rules=AUTH_test/log.*=8'
    assert options.parse_setting(text) == (
        'shardmw.shard_rules',
        'AUTH_test/log.*=8',
    )
    with pytest.raises(SaioError, match='has no value'):
        options.parse_setting('shardmw.shard_rules')


@pytest.mark.parametrize(
    'wanted',
    [{'replicas': 2}, {'devices': 4}, {'policies': 2}, {'encryption': True}],
)
def test_structure_cannot_change(wanted):
    (name,) = wanted
    with pytest.raises(SaioError, match=name):
        check_same_structure(ClusterOptions(), wanted)


def test_everything_but_structure_can_change():
    wanted = ClusterOptions(
        proxies=3, workers=2, port=9000, settings={'a.b': 'c'}
    )
    check_same_structure(ClusterOptions(), wanted.as_json())


# Servers, ports and devices


def test_each_replica_has_a_node_with_all_kinds_of_servers():
    assert topology.server_names(ClusterOptions(proxies=2, replicas=2)) == [
        'proxy-1',
        'proxy-2',
        'memcached',
        'account-1',
        'container-1',
        'object-1',
        'account-2',
        'container-2',
        'object-2',
    ]


def test_daemons_have_the_last_name_and_port():
    others = topology.server_names(ClusterOptions())
    names = topology.server_names(ClusterOptions(daemons=True))
    assert names == [*others, 'daemons']
    server = all_servers(ClusterOptions(daemons=True))['daemons']
    assert (server.kind, server.node) == ('daemons', 1)


def test_ports_follow_each_other():
    ports = topology.consecutive_ports(ClusterOptions(port=8080))
    assert list(ports.values()) == [8080, 8081, 8082, 8083, 8084]
    assert ports['proxy-1'] == 8080


def test_ports_end_at_the_highest():
    given = ClusterOptions(port=65531)
    assert max(topology.consecutive_ports(given).values()) == 65535
    with pytest.raises(SaioError, match='65532'):
        topology.consecutive_ports(given.changed(port=65532))


def test_a_reserved_port_cannot_be_reserved_by_others():
    with PortReservations() as ours, PortReservations() as theirs:
        port = ours.pick()
        assert ours.reserve(port)
        assert not theirs.reserve(port)
    with PortReservations() as later:
        assert later.reserve(port)


def test_no_port_is_picked_twice(monkeypatch):
    with PortReservations() as known:
        free = [known.pick(), known.pick()]
    monkeypatch.setattr('shardmw_saio.ports._candidates', lambda: iter(free))
    with PortReservations() as reservations:
        assert [reservations.pick(), reservations.pick()] == free


def test_no_port_is_picked_that_another_server_has_had(monkeypatch):
    names = topology.server_names(ClusterOptions())
    with PortReservations() as known:
        ports = dict(zip(names, iter(known.pick, None), strict=False))
    others = list(ports.values())[1:]
    monkeypatch.setattr('shardmw_saio.ports._candidates', lambda: iter(others))
    with PortReservations() as theirs, PortReservations() as ours:
        assert theirs.reserve(ports[names[0]])
        with pytest.raises(SaioError, match='no free port'):
            cluster._choose_ports(ClusterOptions(), ports, (), ours)


def test_another_filter_may_take_the_place_of_shardmw():
    settings = {'shardmw.use': 'egg:swift#ratelimit', 'shardmw.other': '1'}
    config.check_settings(ClusterOptions(settings=settings))


def test_devices_are_dealt_out_to_the_nodes():
    given = ClusterOptions(replicas=2, devices=5)
    nodes = [device.node for device in topology.devices(given)]
    assert nodes == [1, 2, 1, 2, 1]


def test_servers_listen_on_their_hosts():
    host = Host('10.0.0.1', 'space')
    names = ('proxy-1', 'memcached', 'container-1')
    given = ClusterOptions(hosts=dict.fromkeys(names, host))
    found = all_servers(given)
    (device,) = topology.ring_devices(given, found)['container']
    memcache = parsed(given, 'memcache.conf')['memcache']
    assert device['ip'] == '10.0.0.1'
    assert memcache['memcache_servers'] == found['memcached'].address
    assert found['memcached'].address == '10.0.0.1:1001'
    assert (
        parsed(given, 'container-1.conf')['DEFAULT']['bind_ip'] == device['ip']
    )
    assert parsed(given, 'object-1.conf')['DEFAULT']['bind_ip'] == '127.0.0.1'


def test_servers_run_in_the_namespaces_of_their_hosts():
    command = ['memcached', '-v']
    assert commands.on_host(topology.LOCAL, command) == command
    assert commands.on_host(Host('10.0.0.1', 'space'), command) == [
        *('ip', 'netns', 'exec', 'space'),
        *command,
    ]


def test_there_is_an_object_ring_for_each_policy():
    given = ClusterOptions(policies=3)
    rings = topology.ring_devices(given, all_servers(given))
    assert list(rings) == [
        'account',
        'container',
        'object',
        'object-1',
        'object-2',
    ]


def test_rings_keep_data_where_it_is_when_ports_change(tmp_path):
    from swift.common.ring import RingData

    given = ClusterOptions(replicas=2, devices=4)
    partitions = []
    for shift in 0, 100:
        servers = {
            name: each._replace(port=each.port + shift)
            for name, each in all_servers(given).items()
        }
        rings = topology.ring_devices(given, servers)
        write_rings(tmp_path, given.replicas, rings)
        ring = RingData.load(str(tmp_path / 'object.ring.gz'))
        ports = {device['port'] for device in ring.devs}
        assert ports == {s.port for s in servers.values() if 'obj' in s.name}
        partitions.append([list(row) for row in ring._replica2part2dev_id])
    assert partitions[0] == partitions[1]


# Configuration files


@pytest.mark.parametrize('encryption', [False, True])
def test_shardmw_is_the_last_filter_but_for_proxy_logging(encryption):
    names = pipeline(ClusterOptions(encryption=encryption))
    assert names[-3:] == ['shardmw', 'proxy-logging', 'proxy-server']


def test_encryption_takes_the_place_of_the_listings_filter():
    encrypted = pipeline(ClusterOptions(encryption=True))
    plain = pipeline(ClusterOptions())
    assert set(encrypted) - set(plain) == {'keymaster', 'encryption'}
    assert set(plain) - set(encrypted) == {'shardmw-listings'}


def test_every_filter_of_a_pipeline_has_its_section():
    given = ClusterOptions(encryption=True)
    servers = all_servers(given)
    for name in config.config_files(given, servers, PLACE):
        conf = parsed(given, name)
        if 'pipeline:main' not in conf:
            continue
        *filters, app = conf['pipeline:main']['pipeline'].split()
        for each in filters:
            assert 'use' in conf[f'filter:{each}']
        assert 'use' in conf[f'app:{app}']


INTERNAL_CLIENTS = (
    'container-reconciler.conf',
    'internal-client.conf',
    'object-expirer.conf',
)


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_daemons_redirect_rows_as_the_proxies_do(name):
    conf = parsed(ClusterOptions(), name)
    *filters, app = conf['pipeline:main']['pipeline'].split()
    assert 'cache' in filters
    assert filters[-1] == 'shardmw'
    assert app == 'proxy-server'


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_daemons_have_the_settings_of_the_proxies(name):
    settings = {'shardmw.default_shards': '8', 'cache.io_timeout': '3'}
    conf = parsed(ClusterOptions(settings=settings), name)
    assert conf[SHARDMW]['default_shards'] == '8'
    assert conf['filter:cache']['io_timeout'] == '3'


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_daemons_are_not_rate_limited(name):
    rates = {f'{prefix}0': '5' for prefix in OPTION_PREFIXES}
    settings = {f'shardmw.{rate}': value for rate, value in rates.items()}
    given = ClusterOptions(settings=settings)
    assert rates.items() <= parsed(given, 'proxy-1.conf')[SHARDMW].items()
    assert not rates.keys() & parsed(given, name)[SHARDMW].keys()


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_daemons_keep_no_listings(name):
    settings = {
        'shardmw.listing_max_age': '30',
        'shardmw.listing_kept_megabytes': '8',
    }
    conf = parsed(ClusterOptions(settings=settings), name)
    assert conf[SHARDMW]['listing_kept_megabytes'] == '0'


@pytest.mark.parametrize(
    ('setting', 'file', 'section'),
    [
        ('DEFAULT.client_timeout', 'proxy-1.conf', 'DEFAULT'),
        ('shardmw.default_shards', 'proxy-1.conf', 'filter:shardmw'),
        ('tempauth.token_life', 'proxy-1.conf', 'filter:tempauth'),
        ('proxy-server.node_timeout', 'proxy-1.conf', 'app:proxy-server'),
        ('object-server.slow', 'object-1.conf', 'app:object-server'),
        ('container-sharder.auto_shard', 'container-1.conf', None),
        ('object-expirer.reclaim_age', 'object-expirer.conf', None),
        (
            'container-reconciler.reclaim_age',
            'container-reconciler.conf',
            None,
        ),
        (
            'internal-client.node_timeout',
            'internal-client.conf',
            'app:proxy-server',
        ),
        ('swift-constraints.max_file_size', 'swift.conf', None),
        ('memcache.io_timeout', 'memcache.conf', None),
        ('container-sync.container_time', 'container-1.conf', None),
        (
            'container-sync-realms.cluster_there',
            'container-sync-realms.conf',
            'saio',
        ),
    ],
)
def test_a_setting_goes_into_its_section(setting, file, section):
    given = ClusterOptions(settings={setting: '7'})
    section_name, option = setting.split('.')
    assert parsed(given, file)[section or section_name][option] == '7'


def test_internal_clients_have_the_settings_of_proxies_or_their_own():
    shared = {f'proxy-server.{name}': '3' for name in ('both', 'shared')}
    given = ClusterOptions(settings={**shared, 'internal-client.both': '7'})
    conf = parsed(given, 'shardmw-resharder.conf')['app:proxy-server']
    assert (conf['both'], conf['shared']) == ('7', '3')
    assert parsed(given, 'proxy-1.conf')['app:proxy-server']['both'] == '3'


def test_a_setting_replaces_a_default():
    given = ClusterOptions(workers=2, settings={'DEFAULT.workers': '5'})
    assert parsed(given, 'proxy-1.conf')['DEFAULT']['workers'] == '5'
    assert parsed(given, 'object-1.conf')['DEFAULT']['workers'] == '2'


def test_a_setting_of_an_unknown_section_is_refused():
    given = ClusterOptions(settings={'proxy.workers': '5'})
    with pytest.raises(SaioError, match=r"'proxy.workers'.*proxy-server"):
        config.config_files(given, all_servers(given), PLACE)


@pytest.mark.parametrize(
    ('setting', 'value', 'message'),
    [
        ('shardmw.default_shards', 'x', 'default_shards = x: must be a whole'),
        ('shardmw.defualt_shards', '4', 'did you mean default_shards'),
        ('shardmw.container_ratelimit_10', 'fast', 'must be 0.0001 or more'),
        ('shardmw-listings.cache', '1', 'unknown option cache'),
    ],
)
def test_a_setting_that_the_filters_refuse_is_refused(setting, value, message):
    with pytest.raises(SaioError, match=message):
        config.check_settings(ClusterOptions(settings={setting: value}))


def test_settings_that_the_filters_take_are_taken():
    settings = {
        'shardmw.default_shards': '8',
        'shardmw.container_ratelimit_10': '5',
        'shardmw.log_level': 'DEBUG',
        'DEFAULT.client_timeout': '9',
    }
    config.check_settings(ClusterOptions(settings=settings))


def test_background_daemons_leave_out_daemons_without_work():
    given = ClusterOptions(daemons=True)
    assert config.background_daemons(given, all_servers(given)) == [
        'object-updater@object-1.conf',
        'container-updater@container-1.conf',
        'object-expirer@object-expirer.conf',
        'container-sharder@container-1.conf',
        'container-sync@container-1.conf',
        'account-reaper@account-1.conf',
        'shardmw-resharder@shardmw-resharder.conf',
    ]


def test_background_daemons_run_for_each_node():
    given = ClusterOptions(replicas=2, policies=2, daemons=True)
    runs = config.background_daemons(given, all_servers(given))
    assert 'container-replicator@container-2.conf' in runs
    assert 'object-replicator@object-1.conf' in runs
    assert 'container-reconciler@container-reconciler.conf' in runs
    names = {each.partition('@')[0] for each in runs}
    assert names == {*config.BACKGROUND_DAEMONS}


def test_a_resharder_in_the_background_does_not_wait_for_a_day():
    section = 'shardmw-resharder'
    name = f'{section}.conf'
    settings = {f'{section}.interval': '7'}
    given = ClusterOptions(daemons=True, settings=settings)
    conf = parsed(given, name)[section]
    assert (conf['interval'], conf['settle_seconds']) == ('7', '60')
    assert 'settle_seconds' not in parsed(ClusterOptions(), name)[section]


def test_users_are_those_of_tempauth():
    settings = {
        'tempauth.user_test_tester': 'changed .admin',
        'tempauth.user_a_b_c': 'key',
    }
    users = config.users(ClusterOptions(settings=settings))
    assert users['test:tester'] == 'changed'
    assert users['test2:tester2'] == 'testing2'
    assert users['a:b_c'] == 'key'


@pytest.mark.parametrize(
    ('changed', 'restarted'),
    [
        (set(), set()),
        ({'proxy-1.conf'}, {'proxy-1'}),
        ({'object-expirer.conf', 'internal-client.conf'}, set()),
        ({'rings.json'}, {'proxy-1', 'account-1', 'container-1', 'object-1'}),
        (
            {'memcache.conf'},
            {'proxy-1', 'memcached', 'account-1', 'container-1', 'object-1'},
        ),
    ],
)
def test_servers_are_restarted_for_settings_that_they_read(changed, restarted):
    servers = all_servers(ClusterOptions())
    assert config.servers_to_restart(servers, changed) == restarted


@pytest.mark.parametrize(
    'changed', [{'proxy-1.conf'}, {'object-expirer.conf'}, {'rings.json'}]
)
def test_daemons_are_restarted_for_every_change(changed):
    servers = all_servers(ClusterOptions(daemons=True))
    assert 'daemons' in config.servers_to_restart(servers, changed)
    assert 'daemons' not in config.servers_to_restart(servers, set())


# Changes of settings


class FakeServers:
    """A replacement for the processes of a cluster.

    :ivar started: the names of the servers that were started
    :ivar is_broken: True to let servers end at their start
    """

    def __init__(self, monkeypatch) -> None:
        self.started = []
        self.is_broken = False
        monkeypatch.setattr(cluster, 'memcached_path', str)
        monkeypatch.setattr(cluster.Cluster, '_start', self._start)

    def _start(self, starting):
        self.started += [each.name for each in starting]
        if starting and self.is_broken:
            raise SaioError('proxy-1 ended at its start: refused')


@pytest.fixture
def fake_servers(monkeypatch):
    return FakeServers(monkeypatch)


@pytest.fixture
def made(tmp_path, fake_servers):
    """Make a cluster with a setting, which is down."""
    given = ClusterOptions(settings={'shardmw.default_shards': '4'})
    found = Cluster(tmp_path / 'saio', given)
    found.up()
    fake_servers.started.clear()
    return found


def run_saio(*arguments, answer=''):
    return CliRunner().invoke(cli.main, [*map(str, arguments)], input=answer)


def files(path):
    return {each.name: each.read_text() for each in path.glob('etc/*.conf')}


def test_a_setting_that_is_checked_changes_nothing(made, fake_servers):
    before = files(made.path)
    done = run_saio('up', made.path, '--set', 'shardmw.default_shards=x')
    assert done.exit_code == 1
    assert done.output == (
        'Error: shardmw: default_shards = x: must be a whole number from 0 to '
        '1024\n'
    )
    assert fake_servers.started == []
    assert made.options.settings == {'shardmw.default_shards': '4'}
    assert files(made.path) == before


def test_a_setting_that_a_server_refuses_is_taken_back(made, fake_servers):
    before = files(made.path)
    fake_servers.is_broken = True
    done = run_saio('up', made.path, '--set', 'proxy-server.node_timeout=x')
    assert done.exit_code == 1
    assert done.output == (
        'Error: proxy-1 ended at its start: refused: the cluster has its '
        'former options again\n'
    )
    assert made.options.settings == {'shardmw.default_shards': '4'}
    assert files(made.path) == before


def test_a_start_that_fails_without_a_change_is_reported(made, fake_servers):
    fake_servers.is_broken = True
    done = run_saio('up', made.path)
    assert done.output == 'Error: proxy-1 ended at its start: refused\n'


def test_a_first_start_that_fails_is_forgotten(tmp_path, fake_servers):
    fake_servers.is_broken = True
    path = tmp_path / 'saio'
    assert run_saio('up', path, '--replicas', 3).exit_code == 1
    assert {each.name for each in path.iterdir()} == {'log', 'saio.lock'}
    fake_servers.is_broken = False
    assert run_saio('up', path).exit_code == 0
    assert Cluster(path).options.replicas == 1


def test_a_folder_with_other_logs_is_refused(tmp_path, fake_servers):
    (tmp_path / 'log').mkdir()
    done = run_saio('up', tmp_path)
    assert 'is not empty and not a cluster' in done.output


def test_a_setting_can_be_unset(made):
    done = run_saio('up', made.path, '--unset', 'shardmw.default_shards')
    assert done.exit_code == 0, done.output
    assert made.options.settings == {}


def test_a_setting_that_is_not_set_cannot_be_unset(made):
    done = run_saio('up', made.path, '--unset', 'shardmw.max_shards')
    assert done.exit_code == 1
    assert done.output == (
        "Error: setting 'shardmw.max_shards' is not set: the settings are: "
        'shardmw.default_shards\n'
    )


def test_up_makes_a_cluster_with_daemons_by_default(tmp_path, fake_servers):
    run_saio('up', tmp_path / 'a')
    run_saio('up', tmp_path / 'b', '--no-daemons')
    assert Cluster(tmp_path / 'a').options.daemons
    assert not Cluster(tmp_path / 'b').options.daemons


def test_run_makes_a_cluster_without_daemons(tmp_path, fake_servers):
    run_saio('run', '--dir', tmp_path / 'a', 'true')
    assert not Cluster(tmp_path / 'a').options.daemons


# Removal


def test_purge_deletes_the_cluster(made):
    done = run_saio('purge', made.path, '--yes')
    assert done.exit_code == 0, done.output
    assert done.output == f'deleted {made.path}\n'
    assert not made.path.exists()


@pytest.mark.parametrize(
    ('answer', 'is_left'), [('y\n', False), ('n\n', True), ('', True)]
)
def test_purge_asks_first(made, answer, is_left):
    done = run_saio('purge', made.path, answer=answer)
    assert str(made.path) in done.output
    assert made.path.exists() == is_left
    assert done.exit_code == int(is_left)


def test_purge_leaves_other_files_alone(made):
    (made.path / 'thesis.txt').write_text('42')
    done = run_saio('purge', made.path, '--yes')
    assert 'other files are still there: thesis.txt' in done.output
    assert [each.name for each in made.path.iterdir()] == ['thesis.txt']


def test_purge_of_a_folder_without_a_cluster_is_refused(tmp_path):
    (tmp_path / 'log').mkdir()
    done = run_saio('purge', tmp_path, '--yes')
    assert done.exit_code == 1
    assert 'no cluster is in' in done.output
    assert (tmp_path / 'log').is_dir()


def test_purge_of_a_cluster_with_a_symbolic_link_deletes_nothing(made):
    data = made.path.with_name('data')
    made.devices_path.rename(data)
    made.devices_path.symlink_to(data)
    done = run_saio('purge', made.path, '--yes')
    assert done.exit_code == 1
    assert f'{made.devices_path} is a symbolic link' in done.output
    assert (data / '1').is_dir()
    assert made.options.settings


def test_down_does_not_make_a_folder_look_like_a_cluster(
    tmp_path, fake_servers
):
    (tmp_path / 'log').mkdir()
    assert 'no cluster is in' in run_saio('down', tmp_path).output
    assert run_saio('up', tmp_path).exit_code == 1
    assert [each.name for each in tmp_path.iterdir()] == ['log']


def test_purge_ends_running_processes(made, tmp_path):
    sleeper = processes.start(
        made.path, 'proxy-1', ['sleep', '60'], tmp_path / 'log'
    )
    while not processes.find(made.path):
        pass  # the kernel shows its environment a moment after its start
    run_saio('purge', made.path, '--yes')
    assert sleeper.wait() == -signal.SIGTERM
    assert not made.path.exists()


# Logs


def test_the_reason_is_the_exception_that_ended_a_server():
    written = [
        '2026-01-01T00:00:00.000Z 1 INFO proxy-server: hello',
        'Traceback (most recent call last):',
        '  File "server.py", line 1, in main',
        "ValueError: could not convert string to float: 'x'",
        '',
        'Exception ignored in: <module threading>',
    ]
    assert logs.reason(written) == written[3]


def test_the_reason_is_the_last_line_if_nothing_was_raised():
    written = ['hello', 'failed to listen: Address already in use', '']
    assert logs.reason(written) == 'failed to listen: Address already in use'


def test_the_reason_of_a_server_that_said_nothing():
    assert logs.reason([]) == 'its log is empty'
