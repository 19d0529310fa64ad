# SPDX-License-Identifier: Apache-2.0
"""Listings and HEADs of containers, and the replicas and shards they need.

The merge of rows into a page is tested in test_listing_*.
"""

import dataclasses
import json
import time
from urllib.parse import quote

import pytest
from swift.common.swob import HTTPForbidden, Request
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
)
from shardmw.core.layout import Layout
from shardmw.core.placement import (
    backing_container,
    shard_of,
    versions_container,
)
from shardmw.proxy import container as container_module
from shardmw.proxy import layouts as lookup
from shardmw.proxy.listing.container_order import UNORDERED_HEADER
from shardmw.proxy.listings_filter import BYPASS_ENV, STAND_IN, Bypass
from shardmw.proxy.ratelimit import limiter
from shardmw.proxy.ratelimit.rate_header import RATE_HEADER
from shardmw.swift.concurrency import sleep
from test.unit.clocks import Clock
from test.unit.containers import (
    CONTAINER,
    OLD_ID,
    backing,
    create,
    forget_requests,
    layout_of,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, filtered

SHARDS = 4
NAMES = ['a', 'b', 'c', 'd', 'e']
COUNT_HEADER = 'X-Container-Object-Count'
BYTES_HEADER = 'X-Container-Bytes-Used'
VERSIONS = versions_container('c')

OWNER = {'swift.authorize': lambda _req: None, 'swift_owner': True}
DENIED = {'swift.authorize': lambda req: HTTPForbidden(request=req)}


def read_acl_only(req):
    """Authorize requests by the read ACL, as an auth filter does."""
    return None if req.acl == 'everybody' else HTTPForbidden(request=req)


def allow_everybody_to_read(swift, app) -> None:
    """Set the read ACL of the container."""
    headers = {'X-Container-Read': 'everybody'}
    swift.send(app, 'POST', CONTAINER, headers, OWNER)


@pytest.fixture
def filter_app(swift):
    """Return the filter, with a sharded container of five objects."""
    filter_app = filtered(swift)
    create(swift, filter_app, SHARDS)
    for size, name in enumerate(NAMES, start=1):
        put_sharded_row(swift, name, size=size)
    return filter_app


def get(swift, app, env=None, headers=None, path=CONTAINER, query=''):
    """List a container in JSON."""
    query = f'format=json&{query}'
    return swift.send(app, 'GET', path, headers, env, query)


def head(swift, app, env=None, headers=None, path=CONTAINER):
    """HEAD a container."""
    return swift.send(app, 'HEAD', path, headers, env)


def names_in(resp) -> list[str]:
    """Return the names that a listing shows."""
    assert resp.status_int == 200, resp.status
    return [row['name'] for row in json.loads(resp.body)]


def figures_in(resp) -> tuple[int, int]:
    """Return the counts of objects and bytes in a response."""
    assert resp.is_success, resp.status
    return int(resp.headers[COUNT_HEADER]), int(resp.headers[BYTES_HEADER])


def asked_shards(swift: FakeSwift) -> list[str]:
    """Return the backing container of each read."""
    prefix = f'/{HIDDEN}/'
    return [
        path.removeprefix(prefix)
        for _device, method, path in swift.servers.asked
        if path.startswith(prefix) and method in ('GET', 'HEAD')
    ]


def recreate(swift: FakeSwift, layout: Layout | None) -> None:
    """Delete the root and put it again, without the proxy's knowledge."""
    cached = dict(swift.memcached.values)
    swift.direct('DELETE', f'/{ACCOUNT}/c')
    headers = {RECORD_HEADER: layout.to_record()} if layout else {}
    swift.put_container(f'/{ACCOUNT}/c', headers)
    for shard in range(layout.shards if layout else 0):
        name = backing_container('c', layout.id, shard)
        swift.put_container(f'/{HIDDEN}/{name}')
    swift.memcached.values = cached


class TestListing:
    def test_shows_the_rows_of_all_shards_in_order(self, swift, filter_app):
        assert names_in(get(swift, filter_app)) == NAMES

    def test_shows_the_figures_of_all_shards(self, swift, filter_app):
        resp = get(swift, filter_app)
        assert figures_in(resp) == (5, 15)
        assert resp.headers[SHARD_COUNT_HEADER] == '4'

    def test_has_the_length_of_its_body(self, swift, filter_app):
        resp = get(swift, filter_app)
        assert int(resp.headers['Content-Length']) == len(resp.body)

    def test_has_the_metadata_of_the_root(self, swift, filter_app):
        headers = {'X-Container-Meta-Color': 'blue'}
        swift.send(filter_app, 'POST', CONTAINER, headers)
        resp = get(swift, filter_app)
        assert resp.headers['X-Container-Meta-Color'] == 'blue'

    def test_reads_the_root_and_each_shard_once(self, swift, filter_app):
        forget_requests(swift)
        get(swift, filter_app)
        paths = [
            path for _, method, path in swift.servers.asked if method == 'GET'
        ]
        shards = [f'/{HIDDEN}/{backing(swift, i)}' for i in range(SHARDS)]
        assert sorted(paths) == [*shards, f'/{ACCOUNT}/c']

    def test_with_a_limit_is_a_page(self, swift, filter_app):
        resp = get(swift, filter_app, query='limit=2&marker=b')
        assert names_in(resp) == ['c', 'd']

    def test_of_an_empty_container_is_empty(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, 2)
        resp = get(swift, filter_app)
        assert names_in(resp) == []
        assert figures_in(resp) == (0, 0)

    def test_is_counted_in_metrics(self, swift, filter_app):
        get(swift, filter_app)
        counts = filter_app._logger.counts
        assert counts['container.GET'] == 1
        assert counts['fanout.requests'] == 1 + SHARDS
        assert counts['fanout.time'] == 1
        assert counts['top.listing.AUTH_test.c'] == 1

    def test_may_take_the_bypass_of_other_filters(self, swift, filter_app):
        bypass = Bypass(CONTAINER)
        resp = get(swift, filter_app, {BYPASS_ENV: bypass})
        assert resp.body == STAND_IN
        rows = json.loads(bypass.body)
        assert [row['name'] for row in rows] == NAMES


class TestSlowListing:
    @pytest.mark.parametrize(
        ('seconds', 'changes', 'reads', 'status'),
        [(60, 0, 1, 200), (59, 1, 1, 200), (60, 1, 2, 200), (60, 9, 5, 503)],
    )
    def test_is_read_again_if_rows_may_have_moved_on(
        self, swift, filter_app, monkeypatch, seconds, changes, reads, status
    ):
        clock = Clock()
        monkeypatch.setattr(container_module, 'time', clock)
        layout = layout_of(swift)
        shard = f'/{HIDDEN}/{backing(swift, 1)}'
        serials = iter(range(int(layout.id, 16) + 1, int(layout.id, 16) + 99))

        def wait() -> None:
            clock.now += seconds
            for _ in range(min(changes, 1)):
                serial = f'{next(serials):0{len(layout.id)}x}'
                changed = dataclasses.replace(layout, changed=serial)
                headers = {RECORD_HEADER: changed.to_record()}
                swift.direct('POST', f'/{ACCOUNT}/c', headers)
            if changes > 1:
                swift.servers.before(shard, wait)

        def list_names() -> tuple[int, int]:
            swift.servers.asked.clear()
            # An unordered listing reads the shards after the root.
            resp = swift.send(
                filter_app, 'GET', CONTAINER, query='allow_unordered=true'
            )
            paths = [path for _, _, path in swift.servers.asked]
            return paths.count(shard), resp.status_int

        # The first listing reads the counts of the shards, too.
        list_names()
        swift.servers.before(shard, wait)
        assert list_names() == (reads, status)


class TestListingThatSwiftRefuses:
    @pytest.mark.parametrize(
        'query, status', [('limit=10001', 412), ('marker=%FF', 400)]
    )
    def test_for_its_parameters_is_refused_by_the_app(
        self, swift, filter_app, query, status
    ):
        forget_requests(swift)
        resp = get(swift, filter_app, query=query)
        assert resp.status_int == status
        assert asked_shards(swift) == []

    def test_for_a_prefix_without_an_end_is_left_to_the_root(
        self, swift, filter_app
    ):
        swift.put_container(f'/{ACCOUNT}/plain')
        forget_requests(swift)
        query = 'prefix=%F4%8F%BF%BF'
        resp = get(swift, filter_app, query=query)
        assert asked_shards(swift) == []
        path = f'/v1/{ACCOUNT}/plain'
        plain = get(swift, filter_app, path=path, query=query)
        assert (resp.status, resp.body) == (plain.status, plain.body)

    @pytest.mark.parametrize('order', ['delimiter=/', 'path=', 'reverse=on'])
    def test_unordered_with_an_order_is_a_bad_request(
        self, swift, filter_app, order
    ):
        resp = get(swift, filter_app, query=f'allow_unordered=true&{order}')
        assert resp.status_int == 400
        assert resp.body.startswith(b'allow_unordered cannot be combined')

    def test_of_a_plain_container_is_left_to_the_app(self, swift):
        swift.put_container(f'/{ACCOUNT}/c')
        query = 'limit=10001&allow_unordered=true&reverse=on'
        assert get(swift, filtered(swift), query=query).status_int == 412

    def test_for_any_other_reason_gets_the_answer_of_the_root(
        self, swift, filter_app
    ):
        head(swift, filter_app)
        swift.register('GET', CONTAINER, 406, body=b'Not Acceptable')
        forget_requests(swift)
        resp = get(swift, filter_app)
        assert (resp.status_int, resp.body) == (406, b'Not Acceptable')
        assert asked_shards(swift) == []


class TestUnorderedListing:
    def test_shows_every_row_once(self, swift, filter_app):
        resp = get(swift, filter_app, query='allow_unordered=true')
        assert sorted(names_in(resp)) == NAMES

    def test_shows_figures_of_late(self, swift, filter_app):
        resp = get(swift, filter_app, query='allow_unordered=true&limit=1')
        assert figures_in(resp) == (5, 15)


class TestUnorderedByTheOwnersChoice:
    BY_SHARD = sorted(NAMES, key=lambda name: (shard_of(name, SHARDS), name))

    @pytest.fixture(autouse=True)
    def choice(self, swift, filter_app):
        headers = {UNORDERED_HEADER: 'true'}
        resp = swift.send(filter_app, 'POST', CONTAINER, headers, OWNER)
        assert resp.status_int == 204

    def test_shows_shard_after_shard(self, swift, filter_app):
        assert sorted(NAMES) != self.BY_SHARD
        assert names_in(get(swift, filter_app)) == self.BY_SHARD

    def test_goes_on_after_any_name_of_a_page(self, swift, filter_app):
        third = self.BY_SHARD[2]
        resp = get(swift, filter_app, query=f'marker={third}')
        assert names_in(resp) == self.BY_SHARD[3:]

    def test_holds_for_clients_of_s3(self, swift, filter_app):
        resp = get(swift, filter_app, env={'swift.source': 'S3'})
        assert names_in(resp) == self.BY_SHARD

    @pytest.mark.parametrize(
        ('query', 'env'),
        [('allow_unordered=false', {}), ('', {'swift.source': 'DLO'})],
    )
    def test_keeps_the_order_for_requests_that_need_it(
        self, swift, filter_app, query, env
    ):
        assert names_in(get(swift, filter_app, env, query=query)) == NAMES

    def test_leaves_levels_in_order(self, swift, filter_app):
        resp = get(swift, filter_app, query='delimiter=/')
        assert names_in(resp) == NAMES

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_shown(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.headers[UNORDERED_HEADER] == 'true'

    def test_can_be_taken_back(self, swift, filter_app):
        headers = {UNORDERED_HEADER: 'false'}
        swift.send(filter_app, 'PUT', CONTAINER, headers, OWNER)
        resp = get(swift, filter_app)
        assert UNORDERED_HEADER not in resp.headers
        assert names_in(resp) == NAMES

    def test_cannot_be_made_by_others(self, swift, filter_app):
        headers = {UNORDERED_HEADER: 'false'}
        swift.send(filter_app, 'POST', CONTAINER, headers, DENIED)
        resp = swift.send(filter_app, 'HEAD', CONTAINER)
        assert resp.headers[UNORDERED_HEADER] == 'true'

    def test_must_be_a_valid_value(self, swift, filter_app):
        headers = {UNORDERED_HEADER: 'maybe'}
        resp = swift.send(filter_app, 'POST', CONTAINER, headers, OWNER)
        assert resp.status_int == 400
        assert resp.body.startswith(b"Bad value 'maybe': must be true or")


class TestPlainContainer:
    @pytest.fixture
    def filter_app(self, swift):
        swift.put_container(f'/{ACCOUNT}/c')
        swift.put_row(f'/{ACCOUNT}/c/o', size=7)
        return filtered(swift)

    def test_is_listed_by_the_app(self, swift, filter_app):
        resp = get(swift, filter_app)
        assert names_in(resp) == ['o']
        assert figures_in(resp) == (1, 7)
        assert SHARD_COUNT_HEADER not in resp.headers

    def test_answers_a_head_by_the_app(self, swift, filter_app):
        resp = head(swift, filter_app)
        assert figures_in(resp) == (1, 7)
        assert SHARD_COUNT_HEADER not in resp.headers

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_read_once(self, swift, filter_app, method):
        swift.send(filter_app, method, CONTAINER)
        forget_requests(swift)
        swift.send(filter_app, method, CONTAINER)
        assert swift.sent() == [(method, CONTAINER)]
        assert len(swift.servers.asked) == 1


class TestMissingContainer:
    @pytest.fixture
    def filter_app(self, swift):
        filter_app = filtered(swift)
        create(swift, filter_app, SHARDS)
        head(swift, filter_app)
        return filter_app

    @pytest.fixture
    def deleted(self, swift) -> Layout:
        """Delete the root, without the proxy's knowledge."""
        layout = layout_of(swift)
        swift.direct('DELETE', f'/{ACCOUNT}/c')
        return layout

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_that_never_existed_is_a_404(self, swift, filter_app, method):
        path = f'/v1/{ACCOUNT}/missing'
        resp = swift.send(filter_app, method, path)
        assert resp.status_int == 404
        assert (method, path) in swift.sent()

    def test_that_never_existed_has_the_body_that_its_headers_describe(
        self, swift
    ):
        app = filtered(swift)
        req = Request.blank('/v1/AUTH_test/none')
        _status, headers, body = req.call_application(app)
        length = int(dict(headers)['Content-Length'])
        assert length == len(b''.join(body)) > 0

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_that_is_cached_is_a_404(self, swift, filter_app, deleted, method):
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.status_int == 404

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_a_404_until_late_rows_have_moved(
        self, swift, filter_app, deleted, method
    ):
        late = backing_container('c', deleted.id, 0)
        swift.put_row(f'/{HIDDEN}/{late}/o')
        swift.update_accounts()
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.status_int == 404
        assert swift.rows(HIDDEN, late) == {'o': 1}


class TestRecordThatIsCached:
    """A proxy whose memcached missed a change of the container."""

    @pytest.fixture
    def filter_app(self, swift, filter_app):
        head(swift, filter_app)
        # Another worker with the same memcached.
        return filtered(swift)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_does_not_hide_another_layout(self, swift, filter_app, method):
        recreate(swift, Layout(f'{2**51:x}', 2))
        put_sharded_row(swift, 'new', size=100)
        resp = swift.send(filter_app, method, CONTAINER)
        assert figures_in(resp) == (1, 100)
        assert resp.headers[SHARD_COUNT_HEADER] == '2'

    def test_is_not_used_for_a_listing_whose_root_has_another_one(
        self, swift, filter_app
    ):
        get(swift, filter_app)
        anew = Layout(f'{2**51:x}', 2)
        swift.before('GET', CONTAINER, lambda: recreate(swift, anew))
        resp = get(swift, filter_app)
        assert figures_in(resp) == (0, 0)
        assert resp.headers[SHARD_COUNT_HEADER] == '2'

    def test_is_not_used_for_a_listing_whose_root_has_none(
        self, swift, filter_app, monkeypatch
    ):
        def become_plain():
            recreate(swift, None)
            swift.put_row(f'/{ACCOUNT}/c/new', size=100)

        get(swift, filter_app)
        monkeypatch.setattr(lookup, 'DOUBT_SECONDS', 0)
        swift.before('GET', CONTAINER, become_plain)
        resp = get(swift, filter_app)
        assert names_in(resp) == ['new']
        assert figures_in(resp) == (1, 100)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_does_not_shard_a_plain_container(self, swift, filter_app, method):
        recreate(swift, None)
        swift.put_row(f'/{ACCOUNT}/c/new', size=100)
        resp = swift.send(filter_app, method, CONTAINER)
        assert figures_in(resp) == (1, 100)
        assert SHARD_COUNT_HEADER not in resp.headers

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_not_needed(self, swift, filter_app, method):
        swift.memcached.values.clear()
        resp = swift.send(filter_app, method, CONTAINER)
        assert figures_in(resp) == (5, 15)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_as_a_plain_one_does_not_hide_the_layout(self, swift, method):
        swift.put_container(f'/{ACCOUNT}/c')
        filter_app = filtered(swift)
        head(swift, filter_app)
        layout = Layout(f'{2**51:x}', 2)
        recreate(swift, layout)
        put_sharded_row(swift, 'new', size=100)
        resp = swift.send(filter_app, method, CONTAINER)
        assert figures_in(resp) == (1, 100)


class TestReplicas:
    """Replica 0 was away when the container was deleted and created again."""

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        replicated.servers.away = {'d0'}
        replicated.send(filter_app, 'DELETE', CONTAINER)
        create(replicated, filter_app, 3)
        replicated.servers.away = set()
        put_sharded_row_on(replicated, 'o', replicas=[1, 2])
        replicated.memcached.values.clear()
        return filtered(replicated)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_that_are_stale_decide_no_layout(
        self, replicated, filter_app, method
    ):
        resp = replicated.send(filter_app, method, CONTAINER)
        assert resp.headers[SHARD_COUNT_HEADER] == '3'


class TestReplicaOnANewDisk:
    """The replicator has not yet restored the shard's database there."""

    NAMES = ('a', 'b', 'c')

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 1)
        shard = shard_for(replicated, 'a')
        for name in self.NAMES:
            replicated.put_row(f'/{HIDDEN}/{shard}/{name}')
        replicated.lose(HIDDEN, shard, 0)
        answers = replicated.direct(
            'PUT',
            f'/{HIDDEN}/{shard}/new',
            {'X-Size': '1', 'X-Etag': 'e', 'X-Content-Type': 'text/plain'},
        )
        # The object server keeps the row until the database exists.
        assert [answer.status for answer in answers] == [404, 201, 201]
        return filtered(replicated, head_cache_seconds='0')

    @pytest.mark.parametrize('newest', [{}, {'X-Newest': 'true'}])
    def test_hides_no_rows(self, replicated, filter_app, newest):
        resp = replicated.send(filter_app, 'GET', CONTAINER, newest)
        names = [row['name'] for row in json.loads(resp.body)]
        assert names == [*self.NAMES, 'new']
        resp = replicated.send(filter_app, 'HEAD', CONTAINER, newest)
        assert resp.headers['X-Container-Object-Count'] == '4'


class TestDeletionThatOneReplicaTook:
    """The response to the DELETE was 503, and clients go on."""

    @pytest.fixture
    def filter_app(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2)
        replicated.direct('DELETE', f'/{ACCOUNT}/c', replicas=[0])
        replicated.memcached.values.clear()
        return filtered(replicated)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_does_not_hide_the_rows_of_shards(
        self, replicated, filter_app, method
    ):
        replicated.put_row(f'/{HIDDEN}/{backing(replicated, 0, replica=1)}/o')
        for _ in range(2):
            resp = replicated.send(filter_app, method, CONTAINER)
            assert figures_in(resp) == (1, 1)

    @pytest.mark.parametrize('method', ['PUT', 'DELETE'])
    def test_is_a_503_for_changes_until_it_is_replicated(
        self, replicated, filter_app, method
    ):
        resp = replicated.send(filter_app, method, CONTAINER)
        assert resp.status_int == 503
        replicated.replicate(ACCOUNT, 'c')
        resp = replicated.send(filter_app, method, CONTAINER)
        assert resp.status_int == {'PUT': 201, 'DELETE': 404}[method]


class TestPlainContainerWithTwoNewDisks:
    """The third replica did not answer for a moment, and Swift sent a 404."""

    def test_stays_plain_for_a_worker_that_knows_it(self, replicated):
        filter_app = filtered(replicated)
        create(replicated, filter_app, 2, 'sharded')
        replicated.send(filter_app, 'PUT', CONTAINER)
        replicated.send(filter_app, 'GET', CONTAINER)
        for replica in (0, 1):
            replicated.lose(ACCOUNT, 'c', replica)
        replicated.servers.away = {'d2'}
        resp = replicated.send(filter_app, 'HEAD', CONTAINER)
        assert resp.status_int == 404
        replicated.servers.away = set()
        assert replicated.send(filter_app, 'GET', CONTAINER).is_success


class TestDeletionThatOneReplicaMissed:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_counts(self, replicated, method):
        create(replicated, filtered(replicated), 2)
        replicated.direct('DELETE', f'/{ACCOUNT}/c', replicas=[1, 2])
        replicated.memcached.values.clear()
        filter_app = filtered(replicated)
        for _ in range(6):
            resp = replicated.send(filter_app, method, CONTAINER)
            assert resp.status_int == 404

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_and_a_creation_hide_no_rows(self, replicated, method):
        create(replicated, filtered(replicated), 2)
        replicated.direct('DELETE', f'/{ACCOUNT}/c', replicas=[1, 2])
        filter_app = filtered(replicated)
        replicated.memcached.values.clear()
        replicated.send(filter_app, method, CONTAINER)
        replicated.servers.away = {'d0'}
        create(replicated, filtered(replicated), 3)
        put_sharded_row_on(replicated, 'o', replicas=[1, 2])
        replicated.servers.away = set()
        replicated.memcached.values.clear()
        replicated.send(filter_app, method, CONTAINER)
        resp = replicated.send(filter_app, method, CONTAINER)
        assert resp.headers[COUNT_HEADER] == '1'


class TestDelimiterThatMakesContainerServersFail:
    def test_costs_each_server_no_more_errors_than_a_plain_container(
        self, replicated
    ):
        filter_app = filtered(replicated)
        create(replicated, filter_app, SHARDS)
        replicated.put_container(f'/{ACCOUNT}/plain')
        name = 'a\U0010ffffb'
        replicated.put_row(f'/{ACCOUNT}/plain/{name}')
        for shard in range(SHARDS):
            place = f'/{HIDDEN}/{backing(replicated, shard)}'
            replicated.put_row(f'{place}/{name}')
        counts = []
        for container in ('plain', 'c'):
            replicated.error_limiter.stats.clear()
            path = f'/v1/{ACCOUNT}/{container}'
            query = f'delimiter={quote(chr(0x10FFFF))}'
            resp = get(replicated, filter_app, path=path, query=query)
            assert resp.status_int == 503
            stats = replicated.error_limiter.stats.values()
            counts.append(sorted(each['errors'] for each in stats))
        assert counts[0] == counts[1]


class TestQueryThatTheRootRefuses:
    def test_reaches_no_shard(self, swift, filter_app):
        forget_requests(swift)
        swift.register('GET', CONTAINER, 414)
        swift.before('GET', CONTAINER, lambda: sleep(0.05))
        resp = get(swift, filter_app, query=f'marker={"!" * 7800}')
        assert resp.status_int == 414
        assert asked_shards(swift) == []


class TestPrefixWithoutAnEnd:
    @pytest.mark.parametrize(
        'bound', ['end_marker={}', 'marker={}&reverse=on']
    )
    def test_is_listed_up_to_a_nearer_end(self, swift, filter_app, bound):
        plain = f'/v1/{ACCOUNT}/plain'
        swift.send(filter_app, 'PUT', plain)
        for name in ('a\ud7ffa', 'a\ud7ffc'):
            put_sharded_row(swift, name, size=1)
            swift.put_row(f'/{ACCOUNT}/plain/{name}', size=1)
        prefix, end = quote('a\ud7ff'), quote('a\ud7ffb')
        query = f'prefix={prefix}&{bound.format(end)}'
        resp = get(swift, filter_app, query=query)
        expected = get(swift, filter_app, path=plain, query=query)
        assert names_in(resp) == names_in(expected) == ['a\ud7ffa']


class TestLimitThatSwiftCannotParse:
    @pytest.mark.parametrize('limit', ['%C2%B2', '9' * 5000])
    def test_is_answered_as_by_a_plain_container(
        self, swift, filter_app, limit
    ):
        plain = f'/v1/{ACCOUNT}/plain'
        swift.send(filter_app, 'PUT', plain)
        query = f'limit={limit}'
        resp = get(swift, filter_app, query=query)
        expected = get(swift, filter_app, path=plain, query=query)
        assert (resp.status, resp.body) == (expected.status, expected.body)
        assert resp.status_int == 503


class TestDenied:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_before_any_shard_is_read(self, swift, filter_app, method):
        another_worker = filtered(swift)
        forget_requests(swift)
        resp = swift.send(another_worker, method, CONTAINER, env=DENIED)
        assert resp.status_int == 403
        assert asked_shards(swift) == []
        assert f'/v1/{HIDDEN}' not in [call.path for call in swift.calls]

    @pytest.mark.parametrize('method', ['GET', 'HEAD', 'POST', 'DELETE'])
    def test_costs_what_a_plain_container_costs(self, replicated, method):
        """The client cannot tell the two by the time that they take."""
        create(replicated, filtered(replicated), 4)
        replicated.send(filtered(replicated), 'PUT', f'/v1/{ACCOUNT}/p')
        asked = []
        for container in ('c', 'p'):
            replicated.memcached.values.clear()
            forget_requests(replicated)
            path = f'/v1/{ACCOUNT}/{container}'
            replicated.send(filtered(replicated), method, path, env=DENIED)
            asked.append([method for _, method, _ in replicated.servers.asked])
        assert asked[0] == asked[1]

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_shows_no_figures(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, CONTAINER, env=DENIED)
        assert COUNT_HEADER not in resp.headers
        assert SHARD_COUNT_HEADER not in resp.headers

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_unless_the_read_acl_allows_it(self, swift, filter_app, method):
        env = {'swift.authorize': read_acl_only}
        allow_everybody_to_read(swift, filter_app)
        resp = swift.send(filter_app, method, CONTAINER, env=env)
        assert figures_in(resp) == (5, 15)

    def test_by_a_stale_acl_shows_all_rows_if_the_present_one_allows_it(
        self, swift, filter_app
    ):
        head(swift, filter_app)
        stale = dict(swift.memcached.values)
        allow_everybody_to_read(swift, filter_app)
        swift.memcached.values = stale
        env = {'swift.authorize': read_acl_only}
        resp = get(swift, filter_app, env)
        assert figures_in(resp) == (5, 15)
        assert names_in(resp) == NAMES

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_by_the_present_acl_though_a_stale_one_allows_it(
        self, swift, filter_app, method
    ):
        allow_everybody_to_read(swift, filter_app)
        head(swift, filter_app)
        swift.direct('POST', f'/{ACCOUNT}/c', {'X-Container-Read': ''})
        env = {'swift.authorize': read_acl_only}
        resp = swift.send(filter_app, method, CONTAINER, env=env)
        assert resp.status_int == 403
        assert COUNT_HEADER not in resp.headers


class TestReadThatFails:
    @pytest.fixture(params=['GET', 'HEAD'])
    def send(self, swift, filter_app, request):
        return lambda: swift.send(filter_app, request.param, CONTAINER)

    def test_at_a_shard_is_a_503(self, swift, send):
        swift.servers.broken = {f'/{HIDDEN}/{backing(swift, 2)}'}
        assert send().status_int == 503

    def test_is_logged_once(self, swift, filter_app, send):
        swift.servers.broken = {f'/{HIDDEN}/{backing(swift, 2)}'}
        send()
        (line,) = filter_app._logger.lines
        assert line.endswith('/v1/AUTH_test/c: backing: shard 2 answered 503')
        counts = filter_app._logger.counts
        assert counts['unavailable.shard'] == 1
        assert counts['top.unavailable.AUTH_test.c.shard'] == 1

    def test_at_a_missing_shard_is_a_503(self, swift, send):
        for name in NAMES:
            place = f'/{HIDDEN}/{shard_for(swift, name)}'
            swift.direct('DELETE', f'{place}/{name}')
        for shard in range(SHARDS):
            swift.direct('DELETE', f'/{HIDDEN}/{backing(swift, shard)}')
        assert send().status_int == 503

    def test_at_a_root_that_does_not_answer_is_a_503(self, swift, send):
        swift.servers.broken = {f'/{ACCOUNT}/c'}
        assert send().status_int == 503

    def test_at_a_root_that_stops_answering_is_a_503(self, swift, filter_app):
        head(swift, filter_app)
        swift.register('GET', CONTAINER, 507)
        assert get(swift, filter_app).status_int == 503
        (line,) = filter_app._logger.lines
        assert line.endswith('backing: the root answered 507')

    def test_at_a_damaged_record_is_a_503(self, swift, send):
        swift.memcached.values.clear()
        swift.put_container(f'/{ACCOUNT}/c', {RECORD_HEADER: 'damaged'})
        resp = send()
        assert resp.status_int == 503
        assert COUNT_HEADER not in resp.headers


class TestShardThatADirectoryDoesNotNeed:
    """The listing reads one shard, and its headers have the counts of all."""

    @pytest.fixture
    def listed(self, swift, filter_app):
        """Return the status and count of a listing while a shard fails."""
        create(swift, filter_app, SHARDS, 'deep', depth=1)
        put_sharded_row(swift, 'a/b', 'deep')
        path = f'/v1/{ACCOUNT}/deep'
        mine = shard_for(swift, 'a/b', 'deep')
        others = {
            f'/{HIDDEN}/{backing(swift, shard, "deep")}'
            for shard in range(SHARDS)
        } - {f'/{HIDDEN}/{mine}'}

        def listed(is_broken: bool) -> tuple[int, str | None]:
            swift.servers.broken = others if is_broken else set()
            resp = swift.send(filter_app, 'GET', path, query='prefix=a/')
            return resp.status_int, resp.headers.get(COUNT_HEADER)

        return listed

    def test_is_a_503_if_it_fails_and_no_counts_are_known(self, listed):
        assert listed(is_broken=True) == (503, None)

    def test_shows_the_known_counts_if_it_fails(self, listed):
        assert listed(is_broken=False) == (200, '1')
        assert listed(is_broken=True) == (200, '1')

    def test_shows_the_counts_when_it_answers_again(self, listed):
        listed(is_broken=True)
        assert listed(is_broken=False) == (200, '1')


class TestNewest:
    """X-Newest asks all replicas of every shard."""

    NEWEST = {'X-Newest': 'true'}

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_an_owner_reaches_the_shards(self, swift, filter_app, method):
        forget_requests(swift)
        swift.send(filter_app, method, CONTAINER, self.NEWEST, OWNER)
        newest = [
            call
            for call in swift.calls
            if call.path.startswith(f'/v1/{HIDDEN}/')
        ]
        assert len(newest) == SHARDS
        assert {call.headers['X-Newest'] for call in newest} == {'true'}

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_another_client_does_not_reach_the_shards(
        self, swift, filter_app, method
    ):
        forget_requests(swift)
        swift.send(filter_app, method, CONTAINER, self.NEWEST)
        assert len(asked_shards(swift)) == SHARDS
        hidden = [call.path for call in swift.calls if HIDDEN in call.path]
        assert set(hidden) <= {f'/v1/{HIDDEN}'}

    def test_shows_no_kept_sums(self, swift, filter_app):
        warm(swift, filter_app)
        put_sharded_row(swift, 'f', size=6)
        resp = head(swift, filter_app, OWNER, self.NEWEST)
        assert figures_in(resp) == (7, 21)


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_info_of_the_account_is_taken_from_memcached(
    swift, filter_app, method
):
    swift.send(filter_app, method, CONTAINER)
    forget_requests(swift)
    swift.send(filter_app, method, CONTAINER)
    asked = [path for _, _, path in swift.servers.asked]
    assert f'/{ACCOUNT}' not in asked


class TestHead:
    def test_shows_the_figures_of_all_shards(self, swift, filter_app):
        resp = head(swift, filter_app)
        assert resp.status_int == 204
        assert figures_in(resp) == (5, 15)
        assert resp.headers[SHARD_COUNT_HEADER] == '4'

    def test_is_counted_in_metrics(self, swift, filter_app):
        head(swift, filter_app)
        assert filter_app._logger.counts['container.HEAD'] == 1

    def test_keeps_the_sums(self, swift, filter_app):
        warm(swift, filter_app)
        forget_requests(swift)
        assert figures_in(head(swift, filter_app)) == (5, 15)
        assert asked_shards(swift) == []

    def test_shows_a_write_at_once(self, swift, filter_app):
        warm(swift, filter_app)
        swift.send(filter_app, 'PUT', f'{CONTAINER}/f')
        put_sharded_row(swift, 'f', size=6)
        assert figures_in(head(swift, filter_app)) == (7, 21)

    def test_keeps_nothing_if_the_operator_says_so(self, swift):
        filter_app = filtered(swift, head_cache_seconds='0')
        create(swift, filter_app, 2)
        for _ in range(2):
            forget_requests(swift)
            head(swift, filter_app)
            assert len(asked_shards(swift)) == 2


class TestStrays:
    @pytest.fixture(autouse=True)
    def stray(self, swift, filter_app):
        swift.put_row(f'/{ACCOUNT}/c/bb', size=10)

    def test_are_listed(self, swift, filter_app):
        resp = get(swift, filter_app)
        assert names_in(resp) == ['a', 'b', 'bb', *NAMES[2:]]
        assert figures_in(resp) == (6, 25)

    def test_are_listed_unordered(self, swift, filter_app):
        resp = get(swift, filter_app, query='allow_unordered=true')
        assert sorted(names_in(resp)) == ['a', 'b', 'bb', *NAMES[2:]]
        assert figures_in(resp) == (6, 25)

    def test_are_counted_by_a_head(self, swift, filter_app):
        assert figures_in(head(swift, filter_app)) == (6, 25)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_are_left_where_they_are(self, swift, filter_app, method):
        swift.send(filter_app, method, CONTAINER)
        assert swift.rows(ACCOUNT, 'c') == {'bb': 10}
        assert 'bb' not in swift.rows(HIDDEN, shard_for(swift, 'bb'))


class TestLateRows:
    """Late rows are updates that have not arrived yet."""

    @pytest.fixture
    def late(self, swift) -> str:
        name = backing_container('c', OLD_ID, 0)
        swift.put_container(f'/{HIDDEN}/{name}')
        swift.put_row(f'/{HIDDEN}/{name}/f', size=6)
        swift.update_accounts()
        return name

    @pytest.fixture
    def filter_app(self, swift, filter_app, late):
        return filtered(swift)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_are_not_shown_and_stay(self, swift, filter_app, late, method):
        resp = swift.send(filter_app, method, CONTAINER)
        assert figures_in(resp) == (5, 15)
        assert swift.rows(HIDDEN, late) == {'f': 6}

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_are_not_looked_for(self, swift, filter_app, late, method):
        swift.send(filter_app, method, CONTAINER)
        assert ('GET', f'/v1/{HIDDEN}') not in swift.sent()
        assert late not in asked_shards(swift)


class TestVersions:
    """Listings of old versions, for which object versioning asks."""

    PATH = f'/v1/{ACCOUNT}/{VERSIONS}'
    ALLOWED = {'X-Backend-Allow-Reserved-Names': 'true'}

    @pytest.fixture(autouse=True)
    def versions(self, swift, filter_app):
        headers = {**self.ALLOWED, SHARD_COUNT_HEADER: '2'}
        swift.send(filter_app, 'PUT', self.PATH, headers)
        for name in ('\0o\x001', '\0o\x002'):
            put_sharded_row(swift, name, VERSIONS)
        forget_requests(swift)

    def test_are_listed_from_their_own_shards(self, swift, filter_app):
        resp = get(swift, filter_app, headers=self.ALLOWED, path=self.PATH)
        assert names_in(resp) == ['\0o\x001', '\0o\x002']

    def test_are_left_to_swift_when_a_client_names_them(
        self, swift, filter_app
    ):
        resp = get(swift, filter_app, path=self.PATH)
        assert resp.status_int == 412
        assert swift.sent() == [('GET', self.PATH)]


class TestRateLimit:
    CONF = {
        'container_listing_ratelimit_0': '0.001',
        'max_sleep_time_seconds': '0',
    }

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_refuses_before_any_shard_is_read(self, swift, method):
        filter_app = filtered(swift, **self.CONF)
        create(swift, filter_app, 2)
        swift.send(filter_app, method, CONTAINER)
        forget_requests(swift)
        resp = swift.send(filter_app, method, CONTAINER)
        assert resp.status_int == 498
        assert asked_shards(swift) == []


class TestHeadThatWaitsForASlot:
    CONF = {
        'container_listing_ratelimit_0': '0.8',
        'max_sleep_time_seconds': '10',
        'head_cache_seconds': '0',
    }

    @pytest.fixture
    def late_head(self, swift, monkeypatch):
        """Return a function that sends a HEAD, and acts while it waits."""
        filter_app = filtered(swift, **self.CONF)
        create(swift, filter_app, 2)

        def late_head(happens):
            def wait(seconds):
                monkeypatch.undo()
                time.sleep(seconds)
                happens()

            assert head(swift, filter_app).is_success
            monkeypatch.setattr(limiter, 'sleep', wait)
            return head(swift, filter_app)

        return late_head

    @pytest.mark.parametrize('shards', [0, 3])
    def test_shows_the_layout_that_counts_then(self, swift, late_head, shards):
        other_proxy = filtered(swift)

        def change():
            swift.send(other_proxy, 'DELETE', CONTAINER)
            if not shards:
                swift.send(other_proxy, 'PUT', CONTAINER)
                swift.put_row(f'/{ACCOUNT}/c/o', size=7)
                return
            create(swift, other_proxy, shards)
            put_sharded_row(swift, 'o', size=7)

        resp = late_head(change)
        assert figures_in(resp) == (1, 7)
        assert resp.headers.get(SHARD_COUNT_HEADER, '0') == str(shards)

    def test_of_a_container_that_is_deleted_meanwhile_finds_none(
        self, swift, late_head
    ):
        other_proxy = filtered(swift)
        resp = late_head(lambda: swift.send(other_proxy, 'DELETE', CONTAINER))
        assert resp.status_int == 404


class TestWriteRate:
    @pytest.fixture(autouse=True)
    def rate(self, swift, filter_app):
        env = {'reseller_request': True}
        swift.send(filter_app, 'POST', CONTAINER, {RATE_HEADER: '5'}, env)

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_shown_to_owners(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, CONTAINER, env=OWNER)
        assert resp.headers[RATE_HEADER] == '5'

    def test_is_shown_while_the_layout_changes(self, swift, filter_app):
        changing = layout_of(swift).announced(8, time.time())
        record = {RECORD_HEADER: changing.to_record()}
        swift.direct('POST', f'/{ACCOUNT}/c', record)
        for shard in range(8):
            name = backing_container('c', changing.id, shard)
            swift.put_container(f'/{HIDDEN}/{name}')
        resp = swift.send(filtered(swift), 'HEAD', CONTAINER, env=OWNER)
        assert resp.headers[RATE_HEADER] == '5'

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_not_shown_to_others(self, swift, filter_app, method):
        resp = swift.send(filter_app, method, CONTAINER)
        assert RATE_HEADER not in resp.headers


ORIGIN = 'https://example.com'
CORS_HEADERS = (
    'Access-Control-Allow-Origin',
    'Access-Control-Expose-Headers',
    'Vary',
)


class TestHeadersOfCors:
    """The filter's own responses have the headers of CORS."""

    @pytest.fixture(params=[ORIGIN, '*', 'https://elsewhere.com', None])
    def allowed(self, request, swift, filter_app) -> None:
        swift.put_container(f'/{ACCOUNT}/plain')
        swift.put_row(f'/{ACCOUNT}/plain/o')
        name = 'X-Container-Meta-Access-Control-Allow-Origin'
        for container in ('c', 'plain'):
            path = f'/v1/{ACCOUNT}/{container}'
            headers = {name: request.param} if request.param else {}
            swift.send(filter_app, 'POST', path, headers, OWNER)

    def test_are_in_the_response_to_a_refused_deletion(
        self, swift, filter_app, allowed
    ):
        def answer(container: str) -> tuple:
            path = f'/v1/{ACCOUNT}/{container}'
            headers = {'Origin': ORIGIN}
            resp = swift.send(filter_app, 'DELETE', path, headers, OWNER)
            found = {
                name: sorted(resp.headers.get(name, '').split(', '))
                for name in CORS_HEADERS
            }
            return resp.status_int, found

        assert answer('c') == answer('plain')
        assert answer('c')[0] == 409

    def test_are_in_the_response_to_a_refused_count(self, swift, filter_app):
        headers = {'X-Container-Meta-Access-Control-Allow-Origin': '*'}
        swift.send(filter_app, 'POST', CONTAINER, headers, OWNER)
        headers = {SHARD_COUNT_HEADER: '7', 'Origin': ORIGIN}
        resp = swift.send(filter_app, 'PUT', CONTAINER, headers, OWNER)
        assert resp.status_int == 409
        assert resp.headers['Access-Control-Allow-Origin'] == '*'


@pytest.mark.parametrize('method', ['OPTIONS', 'COPY', 'UPDATE'])
def test_other_methods_are_left_to_the_app(swift, filter_app, method):
    env = {'swift.infocache': (infocache := {})}
    swift.send(filter_app, method, CONTAINER, env=env)
    call = next(call for call in swift.calls if call.method == method)
    assert call.env['swift.infocache'] is infocache


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_cached_info_of_the_container_has_its_layout(
    swift, filter_app, method
):
    swift.memcached.values.clear()
    swift.send(filter_app, method, CONTAINER)
    info = swift.memcached.get(get_cache_key(ACCOUNT, 'c'))
    assert info['sysmeta']['shardmw-layout'] == layout_of(swift).to_record()


def test_a_container_with_one_replica_that_lags_is_listed(
    swift, filter_app, monkeypatch
):
    """The last confirmation of the record was long ago."""
    get(swift, filter_app)
    monkeypatch.setattr(lookup, 'CONFIRMED_SECONDS', 0)
    assert names_in(get(swift, filter_app)) == NAMES


def warm(swift, filter_app) -> None:
    """Let memcached keep the sums of the container.

    memcached must have been up for some time before it keeps sums.
    """
    swift.memcached.set('shardmw/has-marks', True)
    head(swift, filter_app)
    put_sharded_row(swift, 'kept', size=0)
    assert figures_in(head(swift, filter_app)) == (5, 15)


def put_sharded_row_on(swift, name: str, replicas: list[int]) -> None:
    """Write a row to a shard of the layout that the last replica has."""
    layout = layout_of(swift, replica=2)
    shard = shard_of(name, layout.shards)
    place = backing_container('c', layout.id, shard)
    swift.put_row(f'/{HIDDEN}/{place}/{name}', replicas=replicas)
