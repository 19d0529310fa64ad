# SPDX-License-Identifier: Apache-2.0
"""Who may do what with objects; and what is reserved for Swift itself.

:mod:`test.functional.test_access` has all kinds of clients and requests.
"""

import json

import pytest

from test.functional.conftest import STORED_BODY, make_plain

BODY = STORED_BODY

METHODS = pytest.mark.parametrize(
    'method', ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
)


class TestDenial:
    @METHODS
    def test_without_a_token_is_401(self, client, stored, method):
        answer = client.anonymous().request(method, stored, 'o', body=b'')
        assert answer.status == 401
        assert 'www-authenticate' in answer.headers
        assert client.get(stored, 'o').body == BODY

    @METHODS
    def test_with_a_wrong_token_is_401(self, client, stored, method):
        headers = {'X-Auth-Token': 'AUTH_tkwrong'}
        answer = client.request(method, stored, 'o', headers=headers, body=b'')
        assert answer.status == 401


class TestAccountAccess:
    @pytest.fixture
    def account_acl(self, client):
        """Return a function that gives a user a role in the account."""

        def give(role, user):
            acl = json.dumps({role: [user]})
            client.post(headers={'X-Account-Access-Control': acl})

        yield give
        client.post(headers={'X-Account-Access-Control': ''})

    def test_read_only_lets_a_user_read(self, stranger, stored, account_acl):
        account_acl('read-only', 'test:tester3')
        assert stranger.get(stored, 'o').body == BODY
        assert stranger.listing(stored).names() == ['o']
        assert stranger.put(stored, 'o', b'new').status == 403
        assert stranger.delete(stored, 'o').status == 403

    def test_read_write_lets_a_user_write(self, stranger, stored, account_acl):
        account_acl('read-write', 'test:tester3')
        assert stranger.put(stored, 'theirs', b'new').status == 201
        assert stranger.get(stored, 'theirs').body == b'new'
        assert stranger.delete(stored, 'theirs').status == 204

    def test_reseller_admin_may_do_everything(self, client, login, stored):
        admin = login('admin:admin').visiting(client)
        assert admin.put(stored, 'theirs', b'new').status == 201
        assert admin.get(stored, 'theirs').body == b'new'
        assert admin.delete(stored, 'theirs').status == 204


class TestAccessControlLists:
    @pytest.fixture
    def stored(self, client, container):
        """A container for one test, to give ACLs to."""
        client.put(container, 'o', BODY)
        return container

    @pytest.mark.parametrize(
        'acl', ['test:tester3', 'test', 'other:user, test:tester3']
    )
    def test_read_acl_lets_a_user_read(self, client, stranger, stored, acl):
        client.post(stored, headers={'X-Container-Read': acl})
        assert stranger.get(stored, 'o').body == BODY
        assert stranger.head(stored, 'o').status == 200
        assert stranger.get(stored, 'missing').status == 404

    def test_read_acl_lets_nobody_write(self, client, stranger, stored):
        client.post(stored, headers={'X-Container-Read': 'test:tester3,.r:*'})
        assert stranger.put(stored, 'o', b'new').status == 403
        assert stranger.post(stored, 'o').status == 403
        assert stranger.delete(stored, 'o').status == 403
        assert client.get(stored, 'o').body == BODY

    def test_write_acl_lets_a_user_write(self, client, stranger, stored):
        client.post(stored, headers={'X-Container-Write': 'test:tester3'})
        assert stranger.put(stored, 'o', b'new').status == 201
        assert client.get(stored, 'o').body == b'new'
        assert stranger.post(stored, 'o').status == 202
        assert stranger.delete(stored, 'o').status == 204
        assert stranger.delete(stored, 'o').status == 404

    def test_write_acl_lets_nobody_read(self, client, stranger, stored):
        client.post(stored, headers={'X-Container-Write': 'test:tester3'})
        assert stranger.get(stored, 'o').status == 403
        assert stranger.head(stored, 'o').status == 403

    def test_acl_lets_another_account_read_and_write(
        self, client, other_owner, stored
    ):
        headers = {
            'X-Container-Read': 'test2:tester2',
            'X-Container-Write': 'test2:tester2',
        }
        client.post(stored, headers=headers)
        assert other_owner.get(stored, 'o').body == BODY
        assert other_owner.put(stored, 'theirs', b'theirs').status == 201
        assert client.get(stored, 'theirs').body == b'theirs'

    def test_everybody_may_read_by_referrer(self, client, stored):
        client.post(stored, headers={'X-Container-Read': '.r:*'})
        anonymous = client.anonymous()
        assert anonymous.get(stored, 'o').body == BODY
        assert anonymous.head(stored, 'o').status == 200
        assert anonymous.get(stored, 'missing').status == 404
        assert anonymous.put(stored, 'o', b'new').status == 401
        assert anonymous.post(stored, 'o').status == 401
        assert anonymous.delete(stored, 'o').status == 401

    def test_some_may_read_by_referrer(self, client, stored):
        acl = '.r:.example.com,.r:-bad.example.com'
        client.post(stored, headers={'X-Container-Read': acl})
        anonymous = client.anonymous()
        headers = {'Referer': 'http://www.example.com/page'}
        assert anonymous.get(stored, 'o', headers=headers).body == BODY
        headers = {'Referer': 'http://bad.example.com/page'}
        assert anonymous.get(stored, 'o', headers=headers).status == 401
        assert anonymous.get(stored, 'o').status == 401

    def test_change_of_an_acl_takes_effect_at_once(
        self, client, stranger, stored
    ):
        assert stranger.get(stored, 'o').status == 403
        client.post(stored, headers={'X-Container-Read': 'test:tester3'})
        assert stranger.get(stored, 'o').status == 200
        client.post(stored, headers={'X-Remove-Container-Read': 'yes'})
        assert stranger.get(stored, 'o').status == 403

    def test_acls_hold_for_names_of_1024_bytes(
        self, client, stranger, container
    ):
        name = 'n' * 1024
        client.put(container, name, BODY)
        assert stranger.get(container, name).status == 403
        client.post(container, headers={'X-Container-Read': 'test:tester3'})
        assert stranger.get(container, name).body == BODY
        assert stranger.put(container, name, b'new').status == 403


#: Headers that only the filter and Swift itself may send.
INTERNAL_HEADERS = {
    'X-Backend-Allow-Reserved-Names': 'true',
    'X-Backend-Storage-Policy-Index': '1',
    'X-Backend-Timestamp': '1.00000',
    'X-Backend-Record-Type': 'shard',
    'X-Container-Sysmeta-Shardmw-Layout': '{"version": 1, "shards": 99}',
    'X-Object-Sysmeta-Mine': 'value',
    'X-Object-Transient-Sysmeta-Mine': 'value',
}


class TestWhatIsReserved:
    def test_internal_headers_of_a_client_are_ignored(self, client, container):
        answer = client.put(container, 'o', BODY, headers=INTERNAL_HEADERS)
        assert answer.status == 201
        got = client.get(container, 'o', headers=INTERNAL_HEADERS)
        assert got.body == BODY
        assert float(got.headers['x-timestamp']) > 1e9
        answer = client.post(container, 'o', headers=INTERNAL_HEADERS)
        assert answer.status == 202
        assert client.listing(container).names() == ['o']
        answer = client.delete(container, 'o', headers=INTERNAL_HEADERS)
        assert answer.status == 204

    def test_layout_record_of_a_client_is_ignored_at_creation(self, client):
        container = make_plain(client, **INTERNAL_HEADERS)
        client.put(container, 'o', BODY)
        head = client.head(container).headers
        assert 'x-container-shard-count' not in head
        assert client.get(container, 'o').body == BODY

    def test_layout_record_of_a_client_is_ignored_by_post(
        self, client, sharded
    ):
        client.put(sharded, 'o', BODY)
        answer = client.post(sharded, headers=INTERNAL_HEADERS)
        assert answer.status == 204
        head = client.head(sharded).headers
        assert head['x-container-shard-count'] == '4'
        assert client.get(sharded, 'o').body == BODY

    def test_layout_record_is_shown_to_nobody(self, client, sharded):
        client.put(sharded, 'o', BODY)
        shown = {
            *client.head(sharded).headers,
            *client.get(sharded).headers,
            *client.get(sharded, 'o').headers,
            *client.put(sharded, 'o', BODY).headers,
        }
        assert [name for name in shown if 'sysmeta' in name] == []
        assert [name for name in shown if 'backend' in name] == []

    @pytest.mark.parametrize('value', ['%00', '%00o', 'o%00', 'a%00b'])
    @pytest.mark.parametrize(
        'name', ['prefix', 'marker', 'end_marker', 'delimiter', 'path']
    )
    def test_listing_parameter_with_a_nul_is_answered_alike(
        self, client, stored_pair, name, value
    ):
        query = f'{name}={value}'
        plain = client.get(stored_pair.plain, query=query)
        sharded = client.get(stored_pair.sharded, query=query)
        assert plain.status in (200, 204)
        assert sharded.status == plain.status
        assert sharded.body == plain.body


@pytest.mark.parametrize(
    ('method', 'status'),
    [('PUT', 201), ('GET', 200), ('POST', 202), ('DELETE', 204)],
)
def test_access_log_shows_the_clients_path(
    client, cluster, stored, method, status
):
    client.put(stored, 'logged', BODY)
    answer = client.request(method, stored, 'logged', body=b'')
    client.head(stored, 'o')  # the request before is logged by then
    log = cluster.log_path('proxy-1').read_text().splitlines()
    (line,) = [
        line
        for line in log
        if answer.headers['x-trans-id'] in line and f' {method} ' in line
    ]
    path = client.path(stored, 'logged')
    assert f' {method} {path} HTTP/1.0 {status} ' in line
