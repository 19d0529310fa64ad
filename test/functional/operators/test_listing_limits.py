# SPDX-License-Identifier: Apache-2.0
"""The commands and the daemon, where Swift lists few rows at once.

``container_listing_limit`` and ``account_listing_limit`` of ``swift.conf`` are
below what a request would ask for otherwise.
"""

import json

import pytest
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import hidden_account
from test.functional.backing import put_rows
from test.functional.conftest import account_maker, logins
from test.functional.operating import (
    SETTINGS,
    Resharder,
    admin_of,
    fill,
    shards_of,
)

LIMITS = {
    'swift-constraints.container_listing_limit': '20',
    'swift-constraints.account_listing_limit': '3',
}

#: More objects than a page of any database has.
OBJECTS = 90


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    options = ClusterOptions(settings={**SETTINGS, **LIMITS})
    with Cluster(tmp_path_factory.mktemp('limits'), options) as cluster:
        yield cluster


login = pytest.fixture(scope='module')(logins)
new_account = pytest.fixture(scope='module')(account_maker)
admin = pytest.fixture(scope='module')(admin_of)


@pytest.fixture
def filled(client) -> list[str]:
    """The names of the objects of the plain container `c`."""
    return fill(client, 'c', OBJECTS)


def walk(client) -> list[str]:
    """Return all names that the container `c` lists, page by page."""
    names = client.listing('c').names()
    while page := client.listing('c', marker=names[-1]).names():
        names += page
    return names


def test_reshard_moves_all_rows_there_and_back(admin, client, filled):
    assert admin.reshard(client, 'c', 4)['shards'] == 4
    assert walk(client) == filled
    assert admin.reshard(client, 'c', 0)['shards'] == 0
    assert walk(client) == filled


def test_the_daemon_makes_a_change_that_status_shows(
    cluster, admin, client, filled
):
    admin.detach(client, 'c', 4)
    assert admin.changes(client)['c']['phase'] == 'announced'
    Resharder(cluster).once()
    assert admin.changes(client)['c']['phase'] == 'done'
    assert shards_of(client, 'c') == 4
    assert walk(client) == filled


def test_audit_finds_and_mends_the_rows_of_all_pages(
    cluster, admin, client, filled
):
    admin.reshard(client, 'c', 4)
    strays = [f'stray{i:02}' for i in range(30)]
    put_rows(cluster, client.account, 'c', strays)
    ran = admin('audit', f'{client.account}/c', '--json')
    assert [each['name'] for each in json.loads(ran.stdout)] == strays
    cluster.daemon('container-updater')
    ran = admin('audit', '--account', client.account, '--repair')
    assert ran.returncode == 0, ran
    ran = admin('audit', '--account', client.account)
    assert (ran.returncode, ran.stdout) == (0, ''), ran
    assert walk(client) == sorted([*filled, *strays])


def test_list_and_check_go_through_all_accounts_and_shards(
    cluster, admin, client, new_account, filled
):
    admin.reshard(client, 'c', 8)
    cluster.daemon('container-updater')
    ran = admin('list', client.account, '--json')
    (listed,) = json.loads(ran.stdout)
    assert (listed['shards'], listed['objects']) == (8, OBJECTS)
    ran = admin('stat', f'{client.account}/c', '--json')
    assert len(json.loads(ran.stdout)['shards']) == 8
    assert admin('check', hidden_account(client.account)).returncode == 0
