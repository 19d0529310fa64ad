# SPDX-License-Identifier: Apache-2.0
"""Bulk deletes and uploads of archives, on plain and sharded containers."""

import pytest

from test.functional.archives import archive_of
from test.functional.conftest import make_plain, make_sharded, unique

JSON = {'Accept': 'application/json'}
FILES = {
    'top': b'top level',
    'dir/one': b'first',
    'dir/two': b'second, longer',
    'dir/sub/☃': b'snowman',
    'empty': b'',
}


def upload(client, container, archive, kind, name=None):
    return client.put(
        container,
        name,
        archive,
        query={'extract-archive': kind},
        headers=JSON,
    )


def bulk_delete(client, lines, method='POST'):
    """Bulk-delete objects and containers by their quoted paths."""
    return client.request(
        method,
        query='bulk-delete',
        headers=JSON,
        body='\n'.join(lines).encode(),
    )


class TestUploadOfAnArchive:
    def test_makes_a_version_of_every_file(self, client, container):
        client.post(container, headers={'X-Versions-Enabled': 'true'})
        for _ in range(2):
            answer = upload(client, container, archive_of(FILES), 'tar')
            assert answer.json()['Number Files Created'] == len(FILES)
        listing = client.listing(container, versions='true')
        assert listing.names() == sorted([*FILES, *FILES])

    @pytest.mark.parametrize(
        ('kind', 'mode'),
        [('tar', 'w'), ('tar.gz', 'w:gz'), ('tar.bz2', 'w:bz2')],
    )
    def test_makes_an_object_of_every_file(
        self, client, container, kind, mode
    ):
        answer = upload(client, container, archive_of(FILES, mode), kind)
        assert answer.status == 200
        assert answer.json()['Response Status'] == '201 Created'
        assert answer.json()['Number Files Created'] == len(FILES)
        assert answer.json()['Errors'] == []
        assert client.listing(container).names() == sorted(FILES)
        assert client.get(container, 'dir/one').body == b'first'
        assert client.get(container, 'dir/sub/☃').body == b'snowman'
        assert client.get(container, 'empty').body == b''

    def test_below_a_prefix_adds_the_prefix(self, client, container):
        archive = archive_of({'one': b'first'})
        answer = upload(client, container, archive, 'tar', 'some/dir')
        assert answer.json()['Number Files Created'] == 1
        assert client.listing(container).names() == ['some/dir/one']

    def test_can_name_the_containers(self, client, pair):
        archive = archive_of(
            {f'{pair.plain}/o': b'plain', f'{pair.sharded}/o': b'sharded'}
        )
        answer = upload(client, None, archive, 'tar')
        assert answer.json()['Number Files Created'] == 2
        assert client.get(pair.plain, 'o').body == b'plain'
        assert client.get(pair.sharded, 'o').body == b'sharded'

    def test_makes_the_container_too(self, client):
        container = unique('new')
        answer = upload(client, container, archive_of(FILES), 'tar')
        assert answer.json()['Number Files Created'] == len(FILES)
        assert client.listing(container).names() == sorted(FILES)

    def test_that_is_not_an_archive_is_refused(self, client, container):
        answer = upload(client, container, b'no archive', 'tar')
        assert answer.json()['Response Status'] == '400 Bad Request'
        assert client.listing(container).json() == []

    def test_with_a_name_that_is_too_long_skips_that_file(
        self, client, container
    ):
        files = {'n' * 1025: b'long', 'short': b'short'}
        archive = archive_of(files)
        answer = upload(client, container, archive, 'tar')
        assert answer.json()['Number Files Created'] == 1
        (error,) = answer.json()['Errors']
        assert error[1] == '400 Bad Request'
        assert client.listing(container).names() == ['short']

    def test_by_a_stranger_creates_nothing(self, client, stranger, container):
        answer = upload(stranger, container, archive_of(FILES), 'tar')
        assert answer.json()['Number Files Created'] == 0
        assert client.listing(container).json() == []


class TestBulkDelete:
    @pytest.fixture
    def filled(self, client, container):
        upload(client, container, archive_of(FILES), 'tar')
        return container

    @pytest.mark.parametrize('method', ['POST', 'DELETE'])
    def test_deletes_what_is_named(self, client, filled, method):
        paths = [f'/{filled}/top', f'{filled}/dir/sub/%E2%98%83']
        answer = bulk_delete(client, paths, method)
        assert answer.status == 200
        assert answer.json()['Number Deleted'] == 2
        assert answer.json()['Response Status'] == '200 OK'
        assert client.listing(filled).names() == [
            'dir/one',
            'dir/two',
            'empty',
        ]

    def test_deletes_objects_and_then_their_container(self, client, filled):
        names = client.listing(filled).names()
        paths = [client.path(filled, name) for name in names]
        paths = [path.removeprefix(client.account_path) for path in paths]
        answer = bulk_delete(client, [*paths, f'/{filled}'])
        assert answer.json()['Number Deleted'] == len(FILES) + 1
        assert client.head(filled).status == 404

    def test_leaves_a_container_that_holds_more(self, client, filled):
        answer = bulk_delete(client, [f'/{filled}/top', f'/{filled}'])
        assert answer.json()['Number Deleted'] == 1
        assert answer.json()['Response Status'] == '400 Bad Request'
        (error,) = answer.json()['Errors']
        assert error == [f'/{filled}', '409 Conflict']
        assert client.get(filled, 'dir/one').body == b'first'

    def test_works_across_containers(self, client):
        one, two = make_plain(client), make_sharded(client)
        client.put(one, 'o')
        client.put(two, 'o')
        answer = bulk_delete(client, [f'/{one}/o', f'/{two}/o'])
        assert answer.json()['Number Deleted'] == 2
        assert client.listing(one).json() == []
        assert client.listing(two).json() == []

    def test_counts_missing_names(self, client, filled):
        answer = bulk_delete(client, [f'/{filled}/missing', f'/{filled}/top'])
        assert answer.json()['Number Not Found'] == 1
        assert answer.json()['Number Deleted'] == 1

    def test_by_a_stranger_deletes_nothing(self, client, stranger, filled):
        answer = bulk_delete(stranger, [f'/{filled}/top'])
        assert answer.json()['Number Deleted'] == 0
        assert client.get(filled, 'top').body == b'top level'

    def test_takes_names_of_1024_bytes(self, client, container):
        client.put(container, 'n' * 1024, b'long')
        answer = bulk_delete(client, [f'/{container}/' + 'n' * 1024])
        assert answer.json()['Number Deleted'] == 1
        assert client.listing(container).json() == []
