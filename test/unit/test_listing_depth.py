# SPDX-License-Identifier: Apache-2.0
"""Listings of containers that are sharded by directory."""

from collections.abc import Iterable
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.swob import Request
from swift.common.utils import get_logger

from shardmw.backend.containers import LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.core.layout import Layout
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import to_json
from shardmw.core.paths import Path
from shardmw.core.placement import shard_of
from shardmw.proxy.listing.request import ListingRequest
from test.unit.container_databases import (
    ContainerServers,
    Database,
    query_of,
)

SHARDS = 4
ROOT = 'a/c'
PLAIN = 'a/plain'
INFO = {'status': 200, 'sysmeta': {}, 'storage_policy': '0'}
LAYOUT = Layout('65a1b2c3d4e5f', SHARDS)
BY_DEPTH = {
    depth: Layout('65a1b2c3d4e5f', SHARDS, depth=depth) for depth in (1, 2)
}
#: Changes to and from a depth, and from one depth to another.
CHANGING = [
    LAYOUT.announced(SHARDS, 0, 1),
    LAYOUT.announced(2, 0, 2).moving(0),
    BY_DEPTH[1].announced(SHARDS, 0, 2).moving(0),
    BY_DEPTH[2].announced(3, 0).moving(0).cancelled(0),
    BY_DEPTH[1].announced(0, 0).moving(0),
    Layout('0' * 13, 0).announced(SHARDS, 0, 1).moving(0),
]

names = st.text(st.sampled_from('/a.0☃'), min_size=1, max_size=6)
short = st.text(st.sampled_from('/a.0☃'), max_size=4)
listings = st.builds(
    ListingParams,
    st.integers(0, 12),
    marker=short,
    end_marker=short,
    prefix=short,
    delimiter=st.sampled_from(['', '', '/', '/a']),
    path=st.none() | short,
    reverse=st.booleans(),
)

DIRECTORIES = [f'{top}/{sub}/' for top in 'abcd' for sub in 'xy']
TREE = [f'{directory}{i}' for directory in DIRECTORIES for i in range(4)]


class Container:
    """A plain and a sharded container with the same rows."""

    def __init__(self, folder) -> None:
        self._folder = folder
        self._databases: dict[str, Database] = {}

    def _database(self, place: str) -> Database:
        if place not in self._databases:
            path = self._folder / place.replace('/', '-')
            self._databases[place] = Database(path)
        return self._databases[place]

    def fill(self, layout: Layout, names: Iterable[str]) -> None:
        """Replace all rows; during a change, put them into both places."""
        self.target = LogicalContainer(Path('v1', 'a', 'c'), INFO, layout)
        shards = map(self.target.place_in, self.target.shards())
        places = [ROOT, *map(str, shards)]
        self.servers = ContainerServers(
            {place: self._database(place) for place in [PLAIN, *places]}
        )
        self.servers.containers[PLAIN].fill(names)
        rows = {place: [] for place in places}
        for number, name in enumerate(names):
            in_both = sorted(map(str, self.target.places_of(name)))
            rows[in_both[number % len(in_both)]].append(name)
        for place in places:
            self.servers.containers[place].fill(rows[place])

    def _request(self, params: ListingParams, path: str) -> Request:
        query = query_of(params) | {'limit': params.limit}
        req = Request.blank(f'/v1/{path}?{urlencode(query)}')
        req.environ['swift.infocache'] = {}
        return req

    def of_plain(self, params: ListingParams) -> bytes:
        req = self._request(params, PLAIN)
        return req.get_response(self.servers).body

    def listing(self, params: ListingParams) -> ListingRequest:
        req = self._request(params, ROOT)
        backend = Backend(self.servers, get_logger({}), 4)
        listing = ListingRequest(backend, req, self.target)
        listing.read_root_and_shards(params)
        return listing

    def of_sharded(self, params: ListingParams) -> bytes:
        return to_json(self.listing(params).rows(params).texts)

    def shards_asked(self, params: ListingParams) -> set[str]:
        """Return the backing containers that a listing reads."""
        self.servers.requests.clear()
        self.of_sharded(params)
        return {place for place, _ in self.servers.requests} - {ROOT}


@pytest.fixture(scope='module')
def container(tmp_path_factory) -> Container:
    return Container(tmp_path_factory.mktemp('databases'))


@pytest.mark.parametrize('layout', [*BY_DEPTH.values(), *CHANGING])
@given(names=st.lists(names, unique=True, max_size=20), params=listings)
def test_a_page_is_that_of_a_plain_container(container, layout, names, params):
    # By path, a container server omits the name right after those of a
    # pseudo-directory if both are in one database: see doc/clients.md. In
    # reverse, this is the name of the pseudo-directory itself.
    if params.path is not None:
        names = [n for n in names if '0' not in n and not n.endswith('/')]
    container.fill(layout, names)
    assert container.of_sharded(params) == container.of_plain(params)


@pytest.mark.parametrize(
    ('params', 'depth'),
    [
        (ListingParams(9, prefix='a/'), 1),
        (ListingParams(9, prefix='a/x/'), 1),
        (ListingParams(9, prefix='a/x/1'), 2),
        (ListingParams(9, prefix='a/', delimiter='/'), 1),
        (ListingParams(9, prefix='a/', reverse=True), 1),
        (ListingParams(9, prefix='a/', marker='a/y'), 1),
        (ListingParams(9, marker='a/x/0', end_marker='a/y'), 1),
        (ListingParams(9, marker='a0', end_marker='a/', reverse=True), 1),
        (ListingParams(9, path='a'), 1),
        (ListingParams(9, path='a/x/'), 2),
        (ListingParams(9, prefix='none/x/'), 2),
    ],
)
def test_a_page_within_a_directory_asks_its_shard(container, params, depth):
    container.fill(BY_DEPTH[depth], TREE)
    (asked,) = container.shards_asked(params)
    name = params.names_prefix() or params.names().after
    assert asked == str(container.target.place_of(f'{name}0'))


@pytest.mark.parametrize(
    ('params', 'depth'),
    [
        (ListingParams(9), 1),
        (ListingParams(9, prefix='a'), 1),
        (ListingParams(9, prefix='a/', delimiter='/'), 2),
        (ListingParams(9, path=''), 1),
        (ListingParams(9, marker='a/'), 1),
    ],
)
def test_any_other_page_asks_all_shards(container, params, depth):
    container.fill(BY_DEPTH[depth], TREE)
    assert len(container.shards_asked(params)) == SHARDS


@pytest.mark.parametrize(
    ('layout', 'asked'),
    [
        (LAYOUT.announced(SHARDS, 0, 1), 1 + SHARDS),
        (BY_DEPTH[1].announced(SHARDS, 0, 2).moving(0), SHARDS + 1),
        (BY_DEPTH[1].announced(2, 0, 1), 2),
        (BY_DEPTH[1].announced(0, 0), 1),
    ],
)
def test_during_a_change_each_place_is_asked_by_its_own_depth(
    container, layout, asked
):
    container.fill(layout, TREE)
    params = ListingParams(9, prefix='a/')
    assert len(container.shards_asked(params)) == asked


@given(names)
def test_during_a_change_a_name_has_the_place_of_each_depth(name):
    announced = BY_DEPTH[1].announced(SHARDS, 0, 2)
    moving = announced.moving(0)
    before, after = (
        LogicalContainer(Path('v1', 'a', 'c'), INFO, each)
        for each in (announced, moving)
    )
    new_place = after.place_in(shard_of(name, SHARDS, 2))
    old_place = after.place_in(SHARDS + shard_of(name, SHARDS, 1))
    assert before.place_of(name) == old_place
    assert after.place_of(name) == new_place
    assert before.places_of(name) == after.places_of(name)
    assert after.places_of(name) == {old_place, new_place}


def test_subdirs_of_the_depth_are_in_one_shard_each(container):
    container.fill(BY_DEPTH[1], TREE)
    found = [
        row['subdir']
        for shard in container.target.shards()
        for row in container.servers.containers[
            str(container.target.place_in(shard))
        ].rows({'delimiter': '/'})
    ]
    assert sorted(found) == ['a/', 'b/', 'c/', 'd/']


@pytest.mark.parametrize(
    ('prefix', 'is_unordered'), [('a/', False), ('a', True), ('', True)]
)
def test_an_unordered_page_within_a_directory_is_ordered(
    container, prefix, is_unordered
):
    container.fill(BY_DEPTH[1], TREE)
    params = ListingParams(9, prefix=prefix, is_unordered=True)
    listing = container.listing(params)
    assert listing.is_unordered(params) is is_unordered


@pytest.mark.parametrize(('prefix', 'has_all'), [('a/', False), ('a', True)])
def test_a_page_of_one_shard_lacks_the_figures_of_others(
    container, prefix, has_all
):
    container.fill(BY_DEPTH[1], TREE)
    params = ListingParams(9, prefix=prefix)
    listing = container.listing(params)
    listing.rows(params)
    assert listing.has_all_figures is has_all
