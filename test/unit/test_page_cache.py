# SPDX-License-Identifier: Apache-2.0
"""Pages that are kept until somebody writes, and those read ahead."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common import request_helpers
from swift.common.swob import HTTPForbidden, Request, Response

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.write_marks import (
    HAS_MARKS_KEY,
    MARK_KEY,
    WriteMarks,
)
from shardmw.controllers import container as container_module
from shardmw.listing import page_cache as page_cache_module
from shardmw.listing import request as request_module
from shardmw.listing.page_cache import (
    MOST_PAGES,
    PAGE_KEY,
    PAGE_ROWS_PER_SHARD,
    ROWS_PER_SHARD,
    PageCache,
)
from shardmw.listing.params import ListingParams
from shardmw.listing.rows import Rows, rows_of, to_json
from shardmw.record import Layout
from shardmw.stats.sums import ContainerStats
from test.unit.containers import (
    CONTAINER,
    create,
    forget_requests,
    put_sharded_row,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, Memcached, filtered

SHARDS = 4
LIMIT = 5
NAMES = [f'{number:03}' for number in range(60)]
#: After a walk, the page behind this name is kept.
KEPT = NAMES[19]
STATS = ContainerStats(60, 600)
#: Long enough for a busy machine: nothing expires in these tests.
SECONDS = 60


@pytest.fixture
def filter_app(swift, monkeypatch):
    # A busy machine may take long to read a root.
    for module in (container_module, request_module):
        monkeypatch.setattr(module, 'STAY_SECONDS', 60)
    filter_app = filtered(swift, listing_cache_seconds=str(SECONDS))
    # memcached has to be known for some time before it keeps anything.
    swift.memcached.set(HAS_MARKS_KEY, True)
    create(swift, filter_app, SHARDS)
    for name in NAMES:
        put_sharded_row(swift, name, size=10)
    return filter_app


def page(swift, app, marker='', query='', headers=None, env=None, limit=LIMIT):
    """Return the names of a page, and whether shards were asked for it."""
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


def walk(swift, app, **kwargs) -> tuple[list[str], int]:
    """Return what a walk lists, and for how many pages it asked shards."""
    listed, reads, marker = [], 0, ''
    while True:
        names, is_read = page(swift, app, marker, **kwargs)
        listed += names
        reads += is_read
        if len(names) < LIMIT:
            return listed, reads
        marker = names[-1]


def is_reader(req: Request) -> Response | None:
    """Allow what an ACL allows, as an auth filter does."""
    return None if req.acl else HTTPForbidden(request=req)


class TestWalk:
    def test_lists_everything_once_with_few_reads(self, swift, filter_app):
        # 13 pages: 1, 2, 4 and 8 together
        assert walk(swift, filter_app) == (NAMES, 4)

    @pytest.mark.parametrize(('limit', 'reads'), [(5, 4), (2, 6)])
    def test_of_s3_lists_everything_once_with_few_reads(
        self, swift, filter_app, limit, reads
    ):
        """Walk as s3api does, which shows its client a row less."""
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

    def test_begins_anew_after_a_write(self, swift, filter_app):
        walk(swift, filter_app)
        swift.send(filter_app, 'PUT', f'{CONTAINER}/021a')
        put_sharded_row(swift, '021a', size=1)
        names = page(swift, filter_app, KEPT)[0]
        assert names == ['020', '021', '021a', '022', '023']

    def test_begins_anew_after_a_change_of_metadata(self, swift, filter_app):
        walk(swift, filter_app)
        swift.send(filter_app, 'POST', f'{CONTAINER}/021')
        assert page(swift, filter_app, KEPT)[1]

    def test_shows_strays(self, swift, filter_app):
        walk(swift, filter_app)
        swift.put_row(f'/{ACCOUNT}/c/021a', size=1)
        names = page(swift, filter_app, KEPT)[0]
        assert names == ['020', '021', '021a', '022', '023']

    def test_reads_shards_if_the_root_has_answered_late(
        self, swift, filter_app, monkeypatch
    ):
        walk(swift, filter_app)
        monkeypatch.setattr(container_module, 'STAY_SECONDS', 0)
        assert page(swift, filter_app, KEPT)[1]

    def test_is_denied_to_clients_that_have_lost_access(
        self, swift, filter_app
    ):
        """The filter's proxy does not know yet that they have."""
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
        for each in (page_cache_module, request_helpers):
            monkeypatch.setattr(each, 'CONTAINER_LISTING_LIMIT', 2 * LIMIT)
        path = f'/v1/{ACCOUNT}/single'
        for marker in NAMES[LIMIT - 1 :: LIMIT]:
            query = f'limit={LIMIT}&format=json&marker={marker}'
            answer = swift.send(filter_app, 'GET', path, query=query)
            assert answer.status_int == 200

    @pytest.mark.parametrize(
        ('query', 'headers'),
        [
            ('prefix=0', {}),
            ('end_marker=9', {}),
            ('delimiter=/', {}),
            ('reverse=on', {}),
            ('', {'X-Newest': 'true'}),
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

    def test_is_read_again_after_a_write(self, swift, filter_app):
        page(swift, filter_app)
        swift.send(filter_app, 'PUT', f'{CONTAINER}/000a')
        put_sharded_row(swift, '000a')
        names, is_read = page(swift, filter_app)
        assert (names[:2], is_read) == (['000', '000a'], True)

    def test_is_not_kept_while_a_mark_lasts(self, swift, filter_app):
        swift.send(filter_app, 'PUT', f'{CONTAINER}/000a')
        page(swift, filter_app)
        keys = swift.memcached.values
        assert any(key.startswith(MARK_KEY) for key in keys)
        assert not any(key.startswith(PAGE_KEY) for key in keys)

    def test_is_not_lost_when_the_page_before_is_read(self, swift, filter_app):
        for marker in (NAMES[9], NAMES[4]):
            page(swift, filter_app, marker)
        assert page(swift, filter_app, NAMES[9])[1] is False

    def test_is_not_read_again_if_it_has_all_names(self, swift, filter_app):
        whole = {'limit': 10_000}
        assert page(swift, filter_app, **whole) == (NAMES, True)
        assert page(swift, filter_app, **whole) == (NAMES, False)

    def test_is_read_again_if_its_rows_cost_more(
        self, swift, filter_app, monkeypatch
    ):
        monkeypatch.setattr(page_cache_module, 'PAGE_ROWS_PER_SHARD', 1)
        for _again in range(2):
            assert page(swift, filter_app)[1]

    def test_with_a_delimiter_is_kept_however_many_rows_it_has(
        self, swift, filter_app, monkeypatch
    ):
        monkeypatch.setattr(page_cache_module, 'PAGE_ROWS_PER_SHARD', 1)
        first = page(swift, filter_app, query='delimiter=x')[0]
        again = page(swift, filter_app, query='delimiter=x')
        assert again == (first, False)


#: Names that are each other's prefixes, subdirs and neighbours.
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
    filter_app = filtered(swift, listing_cache_seconds=str(SECONDS))
    swift.memcached.set(HAS_MARKS_KEY, True)
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
        self.memcached.set(HAS_MARKS_KEY, True)
        self.env = {'swift.cache': self.memcached}
        layout = Layout('65a1b2c3d4e5f', shards)
        self.target = LogicalContainer('v1', ACCOUNT, 'c', {}, layout)
        self.page_cache = PageCache(WriteMarks(SECONDS), SECONDS)
        self.most_read = 0

    def page(self, marker: str, asked: float) -> list[str]:
        """Return the names behind a marker."""
        params = ListingParams(self.limit, marker)
        kept = self.page_cache.kept(self.env, self.target, params)
        if kept.body is not None:
            return [row['name'] for row in json.loads(kept.body)]
        behind = [name for name in self.names if name > marker]
        read = behind[: self.limit * kept.ahead]
        self.most_read = max(self.most_read, len(read))
        rows = rows_of({'name': name} for name in read)
        self.page_cache.keep(
            *(self.env, self.target, params, rows),
            *(to_json(rows.texts[: self.limit]), STATS, kept.ahead, asked),
        )
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
        assert container.page(marker, time.monotonic()) == expected
        if len(expected) >= -last_shown:
            markers.append(expected[last_shown])
    assert container.most_read <= max(limit, ROWS_PER_SHARD * shards)


def walk_through(container: Container) -> None:
    marker = ''
    while names := container.page(marker, time.monotonic()):
        marker = names[-1]


@pytest.mark.parametrize('name', ['{:03}' * 20, '"{:03}' * 15, 'é{:03}' * 12])
def test_pages_that_memcached_does_not_take_are_not_read_ahead(
    name, monkeypatch
):
    """A page of 5 rows has more than 350 bytes, quoted in a string of JSON."""
    names = [name.format(*[number] * 20) for number in range(40)]
    container = Container(sorted(names), 4, LIMIT)
    monkeypatch.setattr(page_cache_module, 'MOST_BYTES', 350)
    walk_through(container)
    assert container.most_read == LIMIT


def test_no_value_is_larger_than_memcached_takes(monkeypatch):
    most = 450
    names = [f'{number:03}' + '"' * (number % 40) for number in range(60)]
    container = Container(names, 4, LIMIT)
    monkeypatch.setattr(page_cache_module, 'MOST_BYTES', most)
    walk_through(container)
    values = container.memcached.values.values()
    assert 100 < max(map(len, values)) < most + 100


@pytest.mark.parametrize(
    ('shards', 'limit', 'delimiter', 'pages'),
    [
        (32, 1, '', MOST_PAGES),
        (32, 100, '', 100),
        (32, 1000, '', 10),
        (4, 100, '', 20),
        (32, 100, '/', 5),
    ],
)
def test_pages_that_are_read_at_once_are_bounded(
    shards, limit, delimiter, pages
):
    container = Container([], shards, limit)
    params = ListingParams(limit, 'a', delimiter=delimiter)
    ahead = 1
    for _page in range(20):
        rows = rows_of({'name': f'{i:05}'} for i in range(limit * ahead))
        args = (container.env, container.target)
        now = time.monotonic()
        body = to_json(rows.texts[:limit])
        container.page_cache.keep(*args, params, rows, body, STATS, ahead, now)
        last = ListingParams(limit, rows.names[-1], delimiter=delimiter)
        ahead = container.page_cache.kept(*args, last).ahead
    assert ahead == pages


@pytest.mark.parametrize('shards', [1, 2])
def test_pages_of_many_rows_are_not_kept(shards):
    limit = PAGE_ROWS_PER_SHARD * shards + 1
    target = Container(NAMES, shards, 1).target
    page_cache = PageCache(WriteMarks(SECONDS), SECONDS)
    params = ListingParams(limit, 'a')
    env = {'swift.cache': (memcached := Memcached())}
    rows = Rows(['x'] * limit, [b'"name": "x"'] * limit)
    body = to_json(rows.texts)
    now = time.monotonic()
    page_cache.keep(env, target, params, rows, body, STATS, 1, now)
    assert memcached.values == {}
