# SPDX-License-Identifier: Apache-2.0
"""Requests for containers: creation, metadata, access, names.

Creations and deletions that fail or are killed are in test_lifecycle.
"""

import pytest

from test.functional.client import Client
from test.functional.conftest import (
    RESELLER_ADMIN,
    SHARD_COUNT_HEADER,
    SHARDS,
    USER,
    Pair,
    make_plain,
    make_sharded,
    unique,
)

SHOWN_COUNT = SHARD_COUNT_HEADER.lower()
SHOWN_DEPTH = 'x-container-shard-depth'
COUNT = {SHARD_COUNT_HEADER: str(SHARDS)}
ANOTHER_COUNT = {SHARD_COUNT_HEADER: str(SHARDS + 1)}
SEVEN = {SHARD_COUNT_HEADER: '7'}

ARABIC_THREE = '٣'.encode().decode('latin-1')
NO_COUNTS = (
    'x', '0', '-1', '+4', '65', '1025', '1.5', '1e1', '0x4', '4,4', '4 4',
    '1_0', '', ARABIC_THREE, '9' * 5000,
)  # fmt: skip


class TestShardCount:
    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_is_shown(self, client, sharded, method):
        answer = client.request(method, sharded)
        assert answer.headers[SHOWN_COUNT] == str(SHARDS)

    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_is_not_shown_for_a_plain_container(self, client, plain, method):
        assert SHOWN_COUNT not in client.request(method, plain).headers

    @pytest.mark.parametrize('count', NO_COUNTS, ids=lambda text: text[:9])
    def test_out_of_bounds_is_400_and_creates_nothing(
        self, client, backing, count
    ):
        name = unique('refused')
        answer = client.put(name, headers={SHARD_COUNT_HEADER: count})
        assert answer.status == 400
        assert answer.text == (
            'X-Container-Shard-Count must be a number from 1 to 64'
        )
        assert client.head(name).status == 404
        assert backing.shards(name) == []

    def test_may_be_one(self, client, backing):
        container = make_sharded(client, shards=1)
        assert client.put(container, 'o').status == 201
        assert client.listing(container).names() == ['o']
        assert client.head(container).headers[SHOWN_COUNT] == '1'

    @pytest.mark.parametrize('headers', [{}, COUNT])
    def test_can_be_given_again(self, client, sharded, headers):
        assert client.put(sharded, headers=headers).status == 202
        assert client.head(sharded).headers[SHOWN_COUNT] == str(SHARDS)

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_can_not_be_changed(self, client, backing, sharded, method):
        answer = client.request(
            method,
            sharded,
            headers={**ANOTHER_COUNT, 'X-Container-Meta-Colour': 'red'},
        )
        assert answer.status == 409
        assert answer.text == (
            'This container has 4 shards; X-Container-Shard-Count can only '
            'be set when a container is created'
        )
        assert len(backing.shards(sharded)) == SHARDS
        after = client.head(sharded).headers
        assert after[SHOWN_COUNT] == str(SHARDS)
        assert 'x-container-meta-colour' not in after

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_can_not_be_given_to_a_plain_container(
        self, client, backing, plain, method
    ):
        answer = client.request(method, plain, headers=COUNT)
        assert answer.status == 409
        assert answer.text == (
            'This container is not sharded; X-Container-Shard-Count can only '
            'be set when a container is created'
        )
        assert backing.shards(plain) == []
        assert SHOWN_COUNT not in client.head(plain).headers

    def test_in_a_post_creates_nothing(self, client, backing):
        name = unique('missing')
        assert client.post(name, headers=COUNT).status == 404
        assert backing.shards(name) == []

    def test_out_of_bounds_is_400_for_an_existing_container_too(
        self, client, container
    ):
        no_count = {SHARD_COUNT_HEADER: 'x'}
        assert client.put(container, headers=no_count).status == 400

    def test_of_a_stranger_is_403_whatever_the_count(
        self, stranger, container
    ):
        for headers in (COUNT, ANOTHER_COUNT, {SHARD_COUNT_HEADER: 'x'}):
            assert stranger.put(container, headers=headers).status == 403

    def test_does_not_change_the_answer_to_a_creation(self, client):
        plain = client.put(unique('new'))
        sharded = client.put(unique('new'), headers=COUNT)
        assert sharded.status == plain.status == 201
        assert sharded.body == plain.body
        assert sharded.headers.keys() == plain.headers.keys()


class TestShardCountOfAnObject:
    REFUSAL = (
        'X-Container-Shard-Count is for containers, not objects: send it '
        'with the PUT that creates the container'
    )

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_is_400_and_changes_nothing(self, client, container, method):
        client.put(container, 'o', b'as before')
        answer = client.request(
            method, container, 'o', body=b'new', headers=COUNT
        )
        assert (answer.status, answer.text) == (400, self.REFUSAL)
        assert client.get(container, 'o').body == b'as before'

    def test_is_400_in_a_missing_container(self, client):
        answer = client.put(unique('missing'), 'o', headers=COUNT)
        assert (answer.status, answer.text) == (400, self.REFUSAL)

    def test_is_400_for_a_copy(self, client, container):
        client.put(container, 'o', b'body')
        answer = client.copy(container, 'o', f'{container}/p', headers=COUNT)
        assert (answer.status, answer.text) == (400, self.REFUSAL)
        assert client.get(container, 'p').status == 404

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'DELETE'])
    def test_is_ignored_where_nothing_is_created(
        self, client, container, method
    ):
        client.put(container, 'o', b'body')
        answer = client.request(method, container, 'o', headers=COUNT)
        assert answer.status in (200, 204)


@pytest.fixture
def admin(login, client) -> Client:
    """A reseller admin, sending requests for the owner's account."""
    return login(RESELLER_ADMIN).visiting(client)


RULES = {
    'shardmw.max_shards': '8',
    'shardmw.client_max_shards': '7',
    'shardmw.default_shards': '2',
    'shardmw.shard_rules': 'AUTH_test/no-*=0, AUTH_test/n*=3, '
    '*/[mn]?re-*=5, */big-*=8',
}


@pytest.fixture(scope='class')
def old_pair(login) -> Pair:
    """A plain and a sharded container that are older than the rules."""
    owner = login(USER)
    return Pair(make_plain(owner), make_sharded(owner))


@pytest.fixture(scope='class')
def rules(cluster, old_pair):
    """The operator configures the shard counts of new containers."""
    cluster.reconfigure(RULES)
    yield
    cluster.reconfigure(dict.fromkeys(RULES))


@pytest.mark.usefixtures('rules')
class TestCountsByConfiguration:
    """The shard counts of new containers when the client gives none."""

    @pytest.mark.parametrize(
        ('prefix', 'count'),
        [
            ('default', '2'),
            ('nearby', '3'),
            ('nore-first-match-counts', '3'),
            ('more', '5'),
            ('No-case-counts', '2'),
            ('nö', '3'),
            ('big', '8'),
        ],
    )
    def test_new_container_has_the_count(self, client, prefix, count):
        container = unique(prefix)
        assert client.put(container).status == 201
        assert client.head(container).headers[SHOWN_COUNT] == count

    def test_zero_makes_a_plain_container(self, client):
        container = unique('no')
        assert client.put(container).status == 201
        assert SHOWN_COUNT not in client.head(container).headers

    def test_rule_is_for_its_account(self, login):
        other = login('test2:tester2')
        container = unique('near')
        other.put(container)
        assert other.head(container).headers[SHOWN_COUNT] == '2'

    @pytest.mark.parametrize('prefix', ['no', 'near', 'default'])
    def test_the_clients_count_takes_precedence(self, client, prefix):
        container = unique(prefix)
        assert client.put(container, headers=SEVEN).status == 201
        assert client.head(container).headers[SHOWN_COUNT] == '7'

    def test_client_may_not_ask_for_more_than_allowed(self, client):
        headers = {SHARD_COUNT_HEADER: '8'}
        answer = client.put(unique('large'), headers=headers)
        assert answer.status == 400
        assert answer.text.endswith('from 1 to 7')

    def test_reseller_admin_may_ask_for_max_shards(self, admin):
        container = unique('large')
        headers = {SHARD_COUNT_HEADER: '8'}
        assert admin.put(container, headers=headers).status == 201
        assert admin.head(container).headers[SHOWN_COUNT] == '8'

    def test_reseller_admin_may_not_ask_for_more(self, admin):
        headers = {SHARD_COUNT_HEADER: '9'}
        answer = admin.put(unique('large'), headers=headers)
        assert answer.status == 400
        assert answer.text.endswith('from 1 to 8')

    def test_plain_container_stays_plain(self, client, old_pair):
        assert client.put(old_pair.plain).status == 202
        assert SHOWN_COUNT not in client.head(old_pair.plain).headers

    def test_sharded_container_keeps_its_count(self, client, old_pair):
        assert client.put(old_pair.sharded).status == 202
        shown = client.head(old_pair.sharded).headers
        assert shown[SHOWN_COUNT] == str(SHARDS)

    def test_container_created_twice_keeps_its_count(self, client):
        container = unique('default')
        client.put(container)
        assert client.put(container).status == 202
        assert client.head(container).headers[SHOWN_COUNT] == '2'

    def test_upload_creates_no_container(self, client):
        assert client.put(unique('missing'), 'o', b'x').status == 404

    def test_stranger_creates_no_container(self, client, stranger):
        container = unique('refused')
        assert stranger.put(container).status == 403
        assert client.head(container).status == 404


@pytest.fixture(scope='class')
def no_clients_shards(cluster, old_pair):
    """The operator does not let clients shard containers."""
    settings = {
        'shardmw.client_max_shards': '0',
        'shardmw.default_shards': '2',
    }
    cluster.reconfigure(settings)
    yield
    cluster.reconfigure(dict.fromkeys(settings))


@pytest.mark.usefixtures('no_clients_shards')
class TestNoCountsOfClients:
    def test_client_may_not_ask_for_shards(self, client):
        answer = client.put(unique('sharded'), headers=COUNT)
        assert answer.status == 400
        assert answer.text == (
            'X-Container-Shard-Count is not allowed in this cluster'
        )

    def test_reseller_admin_may_ask_for_shards(self, admin):
        make_sharded(admin)

    def test_count_of_a_sharded_container_can_be_given_again(
        self, client, old_pair
    ):
        assert client.put(old_pair.sharded, headers=COUNT).status == 202
        answer = client.put(old_pair.sharded, headers=ANOTHER_COUNT)
        assert answer.status == 400

    def test_operators_default_is_used(self, client):
        container = make_plain(client)
        assert client.head(container).headers[SHOWN_COUNT] == '2'


@pytest.fixture(scope='class')
def no_shards(cluster, old_pair):
    """The operator lets nobody shard containers, as during a rollout."""
    settings = {'shardmw.max_shards': '0'}
    cluster.reconfigure(settings)
    yield
    cluster.reconfigure(dict.fromkeys(settings))


@pytest.mark.usefixtures('no_shards')
class TestNoShards:
    def test_nobody_may_ask_for_shards(self, client, admin):
        for owner in (client, admin):
            name = unique('sharded')
            answer = owner.put(name, headers=COUNT)
            assert answer.status == 400
            assert answer.text == (
                'X-Container-Shard-Count is not allowed in this cluster'
            )
            assert owner.head(name).status == 404

    def test_new_container_is_plain(self, client):
        container = make_plain(client)
        assert SHOWN_COUNT not in client.head(container).headers

    def test_sharded_container_is_used_as_before(self, client, old_pair):
        container = old_pair.sharded
        assert client.put(container).status == 202
        assert client.put(container, headers=COUNT).status == 202
        assert client.put(container, 'o', b'body').status == 201
        assert client.get(container, 'o').body == b'body'
        assert client.listing(container).names() == ['o']
        assert client.head(container).headers[SHOWN_COUNT] == str(SHARDS)
        assert client.delete(container, 'o').status == 204

    def test_segments_container_of_a_sharded_one_is_plain(
        self, client, old_pair
    ):
        segments = f'{old_pair.sharded}+segments'
        assert client.put(segments).status == 201
        assert SHOWN_COUNT not in client.head(segments).headers


class TestPolicy:
    @pytest.mark.parametrize('policy', ['Policy-0', 'Policy-1'])
    def test_is_the_one_that_was_named(self, client, policy):
        container = make_sharded(client, X_Storage_Policy=policy)
        client.put(container, 'o', b'body')
        assert client.head(container).headers['x-storage-policy'] == policy
        assert client.get(container, 'o').body == b'body'

    def test_can_be_named_again(self, client):
        container = make_sharded(client, X_Storage_Policy='Policy-1')
        headers = {'X-Storage-Policy': 'policy-1'}
        assert client.put(container, headers=headers).status == 202

    def test_can_not_be_changed(self, client, pair):
        headers = {'X-Storage-Policy': 'Policy-1'}
        plain = client.put(pair.plain, headers=headers)
        sharded = client.put(pair.sharded, headers=headers)
        assert sharded.status == plain.status == 409
        assert sharded.body == plain.body
        after = client.head(pair.sharded).headers
        assert after['x-storage-policy'] == 'Policy-0'


class TestNames:
    @pytest.mark.parametrize(
        'stem',
        [
            # The longest name that fits into backing names, a longer one,
            # and the longest of all.
            *('x' * 224, 'x' * 225, 'x' * 243),
            # Swift counts characters, not bytes.
            *('\u2603' * 100, '\U0001f600' * 224, '\U0001f600' * 243),
            ' %2F+&?=#;"<>\'\\',
            '.',
        ],
        ids=lambda stem: f'{stem[:4]}-{len(stem.encode())}',
    )
    def test_container_can_be_created_used_and_deleted(
        self, client, backing, stem
    ):
        name = f'{stem}{unique("")}'
        assert client.put(name, headers=COUNT).status == 201
        assert client.put(name, 'a/o', b'body').status == 201
        assert client.put(name, headers=COUNT).status == 202
        assert client.get(name, 'a/o').body == b'body'
        assert client.listing(name).names() == ['a/o']
        assert name in client.listing(prefix=stem).names()
        assert client.delete(name).status == 409
        assert client.delete(name, 'a/o').status == 204
        assert client.delete(name).status == 204
        assert client.head(name).status == 404
        assert backing.shards(name) == []

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'GET', 'DELETE'])
    @pytest.mark.parametrize(
        'path',
        ['x' * 257, '%E2%98%83' * 257, 'a%00b', '%00a', '%FF', 'a%C3'],
        ids=lambda path: f'{path[:6]}-{len(path)}',
    )
    def test_what_swift_refuses_is_refused_alike(self, client, path, method):
        url = f'{client.path()}/{path}'
        plain = client.raw(method, url)
        sharded = client.raw(method, url, headers=COUNT)
        assert sharded.status == plain.status
        assert sharded.body == plain.body

    def test_names_that_begin_alike_are_different_containers(
        self, client, backing
    ):
        name = unique('alike')
        client.put(name, headers=COUNT)
        shard = backing.shards(name)[0]
        alike = (name, f'{name}0', f'{name}.', f'{name}.0', shard, f'{shard}0')
        for container in alike:
            assert client.put(container, headers=COUNT).status in (201, 202)
            assert client.put(container, container).status == 201
        for container in alike:
            assert client.listing(container).names() == [container]
            assert client.delete(container, container).status == 204
            assert client.delete(container).status == 204

    def test_path_with_a_trailing_slash_is_the_containers(
        self, client, container
    ):
        client.put(container, 'o')
        path = client.path(container)
        assert client.raw('GET', f'{path}/').body == b'o\n'
        assert client.raw('HEAD', f'{path}/').status == 204


class TestMetadata:
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_is_set(self, client, container, method):
        headers = {'X-Container-Meta-Colour': 'red'}
        client.request(method, container, headers=headers)
        for answer in (client.head(container), client.get(container)):
            assert answer.headers['x-container-meta-colour'] == 'red'

    def test_is_set_at_creation(self, client):
        container = make_sharded(client, X_Container_Meta_Colour='red')
        after = client.head(container).headers
        assert after['x-container-meta-colour'] == 'red'

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_that_is_not_sent_stays(self, client, container, method):
        client.post(container, headers={'X-Container-Meta-Colour': 'red'})
        headers = {'X-Container-Meta-Size': 'large'}
        client.request(method, container, headers=headers)
        after = client.head(container).headers
        assert after['x-container-meta-colour'] == 'red'
        assert after['x-container-meta-size'] == 'large'

    @pytest.mark.parametrize(
        'headers',
        [
            {'X-Container-Meta-Colour': ''},
            {'X-Remove-Container-Meta-Colour': 'x'},
        ],
        ids=' '.join,
    )
    def test_is_removed(self, client, container, headers):
        client.post(container, headers={'X-Container-Meta-Colour': 'red'})
        assert client.post(container, headers=headers).status == 204
        assert 'x-container-meta-colour' not in client.head(container).headers

    def test_outlives_a_repeated_creation(self, client):
        container = make_sharded(client, X_Container_Meta_Colour='red')
        client.put(container, headers=COUNT)
        after = client.head(container).headers
        assert after['x-container-meta-colour'] == 'red'

    def test_does_not_outlive_the_container(self, client):
        container = make_sharded(client, X_Container_Meta_Colour='red')
        client.delete(container)
        client.put(container, headers=COUNT)
        assert 'x-container-meta-colour' not in client.head(container).headers

    def test_of_a_missing_container_is_404(self, client):
        headers = {'X-Container-Meta-Colour': 'red'}
        assert client.post(unique('missing'), headers=headers).status == 404

    def test_record_of_a_client_does_not_shard_a_container(self, client):
        record = '{"version": 2, "id": "65a1b2c3d4e5f", "shards": 2}'
        name = make_plain(client, X_Container_Sysmeta_Shardmw_Layout=record)
        assert SHOWN_COUNT not in client.head(name).headers

    def test_record_of_a_client_does_not_change_a_layout(
        self, client, sharded
    ):
        record = '{"version": 2, "id": "65a1b2c3d4e5f", "shards": 2}'
        headers = {'X-Container-Sysmeta-Shardmw-Layout': record}
        assert client.post(sharded, headers=headers).status == 204
        assert client.put(sharded, headers=headers).status == 202
        assert client.head(sharded).headers[SHOWN_COUNT] == str(SHARDS)


class TestStatistics:
    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_sum_up_what_is_stored(self, client, container, method):
        for i in range(9):
            client.put(container, f'o{i}', b'x' * i)
        shown = client.request(method, container).headers
        assert shown['x-container-object-count'] == '9'
        assert shown['x-container-bytes-used'] == '36'

    def test_are_right_at_once(self, client, container):
        client.put(container, 'o', b'one')
        client.put(container, 'o', b'three')
        shown = client.head(container).headers
        assert shown['x-container-object-count'] == '1'
        assert shown['x-container-bytes-used'] == '5'
        client.delete(container, 'o')
        shown = client.head(container).headers
        assert shown['x-container-object-count'] == '0'
        assert shown['x-container-bytes-used'] == '0'

    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_come_with_the_headers_of_a_plain_container(
        self, client, pair, method
    ):
        plain = client.request(method, pair.plain)
        sharded = client.request(method, pair.sharded)
        assert sharded.status == plain.status
        shown = {SHOWN_COUNT, SHOWN_DEPTH}
        assert sharded.headers.keys() - shown == plain.headers.keys()


OWNERS_HEADERS = {
    'x-container-read',
    'x-container-write',
    'x-container-sync-key',
    'x-container-sync-to',
    'x-container-meta-temp-url-key',
}
ACLS = {
    'X-Container-Read': 'test:tester3,.r:*',
    'X-Container-Write': 'test:tester3',
    'X-Container-Sync-Key': 'secret',
    'X-Container-Sync-To': 'http://127.0.0.1/v1/AUTH_other/c',
    'X-Container-Meta-Temp-URL-Key': 'secret',
}


@pytest.fixture(scope='class')
def shared(lasting, login) -> str:
    """A container that a stranger may read and write."""
    assert login(USER).post(lasting, headers=ACLS).status == 204
    return lasting


class TestAccess:
    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_owner_sees_acls_and_keys(self, client, shared, method):
        shown = client.request(method, shared).headers
        assert shown.keys() >= OWNERS_HEADERS

    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_reader_does_not_see_acls_and_keys(self, stranger, shared, method):
        answer = stranger.request(method, shared)
        assert answer.status == 204
        assert not answer.headers.keys() & OWNERS_HEADERS

    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_referrer_may_not_list(self, client, shared, method):
        assert client.anonymous().request(method, shared).status == 401

    @pytest.mark.parametrize('method', ['HEAD', 'GET'])
    def test_rlistings_lets_everybody_list(self, client, container, method):
        headers = {'X-Container-Read': '.r:*,.rlistings'}
        client.post(container, headers=headers)
        assert client.anonymous().request(method, container).status == 204

    def test_anonymous_listing_holds_all_objects(self, client, container):
        headers = {'X-Container-Read': '.r:*,.rlistings'}
        client.post(container, headers=headers)
        for i in range(9):
            client.put(container, f'o{i}')
        anonymous = client.anonymous().listing(container)
        assert anonymous.body == client.listing(container).body

    def test_reader_lists_what_the_owner_lists(self, client, stranger, shared):
        client.put(shared, 'o')
        assert stranger.listing(shared).body == client.listing(shared).body
        client.delete(shared, 'o')

    def test_access_ends_when_the_acl_is_removed(
        self, client, stranger, container
    ):
        client.post(container, headers={'X-Container-Read': 'test:tester3'})
        assert stranger.get(container).status == 204
        client.post(container, headers={'X-Container-Read': ''})
        assert stranger.get(container).status == 403


class TestCrossOrigin:
    HERE = {'Origin': 'http://here.example.com'}

    @pytest.fixture
    def open_container(self, client, container) -> str:
        """A container that a web page of one origin may use."""
        allowed = self.HERE['Origin']
        name = 'X-Container-Meta-Access-Control-Allow-Origin'
        client.post(container, headers={name: allowed})
        return container

    @pytest.mark.parametrize('name', [None, 'o'])
    def test_page_of_the_origin_is_allowed(self, client, open_container, name):
        client.put(open_container, 'o')
        answer = client.get(open_container, name, headers=self.HERE)
        allowed = answer.headers['access-control-allow-origin']
        assert allowed == self.HERE['Origin']

    @pytest.mark.parametrize('name', [None, 'o'])
    def test_preflight_of_the_origin_is_allowed(
        self, client, open_container, name
    ):
        answer = client.request(
            'OPTIONS',
            open_container,
            name,
            headers={**self.HERE, 'Access-Control-Request-Method': 'GET'},
        )
        assert answer.status == 200
        allowed = answer.headers['access-control-allow-origin']
        assert allowed == self.HERE['Origin']

    @pytest.mark.parametrize('name', [None, 'o'])
    def test_preflight_of_another_origin_is_401(
        self, client, open_container, name
    ):
        headers = {
            'Origin': 'http://elsewhere.example.com',
            'Access-Control-Request-Method': 'GET',
        }
        answer = client.request(
            'OPTIONS', open_container, name, headers=headers
        )
        assert answer.status == 401


class TestDeletion:
    def test_of_a_missing_container_is_404(self, client):
        assert client.delete(unique('missing')).status == 404

    def test_twice_is_404(self, client, container):
        assert client.delete(container).status == 204
        assert client.delete(container).status == 404

    @pytest.mark.parametrize('name', ['o', 'x' * 1024])
    def test_of_a_nonempty_container_is_409(self, client, container, name):
        client.put(container, name, b'body')
        assert client.delete(container).status == 409
        assert client.get(container, name).body == b'body'

    def test_answers_are_those_of_a_plain_container(self, client, pair):
        for container in pair:
            client.put(container, 'o')
        refused = [client.delete(container) for container in pair]
        for container in pair:
            client.delete(container, 'o')
        deleted = [client.delete(container) for container in pair]
        for plain, sharded in (refused, deleted):
            assert sharded.status == plain.status
            assert sharded.body == plain.body
            assert sharded.headers.keys() == plain.headers.keys()

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST'])
    def test_leaves_no_container(self, client, container, method):
        client.delete(container)
        assert client.request(method, container).status == 404
        assert client.put(container, 'o').status == 404

    def test_of_an_emptied_container_succeeds(self, client, container):
        for i in range(9):
            client.put(container, f'o{i}')
        for i in range(9):
            client.delete(container, f'o{i}')
        assert client.delete(container).status == 204
