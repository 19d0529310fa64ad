# SPDX-License-Identifier: Apache-2.0
"""Changes of layout while clients read and write."""

import json
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, unique
from test.functional.history import Clients
from test.functional.operating import (
    SETTINGS,
    SETTLE_SECONDS,
    admin_of,
    logins_at_two_proxies,
)
from test.history import History

PROXY_LOGS = ('proxy-1.log', 'detached-proxy.log')

NAMES = [f'o{i}' for i in range(12)]
SEED = int(time.time())


@pytest.fixture(scope='module')
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    settings = {**SETTINGS, 'proxy-server.node_timeout': '60'}
    options = ClusterOptions(policies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('resharding'), options) as cluster:
        yield cluster


clients = pytest.fixture(scope='module')(logins_at_two_proxies)


@pytest.fixture
def client(clients) -> Client:
    return clients[0]()


admin = pytest.fixture(scope='module')(admin_of)


def layout_of(client: Client, container: str) -> str | None:
    return client.head(container).headers.get(SHARD_COUNT_HEADER.lower())


def refusals(cluster: Cluster) -> list[str]:
    """Return the filter's log lines of refused requests."""
    logs = [cluster.path / 'log' / name for name in PROXY_LOGS]
    return [
        line
        for log in logs
        for line in log.read_text().splitlines()
        if 'shardmw: 503' in line
    ]


def check(cluster: Cluster, history: History) -> None:
    """Check that no listing was refused, and that the history is consistent.

    Object servers refuse some concurrent writes of one object.
    """
    refused = [each for each in history.refused if each.startswith('page')]
    assert refused + refusals(cluster) == []
    violations = history.violations()
    assert [history.text(each) for each in violations[:1]] == []


def test_clients_see_one_container_all_the_time(
    cluster, clients, admin, client
):
    container = unique('history')
    assert client.put(container).status == 201
    with Clients(clients, container, NAMES, SEED) as work:
        for shards in (4, 9, 2, 0):
            admin.reshard(client, container, shards)
    history = work.history
    print('seed', SEED, dict(history.counts))
    check(cluster, history)
    assert history.counts['page'] > 50
    listed = client.listing(container).names()
    assert listed == sorted(
        name for name in NAMES if client.head(container, name).status == 200
    )
    assert layout_of(client, container) is None


def test_killed_and_cancelled_changes_lose_nothing(
    cluster, clients, admin, client
):
    container = unique('history')
    assert client.put(container).status == 201
    chance = random.Random(SEED)
    path = f'{client.account}/{container}'
    settle = ['--settle-seconds', SETTLE_SECONDS]
    options = [*settle, '--despite-backlog']
    with Clients(clients, container, NAMES, SEED) as work:
        for shards in (5, 3):
            for _ in range(2):
                mover = admin.start('reshard', path, str(shards), *options)
                time.sleep(chance.uniform(1, 6))
                mover.send_signal(signal.SIGKILL)
                mover.communicate()
            both = [
                admin.start('reshard', path, str(shards), *options)
                for _ in range(2)
            ]
            for each in both:
                each.communicate(timeout=120)
        mover = admin.start('reshard', path, '0', *options)
        time.sleep(chance.uniform(1, 6))
        cancelled = admin('cancel', path, *settle)
        mover.communicate(timeout=120)
    history = work.history
    print('seed', SEED, dict(history.counts), cancelled.stderr)
    check(cluster, history)
    listed = client.listing(container).names()
    assert listed == sorted(
        name for name in NAMES if client.head(container, name).status == 200
    )
    assert layout_of(client, container) in ('3', None)


@pytest.mark.parametrize(('former', 'shards'), [(0, 2), (2, 3), (2, 0)])
def test_an_object_whose_deletion_outlasts_the_change_is_not_listed(
    cluster, client, admin, former, shards
):
    container = unique('slow')
    count = {SHARD_COUNT_HEADER: str(former)} if former else {}
    assert client.put(container, headers=count).status == 201
    for name in ('deleted', 'kept'):
        assert client.put(container, name).status == 201
    with ThreadPoolExecutor(1) as pool:
        cluster.pause('object-1')
        try:
            delete = pool.submit(client.delete, container, 'deleted')
            admin.reshard(client, container, shards)
            assert not delete.done()
        finally:
            cluster.resume('object-1')
        assert delete.result().status == 204
    assert client.listing(container).names() == ['kept']
    path = f'{client.account}/{container}'
    audit = admin('audit', path, '--objects')
    assert audit.returncode == 0, audit.stdout


@pytest.fixture
def filled(client) -> str:
    """A plain container with a few objects."""
    container = unique('filled')
    assert client.put(container).status == 201
    for name in NAMES:
        assert client.put(container, name, b'body').status == 201
    return container


def test_a_dry_run_changes_nothing(client, admin, filled):
    path = f'{client.account}/{filled}'
    ran = admin('reshard', path, '4', '--dry-run')
    assert ran.returncode == 0, ran.stderr
    assert 'from plain to 4 shards: about 12 rows to move' in ran.stdout
    ran = admin('reshard', path, '4', '--dry-run', '--json')
    assert json.loads(ran.stdout)[0]['rows'] == len(NAMES)
    assert layout_of(client, filled) is None


@pytest.mark.parametrize(
    ('container', 'shards', 'status', 'message'),
    [
        ('nowhere', '4', 1, 'no such container'),
        ('filled', '0', 1, 'it has 0 shards already'),
        ('filled', '1025', 2, '1025 is not in the range'),
        ('filled', '-1', 2, 'No such option'),
        ('a/b', '4', 2, 'not a name like'),
    ],
)
def test_an_impossible_change_is_refused(
    client, admin, filled, container, shards, status, message
):
    container = filled if container == 'filled' else container
    ran = admin('reshard', f'{client.account}/{container}', shards)
    assert (ran.returncode, message in ran.stderr) == (status, True), ran


def test_a_detached_change_is_made_by_the_daemon(
    cluster, client, admin, filled
):
    path = f'{client.account}/{filled}'
    assert admin('reshard', path, '4', '--detach').returncode == 0
    assert layout_of(client, filled) is None
    (state,) = [
        each
        for each in json.loads(admin('status', '--json').stdout)
        if each['container'] == filled
    ]
    assert (state['phase'], state['rows_left']) == ('announced', len(NAMES))
    ran = admin('reshard', path, '8')
    assert (ran.returncode, 'is under way' in ran.stderr) == (1, True), ran
    cluster.daemon('shardmw-resharder')
    assert layout_of(client, filled) == '4'
    assert client.listing(filled).names() == sorted(NAMES)
    assert f'{filled}' in admin('status').stdout


def test_the_progress_is_printed_as_json(client, admin, filled):
    path = f'{client.account}/{filled}'
    settle = ('--settle-seconds', SETTLE_SECONDS)
    ran = admin('reshard', path, '3', *settle, '--json')
    reports = [json.loads(line) for line in ran.stderr.splitlines()]
    assert {each['container'] for each in reports} == {path}
    phases = list(dict.fromkeys(each['phase'] for each in reports))
    assert phases == [
        *('announced', 'waiting to move', 'moving'),
        *('settling', 'cleaning up', 'done'),
    ]
    assert reports[-1]['rows_moved'] == len(NAMES)
