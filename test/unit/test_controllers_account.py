# SPDX-License-Identifier: Apache-2.0
"""Accounts, whose counts include what backing containers hold."""

import json

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPForbidden
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend import accounts
from shardmw.backend.containers import SHARD_COUNT_HEADER
from shardmw.core.placement import REGISTER, backing_base, versions_container
from test.unit.containers import (
    backing,
    create,
    forget_requests,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, fake_swift, filtered

PATH = f'/v1/{ACCOUNT}'
HIDDEN_PATH = f'/v1/{HIDDEN}'
DENIED = {'swift.authorize': lambda req: HTTPForbidden(request=req)}
OWNER = {'swift.authorize': lambda _req: None, 'swift_owner': True}
RESERVED_ALLOWED = {'X-Backend-Allow-Reserved-Names': 'true'}
LONG = 'x' * 256
LONG_TOO = 'x' * 255 + 'y'


@pytest.fixture
def filter_app(swift):
    """Return the filter, with a plain and a sharded container in an account.

    The plain container has 1 object of 1 byte, the sharded one 3 objects of
    30 bytes in total.
    """
    filter_app = filtered(swift)
    swift.send(filter_app, 'PUT', f'{PATH}/plain')
    swift.put_row(f'/{ACCOUNT}/plain/o')
    create(swift, filter_app, 2)
    for name in ('a', 'b', 'c'):
        put_sharded_row(swift, name, size=10)
    swift.update_accounts()
    return filter_app


def figures_in(resp) -> tuple[int, int]:
    """Return the counts of objects and bytes in a response."""
    assert resp.is_success, resp.status
    return (
        int(resp.headers['X-Account-Object-Count']),
        int(resp.headers['X-Account-Bytes-Used']),
    )


def get(swift, app, query='format=json', headers=None):
    """List the account's containers."""
    return swift.send(app, 'GET', PATH, headers, query=query)


def rows_in(resp) -> dict[str, tuple[int, int]]:
    """Return the counts of objects and bytes in a listing, by container."""
    rows = json.loads(resp.body)
    return {row['name']: (row['count'], row['bytes']) for row in rows}


class TestTotals:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_include_the_shards(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, PATH)
        assert figures_in(resp) == (4, 31)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_count_the_clients_containers_only(
        self, swift, filter_app, method
    ):
        resp = swift.send(filter_app, method, PATH)
        assert resp.headers['X-Account-Container-Count'] == '2'

    def test_are_by_policy_too(self, swift, filter_app):
        headers = {'X-Storage-Policy': 'silver', 'X-Container-Shard-Count': 2}
        swift.send(filter_app, 'PUT', f'{PATH}/s', headers)
        put_sharded_row(swift, 'o', 's', size=500, policy_index=1)
        swift.update_accounts()
        resp = swift.send(filter_app, 'HEAD', PATH)
        prefix = 'X-Account-Storage-Policy-'
        shown = {
            name.removeprefix(prefix): value
            for name, value in resp.headers.items()
            if name.startswith(prefix)
        }
        assert HeaderKeyDict(shown) == {
            'Gold-Container-Count': '2',
            'Gold-Object-Count': '4',
            'Gold-Bytes-Used': '31',
            'Silver-Container-Count': '1',
            'Silver-Object-Count': '1',
            'Silver-Bytes-Used': '500',
        }

    def test_of_an_account_without_sharded_containers_are_its_own(self, swift):
        filter_app = filtered(swift)
        swift.send(filter_app, 'PUT', f'{PATH}/plain')
        swift.put_row(f'/{ACCOUNT}/plain/o')
        swift.update_accounts()
        assert figures_in(swift.send(filter_app, 'HEAD', PATH)) == (1, 1)
        assert ('GET', HIDDEN_PATH) not in swift.sent()

    def test_of_an_account_that_does_not_exist_yet_are_0(self, swift):
        resp = swift.send(filtered(swift), 'HEAD', '/v1/AUTH_new')
        assert figures_in(resp) == (0, 0)

    def test_cost_one_request_more(self, swift, filter_app):
        swift.send(filter_app, 'HEAD', PATH)
        forget_requests(swift)
        swift.send(filter_app, 'HEAD', PATH)
        assert swift.sent() == [('HEAD', PATH), ('HEAD', HIDDEN_PATH)]

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_a_hidden_account_that_does_not_answer_are_a_503(
        self, swift, filter_app, method
    ):
        swift.send(filter_app, method, PATH)
        swift.register('HEAD', HIDDEN_PATH, 503)
        assert swift.send(filter_app, method, PATH).status_int == 503
        (line,) = filter_app._logger.lines
        assert f'account {HIDDEN} answered 503' in line

    def test_of_a_hidden_account_that_is_gone_are_its_own(
        self, swift, filter_app
    ):
        swift.send(filter_app, 'HEAD', PATH)
        swift.register('HEAD', HIDDEN_PATH, 410)
        resp = swift.send(filter_app, 'HEAD', PATH)
        assert figures_in(resp) == (1, 1)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_are_never_cached_for_quotas_without_the_shards(
        self, swift, filter_app, method
    ):
        quota = {'X-Account-Meta-Quota-Bytes': '1000'}
        swift.send(filter_app, 'POST', PATH, quota, OWNER)
        cached = []
        key = get_cache_key(ACCOUNT)
        swift.before(
            'HEAD',
            HIDDEN_PATH,
            lambda: cached.append(swift.memcached.get(key)),
        )
        swift.send(filter_app, method, PATH)
        cached.append(swift.memcached.get(key))
        assert cached == [None, None]

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_are_not_shown_to_others(self, swift, filter_app, method):
        swift.send(filter_app, method, PATH)
        forget_requests(swift)
        resp = swift.send(filter_app, method, PATH, env=DENIED)
        assert resp.status_int == 403
        assert 'X-Account-Object-Count' not in resp.headers
        assert swift.sent() == [(method, PATH)]


class TestListing:
    def test_shows_what_the_shards_hold(self, swift, filter_app):
        assert rows_in(get(swift, filter_app)) == {
            'c': (3, 30),
            'plain': (1, 1),
        }

    def test_has_the_length_of_its_body(self, swift, filter_app):
        resp = get(swift, filter_app)
        assert int(resp.headers['Content-Length']) == len(resp.body)

    def test_shows_no_backing_container(self, swift, filter_app):
        query = 'format=json&prefix=c.'
        assert rows_in(get(swift, filter_app, query)) == {}

    def test_shows_rows_in_the_root_too(self, swift, filter_app):
        swift.put_row(f'/{ACCOUNT}/c/stray', size=5)
        swift.update_accounts()
        assert rows_in(get(swift, filter_app))['c'] == (4, 35)

    @pytest.mark.parametrize('name', [LONG, '☃', 'a b', 'a.b', 'a%41'])
    def test_shows_what_containers_with_other_names_hold(
        self, swift, filter_app, name
    ):
        create(swift, filter_app, 2, name)
        put_sharded_row(swift, 'o', name, size=7)
        swift.update_accounts()
        assert rows_in(get(swift, filter_app))[name] == (1, 7)

    def test_distinguishes_long_names_with_the_same_beginning(
        self, swift, filter_app
    ):
        for size, name in enumerate([LONG, LONG_TOO], start=5):
            create(swift, filter_app, 1, name)
            put_sharded_row(swift, 'o', name, size=size)
        swift.update_accounts()
        rows = rows_in(get(swift, filter_app))
        assert (rows[LONG], rows[LONG_TOO]) == ((1, 5), (1, 6))

    def test_counts_only_what_belongs_to_a_container(self, swift, filter_app):
        create(swift, filter_app, 1, 'c.d')
        put_sharded_row(swift, 'o', 'c.d', size=7)
        swift.update_accounts()
        rows = rows_in(get(swift, filter_app))
        assert (rows['c'], rows['c.d']) == ((3, 30), (1, 7))

    def test_does_not_count_leftovers_of_deleted_containers(
        self, swift, filter_app
    ):
        create(swift, filter_app, 1, 'e')
        put_sharded_row(swift, 'o', 'e')
        swift.direct('DELETE', f'/{ACCOUNT}/e')
        swift.update_accounts()
        assert rows_in(get(swift, filter_app)) == {
            'c': (3, 30),
            'plain': (1, 1),
        }

    def test_of_a_page_shows_its_containers(self, swift, filter_app):
        query = 'format=json&limit=1'
        assert rows_in(get(swift, filter_app, query)) == {'c': (3, 30)}
        query = 'format=json&marker=c'
        assert rows_in(get(swift, filter_app, query)) == {'plain': (1, 1)}

    def test_shows_subdirs_as_they_are(self, swift, filter_app):
        swift.send(filter_app, 'PUT', f'{PATH}/a-b')
        query = 'format=json&delimiter=-'
        rows = json.loads(get(swift, filter_app, query).body)
        assert {'subdir': 'a-'} in rows
        assert next(r for r in rows if r.get('name') == 'c')['count'] == 3

    def test_of_versions_shows_what_their_shards_hold(self, swift, filter_app):
        versions = versions_container('c')
        path = f'{PATH}/{versions}'
        headers = {**RESERVED_ALLOWED, SHARD_COUNT_HEADER: '2'}
        swift.send(filter_app, 'PUT', path, headers)
        put_sharded_row(swift, '\0o\x001', versions, size=7)
        swift.update_accounts()
        resp = get(swift, filter_app, headers=RESERVED_ALLOWED)
        assert rows_in(resp)[versions] == (1, 7)

    def test_reads_the_hidden_account_once_in_a_while(self, swift, filter_app):
        for _ in range(3):
            get(swift, filter_app)
        assert swift.sent('GET').count(('GET', HIDDEN_PATH)) == 1

    def test_reads_each_page_of_its_own(self, swift, filter_app):
        get(swift, filter_app, 'format=json&limit=1')
        get(swift, filter_app, 'format=json&marker=c')
        assert swift.sent('GET').count(('GET', HIDDEN_PATH)) == 2

    def test_keeps_nothing_if_the_operator_says_so(self, swift, filter_app):
        filter_app = filtered(swift, head_cache_seconds='0')
        for _ in range(2):
            get(swift, filter_app)
        assert swift.sent('GET').count(('GET', HIDDEN_PATH)) == 2

    def test_reads_the_hidden_account_in_pages(
        self, swift, filter_app, monkeypatch
    ):
        monkeypatch.setattr(accounts, 'account_page', lambda: 1)
        assert rows_in(get(swift, filter_app))['c'] == (3, 30)
        assert swift.sent('GET').count(('GET', HIDDEN_PATH)) == 3

    def test_in_another_format_keeps_its_rows(self, swift, filter_app):
        headers = {
            'Content-Type': 'text/plain',
            'X-Account-Object-Count': '1',
            'X-Account-Bytes-Used': '1',
        }
        swift.register('GET', PATH, 200, headers, b'c\nplain\n')
        resp = get(swift, filter_app, 'format=plain')
        assert resp.body == b'c\nplain\n'
        assert figures_in(resp) == (4, 31)

    @pytest.mark.parametrize('body', [b'{}', b'[{"name": "c"}]'])
    def test_with_a_server_that_lists_no_next_page_is_a_503(
        self, swift, filter_app, monkeypatch, body
    ):
        monkeypatch.setattr(accounts, 'account_page', lambda: 1)
        swift.register('GET', HIDDEN_PATH, 200, {}, body)
        assert get(swift, filter_app).status_int == 503

    def test_without_the_hidden_account_is_a_503(self, swift, filter_app):
        swift.register('GET', HIDDEN_PATH, 503)
        assert get(swift, filter_app).status_int == 503


class TestDelete:
    @pytest.fixture
    def swift(self):
        with fake_swift(allow_account_management='true') as swift:
            yield swift

    @pytest.fixture
    def filter_app(self, swift):
        """Return the filter, with an empty sharded container."""
        filter_app = filtered(swift)
        create(swift, filter_app, 2)
        return filter_app

    def delete(self, swift, filter_app, env=OWNER):
        return swift.send(filter_app, 'DELETE', PATH, env=env)

    def test_of_an_empty_account_deletes_the_hidden_one(
        self, swift, filter_app
    ):
        swift.send(filter_app, 'DELETE', f'{PATH}/c')
        assert self.delete(swift, filter_app).status_int == 204
        assert swift.sent('DELETE')[-2:] == [
            ('DELETE', PATH),
            ('DELETE', HIDDEN_PATH),
        ]

    def test_with_empty_shards_is_left_to_the_app(self, swift, filter_app):
        swift.register('DELETE', PATH, 204)
        assert self.delete(swift, filter_app).status_int == 204

    def test_with_objects_is_refused(self, swift, filter_app):
        put_sharded_row(swift, 'o')
        swift.update_accounts()
        resp = self.delete(swift, filter_app)
        assert resp.status_int == 409
        assert resp.body.startswith(b'The account has sharded containers with')
        assert swift.sent('DELETE') == []

    def test_with_objects_that_are_not_reported_yet_is_refused(
        self, swift, filter_app
    ):
        put_sharded_row(swift, 'o')
        assert self.delete(swift, filter_app).status_int == 409

    def test_with_a_shard_emptied_but_not_reported_yet_is_left_to_the_app(
        self, swift, filter_app
    ):
        put_sharded_row(swift, 'o')
        swift.update_accounts()
        swift.direct('DELETE', f'/{HIDDEN}/{shard_for(swift, "o")}/o')
        assert self.delete(swift, filter_app).status_int == 204

    def test_with_a_query_is_a_bad_request_as_in_swift(
        self, swift, filter_app
    ):
        put_sharded_row(swift, 'o')
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER, query='a')
        assert resp.status_int == 400
        assert swift.sent() == [('DELETE', PATH)]

    def test_without_account_management_is_a_405_as_in_swift(
        self, swift, filter_app
    ):
        put_sharded_row(swift, 'o')
        swift.allow_account_management = False
        resp = self.delete(swift, filter_app)
        assert resp.status_int == 405
        assert swift.sent() == [('DELETE', PATH)]

    def test_that_is_denied_asks_for_nothing(self, swift, filter_app):
        put_sharded_row(swift, 'o')
        resp = self.delete(swift, filter_app, DENIED)
        assert resp.status_int == 403
        assert swift.sent() == [('DELETE', PATH)]

    def test_that_fails_keeps_the_hidden_account(self, swift, filter_app):
        swift.register('DELETE', PATH, 503)
        assert self.delete(swift, filter_app).status_int == 503
        assert ('DELETE', HIDDEN_PATH) not in swift.sent()

    def test_with_a_shard_that_does_not_answer_is_a_503(
        self, swift, filter_app
    ):
        swift.servers.broken = {f'/{HIDDEN}/{backing(swift, 1)}'}
        assert self.delete(swift, filter_app).status_int == 503
        assert swift.sent('DELETE') == []

    def test_with_a_hidden_account_that_does_not_answer_is_a_503(
        self, swift, filter_app
    ):
        swift.servers.broken = {f'/{HIDDEN}'}
        assert self.delete(swift, filter_app).status_int == 503
        assert swift.sent('DELETE') == []

    def test_without_sharded_containers_is_left_to_the_app(self, swift):
        filter_app = filtered(swift)
        assert self.delete(swift, filter_app).status_int == 204
        assert swift.sent('DELETE')[0] == ('DELETE', PATH)


class _WithReplicas:
    @pytest.fixture
    def swift(self):
        with fake_swift(replicas=3, allow_account_management='true') as swift:
            yield swift


class TestDeleteWithReplicas(_WithReplicas):
    """Replicas of the hidden account list different containers."""

    @pytest.fixture
    def filter_app(self, swift):
        """Return the filter, with an empty and a filled container."""
        filter_app = filtered(swift)
        create(swift, filter_app, 2)
        create(swift, filter_app, 2, 'd')
        put_sharded_row(swift, 'o')
        return filter_app

    def only_d(self, swift, replicas: list[int]) -> None:
        """Let replicas list only a shard of the empty container."""
        for replica in replicas:
            swift.lose_account(HIDDEN, replica)
        swift.update_account(HIDDEN, backing(swift, 0, 'd'))

    @pytest.mark.parametrize('replicas', [[0], [0, 1], [1, 2]])
    def test_is_refused_if_only_some_list_the_rows(
        self, swift, filter_app, replicas
    ):
        self.only_d(swift, replicas)
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 409

    def test_is_refused_if_only_some_list_the_rows_beyond_the_first_page(
        self, swift, filter_app, monkeypatch
    ):
        monkeypatch.setattr(accounts, 'account_page', lambda: 1)
        self.only_d(swift, [0])
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 409

    def test_is_refused_if_one_does_not_answer(self, swift, filter_app):
        swift.servers.away = {'d0'}
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 409

    def test_is_a_503_if_most_do_not_answer(self, swift, filter_app):
        swift.servers.away = {'d0', 'd1'}
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 503
        assert swift.sent('DELETE') == []

    @pytest.mark.parametrize('name', ['c', 'd'])
    def test_is_a_503_if_most_databases_of_a_shard_are_lost(
        self, swift, filter_app, name
    ):
        swift.direct('DELETE', f'/{HIDDEN}/{shard_for(swift, "o")}/o')
        for replica in (1, 2):
            swift.lose(HIDDEN, backing(swift, 1, name), replica)
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 503
        assert swift.sent('DELETE') == []

    def test_is_a_503_if_two_are_lost_and_one_does_not_answer(
        self, swift, filter_app
    ):
        for replica in (0, 1):
            swift.lose_account(HIDDEN, replica)
        swift.servers.away = {'d2'}
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 503
        assert swift.sent('DELETE') == []


class TestDeleteWithoutAnAnswerOfTheHiddenAccount(_WithReplicas):
    """The register shows if the account may have a hidden account."""

    @pytest.fixture
    def filter_app(self, swift):
        swift.servers.broken = {f'/{HIDDEN}'}
        return filtered(swift)

    def is_registered_at(self, swift, replicas: list[int]) -> None:
        """Let replicas of the register list the account."""
        swift.put_container(f'/{REGISTER}/{ACCOUNT}', replicas=replicas)

    def test_of_an_account_that_is_not_registered_is_left_to_the_app(
        self, swift, filter_app
    ):
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 204
        assert swift.sent('DELETE')[0] == ('DELETE', PATH)

    @pytest.mark.parametrize('replicas', [[0], [1, 2], [0, 1, 2]])
    def test_of_an_account_that_any_replica_has_registered_is_a_503(
        self, swift, filter_app, replicas
    ):
        self.is_registered_at(swift, replicas)
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 503
        assert swift.sent('DELETE') == []

    def test_of_an_account_that_a_silent_replica_may_have_registered_is_a_503(
        self, swift, filter_app
    ):
        swift.servers.away = {'d0'}
        resp = swift.send(filter_app, 'DELETE', PATH, env=OWNER)
        assert resp.status_int == 503
        assert swift.sent('DELETE') == []


@pytest.mark.parametrize('method', ['PUT', 'POST', 'OPTIONS'])
def test_other_methods_are_left_to_the_app(swift, method):
    swift.send(filtered(swift), method, PATH)
    assert swift.sent() == [(method, PATH)]


def test_bases_of_long_names_begin_alike():
    assert backing_base(LONG)[:100] == backing_base(LONG_TOO)[:100]
