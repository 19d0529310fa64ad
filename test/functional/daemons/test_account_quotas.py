# SPDX-License-Identifier: Apache-2.0
"""Account quotas count objects in shards, as Swift's updater reports them."""

import json

import pytest

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, SHARDS
from test.functional.releases import COUNT_QUOTAS

#: The header of bytes has been called Account-Quota-Bytes, too, since 2.34.
BYTES, COUNT = 'Account-Meta-Quota-Bytes', 'Account-Quota-Count'
REFUSED = (413, b'Upload exceeds quota.')

COUNTS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: str(SHARDS)}}


@pytest.fixture(scope='module')
def accounts(cluster, new_account) -> dict[str, Client]:
    """The owners of an account for each kind of container."""
    owners = {}
    for kind, count in COUNTS.items():
        owner = owners[kind] = new_account()
        owner.put('c', headers=count)
        owner.put('c', 'o', b'0123456789')
    cluster.daemon('container-updater')
    return owners


@pytest.fixture(params=COUNTS)
def owner(request, accounts) -> Client:
    """The owner of each account."""
    return accounts[request.param]


class TestAccountQuota:
    """Quotas of an account with one object of ten bytes."""

    @pytest.fixture
    def writer(self, owner, stranger) -> Client:
        """A user who may write, and for whom the quotas apply."""
        acl = json.dumps({'read-write': ['test:tester3']})
        headers = {'X-Account-Access-Control': acl}
        assert owner.post(headers=headers).status == 204
        yield stranger.visiting(owner)
        headers = {f'X-Remove-{name}': 'x' for name in (BYTES, COUNT)}
        assert owner.post(headers=headers).status == 204

    def set_quota(self, owner: Client, name: str, value: int) -> None:
        headers = {f'X-{name}': str(value)}
        assert owner.post(headers=headers).status == 204

    def assert_refused(self, answer) -> None:
        assert (answer.status, answer.body) == REFUSED

    def test_of_bytes_counts_objects_in_shards(self, owner, writer):
        self.set_quota(owner, BYTES, 19)
        self.assert_refused(writer.put('c', 'p', b'0123456789'))
        assert writer.put('c', 'o', b'012345678').status == 201

    def test_of_bytes_holds_after_the_owner_has_looked(self, owner, writer):
        self.set_quota(owner, BYTES, 19)
        assert owner.head().status == 204
        self.assert_refused(writer.put('c', 'p', b'0123456789'))
        assert owner.listing().status == 200
        self.assert_refused(writer.put('c', 'p', b'0123456789'))

    @COUNT_QUOTAS
    def test_of_objects_counts_objects_in_shards(self, owner, writer):
        self.set_quota(owner, COUNT, 1)
        self.assert_refused(writer.put('c', 'p', b'x'))
        self.set_quota(owner, COUNT, 2)
        assert writer.put('c', 'o', b'x').status == 201
