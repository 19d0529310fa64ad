# SPDX-License-Identifier: Apache-2.0
"""Listings through the backend, of container servers in memory."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from swift.common.swob import Request
from swift.common.utils import get_logger

from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.backend.shard_reads import ShardReads
from shardmw.core.batch import Source
from shardmw.core.layout import MOVING, Layout
from shardmw.core.listing_params import ListingParams
from shardmw.core.listing_rows import to_json
from shardmw.core.paths import Path
from shardmw.core.placement import shard_of
from shardmw.proxy.listing import request
from shardmw.proxy.listing.request import ROOT, ListingRequest
from shardmw.swift.concurrency import Timeout, sleep
from test.unit.container_databases import (
    IN_BODY,
    MAX_REQUEST_LINE,
    ContainerServers,
    Database,
    query_of,
    request_line,
)

SHARDS = 2
LAYOUT = Layout('65a1b2c3d4e5f', SHARDS)
INFO = {'status': 200, 'sysmeta': {}, 'storage_policy': '0'}
TARGET = LogicalContainer(Path('v1', 'a', 'c'), INFO, LAYOUT)
#: Layouts in which rows move from the root to shards, or back.
CONVERTING = replace(
    TARGET, layout=replace(LAYOUT, former=0, former_id='0', phase=MOVING)
)
RETURNING = replace(
    TARGET,
    layout=Layout('0', 0, former=SHARDS, former_id=LAYOUT.id, phase=MOVING),
)
PLAIN = 'a/c'
BACKING = [f'.shards_shardmw_a/c.{LAYOUT.id}.{i}' for i in range(SHARDS)]

NAMES = [f'{i:03}' for i in range(100)]

#: A server that takes batches.
NODE = {'device': 'd1'}


class Twins:
    """A plain and a sharded container, on separate servers.

    :param plain: the servers of the plain container
    :param sharded: the servers of the sharded container
    """

    def __init__(self, make: Callable[[str], Database]) -> None:
        self.plain = ContainerServers({PLAIN: make('plain')})
        self.sharded = ContainerServers(
            {PLAIN: make('root'), **{name: make(name) for name in BACKING}}
        )
        self.backend = Backend(self.sharded, get_logger({}), 4)

    def fill(self, names, strays=(), newer_strays=False) -> None:
        """Replace all rows."""
        self.plain.containers[PLAIN].fill({*names, *strays})
        self.sharded.containers[PLAIN].fill(strays, 2 if newer_strays else 1)
        for i, backing in enumerate(BACKING):
            self.sharded.containers[backing].fill(
                name for name in names if shard_of(name, SHARDS) == i
            )

    def request(
        self, params: ListingParams, target: LogicalContainer = TARGET
    ) -> ListingRequest:
        query = query_of(params) | {'limit': params.limit}
        req = Request.blank(f'/v1/a/c?{urlencode(query)}')
        req.environ['swift.infocache'] = {}
        return ListingRequest(self.backend, req, target)

    def listing(
        self, params: ListingParams, target: LogicalContainer = TARGET
    ) -> ListingRequest:
        """Return a listing whose root has been read."""
        listing = self.request(params, target)
        assert listing.read_root_and_shards(params).is_success
        return listing

    def names_in_root(self) -> list[str]:
        return self.sharded.containers[PLAIN].names

    def of_plain(self, params: ListingParams) -> bytes:
        """Return the listing of the plain container."""
        query = query_of(params) | {'limit': params.limit}
        req = Request.blank(f'/v1/a/c?{urlencode(query)}')
        return req.get_response(self.plain).body

    def of_sharded(self, params: ListingParams) -> bytes:
        """Return the listing of the sharded container."""
        return to_json(self.listing(params).rows(params).texts)

    def unordered(self, params: ListingParams) -> list[str]:
        """Return the names on a page of the unordered listing."""
        listing = self.request(params)
        assert listing.read_root().is_success
        return listing.unordered_rows(params, expected=10).names


@pytest.fixture(scope='module')
def databases(tmp_path_factory) -> Callable[[str], Database]:
    folder = tmp_path_factory.mktemp('databases')
    made = {}

    def make(name: str) -> Database:
        if name not in made:
            made[name] = Database(folder / name.replace('/', '-'))
        return made[name]

    return make


@pytest.fixture(params=[False, True], ids=['alone', 'together'])
def batches(request, monkeypatch):
    """Read the shards of a container in one request, as the filter allows."""
    if not request.param:
        return

    def ask_for(self, batch, method, queries):
        return [
            self.backend.send_to_shard(
                self.base,
                self.target,
                place.shard,
                method,
                query,
                {IN_BODY: 'true'},
            )
            for place, query in zip(batch, queries, strict=True)
        ]

    monkeypatch.setattr(
        ShardReads,
        'batches',
        lambda _self, shards, _rows=0: [[Source(s, NODE) for s in shards]],
    )
    monkeypatch.setattr(ShardReads, '_can_ask', lambda _self, _node: True)
    monkeypatch.setattr(ShardReads, '_ask_for', ask_for)


@pytest.fixture
def twins(databases, batches) -> Twins:
    return Twins(databases)


def assert_alike(twins: Twins, params: ListingParams) -> None:
    assert twins.of_sharded(params) == twins.of_plain(params)


class TestOrdered:
    @pytest.mark.parametrize(
        'params',
        [
            ListingParams(10_000),
            ListingParams(0),
            ListingParams(7, marker='010', end_marker='090'),
            ListingParams(7, prefix='05', reverse=True),
            ListingParams(7, delimiter='5', marker='02'),
            ListingParams(7, path=''),
        ],
    )
    @pytest.mark.parametrize('strays', [[], ['0010', '055', '0991']])
    def test_a_page_is_that_of_a_plain_container(self, twins, params, strays):
        twins.fill(NAMES, strays)
        assert_alike(twins, params)

    def test_a_row_that_moves_out_of_the_root_meanwhile_is_listed(self, twins):
        twins.fill(NAMES, ['stray'])

        def move(container: str) -> None:
            if container == PLAIN:
                twins.fill([*NAMES, 'stray'])

        twins.sharded.after = move
        params = ListingParams(10_000)
        assert twins.listing(params).rows(params).names[-1] == 'stray'

    @pytest.mark.parametrize('is_newer', [True, False])
    def test_the_newer_of_two_rows_is_listed(self, twins, is_newer):
        twins.fill(['a'], ['a'], newer_strays=is_newer)
        second = b'02.000000' if is_newer else b'01.000000'
        body = twins.of_sharded(ListingParams(9))
        assert body.count(b'"name"') == 1
        assert second in body

    def test_the_root_gets_the_clients_own_request(self, twins):
        twins.fill(NAMES)
        req = Request.blank('/v1/a/c?x=y&limit=3', headers={'X-Foo': 'bar'})
        root = ListingRequest(twins.backend, req, TARGET).read_root()
        assert root.is_success
        assert twins.sharded.asked(PLAIN) == [
            {'x': 'y', 'limit': '3', 'format': 'json'}
        ]

    def test_an_error_of_the_root_is_returned(self, twins):
        twins.sharded.statuses[PLAIN] = 404
        assert twins.request(ListingParams(9)).read_root().status == 404

    def test_an_error_of_the_root_is_no_page(self, twins):
        twins.sharded.statuses[PLAIN] = 503
        listing = twins.request(ListingParams(9))
        listing.read_root()
        with pytest.raises(BackendError, match='the root answered 503'):
            listing.rows(ListingParams(9))

    @pytest.mark.parametrize('status', [404, 414, 500, 503])
    @pytest.mark.parametrize('is_unordered', [True, False])
    def test_a_shard_that_cannot_be_read_fails_the_listing(
        self, twins, status, is_unordered
    ):
        twins.fill(NAMES)
        twins.sharded.statuses[BACKING[1]] = status
        params = ListingParams(10_000, is_unordered=is_unordered)
        list_page = twins.unordered if is_unordered else twins.of_sharded
        with pytest.raises(BackendError, match=f'shard 1 answered {status}'):
            list_page(params)

    def test_each_source_has_an_answer_with_its_count(self, twins):
        twins.fill(NAMES, ['stray'])
        listing = twins.listing(ListingParams(5))
        listing.rows(ListingParams(5))
        counts = {i: each.object_count for i, each in listing.answers.items()}
        assert counts.keys() == {ROOT, 0, 1}
        assert counts[ROOT] == 1
        assert sum(counts.values()) == len(NAMES) + 1

    def test_an_answer_of_the_root_can_be_handed_in(self, twins):
        twins.fill(NAMES)
        params = ListingParams(5)
        listing = twins.request(params)
        listing.answers[ROOT] = twins.request(params).read_root()
        assert listing.rows(params).names == NAMES[:5]
        assert len(twins.sharded.asked(PLAIN)) == 1


class TestShardsTogetherWithTheRoot:
    """Shards that are read at the same time as the root."""

    PARAMS = ListingParams(10_000)

    @pytest.fixture
    def answer_root_last(self, twins) -> None:
        """Let the root answer after the shards."""
        twins.sharded.before = lambda container: (
            self.wait_for_shards(twins) if container == PLAIN else None
        )

    def wait_for_shards(self, twins) -> None:
        with Timeout(5):
            while len(twins.sharded.requests) < 1 + SHARDS:
                sleep()

    def move_stray_first(self, twins) -> None:
        """Move a stray after the shards were read, before the root is read."""
        twins.fill(NAMES, ['stray'])

        def move(container: str) -> None:
            if container == PLAIN and 'stray' in twins.names_in_root():
                self.wait_for_shards(twins)
                twins.fill([*NAMES, 'stray'])

        twins.sharded.before = move

    @pytest.mark.usefixtures('answer_root_last')
    def test_are_read_once(self, twins):
        twins.fill(NAMES)
        listing = twins.listing(self.PARAMS)
        assert listing.rows(self.PARAMS).names == NAMES
        assert len(twins.sharded.requests) == 1 + SHARDS
        assert listing.request_count == 1 + SHARDS

    @pytest.mark.usefixtures('answer_root_last')
    def test_are_read_once_if_the_root_has_rows(self, twins):
        twins.fill(NAMES, ['stray'])
        names = twins.listing(self.PARAMS).rows(self.PARAMS).names
        assert names == [*NAMES, 'stray']
        assert len(twins.sharded.requests) == 1 + SHARDS

    def test_are_read_again_if_that_took_too_long(self, twins, monkeypatch):
        monkeypatch.setattr(request, 'STAY_SECONDS', 0)
        self.move_stray_first(twins)
        names = twins.listing(self.PARAMS).rows(self.PARAMS).names
        assert names == [*NAMES, 'stray']

    def test_show_no_stray_that_did_not_stay(self, twins):
        """This is why processes that move strays must wait."""
        self.move_stray_first(twins)
        assert twins.listing(self.PARAMS).rows(self.PARAMS).names == NAMES

    @pytest.mark.usefixtures('answer_root_last')
    def test_are_read_once_while_rows_move_out_of_the_root(self, twins):
        twins.fill(NAMES[::2], NAMES[1::2])
        listing = twins.listing(self.PARAMS, CONVERTING)
        assert listing.rows(self.PARAMS).names == NAMES
        assert len(twins.sharded.requests) == 1 + SHARDS

    def test_are_read_once_while_rows_move_into_the_root(self, twins):
        twins.fill(NAMES[::2], NAMES[1::2])
        listing = twins.listing(self.PARAMS, RETURNING)
        assert listing.rows(self.PARAMS).names == NAMES
        assert len(twins.sharded.requests) == 1 + SHARDS

    def test_are_read_again_if_rows_moved_for_too_long(
        self, twins, monkeypatch
    ):
        monkeypatch.setattr(request, 'STAY_SECONDS', 0)
        self.move_stray_first(twins)
        listing = twins.listing(self.PARAMS, CONVERTING)
        assert listing.rows(self.PARAMS).names == [*NAMES, 'stray']
        counts = [each.object_count for each in listing.answers.values()]
        assert sum(counts) == len(NAMES) + 1

    def test_are_read_before_the_root_if_rows_moved_into_it_for_too_long(
        self, twins, monkeypatch
    ):
        monkeypatch.setattr(request, 'STAY_SECONDS', 0)
        twins.fill(NAMES[:9], NAMES[9:])
        listing = twins.listing(self.PARAMS, RETURNING)
        twins.fill(NAMES[:9], [*NAMES[9:], 'moved'])
        assert listing.rows(self.PARAMS).names == [*NAMES, 'moved']
        asked = [container for container, _ in twins.sharded.requests]
        assert asked.count(PLAIN) == 2

    @pytest.mark.usefixtures('answer_root_last')
    def test_that_cannot_be_read_fail_the_listing(self, twins):
        twins.fill(NAMES)
        twins.sharded.statuses[BACKING[1]] = 500
        listing = twins.listing(self.PARAMS)
        with pytest.raises(BackendError, match='shard 1 answered 500'):
            listing.rows(self.PARAMS)

    def test_are_not_read_on_if_the_root_fails(self, twins):
        twins.fill(NAMES)
        twins.sharded.statuses[PLAIN] = 503
        twins.request(self.PARAMS).read_root_and_shards(self.PARAMS)
        for _ in range(9):
            sleep()
        assert [each for each, _ in twins.sharded.requests] == [PLAIN]


class TestBothLayouts:
    """Former and new shards, which are read together during a change."""

    FORMER_ID = '65a1b2c3d4e5e'
    GROWING = replace(
        TARGET,
        layout=replace(LAYOUT, former=3, former_id=FORMER_ID, phase=MOVING),
    )

    @pytest.fixture(autouse=True)
    def half_moved(self, twins, databases) -> None:
        twins.fill(NAMES[:60])
        for i in range(3):
            backing = f'.shards_shardmw_a/c.{self.FORMER_ID}.{i}'
            twins.sharded.containers[backing] = databases(backing)
            twins.sharded.containers[backing].fill(
                name for name in NAMES[40:] if shard_of(name, 3) == i
            )

    @pytest.mark.parametrize('limit', [1, 10, 99, 100, 10_000])
    @pytest.mark.parametrize('marker', ['', '030', '070'])
    def test_all_rows_are_listed_once(self, twins, limit, marker):
        params = ListingParams(limit, marker=marker)
        rows = twins.listing(params, self.GROWING).rows(params)
        expected = [name for name in NAMES if name > marker]
        assert rows.names == expected[:limit]

    @pytest.mark.parametrize('batches', [True], indirect=True)
    @pytest.mark.parametrize(
        ('params', 'batched'),
        [
            # those that rows move out of come first
            (ListingParams(10), [[2, 3, 4, 0, 1]]),
            (ListingParams(10_000), [[2, 3, 4], [0, 1]]),
            (ListingParams(10, delimiter='/'), [[2, 3, 4], [0, 1]]),
        ],
    )
    def test_few_rows_are_read_with_one_request_to_a_server(
        self, twins, monkeypatch, params, batched
    ):
        asked = []
        read_batch = ShardReads.read_batch

        def noting(self, batch, *args, **kwargs):
            asked.append([place.shard for place in batch])
            return read_batch(self, batch, *args, **kwargs)

        monkeypatch.setattr(ShardReads, 'read_batch', noting)
        listing = twins.listing(params, self.GROWING)
        assert listing.rows(params).names == NAMES[: params.limit]
        assert asked == batched
        assert listing.has_all_figures

    @pytest.mark.parametrize('slow', [FORMER_ID, LAYOUT.id])
    def test_new_ones_are_read_again_if_former_ones_took_too_long(
        self, twins, monkeypatch, slow
    ):
        monkeypatch.setattr(request, 'STAY_SECONDS', 0.6)
        twins.sharded.before = lambda container: (
            sleep(0.7) if slow in container else None
        )
        params = ListingParams(10_000)
        listing = twins.listing(params, self.GROWING)
        assert listing.rows(params).names == NAMES
        asked = [container for container, _ in twins.sharded.requests]
        counts = [asked.count(each) for each in twins.sharded.containers]
        times = 2 if slow == self.FORMER_ID else 1
        assert counts == [1, times, times, 1, 1, 1]
        assert listing.has_all_figures


@pytest.mark.parametrize('batches', [False], ids=['alone'], indirect=True)
class TestCosts:
    def test_each_shard_is_asked_once_for_all_rows(self, twins):
        twins.fill(NAMES)
        listing = twins.listing(ListingParams(10_000))
        listing.rows(ListingParams(10_000))
        costs = listing.request_count, listing.refills, listing.rounds
        assert costs == (SHARDS + 1, 0, 1)

    def test_shards_that_are_asked_twice_make_two_rounds(self, twins):
        in_first = [name for name in NAMES if shard_of(name, SHARDS) == 0]
        twins.fill(in_first)
        listing = twins.listing(ListingParams(40))
        listing.rows(ListingParams(40))
        # By the rows of the first shard, the second one is asked too little.
        costs = listing.request_count, listing.refills, listing.rounds
        assert costs == (SHARDS + 3, 2, 2)

    def test_the_root_makes_no_round(self, twins):
        listing = twins.listing(ListingParams(1))
        assert (listing.request_count, listing.rounds) == (1, 0)

    def test_rows_are_not_kept_with_answers(self, twins):
        twins.fill(NAMES)
        listing = twins.listing(ListingParams(10_000))
        listing.rows(ListingParams(10_000))
        assert [listing.answers[i].body for i in (0, 1)] == [[], []]


@pytest.mark.parametrize('container', [PLAIN, BACKING[0]])
@pytest.mark.parametrize('answer', [{}, 'x', [{}], [{'name': 1}]])
def test_json_that_is_no_listing_fails_the_listing(
    twins, monkeypatch, container, answer
):
    database = twins.sharded.containers[container]
    monkeypatch.setattr(database, 'rows', lambda _params: answer)
    listing = twins.listing(ListingParams(9))
    with pytest.raises(BackendError):
        listing.rows(ListingParams(9))


class TestUnordered:
    def walk(self, twins, limit: int) -> list[str]:
        walked = []
        while page := twins.unordered(
            ListingParams(limit, marker=(walked or [''])[-1])
        ):
            walked += page
        return walked

    @pytest.mark.parametrize('limit', [1, 7, 1000])
    def test_every_object_is_listed_once(self, twins, limit):
        strays = ['0010', '055', '0991']
        twins.fill(NAMES, strays)
        walked = self.walk(twins, limit)
        assert sorted(walked) == sorted({*NAMES, *strays})

    def test_an_empty_root_is_read_once(self, twins):
        twins.fill(NAMES)
        twins.unordered(ListingParams(1000))
        assert len(twins.sharded.asked(PLAIN)) == 1

    def test_strays_are_read_before_any_shard(self, twins):
        twins.fill(NAMES, ['stray'])
        twins.unordered(ListingParams(1000))
        asked = [container for container, _ in twins.sharded.requests]
        assert asked == [PLAIN, PLAIN, *BACKING]

    def test_strays_before_the_marker_belong_to_later_shards(self, twins):
        first = next(name for name in NAMES if shard_of(name, SHARDS) == 0)
        stray = next(
            name
            for name in map(str, range(99))
            if shard_of(f'!{name}', SHARDS) == 1
        )
        twins.fill([first], [f'!{stray}'])
        assert twins.unordered(ListingParams(9, marker=first)) == [f'!{stray}']

    def test_a_root_that_fails_then_fails_the_listing(self, twins):
        twins.fill(NAMES, ['stray'])

        def fail(container: str) -> None:
            twins.sharded.statuses[PLAIN] = 503

        twins.sharded.after = fail
        with pytest.raises(BackendError, match='the root answered 503'):
            twins.unordered(ListingParams(1000))

    def test_a_root_that_ignores_markers_fails_the_listing(
        self, twins, monkeypatch
    ):
        monkeypatch.setattr(request, 'CONTAINER_LISTING_LIMIT', 2)
        pages = [[{'name': 'a'}, {'name': 'b'}]] * 9
        twins.fill([], ['a', 'b'])
        root = twins.sharded.containers[PLAIN]
        monkeypatch.setattr(root, 'rows', lambda _params: pages.pop())
        with pytest.raises(BackendError):
            twins.unordered(ListingParams(9))
        assert len(twins.sharded.asked(PLAIN)) == 3

    def test_prefix_and_end_marker_apply_to_strays(self, twins):
        twins.fill(NAMES, ['0501', '0510', '0520', '1'])
        params = ListingParams(99, prefix='05', end_marker='052')
        expected = ['050', '0501', '051', '0510']
        assert sorted(twins.unordered(params)) == expected


#: A prefix that takes half of a request line, and names that begin with it.
PREFIX = '文' * 439 + '/'
LONG_NAMES = [PREFIX + '件' * 60 + f'{i:03}' for i in range(200)]
IN_FIRST = [name for name in LONG_NAMES if shard_of(name, SHARDS) == 0]
LONG_LISTINGS = {
    'prefix': ListingParams(30, prefix=PREFIX),
    'reverse': ListingParams(30, prefix=PREFIX, reverse=True),
    'end_marker': ListingParams(
        30, prefix=PREFIX[:390], end_marker=IN_FIRST[28]
    ),
    'end_marker, reverse': ListingParams(
        30, prefix=PREFIX[:390], end_marker=IN_FIRST[28], reverse=True
    ),
    'delimiter': ListingParams(30, prefix=PREFIX, delimiter='9'),
    'delimiter, reverse': ListingParams(
        30, prefix=PREFIX, delimiter='9', reverse=True
    ),
    'path': ListingParams(30, path=PREFIX[:-1]),
}

ALONE = pytest.mark.parametrize(
    'batches', [False], ids=['alone'], indirect=True
)
TOGETHER = pytest.mark.parametrize(
    'batches', [True], ids=['together'], indirect=True
)

#: Listings whose parameters are padded up to the limit.
LIMIT_LISTINGS = {
    'prefix': ListingParams(30, prefix='文' * 800),
    'prefix, reverse': ListingParams(30, prefix='文' * 800, reverse=True),
    'prefix, delimiter': ListingParams(30, prefix='文' * 800, delimiter='x'),
    'path': ListingParams(30, path='文' * 800),
    'marker': ListingParams(30, prefix='文' * 400, marker='文' * 410),
    'marker, reverse': ListingParams(
        30, prefix='文' * 400, marker='文' * 410, reverse=True
    ),
    'marker, delimiter': ListingParams(
        30, prefix='文' * 400, marker='文' * 410, delimiter='7'
    ),
    'marker in a subdir': ListingParams(
        30, prefix='文' * 400, marker='文' * 410, delimiter='件'
    ),
    'end_marker, reverse': ListingParams(
        30, prefix='文' * 400, end_marker='文' * 410, reverse=True
    ),
    'end_marker, delimiter': ListingParams(
        30, prefix='文' * 400, end_marker='文' * 410, delimiter='7'
    ),
    'end_marker in a subdir, reverse': ListingParams(
        99,
        prefix='文' * 400,
        end_marker='文' * 410,
        delimiter='件',
        reverse=True,
    ),
}

#: Names with a common beginning, and listings with a longer bound. Half of the
#: names come before the bound.
ALIKE = ['m' * 1000 + f'{c}{i:03}' for i in range(50) for c in 'az']
COSTLY = {
    'marker': ListingParams(1, marker='m' * 7000),
    'marker, reverse': ListingParams(1, marker='m' * 7000, reverse=True),
    'marker behind all names': ListingParams(1, marker='n' * 7000),
    'marker, delimiter': ListingParams(1, marker='m' * 7000, delimiter='/'),
    'prefix': ListingParams(1, prefix='m' * 7000),
    'prefix, marker': ListingParams(1, prefix='m' * 999, marker='m' * 6000),
    'prefix, reverse': ListingParams(1, prefix='m' * 7000, reverse=True),
    'end_marker': ListingParams(1, end_marker='m' * 7000),
    'end_marker, reverse': ListingParams(
        1, end_marker='m' * 7000, reverse=True
    ),
    'delimiter': ListingParams(1, delimiter='m' * 7000),
    'path': ListingParams(1, path='m' * 7000),
}


class TestLongQueries:
    @pytest.mark.parametrize('name', LONG_LISTINGS)
    @pytest.mark.parametrize(
        'names', [IN_FIRST, LONG_NAMES], ids=['one shard', 'both shards']
    )
    def test_names_of_hundreds_of_characters_are_listed(
        self, twins, name, names
    ):
        twins.fill(names)
        assert_alike(twins, LONG_LISTINGS[name])

    def test_they_are_listed_by_one_more_request_a_page(self, twins):
        twins.fill(IN_FIRST)
        params = ListingParams(30, prefix=PREFIX)
        listing = twins.listing(params)
        assert listing.rows(params).names == IN_FIRST[:30]
        assert (listing.refills, listing.rounds) == (1, 2)

    @ALONE
    def test_subdirs_are_read_from_the_clients_marker_on(self, twins):
        """The last name does not fit into a request line with the prefix."""
        twins.fill(IN_FIRST)
        params = ListingParams(30, prefix=PREFIX, delimiter='9')
        assert len(twins.listing(params).rows(params).names) == 30
        whole_page = twins.sharded.asked(BACKING[0])[-1]
        assert whole_page['limit'] == '30'
        assert 'marker' not in whole_page

    def test_the_clients_host_takes_no_room(self, twins):
        twins.fill(NAMES, ['stray'])
        params = ListingParams(1, prefix='05')
        req = twins.request(params).req
        req.environ['HTTP_HOST'] = 'h' * 8100
        listing = ListingRequest(twins.backend, req, TARGET)
        listing.read_root_and_shards(params)
        assert listing.rows(params).names == ['050']
        for backing in BACKING:
            assert twins.sharded.asked(backing)[0]['prefix'] == '05'

    def test_they_are_listed_in_any_order(self, twins):
        twins.fill(LONG_NAMES[:40], LONG_NAMES[40:])
        params = ListingParams(1000, prefix=PREFIX)
        assert sorted(twins.unordered(params)) == LONG_NAMES

    @ALONE
    def test_no_shard_is_asked_too_long_a_line(self, twins):
        twins.fill(IN_FIRST)
        twins.of_sharded(ListingParams(30, prefix=PREFIX))
        twins.of_sharded(ListingParams(30, prefix=PREFIX, delimiter='9'))
        longest = max(
            len(request_line(*asked)) for asked in twins.sharded.requests
        )
        assert longest < MAX_REQUEST_LINE

    @pytest.mark.parametrize('name', COSTLY)
    def test_shards_return_no_more_rows_than_the_page_needs(self, twins, name):
        twins.fill(ALIKE)
        params = padded(COSTLY[name], 1)
        assert_alike(twins, params)
        returned = sum(twins.sharded.returned[each] for each in BACKING)
        assert returned <= SHARDS * params.limit

    def test_a_shard_returns_no_more_rows_than_a_page_in_any_order_needs(
        self, twins
    ):
        twins.fill(ALIKE)
        twins.unordered(padded(COSTLY['marker'], 1))
        assert sum(twins.sharded.returned[each] for each in BACKING) <= 2

    # With 1 byte left, a plain container still takes it.
    @pytest.mark.parametrize(
        'batches', [True], ids=['together'], indirect=True
    )
    @pytest.mark.parametrize('bytes_left', [1, 30, 60])
    @pytest.mark.parametrize('name', LIMIT_LISTINGS)
    def test_a_query_that_barely_fits_lists_what_a_plain_container_lists(
        self, twins, name, bytes_left
    ):
        params = padded(LIMIT_LISTINGS[name], bytes_left)
        twins.fill(names_around(params))
        assert_alike(twins, params)

    @pytest.mark.parametrize('bytes_left', [90, 110, 130, 160])
    @pytest.mark.parametrize('name', LIMIT_LISTINGS)
    def test_a_query_with_room_for_a_shards_path_lists_what_a_plain_one_lists(
        self, twins, name, bytes_left
    ):
        params = padded(LIMIT_LISTINGS[name], bytes_left)
        twins.fill(names_around(params))
        assert_alike(twins, params)

    @ALONE
    def test_a_query_without_room_needs_the_filter_of_container_servers(
        self, twins
    ):
        params = padded(LIMIT_LISTINGS['prefix'], 1)
        with pytest.raises(BackendError, match='answered 414'):
            twins.of_sharded(params)
        asked = {container for container, _ in twins.sharded.requests}
        assert asked == {PLAIN}


def names_around(params: ListingParams) -> set[str]:
    """Return names within a listing and next to its bounds."""
    start = params.path + '/' if params.path else params.prefix
    names = [start + f'{c}{i:03}' for c in ('', '語') for i in range(50)]
    subdirs = [start + f'{i:03}x/{j}' for i in range(9) for j in range(9)]
    bound = params.marker or params.end_marker
    around = [bound[:-2] + c for c in ('', '件', 'A', 'b', '語', '語x')]
    return {'a', '文', '語', *names, *subdirs, *around} - {''}


FORMAT = {'format': 'json'}


def padded(params: ListingParams, bytes_left: int) -> ListingParams:
    """Return parameters that leave this many bytes of the request line."""
    line = request_line(PLAIN, query_of(params) | FORMAT)
    wanted = MAX_REQUEST_LINE - bytes_left - len(line)
    padding = '件' * (wanted // 9) + 'a' * (wanted % 9)
    if params.path:
        return replace(params, path=params.path + padding)
    if params.marker:
        return replace(params, marker=params.marker + padding)
    if params.end_marker:
        return replace(params, end_marker=params.end_marker + padding)
    if len(params.delimiter) > 1:
        return replace(params, delimiter=params.delimiter + padding)
    return replace(params, prefix=params.prefix + padding)
