# SPDX-License-Identifier: Apache-2.0
"""Symlinks, within and across plain and sharded containers."""

import hashlib

import pytest

from test.functional.conftest import USER, make_sharded, unique

BODY = b'target body'
ETAG = hashlib.md5(BODY).hexdigest()
LINK = {'symlink': 'get'}


KINDS = {'dynamic': {}, 'static': {'X-Symlink-Target-Etag': ETAG}}


def put_link(client, container, name, target, **headers):
    headers['X-Symlink-Target'] = target
    return client.put(container, name, headers=headers)


def make_linked(client, links, targets, headers):
    """Make a link ``link`` and its target ``a/ö``."""
    client.put(targets, 'a/ö', BODY, headers={'X-Object-Meta-Colour': 'red'})
    target = f'{targets}/a/%C3%B6'
    assert put_link(client, links, 'link', target, **headers).status == 201


@pytest.fixture
def linked(client, lasting_two):
    """The containers of a link ``link`` and of its target ``a/ö``."""
    make_linked(client, *lasting_two, KINDS['dynamic'])
    return lasting_two


@pytest.fixture(scope='class', params=KINDS)
def lasting_linked(request, login, lasting_two):
    """Such containers, with either kind of link, that no test changes."""
    make_linked(login(USER), *lasting_two, KINDS[request.param])
    return lasting_two


class TestReadOfASymlink:
    def test_gets_its_target(self, client, lasting_linked):
        links, targets = lasting_linked
        got = client.get(links, 'link')
        assert (got.status, got.body) == (200, BODY)
        assert got.headers['etag'] == ETAG
        assert got.headers['x-object-meta-colour'] == 'red'
        assert got.headers['content-location'] == (client.path(targets, 'a/ö'))

    def test_by_head_shows_its_target(self, client, lasting_linked):
        got = client.head(lasting_linked[0], 'link')
        assert got.status == 200
        assert got.headers['content-length'] == str(len(BODY))
        assert got.headers['etag'] == ETAG

    def test_of_a_range_gets_it_from_its_target(self, client, lasting_linked):
        headers = {'Range': 'bytes=0-5'}
        got = client.get(lasting_linked[0], 'link', headers=headers)
        assert (got.status, got.body) == (206, b'target')

    def test_compares_conditions_with_its_target(self, client, lasting_linked):
        headers = {'If-None-Match': ETAG}
        assert (
            client.get(lasting_linked[0], 'link', headers=headers).status
            == 304
        )
        headers = {'If-Match': '"other"'}
        assert (
            client.get(lasting_linked[0], 'link', headers=headers).status
            == 412
        )

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_can_get_the_link_itself(self, client, lasting_linked, method):
        links, targets = lasting_linked
        got = client.request(method, links, 'link', query=LINK)
        assert (got.status, got.body) == (200, b'')
        assert got.headers['content-length'] == '0'
        assert got.headers['x-symlink-target'] == f'{targets}/a/%C3%B6'

    def test_by_listing_shows_its_target(self, client, lasting_linked):
        links, targets = lasting_linked
        (row,) = client.listing(links, prefix='link').json()
        assert row['symlink_path'] == client.path(targets, 'a/ö')
        assert row['name'] == 'link'


class TestSymlink:
    def test_post_is_sent_to_its_target(self, client, linked):
        links, targets = linked
        answer = client.post(
            links, 'link', headers={'X-Object-Meta-Colour': 'blue'}
        )
        assert answer.status == 307
        assert answer.headers['location'].endswith(client.path(targets, 'a/ö'))

    def test_post_changes_the_link_itself_too(self, client, linked):
        links, targets = linked
        headers = {'X-Object-Meta-Colour': 'blue'}
        client.post(links, 'link', headers=headers)
        got = client.head(links, 'link', query=LINK).headers
        assert got['x-object-meta-colour'] == 'blue'
        got = client.head(targets, 'a/ö').headers
        assert got['x-object-meta-colour'] == 'red'

    def test_put_replaces_the_link_and_not_its_target(self, client, linked):
        links, targets = linked
        assert client.put(links, 'link', b'an object').status == 201
        assert client.get(links, 'link').body == b'an object'
        assert client.get(targets, 'a/ö').body == BODY
        (row,) = client.listing(links, prefix='link').json()
        assert 'symlink_path' not in row

    def test_delete_deletes_the_link_and_not_its_target(self, client, linked):
        links, targets = linked
        assert client.delete(links, 'link').status == 204
        assert client.get(links, 'link').status == 404
        assert client.get(targets, 'a/ö').body == BODY

    def test_copy_is_of_its_target(self, client, linked):
        links, targets = linked
        assert client.copy(links, 'link', f'{targets}/copied').status == 201
        got = client.get(targets, 'copied', query=LINK)
        assert got.body == BODY
        assert 'x-symlink-target' not in got.headers

    def test_copy_of_itself_is_another_link(self, client, linked):
        links, targets = linked
        client.copy(links, 'link', f'{targets}/copied', query=LINK)
        got = client.head(targets, 'copied', query=LINK).headers
        assert got['x-symlink-target'] == f'{targets}/a/%C3%B6'
        assert client.get(targets, 'copied').body == BODY

    def test_without_its_target_is_404(self, client, linked):
        links, targets = linked
        client.delete(targets, 'a/ö')
        assert client.get(links, 'link').status == 404
        assert client.head(links, 'link', query=LINK).status == 200

    def test_stranger_needs_to_read_both(
        self, client, stranger, two_containers
    ):
        make_linked(client, *two_containers, KINDS['dynamic'])
        links, targets = two_containers
        headers = {'X-Container-Read': 'test:tester3'}
        client.post(links, headers=headers)
        assert stranger.get(links, 'link').status == 403
        client.post(targets, headers=headers)
        assert stranger.get(links, 'link').body == BODY


class TestDynamicSymlink:
    def test_follows_a_target_that_changes(self, client, lasting_two):
        links, targets = lasting_two
        put_link(client, links, 'follows', f'{targets}/changes')
        assert client.get(links, 'follows').status == 404
        client.put(targets, 'changes', BODY)
        assert client.get(links, 'follows').body == BODY
        client.put(targets, 'changes', b'changed')
        assert client.get(links, 'follows').body == b'changed'

    def test_can_point_to_another(self, client, lasting_two):
        links, targets = lasting_two
        put_link(client, links, 'first', f'{targets}/second')
        put_link(client, targets, 'second', f'{links}/third')
        client.put(links, 'third', BODY)
        assert client.get(links, 'first').body == BODY

    def test_in_a_circle_is_409(self, client, lasting_two):
        links, targets = lasting_two
        put_link(client, links, 'one', f'{targets}/two')
        put_link(client, targets, 'two', f'{links}/one')
        assert client.get(links, 'one').status == 409

    def test_between_names_of_1024_bytes_is_followed(
        self, client, lasting_two
    ):
        links, targets = lasting_two
        client.put(targets, 't' * 1024, BODY)
        put_link(client, links, 'l' * 1024, targets + '/' + 't' * 1024)
        assert client.get(links, 'l' * 1024).body == BODY

    def test_to_another_account_is_followed(self, client, login, container):
        other = login('test2:tester2')
        theirs = make_sharded(other, X_Container_Read='test:tester')
        other.put(theirs, 'o', BODY)
        put_link(
            client,
            container,
            'link',
            f'{theirs}/o',
            **{'X-Symlink-Target-Account': other.account},
        )
        got = client.get(container, 'link')
        assert got.body == BODY
        assert got.headers['content-location'] == other.path(theirs, 'o')

    def test_to_a_large_object_is_followed(self, client, lasting_two):
        links, targets = lasting_two
        client.put(targets, 'seg/1', b'one,')
        client.put(targets, 'seg/2', b'two')
        headers = {'X-Object-Manifest': f'{targets}/seg/'}
        client.put(targets, 'large', headers=headers)
        put_link(client, links, 'to-large', f'{targets}/large')
        assert client.get(links, 'to-large').body == b'one,two'

    @pytest.mark.parametrize('target', ['no-object', '/', 'c/', ''])
    def test_to_an_invalid_target_is_412(self, client, container, target):
        assert put_link(client, container, 'link', target).status == 412

    def test_to_itself_is_400(self, client, container):
        target = f'{container}/link'
        assert put_link(client, container, 'link', target).status == 400

    def test_with_a_body_is_400(self, client, container):
        headers = {'X-Symlink-Target': f'{container}/o'}
        answer = client.put(container, 'link', b'body', headers=headers)
        assert answer.status == 400


class TestStaticSymlink:
    def test_to_a_missing_target_is_409(self, client, lasting_two):
        links, targets = lasting_two
        etag = {'X-Symlink-Target-Etag': ETAG}
        answer = put_link(
            client, links, 'refused', f'{targets}/missing', **etag
        )
        assert answer.status == 409
        assert client.get(links, 'refused', query=LINK).status == 404

    def test_to_a_target_of_another_etag_is_409(self, client, lasting_two):
        links, targets = lasting_two
        client.put(targets, 'other', b'other')
        etag = {'X-Symlink-Target-Etag': ETAG}
        answer = put_link(client, links, 'refused', f'{targets}/other', **etag)
        assert answer.status == 409

    def test_to_a_target_in_a_missing_container_is_409(
        self, client, container
    ):
        etag = {'X-Symlink-Target-Etag': ETAG}
        target = unique('missing') + '/o'
        answer = put_link(client, container, 'link', target, **etag)
        assert answer.status == 409

    def test_to_a_target_that_changed_is_409(self, client, lasting_two):
        links, targets = lasting_two
        client.put(targets, 'changes', BODY)
        etag = {'X-Symlink-Target-Etag': ETAG}
        put_link(client, links, 'outdated', f'{targets}/changes', **etag)
        client.put(targets, 'changes', b'changed')
        assert client.get(links, 'outdated').status == 409

    def test_listing_shows_size_and_etag_of_its_target(
        self, client, lasting_two
    ):
        links, targets = lasting_two
        client.put(targets, 'stays', BODY)
        etag = {'X-Symlink-Target-Etag': ETAG}
        put_link(client, links, 'listed', f'{targets}/stays', **etag)
        (row,) = client.listing(links, prefix='listed').json()
        assert row['symlink_etag'] == ETAG
        assert row['symlink_bytes'] == len(BODY)
        assert row['bytes'] == 0
