# SPDX-License-Identifier: Apache-2.0
"""Sharded containers in a cluster that encrypts what it stores.

Encryption is left of shardmw: it encrypts the ETags that go into rows and
decrypts those of merged listings.
"""

import hashlib
import json

import pytest
from hypothesis.stateful import run_state_machine_as_test
from shardmw_saio import Cluster, ClusterOptions

from test.functional.alike import make_twins, masked
from test.functional.archives import archive_of
from test.functional.backing import Backing
from test.functional.client import Client
from test.functional.conftest import (
    SHARDS,
    USER,
    Pair,
    make_plain,
    make_sharded,
)
from test.functional.operating import settle
from test.functional.realclients import s3_client
from test.functional.test_transparency import OnBoth, settings_for
from test.functional.unfiltered import running_unfiltered_proxy

BODY = b'to be found in the clear nowhere ' * 100
BODY_ETAG = hashlib.md5(BODY).hexdigest()
OTHER = b'another body'


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    options = ClusterOptions(encryption=True, policies=2)
    folder = tmp_path_factory.mktemp('encrypting')
    with Cluster(folder, options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def login(cluster):
    """Return a function that logs in the owner."""

    def logged_in(user: str = USER) -> Client:
        return Client.login(cluster.auth_url, user, cluster.users[user])

    return logged_in


@pytest.fixture(params=[make_plain, make_sharded])
def container(request, client) -> str:
    """A new container, once plain and once sharded."""
    return request.param(client)


def test_a_kept_page_shows_the_etags_of_the_plain_bodies(client):
    container = make_sharded(client, X_Container_Listing_Max_Age='3600')
    client.put(container, 'o', BODY)
    first, again = (client.listing(container) for _ in range(2))
    assert 'age' in again.headers
    assert again.body == first.body
    assert again.json()[0]['hash'] == BODY_ETAG


class TestObject:
    def test_reads_back_as_it_was_sent(self, client, container):
        client.put(container, 'o', BODY, headers={'X-Object-Meta-A': 'b'})
        answer = client.get(container, 'o')
        assert answer.body == BODY
        assert answer.headers['etag'] == BODY_ETAG
        assert answer.headers['x-object-meta-a'] == 'b'

    def test_can_be_read_by_range(self, client, container):
        client.put(container, 'o', BODY)
        answer = client.get(container, 'o', headers={'Range': 'bytes=30-40'})
        assert answer.status == 206
        assert answer.body == BODY[30:41]

    def test_takes_metadata(self, client, container):
        client.put(container, 'o', BODY)
        headers = {'X-Object-Meta-A': 'c', 'Content-Type': 'text/posted'}
        assert client.post(container, 'o', headers=headers).status == 202
        assert client.get(container, 'o').headers['x-object-meta-a'] == 'c'
        (row,) = client.listing(container).json()
        assert row['content_type'] == 'text/posted'
        assert row['hash'] == BODY_ETAG

    def test_can_be_copied(self, client, container):
        client.put(container, 'o', BODY)
        other = make_sharded(client)
        assert client.copy(container, 'o', f'{other}/p').status == 201
        assert client.get(other, 'p').body == BODY
        assert client.listing(other).json()[0]['hash'] == BODY_ETAG

    @pytest.mark.parametrize(
        ('headers', 'status'),
        [
            ({'If-Match': BODY_ETAG}, 200),
            ({'If-Match': f'"{BODY_ETAG}"'}, 200),
            ({'If-Match': '"x"'}, 412),
            ({'If-None-Match': BODY_ETAG}, 304),
            ({'If-None-Match': '"x"'}, 200),
        ],
        ids=str,
    )
    def test_is_read_under_conditions(
        self, client, container, headers, status
    ):
        client.put(container, 'o', BODY)
        assert client.get(container, 'o', headers=headers).status == status

    def test_is_put_under_conditions(self, client, container):
        headers = {'If-None-Match': '*'}
        assert client.put(container, 'o', BODY, headers=headers).status == 201
        assert client.put(container, 'o', OTHER, headers=headers).status == 412
        headers = {'Etag': BODY_ETAG}
        assert client.put(container, 'o', OTHER, headers=headers).status == 422
        assert client.listing(container).json()[0]['hash'] == BODY_ETAG

    def test_has_its_etag_in_s3(self, cluster, client, container):
        s3 = s3_client(cluster)
        etag = f'"{BODY_ETAG}"'
        put = s3.put_object(Bucket=container, Key='o', Body=BODY)
        assert put['ETag'] == etag
        (row,) = s3.list_objects_v2(Bucket=container)['Contents']
        assert row['ETag'] == etag
        got = s3.get_object(Bucket=container, Key='o', IfMatch=etag)
        assert got['Body'].read() == BODY


@pytest.fixture(scope='module')
def twins(login) -> Pair:
    """A plain and a sharded container with objects of all kinds."""
    owner = login()
    twins = make_twins(owner)
    segments = make_segments(owner)
    for container in twins:
        fill(owner, container, segments)
    return twins


def make_segments(owner: Client) -> str:
    """Create a container with two segments of a large object."""
    segments = make_plain(owner)
    for name in ('1', '2'):
        owner.put(segments, name, BODY)
    return segments


def fill(owner: Client, container: str, segments: str) -> None:
    """Store objects, large objects and links.

    :param segments: the container of the large object's segments, the same
                     for both twins, as the ETag of a manifest depends on it
    """
    bodies = {f'{d}/{i}': BODY[: i * 9] for d in 'ab' for i in range(12)}
    path = f'{owner.path(container)}?extract-archive=tar'
    archive = archive_of(bodies)
    assert owner.raw('PUT', path, body=archive).status == 200
    put_large_object(owner, container, segments)
    headers = {'X-Object-Manifest': f'{container}/a/'}
    owner.put(container, 'dynamic', headers=headers)
    headers = {'X-Symlink-Target': f'{container}/a/1'}
    owner.put(container, 'link', headers=headers)
    owner.put(container, 'again', OTHER)
    owner.put(container, 'again', BODY)
    owner.put(container, 'gone', BODY)
    owner.delete(container, 'gone')


def put_large_object(client: Client, container: str, segments: str) -> None:
    """Store a static large object of two segments."""
    manifest = [{'path': f'/{segments}/{name}'} for name in ('1', '2')]
    answer = client.put(
        container,
        'static',
        json.dumps(manifest).encode(),
        query={'multipart-manifest': 'put'},
    )
    assert answer.status == 201


class TestListing:
    @pytest.mark.parametrize(
        'query',
        [
            'format=json', 'format=xml', 'format=plain', 'reverse=on',
            'format=json&limit=5', 'format=json&prefix=a/&reverse=on',
            'format=json&delimiter=/', 'format=xml&delimiter=/',
            'format=json&marker=a/5&end_marker=b/3', 'limit=x',
        ],
    )  # fmt: skip
    def test_is_that_of_a_plain_container(self, client, twins, query):
        plain, sharded = (
            masked(client.get(container, query=query), container)
            for container in twins
        )
        assert sharded == plain

    def test_has_the_etags_of_the_plain_bodies(self, client, twins):
        rows = client.listing(twins.sharded, prefix='a/').json()
        assert [row['hash'] for row in rows] == [
            hashlib.md5(BODY[: row['bytes']]).hexdigest() for row in rows
        ]

    def test_in_any_order_has_the_same_rows(self, client, twins):
        rows = client.listing(twins.sharded).json()
        anyhow = client.listing(twins.sharded, allow_unordered='true').json()
        assert sorted(anyhow, key=lambda row: row['name']) == rows

    def test_of_versions_has_the_etags_of_the_plain_bodies(
        self, client, container
    ):
        headers = {'X-Versions-Enabled': 'true'}
        assert client.post(container, headers=headers).status == 204
        client.put(container, 'o', OTHER)
        client.put(container, 'o', BODY)
        rows = client.listing(container, versions='true').json()
        etags = [hashlib.md5(body).hexdigest() for body in (BODY, OTHER)]
        assert [row['hash'] for row in rows] == etags
        query = {'version-id': rows[1]['version_id']}
        assert client.get(container, 'o', query=query).body == OTHER


class TestStorage:
    def test_holds_nothing_in_the_clear(self, cluster, client, twins):
        client.put(twins.sharded, 'a/0', BODY)
        stored = [
            path.read_bytes()
            for kind in ('data', 'db')
            for path in cluster.devices_path.rglob(f'*.{kind}')
        ]
        assert stored
        for secret in (BODY[:33], BODY_ETAG.encode()):
            assert not any(secret in content for content in stored)


@pytest.fixture(scope='module')
def unfiltered(cluster, login) -> Client:
    """The owner at a proxy without shardmw."""
    with running_unfiltered_proxy(cluster) as url:
        yield login().on(url)


class TestStrays:
    def test_are_moved_with_their_etags(self, cluster, client, unfiltered):
        twins = make_twins(client)
        segments = make_segments(client)
        for container in twins:
            fill(unfiltered, container, segments)
            client.put(container, 'a/1', OTHER)
        backing = Backing(unfiltered)
        settle(cluster)
        plain, sharded = (
            masked(client.listing(container), container) for container in twins
        )
        assert sharded == plain
        assert backing.root_names(twins.sharded) == []
        assert client.get(twins.sharded, 'static').body == 2 * BODY
        in_shards = [
            name
            for shard in range(SHARDS)
            for name in backing.list_shard(twins.sharded, shard)
        ]
        assert sorted(in_shards) == client.listing(twins.plain).names()


def test_a_sharded_container_answers_like_a_plain_one(client):
    # With a long name, some file systems have no room for what encryption
    # stores beside it.
    run_state_machine_as_test(
        lambda: OnBoth(client, SHARDS, longest_name=200),
        settings=settings_for(3),
    )
