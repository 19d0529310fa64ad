# SPDX-License-Identifier: Apache-2.0
"""Pages that may be some seconds old, and pages that are read ahead."""

import json
import time
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common import request_helpers
from swift.common.swob import HTTPForbidden, Request, Response
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend import short_store
from shardmw.backend.answers import ContainerStats
from shardmw.backend.containers import RECORD_HEADER, LogicalContainer
from shardmw.backend.short_store import ShortStore
from shardmw.core.layout import Layout
from shardmw.core.listing_params import NO_SUCCESSOR, ListingParams
from shardmw.core.listing_rows import rows_of, to_json
from shardmw.core.paths import Path
from shardmw.proxy import container as container_module
from shardmw.proxy.listing import kept_pages as kept_pages_module
from shardmw.proxy.listing.kept_pages import (
    MOST_PAGES,
    PAGE_KEY,
    ROWS_PER_SHARD,
    KeptPages,
    Page,
)
from shardmw.proxy.listing.max_age import MAX_AGE_HEADER, REQUEST_HEADER
from test.unit.clocks import Clock
from test.unit.containers import (
    CONTAINER,
    create,
    forget_requests,
    layout_of,
    put_sharded_row,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, Memcached, filtered

SHARDS = 4
LIMIT = 5
NAMES = [f'{number:03}' for number in range(60)]
#: After a walk, the page after this name is kept.
KEPT = NAMES[19]
STATS = ContainerStats(60, 600)
SECONDS = 60
MEGABYTE = 1_000_000


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Replace the clocks that decide how old a page is."""
    clock = Clock()
    for module in (container_module, kept_pages_module, short_store):
        monkeypatch.setattr(module, 'time', clock)
    return clock


@pytest.fixture
def filter_app(swift, clock):
    filter_app = filtered(swift, listing_max_age=str(SECONDS))
    create(swift, filter_app, SHARDS)
    for name in NAMES:
        put_sharded_row(swift, name, size=10)
    return filter_app


def page(swift, app, marker='', query='', headers=None, env=None, limit=LIMIT):
    """Return the names on a page, and True if shards were read for it."""
    forget_requests(swift)
    query = f'format=json&limit={limit}&marker={marker}&{query}'
    answer = swift.send(app, 'GET', CONTAINER, headers, env, query=query)
    assert answer.status_int == 200
    rows = json.loads(answer.body)
    names = [row.get('name') or row['subdir'] for row in rows]
    asked = [
        path
        for _device, method, path in swift.servers.asked
        if path.startswith(f'/{HIDDEN}/') and method == 'GET'
    ]
    return names, bool(asked)


def walk(swift, app, limit=LIMIT, **kwargs) -> tuple[list[str], int]:
    """Return what a walk lists, and for how many pages it read shards."""
    listed, reads, marker = [], 0, ''
    while True:
        names, is_read = page(swift, app, marker, limit=limit, **kwargs)
        listed += names
        reads += is_read
        if len(names) < limit:
            return listed, reads
        marker = names[-1]


def is_reader(req: Request) -> Response | None:
    """Allow reads by an ACL, as an auth filter does."""
    return None if req.acl else HTTPForbidden(request=req)


class TestWalk:
    @pytest.mark.parametrize(
        # 13 pages: 1, 2, 4 and 8 together, or 1, 5 and 10
        ('first_rows', 'reads'),
        [(0, 4), (7, 3)],
    )
    def test_lists_everything_once_with_few_reads(
        self, swift, filter_app, monkeypatch, first_rows, reads
    ):
        monkeypatch.setattr(
            kept_pages_module, 'FIRST_ROWS_PER_SHARD', first_rows
        )
        assert walk(swift, filter_app) == (NAMES, reads)

    @pytest.mark.parametrize(('limit', 'reads'), [(5, 4), (2, 4)])
    def test_of_s3_lists_everything_once_with_few_reads(
        self, swift, filter_app, limit, reads
    ):
        """Walk as s3api does, which shows its client one row less."""
        listed, asked, marker = [], 0, ''
        env = {'swift.source': 'S3'}
        while len(listed) < len(NAMES):
            names, is_read = page(
                swift, filter_app, marker, env=env, limit=limit
            )
            listed += names if len(names) < limit else names[:-1]
            asked += is_read
            marker = listed[-1]
        assert (listed, asked) == (NAMES, reads)

    def test_of_s3_without_rows_reads_nothing_ahead(self, swift, filter_app):
        env = {'swift.source': 'S3'}
        for marker, name in ((KEPT, '020'), ('020', '021')):
            args = (swift, filter_app, marker)
            assert page(*args, env=env, limit=1) == ([name], True)

    def test_of_s3_without_rows_may_follow_a_walk_of_swift(
        self, swift, filter_app
    ):
        page(swift, filter_app, limit=1)
        env = {'swift.source': 'S3'}
        found = page(swift, filter_app, '000', env=env, limit=1)
        assert found == (['001'], True)

    @pytest.mark.parametrize(('limit', 'count'), [(LIMIT, 60), (1, 2)])
    def test_lists_all_strays_if_they_fill_a_page(
        self, swift, filter_app, limit, count
    ):
        strays = [f'{number:03}s' for number in range(count)]
        for stray in strays:
            swift.put_row(f'/{ACCOUNT}/c/{stray}')
        listed, _ = walk(swift, filter_app, limit)
        assert listed == sorted(NAMES + strays)

    def test_reads_each_page_if_nothing_is_kept(self, swift, filter_app):
        filter_app = filtered(swift)
        assert walk(swift, filter_app) == (NAMES, 13)

    def test_has_the_figures_of_the_container(self, swift, filter_app):
        walk(swift, filter_app)
        query = f'limit={LIMIT}&marker={KEPT}&format=json'
        forget_requests(swift)
        answer = swift.send(filter_app, 'GET', CONTAINER, query=query)
        assert answer.headers['X-Container-Object-Count'] == '60'
        assert answer.headers['X-Container-Bytes-Used'] == '600'
        assert answer.headers['Content-Length'] == str(len(answer.body))

    def test_shows_what_was_there_when_its_pages_were_read(
        self, swift, filter_app
    ):
        walk(swift, filter_app)
        swift.send(filter_app, 'PUT', f'{CONTAINER}/021a')
        put_sharded_row(swift, '021a')
        swift.put_row(f'/{ACCOUNT}/c/021b')
        kept = page(swift, filter_app, KEPT)
        assert kept == (['020', '021', '022', '023', '024'], False)

    def test_reads_no_more_than_its_pages_once_they_are_too_old(
        self, swift, filter_app, clock
    ):
        walk(swift, filter_app)
        put_sharded_row(swift, '021a')
        clock.now += SECONDS + 1
        names, is_read = page(swift, filter_app, KEPT)
        assert names == ['020', '021', '021a', '022', '023']
        assert is_read

    def test_is_denied_to_clients_that_have_lost_access(
        self, swift, filter_app
    ):
        """The filter's proxy does not know yet that access was lost."""
        acl = {'X-Container-Read': '.r:*,.rlistings'}
        owner = {'swift_owner': True}
        swift.send(filter_app, 'POST', CONTAINER, acl, owner)
        env = {'swift.authorize': is_reader}
        walk(swift, filter_app, env=env)
        assert page(swift, filter_app, KEPT, env=env)[1] is False
        owner['swift.cache'] = Memcached()
        swift.send(swift, 'POST', CONTAINER, {'X-Container-Read': ''}, owner)
        query = f'limit={LIMIT}&marker={KEPT}&format=json'
        answer = swift.send(filter_app, 'GET', CONTAINER, env=env, query=query)
        assert answer.status_int == 403

    def test_asks_for_no_more_rows_than_container_servers_list(
        self, swift, filter_app, monkeypatch
    ):
        create(swift, filter_app, 1, 'single')
        for name in NAMES:
            put_sharded_row(swift, name, 'single')
        for each in (kept_pages_module, request_helpers):
            monkeypatch.setattr(each, 'CONTAINER_LISTING_LIMIT', 2 * LIMIT)
        path = f'/v1/{ACCOUNT}/single'
        for marker in NAMES[LIMIT - 1 :: LIMIT]:
            query = f'limit={LIMIT}&format=json&marker={marker}'
            answer = swift.send(filter_app, 'GET', path, query=query)
            assert answer.status_int == 200

    def test_asks_for_no_more_rows_once_container_servers_list_fewer(
        self, swift, filter_app, monkeypatch
    ):
        page(swift, filter_app)
        for each in (kept_pages_module, request_helpers):
            monkeypatch.setattr(each, 'CONTAINER_LISTING_LIMIT', LIMIT)
        assert page(swift, filter_app, NAMES[4])[0] == NAMES[5:10]

    @pytest.mark.parametrize('delimiter', NO_SUCCESSOR)
    def test_does_not_read_ahead_where_container_servers_fail(
        self, swift, filter_app, delimiter
    ):
        """They fail after the pages that the client requests."""
        for name in (f'059{delimiter}', f'059{delimiter}x'):
            put_sharded_row(swift, name)
        query = f'delimiter={quote(delimiter)}'
        for begin in range(0, 5 * LIMIT, LIMIT):
            marker = NAMES[begin - 1] if begin else ''
            names, _ = page(swift, filter_app, marker, query)
            assert names == NAMES[begin : begin + LIMIT]

    @pytest.mark.parametrize(
        ('query', 'headers'),
        [
            ('prefix=0', {}),
            ('end_marker=9', {}),
            ('delimiter=/', {}),
            ('reverse=on', {}),
            ('', {'X-Newest': 'true'}),
            ('', {REQUEST_HEADER: '0'}),
            ('versions', {}),
            ('path=', {}),
            ('allow_unordered=on', {}),
        ],
    )
    def test_does_not_take_pages_of_another_one(
        self, swift, filter_app, query, headers
    ):
        walk(swift, filter_app)
        assert page(swift, filter_app, KEPT)[1] is False
        args = (swift, filter_app, KEPT, query, headers)
        assert page(*args)[1]

    def test_is_refused_like_any_listing(self, swift, filter_app):
        walk(swift, filter_app)
        swift.register('GET', CONTAINER, 503)
        query = f'limit={LIMIT}&marker={KEPT}&format=json'
        forget_requests(swift)
        answer = swift.send(filter_app, 'GET', CONTAINER, query=query)
        assert answer.status_int == 503
        assert len(swift.calls) == 1


class TestSamePageAgain:
    @pytest.mark.parametrize(
        'query', ['', 'prefix=02', 'delimiter=1', 'reverse=on', 'end_marker=9']
    )
    def test_is_not_read_again(self, swift, filter_app, query):
        first, is_read = page(swift, filter_app, query=query)
        assert first
        assert is_read
        assert page(swift, filter_app, query=query) == (first, False)

    def test_is_not_lost_when_the_page_before_is_read(self, swift, filter_app):
        for marker in (NAMES[9], NAMES[4]):
            page(swift, filter_app, marker)
        assert page(swift, filter_app, NAMES[9])[1] is False

    def test_is_not_read_again_if_it_has_all_names(self, swift, filter_app):
        whole = {'limit': 10_000}
        assert page(swift, filter_app, **whole) == (NAMES, True)
        assert page(swift, filter_app, **whole) == (NAMES, False)

    @pytest.mark.parametrize(
        'query',
        [
            *('path=', 'allow_unordered=on', 'versions=on'),
            *(f'delimiter={quote(each)}' for each in NO_SUCCESSOR),
        ],
    )
    def test_is_read_again_with_some_parameters(
        self, swift, filter_app, query
    ):
        for _again in range(2):
            assert page(swift, filter_app, query=query)[1]

    @pytest.mark.parametrize(
        ('query', 'headers'),
        [
            ('path=', {}),
            ('allow_unordered=on', {}),
            ('versions=on', {}),
            ('', {'X-Newest': 'true'}),
            ('', {REQUEST_HEADER: '0'}),
        ],
    )
    def test_is_read_again_if_the_first_request_was_another_one(
        self, swift, filter_app, query, headers
    ):
        page(swift, filter_app, query=query, headers=headers)
        assert page(swift, filter_app)[1]

    def test_is_read_again_if_the_root_has_a_later_layout(
        self, swift, filter_app
    ):
        page(swift, filter_app)
        layout = replace(layout_of(swift), changed='f' * 13)
        headers = {RECORD_HEADER: layout.to_record()}
        env = {'swift_owner': True, 'swift.cache': Memcached()}
        swift.send(swift, 'POST', CONTAINER, headers, env)
        assert page(swift, filter_app)[1]

    def test_of_a_directory_in_one_shard_is_not_read_again(
        self, swift, filter_app
    ):
        create(swift, filter_app, SHARDS, 'deep', depth=1)
        put_sharded_row(swift, 'a/b', 'deep')
        for is_first in (True, False):
            answer, is_read = ask(
                swift,
                filter_app,
                path=f'/v1/{ACCOUNT}/deep',
                query='prefix=a/',
            )
            assert json.loads(answer.body)[0]['name'] == 'a/b'
            assert is_read is is_first

    def test_does_not_replace_the_counts_that_quotas_use(
        self, swift, filter_app
    ):
        owner = {'swift_owner': True}
        quota = {'X-Container-Meta-Quota-Count': '100'}
        swift.send(filter_app, 'POST', CONTAINER, quota, owner)
        page(swift, filter_app)
        put_sharded_row(swift, 'new')
        swift.send(filter_app, 'HEAD', CONTAINER, {'X-Newest': 'true'})
        assert not page(swift, filter_app)[1]
        info = swift.memcached.get(get_cache_key(ACCOUNT, 'c'))
        assert int(info['object_count']) == len(NAMES) + 1

    def test_costs_a_read_of_the_root(self, swift, filter_app):
        page(swift, filter_app)
        page(swift, filter_app)
        paths = [path for _device, _method, path in swift.servers.asked]
        assert paths == [f'/{ACCOUNT}/c']


def ask(swift, app, headers=None, path=CONTAINER, query='', env=None):
    """Return the response to a GET of a page, and True if it was read anew."""
    forget_requests(swift)
    query = f'format=json&limit={LIMIT}&{query}'
    answer = swift.send(app, 'GET', path, headers, env, query=query)
    return answer, len(swift.servers.asked) > 1


class TestAge:
    def test_of_a_kept_page_is_shown_in_seconds(
        self, swift, filter_app, clock
    ):
        answer, is_read = ask(swift, filter_app)
        assert 'Age' not in answer.headers
        assert is_read
        clock.now += 2.5
        answer, is_read = ask(swift, filter_app)
        assert answer.headers['Age'] == '3'
        assert not is_read

    def test_counts_from_when_the_read_began(self, swift, filter_app, clock):
        def wait():
            clock.now += 7

        swift.before('GET', CONTAINER, wait)
        ask(swift, filter_app)
        assert ask(swift, filter_app)[0].headers['Age'] == '7'

    def test_is_at_most_what_the_container_allows(
        self, swift, filter_app, clock
    ):
        ask(swift, filter_app)
        clock.now += SECONDS
        assert ask(swift, filter_app)[0].headers['Age'] == str(SECONDS)
        clock.now += 0.1
        assert ask(swift, filter_app)[1]

    def test_is_at_most_that_while_the_root_is_read(
        self, swift, filter_app, clock
    ):
        def wait():
            clock.now += SECONDS

        ask(swift, filter_app)
        clock.now += 1
        swift.before('GET', CONTAINER, wait)
        assert ask(swift, filter_app)[1]

    def test_is_at_most_what_the_request_asks_for(
        self, swift, filter_app, clock
    ):
        ask(swift, filter_app)
        clock.now += 5
        assert not ask(swift, filter_app, {REQUEST_HEADER: '5'})[1]
        assert ask(swift, filter_app, {REQUEST_HEADER: '4'})[1]

    def test_of_a_page_that_a_request_had_read_is_that_of_this_read(
        self, swift, filter_app, clock
    ):
        ask(swift, filter_app)
        clock.now += 5
        ask(swift, filter_app, {REQUEST_HEADER: '4'})
        clock.now += 3
        assert ask(swift, filter_app)[0].headers['Age'] == '3'

    def test_of_a_page_from_the_future_is_unknown(
        self, swift, filter_app, clock
    ):
        """The clock of the proxy that has read the page is ahead."""
        ask(swift, filter_app)
        clock.now -= 1
        assert ask(swift, filter_app)[1]

    def test_that_is_no_number_is_refused(self, swift, filter_app):
        answer, _ = ask(swift, filter_app, {REQUEST_HEADER: 'x'})
        assert answer.status_int == 400
        assert b'whole number of seconds' in answer.body

    def test_is_bounded_by_memcached_whatever_the_clocks_of_proxies_say(
        self, swift, filter_app, clock, monkeypatch
    ):
        def wait():
            clock.now += 7

        def set_multi(_values, _place, serialize, time):
            seconds.append(time)

        seconds = []
        monkeypatch.setattr(swift.memcached, 'set_multi', set_multi)
        swift.before('GET', CONTAINER, wait)
        ask(swift, filter_app)
        assert seconds == [SECONDS - 7 - 5]

    @pytest.mark.parametrize('headers', [{}, {REQUEST_HEADER: '60'}])
    def test_is_0_without_a_setting_and_memcached_is_not_asked(
        self, swift, clock, headers, monkeypatch
    ):
        filter_app = filtered(swift)
        create(swift, filter_app, SHARDS)
        ask(swift, filter_app)
        for method in ('get_multi', 'set_multi'):
            monkeypatch.delattr(Memcached, method)
        ask(swift, filter_app, headers)
        assert len(swift.servers.asked) == 1 + SHARDS


class TestSetting:
    OWNER = {'swift_owner': True}

    @pytest.fixture
    def filter_app(self, swift, clock):
        filter_app = filtered(swift)
        create(swift, filter_app, SHARDS)
        return filter_app

    def post(self, swift, app, headers, status=204, path=CONTAINER):
        answer = swift.send(app, 'POST', path, headers, self.OWNER)
        assert answer.status_int == status
        return answer

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_is_shown(self, swift, filter_app, method):
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        answer = swift.send(filter_app, method, CONTAINER)
        assert answer.headers[MAX_AGE_HEADER] == '30'

    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_of_the_operator_is_shown(self, swift, clock, method):
        filter_app = filtered(swift, listing_max_age='30')
        create(swift, filter_app, SHARDS)
        answer = swift.send(filter_app, method, CONTAINER)
        assert answer.headers[MAX_AGE_HEADER] == '30'

    def test_comes_with_the_creation_of_a_container(self, swift, filter_app):
        headers = {'X-Container-Shard-Count': '4', MAX_AGE_HEADER: '30'}
        path = f'/v1/{ACCOUNT}/new'
        swift.send(filter_app, 'PUT', path, headers)
        answer = swift.send(filter_app, 'HEAD', path)
        assert answer.headers[MAX_AGE_HEADER] == '30'

    def test_has_an_effect_at_once_and_until_it_is_removed(
        self, swift, filter_app
    ):
        assert [ask(swift, filter_app)[1] for _ in range(2)] == [True, True]
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        assert [ask(swift, filter_app)[1] for _ in range(2)] == [True, False]
        self.post(swift, filter_app, {MAX_AGE_HEADER: ''})
        assert ask(swift, filter_app)[1]

    def test_that_is_lowered_counts_though_the_proxy_does_not_know_it_yet(
        self, swift, filter_app, clock
    ):
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        ask(swift, filter_app)
        clock.now += 10
        env = {**self.OWNER, 'swift.cache': Memcached()}
        swift.send(filter_app, 'POST', CONTAINER, {MAX_AGE_HEADER: '9'}, env)
        assert ask(swift, filter_app)[1]

    def test_that_is_lowered_counts_for_pages_that_are_kept_already(
        self, swift, filter_app, clock
    ):
        """The clock of the other proxy is behind, so they seem younger."""
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        page(swift, filter_app)
        self.post(swift, filter_app, {MAX_AGE_HEADER: '10'})
        clock.now += 5
        assert page(swift, filtered(swift))[1]

    def test_that_is_removed_counts_though_the_proxy_does_not_know_it_yet(
        self, swift, filter_app
    ):
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        swift.send(filter_app, 'HEAD', CONTAINER)
        env = {**self.OWNER, 'swift.cache': Memcached()}
        swift.send(filter_app, 'POST', CONTAINER, {MAX_AGE_HEADER: ''}, env)
        ask(swift, filter_app)
        assert not [key for key in swift.memcached.values if PAGE_KEY in key]

    def test_of_another_value_is_refused_and_changes_nothing(
        self, swift, filter_app
    ):
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        headers = {MAX_AGE_HEADER: 'x', 'X-Container-Meta-A': 'b'}
        answer = self.post(swift, filter_app, headers, 400)
        assert b'from 0 to 3600' in answer.body
        answer = swift.send(filter_app, 'HEAD', CONTAINER)
        assert answer.headers[MAX_AGE_HEADER] == '30'
        assert 'X-Container-Meta-A' not in answer.headers

    def test_is_kept_by_a_plain_container(self, swift, filter_app):
        path = f'/v1/{ACCOUNT}/plain'
        swift.send(filter_app, 'PUT', path, {MAX_AGE_HEADER: '30'})
        for _again in range(2):
            answer, _ = ask(swift, filter_app, path=path)
            assert answer.headers[MAX_AGE_HEADER] == '30'
            assert 'Age' not in answer.headers

    def test_of_an_earlier_container_is_gone(self, swift, filter_app):
        self.post(swift, filter_app, {MAX_AGE_HEADER: '30'})
        ask(swift, filter_app)
        assert swift.send(filter_app, 'DELETE', CONTAINER).status_int == 204
        create(swift, filter_app, SHARDS)
        answer = swift.send(filter_app, 'HEAD', CONTAINER)
        assert MAX_AGE_HEADER not in answer.headers


class TestOtherContainer:
    def test_of_the_same_name_has_pages_of_its_own(self, swift, clock):
        filter_app = filtered(swift, listing_max_age=str(SECONDS))
        create(swift, filter_app, SHARDS)
        assert page(swift, filter_app)[0] == []
        swift.send(filter_app, 'DELETE', CONTAINER)
        create(swift, filter_app, SHARDS)
        put_sharded_row(swift, 'new')
        assert page(swift, filter_app) == (['new'], True)

    def test_that_is_gone_is_not_listed(self, swift, clock):
        filter_app = filtered(swift, listing_max_age=str(SECONDS))
        create(swift, filter_app, SHARDS)
        page(swift, filter_app)
        swift.send(filter_app, 'DELETE', CONTAINER)
        answer, _ = ask(swift, filter_app)
        assert answer.status_int == 404


def test_a_process_that_keeps_nothing_does_not_use_what_others_keep(
    swift, filter_app
):
    page(swift, filter_app)
    options = {
        'listing_max_age': str(SECONDS),
        'listing_kept_megabytes': '0',
    }
    assert page(swift, filtered(swift, **options))[1]


def test_no_page_is_kept_while_the_layout_changes(swift, filter_app):
    layout = layout_of(swift)
    changing = Layout(
        '65a1b2c3d4e60', 2, layout.shards, layout.id, 'announced', 'f' * 13
    )
    assert changing.is_changing
    kept_pages = KeptPages(ShortStore(MEGABYTE))
    target = LogicalContainer(Path('v1', ACCOUNT, 'c'), {}, changing)
    env = {'swift.cache': (memcached := Memcached())}
    params = ListingParams(LIMIT)
    rows = rows_of({'name': name} for name in NAMES[:LIMIT])
    page = Page(0, STATS, to_json(rows.texts))
    kept_pages.keep(env, target, params, rows, page, 1, SECONDS, 2000)
    assert kept_pages.find(env, target, params, SECONDS) == (0, None)
    assert memcached.values == {}


#: Names that are prefixes, subdirs and neighbours of each other.
NEIGHBOURS = [
    *('a', 'a/', 'a/b', 'a/b/', 'a/b/c', 'a/c', 'a//', 'a//b', 'a0', 'a-'),
    *('ab', 'ab/c', 'b', 'b/', 'b/b/', 'b//b//c', '/', '//', '/a', '0', 'c/d'),
    *('c/e', 'c/f/g', 'c0', 'd/', 'd/e', 'e', 'f/g/h', 'f/g/i', 'g', 'h/i'),
]


@pytest.mark.parametrize(
    'query',
    [
        *('', 'delimiter=/', 'delimiter=//', 'reverse=on', 'prefix=a'),
        *(
            'delimiter=/&reverse=on',
            'delimiter=/&prefix=a/',
            'prefix=c/',
        ),
        *('delimiter=b&reverse=on', 'end_marker=c/'),
    ],
)
@pytest.mark.parametrize('limit', [1, 2, 3])
def test_a_walk_is_the_one_through_a_plain_container(swift, query, limit):
    filter_app = filtered(swift, listing_max_age=str(SECONDS))
    create(swift, filter_app, SHARDS)
    plain = f'{CONTAINER}-plain'
    swift.send(filter_app, 'PUT', plain)
    for name in NEIGHBOURS:
        put_sharded_row(swift, name, size=1)
        swift.put_row(f'/{ACCOUNT}/c-plain/{name}', size=1)

    def pages(path: str) -> list[list[str]]:
        marker, found = '', []
        while not found or found[-1]:
            text = f'format=json&limit={limit}&marker={quote(marker)}&{query}'
            answer = swift.send(filter_app, 'GET', path, query=text)
            rows = json.loads(answer.body)
            found.append([row.get('name') or row['subdir'] for row in rows])
            marker = found[-1][-1] if rows else ''
        return found

    assert pages(CONTAINER) == pages(plain)


class Container:
    """The rows of a container, and how pages of them are read and kept."""

    def __init__(self, names: list[str], shards: int, limit: int) -> None:
        self.names = names
        self.limit = limit
        self.memcached = Memcached()
        self.env = {'swift.cache': self.memcached}
        layout = Layout('65a1b2c3d4e5f', shards)
        self.target = LogicalContainer(Path('v1', ACCOUNT, 'c'), {}, layout)
        self.kept_pages = KeptPages(ShortStore(100 * MEGABYTE))
        self.most_read = 0

    def keep(self, params: ListingParams, read: list[str], ahead: int) -> None:
        rows = rows_of({'name': name} for name in read)
        body = to_json(rows.texts[: params.limit])
        self.kept_pages.keep(
            *(self.env, self.target, params, rows),
            *(Page(time.time(), STATS, body), ahead, SECONDS),
            time.monotonic() + SECONDS,
        )

    def find(self, params: ListingParams) -> tuple[int, Page | None]:
        return self.kept_pages.find(self.env, self.target, params, SECONDS)

    def page(self, marker: str) -> list[str]:
        """Return the names after a marker."""
        params = ListingParams(self.limit, marker)
        ahead, page = self.find(params)
        if page is not None:
            return [row['name'] for row in json.loads(page.body)]
        behind = [name for name in self.names if name > marker]
        read = behind[: self.limit * ahead]
        self.most_read = max(self.most_read, len(read))
        self.keep(params, read, ahead)
        return read[: self.limit]


@given(
    st.sets(st.text(min_size=1, max_size=3), max_size=60),
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([None, 'S3']),
)
def test_every_page_is_the_one_behind_its_marker(names, limit, shards, source):
    container = Container(sorted(names), shards, limit)
    container.env['swift.source'] = source
    last_shown = -2 if source else -1
    markers = ['']
    while markers:
        marker = markers.pop()
        expected = [name for name in container.names if name > marker][:limit]
        assert container.page(marker) == expected
        if len(expected) >= -last_shown:
            markers.append(expected[last_shown])
    assert container.most_read <= max(limit, ROWS_PER_SHARD * shards)


@given(
    st.sets(st.integers(0, 99), max_size=40),
    st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=40),
    st.integers(1, 5),
)
def test_a_walk_during_writes_lists_all_that_stays_and_no_name_twice(
    names, writes, limit
):
    """A walk with the same pages came before the writes."""
    container = Container(sorted(f'{n:02}' for n in names), 2, limit)
    walk_through(container)
    stays = set(container.names) - {f'{n:02}' for _, n in writes}
    may_be = set(container.names) | {f'{n:02}' for _, n in writes}
    listed, marker = [], ''
    while page := container.page(marker):
        listed += page
        marker = page[-1]
        for is_put, number in (writes.pop() for _ in writes[:3]):
            present = set(container.names) - {f'{number:02}'}
            present |= {f'{number:02}'} if is_put else set()
            container.names = sorted(present)
    assert listed == sorted(set(listed))
    assert stays <= set(listed) <= may_be


def walk_through(container: Container) -> None:
    marker = ''
    while names := container.page(marker):
        marker = names[-1]


@pytest.mark.parametrize('most', [250, 470])
def test_pages_that_memcached_does_not_take_are_not_read_ahead(
    most, monkeypatch
):
    """All pages exceed 250 bytes, and the second one exceeds 470 bytes."""
    names = [f'{number:03}' + 'x' * 50 for number in range(5)]
    names += [f'{number:03}' + 'x' * 100 for number in range(5, 200)]
    container = Container(names, 4, LIMIT)
    monkeypatch.setattr(kept_pages_module, 'MOST_BYTES', most)
    walk_through(container)
    assert container.most_read == (LIMIT if most == 250 else 12 * LIMIT)


def test_no_value_is_larger_than_memcached_takes(monkeypatch):
    most = 450
    names = [f'{number:03}' + '"' * (number % 40) for number in range(60)]
    container = Container(names, 4, LIMIT)
    monkeypatch.setattr(kept_pages_module, 'MOST_BYTES', most)
    walk_through(container)
    values = container.memcached.values
    sizes = [len(values[key]) for key in values if f'{PAGE_KEY}/' in key]
    assert most * 0.8 < max(sizes) <= most


@pytest.mark.parametrize(
    ('shards', 'limit', 'delimiter', 'pages'),
    [
        (32, 1, '', MOST_PAGES),
        (32, 100, '', 100),
        (32, 1000, '', 10),
        (4, 100, '', 20),
        (32, 100, '/', 5),
        (32, 10_000, '', 1),
    ],
)
def test_pages_that_are_read_at_once_are_bounded(
    shards, limit, delimiter, pages
):
    container = Container([], shards, limit)
    params = ListingParams(limit, 'a', delimiter=delimiter)
    ahead = 1
    for _page in range(20):
        read = [f'{i:05}' for i in range(limit * ahead)]
        container.keep(params, read, ahead)
        last = ListingParams(limit, read[-1], delimiter=delimiter)
        ahead, _ = container.find(last)
    assert ahead == pages


def test_a_client_that_asks_for_any_page_has_few_of_them_kept():
    container = Container([f'{n:05}' for n in range(3000)], 4, 100)
    container.kept_pages = KeptPages(ShortStore(4 * 50_000))
    for prefix in range(3000):
        container.page(f'{prefix:05}x')
    kept = [
        value
        for value in container.memcached.values.values()
        if isinstance(value, bytes)
    ]
    assert 10_000 < sum(map(len, kept)) <= 50_000
