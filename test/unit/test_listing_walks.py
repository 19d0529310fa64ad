# SPDX-License-Identifier: Apache-2.0
"""Walks: pages that are read ahead, and kept until somebody writes."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.write_marks import HAS_MARKS_KEY, WriteMarks
from shardmw.listing.params import ListingParams
from shardmw.listing.rows import Rows, rows_of
from shardmw.listing.walks import (
    PAGE_ROWS_PER_SHARD,
    ROWS_PER_SHARD,
    Walks,
)
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
SECONDS = 5


@pytest.fixture
def filter_app(swift):
    filter_app = filtered(swift, walk_cache_seconds=str(SECONDS))
    # memcached has to be known for some time before it keeps anything.
    swift.memcached.set(HAS_MARKS_KEY, True)
    create(swift, filter_app, SHARDS)
    for name in NAMES:
        put_sharded_row(swift, name, size=10)
    return filter_app


def page(swift, app, marker='', query='', headers=None, env=None):
    """Return the names of a page, and whether shards were asked for it."""
    forget_requests(swift)
    query = f'format=json&limit={LIMIT}&marker={marker}&{query}'
    answer = swift.send(app, 'GET', CONTAINER, headers, env, query=query)
    assert answer.status_int == 200
    names = [row['name'] for row in json.loads(answer.body)]
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


class TestWalk:
    def test_lists_everything_once_with_few_reads(self, swift, filter_app):
        # 13 pages: 1, 2, 4 and 8 together
        assert walk(swift, filter_app) == (NAMES, 4)

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
    filter_app = filtered(swift, walk_cache_seconds=str(SECONDS))
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
        self.walks = Walks(WriteMarks(SECONDS), SECONDS)
        self.most_read = 0

    def page(self, marker: str, asked: float) -> list[str]:
        """Return the names behind a marker."""
        params = ListingParams(self.limit, marker)
        kept = self.walks.kept(self.env, self.target, params)
        if kept and kept.rows is not None:
            return kept.rows.names
        ahead = kept.ahead if kept else 1
        behind = [name for name in self.names if name > marker]
        read = behind[: self.limit * ahead]
        self.most_read = max(self.most_read, len(read))
        rows = rows_of({'name': name} for name in read)
        self.walks.keep(
            self.env, self.target, params, rows, STATS, ahead, asked
        )
        return read[: self.limit]


@given(
    st.sets(st.text(min_size=1, max_size=3), max_size=60),
    st.integers(1, 9),
    st.integers(1, 3),
)
def test_every_page_is_the_one_behind_its_marker(names, limit, shards):
    container = Container(sorted(names), shards, limit)
    markers = ['']
    while markers:
        marker = markers.pop()
        expected = [name for name in container.names if name > marker][:limit]
        assert container.page(marker, time.monotonic()) == expected
        if expected:
            markers.append(expected[-1])
    assert container.most_read <= max(limit, ROWS_PER_SHARD * shards)


def test_pages_of_many_rows_are_not_kept():
    target = Container(NAMES, 1, 1).target
    walks = Walks(WriteMarks(SECONDS), SECONDS)
    params = ListingParams(PAGE_ROWS_PER_SHARD + 1, 'a')
    env = {'swift.cache': (memcached := Memcached())}
    rows = Rows(['x'] * 200, [b'"name": "x"'] * 200)
    walks.keep(env, target, params, rows, STATS, 1, 0)
    assert memcached.values == {}
