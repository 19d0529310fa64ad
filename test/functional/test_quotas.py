# SPDX-License-Identifier: Apache-2.0
"""Quotas apply to a sharded container as a whole.

Swift's own filters enforce them with cached info, which may be a minute old.
Swift reads the info again after a change of the metadata, a HEAD or a listing.
"""

import pytest

from test.functional.alike import masked
from test.functional.client import Client
from test.functional.conftest import (
    MAKERS,
    OTHER_OWNER,
    RESELLER_ADMIN,
    SHARD_COUNT_HEADER,
    SHARDS,
    make_plain,
    unique,
)
from test.functional.releases import COUNT_QUOTAS

COUNT_QUOTA = 'X-Container-Meta-Quota-Count'
BYTES_QUOTA = 'X-Container-Meta-Quota-Bytes'

COUNTS = ('x-container-object-count', 'x-container-bytes-used')
ACCOUNT_QUOTA = 'X-Account-Quota-Count'

REFUSED = (413, b'Upload exceeds quota.')


def set_quota(client: Client, container: str, **quota: int | str) -> None:
    """Set quotas, after which Swift reads the container's info again."""
    headers = {
        f'X-Container-Meta-Quota-{name}': str(value)
        for name, value in quota.items()
    }
    assert client.post(container, headers=headers).status == 204


@pytest.fixture
def full(client, container) -> str:
    """A container of four objects of ten bytes each, one in each shard."""
    for name in ('a', 'b', 'c', 'd'):
        assert client.put(container, name, b'0123456789').status == 201
    return container


class TestCount:
    def test_refuses_one_more_object(self, client, full):
        set_quota(client, full, Count=4)
        answer = client.put(full, 'e', b'x')
        assert (answer.status, answer.body) == REFUSED
        assert client.get(full, 'e').status == 404

    def test_admits_the_last_object(self, client, full):
        set_quota(client, full, Count=5)
        assert client.put(full, 'e', b'x').status == 201

    def test_refuses_a_new_version_of_the_last_object_too(self, client, full):
        set_quota(client, full, Count=4)
        assert client.put(full, 'd', b'x').status == 413

    def test_counts_the_longest_names(self, client, container):
        client.put(container, 'x' * 1024)
        client.put(container, 'a')
        set_quota(client, container, Count=2)
        assert client.put(container, 'b').status == 413
        assert client.put(container, 'y' * 1024).status == 413

    def test_of_zero_refuses_everything(self, client, container):
        set_quota(client, container, Count=0)
        assert client.put(container, 'a').status == 413

    def test_leaves_other_requests_alone(self, client, full):
        set_quota(client, full, Count=0)
        headers = {'X-Object-Meta-Colour': 'red'}
        assert client.get(full, 'a').status == 200
        assert client.post(full, 'a', headers=headers).status == 202
        assert client.delete(full, 'a').status == 204

    def test_admits_an_object_after_a_deletion(self, client, full):
        set_quota(client, full, Count=4)
        client.delete(full, 'a')
        set_quota(client, full, Count=4)
        assert client.put(full, 'e').status == 201

    def test_can_be_removed(self, client, full):
        set_quota(client, full, Count=4)
        set_quota(client, full, Count='')
        assert client.put(full, 'e').status == 201


class TestBytes:
    def test_refuses_one_more_byte(self, client, full):
        set_quota(client, full, Bytes=50)
        answer = client.put(full, 'e', b'01234567890')
        assert (answer.status, answer.body) == REFUSED
        assert client.get(full, 'e').status == 404

    def test_admits_the_last_byte(self, client, full):
        set_quota(client, full, Bytes=50)
        assert client.put(full, 'e', b'0123456789').status == 201

    def test_counts_the_old_and_the_new_object_of_an_overwrite(
        self, client, full
    ):
        set_quota(client, full, Bytes=49)
        assert client.put(full, 'a', b'0123456789').status == 413

    def test_admits_an_empty_object(self, client, full):
        set_quota(client, full, Bytes=40)
        assert client.put(full, 'e', b'').status == 201

    def test_admits_chunks_of_unknown_length(self, client, full):
        set_quota(client, full, Bytes=41)
        assert client.put(full, 'e', iter([b'01', b'23'])).status == 201

    def test_refuses_copies(self, client, full):
        source = make_plain(client)
        client.put(source, 'o', b'0123456789')
        set_quota(client, full, Bytes=49)
        assert client.copy(source, 'o', f'{full}/o').status == 413
        assert client.copy(full, 'a', f'{full}/o').status == 413

    def test_holds_together_with_the_count(self, client, full):
        set_quota(client, full, Bytes=1000, Count=4)
        assert client.put(full, 'e').status == 413
        set_quota(client, full, Bytes=40, Count=1000)
        assert client.put(full, 'e', b'x').status == 413

    def test_refused_upload_can_be_repeated_when_there_is_room(
        self, client, full
    ):
        set_quota(client, full, Bytes=40)
        assert client.put(full, 'e', b'x').status == 413
        set_quota(client, full, Bytes=41)
        assert client.put(full, 'e', b'x').status == 201


@pytest.fixture(params=['HEAD', 'GET'])
def shown(request):
    """Return a function that gets a container's or an account's counts."""

    def counts(client: Client, container: str | None = None) -> list[int]:
        answer = client.request(request.param, container)
        assert answer.status in (200, 204)
        return [
            int(value)
            for name, value in answer.headers.items()
            if name in COUNTS
        ]

    return counts


class TestCountsThatAClientHasSeen:
    """The next upload is checked with these counts, not with older ones."""

    @pytest.fixture
    def narrow(self, client, container) -> str:
        """A container with room for three objects and three bytes."""
        set_quota(client, container, Count=3, Bytes=3)
        return container

    @pytest.fixture
    def used_up(self, client, narrow) -> str:
        """A container without room, as Swift knows."""
        for name in ('a', 'b', 'c'):
            assert client.put(narrow, name, b'x').status == 201
        set_quota(client, narrow, Count=3, Bytes=3)
        assert client.put(narrow, 'd', b'x').status == 413
        return narrow

    def test_refuse_an_upload_once_the_quota_is_used_up(
        self, client, narrow, shown
    ):
        for name in ('a', 'b', 'c'):
            assert client.put(narrow, name).status == 201
        assert shown(client, narrow) == [3, 0]
        answer = client.put(narrow, 'd')
        assert (answer.status, answer.body) == REFUSED

    def test_admit_an_object_after_a_deletion(self, client, used_up, shown):
        assert client.delete(used_up, 'a').status == 204
        assert shown(client, used_up) == [2, 2]
        assert client.put(used_up, 'd', b'x').status == 201

    def test_refuse_an_upload_once_the_bytes_are_used_up(
        self, client, narrow, shown
    ):
        assert client.put(narrow, 'a', b'x').status == 201
        assert client.put(narrow, 'b', b'xx').status == 201
        assert shown(client, narrow) == [2, 3]
        answer = client.put(narrow, 'c', b'x')
        assert (answer.status, answer.body) == REFUSED

    def test_admit_bytes_after_an_object_became_smaller(
        self, client, container, shown
    ):
        client.put(container, 'a', b'xxx')
        set_quota(client, container, Bytes=3)
        assert client.put(container, 'a', b'').status == 201
        assert client.put(container, 'b', b'x').status == 413
        assert shown(client, container) == [1, 0]
        assert client.put(container, 'b', b'x').status == 201

    def test_are_renewed_by_each_request_for_them(self, client, narrow, shown):
        for count in (1, 2, 3):
            assert client.put(narrow, f'{count}', b'x').status == 201
            assert shown(client, narrow) == [count, count]
        assert client.put(narrow, '4', b'x').status == 413
        client.delete(narrow, '1')
        shown(client, narrow)
        assert client.put(narrow, '4', b'x').status == 201

    def test_are_not_used_after_a_change_of_the_metadata(
        self, client, used_up
    ):
        client.delete(used_up, 'a')
        assert client.post(used_up).status == 204
        assert client.put(used_up, 'd', b'x').status == 201

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_are_not_used_after_a_later_change_of_the_metadata(
        self, client, used_up, shown, method
    ):
        shown(client, used_up)
        client.delete(used_up, 'a')
        assert client.request(method, used_up).status in (202, 204)
        assert client.put(used_up, 'd', b'x').status == 201

    def test_are_not_used_for_a_recreated_container(
        self, client, used_up, shown
    ):
        shown(client, used_up)
        for name in ('a', 'b', 'c'):
            client.delete(used_up, name)
        assert client.delete(used_up).status == 204
        headers = {COUNT_QUOTA: '3'}
        assert client.put(used_up, headers=headers).status == 201
        assert client.put(used_up, 'd', b'x').status == 201

    def test_include_those_of_old_versions(self, client, container, shown):
        headers = {'X-Versions-Enabled': 'true', BYTES_QUOTA: '3'}
        assert client.post(container, headers=headers).status == 204
        for body in (b'x', b'xx'):
            assert client.put(container, 'a', body).status == 201
        assert shown(client, container) == [1, 3]
        answer = client.put(container, 'a', b'x')
        assert (answer.status, answer.body) == REFUSED


@COUNT_QUOTAS
class TestCountsOfAnAccountThatAClientHasSeen:
    """The next upload is checked with these counts, too."""

    @pytest.fixture
    def owner(self, login) -> Client:
        return login(OTHER_OWNER)

    @pytest.fixture(params=MAKERS)
    def container(self, request, owner) -> str:
        return MAKERS[request.param](owner)

    @pytest.fixture
    def narrow(self, cluster, login, owner, container) -> str:
        """A container in an account with room for one object."""
        cluster.daemon('container-updater')
        count = int(owner.head().headers['x-account-object-count'])
        admin = login(RESELLER_ADMIN).visiting(owner)
        admin.post(headers={ACCOUNT_QUOTA: str(count + 1)})
        yield container
        admin.post(headers={ACCOUNT_QUOTA: ''})

    def test_refuse_an_upload_once_the_quota_is_used_up(
        self, cluster, owner, narrow, shown
    ):
        assert owner.put(narrow, 'a').status == 201
        cluster.daemon('container-updater')
        shown(owner)
        answer = owner.put(narrow, 'b')
        assert (answer.status, answer.body) == REFUSED

    def test_admit_an_object_after_a_deletion(
        self, cluster, owner, narrow, shown
    ):
        assert owner.put(narrow, 'a').status == 201
        cluster.daemon('container-updater')
        shown(owner)
        assert owner.put(narrow, 'b').status == 413
        assert owner.delete(narrow, 'a').status == 204
        cluster.daemon('container-updater')
        shown(owner)
        assert owner.put(narrow, 'b').status == 201


class TestSetting:
    @pytest.mark.parametrize('name', [COUNT_QUOTA, BYTES_QUOTA])
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_that_is_not_a_number_is_400(
        self, client, container, method, name
    ):
        headers = {name: 'many'}
        answer = client.request(method, container, headers=headers)
        assert answer.status == 400
        assert name.lower() not in client.head(container).headers

    @pytest.mark.parametrize('name', [COUNT_QUOTA, BYTES_QUOTA])
    def test_is_shown(self, client, container, name):
        client.post(container, headers={name: '7'})
        assert client.head(container).headers[name.lower()] == '7'

    def test_can_be_made_at_creation(self, client):
        container = unique('narrow')
        count = {SHARD_COUNT_HEADER: str(SHARDS)}
        client.put(container, headers={COUNT_QUOTA: '0', **count})
        assert client.put(container, 'o').status == 413


class TestRefusal:
    @pytest.fixture
    def narrow_pair(self, client, pair):
        """A plain and a sharded container without room."""
        for container in pair:
            set_quota(client, container, Count=0)
        return pair

    def test_is_that_of_a_plain_container(self, client, narrow_pair):
        plain, sharded = (
            masked(client.put(container, 'o', b'x'), container)
            for container in narrow_pair
        )
        assert sharded == plain
        assert sharded.status == 413

    def test_is_not_shown_to_clients_who_may_not_write(
        self, stranger, narrow_pair
    ):
        plain, sharded = (
            masked(stranger.put(container, 'o', b'x'), container)
            for container in narrow_pair
        )
        assert sharded == plain
        assert sharded.status == 403


class TestVersions:
    @pytest.fixture
    def versioned(self, client, container) -> str:
        """A container with versioning on."""
        headers = {'X-Versions-Enabled': 'true'}
        assert client.post(container, headers=headers).status == 204
        return container

    def test_upload_over_the_quota_is_refused(self, client, versioned):
        for name in ('a', 'b', 'c'):
            client.put(versioned, name, b'x')
        set_quota(client, versioned, Count=3)
        answer = client.put(versioned, 'd', b'x')
        assert (answer.status, answer.body) == REFUSED
        assert client.listing(versioned).names() == ['a', 'b', 'c']

    def test_refused_upload_leaves_no_version(self, client, versioned):
        client.put(versioned, 'a', b'one')
        set_quota(client, versioned, Count=1)
        assert client.put(versioned, 'a', b'two').status == 413
        listing = client.listing(versioned, versions='true').json()
        assert [row['name'] for row in listing] == ['a']
        assert client.get(versioned, 'a').body == b'one'

    def test_upload_within_the_quota_is_kept(self, client, versioned):
        client.put(versioned, 'a', b'one')
        set_quota(client, versioned, Count=2)
        assert client.put(versioned, 'a', b'two').status == 201
        assert client.get(versioned, 'a').body == b'two'

    @pytest.fixture
    def bulky(self, client, versioned) -> str:
        """A container with three versions of five bytes, as Swift knows."""
        for body in (b'aaaaa', b'bbbbb', b'ccccc'):
            client.put(versioned, 'o', body)
        self.look_anew(client, versioned)
        return versioned

    def look_anew(self, client, container) -> None:
        """Have Swift read the cached size of the versions again, too."""
        client.post(container, headers={'X-Versions-Enabled': 'false'})
        client.post(container, headers={'X-Versions-Enabled': 'true'})
        client.head(container)

    def test_bytes_of_all_versions_count(self, client, bulky):
        set_quota(client, bulky, Bytes=19)
        answer = client.put(bulky, 'o', b'ddddd')
        assert (answer.status, answer.body) == REFUSED
        assert client.get(bulky, 'o').body == b'ccccc'
        listing = client.listing(bulky, versions='true').json()
        assert len(listing) == 3
        set_quota(client, bulky, Bytes=20)
        assert client.put(bulky, 'o', b'ddddd').status == 201

    def test_bytes_of_versions_in_a_plain_container_count(
        self, client, unfiltered, sharded
    ):
        """Check a container like those from before versions were sharded."""
        client.put(sharded, 'o', b'0123456789')
        headers = {'X-Versions-Enabled': 'true'}
        assert unfiltered.post(sharded, headers=headers).status == 204
        set_quota(client, sharded, Bytes=14)
        answer = client.put(sharded, 'o', b'ddddd')
        assert (answer.status, answer.body) == REFUSED
        set_quota(client, sharded, Bytes=15)
        assert client.put(sharded, 'o', b'ddddd').status == 201
        assert client.get(sharded, 'o').body == b'ddddd'

    def test_upload_of_unknown_length_may_exceed_it(self, client, bulky):
        set_quota(client, bulky, Bytes=16)
        answer = client.put(bulky, 'o', iter([b'ddddd']))
        assert answer.status == 201
        assert client.get(bulky, 'o').body == b'ddddd'

    def test_restored_version_needs_room(self, client, bulky):
        version = client.head(bulky, 'o').headers['x-object-version-id']
        query = {'version-id': version}
        set_quota(client, bulky, Bytes=14)
        answer = client.put(bulky, 'o', query=query)
        assert (answer.status, answer.body) == REFUSED
        set_quota(client, bulky, Bytes=15)
        assert client.put(bulky, 'o', query=query).status == 201

    def test_delete_needs_no_room(self, client, versioned):
        client.put(versioned, 'a', b'one')
        set_quota(client, versioned, Count=1, Bytes=3)
        assert client.delete(versioned, 'a').status == 204
        assert client.get(versioned, 'a').status == 404

    def test_copy_of_the_unversioned_object_needs_no_room(
        self, client, container
    ):
        client.put(container, 'o', b'from before')
        client.post(container, headers={'X-Versions-Enabled': 'true'})
        set_quota(client, container, Bytes=15)
        assert client.put(container, 'o', b'1234').status == 201
        listing = client.listing(container, versions='true').json()
        assert [row['bytes'] for row in listing] == [4, 11]

    def test_refused_upload_leaves_the_unversioned_object_alone(
        self, client, container
    ):
        client.put(container, 'o', b'from before')
        client.post(container, headers={'X-Versions-Enabled': 'true'})
        for quota in ({'Bytes': 14}, {'Bytes': 11}, {'Count': 1, 'Bytes': ''}):
            set_quota(client, container, **quota)
            assert client.put(container, 'o', b'1234').status == 413
        headers = client.head(container).headers
        assert headers['x-container-bytes-used'] == '11'
        (row,) = client.listing(container, versions='true').json()
        assert row['version_id'] == 'null'
        assert client.get(container, 'o').body == b'from before'


class TestReaders:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_reader_of_a_container_with_a_quota_may_read_again(
        self, client, stranger, container, method
    ):
        client.post(container, headers={'X-Container-Read': 'test:tester3'})
        set_quota(client, container, Count=9)
        assert stranger.request(method, container).status == 204
        assert stranger.request(method, container).status == 204

    def test_writer_of_a_container_with_a_quota_may_write_again(
        self, client, stranger, container
    ):
        client.post(container, headers={'X-Container-Write': 'test:tester3'})
        set_quota(client, container, Count=9)
        assert stranger.put(container, 'a').status == 201
        assert stranger.put(container, 'b').status == 201
