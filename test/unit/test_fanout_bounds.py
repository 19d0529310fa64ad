# SPDX-License-Identifier: Apache-2.0
"""Many concurrent requests that read many shards."""

import json
from contextlib import ExitStack, contextmanager

import pytest

from shardmw.backend.containers import SHARD_COUNT_HEADER
from shardmw.swift.concurrency import Timeout, sleep, spawn
from test.unit.containers import CONTAINER, create, put_sharded_row
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, filtered

SHARDS = 6
NAMES = ['a', 'b', 'c', 'd', 'e']
CLIENTS = 8
BOUND = 2
PATIENCE_SECONDS = 60


class Reads:
    """A counter of the reads of shards that are under way.

    :ivar most: the most concurrent reads
    """

    def __init__(self, swift: FakeSwift) -> None:
        self.most = self._now = 0
        self._answer = swift.servers.answer
        swift.servers.answer = self.answer

    def answer(self, port, method, path, headers, body):
        if f'/{HIDDEN}/' not in path or method not in ('GET', 'HEAD'):
            return self._answer(port, method, path, headers, body)
        self._now += 1
        self.most = max(self.most, self._now)
        sleep(0)
        try:
            return self._answer(port, method, path, headers, body)
        finally:
            self._now -= 1


def bounded(swift: FakeSwift, bound: int = BOUND, **conf: str):
    """Return the filter, with a sharded container that has objects."""
    conf = {'account_fanout_concurrency': str(bound), **conf}
    app = filtered(swift, **conf)
    create(swift, app, SHARDS)
    for name in NAMES:
        put_sharded_row(swift, name)
    return app


def start(swift, app, method, path=CONTAINER, query='', headers=None):
    """Send a request in a green thread."""
    return spawn(swift.send, app, method, path, headers, None, query)


def test_listings_at_once_are_right_and_exceed_no_bound(swift):
    app = bounded(swift)
    reads = Reads(swift)
    asked = [
        start(swift, app, 'GET', query='format=json') for _ in range(CLIENTS)
    ]
    for each in asked:
        rows = json.loads(each.wait().body)
        assert [row['name'] for row in rows] == NAMES
    assert reads.most == BOUND


@contextmanager
def reading(app, accounts: list[str]):
    """Read a shard of each account for a listing until the end of a block."""
    with ExitStack() as stack:
        for account in accounts:
            stack.enter_context(app._parts.backend.read_turn(account, True))
        yield


def test_listings_wait_for_the_reads_of_all_accounts(swift):
    app = bounded(swift, max_fanouts='1')
    with Timeout(PATIENCE_SECONDS):
        with reading(app, [f'AUTH_{number}' for number in range(4)]):
            listing = start(swift, app, 'GET')
            sleep(0.1)
            assert not listing.dead
        assert listing.wait().status_int == 200


def test_heads_at_once_exceed_no_bound(swift):
    app = bounded(swift, head_cache_seconds='0')
    reads = Reads(swift)
    asked = [start(swift, app, 'HEAD') for _ in range(CLIENTS)]
    for each in asked:
        assert each.wait().headers['X-Container-Object-Count'] == '5'
    assert reads.most == BOUND


def test_one_turn_is_enough_for_requests_of_all_kinds(swift):
    app = bounded(
        swift,
        bound=1,
        fanout_wait_seconds=str(PATIENCE_SECONDS),
        container_ratelimit_0='1000',
        container_listing_ratelimit_0='1000',
    )
    Reads(swift)
    swift.allow_account_management = True
    shards = {SHARD_COUNT_HEADER: str(SHARDS)}
    asked = [
        each
        for i in range(3)
        for each in (
            start(swift, app, 'GET', query='format=json'),
            start(swift, app, 'GET', query='format=json&allow_unordered=1'),
            start(swift, app, 'HEAD'),
            start(swift, app, 'PUT', f'{CONTAINER}/object'),
            start(swift, app, 'PUT', f'{CONTAINER}{i}', headers=shards),
            start(swift, app, 'PUT', f'{CONTAINER}0', headers=shards),
            start(swift, app, 'PUT', CONTAINER, headers=shards),
            start(swift, app, 'DELETE'),
            start(swift, app, 'GET', f'/v1/{ACCOUNT}', 'format=json'),
            start(swift, app, 'DELETE', f'/v1/{ACCOUNT}'),
        )
    ]
    statuses = {each.wait().status_int for each in asked}
    assert statuses <= {200, 201, 202, 204, 409}


@pytest.fixture
def busy(swift):
    """Return the filter, while the account's only turn is taken."""
    app = bounded(
        swift,
        bound=1,
        fanout_wait_seconds='0.05',
        container_ratelimit_0='1000',
    )
    with app._parts.backend.turn({}, ACCOUNT):
        yield app


@pytest.mark.parametrize('method', ['GET', 'HEAD', 'DELETE'])
def test_a_request_that_gets_no_turn_is_told_to_retry(swift, busy, method):
    resp = swift.send(busy, method, CONTAINER)
    assert resp.status_int == 503
    assert int(resp.headers['Retry-After']) > 0
    assert 'no turn for account AUTH_test' in busy._logger.lines[-1]


def test_an_account_is_listed_when_its_containers_have_a_turn(swift, busy):
    path = f'/v1/{ACCOUNT}'
    assert swift.send(busy, 'HEAD', path).status_int == 204
    resp = swift.send(busy, 'GET', path, query='format=json')
    assert resp.status_int == 503
    assert int(resp.headers['Retry-After']) > 0


def test_accounts_at_once_list_their_shards_once(swift):
    app = bounded(swift, bound=1)
    path = f'/v1/{ACCOUNT}'
    swift.calls.clear()
    query = 'format=json'
    asked = [start(swift, app, 'GET', path, query) for _ in range(CLIENTS)]
    assert {each.wait().status_int for each in asked} == {200}
    assert swift.sent('GET').count(('GET', f'/v1/{HIDDEN}')) == 1


def test_a_creation_that_gets_no_turn_leaves_nothing(swift, busy):
    headers = {SHARD_COUNT_HEADER: str(SHARDS)}
    resp = swift.send(busy, 'PUT', f'{CONTAINER}2', headers)
    assert resp.status_int == 503
    assert swift.send(busy, 'HEAD', f'{CONTAINER}2').status_int == 404


@pytest.mark.parametrize('headers', [{}, {SHARD_COUNT_HEADER: str(SHARDS)}])
def test_a_repeated_put_needs_no_turn(swift, busy, headers):
    assert swift.send(busy, 'PUT', CONTAINER, headers).status_int == 202


def test_uploads_need_no_turn(swift, busy):
    resp = swift.send(busy, 'PUT', f'{CONTAINER}/object')
    assert resp.status_int == 201


def test_plain_containers_need_no_turn(swift, busy):
    path = f'{CONTAINER}2'
    assert swift.send(busy, 'PUT', path).status_int == 201
    assert swift.send(busy, 'GET', path).status_int == 200
    assert swift.send(busy, 'HEAD', path).status_int == 204
    assert swift.send(busy, 'DELETE', path).status_int == 204


def test_other_accounts_have_turns_of_their_own(swift, busy):
    headers = {SHARD_COUNT_HEADER: str(SHARDS)}
    path = '/v1/AUTH_other/c'
    assert swift.send(busy, 'PUT', path, headers).status_int == 201
    assert swift.send(busy, 'GET', path).is_success


@pytest.mark.parametrize(
    'accounts', [[ACCOUNT], [f'AUTH_{number}' for number in range(4)]]
)
def test_reads_for_writes_do_not_wait_for_those_of_listings(swift, accounts):
    app = bounded(
        swift, bound=1, max_fanouts='1', container_ratelimit_0='1000'
    )
    with Timeout(PATIENCE_SECONDS):
        with reading(app, accounts):
            listing = start(swift, app, 'GET')
            resp = swift.send(app, 'PUT', f'{CONTAINER}/object')
            assert resp.status_int == 201
            assert not listing.dead
        assert listing.wait().status_int == 200


def test_a_listing_of_a_directory_waits_for_no_upload_with_its_turn(swift):
    app = filtered(
        swift,
        max_fanouts='1',
        fanout_wait_seconds=str(PATIENCE_SECONDS),
        container_ratelimit_0='1000',
    )
    create(swift, app, SHARDS, depth=1)
    names = ['a/1', 'a/2', 'b/1']
    for name in names:
        put_sharded_row(swift, name)
    Reads(swift)
    with Timeout(PATIENCE_SECONDS):
        upload = start(swift, app, 'PUT', f'{CONTAINER}/object')
        listing = start(swift, app, 'GET', query='prefix=a/')
        assert upload.wait().status_int == 201
        resp = listing.wait()
    assert resp.headers['X-Container-Object-Count'] == '3'
    assert [row['name'] for row in json.loads(resp.body)] == names[:2]


def test_sums_are_right_however_long_their_reads_wait(swift):
    app = bounded(
        swift,
        bound=1,
        fanout_wait_seconds='0.05',
        container_ratelimit_0='1000',
    )
    with Timeout(PATIENCE_SECONDS):
        with app._parts.backend.read_turn(ACCOUNT, False):
            upload = start(swift, app, 'PUT', f'{CONTAINER}/object')
            sleep(0.1)
            assert not upload.dead
        assert upload.wait().status_int == 201
        query = 'allow_unordered=1'
        resp = start(swift, app, 'GET', query=query).wait()
    assert resp.headers['X-Container-Object-Count'] == str(len(NAMES))
