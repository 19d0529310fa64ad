# SPDX-License-Identifier: Apache-2.0
"""How containers are created, changed and deleted, and what may go wrong.

Roots and backing containers are databases of Swift's own container servers.
"""

import dataclasses
import time

import pytest
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT,
    ObjectVersioningMiddleware,
)
from swift.common.swob import HTTPForbidden
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend import roots
from shardmw.backend.containers import (
    LOGICAL_HEADER,
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
)
from shardmw.backend.roots import RootState, read_root
from shardmw.core.layout import Layout, time_of_id
from shardmw.core.placement import (
    REGISTER,
    backing_container,
    parse_backing,
    shard_of,
    versions_container,
)
from shardmw.proxy import container_context
from shardmw.proxy.ratelimit.rate_header import RATE_HEADER, RATE_SYSMETA
from test.unit.containers import (
    CONTAINER,
    NEW_ID,
    OLD_ID,
    backing,
    create,
    layout_of,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    POLICY_NAMES,
    RETIRED,
    FakeSwift,
    fake_swift,
    filtered,
)

VERSIONS = versions_container('c')
REGISTERED = f'/v1/{REGISTER}/'
VERSIONS_ON = {'X-Versions-Enabled': 'true'}
OWNER = {'swift.authorize': lambda _req: None, 'swift_owner': True}
DENIED = {'swift.authorize': lambda req: HTTPForbidden(request=req)}
RESELLER = {'reseller_request': True}
SYNC_TO = {'X-Container-Sync-To': 'https://elsewhere/v1/a/c'}


@pytest.fixture
def filter_app(swift):
    return filtered(swift)


def put(swift, filter_app, shards=None, path=CONTAINER, env=None, **headers):
    """Send a PUT of a container, with or without a shard count."""
    headers = {
        name.replace('_', '-'): value for name, value in headers.items()
    }
    if shards is not None:
        headers[SHARD_COUNT_HEADER] = str(shards)
    return swift.send(filter_app, 'PUT', path, headers, env)


def shards_in(swift: FakeSwift, name: str = 'c') -> list[str]:
    """Return the backing containers of a container in the hidden account."""
    return [
        container
        for container in swift.containers(HIDDEN)
        if parse_backing(container).base == name
    ]


def puts_of_containers(swift: FakeSwift) -> list[str]:
    """Return the paths of the PUTs of roots and backing containers."""
    paths = [path for _, path in swift.sent('PUT')]
    return [path for path in paths if not path.startswith(REGISTERED)]


def all_backing(layout: Layout, name: str = 'c') -> list:
    """Return the names of all backing containers of a layout."""
    return [
        backing_container(name, layout.id, shard)
        for shard in range(layout.shards)
    ]


class TestCreate:
    def test_puts_the_shards_before_the_root(self, swift, filter_app):
        assert put(swift, filter_app, 4).status_int == 201
        layout = layout_of(swift)
        assert layout.shards == 4
        puts = puts_of_containers(swift)
        shards = [f'/v1/{HIDDEN}/{name}' for name in all_backing(layout)]
        assert puts[0] == shards[0]
        assert sorted(puts[:-1]) == shards
        assert puts[-1] == CONTAINER

    def test_draws_an_id_of_its_time(self, swift, filter_app):
        before = time.time()
        put(swift, filter_app, 1)
        drawn = time_of_id(layout_of(swift).id)
        assert before - 0.001 < drawn < time.time()

    def test_lists_root_and_shards_in_their_accounts(self, swift, filter_app):
        put(swift, filter_app, 3)
        assert swift.containers(ACCOUNT) == ['c']
        assert shards_in(swift) == all_backing(layout_of(swift))

    def test_gives_root_and_shards_one_policy(self, swift, filter_app):
        put(swift, filter_app, 2, X_Storage_Policy='silver')
        places = [(ACCOUNT, 'c'), *((HIDDEN, s) for s in shards_in(swift))]
        for place in places:
            assert swift.broker(*place).storage_policy_index == 1

    def test_keeps_the_metadata_in_the_root(self, swift, filter_app):
        put(swift, filter_app, 1, X_Container_Meta_Color='blue')
        metadata = swift.broker(ACCOUNT, 'c').metadata
        assert metadata['X-Container-Meta-Color'][0] == 'blue'
        shard = swift.broker(HIDDEN, backing(swift, 0))
        assert list(shard.metadata) == [LOGICAL_HEADER.title()]

    def test_without_a_count_makes_a_plain_container(self, swift, filter_app):
        assert put(swift, filter_app).status_int == 201
        assert swift.sent('PUT') == [('PUT', CONTAINER)]
        assert RECORD_HEADER.title() not in swift.broker(ACCOUNT, 'c').metadata

    @pytest.mark.parametrize(
        'conf',
        [{'default_shards': '3'}, {'shard_rules': f'{ACCOUNT}/*=3'}],
        ids=['default', 'rule'],
    )
    def test_without_a_count_follows_the_operators_options(self, swift, conf):
        put(swift, filtered(swift, **conf))
        assert layout_of(swift).shards == 3

    def test_with_a_count_overrides_the_operators_options(self, swift):
        put(swift, filtered(swift, default_shards='3'), 2)
        assert layout_of(swift).shards == 2

    def test_charges_the_shards_to_the_account(self, swift, filter_app):
        charged = []
        rate = filter_app._parts.containers._handlers[
            'PUT'
        ].__self__.tools.account_rate
        rate.charge_create = lambda *args: charged.append(args[1:])
        put(swift, filter_app, 3)
        assert charged == [(ACCOUNT, 3)]

    def test_leaves_late_rows_of_an_earlier_container_where_they_are(
        self, swift, filter_app
    ):
        late = backing_container('c', OLD_ID, 0)
        swift.put_container(f'/{HIDDEN}/{late}')
        swift.put_row(f'/{HIDDEN}/{late}/o')
        swift.update_accounts()
        swift.put_container(f'/{ACCOUNT}/c')
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        assert put(swift, filter_app, 1).status_int == 201
        assert swift.rows(HIDDEN, late) == {'o': 1}
        assert swift.rows(HIDDEN, backing(swift, 0)) == {}

    def test_with_a_write_rate_of_its_own_records_it(self, swift, filter_app):
        headers = {RATE_HEADER: '5', SHARD_COUNT_HEADER: '2'}
        swift.send(filter_app, 'PUT', CONTAINER, headers, RESELLER)
        metadata = swift.broker(ACCOUNT, 'c').metadata
        assert metadata[RATE_SYSMETA.title()][0] == '5'

    def test_after_a_deletion_by_a_clock_that_is_ahead_draws_a_later_id(
        self, swift, filter_app
    ):
        deleted = time.time() + 0.05
        swift.put_container(f'/{ACCOUNT}/c')
        headers = {'X-Timestamp': f'{deleted:.5f}'}
        swift.direct('DELETE', f'/{ACCOUNT}/c', headers)
        # As if the creation of the shards took this long.
        swift.before('PUT', CONTAINER, lambda: time.sleep(0.05))
        assert put(swift, filter_app, 1).status_int == 201
        assert time_of_id(layout_of(swift).id) > deleted
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '1'


class TestCountThatIsRefused:
    @pytest.mark.parametrize(
        'text',
        [
            '0',
            '1025',
            '-1',
            '+4',
            '1.5',
            '',
            ' ',
            'four',
            '٣',
            '²',
            '1e1',
            '1' * 10,
        ],
    )
    def test_is_reported_with_what_is_allowed(self, swift, filter_app, text):
        resp = put(swift, filter_app, text)
        assert resp.status_int == 400
        assert resp.body == (
            b'X-Container-Shard-Count must be a number from 1 to 64'
        )
        assert swift.sent('PUT') == []
        assert not swift.exists(ACCOUNT, 'c')

    def test_is_above_what_clients_may_ask_for(self, swift):
        filter_app = filtered(swift, client_max_shards='2')
        assert put(swift, filter_app, 3).status_int == 400
        assert put(swift, filter_app, 2).status_int == 201

    def test_of_a_reseller_admin_is_above_the_maximum(self, swift):
        conf = {'client_max_shards': '2', 'max_shards': '3'}
        filter_app = filtered(swift, **conf)
        resp = put(swift, filter_app, 4, env=RESELLER)
        assert resp.body.endswith(b'from 1 to 3')
        assert put(swift, filter_app, 3, env=RESELLER).status_int == 201

    def test_is_any_if_clients_may_ask_for_none(self, swift):
        filter_app = filtered(swift, client_max_shards='0')
        resp = put(swift, filter_app, 1)
        assert resp.status_int == 400
        assert resp.body == (
            b'X-Container-Shard-Count is not allowed in this cluster'
        )
        assert put(swift, filter_app, 1, env=RESELLER).status_int == 201

    def test_is_any_if_no_container_may_be_sharded(self, swift):
        filter_app = filtered(swift, max_shards='0')
        assert put(swift, filter_app, 1, env=RESELLER).status_int == 400
        assert put(swift, filter_app).status_int == 201


class TestMaxShards0:
    def test_leaves_versions_of_sharded_containers_plain(self, swift):
        create(swift, filtered(swift), 2)
        filter_app = filtered(swift, max_shards='0')
        versioning = ObjectVersioningMiddleware(filter_app, {})
        swift.send(versioning, 'POST', CONTAINER, VERSIONS_ON)
        assert swift.exists(ACCOUNT, VERSIONS)
        assert shards_in(swift, VERSIONS) == []

    def test_keeps_sharded_containers_as_they_are(self, swift):
        create(swift, filtered(swift), 2)
        resp = put(swift, filtered(swift, max_shards='0'))
        assert resp.status_int == 202
        assert layout_of(swift).shards == 2


class TestPutOfAnExistingContainer:
    @pytest.fixture(autouse=True)
    def sharded(self, swift, filter_app) -> Layout:
        create(swift, filter_app, 2)
        return layout_of(swift)

    def test_keeps_its_layout(self, swift, filter_app, sharded):
        resp = put(swift, filter_app, X_Container_Meta_Color='blue')
        assert resp.status_int == 202
        assert layout_of(swift) == sharded
        metadata = swift.broker(ACCOUNT, 'c').metadata
        assert metadata['X-Container-Meta-Color'][0] == 'blue'

    def test_with_the_same_count_is_accepted(self, swift, filter_app, sharded):
        assert put(swift, filter_app, 2).status_int == 202
        assert layout_of(swift) == sharded

    def test_with_the_same_count_is_accepted_whatever_clients_may_ask_for(
        self, swift
    ):
        filter_app = filtered(swift, client_max_shards='1')
        assert put(swift, filter_app, 2).status_int == 202
        headers = {SHARD_COUNT_HEADER: '2'}
        resp = swift.send(filter_app, 'POST', CONTAINER, headers)
        assert resp.status_int == 204

    def test_with_another_count_is_refused(self, swift, filter_app, sharded):
        resp = put(swift, filter_app, 3)
        assert resp.status_int == 409
        assert resp.body.startswith(b'This container has 2 shards;')
        assert ('PUT', CONTAINER) not in swift.sent()
        assert layout_of(swift) == sharded

    def test_with_a_count_is_refused_for_a_plain_one(self, swift, filter_app):
        put(swift, filter_app, path=f'/v1/{ACCOUNT}/plain')
        resp = put(swift, filter_app, 2, path=f'/v1/{ACCOUNT}/plain')
        assert resp.status_int == 409
        assert resp.body.startswith(b'This container is not sharded;')

    def test_with_an_invalid_count_is_a_bad_request(self, swift, filter_app):
        assert put(swift, filter_app, 0).status_int == 400

    def test_with_a_count_ignores_the_operators_default(self, swift, sharded):
        filter_app = filtered(swift, default_shards='7')
        assert put(swift, filter_app).status_int == 202
        assert layout_of(swift) == sharded

    def test_asks_its_replicas_not_the_cache(self, swift, filter_app):
        swift.send(filter_app, 'HEAD', CONTAINER)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        assert put(swift, filter_app, 3).status_int == 201
        assert layout_of(swift).shards == 3


class TestRootWithoutDatabase:
    """No replica has a database: disks are new, or the ring has changed."""

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        put_sharded_row(replicated, 'o')
        replicated.update_accounts()
        self.lose(replicated)
        return filter_app

    def lose(self, replicated) -> None:
        for replica in range(3):
            replicated.lose(ACCOUNT, 'c', replica)

    def exists(self, replicated) -> bool:
        return any(replicated.exists(ACCOUNT, 'c', i) for i in range(3))

    @pytest.mark.parametrize('shards', [None, 2, 3])
    def test_and_shards_with_rows_are_a_503_for_a_put(
        self, replicated, filter_app, shards
    ):
        replicated.memcached.values.clear()
        assert put(replicated, filter_app, shards).status_int == 503
        assert not self.exists(replicated)
        (line,) = filter_app._logger.lines
        assert 'no replica of the root has a database, but shard c.' in line

    def test_and_rows_that_the_account_does_not_count_yet_are_a_503(
        self, replicated
    ):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        put_sharded_row(replicated, 'o')
        self.lose(replicated)
        assert put(replicated, filter_app).status_int == 503

    def test_is_put_if_its_shards_have_no_rows(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        self.lose(replicated)
        assert put(replicated, filter_app, 2).status_int == 201

    def test_is_put_if_most_replicas_say_deleted(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        put_sharded_row(replicated, 'o')
        replicated.update_accounts()
        replicated.direct('DELETE', f'/{ACCOUNT}/c')
        replicated.lose(ACCOUNT, 'c', 2)
        assert put(replicated, filter_app).status_int == 201

    def test_is_a_404_for_a_delete_that_changes_nothing(
        self, replicated, filter_app
    ):
        shards = shards_in(replicated)
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 404
        assert all(replicated.exists(HIDDEN, name) for name in shards)

    def test_and_a_silent_replica_are_a_503_for_a_delete(self, replicated):
        """The silent replica may be of a sharded root, which has no rows."""
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        for replica in (0, 1):
            replicated.lose(ACCOUNT, 'c', replica)
        replicated.servers.away = {'d2'}
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert ('DELETE', CONTAINER) not in replicated.sent()
        assert len(shards_in(replicated)) == 2

    def test_and_a_silent_replica_are_a_404_for_the_delete_of_a_plain_one(
        self, replicated
    ):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2, name='other')
        replicated.servers.away = {'d2'}
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 404


class TestMissingShard:
    @pytest.fixture
    def missing(self, swift, filter_app) -> str:
        create(swift, filter_app, 3)
        name = backing(swift, 1)
        swift.lose(HIDDEN, name, 0)
        return name

    @pytest.mark.parametrize('shards', [None, 3])
    def test_is_not_put_by_a_put(self, swift, filter_app, missing, shards):
        """A new shard would be empty, and hide the loss of rows."""
        assert put(swift, filter_app, shards).status_int == 202
        assert not swift.exists(HIDDEN, missing)

    def test_is_a_503_for_a_delete(self, swift, filter_app, missing):
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert ('DELETE', CONTAINER) not in swift.sent()
        (line,) = filter_app._logger.lines
        assert f'the replicas of {HIDDEN}/{missing} do not prove' in line

    def test_that_was_deleted_is_a_503_for_a_delete(self, swift, filter_app):
        create(swift, filter_app, 3)
        swift.direct('DELETE', f'/{HIDDEN}/{backing(swift, 1)}')
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503


class TestCreateThatSwiftRefuses:
    def test_by_policy_leaves_nothing(self, swift, filter_app):
        resp = put(swift, filter_app, 3, X_Storage_Policy='unknown')
        assert resp.status_int == 400
        assert b'Invalid X-Storage-Policy' in resp.body
        assert shards_in(swift) == []
        assert len(puts_of_containers(swift)) == 1

    def test_by_deprecated_policy_leaves_nothing(self, swift, filter_app):
        name = POLICY_NAMES[RETIRED]
        resp = put(swift, filter_app, 3, X_Storage_Policy=name)
        assert resp.status_int == 400
        assert shards_in(swift) == []

    def test_by_authorization_leaves_nothing(self, swift, filter_app):
        resp = put(swift, filter_app, 3, env=DENIED)
        assert resp.status_int == 403
        assert swift.sent() == [('PUT', CONTAINER)]

    def test_by_the_length_of_the_name_leaves_nothing(self, swift, filter_app):
        path = f'/v1/{ACCOUNT}/{"x" * 257}'
        assert put(swift, filter_app, 3, path=path).status_int == 400
        assert swift.sent() == [('PUT', path)]

    def test_by_the_account_makes_no_root(self):
        with fake_swift(account_autocreate='false') as swift:
            path = '/v1/AUTH_missing/c'
            resp = put(swift, filtered(swift), 2, path=path)
            assert resp.status_int == 404
            assert not swift.exists('AUTH_missing', 'c')

    def test_without_account_autocreate_succeeds_in_an_existing_account(self):
        with fake_swift(account_autocreate='false') as swift:
            filter_app = filtered(swift)
            swift.put_account(ACCOUNT)
            assert put(swift, filter_app, 2).status_int == 201
            assert len(shards_in(swift)) == 2

    def test_by_metadata_makes_no_root(self, swift, filter_app):
        name = {'X-Container-Meta-' + 'x' * 200: 'v', SHARD_COUNT_HEADER: '2'}
        resp = swift.send(filter_app, 'PUT', CONTAINER, name)
        assert resp.status_int == 400
        assert not swift.exists(ACCOUNT, 'c')


class TestCreateThatFails:
    """It may fail at each request; clients see nothing of what was made."""

    @pytest.fixture(autouse=True)
    def fixed_id(self, monkeypatch) -> Layout:
        monkeypatch.setattr(
            container_context, 'id_of_time', lambda _seconds: NEW_ID
        )
        return Layout(NEW_ID, 3)

    @pytest.mark.parametrize('shard', [0, 1, 2])
    def test_at_a_shard_is_a_503(self, swift, filter_app, fixed_id, shard):
        name = backing_container('c', NEW_ID, shard)
        swift.register('PUT', f'/v1/{HIDDEN}/{name}', 503)
        assert put(swift, filter_app, 3).status_int == 503
        assert ('PUT', CONTAINER) not in swift.sent()
        assert swift.send(filter_app, 'HEAD', CONTAINER).status_int == 404

    def test_at_a_shard_is_logged(self, swift, filter_app):
        name = backing_container('c', NEW_ID, 1)
        swift.register('PUT', f'/v1/{HIDDEN}/{name}', 507)
        put(swift, filter_app, 3)
        assert filter_app._logger.lines == [
            'shardmw: 503 for PUT /v1/AUTH_test/c: backing: '
            'shard 1 answered 507'
        ]

    def test_at_the_first_shard_asks_no_other(self, swift, filter_app):
        name = backing_container('c', NEW_ID, 0)
        swift.register('PUT', f'/v1/{HIDDEN}/{name}', 503)
        put(swift, filter_app, 3)
        assert len(puts_of_containers(swift)) == 1

    def test_at_a_shard_with_a_4xx_gives_that_answer(
        self, swift, filter_app, fixed_id
    ):
        name = backing_container('c', NEW_ID, 1)
        swift.register('PUT', f'/v1/{HIDDEN}/{name}', 403, body=b'Quota')
        resp = put(swift, filter_app, 3)
        assert (resp.status_int, resp.body) == (403, b'Quota')

    def test_at_the_root_is_a_503_and_keeps_the_shards(
        self, swift, filter_app, fixed_id
    ):
        swift.register('PUT', CONTAINER, 503)
        assert put(swift, filter_app, 3).status_int == 503
        assert shards_in(swift) == all_backing(fixed_id)

    def test_at_the_root_with_a_4xx_gives_that_answer(self, swift, filter_app):
        swift.register('PUT', CONTAINER, 403)
        assert put(swift, filter_app, 3).status_int == 403

    @pytest.mark.parametrize('status', [403, 503])
    def test_deletes_no_shards(self, swift, filter_app, fixed_id, status):
        """The daemon deletes them: another request may have created them."""
        swift.register('PUT', CONTAINER, status)
        put(swift, filter_app, 3)
        assert shards_in(swift) == all_backing(fixed_id)
        assert swift.sent('DELETE') == []

    @pytest.mark.parametrize('place', ['shard', 'root'])
    def test_is_completed_by_the_same_request(
        self, swift, filter_app, monkeypatch, place
    ):
        name = backing_container('c', NEW_ID, 1)
        path = f'/v1/{HIDDEN}/{name}' if place == 'shard' else CONTAINER
        swift.register('PUT', path, 503)
        assert put(swift, filter_app, 3).status_int == 503
        swift.unregister('PUT', path)
        monkeypatch.undo()
        assert put(swift, filter_app, 3).status_int == 201
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '3'

    def test_before_the_root_is_known_to_be_missing_puts_nothing(
        self, replicated
    ):
        replicated.servers.away = {'d0', 'd1'}
        filter_app = filtered(replicated)
        assert put(replicated, filter_app, 2).status_int == 503
        assert replicated.sent('PUT') == []


class TestRace:
    """Another request changes the root while the shards are created."""

    def race(self, swift, event) -> None:
        """Call a function when the first shard is created."""
        swift.before_any('PUT', f'/v1/{HIDDEN}/c.', event)

    def test_with_a_plain_create_is_refused(self, swift, filter_app):
        self.race(swift, lambda: swift.put_container(f'/{ACCOUNT}/c'))
        resp = put(swift, filter_app, 2)
        assert resp.status_int == 409
        assert resp.body.startswith(b'This container is not sharded;')
        assert RECORD_HEADER.title() not in swift.broker(ACCOUNT, 'c').metadata

    def test_leaves_the_shards_of_the_slower_one_to_the_daemon(
        self, swift, filter_app
    ):
        self.race(swift, lambda: swift.put_container(f'/{ACCOUNT}/c'))
        put(swift, filter_app, 2)
        assert len(shards_in(swift)) == 2
        assert swift.sent('DELETE') == []

    def test_with_a_create_of_another_count_is_refused(
        self, swift, filter_app
    ):
        other = filtered(swift)
        self.race(swift, lambda: put(swift, other, 3))
        resp = put(swift, filter_app, 2)
        assert resp.status_int == 409
        assert resp.body.startswith(b'This container has 3 shards;')
        assert {*shards_in(swift)} >= {*all_backing(layout_of(swift))}

    def test_with_a_create_of_the_same_count_is_accepted(
        self, swift, filter_app
    ):
        other = filtered(swift)
        self.race(swift, lambda: put(swift, other, 2))
        assert put(swift, filter_app, 2).status_int == 202
        assert {*shards_in(swift)} >= {*all_backing(layout_of(swift))}

    def test_of_a_default_count_keeps_the_plain_container_that_was_faster(
        self, swift
    ):
        filter_app = filtered(swift, default_shards='2')
        self.race(swift, lambda: swift.put_container(f'/{ACCOUNT}/c'))
        assert put(swift, filter_app).status_int == 202
        assert RECORD_HEADER.title() not in swift.broker(ACCOUNT, 'c').metadata

    def test_with_a_create_and_a_delete_creates_anew(self, swift, filter_app):
        def create_and_delete():
            swift.put_container(f'/{ACCOUNT}/c')
            swift.direct('DELETE', f'/{ACCOUNT}/c')

        self.race(swift, create_and_delete)
        assert put(swift, filter_app, 2).status_int == 201
        assert {*shards_in(swift)} >= {*all_backing(layout_of(swift))}
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '2'

    def test_of_a_put_with_a_delete_creates_what_was_asked_for(
        self, swift, filter_app
    ):
        put(swift, filter_app, 2)
        former = layout_of(swift)
        other = filtered(swift)
        swift.before(
            'PUT',
            CONTAINER,
            lambda: swift.send(other, 'DELETE', CONTAINER),
        )
        resp = put(swift, filter_app, 2, X_Container_Meta_Color='red')
        assert resp.status_int == 201
        assert layout_of(swift).id > former.id
        assert {*shards_in(swift)} >= {*all_backing(layout_of(swift))}
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '2'
        assert resp.headers['X-Container-Meta-Color'] == 'red'

    def test_of_a_slow_delete_with_a_recreation_deletes_nothing(
        self, swift, filter_app
    ):
        put(swift, filter_app, 2)
        other = filtered(swift)

        def recreate():
            swift.memcached.values.clear()  # the lock has expired
            assert swift.send(other, 'DELETE', CONTAINER).status_int == 204
            assert put(swift, other, 2).status_int == 201
            put_sharded_row(swift, 'o')

        swift.servers.before(f'/{HIDDEN}/{backing(swift, 1)}', recreate)
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert shards_in(swift) == all_backing(layout_of(swift))
        resp = swift.send(filter_app, 'GET', CONTAINER)
        assert b'"name": "o"' in resp.body


class TestRecordOnTooFewReplicas:
    """Swift acknowledges a PUT that handoffs have accepted."""

    @pytest.fixture
    def filter_app(self, replicated):
        return filtered(replicated)

    def test_is_a_503_for_the_create(
        self, replicated, filter_app, monkeypatch
    ):
        def one_holder(*args, **kwargs) -> RootState:
            state = read_root(*args, **kwargs)
            return dataclasses.replace(state, holders=1)

        monkeypatch.setattr(container_context, 'read_root', one_holder)
        assert put(replicated, filter_app, 2).status_int == 503
        assert len(shards_in(replicated)) == 2

    @pytest.fixture
    def layout(self, replicated, filter_app) -> Layout:
        """Return the layout of a root with one replica of three left."""
        put(replicated, filter_app, 2, X_Storage_Policy='silver')
        for replica in (1, 2):
            replicated.lose(ACCOUNT, 'c', replica)
        return layout_of(replicated)

    def policies(self, swift) -> list[int]:
        """Return the storage policies of the root's replicas."""
        brokers = [swift.broker(ACCOUNT, 'c', i) for i in range(3)]
        return [broker.storage_policy_index for broker in brokers]

    def test_is_mended_by_the_next_put(self, replicated, filter_app, layout):
        resp = put(replicated, filter_app, 2)
        assert resp.status_int == 202
        for replica in range(3):
            assert layout_of(replicated, replica=replica) == layout

    def test_is_mended_in_the_policy_of_the_root(
        self, replicated, filter_app, layout
    ):
        put(replicated, filter_app)
        assert self.policies(replicated) == [1, 1, 1]

    def test_is_mended_in_a_policy_that_is_deprecated_by_now(
        self, replicated, filter_app
    ):
        headers = {
            'X-Backend-Storage-Policy-Index': str(RETIRED),
            RECORD_HEADER: Layout(NEW_ID, 2).to_record(),
        }
        replicated.put_container(f'/{ACCOUNT}/c', headers, replicas=[1])
        assert put(replicated, filter_app).status_int == 202
        assert self.policies(replicated) == [RETIRED] * 3

    def test_and_a_put_that_asks_for_another_policy_are_a_conflict(
        self, replicated, filter_app, layout
    ):
        resp = put(replicated, filter_app, X_Storage_Policy='gold')
        assert resp.status_int == 409
        assert self.policies(replicated) == [1, 1, 1]

    def test_is_a_503_while_too_few_replicas_take_it(
        self, replicated, filter_app, layout
    ):
        away = replicated.servers.away
        replicated.before('PUT', CONTAINER, lambda: away.update({'d1', 'd2'}))
        assert put(replicated, filter_app).status_int == 503


class TestPutWithAReplicaThatLacksTheContainer:
    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        put(replicated, filter_app, 2, X_Storage_Policy='silver')
        replicated.lose(ACCOUNT, 'c', 0)
        return filter_app

    def test_gives_it_the_record_and_the_policy(self, replicated, filter_app):
        assert put(replicated, filter_app).status_int == 202
        layout = layout_of(replicated, replica=1)
        assert layout_of(replicated, replica=0) == layout
        broker = replicated.broker(ACCOUNT, 'c', 0)
        assert broker.storage_policy_index == 1

    def test_lets_workers_list_it_that_do_not_know_the_container(
        self, replicated, filter_app
    ):
        layout = layout_of(replicated, replica=1)
        shard = backing_container('c', layout.id, shard_of('o', 2))
        replicated.put_row(f'/{HIDDEN}/{shard}/o', policy_index=1)
        put(replicated, filter_app)
        resp = replicated.send(filtered(replicated), 'GET', CONTAINER)
        assert b'"name": "o"' in resp.body

    def test_leaves_a_record_that_is_written_meanwhile(
        self, replicated, filter_app
    ):
        record = layout_of(replicated, replica=1)
        later = record.announced(3, time.time() + 1)
        at = Timestamp(time_of_id(later.serial)).internal
        headers = {RECORD_HEADER: later.to_record(), 'X-Timestamp': at}

        def change():
            replicated.direct('POST', f'/{ACCOUNT}/c', headers)

        replicated.before('PUT', CONTAINER, change)
        assert put(replicated, filter_app).status_int == 503
        assert put(replicated, filter_app).status_int == 202
        for replica in range(3):
            assert layout_of(replicated, replica=replica) == later

    def test_leaves_it_deleted_if_it_is_deleted_meanwhile(
        self, replicated, filter_app
    ):
        def delete():
            replicated.direct('DELETE', f'/{ACCOUNT}/c')

        replicated.before('PUT', CONTAINER, delete)
        assert put(replicated, filter_app, 2).status_int == 503
        resp = replicated.send(filtered(replicated), 'GET', CONTAINER)
        assert resp.status_int == 404
        assert put(replicated, filter_app, 2).status_int == 201


class TestLock:
    KEY = f'shardmw/lifecycle/{ACCOUNT}/c'

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(container_context, 'LOCK_SECONDS', 0.01)

    def held(self, swift) -> int | None:
        return swift.memcached.get(self.KEY)

    def test_is_released(self, swift, filter_app):
        put(swift, filter_app, 1)
        assert self.held(swift) is None
        swift.send(filter_app, 'DELETE', CONTAINER)
        assert self.held(swift) is None

    def test_that_another_proxy_holds_is_a_503(self, swift, filter_app):
        create(swift, filter_app, 1)
        swift.memcached.set(self.KEY, 1)
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert swift.exists(ACCOUNT, 'c')

    def test_is_held_while_the_root_is_put(self, swift, filter_app):
        held = []
        swift.before('PUT', CONTAINER, lambda: held.append(self.held(swift)))
        put(swift, filter_app, 1)
        assert held == [1]

    def test_is_not_held_while_shards_are_put(self, swift, filter_app):
        held = []
        swift.before_any(
            'PUT',
            f'/v1/{HIDDEN}/c.',
            lambda: held.append(self.held(swift)),
        )
        put(swift, filter_app, 1)
        assert held == [None]

    def test_of_a_plain_create_is_not_needed(self, swift, filter_app):
        swift.memcached.set(self.KEY, 1)
        assert put(swift, filter_app).status_int == 201


class TestVersions:
    """Containers of old versions, which object versioning creates."""

    PATH = f'/v1/{ACCOUNT}/{VERSIONS}'

    @pytest.fixture
    def versioning(self, filter_app) -> ObjectVersioningMiddleware:
        return ObjectVersioningMiddleware(filter_app, {})

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_are_sharded_like_their_owner(
        self, swift, filter_app, versioning, method
    ):
        create(swift, filter_app, 3)
        resp = swift.send(versioning, method, CONTAINER, VERSIONS_ON)
        assert resp.is_success
        layout = layout_of(swift, VERSIONS)
        assert layout.shards == 3
        assert shards_in(swift, VERSIONS) == all_backing(layout, VERSIONS)

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_are_not_sharded_for_a_client_that_is_denied(
        self, swift, filter_app, versioning, method
    ):
        create(swift, filter_app, 3)
        before = len(swift.sent())
        resp = swift.send(versioning, method, CONTAINER, VERSIONS_ON, DENIED)
        assert resp.status_int == 403
        sent = [path for _, path in swift.sent()[before:]]
        shards = f'/v1/{HIDDEN}/'
        assert not any(path.startswith(shards) for path in sent)
        assert not swift.exists(ACCOUNT, VERSIONS)

    def test_are_charged_to_the_account(self, swift, filter_app, versioning):
        create(swift, filter_app, 3)
        charged = []
        rate = filter_app._parts.containers._handlers[
            'PUT'
        ].__self__.tools.account_rate
        rate.charge_create = lambda *args: charged.append(args[1:])
        swift.send(versioning, 'POST', CONTAINER, VERSIONS_ON)
        assert charged == [(ACCOUNT, 3)]

    def test_that_exist_and_have_rows_stay_plain(
        self, swift, filter_app, versioning
    ):
        create(swift, filter_app, 3)
        swift.put_container(f'/{ACCOUNT}/{VERSIONS}')
        swift.put_row(f'/{ACCOUNT}/{VERSIONS}/\0o\x001')
        resp = swift.send(versioning, 'POST', CONTAINER, VERSIONS_ON)
        assert resp.status_int == 204
        assert shards_in(swift, VERSIONS) == []

    def test_of_a_plain_owner_are_plain(self, swift):
        filter_app = filtered(swift, default_shards='2')
        swift.put_container(f'/{ACCOUNT}/c')
        versioning = ObjectVersioningMiddleware(filter_app, {})
        resp = swift.send(versioning, 'POST', CONTAINER, VERSIONS_ON)
        assert resp.status_int == 204
        assert swift.exists(ACCOUNT, VERSIONS)
        assert shards_in(swift, VERSIONS) == []

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_that_cannot_be_sharded_are_not_turned_on(
        self, swift, filter_app, versioning, method, monkeypatch
    ):
        create(swift, filter_app, 2)
        monkeypatch.setattr(
            container_context, 'id_of_time', lambda _seconds: NEW_ID
        )
        shard = backing_container(VERSIONS, NEW_ID, 1)
        swift.register('PUT', f'/v1/{HIDDEN}/{shard}', 503)
        resp = swift.send(versioning, method, CONTAINER, VERSIONS_ON)
        assert resp.status_int == 503
        name = SYSMETA_VERSIONS_CONT.title()
        assert name not in swift.broker(ACCOUNT, 'c').metadata
        assert not swift.exists(ACCOUNT, VERSIONS)

    def test_that_clients_name_are_left_to_swift(self, swift, filter_app):
        resp = swift.send(filter_app, 'PUT', self.PATH)
        assert resp.status_int == 412
        assert swift.sent() == [('PUT', self.PATH)]

    def test_that_exist_are_sharded_when_their_owner_is_created(
        self, swift, filter_app
    ):
        swift.put_container(f'/{ACCOUNT}/{VERSIONS}')
        headers = {
            SHARD_COUNT_HEADER: '2',
            SYSMETA_VERSIONS_CONT: '%00versions%00c',
        }
        resp = swift.send(filter_app, 'PUT', CONTAINER, headers)
        assert resp.status_int == 201
        assert layout_of(swift, VERSIONS) == layout_of(swift)
        assert len(shards_in(swift, VERSIONS)) == 2

    def test_that_are_sharded_stay_as_they_are(self, swift, filter_app):
        record = {RECORD_HEADER: Layout(NEW_ID, 3).to_record()}
        swift.put_container(f'/{ACCOUNT}/{VERSIONS}', record)
        headers = {
            SHARD_COUNT_HEADER: '2',
            SYSMETA_VERSIONS_CONT: '%00versions%00c',
        }
        resp = swift.send(filter_app, 'PUT', CONTAINER, headers)
        assert resp.status_int == 201
        assert layout_of(swift, VERSIONS) == Layout(NEW_ID, 3)

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_that_cannot_be_sharded_stop_the_creation_of_their_owner(
        self, swift, filter_app, method, monkeypatch
    ):
        monkeypatch.setattr(
            container_context, 'id_of_time', lambda _seconds: NEW_ID
        )
        swift.put_container(f'/{ACCOUNT}/{VERSIONS}')
        shard = backing_container(VERSIONS, NEW_ID, 1)
        paths = {'PUT': f'/v1/{HIDDEN}/{shard}', 'POST': self.PATH}
        swift.register(method, paths[method], 503)
        headers = {
            SHARD_COUNT_HEADER: '2',
            SYSMETA_VERSIONS_CONT: '%00versions%00c',
        }
        resp = swift.send(filter_app, 'PUT', CONTAINER, headers)
        assert resp.status_int == 503
        assert ('PUT', CONTAINER) not in swift.sent()


class TestPartsOfUploads:
    """S3 puts the parts of uploads into `bucket+segments`."""

    PATH = f'/v1/{ACCOUNT}/c+segments'

    def test_are_sharded_like_the_bucket(self, swift, filter_app):
        create(swift, filter_app, 3)
        put(swift, filter_app, path=self.PATH)
        assert layout_of(swift, 'c+segments').shards == 3

    def test_of_a_plain_bucket_are_plain(self, swift, filter_app):
        put(swift, filter_app)
        put(swift, filter_app, path=self.PATH)
        assert shards_in(swift, 'c+segments') == []

    def test_follow_their_own_rule(self, swift):
        create(swift, filtered(swift), 3)
        rules = f'{ACCOUNT}/*+segments=2'
        put(swift, filtered(swift, shard_rules=rules), path=self.PATH)
        assert layout_of(swift, 'c+segments').shards == 2

    def test_without_a_bucket_follow_the_rule_for_its_name(self, swift):
        rules = f'{ACCOUNT}/c=2'
        put(swift, filtered(swift, shard_rules=rules), path=self.PATH)
        assert layout_of(swift, 'c+segments').shards == 2

    def test_of_no_bucket_are_a_container_like_any(self, swift):
        filter_app = filtered(swift, default_shards='2')
        put(swift, filter_app, path=f'/v1/{ACCOUNT}/+segments')
        assert layout_of(swift, '+segments').shards == 2


class TestPost:
    @pytest.fixture(autouse=True)
    def sharded(self, swift, filter_app) -> Layout:
        create(swift, filter_app, 2)
        return layout_of(swift)

    def post(self, swift, filter_app, headers=None, env=None, path=CONTAINER):
        return swift.send(filter_app, 'POST', path, headers or {}, env)

    def test_changes_the_root_alone(self, swift, filter_app, sharded):
        headers = {'X-Container-Meta-Color': 'blue'}
        resp = self.post(swift, filter_app, headers)
        assert resp.status_int == 204
        assert swift.sent('POST') == [('POST', CONTAINER)]
        metadata = swift.broker(ACCOUNT, 'c').metadata
        assert metadata['X-Container-Meta-Color'][0] == 'blue'
        assert layout_of(swift) == sharded

    def test_with_its_count_is_accepted(self, swift, filter_app):
        headers = {SHARD_COUNT_HEADER: '2'}
        assert self.post(swift, filter_app, headers).status_int == 204

    def test_with_another_count_is_refused(self, swift, filter_app):
        headers = {SHARD_COUNT_HEADER: '3'}
        assert self.post(swift, filter_app, headers).status_int == 409
        assert swift.sent('POST') == []

    def test_with_an_invalid_count_is_refused(self, swift, filter_app):
        headers = {SHARD_COUNT_HEADER: 'x'}
        assert self.post(swift, filter_app, headers).status_int == 400

    def test_with_a_count_for_a_plain_container_is_refused(
        self, swift, filter_app
    ):
        path = f'/v1/{ACCOUNT}/plain'
        put(swift, filter_app, path=path)
        headers = {SHARD_COUNT_HEADER: '3'}
        resp = self.post(swift, filter_app, headers, path=path)
        assert resp.status_int == 409

    def test_with_a_count_for_a_missing_container_is_left_to_the_app(
        self, swift, filter_app
    ):
        headers = {SHARD_COUNT_HEADER: '3'}
        path = f'/v1/{ACCOUNT}/missing'
        resp = self.post(swift, filter_app, headers, path=path)
        assert resp.status_int == 404

    def test_can_make_a_plain_container_sync(self, swift, filter_app):
        path = f'/v1/{ACCOUNT}/plain'
        put(swift, filter_app, path=path)
        swift.register('POST', path, 204)
        resp = self.post(swift, filter_app, SYNC_TO, path=path)
        assert resp.status_int == 204

    def test_that_is_denied_asks_for_nothing(self, swift, filter_app):
        headers = {SHARD_COUNT_HEADER: '3'}
        resp = self.post(swift, filter_app, headers, DENIED)
        assert resp.status_int == 403
        assert swift.servers.asked == []

    def test_with_a_write_rate_is_for_reseller_admins(self, swift, filter_app):
        headers = {RATE_HEADER: '5'}
        assert self.post(swift, filter_app, headers).status_int == 403
        resp = self.post(swift, filter_app, headers, RESELLER)
        assert resp.status_int == 204


class TestDeleteOfASyncedContainer:
    def test_switches_off_the_sync_of_a_shard_that_stays(
        self, swift, filter_app
    ):
        headers = {
            'X_Container_Sync_To': 'http://127.0.0.1/v1/a/c',
            'X_Container_Sync_Key': 'key',
        }
        put(swift, filter_app, 2, env=OWNER, **headers)
        shard = backing(swift, 1)
        late = f'/{HIDDEN}/{shard}/late'
        swift.before(
            'DELETE', f'/v1/{HIDDEN}/{shard}', lambda: swift.put_row(late)
        )
        resp = swift.send(filter_app, 'DELETE', CONTAINER, env=OWNER)
        assert resp.status_int == 204
        metadata = swift.broker(HIDDEN, shard).metadata
        assert metadata['X-Container-Sync-To'][0] == ''


class TestDelete:
    @pytest.fixture(autouse=True)
    def sharded(self, swift, filter_app) -> Layout:
        create(swift, filter_app, 3)
        return layout_of(swift)

    def delete(self, swift, filter_app, env=None):
        return swift.send(filter_app, 'DELETE', CONTAINER, env=env)

    def is_whole(self, swift, layout) -> bool:
        """Return True if the root and all shards exist."""
        shards = all_backing(layout)
        assert swift.exists(ACCOUNT, 'c')
        return all(swift.exists(HIDDEN, shard) for shard in shards)

    def test_deletes_the_root_before_the_shards(
        self, swift, filter_app, sharded
    ):
        assert self.delete(swift, filter_app).status_int == 204
        deleted = [path for _, path in swift.sent('DELETE')]
        assert deleted[0] == CONTAINER
        assert sorted(deleted[1:]) == [
            f'/v1/{HIDDEN}/{name}' for name in all_backing(sharded)
        ]

    def test_leaves_nothing_in_the_accounts(self, swift, filter_app):
        self.delete(swift, filter_app)
        assert swift.containers(ACCOUNT) == []
        assert swift.containers(HIDDEN) == []

    @pytest.mark.parametrize('name', ['a', 'b', 'c', 'd'])
    def test_of_a_nonempty_container_is_refused_and_changes_nothing(
        self, swift, filter_app, sharded, name
    ):
        put_sharded_row(swift, name)
        assert self.delete(swift, filter_app).status_int == 409
        assert self.is_whole(swift, sharded)
        assert swift.sent('DELETE') == []

    def test_of_a_container_with_strays_is_refused(
        self, swift, filter_app, sharded
    ):
        swift.put_row(f'/{ACCOUNT}/c/o')
        assert self.delete(swift, filter_app).status_int == 409
        assert self.is_whole(swift, sharded)

    def test_with_late_rows_succeeds_and_leaves_them(self, swift, filter_app):
        """Late rows are updates that have not arrived yet, as in Swift."""
        late = backing_container('c', OLD_ID, 0)
        swift.put_container(f'/{HIDDEN}/{late}')
        swift.put_row(f'/{HIDDEN}/{late}/o')
        swift.update_accounts()
        assert self.delete(swift, filter_app).status_int == 204
        assert swift.rows(HIDDEN, late) == {'o': 1}

    def test_that_is_denied_asks_for_nothing(self, swift, filter_app, sharded):
        assert self.delete(swift, filter_app, DENIED).status_int == 403
        assert swift.servers.asked == []
        assert self.is_whole(swift, sharded)

    def test_that_fails_at_the_root_keeps_the_shards(
        self, swift, filter_app, sharded
    ):
        swift.register('DELETE', CONTAINER, 503)
        assert self.delete(swift, filter_app).status_int == 503
        assert self.is_whole(swift, sharded)

    def test_that_fails_at_a_shard_is_complete_for_the_client(
        self, swift, filter_app, sharded
    ):
        shard = backing(swift, 1)
        swift.register('DELETE', f'/v1/{HIDDEN}/{shard}', 503)
        assert self.delete(swift, filter_app).status_int == 204
        assert shards_in(swift) == [shard]
        (line,) = filter_app._logger.lines
        assert '1 of 3 shards could not be deleted, such as shard 1' in line

    def test_keeps_a_row_that_comes_meanwhile(
        self, swift, filter_app, sharded
    ):
        swift.before('DELETE', CONTAINER, lambda: put_sharded_row(swift, 'o'))
        shard = shard_for(swift, 'o')
        assert self.delete(swift, filter_app).status_int == 204
        assert shards_in(swift) == [shard]
        assert swift.rows(HIDDEN, shard) == {'o': 1}

    def test_that_was_interrupted_leaves_its_shards_to_the_daemon(
        self, swift, filter_app, sharded
    ):
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        assert self.delete(swift, filter_app).status_int == 404
        assert shards_in(swift) == all_backing(sharded)

    def test_forgets_what_is_cached(self, swift, filter_app):
        swift.send(filter_app, 'HEAD', CONTAINER)
        assert swift.memcached.get(get_cache_key(ACCOUNT, 'c'))
        self.delete(swift, filter_app)
        assert not swift.memcached.get(get_cache_key(ACCOUNT, 'c'))
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.status_int == 404

    def test_and_a_plain_create_make_the_container_plain_at_once(
        self, swift, filter_app
    ):
        swift.send(filter_app, 'PUT', f'{CONTAINER}/o')
        self.delete(swift, filter_app)
        put(swift, filter_app)
        swift.send(filter_app, 'PUT', f'{CONTAINER}/o')
        info = swift.calls[-1].infocache[get_cache_key(ACCOUNT, 'c')]
        assert info['sharding_state'] == 'unsharded'

    def test_and_create_give_the_container_other_shards(
        self, swift, filter_app, sharded
    ):
        self.delete(swift, filter_app)
        put(swift, filter_app, 3)
        anew = layout_of(swift)
        assert anew.id > sharded.id
        assert shards_in(swift) == all_backing(anew)


class TestDeleteWithASplitShard:
    """Swift's own sharder has split a shard, whose counts may be stale."""

    @pytest.fixture
    def path(self, swift, filter_app, monkeypatch) -> str:
        create(swift, filter_app, 2)
        split = backing(swift, 1)

        def heads(app, env, account, container, *args, **kwargs):
            answers = ask(app, env, account, container, *args, **kwargs)
            if container == split:
                for answer in answers:
                    answer.headers['X-Backend-Sharding-State'] = 'sharded'
            return answers

        ask = roots.ask_primaries
        monkeypatch.setattr(roots, 'ask_primaries', heads)
        return f'/v1/{HIDDEN}/{split}'

    def delete(self, swift, filter_app) -> int:
        return swift.send(filter_app, 'DELETE', CONTAINER).status_int

    def test_that_lists_an_object_is_refused(self, swift, filter_app, path):
        swift.register('GET', path, 200, body=b'[{"name": "o"}]')
        assert self.delete(swift, filter_app) == 409

    def test_that_lists_nothing_succeeds(self, swift, filter_app, path):
        swift.register('GET', path, 200, body=b'[]')
        assert self.delete(swift, filter_app) == 204

    def test_that_cannot_be_listed_is_a_503(self, swift, filter_app, path):
        swift.register('GET', path, 503)
        assert self.delete(swift, filter_app) == 503


class TestDeleteOfAPlainContainer:
    def test_is_left_to_the_app(self, swift, filter_app):
        put(swift, filter_app)
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 204
        assert not swift.exists(ACCOUNT, 'c')

    def test_that_is_nonempty_is_refused(self, swift, filter_app):
        put(swift, filter_app)
        swift.put_row(f'/{ACCOUNT}/c/o')
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409
        assert swift.rows(ACCOUNT, 'c') == {'o': 1}

    def test_that_is_missing_is_left_to_the_app(self, swift, filter_app):
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 404


class TestRefusedDeleteOfAPlainContainer:
    """The DELETE has deleted the one replica without the row."""

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        put(replicated, filter_app, 2, path=f'{CONTAINER}-sharded')
        put(replicated, filter_app)
        replicated.put_row(f'/{ACCOUNT}/c/o', replicas=[1, 2])
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409
        assert not replicated.exists(ACCOUNT, 'c', 0)
        return filter_app

    @pytest.mark.parametrize(
        ('method', 'status'), [('PUT', 202), ('DELETE', 409), ('GET', 200)]
    )
    def test_leaves_it_to_swift(self, replicated, filter_app, method, status):
        resp = replicated.send(filter_app, method, CONTAINER)
        assert resp.status_int == status


class TestDeleteWithReplicasAway:
    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        return filter_app

    def test_of_a_minority_succeeds(self, replicated, filter_app):
        replicated.servers.away = {'d1'}
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 204

    def test_of_a_majority_is_a_503(self, replicated, filter_app):
        replicated.servers.away = {'d1', 'd2'}
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        replicated.servers.away = set()
        assert replicated.exists(ACCOUNT, 'c', 0)
        resp = replicated.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '2'

    def test_sees_a_row_that_most_replicas_have(self, replicated, filter_app):
        put_sharded_row(replicated, 'o', replicas=[1, 2])
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409

    def test_is_a_503_if_one_replica_lists_a_row(self, replicated, filter_app):
        put_sharded_row(replicated, 'o', replicas=[1])
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert ('DELETE', CONTAINER) not in replicated.sent()

    def test_that_is_refused_for_a_stray_leaves_every_replica_of_the_root(
        self, replicated, filter_app
    ):
        replicated.put_row(f'/{ACCOUNT}/c/stray', replicas=[1, 2])
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409
        assert replicated.exists(ACCOUNT, 'c', 0)

    def test_is_refused_if_one_of_two_replicas_lists_a_row(
        self, replicated, filter_app
    ):
        put_sharded_row(replicated, 'o', replicas=[1])
        replicated.servers.away = {'d2'}
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409
        assert ('DELETE', CONTAINER) not in replicated.sent()

    def test_is_a_503_if_most_databases_of_a_shard_are_lost(
        self, replicated, filter_app
    ):
        for replica in (0, 1):
            replicated.lose(HIDDEN, backing(replicated, 1, replica=2), replica)
        resp = replicated.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 503
        assert ('DELETE', CONTAINER) not in replicated.sent()

    def test_by_a_stale_replica_does_not_return(self, replicated, filter_app):
        replicated.servers.away = {'d0'}
        replicated.send(filter_app, 'DELETE', CONTAINER)
        replicated.servers.away = set()
        resp = put(replicated, filter_app, 4)
        assert resp.status_int in (201, 202)
        for replica in range(3):
            assert layout_of(replicated, replica=replica).shards == 4


class TestRevivedContainer:
    """Rows have come since the container was deleted."""

    @pytest.fixture(autouse=True)
    def revived(self, swift):
        policy = {'X-Backend-Storage-Policy-Index': '1'}
        swift.put_container(f'/{ACCOUNT}/c', policy)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        swift.put_row(f'/{ACCOUNT}/c/o', policy_index=1)

    def test_is_sharded_by_a_put_with_a_count(self, swift, filter_app):
        assert put(swift, filter_app, 2).is_success
        assert layout_of(swift).shards == 2
        resp = swift.send(filter_app, 'GET', CONTAINER, query='format=json')
        assert resp.headers['X-Container-Object-Count'] == '1'
        assert b'"name": "o"' in resp.body

    def test_keeps_its_rows_in_the_root(self, swift, filter_app):
        put(swift, filter_app, 2)
        assert swift.rows(ACCOUNT, 'c') == {'o': 1}

    def test_keeps_its_policy(self, swift, filter_app):
        put(swift, filter_app, 2)
        for shard in shards_in(swift):
            assert swift.broker(HIDDEN, shard).storage_policy_index == 1

    def test_stays_plain_without_a_count(self, swift, filter_app):
        assert put(swift, filter_app).is_success
        assert swift.rows(ACCOUNT, 'c') == {'o': 1}

    def test_cannot_be_deleted(self, swift, filter_app):
        resp = swift.send(filter_app, 'DELETE', CONTAINER)
        assert resp.status_int == 409


class TestUnreadableRecord:
    @pytest.fixture(autouse=True)
    def damaged(self, swift):
        swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: 'damaged'})

    @pytest.mark.parametrize('method', ['PUT', 'DELETE'])
    def test_stops_changes(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.status_int == 503
        assert (method, CONTAINER) not in swift.sent()
        metadata = swift.broker(ACCOUNT, 'c').metadata
        assert metadata[RECORD_HEADER.title()][0] == 'damaged'
