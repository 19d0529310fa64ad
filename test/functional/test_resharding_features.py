# SPDX-License-Identifier: Apache-2.0
"""Use all features of containers while their layout changes.

The cluster encrypts, and the containers have its second policy. A change stays
in a phase while the tests use the container.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from botocore.client import BaseClient
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, logins, unique
from test.functional.operating import (
    SETTINGS,
    SETTLE_SECONDS,
    Admin,
    admin_of,
    shards_of,
    wait_for_phase,
)
from test.functional.realclients import keys_of, s3_client
from test.functional.test_boto3_parts import MIN_PART, complete, start_upload
from test.functional.test_transparency import OnBoth, names, settings_for

POLICY = {'X-Storage-Policy': 'Policy-1'}

#: How long a change stays in a phase, in seconds: longer than any test takes.
LONG = '3600'
ANNOUNCED = ('announced', '--info-cache-seconds', LONG)
SETTLING = ('settling', '--settle-seconds', LONG)
DONE = ('done', '--settle-seconds', SETTLE_SECONDS)
PHASES = (ANNOUNCED, SETTLING)

#: Shard counts before and after; 0 is a plain container.
CHANGES = pytest.mark.parametrize(
    ('former', 'shards'), [(0, 4), (4, 7), (7, 0)]
)


@pytest.fixture(scope='module')
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    # Sums are read again for the quotas of every upload.
    settings = {**SETTINGS, 'shardmw.stats_cache_seconds': '0'}
    options = ClusterOptions(encryption=True, policies=2, settings=settings)
    with Cluster(tmp_path_factory.mktemp('features'), options) as cluster:
        yield cluster


login = pytest.fixture(scope='module')(logins)
admin = pytest.fixture(scope='module')(admin_of)


def make(client: Client, container: str, shards: int, **headers: str) -> str:
    """Create a container with the second policy; return its name."""
    headers = {key.replace('_', '-'): value for key, value in headers.items()}
    headers |= POLICY
    if shards:
        headers[SHARD_COUNT_HEADER] = str(shards)
    assert client.put(container, headers=headers).status == 201
    return container


@contextmanager
def staying(
    admin: Admin,
    client: Client,
    containers: list[str],
    shards: int,
    phase: tuple[str, ...],
) -> Iterator[None]:
    """Have changes stay in a phase until the end of the block.

    :param phase: the phase's name, and options of the command
    """
    name, *options = phase
    commands = [
        admin.start(
            'reshard',
            f'{client.account}/{container}',
            str(shards),
            '--despite-backlog',
            *options,
        )
        for container in containers
    ]
    try:
        for each in commands:
            wait_for_phase(each, name)
        yield
    finally:
        for each in commands:
            each.kill()
            each.communicate()


class WhileItChanges(OnBoth):
    """Plays every request on a plain container and on one that changes."""

    def __init__(
        self,
        client: Client,
        admin: Admin,
        former: int,
        shards: int,
        phase: tuple,
    ) -> None:
        # With a long name, some file systems have no room for what encryption
        # stores beside it.
        super().__init__(client, former, longest_name=200)
        self.new_count = shards
        self.change = ExitStack()
        self.begin = lambda: self.change.enter_context(
            staying(admin, client, [self.sharded], shards, phase)
        )

    @initialize(first=st.lists(names, max_size=12))
    def create(self, first: list[str]) -> None:
        self.create_or_change(POLICY)
        for name in first:
            self.upload(name, b'', {})
        self.begin()
        self.shards = self.new_count

    def teardown(self) -> None:
        self.change.close()
        super().teardown()


@pytest.mark.parametrize('phase', PHASES, ids=['announced', 'settling'])
@CHANGES
def test_answers_are_those_of_a_plain_container(
    client, admin, former, shards, phase
):
    run_state_machine_as_test(
        lambda: WhileItChanges(client, admin, former, shards, phase),
        settings=settings_for(1),
    )


class Uploads:
    """Uploads in parts, by S3."""

    BODY = b'1' * MIN_PART

    def __init__(self, client: Client, s3: BaseClient, shards: int) -> None:
        self.client = client
        self.s3 = s3
        self.bucket = make(client, unique('bucket'), shards)
        # where s3api keeps the parts
        self.parts = make(client, f'{self.bucket}+segments', shards)
        self.containers = (self.bucket, self.parts)
        self.before = {
            phase: start_upload(s3, self.bucket, f'before-{phase}', self.BODY)
            for phase, *_ in PHASES
        }
        self.late = start_upload(s3, self.bucket, 'late', self.BODY)

    def use(self, phase: str) -> None:
        before = self.before[phase]
        self.s3.upload_part(PartNumber=2, Body=b'2', **before)
        complete(self.s3, before, [1, 2])
        key = f'during-{phase}'
        during = start_upload(self.s3, self.bucket, key, self.BODY, b'2')
        complete(self.s3, during, [1, 2])
        given_up = start_upload(self.s3, self.bucket, 'given up', b'2')
        self.s3.abort_multipart_upload(**given_up)
        assert {before['Key'], key} <= set(self.keys())
        shown = self.s3.list_multipart_uploads(Bucket=self.bucket)
        keys = [each['Key'] for each in shown['Uploads']]
        assert 'late' in keys
        assert not {before['Key'], key, 'given up'} & set(keys)

    def check(self) -> None:
        self.s3.upload_part(PartNumber=2, Body=b'2', **self.late)
        complete(self.s3, self.late, [1, 2])
        assert self.keys() == [
            *('before-announced', 'before-settling'),
            *('during-announced', 'during-settling', 'late'),
        ]
        for key in self.keys():
            got = self.s3.get_object(Bucket=self.bucket, Key=key)
            assert got['Body'].read() == self.BODY + b'2'

    def keys(self) -> list[str]:
        return keys_of(self.s3.list_objects_v2(Bucket=self.bucket))


class Versions:
    """Old versions, in a hidden container that changes with its container."""

    def __init__(self, client: Client, admin: Admin, shards: int) -> None:
        self.client = client
        self.admin = admin
        self.container = make(
            client, unique('versions'), shards, X_Versions_Enabled='true'
        )
        self.containers = (self.container,)
        for body in (b'one', b'two'):
            for phase, *_ in PHASES:
                self.put(phase, body)

    def use(self, phase: str) -> None:
        client, container = self.client, self.container
        self.put(phase, b'three')
        assert client.delete(container, phase).status == 204
        assert client.get(container, phase).status == 404
        versions = self.versions(phase)
        assert self.bodies(phase) == [b'three', b'two', b'one']
        *_, two, one = versions
        restored = client.put(container, phase, query=two)
        assert restored.status == 201
        assert client.get(container, phase).body == b'two'
        assert client.delete(container, phase, query=one).status == 204
        assert self.bodies(phase) == [b'three', b'two']

    def check(self) -> None:
        names = [phase for phase, *_ in PHASES]
        assert self.client.listing(self.container).names() == names
        for name in names:
            assert self.bodies(name) == [b'three', b'two']
            assert self.client.get(self.container, name).body == b'two'
        assert self.shards_of_versions() == shards_of(
            self.client, self.container
        )

    def shards_of_versions(self) -> int:
        path = f'{self.client.account}/%00versions%00{self.container}'
        return len(
            json.loads(self.admin('stat', path, '--json').stdout)['shards']
        )

    def put(self, name: str, body: bytes) -> None:
        assert self.client.put(self.container, name, body).status == 201

    def versions(self, name: str) -> list[dict[str, str]]:
        """Return the query of each version of an object, newest first."""
        query = {'format': 'json', 'versions': 'true', 'prefix': name}
        rows = self.client.get(self.container, query=query).json()
        return [{'version-id': row['version_id']} for row in rows]

    def bodies(self, name: str) -> list[bytes]:
        """Return the bodies of an object, newest first."""
        answers = [
            self.client.get(self.container, name, query=version)
            for version in self.versions(name)
        ]
        # the others are delete markers
        return [each.body for each in answers if each.status == 200]


class Large:
    """Large objects, symlinks, and rows that a POST has changed."""

    def __init__(self, client: Client, shards: int) -> None:
        self.client = client
        self.container = make(client, unique('large'), shards)
        self.containers = (self.container,)
        for name in ('segment', 'changed'):
            assert client.put(self.container, name, b'body').status == 201
        self.put('before')
        self.listing = self.listed()

    def use(self, phase: str) -> None:
        assert self.listed() == self.listing
        self.put(phase)
        self.listing = self.listed()

    def check(self) -> None:
        assert self.listed() == self.listing
        for phase in ('before', *(phase for phase, *_ in PHASES)):
            large = self.client.get(self.container, f'slo-{phase}')
            assert large.body == b'bodybody'
            link = self.client.get(self.container, f'link-{phase}')
            assert link.body == b'body'

    def listed(self) -> list[str]:
        """Return the rows and the sums of the container."""
        answer = self.client.listing(self.container)
        names = ('x-container-object-count', 'x-container-bytes-used')
        rows = [json.dumps(row) for row in answer.json()]
        return rows + [answer.headers[name] for name in names]

    def put(self, phase: str) -> None:
        client, container = self.client, self.container
        etag = client.head(container, 'segment').headers['etag']
        manifest = [{'path': f'/{container}/segment', 'etag': etag}] * 2
        query = {'multipart-manifest': 'put'}
        body = json.dumps(manifest).encode()
        large = client.put(container, f'slo-{phase}', body, query=query)
        assert large.status == 201
        link = {'X-Symlink-Target': f'{container}/segment'}
        linked = client.put(container, f'link-{phase}', headers=link)
        assert linked.status == 201
        post = {'Content-Type': f'text/x-{phase}'}
        assert client.post(container, 'changed', headers=post).status == 202


class Quota:
    """A container of three objects at most."""

    def __init__(self, client: Client, shards: int) -> None:
        self.client = client
        self.container = make(
            client, unique('quota'), shards, X_Container_Meta_Quota_Count='3'
        )
        self.containers = (self.container,)
        for name in ('a', 'b', 'c'):
            assert self.put(name) == 201

    def use(self, phase: str) -> None:
        assert self.put(f'{phase}-1') == 413
        name = self.client.listing(self.container).names()[0]
        assert self.client.delete(self.container, name).status == 204
        assert self.put(f'{phase}-2') == 201
        assert self.put(f'{phase}-3') == 413

    def check(self) -> None:
        assert self.put('d') == 413
        names = ['b', 'c', 'settling-2']
        assert self.client.listing(self.container).names() == names

    def put(self, name: str) -> int:
        # The POST has proxies drop the count that they have cached.
        assert self.client.post(self.container).status == 204
        return self.client.put(self.container, name, b'x').status


class Anew:
    """Containers that are deleted and recreated, one in each phase."""

    def __init__(self, client: Client, shards: int) -> None:
        self.client = client
        self.of_phase = {
            phase: make(client, unique('anew'), shards) for phase, *_ in PHASES
        }
        self.containers = tuple(self.of_phase.values())
        for container in self.containers:
            assert client.put(container, 'o', b'x').status == 201

    def use(self, phase: str) -> None:
        client, container = self.client, self.of_phase[phase]
        assert client.delete(container).status == 409
        assert client.delete(container, 'o').status == 204
        assert client.delete(container).status == 204
        assert client.get(container).status == 404
        make(client, container, 2)
        assert client.put(container, 'p', b'x').status == 201

    def check(self) -> None:
        for container in self.containers:
            assert self.client.listing(container).names() == ['p']


@CHANGES
def test_features_work_in_each_phase(cluster, client, admin, former, shards):
    features = (
        Uploads(client, s3_client(cluster), former),
        Versions(client, admin, former),
        Large(client, former),
        Quota(client, former),
        Anew(client, former),
    )
    containers = [name for each in features for name in each.containers]
    for phase in PHASES:
        with staying(admin, client, containers, shards, phase):
            for each in features:
                each.use(phase[0])
    with staying(admin, client, containers, shards, DONE):
        pass
    assert {shards_of(client, name) for name in containers} == {shards}
    for each in features:
        each.check()
