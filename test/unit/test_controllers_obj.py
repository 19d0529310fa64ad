# SPDX-License-Identifier: Apache-2.0
"""Writes of objects: where Swift sends their rows, and refused writes."""

import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.swob import HTTPForbidden, Request
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key
from swift.proxy.controllers.obj import BaseObjectController

from shardmw.backend.containers import RECORD_HEADER, SHARD_COUNT_HEADER
from shardmw.core.layout import Layout
from shardmw.core.paths import parse_path
from shardmw.core.placement import (
    backing_container,
    shard_of,
    versions_container,
)
from shardmw.proxy.info_app import InfoApp
from shardmw.proxy.layouts import Layouts
from shardmw.proxy.object import ObjectController
from shardmw.proxy.ratelimit import limiter
from test.unit.containers import (
    CONTAINER,
    NEW_ID,
    create,
    forget_requests,
    layout_of,
    shard_for,
)
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    Call,
    FakeSwift,
    Logger,
    fake_swift,
    filtered,
)

ROOT = f'/{ACCOUNT}/c'
OBJECT = f'{CONTAINER}/o'
WRITES = ('PUT', 'POST', 'DELETE')
RESERVED_ALLOWED = {'X-Backend-Allow-Reserved-Names': 'true'}

object_names = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    min_size=1,
    max_size=20,
)


@pytest.fixture
def filter_app(swift):
    """Return the filter, which has sharded the container `c`."""
    filter_app = filtered(swift)
    create(swift, filter_app, 4)
    return filter_app


def row_target(swift: FakeSwift, call: Call) -> str | None:
    """Return where Swift's proxy sends the row of a write.

    :returns: ``account/container``; None for the container of the path
    """
    env = {**call.env, 'swift.infocache': call.infocache}
    req = Request(env)
    path = parse_path(env['PATH_INFO'])
    controller = BaseObjectController(swift, *map(quote, path[1:]))
    info = controller.container_info(path.account, path.container, req)
    return controller._get_update_target(req, info)[2]


def rows_of_writes(swift: FakeSwift) -> list[str | None]:
    """Return where the rows of the writes that reached the app go."""
    writes = [call for call in swift.calls if call.path.count('/') > 3]
    return [row_target(swift, call) for call in writes]


@pytest.mark.parametrize('method', WRITES)
def test_swift_sends_the_row_of_a_write_to_the_shard(
    swift, filter_app, method
):
    swift.send(filter_app, method, OBJECT)
    assert rows_of_writes(swift) == [f'{HIDDEN}/{shard_for(swift, "o")}']


@pytest.mark.parametrize('index, is_redirected', [('0', True), ('1', False)])
def test_swift_sends_rows_of_other_policies_to_the_root(
    swift, filter_app, index, is_redirected
):
    headers = {'X-Backend-Storage-Policy-Index': index}
    swift.send(filter_app, 'DELETE', OBJECT, headers)
    shard = f'{HIDDEN}/{shard_for(swift, "o")}'
    assert rows_of_writes(swift) == [shard if is_redirected else None]


def test_swift_sends_the_row_of_every_name_to_its_shard():
    with fake_swift() as swift:
        filter_app = filtered(swift)
        create(swift, filter_app, 4)

        @given(object_names)
        def check(name):
            forget_requests(swift)
            swift.send(filter_app, 'PUT', f'{CONTAINER}/{name}')
            target = f'{HIDDEN}/{shard_for(swift, name)}'
            assert rows_of_writes(swift) == [target]

        check()


@pytest.mark.parametrize('name', ['☃', 'a b%41', 'x' * 256, 'a.b'])
def test_rows_of_containers_with_any_name_are_redirected(swift, name):
    filter_app = filtered(swift)
    create(swift, filter_app, 4, name)
    swift.send(filter_app, 'PUT', f'/v1/{ACCOUNT}/{name}/o')
    target = f'{HIDDEN}/{shard_for(swift, "o", name)}'
    assert rows_of_writes(swift) == [target]


def test_the_object_keeps_its_path(swift, filter_app):
    swift.send(filter_app, 'PUT', OBJECT)
    assert swift.sent('PUT') == [('PUT', OBJECT)]


def test_the_answer_of_the_app_is_the_clients(swift, filter_app):
    swift.register('PUT', OBJECT, 422, {'Etag': 'x'}, b'Unprocessable')
    resp = swift.send(filter_app, 'PUT', OBJECT)
    assert (resp.status_int, resp.body) == (422, b'Unprocessable')
    assert resp.headers['Etag'] == 'x'


@pytest.mark.parametrize('method', WRITES)
def test_rows_of_a_plain_container_stay_there(swift, method):
    swift.put_container(f'/{ACCOUNT}/c')
    swift.send(filtered(swift), method, OBJECT)
    assert rows_of_writes(swift) == [None]


def test_a_write_to_a_missing_container_goes_on_unchanged(swift):
    env = {'swift.infocache': (infocache := {})}
    swift.send(filtered(swift), 'PUT', OBJECT, env=env)
    assert swift.calls[-1].env['swift.infocache'] is infocache
    assert swift.calls[-1].path == OBJECT


def test_the_row_goes_where_swifts_own_sharder_has_moved_it(swift, filter_app):
    backing = shard_for(swift, 'o')
    swift.register(
        'HEAD',
        f'/v1/{HIDDEN}/{backing}',
        204,
        {'X-Backend-Sharding-State': 'sharded'},
    )
    swift.memcached.set(
        get_cache_key(HIDDEN, backing, shard='updating'),
        [['', '.shards_x/first'], ['m', '.shards_x/second']],
    )
    swift.send(filter_app, 'PUT', OBJECT)
    assert rows_of_writes(swift) == ['.shards_x/second']


class TestInfocache:
    @pytest.fixture
    def infocache(self) -> dict:
        return {'other': 'entry'}

    @pytest.mark.parametrize('method', WRITES)
    def test_is_the_clients_again_after_the_write(
        self, swift, filter_app, infocache, method
    ):
        env = {'swift.infocache': infocache}
        swift.send(filter_app, method, OBJECT, env=env)
        assert swift.calls[-1].env['swift.infocache'] is infocache
        assert swift.calls[-1].infocache.keys() > infocache.keys()

    def test_of_the_client_does_not_redirect_rows(
        self, swift, filter_app, infocache
    ):
        env = {'swift.infocache': infocache}
        swift.send(filter_app, 'PUT', OBJECT, env=env)
        info = infocache[get_cache_key(ACCOUNT, 'c')]
        assert info['sharding_state'] == 'unsharded'
        assert get_cache_key(ACCOUNT, 'c', shard='updating') not in infocache

    def test_is_the_clients_again_after_an_error(
        self, swift, filter_app, infocache
    ):
        def fails():
            raise RuntimeError

        swift.before('PUT', OBJECT, fails)
        env = {'swift.infocache': infocache}
        with pytest.raises(RuntimeError):
            swift.send(filter_app, 'PUT', OBJECT, env=env)
        assert swift.calls[-1].env['swift.infocache'] is infocache

    def test_of_one_client_request_serves_objects_in_many_shards(
        self, swift, filter_app, infocache
    ):
        names = [f'part-{i}' for i in range(8)]
        for name in names:
            env = {'swift.infocache': infocache}
            swift.send(filter_app, 'PUT', f'{CONTAINER}/{name}', env=env)
        targets = [f'{HIDDEN}/{shard_for(swift, name)}' for name in names]
        assert rows_of_writes(swift) == targets
        assert len(set(targets)) > 1

    def test_of_one_client_request_serves_plain_containers(
        self, swift, filter_app, infocache
    ):
        swift.put_container(f'/{ACCOUNT}/plain')
        plain = f'/v1/{ACCOUNT}/plain/o'
        for path in (OBJECT, plain, OBJECT):
            env = {'swift.infocache': infocache}
            swift.send(filter_app, 'PUT', path, env=env)
        target = f'{HIDDEN}/{shard_for(swift, "o")}'
        assert rows_of_writes(swift) == [target, None, target]

    def test_keeps_entries_of_others(self, swift, filter_app, infocache):
        env = {'swift.infocache': infocache}
        swift.send(filter_app, 'PUT', OBJECT, env=env)
        assert swift.calls[-1].infocache['other'] == 'entry'


class TestShardCountHeader:
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_with_an_object_is_refused(self, swift, filter_app, method):
        resp = swift.send(
            filter_app, method, OBJECT, {SHARD_COUNT_HEADER: '4'}
        )
        assert resp.status_int == 400
        assert resp.body.startswith(
            b'X-Container-Shard-Count is for containers, not objects'
        )
        assert swift.calls == []

    def test_with_an_object_of_a_plain_container_is_refused(self, swift):
        swift.put_container(f'/{ACCOUNT}/c')
        resp = swift.send(
            filtered(swift), 'PUT', OBJECT, {SHARD_COUNT_HEADER: '4'}
        )
        assert resp.status_int == 400

    def test_with_the_delete_of_an_object_is_ignored(self, swift, filter_app):
        resp = swift.send(
            filter_app, 'DELETE', OBJECT, {SHARD_COUNT_HEADER: '4'}
        )
        assert resp.status_int == 204


class TestUnreadableRoot:
    def test_with_a_damaged_record_refuses_writes(self, swift):
        swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: 'damaged'})
        filter_app = filtered(swift)
        resp = swift.send(filter_app, 'PUT', OBJECT)
        assert resp.status_int == 503
        assert ('PUT', OBJECT) not in swift.sent()
        (line,) = filter_app._logger.lines
        assert '503 for PUT /v1/AUTH_test/c/o: layout record: not JSON' in line

    def test_of_a_newer_release_refuses_writes(self, swift):
        record = '{"version": 3, "id": "65a1b2c3d4e5f", "shards": 4}'
        swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: record})
        assert swift.send(filtered(swift), 'PUT', OBJECT).status_int == 503

    def test_that_does_not_answer_leaves_the_write_to_the_app(self, swift):
        swift.register('HEAD', CONTAINER, 503)
        env = {'swift.infocache': (infocache := {})}
        swift.send(filtered(swift), 'PUT', OBJECT, env=env)
        assert swift.calls[-1].path == OBJECT
        assert swift.calls[-1].env['swift.infocache'] is infocache

    @pytest.mark.parametrize('method', WRITES)
    @pytest.mark.parametrize('path', [CONTAINER, f'/v1/{ACCOUNT}'])
    @pytest.mark.parametrize('is_allowed', [True, False])
    def test_is_not_taken_for_a_plain_one_if_it_answers_the_app(
        self, swift, filter_app, method, path, is_allowed
    ):
        def deny(req):
            return (
                None if req.acl or is_allowed else HTTPForbidden(request=req)
            )

        swift.memcached.values.clear()
        swift.register('HEAD', path, 503)
        swift.before(method, OBJECT, lambda: swift.unregister('HEAD', path))
        swift.send(filter_app, method, OBJECT, env={'swift.authorize': deny})
        (write,) = (call for call in swift.calls if call.path == OBJECT)
        req = Request({**write.env, 'swift.infocache': write.infocache})
        controller = BaseObjectController(swift, ACCOUNT, 'c', 'o')
        info = controller.container_info(ACCOUNT, 'c', req)
        assert info['nodes'] is None


class TestContainerThatMayBeSharded:
    """One replica says that the container is plain; the others are away."""

    PATH = f'/v1/{ACCOUNT}/plain/o'

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        replicated.put_container(f'/{ACCOUNT}/plain')
        replicated.servers.away = {'d1', 'd2'}
        return filter_app

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_refuses_writes(self, replicated, filter_app, method):
        resp = replicated.send(filter_app, method, self.PATH)
        assert resp.status_int == 503
        assert (method, self.PATH) not in replicated.sent()
        (line,) = filter_app._logger.lines
        assert '1 of 3 replicas of the root have a database' in line

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_takes_writes_if_a_majority_says_so(
        self, replicated, filter_app, method
    ):
        replicated.servers.away = {'d1'}
        assert replicated.send(filter_app, method, self.PATH).is_success


class TestVersions:
    """Object versioning writes to containers with reserved names."""

    @pytest.fixture
    def path(self, swift, filter_app) -> str:
        versions = versions_container('c')
        layout = Layout(NEW_ID, 2)
        swift.put_container(
            f'/{ACCOUNT}/{versions}', {RECORD_HEADER: layout.to_record()}
        )
        return f'/v1/{ACCOUNT}/{versions}/\0o\x001'

    def test_rows_go_to_the_shards_of_the_versions(
        self, swift, filter_app, path
    ):
        swift.send(filter_app, 'PUT', path, RESERVED_ALLOWED)
        backing = backing_container(
            versions_container('c'), NEW_ID, shard_of('\0o\x001', 2)
        )
        assert rows_of_writes(swift) == [f'{HIDDEN}/{backing}']

    def test_are_left_to_swift_when_a_client_names_them(
        self, swift, filter_app, path
    ):
        swift.send(filter_app, 'PUT', path)
        assert swift.sent() == [('PUT', path)]

    @pytest.mark.parametrize(
        'path', [f'{CONTAINER}/\0o', f'/v1/{ACCOUNT}/\0versions\0c/o']
    )
    def test_names_that_swift_refuses_are_left_to_it(
        self, swift, filter_app, path
    ):
        swift.send(filter_app, 'PUT', path, RESERVED_ALLOWED)
        assert swift.sent() == [('PUT', path)]

    def test_other_reserved_containers_are_left_alone(self, swift, filter_app):
        path = f'/v1/{ACCOUNT}/\0other\0c/\0o'
        swift.send(filter_app, 'PUT', path, RESERVED_ALLOWED)
        assert swift.sent() == [('PUT', path)]


class TestRateLimit:
    CONF = {'container_ratelimit_0': '0.001', 'max_sleep_time_seconds': '0'}

    def test_refuses_a_write_before_the_app_sees_it(self, swift):
        filter_app = filtered(swift, **self.CONF)
        create(swift, filter_app, 1)
        swift.send(filter_app, 'PUT', OBJECT)
        forget_requests(swift)
        resp = swift.send(filter_app, 'PUT', OBJECT)
        assert resp.status_int == 498
        assert ('PUT', OBJECT) not in swift.sent()

    def test_reads_for_old_versions_are_counted_but_not_redirected(
        self, swift
    ):
        filter_app = filtered(swift, **self.CONF)
        create(swift, filter_app, 1)
        env = {'swift.source': 'VW'}
        resp = swift.send(filter_app, 'GET', OBJECT, env=env)
        assert resp.status_int == 200
        assert rows_of_writes(swift) == [None]


class TestLayoutThatChangesDuringTheWaitForASlot:
    CONF = {'container_ratelimit_0': '0.8', 'max_sleep_time_seconds': '10'}

    @pytest.fixture
    def send(self, swift, monkeypatch):
        """Return a function that sends a write.

        The write waits until the container has another layout.
        """
        filter_app, other_proxy = filtered(swift, **self.CONF), filtered(swift)

        def wait(seconds):
            monkeypatch.undo()
            time.sleep(seconds)
            swift.send(other_proxy, 'DELETE', CONTAINER)
            create(swift, other_proxy, 3)

        def send(method, shards):
            if shards:
                create(swift, filter_app, shards)
            else:
                swift.send(filter_app, 'PUT', CONTAINER)
            assert swift.send(filter_app, 'PUT', OBJECT).is_success
            monkeypatch.setattr(limiter, 'sleep', wait)
            assert swift.send(filter_app, method, OBJECT).is_success
            assert layout_of(swift).shards == 3

        return send

    @pytest.mark.parametrize('shards', [0, 2])
    def test_a_deletes_row_goes_where_the_new_layout_has_it(
        self, swift, send, shards
    ):
        send('DELETE', shards)
        assert rows_of_writes(swift) == [f'{HIDDEN}/{shard_for(swift, "o")}']


class TestDeleteThatOutlastsAChange:
    """During a DELETE, the container gets another layout and the row."""

    def replace(self, swift: FakeSwift, shards: int) -> str:
        """Give `c` another layout; return the place that lists `o`."""
        other_proxy = filtered(swift)
        swift.send(other_proxy, 'DELETE', CONTAINER)
        if shards:
            create(swift, other_proxy, shards)
        else:
            swift.send(other_proxy, 'PUT', CONTAINER)
        place = f'/{ACCOUNT}/c'
        if shards:
            place = f'/{HIDDEN}/{shard_for(swift, "o")}'
        swift.put_row(f'{place}/o', at=1_500_000_000)
        return place

    @pytest.fixture(params=[(0, 3), (2, 3), (2, 0)])
    def delete(self, request, swift, monkeypatch):
        """Return a function that sends the DELETE.

        It returns the answer, and the place that got the row.
        """
        former, shards = request.param
        monkeypatch.setattr(Layouts, 'seconds', 0)
        create(swift, filtered(swift), 1, 'other')
        filter_app = filtered(swift)
        if former:
            create(swift, filter_app, former)
        else:
            swift.send(filter_app, 'PUT', CONTAINER)

        def delete(are_broken=False, headers=None):
            places = []

            def happen():
                places.append(self.replace(swift, shards))
                swift.servers.broken.update(places if are_broken else ())

            swift.before('DELETE', OBJECT, happen)
            resp = swift.send(filter_app, 'DELETE', OBJECT, headers)
            return resp, places[0]

        return delete

    @pytest.mark.parametrize('status', [204, 404])
    def test_removes_the_row_from_its_new_place(self, swift, delete, status):
        swift.register('DELETE', OBJECT, status)
        resp, place = delete()
        assert resp.status_int == status
        assert swift.rows(*place[1:].split('/')) == {}

    def test_leaves_a_later_upload_listed(self, swift, delete):
        headers = {'X-Timestamp': '1400000000.00000'}
        _, place = delete(headers=headers)
        assert swift.rows(*place[1:].split('/')) == {'o': 1}

    def test_leaves_the_row_of_another_policy(self, swift, delete):
        headers = {'X-Backend-Storage-Policy-Index': '1'}
        _, place = delete(headers=headers)
        assert swift.rows(*place[1:].split('/')) == {'o': 1}

    def test_leaves_the_row_if_it_fails(self, swift, delete):
        swift.register('DELETE', OBJECT, 503)
        _, place = delete()
        assert swift.rows(*place[1:].split('/')) == {'o': 1}

    def test_is_a_503_if_the_row_cannot_be_removed(self, swift, delete):
        resp, _ = delete(are_broken=True)
        assert resp.status_int == 503

    @pytest.mark.parametrize('delete', [(0, 3), (2, 3)], indirect=True)
    def test_removes_the_row_if_it_is_repeated_with_its_timestamp(
        self, swift, delete
    ):
        headers = {'X-Timestamp': Timestamp.now().internal}
        resp, place = delete(are_broken=True, headers=headers)
        assert resp.status_int == 503
        swift.servers.broken.clear()
        swift.register('DELETE', OBJECT, 404)
        resp = swift.send(filtered(swift), 'DELETE', OBJECT, headers)
        assert resp.status_int == 404
        assert swift.rows(*place[1:].split('/')) == {}

    def test_leaves_the_row_if_swift_knows_of_no_container(
        self, swift, monkeypatch
    ):
        monkeypatch.setattr(Layouts, 'seconds', 0)
        filter_app = filtered(swift)
        swift.send(filter_app, 'GET', CONTAINER)
        swift.register('DELETE', OBJECT, 404)
        places = []
        swift.before(
            'DELETE', OBJECT, lambda: places.append(self.replace(swift, 3))
        )
        swift.send(filter_app, 'DELETE', OBJECT)
        assert swift.rows(*places[0][1:].split('/')) == {'o': 1}


@pytest.mark.parametrize('shards', [0, 2])
def test_a_short_delete_looks_the_layout_up_once(swift, monkeypatch, shards):
    create(swift, filtered(swift), 1, 'other')
    filter_app = filtered(swift)
    if shards:
        create(swift, filter_app, shards)
    else:
        swift.send(filter_app, 'PUT', CONTAINER)
    swift.send(filter_app, 'GET', CONTAINER)
    looks = []
    monkeypatch.setattr(
        ObjectController, '_looked_up_again', lambda *_: looks.append(1)
    )
    swift.send(filter_app, 'DELETE', OBJECT)
    assert not looks


def info_app(swift, filter_app) -> InfoApp:
    """Return the app that filters ask for info, as in a pipeline."""
    parts = filter_app._parts
    return InfoApp(swift, parts.stats, parts.account_stats, Logger())


class TestDeleteWithStrays:
    """A DELETE also reaches a row in a root that may have strays."""

    @pytest.fixture
    def filter_app(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, 4)
        for name in ('o', 'p'):
            swift.put_row(f'/{ACCOUNT}/c/{name}')
        swift.memcached.values.clear()
        return filter_app

    def tombstones(self, swift) -> list[str]:
        """Return the rows for which tombstones were written."""
        return [
            path for _, how, path in swift.servers.asked if how == 'DELETE'
        ]

    @pytest.mark.parametrize('status', [204, 404])
    def test_removes_the_row_from_the_root(self, swift, filter_app, status):
        swift.register('DELETE', OBJECT, status)
        assert swift.send(filter_app, 'DELETE', OBJECT).status_int == status
        assert swift.rows(ACCOUNT, 'c') == {'p': 1}
        assert set(self.tombstones(swift)) == {f'/{ACCOUNT}/c/o'}

    def test_sends_the_other_tombstone_to_the_shard(self, swift, filter_app):
        swift.send(filter_app, 'DELETE', OBJECT)
        assert rows_of_writes(swift) == [f'{HIDDEN}/{shard_for(swift, "o")}']

    def test_leaves_a_later_row_in_the_root(self, swift, filter_app):
        headers = {'X-Timestamp': '1500000000.00000'}
        swift.send(filter_app, 'DELETE', OBJECT, headers)
        assert 'o' in swift.rows(ACCOUNT, 'c')

    def test_has_one_timestamp(self, swift, filter_app):
        swift.before(
            'DELETE', OBJECT, lambda: swift.put_row(f'/{ACCOUNT}/c/o', size=2)
        )
        swift.send(filter_app, 'DELETE', OBJECT)
        assert swift.rows(ACCOUNT, 'c') == {'o': 2, 'p': 1}

    @pytest.mark.parametrize('status', [401, 403, 409, 412, 503])
    def test_that_fails_leaves_the_row(self, swift, filter_app, status):
        swift.register('DELETE', OBJECT, status)
        assert swift.send(filter_app, 'DELETE', OBJECT).status_int == status
        assert 'o' in swift.rows(ACCOUNT, 'c')

    @pytest.mark.parametrize(
        ('status', 'rows'), [(204, {'p': 1}), (404, {'o': 1, 'p': 1})]
    )
    def test_of_the_expirer_removes_the_row_only_with_the_object(
        self, swift, filter_app, status, rows
    ):
        swift.register('DELETE', OBJECT, status)
        expired = Timestamp.now().normal
        headers = {'X-If-Delete-At': expired, 'X-Timestamp': expired}
        resp = swift.send(filter_app, 'DELETE', OBJECT, headers)
        assert resp.status_int == status
        assert swift.rows(ACCOUNT, 'c') == rows

    def test_that_cannot_reach_the_root_is_a_503(self, swift, filter_app):
        swift.send(filter_app, 'PUT', OBJECT)
        swift.servers.broken = {f'/{ACCOUNT}/c'}
        assert swift.send(filter_app, 'DELETE', OBJECT).status_int == 503

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_is_the_only_write_that_reaches_the_root(
        self, swift, filter_app, method
    ):
        swift.send(filter_app, method, OBJECT)
        assert self.tombstones(swift) == []

    def test_writes_no_row_to_a_root_without_strays(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, 2, 'd')
        swift.send(filter_app, 'DELETE', f'/v1/{ACCOUNT}/d/o')
        assert self.tombstones(swift) == []

    def test_does_not_take_the_sums_for_strays(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, 2, 'd')
        path = f'/v1/{ACCOUNT}/d'
        quota = {'X-Container-Meta-Quota-Count': '9'}
        swift.send(filter_app, 'POST', path, quota)
        swift.put_row(f'/{HIDDEN}/{shard_for(swift, "o", "d")}/o')
        swift.send(info_app(swift, filter_app), 'HEAD', path)
        info = swift.memcached.get(get_cache_key(ACCOUNT, 'd'))
        assert int(info['object_count']) == 1
        swift.send(filter_app, 'DELETE', f'{path}/o')
        assert self.tombstones(swift) == []

    def test_sees_strays_of_a_container_with_a_quota(self, swift, filter_app):
        quota = {'X-Container-Meta-Quota-Count': '9'}
        swift.send(filter_app, 'POST', CONTAINER, quota)
        swift.register('GET', f'/v1/{HIDDEN}', 503)
        swift.send(info_app(swift, filter_app), 'HEAD', CONTAINER)
        swift.send(filter_app, 'DELETE', OBJECT)
        assert swift.rows(ACCOUNT, 'c') == {'p': 1}


class TestHeadCache:
    """After a write, HEADs of the container read the shards anew."""

    MARK = f'shardmw/written/{ACCOUNT}/c'

    @pytest.mark.parametrize('method', ['PUT', 'POST', 'DELETE'])
    def test_is_invalidated_by_writes(self, swift, filter_app, method):
        swift.send(filter_app, method, OBJECT)
        assert swift.memcached.get(self.MARK)

    def test_is_invalidated_by_a_write_that_fails(self, swift, filter_app):
        swift.register('PUT', OBJECT, 503)
        swift.send(filter_app, 'PUT', OBJECT)
        assert swift.memcached.get(self.MARK)


def test_a_write_that_the_client_may_not_make_is_denied_by_the_app(
    swift, filter_app
):
    env = {'swift.authorize': HTTPForbidden}
    swift.send(filter_app, 'PUT', OBJECT, env=env)
    assert swift.calls[-1].env['swift.authorize'] is HTTPForbidden
    assert rows_of_writes(swift) == [None]


@pytest.mark.parametrize('method', WRITES)
def test_a_denied_write_costs_what_one_to_a_plain_container_costs(
    replicated, method
):
    """The client cannot tell the two by the time that they take."""
    create(replicated, filtered(replicated), 4)
    replicated.send(filtered(replicated), 'PUT', f'/v1/{ACCOUNT}/p')
    asked = []
    for container in ('c', 'p'):
        replicated.memcached.values.clear()
        forget_requests(replicated)
        path = f'/v1/{ACCOUNT}/{container}/o'
        env = {'swift.authorize': HTTPForbidden}
        replicated.send(filtered(replicated), method, path, env=env)
        asked.append([method for _, method, _ in replicated.servers.asked])
    assert asked[0] == asked[1] == ['HEAD', 'HEAD']


@pytest.mark.parametrize('method', WRITES)
def test_a_denied_write_leaves_the_sums_of_heads_alone(
    swift, filter_app, method
):
    env = {'swift.authorize': HTTPForbidden}
    swift.send(filter_app, method, OBJECT, env=env)
    marks = [key for key in swift.memcached.values if 'written' in key]
    assert marks == []


@pytest.mark.parametrize(
    'method, is_redirected', [('PUT', True), ('DELETE', True), ('POST', False)]
)
def test_a_write_by_the_key_of_container_sync_is_redirected(
    swift, filter_app, method, is_redirected
):
    """The auth filter allows it by a key from the proxy app."""
    headers = {'X-Container-Sync-Key': 'key'}
    owner = {'swift_owner': True}
    swift.send(filter_app, 'POST', CONTAINER, headers, env=owner)
    forget_requests(swift)

    def authorize(req):
        is_allowed = req.environ.get('swift_sync_key') == 'key'
        return None if is_allowed else HTTPForbidden(request=req)

    env = {'swift.authorize': authorize}
    swift.send(filter_app, method, OBJECT, env=env)
    shard = f'{HIDDEN}/{shard_for(swift, "o")}'
    assert rows_of_writes(swift) == [shard if is_redirected else None]


def test_writes_are_counted_by_method(swift, filter_app):
    for method in WRITES:
        swift.send(filter_app, method, OBJECT)
    counts = filter_app._logger.counts
    assert [counts[f'object.{method}'] for method in WRITES] == [1, 1, 1]
    assert counts['top.writes.AUTH_test.c'] == 3


def test_a_later_write_needs_no_request_of_its_own(swift, filter_app):
    swift.send(filter_app, 'PUT', OBJECT)
    forget_requests(swift)
    swift.send(filter_app, 'PUT', OBJECT)
    assert swift.sent() == [('PUT', OBJECT)]
    assert swift.servers.asked == []


def test_a_write_through_a_proxy_with_stale_info_goes_to_the_new_layout(
    swift, filter_app
):
    swift.send(filter_app, 'PUT', OBJECT)
    stale = dict(swift.memcached.values)
    other_proxy = filtered(swift)
    assert swift.send(other_proxy, 'DELETE', CONTAINER).status_int == 204
    create(swift, other_proxy, 2)
    swift.memcached.values = stale
    swift.send(filtered(swift), 'PUT', OBJECT)
    assert layout_of(swift).shards == 2
    assert rows_of_writes(swift) == [f'{HIDDEN}/{shard_for(swift, "o")}']
