# SPDX-License-Identifier: Apache-2.0
"""Listings and sums of accounts include the objects in shards.

Two new accounts hold containers with the same names and objects; in one of
them, the containers are sharded. Both accounts must answer alike.
"""

import json
from typing import NamedTuple

import pytest
from swift.account.backend import AccountBroker

from shardmw.core.placement import hidden_account
from test.functional.alike import masked
from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER

COUNT = {SHARD_COUNT_HEADER: '2'}
SHARDED = (
    ' ', '%2F', '-', 'a', 'a-', 'a-b', 'a-c', 'a0', 'b-c', '~',
    'long-' + 'x' * 236, 'long-' + 'x' * 237, 'long-' + '\u2603' * 90,
    'c&<>"', '\u2603', '\U0001f600',
)  # fmt: skip
PLAIN = ('1', 'a-plain', 'plain', 'shardmw', 'shardmw-long')
OF_POLICY_1 = ('policy-1', 'a-policy')


class Accounts(NamedTuple):
    """Owners of two accounts with equal containers."""

    plain: Client
    sharded: Client


@pytest.fixture
def account(new_account) -> Client:
    """The owner of an empty account."""
    return new_account()


def fill(owner: Client, count: dict[str, str]) -> None:
    """Create containers and store some objects in each.

    :param count: the header that shards a container, or none
    """
    policy = {'X-Storage-Policy': 'Policy-1'}
    for name in SHARDED:
        owner.put(name, headers=count)
    for name in PLAIN:
        owner.put(name)
    for name in OF_POLICY_1:
        owner.put(name, headers={**count, **policy})
    for container in (*SHARDED, *PLAIN, *OF_POLICY_1):
        for i in range(len(container) % 5):
            assert owner.put(container, f'o{i}', b'x' * i).status == 201


@pytest.fixture(scope='module')
def accounts(cluster, new_account) -> Accounts:
    """Two accounts after an update of their sums."""
    accounts = Accounts(new_account(), new_account())
    fill(accounts.plain, {})
    fill(accounts.sharded, COUNT)
    cluster.daemon('container-updater')
    return accounts


@pytest.fixture
def assert_alike(accounts):
    """Return a function that compares the answers for both accounts."""

    def assert_alike(method: str, query: str = '', **headers: str) -> None:
        plain, sharded = (
            masked(
                owner.request(method, query=query, headers=headers),
                owner.account,
            )
            for owner in accounts
        )
        assert sharded == plain

    return assert_alike


class TestListing:
    def test_rows_sum_up_objects_and_bytes(self, accounts):
        rows = {row['name']: row for row in accounts.sharded.listing().json()}
        assert rows['a-b']['count'] == 3
        assert rows['a-b']['bytes'] == 0 + 1 + 2
        assert rows['long-' + 'x' * 237]['count'] == 2

    def test_has_every_container_once(self, accounts):
        names = accounts.sharded.listing().names()
        assert sorted(names) == sorted([*SHARDED, *PLAIN, *OF_POLICY_1])

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    @pytest.mark.parametrize('wanted', ['json', 'xml', 'plain', 'other', ''])
    def test_has_the_format_of_the_query(self, assert_alike, method, wanted):
        assert_alike(method, f'format={wanted}')

    @pytest.mark.parametrize(
        'accepted', ['application/json', 'text/xml', '*/*', 'image/png']
    )
    def test_has_the_format_that_is_accepted(self, assert_alike, accepted):
        assert_alike('GET', Accept=accepted)

    @pytest.mark.parametrize(
        'params',
        [
            'limit=0', 'limit=1', 'limit=7', 'limit=10001', 'limit=x',
            'marker=a', 'marker=a-b', 'marker=~', 'end_marker=a-b',
            'marker=a&end_marker=b', 'prefix=a', 'prefix=a-', 'prefix=long-',
            'prefix=none', 'delimiter=-', 'delimiter=x', 'delimiter=-b',
            'delimiter=-&prefix=a-', 'delimiter=-&prefix=a&limit=2',
            'delimiter=-&marker=a-', 'prefix=shardmw', 'marker=shardmw',
            'prefix=%E2%98%83', 'delimiter=%E2%98%83', 'prefix=%00',
            'delimiter=%00', 'marker=%00', 'end_marker=%00', 'marker=%00z',
            'prefix=%FF', 'marker=%FF', 'delimiter=%FF', 'end_marker=%FF',
            'reverse=%FF', 'prefix=.shards_shardmw_',
        ],
    )  # fmt: skip
    @pytest.mark.parametrize('reverse', ['', '&reverse=on'])
    def test_with_parameters_is_that_of_plain_containers(
        self, assert_alike, params, reverse
    ):
        assert_alike('GET', f'format=json&{params}{reverse}')

    @pytest.mark.parametrize('limit', [1, 2, 22, 23, 24])
    def test_by_pages_has_all_rows(self, accounts, limit):
        paged = []
        marker = ''
        while page := accounts.sharded.listing(
            limit=limit, marker=marker
        ).json():
            paged += page
            marker = page[-1]['name']
        assert paged == accounts.sharded.listing().json()

    def test_of_an_account_without_containers_is_empty(self, account):
        answer = account.listing()
        assert answer.status == 200
        assert answer.json() == []

    def test_knows_new_objects_by_the_next_update(self, cluster, account):
        account.put('c', headers=COUNT)
        account.put('c', 'o', b'body')
        assert account.head().headers['x-account-object-count'] == '0'
        cluster.daemon('container-updater')
        (row,) = account.listing().json()
        assert (row['count'], row['bytes']) == (1, 4)


class TestFigures:
    def test_are_those_of_plain_containers(self, assert_alike):
        assert_alike('HEAD')

    def test_count_containers_by_policy(self, accounts):
        shown = accounts.sharded.head().headers
        for name, count in {
            'x-account-container-count': 23,
            'x-account-storage-policy-policy-0-container-count': 21,
            'x-account-storage-policy-policy-1-container-count': 2,
        }.items():
            assert shown[name] == str(count)

    @pytest.mark.parametrize('name', ['c', 'x' * 250])
    def test_count_a_container_from_its_creation_to_its_deletion(
        self, account, name
    ):
        account.put(name, headers=COUNT)
        assert account.head().headers['x-account-container-count'] == '1'
        account.put('another', headers=COUNT)
        assert account.get().headers['x-account-container-count'] == '2'
        account.delete(name)
        assert account.head().headers['x-account-container-count'] == '1'
        account.delete('another')
        assert account.get().headers['x-account-container-count'] == '0'

    def test_are_as_in_the_listing(self, accounts):
        shown = accounts.sharded.head().headers
        rows = accounts.sharded.listing().json()
        objects = sum(row['count'] for row in rows)
        stored = sum(row['bytes'] for row in rows)
        assert shown['x-account-object-count'] == str(objects)
        assert shown['x-account-bytes-used'] == str(stored)


@pytest.fixture(scope='class')
def reader(accounts, login) -> Accounts:
    """A user who may read both accounts, but not change them."""
    acl = json.dumps({'read-only': ['test:tester3']})
    headers = {'X-Account-Access-Control': acl}
    user = login('test:tester3')
    for owner in accounts:
        assert owner.post(headers=headers).status == 204
    return Accounts(*(user.visiting(owner) for owner in accounts))


class TestAccess:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_reader_sees_the_same(self, reader, method):
        plain, sharded = (
            masked(user.request(method), user.account) for user in reader
        )
        assert sharded == plain
        assert sharded.headers['x-account-container-count'] == '23'

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_others_see_nothing(self, other_owner, accounts, method):
        plain, sharded = (
            masked(other_owner.visiting(owner).request(method), owner.account)
            for owner in accounts
        )
        assert sharded == plain
        assert sharded.status == 403

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_clients_without_a_token_see_nothing(self, accounts, method):
        anonymous = accounts.sharded.anonymous()
        assert anonymous.request(method).status == 401


class TestDeletion:
    def test_of_objects_in_shards_is_refused(self, account):
        """The account's database does not count the objects yet."""
        account.put('c', headers=COUNT)
        account.put('c', 'o', b'x')
        answer = account.delete()
        assert answer.status == 409
        assert answer.text == (
            'The account has sharded containers with objects: delete these '
            'first'
        )
        assert account.get('c', 'o').body == b'x'

    def test_of_counted_objects_in_shards_is_refused(self, cluster, account):
        account.put('c', headers=COUNT)
        account.put('c', 'o', b'x')
        cluster.daemon('container-updater')
        assert account.delete().status == 409

    def test_of_objects_in_plain_containers_succeeds(self, account):
        account.put('p')
        account.put('p', 'o', b'x')
        assert account.delete().status == 204
        assert account.head().status == 410

    def test_is_reserved_for_reseller_admins(self, login, account):
        account.put('c', headers=COUNT)
        account.put('c', 'o', b'x')
        other = login('test2:tester2').visiting(account)
        assert other.delete().status == 403
        assert account.anonymous().delete().status == 401

    def test_of_empty_containers_is_reaped_with_their_backing_containers(
        self, cluster, account
    ):
        account.put('c', headers=COUNT)
        account.put('c', 'o', b'x')
        account.delete('c', 'o')
        account.put('p')
        account.put('p', 'o', b'x')
        assert account.delete().status == 204
        cluster.daemon('account-reaper')
        assert container_count(cluster, account.account) == 0
        hidden = hidden_account(account.account)
        assert container_count(cluster, hidden) == 0


def container_count(cluster, account: str) -> int:
    """Return the number of containers in an account's database."""
    databases = cluster.devices_path.glob('*/*/accounts/*/*/*/*.db')
    infos = [AccountBroker(str(path)).get_info() for path in databases]
    return next(
        info['container_count'] for info in infos if info['account'] == account
    )
