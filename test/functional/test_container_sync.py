# SPDX-License-Identifier: Apache-2.0
"""Container sync between two clusters, in both directions.

A pair of plain containers shows what Swift does. Pairs with sharded containers
must do the same.
"""

import itertools
import json
from collections.abc import Iterator

import pytest

from test.functional.client import Answer
from test.functional.conftest import unique
from test.functional.operating import settle
from test.functional.syncing import (
    KEY,
    KINDS,
    Container,
    Pair,
    Side,
    errors,
    make_pair,
    send,
    sync,
    two_clusters,
)
from test.functional.unfiltered import running_unfiltered_proxy

SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
}

PAIRS = ['-to-'.join(kinds) for kinds in itertools.product(KINDS, repeat=2)]

NAMES = ['o', 'with space', '\u2603/\u00e4?#%20', 'a/b', *map(str, range(8))]


@pytest.fixture(scope='module')
def sides(tmp_path_factory) -> Iterator[tuple[Side, Side]]:
    with two_clusters(tmp_path_factory.mktemp('sync'), SETTINGS) as sides:
        yield sides


def listed_figures(container: Container) -> list[tuple]:
    """Return the columns of the listing that are equal in all pairs."""
    return [
        (row['name'], row['content_type'], row['bytes'], 'slo_etag' in row)
        for row in container.rows()
    ]


def put_large_object(container: Container) -> None:
    """Put a large object, with its segments in the same container."""
    path = f'/{container.name}/segment'
    container.ask('PUT', 'segment', body=b'01234')
    container.ask(
        'PUT',
        'large',
        body=json.dumps([{'path': path}, {'path': path}]).encode(),
        query={'multipart-manifest': 'put'},
    )


def fill(pair: Pair) -> None:
    """Upload to both sides."""
    here, there = pair
    for name in NAMES:
        here.ask('PUT', name, body=name.encode())
    for name in NAMES[::2]:
        there.ask('PUT', name, body=b'later')
    metadata = {'X-Object-Meta-Colour': 'red', 'Content-Type': 'text/x-own'}
    there.ask('PUT', 'metadata', headers=metadata)
    put_large_object(there)


def change(pair: Pair) -> None:
    """Overwrite, change and delete what is on both sides."""
    here, there = pair
    here.ask('PUT', 'o', body=b'overwritten here')
    there.ask('PUT', 'o', body=b'overwritten there')
    there.ask('DELETE', 'a/b')
    here.ask('DELETE', '1')
    there.ask('PUT', '1', body=b'after the deletion')
    there.ask('PUT', '2', body=b'before the deletion')
    here.ask('DELETE', '2')
    here.ask('POST', 'metadata', headers={'X-Object-Meta-Colour': 'blue'})


@pytest.fixture(scope='module')
def filled(sides) -> dict[str, Pair]:
    """One pair of each kind, filled before the first pass."""
    pairs = {kinds: make_pair(sides, kinds) for kinds in PAIRS}
    for pair in pairs.values():
        fill(pair)
    sync(sides)
    return pairs


@pytest.fixture(scope='module')
def changed(sides, filled) -> dict[str, Pair]:
    """Change each pair before the next pass, and return them."""
    uploaded = {kinds: pair.here.bodies() for kinds, pair in filled.items()}
    for kinds, pair in filled.items():
        pair.assert_alike()
        assert uploaded[kinds] == uploaded[PAIRS[0]]
        change(pair)
    sync(sides)
    return filled


class TestSync:
    @pytest.fixture(params=PAIRS)
    def pair(self, request, changed) -> Pair:
        return changed[request.param]

    def test_last_write_wins_on_both_sides(self, pair):
        pair.assert_alike()
        expected = {name: name.encode() for name in NAMES[1::2]}
        expected |= dict.fromkeys(NAMES[::2], b'later')
        del expected['a/b'], expected['2']
        assert pair.here.bodies() == {
            **expected,
            'o': b'overwritten there',
            '1': b'after the deletion',
            'metadata': b'',
            'segment': b'01234',
            'large': b'0123401234',
        }

    def test_metadata_is_synced(self, pair):
        for container in pair:
            shown = container.ask('HEAD', 'metadata').headers
            assert shown['x-object-meta-colour'] == 'blue'
            assert shown['content-type'] == 'text/x-own'

    def test_large_object_stays_a_large_object(self, pair):
        for container in pair:
            shown = container.ask('HEAD', 'large').headers
            assert shown['x-static-large-object'] == 'True'

    def test_rows_are_those_of_plain_containers(self, changed, pair):
        for container, plain in zip(pair, changed[PAIRS[0]], strict=True):
            assert listed_figures(container) == listed_figures(plain)

    def test_no_row_fails(self, sides, pair):
        assert errors(sides) == []


@pytest.fixture
def lone(sides, kind) -> Container:
    """A new container that does not sync."""
    container = Container(sides[0], unique('lone'))
    container.ask('PUT', headers=KINDS[kind])
    return container


def shown(container: Container) -> tuple[str | None, str | None]:
    """Return the settings that an owner sees."""
    answers = [container.ask(method) for method in ('GET', 'HEAD')]
    first, second = (
        tuple(
            answer.headers.get(f'x-container-sync-{s}') for s in ('to', 'key')
        )
        for answer in answers
    )
    assert first == second
    return first


def settings(to: str, key: str = KEY) -> dict[str, str]:
    return {'X-Container-Sync-To': to, 'X-Container-Sync-Key': key}


SET = settings('//saio/there/AUTH_test/c')
OTHER = settings('//saio/there/AUTH_test/other', 'another key')

#: Values that Swift refuses.
INVALID = [
    '//saio/nowhere/AUTH_test/c',
    '//nothing/there/AUTH_test/c',
    '//saio/there/AUTH_test',
    'http://elsewhere.example.com/v1/AUTH_test/c',
    'http://127.0.0.1/v1/AUTH_test/c?x',
    'ftp://127.0.0.1/v1/AUTH_test/c',
    'AUTH_test/c',
]


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('method', ['PUT', 'POST'])
class TestSettings:
    def test_are_shown(self, lone, method):
        lone.ask(method, headers=SET)
        assert shown(lone) == tuple(SET.values())

    def test_can_be_changed(self, lone, method):
        lone.ask(method, headers=SET)
        lone.ask(method, headers=OTHER)
        assert shown(lone) == tuple(OTHER.values())

    @pytest.mark.parametrize('name', SET)
    def test_can_be_changed_one_by_one(self, lone, method, name):
        lone.ask(method, headers=SET)
        lone.ask(method, headers={name: OTHER[name]})
        assert shown(lone) == tuple({**SET, name: OTHER[name]}.values())

    @pytest.mark.parametrize('name', SET)
    @pytest.mark.parametrize('how', ['empty', 'remove'])
    def test_can_be_removed(self, lone, method, name, how):
        lone.ask(method, headers=SET)
        remove = {'empty': {name: ''}, 'remove': {removing(name): 'x'}}[how]
        lone.ask(method, headers=remove)
        assert shown(lone) == tuple({**SET, name: None}.values())

    def test_are_only_for_owners(self, sides, lone, method):
        stranger = sides[0].login('test:tester3')
        acl = json.dumps({'read-write': ['test:tester3']})
        owner = lone.side.client
        assert (
            owner.post(headers={'X-Account-Access-Control': acl}).status == 204
        )
        visitor = stranger.visiting(owner)
        answer = visitor.request(method, lone.name, headers=SET)
        assert answer.status in (202, 204)
        assert shown(lone) == (None, None)
        lone.ask(method, headers=SET)
        for answer in (visitor.get(lone.name), visitor.head(lone.name)):
            assert answer.status == 204
            assert not [h for h in answer.headers if 'sync' in h]

    @pytest.mark.parametrize('to', INVALID)
    def test_that_swift_refuses_are_refused_alike(
        self, sides, lone, method, to
    ):
        lone.ask('POST', headers=SET)
        plain = Container(sides[0], unique('plain'))
        plain.ask('PUT')
        headers = {'X-Container-Sync-To': to, 'X-Container-Meta-Colour': 'x'}
        refusals = [
            each.side.client.request(method, each.name, headers=headers)
            for each in (lone, plain)
        ]
        assert [refusal.status for refusal in refusals] == [400, 400]
        assert refusals[0].body == refusals[1].body
        assert shown(lone) == tuple(SET.values())
        assert 'x-container-meta-colour' not in lone.ask('HEAD').headers

    def test_prevent_object_versioning(self, lone, method):
        lone.ask(method, headers=SET)
        headers = {'X-Versions-Enabled': 'true'}
        answer = lone.side.client.post(lone.name, headers=headers)
        assert answer.status == 400
        assert b'source of container syncing' in answer.body

    def test_are_refused_with_object_versioning(self, lone, method):
        lone.ask('POST', headers={'X-Versions-Enabled': 'true'})
        answer = lone.side.client.request(method, lone.name, headers=SET)
        assert answer.status == 400
        assert b'with object versioning configured' in answer.body


def removing(header: str) -> str:
    return header.replace('X-', 'X-Remove-')


def test_invalid_settings_of_a_new_container_are_refused_alike(sides):
    refusals = [
        refused_creation(
            sides[0], {**headers, 'X-Container-Sync-To': INVALID[0]}
        )
        for headers in KINDS.values()
    ]
    assert refusals[0].status == 400
    assert refusals[0].body == refusals[1].body


def refused_creation(side: Side, headers: dict) -> Answer:
    """Return the answer to a PUT that must not create anything."""
    name = unique('refused')
    answer = side.client.put(name, headers=headers)
    assert side.client.head(name).status == 404
    return answer


@pytest.fixture(scope='module')
def encrypted_sides(tmp_path_factory) -> Iterator[tuple[Side, Side]]:
    folder = tmp_path_factory.mktemp('encrypted')
    with two_clusters(folder, SETTINGS, encryption=True) as sides:
        yield sides


@pytest.fixture(scope='module')
def encrypted(encrypted_sides) -> dict[str, Pair]:
    """One pair of each kind, whose objects have been sent."""
    pairs = {kinds: make_pair(encrypted_sides, kinds) for kinds in PAIRS}
    metadata = {'X-Object-Meta-Colour': 'red'}
    for pair in pairs.values():
        pair.here.ask('PUT', 'o', body=b'from here', headers=metadata)
        pair.there.ask('PUT', 'a/\u2603', body=b'from there')
    sync(encrypted_sides)
    return pairs


@pytest.mark.parametrize('kinds', PAIRS)
def test_encrypted_objects_arrive_unchanged(encrypted, kinds):
    pair = encrypted[kinds]
    pair.assert_alike()
    bodies = {'o': b'from here', 'a/\u2603': b'from there'}
    assert pair.there.bodies() == bodies
    shown = pair.there.ask('HEAD', 'o').headers
    assert shown['x-object-meta-colour'] == 'red'


class TestReceiving:
    """Requests that the other cluster's daemon sends."""

    @pytest.mark.parametrize('kind', KINDS)
    def test_with_another_key_is_refused(self, sides, kind):
        here, there = (Container(side, unique('keys')) for side in sides)
        here.ask('PUT', headers=settings(there.sync_to, 'one key'))
        headers = {**KINDS[kind], 'X-Container-Sync-Key': 'another key'}
        there.ask('PUT', headers=headers)
        here.ask('PUT', 'o', body=b'x')
        send(sides[0])
        assert there.rows() == []
        there.ask('POST', headers={'X-Container-Sync-Key': 'one key'})
        send(sides[0])
        assert there.bodies() == {'o': b'x'}

    @pytest.mark.parametrize('kind', KINDS)
    def test_without_a_key_is_refused(self, sides, kind):
        here, there = (Container(side, unique('keys')) for side in sides)
        here.ask('PUT', headers=settings(there.sync_to))
        there.ask('PUT', headers=KINDS[kind])
        here.ask('PUT', 'o', body=b'x')
        send(sides[0])
        assert there.rows() == []


@pytest.mark.parametrize('kind', KINDS)
class TestSwitch:
    """A container that already has objects gets settings."""

    @pytest.fixture
    def target(self, sides) -> Container:
        target = Container(sides[1], unique('target'))
        target.ask('PUT', headers={'X-Container-Sync-Key': KEY})
        return target

    def test_on_sends_what_is_there(self, sides, lone, target):
        lone.ask('PUT', 'o', body=b'x')
        lone.ask('POST', headers=settings(target.sync_to))
        send(sides[0])
        assert target.bodies() == {'o': b'x'}

    def test_off_sends_nothing_more(self, sides, lone, target):
        lone.ask('POST', headers=settings(target.sync_to))
        lone.ask('PUT', 'before', body=b'x')
        send(sides[0])
        lone.ask('POST', headers={'X-Remove-Container-Sync-To': 'x'})
        lone.ask('PUT', 'after', body=b'x')
        lone.ask('DELETE', 'before')
        send(sides[0])
        assert target.bodies() == {'before': b'x'}

    def test_to_another_container_sends_all(self, sides, lone, target):
        lone.ask('POST', headers=settings(target.sync_to))
        lone.ask('PUT', 'o', body=b'x')
        send(sides[0])
        second = Container(sides[1], unique('second'))
        second.ask('PUT', headers={'X-Container-Sync-Key': KEY})
        lone.ask('POST', headers={'X-Container-Sync-To': second.sync_to})
        send(sides[0])
        assert second.bodies() == {'o': b'x'}

    def test_of_a_long_name_sends_its_objects(self, sides, kind, target):
        long = Container(sides[0], unique('\u2603' * 70))
        headers = {**KINDS[kind], **settings(target.sync_to)}
        long.ask('PUT', headers=headers)
        long.ask('PUT', 'o', body=b'x')
        send(sides[0])
        assert target.bodies() == {'o': b'x'}


class TestStrays:
    """Rows in the root, which move to the shards."""

    @pytest.fixture
    def pair(self, sides) -> Pair:
        """A pair of containers whose objects have been sent."""
        pair = make_pair(sides, 'sharded-to-plain')
        pair.here.ask('PUT', 'o', body=b'old')
        send(sides[0])
        assert pair.there.bodies() == {'o': b'old'}
        return pair

    def upload(self, container: Container, name: str, body: bytes) -> None:
        """Upload through a proxy without the filter."""
        side = container.side
        with running_unfiltered_proxy(side.cluster) as url:
            unfiltered = side.client.on(url)
            assert unfiltered.put(container.name, name, body).status == 201

    def test_are_not_sent_as_deletions(self, sides, pair):
        self.upload(pair.here, 'o', b'new')
        sync(sides)
        assert pair.here.bodies() == {'o': b'new'}
        sync(sides)
        assert pair.here.bodies() == {'o': b'new'}
        assert pair.there.bodies().keys() == {'o'}

    def test_are_sent_once_they_have_moved(self, sides, pair):
        self.upload(pair.here, 'o', b'new')
        assert pair.here.bodies() == {'o': b'new'}
        settle(sides[0].cluster)
        sync(sides)
        assert pair.there.bodies() == {'o': b'new'}
